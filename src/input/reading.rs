//! The objects of one file of a snapshot, with the places that a person edits.

use crate::manifest::{self, ManifestFile};
use crate::source::SnapshotFile;

/// Reads the objects of a file, each with its place; a rendered one names what it was made of.
pub(crate) fn read_manifest(file: &SnapshotFile, bytes: &[u8]) -> ManifestFile {
    let mut reading = manifest::read(&file.path, bytes);
    if file.origin.is_some() {
        for item in &mut reading.items {
            item.origin = file.origin_of(item.origin.clone());
        }
        for found in &mut reading.diagnostics {
            found.origin = file.origin_of(found.origin.clone());
            found.excerpt = None;
        }
    }
    reading
}
