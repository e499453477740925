//! A place in a text that moves forward, and what is there.

use crate::manifest::tree::TextMark;

/// The place of the next character.
#[derive(Clone)]
pub(super) struct YamlCursor<'a> {
    pub(super) text: &'a str,
    /// Bytes passed.
    pub(super) at: usize,
    /// Characters passed.
    pub(super) index: usize,
    /// Characters passed in this line. Indentation is measured by it.
    pub(super) column: usize,
    /// Line breaks of any kind passed.
    pub(super) breaks: usize,
    /// The line in the file, by the breaks that editors know.
    line: u32,
}

impl<'a> YamlCursor<'a> {
    pub(super) const fn new(text: &'a str, line: u32) -> Self {
        Self { text, at: 0, index: 0, column: 0, breaks: 0, line }
    }

    pub(super) fn mark(&self) -> TextMark {
        TextMark { line: self.line, column: self.column as u32 + 1 }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Returns the byte some bytes ahead.
    pub(super) fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    pub(super) fn is_at(&self, byte: u8) -> bool {
        self.byte(0) == Some(byte)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Returns whether a space or a tab is here.
    pub(super) fn is_at_blank(&self) -> bool {
        matches!(self.byte(0), Some(b' ' | b'\t'))
    }

    /// Returns whether a line break is here.
    pub(super) fn is_at_break(&self) -> bool {
        self.break_len(0).is_some()
    }

    /// Returns whether a blank, a line break or the end is some bytes ahead.
    pub(super) fn is_separator(&self, ahead: usize) -> bool {
        matches!(self.byte(ahead), None | Some(b' ' | b'\t')) || self.break_len(ahead).is_some()
    }

    /// Returns the bytes of the line break some bytes ahead.
    fn break_len(&self, ahead: usize) -> Option<usize> {
        match self.byte(ahead)? {
            b'\r' if self.byte(ahead + 1) == Some(b'\n') => Some(2),
            b'\r' | b'\n' => Some(1),
            0xC2 if self.byte(ahead + 1) == Some(0x85) => Some(2),
            0xE2 if self.byte(ahead + 1) == Some(0x80)
                && matches!(self.byte(ahead + 2), Some(0xA8 | 0xA9)) =>
            {
                Some(3)
            }
            _ => None,
        }
    }

    /// Passes bytes of one line, and returns them.
    pub(super) fn pass(&mut self, bytes: usize) -> &'a str {
        let passed = self.rest().get(..bytes).unwrap_or_default();
        let characters = if bytes == 1 { 1 } else { passed.chars().count() };
        self.at += bytes;
        self.index += characters;
        self.column += characters;
        passed
    }

    /// Passes a line break, and returns what it means in a scalar. Empty when none is here.
    pub(super) fn pass_break(&mut self) -> &'a str {
        let Some(len) = self.break_len(0) else { return "" };
        let passed = self.rest().get(..len).unwrap_or_default();
        self.at += len;
        self.index += passed.chars().count();
        self.column = 0;
        self.breaks += 1;
        if matches!(passed, "\n" | "\r" | "\r\n") {
            self.line += 1;
        }
        // The two Unicode separators stay what they are; every other break is a line feed.
        if matches!(passed, "\u{2028}" | "\u{2029}") { passed } else { "\n" }
    }

    /// Passes spaces, and tabs where they are allowed.
    pub(super) fn pass_blanks(&mut self, tabs: TabHandling) {
        let blanks = self
            .rest()
            .bytes()
            .take_while(|b| *b == b' ' || (*b == b'\t' && tabs == TabHandling::Pass))
            .count();
        self.pass(blanks);
    }

    /// Passes everything up to the next line break or the end, and returns it.
    pub(super) fn pass_line(&mut self) -> &'a str {
        let rest = self.rest();
        let mut line = rest.split('\n').next().unwrap_or_default();
        for other in ['\r', '\u{85}', '\u{2028}', '\u{2029}'] {
            line = line.split(other).next().unwrap_or_default();
        }
        self.pass(line.len())
    }

    /// Passes a comment, if one begins here.
    pub(super) fn pass_comment(&mut self) {
        if self.is_at(b'#') {
            self.pass_line();
        }
    }

    /// Returns whether `---` or `...` is here as a line of its own begins with it.
    pub(super) fn is_at_document_indicator(&self) -> bool {
        self.column == 0
            && (self.rest().starts_with("---") || self.rest().starts_with("..."))
            && self.is_separator(3)
    }
}

/// Indicates whether tabs count among the blanks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TabHandling {
    Pass,
    Stop,
}
