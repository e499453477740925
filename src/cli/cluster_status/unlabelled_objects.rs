//! Objects whose label somebody took off, so that no list by label shows them.
//!
//! **Invariant:** an annotation of an object is unproven, as others may write it. Only its seal
//! says which source it is of.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::source_objects::is_too_wide;
use super::super::target::ClusterSession;
use super::SourceRecord;
use crate::cluster::{KindLookup, ServedKind};
use crate::engine::LiveObject;
use crate::object::{ObjectId, PART_OF};

/// The objects without a label that carry a release annotation.
#[derive(Default)]
pub(super) struct UnlabelledObjects {
    /// Objects whose seal proves the source, each with its place among the sources.
    pub(super) proven: Vec<(usize, ObjectId, LiveObject)>,
    /// The sentence that a reader has to know of the others.
    pub(super) notes: Vec<String>,
}

/// Returns why an object without its label is not settled.
pub(super) fn reason() -> String {
    format!(
        "somebody took its label {PART_OF} off: a source that wants it puts that back, and none prunes it before"
    )
}

/// Looks for them among the kinds and in the namespaces of the inventories.
pub(super) async fn find(session: &ClusterSession, records: &[SourceRecord]) -> UnlabelledObjects {
    let kinds: BTreeSet<_> = records.iter().flat_map(|source| source.inventory.kinds.iter()).collect();
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    for kind in kinds {
        let KindLookup::Served(served) = session.kinds.preferred_kind(kind) else { continue };
        let of_kind = records.iter().filter(|source| source.inventory.kinds.contains(kind));
        let namespaces = of_kind.flat_map(|source| &source.inventory.namespaces).cloned().collect();
        let is_complete = list(session, &served, &namespaces, &mut found).await;
        if !is_complete {
            notes.push(format!("not all {kind} were looked at for a label that somebody took off"));
        }
    }
    if found.is_empty() {
        return UnlabelledObjects { proven: Vec::new(), notes };
    }
    let key = session.cluster.read_release_key(&session.inventory_namespace).await;
    let mut proven = Vec::new();
    match key {
        Ok(Some(key)) => proven.extend(found.into_iter().filter_map(|(id, live)| {
            let annotation = live.unproven_release.as_deref()?;
            let source = records.iter().position(|source| key.is_proven(&source.inventory_id, &id, annotation))?;
            Some((source, id, live))
        })),
        Ok(None) => {}
        Err(error) => notes.push(format!(
            "whose the objects without a label are that carry a release of rhumb ({} of them) is not known: {error}",
            found.len()
        )),
    }
    UnlabelledObjects { proven, notes }
}

/// Returns the source of one object that was read completely, as its seal proves it.
pub(in crate::cli) async fn source_by_seal(
    session: &ClusterSession,
    id: &ObjectId,
    live: &LiveObject,
    inventory_ids: &[Arc<str>],
) -> Option<usize> {
    let annotation = live.unproven_release.as_deref()?;
    let key = session.cluster.read_release_key(&session.inventory_namespace).await.ok()??;
    inventory_ids.iter().position(|inventory_id| key.is_proven(inventory_id, id, annotation))
}

/// Lists those of one kind, where it may be in these namespaces alone. Returns whether all were
/// listed; a kind that cannot be listed is reported by the list by label.
async fn list(
    session: &ClusterSession,
    kind: &Arc<ServedKind>,
    namespaces: &BTreeSet<String>,
    found: &mut Vec<(ObjectId, LiveObject)>,
) -> bool {
    match session.cluster.list_unlabelled(kind, None).await {
        Ok(list) => {
            found.extend(list.objects);
            list.is_complete
        }
        Err(refused) if is_too_wide(&refused, kind) => {
            let mut is_complete = true;
            for namespace in namespaces {
                if let Ok(list) = session.cluster.list_unlabelled(kind, Some(namespace)).await {
                    found.extend(list.objects);
                    is_complete &= list.is_complete;
                }
            }
            is_complete
        }
        Err(_) => true,
    }
}
