//! A preview's view of the cluster: the inventory, the source's objects, and the autoscalers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, stream};
use tokio::sync::mpsc;

use super::super::inventory;
use super::super::plan_lookups::prove_absent;
use super::PreviewRun;
use super::early_lists::EarlyInventory;
use crate::cluster::{ClusterError, InformerChange, KindLookup, ListSelector, ServedKind, ServedScope};
use crate::engine::{
    HashCipherStatus, Input, Inventory, KindState, LiveObject, Order, OrderVerb, PrunePolicy, Uid,
    WatchFault, WatchScope, parse_orders,
};
use crate::object::{ErrorClass, GroupKind, Gvk, ObjectId};

/// The time limit for listing the autoscalers.
const SCALER_LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// Lists in flight at once.
pub(super) const CONCURRENT_LISTS: usize = 4;

/// Returns the namespaces in which a kind is listed one by one; none in place of all.
pub(super) fn listed_namespaces<'n>(
    namespaces: Option<&'n BTreeSet<Arc<str>>>,
    kind: &ServedKind,
) -> Vec<Option<&'n Arc<str>>> {
    match (namespaces, kind.scope) {
        (Some(namespaces), ServedScope::Namespaced) => namespaces.iter().map(Some).collect(),
        _ => vec![None],
    }
}

impl PreviewRun {
    /// Lists what is ours, and looks up whether the rest exists.
    pub(super) async fn list(&mut self) -> Result<(), ClusterError> {
        let name = self.engine.view().source(self.source).declared.name.clone();
        let inventory = match self.early_lists.inventory.take() {
            Some(EarlyInventory(inventory)) => inventory,
            None => self.cluster.read_inventory(&self.namespace, &name).await?,
        };
        let mut kinds: BTreeMap<GroupKind, Arc<ServedKind>> = BTreeMap::new();
        if inventory::seal_status(inventory.as_ref(), self.engine.view().seals()) == HashCipherStatus::Locked
        {
            self.read_key().await?;
        }
        let mut known =
            inventory::read(inventory.as_ref(), &self.source_view().location, self.engine.view().seals());
        known.confirmed.extend(self.ordered_deletions(&name, &known).await?);
        known.kinds.retain(|kind| self.engine.view().is_kind_allowed(self.source, kind));
        for group_kind in &known.kinds {
            match self.kinds.preferred_kind(group_kind) {
                KindLookup::Served(kind) => drop(kinds.insert(group_kind.clone(), kind)),
                KindLookup::Unserved { .. } => {
                    let state = KindState::Unobservable(WatchFault::Unlisted, ErrorClass::Source);
                    self.set_informer_state(self.cluster_scope(group_kind), state);
                }
                KindLookup::Unknown => {
                    let state = KindState::Unobservable(WatchFault::GroupUnavailable, ErrorClass::Source);
                    self.set_informer_state(self.cluster_scope(group_kind), state);
                }
            }
        }
        let declared: Vec<(ObjectId, Option<Gvk>)> = self
            .concerned_objects()
            .map(|id| (id.clone(), self.desired_state(id).map(|state| state.gvk().clone())))
            .collect();
        for (id, gvk) in &declared {
            if let Some(KindLookup::Served(kind)) = gvk.as_ref().map(|gvk| self.kinds.get(gvk)) {
                kinds.insert(id.group_kind(), kind);
            } else if let KindLookup::Served(kind) = self.kinds.preferred_kind(&id.group_kind()) {
                kinds.entry(id.group_kind()).or_insert(kind);
            }
        }
        let recorded = Inventory {
            kinds: declared.iter().map(|(id, _)| id.group_kind()).chain(known.kinds.clone()).collect(),
            lacks_location: false,
            ..known
        };
        let unlisted =
            |kind: &&GroupKind| matches!(self.kinds.preferred_kind(kind), KindLookup::Unserved { .. });
        let missing = recorded.kinds.iter().filter(unlisted).cloned().collect();
        self.engine.handle(Input::Inventory { source: self.source, inventory: recorded }, Instant::now());
        prove_absent(&self.cluster, &mut self.engine, missing).await?;
        self.list_kinds(kinds.into_values()).await
    }

    /// Returns the deletions that a pending order confirms, as a pass over this source would take
    /// note of it.
    async fn ordered_deletions(&mut self, name: &str, known: &Inventory) -> Result<Vec<Uid>, ClusterError> {
        if self.engine.view().source(self.source).declared.prune != PrunePolicy::On {
            return Ok(Vec::new());
        }
        let data = match self.cluster.read_orders(&self.namespace, name).await {
            Ok(orders) => orders.map(|orders| orders.data).unwrap_or_default(),
            Err(error) if error.is_unreachable() => return Err(error),
            Err(error) => {
                self.notes.push(format!("it is not known what was confirmed lately: {error}"));
                return Ok(Vec::new());
            }
        };
        let is_new = |order: &Order| known.acknowledged.iter().all(|one| one.token != order.token);
        let confirmed = parse_orders(&data).orders.into_iter().filter(is_new).filter_map(|order| {
            let OrderVerb::Confirm(uids) = order.verb else { return None };
            Some(uids.iter().cloned().collect::<Vec<_>>())
        });
        Ok(confirmed.flatten().collect())
    }

