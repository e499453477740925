//! Dependencies by annotation: an object that is changed only once others are changed and healthy.

use std::collections::BTreeSet;

use crate::engine::decide::blockers::{is_content_pending, is_healthy};
use crate::engine::facts::entry::{ObjectEntry, SourceId};
use crate::engine::state::Engine;
use crate::engine::{DependencyState, DesiredObject, LiveObject, Reason, WaitTopic, is_workload};
use crate::health::HealthStatus;
use crate::object::ObjectId;

impl Engine {
    /// Returns why an object waits for one that its annotation names.
    ///
    /// A rollback waits only until what goes back with it is written. Nobody may ever mend the
    /// health of that, and a workload may wait for the slot of the one that failed.
    pub(in crate::engine) fn dependency_wait(
        &self,
        source: SourceId,
        desired: &DesiredObject,
        before: &ObjectId,
    ) -> Option<Reason> {
        if self.has_rollback_target(&desired.id) {
            let is_refused = self.entry(before).is_some_and(|entry| self.is_return_refused(before, entry));
            let is_awaited = !is_refused && !self.is_left_behind(&desired.id, before);
            return is_awaited.then(|| self.missing_reference(source, before)).flatten();
        }
        self.unhealthy_dependency(source, before)
            .or_else(|| self.unfinished_dependency(source, desired, before))
    }

    /// Returns why an object must be there and healthy first, and is not.
    pub(in crate::engine) fn unhealthy_dependency(
        &self,
        source: SourceId,
        before: &ObjectId,
    ) -> Option<Reason> {
        if let Some(missing) = self.missing_reference(source, before) {
            return Some(missing);
        }
        match self.live_object(before) {
            Some(live) if is_healthy(live) => None,
            Some(live) => {
                let state = DependencyState::Unhealthy(live.health.clone());
                Some(Reason::Needs(before.clone(), state))
            }
            None if self.entry(before).is_some_and(|entry| self.has_succeeded(before, entry)) => None,
            None if self.is_wanted(before) => Some(Reason::Needs(before.clone(), DependencyState::Missing)),
            None => Some(Reason::Needs(before.clone(), DependencyState::Unnamed)),
        }
    }

    /// Returns whether an object goes back, and another one that it waits for otherwise does not. The
    /// newer content of that may wait for anything else.
    pub(in crate::engine) fn is_left_behind(&self, id: &ObjectId, other: &ObjectId) -> bool {
        let is_returning = || {
            let rejection = self.entry(other).and_then(|entry| entry.rejection.as_ref());
            rejection.is_some_and(|one| one.replacement.is_awaited() || self.has_rollback_target(other))
        };
        self.has_rollback_target(id) && !is_returning()
    }

    /// Returns why a healthy dependency does not count: what is healthy of it is its older content.
    fn unfinished_dependency(
        &self,
        source: SourceId,
        desired: &DesiredObject,
        before: &ObjectId,
    ) -> Option<Reason> {
        let entry = self.entry(before).filter(|_| self.is_counted_for(source, before))?;
        if !is_workload(before) || self.is_left_alone(before) {
            return None;
        }
        let needs = |state: DependencyState| Some(Reason::Needs(before.clone(), state));
        if self.has_claimed_rollout(before) {
            return needs(DependencyState::RollingOut);
        }
        if !self.is_change_pending(before, entry) || self.has_slot_waiting_for(source, &desired.id, before) {
            return None;
        }
        needs(DependencyState::Unchanged)
    }

    /// Returns why a workload asks for no slot yet: something that it needs or uses, and that is
    /// released with it, waits for another workload. The slot would be held for as long as that one
    /// takes. A Service waits for the workloads that it is switched to, which may wait for the slot.
    ///
    /// A workload of a later wave is not awaited: it waits for this one itself.
    pub(in crate::engine) fn needed_dependency_wait(
        &self,
        source: SourceId,
        desired: &DesiredObject,
    ) -> Option<Reason> {
        let is_released_with = self.released_with(source, desired);
        let is_later = |id: &ObjectId| {
            let target = self.entry(id).and_then(ObjectEntry::target_content);
            target.is_some_and(|(of, before)| of == source && before.wave > desired.wave)
        };
        let goes_back = self.has_rollback_target(&desired.id);
        let awaited_switch = |needed: &DesiredObject| {
            let reason = self.switch_blocker(source, needed).filter(|_| !goes_back)?;
            matches!(&reason, Reason::Needs(target, _) if !is_later(target)).then_some(reason)
        };
        let used = desired.restart_references().unwrap_or_default();
        let mut seen = BTreeSet::new();
        let mut needs: Vec<&ObjectId> = desired.needs.iter().chain(used).collect();
        while let Some(need) = needs.pop() {
            let Some(entry) = self.entry(need).filter(|entry| is_content_pending(entry)) else { continue };
            if is_workload(need) || !seen.insert(need) || !is_released_with(need) {
                continue;
            }
            let Some((_, needed)) = entry.target_content() else { continue };
            let workloads = needed.depends_on.iter().filter(|id| is_workload(id));
            let mut awaited = workloads.filter(|id| **id != desired.id && !is_later(id));
            let waits = awaited.find_map(|before| self.dependency_wait(source, needed, before));
            if let Some(reason) = waits.or_else(|| awaited_switch(needed)) {
                return Some(reason);
            }
            needs.extend(needed.needs.iter().chain(&needed.depends_on));
        }
        None
    }

