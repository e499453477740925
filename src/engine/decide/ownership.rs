//! The owner of an object: the source that may write it, and who keeps it from being written.

use std::sync::Arc;

use crate::engine::decide::action::ApplyPurpose;
use crate::engine::decide::input::DecisionInput;
use crate::engine::facts::entry::SourceId;
use crate::engine::{
    AdoptPolicy, DesiredObject, DesiredState, InventoryHolder, LiveObject, ObjectOwner, OptOutPolicy, Reason,
    ReconcilePolicy,
};

/// Returns why the others do not get what the first of several sources has.
pub(in crate::engine) fn first_source_reason(targets: &[(SourceId, DesiredState)]) -> Arc<str> {
    format!("{}; the first of them applies it", two_sources_reason(targets)).into()
}

pub(super) fn two_sources_reason(targets: &[(SourceId, DesiredState)]) -> Arc<str> {
    let places: Vec<String> = targets.iter().map(|(_, state)| state.origin().to_string()).collect();
    format!("{} sources want it: {}", targets.len(), places.join(" and ")).into()
}

/// Returns why nothing at all is done about an object, absent or there, that asks for that.
///
/// As Flux reads it: the manifest's word counts, and that of somebody else on the object, where the
/// source allows it.
pub(in crate::engine) fn left_alone_reason(
    desired: &DesiredObject,
    live: Option<&LiveObject>,
    opt_out: OptOutPolicy,
) -> Option<Reason> {
    match (desired.traits.reconcile, live) {
        (ReconcilePolicy::OnlyCreate, Some(_)) => Some(Reason::LeftAlone(ReconcilePolicy::OnlyCreate)),
        (ReconcilePolicy::Disabled, _) => Some(Reason::LeftAlone(ReconcilePolicy::Disabled)),
        (_, Some(live)) if opt_out == OptOutPolicy::Allowed => live.opt_out.map(Reason::OptedOut),
        _ => None,
    }
}

/// Returns an ApplySet in words, where nobody knows its source. Its id says nothing to people, but
/// its parent can be found by it.
pub(in crate::engine) fn apply_set(set: &str) -> Arc<str> {
    let find = format!("kubectl get configmaps,secrets -A -l applyset.kubernetes.io/id={set}");
    format!("the ApplySet {set}: `{find}` finds its parent").into()
}

/// Returns a source that would let go of an object, were it taken over.
pub(super) fn released_source_reason(name: &str) -> Arc<str> {
    format!("source {name}, which no longer wants it and keeps it, as adopt is `never` here").into()
}

/// Decides if we may write to it: as its owner (none), or by taking it over.
pub(super) fn decide_ownership(
    input: &DecisionInput<'_>,
    source: SourceId,
    live: &LiveObject,
) -> Result<Option<ApplyPurpose>, Reason> {
    let mine = &input.inventories[source];
    let adopted = |owner: Arc<str>| match input.adopt {
        AdoptPolicy::Always => Ok(Some(ApplyPurpose::Adopt)),
        AdoptPolicy::Never | AdoptPolicy::IfUnowned => Err(Reason::Owned(owner)),
    };
    match &live.owner {
        ObjectOwner::Ours(set) if set == mine => Ok(None),
        _ if is_ours_all_the_same(input, live) => Ok(None),
        ObjectOwner::Controlled(owner) => Err(Reason::Owned(owner.clone())),
        ObjectOwner::Ours(_) if input.holder == InventoryHolder::Unread => Err(Reason::ReadingPeers),
        ObjectOwner::Ours(set) => match (&input.holder, input.adopt) {
            (InventoryHolder::Releases(name), AdoptPolicy::Never) => {
                Err(Reason::Owned(released_source_reason(name)))
            }
            (InventoryHolder::Releases(_), _) => Ok(Some(ApplyPurpose::Transfer)),
            (InventoryHolder::Keeps(name), AdoptPolicy::Never | AdoptPolicy::IfUnowned) => {
                Err(Reason::Owned(format!("source {name}").into()))
            }
            _ => adopted(apply_set(set)),
        },
        ObjectOwner::Labelled(set) => adopted(apply_set(set)),
        ObjectOwner::Foreign(owner) => adopted(owner.clone()),
        ObjectOwner::Nobody => match input.adopt {
            AdoptPolicy::Never => Err(Reason::NotAdopted),
            AdoptPolicy::IfUnowned | AdoptPolicy::Always => Ok(Some(ApplyPurpose::Adopt)),
        },
    }
}

/// Returns the source in whose inventory it is, or was before its label was touched.
pub(super) fn owner(input: &DecisionInput<'_>, live: &LiveObject) -> Option<SourceId> {
    let wanting = input.entry.targets.first().map(|(source, _)| *source);
    match &live.owner {
        _ if is_ours_all_the_same(input, live) => wanting,
        ObjectOwner::Ours(set) => input.inventories.iter().position(|one| one == set).map(SourceId::new),
        _ => None,
    }
}

/// Returns whether marks that say otherwise are drift: the seal proves that we wrote the object, or
/// this process remembers it.
///
/// Another owner's mark says the same as an annotation that takes an object out of our hands, and
/// has no effect where that has none. The label of another inventory that is sealed for it is valid
/// there by right.
pub(super) fn is_ours_all_the_same(input: &DecisionInput<'_>, live: &LiveObject) -> bool {
    let is_known = input.entry.accepted.content().is_some() && live.our_fields.is_some();
    let was_ours = !live.is_unproven() || is_known || input.entry.is_remembered(live);
    match &live.owner {
        ObjectOwner::Nobody | ObjectOwner::Labelled(_) => was_ours,
        ObjectOwner::Controlled(_) | ObjectOwner::Foreign(_) => {
            was_ours && input.opt_out == OptOutPolicy::Denied
        }
        ObjectOwner::Ours(set) => {
            live.is_unproven() && input.entry.is_remembered(live) && !input.inventories.contains(set)
        }
    }
}
