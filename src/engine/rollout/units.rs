//! The objects that one revision changes together. They are found before any of them is released.
//! They are recorded with the first claim, or without one where none of them takes a slot.
//!
//! A unit ends in `Engine::is_concluded`: all of it is healthy, or any of it was rejected. Then
//! `Engine::next_ledger` takes it out of the rollout ledger. One that was not rejected and has
//! replaced something is kept for an undo.
//!
//! Either nothing of a unit is written, or all of it. Its claim is written before the first of its
//! objects, so somebody may pause one of them in between. A configuration without its workload
//! would wait for the next pod that restarts for another reason.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::engine::facts::entry::{ObjectEntry, SourceId};
use crate::engine::facts::kinds::KindState;
use crate::engine::facts::lookup_counts;
use crate::engine::facts::records::release_unit::{ReleaseUnit, RollbackTarget, UnitMember};
use crate::engine::rollout::record_size::RecordSizes;
use crate::engine::rollout::unit_transfer::inventory_of;
use crate::engine::state::Engine;
use crate::engine::{
    AcceptedContent, ContentRef, DependencyState, DesiredObject, LiveObject, Reason, ReplacementContent,
    SourceState, is_workload,
};
use crate::graph::{ConnectedUnits, GraphNode, connect_objects};
use crate::object::{GroupKind, ObjectId, Revision};

/// The workloads of the units of one source, by the objects of the units.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct UnitWorkloads {
    /// The lead workload of the unit of each object: the first that restarts pods, else the first
    /// new one beside changed objects.
    pub lead_workloads: BTreeMap<ObjectId, ObjectId>,
    /// The workloads of which it was not known what is there.
    pub unseen: BTreeMap<ObjectId, Arc<[ObjectId]>>,
}

/// The units of each source, as they were last found.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct UnitIndex {
    /// The workloads of the units. Made on demand, void when a content comes or goes.
    workloads: BTreeMap<SourceId, UnitWorkloads>,
    /// The record sizes of the units.
    record_sizes: BTreeMap<SourceId, RecordSizes>,
    /// Objects whose unit is to be recorded, though nothing of it takes a slot. Each with those of
    /// the unit that wait for the record.
    units_to_record: BTreeMap<(SourceId, ObjectId), BTreeSet<ObjectId>>,
}

impl UnitIndex {
    /// Returns the workloads of the units of a source; none where they have to be found again.
    pub(in crate::engine) fn of(&self, source: SourceId) -> Option<&UnitWorkloads> {
        self.workloads.get(&source)
    }

    /// Returns the sizes of the records of a source's units, as they were last found.
    pub(in crate::engine) fn record_sizes_of(&self, source: SourceId) -> Option<&RecordSizes> {
        self.record_sizes.get(&source)
    }

    /// Forgets the units of a source, as they may have changed.
    pub(in crate::engine) fn forget(&mut self, source: SourceId) {
        self.workloads.remove(&source);
    }

    /// Forgets the units of all sources.
    pub(in crate::engine) fn forget_all(&mut self) {
        self.workloads.clear();
    }

    /// Has the unit of an object recorded, for another one of it that waits for that.
    pub(in crate::engine) fn request_record(&mut self, source: SourceId, of: ObjectId, waiting: ObjectId) {
        self.units_to_record.entry((source, of)).or_default().insert(waiting);
    }

    /// Returns the objects whose unit is to be recorded, each with those that wait for that.
    pub(in crate::engine) fn units_to_record(&self) -> &BTreeMap<(SourceId, ObjectId), BTreeSet<ObjectId>> {
        &self.units_to_record
    }

    /// Forgets which units are to be recorded. Returns the objects that wait for that.
    pub(in crate::engine) fn take_waiting(&mut self) -> impl Iterator<Item = ObjectId> + use<> {
        std::mem::take(&mut self.units_to_record).into_values().flatten()
    }

    fn set_workloads(&mut self, source: SourceId, workloads: UnitWorkloads) {
        self.workloads.insert(source, workloads);
    }

