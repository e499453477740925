//! A source that a person has deleted, with all that it has: it wants nothing, and nothing is asked
//! of where it was.
//!
//! Reads the contents of its objects as far as this host still has them, as the order of the
//! deletions follows from them.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::mpsc;

use super::super::loop_event::LoopEvent;
use super::older_revision::WantedContents;
use super::{HEARTBEAT_SLACK, SourceTask, SourceTaskRequest};
use crate::engine::SourceReading;
use crate::object::Revision;

/// The text in place of the revision of a source that wants nothing any more.
const DELETED_REVISION: &str = "deleted";

/// The interval of its heartbeat.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30);

impl SourceTask {
    /// Does the same as [`SourceTask::run`], where nothing is wanted any more.
    pub(in crate::daemon) async fn end(self, mut requests: mpsc::Receiver<SourceTaskRequest>) {
        let number = self.settings.source;
        let reading =
            SourceReading { revision: Some(Revision::new(DELETED_REVISION)), ..SourceReading::default() };
        let mut event_to_send = Some(LoopEvent::SourceRead(number, reading, BTreeSet::new()));
        loop {
            self.heartbeat.record(HEARTBEAT_INTERVAL + HEARTBEAT_SLACK);
            if let Some(event) = event_to_send.take()
                && self.events.send(event).await.is_err()
            {
                return;
            }
            let request = tokio::select! {
                request = requests.recv() => request,
                () = tokio::time::sleep(HEARTBEAT_INTERVAL) => continue,
            };
            let Some(request) = request else { return };
            event_to_send = match request {
                SourceTaskRequest::CheckAfter(reading) => Some(LoopEvent::SourceChecked(number, reading)),
                SourceTaskRequest::ReadUndoTarget(undo) => {
                    let token = undo.token.clone();
                    let past = self.content_reader().past_revision(undo, self.head_revision()).await;
                    Some(LoopEvent::UndoTargetRead(token, past))
                }
                SourceTaskRequest::ReadContents(revision, contents) => {
                    let wanted = WantedContents { revision, contents };
                    let (wanted, search) = self.content_reader().look_up(wanted).await;
                    let found = search.map(|search| search.found);
                    Some(LoopEvent::ContentsRead(found.unwrap_or_else(|_| wanted.none_found())))
                }
                // Nothing is wanted, whatever the kinds; contents are looked up by the newest scopes.
                SourceTaskRequest::ReadAgain
                | SourceTaskRequest::VerificationRecord(_)
                | SourceTaskRequest::Hint
                | SourceTaskRequest::Pin(_) => None,
            };
        }
    }
}
