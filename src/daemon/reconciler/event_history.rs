//! Remembers of each source what was reported, so that each thing is reported once.
//!
//! **Invariant:** reports nothing itself.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;

use super::super::source_task::LastCheck;
use super::opt_out_events::OptOutHistory;
use crate::cluster::InventoryObject;
use crate::engine::{RolloutEvent, RolloutEventKind, SourceId};
use crate::object::{ContentHash, ObjectId, Revision};
use crate::report::{EventRecorder, SourceTimes, StatusSummary};

/// The recorded events, and their listeners.
#[derive(Debug, Default)]
pub(super) struct EventHistory {
    pub(super) recorder: Option<EventRecorder>,
    /// Rollouts that go on, since when.
    pub(super) running_since: HashMap<ObjectId, (ContentHash, Instant)>,
    /// The reason for which the last rollout of a workload failed, as recorded.
    failed: HashMap<ObjectId, Arc<str>>,
    pub(super) sources: Vec<SourceEventState>,
}

/// The events recorded of one source.
#[derive(Debug, Default)]
pub(super) struct SourceEventState {
    /// The time of its last check.
    pub(super) last_check: LastCheck,
    /// The time since which its revision is in force.
    pub(super) since: Option<Timestamp>,
    /// The revision of which all was settled.
    pub(super) settled: Option<Revision>,
    /// Indicates whether this process has done anything for the revision: what an earlier one has
    /// settled is no news.
    pub(super) has_news: bool,
    /// The events of an earlier process.
    previous_process: PreviousProcess,
    /// The reason for which it was not read completely.
    pub(super) incomplete_reason: Option<String>,
    /// The objects with a pending deletion.
    pub(super) pending: BTreeSet<ObjectId>,
    /// The objects that an annotation takes out of our hands.
    pub(super) opt_outs: OptOutHistory,
    /// Indicates whether more is paused or held than its inventory says.
    pub(super) is_crowded: bool,
}

/// The settled revision that an earlier process has recorded.
#[derive(Debug, Default)]
pub(super) enum PreviousProcess {
    /// There was none.
    #[default]
    Nobody,
    /// The revision of which all was settled, if any.
    Settled(Option<Revision>),
}

impl PreviousProcess {
    /// Returns the revision, if there was a process that reported it.
    fn settled_revision(&self) -> Option<&Revision> {
        match self {
            Self::Settled(revision) => revision.as_ref(),
            Self::Nobody => None,
        }
    }
}

impl SourceEventState {
    /// Records that the source is no longer settled: when it is again, that is an event.
    pub(super) fn mark_unsettled(&mut self) {
        (self.settled, self.previous_process, self.has_news) = (None, PreviousProcess::Settled(None), true);
    }

    /// Notes that another revision came into force.
    pub(super) fn note_new_revision(&mut self, before: Option<&Revision>) {
        // A commit that comes while it runs is worth an answer, even where it changes nothing, or
        // was in force before.
        if before.is_some() {
            self.mark_unsettled();
        } else {
            (self.settled, self.has_news) = (None, false);
        }
    }

    /// Records that pods are being replaced, or were. A process that was killed may have reported a
    /// failure without recording it: a success is reported once too often rather than not at all.
    pub(super) fn note_rollout(&mut self) {
        if self.settled.is_none() {
            self.mark_unsettled();
        }
    }

    /// Returns whether it was reported that all of a revision is settled, also by an earlier process.
    pub(super) fn is_known_settled(&self, head: &Revision) -> bool {
        self.settled.as_ref() == Some(head) || self.previous_process.settled_revision() == Some(head)
    }

    /// Returns whether it is news that all of a revision is settled, which is reported then.
    pub(super) fn is_news(&mut self, head: &Revision, is_seen: bool) -> bool {
        if self.settled.as_ref() == Some(head) {
            return false;
        }
        if self.previous_process.settled_revision() == Some(head) {
            self.settled = Some(head.clone());
            return false;
        }
        // An earlier process has ended in the middle, or had not seen the revision.
        let is_left = matches!(self.previous_process, PreviousProcess::Settled(_));
        if !self.has_news && is_left && !is_seen {
            return false;
        }
        self.settled = Some(head.clone());
        self.has_news || is_left
    }
}

impl EventHistory {
    /// Returns the history of so many sources.
    pub(super) fn of(sources: usize) -> Self {
        Self { sources: (0..sources).map(|_| SourceEventState::default()).collect(), ..Self::default() }
    }

    /// Returns where the task of a source records the time of its last check.
    pub(super) fn last_check(&self, source: SourceId) -> LastCheck {
        self.sources[source].last_check.clone()
    }

    /// Takes over the record of an earlier process: its events are not repeated, and those that it
    /// left out are recorded.
    pub(super) fn take_over_record(&mut self, source: SourceId, inventory: Option<&InventoryObject>) {
        let (Some(state), Some(inventory)) = (self.sources.get_mut(source.position()), inventory) else {
            return;
        };
        state.previous_process = PreviousProcess::Settled(StatusSummary::settled_revision(&inventory.data));
        state.opt_outs = OptOutHistory::of_data(&inventory.data);
        state.pending = inventory.pending_prunes().into_iter().map(|pending| pending.id).collect();
    }

    /// Returns what was reported about opt-outs of a source.
    pub(super) fn opt_outs(&mut self, source: SourceId) -> &mut OptOutHistory {
        &mut self.sources[source].opt_outs
    }

