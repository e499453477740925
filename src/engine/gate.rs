//! The obstacles to one object because of others: its kind, its namespace, its references, its
//! wave, the rollout budget, the prune guard.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::action::{Action, Decision};
use super::claim::{UNPROVEN, unchecked};
use super::decide::{DecisionInput, Observation, ReplicaOwner, left_alone};
use super::entry::{ObjectEntry, SourceId, WaitTopic};
use super::lookups;
use super::prune::{KeepPolicy, PruneCandidate, PruneDecision, PruneGuard, judge};
use super::sources::SourceWrites;
use super::state::{Engine, KindAvailability, KindState, Prerequisites};
use super::{
    DesiredObject, Inventory, LiveObject, ObjectLifetime, ObjectOwner, PrunePolicy, Reason, RollbackContent,
    WantedObject, is_workload,
};
use crate::graph::ConnectedUnits;
use crate::health::{HealthStatus, waits_for_consumer};
use crate::object::{ContentHash, GroupKind, Gvk, ObjectId};

impl Engine {
    /// Returns why nothing can be said about an object's presence.
    pub(super) fn blind(&self, id: &ObjectId, entry: &ObjectEntry) -> Option<Reason> {
        if let Some(reason) = entry.want().and_then(|(_, desired)| self.unserved(&desired.gvk)) {
            return Some(reason);
        }
        let kind = id.group_kind();
        match self.listing_state(id) {
            Some(KindState::Synced | KindState::Absent) => None,
            Some(KindState::Syncing) | None => Some(Reason::Syncing(kind)),
            Some(KindState::Blind(why, class)) => Some(Reason::Blind(kind, why.clone(), *class)),
        }
    }

    fn unserved(&self, gvk: &Gvk) -> Option<Reason> {
        match self.served.get(gvk) {
            Some(KindAvailability::Yes) => None,
            Some(KindAvailability::No(others)) => Some(Reason::Unserved(gvk.clone(), others.clone())),
            Some(KindAvailability::Unknown) | None => Some(Reason::UnknownKind(gvk.clone())),
        }
    }

    /// Returns the obstacle to any write to an object.
    pub(super) fn barred(&self, id: &ObjectId, entry: &ObjectEntry) -> Option<Reason> {
        let source = entry.wants.first().map(|(source, _)| &self.sources[*source]);
        if let Some(source) = source {
            let tells =
                |inventory: &Inventory| inventory.kinds.contains(&id.group_kind()) && !inventory.unplaced;
            let named = source.inventory.as_ref().is_some_and(tells);
            if let Some(why) = self.locked_inventory().filter(|_| source.inventory.is_none()) {
                return Some(Reason::Sealed(why));
            }
            if !named {
                return Some(Reason::Inventory(source.name.clone()));
            }
        }
        if self.foresight == Prerequisites::AllDone {
            return None;
        }
        if self.is_reading_release_key() {
            return Some(Reason::Reading(super::restart::key_id()));
        }
        let namespace = ObjectId::new(&GroupKind::new("", "Namespace"), None, id.namespace()?);
        let managed = self.entries.get(&namespace).is_some_and(|entry| !entry.wants.is_empty());
        if !managed {
            return None;
        }
        match self.shown(&namespace) {
            Some(live) if live.deleting => Some(Reason::Needs(namespace, "is being deleted".into())),
            Some(_) => None,
            None => Some(Reason::Needs(namespace, "is not there yet".into())),
        }
    }

    /// Returns the obstacle to a new content of an object.
    pub(super) fn gated(&self, source: SourceId, desired: &DesiredObject) -> Option<Reason> {
        if let Some(why) = self.cycles.get(&desired.id) {
            return Some(Reason::Held(why.clone()));
        }
        if self.foresight == Prerequisites::AllDone {
            // A reference that nothing brings is not awaited.
            let unnamed = |id: &&ObjectId| !self.is_wanted(id) && self.shown(id).is_none();
            return desired.after.iter().find(unnamed).and_then(|before| self.unhealthy(before));
        }
        let together = |need: &&ObjectId| !self.comes_with(source, desired, need);
        // A content that is there has what it needs; what it is restarted for comes below.
        let is_there = self.entry(&desired.id).is_some_and(|entry| entry.candidate().is_none());
        let needs = if is_there { &[][..] } else { &*desired.needs };
        let needs = needs.iter().filter(together).find_map(|need| self.missing(need));
        let after = || desired.after.iter().find_map(|before| self.unhealthy(before));
        let crd = || self.definition(desired);
        let wave = || {
            let earlier = self.sources[source].waves.range(..desired.wave);
            let unfinished = |(wave, ids): (&i32, &std::collections::BTreeSet<ObjectId>)| {
                // The last one, as all are made in their order: whoever waits is asked again when
                // the named one is done.
                ids.last().map(|id| Reason::Wave(*wave, id.clone()))
            };
            let rejected = || {
                let (wave, id) = self.rejected_before(source, desired.wave)?;
                Some(Reason::Wave(wave, id))
            };
            earlier.filter(|(_, ids)| !ids.is_empty()).find_map(unfinished).or_else(rejected)
        };
        let switch = || self.switch_gate(desired);
        needs
            .or_else(|| self.config_gate(source, desired))
            .or_else(after)
            .or_else(crd)
            .or_else(wave)
            .or_else(switch)
    }

