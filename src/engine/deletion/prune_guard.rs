//! The prune guard: the unwanted objects that may be deleted now, and the reasons for the others.
//!
//! This is the one place that decides about prunes. An object gets here when no source of this
//! process wants it. A source that was not read completely closes the guard, but for
//! [roots](super::unrendered_roots) that do not render. It is in that source's
//! inventory by its label *and* by our own managedFields entry. Only the seal of its release
//! annotation makes it one that may go. The guard always judges the whole pending set: half a set
//! inside the blast radius is not safer than the set.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::engine::facts::causes::lossy_kind::lossy_kind;
use crate::engine::facts::causes::prune_cause::{
    BlockingRoot, ChangeMilestone, DisallowedObject, PruneCause,
};
use crate::engine::facts::prune_decisions::PruneDecision;
use crate::engine::facts::prune_timing::PruneTiming;
use crate::engine::{BlastRadius, SourceLifecycle, Uid, WithheldDeletion};
use crate::object::{GroupKind, ObjectId};

/// One object that is no longer wanted.
#[derive(Clone, Debug)]
pub(crate) struct PruneCandidate {
    /// The object.
    pub id: ObjectId,
    /// Its incarnation.
    pub uid: Uid,
    /// The timing by its annotations.
    pub prune_timing: PruneTiming,
    /// The reason for which its source may not have it, and so not delete it either.
    pub not_allowed: Option<DisallowedObject>,
    /// A root that does not render and may want it.
    pub unrendered: Option<BlockingRoot>,
    /// Indicates whether it only looks like one of this source, without a seal that proves it.
    pub is_unproven: bool,
    /// Indicates whether only what stands on it keeps it, which others may have written. Then it
    /// counts as one that goes: else they would take the guard off the others.
    pub is_kept_by_claim: bool,
    /// A change of the same unit that is not healthy yet.
    pub unfinished: Option<(ObjectId, ChangeMilestone)>,
    /// Another pending object that needs it.
    pub needed_by: Option<ObjectId>,
    /// Another source wants it, or may.
    pub withheld: Option<WithheldDeletion>,
}

impl PruneCandidate {
    /// Returns whether it is not deleted, whatever else becomes of it.
    fn is_kept(&self) -> bool {
        self.prune_timing == PruneTiming::Never || self.is_unproven || self.not_allowed.is_some()
    }
}

/// The facts about the whole source.
#[derive(Clone, Debug)]
pub(crate) struct PruneGuard<'a> {
    /// The decision for all objects where nothing is pruned, for any of the reasons that hold for a
    /// whole source. None where each is judged by itself.
    pub closed: Option<PruneDecision>,
    /// The location that the inventory was made from, where it is not the present one.
    pub other_location: Option<Arc<str>>,
    /// Indicates whether the inventory names all objects that are to be kept.
    pub is_kept_complete: bool,
    /// The number of objects that go at once without a question.
    pub radius: BlastRadius,
    /// The lifecycle of the source. A deletion of the source itself takes all of its objects along.
    pub lifecycle: SourceLifecycle,
    /// Incarnations whose deletion a person has confirmed by name.
    pub confirmed: &'a BTreeSet<Uid>,
    /// The number of objects of each kind in the inventory now, with the pending ones and without
    /// those that have no seal.
    pub inventory: &'a BTreeMap<GroupKind, u32>,
}

/// Judges the whole pending set of one source.
pub(crate) fn decide_prunes(
    pending: &[PruneCandidate],
    guard: &PruneGuard<'_>,
) -> BTreeMap<ObjectId, PruneDecision> {
    let is_counted =
        |p: &&PruneCandidate| (!p.is_kept() || p.is_kept_by_claim) && !guard.confirmed.contains(&p.uid);
    let unconfirmed: Vec<&PruneCandidate> = pending.iter().filter(is_counted).collect();
    let group = unconfirmed_reasons(&unconfirmed, guard);
    let bound = objects_of_kept_users(pending, guard);
    let decisions = pending.iter().map(|p| {
        let decision =
            bound.get(&p.id).map(|user| PruneDecision::Keep(PruneCause::UsedByKept((*user).clone())));
        (p.id.clone(), decision.unwrap_or_else(|| decide_prune(p, guard, group.get(&p.id))))
    });
    decisions.collect()
}

