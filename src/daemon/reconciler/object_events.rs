//! Reports what happens, each thing once.

use std::collections::BTreeMap;
use std::time::Instant;

use jiff::Timestamp;

use super::super::inventory::InventoryState;
use super::Reconciler;
use crate::engine::{
    Authorship, MAX_STATES, PruneDecision, Reason, RolloutEvent, RolloutEventKind, RolloutReport, SourceId,
    SourceWrites,
};
use crate::object::{ObjectId, Revision, duration_text};
use crate::render::CodedReason;
use crate::report::{
    DaemonStatus, EventDraft, EventMessage, EventReason, EventRecorder, ObjectEvent, Outcome,
    RegardingObjects, RolloutResult, SourceStatus, healthy_text, pending_deletions_text, shorten_text,
};

impl Reconciler {
    /// Records what happens.
    #[must_use]
    pub(crate) fn with_recorder(mut self, recorder: EventRecorder) -> Self {
        self.telemetry.history.recorder = Some(recorder);
        self
    }

    /// Reports the outcomes of rollouts.
    pub(super) fn record_rollout_events(&mut self, reports: Vec<RolloutReport>, now: Instant) {
        for RolloutReport { event: rollout_event, revision } in reports {
            let words =
                revision.as_ref().map_or_else(String::new, |revision| revision.short_name().to_owned());
            let is_known = rollout_event
                .rollback_cause
                .as_deref()
                .is_some_and(|why| self.telemetry.history.known_failure(why).is_some());
            let (reason, message) = rollout_event_words(&rollout_event, &words, is_known);
            self.telemetry.history.note_outcome(&rollout_event);
            let took = self.time_rollout(&rollout_event, now);
            let message = match took {
                Some(took) => format!("{message}, after {}", duration_text(took)),
                None => message,
            };
            let state = &mut self.telemetry.history.sources[rollout_event.source];
            state.note_rollout();
            if reason.is_warning() {
                state.mark_unsettled();
            }
            // A rollback is news of the commit that failed.
            let head = self.engine.view().source(rollout_event.source).head.clone();
            let about = if rollout_event.rollback_cause.is_some() { head } else { revision };
            let message = EventMessage { text: message, coded: rollout_event_code(&rollout_event) };
            self.record_event(reason, rollout_event.source, Some(&rollout_event.id), message, about);
        }
    }

    /// Measures how long a rollout took that has ended now.
    fn time_rollout(&mut self, rollout_event: &RolloutEvent, now: Instant) -> Option<std::time::Duration> {
        let name = self.engine.view().source(rollout_event.source).declared.name.clone();
        let ended = match (&rollout_event.kind, &rollout_event.rollback_cause) {
            (RolloutEventKind::Started, _) => {
                if self
                    .telemetry
                    .history
                    .running_since
                    .insert(rollout_event.id.clone(), (rollout_event.content, now))
                    .is_some()
                {
                    self.telemetry.metrics.record_rollout(&name, RolloutResult::Superseded, None);
                }
                return None;
            }
            (RolloutEventKind::Succeeded, None) => RolloutResult::Succeeded,
            (RolloutEventKind::Succeeded, Some(_)) => RolloutResult::RolledBack,
            (RolloutEventKind::Failed(_), _) => RolloutResult::Failed,
        };
        let began = self
            .telemetry
            .history
            .running_since
            .remove(&rollout_event.id)
            .filter(|(content, _)| *content == rollout_event.content);
        // A rollout that an earlier process began has no beginning here.
        let took = began.map(|(_, began)| now.duration_since(began));
        self.telemetry.metrics.record_rollout(&name, ended, took);
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
        let again =
            outcome == Outcome::Created && self.objects.outcomes.get(id) == Some(&Outcome::Recreating);
        let outcome = if again { Outcome::Recreated } else { outcome };
        if !self.run_mode.is_daemon() && !matches!(outcome, Outcome::Waiting(_) | Outcome::Unhealthy(_)) {
            self.objects.outcomes.insert(id.clone(), outcome.clone());
        }
        let (source, revision) = self.event_origin(reason, id);
        if let (Some(reason), Some(source)) = (reason, source) {
            self.telemetry.history.sources[source].has_news |= is_work(reason);
            let text = message(reason, &outcome);
            let coded = outcome.reason().map(CodedReason::of).unwrap_or_default();
            let message = EventMessage { text, coded };
            self.record_event(reason, source, Some(id), message, revision.clone());
        }
        let source = source.map(|source| self.engine.view().source(source).declared.name.clone());
        let known = match &outcome {
            Outcome::Refused(Reason::Rejected(rejected)) => {
                self.telemetry.history.known_failure(&rejected.cause)
            }
            _ => None,
        };
        let _ = self.telemetry.listener.send(ObjectEvent {
            id: id.clone(),
            outcome,
            reason,
            source,
            revision,
            known,
        });
    }