    fn set_record_sizes(&mut self, source: SourceId, sizes: RecordSizes) {
        self.record_sizes.insert(source, sizes);
    }
}

impl Engine {
    /// Returns the objects that the newest revision of a source changes and that are connected, as
    /// far as they have not been released.
    fn connected_units(&self, source: SourceId) -> (ConnectedUnits, Vec<ObjectId>) {
        let differs =
            |id: &&ObjectId| self.entry(id).is_some_and(|entry| self.is_differing(source, id, entry));
        let nodes: Vec<&ObjectId> = self.differing_candidates(source).into_iter().filter(differs).collect();
        let units = self.join_units(&nodes);
        (units, nodes.into_iter().cloned().collect())
    }

    /// Returns the objects whose target content may differ from the accepted one. Each commit asks,
    /// so it is not found by a walk over everything.
    pub(in crate::engine) fn differing_candidates(&self, source: SourceId) -> BTreeSet<&ObjectId> {
        let SourceState { unfinished, rejected_objects, .. } = &self.sources[source];
        lookup_counts::count(
            unfinished.len() + rejected_objects.len() + self.objects.unwanted_objects().len(),
        );
        unfinished.iter().chain(rejected_objects).chain(self.objects.unwanted_objects()).collect()
    }

    /// Returns the connected parts of these objects, by their references and selectors.
    pub(in crate::engine) fn connected_parts(&self, objects: &[&ObjectId]) -> Vec<Vec<ObjectId>> {
        let units = self.join_units(objects);
        units.unit_members().into_iter().map(|part| part.into_iter().cloned().collect()).collect()
    }

    /// Returns the connected parts among these objects alone, by their wanted and their accepted
    /// contents.
    pub(in crate::engine) fn join_units(&self, nodes: &[&ObjectId]) -> ConnectedUnits {
        let alone = nodes.iter().map(|id| GraphNode { id, refs: &[], selects: None, labels: None });
        let contents = nodes.iter().filter_map(|id| {
            let entry = self.entry(id)?;
            Some((
                *id,
                entry
                    .target_content()
                    .map(|(_, desired)| desired)
                    .into_iter()
                    .chain(entry.accepted.content()),
            ))
        });
        let all = contents.flat_map(|(id, contents)| contents.flat_map(move |content| links(id, content)));
        connect_objects(alone.chain(all))
    }

    /// Returns whether a source asks for something else than the cluster must show.
    pub(in crate::engine) fn is_differing(
        &self,
        source: SourceId,
        id: &ObjectId,
        entry: &ObjectEntry,
    ) -> bool {
        if let Some((wanting, _)) = entry.target_content() {
            let is_unreleased = entry.unreleased_content().is_some() && !self.has_succeeded(id, entry);
            let changes = is_unreleased || self.restart_stamp(id).is_some();
            return wanting == source && changes && !self.is_left_alone(id);
        }
        let of_source = |live: &LiveObject| self.inventory_source(live) == Some(source);
        entry.targets.is_empty() && self.informer_object(id).is_some_and(of_source)
    }

    /// Returns the unit of an object that is about to be released.
    ///
    /// It names nothing that is rejected: what was good of that is known by its rejection. A unit
    /// that named it would be over at once, and nothing of it could go back.
    pub(in crate::engine) fn build_unit(&self, source: SourceId, id: &ObjectId) -> ReleaseUnit {
        let (units, nodes) = self.connected_units(source);
        let members = nodes.iter().filter(|node| units.is_same_unit(node, id) && !self.has_rejection(node));
        let members = members.map(|node| (node.clone(), self.member(source, node)));
        let mut unit = ReleaseUnit {
            inventory_id: self.sources.inventory_ids()[source].clone(),
            revision: self.sources[source].head.clone().unwrap_or_else(|| Revision::new("")),
            members: members.collect(),
        };
        self.inherit_rollback_targets(source, &mut unit);
        unit
    }

