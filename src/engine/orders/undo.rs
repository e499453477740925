//! Undo orders.
//!
//! They lead to what was in force here before, as the records of units say, or to a revision that a
//! person names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine::facts::entry::{ObjectEntry, SourceId};
use crate::engine::facts::records::rejection::{Rejection, RejectionAction};
use crate::engine::facts::records::release_unit::{ReleaseUnit, RollbackTarget, UnitMember};
use crate::engine::orders::carry_out::OrderAnswer;
use crate::engine::orders::order::Order;
use crate::engine::orders::order_outcome::{
    AnsweredOrder, OrderObstacle, OrderOutcome, RejectedUnit, UndoTarget, UndoneUnit,
};
use crate::engine::rollout::rollback::rejection_cause::RejectionCause;
use crate::engine::state::Engine;
use crate::engine::{ContentRef, DesiredState, SharedDesiredObject};
use crate::graph::ConnectedUnits;
use crate::object::{ContentHash, ObjectId, Revision};

/// An undo order: the older content that is to be looked up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UndoRequest {
    /// The order's token.
    pub token: Arc<str>,
    /// The object that it names.
    pub id: ObjectId,
    /// Its source.
    pub source: SourceId,
    /// The revision that brought what is in force.
    pub from: Revision,
    /// The revision to go back to, as a person names it; else the parent of `from`.
    pub to: Option<Arc<str>>,
    /// All that goes back.
    pub objects: Vec<ObjectId>,
    /// Revisions that were in force here, as rhumb itself has written down: these may be gone back
    /// to, wherever the followed reference is now.
    pub in_force: BTreeSet<Revision>,
    /// The giver of the order; empty where that is not said.
    pub by: Arc<str>,
}

/// The contents of an older revision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OlderRevision {
    /// The revision.
    pub revision: Revision,
    /// The contents that it has.
    pub contents: BTreeMap<ObjectId, SharedDesiredObject>,
}

impl Engine {
    pub(in crate::engine) fn undo(
        &mut self,
        source: SourceId,
        order: &Order,
        to: Option<Arc<str>>,
    ) -> OrderAnswer {
        // Before the key was read nothing proves which revision brought what is there.
        if self.is_reading_release_key() {
            return OrderAnswer::Deferred;
        }
        let id = &order.object;
        // The contents before it are in rhumb's own record, and need no proof on the object.
        if let Some(unit) = self.replaced_unit(source, id).filter(|_| to.is_none()) {
            return OrderAnswer::Done(self.take_back(source, order, unit));
        }
        let release = self.live_object(id).and_then(|live| live.release.as_ref());
        let Some(from) = release.map(|release| release.revision.clone()) else {
            return OrderAnswer::nothing_done(OrderObstacle::NoRevision(id.clone()));
        };
        let objects = self.objects_brought_with(source, id, &from);
        let (token, by) = (order.token.clone(), order.by.clone());
        let in_force = self.revisions_in_force(source);
        let undo =
            UndoRequest { token: token.clone(), id: id.clone(), source, from, to, objects, in_force, by };
        self.orders.undos.insert((source, token), undo);
        OrderAnswer::Deferred
    }

    /// Returns the revisions of a source that were in force here, as the records in rhumb's own
    /// namespace say. These are the revisions of units that succeeded, those that units go back to,
    /// and the newest one.
    ///
    /// A revision that was only read, or that failed, is none: its commit may have been taken back.
    pub(in crate::engine) fn revisions_in_force(&self, source: SourceId) -> BTreeSet<Revision> {
        let inventory_id = &self.sources.inventory_ids()[source];
        let of_source = |unit: &&ReleaseUnit| unit.inventory_id == *inventory_id;
        let history =
            self.rollouts.ledger.latest().into_iter().flat_map(|ledger| &ledger.history).filter(of_source);
        let releasing = self.rollouts.ledger.latest().into_iter().flat_map(|ledger| &ledger.units);
        let rejected = self.sources[source].inventory.iter().flat_map(|inventory| &inventory.rejections);
        let units = releasing.chain(rejected.map(|rejection| &rejection.unit)).filter(of_source);
        let members = units.chain(history.clone()).flat_map(|unit| unit.members.values());
        let good = members.filter_map(|member| Some(member.rollback_target.content_ref()?.revision.clone()));
        let succeeded = history.map(|unit| unit.revision.clone());
        succeeded.chain(good).chain(self.sources[source].head.clone()).collect()
    }

