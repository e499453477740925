//! Bounds of texts that others write.

/// Returns the beginning of a text, of at most so many bytes.
pub(crate) fn truncate(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}
