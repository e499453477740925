//! From the server's JSON text to a compact record, without a tree of the whole object.
//!
//! Decoding is total: whatever a custom kind puts into its `spec` and `status`, only the field that
//! cannot be read is missed, because one object that failed would hold up its whole kind. What is not
//! looked at is skipped and never copied. Of the values that are ours, a Secret's data among them, only a digest stays.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::interner::Interner;
use super::kinds::Kind;
use super::{FIELD_MANAGER, owner, rolling};
use crate::engine::{
    Asked, Carrier, HOLD, Live, Manager, ORDER, OVERLAY, PAUSED, PEER_WORDS, PRUNE, RECONCILE, ReleaseClaim,
    Rolling, Rv, STARTED, Shown, Uid,
};
use crate::fields::{self, Schema, ValueDigest};
use crate::health::{self, Health, Status};
use crate::object::{GroupKind, ObjectId, RELEASE};

/// The annotations that health and rolling look at.
const STATE_ANNOTATIONS: [&str; 3] = [
    rolling::REVISION_ANNOTATION,
    "volume.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/selected-node",
];
/// What an informer makes of an object.
pub(super) trait Project: Clone + Send + Sync + 'static {
    /// The record.
    type Record: Send + 'static;

    /// Reads one object; none where it is none.
    fn project(&self, text: &str) -> Option<Projected<Self::Record>>;

    /// Forgets shared texts that nobody holds any more.
    fn sweep(&self) {}
}

/// One object as an informer sees it.
pub(super) struct Projected<R> {
    /// Who.
    pub(super) id: ObjectId,
    /// Version of this view.
    pub(super) rv: Rv,
    /// The record.
    pub(super) record: R,
}

/// Whether the text holds the whole object, or only its metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// With spec and status.
    Whole,
    /// `PartialObjectMetadata`.
    Metadata,
}

/// Reads objects of one kind into [`Live`] records.
#[derive(Clone)]
pub(super) struct Lens {
    kind: Arc<Kind>,
    group_kind: GroupKind,
    interner: Arc<Interner>,
    form: Form,
    schema: Schema,
}

impl Lens {
    /// A lens for a kind.
    pub(super) fn new(kind: &Arc<Kind>, interner: &Arc<Interner>, form: Form) -> Self {
        let group_kind = kind.gvk.group_kind();
        let schema = Schema::of(&group_kind);
        Self { kind: kind.clone(), group_kind, interner: interner.clone(), form, schema }
    }
}

impl Project for Lens {
    type Record = Live;

    fn project(&self, text: &str) -> Option<Projected<Live>> {
        let raw: Raw<'_> = serde_json::from_str(text).ok()?;
        let meta: Meta<'_> = part(raw.metadata);
        let id = meta.id(&self.group_kind, &self.interner)?;
        let rv = version(&meta.resource_version.0);
        Some(Projected {
            id,
            rv,
            record: Live { values: self.values(text, &meta), ..self.live(&raw, &meta, rv) },
        })
    }

    fn sweep(&self) {
        self.interner.sweep();
    }
}

impl Lens {
    /// The values behind our entry. They are read into a tree of what is ours, which is gone with the digest.
    fn values(&self, text: &str, meta: &Meta<'_>) -> Option<ValueDigest> {
        let ours = meta.managed_fields.iter().find(|entry| entry.is_ours())?;
        match self.form {
            Form::Whole => fields::value_digest_of_text(text, ours.fields_v1?.get(), self.schema),
            Form::Metadata => None,
        }
    }

    fn live(&self, raw: &Raw<'_>, meta: &Meta<'_>, rv: Rv) -> Live {
        let ours = meta.managed_fields.iter().find(|entry| entry.is_ours());
        let tree = match self.form {
            Form::Whole => Some(skimmed(raw, meta)),
            Form::Metadata => None,
        };
        let health = match &tree {
            Some(tree) => health::of_kind(&self.group_kind, tree),
            None => Health::new(Status::Unknown, "only its metadata was read"),
        };
        let claim = meta.annotations.get(RELEASE).and_then(|text| self.claim(text));
        Live {
            uid: Uid((&*meta.uid.0).into()),
            rv,
            generation: meta.generation,
            gvk: self.kind.gvk.clone(),
            owner: owner::of(meta, ours, &self.interner),
            release: None,
            claim,
            ours: ours.and_then(|entry| entry.fields_v1).map(|fields| self.interner.text(fields.get())),
            values: None,
            others: self.others(meta),
            replicas_ceded: meta.managed_fields.iter().any(Entry::cedes_replicas),
            health: Health { status: health.status, message: self.interner.text(&health.message) },
            rolling: tree.as_ref().and_then(|tree| {
                let rolling = rolling::of(&self.group_kind, tree)?;
                let failed_before =
                    ours.is_some_and(|entry| rolling::failed_before(&self.group_kind, tree, &entry.time.0));
                Some(Rolling { failed_before, ..rolling })
            }),
            shown: tree.as_ref().map_or(Shown::Plain, |tree| {
                rolling::shown(&self.group_kind, tree, meta.annotations.get(OVERLAY))
            }),
            // What somebody else wrote there says nothing about what we have started.
            started: meta
                .annotations
                .get(STARTED)
                .filter(|_| ours.is_some_and(|entry| entry.owns(&["metadata", "annotations", STARTED])))
                .and_then(|text| text.parse().ok()),
            finished: tree.as_ref().is_some_and(|tree| health::finished(&self.group_kind, tree)),
            keep: owner::keep(meta, ours),
            asked: Asked::parse(
                meta.annotations.get(ORDER),
                meta.annotations.get(PAUSED),
                meta.annotations.get(HOLD),
            ),
            opt_out: owner::opt_out(meta, ours),
            deleting: !meta.deletion_timestamp.0.is_empty(),
        }
    }

