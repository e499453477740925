//! The armor: base64 in lines of 64 characters between two markers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::AgeFault;

const ARMOR_BEGIN: &str = "-----BEGIN AGE ENCRYPTED FILE-----";
const ARMOR_END: &str = "-----END AGE ENCRYPTED FILE-----";
/// Characters of a full line.
const ARMOR_LINE_CHARS: usize = 64;
/// Characters of the longest armored file that is read. A data key takes about 400.
const MAX_ARMOR_BYTES: usize = 64 << 10;
/// Blanks that may be before and after it.
const MAX_BLANK_CHARS: usize = 1024;

/// Returns the bytes inside the armor.
pub(super) fn decode(text: &str) -> Result<Vec<u8>, AgeFault> {
    if text.len() > MAX_ARMOR_BYTES {
        return Err(AgeFault::Armor("it is too long"));
    }
    let inner = text.trim_matches([' ', '\t', '\r', '\n']);
    if text.len() - inner.len() > MAX_BLANK_CHARS {
        return Err(AgeFault::Armor("too many blanks are around it"));
    }
    let mut lines = inner.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    if lines.next() != Some(ARMOR_BEGIN) {
        return Err(AgeFault::Armor("it does not begin as an armored age file"));
    }
    let mut bytes = Vec::with_capacity(inner.len() / 4 * 3);
    let mut short = false;
    for line in lines.by_ref() {
        if line == ARMOR_END {
            return if lines.next().is_none() {
                Ok(bytes)
            } else {
                Err(AgeFault::Armor("something follows its end"))
            };
        }
        if short || line.is_empty() || line.len() > ARMOR_LINE_CHARS {
            return Err(AgeFault::Armor("its lines have wrong lengths"));
        }
        STANDARD.decode_vec(line, &mut bytes).map_err(|_| AgeFault::Armor("it is not base64"))?;
        short = line.len() < ARMOR_LINE_CHARS || line.ends_with('=');
    }
    Err(AgeFault::Armor("it has no end"))
}
