//! A desired object without its body.

use crate::object::annotations;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::facts::effective_content::effective_content;
use crate::engine::facts::generated_mark::GeneratedMark;
use crate::engine::facts::ignore_fields::{ReconcilePolicy, remove_ignored, tool_requests};
use crate::engine::facts::tool_vocabulary::ToolRequests;
use crate::engine::{
    ConfigData, PruneTiming, SourceId, Steps, UpdateStrategy, VolumeClaimRetention, has_restart_on_change,
};
use crate::graph::{self, LabelSelection, SelectableLabels};
use crate::object::{
    ContentHash, GroupKind, Gvk, ManifestOrigin, Object, ObjectId, annotation_text, text_at, value_at,
};

/// The location of a body: a git blob, and the object's position among the objects of that file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BodyLocation {
    /// Number of the source.
    pub source: SourceId,
    /// Git's id of the file's content.
    #[serde(with = "crate::object::serial::digest_form")]
    pub blob: [u8; 20],
    /// Position among the file's objects, from 0.
    pub index: u32,
}

/// The treatment that an object's annotations ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct ObjectPolicies {
    /// May it be deleted and created again where it cannot be changed?
    pub recreate: RecreatePolicy,
    /// Is it a Job that goes away by itself when it has ended?
    pub lifetime: ObjectLifetime,
    /// May it be created, changed and repaired?
    pub reconcile: ReconcilePolicy,
    /// May it be deleted when no source wants it any more?
    pub prune_timing: PruneTiming,
    /// Do its claims stay when it is deleted?
    pub volume_claim_retention: VolumeClaimRetention,
}

/// Indicates whether an object may be deleted and created again where the API refuses to change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum RecreatePolicy {
    /// It is not recreated: the refusal remains.
    #[default]
    Never,
    /// The object's annotation allows it.
    Allowed,
}

/// Indicates whether an object goes away by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum ObjectLifetime {
    /// It does not go away by itself.
    #[default]
    Unlimited,
    /// A Job with `ttlSecondsAfterFinished`: its absence after its end is not drift.
    AfterFinish,
}

/// The role of an object for the data that pods use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ConfigRole {
    /// The data of a `ConfigMap` or Secret.
    Data(ConfigData),
    /// The `ConfigMaps` and Secrets whose change restarts a workload, in order.
    Uses(Box<[ObjectId]>),
}

/// A desired object without its body, which is read again when it is needed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DesiredObject {
    /// The object.
    pub id: ObjectId,
    /// Its kind in the version that the manifest asks for.
    pub gvk: Gvk,
    /// Hash of the effective content without the fields that it leaves to others.
    pub hash: ContentHash,
    /// The same hash without `spec.replicas`; none where the manifest sets none.
    pub hash_without_replicas: Option<ContentHash>,
    /// Pods that it asks for; none where the manifest sets no count.
    pub replicas: Option<u32>,
    /// Hash of what makes the controller of a Deployment, StatefulSet or DaemonSet replace pods.
    pub template: Option<ContentHash>,
    /// The way in which its controller replaces pods.
    pub strategy: UpdateStrategy,
    /// The steps in which it is rolled out.
    pub steps: Option<Box<Steps>>,
    /// Order of release, lower first.
    pub wave: i32,
    /// The objects that it refers to.
    pub needs: Box<[ObjectId]>,
    /// The objects that it selects by labels.
    pub selects: Option<Box<LabelSelection>>,
    /// The labels by which it, or its pods, are selected.
    pub labels: Option<Box<SelectableLabels>>,
    /// The data that it holds, or whose change restarts it.
    pub config: Option<Box<ConfigRole>>,
    /// The objects that must be healthy before it.
    pub depends_on: Box<[ObjectId]>,
    /// The kind that it defines, for a `CustomResourceDefinition`.
    pub defines: Option<Box<GroupKind>>,
    /// The treatment that its annotations ask for.
    pub traits: ObjectPolicies,
    /// The fields that it leaves to others, as its annotation names them.
    pub ignores: Option<Box<str>>,
    /// The render that made up values of it, where one did.
    pub generated: Option<Box<GeneratedMark>>,
    /// The place in a file, for people.
    pub origin: ManifestOrigin,
    /// The location of its body.
    pub body: BodyLocation,
}

/// Annotations for the order of release; Argo CD's word is read as well.
const WAVE_ANNOTATIONS: [&str; 2] = [annotations::WAVE, "argocd.argoproj.io/sync-wave"];

impl DesiredObject {
    /// Reads off an object what decisions need.
    pub(crate) fn of(object: &Object, body: BodyLocation, inventory_id: &str) -> Self {
        let content = effective_content(object, inventory_id);
        let ignores =
            Some(annotation_text(&content, annotations::IGNORE_FIELDS)).filter(|text| !text.is_empty());
        let ignores = ignores.map(Box::from);
        let generated = GeneratedMark::parse(annotation_text(&content, annotations::GENERATED));
        let needs = graph::references(&object.id, &content).into_iter().collect();
        let content = if ignores.is_some() { remove_ignored(content) } else { content };
        let template = value_at(&content, &["spec", "template"]).filter(|_| is_workload(&object.id));
        let template = template.map(|template| rollout_hash(template, &content));
        Self {
            id: object.id.clone(),
            gvk: object.gvk.clone(),
            hash: ContentHash::of(&content),
            replicas: count(&object.id, &content),
            template,
            strategy: UpdateStrategy::of(&object.id.group_kind(), &content),
            steps: Some(&content).filter(|_| is_workload(&object.id)).and_then(Steps::of).map(Box::new),
            wave: wave(&content),
            selects: LabelSelection::of(&object.id, &content),
            labels: SelectableLabels::of(&object.id, &content),
            needs,
            config: config_role(object, &content).map(Box::new),
            depends_on: graph::annotated_dependencies(&object.id, &content).into_iter().collect(),
            defines: defined_kind(&object.id, &content).map(Box::new),
            // Also where a word of it is left to others.
            traits: object_traits(&object.id, &object.body),
            ignores,
            generated: generated.map(Box::new),
            origin: object.origin.clone(),
            body,
            // The last one, as nobody needs the content after it.
            hash_without_replicas: hash_without_replicas(&object.id, content),
        }
    }