    /// What the annotation says. The engine has the keys that tell whether it is so.
    fn claim(&self, text: &str) -> Option<Box<ReleaseClaim>> {
        ReleaseClaim::read(text, |revision| self.interner.revision(revision)).map(Box::new)
    }

    fn others(&self, meta: &Meta<'_>) -> Arc<[Manager]> {
        let mut list: Vec<Manager> = meta
            .managed_fields
            .iter()
            .filter(|entry| entry.manager.0 != FIELD_MANAGER)
            .map(|entry| Manager {
                name: self.interner.text(&entry.manager.0),
                operation: self.interner.text(&entry.operation.0),
                subresource: self.interner.text(&entry.subresource.0),
            })
            .collect();
        list.sort_unstable();
        list.dedup();
        self.interner.managers(&list)
    }
}

/// The object as far as health and rolling look at it.
fn skimmed(raw: &Raw<'_>, meta: &Meta<'_>) -> Value {
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
        tree.insert("spec".to_owned(), Value::Object(part::<Skim>(raw.spec).0));
    }
    if raw.status.is_some() {
        tree.insert("status".to_owned(), part(raw.status));
    }
    Value::Object(tree)
}

/// What an autoscaler scales.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleTarget {
    /// The workload.
    pub id: ObjectId,
}

/// One `HorizontalPodAutoscaler`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scaler {
    /// What it scales; none where its reference cannot be read.
    pub target: Option<ScaleTarget>,
}

/// Reads `HorizontalPodAutoscaler`s.
#[derive(Clone)]
pub(super) struct ScalerLens {
    group_kind: GroupKind,
    interner: Arc<Interner>,
}

impl ScalerLens {
    /// A lens for a kind that has `spec.scaleTargetRef`.
    pub(super) fn new(kind: &Kind, interner: &Arc<Interner>) -> Self {
        Self { group_kind: kind.gvk.group_kind(), interner: interner.clone() }
    }
}

/// Reads versions alone.
#[derive(Clone)]
pub(super) struct VersionLens {
    group_kind: GroupKind,
    interner: Arc<Interner>,
}

impl VersionLens {
    /// A lens for any kind.
    pub(super) fn new(kind: &Kind, interner: &Arc<Interner>) -> Self {
        Self { group_kind: kind.gvk.group_kind(), interner: interner.clone() }
    }
}

impl Project for VersionLens {
    type Record = Rv;

    fn project(&self, text: &str) -> Option<Projected<Rv>> {
        let raw: Raw<'_> = serde_json::from_str(text).ok()?;
        let meta: Meta<'_> = part(raw.metadata);
        let rv = version(&meta.resource_version.0);
        Some(Projected { id: meta.id(&self.group_kind, &self.interner)?, rv, record: rv })
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ScalerSpec<'a> {
    #[serde(borrow, deserialize_with = "lax")]
    scale_target_ref: TargetRef<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct TargetRef<'a> {
    #[serde(borrow, deserialize_with = "lax")]
    api_version: Text<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    kind: Text<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    name: Text<'a>,
}

impl Project for ScalerLens {
    type Record = Scaler;

    fn project(&self, text: &str) -> Option<Projected<Scaler>> {
        let raw: Raw<'_> = serde_json::from_str(text).ok()?;
        let meta: Meta<'_> = part(raw.metadata);
        let id = meta.id(&self.group_kind, &self.interner)?;
        let target = part::<ScalerSpec<'_>>(raw.spec).scale_target_ref;
        let group = target.api_version.0.split_once('/').map_or("", |(group, _)| group);
        let known = !target.kind.0.is_empty() && !target.name.0.is_empty();
        let target = known.then(|| ScaleTarget {
            id: ObjectId::new(&GroupKind::new(group, &target.kind.0), id.namespace(), &target.name.0),
        });
        Some(Projected { rv: version(&meta.resource_version.0), id, record: Scaler { target } })
    }
}

/// The three parts of an object that are looked at, as text.
#[derive(Deserialize)]
pub(super) struct Raw<'a> {
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    spec: Option<&'a RawValue>,
    #[serde(borrow, default)]
    status: Option<&'a RawValue>,
}

