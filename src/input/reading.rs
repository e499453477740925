//! The objects of one file of a snapshot, with the places that a person edits.

use std::sync::Arc;

use serde_json::Value;
use zeroize::Zeroizing;

use super::decryption::{Decrypter, NOT_SUPPORTED, can_be_closed, is_key_missing};
use super::exposure::{SealedPositions, drop_unidentified, hold_exposed_back};
use super::render_cipher::{RECIPIENTS_KEY, SEALED_PREFIX};
use super::sops::is_encrypted_value;
use crate::manifest::{self, ManifestFile};
use crate::object::{Diagnostic, ManifestOrigin};
use crate::source::SnapshotFile;

/// Reads the objects of a file, each with its place; a rendered one names what it was made of.
///
/// Encrypted values are opened, and are in the items alone. An object with one that is not below
/// the data of a Secret is held back. So is what cannot be opened, with the reason.
pub(crate) fn read_manifest(file: &SnapshotFile, bytes: &[u8], decrypter: &Decrypter) -> ManifestFile {
    if file.origin.is_some() {
        return read_rendered(file, bytes, decrypter);
    }
    if let Some(reading) = read_for_operator(&file.path, bytes) {
        return reading;
    }
    match decrypter.open_file(&file.path, bytes) {
        Ok(None) => manifest::read(&file.path, bytes),
        Ok(Some(plaintext)) => {
            let (sealed, opened) =
                (manifest::read(&file.path, bytes), manifest::read(&file.path, &plaintext));
            hold_exposed_back(&sealed, opened, &SealedPositions::of_file(&file.path, bytes))
        }
        Err(found) => hold_unopened_back(manifest::read(&file.path, bytes), *found),
    }
}

/// Reads the objects of a file that are all encrypted for an operator; none of another file.
pub(super) fn read_for_operator(path: &Arc<str>, bytes: &[u8]) -> Option<ManifestFile> {
    // Few files have such objects, and need to be read for it.
    if !std::str::from_utf8(bytes).is_ok_and(|text| text.contains("SopsSecret")) {
        return None;
    }
    let reading = manifest::read(path, bytes);
    let are_all = reading.items.iter().all(|item| manifest::is_for_operator(&item.body));
    (are_all && reading.understood && !reading.items.is_empty()).then_some(reading)
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
    // Nearly all are in the open, and need not be parsed twice.
    if !can_be_closed(bytes) {
        return read(bytes);
    }
    let at = file.origin_of(ManifestOrigin::of_file(Arc::clone(&file.path)));
    // The reader of manifests takes deeper nesting than the one that opens values.
    let Ok(mut object) = serde_json::from_slice::<Value>(bytes) else {
        let reading = read(bytes);
        let is_closed = |body: &Value| body.get(RECIPIENTS_KEY).is_some() || has_sealed_values(body);
        return if reading.items.iter().any(|item| is_closed(&item.body)) {
            hold_unopened_back(reading, nested_too_deeply(at))
        } else {
            reading
        };
    };
    // A Secret of which a patch gave one value may have others as they are in its own file.
    let unsealed = match decrypter.open_sealed(&mut object, &at) {
        Ok(was_sealed) => was_sealed.then(|| text_of(&object)),
        Err(found) => return hold_unopened_back(read(bytes), *found),
    };
    let before = unsealed.as_ref().map_or(bytes, |text| text.as_bytes());
    match decrypter.open_rendered(&mut object, &at) {
        Ok(false) => read(before),
        Ok(true) => {
            let opened = read(text_of(&object).as_bytes());
            hold_exposed_back(&read(before), opened, &SealedPositions::unknown(&file.path))
        }
        Err(found) => hold_unopened_back(read(bytes), *found),
    }
}

