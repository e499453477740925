//! The blockers of one object that other objects cause: its kind, namespace, references and wave.
//! That of a Service may also be the workload that it is switched to.
//!
//! `Engine::decide` asks for them, in the order of this file. A blocked object is woken by
//! `waits.rs`.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::engine::decide::decision::{Action, Decision};
use crate::engine::decide::ownership::left_alone_reason;
use crate::engine::facts::entry::{ApiRefusal, ObjectEntry, RefusalRule, SourceId, WaitTopic};
use crate::engine::facts::kinds::{KindAvailability, KindState};
use crate::engine::facts::source_declaration::SourceWrites;
use crate::engine::facts::sources::{Inventory, SourceState};
use crate::engine::state::{DecisionMode, Engine};
use crate::engine::{
    DependencyState, DesiredObject, DesiredState, IncompleteSource, LiveObject, ObjectLifetime, Reason,
    ReplacementContent, is_workload,
};
use crate::health::is_waiting_for_consumer;
use crate::object::{ContentHash, Gvk, ObjectId};

/// Objects that need each other in a row, of waves in the wrong order.
const MAX_BLOCKER_CHAIN: usize = 8;

impl DesiredObject {
    /// Returns whether it cannot be made without another object: it names it, or is in it. Or its
    /// pods are started with the data of that, also where they may be missing.
    pub(in crate::engine) fn has_need(&self, need: &ObjectId) -> bool {
        self.needs.contains(need)
            || self.restart_references().is_some_and(|used| used.contains(need))
            || (need.is("", "Namespace") && self.id.namespace() == Some(need.name()))
    }
}

impl Engine {
    /// Returns why nothing can be said about an object's presence.
    pub(in crate::engine) fn unobserved_reason(&self, id: &ObjectId, entry: &ObjectEntry) -> Option<Reason> {
        if let Some(reason) =
            entry.target_content().and_then(|(_, desired)| self.unserved_reason(&desired.gvk))
        {
            return Some(reason);
        }
        let kind = id.group_kind();
        match self.listing_state(id) {
            Some(KindState::Synced | KindState::Absent) => None,
            Some(KindState::Syncing) | None => Some(Reason::Syncing(kind)),
            Some(KindState::Unobservable(fault, class)) => {
                Some(Reason::Unobservable(kind, fault.clone(), *class))
            }
        }
    }

    pub(in crate::engine) fn unserved_reason(&self, gvk: &Gvk) -> Option<Reason> {
        match self.kinds.availability_of(gvk) {
            Some(KindAvailability::Served) => None,
            Some(KindAvailability::Unserved(others)) => Some(Reason::Unserved(gvk.clone(), others.clone())),
            Some(KindAvailability::Unknown) | None => Some(Reason::UnknownKind(gvk.clone())),
        }
    }

    /// Returns the blocker of any write to an object.
    pub(in crate::engine) fn write_blocker(&self, id: &ObjectId, entry: &ObjectEntry) -> Option<Reason> {
        let source = entry.targets.first().map(|(source, _)| &self.sources[*source]);
        if let Some(source) = source {
            // A plan writes no inventory.
            let is_named = |inventory: &Inventory, namespace: &str| {
                self.blockers.mode == DecisionMode::Plan || inventory.namespaces.contains(namespace)
            };
            let names_scope = |inventory: &Inventory| {
                inventory.kinds.contains(&id.group_kind())
                    && id.namespace().is_none_or(|namespace| is_named(inventory, namespace))
                    && !inventory.lacks_location
            };
            let named = source.inventory.as_ref().is_some_and(names_scope);
            if let Some(why) = self.locked_inventory_reason().filter(|_| source.inventory.is_none()) {
                return Some(Reason::KeyUnavailable(why));
            }
            if !named {
                return Some(Reason::Inventory(source.declared.name.clone()));
            }
        }
        if self.blockers.mode == DecisionMode::Plan {
            return None;
        }
        if self.is_reading_release_key() {
            return Some(Reason::Reading(crate::engine::facts::config_hash::key_id()));
        }
        let namespace = self.objects.target_index.wanted_namespace(id.namespace()?)?;
        if self.source_for(id).is_some_and(|source| !self.is_counted_for(source, namespace)) {
            return None;
        }
        match self.live_object(namespace) {
            Some(live) if live.deleting => Some(Reason::Needs(namespace.clone(), DependencyState::Deleting)),
            Some(_) => None,
            None => Some(Reason::Needs(namespace.clone(), DependencyState::Missing)),
        }
    }