    pub(in crate::engine) fn member(&self, source: SourceId, id: &ObjectId) -> UnitMember {
        let content = self.entry(id).and_then(ObjectEntry::target_content).map(|(_, desired)| desired.hash);
        let good = match self.live_object(id) {
            None if self.is_observable(id) => self.missing_object_target(source, id),
            None => RollbackTarget::Unknown,
            Some(live) if self.source_of(live) != Some(source) => {
                self.former_rollback_target(source, id, live)
            }
            Some(live) => {
                self.known_content_ref(id, live).map_or(RollbackTarget::Unknown, RollbackTarget::Content)
            }
        };
        UnitMember { content, rollback_target: good, restarted: self.config_restart_of(source, id) }
    }

    /// Returns where a rollback of an object leads to that is not there.
    ///
    /// Where it is to be there, somebody else has deleted it. That is drift, so the content in force
    /// is the good one all the same. After a failed content it is the one before that.
    fn missing_object_target(&self, source: SourceId, id: &ObjectId) -> RollbackTarget {
        let Some(entry) = self.entry(id) else { return RollbackTarget::Absent };
        let inventory = self.sources[source].inventory.as_ref();
        let has_ended = |accepted: &DesiredObject| {
            let recorded = inventory.and_then(|inventory| Some(inventory.finished.get(id)?.content));
            entry.rare.ended.into_iter().chain(recorded).any(|hash| accepted.has_hash(hash))
        };
        let good = match (&entry.accepted, &entry.revision) {
            (AcceptedContent::Nothing, _) => return RollbackTarget::Absent,
            (AcceptedContent::Known(accepted), _) if has_ended(accepted) => return RollbackTarget::Absent,
            (AcceptedContent::Known(accepted), Some(revision)) if accepted.body.source == source => {
                ContentRef { hash: accepted.hash, revision: revision.clone() }
            }
            (AcceptedContent::Known(_), _) => return RollbackTarget::Unknown,
            (AcceptedContent::Unread(good) | AcceptedContent::Unreadable(good), _) => good.clone(),
        };
        let rejections = inventory.into_iter().flat_map(|inventory| &inventory.rejections);
        let mut rejected = rejections
            .chain(&self.sources[source].pending_rejections)
            .filter_map(|rejection| rejection.unit.members.get(id));
        let failed = rejected.find(|member| member.content == Some(good.hash));
        failed.map_or(RollbackTarget::Content(good), |member| member.rollback_target.clone())
    }

    /// Returns whether it is known of each object of a unit what is there. Informers do not show
    /// what lacks our label, and what is adopted must not be taken for added: going back would
    /// delete it.
    pub(in crate::engine) fn are_members_known(&self, unit: &ReleaseUnit) -> bool {
        self.can_be_recorded(unit)
            && unit.members.keys().all(|id| {
                let Some(entry) = self.entry(id) else { return true };
                self.live_object(id).is_some()
                    || entry.direct_view.is_some()
                    || self.unobserved_reason(id, entry).is_some()
            })
    }

    /// Returns whether it is not known yet what is there of an object, and will be known soon.
    fn is_unseen(&self, id: &ObjectId) -> bool {
        let Some(entry) = self.entry(id) else { return false };
        self.live_object(id).is_none()
            && entry.direct_view.is_none()
            && self.unobserved_reason(id, entry).is_none_or(|reason| matches!(reason, Reason::Syncing(_)))
    }

    /// Returns whether an object is in a unit that is being released.
    pub(in crate::engine) fn is_in_unit(&self, id: &ObjectId) -> bool {
        let ledger = self.rollouts.ledger.latest();
        ledger.is_some_and(|ledger| {
            self.sources.inventory_ids().iter().any(|inventory_id| ledger.unit_of(inventory_id, id).is_some())
        })
    }

