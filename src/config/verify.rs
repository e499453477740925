//! The signatures that commits must carry.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Config, DnsLabel, Environment, SourceLocation};

/// The required signatures of a repository's commits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a mapping with keys")]
pub struct VerifySpec {
    /// The file with the keys: a list of allowed signers for SSH, or armored OpenPGP public keys.
    /// Of a source that is in the cluster it is the name of one that the configuration lists.
    pub keys: PathBuf,
    /// The commits that must be signed.
    #[serde(default, skip_serializing_if = "VerifyMode::is_head")]
    pub mode: VerifyMode,
}

/// The commits that must be signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VerifyMode {
    /// The newest.
    #[default]
    Head,
    /// Each since the one that was accepted last.
    Range,
}

impl VerifyMode {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    fn is_head(&self) -> bool {
        *self == Self::Head
    }
}

impl VerifySpec {
    pub(super) fn resolve(self, environment: &Environment) -> Self {
        Self { keys: environment.resolve(&self.keys), ..self }
    }

    /// Returns the same with the configuration's file of this name. A source in the cluster names
    /// no file of the host.
    ///
    /// # Errors
    ///
    /// There is no such name; the text says which there are.
    pub(super) fn with_named_keys(self, keys: &BTreeMap<DnsLabel, PathBuf>) -> Result<Self, String> {
        let file = self.keys.to_str().and_then(|name| keys.iter().find(|(known, _)| known.as_str() == name));
        if let Some((_, file)) = file {
            return Ok(Self { keys: file.clone(), mode: self.mode });
        }
        let names: Vec<&str> = keys.keys().map(DnsLabel::as_str).collect();
        let names = if names.is_empty() {
            "there are none".to_owned()
        } else {
            format!("names: {}", names.join(", "))
        };
        Err(format!(
            "`verify.keys` is none of the names under `customSources.keys` of the configuration; {names}"
        ))
    }
}

impl Config {
    /// Returns the files with keys that a source asks for, or may.
    pub fn key_files(&self) -> BTreeSet<&Path> {
        let signed = self.sources.iter().filter_map(|source| match &source.location {
            SourceLocation::Git { verify, .. } => verify.as_ref(),
            SourceLocation::Directory(_) => None,
        });
        let files = signed.chain(&self.custom_sources.verify).map(|verify| &*verify.keys);
        files.chain(self.custom_sources.keys.values().map(PathBuf::as_path)).collect()
    }
}
