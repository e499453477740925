//! Encrypted files among those that a root reads: their codes are checked as they are in git, and
//! renders see ciphertext alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::decryption::{Decrypter, check_rendered, is_encrypted_object};
use super::kustomize::{Closure, ReferenceRole};
use super::paths;
use super::root_render::{RenderError, RenderedObject};
use super::sops::{DataKey, SopsFormat, is_encrypted};
use super::tree::FileTree;
use crate::object::{Diagnostic, ManifestOrigin};

/// The code of an encrypted file in a place where a program would read its ciphertext as the value.
const ENCRYPTED_INPUT: &str = "encrypted-input";

/// Checks the encrypted values of rendered objects: each must be as it is in a file of the root
/// whose code fits.
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
        let place = object.origin.places.first().cloned();
        let at = place.unwrap_or_else(|| ManifestOrigin::of_file(Arc::clone(&closure.root)));
        check_rendered(&object.body, &at, &keys).map_err(|error| refused(Box::new(error.diagnostic())))?;
    }
    Ok(objects)
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

fn encrypted_input(file: &Arc<str>) -> Diagnostic {
    let message =
        "this file is encrypted by SOPS, and a generator or a patch would put its ciphertext into objects";
    let hint = "encrypt a Secret instead, and name that file under `resources`";
    Diagnostic::file_error(Arc::clone(file), ENCRYPTED_INPUT, message).hint(hint)
}
