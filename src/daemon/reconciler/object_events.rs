//! Reports what happens, each thing once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;

use super::super::inventory::{InventoryState, pending_prunes};
use super::super::source_task::LastCheck;
use super::opt_out_events::OptOutHistory;
use super::{Reconciler, StopCondition};
use crate::cluster::InventoryObject;
use crate::engine::{
    Authorship, MAX_STATES, PruneDecision, Reason, RolloutEvent, RolloutEventKind, SourceId, SourceWrites,
};
use crate::object::{ContentHash, ObjectId, Revision, duration_text};
use crate::report::{
    DaemonStatus, EventDraft, EventReason, EventRecorder, ObjectEvent, Outcome, RegardingObjects,
    RolloutResult, SourceStatus, SourceTimes, StatusSummary, healthy_text, pending_deletions_text,
    shorten_text,
};

/// The recorded events, and their listeners.
#[derive(Debug, Default)]
pub(super) struct EventHistory {
    recorder: Option<EventRecorder>,
    /// Rollouts that go on, since when.
    running_since: HashMap<ObjectId, (ContentHash, Instant)>,
    /// The reason for which the last rollout of a workload failed, as recorded.
    failed: HashMap<ObjectId, Arc<str>>,
    sources: Vec<SourceEventState>,
}

/// The events recorded of one source.
#[derive(Debug, Default)]
struct SourceEventState {
    /// The time of its last check.
    last_check: LastCheck,
    /// The time since which its revision is in force.
    since: Option<Timestamp>,
    /// The revision of which all was settled.
    settled: Option<Revision>,
    /// Indicates whether this process has done anything for the revision: what an earlier one has
    /// settled is no news.
    has_news: bool,
    /// The events of an earlier process.
    previous_process: PreviousProcess,
    /// The reason for which it was not read completely.
    incomplete: Option<String>,
    /// The objects with a pending deletion.
    pending: BTreeSet<ObjectId>,
    /// The objects that an annotation takes out of our hands.
    opt_outs: OptOutHistory,
    /// Indicates whether more is paused or held than its inventory says.
    is_crowded: bool,
}

/// The settled revision that an earlier process has recorded.
#[derive(Debug, Default)]
enum PreviousProcess {
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
    fn mark_unsettled(&mut self) {
        (self.settled, self.previous_process, self.has_news) = (None, PreviousProcess::Settled(None), true);
    }

    /// Notes that another revision came into force.
    fn note_new_revision(&mut self, before: Option<&Revision>) {
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
    fn note_rollout(&mut self) {
        if self.settled.is_none() {
            self.mark_unsettled();
        }
    }

    /// Returns whether it is news that all of a revision is settled, which is reported then.
    fn is_news(&mut self, head: &Revision, is_seen: bool) -> bool {
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
        state.opt_outs = OptOutHistory::restored(&inventory.data);
        state.pending = pending_prunes(inventory).into_iter().map(|pending| pending.id).collect();
    }

    /// Returns what was reported about opt-outs of a source.
    pub(super) fn opt_outs(&mut self, source: SourceId) -> &mut OptOutHistory {
        &mut self.sources[source].opt_outs
    }

    /// Returns why a rollout failed, as it was reported, where these words repeat it.
    fn known_failure(&self, words: &str) -> Option<Arc<str>> {
        self.failed.values().find(|why| words.contains(&***why)).cloned()
    }

    /// Returns the times of the sources.
    pub(super) fn source_times(&self) -> Vec<SourceTimes> {
        let times =
            |state: &SourceEventState| SourceTimes { since: state.since, checked: state.last_check.get() };
        self.sources.iter().map(times).collect()
    }
}

impl Reconciler {
    /// Records what happens.
    #[must_use]
    pub(crate) fn with_recorder(mut self, recorder: EventRecorder) -> Self {
        self.history.recorder = Some(recorder);
        self
    }

