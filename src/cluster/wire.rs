//! From the server's JSON text to a compact record, without a tree of the whole object.
//!
//! Decoding is total: only a field that cannot be read is missed, whatever a custom kind puts into
//! its `spec` and `status`. One object that failed would block its whole kind. Other fields are
//! skipped and never copied. Of the values that are ours, a Secret's data among them, only a digest
//! stays.

use crate::object::annotations;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::interner::Interner;
use super::kinds::ServedKind;
use super::{FIELD_MANAGER, controller_progress, owner};
use crate::engine::{
    FieldManager, JobCreator, LiveObject, MetadataMap, ObjectIntents, ReleaseAnnotation, ReplicaStatus,
    ResourceVersion, RolloutOverlayState, TOOL_WORDS, Uid, VolumeClaimRetention,
};
use crate::fields::{self, ValueDigest, ValueSchema};
use crate::graph::LabelSelection;
use crate::health::{self, Health, HealthStatus};
use crate::object::{GroupKind, ObjectId, shorten};

/// The annotations that health and rolling look at.
const STATE_ANNOTATIONS: [&str; 3] = [
    controller_progress::REVISION_ANNOTATION,
    "volume.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/selected-node",
];

/// The longest entry of ours that is kept, in bytes: that of a thousand fields has some 50 KiB.
///
/// Somebody who applies an object under our name may make it longer. Of a longer one nothing counts
/// as ours, so the object is written again, which leaves only what we send in it.
pub(super) const MAX_OUR_FIELDS_BYTES: usize = 256 << 10;

/// The longest reason for the health of an object, in bytes. Somebody who may write its status may
/// write a longer one.
pub(super) const MAX_HEALTH_MESSAGE_BYTES: usize = 1 << 10;

/// The longest group, kind and name of an autoscaler's target, in bytes. Nothing has a longer one.
pub(super) const MAX_TARGET_NAME_BYTES: usize = 253;

/// A decoder of objects for an informer.
pub(super) trait WireDecoder: Clone + Send + Sync + 'static {
    /// The record.
    type Record: Send + 'static;

    /// Reads one object; none where it is none.
    fn decode(&self, text: &str) -> Option<DecodedObject<Self::Record>>;

    /// Forgets shared texts that nobody holds any more.
    fn sweep(&self) {}
}

/// One object as an informer sees it.
pub(super) struct DecodedObject<R> {
    /// The object's identity.
    pub(super) id: ObjectId,
    /// Version of this view.
    pub(super) rv: ResourceVersion,
    /// The record.
    pub(super) record: R,
}

/// Indicates whether the text holds the whole object, or only its metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WireForm {
    /// With spec and status.
    Full,
    /// `PartialObjectMetadata`.
    Metadata,
}

/// The decoder of objects of one kind into [`LiveObject`] records.
#[derive(Clone)]
pub(super) struct LiveDecoder {
    kind: Arc<ServedKind>,
    group_kind: GroupKind,
    interner: Arc<Interner>,
    form: WireForm,
    schema: ValueSchema,
}

impl LiveDecoder {
    /// Returns a decoder for a kind.
    pub(super) fn new(kind: &Arc<ServedKind>, interner: &Arc<Interner>, form: WireForm) -> Self {
        let group_kind = kind.gvk.group_kind();
        let schema = ValueSchema::of(&group_kind);
        Self { kind: kind.clone(), group_kind, interner: interner.clone(), form, schema }
    }
}

impl WireDecoder for LiveDecoder {
    type Record = LiveObject;

    fn decode(&self, text: &str) -> Option<DecodedObject<LiveObject>> {
        let raw: RawObject<'_> = serde_json::from_str(text).ok()?;
        let meta: ObjectMetadata<'_> = lenient_part(raw.metadata);
        let id = meta.id(&self.group_kind, &self.interner)?;
        let rv = ResourceVersion::read(&meta.resource_version.0);
        Some(DecodedObject {
            id,
            rv,
            record: LiveObject {
                value_digest: self.value_digest_of(text, &meta),
                ..self.live(&raw, &meta, rv)
            },
        })
    }

