//! What a source has, as whoever sees it who may not look at the whole cluster.

use std::sync::Arc;

use crate::cluster::{Cluster, Error, Kind, Parent, Scope, Selector};
use crate::engine::Live;
use crate::object::{Class, ObjectId};

/// Whether a list of the whole cluster was refused that may be granted for some namespaces.
pub(super) fn is_too_wide(error: &Error, kind: &Kind) -> bool {
    error.class() == Class::Forbidden && kind.scope == Scope::Namespaced
}

/// Lists the objects of a kind that an inventory has, in the namespaces that it names: each stands there before the first
/// object in it is written. One that names none may have lost them, so it answers what the list of all was `refused` for.
pub(super) async fn by_namespace(
    cluster: &Cluster,
    kind: &Arc<Kind>,
    (applyset, parent): (&Arc<str>, &Parent),
    refused: Error,
) -> Result<Vec<(ObjectId, Live)>, Error> {
    if parent.namespaces.is_empty() {
        return Err(refused);
    }
    let mut members = Vec::new();
    for namespace in &parent.namespaces {
        let selector = Selector::part_of(&[applyset.clone()].into(), Some(&namespace.as_str().into()));
        members.extend(cluster.list(kind, &selector).await?);
    }
    Ok(members)
}