    /// Returns the source and the revision that what became of an object follows from.
    fn event_origin(
        &self,
        reason: Option<EventReason>,
        id: &ObjectId,
    ) -> (Option<SourceId>, Option<Revision>) {
        let entry = self.engine.view().entry(id);
        let wanting = entry.and_then(|entry| entry.targets.first()).map(|(source, _)| *source);
        let source =
            wanting.or_else(|| self.engine.view().source_of(self.engine.view().informer_object(id)?));
        let head = || self.engine.view().source(source?).head.clone();
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
        let state = self.engine.view().source(source);
        let (head, incomplete) =
            (state.head.clone(), state.incomplete_reason.as_ref().map(ToString::to_string));
        let state = &mut self.telemetry.history.sources[source];
        let incomplete = if state.incomplete_reason == incomplete {
            None
        } else {
            state.incomplete_reason.clone_from(&incomplete);
            incomplete
        };
        if head.as_ref() != before {
            state.since = Some(Timestamp::now());
            state.note_new_revision(before);
            let words = head.as_ref().map_or_else(String::new, |head| head.short_name().to_owned());
            let from = before.map_or_else(String::new, |before| format!(", after {}", before.short_name()));
            let message = format!("revision {words} was read{from}");
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
            self.engine.view().source(source).head.clone(),
        );
    }

    /// Records new events about sources, rather than single objects.
    pub(super) fn record_source_events(&mut self, status: &DaemonStatus) {
        for (source, status) in self.engine.view().source_ids().zip(&status.sources) {
            self.record_settled_event(source, status);
            self.record_pending_event(source, status);
            self.record_opt_out_events(source);
            self.log_crowd(source);
        }
    }

    /// Returns the revision in force, where it was reported that all of it is settled, and nothing
    /// of it is refused to the source since.
    pub(super) fn settled_revision(&self, source: SourceId) -> Option<&Revision> {
        if !self.engine.view().refused_manifests(source).is_empty() {
            return None;
        }
        let head = self.engine.view().source(source).head.as_ref()?;
        self.telemetry.history.sources[source].is_known_settled(head).then_some(head)
    }

    fn record_settled_event(&mut self, source: SourceId, status: &SourceStatus) {
        let Some(head) = self.engine.view().source(source).head.clone() else { return };
        let is_seen = self.is_seen(source);
        let is_unread = self.records.inventories[source].inventory == InventoryState::Unread;
        if !status.healthy || is_unread || self.engine.view().has_unfinished_changes(source) {
            return;
        }
        if !self.telemetry.history.sources[source].is_news(&head, is_seen) {
            return;
        }
        let message = format!("revision {}: all {}", head.short_name(), healthy_text(&status.objects));
        self.record_event(EventReason::RevisionSettled, source, None, message, Some(head));
    }

    fn record_pending_event(&mut self, source: SourceId, status: &SourceStatus) {
        let is_seen = self.is_seen(source);
        let reported = &mut self.telemetry.history.sources[source].pending;
        let waiting: BTreeMap<_, _> = self
            .engine
            .view()
            .prune_decisions(source)
            .filter_map(|(id, decision)| match decision {
                PruneDecision::Confirm(why) => Some((id, why)),
                _ => None,
            })
            .collect();
        if is_seen {
            // Waits that are not seen yet stay as before.
            reported.retain(|id| waiting.contains_key(id));
        }
        let new = waiting.iter().find(|(id, _)| !reported.contains(**id));
        let Some((first, why)) = new else { return };
        let coded = CodedReason::of(&Reason::Confirm((*why).clone()));
        let first = format!("{first}: {why}");
        reported.extend(waiting.into_keys().cloned());
        let (count, name) = (status.prune_waiting, &status.name);
        let deletions = pending_deletions_text(count);
        let text = format!(
            "{deletions} ({first}); `rhumb prune list --source {name}` shows them, `rhumb prune confirm --source {name} OBJECT...` confirms them"
        );
        let head = self.engine.view().source(source).head.clone();
        let message = EventMessage { text, coded };
        self.record_event(EventReason::PruneWaiting, source, None, message, head);
    }

