//! The prune guard: which objects that are not wanted any more may be deleted now, and why the others not.
//!
//! This is the one place that decides about deletion. An object gets here only when a source that was read
//! whole does not want it, no other source wants it, and it is in that source's inventory by its label *and*
//! by our own managedFields entry; and only the seal of its release annotation makes it one that may go. What is
//! judged is always the whole pending set: half a set inside the blast radius is not safer than the set.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{BlastRadius, Life, Uid, Withheld};
use crate::object::{GroupKind, ObjectId};

/// One object that is not wanted any more.
#[derive(Clone, Debug)]
pub struct Pending {
    /// Who.
    pub id: ObjectId,
    /// Its incarnation.
    pub uid: Uid,
    /// What its annotations ask for.
    pub keep: Keep,
    /// Why its source may not have it, and so not delete it either.
    pub not_allowed: Option<Arc<str>>,
    /// Why it is not known to be of this source, though it looks like it.
    pub unproven: Option<Arc<str>>,
    /// A change of the same unit that is not healthy yet, in words.
    pub unfinished: Option<Arc<str>>,
    /// Another pending object that needs it.
    pub needed_by: Option<ObjectId>,
    /// Another source wants it, or may.
    pub withheld: Option<Withheld>,
}

impl Pending {
    /// Whether it is not deleted, whatever else becomes of it.
    fn stays(&self) -> bool {
        self.keep == Keep::Asked || self.unproven.is_some() || self.not_allowed.is_some()
    }
}

/// What an object's annotations ask for when it is not wanted any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// It may be pruned, when the other changes of its unit are healthy.
    #[default]
    No,
    /// It is pruned before them, as its annotation asks: it holds what its successor needs, as a host name
    /// or a port.
    First,
    /// It is pruned when a person confirms it, as Argo CD's `Prune=confirm` asks.
    Confirm,
    /// It is not pruned, by `prune: never` or `reconcile: disabled`, in our words or those of other tools.
    Asked,
}

impl Keep {
    /// The one of two under which less is deleted.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        let rank = |keep: Self| match keep {
            Self::No => 0,
            Self::First => 1,
            Self::Confirm => 2,
            Self::Asked => 3,
        };
        if rank(other) > rank(self) { other } else { self }
    }
}

/// What holds for the whole source.
#[derive(Clone, Debug)]
pub struct Guard<'a> {
    /// Why nothing at all is pruned; none when the source prunes and was read whole.
    pub closed: Option<Judgement>,
    /// The place that the inventory was made from, where it is not the present one.
    pub other_place: Option<Arc<str>>,
    /// How many at once without being asked.
    pub radius: BlastRadius,
    /// Whoever deletes the source itself has been asked how many, and with that alone.
    pub life: Life,
    /// Incarnations whose deletion a person has confirmed by name.
    pub confirmed: &'a BTreeSet<Uid>,
    /// How many objects of each kind the inventory has now, the pending ones included.
    pub inventory: &'a BTreeMap<GroupKind, u32>,
}

/// What is decided about one pending object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It may be deleted now.
    Delete,
    /// It stays until something passes by itself.
    Later(Arc<str>),
    /// It stays until a person confirms.
    Confirm(Arc<str>),
    /// It stays.
    Keep(Arc<str>),
    /// It stays, and is not repaired either.
    Leave(Arc<str>),
}

/// Judges the whole pending set of one source.
pub fn judge(pending: &[Pending], guard: &Guard<'_>) -> BTreeMap<ObjectId, Judgement> {
    let kept = |p: &&Pending| !p.stays() && !guard.confirmed.contains(&p.uid);
    let unconfirmed: Vec<&Pending> = pending.iter().filter(kept).collect();
    let group = beyond(&unconfirmed, guard);
    let bound = used_by_kept(pending, guard);
    let judged = pending.iter().map(|p| {
        let kept = bound.get(&p.id).map(|user| format!("{user}, which is kept, uses it"));
        let judgement = kept.map(|why| Judgement::Keep(why.into()));
        (p.id.clone(), judgement.unwrap_or_else(|| one(p, guard, group.get(&p.id))))
    });
    judged.collect()
}

