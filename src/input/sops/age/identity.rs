//! X25519 identities, as `age-keygen` writes them.

use std::fmt;

use bech32::primitives::decode::CheckedHrpstring;
use bech32::{Bech32, Hrp};
use chacha20poly1305::aead::AeadInOut as _;
use chacha20poly1305::{ChaCha20Poly1305, KeyInit as _, Nonce};
use hkdf::Hkdf;
use sha2::Sha256;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use super::header::{AgeStanza, decode_fixed};
use super::{AgeFault, AttemptBudget};

/// Bytes of the longest file of identities.
const MAX_IDENTITIES_BYTES: usize = 64 << 10;
/// Identities of one file: more would be keys of too many lives.
const MAX_IDENTITIES: usize = 64;
const IDENTITY_PREFIX: &str = "AGE-SECRET-KEY-";
/// The first and the last line of a key in the form of SSH.
const PEM_BEGIN: &str = "-----BEGIN ";
const PEM_END: &str = "-----END ";
const RECIPIENT_PREFIX: &str = "age";
const X25519_LABEL: &[u8] = b"age-encryption.org/v1/X25519";
/// Bytes of a file's key, and of the MAC behind it.
const WRAPPED_KEY_BYTES: usize = 16 + 16;

/// The reason for which a file of identities cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgeIdentityError {
    /// The file has none.
    #[error("there is no age identity in it: `age-keygen` writes a line that begins with AGE-SECRET-KEY-1")]
    Empty,
    /// The file is too long to be one.
    #[error("it has more than {MAX_IDENTITIES_BYTES} bytes or {MAX_IDENTITIES} identities")]
    TooLong,
    /// The file is itself encrypted.
    #[error("it is encrypted itself: nobody is there to type its passphrase, so store the identity as it is")]
    Encrypted,
    /// A line is an identity of a kind that is not read.
    #[error(
        "line {line}: {kind} are not supported: add a recipient of `age-keygen` to the files, and its identity here"
    )]
    NotSupported {
        /// The line, from 1.
        line: usize,
        /// The kind, in the plural.
        kind: &'static str,
    },
    /// A line is a recipient, which is public and opens nothing.
    #[error("line {line}: this is a recipient, which is public: the identity begins with AGE-SECRET-KEY-1")]
    Recipient {
        /// The line, from 1.
        line: usize,
    },
    /// A line is nothing of the kind. It is not shown, as it may be a key with a slip in it.
    #[error("line {line}: this is not an age identity, or one with a slip in it")]
    Malformed {
        /// The line, from 1.
        line: usize,
    },
}

impl AgeIdentityError {
    /// Returns the class.
    pub const fn class(self) -> crate::object::ErrorClass {
        match self {
            Self::Empty
            | Self::TooLong
            | Self::Encrypted { .. }
            | Self::NotSupported { .. }
            | Self::Recipient { .. }
            | Self::Malformed { .. } => crate::object::ErrorClass::Config,
        }
    }
}

/// One key pair.
#[derive(Clone)]
struct AgeIdentity {
    secret: StaticSecret,
    public: PublicKey,
}

/// The identities of one file, in its order.
#[derive(Clone, Default)]
pub struct AgeIdentities(Vec<AgeIdentity>);

/// Shows nothing, not even how many there are.
impl fmt::Debug for AgeIdentities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AgeIdentities(..)")
    }
}

