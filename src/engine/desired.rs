//! What is known of a wanted object without its body.

use std::sync::Arc;

use serde_json::Value;

use super::effective::effective;
use super::ignore::{IGNORE_FIELDS, Reconcile, asks, without_ignored};
use super::vocabulary::Asks;
use super::{Data, Keep, SourceId, Steps, Strategy, restarts_on_change};
use crate::graph::{self, Labels, Selects};
use crate::object::{GroupKind, Gvk, Hash, Object, ObjectId, Origin, annotation, at, text_at};

/// Where a body is found again: a git blob, and the object's position among the objects of that file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Place {
    /// Number of the source.
    pub source: SourceId,
    /// Git's id of the file's content.
    pub blob: [u8; 20],
    /// Position among the file's objects, from 0.
    pub index: u32,
}

/// What an object's annotations say about how to treat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Traits {
    /// May it be deleted and created again where it cannot be changed?
    pub recreate: Recreate,
    /// Is it a Job that goes away by itself when it has ended?
    pub ends: Ends,
    /// May it be created, changed and repaired?
    pub reconcile: Reconcile,
    /// May it be deleted when no source wants it any more?
    pub keep: Keep,
}

/// Whether an object may be deleted and created again where the API refuses to change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Recreate {
    /// A refusal stands.
    #[default]
    Never,
    /// The object's annotation allows it.
    Allowed,
}

/// Whether an object goes away by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ends {
    /// It stays.
    #[default]
    Never,
    /// A Job with `ttlSecondsAfterFinished`: its absence after its end is not drift.
    AfterFinish,
}

/// What an object has to do with the data that pods use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Configuration {
    /// The data of a `ConfigMap` or Secret.
    Data(Data),
    /// The `ConfigMaps` and Secrets whose change restarts a workload, in order.
    Uses(Box<[ObjectId]>),
}

/// A wanted object without its body, which is read again when it is needed.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// Who.
    pub id: ObjectId,
    /// Its kind in the version that the manifest asks for.
    pub gvk: Gvk,
    /// Hash of the effective content without the fields that it leaves to others.
    pub hash: Hash,
    /// The same without `spec.replicas`; none where the manifest sets none.
    pub ceded: Option<Hash>,
    /// Pods that it asks for; none where the manifest sets no count.
    pub count: Option<u32>,
    /// Hash of what makes the controller of a Deployment, StatefulSet or DaemonSet replace pods.
    pub template: Option<Hash>,
    /// How its controller replaces pods.
    pub strategy: Strategy,
    /// The steps in which it is rolled out.
    pub steps: Option<Box<Steps>>,
    /// Order of release, lower first.
    pub wave: i32,
    /// What it refers to.
    pub needs: Box<[ObjectId]>,
    /// What it selects by labels.
    pub selects: Option<Box<Selects>>,
    /// The labels by which it, or its pods, are selected.
    pub labels: Option<Box<Labels>>,
    /// The data that it holds, or whose change restarts it.
    pub config: Option<Box<Configuration>>,
    /// What must be healthy before it.
    pub after: Box<[ObjectId]>,
    /// The kind that it defines, for a `CustomResourceDefinition`.
    pub defines: Option<Box<GroupKind>>,
    /// What its annotations ask for.
    pub traits: Traits,
    /// The fields that it leaves to others, as its annotation names them.
    pub ignores: Option<Box<str>>,
    /// Where people find it.
    pub origin: Origin,
    /// Where its body is found.
    pub place: Place,
}

/// Annotations for the order of release; Argo CD's word is read as well.
const WAVE: [&str; 2] = ["rhumb.dev/wave", "argocd.argoproj.io/sync-wave"];

impl Desired {
    /// Reads off an object what decisions need.
    pub fn of(object: &Object, place: Place, applyset: &str) -> Self {
        let content = effective(object, applyset);
        let ignores = Some(annotation(&content, IGNORE_FIELDS)).filter(|text| !text.is_empty());
        let ignores = ignores.map(Box::from);
        let needs = graph::references(&object.id, &content).into_iter().collect();
        let content = if ignores.is_some() { without_ignored(content) } else { content };
        let template = at(&content, &["spec", "template"]).filter(|_| is_workload(&object.id));
        let template = template.map(|template| rolled(template, &content));
        Self {
            id: object.id.clone(),
            gvk: object.gvk.clone(),
            hash: Hash::of(&content),
            ceded: without_replicas(&object.id, &content).map(|content| Hash::of(&content)),
            count: count(&object.id, &content),
            template,
            strategy: Strategy::of(&object.id.group_kind(), &content),
            steps: Some(&content).filter(|_| is_workload(&object.id)).and_then(Steps::of).map(Box::new),
            wave: wave(&content),
            selects: Selects::of(&object.id, &content),
            labels: Labels::of(&object.id, &content),
            needs,
            config: configuration(object, &content).map(Box::new),
            after: graph::depends_on(&object.id, &content).into_iter().collect(),
            defines: defines(&object.id, &content).map(Box::new),
            // Also where a word of it is left to others.
            traits: traits(&object.id, &object.body),
            ignores,
            origin: object.origin.clone(),
            place,
        }
    }