    /// Remembers why a rollout failed, until a newer content of the workload succeeds.
    pub(super) fn note_outcome(&mut self, rollout_event: &RolloutEvent) {
        match (&rollout_event.kind, &rollout_event.rollback_cause) {
            (RolloutEventKind::Failed(why), _) => {
                self.failed.insert(rollout_event.id.clone(), why.to_string().into());
            }
            (RolloutEventKind::Succeeded, None) => {
                self.failed.remove(&rollout_event.id);
            }
            (RolloutEventKind::Started | RolloutEventKind::Succeeded, _) => {}
        }
    }

    /// Returns why a rollout failed, as it was reported, where these words repeat it.
    pub(super) fn known_failure(&self, words: &str) -> Option<Arc<str>> {
        self.failed.values().find(|why| words.contains(&***why)).cloned()
    }

    /// Returns the times of the sources.
    pub(super) fn source_times(&self) -> Vec<SourceTimes> {
        let times =
            |state: &SourceEventState| SourceTimes { since: state.since, checked: state.last_check.get() };
        self.sources.iter().map(times).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::RolloutFailureCause;
    use crate::object::GroupKind;

    /// Returns a source of which an earlier process has reported that this revision had settled.
    fn after(settled: &str) -> SourceEventState {
        let settled = Some(settled).filter(|text| !text.is_empty()).map(Revision::new);
        let mut state = SourceEventState {
            previous_process: PreviousProcess::Settled(settled),
            ..SourceEventState::default()
        };
        state.note_new_revision(None);
        state
    }

    fn is_newly_settled(state: &mut SourceEventState, head: &str) -> bool {
        state.is_news(&Revision::new(head), true)
    }

    #[test]
    fn a_success_is_reported_once_whoever_reported_it() {
        // The same process.
        let mut state = after("");
        assert!(is_newly_settled(&mut state, "a"));
        assert!(!is_newly_settled(&mut state, "a"), "it was reported");
        // One that finds nothing to do.
        assert!(!is_newly_settled(&mut after("a"), "a"));
        // One that makes again what somebody has deleted meanwhile, as the same process does
        // without a word.
        let mut state = after("a");
        state.has_news = true;
        assert!(!is_newly_settled(&mut state, "a"));
        // The event that was left out.
        assert!(is_newly_settled(&mut after("a"), "b"));
        // Nobody knows yet whether all of it is there.
        assert!(!after("a").is_news(&Revision::new("b"), false));
    }

    #[test]
    fn success_after_a_failure_is_reported_again() {
        for mut state in [after(""), after("a")] {
            is_newly_settled(&mut state, "a");
            state.mark_unsettled();
            assert!(is_newly_settled(&mut state, "a"));
            assert!(!is_newly_settled(&mut state, "a"));
        }
        // One that fails before anything was found to be well.
        let mut state = after("a");
        state.mark_unsettled();
        assert!(is_newly_settled(&mut state, "a"));
        // The process before may have been killed between a failure and writing it down.
        let mut state = after("a");
        state.note_rollout();
        assert!(is_newly_settled(&mut state, "a"));
        // A repair of pods after all was reported is no failure.
        state.note_rollout();
        assert!(!is_newly_settled(&mut state, "a"));
    }

    #[test]
    fn a_revision_that_comes_back_is_reported_again() {
        for mut state in [after(""), after("a")] {
            is_newly_settled(&mut state, "a");
            for (before, head) in [("a", "b"), ("b", "a")] {
                state.note_new_revision(Some(&Revision::new(before)));
                assert!(is_newly_settled(&mut state, head), "{head}");
            }
            // Also where the one between never settled.
            state.note_new_revision(Some(&Revision::new("a")));
            state.note_new_revision(Some(&Revision::new("b")));
            assert_eq!(state.previous_process.settled_revision(), None, "what is written down says so");
            assert!(is_newly_settled(&mut state, "a"));
        }
    }

    /// Returns an event of a workload.
    fn rollout_event(name: &str, kind: RolloutEventKind, cause: Option<&str>) -> RolloutEvent {
        RolloutEvent {
            id: ObjectId::new(&GroupKind::new("apps", "Deployment"), Some("shop"), name),
            source: SourceId::new(0),
            content: ContentHash::hash_bytes(b"web"),
            kind,
            rollback_cause: cause.map(Into::into),
        }
    }

    #[test]
    fn a_failure_counts_as_reported_until_a_newer_content_succeeds() {
        let mut history = EventHistory::of(1);
        let why = "pod web-1, container web: CrashLoopBackOff";
        let cause = format!("revision 1a2b failed: Deployment shop/web: {why}");
        let is_known =
            |history: &EventHistory, words: &str| history.known_failure(words).as_deref() == Some(why);
        assert!(!is_known(&history, &cause), "nothing was reported");
        let failed = RolloutEventKind::Failed(RolloutFailureCause::Status(why.into()));
        history.note_outcome(&rollout_event("web", failed, None));
        assert!(is_known(&history, &cause));
        assert!(is_known(&history, &format!("{cause}; Back-off restarting; it is back at revision 3c4d")));
        for other in ["pod web-1, container web: OOMKilled", "revision 1a2b undone by ann"] {
            assert_eq!(history.known_failure(other), None, "{other}");
        }
        // Neither what goes back nor another workload ends it.
        history.note_outcome(&rollout_event("web", RolloutEventKind::Started, Some(&cause)));
        history.note_outcome(&rollout_event("web", RolloutEventKind::Succeeded, Some(&cause)));
        history.note_outcome(&rollout_event("api", RolloutEventKind::Succeeded, None));
        assert!(is_known(&history, &cause));
        history.note_outcome(&rollout_event("web", RolloutEventKind::Succeeded, None));
        assert_eq!(history.known_failure(&cause), None);
    }
}
