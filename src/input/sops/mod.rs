//! Files that SOPS encrypted for age: their metadata, their values, and the MAC over them.
//!
//! Owns the four formats (YAML, JSON, dotenv, binary), which values of a file are encrypted, and
//! how they look when they are decrypted. The `mac` of a file is checked on the file as it is in
//! git; only then is anything of it handed out. An object that went through a renderer is opened
//! value by value: each is bound to its key path, which renderers keep.
//!
//! **Invariant:** pure. No error, no `Debug` and no log has anything that was encrypted. A
//! plaintext that is handed out is wiped when it is dropped. Time and memory are linear in the
//! file, whatever it holds: gaps in lists of the metadata are bounded.

mod age;
mod comments;
mod document;
mod error;
mod flat;
mod leaves;
mod metadata;
mod object;
mod opening;
mod pattern;
mod positions;
mod rules;
mod splice;
mod value;
mod writing;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use zeroize::Zeroizing;

pub use age::AgeIdentities;
pub(crate) use error::{SopsError, text_excerpt};
pub(crate) use leaves::SOPS_KEY;
pub(crate) use object::{object_key, open_object};
pub(crate) use value::{DataKey, ENCRYPTED_PREFIX, SealingSecret, is_encrypted_comment, is_encrypted_value};

use age::AttemptBudget;
use document::OpenedDocuments;
use error::MetadataFault;
use leaves::NamedFile;
use metadata::{AgeEntry, MAX_METADATA_ENTRIES};

use crate::manifest::MAX_MANIFEST_BYTES;
use crate::object::ManifestOrigin;

/// The format of a file, as SOPS takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SopsFormat {
    /// Documents of YAML.
    Yaml,
    /// One object of JSON.
    Json,
    /// Lines of `KEY=value`.
    Dotenv,
    /// Anything else: the whole file is one value in an object of JSON.
    Binary,
}

impl SopsFormat {
    /// Returns the format of a file with this name, by the rule of SOPS.
    pub fn of_name(name: &str) -> Self {
        let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        match () {
            () if ends(&[".yaml", ".yml"]) => Self::Yaml,
            () if ends(&[".json"]) => Self::Json,
            () if ends(&[".env"]) => Self::Dotenv,
            () => Self::Binary,
        }
    }
}

/// The layout of an opened file's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaintextLayout {
    /// As `sops decrypt` writes it, but that every comment stays in its place.
    Sops,
    /// Each value in the line that it has in the encrypted file, so that a finding names the line
    /// that people see.
    SameLines,
}

/// A file whose MAC fits.
pub struct OpenedFile<'f> {
    /// Its data key; several where it was put together of files that were encrypted each by itself.
    keys: Vec<FileKey>,
    content: OpenedContent<'f>,
}

/// A data key.
struct FileKey {
    key: DataKey,
    /// The same, encrypted for each recipient.
    entries: Vec<AgeEntry>,
}

/// The secret for render seals over what is made of a file.
pub(crate) struct FileSeal {
    /// The secret, which follows from the data key.
    pub(crate) secret: SealingSecret,
    /// The data key as it is encrypted for each recipient.
    pub(crate) holders: Value,
}

enum OpenedContent<'f> {
    Documents(OpenedDocuments<'f>),
    Bytes { bytes: Zeroizing<Vec<u8>>, values: Vec<Zeroizing<Vec<u8>>> },
}

impl fmt::Debug for OpenedFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpenedFile(..)")
    }
}

