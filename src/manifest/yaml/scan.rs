//! Text to tokens: YAML 1.1 with the liberties that Kubernetes' reader takes.
//!
//! A key without `?` is recognised only at its `:`. Until then the place before it is remembered as
//! a possible key, one for each level of flow collections. Tokens from there on are not handed out.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::cursor::{TabHandling, YamlCursor};
use super::token::{TokenKind, YamlToken};
use crate::manifest::tree::{DocumentFault, TextMark};

/// The most characters of a key without `?`.
const MAX_SIMPLE_KEY_CHARS: usize = 1024;

/// A place where a key may have begun.
#[derive(Clone, Copy)]
struct PossibleKey {
    possible: bool,
    /// Nothing but a key can be there.
    required: bool,
    /// The number of the token it begins with.
    token: usize,
    index: usize,
    breaks: usize,
    column: usize,
    mark: TextMark,
}

/// The scanner of one text.
pub(super) struct YamlScanner<'a> {
    pub(super) cursor: YamlCursor<'a>,
    /// Open flow collections.
    pub(super) flow: usize,
    /// Column of the innermost block collection, -1 outside all.
    pub(super) indent: isize,
    indents: Vec<isize>,
    key_allowed: bool,
    keys: Vec<PossibleKey>,
    /// The tokens that possible keys begin with, and their levels: both grow from the front to the
    /// back. Some may be of keys that are impossible by now.
    levels: VecDeque<(usize, usize)>,
    queue: VecDeque<YamlToken<'a>>,
    /// Tokens handed out.
    taken: usize,
    /// The line that the last plain text begins in.
    text_line: Option<u32>,
}

impl<'a> YamlScanner<'a> {
    pub(super) fn new(text: &'a str, line: u32) -> Self {
        let cursor = YamlCursor::new(text, line);
        let outermost = PossibleKey {
            possible: false,
            required: false,
            token: 0,
            index: 0,
            breaks: 0,
            column: 0,
            mark: cursor.mark(),
        };
        Self {
            cursor,
            flow: 0,
            indent: -1,
            indents: Vec::new(),
            key_allowed: true,
            keys: vec![outermost],
            levels: VecDeque::new(),
            queue: VecDeque::new(),
            taken: 0,
            text_line: None,
        }
    }

