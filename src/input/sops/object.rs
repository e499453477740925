//! Objects that went through a renderer: each encrypted value is opened where it is now. It is
//! bound to its key path, which merges and transformations keep.
//!
//! The statement of a file's `mac` about the whole of it was checked before, on the file.

use serde_json::{Map, Value};

use crate::manifest::json_number;
use crate::object::ManifestOrigin;

use super::age::{AgeIdentities, AttemptBudget};
use super::document::data_key;
use super::error::{MetadataFault, SopsError};
use super::leaves::{NamedFile, SOPS_KEY};
use super::metadata::SopsMetadata;
use super::opening::path_excerpt;
use super::value::{DataKey, DecryptedValue, ENCRYPTED_PREFIX, EncryptedValue, EncryptedValueFault};

/// The prefixes of the key path of a value: it was in a list of objects, which readers and
/// renderers take apart.
const KEY_PATH_PREFIXES: [&str; 2] = ["", "items:"];
/// Bytes that are decrypted and authenticated for one object.
const MAX_OBJECT_DECRYPTION_BYTES: usize = 64 << 20;

/// Opens all encrypted values of an object with those keys of files that fit, and takes out its
/// metadata. Comments in lists go away.
///
/// # Errors
///
/// When a value fits none of the keys, as one does that was edited or moved to another key.
pub(crate) fn open_object(
    object: &mut Value,
    at: &ManifestOrigin,
    keys: &[DataKey],
) -> Result<(), SopsError> {
    if let Some(root) = object.as_object_mut() {
        root.remove(SOPS_KEY);
    }
    let mut opener =
        ObjectOpener { at, keys, path: String::new(), last: (0, ""), work: MAX_OBJECT_DECRYPTION_BYTES };
    opener.value(object).map(|_| ())
}

/// The fate of a value in a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListItemAction {
    Keep,
    Remove,
}

/// Returns the key of an object's values, by its own metadata.
///
/// # Errors
///
/// When it is not encrypted for one of these identities.
pub(crate) fn object_key(
    object: &Value,
    at: &ManifestOrigin,
    identities: &AgeIdentities,
) -> Result<DataKey, SopsError> {
    let faulty = |fault| SopsError::Metadata { at: at.clone(), fault };
    let sops = object.get(SOPS_KEY).ok_or_else(|| faulty(MetadataFault::Missing))?;
    let metadata = SopsMetadata::read(sops).map_err(faulty)?;
    data_key(NamedFile(&at.file), at.line, &metadata, identities, &mut AttemptBudget::new())
}

struct ObjectOpener<'k> {
    at: &'k ManifestOrigin,
    keys: &'k [DataKey],
    /// The keys on the way to the value, each with a colon behind it.
    path: String,
    /// The key and the prefix that fitted last.
    last: (usize, &'static str),
    work: usize,
}

impl ObjectOpener<'_> {
    /// Opens a value. The reader of manifests has bounded its depth.
    fn value(&mut self, value: &mut Value) -> Result<ListItemAction, SopsError> {
        match value {
            Value::Object(members) => self.members(members)?,
            Value::Array(items) => {
                let mut fault = None;
                items.retain_mut(|item| match fault {
                    Some(_) => true,
                    None => match self.value(item) {
                        Ok(fate) => fate == ListItemAction::Keep,
                        Err(error) => {
                            fault = Some(error);
                            true
                        }
                    },
                });
                if let Some(fault) = fault {
                    return Err(fault);
                }
            }
            Value::String(text) if text.starts_with(ENCRYPTED_PREFIX) => {
                let opened = EncryptedValue::parse(text).and_then(|encrypted| self.open(&encrypted));
                let opened = opened.and_then(|opened| tree(&opened)).map_err(|fault| self.fault(fault))?;
                let Some(opened) = opened else { return Ok(ListItemAction::Remove) };
                *value = opened;
            }
            _ => {}
        }
        Ok(ListItemAction::Keep)
    }

    fn members(&mut self, members: &mut Map<String, Value>) -> Result<(), SopsError> {
        for (key, value) in members {
            let before = self.path.len();
            self.path.push_str(key);
            self.path.push(':');
            if self.value(value)? == ListItemAction::Remove {
                return Err(self.fault(EncryptedValueFault::Type));
            }
            self.path.truncate(before);
        }
        Ok(())
    }

    fn open(&mut self, encrypted: &EncryptedValue<'_>) -> Result<DecryptedValue, EncryptedValueFault> {
        let all = (0..self.keys.len()).flat_map(|key| KEY_PATH_PREFIXES.map(|prefix| (key, prefix)));
        for (key, prefix) in std::iter::once(self.last).chain(all) {
            let Some(data_key) = self.keys.get(key) else { continue };
            let cost = encrypted.len() + prefix.len() + self.path.len();
            self.work = self.work.checked_sub(cost).ok_or(EncryptedValueFault::TooMuchWork)?;
            match data_key.open(encrypted, &format!("{prefix}{}", self.path)) {
                Err(EncryptedValueFault::TagMismatch) => {}
                opened => {
                    self.last = (key, prefix);
                    return opened;
                }
            }
        }
        Err(EncryptedValueFault::TagMismatch)
    }

    fn fault(&self, fault: EncryptedValueFault) -> SopsError {
        SopsError::Value { at: self.at.clone(), path: path_excerpt(&self.path), fault }
    }
}

/// Returns a value as Kubernetes reads what SOPS writes of it; none for a comment.
fn tree(opened: &DecryptedValue) -> Result<Option<Value>, EncryptedValueFault> {
    Ok(Some(match opened {
        DecryptedValue::Text(text) | DecryptedValue::Time(text) => Value::String(text.to_string()),
        DecryptedValue::Bytes(_) => return Err(EncryptedValueFault::Binary),
        DecryptedValue::Int(int) => Value::from(*int),
        DecryptedValue::Float(float) => {
            Value::Number(json_number(*float).ok_or(EncryptedValueFault::NotFinite)?)
        }
        DecryptedValue::Bool(truth) => Value::Bool(*truth),
        DecryptedValue::Comment(_) => return Ok(None),
    }))
}
