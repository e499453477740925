//! Files of age v1 for X25519 keys, armored as SOPS stores them.
//!
//! Owns the identities, and how a small file is opened with them. Reads nothing but X25519: scrypt,
//! plugins, SSH and post-quantum keys are refused by name.
//!
//! **Invariant:** pure. Work is bounded by the stanzas of a header and by [`MAX_UNWRAP_ATTEMPTS`],
//! and no error carries anything of a key or of what was encrypted.

mod armor;
mod header;
mod identity;
mod payload;

use zeroize::Zeroizing;

use header::AgeHeader;
pub use identity::AgeIdentities;

/// Key agreements that one SOPS file may cost. Each takes some 50 µs.
const MAX_UNWRAP_ATTEMPTS: usize = 1024;

/// The reason for which an age file cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgeFault {
    /// The armor around it is not as age writes it.
    #[error("its armor is broken: {0}")]
    Armor(&'static str),
    /// The header is not one of age v1.
    #[error("its header is broken: {0}")]
    Header(&'static str),
    /// The header asks for more work than any file that is meant well.
    #[error("its header has more than {} recipients", header::MAX_STANZAS)]
    TooManyStanzas,
    /// All headers of a SOPS file together ask for more work than is done for one file.
    #[error("to look for its key would take more than {MAX_UNWRAP_ATTEMPTS} attempts")]
    TooManyAttempts,
    /// It is encrypted with a passphrase.
    #[error("it is encrypted with a passphrase")]
    Passphrase,
    /// The header was changed after the file was encrypted.
    #[error("its header was changed")]
    HeaderMac,
    /// The payload was changed, cut or extended.
    #[error("its payload was changed, or is not complete")]
    Payload,
}

/// The remaining key agreements for one SOPS file.
pub(super) struct AttemptBudget(usize);

impl AttemptBudget {
    pub(super) const fn new() -> Self {
        Self(MAX_UNWRAP_ATTEMPTS)
    }

    fn spend(&mut self) -> Result<(), AgeFault> {
        self.0 = self.0.checked_sub(1).ok_or(AgeFault::TooManyAttempts)?;
        Ok(())
    }
}

/// Opens an armored file. None when it is encrypted for other keys.
pub(super) fn open(
    armored: &str,
    identities: &AgeIdentities,
    budget: &mut AttemptBudget,
) -> Result<Option<Zeroizing<Vec<u8>>>, AgeFault> {
    open_bytes(&armor::decode(armored)?, identities, budget)
}

fn open_bytes(
    bytes: &[u8],
    identities: &AgeIdentities,
    budget: &mut AttemptBudget,
) -> Result<Option<Zeroizing<Vec<u8>>>, AgeFault> {
    let header = AgeHeader::read(bytes)?;
    let Some(file_key) = identities.unwrap(&header.stanzas, budget)? else { return Ok(None) };
    header.verify(&file_key)?;
    payload::open(header.payload, &file_key).map(Some)
}

#[cfg(test)]
mod tests;
