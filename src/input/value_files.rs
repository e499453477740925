//! The files of values that the charts of a source are given: they are no manifests.

use std::collections::HashSet;

use super::paths;
use super::root_job::JobOutcome;
use super::roots::{RenderRoot, RootForm};
use super::tree::FileTree;
use crate::manifest::read_documents;
use crate::source::{RenderedRoot, RootKey, RootOutcome, Snapshot, SnapshotFile, SourceError};

/// Takes the files of values out of the plain files of a source that has a chart. Their paths are
/// as seen from the folder of any chart, or from that of the source.
///
/// One that is a manifest too stays: nothing is deleted because a setting names its file.
///
/// # Errors
/// Fails where the files cannot be read.
pub(super) fn take_value_files<T: FileTree>(
    plain: &mut Snapshot,
    roots: &[RenderRoot],
    values: &[String],
    start: &str,
    files: &T,
) -> Result<Vec<JobOutcome>, SourceError> {
    let charts: Vec<&str> =
        roots.iter().filter(|root| root.form == RootForm::Helm).map(|root| &*root.folder).collect();
    if charts.is_empty() {
        return Ok(Vec::new());
    }
    let mut named = HashSet::new();
    for name in values {
        named.extend(charts.iter().copied().chain([start]).filter_map(|folder| paths::join(folder, name)));
    }
    let (mut left, mut outcomes) = (Vec::new(), Vec::new());
    for file in std::mem::take(&mut plain.files) {
        if named.contains(&paths::append(start, &file.path)) && !is_manifest(&file, start, files)? {
            let nothing = RootOutcome::Rendered(Vec::new().into());
            let root = RenderedRoot::new(file.path.clone(), key_of(&file), nothing);
            outcomes.push(JobOutcome { root, contents: Vec::new() });
        } else {
            left.push(file);
        }
    }
    plain.files = left;
    Ok(outcomes)
}

/// Returns whether a file has a document that says which kind of object it is.
fn is_manifest<T: FileTree>(file: &SnapshotFile, start: &str, files: &T) -> Result<bool, SourceError> {
    let Some(bytes) = super::substitution::file_bytes(file, start, files)? else { return Ok(true) };
    let read = read_documents(&file.path, &bytes);
    let is_object =
        |value: &serde_json::Value| ["apiVersion", "kind"].iter().all(|key| value.get(*key).is_some());
    Ok(read.documents.iter().any(|document| is_object(&document.to_value())))
}

/// Returns a key that no render has: its second half is empty.
fn key_of(file: &SnapshotFile) -> RootKey {
    let mut key = RootKey::default();
    key[..20].copy_from_slice(&<[u8; 20]>::from(file.blob));
    key
}