    /// Returns whether the ledger may forget a unit: all of it is healthy, or any member was
    /// rejected. During a retry it may not.
    pub(in crate::engine) fn is_concluded(&self, unit: &ReleaseUnit) -> bool {
        let Some(source) = self.source_of_inventory_id(&unit.inventory_id) else { return false };
        if self.sources[source].inventory.is_none() || self.sources[source].head.is_none() {
            return false;
        }
        if self.is_kept_for_retry(unit) {
            return false;
        }
        if self.is_rejected(unit) {
            return true;
        }
        // Workloads come late in the order of ids, and come to rest last. Any order is correct.
        unit.members.iter().rev().filter(|(id, _)| !self.is_left_alone(id)).all(|(id, member)| {
            let is_in_flight =
                self.rollouts.in_flight.contains_key(id) || self.rollouts.slot_requests.contains(id);
            let has_succeeded = self.entry(id).is_some_and(|entry| self.has_succeeded(id, entry));
            let is_unreleased = || {
                self.entry(id).is_some_and(|entry| entry.unreleased_content().is_some() && !has_succeeded)
                    || self.restart_stamp(id).is_some()
            };
            let released = match (member.content, self.live_object(id)) {
                (None, _) => true,
                (Some(_), Some(live)) => crate::engine::decide::blockers::is_healthy(live),
                (Some(_), None) => has_succeeded,
            };
            // An object that the newest revision no longer wants is no part of it any more.
            let dropped = self.entry(id).is_none_or(|entry| entry.targets.is_empty());
            // Its rollout is judged once its new source has it.
            let goes_over = self.is_takeover_pending(id, &unit.inventory_id)
                || self.live_object(id).is_some_and(|live| {
                    self.is_left_at_step(id, live) && inventory_of(live).as_ref() == Some(&unit.inventory_id)
                });
            !is_in_flight && !goes_over && !is_unreleased() && (released || dropped) && self.is_observable(id)
        })
    }

    fn is_rejected(&self, unit: &ReleaseUnit) -> bool {
        unit.members.keys().any(|id| self.has_rejection(id))
    }

    /// Returns whether a unit that is over has replaced something and was not rejected. One that
    /// ended because something of it was dropped, or is another source's, was not judged here.
    pub(in crate::engine) fn can_be_undone(&self, unit: &ReleaseUnit) -> bool {
        let replaced = |member: &UnitMember| {
            member.rollback_target.content_ref().is_some() && !member.has_unchanged_content()
        };
        let has_moved = |id: &ObjectId| {
            let inventory = self.live_object(id).and_then(inventory_of);
            inventory.is_some_and(|inventory| inventory != unit.inventory_id)
        };
        let is_dropped = |id: &ObjectId| self.entry(id).is_none_or(|entry| entry.targets.is_empty());
        let is_judged = |(id, member): (&ObjectId, &UnitMember)| {
            member.content.is_none() || (!is_dropped(id) && !has_moved(id))
        };
        !self.is_rejected(unit) && unit.members.values().any(replaced) && unit.members.iter().all(is_judged)
    }

    /// Returns the reason for which a change waits for its unit's workload to begin: a
    /// configuration never lands hours before its workload.
    pub(in crate::engine) fn unit_release_blocker(
        &mut self,
        source: SourceId,
        desired: &DesiredObject,
    ) -> Option<Reason> {
        // An object that goes back beside a workload waits for no claim: the workload follows it.
        if self.is_recorded(source, desired) {
            return None;
        }
        if let Some(reason) = self.config_consumers_blocker(source, &desired.id) {
            return Some(reason);
        }
        if let Some(reason) = self.object_key_blocker(source, &desired.id) {
            return Some(reason);
        }
        if let Some(kind) =
            self.first_unlisted_kind(source).filter(|_| self.live_object(&desired.id).is_some())
        {
            return Some(Reason::Syncing(kind));
        }
        if let Some(unseen) = self.unseen_workload(source, &desired.id) {
            return Some(Reason::Reading(unseen));
        }
        let lead = self.rollouts.units.of(source)?.lead_workloads.get(&desired.id)?.clone();
        if !self.is_lead_workload_restarted(source, &lead) && !self.is_differing_lead(source, &lead) {
            // Nothing of it is recorded any more. Another one leads what is left, or none.
            self.clear_memo();
            self.rollouts.units.forget(source);
            self.find_units(source);
            return self.unit_release_blocker(source, desired);
        }
        if let Some(reason) = self.room_shortage(source, &lead) {
            return Some(reason);
        }
        if !self.is_lead_workload_restarted(source, &lead) || self.is_waiting_for(source, &lead, desired) {
            // Nothing of it asks the budget, so nothing but this asks for its record.
            self.rollouts.units.request_record(source, lead, desired.id.clone());
            let unreadable = self.rollouts.ledger.unreadable_reason().cloned();
            return Some(unreadable.map_or(Reason::Claiming, Reason::RecordUnreadable));
        }
        // It asks for itself.
        (lead != desired.id && !self.can_restart_pods(&desired.id)).then_some(Reason::UnitWorkload(lead))
    }

