//! The facts about objects, and the indexes over them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::engine::facts::entry::{AcceptedContent, ObjectEntry};
use crate::engine::facts::release_seal::ReleaseProofs;
use crate::engine::facts::wakes::Wakes;
use crate::engine::{FileFacts, LiveObject};
use crate::object::{GroupKind, ObjectId, Revision};

/// The entry and the live state of each object, with the objects that stand out by them.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct ObjectFacts {
    /// The entries, by object. Boxed: a table of large values keeps nearly as much room free as it
    /// uses.
    pub(in crate::engine) entries: HashMap<ObjectId, Box<ObjectEntry>>,
    /// The live objects that the informers show.
    pub(in crate::engine) informer_objects: HashMap<ObjectId, Box<LiveObject>>,
    /// The objects whose replicas an autoscaler sets; none as long as that is not known.
    autoscaled: Option<HashSet<ObjectId>>,
    /// Objects of ours that no source wants.
    unwanted: BTreeSet<ObjectId>,
    /// Objects whose accepted content has not been read yet.
    unread_accepted: BTreeSet<ObjectId>,
    /// The objects that stand out by what sources want.
    pub(in crate::engine) target_index: TargetIndex,
    /// The number of live objects that each revision brought.
    pub(in crate::engine) live_objects_by_revision: RevisionCounts,
    /// The same of those alone whose seal proves it.
    pub(in crate::engine) proven_objects_by_revision: RevisionCounts,
    /// The keys of the seals, and the objects whose seal none of them proves.
    pub(in crate::engine) proofs: ReleaseProofs,
    /// The objects that wait, and those that are to be decided about again.
    pub(in crate::engine) wakes: Wakes,
}

impl ObjectFacts {
    /// Returns the copy of an identity that the entries have, or this one where they have none. All
    /// that is kept of an object shares it so.
    pub(in crate::engine) fn shared_id(&self, id: &ObjectId) -> ObjectId {
        self.entries.get_key_value(id).map_or(id, |(known, _)| known).clone()
    }

    /// Makes the objects of a file share the identities of the entries.
    pub(in crate::engine) fn share_ids(&self, facts: &mut FileFacts) {
        for desired in &mut facts.objects {
            if let Some((known, _)) = self.entries.get_key_value(&desired.id)
                && let Some(desired) = Arc::get_mut(desired)
            {
                desired.id = known.clone();
            }
        }
    }

    /// Indexes an object again by what sources want of it.
    pub(in crate::engine) fn index_target(&mut self, id: &ObjectId) {
        self.target_index.index(id, self.entries.get(id).map(|entry| &**entry));
    }

    /// Takes over which objects autoscalers target. Returns those of before; none where that was
    /// not known.
    pub(in crate::engine) fn replace_autoscaled(
        &mut self,
        targets: HashSet<ObjectId>,
    ) -> Option<HashSet<ObjectId>> {
        self.autoscaled.replace(targets)
    }

    /// Returns the objects that autoscalers target; none as long as that is not known.
    pub(in crate::engine) fn autoscaled_objects(&self) -> Option<&HashSet<ObjectId>> {
        self.autoscaled.as_ref()
    }

    /// Marks all objects of ours that no source wants.
    pub(in crate::engine) fn mark_unwanted(&mut self) {
        self.wakes.mark_each(self.unwanted.iter().cloned());
    }

    /// Records an object of ours that no source wants.
    pub(in crate::engine) fn note_unwanted(&mut self, id: &ObjectId) {
        self.unwanted.insert(id.clone());
    }

    /// Records an object that a source wants, or that is not ours.
    pub(in crate::engine) fn forget_unwanted(&mut self, id: &ObjectId) {
        self.unwanted.remove(id);
    }

    /// Returns the objects of ours that no source wants.
    pub(in crate::engine) fn unwanted_objects(&self) -> &BTreeSet<ObjectId> {
        &self.unwanted
    }

    /// Keeps the set of objects whose accepted content has not been read.
    pub(in crate::engine) fn track_accepted(&mut self, id: &ObjectId) {
        let accepted = self.entries.get(id).map(|entry| &entry.accepted);
        if matches!(accepted, Some(AcceptedContent::Unread(_))) {
            self.unread_accepted.insert(id.clone());
        } else {
            self.unread_accepted.remove(id);
        }
    }

