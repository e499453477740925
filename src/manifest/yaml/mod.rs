//! YAML text to a [`DocumentTree`].
//!
//! Kubernetes' reader of YAML 1.1 has habits of its own. Quoted texts may go on at any column.
//! `[cat, -]` and `{a:b}` are fine, `[a?b]` is not. Of several documents in one text only the first
//! is read. Readers of YAML 1.2 differ in such places, and somebody has a manifest for each. So
//! this reader is written to those habits, and is tested against kubectl document by document.

mod cursor;
mod parse;
mod scan;
mod text;
mod token;

use super::tree::{DocumentFault, DocumentTree, TextMark};

/// Reads the first document of a text whose first line is `line` of its file. Returns also the
/// place of what follows that document, which Kubernetes leaves unread. An empty tree, or one of an
/// empty scalar, stands for a document of nothing but blanks and comments.
pub(super) fn read(text: &str, line: u32) -> Result<(DocumentTree<'_>, Option<TextMark>), DocumentFault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Some(fault) = control_character(text, line) {
        return Err(fault);
    }
    parse::parse(text, line)
}

/// Bytes that are looked at together.
const CHUNK_BYTES: usize = 16;

/// Returns whether a control character may begin with this byte.
const fn can_begin_control(byte: u8) -> bool {
    match byte {
        b'\t' | b'\n' | b'\r' => false,
        0..=0x1F | 0x7F | 0xC2 | 0xEF => true,
        _ => false,
    }
}

/// Returns whether any of these bytes needs a closer look.
const fn has_suspects(chunk: &[u8; CHUNK_BYTES]) -> bool {
    const LOW_BITS: u128 = u128::MAX / 0xFF;
    const HIGH_BITS: u128 = LOW_BITS * 0x80;
    // Some byte of the difference borrows where one is below; bytes above 0x7F are left out by
    // `!all`.
    let all = u128::from_ne_bytes(*chunk);
    let below = all.wrapping_sub(LOW_BITS * 0x20) & !all & HIGH_BITS;
    let delete = zero_bytes(all ^ (LOW_BITS * 0x7F));
    let two = zero_bytes(all ^ (LOW_BITS * 0xC2));
    let three = zero_bytes(all ^ (LOW_BITS * 0xEF));
    below | delete | two | three != 0
}

/// Returns a number that is not zero when one of the bytes is.
const fn zero_bytes(all: u128) -> u128 {
    const LOW_BITS: u128 = u128::MAX / 0xFF;
    all.wrapping_sub(LOW_BITS) & !all & (LOW_BITS * 0x80)
}

fn control_character(text: &str, line: u32) -> Option<DocumentFault> {
    let (chunks, rest) = text.as_bytes().as_chunks();
    let rest = (chunks.len() * CHUNK_BYTES, rest);
    let chunks = chunks.iter().enumerate().filter(|(_, chunk)| has_suspects(chunk));
    let parts = chunks.map(|(number, chunk)| (number * CHUNK_BYTES, chunk.as_slice())).chain([rest]);
    let suspects = parts.flat_map(|(start, part)| {
        part.iter().enumerate().filter(|(_, byte)| can_begin_control(**byte)).map(move |(at, _)| start + at)
    });
    let mut characters = suspects.filter_map(|at| Some((at, text.get(at..)?.chars().next()?)));
    let (at, character) = characters.find(|(_, character)| {
        matches!(character, '\0'..='\u{1F}' | '\u{7F}'..='\u{9F}' | '\u{FFFE}' | '\u{FFFF}')
            && *character != '\u{85}'
    })?;
    let before = text.get(..at).unwrap_or_default();
    let line_start = before.rfind(['\n', '\r']).map_or(0, |end| end + 1);
    let column = before.get(line_start..).unwrap_or_default().chars().count() as u32 + 1;
    let mark = TextMark { line: line + super::text::line_breaks(before), column };
    let message = format!("control characters are not allowed, and here is U+{:04X}", u32::from(character));
    Some(
        DocumentFault::new(mark, "control-character", message)
            .hint("remove it, or write it as an escape in double quotes"),
    )
}
