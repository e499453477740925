//! Encrypted files among those that a root reads: their codes are checked as they are in git, and
//! renders see ciphertext alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::decryption::{Decrypter, check_rendered, is_encrypted_object};
use super::kustomize::{Closure, ReferenceRole};
use super::paths;
use super::root_render::{RenderError, RenderedObject};
use super::sops::{DataKey, SopsFormat, is_encrypted, is_sealed};
use super::tree::FileTree;
use crate::object::{Diagnostic, ManifestOrigin};

/// The code of an encrypted file in a place where a program would read its ciphertext as the value.
const ENCRYPTED_INPUT: &str = "encrypted-input";

/// Checks the encrypted values of rendered objects: each must be as it is in a file of the root
/// whose code fits, and stand beside the metadata that opens it.
///
/// # Errors
/// Fails with the first fault.
pub(super) fn check<T: FileTree>(
    decrypter: &Decrypter,
    closure: &Closure,
    files: &T,
    objects: Vec<RenderedObject>,
) -> Result<Vec<RenderedObject>, RenderError> {
    let resources = resources(closure);
    let mut keys: Vec<DataKey> = Vec::new();
    let refused = RenderError::Encrypted;
    for (path, file) in &closure.files {
        let bytes = files.read(file.file.blob)?;
        if !is_encrypted(&bytes, SopsFormat::of_name(path)) {
            continue;
        }
        if !resources.contains(&**path) {
            return Err(refused(Box::new(encrypted_input(&file.source))));
        }
        keys.extend(decrypter.file_key(&file.source, &bytes).map_err(refused)?);
    }
    for object in objects.iter().filter(|object| is_encrypted_object(&object.body)) {
        let at = object_place(object, closure);
        check_rendered(&object.body, &at, &keys).map_err(|error| refused(Box::new(error.diagnostic())))?;
    }
    let is_torn = |object: &&RenderedObject| !is_encrypted_object(&object.body) && has_sealed(&object.body);
    if let Some(torn) = objects.iter().filter(|_| !keys.is_empty()).find(is_torn) {
        return Err(refused(Box::new(without_metadata(object_place(torn, closure)))));
    }
    Ok(objects)
}

/// Returns the place of an object, else the folder of the root.
fn object_place(object: &RenderedObject, closure: &Closure) -> ManifestOrigin {
    let place = object.origin.places.first().cloned();
    place.unwrap_or_else(|| ManifestOrigin::of_file(Arc::clone(&closure.root)))
}

/// Returns whether a tree has an encrypted value. The reader of the output bounds its depth.
fn has_sealed(value: &Value) -> bool {
    match value {
        Value::String(text) => is_sealed(text),
        Value::Array(items) => items.iter().any(has_sealed),
        Value::Object(members) => members.values().any(has_sealed),
        _ => false,
    }
}

/// Returns the paths of the files that hold objects.
fn resources(closure: &Closure) -> BTreeSet<String> {
    let folders = closure.folders.iter().flat_map(|folder| {
        let references = folder.kustomization.references.iter();
        let objects = references.filter(|reference| reference.role == ReferenceRole::Resource);
        objects.filter_map(|reference| paths::join(&folder.path, &reference.target))
    });
    folders.collect()
}

/// An item of a list loses the metadata, which stands beside the items.
fn without_metadata(at: ManifestOrigin) -> Diagnostic {
    let message =
        "kustomize took this object out of an encrypted list, and without `sops` nothing opens its values";
    let hint = "make each item of the list a document of its own, and encrypt the file again";
    Diagnostic::error(at, ENCRYPTED_INPUT, message).hint(hint)
}

fn encrypted_input(file: &Arc<str>) -> Diagnostic {
    let message =
        "this file is encrypted by SOPS, and a generator or a patch would put its ciphertext into objects";
    let hint = "encrypt a Secret instead, and name that file under `resources`";
    Diagnostic::file_error(Arc::clone(file), ENCRYPTED_INPUT, message).hint(hint)
}