    /// Returns whether a release hash means this content, in either form of `spec.replicas`.
    pub(crate) fn has_hash(&self, hash: ContentHash) -> bool {
        self.hash == hash || self.hash_without_replicas == Some(hash)
    }
}

/// Returns the part that an object plays in restarts on configuration. Data with ignored fields
/// play none: somebody else may own a part of them.
fn config_role(object: &Object, content: &Value) -> Option<ConfigRole> {
    let id = &object.id;
    if id.is("", "ConfigMap") || id.is("", "Secret") {
        let ignores_nothing = annotation_text(content, annotations::IGNORE_FIELDS).is_empty();
        return ignores_nothing.then(|| ConfigRole::Data(ConfigData::of(id, content)));
    }
    let uses = graph::configuration(id, content);
    let requests = is_workload(id) && has_restart_on_change(content) && !uses.is_empty();
    requests.then(|| ConfigRole::Uses(uses.into_iter().collect()))
}

/// Returns whether its controller replaces pods by rolling updates.
pub(crate) fn is_workload(id: &ObjectId) -> bool {
    id.group() == "apps" && matches!(id.kind(), "Deployment" | "StatefulSet" | "DaemonSet")
}

/// Returns the hash of all that makes a controller replace pods: the template, and what holds a
/// rollout or lets it go.
fn rollout_hash(template: &Value, content: &Value) -> ContentHash {
    let rollout_fields = [
        &["spec", "paused"][..],
        &["spec", "updateStrategy", "type"],
        &["spec", "updateStrategy", "rollingUpdate", "partition"],
        &["spec", "ordinals", "start"],
    ];
    let rollout_fields: Vec<Value> =
        rollout_fields.iter().map(|path| value_at(content, path).cloned().unwrap_or_default()).collect();
    if rollout_fields.iter().all(Value::is_null) {
        ContentHash::of(template)
    } else {
        ContentHash::of(&serde_json::json!([template, rollout_fields]))
    }
}

/// Returns whether a content sets a count of replicas, which an autoscaler may own.
pub(crate) fn has_replica_count(id: &ObjectId, content: &Value) -> bool {
    id.kind() != "DaemonSet" && value_at(content, &["spec", "replicas"]).is_some_and(|count| !count.is_null())
}

fn count(id: &ObjectId, content: &Value) -> Option<u32> {
    let count =
        value_at(content, &["spec", "replicas"]).filter(|_| has_replica_count(id, content))?.as_u64()?;
    Some(u32::try_from(count).unwrap_or(u32::MAX))
}

fn hash_without_replicas(id: &ObjectId, mut content: Value) -> Option<ContentHash> {
    if !has_replica_count(id, &content) {
        return None;
    }
    content.get_mut("spec")?.as_object_mut()?.remove("replicas");
    Some(ContentHash::of(&content))
}

fn defined_kind(id: &ObjectId, content: &Value) -> Option<GroupKind> {
    let kind = text_at(content, &["spec", "names", "kind"]);
    id.is("apiextensions.k8s.io", "CustomResourceDefinition")
        .then(|| GroupKind::new(text_at(content, &["spec", "group"]), kind))
}

/// Returns the order of release that the annotations of a content ask for, lower first.
pub(crate) fn wave(content: &Value) -> i32 {
    WAVE_ANNOTATIONS.iter().find_map(|key| annotation_text(content, key).trim().parse().ok()).unwrap_or(0)
}

fn object_traits(id: &ObjectId, content: &Value) -> ObjectPolicies {
    let requests = tool_requests(content);
    ObjectPolicies {
        recreate: requested_recreate_policy(requests),
        lifetime: object_lifetime(id, content),
        reconcile: requests.reconcile,
        prune_timing: requests.prune_timing,
        volume_claim_retention: VolumeClaimRetention::of(&id.group_kind(), content),
    }
}

fn requested_recreate_policy(requests: ToolRequests) -> RecreatePolicy {
    if requests.recreates { RecreatePolicy::Allowed } else { RecreatePolicy::Never }
}

/// Returns the policy on deleting and creating a content again, as its annotations say.
pub(crate) fn recreate_policy(content: &Value) -> RecreatePolicy {
    requested_recreate_policy(tool_requests(content))
}

fn object_lifetime(id: &ObjectId, content: &Value) -> ObjectLifetime {
    let by_itself = value_at(content, &["spec", "ttlSecondsAfterFinished"]).is_some();
    if id.is("batch", "Job") && by_itself { ObjectLifetime::AfterFinish } else { ObjectLifetime::Unlimited }
}

/// A desired object, shared between the manifest index of its source and its entry.
pub(crate) type SharedDesiredObject = Arc<DesiredObject>;
