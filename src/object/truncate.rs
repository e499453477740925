//! Bounds of texts that others write.

use std::borrow::Cow;

/// Returns the beginning of a text, of at most `most` bytes.
pub(crate) fn truncate(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Returns a text of at most `most` bytes, and of a longer one its beginning and its end. The end
/// counts more: a fault is named behind the name of its subject.
pub(crate) fn shorten(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return text.into();
    }
    let begin = text.floor_char_boundary(most / 4);
    let end = text.ceil_char_boundary(text.len() - most / 2);
    format!("{} … {}", &text[..begin], &text[end..]).into()
}