    /// Returns the objects of a release that are there, beside one whose values its chart made up. That
    /// one is missing, or is to be created again. Each comes with the hash of the render that made its
    /// own values. One whose seal proves no render holds nothing back: somebody may have put it there.
    pub(in crate::engine) fn generated_siblings(
        &self,
        id: &ObjectId,
        entry: &ObjectEntry,
    ) -> Vec<(&ObjectId, ContentHash)> {
        let Some((source, desired)) = entry.target_content() else { return Vec::new() };
        let is_immutable = |refusal: &ApiRefusal| refusal.rule == RefusalRule::Immutable;
        let is_to_be_created = || {
            !self.objects.informer_objects.contains_key(id)
                || entry.api_refusal.as_deref().is_some_and(is_immutable)
        };
        let Some(mark) = desired.generated.as_deref().filter(|_| is_to_be_created()) else {
            return Vec::new();
        };
        let is_beside = |other: &ObjectEntry| {
            let wanted = other.target_content().filter(|(of, _)| *of == source);
            let other = wanted.and_then(|(_, desired)| desired.generated.as_deref());
            other.is_some_and(|other| other.is_of_release(mark))
        };
        let others = self.objects.entries.iter().filter(|(other, entry)| *other != id && is_beside(entry));
        let mut there: Vec<_> = others
            .filter_map(|(other, _)| {
                let live = self.objects.informer_objects.get(other).filter(|live| !live.deleting)?;
                Some((other, live.sealed_render.as_deref().copied()?))
            })
            .collect();
        there.sort_unstable_by_key(|(other, _)| *other);
        there
    }

    /// Returns why a content may be forbidden by a record that cannot be read.
    fn unreadable_record(&self, source: SourceId, desired: &DesiredObject) -> Option<Arc<str>> {
        let inventory = self.sources[source].inventory.as_ref()?;
        let is_job = || desired.traits.lifetime == ObjectLifetime::AfterFinish;
        let jobs = || inventory.unreadable_finished.clone().filter(|_| is_job());
        inventory.unreadable_rejections.clone().or_else(jobs)
    }

    /// Returns the blocker of a new content of an object.
    pub(in crate::engine) fn dependency_blocker(
        &self,
        source: SourceId,
        desired: &DesiredObject,
    ) -> Option<Reason> {
        if let Some(fault) = self.blockers.cycles.get(&desired.id) {
            return Some(Reason::Unusable(fault.clone()));
        }
        if let Some(why) = self.unreadable_record(source, desired) {
            return Some(Reason::RecordUnreadable(why));
        }
        if self.blockers.mode == DecisionMode::Plan {
            // A reference that nothing brings is not awaited.
            let unnamed = |id: &&ObjectId| !self.is_wanted(id) && self.live_object(id).is_none();
            return desired
                .depends_on
                .iter()
                .find(unnamed)
                .and_then(|before| self.unhealthy_dependency(source, before));
        }
        // Else whoever serves the commits could go back to one before it.
        if self.sources[source].unrecorded_revision().is_some() {
            return Some(Reason::Inventory(self.sources[source].declared.name.clone()));
        }
        let is_released_with = self.released_with(source, desired);
        // Content in force has its references. Data that only restart it are checked by
        // `config_blocker`.
        let is_there = self.entry(&desired.id).is_some_and(|entry| entry.unreleased_content().is_none());
        let needs = if is_there { &[][..] } else { &*desired.needs };
        // The last one, as most are made in their order: whoever waits is asked again when the named
        // one is done.
        let goes_without = |need: &ObjectId| {
            let is_unneeded =
                self.is_left_behind(&desired.id, need) || self.is_switched_after(source, &desired.id, need);
            is_unneeded && self.live_object(need).is_some()
        };
        let mut needs = needs.iter().rev().filter(|need| !is_released_with(need) && !goes_without(need));
        let needs = needs.find_map(|need| self.missing_reference(source, need));
        let after =
            || desired.depends_on.iter().find_map(|before| self.dependency_wait(source, desired, before));
        let before_needs = || self.needed_dependency_wait(source, desired);
        let crd = || self.definition_blocker(source, desired);
        let wave = || {
            self.wave_blocker(source, &desired.id, desired.wave)?;
            self.wave_blocker(source, &desired.id, self.due_wave(source, desired, MAX_BLOCKER_CHAIN))
        };
        let switch = || self.switch_blocker(source, desired);
        needs
            .or_else(|| self.config_blocker(source, desired))
            .or_else(after)
            .or_else(before_needs)
            .or_else(crd)
            .or_else(wave)
            .or_else(switch)
    }