    /// Returns the unit that brought the content that an object shows, with all members that went
    /// along with it.
    ///
    /// A unit enters the history with the next write of the ledger. Until then its record is among
    /// the units that are being released. Of a past unit, members with newer contents are left out.
    pub(in crate::engine) fn replaced_unit(&self, source: SourceId, id: &ObjectId) -> Option<ReleaseUnit> {
        let shows = |id: &ObjectId, member: &UnitMember| match member.content {
            Some(content) => self.is_showing(id, content),
            None => self.live_object(id).is_none(),
        };
        let brought = |unit: &&ReleaseUnit| {
            let member = unit.members.get(id).filter(|member| member.content.is_some());
            let readable = !unit.members.values().any(UnitMember::is_unreadable);
            unit.inventory_id == self.sources.inventory_ids()[source]
                && readable
                && member.is_some_and(|member| shows(id, member))
        };
        let ledger = self.rollouts.ledger.latest()?;
        if let Some(unit) = ledger.units.iter().find(brought) {
            return Some(unit.clone());
        }
        let mut unit = ledger.history.iter().rev().find(brought)?.clone();
        unit.members.retain(|id, member| shows(id, member));
        Some(unit)
    }

    /// Goes back to what was in force before a unit.
    fn take_back(&mut self, source: SourceId, order: &Order, mut unit: ReleaseUnit) -> OrderOutcome {
        let id = &order.object;
        let unknown = |(id, member): &(&ObjectId, &UnitMember)| {
            member.rollback_target == RollbackTarget::Unknown && self.can_show_unit_content(id, member)
        };
        if let Some((lost, _)) = unit.members.iter().find(unknown) {
            return OrderOutcome::NothingDone(OrderObstacle::UnknownContent(lost.clone()));
        }
        let target = match unit.members.get(id).map(|member| &member.rollback_target) {
            Some(RollbackTarget::Content(good) | RollbackTarget::FormerContent { content: good, .. }) => {
                UndoTarget::Of(good.revision.clone())
            }
            _ => UndoTarget::Before(unit.revision.clone()),
        };
        for (id, member) in &mut unit.members {
            member.content = self.desired_hash(source, id);
        }
        if unit.members.get(id).is_some_and(UnitMember::has_unchanged_content) {
            return OrderOutcome::NothingDone(OrderObstacle::DesiredBefore(id.clone(), target));
        }
        let unit = self.reject_for_undo(source, id, &order.by, unit);
        OrderOutcome::Undone(UndoneUnit { unit, target, kept: Vec::new() })
    }

    pub(in crate::engine) fn desired_hash(&self, source: SourceId, id: &ObjectId) -> Option<ContentHash> {
        match self.sources[source].manifests.desired_state(id) {
            Some(DesiredState::Object(desired)) => Some(desired.hash),
            _ => None,
        }
    }

    fn reject_for_undo(
        &mut self,
        source: SourceId,
        id: &ObjectId,
        by: &Arc<str>,
        unit: ReleaseUnit,
    ) -> RejectedUnit {
        let rejected = RejectedUnit::of(&unit, id);
        let cause = RejectionCause::Undone(unit.revision.clone(), by.clone()).to_string().into();
        self.reject_by_hand(source, Rejection { unit, action: RejectionAction::RollBack, cause });
        rejected
    }