    /// Returns whether a source asks for another content of a lead workload, or for its restart.
    fn is_differing_lead(&self, source: SourceId, workload: &ObjectId) -> bool {
        self.entry(workload).is_some_and(|entry| self.is_differing(source, workload, entry))
    }

    /// Returns whether a workload cannot begin to roll before something that is released together
    /// with it: then that does not wait for the workload.
    fn is_waiting_for(&mut self, source: SourceId, workload: &ObjectId, desired: &DesiredObject) -> bool {
        if desired.id == *workload || self.is_paused_by_person(&desired.id) {
            return false;
        }
        let blocker = self.lead_workload_blocker(source, workload);
        let Some((_, first)) = self.entry(workload).and_then(ObjectEntry::target_content) else {
            return false;
        };
        let together = |id: &ObjectId| {
            self.rollouts
                .units
                .of(source)
                .and_then(|units| units.lead_workloads.get(id))
                .is_some_and(|one| one == workload)
        };
        match blocker {
            Some(Reason::Wave(..)) => desired.wave < first.wave,
            Some(Reason::Needs(need, _)) => {
                together(&need)
                    && !self.is_paused_by_person(&need)
                    && !self.is_slot_request_due(source, &need)
            }
            _ => false,
        }
    }

    /// Returns whether a workload that restarts pods asks the budget for itself now, as nothing else
    /// is in its way. The record of its unit comes with its claim.
    fn is_slot_request_due(&mut self, source: SourceId, id: &ObjectId) -> bool {
        self.is_lead_workload_restarted(source, id) && self.lead_workload_blocker(source, id).is_none()
    }

    /// Returns a kind of which nobody knows yet what there is, and so what is released together,
    /// and where it goes back to.
    fn first_unlisted_kind(&self, source: SourceId) -> Option<GroupKind> {
        let state = &self.sources[source];
        let workloads = ["Deployment", "StatefulSet", "DaemonSet"].map(|kind| GroupKind::new("apps", kind));
        let recorded = state.inventory.iter().flat_map(|inventory| &inventory.kinds);
        // The watch of a kind that the source asks for anew has not begun yet.
        let begins = |kind: &GroupKind| {
            !self.is_unserved(kind) && state.desired_counts.kinds().any(|wanted| wanted == kind)
        };
        let is_unlisted = |kind: &&GroupKind| match self.kind_state(source, kind) {
            Some(state) => *state == KindState::Syncing,
            None => begins(kind),
        };
        workloads.iter().chain(recorded).chain(state.desired_counts.kinds()).find(is_unlisted).cloned()
    }

    /// Returns a workload of the same unit of which it is not known yet what is there, for an object
    /// that is taken over.
    ///
    /// Both may come from a source of another process. Informers show neither, and the lookup of
    /// the object may be answered first.
    fn unseen_workload(&mut self, source: SourceId, id: &ObjectId) -> Option<ObjectId> {
        let live = self.live_object(id)?;
        if self.source_of(live) == Some(source) {
            return None;
        }
        let workloads = self.rollouts.units.of(source)?.unseen.get(id)?.clone();
        let unseen = workloads.iter().find(|workload| self.is_unseen(workload));
        if unseen.is_none() {
            // They were looked up since, and may restart pods.
            self.rollouts.units.forget(source);
            self.find_units(source);
        }
        unseen.cloned()
    }

