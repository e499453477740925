//! Bytes to text, the way kubectl opens a file: a byte order mark chooses UTF-8 or UTF-16, and what is not
//! valid becomes U+FFFD.

use std::borrow::Cow;

/// The text of a file, without its byte order mark.
pub(super) fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    let text = match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8_lossy(rest),
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        _ => String::from_utf8_lossy(bytes),
    };
    // kubectl's line reader takes `\r\n` off each line and puts `\n` back, which turns `\r\r\n` into one
    // break instead of two.
    if text.contains("\r\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { text }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Cow<'static, str> {
    let (pairs, odd) = bytes.as_chunks::<2>();
    let units = pairs.iter().copied().map(unit);
    let mut text: String =
        char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    if !odd.is_empty() {
        text.push(char::REPLACEMENT_CHARACTER);
    }
    Cow::Owned(text)
}

/// How many lines end in this text: `\n`, `\r\n` or `\r`.
pub(super) fn line_breaks(text: &str) -> u32 {
    let bytes = text.as_bytes();
    let feeds = text.matches('\n').count();
    let lone = text.match_indices('\r').filter(|(at, _)| bytes.get(at + 1) != Some(&b'\n')).count();
    u32::try_from(feeds + lone).unwrap_or(u32::MAX)
}

/// The lines of a text, without their ends: `\n`, `\r\n` or `\r`.
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
