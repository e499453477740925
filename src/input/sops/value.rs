//! One encrypted value: `ENC[AES256_GCM,data:…,iv:…,tag:…,type:…]` and what is inside.

use std::fmt;

use aes_gcm::aead::AeadInOut as _;
use aes_gcm::aead::consts::U32;
use aes_gcm::aes::Aes256;
use aes_gcm::{AesGcm, KeyInit as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

/// The beginning of each encrypted value.
pub(crate) const ENCRYPTED_PREFIX: &str = "ENC[AES256_GCM,";
/// The end of a comment among the items of a list, where SOPS encrypts it as one of them.
const COMMENT_END: &str = ",type:comment]";
/// Bytes of a data key, and of the initialization vector of each value.
const KEY_BYTES: usize = 32;
/// The label under which a secret is derived from a data key: the key itself seals nothing of ours.
const KEY_DERIVATION_LABEL: &[u8] = b"rhumb.dev: values that a renderer made";
const TAG_BYTES: usize = 16;

/// Returns whether a text has the form of an encrypted value.
pub(crate) fn is_encrypted_value(text: &str) -> bool {
    text.starts_with(ENCRYPTED_PREFIX)
}

/// Returns whether a text has the form of an encrypted comment, which is no value.
pub(crate) fn is_encrypted_comment(text: &str) -> bool {
    is_encrypted_value(text) && text.ends_with(COMMENT_END)
}

/// The reason for which a value cannot be decrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncryptedValueFault {
    /// It is not of the form that SOPS writes.
    #[error("is malformed")]
    Malformed,
    /// Its GCM tag does not fit: value, key path or data key are others than when it was encrypted.
    #[error("was edited or moved to another key, or belongs to another file")]
    TagMismatch,
    /// The content is not of the type that it is marked as.
    #[error("is not of its type")]
    Type,
    /// The rules of the file want it encrypted.
    #[error("is not encrypted, though the rules in the file's `sops` want it so")]
    Clear,
    /// The values of the file before it have used up what is done for one file.
    #[error("is one too many: the key paths of the file are too long for so many values")]
    TooMuchWork,
    /// Text was asked for.
    #[error("is binary, so it cannot be text of a manifest: put it below `data`, in base64")]
    Binary,
    /// The infinite and NaN are no values of JSON.
    #[error("is no number that JSON has")]
    NotFinite,
}

/// A decrypted value. Wiped when it is dropped, and never shown.
pub(super) enum DecryptedValue {
    Text(Zeroizing<String>),
    /// A text that is not UTF-8.
    Bytes(Zeroizing<Vec<u8>>),
    Int(i64),
    Float(f64),
    Bool(bool),
    /// As RFC 3339 writes it.
    Time(Zeroizing<String>),
    Comment(Zeroizing<String>),
}

impl fmt::Debug for DecryptedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DecryptedValue(..)")
    }
}

impl DecryptedValue {
    fn read(kind: &str, mut bytes: Zeroizing<Vec<u8>>) -> Result<Self, EncryptedValueFault> {
        let text = match String::from_utf8(std::mem::take(&mut *bytes)) {
            Ok(text) => Zeroizing::new(text),
            Err(error) if matches!(kind, "str" | "bytes") => {
                return Ok(Self::Bytes(Zeroizing::new(error.into_bytes())));
            }
            Err(error) => {
                drop(Zeroizing::new(error.into_bytes()));
                return Err(EncryptedValueFault::Type);
            }
        };
        let decrypted = match kind {
            "str" | "bytes" => Some(Self::Text(text)),
            "int" => text.parse().ok().map(Self::Int),
            "float" => text.parse().ok().map(Self::Float),
            // The words that Go takes.
            "bool" => match text.as_str() {
                "1" | "t" | "T" | "true" | "True" | "TRUE" => Some(Self::Bool(true)),
                "0" | "f" | "F" | "false" | "False" | "FALSE" => Some(Self::Bool(false)),
                _ => None,
            },
            "time" => text.is_ascii().then_some(Self::Time(text)),
            "comment" => Some(Self::Comment(text)),
            _ => None,
        };
        decrypted.ok_or(EncryptedValueFault::Type)
    }