    /// A reference holds up only where the desired state itself brings what it names.
    fn missing(&self, need: &ObjectId) -> Option<Reason> {
        let entry = self.entries.get(need)?;
        let held = |why: &str| Some(Reason::Needs(need.clone(), why.into()));
        match &entry.wants[..] {
            [] => None,
            [(source, WantedObject::Object(desired)), others @ ..]
                if others.is_empty() || entry.owner == Some(*source) =>
            {
                match self.shown(need) {
                    None => held("is not there yet"),
                    Some(_) if entry.instead.as_ref().is_some_and(|one| one.content.is_awaited()) => {
                        held("goes back first")
                    }
                    Some(_) if entry.candidate().is_none() || is_back(entry) || self.is_left_alone(need) => {
                        None
                    }
                    Some(_) => {
                        let refused =
                            entry.refused.as_ref().filter(|refusal| refusal.content == desired.hash);
                        match refused {
                            Some(refusal) => held(&format!("is refused: {}", refusal.text)),
                            // A workload may wait for the budget for hours; what routes to it need
                            // not.
                            None if is_workload(need) => None,
                            None => held("is not changed yet"),
                        }
                    }
                }
            }
            [(_, WantedObject::Unusable(held_back))] => {
                held(&format!("cannot be used: {}", held_back.reason))
            }
            _ => held("is wanted twice"),
        }
    }

    fn unhealthy(&self, before: &ObjectId) -> Option<Reason> {
        if let Some(missing) = self.missing(before) {
            return Some(missing);
        }
        match self.shown(before) {
            Some(live) if is_healthy(live) => None,
            Some(live) => Some(Reason::Needs(before.clone(), format!("is {}", health_words(live)).into())),
            None if self.is_wanted(before) => Some(Reason::Needs(before.clone(), "is not there yet".into())),
            None => Some(Reason::Needs(before.clone(), "no source names".into())),
        }
    }

    /// Returns whether nothing is done about an object, as its annotation asks.
    pub(super) fn is_left_alone(&self, id: &ObjectId) -> bool {
        let want = self.entry(id).and_then(ObjectEntry::want);
        want.is_some_and(|(_, desired)| left_alone(desired, self.shown(id), self.opt_out_of(id)).is_some())
    }

    fn is_wanted(&self, id: &ObjectId) -> bool {
        self.entries.get(id).is_some_and(|entry| !entry.wants.is_empty())
    }

    /// The definition of a custom kind must be established, and changed before its objects.
    fn definition(&self, desired: &DesiredObject) -> Option<Reason> {
        if !desired.gvk.group.contains('.') {
            return None;
        }
        let crd = self.definitions.get(&desired.id.group_kind())?;
        self.unhealthy(crd)
    }

    /// Returns the live object: by its informer, or by our own write that has not come back yet.
    pub fn shown(&self, id: &ObjectId) -> Option<&LiveObject> {
        let looked = match self.entries.get(id).and_then(|entry| entry.looked.as_ref()) {
            Some(super::LiveLookup::Found(live)) => Some(&**live),
            Some(super::LiveLookup::Absent) | None => None,
        };
        // The health of an older view is that of an older content.
        match (self.live(id), looked) {
            (Some(live), Some(looked)) if looked.rv > live.rv => Some(looked),
            (live, looked) => live.or(looked),
        }
    }