    /// Whether a release hash means this content, in either form of `spec.replicas`.
    pub fn is_release(&self, hash: Hash) -> bool {
        self.hash == hash || self.ceded == Some(hash)
    }
}

/// Data of which somebody else may own a part are not those of the manifest.
fn configuration(object: &Object, content: &Value) -> Option<Configuration> {
    let id = &object.id;
    if id.is("", "ConfigMap") || id.is("", "Secret") {
        let whole = annotation(content, IGNORE_FIELDS).is_empty();
        return whole.then(|| Configuration::Data(Data::of(id, content)));
    }
    let uses = graph::configuration(id, content);
    let asks = is_workload(id) && restarts_on_change(content) && !uses.is_empty();
    asks.then(|| Configuration::Uses(uses.into_iter().collect()))
}

/// Whether its controller replaces pods by rolling updates.
pub fn is_workload(id: &ObjectId) -> bool {
    id.group() == "apps" && matches!(id.kind(), "Deployment" | "StatefulSet" | "DaemonSet")
}

/// The hash of all that makes a controller replace pods: the template, and what holds a rollout or lets it go.
fn rolled(template: &Value, content: &Value) -> Hash {
    let held = [
        &["spec", "paused"][..],
        &["spec", "updateStrategy", "type"],
        &["spec", "updateStrategy", "rollingUpdate", "partition"],
        &["spec", "ordinals", "start"],
    ];
    let held: Vec<Value> = held.iter().map(|path| at(content, path).cloned().unwrap_or_default()).collect();
    if held.iter().all(Value::is_null) {
        Hash::of(template)
    } else {
        Hash::of(&serde_json::json!([template, held]))
    }
}

/// Whether a content sets a count of replicas, which an autoscaler may own.
pub fn sets_count(id: &ObjectId, content: &Value) -> bool {
    id.kind() != "DaemonSet" && at(content, &["spec", "replicas"]).is_some_and(|count| !count.is_null())
}

fn count(id: &ObjectId, content: &Value) -> Option<u32> {
    let count = at(content, &["spec", "replicas"]).filter(|_| sets_count(id, content))?.as_u64()?;
    Some(u32::try_from(count).unwrap_or(u32::MAX))
}

fn without_replicas(id: &ObjectId, content: &Value) -> Option<Value> {
    Some(content).filter(|content| sets_count(id, content))?;
    let mut content = content.clone();
    content.get_mut("spec")?.as_object_mut()?.remove("replicas");
    Some(content)
}

fn defines(id: &ObjectId, content: &Value) -> Option<GroupKind> {
    let kind = text_at(content, &["spec", "names", "kind"]);
    id.is("apiextensions.k8s.io", "CustomResourceDefinition")
        .then(|| GroupKind::new(text_at(content, &["spec", "group"]), kind))
}

pub(super) fn wave(content: &Value) -> i32 {
    WAVE.iter().find_map(|key| annotation(content, key).trim().parse().ok()).unwrap_or(0)
}

fn traits(id: &ObjectId, content: &Value) -> Traits {
    let asks = asks(content);
    Traits { recreate: recreation(asks), ends: ends(id, content), reconcile: asks.reconcile, keep: asks.keep }
}

fn recreation(asks: Asks) -> Recreate {
    if asks.recreates { Recreate::Allowed } else { Recreate::Never }
}

/// Whether a content may be deleted and created again, as its annotations say.
pub fn recreates(content: &Value) -> Recreate {
    recreation(asks(content))
}

fn ends(id: &ObjectId, content: &Value) -> Ends {
    let by_itself = at(content, &["spec", "ttlSecondsAfterFinished"]).is_some();
    if id.is("batch", "Job") && by_itself { Ends::AfterFinish } else { Ends::Never }
}

/// A wanted object, shared between the catalog of its source and its entry.
pub type Shared = Arc<Desired>;
