//! The statements of sources to each other, in their inventories.

use std::sync::Arc;
use std::time::Instant;

use super::inventory::InventoryWriteMode;
use super::unreadable_records;
use crate::cluster::{Cluster, ClusterError, InventoryObject, inventory_id_of};
use crate::engine::{
    Engine, HashCiphers, Input, PeerSource, SourceId, SourceProgress, SourceStatement, UnknownStatement, View,
};
use crate::object::{ObjectId, Revision};
use crate::source::LastReadRevision;

/// Data key with what a source says to the others.
pub(super) const STATEMENT_KEY: &str = "handover";

/// Data key with the newest revision, where that was not read completely.
pub(super) const INCOMPLETE_REVISION_KEY: &str = "incomplete-revision";

/// Returns the statement in an inventory; none where it is missing or unreadable.
fn read_statement(inventory: Option<&InventoryObject>) -> Option<SourceStatement> {
    SourceStatement::parse(inventory?.data.get(STATEMENT_KEY)?).ok()
}

/// Returns the revision that was read last, completely or not, as an inventory records it.
pub(super) fn last_read_revision(inventory: &InventoryObject) -> Option<LastReadRevision> {
    let SourceProgress::Revision { repository, read } = read_statement(Some(inventory))?.progress else {
        return None;
    };
    let revision = incomplete_revision(inventory, &repository, read.as_ref()).or(read)?;
    Some(LastReadRevision { repository, revision })
}

/// Returns the newest revision that an inventory records, where that was not read completely. One
/// that was recorded beside another complete revision is out of date.
fn incomplete_revision(
    inventory: &InventoryObject,
    repository: &str,
    read: Option<&Revision>,
) -> Option<Revision> {
    let text = recorded_incomplete(Some(inventory))?;
    let newest = Revision::new(text.split_once(' ')?.0);
    (text == incomplete_text(&newest, repository, read)).then_some(newest)
}

fn recorded_incomplete(inventory: Option<&InventoryObject>) -> Option<&str> {
    inventory?.data.get(INCOMPLETE_REVISION_KEY).map(String::as_str)
}

/// Writes a revision that was not read completely, and the newest one that was.
fn incomplete_text(newest: &Revision, repository: &str, read: Option<&Revision>) -> String {
    format!("{newest} {} {repository}", read.map_or("-", Revision::as_str))
}

/// Returns the text about a newest revision that was not read completely, for an inventory that has
/// this one. That stays as long as this process has read nothing.
fn wanted_incomplete(
    progress: &SourceProgress,
    newest: Option<&Revision>,
    known: Option<&str>,
) -> Option<String> {
    let SourceProgress::Revision { repository, read } = progress else { return None };
    let Some(newest) = newest else { return known.map(str::to_owned) };
    (read.as_ref() != Some(newest)).then(|| incomplete_text(newest, repository, read.as_ref()))
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
    let (kept, rejections) = (inventory.kept_objects(), inventory.rejections(&HashCiphers::default()));
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
    let (statement, known) = (read_statement(inventory), recorded_incomplete(inventory));
    let newest = engine.source(source).head.as_ref();
    engine.statement(source, statement.as_ref()).is_none_or(|wanted| {
        wanted_incomplete(&wanted.progress, newest, known).as_deref() == known && statement == Some(wanted)
    })
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
        let newest = engine.view().source(source).head.as_ref();
        match wanted_incomplete(&statement.progress, newest, recorded_incomplete(known)) {
            Some(text) => drop(wanted.data.insert(INCOMPLETE_REVISION_KEY.to_owned(), text)),
            None => drop(wanted.data.remove(INCOMPLETE_REVISION_KEY)),
        }
        wanted.requests_observation = statement.observation_request.is_some();
        wanted.data.insert(STATEMENT_KEY.to_owned(), statement.text());
    }
}

/// Returns the inventory of a source that nobody serves any more: it wants nothing.
pub(super) fn retire_inventory(inventory: &InventoryObject) -> InventoryObject {
    let mut inventory = inventory.clone();
    inventory.requests_observation = false;
    inventory.data.remove(INCOMPLETE_REVISION_KEY);
    inventory.data.insert(STATEMENT_KEY.to_owned(), SourceStatement::default().text());
    inventory
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPOSITORY: &str = "host/shop HEAD";

    fn progress(read: Option<&str>) -> SourceProgress {
        SourceProgress::Revision { repository: REPOSITORY.into(), read: read.map(Revision::new) }
    }

    fn wanted(read: Option<&str>, newest: Option<&str>, known: Option<&str>) -> Option<String> {
        wanted_incomplete(&progress(read), newest.map(Revision::new).as_ref(), known)
    }

    #[test]
    fn a_newest_revision_is_recorded_where_it_was_not_read_completely() {
        let text = "r2 r1 host/shop HEAD";
        assert_eq!(wanted(Some("r1"), Some("r2"), None).as_deref(), Some(text));
        assert_eq!(wanted(None, Some("r2"), None).as_deref(), Some("r2 - host/shop HEAD"));
        assert_eq!(wanted(Some("r2"), Some("r2"), Some(text)), None);
        // This process has read nothing yet.
        assert_eq!(wanted(Some("r1"), None, Some(text)).as_deref(), Some(text));
        let newest = Revision::new("r2");
        assert_eq!(wanted_incomplete(&SourceProgress::Unversioned, Some(&newest), Some(text)), None);
    }

    #[test]
    fn the_revision_that_was_read_last_may_be_one_that_was_not_read_completely() {
        let check = |read: Option<&str>, incomplete: Option<String>, expected: Option<&str>| {
            let mut inventory = InventoryObject::default();
            let statement = SourceStatement { progress: progress(read), ..SourceStatement::default() };
            inventory.data.insert(STATEMENT_KEY.to_owned(), statement.text());
            inventory.data.extend(incomplete.map(|text| (INCOMPLETE_REVISION_KEY.to_owned(), text)));
            let expected = expected.map(|revision| LastReadRevision {
                repository: REPOSITORY.into(),
                revision: Revision::new(revision),
            });
            assert_eq!(last_read_revision(&inventory), expected, "{:?}", inventory.data);
        };
        check(None, None, None);
        check(Some("r1"), None, Some("r1"));
        check(Some("r1"), wanted(Some("r1"), Some("r2"), None), Some("r2"));
        check(None, wanted(None, Some("r2"), None), Some("r2"));
        // An older version has recorded a complete one since, and has left the text.
        check(Some("r3"), wanted(Some("r1"), Some("r2"), None), Some("r3"));
        check(Some("r1"), Some("r2".to_owned()), Some("r1"));
    }
}
