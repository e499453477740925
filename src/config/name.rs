//! Names that Kubernetes gives to namespaces and that rhumb gives to sources: DNS labels (RFC 1123).

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use crate::object::Hash;

/// So many digits of a hash stand behind a name that was cut, and so much of it before them.
const HASH_DIGITS: usize = 8;
const LONGEST_HEAD: usize = 63 - 1 - HASH_DIGITS;

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

    /// The name that follows from what people call a place: its parts as one DNS label. A part of the hash of `place`,
    /// which tells it from all others, stands behind what had to be cut, or has letters that no name may have.
    pub fn derived(parts: &[&str], place: &str) -> Self {
        let text = parts.join("-").to_lowercase();
        let is_plain = text.is_ascii();
        let words: Vec<&str> =
            text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let label = words.join("-");
        if is_plain && (1..=63).contains(&label.len()) {
            return Self(label);
        }
        let hash = Hash::of_bytes(place.as_bytes()).to_string();
        let (head, tail) = (label.get(..LONGEST_HEAD).unwrap_or(&label), hash.get(..HASH_DIGITS));
        let head = if head.is_empty() { "source" } else { head.trim_end_matches('-') };
        Self(format!("{head}-{}", tail.unwrap_or_default()))
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

/// The name of a service account: DNS labels with dots between them, at most 253 bytes (RFC 1123).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct AccountName(String);

impl AccountName {
    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that no service account is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a service account of a-z, 0-9, - and ., at most 253 long")]
pub struct NotAnAccount;

impl FromStr for AccountName {
    type Err = NotAnAccount;

    fn from_str(text: &str) -> Result<Self, NotAnAccount> {
        let right = text.len() <= 253 && text.split('.').all(|label| label.parse::<Name>().is_ok());
        right.then(|| Self(text.to_owned())).ok_or(NotAnAccount)
    }
}

impl<'de> Deserialize<'de> for AccountName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(AccountVisitor)
    }
}

struct AccountVisitor;

impl Visitor<'_> for AccountVisitor {
    type Value = AccountName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a service account in rhumb's own namespace, as shop")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<AccountName, E> {
        text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_follows_from_a_place() {
        let check = |parts: &[&str], expected: &str| {
            let name = Name::derived(parts, "/srv/a");
            assert_eq!(name.as_str(), expected, "{parts:?}");
            assert!(name.as_str().parse::<Name>().is_ok(), "{name}");
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
        assert_ne!(Name::derived(&["é"], "/srv/a"), Name::derived(&["é"], "/srv/b"));
    }

    #[test]
    fn accounts_are_dns_names() {
        let long = format!("{0}.{0}.{0}.{1}", "a".repeat(63), "a".repeat(61));
        for right in ["a", "shop", "shop.eu", &long] {
            assert!(right.parse::<AccountName>().is_ok(), "{right}");
        }
        for wrong in ["", ".", "a.", "A", "a:b", "a/b", "system:admin", &format!("{long}a")] {
            assert!(wrong.parse::<AccountName>().is_err(), "{wrong}");
        }
    }

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