    /// Reports the outcomes of rollouts.
    pub(super) fn record_rollout_events(&mut self, now: Instant) {
        for turn in self.engine.take_rollout_events() {
            let revision = self.engine.entry(&turn.id).and_then(|entry| entry.revision.clone());
            let words =
                revision.as_ref().map_or_else(String::new, |revision| revision.short_name().to_owned());
            let is_known =
                turn.rollback_cause.as_deref().is_some_and(|why| self.history.known_failure(why).is_some());
            let (reason, message) = rollout_event_words(&turn, &words, is_known);
            if let RolloutEventKind::Failed(why) = &turn.kind {
                self.history.failed.insert(turn.id.clone(), why.clone());
            } else if matches!((&turn.kind, &turn.rollback_cause), (RolloutEventKind::Succeeded, None)) {
                self.history.failed.remove(&turn.id);
            }
            let took = self.time_rollout(&turn, now);
            let message = match took {
                Some(took) => format!("{message}, after {}", duration_text(took)),
                None => message,
            };
            let state = &mut self.history.sources[turn.source];
            state.note_rollout();
            if reason.is_warning() {
                state.mark_unsettled();
            }
            // A rollback is news of the commit that failed.
            let head = self.engine.source(turn.source).head.clone();
            let about = if turn.rollback_cause.is_some() { head } else { revision };
            self.record_event(reason, turn.source, Some(&turn.id), message, about);
        }
    }

    /// Measures how long a rollout took that has ended now.
    fn time_rollout(&mut self, turn: &RolloutEvent, now: Instant) -> Option<std::time::Duration> {
        let name = self.engine.source(turn.source).name.clone();
        let ended = match (&turn.kind, &turn.rollback_cause) {
            (RolloutEventKind::Started, _) => {
                if self.history.running_since.insert(turn.id.clone(), (turn.content, now)).is_some() {
                    self.metrics.record_rollout(&name, RolloutResult::Superseded, None);
                }
                return None;
            }
            (RolloutEventKind::Succeeded, None) => RolloutResult::Succeeded,
            (RolloutEventKind::Succeeded, Some(_)) => RolloutResult::RolledBack,
            (RolloutEventKind::Failed(_), _) => RolloutResult::Failed,
        };
        let began =
            self.history.running_since.remove(&turn.id).filter(|(content, _)| *content == turn.content);
        // A rollout that an earlier process began has no beginning here.
        let took = began.map(|(_, began)| now.duration_since(began));
        self.metrics.record_rollout(&name, ended, took);
        took.map(|took| std::time::Duration::from_secs(took.as_secs()))
    }

    /// Reports the outcome for an object: to all who are notified as it happens, and to who listens
    /// to this loop alone.
    pub(super) fn record_outcome(&mut self, id: &ObjectId, outcome: Outcome) {
        let reason = event_reason(&outcome);
        self.record_outcome_as(id, outcome, reason);
    }

    /// Reports that somebody else's change was undone.
    pub(super) fn record_repair(&mut self, id: &ObjectId, outcome: Outcome) {
        self.record_outcome_as(id, outcome, Some(EventReason::DriftRepaired));
    }

    fn record_outcome_as(&mut self, id: &ObjectId, outcome: Outcome, reason: Option<EventReason>) {
        let again = outcome == Outcome::Created && self.outcomes.get(id) == Some(&Outcome::Recreating);
        let outcome = if again { Outcome::Recreated } else { outcome };
        if self.stop_condition != StopCondition::Shutdown
            && !matches!(outcome, Outcome::Waiting(_) | Outcome::Unhealthy(_))
        {
            self.outcomes.insert(id.clone(), outcome.clone());
        }
        let (source, revision) = self.event_origin(reason, id);
        if let (Some(reason), Some(source)) = (reason, source) {
            self.history.sources[source].has_news |= is_work(reason);
            self.record_event(reason, source, Some(id), message(reason, &outcome), revision.clone());
        }
        let source = source.map(|source| self.engine.source(source).name.clone());
        let known = match &outcome {
            Outcome::Refused(Reason::Rejected(words)) => self.history.known_failure(words),
            _ => None,
        };
        let _ = self.listener.send(ObjectEvent { id: id.clone(), outcome, reason, source, revision, known });
    }