    fn sweep(&self) {
        self.interner.sweep();
    }
}

impl LiveDecoder {
    /// Returns the values behind our entry. They are read into a tree of what is ours, which is
    /// gone with the digest.
    fn value_digest_of(&self, text: &str, meta: &ObjectMetadata<'_>) -> Option<ValueDigest> {
        let ours = meta.managed_fields.iter().find(|entry| entry.is_ours())?;
        match self.form {
            WireForm::Full => fields::value_digest_of_text(text, ours.fields_v1?.get(), self.schema),
            WireForm::Metadata => None,
        }
    }

    fn live(&self, raw: &RawObject<'_>, meta: &ObjectMetadata<'_>, rv: ResourceVersion) -> LiveObject {
        let ours = meta.managed_fields.iter().find(|entry| entry.is_ours());
        let tree = match self.form {
            WireForm::Full => Some(skim_object(raw, meta)),
            WireForm::Metadata => None,
        };
        let health = match &tree {
            Some(tree) => health::of_kind(&self.group_kind, tree),
            None => Health::new(HealthStatus::Unknown, "only its metadata was read"),
        };
        let unproven_release =
            meta.annotations.get(annotations::RELEASE).and_then(|text| self.release_annotation(text));
        // A text that somebody else wrote there says nothing of what we have done.
        let own_annotation = |key| {
            let is_ours = ours.is_some_and(|entry| entry.is_owner_of(&["metadata", "annotations", key]));
            meta.annotations.get(key).filter(|_| is_ours)
        };
        LiveObject {
            uid: Uid((&*meta.uid.0).into()),
            rv,
            generation: meta.generation,
            gvk: self.kind.gvk.clone(),
            owner: owner::of(meta, ours, &self.interner),
            release: None,
            release_serial: 0,
            job_creator: JobCreator::Rhumb,
            unproven_release,
            our_fields: ours
                .and_then(|entry| entry.fields_v1)
                .filter(|fields| fields.get().len() <= MAX_OUR_FIELDS_BYTES)
                .map(|fields| self.interner.text(fields.get())),
            value_digest: None,
            other_managers: self.other_managers(meta),
            replicas_ceded: meta.managed_fields.iter().any(ManagedFieldsText::is_ceding_replicas),
            health: self.shared_health(&health),
            replica_status: tree.as_ref().and_then(|tree| {
                let replica_status = controller_progress::of(&self.group_kind, tree)?;
                let failed_before = ours.is_some_and(|entry| {
                    controller_progress::is_failed_before(&self.group_kind, tree, &entry.time.0)
                });
                Some(ReplicaStatus { failed_before, ..replica_status })
            }),
            overlay: tree.as_ref().map_or(RolloutOverlayState::Plain, |tree| {
                controller_progress::overlay_state(
                    &self.group_kind,
                    tree,
                    meta.annotations.get(annotations::OVERLAY),
                )
            }),
            selects: tree
                .as_ref()
                .filter(|_| self.group_kind.is("", "Service"))
                .and_then(|tree| LabelSelection::of(&ObjectId::new(&self.group_kind, None, ""), tree)),
            config_stamp: own_annotation(annotations::CONFIG)
                .and_then(|text| text.parse().ok())
                .map(Box::new),
            finished: tree.as_ref().is_some_and(|tree| health::is_finished(&self.group_kind, tree)),
            prune_timing: owner::keep(meta, ours),
            intents: ObjectIntents::parse(
                meta.annotations.get(annotations::ORDER),
                meta.annotations.get(annotations::PAUSED),
                meta.annotations.get(annotations::HOLD),
            ),
            sealed_render: None,
            volume_claim_retention: tree.as_ref().map_or(VolumeClaimRetention::Retain, |tree| {
                VolumeClaimRetention::of(&self.group_kind, tree)
            }),
            opt_out: owner::opt_out(meta, ours),
            deleting: !meta.deletion_timestamp.0.is_empty(),
        }
    }

