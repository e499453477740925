//! The age identities that a source or a command may use.
//!
//! A service uses the source's own credential, or the one for all sources. A command uses what
//! `sops` itself would use. A source that gets only the credentials of its address uses its own
//! alone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::rendering::variable;
use crate::config::{CredentialUse, SourceConfig};
use crate::input::Decrypter;

/// The credential with age identities; with a dot and the name of a source behind it, of that one.
const AGE_CREDENTIAL: &str = "sops-age";

/// Returns the identities of a source.
pub(super) fn of_source(config: &SourceConfig) -> Arc<Decrypter> {
    identities(&config.name, &config.credentials).into()
}

/// Returns the identities of a command that reads no source by its name.
pub(super) fn of_command() -> Arc<Decrypter> {
    identities("", &CredentialUse::Own).into()
}

fn identities(name: &str, shown: &CredentialUse) -> Decrypter {
    let is_own = *shown == CredentialUse::Own;
    let mut files = Vec::new();
    if let Some(folder) = variable("CREDENTIALS_DIRECTORY") {
        files.push(Path::new(&folder).join(format!("{AGE_CREDENTIAL}.{name}")));
        files.extend(is_own.then(|| Path::new(&folder).join(AGE_CREDENTIAL)));
    }
    if !is_own {
        return Decrypter::new(files, None);
    }
    let text = variable("SOPS_AGE_KEY").and_then(|text| text.into_string().ok());
    let decrypter = Decrypter::new(files, text);
    match variable("SOPS_AGE_KEY_FILE") {
        Some(file) => decrypter.with_named_file(PathBuf::from(file)),
        None => decrypter,
    }
}
