//! The header: who can open the file, and a MAC over it that only they can compute.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::AgeFault;

const VERSION_LINE: &[u8] = b"age-encryption.org/v1\n";
const STANZA_PREFIX: &str = "-> ";
const HEADER_END: &str = "---";
/// Stanzas that are looked at; SOPS writes one in each file.
pub(super) const MAX_STANZAS: usize = 256;
/// Words of a stanza.
const MAX_STANZA_WORDS: usize = 128;
/// Characters of a full line of a stanza's body.
const STANZA_LINE_CHARS: usize = 64;

/// One recipient.
pub(super) struct AgeStanza<'a> {
    pub(super) kind: &'a str,
    pub(super) arguments: Vec<&'a str>,
    pub(super) body: Vec<u8>,
}

/// The header of a file, and what follows it.
pub(super) struct AgeHeader<'a> {
    pub(super) stanzas: Vec<AgeStanza<'a>>,
    /// Its bytes up to the MAC.
    signed: &'a [u8],
    mac: [u8; 32],
    pub(super) payload: &'a [u8],
}

impl<'a> AgeHeader<'a> {
    /// Reads the header of a file.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, AgeFault> {
        let rest = bytes.strip_prefix(VERSION_LINE).ok_or(AgeFault::Header("it is not of age v1"))?;
        let mut lines = HeaderLines { rest };
        let mut stanzas = Vec::new();
        loop {
            let before = lines.rest;
            let line = lines.next_line()?;
            if let Some(mac) = line.strip_prefix(HEADER_END) {
                let mac = mac.strip_prefix(' ').ok_or(AgeFault::Header("its last line is malformed"))?;
                if stanzas.is_empty() {
                    return Err(AgeFault::Header("it has no recipients"));
                }
                let signed = bytes.get(..bytes.len() - before.len() + HEADER_END.len()).unwrap_or_default();
                let mac = decode_fixed(mac).ok_or(AgeFault::Header("its MAC is malformed"))?;
                return Ok(Self { stanzas, signed, mac, payload: lines.rest });
            }
            if stanzas.len() == MAX_STANZAS {
                return Err(AgeFault::TooManyStanzas);
            }
            stanzas.push(stanza(line, &mut lines)?);
        }
    }

    /// Verifies the MAC with the key of the file.
    pub(super) fn verify(&self, file_key: &[u8]) -> Result<(), AgeFault> {
        let mut key = Zeroizing::new([0; 32]);
        Hkdf::<Sha256>::new(None, file_key)
            .expand(b"header", key.as_mut_slice())
            .map_err(|_| AgeFault::HeaderMac)?;
        let mut mac = Hmac::<Sha256>::new_from_slice(key.as_slice()).map_err(|_| AgeFault::HeaderMac)?;
        mac.update(self.signed);
        mac.verify_slice(&self.mac).map_err(|_| AgeFault::HeaderMac)
    }
}

/// Decodes a text of strict base64 without padding.
pub(super) fn decode_fixed<const N: usize>(text: &str) -> Option<[u8; N]> {
    STANDARD_NO_PAD.decode(text).ok()?.try_into().ok()
}

fn stanza<'a>(line: &'a str, lines: &mut HeaderLines<'a>) -> Result<AgeStanza<'a>, AgeFault> {
    let malformed = AgeFault::Header("a recipient is malformed");
    let mut words = line.strip_prefix(STANZA_PREFIX).ok_or(malformed)?.split(' ');
    let kind = words.next().unwrap_or_default();
    let arguments: Vec<&str> = words.take(MAX_STANZA_WORDS + 1).collect();
    let is_word = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic());
    if arguments.len() > MAX_STANZA_WORDS || !is_word(&kind) || !arguments.iter().all(is_word) {
        return Err(malformed);
    }
    let mut body = Vec::new();
    loop {
        let line = lines.next_line()?;
        if line.len() > STANZA_LINE_CHARS {
            return Err(malformed);
        }
        STANDARD_NO_PAD.decode_vec(line, &mut body).map_err(|_| malformed)?;
        // A short line ends the body, if need be one without characters.
        if line.len() < STANZA_LINE_CHARS {
            return Ok(AgeStanza { kind, arguments, body });
        }
    }
}

/// The lines of a header.
struct HeaderLines<'a> {
    rest: &'a [u8],
}

impl<'a> HeaderLines<'a> {
    fn next_line(&mut self) -> Result<&'a str, AgeFault> {
        let end = self.rest.iter().position(|byte| *byte == b'\n');
        let (line, rest) = end
            .and_then(|end| Some((self.rest.get(..end)?, self.rest.get(end + 1..)?)))
            .ok_or(AgeFault::Header("it has no end"))?;
        self.rest = rest;
        std::str::from_utf8(line)
            .ok()
            .filter(|line| line.is_ascii())
            .ok_or(AgeFault::Header("it is not text"))
    }
}