impl OpenedFile<'_> {
    /// Returns the keys of its values, for what a renderer made of them.
    pub fn into_keys(self) -> Vec<DataKey> {
        self.keys.into_iter().map(|key| key.key).collect()
    }

    /// Returns the secrets for seals over what is made of it.
    pub(crate) fn into_seals(self) -> Vec<FileSeal> {
        let seal = |FileKey { key, entries }: FileKey| FileSeal {
            secret: key.into_sealing_secret(),
            holders: entries.iter().map(AgeEntry::to_value).collect(),
        };
        self.keys.into_iter().map(seal).collect()
    }

    /// Returns what was encrypted, each value by itself. A boolean is left out: it gives nothing
    /// away.
    pub(crate) fn values(&self) -> Vec<Zeroizing<Vec<u8>>> {
        match &self.content {
            OpenedContent::Documents(documents) => documents.values().collect(),
            OpenedContent::Bytes { values, .. } => values.clone(),
        }
    }

    /// Returns the decrypted file. The reader of its format gives of it what was encrypted.
    ///
    /// # Errors
    ///
    /// When a value has no form in the format, or the file has one that SOPS does not write.
    pub fn plaintext(&self, layout: PlaintextLayout) -> Result<Zeroizing<Vec<u8>>, SopsError> {
        match &self.content {
            OpenedContent::Documents(documents) => documents.plaintext(&self.keys, layout),
            OpenedContent::Bytes { bytes, .. } => Ok(bytes.clone()),
        }
    }
}

/// Returns whether a file is one that SOPS encrypted: whether it has its metadata. A file that is
/// not of its format is not, but for one of INI.
pub fn is_encrypted(bytes: &[u8], format: SopsFormat) -> bool {
    // Few files of a repository come further than this.
    if bytes.len() as u64 > MAX_MANIFEST_BYTES || !can_be_encrypted(bytes) {
        return false;
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    match format {
        SopsFormat::Dotenv => flat::is_encrypted(text),
        SopsFormat::Binary if flat::is_encrypted_ini(text) => true,
        _ => document::is_encrypted(text, format),
    }
}

/// Returns whether a file may be encrypted in any format: only one that names SOPS is.
pub(crate) fn can_be_encrypted(bytes: &[u8]) -> bool {
    let word = b"sops";
    bytes.windows(word.len()).any(|window| window == word)
}

/// Returns whether a file is one that SOPS encrypted as INI, which is no format of ours.
pub(crate) fn is_encrypted_ini(bytes: &[u8]) -> bool {
    bytes.len() as u64 <= MAX_MANIFEST_BYTES && std::str::from_utf8(bytes).is_ok_and(flat::is_encrypted_ini)
}

/// Opens a file: finds its data key, opens its values and verifies its MAC.
///
/// # Errors
///
/// When it is not encrypted for one of these identities, or when anything of it was changed after
/// it was encrypted. Also when it is too large, or of a form that SOPS does not write.
pub fn open<'f>(
    file: &'f Arc<str>,
    bytes: &'f [u8],
    format: SopsFormat,
    identities: &AgeIdentities,
) -> Result<OpenedFile<'f>, SopsError> {
    let named = NamedFile(file);
    if bytes.len() as u64 > MAX_MANIFEST_BYTES {
        let limit = MAX_MANIFEST_BYTES as usize;
        return Err(SopsError::TooLarge { at: named.line(0), limit, unit: "bytes" });
    }
    let text = std::str::from_utf8(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes));
    let text = text.map_err(|_| SopsError::Form { at: named.line(0), form: "bytes that are not UTF-8" })?;
    match format {
        SopsFormat::Dotenv => flat::open(named, text, identities),
        SopsFormat::Binary => document::open_binary(named, text, identities),
        SopsFormat::Yaml | SopsFormat::Json => document::open(named, text, format, identities),
    }
}

/// Returns the secret for seals over what was made of a file, whose data key is encrypted for these
/// recipients.
///
/// # Errors
///
/// When it is encrypted for none of the identities.
pub(crate) fn sealing_secret(
    holders: &Value,
    at: &ManifestOrigin,
    identities: &AgeIdentities,
) -> Result<SealingSecret, SopsError> {
    let fault = |fault| SopsError::Metadata { at: at.clone(), fault };
    let entries = holders.as_array().ok_or_else(|| fault(MetadataFault::Shape))?;
    if entries.len() > MAX_METADATA_ENTRIES {
        return Err(fault(MetadataFault::TooManyRecipients));
    }
    let entries: Vec<AgeEntry> = entries.iter().filter_map(AgeEntry::read).collect();
    let key = document::entry_key(at, &entries, identities, &mut AttemptBudget::new());
    key.map(DataKey::into_sealing_secret)
}

#[cfg(test)]
pub(super) use tests::sealing;

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod tests;
