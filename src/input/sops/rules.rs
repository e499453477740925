//! The values of a file that are encrypted, by the rule in its metadata.

use regex::bytes::Regex;
use serde_json::Value;

use super::error::MetadataFault;
use super::pattern;

/// The rule that holds where a file names none.
const DEFAULT_SUFFIX: &str = "_unencrypted";

/// A rule over the keys on the way to a value, or over its comments.
#[derive(Debug)]
pub(super) enum EncryptionRule {
    /// Encrypts all but what is below a key with this suffix.
    UnencryptedSuffix(String),
    /// Encrypts only what is below a key with this suffix.
    EncryptedSuffix(String),
    /// Encrypts all but what is below a key that this matches.
    UnencryptedRegex(Regex),
    /// Encrypts only what is below a key that this matches.
    EncryptedRegex(Regex),
    /// Comments decide. Each value then says by its form what it is: one that was replaced is
    /// missing in the file's MAC.
    Comments,
}

/// The state of a value under a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueState {
    Encrypted,
    Clear,
    /// Encrypted where it has the form of an encrypted value.
    ByForm,
}

impl EncryptionRule {
    /// Reads the rule of a file.
    pub(super) fn read(sops: &Value) -> Result<Self, MetadataFault> {
        let text = |key: &str| sops.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let regex = |text: &str| pattern::compile(text).ok_or(MetadataFault::Pattern);
        let mut rules = Vec::new();
        if let Some(suffix) = text("unencrypted_suffix") {
            rules.push(Self::UnencryptedSuffix(suffix.to_owned()));
        }
        if let Some(suffix) = text("encrypted_suffix") {
            rules.push(Self::EncryptedSuffix(suffix.to_owned()));
        }
        if let Some(pattern) = text("unencrypted_regex") {
            rules.push(Self::UnencryptedRegex(regex(pattern)?));
        }
        if let Some(pattern) = text("encrypted_regex") {
            rules.push(Self::EncryptedRegex(regex(pattern)?));
        }
        for key in ["unencrypted_comment_regex", "encrypted_comment_regex"] {
            rules.extend(text(key).map(|_| Self::Comments));
        }
        match (rules.pop(), rules.is_empty()) {
            (Some(rule), true) => Ok(rule),
            (None, _) => Ok(Self::UnencryptedSuffix(DEFAULT_SUFFIX.to_owned())),
            (Some(_), false) => Err(MetadataFault::SeveralRules),
        }
    }

    /// Returns whether keys are held against a regular expression.
    pub(super) const fn is_pattern(&self) -> bool {
        matches!(self, Self::UnencryptedRegex(_) | Self::EncryptedRegex(_))
    }

    /// Returns whether a key decides about all that is below it.
    pub(super) fn is_met_by(&self, key: &str) -> bool {
        match self {
            Self::UnencryptedSuffix(suffix) | Self::EncryptedSuffix(suffix) => key.ends_with(suffix),
            Self::UnencryptedRegex(regex) | Self::EncryptedRegex(regex) => regex.is_match(key.as_bytes()),
            Self::Comments => false,
        }
    }

    /// Returns the state of a value where a key on the way to it met the rule.
    pub(super) const fn met_state(&self) -> ValueState {
        match self {
            Self::EncryptedSuffix(_) | Self::EncryptedRegex(_) => ValueState::Encrypted,
            Self::UnencryptedSuffix(_) | Self::UnencryptedRegex(_) => ValueState::Clear,
            Self::Comments => ValueState::ByForm,
        }
    }

    /// Returns the state of a value where no key on the way to it met the rule.
    pub(super) const fn unmet_state(&self) -> ValueState {
        match self {
            Self::UnencryptedSuffix(_) | Self::UnencryptedRegex(_) => ValueState::Encrypted,
            Self::EncryptedSuffix(_) | Self::EncryptedRegex(_) => ValueState::Clear,
            Self::Comments => ValueState::ByForm,
        }
    }
}
