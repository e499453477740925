//! Charts of servers: what names one, and what a server gave.

use std::fmt;
use std::str::FromStr;

/// A chart of a server by its place and exact version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ChartReference {
    /// The repository.
    pub repository: String,
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
}

/// The SHA-256 of a chart's archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ChartDigest([u8; 32]);

impl ChartDigest {
    /// Returns its bytes.
    pub(crate) const fn bytes(self) -> [u8; 32] {
        self.0
    }
}

/// `sha256:HEX`.
impl fmt::Display for ChartDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for ChartDigest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text}: must be `sha256:` and 64 hex digits");
        let hex = text.strip_prefix("sha256:").filter(|hex| hex.len() == 64).ok_or_else(wrong)?;
        let mut digest = [0; 32];
        for (byte, number) in digest.iter_mut().zip(0_usize..) {
            let digits = hex.get(2 * number..2 * number + 2).ok_or_else(wrong)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(Self(digest))
    }
}

/// A chart as a server gave it, unpacked and checked.
#[derive(Clone, Debug)]
pub(crate) struct FetchedChart {
    /// The name of it.
    pub reference: ChartReference,
    /// The digest of its archive.
    pub digest: ChartDigest,
    /// Its files.
    pub files: Vec<ChartFile>,
}

/// A file of a chart.
#[derive(Clone, Debug)]
pub(crate) struct ChartFile {
    /// The path below the chart's folder.
    pub path: String,
    /// The content.
    pub content: Vec<u8>,
}
