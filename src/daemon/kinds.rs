//! The kinds in use, their discovery, and an informer for each.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};

use super::cluster_facts::{UnlistedVersions, VERSION_ABSENCE_CONFIRMATION, served_versions};
use super::informer_groups::{InformerGroup, InformerGroups};
use super::loop_event::LoopEvent;
use super::missing_kinds::MissingKinds;
use crate::cluster::{
    Autoscaler, Cluster, ClusterError, EventSink, Informer, InformerChange, InformerEvent, KindLookup,
    KindTable, ServedKind,
};
use crate::engine::{
    Engine, InformerGroupId, Input, KindAvailability, KindState, LiveObject, WatchFault, WatchScope,
};
use crate::manifest::KindScopes;
use crate::object::{ErrorClass, GroupKind, Gvk, ObjectId};
use crate::source::ServedVersions;

/// Discovery is asked again after this time while a kind is missing, doubled up to a minute.
const FIRST_DISCOVERY_BACKOFF: Duration = Duration::from_millis(250);
const MAX_DISCOVERY_RETRY_DELAY: Duration = Duration::from_mins(1);
/// The longest wait before a discovery that failed as a whole is tried again.
const MAX_DISCOVERY_BACKOFF: Duration = Duration::from_secs(10);

/// Kinds, informers and autoscalers.
pub(super) struct KindWatches {
    cluster: Cluster,
    informer_groups: InformerGroups,
    /// The inventories of all sources.
    inventory_ids: BTreeSet<Arc<str>>,
    kinds: Option<KindTable>,
    /// The reason for which discovery has not answered yet.
    failure: Option<ClusterError>,
    wanted: BTreeSet<Gvk>,
    /// The version in which a kind is watched.
    versions: HashMap<GroupKind, Arc<ServedKind>>,
    missing: MissingKinds,
    scalers: Option<Informer>,
    inventories: Option<Informer>,
    /// The inventories of other processes that ask for an observation.
    observation_requests: Option<Informer>,
    orders: Option<Informer>,
    targets: AutoscalerTargets,
    /// The scopes of kinds that the server reports, for those that read manifests.
    served_scopes: watch::Sender<KindScopes>,
    /// The versions that the server reports, for renders.
    served_versions: watch::Sender<Option<Arc<ServedVersions>>>,
    /// The versions among them that its last answer did not list.
    unlisted_versions: UnlistedVersions,
    /// Indicates whether renders depend on them, so that they are asked for again and again.
    version_use: VersionUse,
    retry: Duration,
    next: Option<Instant>,
    /// The channel of the loop, for the events of all informers.
    events: mpsc::Sender<LoopEvent>,
}

impl KindWatches {
    /// Creates the watches, of no kind yet.
    pub(super) fn new(informer_groups: InformerGroups, events: mpsc::Sender<LoopEvent>) -> Self {
        Self {
            cluster: informer_groups.own.clone(),
            inventory_ids: informer_groups.inventory_ids(),
            informer_groups,
            kinds: None,
            failure: None,
            wanted: BTreeSet::new(),
            versions: HashMap::new(),
            missing: MissingKinds::default(),
            scalers: None,
            inventories: None,
            observation_requests: None,
            orders: None,
            targets: AutoscalerTargets::default(),
            served_scopes: watch::Sender::new(kind_scopes(None)),
            served_versions: watch::Sender::default(),
            unlisted_versions: UnlistedVersions::default(),
            version_use: VersionUse::Unused,
            retry: FIRST_DISCOVERY_BACKOFF,
            next: Some(Instant::now()),
            events,
        }
    }

