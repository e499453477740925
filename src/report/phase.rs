//! Phases: the status of an object, in one word for people. Derived from facts, and never stored.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::engine::{ObjectEntry, Reason, ReplacementContent, View};
use crate::health::HealthStatus;
use crate::object::{ObjectId, count_text, verb_to_be};

/// The phase of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Applied, and healthy.
    Settled,
    /// Applied, and its controller works on it.
    Progressing,
    /// Applied, and its controller gave up.
    Failed,
    /// Its pods are being replaced.
    RollingOut,
    /// Something is to be done, which waits.
    Waiting,
    /// It cannot be applied until a person changes something.
    Refused,
    /// The desired content failed, and the object is back at its last good one.
    RolledBack,
    /// The desired content failed, and the object stays as it is: live, or back at a good content
    /// that cannot be read any more.
    Quarantined,
    /// A person holds it: drift is shown, and not repaired.
    Held,
    /// A person has paused it.
    Paused,
    /// It is no longer wanted, and its deletion waits.
    PruneWaiting,
    /// Its manifest asks to leave it alone, or it is unwanted and kept.
    LeftAlone,
    /// An annotation that somebody put on the live object takes it out of rhumb's hands.
    OptedOut,
}

/// Says of objects of which each is well how many are applied and healthy, and how many are left
/// alone.
pub(crate) fn healthy_text(objects: &BTreeMap<Phase, usize>) -> String {
    let all: usize = objects.values().sum();
    match objects.get(&Phase::LeftAlone).copied().unwrap_or_default() {
        0 => format!("{} {} applied and healthy", count_text(all, "object"), verb_to_be(all)),
        left => {
            let well = all - left;
            let objects = count_text(well, "object");
            format!("{objects} {} applied and healthy, {left} left alone", verb_to_be(well))
        }
    }
}

/// All phases, in their order.
pub(crate) const PHASES: [Phase; 13] = [
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
    /// Returns whether it needs no attention: it is as the followed revision asks for.
    ///
    /// Nothing repairs an object that an annotation takes out of rhumb's hands.
    pub(crate) fn is_well(self) -> bool {
        matches!(self, Self::Settled | Self::LeftAlone)
    }

    /// Returns the phase of an object that the engine knows.
    pub(crate) fn of(engine: View<'_>, id: &ObjectId, entry: &ObjectEntry, open: Option<&Reason>) -> Self {
        let status = match engine.live_object(id) {
            Some(live) => Some(live.health.status),
            None => engine.has_ended(id, entry).then_some(HealthStatus::Current),
        };
        let blocker = open.map(|reason| Blocker::of(reason, entry));
        let facts = PhaseFacts {
            blocker: blocker.or_else(|| entry.targets.is_empty().then_some(Blocker::Prune)),
            is_in_progress: engine.is_in_progress(id),
            is_paused: engine.annotated_pause(id).is_some(),
            status,
        };
        facts.phase()
    }
}

/// The blocker that keeps an object from the followed revision, as far as it decides the phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocker {
    /// A hold on it.
    Hold,
    /// A pause, while something new waits.
    Pause,
    /// It is no longer wanted.
    Prune,
    /// Its manifest asks to leave it alone, or it is unwanted and kept.
    LeftAlone,
    /// An annotation on the live object asks to leave it alone.
    OptOut,
    /// A step of its rollout holds it.
    Step,
    /// The desired content failed, and the last good one is the target now.
    Rollback,
    /// The desired content failed, and the object stays as it is.
    Quarantine,
    /// It is refused.
    Refusal,
    /// Anything that passes.
    Wait,
}

impl Blocker {
    fn of(reason: &Reason, entry: &ObjectEntry) -> Self {
        match reason {
            Reason::OnHold(_) => Self::Hold,
            Reason::Paused(..) => Self::Pause,
            Reason::Prune(_) | Reason::Confirm(_) => Self::Prune,
            Reason::Kept(_) | Reason::LeftAlone(_) => Self::LeftAlone,
            Reason::OptedOut(_) => Self::OptOut,
            Reason::Step(_) => Self::Step,
            Reason::Rejected(_) => match entry.rejection.as_deref().map(|rejection| &rejection.replacement) {
                Some(ReplacementContent::Read(..) | ReplacementContent::Delete) => Self::Rollback,
                _ => Self::Quarantine,
            },
            reason if reason.is_refusal() => Self::Refusal,
            _ => Self::Wait,
        }
    }
}

