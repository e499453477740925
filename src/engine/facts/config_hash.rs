//! Restarts for configuration that changed: a hash over the data that a workload's pods use, in an
//! annotation of its pod template.

use crate::object::annotations;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::engine::facts::key_answers::KeyAnswers;
use crate::object::serial::digest_form;
use crate::object::{ContentHash, GroupKind, ObjectId, annotation_text, canonical_json};

/// The Secret that holds the key for hashes of data, in the namespace of the inventories.
pub(crate) const CONFIG_KEY_SECRET_NAME: &str = "config-key.rhumb.dev";

/// The shortest secret that a key is made of, in bytes.
const MIN_KEY_BYTES: usize = 16;

/// Length of a block of SHA-256, in bytes.
const SHA256_BLOCK_BYTES: usize = 64;

/// The key that keeps the data of Secrets from being guessed by their hash.
///
/// The hash is in an annotation of each pod, where many may read it who may not read the Secret. A
/// password of eight letters is found by trying: a plain hash of it is as good as the password. So
/// it is an HMAC-SHA-256 (RFC 2104) under a secret key: random bytes, made once and kept in a
/// Secret beside the inventories. All sources and daemons of a cluster share it. The Secret's own
/// uid would not do: Events and audit logs contain it. Neither would its resourceVersion: each new
/// label changes it. Hashes under another key cannot be compared, so the present data then count as
/// those that pods were started with.
///
/// Its `Debug` form shows nothing.
#[derive(Clone)]
pub struct HashKey {
    block: [u8; SHA256_BLOCK_BYTES],
    /// The number of a key that is known by its answers alone.
    number: Option<u32>,
    /// The answers, where they are kept for a trace or come from one.
    answers: Option<KeyAnswers>,
}

/// A trace has the number alone.
impl Serialize for HashKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.number().serialize(serializer)
    }
}

/// Returns a key that is known by its answers alone.
impl<'de> Deserialize<'de> for HashKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Some(u32::deserialize(deserializer)?);
        Ok(Self { block: [0; SHA256_BLOCK_BYTES], number, answers: None })
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl HashKey {
    /// Makes a key of random bytes; none when they are fewer than 16.
    pub fn of(secret: &[u8]) -> Option<Self> {
        if secret.len() < MIN_KEY_BYTES {
            return None;
        }
        let mut block = [0; SHA256_BLOCK_BYTES];
        if secret.len() > SHA256_BLOCK_BYTES {
            block[..32].copy_from_slice(&Sha256::digest(secret));
        } else {
            block[..secret.len()].copy_from_slice(secret);
        }
        Some(Self { block, number: None, answers: None })
    }

    /// Keeps its answers there for a trace, or takes them from there.
    #[must_use]
    pub(in crate::engine) fn with_answers(mut self, answers: KeyAnswers) -> Self {
        self.answers = Some(answers);
        self
    }

    /// Returns the answer to a question, which only a holder of the key can find.
    pub(in crate::engine) fn answer<A: Serialize + DeserializeOwned>(
        &self,
        question: impl FnOnce() -> Value,
        find: impl FnOnce() -> Option<A>,
    ) -> Option<A> {
        match &self.answers {
            Some(answers) => answers.answer(question, find),
            None => find(),
        }
    }

    /// Returns a number by which two keys are distinguished, and nothing else of them.
    pub fn number(&self) -> u32 {
        let made = || self.sign(b"number").iter().take(4).fold(0, |sum, byte| (sum << 8) | u32::from(*byte));
        self.number.unwrap_or_else(made)
    }

    /// Returns a key for a cipher of 128 bits, which says nothing of this one.
    pub(in crate::engine) fn cipher_key(&self) -> [u8; 16] {
        let [key @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = self.sign(b"seal");
        key
    }

    /// Makes a key for another purpose, which says nothing of this one.
    pub(in crate::engine) fn derive(&self, purpose: &str) -> Self {
        let mut block = [0; SHA256_BLOCK_BYTES];
        block[..32].copy_from_slice(&self.sign(purpose.as_bytes()));
        Self { block, number: None, answers: self.answers.clone() }
    }

    pub(in crate::engine) fn sign(&self, bytes: &[u8]) -> [u8; 32] {
        let inner =
            Sha256::new().chain_update(self.block.map(|byte| byte ^ 0x36)).chain_update(bytes).finalize();
        Sha256::new().chain_update(self.block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().into()
    }
}

/// The data of one `ConfigMap` or Secret, as a hash that is not keyed: it stays in this process,
/// and its `Debug` form shows nothing.
///
/// Only data count, so that a new label restarts nothing; so does the object's identity, so that no
/// two Secrets are seen to be equal. An object that is made anew with the same data has the same
/// hash.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ConfigData(ContentHash);

/// A trace has a stand-in.
impl Serialize for ConfigData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        digest_form::serialize(&self.0.bytes(), serializer)
    }
}

