//! Scalars and tags: the parts of the scanner that read text.

use std::borrow::Cow;

use super::cursor::{TabHandling, YamlCursor};
use super::scan::YamlScanner;
use crate::manifest::MAX_SCALAR_BYTES;
use crate::manifest::scalar::ScalarTag;
use crate::manifest::tree::{DocumentFault, TextMark, too_long};

/// The text of a scalar, taken from the source as long as it is there in one piece.
struct ScalarText<'a> {
    source: &'a str,
    built: Option<String>,
    start: usize,
}

impl<'a> ScalarText<'a> {
    fn from(cursor: &YamlCursor<'a>) -> Self {
        Self { source: cursor.text, built: None, start: cursor.at }
    }

    /// Ends a piece at `end`, adds a text of our own, and goes on at `next`.
    fn replace(&mut self, end: usize, with: &str, next: usize) {
        let piece = self.source.get(self.start..end).unwrap_or_default();
        let built = self.built.get_or_insert_default();
        built.push_str(piece);
        built.push_str(with);
        self.start = next;
    }

    fn finish(self, end: usize) -> Cow<'a, str> {
        let piece = self.source.get(self.start..end).unwrap_or_default();
        match self.built {
            None => Cow::Borrowed(piece),
            Some(built) => Cow::Owned(built + piece),
        }
    }
}

/// Line breaks between two parts of a flow scalar.
#[derive(Default)]
struct LineFolds {
    first: Option<&'static str>,
    more: String,
}

impl LineFolds {
    fn add(&mut self, line_break: &str) {
        match (&self.first, line_break) {
            (None, "\n") => self.first = Some("\n"),
            (None, "\u{2028}") => self.first = Some("\u{2028}"),
            (None, _) => self.first = Some("\u{2029}"),
            (Some(_), more) => self.more.push_str(more),
        }
    }

    /// Returns their text: one line feed is a space, and is dropped before more.
    fn text(self) -> String {
        match self.first {
            Some("\n") if self.more.is_empty() => " ".to_owned(),
            Some("\n") | None => self.more,
            Some(separator) => separator.to_owned() + &self.more,
        }
    }
}

/// The beginning of a text.
#[derive(Clone, Copy)]
struct TextStart {
    at: usize,
    mark: TextMark,
}

impl<'a> YamlScanner<'a> {
    fn start(&self) -> TextStart {
        TextStart { at: self.cursor.at, mark: self.cursor.mark() }
    }

