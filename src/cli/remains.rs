//! What sources have in the cluster and no longer hold, for whoever asks which rights follow from it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::rights::{Conduct, Rights};
use super::session::patiently;
use crate::cluster::{Cluster, Error, Kinds, Lookup, Parent, Selector, applyset_id};
use crate::config::SourceConfig;
use crate::engine::Owner;
use crate::object::{Class, GroupKind, Object, ObjectId};

/// Adds what a source needs for objects that its inventory names, or that carry its label, and that it does not hold.
/// Returns what of the inventory cannot be seen now, in words.
pub(super) async fn add(
    cluster: &Cluster,
    kinds: &Kinds,
    system: &str,
    (source, held): (&SourceConfig, &[Object]),
    rights: &mut Rights,
) -> Result<Vec<String>, Error> {
    let parent = match patiently(|| cluster.parent(system, &source.name)).await {
        // The right to get it is asked about, and told, with all others.
        Err(error) if error.class() == Class::Forbidden => None,
        read => read?,
    };
    let Some(parent) = parent else { return Ok(Vec::new()) };
    let applyset: Arc<str> = applyset_id(system, &source.name).into();
    let look = Look { cluster, kinds, source, held, parent: &parent, applyset };
    let mut unseen = Vec::new();
    for kind in &parent.kinds {
        unseen.extend(look.at(kind, rights).await?);
    }
    Ok(unseen)
}

struct Look<'a> {
    cluster: &'a Cluster,
    kinds: &'a Kinds,
    source: &'a SourceConfig,
    held: &'a [Object],
    parent: &'a Parent,
    applyset: Arc<str>,
}

impl Look<'_> {
    async fn at(&self, kind: &GroupKind, rights: &mut Rights) -> Result<Option<String>, Error> {
        let is_held = self.held.iter().any(|object| object.id.group_kind() == *kind);
        let served = match self.kinds.preferred(kind) {
            Lookup::Served(served) => served,
            Lookup::Unserved { .. } => {
                rights.add_proof_of(kind);
                return Ok(None);
            }
            Lookup::Unknown => {
                let name = &self.source.name;
                let why = "the server of its API group does not answer";
                return Ok(Some(format!(
                    "source {name}: nothing is pruned while {kind} cannot be listed: {why}"
                )));
            }
        };
        if !is_held {
            rights.add_remaining_kind(kind, &served.plural);
        }
        let wanted: BTreeSet<&ObjectId> = self.held.iter().map(|object| &object.id).collect();
        let selector = Selector::PartOf([self.applyset.clone()].into());
        let conduct = Conduct::of(self.source);
        match patiently(|| self.cluster.list(&served, &selector)).await {
            Ok(members) => {
                for (id, live) in &members {
                    if live.owner == Owner::Ours(self.applyset.clone()) && !wanted.contains(id) {
                        rights.add_remaining(conduct, kind, &served.plural, id.namespace());
                    }
                }
            }
            // Where they are is not known, so it is wherever the source has anything.
            Err(error) if error.class() == Class::Forbidden && !is_held => match served.scope {
                crate::cluster::Scope::Cluster => rights.add_remaining(conduct, kind, &served.plural, None),
                crate::cluster::Scope::Namespaced => {
                    for namespace in &self.parent.namespaces {
                        rights.add_remaining(conduct, kind, &served.plural, Some(namespace));
                    }
                }
            },
            Err(error) if error.class() == Class::Forbidden => {}
            Err(error) => return Err(error),
        }
        Ok(None)
    }
}