    /// Returns the source and the revision that what became of an object follows from.
    fn event_origin(
        &self,
        reason: Option<EventReason>,
        id: &ObjectId,
    ) -> (Option<SourceId>, Option<Revision>) {
        let entry = self.engine.entry(id);
        let wanting = entry.and_then(|entry| entry.targets.first()).map(|(source, _)| *source);
        let source = wanting.or_else(|| self.engine.source_of(self.engine.informer_object(id)?));
        let head = || self.engine.source(source?).head.clone();
        let brought = || entry.and_then(|entry| entry.revision.clone());
        let revision = match reason {
            Some(
                EventReason::Created
                | EventReason::Configured
                | EventReason::Adopted
                | EventReason::DriftRepaired
                | EventReason::Recreated,
            ) => brought().or_else(head),
            _ => head(),
        };
        (source, revision)
    }

    /// Records the event that a source was read, completely or not.
    pub(super) fn record_read_event(&mut self, source: SourceId, before: Option<&Revision>) {
        let state = self.engine.source(source);
        let (head, incomplete) = (state.head.clone(), state.incomplete.as_ref().map(ToString::to_string));
        let state = &mut self.history.sources[source];
        let incomplete = if state.incomplete == incomplete {
            None
        } else {
            state.incomplete.clone_from(&incomplete);
            incomplete
        };
        if head.as_ref() != before {
            state.since = Some(Timestamp::now());
            state.note_new_revision(before);
            let words = head.as_ref().map_or_else(String::new, |head| head.short_name().to_owned());
            let from = before.map_or_else(String::new, |before| format!(", after {}", before.short_name()));
            let message = format!("revision {words} is in force{from}");
            self.record_event(EventReason::RevisionRead, source, None, message, head.clone());
        }
        if let Some(why) = incomplete {
            self.record_event(EventReason::SourceIncomplete, source, None, why, head);
        }
    }

    /// Reports that a record of rhumb cannot be read.
    pub(super) fn record_unreadable_event(&self, source: SourceId, why: String) {
        self.record_event(
            EventReason::RecordUnreadable,
            source,
            None,
            why,
            self.engine.source(source).head.clone(),
        );
    }

    /// Records new events about sources, rather than single objects.
    pub(super) fn record_source_events(&mut self, status: &DaemonStatus) {
        for (source, status) in self.engine.source_ids().zip(&status.sources) {
            self.record_settled_event(source, status);
            self.record_pending_event(source, status);
            self.record_opt_out_events(source);
            self.log_crowd(source);
        }
    }

    /// Returns the revision in force, where it was reported that all of it is settled, and nothing
    /// of it is refused to the source since.
    pub(super) fn settled_revision(&self, source: SourceId) -> Option<&Revision> {
        if !self.engine.refused_manifests(source).is_empty() {
            return None;
        }
        let (state, head) = (&self.history.sources[source], self.engine.source(source).head.as_ref()?);
        [state.settled.as_ref(), state.previous_process.settled_revision()]
            .into_iter()
            .flatten()
            .find(|settled| *settled == head)
    }

    fn record_settled_event(&mut self, source: SourceId, status: &SourceStatus) {
        let Some(head) = self.engine.source(source).head.clone() else { return };
        let is_seen = self.is_seen(source);
        let is_unread = self.inventories[source].inventory == InventoryState::Unread;
        if !status.healthy || is_unread || self.engine.has_unfinished_changes(source) {
            return;
        }
        if !self.history.sources[source].is_news(&head, is_seen) {
            return;
        }
        let message = format!("revision {}: all {}", head.short_name(), healthy_text(&status.objects));
        self.record_event(EventReason::RevisionSettled, source, None, message, Some(head));
    }

