//! The waits of objects: whom a change of a fact wakes, and which waves are not done.

use crate::engine::decide::blockers::{is_content_pending, is_healthy};
use crate::engine::decide::decision::Decision;
use crate::engine::facts::entry::{ObjectEntry, SourceId, WaitTopic};
use crate::engine::facts::lookup_counts;
use crate::engine::state::Engine;
use crate::engine::{ChangeMilestone, DependencyState, Reason};
use crate::object::ObjectId;

impl Engine {
    /// Remembers whom to wake when what an object waits for has changed, and whether its wave goes
    /// on.
    pub(in crate::engine) fn register_wait(&mut self, id: &ObjectId, decision: &Decision) {
        let topic = decision.reason.as_ref().and_then(|reason| self.wait_topic(id, reason));
        if self.objects.wakes.topic_of(id) != topic.as_ref() {
            if let Some(old) = self.objects.wakes.end_wait(id) {
                self.note_waiter_change(id, &old);
            }
            if let Some(topic) = topic {
                self.note_waiter_change(id, &topic);
                if let WaitTopic::Object(need) = &topic
                    && self.is_due_with(id, need)
                {
                    self.mark_dirty(need);
                }
                self.objects.wakes.begin_wait(id, topic);
            }
        }
        if let (Some(Reason::Wave(_, before)), Some(WaitTopic::Waves(source))) =
            (&decision.reason, self.objects.wakes.topic_of(id))
        {
            self.sources[*source].wave_blockers.insert(before.clone());
        }
        self.note_refusal(id, decision);
        self.note_blocker(id, decision);
        self.wake_dependents(id);
        self.track_wave(id);
        self.track_move(id);
    }

    /// Notes whether an object stays as it is until a person changes something. Claims that wait for it
    /// are given back then.
    fn note_refusal(&mut self, id: &ObjectId, decision: &Decision) {
        let is_unhealthy = match &decision.reason {
            Some(Reason::Needs(_, DependencyState::Unhealthy(_))) => true,
            Some(Reason::Needs(need, DependencyState::Missing)) => self.has_failed_for_good(need),
            _ => false,
        };
        // A rejection ends the record of its unit, and so this wait.
        let is_rejected = matches!(&decision.reason, Some(Reason::Rejected(_)));
        let is_refusal = !is_rejected && decision.reason.as_ref().is_some_and(Reason::is_refusal);
        if !is_refusal {
            self.blockers.forget_refusal(id);
        }
        // One with a claim of its own would mark itself again and again.
        let is_news = (is_refusal && self.blockers.record_refusal(id)) || is_unhealthy;
        if is_news && !self.rollouts.ledger.is_unused(id) {
            self.wake_unused_claims();
        }
    }

    pub(in crate::engine) fn wait_topic(&self, id: &ObjectId, reason: &Reason) -> Option<WaitTopic> {
        let source = || {
            self.objects.entries.get(id).and_then(|entry| entry.targets.first()).map(|(source, _)| *source)
        };
        match reason {
            Reason::Syncing(_) | Reason::Unobservable(..) | Reason::Unserved(..) | Reason::UnknownKind(_) => {
                Some(WaitTopic::Kinds)
            }
            Reason::Inventory(_) | Reason::RecordUnreadable(_) => source().map(WaitTopic::Inventory),
            Reason::Needs(need, _)
            | Reason::UnitWorkload(need)
            | Reason::Reading(need)
            | Reason::Generated(need) => Some(WaitTopic::Object(need.clone())),
            Reason::KeyUnavailable(_) => Some(WaitTopic::Object(crate::engine::facts::config_hash::key_id())),
            Reason::Wave(..) => source().map(WaitTopic::Waves),
            _ => None,
        }
    }

    pub(in crate::engine) fn track_wave(&mut self, id: &ObjectId) {
        let Some((source, desired)) = self.entry(id).and_then(ObjectEntry::target_content) else { return };
        let (wave, unfinished) = (desired.wave, self.is_change_unfinished(source, id));
        let waves = &mut self.sources[source].waves;
        let ids = waves.entry(wave).or_default();
        let changed = if unfinished { ids.insert(id.clone()) } else { ids.remove(id) };
        if changed {
            self.clear_memo();
        }
        if changed && !unfinished && self.sources[source].wave_blockers.contains(id) {
            self.wake_waves(source);
        }
    }

    /// Asks again whoever waits for an earlier wave.
    pub(in crate::engine) fn wake_waves(&mut self, source: SourceId) {
        self.sources[source].wave_blockers.clear();
        self.wake_topic(&WaitTopic::Waves(source));
    }

    /// Returns whether a change of the newest revision is not done with an object.
    pub(in crate::engine) fn is_change_unfinished(&self, source: SourceId, id: &ObjectId) -> bool {
        self.unfinished_change(source, id).is_some()
    }

    /// Returns the milestone that a change of the newest revision has not reached with an object.
    pub(in crate::engine) fn unfinished_change(
        &self,
        source: SourceId,
        id: &ObjectId,
    ) -> Option<ChangeMilestone> {
        lookup_counts::count(1);
        let entry = self.objects.entries.get(id)?;
        if !entry.targets.iter().any(|(wanting, _)| *wanting == source) {
            return None;
        }
        if self.is_entry_left_alone(id, entry) {
            return None;
        }
        let live = self.live_object_of(id, entry);
        let failed_in = live.is_none().then(|| self.failed_revision(id, entry)).flatten();
        // After a start nothing else shows that a Job is over.
        if is_content_pending(entry) && !self.has_succeeded(id, entry) && failed_in.is_none() {
            return Some(ChangeMilestone::Changed);
        }
        if self.restart_stamp(id).is_some() {
            return Some(ChangeMilestone::Restarted);
        }
        if self.has_claimed_rollout(id) {
            return Some(ChangeMilestone::RolledOut);
        }
        let newest = self.sources[source].head.as_ref();
        let Some(live) = live else {
            // It has failed as much as when it was there. A newer revision does not wait for it.
            return (newest.is_some() && failed_in == newest).then_some(ChangeMilestone::Changed);
        };
        let brought = live.shown_release().map(|release| &release.revision);
        if newest.is_none() || brought != newest || is_healthy(live) {
            return None;
        }
        Some(ChangeMilestone::Healthy(live.health.clone()))
    }
}