    /// Returns the bytes to scan in one go: whole characters, and no more than makes a text too
    /// long.
    fn scannable_bytes(&self) -> &'a [u8] {
        let rest = self.cursor.rest();
        rest.get(..rest.ceil_char_boundary(MAX_SCALAR_BYTES + 1)).unwrap_or(rest).as_bytes()
    }

    /// Stops at a text that is longer than any object.
    fn check_length(&self, start: TextStart) -> Result<(), DocumentFault> {
        if self.cursor.at - start.at > MAX_SCALAR_BYTES { Err(too_long(start.mark)) } else { Ok(()) }
    }

    pub(super) fn read_plain(&mut self) -> Result<Cow<'a, str>, DocumentFault> {
        let mut pieces = ScalarText::from(&self.cursor);
        let (start, mut end) = (self.start(), self.cursor.at);
        let mut folds: Option<LineFolds> = None;
        loop {
            self.check_length(start)?;
            if self.cursor.is_at_document_indicator() || self.cursor.is_at(b'#') {
                break;
            }
            let run = self.plain_run();
            if run > 0 {
                if let Some(folds) = folds.take() {
                    pieces.replace(end, &folds.text(), self.cursor.at);
                }
                self.cursor.pass(run);
                self.check_length(start)?;
                end = self.cursor.at;
            }
            if !self.cursor.is_at_blank() && !self.cursor.is_at_break() {
                break;
            }
            self.plain_blanks(&mut folds)?;
            if self.flow == 0 && self.cursor.column.cast_signed() < self.indent + 1 {
                break;
            }
        }
        if folds.is_some() {
            self.allow_key();
        }
        Ok(pieces.finish(end))
    }

    fn plain_blanks(&mut self, folds: &mut Option<LineFolds>) -> Result<(), DocumentFault> {
        loop {
            if self.cursor.is_at_break() {
                let line_break = self.cursor.pass_break();
                folds.get_or_insert_default().add(line_break);
            } else if self.cursor.is_at_blank() {
                if folds.is_some()
                    && self.cursor.column.cast_signed() < self.indent + 1
                    && self.cursor.is_at(b'\t')
                {
                    return Err(self.fault("a tab cannot indent").hint("indent with spaces"));
                }
                self.cursor.pass(1);
            } else {
                return Ok(());
            }
        }
    }

    /// Returns how many bytes of a plain scalar are here before a blank or what ends it.
    fn plain_run(&self) -> usize {
        let flow = self.flow > 0;
        let mut len = 0;
        for &byte in self.scannable_bytes() {
            let ends = match byte {
                b' ' | b'\t' | b'\n' | b'\r' => true,
                b':' => self.cursor.is_separator(len + 1),
                0xC2 | 0xE2 => self.cursor.is_separator(len),
                b',' | b'?' | b'[' | b']' | b'{' | b'}' => flow,
                _ => false,
            };
            if ends {
                break;
            }
            len += 1;
        }
        len
    }

    pub(super) fn read_quoted(&mut self, quote: u8) -> Result<Cow<'a, str>, DocumentFault> {
        let opening = self.cursor.clone();
        let start = self.start();
        self.cursor.pass(1);
        let mut pieces = ScalarText::from(&self.cursor);
        loop {
            if self.cursor.is_at_document_indicator() || self.cursor.is_at_end() {
                self.cursor = opening;
                return Err(self.fault("the quotes that open here are not closed"));
            }
            let line = self.quoted_run(quote, start, &mut pieces)?;
            if self.cursor.is_at(quote) {
                let end = self.cursor.at;
                self.cursor.pass(1);
                return Ok(pieces.finish(end));
            }
            self.quoted_blanks(line, &mut pieces);
        }
    }

    /// Passes what is neither blank nor the closing quote, and an escaped line break at its end.
    fn quoted_run(
        &mut self,
        quote: u8,
        start: TextStart,
        pieces: &mut ScalarText<'a>,
    ) -> Result<QuotedLineEnd, DocumentFault> {
        loop {
            let run = self.quoted_plain(quote);
            self.cursor.pass(run);
            self.check_length(start)?;
            let here = self.cursor.at;
            match self.cursor.byte(0) {
                Some(b'\'') if quote == b'\'' && self.cursor.byte(1) == Some(b'\'') => {
                    self.cursor.pass(2);
                    pieces.replace(here, "'", self.cursor.at);
                }
                Some(b'\\') if quote == b'"' => {
                    let mut after = self.cursor.clone();
                    after.pass(1);
                    if after.is_at_break() {
                        after.pass_break();
                        self.cursor = after;
                        pieces.replace(here, "", self.cursor.at);
                        return Ok(QuotedLineEnd::Continued);
                    }
                    let character = self.escape()?;
                    pieces.replace(here, character.encode_utf8(&mut [0; 4]), self.cursor.at);
                }
                _ => return Ok(QuotedLineEnd::Open),
            }
        }
    }

    fn quoted_plain(&self, quote: u8) -> usize {
        let mut len = 0;
        for &byte in self.scannable_bytes() {
            let ends = match byte {
                b' ' | b'\t' | b'\n' | b'\r' => true,
                b'\\' => quote == b'"',
                0xC2 | 0xE2 => self.cursor.is_separator(len),
                _ => byte == quote,
            };
            if ends {
                break;
            }
            len += 1;
        }
        len
    }

    fn quoted_blanks(&mut self, line: QuotedLineEnd, pieces: &mut ScalarText<'a>) {
        let start = self.cursor.at;
        let mut folds = LineFolds::default();
        let mut broken = line == QuotedLineEnd::Continued;
        loop {
            if self.cursor.is_at_break() {
                let line_break = self.cursor.pass_break();
                if line == QuotedLineEnd::Continued {
                    folds.more.push_str(line_break);
                } else {
                    folds.add(line_break);
                }
                broken = true;
            } else if self.cursor.is_at_blank() {
                self.cursor.pass_blanks(TabHandling::Pass);
            } else {
                break;
            }
        }
        // Blanks within a line stay as they are.
        if broken {
            pieces.replace(start, &folds.text(), self.cursor.at);
        }
    }

    fn escape(&mut self) -> Result<char, DocumentFault> {
        let digits = match self.cursor.byte(1) {
            Some(b'x') => 2,
            Some(b'u') => 4,
            Some(b'U') => 8,
            letter => {
                let Some(character) = letter.and_then(simple_escape) else {
                    return Err(self
                        .fault("no such escape in double quotes")
                        .hint("write `\\\\` for a backslash, or use single quotes"));
                };
                self.cursor.pass(2);
                return Ok(character);
            }
        };
        let hex = self.cursor.rest().get(2..2 + digits).unwrap_or_default();
        if hex.len() < digits || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(self.fault(&format!("this escape needs {digits} hex digits")));
        }
        let code = u32::from_str_radix(hex, 16).ok();
        let Some(character) = code.and_then(char::from_u32) else {
            return Err(self.fault("this escape stands for no character").hint(
                "YAML has no pairs of escapes: write the character itself, or `\\U` with eight digits",
            ));
        };
        self.cursor.pass(2 + digits);
        Ok(character)
    }
}