impl AgeIdentities {
    /// Reads a file of identities: one a line, between comments and blank lines. One of
    /// another kind is passed over beside one that is read: another program may need it.
    ///
    /// # Errors
    ///
    /// When a line is no identity, or when there is none of X25519.
    pub fn parse(text: &str) -> Result<Self, AgeIdentityError> {
        if text.len() > MAX_IDENTITIES_BYTES {
            return Err(AgeIdentityError::TooLong);
        }
        if text.starts_with("age-encryption.org/") || text.starts_with("-----BEGIN AGE ENCRYPTED FILE") {
            return Err(AgeIdentityError::Encrypted);
        }
        let (mut identities, mut other) = (Vec::new(), None);
        let mut lines = text.lines().map(str::trim).zip(1..);
        while let Some((line, number)) = lines.next() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if identities.len() == MAX_IDENTITIES {
                return Err(AgeIdentityError::TooLong);
            }
            match AgeIdentity::parse(line, number) {
                Ok(identity) => identities.push(identity),
                Err(error @ AgeIdentityError::NotSupported { .. }) => {
                    // Without its end nobody knows which of the lines below belong to it.
                    if line.starts_with(PEM_BEGIN) && !lines.any(|(line, _)| line.starts_with(PEM_END)) {
                        return Err(error);
                    }
                    other.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        match (identities.is_empty(), other) {
            (false, _) => Ok(Self(identities)),
            (true, other) => Err(other.unwrap_or(AgeIdentityError::Empty)),
        }
    }

    /// Returns the recipient of each identity, which is public: `age1…`.
    pub fn recipients(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().filter_map(|identity| {
            let prefix = Hrp::parse(RECIPIENT_PREFIX).ok()?;
            bech32::encode::<Bech32>(prefix, identity.public.as_bytes()).ok()
        })
    }

    /// Returns the key of the file with these stanzas. None when they are for others.
    pub(super) fn unwrap(
        &self,
        stanzas: &[AgeStanza<'_>],
        budget: &mut AttemptBudget,
    ) -> Result<Option<Zeroizing<Vec<u8>>>, AgeFault> {
        if stanzas.iter().any(|stanza| stanza.kind == "scrypt") {
            return Err(AgeFault::Passphrase);
        }
        for stanza in stanzas.iter().filter(|stanza| stanza.kind == "X25519") {
            let share = match stanza.arguments[..] {
                [share] => decode_fixed(share).filter(|_| stanza.body.len() == WRAPPED_KEY_BYTES),
                _ => None,
            };
            let share: [u8; 32] = share.ok_or(AgeFault::Header("a recipient is malformed"))?;
            for identity in &self.0 {
                budget.spend()?;
                if let Some(key) = identity.unwrap(share, &stanza.body)? {
                    return Ok(Some(key));
                }
            }
        }
        Ok(None)
    }
}

impl AgeIdentity {
    fn parse(text: &str, line: usize) -> Result<Self, AgeIdentityError> {
        let unsupported = |kind| AgeIdentityError::NotSupported { line, kind };
        match text {
            _ if text.starts_with("AGE-SECRET-KEY-1") => {}
            _ if text.starts_with("AGE-SECRET-KEY-PQ-1") => {
                return Err(unsupported("post-quantum identities"));
            }
            _ if text.starts_with("AGE-PLUGIN-") => return Err(unsupported("identities of plugins")),
            _ if text.starts_with(PEM_BEGIN) && text.ends_with("PRIVATE KEY-----") => {
                return Err(unsupported("SSH keys"));
            }
            _ if text.starts_with("age1") => return Err(AgeIdentityError::Recipient { line }),
            _ => return Err(AgeIdentityError::Malformed { line }),
        }
        let malformed = AgeIdentityError::Malformed { line };
        let checked = CheckedHrpstring::new::<Bech32>(text).map_err(|_| malformed)?;
        let prefix = Hrp::parse(IDENTITY_PREFIX).map_err(|_| malformed)?;
        if checked.hrp() != prefix || checked.byte_iter().len() != 32 {
            return Err(malformed);
        }
        let mut secret = Zeroizing::new([0; 32]);
        for (target, byte) in secret.iter_mut().zip(checked.byte_iter()) {
            *target = byte;
        }
        let secret = StaticSecret::from(*secret);
        Ok(Self { public: PublicKey::from(&secret), secret })
    }

    /// Returns the key of the file behind a stanza. None when it is for others.
    fn unwrap(&self, share: [u8; 32], body: &[u8]) -> Result<Option<Zeroizing<Vec<u8>>>, AgeFault> {
        let shared = self.secret.diffie_hellman(&PublicKey::from(share));
        if !shared.was_contributory() {
            return Err(AgeFault::Header("a recipient is malformed"));
        }
        let salt = [share, *self.public.as_bytes()].concat();
        let mut key = Zeroizing::new([0; 32]);
        let malformed = AgeFault::Header("a recipient is malformed");
        Hkdf::<Sha256>::new(Some(&salt), shared.as_bytes())
            .expand(X25519_LABEL, key.as_mut_slice())
            .map_err(|_| malformed)?;
        let cipher = ChaCha20Poly1305::new_from_slice(key.as_slice()).map_err(|_| malformed)?;
        let mut file_key = Zeroizing::new(body.to_vec());
        let opened = cipher.decrypt_in_place(&Nonce::default(), b"", &mut *file_key);
        Ok(opened.is_ok().then_some(file_key))
    }
}
