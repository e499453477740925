//! The files that credentials come from, and what a token may be.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// What tells a file from what stood in its place before; none where there is no file.
type Stamp = Option<(u64, u64, i64, i64, u64)>;

/// The files that credentials come from, as they were right before they were read.
pub(super) type Seen = BTreeMap<PathBuf, Stamp>;

/// No token is longer, in bytes: no server takes longer headers.
pub(super) const LONGEST_TOKEN: u64 = 64 << 10;

/// Whether a header can carry it.
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() as u64 <= LONGEST_TOKEN && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// How files look now.
pub(super) fn seen(files: Vec<PathBuf>) -> Seen {
    files.into_iter().map(|file| (file.clone(), stamp(&file))).collect()
}

fn stamp(file: &Path) -> Stamp {
    let found = std::fs::metadata(file).ok()?;
    // Whoever writes a file may set back when its content changed, but not when it did itself.
    Some((found.dev(), found.ino(), found.ctime(), found.ctime_nsec(), found.size()))
}