    fn record_pending_event(&mut self, source: SourceId, status: &SourceStatus) {
        let is_seen = self.is_seen(source);
        let reported = &mut self.history.sources[source].pending;
        let waiting: BTreeMap<_, _> = self
            .engine
            .prune_decisions(source)
            .filter_map(|(id, judged)| match judged {
                PruneDecision::Confirm(why) => Some((id, why)),
                _ => None,
            })
            .collect();
        if is_seen {
            // Waits that are not seen yet stay as before.
            reported.retain(|id| waiting.contains_key(id));
        }
        let new = waiting.iter().find(|(id, _)| !reported.contains(**id));
        let Some(first) = new.map(|(id, why)| format!("{id}: {why}")) else { return };
        reported.extend(waiting.into_keys().cloned());
        let (count, name) = (status.prune_waiting, &status.name);
        let deletions = pending_deletions_text(count);
        let message = format!(
            "{deletions} ({first}); `rhumb prune list --source {name}` shows them, `rhumb prune confirm --source {name} OBJECT...` confirms them"
        );
        let head = self.engine.source(source).head.clone();
        self.record_event(EventReason::PruneWaiting, source, None, message, head);
    }

    /// Says once that more pauses and holds are in force than are acknowledged.
    fn log_crowd(&mut self, source: SourceId) {
        let unreported = self.engine.unacknowledged_states(source);
        let was_crowded = std::mem::replace(&mut self.history.sources[source].is_crowded, unreported > 0);
        if unreported > 0 && !was_crowded {
            let name = &self.engine.source(source).name;
            tracing::warn!(
                source = %name,
                "{unreported} pauses and holds of its objects are in effect and not acknowledged: {MAX_STATES} are at most"
            );
        }
    }

    pub(super) fn record_event(
        &self,
        reason: EventReason,
        source: SourceId,
        id: Option<&ObjectId>,
        message: String,
        revision: Option<Revision>,
    ) {
        let Some(recorder) = &self.history.recorder else { return };
        let regarding = || {
            let inventory =
                self.inventories[source].inventory.inventory().and_then(|inventory| inventory.known.as_ref());
            let object = id.and_then(|id| {
                let uid = self.engine.live_object(id).map(|live| live.uid.clone());
                Some((id.clone(), self.version(&id.group_kind())?, uid))
            });
            RegardingObjects { object, inventory: inventory.map(|(uid, _)| uid.clone()) }
        };
        let writes = self.engine.source(source).writes == SourceWrites::Allowed;
        // The commit's author did not do what somebody else did in the cluster.
        let is_of_commit = !matches!(
            reason,
            EventReason::DriftRepaired
                | EventReason::OptedOut
                | EventReason::OptOutEnded
                | EventReason::OrderDone
                | EventReason::OrderIgnored
                | EventReason::RecordUnreadable
        );
        let authored = revision.as_ref().filter(|_| is_of_commit);
        let authored = authored.and_then(|revision| self.engine.author(source, revision)).cloned();
        let (author, subject) = authored.map(|Authorship { author, subject }| (author, subject)).unzip();
        let draft = EventDraft {
            reason,
            source: self.engine.source(source).name.clone(),
            object: id.cloned(),
            regarding: writes.then(regarding),
            message,
            revision: revision.as_ref().map(ToString::to_string),
            author,
            subject,
        };
        recorder.record(Timestamp::now(), draft);
    }
}

/// Returns the event of a rollout; the words name the revision. The reason for a rollback is
/// reported once.
fn rollout_event_words(turn: &RolloutEvent, revision: &str, is_known: bool) -> (EventReason, String) {
    match (&turn.kind, &turn.rollback_cause) {
        (RolloutEventKind::Started, None) => (EventReason::RolloutStarted, format!("revision {revision}")),
        (RolloutEventKind::Started, Some(_)) if is_known => {
            (EventReason::RolloutStarted, format!("going back to revision {revision}"))
        }
        (RolloutEventKind::Started, Some(why)) => {
            (EventReason::RolloutStarted, format!("{why}; going back to revision {revision}"))
        }
        (RolloutEventKind::Succeeded, None) => {
            (EventReason::RolloutSucceeded, format!("revision {revision} is rolled out"))
        }
        (RolloutEventKind::Succeeded, Some(why)) => {
            let why = if is_known { shorten_text(why) } else { why.as_ref().into() };
            (EventReason::RolledBack, format!("{why}; it is back at revision {revision}"))
        }
        (RolloutEventKind::Failed(why), None) => {
            (EventReason::RolloutFailed, format!("revision {revision}: {why}"))
        }
        (RolloutEventKind::Failed(why), Some(_)) => {
            (EventReason::RolloutFailed, format!("going back failed too: revision {revision}: {why}"))
        }
    }
}

/// Returns the event reason of an object's outcome; none where it is no event.
fn event_reason(outcome: &Outcome) -> Option<EventReason> {
    Some(match outcome {
        Outcome::Created => EventReason::Created,
        Outcome::Configured | Outcome::Repaired(_) => EventReason::Configured,
        Outcome::Adopted(_) => EventReason::Adopted,
        Outcome::Pruned => EventReason::Pruned,
        Outcome::Recreating => EventReason::Recreated,
        Outcome::Waiting(Reason::Fight(..)) | Outcome::Refused(Reason::Owned(_) | Reason::NotAdopted) => {
            EventReason::Conflict
        }
        // Its rollout has reported it.
        Outcome::Refused(Reason::Rejected(_)) => return None,
        Outcome::Refused(_) => EventReason::Refused,
        _ => return None,
    })
}

fn message(reason: EventReason, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Created if reason == EventReason::DriftRepaired => "it had been deleted".to_owned(),
        Outcome::Adopted(owner) => format!("adopted from {owner}"),
        Outcome::Repaired(who) => format!("{who}; put back"),
        _ if reason == EventReason::DriftRepaired => "it had been changed".to_owned(),
        Outcome::Waiting(reason) | Outcome::Refused(reason) => reason.to_string(),
        done => done.to_string(),
    }
}

