//! The permissions that a person gives to a source: to take objects over, to delete, and how much
//! at once.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeStruct as _, Serializer};
use serde::{Deserialize, Serialize};

/// The policy on objects that exist already and are not this source's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdoptPolicy {
    /// No object that exists is taken over.
    Never,
    /// One that carries no other owner's mark is taken over.
    #[default]
    IfUnowned,
    /// One of another owner is taken over too.
    Always,
}

impl AdoptPolicy {
    /// All, from the most careful on.
    pub const ALL: [Self; 3] = [Self::Never, Self::IfUnowned, Self::Always];

    /// Returns the word of the configuration.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::IfUnowned => "if-unowned",
            Self::Always => "always",
        }
    }
}

impl fmt::Display for AdoptPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// Indicates whether an object that the source no longer names is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum PrunePolicy {
    /// It stays.
    Off,
    /// It is deleted once all guards allow it.
    #[default]
    On,
    /// The source was read in part only, as somebody named single files. All other objects are left
    /// alone, without a word.
    Partial,
}

/// A source's answer to annotations that somebody puts on a live object to keep rhumb away.
///
/// Words that keep an object from being deleted always count: nothing is deleted on doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptOutPolicy {
    /// It may, and it is reported.
    #[default]
    Allowed,
    /// It is reported, and has no effect.
    Denied,
}

/// The part of its repository that a source follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum RepositoryExtent {
    /// All of it.
    #[default]
    Whole,
    /// One folder: other folders may be another source's.
    Folder,
}

/// Indicates whether a source goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum SourceLifecycle {
    /// It is followed.
    #[default]
    Active,
    /// A person has deleted it, with all that it has: it wants nothing any more.
    Deleting,
}

/// The number of objects of a source that may be pruned without a person's confirmation.
///
/// Both bounds hold. One object is always allowed, unless a bound is 0: then each prune waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlastRadius {
    /// At most so many objects.
    pub count: u32,
    /// At most this share of the source's objects, in percent from 0 to 100.
    pub percent: u8,
}

impl Default for BlastRadius {
    fn default() -> Self {
        Self { count: 10, percent: 10 }
    }
}

impl BlastRadius {
    /// Returns whether `pruned` of the source's `total` objects, those to be pruned among them, may
    /// go at once: `n ≤ max(1, min(count, percent))`.
    pub fn has_room_for(self, pruned: u32, total: u32) -> bool {
        if self.count == 0 || self.percent == 0 {
            return pruned == 0;
        }
        let share = u64::from(total) * u64::from(self.percent) / 100;
        u64::from(pruned) <= share.min(u64::from(self.count)).max(1)
    }

    /// Returns a bound on the count alone.
    const fn by_count(count: u32) -> Self {
        Self { count, percent: 100 }
    }

    /// Returns a bound on the share alone.
    fn by_percent(percent: u8) -> Option<Self> {
        (percent <= 100).then_some(Self { count: u32::MAX, percent })
    }
}

/// `10`, `10%`, or `at most 10 and 10%`.
impl fmt::Display for BlastRadius {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.count, self.percent) {
            (count, 100) => write!(f, "{count}"),
            (u32::MAX, percent) => write!(f, "{percent}%"),
            (count, percent) => write!(f, "at most {count} and {percent}%"),
        }
    }
}

/// A text that is neither `10` nor `10%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a count (10) or a percentage from 0% to 100% (10%)")]
pub struct ParseBlastRadiusError;

impl FromStr for BlastRadius {
    type Err = ParseBlastRadiusError;

    fn from_str(text: &str) -> Result<Self, ParseBlastRadiusError> {
        let read = match text.strip_suffix('%') {
            Some(share) => share.trim_end().parse().ok().and_then(Self::by_percent),
            None => text.parse().ok().map(Self::by_count),
        };
        read.ok_or(ParseBlastRadiusError)
    }
}

impl Serialize for BlastRadius {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.count, self.percent) {
            (count, 100) => serializer.serialize_u32(count),
            (u32::MAX, percent) => serializer.collect_str(&format_args!("{percent}%")),
            (count, percent) => {
                let mut both = serializer.serialize_struct("BlastRadius", 2)?;
                both.serialize_field("count", &count)?;
                both.serialize_field("percent", &percent)?;
                both.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for BlastRadius {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BlastRadiusVisitor)
    }
}

struct BlastRadiusVisitor;

impl<'de> Visitor<'de> for BlastRadiusVisitor {
    type Value = BlastRadius;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a count (10), a percentage from 0% to 100% (10%), or {count: 10, percent: 10}")
    }

    fn visit_u64<E: de::Error>(self, count: u64) -> Result<BlastRadius, E> {
        let wrong = |_| E::invalid_value(de::Unexpected::Unsigned(count), &self);
        u32::try_from(count).map(BlastRadius::by_count).map_err(wrong)
    }

    fn visit_i64<E: de::Error>(self, count: i64) -> Result<BlastRadius, E> {
        let wrong = |_| E::invalid_value(de::Unexpected::Signed(count), &self);
        u32::try_from(count).map(BlastRadius::by_count).map_err(wrong)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<BlastRadius, E> {
        text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<BlastRadius, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, expecting = "count and percent")]
        struct BlastRadiusText {
            count: u32,
            percent: BlastRadiusPercent,
        }
        let both = BlastRadiusText::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(BlastRadius { count: both.count, percent: both.percent.0 })
    }
}

struct BlastRadiusPercent(u8);

impl<'de> Deserialize<'de> for BlastRadiusPercent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u32::deserialize(deserializer)?;
        let wrong =
            || de::Error::invalid_value(de::Unexpected::Unsigned(number.into()), &"a number from 0 to 100");
        u8::try_from(number).ok().filter(|percent| *percent <= 100).map(Self).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests;
