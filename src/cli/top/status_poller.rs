//! The polling of the daemon or of the cluster.

use tokio::sync::{mpsc, watch};

use super::super::CommandError;
use super::super::cluster_status::read_cluster_status;
use super::super::events;
use super::super::socket::SocketError;
use super::super::status::StatusReader;
use super::super::status_view::{self, StatusView};
use crate::report::{EventRecord, ObjectRef, ObjectStatus};

/// The origin of the status, in words, and its polling interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StatusOrigin {
    /// The daemon on this socket, each second.
    Daemon(String),
    /// The cluster of this context alone, each 5 s.
    Cluster(String),
}

/// The answers of one poll.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refresh {
    pub(super) view: StatusView,
    /// The events since the poll before.
    pub(super) events: Vec<EventRecord>,
    /// The object that was asked for, and its status; none where no source has it.
    pub(super) object: Option<(ObjectRef, Option<ObjectStatus>)>,
}

/// The questions to a daemon, for the screen.
pub(super) struct StatusPoller {
    reader: StatusReader,
    /// The number of the last event.
    last: u64,
}

impl StatusPoller {
    pub(super) fn of(reader: StatusReader) -> Self {
        Self { reader, last: 0 }
    }

    /// Returns who is asked, in words.
    pub(super) fn status_origin(&self) -> StatusOrigin {
        match &self.reader {
            StatusReader::Daemon(socket) => StatusOrigin::Daemon(socket.path().display().to_string()),
            StatusReader::Cluster(session) => {
                StatusOrigin::Cluster(session.cluster.context_name().to_owned())
            }
        }
    }

    /// Asks once, beside all else for this object.
    pub(super) async fn poll(&mut self, wanted: Option<&ObjectRef>) -> Result<Refresh, CommandError> {
        match &self.reader {
            StatusReader::Daemon(socket) => {
                let view = StatusView::of_daemon(socket).await?;
                // Too many may listen; the status is worth more.
                let events =
                    none_if_refused(events::events_after(socket, self.last).await)?.unwrap_or_default();
                self.last = events.last().map_or(self.last, |event| event.number);
                let object = match wanted {
                    None => None,
                    Some(named) => Some((
                        named.clone(),
                        none_if_refused(socket.read(&status_view::object_page(named)).await)?,
                    )),
                };
                Ok(Refresh { view, events, object })
            }
            StatusReader::Cluster(session) => {
                let mut view = read_cluster_status(session).await?;
                let find = |named: &ObjectRef| view.objects.iter().find(|object| object.object == *named);
                let object = wanted.map(|named| (named.clone(), find(named).cloned()));
                view.objects.retain(|object| !object.phase.is_well());
                Ok(Refresh { view, events: Vec::new(), object })
            }
        }
    }

    /// Asks for ever, and at once where another object is asked for.
    pub(super) async fn run_loop(
        mut self,
        mut wanted: watch::Receiver<Option<ObjectRef>>,
        refreshes: mpsc::Sender<Result<Refresh, String>>,
    ) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(self.reader.poll_interval()) => {}
                Ok(()) = wanted.changed() => {}
            }
            let named = wanted.borrow_and_update().clone();
            let refresh = self.poll(named.as_ref()).await.map_err(|error| error.to_string());
            if refreshes.send(refresh).await.is_err() {
                return;
            }
        }
    }
}

/// Returns the answer, or none where it is refused.
fn none_if_refused<T>(answer: Result<T, SocketError>) -> Result<Option<T>, SocketError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(SocketError::Refused(_)) => Ok(None),
        Err(silent) => Err(silent),
    }
}