    /// Returns the earlier wave that an object waits for which comes in this wave.
    ///
    /// A rollback waits for no rejection: the one that it goes back by stays in force. Nor does it
    /// wait for a workload or a newer change, which may wait for the slot of the failed workload.
    fn wave_blocker(&self, source: SourceId, id: &ObjectId, wave: i32) -> Option<Reason> {
        let goes_back = self.has_rollback_target(id);
        let SourceState { waves, rejected_objects, .. } = &self.sources[source];
        let unfinished = waves.range(..wave).find_map(|(wave, ids)| {
            // The last one, as all are made in their order: whoever waits is asked again when the
            // named one is done.
            let last = if goes_back {
                // Few go back, and there may be many others that are not finished.
                let mut returning = rejected_objects.iter().rev().filter(|other| ids.contains(*other));
                returning.find(|other| self.is_returning_data(other))
            } else {
                ids.last()
            };
            Some(Reason::Wave(*wave, last?.clone()))
        });
        unfinished.or_else(|| {
            let (wave, rejected) = self.earlier_rejection(source, wave).filter(|_| !goes_back)?;
            Some(Reason::Wave(wave, rejected))
        })
    }

    /// Returns whether the rollback of an object that is no workload is still to be written, and may
    /// be.
    fn is_returning_data(&self, id: &ObjectId) -> bool {
        let is_unwritten = |entry: &ObjectEntry| entry.unreleased_content().is_some();
        !is_workload(id)
            && self.has_rollback_target(id)
            && self.entry(id).is_some_and(|entry| is_unwritten(entry) && !self.is_return_refused(id, entry))
    }

    /// Returns the wave in which an object comes. It is its own, or that of an object which waits for
    /// it or is of the kind that it defines. Of an earlier wave that one and its need would wait for
    /// each other for ever.
    fn due_wave(&self, source: SourceId, desired: &DesiredObject, chain: usize) -> i32 {
        let waiting =
            self.objects.wakes.waiters_of(&WaitTopic::Object(desired.id.clone())).into_iter().flatten();
        let waves = waiting.filter_map(|id| {
            let (of, waiter) = self.entry(id)?.target_content()?;
            let is_need = of == source && waiter.has_need(&desired.id);
            is_need.then(|| match chain.checked_sub(1) {
                Some(chain) => self.due_wave(source, waiter, chain),
                None => waiter.wave,
            })
        });
        let defined = desired.defines.as_deref();
        let is_of_defined_kind = |ids: &BTreeSet<ObjectId>| {
            defined.is_some_and(|kind| ids.iter().any(|id| id.group_kind() == *kind))
        };
        let mut unfinished = self.sources[source].waves.range(..desired.wave);
        let of_kind = unfinished.find(|(_, ids)| is_of_defined_kind(ids)).map(|(wave, _)| *wave);
        waves.chain(of_kind).fold(desired.wave, i32::min)
    }

    /// Returns whether an object waits for an earlier wave, and comes with one that needs it.
    pub(in crate::engine) fn is_due_with(&self, waiter: &ObjectId, need: &ObjectId) -> bool {
        let wanted = |id| self.entry(id).and_then(ObjectEntry::target_content);
        let (Some((source, waiter)), Some((of, needed))) = (wanted(waiter), wanted(need)) else {
            return false;
        };
        source == of
            && waiter.wave < needed.wave
            && waiter.has_need(need)
            && self.objects.wakes.topic_of(need) == Some(&WaitTopic::Waves(source))
    }

    /// Returns why an object waits for an object that it refers to. It waits only where the desired
    /// state brings that one, by a source that counts for this one.
    pub(in crate::engine) fn missing_reference(&self, source: SourceId, need: &ObjectId) -> Option<Reason> {
        let entry = self.objects.entries.get(need).filter(|_| self.is_counted_for(source, need))?;
        let needs = |state: DependencyState| Some(Reason::Needs(need.clone(), state));
        match &entry.targets[..] {
            [] => None,
            [(source, DesiredState::Object(desired)), others @ ..]
                if others.is_empty() || entry.owner == Some(*source) =>
            {
                match self.live_object(need) {
                    None if self.has_succeeded(need, entry) => None,
                    None => needs(DependencyState::Missing),
                    Some(_) if entry.rejection.as_ref().is_some_and(|one| one.replacement.is_awaited()) => {
                        needs(DependencyState::RollingBack)
                    }
                    Some(_)
                        if entry.unreleased_content().is_none()
                            || is_back_at_unreadable_content(entry)
                            || self.is_left_alone(need) =>
                    {
                        None
                    }
                    Some(_) => {
                        let refused = entry.api_refusal.as_ref().filter(|refusal| refusal.is_of(desired));
                        match refused {
                            Some(refusal) => needs(DependencyState::Refused(refusal.cause.clone())),
                            // A workload may wait for the budget for hours; what routes to it need
                            // not.
                            None if is_workload(need) => None,
                            None => needs(DependencyState::Unchanged),
                        }
                    }
                }
            }
            [(_, DesiredState::Unusable(unusable))] => {
                needs(DependencyState::Unusable(unusable.reason.clone()))
            }
            _ => needs(DependencyState::Contested),
        }
    }