/// Returns whether an object was brought nearer to what its revision asks for.
fn is_work(reason: EventReason) -> bool {
    matches!(
        reason,
        EventReason::Created
            | EventReason::Configured
            | EventReason::Adopted
            | EventReason::Pruned
            | EventReason::Recreated
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn settles(state: &mut SourceEventState, head: &str) -> bool {
        state.is_news(&Revision::new(head), true)
    }

    #[test]
    fn a_success_is_reported_once_whoever_reported_it() {
        // The same process.
        let mut state = after("");
        assert!(settles(&mut state, "a"));
        assert!(!settles(&mut state, "a"), "it was reported");
        // One that finds nothing to do.
        assert!(!settles(&mut after("a"), "a"));
        // One that makes again what somebody has deleted meanwhile, as the same process does
        // without a word.
        let mut state = after("a");
        state.has_news = true;
        assert!(!settles(&mut state, "a"));
        // The event that was left out.
        assert!(settles(&mut after("a"), "b"));
        // Nobody knows yet whether all of it is there.
        assert!(!after("a").is_news(&Revision::new("b"), false));
    }

    #[test]
    fn success_after_a_failure_is_reported_again() {
        for mut state in [after(""), after("a")] {
            settles(&mut state, "a");
            state.mark_unsettled();
            assert!(settles(&mut state, "a"));
            assert!(!settles(&mut state, "a"));
        }
        // One that fails before anything was found to be well.
        let mut state = after("a");
        state.mark_unsettled();
        assert!(settles(&mut state, "a"));
        // The process before may have been killed between a failure and writing it down.
        let mut state = after("a");
        state.note_rollout();
        assert!(settles(&mut state, "a"));
        // A repair of pods after all was reported is no failure.
        state.note_rollout();
        assert!(!settles(&mut state, "a"));
    }

    #[test]
    fn a_revision_that_comes_back_is_reported_again() {
        for mut state in [after(""), after("a")] {
            settles(&mut state, "a");
            for (before, head) in [("a", "b"), ("b", "a")] {
                state.note_new_revision(Some(&Revision::new(before)));
                assert!(settles(&mut state, head), "{head}");
            }
            // Also where the one between never settled.
            state.note_new_revision(Some(&Revision::new("a")));
            state.note_new_revision(Some(&Revision::new("b")));
            assert_eq!(state.previous_process.settled_revision(), None, "what is written down says so");
            assert!(settles(&mut state, "a"));
        }
    }
}
