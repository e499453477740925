//! The informer groups: sources may act as accounts of their own, and see different parts of the
//! cluster.
//!
//! Each informer group has its own informers. The objects that one of them shows, and its progress
//! with a kind, say nothing about what another one may see. So one account without a right delays
//! nothing but its own sources.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine::facts::entry::{ObjectEntry, SourceId};
use crate::engine::facts::kinds::KindState;
use crate::engine::facts::watch_fault::WatchFault;
use crate::engine::state::Engine;
use crate::object::{ErrorClass, GroupKind, ObjectId};

/// Number of an informer group in its engine.
pub(crate) type InformerGroupId = usize;

/// The informer group that there always is: rhumb by its own account, over the whole cluster.
pub(crate) const OWN_INFORMER_GROUP: InformerGroupId = 0;

/// The state of a kind that an informer group does not watch.
static OUTSIDE_STATE: KindState =
    KindState::Unobservable(WatchFault::OutsideNamespaces, ErrorClass::Forbidden);

/// Objects of one kind that are listed and watched together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WatchScope {
    /// The informer group.
    pub informer_group: InformerGroupId,
    /// The kind.
    pub kind: GroupKind,
    /// The namespace; none for the whole cluster.
    pub namespace: Option<Arc<str>>,
}

impl WatchScope {
    /// Returns an informer group's list of the whole cluster.
    pub fn cluster_wide(informer_group: InformerGroupId, kind: &GroupKind) -> Self {
        Self { informer_group, kind: kind.clone(), namespace: None }
    }
}

impl From<&GroupKind> for WatchScope {
    fn from(kind: &GroupKind) -> Self {
        Self::cluster_wide(OWN_INFORMER_GROUP, kind)
    }
}

impl From<&WatchScope> for WatchScope {
    fn from(listing: &WatchScope) -> Self {
        listing.clone()
    }
}

/// The progress of one informer group.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
struct InformerGroupState {
    /// The namespaces that it watches; none for all.
    namespaces: Option<BTreeSet<Arc<str>>>,
    /// The kinds that it lists in the whole cluster, and those that nobody can list.
    cluster_wide: HashMap<GroupKind, KindState>,
    /// The kinds that it lists namespace by namespace.
    parts: BTreeMap<Arc<str>, HashMap<GroupKind, KindState>>,
}

impl InformerGroupState {
    fn state_of(&self, kind: &GroupKind, namespace: Option<&str>) -> Option<&KindState> {
        let (Some(namespaces), Some(namespace)) = (&self.namespaces, namespace) else {
            return self.cluster_wide.get(kind);
        };
        if !namespaces.contains(namespace) {
            return Some(&OUTSIDE_STATE);
        }
        self.cluster_wide.get(kind).or_else(|| self.parts.get(namespace)?.get(kind))
    }

    /// Returns the state of a kind in all that it watches: what is not known of one part is not
    /// known of all parts. That one part cannot be listed is no answer as long as another one still
    /// is.
    fn state_in(&self, kind: &GroupKind) -> Option<&KindState> {
        if let Some(state) = self.cluster_wide.get(kind) {
            return Some(state);
        }
        let states = self.namespaces.iter().flatten().map(|name| self.parts.get(name)?.get(kind));
        let rank = |state: Option<&KindState>| match state {
            Some(KindState::Syncing) => 0,
            None => 1,
            Some(KindState::Unobservable(..)) => 2,
            Some(KindState::Synced | KindState::Absent) => 3,
        };
        states.min_by_key(|state| rank(*state))?
    }

    /// Takes a state over; returns whether it is news.
    fn take(&mut self, listing: &WatchScope, state: KindState) -> bool {
        let states = match &listing.namespace {
            Some(name) => {
                // The kind is served again, and listed by namespace.
                self.cluster_wide.remove(&listing.kind);
                self.parts.entry(name.clone()).or_default()
            }
            None => &mut self.cluster_wide,
        };
        if states.get(&listing.kind) == Some(&state) {
            return false;
        }
        states.insert(listing.kind.clone(), state);
        true
    }
}

/// All of them.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct InformerGroupSet {
    all: Vec<InformerGroupState>,
    /// The informer group that shows an object which [`OWN_INFORMER_GROUP`] does not show.
    shown_by: HashMap<ObjectId, InformerGroupId>,
    /// The objects known when a list began, and not shown by it yet.
    relisting: HashMap<WatchScope, HashSet<ObjectId>>,
}

impl Default for InformerGroupSet {
    fn default() -> Self {
        Self { all: vec![InformerGroupState::default()], shown_by: HashMap::new(), relisting: HashMap::new() }
    }
}

impl InformerGroupSet {
    /// Returns the lists that an object may be in, by an informer group.
    fn listings(informer_group: InformerGroupId, id: &ObjectId) -> [WatchScope; 2] {
        let listing = |namespace| WatchScope { informer_group, kind: id.group_kind(), namespace };
        [listing(None), listing(id.namespace().map(Arc::from))]
    }