    /// Returns whether nothing is done about an object, as its annotation asks.
    pub(in crate::engine) fn is_left_alone(&self, id: &ObjectId) -> bool {
        self.entry(id).is_some_and(|entry| self.is_entry_left_alone(id, entry))
    }

    /// Does the same as [`Engine::is_left_alone`], with the object's entry at hand.
    pub(in crate::engine) fn is_entry_left_alone(&self, id: &ObjectId, entry: &ObjectEntry) -> bool {
        let Some((source, desired)) = entry.target_content() else { return false };
        let opt_out = self.sources[source].declared.opt_out;
        left_alone_reason(desired, self.live_object_of(id, entry), opt_out).is_some()
    }

    /// Returns whether a source wants an object and writes, and the object is not left alone.
    pub(in crate::engine) fn can_write(&self, id: &ObjectId) -> bool {
        let writes = self.wanting_source(id).map(|source| self.sources[source].declared.writes);
        writes == Some(SourceWrites::Allowed) && !self.is_left_alone(id)
    }

    pub(in crate::engine) fn is_wanted(&self, id: &ObjectId) -> bool {
        self.objects.entries.get(id).is_some_and(|entry| !entry.targets.is_empty())
    }

    /// Returns the definition that a custom object waits for: it must be established, and changed
    /// first.
    pub(in crate::engine) fn definition_blocker(
        &self,
        source: SourceId,
        desired: &DesiredObject,
    ) -> Option<Reason> {
        if !desired.gvk.group.contains('.') {
            return None;
        }
        let kind = desired.id.group_kind();
        let named = self.definitions_of(&kind);
        let mut counted = named.filter(|definition| self.is_counted_for(source, definition));
        counted.find_map(|definition| self.unhealthy_dependency(source, definition))
    }

    /// Returns why it cannot be known whether the source that brought an object still wants it.
    pub(in crate::engine) fn incomplete_source(
        &self,
        id: &ObjectId,
        entry: &ObjectEntry,
    ) -> Option<IncompleteSource> {
        let accepted = entry.accepted.content().filter(|_| entry.targets.is_empty())?;
        let source = accepted.body.source;
        let state = &self.sources[source];
        let why = state.incomplete_reason.clone()?;
        if !state.is_lacking_roots_alone() {
            return Some(IncompleteSource::Incomplete(why));
        }
        self.unrendered_root_reason(source, id).map(IncompleteSource::Unrendered)
    }

    /// Turns writes of a source that is only observed into a wait.
    pub(in crate::engine) fn suppress_observed_writes(&self, id: &ObjectId, decision: Decision) -> Decision {
        if !matches!(decision.action, Action::Apply(_) | Action::Delete(..)) {
            return decision;
        }
        let entry = self.objects.entries.get(id);
        let wanting = entry.and_then(|entry| entry.targets.first()).map(|(source, _)| *source);
        let source = wanting
            .or_else(|| self.objects.informer_objects.get(id).and_then(|live| self.source_of(live)))
            .or_else(|| Some(entry?.accepted.content()?.body.source));
        let observed =
            source.is_some_and(|source| self.sources[source].declared.writes == SourceWrites::Observed);
        if observed { Decision::wait(Reason::Observed) } else { decision }
    }
}

/// Returns whether the target content is still to be released.
pub(super) fn is_content_pending(entry: &ObjectEntry) -> bool {
    entry.unreleased_content().is_some()
        && entry.target_content().is_some()
        && !is_back_at_unreadable_content(entry)
}

/// Returns whether it is back at what was good, though that cannot be read any more.
pub(super) fn is_back_at_unreadable_content(entry: &ObjectEntry) -> bool {
    entry
        .rejection
        .as_ref()
        .is_some_and(|rejection| matches!(rejection.replacement, ReplacementContent::Unreadable(_)))
}

/// Returns whether an object is healthy for those that wait for it. A volume claim may wait for the
/// very pod that waits for it.
pub(in crate::engine) fn is_healthy(live: &LiveObject) -> bool {
    live.health.is_current() || is_waiting_for_consumer(&live.health)
}