    /// Returns the next token, which stays.
    pub(super) fn peek(&mut self) -> Result<&YamlToken<'a>, DocumentFault> {
        while self.is_token_needed()? {
            self.fetch()?;
        }
        let mark = self.cursor.mark();
        match self.queue.front() {
            Some(token) => Ok(token),
            None => Err(DocumentFault::new(mark, "yaml-syntax", "this is not YAML: it ends in the middle")),
        }
    }

    /// Returns the next token, which stays, without the text of a scalar.
    pub(super) fn peek_lean(&mut self) -> Result<YamlToken<'a>, DocumentFault> {
        let token = self.peek()?;
        let kind = match &token.kind {
            TokenKind::Plain(_) => TokenKind::Plain(Cow::Borrowed("")),
            TokenKind::Quoted(_) => TokenKind::Quoted(Cow::Borrowed("")),
            other => other.clone(),
        };
        Ok(YamlToken { kind, mark: token.mark })
    }

    /// Takes the token that was peeked at.
    pub(super) fn skip(&mut self) -> Option<YamlToken<'a>> {
        let token = self.queue.pop_front();
        self.taken += usize::from(token.is_some());
        token
    }

    fn is_token_needed(&mut self) -> Result<bool, DocumentFault> {
        if self.queue.is_empty() {
            return Ok(true);
        }
        while self.levels.front().is_some_and(|(token, _)| *token < self.taken) {
            self.levels.pop_front();
        }
        match self.levels.front() {
            Some(&(token, level)) if token == self.taken => self.is_valid(level),
            _ => Ok(false),
        }
    }

    fn fetch(&mut self) -> Result<(), DocumentFault> {
        self.pass_to_token();
        self.unroll(self.cursor.column.cast_signed());
        let Some(byte) = self.cursor.byte(0) else { return self.end() };
        let indicator = self.cursor.is_at_document_indicator();
        let separated = self.cursor.is_separator(1);
        match byte {
            b'%' if self.cursor.column == 0 => self.directive(),
            b'-' if indicator => self.document(TokenKind::DocumentStart),
            b'.' if indicator => self.document(TokenKind::DocumentEnd),
            b'[' => self.open(TokenKind::FlowSequence),
            b'{' => self.open(TokenKind::FlowMapping),
            b']' => self.close(TokenKind::FlowSequenceEnd),
            b'}' => self.close(TokenKind::FlowMappingEnd),
            b',' => self.flow_entry(),
            b'-' if separated => self.block_entry(),
            b'?' if self.flow > 0 || separated => self.explicit_key(),
            b':' if self.flow > 0 || separated => self.value(),
            b'*' | b'&' => self.anchor(byte),
            b'!' => self.with_key(|scanner| scanner.tag().map(TokenKind::Tag)),
            b'|' | b'>' if self.flow == 0 => self.block_scalar(byte),
            b'\'' | b'"' => self.with_key(|scanner| scanner.read_quoted(byte).map(TokenKind::Quoted)),
            b'\t' => Err(self.fault("a tab cannot indent, and begins no value").hint("indent with spaces")),
            b'@' | b'`' | b'%' | b'|' | b'>' => {
                let kind =
                    if byte == b'`' { "a backtick".to_owned() } else { format!("`{}`", char::from(byte)) };
                Err(self.fault(&format!("{kind} cannot begin a plain value")).hint("put the value in quotes"))
            }
            _ => {
                self.text_line = Some(self.cursor.mark().line);
                self.with_key(|scanner| scanner.read_plain().map(TokenKind::Plain))
            }
        }
    }

    pub(super) fn fault(&self, message: &str) -> DocumentFault {
        DocumentFault::new(self.cursor.mark(), "yaml-syntax", format!("this is not YAML: {message}"))
    }

    fn push(&mut self, kind: TokenKind<'a>, mark: TextMark) {
        self.queue.push_back(YamlToken { kind, mark });
    }

    /// Passes one byte as a token.
    fn push_indicator(&mut self, kind: TokenKind<'a>) {
        let mark = self.cursor.mark();
        self.cursor.pass(1);
        self.push(kind, mark);
    }

    fn pass_to_token(&mut self) {
        loop {
            let tabs = if self.flow > 0 || !self.key_allowed { TabHandling::Pass } else { TabHandling::Stop };
            self.cursor.pass_blanks(tabs);
            self.cursor.pass_comment();
            if !self.cursor.is_at_break() {
                return;
            }
            self.cursor.pass_break();
            if self.flow == 0 {
                self.key_allowed = true;
            }
        }
    }
}

/// Possible keys.
impl<'a> YamlScanner<'a> {
    /// Returns whether the possible key of a level may still become one.
    fn is_valid(&mut self, level: usize) -> Result<bool, DocumentFault> {
        let (breaks, index) = (self.cursor.breaks, self.cursor.index);
        let Some(key) = self.keys.get_mut(level).filter(|key| key.possible) else { return Ok(false) };
        if key.breaks >= breaks && key.index + MAX_SIMPLE_KEY_CHARS >= index {
            return Ok(true);
        }
        if key.required {
            return Err(missing_colon_fault(key.mark));
        }
        key.possible = false;
        Ok(false)
    }

    fn save_key(&mut self) -> Result<(), DocumentFault> {
        if !self.key_allowed {
            return Ok(());
        }
        self.drop_key()?;
        let cursor = &self.cursor;
        let key = PossibleKey {
            possible: true,
            required: self.flow == 0 && self.indent == cursor.column.cast_signed(),
            token: self.taken + self.queue.len(),
            index: cursor.index,
            breaks: cursor.breaks,
            column: cursor.column,
            mark: cursor.mark(),
        };
        self.close_levels_from(key.token);
        self.levels.push_back((key.token, self.keys.len() - 1));
        if let Some(last) = self.keys.last_mut() {
            *last = key;
        }
        Ok(())
    }

    fn drop_key(&mut self) -> Result<(), DocumentFault> {
        if let Some(key) = self.keys.last_mut().filter(|key| key.possible) {
            if key.required {
                return Err(missing_colon_fault(key.mark));
            }
            key.possible = false;
            let token = key.token;
            self.close_levels_from(token);
        }
        Ok(())
    }