/// The end of a line inside double quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum QuotedLineEnd {
    /// With blanks, a break or the quote.
    Open,
    /// With an escaped break: neither it nor the blanks after it belong to the text.
    Continued,
}

/// Block scalars.
impl YamlScanner<'_> {
    pub(super) fn block(&mut self, indicator: u8) -> Result<String, DocumentFault> {
        let start = self.start();
        self.cursor.pass(1);
        let (chomp, mut indent) = self.block_header()?;
        let mut out = String::new();
        let mut pending = String::new();
        let mut last_break = "";
        let mut after_blank = false;
        self.block_breaks(&mut indent, &mut pending)?;
        while self.cursor.column == indent && !self.cursor.is_at_end() {
            self.check_length(start)?;
            let blank = self.cursor.is_at_blank();
            let folds = indicator == b'>' && last_break == "\n" && !after_blank && !blank;
            match (folds, pending.is_empty()) {
                (true, true) => out.push(' '),
                (true, false) => {}
                (false, _) => out.push_str(last_break),
            }
            out.push_str(&pending);
            pending.clear();
            after_blank = blank;
            out.push_str(self.cursor.pass_line());
            last_break = self.cursor.pass_break();
            self.block_breaks(&mut indent, &mut pending)?;
        }
        if chomp != Chomp::Strip {
            out.push_str(last_break);
        }
        if chomp == Chomp::Keep {
            out.push_str(&pending);
        }
        Ok(out)
    }

    /// Reads what follows `|` or `>` in its line. An indentation of 0 is yet to be found.
    fn block_header(&mut self) -> Result<(Chomp, usize), DocumentFault> {
        let mut chomp = None;
        let mut increment = None;
        loop {
            match self.cursor.byte(0) {
                Some(b'+') if chomp.is_none() => chomp = Some(Chomp::Keep),
                Some(b'-') if chomp.is_none() => chomp = Some(Chomp::Strip),
                Some(b'0') if increment.is_none() => {
                    return Err(self.fault("the indentation of a block scalar is at least 1"));
                }
                Some(digit @ b'1'..=b'9') if increment.is_none() => {
                    increment = Some(usize::from(digit - b'0'));
                }
                _ => break,
            }
            self.cursor.pass(1);
        }
        self.cursor.pass_blanks(TabHandling::Pass);
        self.cursor.pass_comment();
        if !self.cursor.is_at_end() && !self.cursor.is_at_break() {
            return Err(self
                .fault("only a comment can follow `|` or `>` in its line")
                .hint("put a text that begins with `|` or `>` in quotes"));
        }
        self.cursor.pass_break();
        let indent = increment.map_or(0, |increment| increment + self.indent.max(0).unsigned_abs());
        Ok((chomp.unwrap_or(Chomp::Clip), indent))
    }

    /// Passes the blank lines before the next line of the scalar, and finds its indentation if need
    /// be.
    fn block_breaks(&mut self, indent: &mut usize, breaks: &mut String) -> Result<(), DocumentFault> {
        let mut deepest = 0;
        loop {
            let wanted = if *indent == 0 { usize::MAX } else { *indent };
            let spaces = self.cursor.rest().bytes().take_while(|b| *b == b' ').count();
            self.cursor.pass(spaces.min(wanted.saturating_sub(self.cursor.column)));
            deepest = deepest.max(self.cursor.column);
            if self.cursor.column < wanted && self.cursor.is_at(b'\t') {
                return Err(self
                    .fault("a tab cannot indent the text of a block scalar")
                    .hint("indent with spaces"));
            }
            if !self.cursor.is_at_break() {
                break;
            }
            breaks.push_str(self.cursor.pass_break());
        }
        if *indent == 0 {
            *indent = deepest.max((self.indent + 1).max(1).unsigned_abs());
        }
        Ok(())
    }
}

