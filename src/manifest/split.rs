//! A file's text to its documents, as kubectl's reader splits it. A file that begins with `{` is a
//! stream of JSON values, any other is cut at lines that begin with `---`.

use super::json;
use super::text;
use super::tree::{DocumentFault, DocumentTree, TextMark};

/// Kubernetes looks this far for the first brace.
const JSON_SNIFFED_BYTES: usize = 4096;

/// One document, or what is in the place of one.
pub(super) enum DocumentPart<'a> {
    Json(DocumentTree<'a>),
    /// A text for the YAML parser, and the line it begins in.
    Yaml(&'a str, u32),
    Fault(DocumentFault),
}

/// The documents of a file, one after the other.
pub(super) struct DocumentSplitter<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    /// The column, where JSON is read; it may begin anywhere in a line.
    column: u32,
    mode: SplitMode,
    /// Indicates whether there are carriage returns, which may end lines too.
    returns: bool,
}

#[derive(Clone, Copy)]
enum SplitMode {
    /// With the number of values read so far.
    Json(u32),
    Yaml,
    /// A separator was not understood: up to the next one.
    Lost,
    Done,
}

impl<'a> DocumentSplitter<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let head = text.get(..text.floor_char_boundary(JSON_SNIFFED_BYTES)).unwrap_or(text);
        let mode = if head.trim_start().starts_with('{') { SplitMode::Json(0) } else { SplitMode::Yaml };
        Self { text, at: 0, line: 1, column: 1, mode, returns: text.contains('\r') }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn advance(&mut self, bytes: usize) {
        let passed = self.rest().get(..bytes).unwrap_or_default();
        self.line += text::line_breaks(passed);
        self.at += bytes;
        if matches!(self.mode, SplitMode::Json(_)) {
            let line = passed.rfind(['\n', '\r']).and_then(|end| passed.get(end + 1..));
            let characters = line.unwrap_or(passed).chars().count() as u32;
            self.column = characters + if line.is_some() { 1 } else { self.column };
        }
    }

    fn json(&mut self, read: u32) -> Option<DocumentPart<'a>> {
        let blanks = self.rest().bytes().take_while(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n')).count();
        if blanks == self.rest().len() {
            self.mode = SplitMode::Done;
            return None;
        }
        let before = (self.at, self.line, self.column);
        self.advance(blanks);
        match json::read(self.rest(), TextMark { line: self.line, column: self.column }) {
            Ok((tree, len)) => {
                self.advance(len);
                self.mode = SplitMode::Json(read + 1);
                Some(DocumentPart::Json(tree))
            }
            Err(fault) if read > 1 || fault.code != "json-syntax" => Some(self.end_with(fault)),
            Err(fault) => {
                (self.at, self.line, self.column) = before;
                let Some(blanks) = self.blanks_before_yaml() else { return Some(self.end_with(fault)) };
                self.advance(blanks);
                self.mode = SplitMode::Yaml;
                self.next()
            }
        }
    }

    fn end_with(&mut self, fault: DocumentFault) -> DocumentPart<'a> {
        self.mode = SplitMode::Done;
        DocumentPart::Fault(fault)
    }

    /// Returns the length of the blanks up to the end of the line, after which the text may be
    /// YAML. That is so after one JSON value at most. Returns none where Kubernetes does not try,
    /// because it looks at four bytes at a time.
    fn blanks_before_yaml(&self) -> Option<usize> {
        let rest = self.rest();
        let (at, stop) = rest.char_indices().find(|(_, c)| *c == '\n' || !c.is_whitespace())?;
        if rest.len() - at < 4 || stop == char::REPLACEMENT_CHARACTER {
            return None;
        }
        Some(if stop == '\n' { at + 1 } else { at })
    }

    /// Passes a line, which is what ends with a line feed, and returns it.
    fn pass_line(&mut self) -> &'a str {
        let rest = self.rest();
        let line = rest.find('\n').and_then(|end| rest.get(..=end)).unwrap_or(rest);
        if self.returns {
            self.advance(line.len());
        } else {
            self.at += line.len();
            self.line += u32::from(line.ends_with('\n'));
        }
        line
    }

    fn yaml(&mut self) -> Option<DocumentPart<'a>> {
        let (start, first_line) = (self.at, self.line);
        let mut lines = 0;
        while self.at < self.text.len() {
            let (here, number) = (self.at, self.line);
            let line = self.pass_line();
            if let Some(after) = line.strip_prefix("---") {
                let after = after.trim();
                if !after.is_empty() && !after.starts_with('#') {
                    self.mode = SplitMode::Lost;
                    return Some(DocumentPart::Fault(bad_separator(number)));
                }
                if lines > 0 {
                    return Some(DocumentPart::Yaml(
                        self.text.get(start..here).unwrap_or_default(),
                        first_line,
                    ));
                }
            }
            lines += 1;
        }
        self.mode = SplitMode::Done;
        (lines > 0).then(|| DocumentPart::Yaml(self.text.get(start..).unwrap_or_default(), first_line))
    }

    fn skip_to_separator(&mut self) {
        while self.at < self.text.len() && !self.rest().starts_with("---") {
            self.pass_line();
        }
        self.mode = SplitMode::Yaml;
    }
}

impl<'a> Iterator for DocumentSplitter<'a> {
    type Item = DocumentPart<'a>;

    fn next(&mut self) -> Option<DocumentPart<'a>> {
        match self.mode {
            SplitMode::Json(read) => self.json(read),
            SplitMode::Yaml => self.yaml(),
            SplitMode::Lost => {
                self.skip_to_separator();
                self.yaml()
            }
            SplitMode::Done => None,
        }
    }
}

fn bad_separator(line: u32) -> DocumentFault {
    DocumentFault::new(
        TextMark { line, column: 4 },
        "bad-separator",
        "Kubernetes reads only blanks or a comment after the `---` that separates two documents",
    )
    .hint("put what follows `---` on a line of its own")
}

/// Returns whether a text clearly has nothing but blanks, comments and separators. The parser
/// judges the others.
pub(super) fn is_empty(text: &str) -> bool {
    let plain = |byte: u8| matches!(byte, b'\t' | b'\n' | b' '..=b'~');
    let blank = |line: &str| {
        let line = line.trim_start_matches(' ');
        line.is_empty() || line.starts_with('#')
    };
    // The first line that says something ends this; only then is it worth looking at every byte.
    text.lines().all(|line| match line.strip_prefix("---") {
        Some(after) => after.is_empty() || (after.starts_with(' ') && blank(after)),
        None => blank(line),
    }) && text.bytes().all(plain)
}