    /// Finds the units of a source, where that has to be done again.
    pub(in crate::engine) fn find_units(&mut self, source: SourceId) {
        if self.rollouts.units.of(source).is_none() {
            self.rollouts.units.set_workloads(source, self.find_unit_workloads(source));
            self.rollouts.units.set_record_sizes(source, self.record_sizes(source));
        }
    }

    /// Returns a test for what an object needs: it is released together with the object, and only
    /// waits for that. It comes first, once the object has its claim.
    pub(in crate::engine) fn released_with<'a>(
        &'a self,
        source: SourceId,
        desired: &'a DesiredObject,
    ) -> impl Fn(&ObjectId) -> bool + 'a {
        let lead = move |id: &ObjectId| self.rollouts.units.of(source)?.lead_workloads.get(id);
        let own_lead = lead(&desired.id);
        let goes_back = self.has_rollback_target(&desired.id);
        // It costs a walk over all that it uses.
        let opens =
            LazyCell::new(move || self.can_restart_pods(&desired.id) && !self.is_recorded(source, desired));
        move |need| {
            let entry = self.entry(need);
            if goes_back {
                // In the rollback too the configuration goes first, but nothing that stays refused
                // keeps a workload from it.
                return entry.is_some_and(|entry| self.is_return_refused(need, entry));
            }
            let is_refused =
                || entry.is_none_or(|entry| entry.is_target_refused() || entry.target_content().is_none());
            let together = own_lead.is_some() && own_lead == lead(need);
            together && !self.is_paused_by_person(need) && !is_refused() && *opens
        }
    }

    /// Returns whether a unit in the ledger has this content of an object.
    pub(in crate::engine) fn is_recorded(&self, source: SourceId, desired: &DesiredObject) -> bool {
        // In a rollback nothing waits for the workload's claim: the workload waits for what it uses.
        if self.has_rollback_target(&desired.id) {
            return true;
        }
        let unit = self
            .rollouts
            .ledger
            .latest()
            .and_then(|ledger| ledger.unit_of(&self.sources.inventory_ids()[source], &desired.id));
        let is_it = |unit: &ReleaseUnit, member: &UnitMember| {
            // Where nobody can read the content, the revision shows that it is this one.
            let same = || self.sources[source].head.as_ref() == Some(&unit.revision);
            member.content == Some(desired.hash) || (member.is_unreadable() && same())
        };
        unit.is_some_and(|unit| unit.members.get(&desired.id).is_some_and(|member| is_it(unit, member)))
    }

    fn find_unit_workloads(&self, source: SourceId) -> UnitWorkloads {
        let state = &self.sources[source];
        if state.head.is_none() {
            return UnitWorkloads::default();
        }
        let (units, nodes) = self.connected_units(source);
        let changed: BTreeSet<usize> = nodes
            .iter()
            .filter(|id| self.live_object(id).is_some_and(|live| self.source_of(live) == Some(source)))
            .filter_map(|id| units.number_of(id))
            .collect();
        let is_new = |id: &ObjectId| {
            let beside = units.number_of(id).is_some_and(|number| changed.contains(&number));
            is_workload(id) && beside && self.live_object(id).is_none()
        };
        let mut workloads: Vec<&ObjectId> =
            nodes.iter().filter(|id| self.can_restart_pods(id) || is_new(id)).collect();
        // One that restarts pods asks the budget, and so opens the unit.
        workloads.sort_by_key(|id| (!self.can_restart_pods(id), *id));
        let mut leads: BTreeMap<usize, &ObjectId> = BTreeMap::new();
        for id in workloads {
            if let Some(number) = units.number_of(id) {
                leads.entry(number).or_insert(id);
            }
        }
        let lead = |id: &ObjectId| leads.get(&units.number_of(id)?).copied().cloned();
        let lead_workloads = nodes.iter().filter_map(|id| Some((id.clone(), lead(id)?))).collect();
        let mut hidden: BTreeMap<usize, Vec<ObjectId>> = BTreeMap::new();
        for id in nodes.iter().filter(|id| is_workload(id) && self.is_unseen(id)) {
            if let Some(number) = units.number_of(id) {
                hidden.entry(number).or_default().push(id.clone());
            }
        }
        let hidden: BTreeMap<usize, Arc<[ObjectId]>> =
            hidden.into_iter().map(|(number, ids)| (number, ids.into())).collect();
        let beside = |id: &ObjectId| hidden.get(&units.number_of(id)?).cloned();
        let unseen = nodes.iter().filter_map(|id| Some((id.clone(), beside(id)?))).collect();
        UnitWorkloads { lead_workloads, unseen }
    }

    /// Returns whether the target content of a workload restarts pods, as far as the contents
    /// show.
    pub(in crate::engine) fn can_restart_pods(&self, id: &ObjectId) -> bool {
        let Some(entry) = self.entry(id).filter(|_| is_workload(id) && !self.is_left_alone(id)) else {
            return false;
        };
        let stays = entry
            .rejection
            .as_ref()
            .is_some_and(|rejection| rejection.replacement == ReplacementContent::Quarantined);
        let changes =
            |live| entry.unreleased_content().is_some_and(|desired| self.can_restart(id, desired, live));
        let restarts = |live| {
            crate::engine::decide::decide::is_serving(id, live)
                && (changes(live) || self.restart_stamp(id).is_some())
        };
        !stays && self.live_object(id).is_some_and(restarts)
    }
}