    /// Returns the objects whose accepted content has not been read.
    pub(in crate::engine) fn unread_accepted_objects(&self) -> &BTreeSet<ObjectId> {
        &self.unread_accepted
    }
}

/// The number of objects of each revision that has any.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct RevisionCounts(HashMap<Revision, u32>);

impl RevisionCounts {
    /// Counts one of these revisions less, and one of those more.
    pub(in crate::engine) fn exchange(&mut self, from: Option<&Revision>, to: Option<Revision>) {
        if let Some(from) = from
            && let Some(count) = self.0.get_mut(from)
        {
            *count -= 1;
            if *count == 0 {
                self.0.remove(from);
            }
        }
        if let Some(to) = to {
            *self.0.entry(to).or_default() += 1;
        }
    }

    /// Returns whether any object is of a revision.
    pub(in crate::engine) fn has(&self, revision: &Revision) -> bool {
        self.0.contains_key(revision)
    }

    /// Returns the revisions of all objects.
    pub(in crate::engine) fn revisions(&self) -> impl Iterator<Item = &Revision> {
        self.0.keys()
    }

    /// Returns the number of objects of each revision, in words.
    #[cfg(test)]
    pub(in crate::engine) fn words(&self) -> Vec<String> {
        self.0.iter().map(|(name, count)| format!("{name} {count}")).collect()
    }
}

/// The objects that stand out by their target contents.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct TargetIndex {
    /// Objects whose desired content depends on others by annotation.
    dependents: BTreeSet<ObjectId>,
    /// The objects that define a kind: several where sources name more than one.
    definitions: HashMap<GroupKind, BTreeSet<ObjectId>>,
    /// Objects that several sources want.
    contested: BTreeSet<ObjectId>,
    /// The namespaces that a source wants, by name: each decision asks for that of its object.
    namespaces: BTreeMap<Box<str>, ObjectId>,
}

impl TargetIndex {
    /// Keeps which object defines a kind, which ones depend on others, which ones several sources
    /// want, and which namespaces are wanted.
    fn index(&mut self, id: &ObjectId, entry: Option<&ObjectEntry>) {
        let content = entry.and_then(ObjectEntry::target_content);
        if let Some(defined) = content.and_then(|(_, desired)| desired.defines.as_deref()) {
            self.definitions.entry(defined.clone()).or_default().insert(id.clone());
        }
        if content.is_some_and(|(_, desired)| !desired.depends_on.is_empty()) {
            self.dependents.insert(id.clone());
        } else {
            self.dependents.remove(id);
        }
        if entry.is_some_and(|entry| entry.targets.len() > 1) {
            self.contested.insert(id.clone());
        } else {
            self.contested.remove(id);
        }
        if id.is("", "Namespace") {
            if entry.is_some_and(|entry| !entry.targets.is_empty()) {
                self.namespaces.insert(id.name().into(), id.clone());
            } else {
                self.namespaces.remove(id.name());
            }
        }
    }

    /// Returns a namespace that a source wants; none where none does.
    pub(in crate::engine) fn wanted_namespace(&self, name: &str) -> Option<&ObjectId> {
        self.namespaces.get(name)
    }

    /// Forgets that an object defines a kind.
    pub(in crate::engine) fn forget_definition(&mut self, kind: &GroupKind, id: &ObjectId) {
        if let Some(named) = self.definitions.get_mut(kind) {
            named.remove(id);
            if named.is_empty() {
                self.definitions.remove(kind);
            }
        }
    }

    /// Returns the objects whose desired content depends on others by annotation.
    pub(in crate::engine) fn dependents(&self) -> &BTreeSet<ObjectId> {
        &self.dependents
    }

    /// Returns the objects that define a kind; none where no source brings one.
    pub(in crate::engine) fn definitions_of(&self, kind: &GroupKind) -> Option<&BTreeSet<ObjectId>> {
        self.definitions.get(kind)
    }

    /// Returns whether several sources want an object.
    pub(in crate::engine) fn is_contested(&self, id: &ObjectId) -> bool {
        self.contested.contains(id)
    }

    /// Returns the objects that several sources want.
    pub(in crate::engine) fn contested_objects(&self) -> &BTreeSet<ObjectId> {
        &self.contested
    }
}