    /// Returns whether a person, the server or a failed dependency keeps an object from being changed.
    /// It counts as well if that is so of something still to be changed that it waits for.
    pub(in crate::engine) fn is_withheld(&self, id: &ObjectId) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), vec![id]);
        while let Some(id) = open.pop() {
            let Some(entry) = self.entry(id).filter(|_| seen.insert(id)) else { continue };
            let is_refused = entry.is_target_refused() || self.blockers.is_refused(id);
            if is_refused || self.is_paused_by_person(id) {
                return true;
            }
            if let Some((source, desired)) = entry.target_content().filter(|_| is_content_pending(entry)) {
                if desired.depends_on.iter().any(|before| self.has_failed_for_good(before))
                    || self.is_switched_to_failed(source, desired)
                {
                    return true;
                }
                let before = desired.needs.iter().chain(&desired.depends_on);
                open.extend(before.filter(|id| self.entry(id).is_some_and(is_content_pending)));
            }
        }
        false
    }

    /// Returns whether a person keeps an object from being changed, or anything that it waits for at
    /// any distance.
    pub(in crate::engine) fn is_held_back_by_person(&self, id: &ObjectId) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), vec![id]);
        while let Some(id) = open.pop() {
            let Some(entry) = self.entry(id).filter(|_| seen.insert(id)) else { continue };
            if self.is_paused_by_person(id) {
                return true;
            }
            let is_awaited = |before: &&ObjectId| match self.live_object(before) {
                Some(_) => {
                    !self.is_left_behind(id, before) && self.entry(before).is_some_and(is_content_pending)
                }
                None => true,
            };
            if let Some((_, desired)) = entry.target_content().filter(|_| is_content_pending(entry)) {
                open.extend(desired.needs.iter().chain(&desired.depends_on).filter(is_awaited));
            }
        }
        false
    }

    /// Returns whether an object that is no workload has failed, as a Job: nothing goes back for it.
    /// It may be gone by itself since then.
    pub(super) fn has_failed_for_good(&self, id: &ObjectId) -> bool {
        let is_failed = |live: &LiveObject| live.health.status == HealthStatus::Failed;
        let has_ended = || self.entry(id).is_some_and(|entry| self.has_ended_in_failure(id, entry));
        !is_workload(id) && self.live_object(id).map_or_else(has_ended, is_failed)
    }

    /// Returns whether a Service waits to be switched to a workload that has failed.
    fn is_switched_to_failed(&self, source: SourceId, service: &DesiredObject) -> bool {
        let Some(Reason::Needs(_, DependencyState::Unhealthy(health))) = self.switch_blocker(source, service)
        else {
            return false;
        };
        health.status == HealthStatus::Failed
    }

    /// Asks the workloads again that have a claim, and wait for objects of their unit. Something that
    /// these wait for may be withheld by now.
    pub(in crate::engine) fn wake_unused_claims(&mut self) {
        self.objects.wakes.mark_each(self.rollouts.ledger.unused_claims().iter().cloned());
        let failed = self.rollouts.in_flight.iter().filter(|(_, rollout)| rollout.has_failed_in_slot());
        self.objects.wakes.mark_each(failed.map(|(id, _)| id.clone()));
    }

    /// Returns whether the newest content of a workload, or a restart of it, is still to come.
    fn is_change_pending(&self, id: &ObjectId, entry: &ObjectEntry) -> bool {
        is_content_pending(entry) || self.restart_stamp(id).is_some()
    }

    /// Returns whether a workload has its slot of the budget, and waits for what is released together
    /// with it. The dependency may wait for that very slot, so both would wait for ever.
    fn has_slot_waiting_for(&self, source: SourceId, id: &ObjectId, before: &ObjectId) -> bool {
        let units = self.rollouts.units.of(source);
        let lead = |id: &ObjectId| units.and_then(|units| units.lead_workloads.get(id));
        let is_unwritten =
            |id: &ObjectId| self.entry(id).is_some_and(|entry| self.is_change_pending(id, entry));
        let rolling = self.rollouts.in_flight.iter().filter(|(_, rollout)| rollout.has_claimed_slot());
        let mut claimed = rolling.map(|(id, _)| id).chain(self.rollouts.ledger.unused_claims());
        lead(id).is_some()
            && claimed
                .any(|workload| workload != before && lead(workload) == lead(id) && is_unwritten(workload))
    }

    /// Wakes whoever waits for a workload that is changed and rolled out.
    pub(in crate::engine) fn wake_dependents(&mut self, id: &ObjectId) {
        if !is_workload(id) || self.has_claimed_rollout(id) {
            return;
        }
        let topic = WaitTopic::Object(id.clone());
        if self.objects.wakes.waiters_of(&topic).is_some()
            && self.entry(id).is_some_and(|entry| !self.is_change_pending(id, entry))
        {
            self.wake_topic(&topic);
        }
    }
}
