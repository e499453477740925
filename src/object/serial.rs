//! The forms of identities, hashes and instants in a trace of inputs.
//!
//! A hash has a mark before its digits, so that a trace can show a stand-in in place of one that
//! could be guessed.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{ContentHash, GroupKind, ObjectId};

/// The mark of a hash that is shown as it is, except for those of Secrets.
pub(crate) const HASH_MARK: char = '#';

/// The mark of a digest that is never shown as it is.
pub(crate) const DIGEST_MARK: char = '!';

/// The instant from which the others are counted, in this process.
static TIME_ORIGIN: OnceLock<Instant> = OnceLock::new();

/// Counts instants from this one. An earlier call stays in force.
pub(crate) fn count_instants_from(origin: Instant) {
    TIME_ORIGIN.get_or_init(|| origin);
}

/// The words that were read, each once: the engine keeps them as constants.
static INTERNED_WORDS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// The maximum number of different words. There are some dozens.
const MAX_WORDS: usize = 1000;

/// Reads one of the few words that the engine knows as constants.
pub(crate) fn read_known_word<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'static str>, D::Error> {
    let Some(word) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let mut words = INTERNED_WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = words.get(word.as_str()) {
        return Ok(Some(*known));
    }
    if words.len() >= MAX_WORDS {
        return Err(D::Error::custom("more words by which objects are left alone than there are"));
    }
    let word: &'static str = word.leak();
    words.insert(word);
    Ok(Some(word))
}

/// Reads a text by a function.
struct TextVisitor<T>(fn(&str) -> Option<T>, &'static str);

impl<T> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.1)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).ok_or_else(|| E::custom(format_args!("\"{text}\" is not {}", self.1)))
    }
}

impl Serialize for GroupKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GroupKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor(|text| Some(Self::parse(text)), "a kind"))
    }
}

/// `Deployment.apps/shop/web`, or `Namespace//shop` for a cluster-scoped object.
impl Serialize for ObjectId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let namespace = self.namespace().unwrap_or_default();
        serializer.collect_str(&format_args!("{}/{namespace}/{}", self.group_kind(), self.name()))
    }
}

impl<'de> Deserialize<'de> for ObjectId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = |text: &str| {
            let mut parts = text.splitn(3, '/');
            let (kind, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
            let namespace = (!namespace.is_empty()).then_some(namespace);
            Some(Self::new(&GroupKind::parse(kind), namespace, name))
        };
        deserializer.deserialize_str(TextVisitor(read, "an object"))
    }
}

impl Serialize for ContentHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{HASH_MARK}{self}"))
    }
}

impl<'de> Deserialize<'de> for ContentHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = |text: &str| Self::parse(text.strip_prefix(HASH_MARK)?);
        deserializer.deserialize_str(TextVisitor(read, "a hash"))
    }
}

/// The form of bytes that say something of a content.
pub(crate) mod digest_form {
    use super::{DIGEST_MARK, Deserializer, Serializer, TextVisitor};
    use crate::object::{hex_bytes, hex_text};

    pub(crate) fn serialize<S: Serializer, const N: usize>(
        bytes: &[u8; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{DIGEST_MARK}{}", hex_text(bytes)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<[u8; N], D::Error> {
        let read = |text: &str| hex_bytes::<N>(text.strip_prefix(DIGEST_MARK)?);
        deserializer.deserialize_str(TextVisitor(read, "a digest"))
    }
}

/// The form of an instant: nanoseconds since the origin, before which it may be too.
pub(crate) mod instant_form {
    use super::{Deserialize, Deserializer, Duration, Error, Instant, Serialize, Serializer, TIME_ORIGIN};

    pub(crate) fn serialize<S: Serializer>(instant: &Instant, serializer: S) -> Result<S::Ok, S::Error> {
        let origin = *TIME_ORIGIN.get().unwrap_or(instant);
        let after = i128::try_from(instant.saturating_duration_since(origin).as_nanos());
        let before = i128::try_from(origin.saturating_duration_since(*instant).as_nanos());
        let nanos = after.unwrap_or_default() - before.unwrap_or_default();
        i64::try_from(nanos).unwrap_or(i64::MAX).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Instant, D::Error> {
        let nanos = i64::deserialize(deserializer)?;
        let origin = *TIME_ORIGIN.get().ok_or_else(|| D::Error::custom("no origin of time is set"))?;
        let distance = Duration::from_nanos(nanos.unsigned_abs());
        let instant = if nanos < 0 { origin.checked_sub(distance) } else { origin.checked_add(distance) };
        instant.ok_or_else(|| D::Error::custom("too far away in time"))
    }
}

/// The form of an instant that may be missing.
pub(crate) mod optional_instant_form {
    use super::{Deserialize, Deserializer, Instant, Serialize, Serializer, instant_form};

    #[derive(Serialize, Deserialize)]
    struct InstantForm(#[serde(with = "instant_form")] Instant);

    #[expect(clippy::ref_option, reason = "serde hands over a reference to the field")]
    pub(crate) fn serialize<S: Serializer>(
        instant: &Option<Instant>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        instant.map(InstantForm).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Instant>, D::Error> {
        Ok(Option::<InstantForm>::deserialize(deserializer)?.map(|InstantForm(instant)| instant))
    }
}