/// The treatment of the line breaks at the end of a block scalar.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chomp {
    Strip,
    Clip,
    Keep,
}

/// Tags.
impl YamlScanner<'_> {
    pub(super) fn tag(&mut self) -> Result<ScalarTag, DocumentFault> {
        let start = self.cursor.clone();
        let full = if self.cursor.byte(1) == Some(b'<') {
            self.cursor.pass(2);
            let uri = self.uri()?;
            if uri.is_empty() || !self.cursor.is_at(b'>') {
                self.cursor = start;
                return Err(self.fault("a tag that begins with `!<` ends with `>`"));
            }
            self.cursor.pass(1);
            uri
        } else {
            self.short_tag(&start)?
        };
        if !self.cursor.is_separator(0) {
            return Err(self
                .fault("a tag ends with a blank")
                .hint("put a text that begins with `!` in quotes"));
        }
        Ok(ScalarTag::from_full_form(&full))
    }

    fn short_tag(&mut self, start: &YamlCursor<'_>) -> Result<String, DocumentFault> {
        self.cursor.pass(1);
        let name = self.name();
        if !self.cursor.is_at(b'!') {
            return Ok(format!("!{name}{}", self.uri()?));
        }
        self.cursor.pass(1);
        let suffix = self.uri()?;
        let fault = |message: &str| {
            DocumentFault::new(start.mark(), "yaml-syntax", format!("this is not YAML: {message}"))
        };
        if suffix.is_empty() {
            return Err(fault("a tag without a name"));
        }
        if !name.is_empty() {
            return Err(fault("the handle of this tag is not declared"));
        }
        Ok(format!("tag:yaml.org,2002:{suffix}"))
    }

    fn uri(&mut self) -> Result<String, DocumentFault> {
        let mut out = Vec::new();
        let start = self.start();
        while let Some(byte) = self.cursor.byte(0) {
            self.check_length(start)?;
            match byte {
                b'%' => out.extend(self.uri_escape()?),
                byte if byte.is_ascii_alphanumeric() || b"_-;/?:@&=+$,.!~*'()[]".contains(&byte) => {
                    out.push(byte);
                    self.cursor.pass(1);
                }
                _ => break,
            }
        }
        String::from_utf8(out).map_err(|_| self.fault("the escapes of this tag are not valid UTF-8"))
    }

    /// Returns the bytes of one escaped character.
    fn uri_escape(&mut self) -> Result<Vec<u8>, DocumentFault> {
        let mut out = Vec::new();
        let mut wanted = 1;
        while out.len() < wanted {
            let hex = self.cursor.rest().get(..3).and_then(|text| text.strip_prefix('%'));
            let hex = hex.filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
            let Some(octet) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) else {
                return Err(self.fault("`%` in a tag is followed by two hex digits"));
            };
            if out.is_empty() {
                wanted = match octet {
                    0..=0x7F => 1,
                    0xC0..=0xDF => 2,
                    0xE0..=0xEF => 3,
                    0xF0..=0xF7 => 4,
                    _ => return Err(self.fault("the escapes of this tag are not valid UTF-8")),
                };
            }
            out.push(octet);
            self.cursor.pass(3);
        }
        Ok(out)
    }
}

fn simple_escape(letter: u8) -> Option<char> {
    Some(match letter {
        b'0' => '\0',
        b'a' => '\u{7}',
        b'b' => '\u{8}',
        b't' | b'\t' => '\t',
        b'n' => '\n',
        b'v' => '\u{b}',
        b'f' => '\u{c}',
        b'r' => '\r',
        b'e' => '\u{1b}',
        b' ' => ' ',
        b'"' => '"',
        b'\'' => '\'',
        b'\\' => '\\',
        b'N' => '\u{85}',
        b'_' => '\u{a0}',
        b'L' => '\u{2028}',
        b'P' => '\u{2029}',
        _ => return None,
    })
}
