//! The questions of a plan beside its own objects: the owners of objects in its way, and the kinds
//! that are certainly absent.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use crate::cluster::{Cluster, ClusterError, inventory_id_of};
use crate::engine::{Decision, Engine, Input, PrunePolicy, Reason};
use crate::object::{GroupKind, ObjectId};

/// Marks kinds as absent that discovery does not list, where the server proves it. Definitions in
/// the source itself count as present; a source that prunes nothing need not know.
///
/// # Errors
///
/// The API server cannot be reached. Any other failure proves nothing.
pub(super) async fn prove_absent(
    cluster: &Cluster,
    engine: &mut Engine,
    mut missing: BTreeSet<GroupKind>,
) -> Result<(), ClusterError> {
    missing.retain(|kind| !engine.view().has_definition(kind));
    if missing.is_empty()
        || engine.view().sources().iter().all(|source| source.declared.prune != PrunePolicy::On)
    {
        return Ok(());
    }
    match cluster.find_absent_kinds(&missing).await {
        Ok(absent) => {
            for kind in absent {
                engine.handle(Input::KindAbsent(kind), Instant::now());
            }
        }
        Err(error) if error.is_unreachable() => return Err(error),
        Err(error) => tracing::debug!("it cannot be found out whether a kind is gone: {error}"),
    }
    Ok(())
}

/// Decides again about what belongs to others, once it is known what those are called. Where that
/// cannot be read the reason goes on naming the id of their inventory.
pub(super) async fn decide_foreign_objects(
    cluster: &Cluster,
    namespace: &str,
    engine: &mut Engine,
    decisions: &mut BTreeMap<ObjectId, Decision>,
) {
    let is_owned = |decision: &Decision| matches!(decision.reason, Some(Reason::Owned(_)));
    let owned = decisions.iter().filter(|(_, decision)| is_owned(decision));
    let owned: Vec<ObjectId> = owned.map(|(id, _)| id.clone()).collect();
    if owned.is_empty() {
        return;
    }
    let Ok(inventories) = cluster.read_inventories(namespace).await else { return };
    let name = |name: &String| (inventory_id_of(namespace, name).into(), name.as_str().into());
    let names = inventories.iter().map(|(source, _)| name(source)).collect();
    engine.handle(Input::SourceNames(names), Instant::now());
    for id in owned {
        let decision = engine.decide(&id, Instant::now());
        decisions.insert(id, decision);
    }
}
