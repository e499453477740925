//! Seals over the data of rendered Secrets that was made of opened files.
//!
//! The key follows from the data keys of all encrypted files that were opened for the root. The
//! object keeps these data keys as they are in the files: encrypted for the recipients. So whoever
//! opens the files opens the object, and nobody else; no other key is needed anywhere.
//!
//! **Invariant:** the same value at the same place of the same object gives the same text under the
//! same key. No `Debug` and no error has a value that was sealed.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::AeadInOut as _;
use chacha20poly1305::{KeyInit as _, Tag, XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use hmac::{Hmac, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::sops::SealingSecret;
use crate::object::text_at;

/// The member of a sealed object that holds the data keys, encrypted as in their files.
pub(super) const RECIPIENTS_KEY: &str = "rhumb-sealed-for";
/// The fields of a Secret whose values are sealed: those that are masked wherever it is shown.
pub(super) const SEALED_FIELDS: [&str; 2] = ["data", "stringData"];
/// The beginning of a sealed value. Another one where its form changes.
pub(super) const SEALED_PREFIX: &str = "RHUMB[1,";
/// The label under which the keys are derived.
const KEY_DERIVATION_LABEL: &[u8] = b"rhumb.dev: seal of a rendered Secret 1";
const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;

/// The reason for which sealed values cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SealFault {
    /// It is not of the form that it gets here.
    #[error("is malformed")]
    Malformed,
    /// Value, place or key are others than when it was sealed.
    #[error("does not fit its seal")]
    Code,
}

/// The key of render seals: for the Secrets of one root.
pub(super) struct RootCipher {
    cipher: XChaCha20Poly1305,
    /// The key of the nonces, which follow from what is sealed: so no two values share one.
    nonces: Zeroizing<[u8; KEY_BYTES]>,
}

impl fmt::Debug for RootCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RootCipher(..)")
    }
}

impl RootCipher {
    /// Returns the key that follows from these secrets, in their order; none from none of them. All
    /// are needed: who may open one file alone opens nothing.
    pub(super) fn of(secrets: &[SealingSecret]) -> Option<Self> {
        if secrets.is_empty() {
            return None;
        }
        let mut joined = Zeroizing::new(Vec::with_capacity(secrets.len() * KEY_BYTES));
        for secret in secrets {
            joined.extend_from_slice(secret.as_slice());
        }
        let mut keys = Zeroizing::new([0; 2 * KEY_BYTES]);
        Hkdf::<Sha256>::new(None, &joined).expand(KEY_DERIVATION_LABEL, keys.as_mut_slice()).ok()?;
        let (cipher, rest) = keys.split_at_checked(KEY_BYTES)?;
        let mut nonces = Zeroizing::new([0; KEY_BYTES]);
        nonces.copy_from_slice(rest);
        Some(Self { cipher: XChaCha20Poly1305::new_from_slice(cipher).ok()?, nonces })
    }

    /// Seals the data of a Secret.
    pub(super) fn seal(&self, object: &mut Value, holders: &Value) -> Result<(), SealFault> {
        each_value(object, |field_path, value| {
            let plain = Zeroizing::new(value.to_string().into_bytes());
            *value = Value::String(self.seal_bytes(field_path, &plain)?);
            Ok(())
        })?;
        let members = object.as_object_mut().ok_or(SealFault::Malformed)?;
        members.insert(RECIPIENTS_KEY.to_owned(), holders.clone());
        Ok(())
    }

    /// Opens the data of a Secret.
    pub(super) fn open(&self, object: &mut Value) -> Result<(), SealFault> {
        each_value(object, |field_path, value| {
            let text = value.as_str().ok_or(SealFault::Malformed)?;
            let plain = self.open_bytes(field_path, text)?;
            *value = serde_json::from_slice(&plain).map_err(|_| SealFault::Malformed)?;
            Ok(())
        })?;
        if let Some(members) = object.as_object_mut() {
            members.remove(RECIPIENTS_KEY);
        }
        Ok(())
    }

    fn seal_bytes(&self, field_path: &str, plain: &[u8]) -> Result<String, SealFault> {
        let mut code = Hmac::<Sha256>::new_from_slice(self.nonces.as_slice()).map_err(|_| SealFault::Code)?;
        code.update(&(field_path.len() as u64).to_be_bytes());
        code.update(field_path.as_bytes());
        code.update(plain);
        let code = code.finalize().into_bytes();
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(code.get(..NONCE_BYTES).ok_or(SealFault::Code)?);
        let mut out = Vec::with_capacity(NONCE_BYTES + plain.len() + TAG_BYTES);
        out.extend_from_slice(&nonce);
        out.extend_from_slice(plain);
        let body = out.get_mut(NONCE_BYTES..).ok_or(SealFault::Code)?;
        let tag =
            self.cipher.encrypt_inout_detached(&XNonce::from(nonce), field_path.as_bytes(), body.into());
        out.extend_from_slice(&tag.map_err(|_| SealFault::Code)?);
        Ok(format!("{SEALED_PREFIX}{}]", STANDARD.encode(out)))
    }