    /// Returns whether an autoscaler sets the count of an object. As long as the autoscalers are
    /// not known, one whose count is not ours is taken to have one: ours would scale it back.
    pub(super) fn scaling(&self, id: &ObjectId, entry: &ObjectEntry) -> ReplicaOwner {
        let autoscaled = match &self.autoscaled {
            Some(targets) => targets.contains(id),
            None => self.shown(id).is_some_and(|live| {
                let ceded = entry.want().and_then(|(_, desired)| desired.ceded);
                let released = live.shown_release().map(|release| release.hash);
                live.replicas_ceded || (ceded.is_some() && ceded == released)
            }),
        };
        if autoscaled { ReplicaOwner::Autoscaler } else { ReplicaOwner::Manifest }
    }

    /// Returns whether it is a Job that has ended with the wanted content, and need not be there
    /// any more.
    pub fn has_ended(&self, id: &ObjectId, entry: &ObjectEntry) -> bool {
        let wanted = entry.want().map(|(_, desired)| desired);
        wanted.is_some_and(|desired| self.finished(id, entry).is_some_and(|hash| desired.is_release(hash)))
    }

    /// Returns the content with which a Job ended that goes away by itself, as the inventory or a
    /// view told it.
    pub(super) fn finished(&self, id: &ObjectId, entry: &ObjectEntry) -> Option<ContentHash> {
        let (source, desired) = entry.want()?;
        let told = self.sources[source].inventory.as_ref().and_then(|told| told.finished.get(id).copied());
        let seen = entry.ended.as_deref().filter(|_| desired.traits.ends == ObjectLifetime::AfterFinish);
        seen.filter(|hash| desired.is_release(**hash)).copied().or(told)
    }

    /// Returns why it cannot be told whether the source that brought an object still wants it.
    pub(super) fn doubt(&self, entry: &ObjectEntry) -> Option<Arc<str>> {
        let accepted = entry.accepted.content().filter(|_| entry.wants.is_empty())?;
        self.sources[accepted.place.source].incomplete.clone()
    }

    /// Returns a source that is only observed decides all and writes nothing.
    pub(super) fn observed(&self, id: &ObjectId, decision: Decision) -> Decision {
        let entry = self.entries.get(id);
        let wanting = entry.and_then(|entry| entry.wants.first()).map(|(source, _)| *source);
        let source = wanting
            .or_else(|| self.live.get(id).and_then(|live| self.source_of(live)))
            .or_else(|| Some(entry?.accepted.content()?.place.source));
        let observed = source.is_some_and(|source| self.sources[source].writes == SourceWrites::Observed);
        let writes = matches!(decision.action, Action::Apply(_) | Action::Delete(..));
        if observed && writes { Decision::wait(Reason::Observed) } else { decision }
    }

    /// Remembers whom to wake when what an object waits for has changed, and whether its wave goes
    /// on.
    pub(super) fn remember(&mut self, id: &ObjectId, decision: &Decision) {
        let topic = decision.reason.as_ref().and_then(|reason| self.topic(id, reason));
        if self.waits.get(id) != topic.as_ref() {
            if let Some(old) = self.waits.remove(id)
                && let Some(waiting) = self.waiting.get_mut(&old)
            {
                waiting.remove(id);
            }
            if let Some(topic) = topic {
                self.waiting.entry(topic.clone()).or_default().insert(id.clone());
                self.waits.insert(id.clone(), topic);
            }
        }
        if let (Some(Reason::Wave(_, before)), Some(WaitTopic::Waves(source))) =
            (&decision.reason, self.waits.get(id))
        {
            self.sources[*source].awaited.insert(before.clone());
        }
        self.note_gate(id, decision);
        self.track_wave(id);
        self.track_move(id);
    }

    fn topic(&self, id: &ObjectId, reason: &Reason) -> Option<WaitTopic> {
        let source = || self.entries.get(id).and_then(|entry| entry.wants.first()).map(|(source, _)| *source);
        match reason {
            Reason::Syncing(_) | Reason::Blind(..) | Reason::Unserved(..) | Reason::UnknownKind(_) => {
                Some(WaitTopic::Kinds)
            }
            Reason::Inventory(_) => source().map(WaitTopic::Inventory),
            Reason::Needs(need, _) | Reason::Unit(need) | Reason::Reading(need) => {
                Some(WaitTopic::Object(need.clone()))
            }
            Reason::Sealed(_) => Some(WaitTopic::Object(super::restart::key_id())),
            Reason::Wave(..) => source().map(WaitTopic::Waves),
            _ => None,
        }
    }

