//! What can be done about one object: the words in which decisions are told.

use std::time::Duration;

use super::{Form, Reason, ReleaseSeal, Rv, Shared, SourceId, Uid};
use crate::object::Revision;

/// What a write must find to be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// No such object. Sent unforced, so that a field of somebody else's object is a conflict.
    Absent,
    /// This incarnation; without it the API server would create a new one.
    Uid(Uid),
    /// This incarnation in this version: for writes that depend on what was seen.
    Exact(Uid, Rv),
}

/// Why a content is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It is not there.
    Create,
    /// A newer content.
    Change,
    /// Somebody changed it.
    Repair,
    /// It was nobody's.
    Adopt,
    /// It was another source's.
    Transfer,
    /// Its rollout goes on, or is let go.
    Step,
    /// The data that its pods use have changed.
    Restart,
}

/// Whether a write may restart pods that are available now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restarts {
    /// It does not.
    No,
    /// As far as can be told without asking the server, it may.
    Maybe,
}

/// One server-side apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Apply {
    /// The content.
    pub want: Shared,
    /// In whose name.
    pub source: SourceId,
    /// The revision that its annotation names.
    pub revision: Revision,
    /// The seal of its annotation; none where there is no key.
    pub seal: Option<ReleaseSeal>,
    /// What it must find.
    pub guard: Guard,
    /// The version of the view that it was decided on; none for an object that is not there.
    pub seen: Option<Rv>,
    /// In which form it is sent.
    pub form: Form,
    /// Why.
    pub purpose: Purpose,
    /// Whether the rollout budget is asked.
    pub restarts: Restarts,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Nothing; with a reason when it is not as wanted.
    Nothing,
    /// Nothing is known of it any more.
    Forget,
    /// Ask the API server whether it exists.
    Look,
    /// Compare the content with what our entry covers.
    Compare(Shared, Form),
    /// Compare the values that the cluster shows: of lists that are empty in the content, or of all.
    Inspect(Shared, Form),
    /// Read what was accepted before from its revision.
    Resolve,
    /// Ask the API server what a write would do to pods.
    DryRun(Apply),
    /// Write.
    Apply(Apply),
    /// Delete this incarnation in this version.
    Delete(Uid, Rv, Removal),
}

/// Why an object is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// No source wants it.
    Prune,
    /// It comes back with a content that the API does not accept in place.
    Recreate,
}

/// An action, why not more, and when to look again by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What is to be done.
    pub action: Action,
    /// Why the object is not, or not yet, as the newest revision asks.
    pub reason: Option<Reason>,
    /// When the clock alone changes the answer.
    pub again: Option<Duration>,
}

impl Decision {
    pub(super) fn act(action: Action) -> Self {
        Self { action, reason: None, again: None }
    }

    pub(super) fn wait(reason: Reason) -> Self {
        let again = match &reason {
            Reason::Refused(_, after) => *after,
            Reason::Retrying(_, after) | Reason::Fight(_, after) => Some(*after),
            Reason::OwnWrite => Some(super::ECHO),
            _ => None,
        };
        Self { action: Action::Nothing, reason: Some(reason), again }
    }

    pub(super) fn because(mut self, reason: Reason) -> Self {
        let waits = Self::wait(reason);
        self.again = [self.again, waits.again].into_iter().flatten().min();
        self.reason = waits.reason;
        self
    }
}