    /// Returns the objects of a source that one revision brought and that are connected with this
    /// one.
    fn objects_brought_with(&self, source: SourceId, id: &ObjectId, revision: &Revision) -> Vec<ObjectId> {
        let brought = |other: &ObjectId| {
            let live = self.live_object(other)?;
            let same = live.release.as_ref().is_some_and(|release| release.revision == *revision);
            (same && self.source_of(live) == Some(source)).then_some(())
        };
        let mut units = ConnectedUnits::default();
        let nodes: Vec<(&ObjectId, &ObjectEntry)> =
            self.entries().filter(|(other, _)| brought(other).is_some()).collect();
        for (other, _) in &nodes {
            units.add(other);
        }
        for (other, entry) in &nodes {
            let contents = entry
                .target_content()
                .map(|(_, desired)| desired)
                .into_iter()
                .chain(entry.accepted.content());
            for need in contents.flat_map(|content| content.needs.iter().chain(&content.depends_on)) {
                if units.has(need) {
                    units.join(other, need);
                }
            }
        }
        let mut found: Vec<ObjectId> = nodes
            .iter()
            .map(|(other, _)| *other)
            .filter(|other| units.is_same_unit(other, id))
            .cloned()
            .collect();
        found.sort();
        found
    }

    /// Returns the rollbacks whose contents are to be looked up.
    pub(in crate::engine) fn undo_requests(&self) -> impl Iterator<Item = &UndoRequest> {
        self.orders.undos.values()
    }

    /// Takes over the target of a rollback, or the reason for which it cannot be had, in words. An
    /// order that is gone by now is not carried out, and neither is another one in its place.
    pub(in crate::engine) fn undo_target_read(
        &mut self,
        undo: &UndoRequest,
        past: Result<OlderRevision, String>,
    ) {
        let key = (undo.source, undo.token.clone());
        if self.orders.undos.get(&key) != Some(undo) {
            return;
        }
        self.orders.undos.remove(&key);
        // It may have to be looked up again.
        self.orders.stale = true;
        let release = self.live_object(&undo.id).and_then(|live| live.release.clone());
        let Some(release) = release.filter(|release| release.revision == undo.from) else {
            // Something else is in force by now: it is looked up again.
            return;
        };
        let outcome = match past {
            Ok(past) => self.go_back(undo, &release, &past),
            Err(why) => OrderOutcome::NothingDone(OrderObstacle::UnavailableRevision(why.into())),
        };
        let answer = AnsweredOrder { outcome, by: undo.by.clone() };
        self.record_order_answer(undo.source, &undo.token, &undo.id, answer);
    }

    fn go_back(&mut self, undo: &UndoRequest, shown: &ContentRef, past: &OlderRevision) -> OrderOutcome {
        let (id, to) = (&undo.id, &past.revision);
        let wanted = |id: &ObjectId| self.desired_hash(undo.source, id);
        let Some(target) = past.contents.get(id) else {
            return OrderOutcome::NothingDone(OrderObstacle::Lacking(id.clone(), to.clone()));
        };
        if target.has_hash(shown.hash) {
            return OrderOutcome::NothingDone(OrderObstacle::Unchanged(id.clone(), to.clone()));
        }
        if wanted(id) == Some(target.hash) {
            return OrderOutcome::NothingDone(OrderObstacle::Desired(id.clone(), to.clone()));
        }
        // The revision does not show that an object was absent then: it may be older than its
        // manifest. So one that it lacks stays, and nothing is deleted.
        let member = |id: &ObjectId| {
            let good = past.contents.get(id)?;
            let good = ContentRef { hash: good.hash, revision: past.revision.clone() };
            let rollback_target = RollbackTarget::Content(good);
            Some((id.clone(), UnitMember { content: wanted(id), rollback_target, restarted: None }))
        };
        let unit = ReleaseUnit {
            inventory_id: self.sources.inventory_ids()[undo.source].clone(),
            revision: undo.from.clone(),
            members: undo.objects.iter().filter_map(member).collect(),
        };
        let kept = undo.objects.iter().filter(|id| !past.contents.contains_key(*id)).cloned().collect();
        let unit = self.reject_for_undo(undo.source, id, &undo.by, unit);
        OrderOutcome::Undone(UndoneUnit { unit, target: UndoTarget::Of(to.clone()), kept })
    }
}
