//! The records of the sources, and the commands that mend them.

use super::{CheckLevel, CheckReport, retry_when_throttled};
use crate::cluster::{Cluster, InventoryObject, KindLookup, KindTable};
use crate::daemon::UnreadableRecords;
use crate::engine::unserved_kind_reason;

/// Reports records of sources that cannot be read, and kinds in them that no server has, each with
/// what mends it. The right to read them is asked about with all others.
pub(super) async fn check(cluster: &Cluster, namespace: &str, kinds: &KindTable, report: &mut CheckReport) {
    let read = retry_when_throttled(|| cluster.read_inventories(namespace)).await;
    for (source, inventory) in read.unwrap_or_default() {
        for why in UnreadableRecords::find(&inventory, namespace, &source).into_texts() {
            report.add(CheckLevel::Missing, why);
        }
        for why in find_unserved_kinds(&inventory, namespace, &source, kinds) {
            report.add(CheckLevel::Warning, why);
        }
    }
}

fn find_unserved_kinds(
    inventory: &InventoryObject,
    namespace: &str,
    source: &str,
    kinds: &KindTable,
) -> Vec<String> {
    let is_unserved = |kind: &&_| matches!(kinds.preferred_kind(kind), KindLookup::Unserved { .. });
    let unserved = inventory.kinds.iter().filter(is_unserved);
    let reason = |kind| unserved_kind_reason(namespace, source, &inventory.kinds, kind);
    unserved.map(|kind| format!("ConfigMap {namespace}/{source}: {}", reason(kind))).collect()
}