    /// Returns when discovery is to be asked again; the answer comes to
    /// [`KindWatches::set_kinds`].
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.next
    }

    /// Records that discovery is being asked.
    pub(super) fn note_discovery_start(&mut self) {
        self.next = None;
    }

    /// Returns whether the server may have just started: it has not reported its version, or does not
    /// list all that it did.
    pub(super) fn can_be_starting(&self) -> bool {
        let known = self.served_versions.borrow();
        self.unlisted_versions.has_any() || known.as_ref().is_none_or(|versions| versions.server.is_err())
    }

    /// Records a hint that a missing kind may be there now.
    pub(super) fn hint(&mut self) {
        if self.kinds.is_some() && self.is_discovery_needed() {
            self.retry = FIRST_DISCOVERY_BACKOFF;
            self.next = Some(Instant::now());
        }
    }

    /// Records that discovery did not answer.
    pub(super) fn note_discovery_failure(&mut self, error: ClusterError) {
        self.failure = Some(error);
        self.unlisted_versions.restart_confirmation();
        self.retry = self.retry.min(MAX_DISCOVERY_BACKOFF);
        self.retry_discovery();
    }

    /// Returns the kinds that discovery has not listed for so long that the server is asked whether
    /// they are gone.
    pub(super) fn begin_absence_lookup(&mut self) -> BTreeSet<GroupKind> {
        self.missing.begin_absence_lookup(Instant::now())
    }

    /// Returns the kinds that discovery does not list, for a pass that cannot wait and asks at once
    /// whether they are gone. Definitions in the source itself count as present.
    pub(super) fn begin_urgent_question(&mut self, engine: &Engine) -> BTreeSet<GroupKind> {
        self.missing.begin_urgent_question(|kind| engine.view().has_definition(kind))
    }

    /// Returns whether an answer is on its way.
    pub(super) fn is_asking(&self) -> bool {
        self.missing.is_asking()
    }

    /// Records that the question has no answer.
    pub(super) fn note_no_answer(&mut self) {
        self.missing.note_no_answer();
    }

    /// Records kinds that the server certainly does not have.
    pub(super) fn set_absent(&mut self, kinds: BTreeSet<GroupKind>, engine: &mut Engine) {
        for kind in self.missing.set_absent(kinds) {
            tracing::info!(%kind, "the server does not have this kind, and so none of its objects");
            for (number, informer_group) in self.informer_groups.all.iter().enumerate() {
                if informer_group.recorded.contains(&kind) || informer_group.wanted.contains(&kind) {
                    set_state(engine, WatchScope::cluster_wide(number, &kind), KindState::Absent);
                }
            }
        }
    }

    fn retry_discovery(&mut self) {
        self.next = Some(Instant::now() + self.retry);
        self.retry = (self.retry * 2).min(MAX_DISCOVERY_RETRY_DELAY);
    }

    fn has_missing_kinds(&self) -> bool {
        let lacks = |informer_group: &InformerGroup| {
            informer_group
                .recorded
                .iter()
                .any(|kind| !informer_group.is_listing(kind) && !self.missing.is_absent(kind))
        };
        self.informer_groups.all.iter().any(lacks)
            || self.kinds.as_ref().is_none_or(|kinds| {
                self.wanted.iter().any(|gvk| !matches!(kinds.get(gvk), KindLookup::Served(_)))
            })
    }

    /// Takes the answer of discovery.
    pub(super) fn set_kinds(&mut self, kinds: KindTable, engine: &mut Engine) {
        let unlisted = &mut self.unlisted_versions;
        if kinds.server_version().is_err() {
            unlisted.restart_confirmation();
        }
        self.served_versions.send_if_modified(|known| {
            let versions = served_versions(&kinds, known.as_deref());
            let versions = unlisted.add_recent(versions, known.as_deref(), Instant::now());
            let is_news = known.as_deref() != Some(&versions);
            if is_news {
                *known = Some(versions.into());
            }
            is_news
        });
        self.served_scopes.send_replace(kind_scopes(Some(&kinds)));
        self.kinds = Some(kinds);
        self.failure = None;
        self.update(engine);
        if self.is_discovery_needed() {
            self.retry_discovery();
        }
        if self.unlisted_versions.has_any() {
            let confirmation = Instant::now() + VERSION_ABSENCE_CONFIRMATION;
            self.next = self.next.map(|next| next.min(confirmation));
        }
    }

    /// Returns where the objects of each kind live, as far as the server reports it, and each later
    /// answer.
    pub(super) fn served_scopes(&self) -> watch::Receiver<KindScopes> {
        self.served_scopes.subscribe()
    }

    /// Returns the versions that the server reports, and each later answer.
    pub(super) fn served_versions(&self) -> watch::Receiver<Option<Arc<ServedVersions>>> {
        self.served_versions.subscribe()
    }

    /// Asks for the versions again and again from now on: something that is rendered depends on
    /// them.
    pub(super) fn watch_versions(&mut self) {
        self.version_use = VersionUse::Used;
        if self.kinds.is_some() && self.next.is_none() {
            self.retry_discovery();
        }
    }

    fn is_discovery_needed(&self) -> bool {
        self.version_use == VersionUse::Used || self.has_missing_kinds()
    }

    /// Returns why nothing is known of the server's kinds, where discovery has been asked and has
    /// never answered.
    pub(super) fn discovery_error(&self) -> Option<&ClusterError> {
        self.failure.as_ref().filter(|_| self.kinds.is_none())
    }

    /// Returns whether discovery has answered once, and so have the autoscalers where they matter.
    pub(super) fn is_known(&self) -> bool {
        self.kinds.is_some() && (self.scalers.is_none() || self.targets.answered)
    }

    /// Returns a kind in the version in which it is watched. That is a version of the manifests, or
    /// the server's own for a kind that only an inventory has.
    pub(super) fn kind(&self, kind: &GroupKind) -> Option<Arc<ServedKind>> {
        self.versions.get(kind).cloned()
    }

    /// Returns the cluster as whoever watches for a source sees it.
    pub(super) fn cluster_for_informer_group(&self, informer_group: InformerGroupId) -> &Cluster {
        self.informer_groups.cluster(informer_group).unwrap_or(&self.cluster)
    }

    /// Returns a kind of which nothing may be watched, in the server's own version.
    pub(super) fn served_kind(&self, kind: &GroupKind) -> Option<Arc<ServedKind>> {
        match self.kinds.as_ref()?.watched_kind(kind, &self.wanted) {
            KindLookup::Served(kind) => Some(kind),
            KindLookup::Unserved { .. } | KindLookup::Unknown => None,
        }
    }

    /// Returns a kind in exactly this version.
    pub(super) fn served_kind_of_version(&self, gvk: &Gvk) -> Option<Arc<ServedKind>> {
        match self.kinds.as_ref()?.get(gvk) {
            KindLookup::Served(kind) => Some(kind),
            KindLookup::Unserved { .. } | KindLookup::Unknown => None,
        }
    }

    /// Watches these kinds for a source, as its manifests ask for them.
    pub(super) fn request_kinds(
        &mut self,
        informer_group: InformerGroupId,
        gvks: impl IntoIterator<Item = Gvk>,
        engine: &mut Engine,
    ) {
        let mut are_new = false;
        for gvk in gvks {
            if let Some(informer_group) = self.informer_groups.all.get_mut(informer_group) {
                are_new |= informer_group.wanted.insert(gvk.group_kind());
            }
            are_new |= self.wanted.insert(gvk);
        }
        self.update_for(are_new, engine);
    }

    /// Records the kinds that the inventory of a source names.
    pub(super) fn add_recorded(
        &mut self,
        informer_group: InformerGroupId,
        kinds: impl IntoIterator<Item = GroupKind>,
        engine: &mut Engine,
    ) {
        let Some(informer_group) = self.informer_groups.all.get_mut(informer_group) else { return };
        let before = informer_group.recorded.len();
        informer_group.recorded.extend(kinds);
        let are_new = informer_group.recorded.len() != before;
        self.update_for(are_new, engine);
    }

    fn update_for(&mut self, are_new: bool, engine: &mut Engine) {
        if are_new {
            self.update(engine);
            if self.kinds.is_some() && self.has_missing_kinds() && self.next.is_none() {
                self.retry_discovery();
            }
        }
    }

    fn update(&mut self, engine: &mut Engine) {
        let Some(kinds) = self.kinds.clone() else { return };
        for gvk in &self.wanted.clone() {
            let availability = match kinds.get(gvk) {
                KindLookup::Served(_) => KindAvailability::Served,
                KindLookup::Unserved { versions } => KindAvailability::Unserved(
                    versions.iter().map(std::string::ToString::to_string).collect(),
                ),
                KindLookup::Unknown => KindAvailability::Unknown,
            };
            engine.handle(Input::Discovered { gvk: gvk.clone(), availability }, Instant::now());
        }
        for number in 0..self.informer_groups.all.len() {
            self.update_informer_group(number, &kinds, engine);
        }
    }

    fn update_informer_group(&mut self, number: InformerGroupId, kinds: &KindTable, engine: &mut Engine) {
        let Some(informer_group) = self.informer_groups.all.get(number) else { return };
        let (all, recorded) = (informer_group.kinds(), informer_group.recorded.clone());
        // One informer for each kind, in one version, whatever versions the manifests name: two
        // would show every object twice.
        for kind in all {
            let found = kinds.watched_kind(&kind, &self.wanted);
            if !matches!(found, KindLookup::Unserved { .. }) {
                self.missing.remove(&kind);
            }
            let is_listed = self
                .informer_groups
                .all
                .get(number)
                .is_some_and(|informer_group| informer_group.is_listing(&kind));
            let unobservable = |fault: WatchFault| KindState::Unobservable(fault, ErrorClass::Source);
            match found {
                KindLookup::Served(kind) => self.inform(number, &kind, engine),
                // Another source may have found that out.
                KindLookup::Unserved { .. } if self.missing.is_absent(&kind) => {
                    set_state(engine, WatchScope::cluster_wide(number, &kind), KindState::Absent);
                }
                _ if is_listed || !recorded.contains(&kind) => {}
                // A kind that discovery does not list is unknown, not gone: its objects are not
                // touched.
                KindLookup::Unserved { .. } => {
                    self.missing.add(&kind, Instant::now());
                    let listing = WatchScope::cluster_wide(number, &kind);
                    set_state(engine, listing, unobservable(WatchFault::Unlisted));
                }
                KindLookup::Unknown => {
                    let listing = WatchScope::cluster_wide(number, &kind);
                    set_state(engine, listing, unobservable(WatchFault::GroupUnavailable));
                }
            }
        }
    }

    fn inform(&mut self, number: InformerGroupId, kind: &Arc<ServedKind>, engine: &mut Engine) {
        let Some(informer_group) = self.informer_groups.all.get_mut(number) else { return };
        if informer_group.is_listing_version(kind) {
            return;
        }
        self.versions.insert(kind.gvk.group_kind(), kind.clone());
        let mut informers = BTreeMap::new();
        for (listing, selector) in informer_group.list_scopes(number, kind) {
            // It may have been missing until now.
            if !engine.view().is_listed(&listing) || informer_group.informer(&listing).is_none() {
                set_state(engine, listing.clone(), KindState::Syncing);
            }
            let sink = EventSink::new(self.events.clone(), LoopEvent::Informer);
            let informer = informer_group.cluster.informer(kind, selector, number, sink);
            informers.insert(listing.namespace, informer);
        }
        informer_group.keep(kind.clone(), informers);
    }

    /// Watches autoscalers: some workload's manifest sets a count that one of them may change.
    pub(super) fn watch_scalers(&mut self, engine: &mut Engine) {
        let Some(kinds) = &self.kinds else { return };
        if self.scalers.is_some() {
            return;
        }
        match kinds.get(&Gvk::new("autoscaling", "v2", "HorizontalPodAutoscaler")) {
            KindLookup::Served(kind) => {
                let sink = EventSink::new(self.events.clone(), LoopEvent::Autoscaler);
                self.scalers = Some(self.cluster.autoscaler_informer(&kind, sink));
            }
            KindLookup::Unserved { .. } => {
                engine.handle(Input::Autoscaled(HashSet::new()), Instant::now());
            }
            KindLookup::Unknown => {}
        }
    }

    /// Watches the sources' inventories, on which people write.
    pub(super) fn watch_inventories(&mut self, namespace: &str) {
        let config_map = Gvk::new("", "v1", "ConfigMap");
        if let (None, Some(KindLookup::Served(kind))) =
            (&self.inventories, self.kinds.as_ref().map(|kinds| kinds.get(&config_map)))
        {
            let sets = &self.inventory_ids;
            let sink = EventSink::new(self.events.clone(), LoopEvent::InventoryVersion);
            self.inventories = Some(self.cluster.watch_versions(&kind, namespace, sets, sink.clone()));
            self.observation_requests =
                Some(self.cluster.follow_observation_requests(&kind, namespace, sink));
        }
    }

    /// Watches the sources' orders objects, on which people write too.
    pub(super) fn watch_orders(&mut self, namespace: &str) {
        let config_map = Gvk::new("", "v1", "ConfigMap");
        if let (None, Some(KindLookup::Served(kind))) =
            (&self.orders, self.kinds.as_ref().map(|kinds| kinds.get(&config_map)))
        {
            let sets = &self.inventory_ids;
            let sink = EventSink::new(self.events.clone(), LoopEvent::OrdersVersion);
            self.orders = Some(self.cluster.order_versions(&kind, namespace, sets, sink));
        }
    }

    /// Takes over an event of the informer of autoscalers. Returns why it ended, where it did.
    pub(super) fn relay_scaler_event(
        &mut self,
        event: InformerEvent<Autoscaler>,
        engine: &mut Engine,
    ) -> Option<ClusterError> {
        match event.change {
            InformerChange::Failed(error, _) if error.class() == ErrorClass::Internal => return Some(error),
            InformerChange::Failed(ref error, _) => tracing::warn!("autoscalers cannot be watched: {error}"),
            _ => {}
        }
        if let Some(targets) = self.targets.take(event.change) {
            engine.handle(Input::Autoscaled(targets), Instant::now());
        }
        None
    }

    /// Takes over an event of an informer. Returns why the informer ended, where it did.
    pub(super) fn relay_event(
        &mut self,
        event: InformerEvent<LiveObject>,
        engine: &mut Engine,
    ) -> Option<ClusterError> {
        let (informer_group, now) = (event.listing.informer_group, Instant::now());
        match event.change {
            InformerChange::Failed(error, _) if error.class() == ErrorClass::Internal => return Some(error),
            InformerChange::Init => engine.handle(Input::ListBegun(event.listing), now),
            InformerChange::Apply(id, live) => {
                if id.kind() == "CustomResourceDefinition" && live.health.is_current() {
                    self.hint();
                }
                engine.handle(Input::Seen { informer_group, id, live }, now);
            }
            InformerChange::Delete(id, _) => engine.handle(Input::Gone { informer_group, id }, now),
            InformerChange::InitDone => engine.handle(Input::Listed(event.listing), now),
            // The outage may have ended with a restore of older data. The version that the watch
            // went on from then means something else, and what came before it was never reported.
            InformerChange::Resumed => {
                let informer_group = self.informer_groups.all.get(informer_group);
                informer_group
                    .and_then(|informer_group| informer_group.informer(&event.listing))
                    .inspect(|it| it.relist());
            }
            InformerChange::Failed(error, wait) => {
                let (kind, namespace) = (&event.listing.kind, event.listing.namespace.as_deref());
                tracing::warn!(%kind, namespace, ?wait, "the informer failed: {error}");
                // Its earlier view is old at worst, and every write carries the version that it was
                // decided on.
                if !engine.view().is_listed(&event.listing) {
                    let state = KindState::Unobservable(error.reason().as_str().into(), error.class());
                    set_state(engine, event.listing, state);
                }
            }
        }
        None
    }

    /// Lists every kind again, as an audit of what the watches reported.
    pub(super) fn relist_all(&self) {
        let kinds = self.informer_groups.all.iter().flat_map(InformerGroup::informers);
        let own = [&self.scalers, &self.inventories, &self.observation_requests, &self.orders];
        for informer in kinds.chain(own.into_iter().flatten()) {
            informer.relist();
        }
    }

    /// Returns where the objects of each kind live, as far as the server reports it.
    pub(super) fn kind_scopes(&self) -> KindScopes {
        self.served_scopes.borrow().clone()
    }
}

