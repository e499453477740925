//! The armor: base64 in lines of 64 characters between two markers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::AgeFault;

const BEGIN: &str = "-----BEGIN AGE ENCRYPTED FILE-----";
const END: &str = "-----END AGE ENCRYPTED FILE-----";
/// Characters of a full line.
const COLUMNS: usize = 64;
/// Characters of the longest armored file that is read. A data key takes about 400.
const MAX_ARMOR: usize = 64 << 10;
/// Blanks that may be before and after it.
const MAX_BLANKS: usize = 1024;

/// Returns the bytes inside the armor.
pub(super) fn decode(text: &str) -> Result<Vec<u8>, AgeFault> {
    if text.len() > MAX_ARMOR {
        return Err(AgeFault::Armor("it is too long"));
    }
    let inner = text.trim_matches([' ', '\t', '\r', '\n']);
    if text.len() - inner.len() > MAX_BLANKS {
        return Err(AgeFault::Armor("too many blanks are around it"));
    }
    let mut lines = inner.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    if lines.next() != Some(BEGIN) {
        return Err(AgeFault::Armor("it does not begin as an armored age file"));
    }
    let mut bytes = Vec::with_capacity(inner.len() / 4 * 3);
    let mut short = false;
    for line in lines.by_ref() {
        if line == END {
            return if lines.next().is_none() {
                Ok(bytes)
            } else {
                Err(AgeFault::Armor("something follows its end"))
            };
        }
        if short || line.is_empty() || line.len() > COLUMNS {
            return Err(AgeFault::Armor("its lines have wrong lengths"));
        }
        STANDARD.decode_vec(line, &mut bytes).map_err(|_| AgeFault::Armor("it is not base64"))?;
        short = line.len() < COLUMNS || line.ends_with('=');
    }
    Err(AgeFault::Armor("it has no end"))
}
