//! Content hashes.

use std::fmt;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::canonical_json;

/// The first 128 bits of SHA-256 over the canonical JSON of a content. That is enough to
/// distinguish the contents of one cluster, and short enough for an annotation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, std::hash::Hash)]
pub struct ContentHash(u128);

impl ContentHash {
    /// The hash in place of that of a content that cannot be read. No content has it.
    pub const UNREADABLE: Self = Self(u128::MAX);

    /// Returns its 16 bytes, the most significant first.
    pub fn bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// Returns the hash that consists of these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// Hashes a tree; key order does not matter.
    pub fn of(value: &Value) -> Self {
        Self::hash_bytes(canonical_json(value).as_bytes())
    }

    /// Hashes bytes.
    pub fn hash_bytes(bytes: &[u8]) -> Self {
        let digest = Sha256::digest(bytes);
        Self(digest.iter().take(16).fold(0, |sum, byte| (sum << 8) | u128::from(*byte)))
    }

    /// Reads the 32 hex digits that `Display` writes.
    pub fn parse(text: &str) -> Option<Self> {
        let plain =
            text.len() == 32 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        plain.then(|| u128::from_str_radix(text, 16).ok()).flatten().map(Self)
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}