    /// Says once that more pauses and holds are in force than are acknowledged.
    fn log_crowd(&mut self, source: SourceId) {
        let unreported = self.engine.view().unacknowledged_states(source);
        let was_crowded =
            std::mem::replace(&mut self.telemetry.history.sources[source].is_crowded, unreported > 0);
        if unreported > 0 && !was_crowded {
            let name = &self.engine.view().source(source).declared.name;
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
        message: impl Into<EventMessage>,
        revision: Option<Revision>,
    ) {
        let Some(recorder) = &self.telemetry.history.recorder else { return };
        let regarding = || {
            let inventory = self.records.inventories[source]
                .inventory
                .inventory()
                .and_then(|inventory| inventory.known.as_ref());
            let object = id.and_then(|id| {
                let uid = self.engine.view().live_object(id).map(|live| live.uid.clone());
                Some((id.clone(), self.version(&id.group_kind())?, uid))
            });
            RegardingObjects { object, inventory: inventory.map(|(uid, _)| uid.clone()) }
        };
        let writes = self.engine.view().source(source).declared.writes == SourceWrites::Allowed;
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
        let authored = authored.and_then(|revision| self.engine.view().author(source, revision)).cloned();
        let (author, subject) = authored.map(|Authorship { author, subject }| (author, subject)).unzip();
        let draft = EventDraft {
            reason,
            source: self.engine.view().source(source).declared.name.clone(),
            object: id.cloned(),
            regarding: writes.then(regarding),
            message: message.into(),
            revision: revision.as_ref().map(ToString::to_string),
            author,
            subject,
        };
        recorder.record(Timestamp::now(), draft);
    }
}

/// Returns the event of a rollout; the words name the revision. A failure that was reported with
/// its whole reason is repeated by the end of the rollback alone, and shortly.
fn rollout_event_words(
    rollout_event: &RolloutEvent,
    revision: &str,
    is_known: bool,
) -> (EventReason, String) {
    match (&rollout_event.kind, &rollout_event.rollback_cause) {
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

/// Returns the event of a rollout for machines: of a failure, its cause.
fn rollout_event_code(rollout_event: &RolloutEvent) -> CodedReason {
    match &rollout_event.kind {
        RolloutEventKind::Failed(why) => CodedReason::of_failure(why),
        RolloutEventKind::Started | RolloutEventKind::Succeeded => CodedReason::default(),
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
    use crate::engine::RolloutFailureCause;
    use crate::object::{ContentHash, GroupKind};

    /// Returns an event of a rollout of `web`.
    fn event(kind: RolloutEventKind, cause: Option<&str>) -> RolloutEvent {
        RolloutEvent {
            id: ObjectId::new(&GroupKind::new("apps", "Deployment"), Some("shop"), "web"),
            source: SourceId::new(0),
            content: ContentHash::hash_bytes(b"web"),
            kind,
            rollback_cause: cause.map(Into::into),
        }
    }

    /// Returns the event that is recorded of a rollout to revision 3c4d.
    fn event_words(kind: RolloutEventKind, cause: Option<&str>, is_known: bool) -> (EventReason, String) {
        rollout_event_words(&event(kind, cause), "3c4d", is_known)
    }

    #[test]
    fn the_event_of_a_failure_alone_has_a_code() {
        let failed = RolloutEventKind::Failed(RolloutFailureCause::Status("it crashes".into()));
        for (kind, expected) in [
            (RolloutEventKind::Started, None),
            (RolloutEventKind::Succeeded, None),
            (failed, Some("RolloutFailed")),
        ] {
            let coded = rollout_event_code(&event(kind, Some("revision 1a2b failed")));
            assert_eq!(coded.code.as_deref(), expected);
            assert_eq!(coded.details.is_some(), expected.is_some());
        }
    }

    #[test]
    fn the_reason_of_a_failure_is_whole_in_one_event_and_short_in_that_of_the_rollback() {
        let why = "x".repeat(700);
        let cause = format!("revision 1a2b failed: Deployment shop/web: {why}");
        let failed = RolloutEventKind::Failed(RolloutFailureCause::Status(why.as_str().into()));
        let failed = event_words(failed, None, false);
        assert_eq!(failed, (EventReason::RolloutFailed, format!("revision 3c4d: {why}")));
        let started = event_words(RolloutEventKind::Started, Some(&cause), true);
        assert_eq!(started, (EventReason::RolloutStarted, "going back to revision 3c4d".to_owned()));
        let (reason, message) = event_words(RolloutEventKind::Succeeded, Some(&cause), true);
        assert_eq!(reason, EventReason::RolledBack);
        assert_eq!(message, format!("{}; it is back at revision 3c4d", shorten_text(&cause)));
        assert!(!message.contains(&why), "{message}");
    }

    #[test]
    fn a_cause_that_this_process_has_not_reported_is_whole_in_each_event_of_the_rollback() {
        let why = "x".repeat(700);
        let cause = format!("revision 1a2b failed: Deployment shop/web: {why}");
        let check = |kind: RolloutEventKind, reason: EventReason, then: &str| {
            let expected = (reason, format!("{cause}; {then} revision 3c4d"));
            assert_eq!(event_words(kind, Some(&cause), false), expected);
        };
        check(RolloutEventKind::Started, EventReason::RolloutStarted, "going back to");
        check(RolloutEventKind::Succeeded, EventReason::RolledBack, "it is back at");
    }
}
