//! Content hashes.

use std::fmt;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::canonical_json;

/// The first 128 bits of SHA-256 over the canonical JSON of a content. That is enough to
/// distinguish the contents of one cluster, and short enough for an annotation.
///
/// It is kept as bytes and not as a number. A number would be aligned to 16 bytes, and so would all
/// that has one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, std::hash::Hash)]
pub struct ContentHash([u8; 16]);

impl ContentHash {
    /// The hash in place of that of a content that cannot be read. No content has it.
    pub const UNREADABLE: Self = Self([u8::MAX; 16]);

    /// Returns its 16 bytes, the most significant first.
    pub fn bytes(self) -> [u8; 16] {
        self.0
    }

    /// Returns the hash that consists of these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Hashes a tree; key order does not matter.
    pub fn of(value: &Value) -> Self {
        Self::hash_bytes(canonical_json(value).as_bytes())
    }

    /// Hashes bytes.
    pub fn hash_bytes(bytes: &[u8]) -> Self {
        let digest = Sha256::digest(bytes);
        let mut short = [0; 16];
        short.iter_mut().zip(digest.iter()).for_each(|(to, from)| *to = *from);
        Self(short)
    }

    /// Reads the 32 hex digits that `Display` writes.
    pub fn parse(text: &str) -> Option<Self> {
        let plain =
            text.len() == 32 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let number = plain.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        number.map(|number| Self(number.to_be_bytes()))
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}