impl<'de> Deserialize<'de> for ConfigData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        digest_form::deserialize(deserializer).map(|bytes| Self(ContentHash::from_bytes(bytes)))
    }
}

impl fmt::Debug for ConfigData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Data(..)")
    }
}

impl ConfigData {
    /// Reads off the data of an object.
    pub fn of(id: &ObjectId, object: &Value) -> Self {
        let part = |name: &str| match object.get(name).and_then(Value::as_object) {
            Some(map) => map.iter().filter(|(_, value)| !value.is_null()).collect(),
            None => BTreeMap::new(),
        };
        Self(ContentHash::of(&json!([name_parts(id), part("data"), part("binaryData")])))
    }
}

/// Returns the hash over all data that pods use, in whatever order: the data of each object, or
/// none where it is missing. An object that appears or goes away changes it as well. Only a holder
/// of the key can try guesses.
pub(crate) fn config_hash(key: &HashKey, used: &BTreeMap<ObjectId, Option<ConfigData>>) -> ContentHash {
    let pair = |(id, data): (&ObjectId, &Option<ConfigData>)| {
        let data = data.map_or_else(|| "absent".to_owned(), |ConfigData(hash)| hash.to_string());
        json!([name_parts(id), data])
    };
    let sign = || {
        let content: Value = used.iter().map(pair).collect();
        ContentHash::hash_bytes(&key.sign(canonical_json(&content).as_bytes()))
    };
    let question = || json!({ "data": used.iter().collect::<Vec<_>>(), "key": key.number() });
    key.answer(question, || Some(sign())).unwrap_or_else(sign)
}

/// Returns whether a content asks for a restart when the data that its pods use change.
pub(crate) fn has_restart_on_change(content: &Value) -> bool {
    annotation_text(content, annotations::RESTART_ON_CHANGE) == "true"
}

/// Puts the hash into the pod template of a content; one without a template stays as it is.
pub(crate) fn with_config_hash(mut content: Value, hash: &ContentHash) -> Value {
    let template = content.pointer_mut("/spec/template").and_then(Value::as_object_mut);
    let metadata = template.map(|template| template.entry("metadata"));
    let metadata = metadata.map(|entry| entry.or_insert_with(|| Value::Object(Map::new())));
    let annotations = metadata.and_then(Value::as_object_mut).map(|metadata| metadata.entry("annotations"));
    let annotations = annotations.map(|entry| entry.or_insert_with(|| Value::Object(Map::new())));
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.insert(annotations::CONFIG_HASH.to_owned(), hash.to_string().into());
    }
    content
}

/// Returns the Secret that holds the key; only its name matters here.
pub(in crate::engine) fn key_id() -> ObjectId {
    ObjectId::new(&GroupKind::new("", "Secret"), None, CONFIG_KEY_SECRET_NAME)
}

fn name_parts(id: &ObjectId) -> [&str; 4] {
    [id.group(), id.kind(), id.namespace().unwrap_or_default(), id.name()]
}