    /// Takes the entries from a token on out of the levels.
    fn close_levels_from(&mut self, token: usize) {
        while self.levels.back().is_some_and(|(last, _)| *last >= token) {
            self.levels.pop_back();
        }
    }

    /// Scans a token that a key may begin with.
    fn with_key(
        &mut self,
        scan: impl FnOnce(&mut Self) -> Result<TokenKind<'a>, DocumentFault>,
    ) -> Result<(), DocumentFault> {
        self.save_key()?;
        self.key_allowed = false;
        let mark = self.cursor.mark();
        let kind = scan(self)?;
        self.push(kind, mark);
        Ok(())
    }

    /// Allows a key where the scanner is: after the line break inside a plain scalar.
    pub(super) fn allow_key(&mut self) {
        self.key_allowed = true;
    }
}

/// Indentation.
impl<'a> YamlScanner<'a> {
    /// Opens a block collection at a column, when it is deeper than the current one. Its token goes
    /// before the token of this number, or to the end.
    fn open_block(&mut self, column: usize, before: Option<usize>, kind: TokenKind<'a>, mark: TextMark) {
        if self.flow > 0 || self.indent >= column.cast_signed() {
            return;
        }
        self.indents.push(self.indent);
        self.indent = column.cast_signed();
        self.insert(before, kind, mark);
    }

    /// Inserts a token before another one. A number that is not in the queue any more means its
    /// end.
    fn insert(&mut self, before: Option<usize>, kind: TokenKind<'a>, mark: TextMark) {
        let index = before.and_then(|number| number.checked_sub(self.taken)).unwrap_or(self.queue.len());
        self.queue.insert(index.min(self.queue.len()), YamlToken { kind, mark });
    }

    /// Closes the block collections deeper than a column.
    fn unroll(&mut self, column: isize) {
        if self.flow > 0 {
            return;
        }
        while self.indent > column {
            let mark = self.cursor.mark();
            self.push(TokenKind::BlockEnd, mark);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }
}

/// Indicators.
impl<'a> YamlScanner<'a> {
    fn end(&mut self) -> Result<(), DocumentFault> {
        // The end ends its line too: nothing that is open can become a key any more.
        self.cursor.breaks += 1;
        self.unroll(-1);
        self.drop_key()?;
        self.key_allowed = false;
        let mark = self.cursor.mark();
        self.push(TokenKind::End, mark);
        Ok(())
    }

    fn directive(&mut self) -> Result<(), DocumentFault> {
        self.unroll(-1);
        self.drop_key()?;
        self.key_allowed = false;
        let mark = self.cursor.mark();
        let known = |name: &str| self.cursor.rest().starts_with(name) && self.cursor.is_separator(name.len());
        if !known("%YAML") && !known("%TAG") {
            return Err(self.fault("`%` cannot begin a plain value").hint("put the value in quotes"));
        }
        self.cursor.pass_line();
        self.push(TokenKind::Directive, mark);
        Ok(())
    }

    fn document(&mut self, kind: TokenKind<'a>) -> Result<(), DocumentFault> {
        self.unroll(-1);
        self.drop_key()?;
        self.key_allowed = false;
        let mark = self.cursor.mark();
        self.cursor.pass(3);
        self.push(kind, mark);
        Ok(())
    }

    fn open(&mut self, kind: TokenKind<'a>) -> Result<(), DocumentFault> {
        self.save_key()?;
        let cursor = &self.cursor;
        self.keys.push(PossibleKey {
            possible: false,
            required: false,
            token: self.taken + self.queue.len(),
            index: cursor.index,
            breaks: cursor.breaks,
            column: cursor.column,
            mark: cursor.mark(),
        });
        self.flow += 1;
        self.key_allowed = true;
        self.push_indicator(kind);
        Ok(())
    }

    fn close(&mut self, kind: TokenKind<'a>) -> Result<(), DocumentFault> {
        self.drop_key()?;
        if self.flow > 0 {
            self.flow -= 1;
            if let Some(key) = self.keys.pop() {
                self.close_levels_from(key.token);
            }
        }
        self.key_allowed = false;
        self.push_indicator(kind);
        Ok(())
    }