    /// A Job that goes away by itself has ended: that it is gone afterwards is not drift.
    pub(super) fn track_end(&mut self, id: &ObjectId, live: &LiveObject) {
        let Some(release) =
            live.shown_release().filter(|release| live.finished && self.has_content(id, release.hash))
        else {
            return;
        };
        let Some((source, desired)) = self.entry(id).and_then(ObjectEntry::want) else { return };
        if desired.traits.ends == ObjectLifetime::AfterFinish
            && let Some(inventory) = &mut self.sources[source].inventory
        {
            inventory.finished.insert(id.clone(), release.hash);
        }
    }

    /// Returns whether this is the content that is wanted of an object.
    pub fn has_content(&self, id: &ObjectId, hash: ContentHash) -> bool {
        self.entry(id).and_then(ObjectEntry::want).is_some_and(|(_, desired)| desired.is_release(hash))
    }

    /// Returns the source in whose inventory an object is.
    pub fn source_of(&self, live: &LiveObject) -> Option<SourceId> {
        match &live.owner {
            ObjectOwner::Ours(set) => self.applysets.iter().position(|one| one == set),
            _ => None,
        }
    }

    pub(super) fn track_wave(&mut self, id: &ObjectId) {
        let Some((source, desired)) = self.entry(id).and_then(ObjectEntry::want) else { return };
        let (wave, unfinished) = (desired.wave, self.unfinished(source, id).is_some());
        let waves = &mut self.sources[source].waves;
        let ids = waves.entry(wave).or_default();
        let changed = if unfinished { ids.insert(id.clone()) } else { ids.remove(id) };
        if changed && !unfinished && self.sources[source].awaited.contains(id) {
            self.wake_waves(source);
        }
    }

    /// Asks again whoever waits for an earlier wave.
    pub(super) fn wake_waves(&mut self, source: SourceId) {
        self.sources[source].awaited.clear();
        self.touch(&WaitTopic::Waves(source));
    }

    /// Returns why a change of the newest revision is not done with an object, in words that follow
    /// its name.
    pub(super) fn unfinished(&self, source: SourceId, id: &ObjectId) -> Option<String> {
        lookups::count(1);
        let entry = self.entries.get(id)?;
        if !entry.wants.iter().any(|(wanting, _)| *wanting == source) {
            return None;
        }
        if self.is_left_alone(id) {
            return None;
        }
        if entry.candidate().is_some() && entry.want().is_some() && !is_back(entry) {
            return Some("is changed".to_owned());
        }
        if self.reconfigured(id).is_some() {
            return Some("is restarted".to_owned());
        }
        if self.is_rolling(id) {
            return Some("is rolled out".to_owned());
        }
        let live = self.shown(id)?;
        let newest = self.sources[source].head.as_ref();
        let brought = live.shown_release().map(|release| &release.revision);
        if newest.is_none() || brought != newest || is_healthy(live) {
            return None;
        }
        Some(format!("is healthy ({})", health_words(live)))
    }

    /// Returns the guard's word on an object that no source wants.
    pub(super) fn judgement(&self, id: &ObjectId, view: &DecisionInput<'_>) -> Option<PruneDecision> {
        let Observation::Seen(live) = view.observation else { return None };
        if !view.entry.wants.is_empty() {
            return None;
        }
        self.sources[self.source_of(live)?].judged.get(id).cloned()
    }

    /// Returns the last prune decisions about the unwanted objects of one source.
    pub fn judgements(&self, source: SourceId) -> impl Iterator<Item = (&ObjectId, &PruneDecision)> {
        self.sources[source].judged.iter()
    }

    /// Returns the object that defines a custom kind, where a source brings it.
    pub fn definition_of(&self, kind: &GroupKind) -> Option<&ObjectId> {
        self.definitions.get(kind)
    }

    /// Judges all that one source no longer wants.
    pub fn judge(&self, source: SourceId) -> BTreeMap<ObjectId, PruneDecision> {
        let state = &self.sources[source];
        let of_source = |live: &LiveObject| self.source_of(live) == Some(source);
        let unwanted: Vec<&ObjectId> =
            self.unwanted.iter().filter(|id| self.live(id).is_some_and(of_source)).collect();
        if unwanted.is_empty() {
            return BTreeMap::new();
        }
        let pending = self.pending(source, &unwanted);
        let parent = state.inventory.as_ref();
        let guard = PruneGuard {
            closed: self.prune_closed(source),
            other_place: parent.and_then(|parent| parent.other_place.clone()),
            radius: state.radius,
            life: state.life,
            confirmed: &self.confirmations(source),
            inventory: state.members.by_kind(),
        };
        judge(&pending, &guard)
    }