    fn open_bytes(&self, field_path: &str, text: &str) -> Result<Zeroizing<Vec<u8>>, SealFault> {
        let inner = text.strip_prefix(SEALED_PREFIX).and_then(|rest| rest.strip_suffix(']'));
        let bytes = STANDARD.decode(inner.ok_or(SealFault::Malformed)?).map_err(|_| SealFault::Malformed)?;
        let (nonce, rest) = bytes.split_first_chunk::<NONCE_BYTES>().ok_or(SealFault::Malformed)?;
        let (body, tag) = rest.split_last_chunk::<TAG_BYTES>().ok_or(SealFault::Malformed)?;
        let mut plain = Zeroizing::new(body.to_vec());
        let (nonce, tag) = (XNonce::from(*nonce), Tag::from(*tag));
        let opened = self.cipher.decrypt_inout_detached(
            &nonce,
            field_path.as_bytes(),
            plain.as_mut_slice().into(),
            &tag,
        );
        opened.map_err(|_| SealFault::Code)?;
        Ok(plain)
    }
}

/// Returns whether an object is a Secret, the one kind whose data is masked wherever it is shown.
pub(super) fn is_secret(object: &Value) -> bool {
    text_at(object, &["apiVersion"]) == "v1" && text_at(object, &["kind"]) == "Secret"
}

/// Comes to each value of a Secret's data, with its place: the object and the key.
fn each_value(
    object: &mut Value,
    mut visit: impl FnMut(&str, &mut Value) -> Result<(), SealFault>,
) -> Result<(), SealFault> {
    if !is_secret(object) {
        return Err(SealFault::Malformed);
    }
    let part = |path: &[&str]| text_at(object, path).to_owned();
    let (namespace, name) = (part(&["metadata", "namespace"]), part(&["metadata", "name"]));
    for field in SEALED_FIELDS {
        let Some(members) = object.get_mut(field).and_then(Value::as_object_mut) else { continue };
        for (key, value) in members {
            // No name and no key has a slash.
            visit(&format!("{namespace}/{name}/{field}/{key}"), value)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seal(secrets: &[u8]) -> RootCipher {
        let secrets: Vec<SealingSecret> = secrets.iter().map(|byte| Zeroizing::new([*byte; 32])).collect();
        RootCipher::of(&secrets).unwrap()
    }

    fn secret(name: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque",
            "data": {"a": "aHVudGVy", "b": "aHVudGVy"}, "stringData": {"c": "hunter", "d": null},
        })
    }

    fn sealed_secret(key: &RootCipher, name: &str) -> Value {
        let mut object = secret(name);
        key.seal(&mut object, &json!([["x"]])).unwrap();
        object
    }

    #[test]
    fn a_sealed_secret_opens_as_it_was() {
        let key = seal(&[1, 2]);
        let mut object = sealed_secret(&key, "db");
        let text = object.to_string();
        assert!(!text.contains("hunter") && !text.contains("aHVudGVy"), "{text}");
        assert_eq!((&object["type"], &object[RECIPIENTS_KEY]), (&json!("Opaque"), &json!([["x"]])));
        key.open(&mut object).unwrap();
        assert_eq!(object, secret("db"));
        assert_eq!(format!("{key:?}"), "RootCipher(..)");
    }

    /// Checks that an unchanged value keeps its text, and that equal values at two places show
    /// nothing.
    #[test]
    fn the_text_follows_from_the_value_its_place_and_the_key() {
        let (key, first) = (seal(&[1, 2]), sealed_secret(&seal(&[1, 2]), "db"));
        assert_eq!(sealed_secret(&key, "db"), first);
        let mut texts: Vec<String> =
            [sealed_secret(&key, "db"), sealed_secret(&key, "web"), sealed_secret(&seal(&[2, 1]), "db")]
                .iter()
                .flat_map(|object| ["a", "b"].map(|key| object["data"][key].to_string()))
                .collect();
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), 6);
    }

    #[test]
    fn what_was_moved_or_changed_does_not_open() {
        let key = seal(&[1, 2]);
        let check = |change: &dyn Fn(&mut Value), key: &RootCipher, expected: SealFault| {
            let mut object = sealed_secret(&seal(&[1, 2]), "db");
            change(&mut object);
            assert_eq!(key.open(&mut object), Err(expected), "{object}");
        };
        check(&|_| {}, &seal(&[1]), SealFault::Code);
        check(&|_| {}, &seal(&[1, 3]), SealFault::Code);
        check(&|object| object["metadata"]["name"] = json!("web"), &key, SealFault::Code);
        check(&|object| object["metadata"]["namespace"] = json!("web"), &key, SealFault::Code);
        check(&|object| object["data"]["a"] = object["data"]["b"].clone(), &key, SealFault::Code);
        check(&|object| object["stringData"]["a"] = object["data"]["a"].clone(), &key, SealFault::Code);
        check(&|object| object["data"]["a"] = json!("aHVudGVy"), &key, SealFault::Malformed);
        check(&|object| object["data"]["a"] = json!("RHUMB[1,AAAA]"), &key, SealFault::Malformed);
        check(&|object| object["kind"] = json!("ConfigMap"), &key, SealFault::Malformed);
    }
}