/// Returns the connections of an object with others, by one of its contents.
fn links<'a>(id: &'a ObjectId, content: &'a DesiredObject) -> impl Iterator<Item = GraphNode<'a>> {
    // A selector that matches everything says nothing about connections.
    let selects = content.selects.as_deref().filter(|selects| !selects.is_everything());
    let named = GraphNode { id, refs: &content.needs, selects, labels: content.labels.as_deref() };
    let after = GraphNode { id, refs: &content.depends_on, selects: None, labels: None };
    let uses =
        GraphNode { id, refs: content.restart_references().unwrap_or_default(), selects: None, labels: None };
    [named, after, uses].into_iter()
}

impl Engine {
    /// Returns the unit that an object is recorded in with the content that is wanted of it.
    pub(in crate::engine) fn recorded_unit(&self, id: &ObjectId) -> Option<&ReleaseUnit> {
        let (source, desired) = self.entry(id)?.target_content()?;
        let unit = self.rollouts.ledger.latest()?.unit_of(&self.sources.inventory_ids()[source], id)?;
        (unit.members.get(id)?.content == Some(desired.hash)).then_some(unit)
    }

    /// Returns whether something of a unit is written, or is being written.
    pub(in crate::engine) fn is_partly_written(&self, unit: &ReleaseUnit) -> bool {
        unit.members.iter().any(|(id, member)| {
            let Some(content) = member.content else { return false };
            // A newer revision's content is not released by the older one's write.
            let wanted = self
                .entry(id)
                .and_then(|entry| entry.target_content())
                .is_some_and(|(_, desired)| desired.hash == content);
            let written = self.is_showing(id, content) || self.rollouts.writes_in_flight.contains(id);
            wanted && !member.has_unchanged_content() && written
        })
    }

    /// Returns whether a person may have paused anything of a unit. Each object of the unit asks, and
    /// a walk over all of them for each would cost the square of their number. So a pause of another
    /// source, whose objects are in units of their own, does not count.
    pub(in crate::engine) fn can_be_paused(&self, unit: &ReleaseUnit) -> bool {
        let source = self.source_of_inventory_id(&unit.inventory_id);
        source.is_some_and(|source| self.source_pause(source).is_some())
            || self.orders.objects_with_intents.iter().any(|id| unit.members.contains_key(id))
    }

    /// Returns the pause of one of a unit, which keeps all of it.
    pub(in crate::engine) fn pause_within(&self, unit: &ReleaseUnit) -> Option<Reason> {
        let mut paused = unit.members.keys().filter(|id| self.own_pause(id).is_some());
        paused.next().map(|id| Reason::Needs(id.clone(), DependencyState::Paused))
    }
}