/// The facts that decide an object's phase, known to the daemon or to a command that reads the
/// cluster alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PhaseFacts {
    /// The blocker of its being applied.
    pub blocker: Option<Blocker>,
    /// Indicates whether its pods are being replaced.
    pub is_in_progress: bool,
    /// Indicates whether an annotation of its own pauses it.
    pub is_paused: bool,
    /// The health of the object; none where it is not there.
    pub status: Option<HealthStatus>,
}

impl PhaseFacts {
    /// Returns the phase.
    pub(crate) fn phase(self) -> Phase {
        match self.blocker {
            Some(Blocker::Hold) => Phase::Held,
            Some(Blocker::Pause) => Phase::Paused,
            Some(Blocker::Prune) => Phase::PruneWaiting,
            Some(Blocker::LeftAlone) => Phase::LeftAlone,
            Some(Blocker::OptOut) => Phase::OptedOut,
            Some(Blocker::Quarantine) => Phase::Quarantined,
            Some(Blocker::Refusal) => Phase::Refused,
            Some(Blocker::Step) => Phase::RollingOut,
            _ if self.is_in_progress => Phase::RollingOut,
            Some(Blocker::Rollback) => Phase::RolledBack,
            Some(Blocker::Wait) => Phase::Waiting,
            None => match self.status {
                Some(HealthStatus::Current) if self.is_paused => Phase::Paused,
                Some(HealthStatus::Current) => Phase::Settled,
                Some(HealthStatus::InProgress | HealthStatus::Unknown) => Phase::Progressing,
                Some(HealthStatus::Failed) => Phase::Failed,
                Some(HealthStatus::Terminating) | None => Phase::Waiting,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_an_object_back_decides_before_what_its_controller_says() {
        fn check(blocker: Option<Blocker>, still: Phase, rolling: Phase) {
            for status in [HealthStatus::Current, HealthStatus::InProgress, HealthStatus::Failed] {
                let facts = |is_in_progress| PhaseFacts {
                    blocker,
                    is_in_progress,
                    is_paused: false,
                    status: Some(status),
                };
                if blocker.is_some() || status == HealthStatus::Current {
                    assert_eq!(facts(false).phase(), still, "{blocker:?} {status}");
                }
                assert_eq!(facts(true).phase(), rolling, "{blocker:?} {status}");
            }
        }
        check(None, Phase::Settled, Phase::RollingOut);
        check(Some(Blocker::Wait), Phase::Waiting, Phase::RollingOut);
        check(Some(Blocker::Rollback), Phase::RolledBack, Phase::RollingOut);
        check(Some(Blocker::Step), Phase::RollingOut, Phase::RollingOut);
        for (blocker, phase) in [
            (Blocker::Hold, Phase::Held),
            (Blocker::Pause, Phase::Paused),
            (Blocker::Prune, Phase::PruneWaiting),
            (Blocker::LeftAlone, Phase::LeftAlone),
            (Blocker::OptOut, Phase::OptedOut),
            (Blocker::Quarantine, Phase::Quarantined),
            (Blocker::Refusal, Phase::Refused),
        ] {
            check(Some(blocker), phase, phase);
        }
    }

    #[test]
    fn without_a_blocker_its_controller_decides_and_a_pause_is_reported_of_what_is_well() {
        fn check(status: Option<HealthStatus>, phase: Phase, paused: Phase) {
            let facts = |is_paused| PhaseFacts { blocker: None, is_in_progress: false, is_paused, status };
            assert_eq!((facts(false).phase(), facts(true).phase()), (phase, paused), "{status:?}");
        }
        check(Some(HealthStatus::Current), Phase::Settled, Phase::Paused);
        check(Some(HealthStatus::InProgress), Phase::Progressing, Phase::Progressing);
        check(Some(HealthStatus::Unknown), Phase::Progressing, Phase::Progressing);
        check(Some(HealthStatus::Failed), Phase::Failed, Phase::Failed);
        check(Some(HealthStatus::Terminating), Phase::Waiting, Phase::Waiting);
        check(None, Phase::Waiting, Phase::Waiting);
    }
}
