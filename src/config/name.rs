//! Names that Kubernetes gives to namespaces and that rhumb gives to sources: DNS labels (RFC 1123).

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

/// A DNS label: `a-z`, `0-9` and `-`, at most 63, a letter or digit at both ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Name(String);

impl Name {
    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name `default`, of what is given no other.
    pub fn unnamed() -> Self {
        Self("default".to_owned())
    }

    /// The namespace of the parents, unless the configuration names another.
    pub(super) fn system_namespace() -> Self {
        Self("rhumb-system".to_owned())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

/// A text that is no DNS label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a name of a-z, 0-9 and -, at most 63 long, with a letter or digit at both ends")]
pub struct NotAName;

impl FromStr for Name {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let right = (1..=63).contains(&text.len())
            && text.bytes().all(plain)
            && !text.starts_with('-')
            && !text.ends_with('-');
        right.then(|| Self(text.to_owned())).ok_or(NotAName)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name of a-z, 0-9 and -, at most 63 long, with a letter or digit at both ends")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Name, E> {
        text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_dns_labels() {
        let longest = "a".repeat(63);
        for right in ["a", "0", "shop", "a-1", &longest] {
            assert!(right.parse::<Name>().is_ok(), "{right}");
        }
        let too_long = "a".repeat(64);
        for wrong in ["", "-a", "a-", "A", "a.b", "a_b", "ä", "a b", &too_long] {
            assert!(wrong.parse::<Name>().is_err(), "{wrong}");
        }
    }
}