/// What is looked at in an object's metadata.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Meta<'a> {
    #[serde(borrow, deserialize_with = "lax")]
    name: Text<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    pub(super) namespace: Text<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    uid: Text<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    resource_version: Text<'a>,
    #[serde(deserialize_with = "lax")]
    generation: i64,
    #[serde(borrow, deserialize_with = "lax")]
    creation_timestamp: Text<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    deletion_timestamp: Text<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    pub(super) labels: Marks<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    pub(super) annotations: Marks<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    pub(super) owner_references: Vec<OwnerReference<'a>>,
    #[serde(borrow, deserialize_with = "lax")]
    managed_fields: Vec<Entry<'a>>,
}

impl Meta<'_> {
    /// All labels and annotations that are looked at.
    pub(super) fn marks(&self) -> impl Iterator<Item = (Carrier, &str, &str)> {
        let labels = self.labels.iter().map(|(key, value)| (Carrier::Label, key, value));
        labels.chain(self.annotations.iter().map(|(key, value)| (Carrier::Annotation, key, value)))
    }

    fn id(&self, kind: &GroupKind, interner: &Interner) -> Option<ObjectId> {
        let named = !self.name.0.is_empty();
        named.then(|| ObjectId::shared(kind, interner.text(&self.namespace.0), &self.name.0))
    }
}

/// One of an object's owners.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct OwnerReference<'a> {
    #[serde(borrow, deserialize_with = "lax")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    pub(super) name: Text<'a>,
    #[serde(deserialize_with = "lax")]
    pub(super) controller: bool,
}

/// One entry of managedFields.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Entry<'a> {
    #[serde(borrow, deserialize_with = "lax")]
    manager: Text<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    operation: Text<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    subresource: Text<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    time: Text<'a>,
    #[serde(borrow)]
    fields_v1: Option<&'a RawValue>,
}

impl Entry<'_> {
    fn is_ours(&self) -> bool {
        self.manager.0 == FIELD_MANAGER && self.operation.0 == "Apply" && self.subresource.0.is_empty()
    }

    fn cedes_replicas(&self) -> bool {
        self.manager.0 != FIELD_MANAGER && self.owns(&["spec", "replicas"])
    }

    /// Whether this entry owns the field behind a chain of keys.
    pub(super) fn owns(&self, path: &[&str]) -> bool {
        let (Some(entry), Some(last)) = (self.fields_v1, path.last()) else { return false };
        // Most entries do not name it anywhere, which is cheaper to see than to walk.
        entry.get().contains(last) && fields::owns(entry.get(), path)
    }
}

/// The labels or annotations that are looked at; all others are skipped.
#[derive(Default)]
pub(super) struct Marks<'a>(Vec<(&'static str, Text<'a>)>);

impl Marks<'_> {
    /// The value of one of them.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, value)| &*value.0)
    }

    fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(key, value)| (*key, &*value.0))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Marks<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Known;
        impl<'de> Visitor<'de> for Known {
            type Value = Marks<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Marks<'de>, A::Error> {
                let mut marks = Vec::new();
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    let known = [RELEASE, OVERLAY, STARTED, ORDER, PAUSED, HOLD, PRUNE, RECONCILE];
                    let known = known.iter().chain(&STATE_ANNOTATIONS).chain(&owner::MARKS);
                    let words = PEER_WORDS.iter().map(|word| &word.key);
                    match known.chain(words).find(|known| **known == key.0) {
                        Some(known) => {
                            let value = map.next_value::<&'de RawValue>()?;
                            marks.extend(serde_json::from_str(value.get()).ok().map(|text| (*known, text)));
                        }
                        None => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(Marks(marks))
            }
        }
        deserializer.deserialize_map(Known)
    }
}

/// The parts of a spec that health and rolling look at.
#[derive(Default)]
struct Skim(Map<String, Value>);

impl<'de> Deserialize<'de> for Skim {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Known;
        impl<'de> Visitor<'de> for Known {
            type Value = Skim;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Skim, A::Error> {
                let mut kept = Map::new();
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    let key_of = |keys: &[&str]| keys.contains(&&*key.0);
                    if key_of(&health::SPEC_KEYS) || key_of(&rolling::SPEC_KEYS) {
                        kept.insert(key.0.into_owned(), part(Some(map.next_value::<&'de RawValue>()?)));
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Skim(kept))
            }
        }
        deserializer.deserialize_map(Known)
    }
}

/// A text, borrowed where it holds no escapes.
#[derive(Default)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Either)
    }
}

/// Reads a field of any JSON type; what does not fit is the default.
pub(super) fn lax<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(part(Some(<&'de RawValue>::deserialize(deserializer)?)))
}

/// Reads a part of any JSON type; what does not fit is the default.
pub(super) fn part<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> T {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// A resourceVersion. Only a server that breaks KEP-5504 has one that is no number; it is 0 here, which
/// no object has, and is never sent.
pub(super) fn version(text: &str) -> Rv {
    Rv(text.parse().unwrap_or(0))
}
