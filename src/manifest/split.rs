//! A file's text to its documents, as kubectl's reader splits it: a file that begins with `{` is a stream of
//! JSON values, any other is cut at lines that begin with `---`.

use super::json;
use super::text;
use super::tree::{Fault, Mark, Tree};

/// Kubernetes looks this far for the first brace.
const SNIFFED: usize = 4096;

/// One document, or what stands in the place of one.
pub(super) enum Part<'a> {
    Json(Tree<'a>),
    /// A text for the YAML parser, and the line it begins in.
    Yaml(&'a str, u32),
    Fault(Fault),
}

/// The documents of a file, one after the other.
pub(super) struct Splitter<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    mode: Mode,
}

#[derive(Clone, Copy)]
enum Mode {
    /// With the number of values read so far.
    Json(u32),
    Yaml,
    /// A separator was not understood: up to the next one.
    Lost,
    Done,
}

impl<'a> Splitter<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let head = text.get(..text.floor_char_boundary(SNIFFED)).unwrap_or(text);
        let mode = if head.trim_start().starts_with('{') { Mode::Json(0) } else { Mode::Yaml };
        Self { text, at: 0, line: 1, mode }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn advance(&mut self, bytes: usize) {
        let passed = self.rest().get(..bytes).unwrap_or_default();
        self.line += text::line_breaks(passed);
        self.at += bytes;
    }

    fn json(&mut self, read: u32) -> Option<Part<'a>> {
        let blanks = self.rest().bytes().take_while(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n')).count();
        if blanks == self.rest().len() {
            self.mode = Mode::Done;
            return None;
        }
        let start = self.rest().get(blanks..).unwrap_or_default();
        let line = self.line + text::line_breaks(self.rest().get(..blanks).unwrap_or_default());
        let line_start =
            self.text.get(..self.at + blanks).unwrap_or_default().rfind(['\n', '\r']).map_or(0, |at| at + 1);
        let mark = Mark { line, column: (self.at + blanks - line_start) as u32 + 1 };
        match json::read(start, mark) {
            Ok((tree, len)) => {
                self.advance(blanks + len);
                self.mode = Mode::Json(read + 1);
                Some(Part::Json(tree))
            }
            Err(fault) if read > 1 || fault.code != "json-syntax" => self.end_with(fault),
            Err(fault) => match self.blanks_before_yaml() {
                Some(blanks) => {
                    self.advance(blanks);
                    self.mode = Mode::Yaml;
                    self.next()
                }
                None => self.end_with(fault),
            },
        }
    }

    fn end_with(&mut self, fault: Fault) -> Option<Part<'a>> {
        self.mode = Mode::Done;
        Some(Part::Fault(fault))
    }

    /// After one value at most, what is not JSON may still be YAML: after the blanks up to the end of the
    /// line. None where Kubernetes does not try, because it looks at four bytes at a time.
    fn blanks_before_yaml(&self) -> Option<usize> {
        let rest = self.rest();
        let (at, stop) = rest.char_indices().find(|(_, c)| *c == '\n' || !c.is_whitespace())?;
        if rest.len() - at < 4 || stop == char::REPLACEMENT_CHARACTER {
            return None;
        }
        Some(if stop == '\n' { at + 1 } else { at })
    }

    fn yaml(&mut self) -> Option<Part<'a>> {
        let (start, first_line) = (self.at, self.line);
        let mut lines = 0;
        while self.at < self.text.len() {
            let (here, number) = (self.at, self.line);
            let line = self.rest().split_inclusive('\n').next().unwrap_or_default();
            self.advance(line.len());
            if let Some(after) = line.strip_prefix("---") {
                let after = after.trim();
                if !after.is_empty() && !after.starts_with('#') {
                    self.mode = Mode::Lost;
                    return Some(Part::Fault(bad_separator(number)));
                }
                if lines > 0 {
                    return Some(Part::Yaml(self.text.get(start..here).unwrap_or_default(), first_line));
                }
            }
            lines += 1;
        }
        self.mode = Mode::Done;
        (lines > 0).then(|| Part::Yaml(self.text.get(start..).unwrap_or_default(), first_line))
    }

    fn skip_to_separator(&mut self) {
        while self.at < self.text.len() && !self.rest().starts_with("---") {
            let line = self.rest().split_inclusive('\n').next().unwrap_or_default().len();
            self.advance(line);
        }
        self.mode = Mode::Yaml;
    }
}

impl<'a> Iterator for Splitter<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        match self.mode {
            Mode::Json(read) => self.json(read),
            Mode::Yaml => self.yaml(),
            Mode::Lost => {
                self.skip_to_separator();
                self.yaml()
            }
            Mode::Done => None,
        }
    }
}

fn bad_separator(line: u32) -> Fault {
    Fault::new(
        Mark { line, column: 4 },
        "bad-separator",
        "Kubernetes reads only blanks or a comment after the `---` that separates two documents",
    )
    .hint("put what follows `---` on a line of its own")
}

/// Whether a text clearly has nothing but blanks, comments and separators. The parser judges the others.
pub(super) fn is_empty(text: &str) -> bool {
    let plain = |byte: u8| matches!(byte, b'\t' | b'\n' | b' '..=b'~');
    let blank = |line: &str| {
        let line = line.trim_start_matches(' ');
        line.is_empty() || line.starts_with('#')
    };
    text.bytes().all(plain)
        && text.lines().all(|line| match line.strip_prefix("---") {
            Some(after) => after.is_empty() || (after.starts_with(' ') && blank(after)),
            None => blank(line),
        })
}