    /// Strikes an object off what a list has to show; returns whether one that goes on had it.
    fn remove_expected(&mut self, informer_group: InformerGroupId, id: &ObjectId) -> bool {
        if self.relisting.is_empty() {
            return false;
        }
        let mut struck = false;
        for listing in Self::listings(informer_group, id) {
            struck |= self.relisting.get_mut(&listing).is_some_and(|unseen| unseen.remove(id));
        }
        struck
    }

    /// Begins a list over what was known of it.
    pub(in crate::engine) fn begin(&mut self, listing: &WatchScope, known: HashSet<ObjectId>) {
        self.relisting.insert(listing.clone(), known);
    }

    /// Ends a list; returns what it has not shown.
    pub(in crate::engine) fn end(&mut self, listing: &WatchScope) -> HashSet<ObjectId> {
        self.relisting.remove(listing).unwrap_or_default()
    }

    /// Returns who shows an object that is shown.
    pub(in crate::engine) fn observer_of(&self, id: &ObjectId) -> InformerGroupId {
        self.shown_by.get(id).copied().unwrap_or(OWN_INFORMER_GROUP)
    }

    /// Notes that an informer group shows an object from now on.
    pub(in crate::engine) fn set_observer(&mut self, informer_group: InformerGroupId, id: &ObjectId) {
        let before = self.observer_of(id);
        if before == informer_group {
            return;
        }
        // Else the end of its list would take away what another one shows.
        self.remove_expected(before, id);
        match informer_group {
            OWN_INFORMER_GROUP => self.shown_by.remove(id),
            other => self.shown_by.insert(id.clone(), other),
        };
    }

    /// Returns whether an object is in a list, as far as its namespace and kind show.
    pub(in crate::engine) fn is_in(listing: &WatchScope, id: &ObjectId) -> bool {
        let here = listing.namespace.as_deref().is_none_or(|name| id.namespace() == Some(name));
        here && id.group_kind() == listing.kind
    }
}

impl Engine {
    /// Does the same as [`Engine::add_informer_group`], as a part of that call.
    pub(in crate::engine) fn insert_informer_group(
        &mut self,
        namespaces: Option<BTreeSet<Arc<str>>>,
    ) -> InformerGroupId {
        let all = &mut self.kinds.informer_groups.all;
        all.push(InformerGroupState { namespaces, ..InformerGroupState::default() });
        all.len() - 1
    }

    /// Takes over how an informer is doing. One that had synced and fails keeps what it showed.
    pub(in crate::engine) fn set_informer_state(&mut self, listing: impl Into<WatchScope>, state: KindState) {
        let listing = listing.into();
        let known = self.kinds.informer_groups.all.get_mut(listing.informer_group);
        if known.is_some_and(|informer_group| informer_group.take(&listing, state)) {
            self.mark_changed_kinds();
        }
    }

    /// Records that the server does not have a kind: nobody can be shown an object of it.
    pub(in crate::engine) fn set_kind_absent(&mut self, kind: &GroupKind) {
        for informer_group in 0..self.kinds.informer_groups.all.len() {
            self.set_informer_state(WatchScope::cluster_wide(informer_group, kind), KindState::Absent);
        }
    }

    /// Returns whether the informers of a source watch a namespace.
    pub(in crate::engine) fn is_watching(&self, source: SourceId, namespace: &str) -> bool {
        let informer_group = self.kinds.informer_groups.all.get(self.sources[source].declared.informer_group);
        let namespaces = informer_group.and_then(|informer_group| informer_group.namespaces.as_ref());
        namespaces.is_none_or(|names| names.contains(namespace))
    }

    /// Notes that a list has begun, where nothing is known of it.
    pub(in crate::engine) fn begin_listing(&mut self, listing: &WatchScope) {
        if let Some(informer_group) = self.kinds.informer_groups.all.get_mut(listing.informer_group)
            && informer_group.state_of(&listing.kind, listing.namespace.as_deref()).is_none()
        {
            informer_group.take(listing, KindState::Syncing);
        }
    }

    /// Returns the informer group of an object: that of the source that wants it, else the one that
    /// shows it. Else it is that of the source that brought its content. None where there is none of
    /// these.
    pub(in crate::engine) fn watcher_of(&self, id: &ObjectId) -> Option<InformerGroupId> {
        if self.kinds.informer_groups.all.len() == 1 {
            return Some(OWN_INFORMER_GROUP);
        }
        let entry = self.objects.entries.get(id);
        let wanting = entry.and_then(|entry| entry.targets.first()).map(|(source, _)| *source);
        let shown = || {
            self.objects.informer_objects.contains_key(id).then(|| self.kinds.informer_groups.observer_of(id))
        };
        let brought = || entry.and_then(|entry| entry.accepted_source());
        let of = |source: SourceId| self.sources[source].declared.informer_group;
        wanting.map(of).or_else(shown).or_else(|| brought().map(of))
    }

