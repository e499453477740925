//! The owner of an object: the source that may write it, and who keeps it from being written.
//!
//! Where several sources of this process want one object, the one that has it goes on. A source
//! that begins to name an object of another one must not stop that one. Where none of them has the
//! object, none makes it, as its owner would be arbitrary.
//!
//! **Invariant:** an opt-out, an annotation by others on a live object, only reduces what is done
//! to that very object.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use crate::engine::decide::decision::{ApplyPurpose, DecisionInput};
use crate::engine::facts::entry::SourceId;
use crate::engine::state::Engine;
use crate::engine::{
    AdoptPolicy, CurrentOwner, DesiredObject, DesiredState, InventoryHolder, LiveObject, ManifestOrigins,
    ObjectEntry, ObjectOwner, OptOutPolicy, Reason, ReconcilePolicy, WaitTopic,
};
use crate::object::{ObjectId, annotations};

/// The effect of sorting the sources that want an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum OwnerChange {
    /// The source that comes first is the same as before.
    Unchanged,
    /// Another source comes first now.
    Changed,
}

/// Returns the places of all manifests of one object.
pub(super) fn target_places(targets: &[(SourceId, DesiredState)]) -> ManifestOrigins {
    let first = targets.iter().map(|(_, state)| state.origin().clone()).collect();
    ManifestOrigins { first, count: targets.len() }
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

/// Decides if we may write to it: as its owner (none), or by taking it over.
pub(super) fn decide_ownership(
    input: &DecisionInput<'_>,
    source: SourceId,
    live: &LiveObject,
) -> Result<Option<ApplyPurpose>, Reason> {
    let own_inventory = &input.inventories[source];
    let adopted = |owner: CurrentOwner| match input.adopt {
        AdoptPolicy::Always => Ok(Some(ApplyPurpose::Adopt)),
        AdoptPolicy::Never | AdoptPolicy::IfUnowned => Err(Reason::Owned(owner)),
    };
    match &live.owner {
        ObjectOwner::Ours(set) if set == own_inventory => Ok(None),
        _ if is_still_ours(input, live) => Ok(None),
        ObjectOwner::Controlled(owner) => Err(Reason::Owned(CurrentOwner::Tool(owner.clone()))),
        ObjectOwner::Ours(_) if input.holder == InventoryHolder::Unread => Err(Reason::ReadingPeers),
        ObjectOwner::Ours(set) => match (&input.holder, input.adopt) {
            (InventoryHolder::GivesUp(name), AdoptPolicy::Never) => {
                Err(Reason::Owned(CurrentOwner::FormerSource(name.clone())))
            }
            (InventoryHolder::GivesUp(_), _) => Ok(Some(ApplyPurpose::Transfer)),
            (InventoryHolder::Keeps(name), AdoptPolicy::Never | AdoptPolicy::IfUnowned) => {
                Err(Reason::Owned(CurrentOwner::Source(name.clone())))
            }
            _ => adopted(CurrentOwner::ApplySet(set.clone())),
        },
        ObjectOwner::Labelled(set) => adopted(CurrentOwner::ApplySet(set.clone())),
        ObjectOwner::Foreign(owner) => adopted(CurrentOwner::Tool(owner.clone())),
        ObjectOwner::Nobody => match input.adopt {
            AdoptPolicy::Never => Err(Reason::NotAdopted),
            AdoptPolicy::IfUnowned | AdoptPolicy::Always => Ok(Some(ApplyPurpose::Adopt)),
        },
    }
}

/// Returns the source in whose inventory it is, or was before its label was changed.
pub(super) fn owner(input: &DecisionInput<'_>, live: &LiveObject) -> Option<SourceId> {
    let wanting = input.entry.targets.first().map(|(source, _)| *source);
    match &live.owner {
        _ if is_still_ours(input, live) => wanting,
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
pub(super) fn is_still_ours(input: &DecisionInput<'_>, live: &LiveObject) -> bool {
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

/// The other source of this process that an object is decided on for, as seen from one that wants
/// or has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PriorSource {
    /// It has the object, which several sources want at these places.
    Owner(ManifestOrigins),
    /// It has this name and wants the object, which the one that asks does not.
    Wanting(Arc<str>),
}

impl Engine {
    /// Returns the other source of this process that an object is decided on for, as seen from one
    /// that wants or has it. None where it is decided on for that one.
    pub(in crate::engine) fn prior_source(&self, source: SourceId, id: &ObjectId) -> Option<PriorSource> {
        let entry = self.entry(id)?;
        let is_wanted = entry.targets.iter().any(|(one, _)| *one == source);
        if is_wanted {
            let has_it = entry.owner.is_some_and(|owner| owner != source);
            return has_it.then(|| PriorSource::Owner(target_places(&entry.targets)));
        }
        let (other, _) = entry.targets.first()?;
        Some(PriorSource::Wanting(self.sources[*other].declared.name.clone()))
    }

    /// Puts the source first that has an object, of those that want it, and returns whether that is
    /// another one now.
    ///
    /// The label of the live object decides; until a write of ours is seen, the accepted content
    /// does.
    pub(in crate::engine) fn sort_targets_by_owner(&mut self, id: &ObjectId) -> OwnerChange {
        let owner = self.known_owner(id);
        self.prefer_source(id, owner)
    }

    /// Returns the source that has an object, of several that want it.
    pub(super) fn known_owner(&self, id: &ObjectId) -> Option<SourceId> {
        let entry = self.objects.entries.get(id).filter(|entry| entry.targets.len() > 1)?;
        let shown = self.objects.informer_objects.get(id).and_then(|live| self.source_of(live));
        let wants = |source: &SourceId| entry.targets.iter().any(|(wanting, _)| wanting == source);
        shown.filter(wants).or_else(|| entry.accepted_source().filter(wants))
    }

    /// Puts a source first of those that want an object, and returns whether another one was
    /// before.
    pub(super) fn prefer_source(&mut self, id: &ObjectId, owner: Option<SourceId>) -> OwnerChange {
        let Some(entry) = self.objects.entries.get_mut(id) else { return OwnerChange::Unchanged };
        entry.targets.sort_by_key(|(source, _)| (Some(*source) != owner, *source));
        if std::mem::replace(&mut entry.owner, owner) == owner {
            OwnerChange::Unchanged
        } else {
            OwnerChange::Changed
        }
    }

    /// Gives an object to another source: no wave of the others waits for it.
    pub(in crate::engine) fn change_owner(&mut self, id: &ObjectId) {
        let wants = self.objects.entries.get(id).map(|entry| entry.targets.clone()).unwrap_or_default();
        for (source, state) in wants {
            if let DesiredState::Object(desired) = state
                && self.sources[source].waves.entry(desired.wave).or_default().remove(id)
            {
                self.wake_topic(&WaitTopic::Waves(source));
            }
        }
        self.objects.index_target(id);
        self.track_wave(id);
    }
}

impl Engine {
    /// Says whether a source heeds what others put on its live objects.
    #[cfg(test)]
    pub(in crate::engine) fn set_opt_out(&mut self, source: SourceId, opt_out: OptOutPolicy) {
        self.sources[source].declared.opt_out = opt_out;
    }

    /// Says whether a source takes objects over.
    #[cfg(test)]
    pub(in crate::engine) fn set_adopt(&mut self, source: SourceId, adopt: crate::engine::AdoptPolicy) {
        self.sources[source].declared.adopt = adopt;
    }

    /// Returns the source that wants an object, or that provably has it in its inventory: its
    /// orders and its opt-out policy count.
    pub(in crate::engine) fn source_for(&self, id: &ObjectId) -> Option<SourceId> {
        let wanting = self.entry(id).and_then(|entry: &ObjectEntry| entry.targets.first());
        wanting.map(|(source, _)| *source).or_else(|| self.inventory_source(self.informer_object(id)?))
    }

    /// Returns whether what others put on an object has an effect.
    pub(in crate::engine) fn opt_out_of(&self, id: &ObjectId) -> OptOutPolicy {
        self.source_for(id).map_or(OptOutPolicy::default(), |source| self.sources[source].declared.opt_out)
    }

    /// Returns the objects of a source that somebody asks to leave alone, each with the word that
    /// asks.
    pub(in crate::engine) fn opt_outs(
        &self,
        source: SourceId,
        now: Instant,
    ) -> BTreeMap<ObjectId, &'static str> {
        let by_word = self.orders.opted_out.iter().map(|(id, word)| (id, *word));
        let by_person = self.orders.objects_with_intents.iter().filter_map(|id| {
            let intents = self.intents(id)?;
            let is_denied = self.opt_out_of(id) == OptOutPolicy::Denied;
            if intents.hold.is_some() && (is_denied || self.active_hold(id, now).is_some()) {
                return Some((id, annotations::HOLD));
            }
            intents.paused.is_some().then_some((id, annotations::PAUSED))
        });
        let all = by_person.chain(by_word);
        let own = all.filter(|(id, _)| self.source_for(id) == Some(source));
        own.map(|(id, word)| (id.clone(), word)).collect()
    }
}
