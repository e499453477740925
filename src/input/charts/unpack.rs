//! The files of a chart's archive, each checked by name, kind and size.
//!
//! Nothing is written: a name in an archive never becomes a path of this host here.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

use super::reference::{ChartFile, ChartReference};
use super::version::is_same_version;
use crate::input::helm::{CHART_FILE, scalar_text};
use crate::input::kustomize::sanitize_text;
use crate::manifest::read_first_document;

/// The most bytes of a path, the top folder included, and of a name in it.
const MAX_PATH_BYTES: usize = 1024;
const MAX_FILE_NAME_BYTES: usize = 255;
/// The most names in a path.
const MAX_FOLDER_LEVELS: usize = 32;

/// The largest archive, in bytes.
pub(super) const MAX_ARCHIVE_BYTES: u64 = 20 << 20;

/// The bounds of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnpackLimits {
    /// Bytes of the archive.
    pub(super) archive: u64,
    /// Bytes of all that is in it.
    pub(super) total: u64,
    /// Bytes of one file.
    pub(super) file: u64,
    /// Files and folders.
    pub(super) entries: usize,
}

impl Default for UnpackLimits {
    fn default() -> Self {
        // helm itself takes files up to 5 MiB.
        Self { archive: MAX_ARCHIVE_BYTES, total: 64 << 20, file: 5 << 20, entries: 10_000 }
    }
}

/// The reason for which an archive is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnpackError {
    /// It is no compressed archive, or ends too early.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// It has more of something than it may.
    #[error("it has more than {most} {unit}")]
    TooLarge {
        /// The measure.
        unit: &'static str,
        /// The bound.
        most: u64,
    },
    /// A name is none of a file of a chart.
    #[error("its file {name:?} has a name that {reason}")]
    Name {
        /// The name's beginning.
        name: String,
        /// The reason.
        reason: &'static str,
    },
    /// Something else than a file or a folder is in it.
    #[error("its entry {name:?} is {kind}, and no file or folder")]
    Kind {
        /// The name's beginning.
        name: String,
        /// The kind.
        kind: &'static str,
    },
    /// Two entries have one name.
    #[error("it has the file {name:?} twice")]
    Duplicate {
        /// The name's beginning.
        name: String,
    },
    /// It is not one folder.
    #[error("it has {other:?} beside the folder {top:?}")]
    TwoTops {
        /// The first folder.
        top: String,
        /// Another file or folder.
        other: String,
    },
    /// It has no description of the chart, or one that cannot be read.
    #[error("its Chart.yaml {0}")]
    ChartFile(&'static str),
    /// It is another chart.
    #[error("its {key} is {found:?}, and {expected:?} was asked for")]
    OtherChart {
        /// The field.
        key: &'static str,
        /// The value in it.
        found: String,
        /// The value that was asked for.
        expected: String,
    },
}

/// Returns the files of an archive, which must be that of this chart.
pub(super) fn unpack(
    archive: &[u8],
    chart: &ChartReference,
    limits: UnpackLimits,
) -> Result<Vec<ChartFile>, UnpackError> {
    if archive.len() as u64 > limits.archive {
        return Err(UnpackError::TooLarge { unit: "bytes", most: limits.archive });
    }
    let unpacked = BoundedReader { inner: MultiGzDecoder::new(archive), left: limits.total };
    let mut tar = Archive::new(unpacked);
    let mut folder = UnpackedFolder::default();
    let unreadable = |error: io::Error| fault(&error, limits);
    for (number, entry) in tar.entries().map_err(unreadable)?.enumerate() {
        if number >= limits.entries {
            return Err(UnpackError::TooLarge { unit: "entries", most: limits.entries as u64 });
        }
        folder.take(entry.map_err(unreadable)?, limits)?;
    }
    // The checksum is at the end.
    io::copy(&mut tar.into_inner(), &mut io::sink()).map_err(unreadable)?;
    folder.check(chart)?;
    let file = |(path, content)| ChartFile { path, content };
    Ok(folder.files.into_iter().map(file).collect())
}

/// The files of one top folder.
#[derive(Default)]
struct UnpackedFolder {
    top: Option<String>,
    folders: BTreeSet<String>,
    files: BTreeMap<String, Vec<u8>>,
}

impl UnpackedFolder {
    fn take<R: Read>(&mut self, mut entry: Entry<'_, R>, limits: UnpackLimits) -> Result<(), UnpackError> {
        let raw = entry.path_bytes().into_owned();
        let kind = entry.header().entry_type();
        // A comment on the whole archive, as `git archive` writes it.
        if kind == EntryType::XGlobalHeader {
            return Ok(());
        }
        let shown = || sanitize_text(&String::from_utf8_lossy(&raw));
        if let Some(kind) = other_kind(kind) {
            return Err(UnpackError::Kind { name: shown(), kind });
        }
        let is_folder = kind == EntryType::Directory;
        let parts = parts(&raw, is_folder).map_err(|reason| UnpackError::Name { name: shown(), reason })?;
        let Some((first, rest)) = parts.split_first() else {
            // The folder of the archive itself, `./`.
            return Ok(());
        };
        let top = self.top.get_or_insert_with(|| (*first).to_owned());
        if top != first || (rest.is_empty() && !is_folder) {
            return Err(UnpackError::TwoTops { top: top.clone(), other: shown() });
        }
        let path = rest.join("/");
        for level in 1..rest.len() {
            let above = rest.get(..level).unwrap_or_default().join("/");
            if self.files.contains_key(&above) {
                return Err(UnpackError::Duplicate { name: sanitize_text(&above) });
            }
            self.folders.insert(above);
        }
        if self.files.contains_key(&path) || (!is_folder && self.folders.contains(&path)) {
            return Err(UnpackError::Duplicate { name: shown() });
        }
        if is_folder {
            self.folders.insert(path);
            return Ok(());
        }
        self.files.insert(path, content(&mut entry, limits)?);
        Ok(())
    }

