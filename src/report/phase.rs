//! Phases: where an object stands, in one word for people. Derived from facts, and never stored.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::engine::{Engine, Entry, Live, Reason, Substitute};
use crate::health::Status;
use crate::object::ObjectId;

/// Where an object stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Phase {
    /// As wanted, and healthy.
    Settled,
    /// As wanted, and its controller works on it.
    Progressing,
    /// As wanted, and its controller gave up.
    Failed,
    /// Its pods are being replaced.
    RollingOut,
    /// Something is to be done, which waits.
    Waiting,
    /// It cannot be as wanted until a person changes something.
    Refused,
    /// What was asked for failed, and it is back at what was good before.
    RolledBack,
    /// What was asked for failed, and it stays as it is.
    Quarantined,
    /// A person holds it: drift is shown, and not repaired.
    Held,
    /// A person has paused it.
    Paused,
    /// It is not wanted any more, and its deletion waits.
    PruneWaiting,
    /// Its manifest asks to leave it alone.
    LeftAlone,
    /// An annotation that somebody put on the live object takes it out of rhumb's hands.
    OptedOut,
}

/// Says of objects of which each is well how many are as wanted and healthy, and how many nobody looks after.
pub fn well_words(objects: &BTreeMap<Phase, usize>) -> String {
    let all: usize = objects.values().sum();
    match objects.get(&Phase::LeftAlone).copied().unwrap_or_default() {
        0 => format!("{all} objects are as wanted and healthy"),
        left => format!("{} objects are as wanted and healthy, {left} left alone", all - left),
    }
}

/// All phases, in their order.
pub const PHASES: [Phase; 13] = [
    Phase::Settled,
    Phase::Progressing,
    Phase::Failed,
    Phase::RollingOut,
    Phase::Waiting,
    Phase::Refused,
    Phase::RolledBack,
    Phase::Quarantined,
    Phase::Held,
    Phase::Paused,
    Phase::PruneWaiting,
    Phase::LeftAlone,
    Phase::OptedOut,
];

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Phase {
    /// Whether nobody need look at it: it is as the followed revision asks for.
    ///
    /// Nobody looks after an object that an annotation takes out of rhumb's hands.
    pub fn is_well(self) -> bool {
        matches!(self, Self::Settled | Self::LeftAlone)
    }

    /// Of an object and what keeps it from being as wanted.
    pub fn of(engine: &Engine, id: &ObjectId, entry: &Entry, open: Option<&Reason>) -> Self {
        let rolls = engine.is_under_way(id);
        match open {
            Some(Reason::OnHold(_)) => Self::Held,
            Some(Reason::Paused(_)) => Self::Paused,
            Some(Reason::Prune(_) | Reason::Confirm(_)) => Self::PruneWaiting,
            Some(Reason::Kept(_) | Reason::LeftAlone(_)) => Self::LeftAlone,
            Some(Reason::OptedOut(_)) => Self::OptedOut,
            Some(Reason::Step(_)) => Self::RollingOut,
            Some(Reason::Rejected(_)) => match entry.instead.as_deref().map(|instead| &instead.content) {
                Some(Substitute::Known(..)) if rolls => Self::RollingOut,
                Some(Substitute::Known(..) | Substitute::Absent) => Self::RolledBack,
                _ => Self::Quarantined,
            },
            Some(reason) if reason.is_refusal() => Self::Refused,
            _ if rolls => Self::RollingOut,
            Some(_) => Self::Waiting,
            None => Self::by_health(engine, id, entry),
        }
    }

    fn by_health(engine: &Engine, id: &ObjectId, entry: &Entry) -> Self {
        if entry.wants.is_empty() {
            return Self::PruneWaiting;
        }
        match engine.shown(id) {
            Some(live) => Self::of_health(live),
            None if engine.has_ended(id, entry) => Self::Settled,
            None => Self::Waiting,
        }
    }

    /// Of what an object shows, where nothing is to be done with it.
    pub fn of_health(live: &Live) -> Self {
        match live.health.status {
            Status::Current => Self::Settled,
            Status::InProgress | Status::Unknown => Self::Progressing,
            Status::Failed => Self::Failed,
            Status::Terminating => Self::Waiting,
        }
    }
}