/// Returns whether an object has values that were encrypted or sealed, and are not open.
pub(crate) fn has_sealed_values(body: &Value) -> bool {
    match body {
        Value::String(text) => is_encrypted_value(text) || text.starts_with(SEALED_PREFIX),
        Value::Array(items) => items.iter().any(has_sealed_values),
        Value::Object(members) => members.values().any(has_sealed_values),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn nested_too_deeply(at: ManifestOrigin) -> Diagnostic {
    let message = "the encrypted values of this object cannot be opened: it is nested too deeply";
    Diagnostic::error(at, NOT_SUPPORTED, message).hint("nest it at most 128 levels deep")
}

fn text_of(object: &Value) -> Zeroizing<String> {
    Zeroizing::new(object.to_string())
}

/// Holds the objects of a file back that cannot be opened.
fn hold_unopened_back(mut reading: ManifestFile, found: Diagnostic) -> ManifestFile {
    for item in &mut reading.items {
        item.valid = false;
    }
    // A file that was edited after it was encrypted says nothing for certain, not even names.
    reading.understood &= is_key_missing(&found);
    drop_unidentified(&mut reading);
    reading.diagnostics.retain(|known| known.code != "sops");
    reading.diagnostics.push(found);
    reading
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::input::decryption::NO_KEY;
    use crate::input::render_cipher::RootCipher;
    use crate::input::sops::{sealing, sealing_secret};
    use crate::object::RenderOrigin;

    fn decrypter(identity: u8) -> Decrypter {
        Decrypter::new(Vec::new(), Some(sealing::identity(identity)))
    }

    /// Returns a Secret as it is stored that was rendered from a file for key 1.
    fn stored_secret() -> Value {
        let enc = sealing::age_file(&[1], &sealing::DATA_KEY);
        let holders = json!([[{"recipient": "age1of-nobody", "enc": enc}]]);
        let at = ManifestOrigin::of_file("a");
        let secret = sealing_secret(&holders[0], &at, &decrypter(1).identities().unwrap()).unwrap();
        let mut object = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"},
            "stringData": {"password": "hunter"},
        });
        RootCipher::of(&[secret]).unwrap().seal(&mut object, &holders).unwrap();
        object
    }

    fn read(object: &Value, decrypter: &Decrypter) -> ManifestFile {
        let origin = RenderOrigin { root: ".".into(), renderer: "kustomize".into(), places: [].into() };
        let file = SnapshotFile { origin: Some(origin.into()), ..SnapshotFile::in_test("a") };
        read_manifest(&file, object.to_string().as_bytes(), decrypter)
    }

    #[test]
    fn a_file_for_other_keys_than_those_of_age_says_so_whatever_identities_there_are() {
        let text = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: 'ENC[]'}\nsops:\n  mac: x\n  \
                    lastmodified: x\n  version: 3.10.0\n";
        for (keys, name) in [("pgp: [{fp: A, enc: x}]", "PGP"), ("kms: [{arn: a, enc: x}]", "AWS KMS")] {
            let text = format!("{text}  {keys}\n");
            for decrypter in [Decrypter::default(), decrypter(1)] {
                let reading = read_manifest(&SnapshotFile::in_test("a.yaml"), text.as_bytes(), &decrypter);
                let found = reading.diagnostics.iter().find(|found| found.is_error()).unwrap();
                assert_eq!(found.message, format!("the file is encrypted for {name}, and not for age"));
                assert!(found.hint.as_ref().unwrap().contains("--add-age"), "{found:?}");
                // Its name is known, so that nothing else is kept from being deleted.
                assert!(reading.understood && !reading.items[0].valid && reading.items.len() == 1);
            }
        }
    }

    #[test]
    fn an_object_for_an_operator_stays_encrypted_and_needs_no_identity() {
        let object = json!({
            "apiVersion": "isindir.github.com/v1alpha3", "kind": "SopsSecret", "metadata": {"name": "a"},
            "spec": {"secretTemplates": [{"name": "b", "stringData": {"p": "ENC[AES256_GCM,data:x]"}}]},
            "sops": {"kms": [{"arn": "a", "enc": "x"}], "mac": "ENC[AES256_GCM,data:x]", "version": "3.10.0"},
        });
        let text = object.to_string();
        for decrypter in [Decrypter::default(), decrypter(1)] {
            let plain = read_manifest(&SnapshotFile::in_test("a.yaml"), text.as_bytes(), &decrypter);
            for reading in [plain, read(&object, &decrypter)] {
                assert!(reading.understood && reading.diagnostics.is_empty(), "{:?}", reading.diagnostics);
                assert!(reading.items.len() == 1 && reading.items[0].valid);
                assert_eq!(reading.items[0].body, object);
            }
        }
        // A file with a Secret too is opened as a whole, or held back.
        let one = |head: &str| format!("{head}\nmetadata:\n  name: a\nsops:\n  mac: x\n");
        let operator = one("apiVersion: isindir.github.com/v1alpha3\nkind: SopsSecret");
        let both = format!("{operator}---\n{}", one("apiVersion: v1\nkind: Secret"));
        let reading = read_manifest(&SnapshotFile::in_test("a.yaml"), both.as_bytes(), &Decrypter::default());
        assert_eq!(
            reading.items.iter().map(|item| item.valid).collect::<Vec<_>>(),
            [false; 2],
            "{reading:?}"
        );
    }

    /// Returns lists in each other.
    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(1), |inner, _| json!([inner]))
    }

    #[test]
    fn an_object_that_is_nested_too_deeply_to_be_opened_is_held_back() {
        let with_nested = |mut object: Value, levels: usize| {
            object["extra"] = nested(levels);
            object
        };
        let plain = || json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        for (object, is_valid) in [
            (with_nested(stored_secret(), 100), true),
            (with_nested(stored_secret(), 200), false),
            (with_nested(plain(), 200), true),
        ] {
            let reading = read(&object, &decrypter(1));
            let errors: Vec<_> = reading.diagnostics.iter().filter(|found| found.is_error()).collect();
            assert_eq!(reading.items[0].valid, is_valid, "{errors:?}");
            assert_eq!(errors.iter().any(|found| found.code == NOT_SUPPORTED), !is_valid, "{errors:?}");
            // Its name is known, so that nothing else is kept from being deleted.
            assert!(reading.understood, "{errors:?}");
            assert!(reading.items.iter().all(|item| !item.valid || !has_sealed_values(&item.body)));
        }
    }

    #[test]
    fn a_sealed_secret_is_opened_or_held_back_by_its_name() {
        let reading = read(&stored_secret(), &decrypter(1));
        assert!(reading.understood && reading.items[0].valid, "{:?}", reading.diagnostics);
        let expected = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"},
            "stringData": {"password": "hunter"},
        });
        assert_eq!(reading.items[0].body, expected);
        let mut moved = stored_secret();
        moved["metadata"]["name"] = json!("web");
        let mut other_kind = stored_secret();
        other_kind["kind"] = json!("ConfigMap");
        for (object, identities, code, is_understood) in [
            (stored_secret(), Decrypter::default(), NO_KEY, true),
            (stored_secret(), decrypter(2), NO_KEY, true),
            (moved, decrypter(1), "seal-mismatch", false),
            (other_kind, decrypter(1), "seal-mismatch", false),
        ] {
            let reading = read(&object, &identities);
            assert!(reading.items.iter().all(|item| !item.valid), "{code}");
            assert_eq!(reading.items.len(), 1, "{code}");
            assert!(reading.diagnostics.iter().any(|found| found.code == code), "{:?}", reading.diagnostics);
            assert_eq!(reading.understood, is_understood, "{code}");
            assert!(!format!("{reading:?}").contains("hunter"), "{code}");
        }
    }
}
