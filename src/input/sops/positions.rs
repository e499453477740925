//! Places of values in the text of a file, found in one pass.

use crate::manifest::TextMark;

/// A cursor that turns marks into offsets. Marks have to come in the order of the text.
pub(super) struct MarkCursor<'t> {
    text: &'t str,
    /// The next place.
    offset: usize,
    line: u32,
    column: u32,
}

impl<'t> MarkCursor<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self { text, offset: 0, line: 1, column: 1 }
    }

    pub(super) const fn text(&self) -> &'t str {
        self.text
    }

    /// Returns the offset of a mark, or that of the end.
    pub(super) fn offset(&mut self, mark: TextMark) -> usize {
        let mut rest = self.text.get(self.offset..).unwrap_or_default();
        while self.line < mark.line {
            let Some(end) = rest.find(['\n', '\r']) else { return self.text.len() };
            let after = rest.get(end..).unwrap_or_default();
            rest = after.strip_prefix("\r\n").or_else(|| after.get(1..)).unwrap_or_default();
            (self.line, self.column) = (self.line + 1, 1);
        }
        let passed = mark.column.saturating_sub(self.column) as usize;
        let bytes = rest.char_indices().nth(passed).map_or(rest.len(), |(at, _)| at);
        self.offset = self.text.len() - rest.len() + bytes;
        self.column += passed as u32;
        self.offset
    }
}

/// Returns the range of a scalar that begins at an offset and has this content, its quotes or its
/// header included. None for forms in which the content is not written as it is.
pub(super) fn scalar_range(text: &str, start: usize, content: &str) -> Option<std::ops::Range<usize>> {
    let rest = text.get(start..)?;
    if rest.starts_with(content) {
        return Some(start..start + content.len());
    }
    match rest.chars().next()? {
        quote @ ('"' | '\'') => {
            let inside = rest.get(1..)?.strip_prefix(content)?;
            inside.starts_with(quote).then_some(start..start + content.len() + 2)
        }
        '|' | '>' => {
            let (_, lines) = rest.split_once(['\n', '\r'])?;
            let lines = lines.trim_start_matches([' ', '\t', '\n', '\r']);
            let begin = text.len() - lines.len();
            lines.starts_with(content).then_some(start..begin + content.len())
        }
        _ => None,
    }
}

/// Returns the offset of the first byte of the line around an offset.
pub(super) fn line_start(text: &str, offset: usize) -> usize {
    text.get(..offset).and_then(|before| before.rfind(['\n', '\r'])).map_or(0, |end| end + 1)
}

/// Returns the offset of the end of the line around an offset, before its break.
pub(super) fn line_end(text: &str, offset: usize) -> usize {
    let rest = text.get(offset..).unwrap_or_default();
    offset + rest.find(['\n', '\r']).unwrap_or(rest.len())
}