    /// Returns the health with as much of its message as is kept, which objects share.
    fn shared_health(&self, health: &Health) -> Health {
        let message = shorten(&health.message, MAX_HEALTH_MESSAGE_BYTES);
        Health { status: health.status, message: self.interner.text(&message) }
    }

    /// Returns the unproven annotation. The engine has the keys that prove it.
    fn release_annotation(&self, text: &str) -> Option<Box<ReleaseAnnotation>> {
        ReleaseAnnotation::read(text, |revision| self.interner.revision(revision)).map(Box::new)
    }

    fn other_managers(&self, meta: &ObjectMetadata<'_>) -> Arc<[FieldManager]> {
        let mut list: Vec<FieldManager> = meta
            .managed_fields
            .iter()
            .filter(|entry| entry.manager.0 != FIELD_MANAGER)
            .map(|entry| FieldManager {
                name: self.interner.text(&entry.manager.0),
                operation: self.interner.text(&entry.operation.0),
                subresource: self.interner.text(&entry.subresource.0),
            })
            .collect();
        list.sort_unstable();
        list.dedup();
        self.interner.intern_managers(&list)
    }
}

/// Returns the object as far as health and rolling look at it.
fn skim_object(raw: &RawObject<'_>, meta: &ObjectMetadata<'_>) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), json!(meta.name.0));
    metadata.insert("generation".to_owned(), json!(meta.generation));
    for (key, text) in [
        ("namespace", &meta.namespace),
        ("creationTimestamp", &meta.creation_timestamp),
        ("deletionTimestamp", &meta.deletion_timestamp),
    ] {
        if !text.0.is_empty() {
            metadata.insert(key.to_owned(), json!(text.0));
        }
    }
    let kept = |key: &str| Some((key.to_owned(), json!(meta.annotations.get(key)?)));
    let annotations: Map<String, Value> = STATE_ANNOTATIONS.into_iter().filter_map(kept).collect();
    metadata.insert("annotations".to_owned(), Value::Object(annotations));
    let mut tree = Map::new();
    tree.insert("metadata".to_owned(), Value::Object(metadata));
    if raw.spec.is_some() {
        tree.insert("spec".to_owned(), Value::Object(lenient_part::<SpecSubset>(raw.spec).0));
    }
    if raw.status.is_some() {
        tree.insert("status".to_owned(), lenient_part(raw.status));
    }
    Value::Object(tree)
}

/// The scale target of an autoscaler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleTarget {
    /// The workload.
    pub id: ObjectId,
}

/// One `HorizontalPodAutoscaler`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Autoscaler {
    /// The target; none where its reference cannot be read, or names what cannot be.
    pub target: Option<ScaleTarget>,
}

/// The decoder of `HorizontalPodAutoscaler`s.
#[derive(Clone)]
pub(super) struct AutoscalerDecoder {
    group_kind: GroupKind,
    interner: Arc<Interner>,
}

impl AutoscalerDecoder {
    /// Returns a decoder for a kind that has `spec.scaleTargetRef`.
    pub(super) fn new(kind: &ServedKind, interner: &Arc<Interner>) -> Self {
        Self { group_kind: kind.gvk.group_kind(), interner: interner.clone() }
    }
}

/// The decoder of versions alone.
#[derive(Clone)]
pub(super) struct VersionDecoder {
    group_kind: GroupKind,
    interner: Arc<Interner>,
}

impl VersionDecoder {
    /// Returns a decoder for any kind.
    pub(super) fn new(kind: &ServedKind, interner: &Arc<Interner>) -> Self {
        Self { group_kind: kind.gvk.group_kind(), interner: interner.clone() }
    }
}

impl WireDecoder for VersionDecoder {
    type Record = ResourceVersion;

