//! The objects of one file of a snapshot, with the places that a person edits.

use std::sync::Arc;

use serde_json::Value;

use super::decryption::{Decrypter, NO_KEY};
use super::encrypted_fields::find_exposed_field;
use crate::manifest::{self, ManifestFile, ManifestItem, PlacedValue, read_documents};
use crate::object::{Diagnostic, ManifestOrigin};
use crate::source::SnapshotFile;

/// The code of an encrypted object of another kind than Secret.
const ENCRYPTED_KIND: &str = "encrypted-kind";

/// The code of an encrypted field that is no value of a Secret.
const ENCRYPTED_FIELD: &str = "encrypted-field";

/// Reads the objects of a file, each with its place; a rendered one names what it was made of.
///
/// Encrypted values are opened, and stand in the items alone. A file that cannot be opened is
/// wanted, and held back with the reason.
pub(crate) fn read_manifest(file: &SnapshotFile, bytes: &[u8], decrypter: &Decrypter) -> ManifestFile {
    match &file.origin {
        Some(_) => read_rendered(file, bytes, decrypter),
        None => match decrypter.open_file(&file.path, bytes) {
            Ok(None) => manifest::read(&file.path, bytes),
            Ok(Some(plaintext)) => {
                let reading = opened(manifest::read(&file.path, &plaintext));
                let sealed = read_documents(&file.path, bytes).documents;
                held_if_exposed(reading, &sealed, &read_documents(&file.path, &plaintext).documents, file)
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
    let at = file.origin_of(crate::object::ManifestOrigin::of_file(Arc::clone(&file.path)));
    match decrypter.open_rendered(&mut object, &at) {
        Ok(false) => read(bytes),
        Ok(true) => {
            let plaintext = zeroize::Zeroizing::new(object.to_string());
            let reading = opened(read(plaintext.as_bytes()));
            let sealed = read_documents(&file.path, bytes).documents;
            held_if_exposed(
                reading,
                &sealed,
                &read_documents(&file.path, plaintext.as_bytes()).documents,
                file,
            )
        }
        Err(found) => unopened(read(bytes), *found),
    }
}

/// Takes the values of an opened file out of all that is shown of it. Only a Secret's values are
/// masked wherever an object is shown.
fn opened(mut reading: ManifestFile) -> ManifestFile {
    for found in &mut reading.diagnostics {
        found.excerpt = None;
    }
    for item in &mut reading.items {
        if is_secret(item) {
            continue;
        }
        item.valid = false;
        let message =
            format!("this {} is encrypted, and only the values of a Secret are never shown", item.gvk.kind);
        let hint = "move the values into a Secret, or commit the object as it is";
        reading.diagnostics.push(Diagnostic::error(item.origin.clone(), ENCRYPTED_KIND, message).hint(hint));
    }
    reading
}

/// Holds the objects of an opened file back where a field was encrypted that would be shown.
fn held_if_exposed(
    mut reading: ManifestFile,
    sealed: &[PlacedValue],
    plain: &[PlacedValue],
    file: &SnapshotFile,
) -> ManifestFile {
    // Secrets of other kinds have a finding of their own.
    if !reading.items.iter().all(is_secret) {
        return reading;
    }
    let exposed = plain.iter().zip(0_usize..).find_map(|(after, number)| {
        let before = sealed.get(number).map_or(Value::Null, PlacedValue::to_value);
        find_exposed_field(&before, after)
    });
    let Some(field) = exposed else { return reading };
    for item in &mut reading.items {
        item.valid = false;
    }
    let place = ManifestOrigin::new(Arc::clone(&file.path), field.place.line, field.place.column);
    let message = format!("{} is encrypted, and only the values of a Secret are never shown", field.path);
    let hint =
        "encrypt `data` and `stringData` alone: `sops encrypt --encrypted-regex '^(data|stringData)$'`";
    let found = Diagnostic::error(file.origin_of(place), ENCRYPTED_FIELD, message).hint(hint);
    reading.diagnostics.push(found);
    reading
}

fn is_secret(item: &ManifestItem) -> bool {
    item.gvk.group.is_empty() && &*item.gvk.kind == "Secret"
}

/// Holds the objects of a file back that cannot be opened.
fn unopened(mut reading: ManifestFile, found: Diagnostic) -> ManifestFile {
    for item in &mut reading.items {
        item.valid = false;
    }
    // A file that was edited after it was encrypted says nothing for certain, not even names.
    reading.understood &= found.code == NO_KEY;
    reading.diagnostics.retain(|known| known.code != "sops");
    reading.diagnostics.push(found);
    reading
}