impl Engine {
    /// Returns whether an object comes after another one, or waits for something that does, so that
    /// the other one cannot wait for it.
    fn is_after(&self, later: &DesiredObject, earlier: &DesiredObject) -> bool {
        let is_behind = |object: &DesiredObject| {
            object.wave > earlier.wave
                || object.needs.contains(&earlier.id)
                || object.depends_on.contains(&earlier.id)
        };
        let (mut seen, mut open) = (BTreeSet::new(), vec![later]);
        while let Some(object) = open.pop() {
            if is_behind(object) {
                return true;
            }
            let before = object.needs.iter().chain(&object.depends_on).filter(|id| seen.insert(*id));
            open.extend(before.filter_map(|id| Some(self.desired_state(id)?.1)));
        }
        false
    }

    /// Returns why a Service is not switched yet to the workloads that its desired content selects.
    pub(in crate::engine) fn switch_blocker(
        &self,
        source: SourceId,
        service: &DesiredObject,
    ) -> Option<Reason> {
        let selects = service.selects.as_deref().filter(|_| self.is_switch(service))?;
        let namespace = service.id.namespace().unwrap_or_default();
        let wanted =
            self.objects.entries.iter().filter_map(|(id, entry)| Some((id, &**entry.target_content()?.1)));
        let targets = wanted.filter(|(id, desired)| {
            let own_namespace = id.namespace().unwrap_or_default();
            is_workload(id)
                && desired
                    .labels
                    .as_deref()
                    .is_some_and(|labels| selects.matches(namespace, labels, own_namespace))
        });
        let mut targets = targets
            .filter(|(id, desired)| !self.is_after(desired, service) && self.is_counted_for(source, id));
        targets.find_map(|(id, _)| self.not_ready_reason(id))
    }

    /// Returns whether an object goes back, and a Service that it needs waits to be switched back to
    /// others. These may be unhealthy for long, or wait for the slot of this very workload.
    fn is_switched_after(&self, source: SourceId, id: &ObjectId, need: &ObjectId) -> bool {
        let service = || self.entry(need).and_then(|entry| entry.target_content());
        self.has_rollback_target(id)
            && service().is_some_and(|(_, service)| self.switch_blocker(source, service).is_some())
    }

    /// Returns whether the desired content of a Service selects others than the content that is
    /// there. Where that is not known, as for one of another process, its live selector counts.
    fn is_switch(&self, service: &DesiredObject) -> bool {
        if !service.id.is("", "Service") {
            return false;
        }
        let accepted = self.entry(&service.id).and_then(|entry| entry.accepted.content());
        let shown = || self.live_object(&service.id).map(|live| &live.selects);
        accepted
            .map(|accepted| &accepted.selects)
            .or_else(shown)
            .is_some_and(|found| *found != service.selects)
    }

    fn not_ready_reason(&self, id: &ObjectId) -> Option<Reason> {
        let because = |state: DependencyState| Some(Reason::Needs(id.clone(), state));
        let Some(live) = self.live_object(id) else { return because(DependencyState::Missing) };
        if self.entry(id).is_some_and(|entry| entry.unreleased_content().is_some()) {
            return because(DependencyState::Unchanged);
        }
        if !is_healthy(live) {
            return because(DependencyState::Unhealthy(live.health.clone()));
        }
        let soaks = self.rollouts.in_flight.get(id).is_some_and(|rollout| !rollout.is_awaiting_switch());
        if soaks { because(DependencyState::Soaking) } else { None }
    }

    /// Returns whether a Service waits to be switched to a workload, and not for the end of its
    /// rollout.
    pub(in crate::engine) fn is_awaiting_service_switch(&self, id: &ObjectId) -> bool {
        let Some((source, desired)) = self.entry(id).and_then(|entry| entry.target_content()) else {
            return false;
        };
        let Some(labels) = desired.labels.as_deref() else { return false };
        let unit = self
            .rollouts
            .ledger
            .latest()
            .and_then(|ledger| ledger.unit_of(&self.sources.inventory_ids()[source], id));
        let own_namespace = id.namespace().unwrap_or_default();
        unit.is_some_and(|unit| {
            unit.members.keys().any(|member| {
                let entry = self.entry(member);
                let Some(service) = entry.and_then(|entry| entry.unreleased_content()) else { return false };
                let namespace = member.namespace().unwrap_or_default();
                let selected =
                    service.selects.as_deref().is_some_and(|s| s.matches(namespace, labels, own_namespace));
                selected
                    && !self.is_left_alone(member)
                    && self.is_switch(service)
                    && !self.is_after(service, desired)
                    && !self.is_after(desired, service)
            })
        })
    }
}
