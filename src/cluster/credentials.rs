//! The files that credentials come from, and what a token may be.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The identity of a file's content on disk; none where there is no file.
type FileFingerprint = Option<(u64, u64, i64, i64, u64)>;

/// The files that credentials come from, as they were right before they were read.
pub(super) type CredentialFiles = BTreeMap<PathBuf, FileFingerprint>;

/// The longest token, in bytes: no server takes longer headers.
pub(super) const MAX_BEARER_TOKEN_BYTES: u64 = 64 << 10;

/// Returns whether a header can carry it.
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.len() as u64 <= MAX_BEARER_TOKEN_BYTES
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns how files look now.
pub(super) fn stamp_files(files: Vec<PathBuf>) -> CredentialFiles {
    files.into_iter().map(|file| (file.clone(), file_stamp(&file))).collect()
}

fn file_stamp(file: &Path) -> FileFingerprint {
    let found = std::fs::metadata(file).ok()?;
    // The modification time can be set back, the change time cannot.
    Some((found.dev(), found.ino(), found.ctime(), found.ctime_nsec(), found.size()))
}
