//! The objects and sources that a command names, as the cluster shows them.

use crate::object::annotations;
use std::sync::Arc;

use serde_json::Value;

use super::object_argument::ObjectArgument;
use super::{CommandError, cluster_status, session};
use crate::cluster::{Cluster, InventoryObject, KindLookup, KindTable, ServedKind, inventory_id_of};
use crate::config::Config;
use crate::engine::ContentRef;
use crate::object::{ErrorClass, ObjectId, PART_OF, annotation_text, text_at};

/// A cluster, and the names that a command looks up there.
pub(super) struct ClusterSession {
    pub(super) cluster: Cluster,
    pub(super) kinds: KindTable,
    /// The namespace of the inventories.
    pub(super) inventory_namespace: String,
    /// The namespace of objects that name none.
    namespace: String,
    /// The source of the objects, for users who may not list all sources.
    source_hint: Option<String>,
}

/// One managed object with its source.
pub(super) struct ManagedObject {
    pub(super) id: ObjectId,
    pub(super) kind: Arc<ServedKind>,
    pub(super) object: Value,
    pub(super) source: String,
    pub(super) inventory: InventoryObject,
}

impl ManagedObject {
    /// Returns an annotation, empty where there is none.
    pub(super) fn annotation_value(&self, key: &str) -> &str {
        annotation_text(&self.object, key)
    }

    /// Returns the release in force.
    pub(super) fn content_ref(&self) -> Option<ContentRef> {
        ContentRef::parse(self.annotation_value(annotations::RELEASE))
    }
}

impl ClusterSession {
    /// Connects, and asks what the server has. Objects that name no namespace are looked for in
    /// this one, else in that of the context.
    pub(super) async fn open(config: &Config, namespace: Option<&str>) -> Result<Self, CommandError> {
        let cluster = session::connect(config).await?;
        let kinds = cluster.discover().await?;
        let namespace = namespace.unwrap_or_else(|| cluster.default_namespace()).to_owned();
        Ok(Self {
            kinds,
            inventory_namespace: config.namespace.clone(),
            namespace,
            source_hint: None,
            cluster,
        })
    }

    /// Names the source of an object, for users who may not list all sources.
    pub(super) fn with_source_hint(self, source_hint: Option<String>) -> Self {
        Self { source_hint, ..self }
    }

    /// Returns the sources that an object may be of.
    pub(super) async fn candidate_sources(&self) -> Result<Vec<(String, InventoryObject)>, CommandError> {
        match (self.cluster.list_inventories(&self.inventory_namespace).await, &self.source_hint) {
            (Err(error), Some(source)) if error.class() == ErrorClass::Forbidden => {
                Ok(vec![(source.clone(), self.read_inventory(source).await?)])
            }
            (Err(error), None) if error.class() == ErrorClass::Forbidden => Err(CommandError::from(error)
                .hint("without the right to list all sources, name the source of the object: --source NAME")),
            (inventories, _) => Ok(inventories?),
        }
    }

    /// Returns the kind that a word means, with or without its group, in the singular or the
    /// plural.
    fn kind(&self, word: &str) -> Result<Arc<ServedKind>, CommandError> {
        let served = |group_kind| match self.kinds.preferred_kind(group_kind) {
            KindLookup::Served(kind) => Some(kind),
            KindLookup::Unserved { .. } | KindLookup::Unknown => None,
        };
        let (plain, group) = word.split_once('.').map_or((word, None), |(kind, group)| (kind, Some(group)));
        let is_match = |kind: &Arc<ServedKind>| {
            let named = kind.gvk.kind.eq_ignore_ascii_case(plain) || &*kind.plural == plain;
            named && group.is_none_or(|group| *kind.gvk.group == *group)
        };
        let mut found: Vec<Arc<ServedKind>> =
            self.kinds.scopes().filter_map(|(kind, _)| served(kind)).filter(is_match).collect();
        found.sort_by_key(|kind| kind.gvk.group.len());
        match &found[..] {
            [] => Err(CommandError::usage_error(format!("the server has no kind {word}"))
                .hint("`kubectl api-resources` lists them")),
            // The core's own kinds need no group.
            [only] => Ok(only.clone()),
            [core, ..] if core.gvk.group.is_empty() => Ok(core.clone()),
            [..] => Err(CommandError::usage_error(format!("{word} is a kind of more than one group"))
                .hint("write its group behind it: certificate.cert-manager.io")),
        }
    }

    /// Returns the object that a name means, and its kind.
    pub(super) fn resolve_name(
        &self,
        name: &ObjectArgument,
    ) -> Result<(Arc<ServedKind>, ObjectId), CommandError> {
        let kind = self.kind(&name.kind)?;
        let namespace = match kind.scope {
            crate::cluster::ServedScope::Cluster => None,
            crate::cluster::ServedScope::Namespaced => {
                Some(name.namespace.as_deref().unwrap_or(&self.namespace))
            }
        };
        let id = ObjectId::new(&kind.gvk.group_kind(), namespace, &name.name);
        Ok((kind, id))
    }

    /// Looks up an object by its name, and the source that manages it.
    pub(super) async fn find_object(&self, name: &ObjectArgument) -> Result<ManagedObject, CommandError> {
        let (kind, id) = self.resolve_name(name)?;
        let Some(object) = self.cluster.get(&kind, &id).await? else {
            return Err(CommandError::new(ErrorClass::Config, format!("there is no {id}"))
                .hint("name its namespace with -n, or before it: shop/deployment.apps/web"));
        };
        let applyset_id = text_at(&object, &["metadata", "labels", PART_OF]);
        let mut inventories = self.candidate_sources().await?;
        let applyset_ids: Vec<Arc<str>> = inventories
            .iter()
            .map(|(name, _)| inventory_id_of(&self.inventory_namespace, name).into())
            .collect();
        let labelled = applyset_ids.iter().position(|one| **one == *applyset_id);
        // Somebody may have taken the label off.
        let live = self.cluster.decode_view(&kind, &object).filter(|_| applyset_id.is_empty());
        let found = match (labelled, &live) {
            (None, Some(live)) => cluster_status::source_by_seal(self, &id, live, &applyset_ids).await,
            _ => labelled,
        };
        let inventory = found.map(|found| inventories.swap_remove(found));
        let Some((source, inventory)) = inventory else {
            let message =
                format!("{id} is in no source whose ConfigMap is in namespace {}", self.inventory_namespace);
            return Err(CommandError::new(ErrorClass::Config, message).hint(
                "only what rhumb manages takes its orders; name another namespace with --system-namespace",
            ));
        };
        Ok(ManagedObject { id, kind, object, source, inventory })
    }

    /// Reads the inventory of a source.
    pub(super) async fn read_inventory(&self, source: &str) -> Result<InventoryObject, CommandError> {
        self.cluster.read_inventory(&self.inventory_namespace, source).await?.ok_or_else(|| {
            let message =
                format!("there is no source {source}: no ConfigMap {}/{source}", self.inventory_namespace);
            CommandError::new(ErrorClass::Config, message)
        })
    }
}
