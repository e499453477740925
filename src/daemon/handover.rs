//! The statements of sources to each other, in their inventories.

use std::sync::Arc;
use std::time::Instant;

use super::inventory::{InventoryWriteMode, kept_objects, rejections};
use super::unreadable_records;
use crate::cluster::{Cluster, ClusterError, InventoryObject, inventory_id_of};
use crate::engine::{
    Engine, Input, PeerSource, SourceId, SourceProgress, SourceStatement, UnknownStatement, View,
};
use crate::object::ObjectId;
use crate::source::LastReadRevision;

/// Data key with what a source says to the others.
pub(super) const STATEMENT_KEY: &str = "handover";

/// Returns the statement in an inventory; none where it is missing or unreadable.
fn read_statement(inventory: Option<&InventoryObject>) -> Option<SourceStatement> {
    SourceStatement::parse(inventory?.data.get(STATEMENT_KEY)?).ok()
}

/// Returns the revision that was read completely last, as an inventory records it.
pub(super) fn last_read_revision(inventory: &InventoryObject) -> Option<LastReadRevision> {
    match read_statement(Some(inventory))?.progress {
        SourceProgress::Revision { repository, read } => {
            Some(LastReadRevision { repository, revision: read? })
        }
        SourceProgress::Unversioned => None,
    }
}

/// The takeover requests of other sources, as their inventories record them.
pub(crate) struct OtherRequests(Vec<PeerSource>);

impl OtherRequests {
    /// Reads them of all inventories beside the ones of these sources.
    pub(crate) fn of_other_sources(
        namespace: &str,
        inventories: &[(String, InventoryObject)],
        own: impl Fn(&str) -> bool,
    ) -> Self {
        let others = inventories.iter().filter(|(name, _)| !own(name));
        Self(others.map(|(name, inventory)| peer_of(namespace, name, inventory)).collect())
    }

    /// Returns the first source that requests an object by name.
    pub(crate) fn requester(&self, id: &ObjectId) -> Option<Arc<str>> {
        self.0.iter().find(|peer| peer.is_requesting(id)).map(|peer| peer.name.clone())
    }
}

/// Returns which of the other sources say what cannot be read, in words with what mends it.
pub(super) fn explain_unreadable(namespace: &str, peers: &[PeerSource]) -> Vec<String> {
    let garbled = peers.iter().filter_map(|peer| match &peer.statement {
        Err(UnknownStatement::Unreadable(why)) => {
            Some(unreadable_records::explain_statement(namespace, &peer.name, why))
        }
        Err(UnknownStatement::Unpublished) | Ok(_) => None,
    });
    garbled.collect()
}

/// Returns another source, as its inventory shows it.
fn peer_of(namespace: &str, name: &str, inventory: &InventoryObject) -> PeerSource {
    let statement = match inventory.data.get(STATEMENT_KEY) {
        Some(text) => SourceStatement::parse(text).map_err(UnknownStatement::Unreadable),
        None => Err(UnknownStatement::Unpublished),
    };
    let inventory_id = inventory_id_of(namespace, name).into();
    let (kept, rejections) = (kept_objects(inventory), rejections(inventory));
    PeerSource { name: name.into(), inventory_id, statement, kept, rejections }
}

/// Reads what all sources of the cluster say.
pub(super) async fn read_peers(cluster: &Cluster, namespace: &str) -> Result<Vec<PeerSource>, ClusterError> {
    let inventories = cluster.read_inventories(namespace).await?;
    Ok(inventories.iter().map(|(name, inventory)| peer_of(namespace, name, inventory)).collect())
}

/// Returns whether an inventory says what it should.
pub(super) fn is_recorded(engine: View<'_>, source: SourceId, inventory: Option<&InventoryObject>) -> bool {
    if !engine.can_state(source) {
        return true;
    }
    let statement = read_statement(inventory);
    engine.statement(source, statement.as_ref()).is_none_or(|wanted| statement == Some(wanted))
}

/// Returns whether an inventory requests what it need not request any more. An inventory may have
/// been tidied before the objects of it were seen, and no event reports that they are.
pub(super) fn has_outdated_requests(
    engine: View<'_>,
    source: SourceId,
    inventory: Option<&InventoryObject>,
) -> bool {
    engine.can_state(source)
        && read_statement(inventory).is_some_and(|statement| engine.has_excess_requests(source, &statement))
}

/// Takes over the statement that an inventory had before this process served its source.
pub(super) fn restore_statement(engine: &mut Engine, source: SourceId, inventory: Option<&InventoryObject>) {
    if let Some(statement) = read_statement(inventory) {
        engine.handle(Input::Statement { source, statement }, Instant::now());
    }
}

/// Writes the statement of a source into its inventory. `Exact` also removes what no longer holds.
pub(super) fn record(
    engine: &mut Engine,
    source: SourceId,
    mode: InventoryWriteMode,
    known: Option<&InventoryObject>,
    wanted: &mut InventoryObject,
) {
    if !engine.view().can_state(source) {
        return;
    }
    let statement = read_statement(known);
    let statement = match mode {
        InventoryWriteMode::Grow => engine.view().statement(source, statement.as_ref()),
        InventoryWriteMode::Exact => engine.tidy_statement(source, statement.as_ref()),
    };
    if let Some(statement) = statement {
        wanted.requests_observation = statement.observation_request.is_some();
        wanted.data.insert(STATEMENT_KEY.to_owned(), statement.text());
    }
}

/// Returns the inventory of a source that nobody serves any more: it wants nothing.
pub(super) fn retire_inventory(inventory: &InventoryObject) -> InventoryObject {
    let mut inventory = inventory.clone();
    inventory.requests_observation = false;
    inventory.data.insert(STATEMENT_KEY.to_owned(), SourceStatement::default().text());
    inventory
}