/// Where a source ends, nobody comes back to what waits for something that stays: it stays too.
fn used_by_kept<'a>(pending: &'a [Pending], guard: &Guard<'_>) -> BTreeMap<&'a ObjectId, &'a ObjectId> {
    let mut bound = BTreeMap::new();
    if guard.life == Life::Lives {
        return bound;
    }
    let (asked, others): (Vec<_>, Vec<_>) = pending.iter().partition(|p| p.stays());
    let mut used: BTreeMap<&ObjectId, Vec<&ObjectId>> = BTreeMap::new();
    for (id, user) in others.iter().filter_map(|p| Some((&p.id, p.needed_by.as_ref()?))) {
        used.entry(user).or_default().push(id);
    }
    let mut kept: Vec<&ObjectId> = asked.iter().map(|p| &p.id).collect();
    while let Some(user) = kept.pop() {
        for id in used.remove(user).unwrap_or_default() {
            bound.insert(id, user);
            kept.push(id);
        }
    }
    bound
}

fn one(pending: &Pending, guard: &Guard<'_>, beyond: Option<&Arc<str>>) -> Judgement {
    if let Some(why) = &pending.not_allowed {
        return Judgement::Leave(why.clone());
    }
    if pending.keep == Keep::Asked {
        return Judgement::Keep("not wanted any more; what stands on it asks to keep it".into());
    }
    if let Some(closed) = &guard.closed {
        return closed.clone();
    }
    if let Some(why) = &pending.unproven {
        return Judgement::Keep(why.clone());
    }
    // Who confirms that many are to go has not said that another source may lose them.
    if let Some(Withheld { why, is_long: false }) = &pending.withheld {
        return Judgement::Later(format!("not pruned now: {why}").into());
    }
    if let (Some(why), false) = (beyond, guard.confirmed.contains(&pending.uid)) {
        return Judgement::Confirm(why.clone());
    }
    if let (Some(change), Keep::No | Keep::Confirm) = (&pending.unfinished, pending.keep) {
        return Judgement::Later(format!("pruned when {change}").into());
    }
    if let Some(user) = &pending.needed_by {
        return Judgement::Later(format!("pruned after {user}, which uses it").into());
    }
    if let Some(Withheld { why, .. }) = &pending.withheld
        && !guard.confirmed.contains(&pending.uid)
    {
        return Judgement::Confirm(why.clone());
    }
    Judgement::Delete
}

/// Why an unconfirmed object needs a person, for each that does.
fn beyond(unconfirmed: &[&Pending], guard: &Guard<'_>) -> BTreeMap<ObjectId, Arc<str>> {
    let total: u32 = guard.inventory.values().sum();
    let count = unconfirmed.len() as u32;
    let mut of_kind: BTreeMap<GroupKind, u32> = BTreeMap::new();
    for pending in unconfirmed {
        *of_kind.entry(pending.id.group_kind()).or_default() += 1;
    }
    let mut found = BTreeMap::new();
    for pending in unconfirmed {
        let kind = pending.id.group_kind();
        let all = guard.inventory.get(&kind).copied().unwrap_or(0);
        let why = if let Some(place) = &guard.other_place {
            Some(format!("this inventory was made from {place}; nothing of it is pruned until confirmed"))
        } else if let Some(kind) = precious(&pending.id) {
            Some(format!("{kind} is deleted only when confirmed by name"))
        } else if pending.keep == Keep::Confirm {
            Some("its annotation asks for a confirmation".to_owned())
        } else if guard.life == Life::Ends {
            None
        } else if !guard.radius.allows(count, total) {
            Some(format!("{count} of {total} objects would be pruned at once, beyond the blast radius"))
        } else if all >= 3 && of_kind.get(&kind) == Some(&all) {
            Some(format!("all {all} objects of kind {kind} would be pruned"))
        } else {
            None
        };
        if let Some(why) = why {
            found.insert(pending.id.clone(), why.into());
        }
    }
    found
}

/// Objects whose deletion loses data or takes others along.
pub fn precious(id: &ObjectId) -> Option<&'static str> {
    if id.namespace() == Some("kube-system") {
        return Some("an object in kube-system");
    }
    match (id.group(), id.kind()) {
        ("", "Namespace") => Some("a Namespace"),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Some("a CustomResourceDefinition"),
        ("", "PersistentVolumeClaim") => Some("a PersistentVolumeClaim"),
        ("", "PersistentVolume") => Some("a PersistentVolume"),
        ("apps", "StatefulSet") => Some("a StatefulSet"),
        _ => None,
    }
}