    /// Returns the source with whose rights an object is read and written. That is the one that
    /// wants it, else the one that has it, else the one that brought its content.
    pub(in crate::engine) fn acting_source(&self, id: &ObjectId) -> Option<SourceId> {
        let entry = self.objects.entries.get(id);
        let wanting = entry.and_then(|entry| entry.targets.first()).map(|(source, _)| *source);
        let having = || self.live_object(id).and_then(|live| self.source_of(live));
        wanting.or_else(having).or_else(|| entry?.accepted_source())
    }

    /// Returns whether not all sources are watched by the same one.
    pub(in crate::engine) fn has_several_informer_groups(&self) -> bool {
        self.kinds.informer_groups.all.len() > 1
    }

    /// Returns how far the informer of an object has got.
    pub(in crate::engine) fn listing_state(&self, id: &ObjectId) -> Option<&KindState> {
        let (kind, namespace) = (id.group_kind(), id.namespace());
        if let Some(informer_group) = self.watcher_of(id) {
            return self.kinds.informer_groups.all.get(informer_group)?.state_of(&kind, namespace);
        }
        // Nobody wants it, and nobody shows it: whoever still lists may come upon it.
        let states = self
            .kinds
            .informer_groups
            .all
            .iter()
            .filter_map(|informer_group| informer_group.state_of(&kind, namespace));
        let rank = |state: &&KindState| match state {
            KindState::Syncing => 0,
            KindState::Synced | KindState::Absent => 1,
            KindState::Unobservable(..) => 2,
        };
        states.min_by_key(rank)
    }

    /// Returns how far the informers of a source have got with a kind.
    pub(in crate::engine) fn kind_state(&self, source: SourceId, kind: &GroupKind) -> Option<&KindState> {
        self.kinds.informer_groups.all.get(self.sources[source].declared.informer_group)?.state_in(kind)
    }

    /// Returns whether an informer has listed everything.
    pub(in crate::engine) fn is_listed(&self, listing: &WatchScope) -> bool {
        let informer_group = self.kinds.informer_groups.all.get(listing.informer_group);
        let state = informer_group.and_then(|it| it.state_of(&listing.kind, listing.namespace.as_deref()));
        matches!(state, Some(KindState::Synced | KindState::Absent))
    }

    /// Returns whether the informers of a source have not listed all of a kind yet, and nothing is
    /// known to be in their way.
    pub(in crate::engine) fn is_syncing(&self, source: SourceId, kind: &GroupKind) -> bool {
        matches!(self.kind_state(source, kind), None | Some(KindState::Syncing))
    }

    /// Returns whether the informers of a source show all that there is of a kind.
    pub(in crate::engine) fn is_synced(&self, source: SourceId, kind: &GroupKind) -> bool {
        matches!(self.kind_state(source, kind), Some(KindState::Synced | KindState::Absent))
    }

    /// Returns whether an object would be shown, were it there and ours.
    pub(in crate::engine) fn is_observable(&self, id: &ObjectId) -> bool {
        matches!(self.listing_state(id), Some(KindState::Synced | KindState::Absent))
    }

    /// Does the same as [`Engine::is_observable`], by one informer group.
    #[cfg(test)]
    pub(in crate::engine) fn is_observable_by(&self, informer_group: InformerGroupId, id: &ObjectId) -> bool {
        let state = self.kinds.informer_groups.all[informer_group].state_of(&id.group_kind(), id.namespace());
        matches!(state, Some(KindState::Synced | KindState::Absent))
    }

    /// Returns whether what a list does not show, and only a lookup or our own write reported, is
    /// no more.
    pub(in crate::engine) fn is_gone_by_list(
        &self,
        listing: &WatchScope,
        id: &ObjectId,
        entry: &ObjectEntry,
    ) -> bool {
        let known = entry.min_resource_version.is_some() || entry.direct_view.is_some();
        known
            && InformerGroupSet::is_in(listing, id)
            && !self.objects.informer_objects.contains_key(id)
            && self.watcher_of(id).is_none_or(|informer_group| informer_group == listing.informer_group)
    }

    /// Returns whether it is another informer group that shows an object.
    pub(in crate::engine) fn is_shown_by_another(
        &self,
        informer_group: InformerGroupId,
        id: &ObjectId,
    ) -> bool {
        self.objects.informer_objects.contains_key(id)
            && self.kinds.informer_groups.observer_of(id) != informer_group
    }

    /// Strikes an object off what an informer group's list has to show; returns whether one that goes
    /// on had it.
    pub(in crate::engine) fn remove_expected(
        &mut self,
        informer_group: InformerGroupId,
        id: &ObjectId,
    ) -> bool {
        self.kinds.informer_groups.remove_expected(informer_group, id)
    }
}