    /// Facts about what is not wanted any more. Where all that must come first is taken for done,
    /// none of it waits for other changes.
    fn pending(&self, source: SourceId, unwanted: &[&ObjectId]) -> Vec<PruneCandidate> {
        let (moving, units) = self.units(source, unwanted);
        let users = self.users(unwanted);
        let unfinished = |id: &ObjectId| {
            let (_, why) = moving.iter().find(|(other, _)| units.together(id, other))?;
            Some(why.clone())
        };
        let facts = |id: &&ObjectId| {
            let live = self.live.get(*id)?;
            // An annotation taken off the object still stands in the manifest that was in force
            // last.
            let accepted = self.entries.get(*id).and_then(|entry| entry.accepted.content());
            let said = accepted.map_or(KeepPolicy::No, |accepted| accepted.traits.keep);
            let alone = PruneCandidate {
                id: (*id).clone(),
                uid: live.uid.clone(),
                keep: live.keep.stricter(said),
                not_allowed: self.not_allowed(source, id),
                unproven: live.is_unproven().then(|| UNPROVEN.into()),
                unfinished: None,
                needed_by: None,
                withheld: self.withheld(source, id),
            };
            Some(match self.foresight {
                Prerequisites::AllDone => alone,
                Prerequisites::Now => PruneCandidate {
                    unfinished: unfinished(id),
                    needed_by: users.get(*id).copied().or_else(|| self.tenant(id)).cloned(),
                    ..alone
                },
            })
        };
        unwanted.iter().filter_map(facts).collect()
    }

    /// Returns why a source prunes nothing at all now.
    fn prune_closed(&self, source: SourceId) -> Option<PruneDecision> {
        let state = &self.sources[source];
        match state.prune {
            PrunePolicy::On => {}
            PrunePolicy::Off => {
                return Some(PruneDecision::Keep("not wanted any more; pruning is off".into()));
            }
            PrunePolicy::Partial => {
                return Some(PruneDecision::Keep("not in the files that were named".into()));
            }
        }
        match self.no_release_key() {
            None => {}
            // It waits: what ends must not be taken for done as long as nobody knows what is its
            // own.
            Some(Reason::Sealed(why)) => return Some(PruneDecision::Later(unchecked(&why))),
            Some(_) => {
                return Some(PruneDecision::Later(
                    "nothing is pruned before the key of seals was read".into(),
                ));
            }
        }
        let others = self.sources.iter().enumerate().filter(|(other, _)| *other != source);
        if let Some((_, other)) = others.clone().find(|(_, other)| other.checked < state.dropped) {
            let name = &other.name;
            let why = format!("pruned when source {name}, which may want it, was looked at again");
            return Some(PruneDecision::Later(why.into()));
        }
        if let Some((file, kind)) = self.unscoped(source) {
            let why =
                format!("nothing is pruned before {file} is read again: where {kind} lives is not known");
            return Some(PruneDecision::Later(why.into()));
        }
        if let Some(why) = &state.incomplete {
            let why = format!("nothing is pruned, as the source was not read whole: {why}");
            return Some(PruneDecision::Keep(why.into()));
        }
        if state.inventory.is_none() {
            return Some(PruneDecision::Later("nothing is pruned before the inventory was read".into()));
        }
        let later =
            |kind| PruneDecision::Later(format!("nothing is pruned while {kind} cannot be listed").into());
        self.unlisted_kind(source).map(later).or_else(|| self.recalled(source))
    }

    /// Returns a file with objects of a kind of which it is not known where they live, and that
    /// kind.
    pub(super) fn unscoped(&self, source: SourceId) -> Option<(&Arc<str>, &GroupKind)> {
        // Wherever its objects would live, none of them is there.
        let absent = |kind: &GroupKind| self.kind_state(source, kind) == Some(&KindState::Absent);
        self.sources[source].catalog.unscoped().find(|(_, kind)| !absent(kind))
    }