    fn decode(&self, text: &str) -> Option<DecodedObject<ResourceVersion>> {
        let raw: RawObject<'_> = serde_json::from_str(text).ok()?;
        let meta: ObjectMetadata<'_> = lenient_part(raw.metadata);
        let rv = ResourceVersion::read(&meta.resource_version.0);
        Some(DecodedObject { id: meta.id(&self.group_kind, &self.interner)?, rv, record: rv })
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ScalerSpec<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    scale_target_ref: TargetRef<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct TargetRef<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    api_version: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    kind: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    name: WireText<'a>,
}

impl WireDecoder for AutoscalerDecoder {
    type Record = Autoscaler;

    fn decode(&self, text: &str) -> Option<DecodedObject<Autoscaler>> {
        let raw: RawObject<'_> = serde_json::from_str(text).ok()?;
        let meta: ObjectMetadata<'_> = lenient_part(raw.metadata);
        let id = meta.id(&self.group_kind, &self.interner)?;
        let target = lenient_part::<ScalerSpec<'_>>(raw.spec).scale_target_ref;
        let group = target.api_version.0.split_once('/').map_or("", |(group, _)| group);
        let is_bounded =
            [group, &*target.kind.0, &*target.name.0].iter().all(|text| text.len() <= MAX_TARGET_NAME_BYTES);
        let known = is_bounded && !target.kind.0.is_empty() && !target.name.0.is_empty();
        let target = known.then(|| ScaleTarget {
            id: ObjectId::new(&GroupKind::new(group, &target.kind.0), id.namespace(), &target.name.0),
        });
        Some(DecodedObject {
            rv: ResourceVersion::read(&meta.resource_version.0),
            id,
            record: Autoscaler { target },
        })
    }
}

/// The three parts of an object that are looked at, as text.
#[derive(Deserialize)]
pub(super) struct RawObject<'a> {
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    spec: Option<&'a RawValue>,
    #[serde(borrow, default)]
    status: Option<&'a RawValue>,
}

/// The metadata fields that are read.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ObjectMetadata<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    name: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) namespace: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    uid: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    resource_version: WireText<'a>,
    #[serde(deserialize_with = "lenient")]
    generation: i64,
    #[serde(borrow, deserialize_with = "lenient")]
    creation_timestamp: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    deletion_timestamp: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) labels: WatchedTexts<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) annotations: WatchedTexts<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) owner_references: Vec<OwnerReference<'a>>,
    #[serde(borrow, deserialize_with = "lenient")]
    managed_fields: Vec<ManagedFieldsText<'a>>,
}

impl ObjectMetadata<'_> {
    /// Returns all labels and annotations that are looked at.
    pub(super) fn marks(&self) -> impl Iterator<Item = (MetadataMap, &str, &str)> {
        let labels = self.labels.iter().map(|(key, value)| (MetadataMap::Label, key, value));
        labels.chain(self.annotations.iter().map(|(key, value)| (MetadataMap::Annotation, key, value)))
    }

    fn id(&self, kind: &GroupKind, interner: &Interner) -> Option<ObjectId> {
        let named = !self.name.0.is_empty();
        named.then(|| ObjectId::of(interner.namespaced_kind(kind, &self.namespace.0), &self.name.0))
    }
}

/// One of an object's owners.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct OwnerReference<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) kind: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) name: WireText<'a>,
    #[serde(deserialize_with = "lenient")]
    pub(super) controller: bool,
}

/// One entry of managedFields.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ManagedFieldsText<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    manager: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    operation: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    subresource: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    time: WireText<'a>,
    #[serde(borrow)]
    fields_v1: Option<&'a RawValue>,
}

