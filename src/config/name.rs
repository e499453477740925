//! Names that Kubernetes gives to namespaces and that rhumb gives to sources: DNS labels (RFC
//! 1123).

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use crate::object::ContentHash;

/// The number of hash digits behind a name that was cut.
const HASH_DIGITS: usize = 8;
const MAX_NAME_HEAD_CHARS: usize = 63 - 1 - HASH_DIGITS;

/// A DNS label: `a-z`, `0-9` and `-`, at most 63, a letter or digit at both ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct DnsLabel(String);

impl DnsLabel {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name `default`, of what is given no other.
    pub fn unnamed() -> Self {
        Self("default".to_owned())
    }

    /// Returns the name of a place: its parts as one DNS label. Where a part had to be cut, or has
    /// letters that no name may have, digits of the hash of `place` follow. They keep it apart from
    /// all others.
    pub fn derived(parts: &[&str], location: &str) -> Self {
        let text = parts.join("-").to_lowercase();
        let is_plain = text.is_ascii();
        let words: Vec<&str> =
            text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let label = words.join("-");
        if is_plain && (1..=63).contains(&label.len()) {
            return Self(label);
        }
        let hash = ContentHash::hash_bytes(location.as_bytes()).to_string();
        let (head, tail) = (label.get(..MAX_NAME_HEAD_CHARS).unwrap_or(&label), hash.get(..HASH_DIGITS));
        let head = if head.is_empty() { "source" } else { head.trim_end_matches('-') };
        Self(format!("{head}-{}", tail.unwrap_or_default()))
    }

    /// Returns the namespace of the inventories, unless the configuration names another.
    pub(super) fn system_namespace() -> Self {
        Self("rhumb-system".to_owned())
    }
}

impl fmt::Display for DnsLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<DnsLabel> for String {
    fn from(name: DnsLabel) -> Self {
        name.0
    }
}

/// A text that is no DNS label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a name of a-z, 0-9 and -, at most 63 long, with a letter or digit at both ends")]
pub struct ParseDnsLabelError;

impl FromStr for DnsLabel {
    type Err = ParseDnsLabelError;

    fn from_str(text: &str) -> Result<Self, ParseDnsLabelError> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let right = (1..=63).contains(&text.len())
            && text.bytes().all(plain)
            && !text.starts_with('-')
            && !text.ends_with('-');
        right.then(|| Self(text.to_owned())).ok_or(ParseDnsLabelError)
    }
}

impl<'de> Deserialize<'de> for DnsLabel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(DnsLabelVisitor)
    }
}

struct DnsLabelVisitor;

impl Visitor<'_> for DnsLabelVisitor {
    type Value = DnsLabel;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name of a-z, 0-9 and -, at most 63 long, with a letter or digit at both ends")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<DnsLabel, E> {
        text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

/// The name of a service account: DNS labels with dots between them, at most 253 bytes (RFC 1123).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ServiceAccountName(String);

impl ServiceAccountName {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServiceAccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that no service account is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a service account name of a-z, 0-9, - and ., at most 253 characters long")]
pub struct ParseServiceAccountNameError;

impl FromStr for ServiceAccountName {
    type Err = ParseServiceAccountNameError;

    fn from_str(text: &str) -> Result<Self, ParseServiceAccountNameError> {
        is_dns_name(text).then(|| Self(text.to_owned())).ok_or(ParseServiceAccountNameError)
    }
}

/// Returns whether a text is DNS labels with dots between them.
fn is_dns_name(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(|label| label.parse::<DnsLabel>().is_ok())
}

impl<'de> Deserialize<'de> for ServiceAccountName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(ServiceAccountNameVisitor)
    }
}

struct ServiceAccountNameVisitor;

impl Visitor<'_> for ServiceAccountNameVisitor {
    type Value = ServiceAccountName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a service account in rhumb's own namespace (for example shop)")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ServiceAccountName, E> {
        text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

/// The name of a ConfigMap or Secret: DNS labels with dots between them, at most 253 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ObjectName(String);

impl ObjectName {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is no valid name of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an object name of a-z, 0-9, - and ., at most 253 characters long")]
pub struct ParseObjectNameError;

impl FromStr for ObjectName {
    type Err = ParseObjectNameError;

    fn from_str(text: &str) -> Result<Self, ParseObjectNameError> {
        is_dns_name(text).then(|| Self(text.to_owned())).ok_or(ParseObjectNameError)
    }
}

impl<'de> Deserialize<'de> for ObjectName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(ObjectNameVisitor)
    }
}

struct ObjectNameVisitor;

impl Visitor<'_> for ObjectNameVisitor {
    type Value = ObjectName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of an object (for example cluster-vars)")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ObjectName, E> {
        text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_follows_from_a_place() {
        let check = |parts: &[&str], expected: &str| {
            let name = DnsLabel::derived(parts, "/srv/a");
            assert_eq!(name.as_str(), expected, "{parts:?}");
            assert!(name.as_str().parse::<DnsLabel>().is_ok(), "{name}");
        };
        check(&["shop"], "shop");
        check(&["shop", ""], "shop");
        check(&["Shop.Example_org", "deploy/prod"], "shop-example-org-deploy-prod");
        check(&["--a--", "/b/"], "a-b");
        check(&[&"a".repeat(63)], &"a".repeat(63));
        check(&[&"a".repeat(64)], &format!("{}-b068a6ce", "a".repeat(54)));
        check(&["größe"], "gr-e-b068a6ce");
        check(&["магазин"], "source-b068a6ce");
        check(&[], "source-b068a6ce");
        assert_ne!(DnsLabel::derived(&["é"], "/srv/a"), DnsLabel::derived(&["é"], "/srv/b"));
    }

    #[test]
    fn accounts_and_objects_have_dns_names() {
        let long = format!("{0}.{0}.{0}.{1}", "a".repeat(63), "a".repeat(61));
        for right in ["a", "shop", "shop.eu", &long] {
            assert!(right.parse::<ServiceAccountName>().is_ok(), "{right}");
            assert!(right.parse::<ObjectName>().is_ok(), "{right}");
        }
        for wrong in ["", ".", "a.", "A", "a:b", "a/b", "system:admin", &format!("{long}a")] {
            assert!(wrong.parse::<ServiceAccountName>().is_err(), "{wrong}");
            assert!(wrong.parse::<ObjectName>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_are_dns_labels() {
        let longest = "a".repeat(63);
        for right in ["a", "0", "shop", "a-1", &longest] {
            assert!(right.parse::<DnsLabel>().is_ok(), "{right}");
        }
        let too_long = "a".repeat(64);
        for wrong in ["", "-a", "a-", "A", "a.b", "a_b", "ä", "a b", &too_long] {
            assert!(wrong.parse::<DnsLabel>().is_err(), "{wrong}");
        }
    }
}
