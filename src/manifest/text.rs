//! Bytes to text, the way kubectl opens a file: a byte order mark chooses UTF-8 or UTF-16, and what
//! is not valid becomes U+FFFD.

use std::borrow::Cow;

/// Returns the text of a file, without its byte order mark. Fails with its length when that is over
/// a limit: what is not valid takes more bytes as text than in the file.
pub(super) fn decode_text(bytes: &[u8], limit: usize) -> Result<Cow<'_, str>, usize> {
    let text = match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => decode_utf8(rest, limit)?,
        [0xFF, 0xFE, rest @ ..] => decode_utf16(rest, u16::from_le_bytes, limit)?,
        [0xFE, 0xFF, rest @ ..] => decode_utf16(rest, u16::from_be_bytes, limit)?,
        _ => decode_utf8(bytes, limit)?,
    };
    // kubectl's line reader takes `\r\n` off each line and puts `\n` back, which turns `\r\r\n`
    // into one break instead of two.
    Ok(if text.contains("\r\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { text })
}

fn decode_utf8(bytes: &[u8], limit: usize) -> Result<Cow<'_, str>, usize> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(Cow::Borrowed(text));
    }
    let pieces = || {
        let chunks = bytes.utf8_chunks();
        chunks.flat_map(|chunk| [chunk.valid(), if chunk.invalid().is_empty() { "" } else { "\u{FFFD}" }])
    };
    let length = pieces().map(str::len).sum();
    if length > limit {
        return Err(length);
    }
    let mut text = String::with_capacity(length);
    text.extend(pieces());
    Ok(Cow::Owned(text))
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16, limit: usize) -> Result<Cow<'static, str>, usize> {
    let (pairs, odd) = bytes.as_chunks::<2>();
    let characters = || {
        char::decode_utf16(pairs.iter().copied().map(unit))
            .map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER))
            .chain(odd.iter().map(|_| char::REPLACEMENT_CHARACTER))
    };
    let length = characters().map(char::len_utf8).sum();
    if length > limit {
        return Err(length);
    }
    let mut text = String::with_capacity(length);
    text.extend(characters());
    Ok(Cow::Owned(text))
}

/// Returns how many lines end in this text: `\n`, `\r\n` or `\r`.
pub(super) fn line_breaks(text: &str) -> u32 {
    let bytes = text.as_bytes();
    let feeds = text.matches('\n').count();
    let lone = text.match_indices('\r').filter(|(at, _)| bytes.get(at + 1) != Some(&b'\n')).count();
    u32::try_from(feeds + lone).unwrap_or(u32::MAX)
}

/// Returns the lines of a text, without their ends: `\n`, `\r\n` or `\r`.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let here = rest?;
        let Some(end) = here.find(['\n', '\r']) else {
            rest = None;
            return Some(here);
        };
        let (line, tail) = here.split_at(end);
        rest = tail.strip_prefix("\r\n").or_else(|| tail.get(1..));
        Some(line)
    })
}