    /// Checks that this is the chart that was asked for.
    fn check(&self, chart: &ChartReference) -> Result<(), UnpackError> {
        let bytes = self.files.get(CHART_FILE).ok_or(UnpackError::ChartFile("is missing"))?;
        let read = read_first_document(&Arc::from(CHART_FILE), bytes);
        let root = read.documents.first().ok_or(UnpackError::ChartFile("cannot be read"))?;
        let other = |key, found: &str, expected: &str| {
            Err(UnpackError::OtherChart {
                key,
                found: sanitize_text(found),
                expected: sanitize_text(expected),
            })
        };
        let (name, version) = (scalar_text(root, "name"), scalar_text(root, "version"));
        let top = self.top.as_deref().unwrap_or_default();
        if name != chart.name {
            return other("name", &name, &chart.name);
        }
        if top != name {
            return other("folder", top, &name);
        }
        if !is_same_version(&version, &chart.version) {
            return other("version", &version, &chart.version);
        }
        Ok(())
    }
}

/// Returns the word for an entry that is neither file nor folder.
fn other_kind(kind: EntryType) -> Option<&'static str> {
    match kind {
        EntryType::Regular | EntryType::Directory => None,
        EntryType::Symlink | EntryType::Link => Some("a link"),
        EntryType::Char | EntryType::Block => Some("a device"),
        EntryType::Fifo => Some("a pipe"),
        _ => Some("of an odd kind"),
    }
}

/// Returns the parts of a name, or why it is none.
fn parts(raw: &[u8], is_folder: bool) -> Result<Vec<&str>, &'static str> {
    let name = std::str::from_utf8(raw).map_err(|_| "is no text")?;
    if name.len() > MAX_PATH_BYTES {
        return Err("is too long");
    }
    if name.contains('\\') || name.chars().any(char::is_control) {
        return Err("has a backslash or a control character");
    }
    if name.starts_with('/') {
        return Err("is absolute");
    }
    let name = name.strip_prefix("./").unwrap_or(name);
    let name = if is_folder { name.strip_suffix('/').unwrap_or(name) } else { name };
    if is_folder && matches!(name, "" | ".") {
        return Ok(Vec::new());
    }
    let parts: Vec<&str> = name.split('/').collect();
    if parts.iter().any(|part| matches!(*part, "" | "." | "..")) {
        return Err("has an empty part, `.` or `..`");
    }
    if parts.iter().any(|part| part.len() > MAX_FILE_NAME_BYTES) || parts.len() > MAX_FOLDER_LEVELS {
        return Err("is too long");
    }
    Ok(parts)
}

fn content(entry: &mut impl Read, limits: UnpackLimits) -> Result<Vec<u8>, UnpackError> {
    let mut content = Vec::new();
    // One byte more than is allowed shows that there is more. The size in the header is not
    // trusted: it reserves no memory.
    let read = entry.take(limits.file + 1).read_to_end(&mut content);
    read.map_err(|error| fault(&error, limits))?;
    if content.len() as u64 > limits.file {
        return Err(UnpackError::TooLarge { unit: "bytes in one file", most: limits.file });
    }
    Ok(content)
}

/// A reader that fails where more comes out of an archive than may.
struct BoundedReader<R> {
    inner: R,
    left: u64,
}

/// The error of an archive that unpacks to too much.
const TOO_LARGE_ERROR: io::ErrorKind = io::ErrorKind::FileTooLarge;

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or(TOO_LARGE_ERROR)?;
        Ok(read)
    }
}

fn fault(error: &io::Error, limits: UnpackLimits) -> UnpackError {
    if is_too_much(error) {
        return UnpackError::TooLarge { unit: "bytes when unpacked", most: limits.total };
    }
    UnpackError::Unreadable(sanitize_text(&error.to_string()))
}

/// Looks through the errors that the reader of archives puts around it.
fn is_too_much(error: &io::Error) -> bool {
    if error.kind() == TOO_LARGE_ERROR {
        return true;
    }
    let mut cause = error.get_ref().map(|inner| inner as &(dyn std::error::Error + 'static));
    while let Some(inner) = cause {
        if inner.downcast_ref::<io::Error>().is_some_and(|inner| inner.kind() == TOO_LARGE_ERROR) {
            return true;
        }
        cause = inner.source();
    }
    false
}

#[cfg(test)]
mod tests;