/// Returns the objects that a kept object still uses, each with that user, where the source is
/// deleted. They are kept too, as nobody comes back to them.
fn objects_of_kept_users<'a>(
    pending: &'a [PruneCandidate],
    guard: &PruneGuard<'_>,
) -> BTreeMap<&'a ObjectId, &'a ObjectId> {
    let mut bound = BTreeMap::new();
    if guard.lifecycle == SourceLifecycle::Active {
        return bound;
    }
    let (kept_candidates, others): (Vec<_>, Vec<_>) = pending.iter().partition(|p| p.is_kept());
    let mut used: BTreeMap<&ObjectId, Vec<&ObjectId>> = BTreeMap::new();
    for (id, user) in others.iter().filter_map(|p| Some((&p.id, p.needed_by.as_ref()?))) {
        used.entry(user).or_default().push(id);
    }
    let mut kept: Vec<&ObjectId> = kept_candidates.iter().map(|p| &p.id).collect();
    while let Some(user) = kept.pop() {
        for id in used.remove(user).unwrap_or_default() {
            bound.insert(id, user);
            kept.push(id);
        }
    }
    bound
}

/// Returns the decision about an object that stays whatever the facts about its source are.
pub(in crate::engine) fn decide_without_guard(
    not_allowed: Option<&DisallowedObject>,
    timing: PruneTiming,
) -> Option<PruneDecision> {
    if let Some(why) = not_allowed {
        return Some(PruneDecision::Ignore(PruneCause::NotAllowed(why.clone())));
    }
    (timing == PruneTiming::Never).then_some(PruneDecision::Keep(PruneCause::Annotated))
}

fn decide_prune(
    pending: &PruneCandidate,
    guard: &PruneGuard<'_>,
    beyond: Option<&PruneCause>,
) -> PruneDecision {
    if let Some(decision) = decide_without_guard(pending.not_allowed.as_ref(), pending.prune_timing) {
        return decision;
    }
    if let Some(closed) = &guard.closed {
        return closed.clone();
    }
    if pending.is_unproven {
        return PruneDecision::Keep(PruneCause::Unproven);
    }
    if let Some(why) = &pending.unrendered {
        return PruneDecision::Keep(PruneCause::Unrendered(why.clone()));
    }
    // A confirmation that many are to go does not say that another source may lose them.
    if let Some(WithheldDeletion { cause, is_long: false }) = &pending.withheld {
        return PruneDecision::Defer(PruneCause::WithheldForNow(cause.clone()));
    }
    if let (Some(cause), false) = (beyond, guard.confirmed.contains(&pending.uid)) {
        // A person who confirms has to know that another source may lose it.
        let withheld = pending.withheld.as_ref().map(|of| PruneCause::Withheld(of.cause.clone()));
        return PruneDecision::Confirm(withheld.unwrap_or_else(|| cause.clone()));
    }
    if let (Some((change, milestone)), PruneTiming::AfterUnit | PruneTiming::OnConfirmation) =
        (&pending.unfinished, pending.prune_timing)
    {
        return PruneDecision::Defer(PruneCause::Unfinished(change.clone(), milestone.clone()));
    }
    if let Some(user) = &pending.needed_by {
        return PruneDecision::Defer(PruneCause::UsedBy(user.clone()));
    }
    if let Some(WithheldDeletion { cause, .. }) = &pending.withheld
        && !guard.confirmed.contains(&pending.uid)
    {
        return PruneDecision::Confirm(PruneCause::Withheld(cause.clone()));
    }
    PruneDecision::Delete
}

/// Returns why an unconfirmed object needs a person, for each that does.
fn unconfirmed_reasons(
    unconfirmed: &[&PruneCandidate],
    guard: &PruneGuard<'_>,
) -> BTreeMap<ObjectId, PruneCause> {
    let mut inventory = guard.inventory.clone();
    for pending in unconfirmed.iter().filter(|pending| pending.is_unproven) {
        *inventory.entry(pending.id.group_kind()).or_default() += 1;
    }
    let total: u32 = inventory.values().sum();
    let count = unconfirmed.len() as u32;
    let mut of_kind: BTreeMap<GroupKind, u32> = BTreeMap::new();
    for pending in unconfirmed {
        *of_kind.entry(pending.id.group_kind()).or_default() += 1;
    }
    let mut found = BTreeMap::new();
    for pending in unconfirmed {
        let kind = pending.id.group_kind();
        let all = inventory.get(&kind).copied().unwrap_or(0);
        let cause = if let Some(location) = &guard.other_location {
            Some(PruneCause::OtherLocation(location.clone()))
        } else if let Some(kind) = lossy_kind(&pending.id) {
            Some(PruneCause::DataLoss(kind))
        } else if pending.prune_timing == PruneTiming::OnConfirmation {
            Some(PruneCause::ConfirmationRequested)
        } else if !guard.is_kept_complete {
            Some(PruneCause::UnknownKept)
        } else if guard.lifecycle == SourceLifecycle::Deleting {
            None
        } else if !guard.radius.has_room_for(count, total) {
            Some(PruneCause::BlastRadius { count, total })
        } else if all >= 3 && of_kind.get(&kind) == Some(&all) {
            Some(PruneCause::AllOfKind(kind, all))
        } else {
            None
        };
        if let Some(cause) = cause {
            found.insert(pending.id.clone(), cause);
        }
    }
    found
}
