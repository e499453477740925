//! The name of a chart on a server, and the digest of its archive.

use std::fmt;
use std::str::FromStr;

use crate::object::{hex_bytes, hex_text};

/// A chart of a server by its place and exact version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChartReference {
    /// The repository.
    pub repository: String,
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
}

/// The SHA-256 of a chart's archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChartDigest([u8; 32]);

impl ChartDigest {
    /// Returns the digest of an archive.
    pub fn of(archive: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(archive).into())
    }

    /// Returns its bytes.
    pub const fn bytes(self) -> [u8; 32] {
        self.0
    }

    /// Returns its digits in hexadecimal.
    pub(super) fn hex(self) -> String {
        hex_text(&self.0)
    }
}

/// `sha256:HEX`.
impl fmt::Display for ChartDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl FromStr for ChartDigest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digest = text.strip_prefix("sha256:").and_then(hex_bytes);
        digest.map(Self).ok_or_else(|| "must be `sha256:` and 64 hex digits".to_owned())
    }
}

/// A chart as a server gave it, unpacked and checked.
#[derive(Clone, Debug)]
pub struct FetchedChart {
    /// The name of it.
    pub reference: ChartReference,
    /// The digest of its archive.
    pub digest: ChartDigest,
    /// Its files, by their paths.
    pub files: Vec<ChartFile>,
}

/// The digest that the archive of a chart must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedDigest {
    /// The one that it had first; any where it was never fetched.
    First,
    /// The one of a lock.
    Pinned(ChartDigest),
    /// Any: a person asks for what the server has now.
    Any,
}

/// A file of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartFile {
    /// The path below the chart's folder.
    pub path: String,
    /// The content.
    pub content: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_as_it_is_written() {
        let digest = ChartDigest::of(b"abc");
        let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse(), Ok(digest));
        for wrong in [
            "",
            "sha256:",
            &text[7..],
            &text[..70],
            &format!("{text}0"),
            &text.replace("ba", "+b"),
            &text.replace("ba", "é"),
            &text.replace("256", "512"),
        ] {
            assert!(wrong.parse::<ChartDigest>().is_err(), "{wrong}");
        }
    }
}
