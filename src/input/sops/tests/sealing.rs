//! Encryption in parts that can be bent: files of age, values and whole files of SOPS.

use aes_gcm::aead::AeadInOut as _;
use aes_gcm::aead::consts::U32;
use aes_gcm::aes::Aes256;
use aes_gcm::{AesGcm, KeyInit as _};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use chacha20poly1305::ChaCha20Poly1305;
use hkdf::Hkdf;
use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256, Sha512};
use x25519_dalek::{PublicKey, StaticSecret};

pub(in crate::input) const FILE_KEY: [u8; 16] = [7; 16];
pub(in crate::input) const DATA_KEY: [u8; 32] = [9; 32];

fn chacha(key: &[u8], nonce: [u8; 12], plain: &[u8]) -> Vec<u8> {
    let mut buffer = plain.to_vec();
    let cipher = ChaCha20Poly1305::new_from_slice(key).unwrap();
    let tag = cipher.encrypt_inout_detached(&nonce.into(), b"", buffer.as_mut_slice().into()).unwrap();
    buffer.extend_from_slice(&tag);
    buffer
}

fn derived(salt: Option<&[u8]>, secret: &[u8], label: &str) -> [u8; 32] {
    let mut key = [0; 32];
    Hkdf::<Sha256>::new(salt, secret).expand(label.as_bytes(), &mut key).unwrap();
    key
}

/// Returns a secret key that is the same byte 32 times.
pub(in crate::input) fn secret(byte: u8) -> StaticSecret {
    StaticSecret::from([byte; 32])
}

/// Returns the line of a file of identities for such a key.
pub(in crate::input) fn identity(byte: u8) -> String {
    let prefix = bech32::Hrp::parse("AGE-SECRET-KEY-").unwrap();
    bech32::encode_upper::<bech32::Bech32>(prefix, &[byte; 32]).unwrap()
}

/// Returns one recipient of a file, for a key or for a share of nobody.
pub(in crate::input) fn stanza(recipient: u8) -> String {
    let (ephemeral, public) = (secret(0x55), PublicKey::from(&secret(recipient)));
    let share = PublicKey::from(&ephemeral);
    let salt = [*share.as_bytes(), *public.as_bytes()].concat();
    let key =
        derived(Some(&salt), ephemeral.diffie_hellman(&public).as_bytes(), "age-encryption.org/v1/X25519");
    let body = chacha(&key, [0; 12], &FILE_KEY);
    format!("-> X25519 {}\n{}\n", STANDARD_NO_PAD.encode(share.as_bytes()), STANDARD_NO_PAD.encode(body))
}

/// Returns a header with its MAC.
pub(in crate::input) fn header(stanzas: &str) -> String {
    let signed = format!("age-encryption.org/v1\n{stanzas}---");
    let mut mac = Hmac::<Sha256>::new_from_slice(&derived(None, &FILE_KEY, "header")).unwrap();
    mac.update(signed.as_bytes());
    format!("{signed} {}\n", STANDARD_NO_PAD.encode(mac.finalize().into_bytes()))
}

/// Returns a payload of these chunks, the last one marked.
pub(in crate::input) fn payload(chunks: &[&[u8]]) -> Vec<u8> {
    let salt = [3; 16];
    let key = derived(Some(&salt), &FILE_KEY, "payload");
    let mut out = salt.to_vec();
    for (number, chunk) in chunks.iter().enumerate() {
        let mut nonce = [0; 12];
        nonce[3..11].copy_from_slice(&(number as u64).to_be_bytes());
        nonce[11] = u8::from(number + 1 == chunks.len());
        out.extend(chacha(&key, nonce, chunk));
    }
    out
}

/// Returns the bytes in armor.
pub(in crate::input) fn armored(bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN AGE ENCRYPTED FILE-----\n{}\n-----END AGE ENCRYPTED FILE-----\n", lines.join("\n"))
}

/// Returns an armored file for these keys.
pub(in crate::input) fn age_file(recipients: &[u8], plain: &[u8]) -> String {
    let stanzas: String = recipients.iter().map(|recipient| stanza(*recipient)).collect();
    armored(&[header(&stanzas).as_bytes(), &payload(&[plain])].concat())
}

/// Returns a value of a file of SOPS.
pub(in crate::input) fn seal(path: &str, kind: &str, plain: impl AsRef<[u8]>) -> String {
    let cipher = AesGcm::<Aes256, U32>::new_from_slice(&DATA_KEY).unwrap();
    let iv = [5; 32];
    let mut data = plain.as_ref().to_vec();
    let tag = cipher.encrypt_inout_detached(&iv.into(), path.as_bytes(), data.as_mut_slice().into()).unwrap();
    let text = |bytes: &[u8]| STANDARD.encode(bytes);
    format!("ENC[AES256_GCM,data:{},iv:{},tag:{},type:{kind}]", text(&data), text(&iv), text(&tag))
}

/// Returns a file for key 1: its content, and metadata with a MAC over these values and more
/// lines.
pub(in crate::input) fn sops_file(content: &str, coded: &[u8], more: &str) -> String {
    sops_file_for(&age_file(&[1], &DATA_KEY), content, coded, more)
}

/// Returns a file with this data key in armor.
pub(in crate::input) fn sops_file_for(armored: &str, content: &str, coded: &[u8], more: &str) -> String {
    let digest =
        Sha512::digest(coded).iter().fold(String::new(), |digest, byte| digest + &format!("{byte:02X}"));
    let mac = seal("2026-01-01T00:00:00Z", "str", digest);
    let armored = armored.trim_end().replace('\n', "\n            ");
    format!(
        "{content}sops:\n    age:\n        - recipient: age1of-nobody\n          enc: |\n            {armored}\n    \
         lastmodified: \"2026-01-01T00:00:00Z\"\n    mac: {mac}\n{more}    version: 3.13.3\n"
    )
}

/// Returns a Secret with one value under `TOKEN`, encrypted for the identity of number 1.
pub(in crate::input) fn sealed_secret(name: &str, value: &str) -> String {
    let mut coded = Sha256::digest("sops").to_vec();
    coded.extend_from_slice(value.as_bytes());
    let sealed = seal("stringData:TOKEN:", "str", value);
    sops_file(
        &format!(
            "apiVersion: v1\nkind: Secret\nmetadata:\n    name: {name}\nstringData:\n    TOKEN: {sealed}\n"
        ),
        &coded,
        "    mac_only_encrypted: true\n    encrypted_regex: ^(data|stringData)$\n",
    )
}