    /// Returns the list of a kind as a whole.
    fn cluster_scope(&self, kind: &GroupKind) -> WatchScope {
        WatchScope::cluster_wide(self.engine.view().source(self.source).declared.informer_group, kind)
    }

    /// Returns the lists of a kind: one, or one for each namespace that the source may use.
    pub(super) fn list_scopes(&self, kind: &ServedKind) -> Vec<WatchScope> {
        let everywhere = self.cluster_scope(&kind.gvk.group_kind());
        let namespaces = listed_namespaces(self.source_view().namespaces.as_ref(), kind);
        let of =
            |namespace: Option<&Arc<str>>| WatchScope { namespace: namespace.cloned(), ..everywhere.clone() };
        namespaces.into_iter().map(of).collect()
    }

    /// Lists the members of these kinds: the server makes several lists at a time.
    async fn list_kinds(&mut self, kinds: impl Iterator<Item = Arc<ServedKind>>) -> Result<(), ClusterError> {
        // Another source's object that this one wants is shown as the loop would see it.
        let sets: BTreeSet<Arc<str>> =
            self.engine.view().sources().iter().map(|source| source.declared.inventory_id.clone()).collect();
        let mut lists = Vec::new();
        for kind in kinds {
            for listing in self.list_scopes(&kind) {
                let selector = ListSelector::members_of(&sets, listing.namespace.as_ref());
                let (acting, kind) = (self.source_view().acting.clone(), kind.clone());
                let early = self.early_lists.take_members(&kind.gvk, listing.namespace.as_ref());
                lists.push(async move {
                    let listed = match early {
                        Some(all) => Ok(all),
                        None => acting.list(&kind, &selector).await,
                    };
                    (listing, listed)
                });
            }
        }
        let mut lists = stream::iter(lists).buffered(CONCURRENT_LISTS);
        while let Some((listing, listed)) = lists.next().await {
            self.take_list(&listing, listed)?;
        }
        Ok(())
    }

    fn take_list(
        &mut self,
        listing: &WatchScope,
        listed: Result<Vec<(ObjectId, LiveObject)>, ClusterError>,
    ) -> Result<(), ClusterError> {
        match listed {
            Ok(all) => {
                let (informer_group, now) = (listing.informer_group, Instant::now());
                self.engine.handle(Input::ListBegun(listing.clone()), now);
                for (id, live) in all {
                    self.engine.handle(Input::Seen { informer_group, id, live }, now);
                }
                self.engine.handle(Input::Listed(listing.clone()), now);
            }
            Err(error) if error.is_unreachable() => return Err(error),
            Err(error) => {
                let state = KindState::Unobservable(error.reason().as_str().into(), error.class());
                self.set_informer_state(listing.clone(), state);
            }
        }
        Ok(())
    }

    /// Tells the engine how a list is doing.
    pub(super) fn set_informer_state(&mut self, listing: WatchScope, state: KindState) {
        self.engine.handle(Input::InformerState { listing, state }, Instant::now());
    }

    pub(super) async fn read_scalers(&mut self) {
        let scaler = Gvk::new("autoscaling", "v2", "HorizontalPodAutoscaler");
        let (true, KindLookup::Served(kind)) = (self.source_view().scalable, self.kinds.get(&scaler)) else {
            return;
        };
        let (to, mut from) = mpsc::channel(64);
        let informer = self.cluster.autoscaler_informer(&kind, to);
        let mut targets = HashMap::new();
        let listed = async {
            while let Some(event) = from.recv().await {
                match event.change {
                    InformerChange::Apply(id, scaler) => drop(targets.insert(id, scaler.target)),
                    InformerChange::InitDone => return true,
                    InformerChange::Failed(..) => return false,
                    InformerChange::Init | InformerChange::Delete(..) | InformerChange::Resumed => {}
                }
            }
            false
        };
        let complete = tokio::time::timeout(SCALER_LIST_TIMEOUT, listed).await.unwrap_or(false);
        drop(informer);
        if !complete {
            tracing::warn!("the autoscalers cannot be listed; replicas that others set are left to them");
            return;
        }
        let targets = targets.into_values().flatten().map(|target| target.id).collect();
        self.engine.handle(Input::Autoscaled(targets), Instant::now());
    }
}