/// Indicates whether renders depend on the versions that the server reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VersionUse {
    Unused,
    Used,
}

/// The scale targets of the autoscalers.
#[derive(Debug, Default)]
struct AutoscalerTargets {
    known: HashMap<ObjectId, ObjectId>,
    /// The autoscalers in the list that goes on.
    listed: Option<HashMap<ObjectId, ObjectId>>,
    complete: bool,
    /// Indicates whether they were listed, or cannot be.
    answered: bool,
}

impl AutoscalerTargets {
    /// Takes news over, and returns all targets where they are known. While a list goes on nobody
    /// has lost his autoscaler: his count would be sent as the manifest has it.
    fn take(&mut self, change: InformerChange<Autoscaler>) -> Option<HashSet<ObjectId>> {
        match change {
            InformerChange::Init => self.listed = Some(HashMap::new()),
            InformerChange::Apply(id, scaler) => {
                for map in self.listed.iter_mut().chain([&mut self.known]) {
                    match &scaler.target {
                        Some(target) => map.insert(id.clone(), target.id.clone()),
                        None => map.remove(&id),
                    };
                }
            }
            InformerChange::Delete(id, _) => {
                for map in self.listed.iter_mut().chain([&mut self.known]) {
                    map.remove(&id);
                }
            }
            InformerChange::InitDone => {
                (self.complete, self.answered) = (true, true);
                if let Some(listed) = self.listed.take() {
                    self.known = listed;
                }
            }
            InformerChange::Resumed => return None,
            InformerChange::Failed(..) => {
                self.answered = true;
                return None;
            }
        }
        self.complete.then(|| self.known.values().cloned().collect())
    }
}