impl ManagedFieldsText<'_> {
    fn is_ours(&self) -> bool {
        self.manager.0 == FIELD_MANAGER && self.operation.0 == "Apply" && self.subresource.0.is_empty()
    }

    fn is_ceding_replicas(&self) -> bool {
        self.manager.0 != FIELD_MANAGER && self.is_owner_of(&["spec", "replicas"])
    }

    /// Returns whether this entry owns the field behind a chain of keys.
    pub(super) fn is_owner_of(&self, path: &[&str]) -> bool {
        let (Some(entry), Some(last)) = (self.fields_v1, path.last()) else { return false };
        // Most entries do not name it anywhere, which is cheaper to see than to walk.
        entry.get().contains(last) && fields::owns(entry.get(), path)
    }
}

/// The labels or annotations that are looked at; all others are skipped.
#[derive(Default)]
pub(super) struct WatchedTexts<'a>(Vec<(&'static str, WireText<'a>)>);

impl WatchedTexts<'_> {
    /// Returns the value of one of them.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, value)| &*value.0)
    }

    fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(key, value)| (*key, &*value.0))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for WatchedTexts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WatchedTextsVisitor;
        impl<'de> Visitor<'de> for WatchedTextsVisitor {
            type Value = WatchedTexts<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WatchedTexts<'de>, A::Error> {
                let mut marks = Vec::new();
                while let Some(key) = map.next_key::<WireText<'de>>()? {
                    let known = [
                        annotations::RELEASE,
                        annotations::OVERLAY,
                        annotations::CONFIG,
                        annotations::GENERATED,
                        annotations::ORDER,
                        annotations::PAUSED,
                        annotations::HOLD,
                        annotations::PRUNE,
                        annotations::RECONCILE,
                    ];
                    let known = known.iter().chain(&STATE_ANNOTATIONS).chain(&owner::OWNER_MARKS);
                    let words = TOOL_WORDS.iter().map(|word| &word.key);
                    match known.chain(words).find(|known| **known == key.0) {
                        Some(known) => {
                            let value = map.next_value::<&'de RawValue>()?;
                            marks.extend(serde_json::from_str(value.get()).ok().map(|text| (*known, text)));
                        }
                        None => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(WatchedTexts(marks))
            }
        }
        deserializer.deserialize_map(WatchedTextsVisitor)
    }
}

/// The part of a Service's spec that names its pods.
const SELECTOR_KEY: &str = "selector";

/// The parts of a spec that health, rolling and the switch of a Service look at.
#[derive(Default)]
struct SpecSubset(Map<String, Value>);

impl<'de> Deserialize<'de> for SpecSubset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SpecSubsetVisitor;
        impl<'de> Visitor<'de> for SpecSubsetVisitor {
            type Value = SpecSubset;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SpecSubset, A::Error> {
                let mut kept = Map::new();
                while let Some(key) = map.next_key::<WireText<'de>>()? {
                    let key_of = |keys: &[&str]| keys.contains(&&*key.0);
                    let is_kept = key_of(&health::HEALTH_SPEC_KEYS)
                        || key_of(&controller_progress::SPEC_KEYS)
                        || *key.0 == *SELECTOR_KEY;
                    if is_kept {
                        kept.insert(
                            key.0.into_owned(),
                            lenient_part(Some(map.next_value::<&'de RawValue>()?)),
                        );
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(SpecSubset(kept))
            }
        }
        deserializer.deserialize_map(SpecSubsetVisitor)
    }
}

/// A text, borrowed where it holds no escapes.
#[derive(Default)]
pub(super) struct WireText<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for WireText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WireTextVisitor;
        impl<'de> Visitor<'de> for WireTextVisitor {
            type Value = WireText<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<WireText<'de>, E> {
                Ok(WireText(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<WireText<'de>, E> {
                Ok(WireText(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(WireTextVisitor)
    }
}

/// Reads a field of any JSON type; what does not fit is the default.
pub(super) fn lenient<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(lenient_part(Some(<&'de RawValue>::deserialize(deserializer)?)))
}

/// Reads a part of any JSON type; what does not fit is the default.
pub(super) fn lenient_part<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> T {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}
