//! The objects of one file of a snapshot, with the places that a person edits.

use std::sync::Arc;

use serde_json::Value;
use zeroize::Zeroizing;

use super::decryption::{Decrypter, NO_KEY};
use super::exposure::{SealedPlaces, drop_unidentified, hold_exposed_back};
use crate::manifest::{self, ManifestFile};
use crate::object::{Diagnostic, ManifestOrigin};
use crate::source::SnapshotFile;

/// Reads the objects of a file, each with its place; a rendered one names what it was made of.
///
/// Encrypted values are opened, and stand in the items alone. An object with one that is not below
/// the data of a Secret is held back. So is what cannot be opened, with the reason.
pub(crate) fn read_manifest(file: &SnapshotFile, bytes: &[u8], decrypter: &Decrypter) -> ManifestFile {
    match &file.origin {
        Some(_) => read_rendered(file, bytes, decrypter),
        None => match decrypter.open_file(&file.path, bytes) {
            Ok(None) => manifest::read(&file.path, bytes),
            Ok(Some(plaintext)) => {
                let (sealed, opened) =
                    (manifest::read(&file.path, bytes), manifest::read(&file.path, &plaintext));
                hold_exposed_back(&sealed, opened, &SealedPlaces::of_file(&file.path, bytes))
            }
            Err(found) => unopened(manifest::read(&file.path, bytes), *found),
        },
    }
}

fn read_rendered(file: &SnapshotFile, bytes: &[u8], decrypter: &Decrypter) -> ManifestFile {
    let read = |bytes: &[u8]| {
        let mut reading = manifest::read(&file.path, bytes);
        for item in &mut reading.items {
            item.origin = file.origin_of(item.origin.clone());
        }
        for found in &mut reading.diagnostics {
            found.origin = file.origin_of(found.origin.clone());
            found.excerpt = None;
        }
        reading
    };
    let Ok(mut object) = serde_json::from_slice::<Value>(bytes) else { return read(bytes) };
    let at = file.origin_of(ManifestOrigin::of_file(Arc::clone(&file.path)));
    // A Secret of which a patch gave one value may have others as they are in its own file.
    let unsealed = match decrypter.open_sealed(&mut object, &at) {
        Ok(was_sealed) => was_sealed.then(|| text_of(&object)),
        Err(found) => return unopened(read(bytes), *found),
    };
    let before = unsealed.as_ref().map_or(bytes, |text| text.as_bytes());
    match decrypter.open_rendered(&mut object, &at) {
        Ok(false) => read(before),
        Ok(true) => {
            let opened = read(text_of(&object).as_bytes());
            hold_exposed_back(&read(before), opened, &SealedPlaces::unknown(&file.path))
        }
        Err(found) => unopened(read(bytes), *found),
    }
}

fn text_of(object: &Value) -> Zeroizing<String> {
    Zeroizing::new(object.to_string())
}

/// Holds the objects of a file back that cannot be opened.
fn unopened(mut reading: ManifestFile, found: Diagnostic) -> ManifestFile {
    for item in &mut reading.items {
        item.valid = false;
    }
    // A file that was edited after it was encrypted says nothing for certain, not even names.
    reading.understood &= found.code == NO_KEY;
    drop_unidentified(&mut reading);
    reading.diagnostics.retain(|known| known.code != "sops");
    reading.diagnostics.push(found);
    reading
}