/// Tells the engine how an informer is doing.
fn set_state(engine: &mut Engine, listing: WatchScope, state: KindState) {
    engine.handle(Input::InformerState { listing, state }, Instant::now());
}

/// Returns the scopes of built-in kinds and of those that a server has.
pub(super) fn kind_scopes(kinds: Option<&KindTable>) -> KindScopes {
    let mut scopes = KindScopes::builtin();
    for (kind, scope) in kinds.into_iter().flat_map(KindTable::scopes) {
        scopes.insert(kind.clone(), scope.into());
    }
    scopes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::ScaleTarget;

    fn id(kind: &str, name: &str) -> ObjectId {
        ObjectId::new(&GroupKind::parse(kind), Some("shop"), name)
    }

    #[test]
    fn nobody_loses_his_autoscaler_while_they_are_listed() {
        let scaler = |name| id("HorizontalPodAutoscaler.autoscaling", name);
        let target = |name| id("Deployment.apps", name);
        let seen = |name| {
            InformerChange::Apply(scaler(name), Autoscaler { target: Some(ScaleTarget { id: target(name) }) })
        };
        let both = Some(HashSet::from([target("a"), target("b")]));
        let mut targets = AutoscalerTargets::default();
        for (change, expected) in [
            (InformerChange::Init, None),
            (seen("a"), None),
            (seen("b"), None),
            (InformerChange::InitDone, both.clone()),
            (InformerChange::Init, both.clone()),
            (seen("b"), both),
            (InformerChange::InitDone, Some(HashSet::from([target("b")]))),
            (InformerChange::Delete(scaler("b"), crate::engine::ResourceVersion(1)), Some(HashSet::new())),
        ] {
            let words = format!("{change:?}");
            assert_eq!(targets.take(change), expected, "{words}");
        }
    }
}
