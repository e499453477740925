//! What is asked of the daemon, or of the cluster, again and again.

use tokio::sync::{mpsc, watch};

use super::super::CommandError;
use super::super::events;
use super::super::socket::Unanswered;
use super::super::status::Teller;
use super::super::survey::survey;
use super::super::view::{self, View};
use crate::report::{Named, Notice, ObjectStatus};

/// Who tells, in words, and how often it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The daemon on this socket, each second.
    Daemon(String),
    /// The cluster of this context alone, each 5 s.
    Cluster(String),
}

/// What was told at once.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Look {
    pub(super) view: View,
    /// What happened since the look before.
    pub(super) notices: Vec<Notice>,
    /// The object that was asked for, and where it stands; none where no source has it.
    pub(super) object: Option<(Named, Option<ObjectStatus>)>,
}

/// Asks.
pub(super) struct Feed {
    teller: Teller,
    /// The number of the last notice.
    last: u64,
}

impl Feed {
    pub(super) fn of(teller: Teller) -> Self {
        Self { teller, last: 0 }
    }

    /// Who is asked, in words.
    pub(super) fn place(&self) -> Place {
        match &self.teller {
            Teller::Daemon(socket) => Place::Daemon(socket.path().display().to_string()),
            Teller::Cluster(desk) => Place::Cluster(desk.cluster.context().to_owned()),
        }
    }

    /// Asks once, beside all else for this object.
    pub(super) async fn look(&mut self, wanted: Option<&Named>) -> Result<Look, CommandError> {
        match &self.teller {
            Teller::Daemon(socket) => {
                let view = View::of_daemon(socket).await?;
                // Too many may listen; what is told of where things stand is worth more.
                let notices = refusable(events::after(socket, self.last).await)?.unwrap_or_default();
                self.last = notices.last().map_or(self.last, |notice| notice.number);
                let object = match wanted {
                    None => None,
                    Some(named) => Some((named.clone(), refusable(socket.read(&view::page(named)).await)?)),
                };
                Ok(Look { view, notices, object })
            }
            Teller::Cluster(desk) => {
                let mut view = survey(desk).await?;
                let find = |named: &Named| view.objects.iter().find(|object| object.object == *named);
                let object = wanted.map(|named| (named.clone(), find(named).cloned()));
                view.objects.retain(|object| !object.phase.is_well());
                Ok(Look { view, notices: Vec::new(), object })
            }
        }
    }

    /// Asks for ever, and at once where another object is asked for.
    pub(super) async fn go_on(
        mut self,
        mut wanted: watch::Receiver<Option<Named>>,
        told: mpsc::Sender<Result<Look, String>>,
    ) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(self.teller.rhythm()) => {}
                Ok(()) = wanted.changed() => {}
            }
            let named = wanted.borrow_and_update().clone();
            let look = self.look(named.as_ref()).await.map_err(|error| error.to_string());
            if told.send(look).await.is_err() {
                return;
            }
        }
    }
}

/// What was asked for, or nothing where it is refused.
fn refusable<T>(answer: Result<T, Unanswered>) -> Result<Option<T>, Unanswered> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(Unanswered::Refused(_)) => Ok(None),
        Err(silent) => Err(silent),
    }
}