    /// Returns the bytes that the file's MAC is computed over: the form that SOPS gives a value.
    pub(super) fn mac_bytes(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(match self {
            Self::Text(text) | Self::Time(text) => text.as_bytes().to_vec(),
            Self::Bytes(bytes) => bytes.to_vec(),
            Self::Int(int) => int.to_string().into_bytes(),
            Self::Float(float) => go_float(*float).into_bytes(),
            Self::Bool(truth) => if *truth { b"True".as_slice() } else { b"False" }.to_vec(),
            Self::Comment(_) => Vec::new(),
        })
    }

    /// Returns the value as it would be in a text; none for a boolean, which gives nothing away.
    pub(super) fn shown_bytes(&self) -> Option<Zeroizing<Vec<u8>>> {
        match self {
            Self::Bool(_) => None,
            Self::Comment(text) => Some(Zeroizing::new(text.as_bytes().to_vec())),
            _ => Some(self.mac_bytes()),
        }
    }
}

/// Writes a float as Go does without an exponent.
pub(super) fn go_float(float: f64) -> String {
    if float.is_infinite() {
        return if float > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    format!("{float}")
}

/// The key that the values of one file are encrypted with.
pub struct DataKey {
    cipher: Box<AesGcm<Aes256, U32>>,
    sealing: SealingSecret,
}

/// A secret that follows from the data key of one file. A reader of the file knows it.
pub(crate) type SealingSecret = Zeroizing<[u8; KEY_BYTES]>;

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DataKey(..)")
    }
}

impl DataKey {
    /// Returns the key of these bytes; none when it has a wrong length.
    pub(super) fn new(bytes: &[u8]) -> Option<Self> {
        let cipher = AesGcm::new_from_slice(bytes).ok().filter(|_| bytes.len() == KEY_BYTES)?;
        let mut sealing = SealingSecret::default();
        Hkdf::<Sha256>::new(None, bytes).expand(KEY_DERIVATION_LABEL, sealing.as_mut_slice()).ok()?;
        Some(Self { cipher: Box::new(cipher), sealing })
    }

    /// Returns the secret for seals over what was made of the file.
    pub(crate) fn into_sealing_secret(self) -> SealingSecret {
        self.sealing
    }

    /// Decrypts a value that is at a key path, for example `data:password:`.
    pub(super) fn open(
        &self,
        encrypted: &EncryptedValue<'_>,
        path: &str,
    ) -> Result<DecryptedValue, EncryptedValueFault> {
        let mut buffer = Zeroizing::new(encrypted.data.clone());
        let (iv, tag) = (encrypted.iv.into(), encrypted.tag.into());
        self.cipher
            .decrypt_inout_detached(&iv, path.as_bytes(), buffer.as_mut_slice().into(), &tag)
            .map_err(|_| EncryptedValueFault::TagMismatch)?;
        DecryptedValue::read(encrypted.kind, buffer)
    }
}

/// The parts of an encrypted value.
pub(super) struct EncryptedValue<'a> {
    data: Vec<u8>,
    iv: [u8; KEY_BYTES],
    tag: [u8; TAG_BYTES],
    kind: &'a str,
}

impl<'a> EncryptedValue<'a> {
    /// Reads a text that begins with [`ENCRYPTED_PREFIX`].
    pub(super) fn parse(text: &'a str) -> Result<Self, EncryptedValueFault> {
        let parts = || {
            let rest = text.strip_prefix(ENCRYPTED_PREFIX)?.strip_prefix("data:")?.strip_suffix(']')?;
            let (data, rest) = rest.split_once(",iv:")?;
            let (iv, rest) = rest.split_once(",tag:")?;
            let (tag, kind) = rest.split_once(",type:")?;
            Some(Self {
                data: STANDARD.decode(data).ok()?,
                iv: STANDARD.decode(iv).ok()?.try_into().ok()?,
                tag: STANDARD.decode(tag).ok()?.try_into().ok()?,
                kind,
            })
        };
        parts().ok_or(EncryptedValueFault::Malformed)
    }

    /// Returns the bytes that decrypting it costs.
    pub(super) fn len(&self) -> usize {
        self.data.len()
    }
}