    /// Changes under way, and what belongs together with them or with what is to go.
    fn units(
        &self,
        source: SourceId,
        unwanted: &[&ObjectId],
    ) -> (BTreeMap<ObjectId, Arc<str>>, ConnectedUnits) {
        let mut moving = BTreeMap::new();
        let mut units = ConnectedUnits::default();
        for id in &self.sources[source].moving {
            if let Some(why) = self.unfinished(source, id) {
                moving.insert(id.clone(), format!("{id} {why}").into());
            }
        }
        if moving.is_empty() {
            return (moving, units);
        }
        let nodes: Vec<&ObjectId> = moving.keys().chain(unwanted.iter().copied()).collect();
        units = self.joined(&nodes);
        let ledger = self.rollouts.ledger.iter().flat_map(|ledger| &ledger.units);
        for unit in ledger.filter(|unit| unit.applyset == self.applysets[source]) {
            // Objects released together stay together until the last of them is healthy.
            let mut members = unit.members.keys().filter(|id| units.has(id));
            if let Some(first) = members.next() {
                members.collect::<Vec<_>>().into_iter().for_each(|id| units.join(first, id));
            }
        }
        for id in moving.keys().chain(unwanted.iter().copied()) {
            units.add(id);
            let Some(entry) = self.entries.get(id) else { continue };
            // Its former references are not known: it may use anything.
            let unknown = entry.before.is_none() && self.shown(id).is_some() && moving.contains_key(id);
            if unknown && (entry.candidate().is_none() || entry.accepted.content().is_none()) {
                let beside = unwanted.iter().filter(|other| other.namespace() == id.namespace());
                beside.for_each(|other| units.join(id, other));
            }
            let wanted = entry.want().map(|(_, desired)| desired);
            for desired in wanted.into_iter().chain(entry.accepted.content()).chain(&entry.before) {
                for need in desired.needs.iter().chain(&desired.after) {
                    units.join(id, need);
                }
            }
        }
        (moving, units)
    }

    /// Returns an object of ours that would go with another one though nobody says so: one in a
    /// namespace, one of a custom kind.
    fn tenant(&self, id: &ObjectId) -> Option<&ObjectId> {
        let crd = id.is("apiextensions.k8s.io", "CustomResourceDefinition");
        if !crd && !id.is("", "Namespace") {
            return None;
        }
        let defined = self.entries.get(id).and_then(|entry| entry.accepted.content()?.defines.as_deref());
        let lives_by = |other: &ObjectId| match (crd, defined) {
            (false, _) => other.namespace() == Some(id.name()),
            (true, Some(kind)) => other.group_kind() == *kind,
            (true, None) => is_named_after(id.name(), &other.group_kind()),
        };
        let ours = self.live.iter().filter(|(_, live)| self.source_of(live).is_some());
        ours.map(|(other, _)| other).filter(|other| lives_by(other)).min()
    }

    /// Returns the unwanted objects that another unwanted one uses, with one user each.
    fn users<'a>(&'a self, unwanted: &[&'a ObjectId]) -> BTreeMap<&'a ObjectId, &'a ObjectId> {
        let mut users = BTreeMap::new();
        for user in unwanted {
            if let Some(accepted) = self.entries.get(*user).and_then(|entry| entry.accepted.content()) {
                users.extend(accepted.needs.iter().map(|used| (used, *user)));
            }
        }
        users
    }
}

/// Returns whether a definition's name, `<plural>.<group>`, is that of a kind, as far as English
/// goes.
fn is_named_after(definition: &str, kind: &GroupKind) -> bool {
    let singular = kind.kind.to_ascii_lowercase();
    let stem = singular.get(..singular.len().saturating_sub(1)).unwrap_or_default();
    definition
        .split_once('.')
        .is_some_and(|(plural, group)| group == &*kind.group && plural.starts_with(stem))
}

/// Returns whether it is back at what was good, though that cannot be read any more.
fn is_back(entry: &ObjectEntry) -> bool {
    entry.instead.as_ref().is_some_and(|instead| matches!(instead.content, RollbackContent::Lost(_)))
}

/// Healthy as far as others wait for it: a claim may wait for the very pod that waits for it.
pub(super) fn is_healthy(live: &LiveObject) -> bool {
    live.health.is_current() || waits_for_consumer(&live.health)
}

pub(super) fn health_words(live: &LiveObject) -> String {
    match (live.health.status, &*live.health.message) {
        (HealthStatus::Current, _) => "healthy".to_owned(),
        (status, "") => status.to_string(),
        (status, message) => format!("{status}: {message}"),
    }
}
