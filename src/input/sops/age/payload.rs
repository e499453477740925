//! The payload: chunks of 64 KiB, each with a tag, the last one marked.

use chacha20poly1305::aead::AeadInOut as _;
use chacha20poly1305::{ChaCha20Poly1305, KeyInit as _, Nonce};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::AgeFault;

const SALT_BYTES: usize = 16;
const TAG_BYTES: usize = 16;
const CHUNK_BYTES: usize = (64 << 10) + TAG_BYTES;

/// Opens a payload with the key of its file.
pub(super) fn open(payload: &[u8], file_key: &[u8]) -> Result<Zeroizing<Vec<u8>>, AgeFault> {
    let (salt, mut rest) = payload.split_at_checked(SALT_BYTES).ok_or(AgeFault::Payload)?;
    let mut key = Zeroizing::new([0; 32]);
    Hkdf::<Sha256>::new(Some(salt), file_key)
        .expand(b"payload", key.as_mut_slice())
        .map_err(|_| AgeFault::Payload)?;
    let cipher = ChaCha20Poly1305::new_from_slice(key.as_slice()).map_err(|_| AgeFault::Payload)?;
    let mut plain = Zeroizing::new(Vec::with_capacity(rest.len()));
    for number in 0_u64.. {
        let (chunk, after) = rest.split_at_checked(CHUNK_BYTES).unwrap_or((rest, &[]));
        let last = after.is_empty();
        // Only the file of nothing ends with a chunk of nothing.
        if last && number > 0 && chunk.len() <= TAG_BYTES {
            return Err(AgeFault::Payload);
        }
        let mut buffer = Zeroizing::new(chunk.to_vec());
        cipher
            .decrypt_in_place(&chunk_nonce(number, last), b"", &mut *buffer)
            .map_err(|_| AgeFault::Payload)?;
        plain.extend_from_slice(&buffer);
        if last {
            break;
        }
        rest = after;
    }
    Ok(plain)
}

/// Returns the nonce of a chunk: its number in 11 bytes, and 1 for the last chunk.
fn chunk_nonce(number: u64, last: bool) -> Nonce {
    let mut nonce = [0; 12];
    if let Some(counter) = nonce.get_mut(3..11) {
        counter.copy_from_slice(&number.to_be_bytes());
    }
    if let Some(mark) = nonce.last_mut() {
        *mark = u8::from(last);
    }
    nonce.into()
}