    fn flow_entry(&mut self) -> Result<(), DocumentFault> {
        self.drop_key()?;
        self.key_allowed = true;
        self.push_indicator(TokenKind::FlowEntry);
        Ok(())
    }

    fn block_entry(&mut self) -> Result<(), DocumentFault> {
        if self.flow == 0 {
            if !self.key_allowed {
                return Err(self
                    .fault("a list cannot begin here")
                    .hint("begin the list on a line of its own"));
            }
            let (column, mark) = (self.cursor.column, self.cursor.mark());
            self.open_block(column, None, TokenKind::BlockSequence, mark);
        }
        self.drop_key()?;
        self.key_allowed = true;
        self.push_indicator(TokenKind::BlockEntry);
        Ok(())
    }

    fn explicit_key(&mut self) -> Result<(), DocumentFault> {
        if self.flow == 0 {
            if !self.key_allowed {
                return Err(self.fault("a key cannot begin here"));
            }
            let (column, mark) = (self.cursor.column, self.cursor.mark());
            self.open_block(column, None, TokenKind::BlockMapping, mark);
        }
        self.drop_key()?;
        self.key_allowed = self.flow == 0;
        self.push_indicator(TokenKind::Key);
        Ok(())
    }

    fn value(&mut self) -> Result<(), DocumentFault> {
        let level = self.keys.len() - 1;
        if self.is_valid(level)?
            && let Some(key) = self.keys.get_mut(level)
        {
            key.possible = false;
            let key = *key;
            self.close_levels_from(key.token);
            self.insert(Some(key.token), TokenKind::Key, key.mark);
            self.open_block(key.column, Some(key.token), TokenKind::BlockMapping, key.mark);
            self.key_allowed = false;
        } else {
            if self.flow == 0 {
                if !self.key_allowed {
                    return Err(self.needless_colon());
                }
                let (column, mark) = (self.cursor.column, self.cursor.mark());
                self.open_block(column, None, TokenKind::BlockMapping, mark);
            }
            self.key_allowed = self.flow == 0;
        }
        self.push_indicator(TokenKind::Value);
        Ok(())
    }

    fn needless_colon(&self) -> DocumentFault {
        let fault = self.fault("a value with `: ` is not allowed here");
        let begun = self.text_line.filter(|line| *line < self.cursor.mark().line);
        match begun {
            Some(line) => fault
                .more(&format!(": the text from line {line} goes on to here"))
                .hint("indent keys alike, write a blank after the `:` of each, and put a text that contains `: ` in quotes"),
            None => fault
                .hint("put a text that contains `: ` in quotes, or begin the mapping on a line of its own"),
        }
    }

    fn anchor(&mut self, indicator: u8) -> Result<(), DocumentFault> {
        self.with_key(|scanner| {
            let start = scanner.cursor.clone();
            scanner.cursor.pass(1);
            let name = scanner.name();
            let ended = scanner.cursor.is_separator(0)
                || matches!(
                    scanner.cursor.byte(0),
                    Some(b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`')
                );
            if name.is_empty() || !ended {
                scanner.cursor = start;
                return Err(scanner
                    .fault("an anchor's name has letters, digits, `-` and `_`")
                    .hint("put a text that begins with `*` or `&` in quotes"));
            }
            Ok(if indicator == b'*' { TokenKind::Alias(name) } else { TokenKind::Anchor(name) })
        })
    }

    /// Reads letters, digits, `-` and `_`.
    pub(super) fn name(&mut self) -> &'a str {
        let len = self
            .cursor
            .rest()
            .bytes()
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
            .count();
        self.cursor.pass(len)
    }

    fn block_scalar(&mut self, indicator: u8) -> Result<(), DocumentFault> {
        self.drop_key()?;
        self.key_allowed = true;
        let mark = self.cursor.mark();
        let text = self.block(indicator)?;
        self.push(TokenKind::Quoted(text.into()), mark);
        Ok(())
    }
}

fn missing_colon_fault(mark: TextMark) -> DocumentFault {
    DocumentFault::new(mark, "yaml-syntax", "this is not YAML: a key without a `:` after it").hint(
        "a key is followed by `: `; a text that goes on over lines must be indented deeper than its key",
    )
}
