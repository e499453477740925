//! A source that a person has deleted, with all that it has: it wants nothing, and nothing is asked
//! of where it was.
//!
//! Reads the contents of its objects as far as this host still has them. The order of the deletions
//! follows from them, and which objects are kept. While the disk does not answer, that waits.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use tokio::sync::mpsc;

use super::super::loop_event::LoopEvent;
use super::older_revision::{self, WantedContents};
use super::{ContentReader, HEARTBEAT_SLACK, MAX_OPERATION_DURATION, SourceTask, SourceTaskRequest};
use crate::engine::SourceReading;
use crate::object::Revision;
use crate::source::{RevisionReader, Source};

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
        // The contents of which it is not known yet whether this host has them.
        let mut unanswered: VecDeque<WantedContents> = VecDeque::new();
        loop {
            self.heartbeat.record(HEARTBEAT_INTERVAL + HEARTBEAT_SLACK);
            if let Some(event) = event_to_send.take()
                && self.events.send(event).await.is_err()
            {
                return;
            }
            let request = tokio::select! {
                request = requests.recv() => request,
                () = tokio::time::sleep(HEARTBEAT_INTERVAL) => {
                    if let Some(wanted) = unanswered.pop_front() {
                        self.heartbeat.record(MAX_OPERATION_DURATION);
                        let reader = self.content_reader();
                        event_to_send = look_up(&self.source, reader, wanted, &mut unanswered).await;
                    }
                    continue;
                }
            };
            let Some(request) = request else { return };
            event_to_send = match request {
                SourceTaskRequest::CheckAfter(reading) => Some(LoopEvent::SourceChecked(number, reading)),
                SourceTaskRequest::ReadUndoTarget(undo) => {
                    let head = self.head_revision();
                    let past = self.content_reader().past_revision(undo.clone(), head).await;
                    Some(LoopEvent::UndoTargetRead(Box::new(undo), past))
                }
                SourceTaskRequest::ReadContents(revision, contents) => {
                    let wanted = WantedContents { revision, contents };
                    self.heartbeat.record(MAX_OPERATION_DURATION);
                    look_up(&self.source, self.content_reader(), wanted, &mut unanswered).await
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

/// Returns the answer about contents. Where it is not known yet what this host has, they stay
/// unanswered.
async fn look_up(
    source: &Source,
    reader: ContentReader,
    wanted: WantedContents,
    unanswered: &mut VecDeque<WantedContents>,
) -> Option<LoopEvent> {
    let ContentReader { settings, scopes, .. } = reader;
    let (revision, contents) = (wanted.revision.clone(), wanted.contents.clone());
    // Not while an earlier look that was given up has yet to end.
    let read = move |reader: &RevisionReader| {
        older_revision::read_contents(reader, &settings, &scopes, &revision, &contents)
    };
    match wanted.resolve(source.read_bounded(read).await) {
        Ok(found) => Some(LoopEvent::ContentsRead(found)),
        Err(wanted) => {
            unanswered.push_back(wanted);
            None
        }
    }
}
