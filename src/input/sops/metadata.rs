//! The metadata of a file: for whom it is encrypted, what of it, and its MAC.

use serde_json::{Value, json};

use super::error::MetadataFault;
use super::rules::EncryptionRule;

/// Entries of age that are looked at.
pub(super) const MAX_METADATA_ENTRIES: usize = 256;

/// Services and programs that a data key may be encrypted with, besides age.
const KEY_SERVICES: [(&str, &str); 6] = [
    ("pgp", "PGP"),
    ("kms", "AWS KMS"),
    ("gcp_kms", "Google Cloud KMS"),
    ("hckms", "Huawei Cloud KMS"),
    ("azure_kv", "Azure Key Vault"),
    ("hc_vault", "HashiCorp Vault"),
];

/// The data key, encrypted for one recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgeEntry {
    pub(super) recipient: String,
    pub(super) armored: String,
}

impl AgeEntry {
    pub(super) fn read(entry: &Value) -> Option<Self> {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
        Some(Self { recipient: text("recipient").unwrap_or_default(), armored: text("enc")? })
    }

    /// Returns the entry in the form of SOPS.
    pub(super) fn to_value(&self) -> Value {
        json!({ "recipient": self.recipient, "enc": self.armored })
    }
}

/// The metadata below `sops`.
#[derive(Debug)]
pub(super) struct SopsMetadata {
    pub(super) entries: Vec<AgeEntry>,
    /// The names of what else it is encrypted for.
    pub(super) others: Vec<&'static str>,
    /// The MAC, encrypted as a value.
    pub(super) mac: String,
    /// The time of the last change, which the MAC is bound to.
    pub(super) last_modified: String,
    pub(super) rule: EncryptionRule,
    /// Indicates whether the MAC leaves out what is not encrypted.
    pub(super) only_encrypted: bool,
}

impl SopsMetadata {
    /// Reads the metadata, whose scalars are all texts.
    pub(super) fn read(sops: &Value) -> Result<Self, MetadataFault> {
        let text = |key: &str| sops.get(key).and_then(Value::as_str).unwrap_or_default();
        let keys = Self::key_group(sops)?;
        let list = |key: &str| keys.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let age = list("age");
        if age.len() > MAX_METADATA_ENTRIES {
            return Err(MetadataFault::TooManyRecipients);
        }
        let metadata = Self {
            entries: age.iter().filter_map(AgeEntry::read).collect(),
            others: KEY_SERVICES
                .iter()
                .filter(|(key, _)| !list(key).is_empty())
                .map(|(_, name)| *name)
                .collect(),
            mac: text("mac").to_owned(),
            last_modified: text("lastmodified").to_owned(),
            rule: EncryptionRule::read(sops)?,
            only_encrypted: matches!(text("mac_only_encrypted"), "1" | "t" | "T" | "true" | "True" | "TRUE"),
        };
        match () {
            () if metadata.mac.is_empty() => Err(MetadataFault::NoMac),
            () if metadata.entries.is_empty() && metadata.others.is_empty() => Err(MetadataFault::NoKeys),
            () => Ok(metadata),
        }
    }

    /// Returns the mapping that has the lists of keys.
    fn key_group(sops: &Value) -> Result<&Value, MetadataFault> {
        let has = |key: &str| sops.get(key).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        if has("age") || KEY_SERVICES.iter().any(|(key, _)| has(key)) {
            return Ok(sops);
        }
        match sops.get("key_groups").and_then(Value::as_array).map(Vec::as_slice) {
            None | Some([]) => Ok(sops),
            Some([group]) => Ok(group),
            Some(_) => Err(MetadataFault::KeyGroups),
        }
    }
}
