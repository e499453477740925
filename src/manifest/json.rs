//! JSON text to a [`DocumentTree`], as strict as Go's `encoding/json`, on a stack of its own.

use super::scalar::ScalarTag;
use super::tree::{DocumentFault, DocumentTree, TextMark, YamlNodeId, YamlNodeKind, too_long};
use super::{MAX_SCALAR_BYTES, MAX_YAML_DEPTH};

/// Reads one JSON value at the start of `text`, which is at `mark` in its file. Returns the
/// tree and how many bytes it took.
pub(super) fn read(text: &str, mark: TextMark) -> Result<(DocumentTree<'_>, usize), DocumentFault> {
    let mut reader = JsonReader {
        text,
        at: 0,
        line: mark.line,
        column: mark.column,
        counted: 0,
        tree: DocumentTree::over(text),
    };
    reader.document()?;
    Ok((reader.tree, reader.at))
}

struct OpenJsonNode {
    node: YamlNodeId,
    last: Option<YamlNodeId>,
}

struct JsonReader<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    /// The column at `counted`, which is a place in the current line at or before `at`.
    column: u32,
    counted: usize,
    tree: DocumentTree<'a>,
}

impl JsonReader<'_> {
    fn document(&mut self) -> Result<(), DocumentFault> {
        let mut open: Vec<OpenJsonNode> = Vec::new();
        loop {
            self.value(&mut open)?;
            // Ends every collection that ends here, then goes on to the next value.
            loop {
                let Some(inner) = open.last() else { return Ok(()) };
                let mapping = self.tree.kind(inner.node) == YamlNodeKind::Mapping;
                self.blanks();
                match (self.peek(), mapping) {
                    (Some(b','), _) => {
                        self.at += 1;
                        self.blanks();
                        if mapping {
                            self.key(&mut open)?;
                        }
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => {
                        self.at += 1;
                        open.pop();
                    }
                    _ => {
                        return Err(self.fault(if mapping {
                            "expected `,` or `}`"
                        } else {
                            "expected `,` or `]`"
                        }));
                    }
                }
            }
        }
    }

    /// Reads a scalar, or opens a collection down to its first value.
    fn value(&mut self, open: &mut Vec<OpenJsonNode>) -> Result<(), DocumentFault> {
        loop {
            self.blanks();
            let mark = self.mark();
            let (kind, end) = match self.peek() {
                Some(b'{') => (YamlNodeKind::Mapping, b'}'),
                Some(b'[') => (YamlNodeKind::Sequence, b']'),
                Some(b'"') => {
                    let node = self.string()?;
                    self.add(node, open);
                    return Ok(());
                }
                _ => {
                    let node = self.literal()?;
                    self.add(node, open);
                    return Ok(());
                }
            };
            self.at += 1;
            let node = self.tree.push_collection(kind, ScalarTag::None, mark);
            self.add(node, open);
            self.within_limits(open.len() + 1, mark)?;
            self.blanks();
            if self.peek() == Some(end) {
                self.at += 1;
                return Ok(());
            }
            open.push(OpenJsonNode { node, last: None });
            if kind == YamlNodeKind::Mapping {
                self.key(open)?;
            }
        }
    }

    fn within_limits(&self, depth: usize, mark: TextMark) -> Result<(), DocumentFault> {
        if depth > MAX_YAML_DEPTH {
            return Err(DocumentFault::new(
                mark,
                "too-deep",
                format!("nested more than {MAX_YAML_DEPTH} levels deep"),
            ));
        }
        self.tree.within_limits()
    }

    fn key(&mut self, open: &mut [OpenJsonNode]) -> Result<(), DocumentFault> {
        if self.peek() != Some(b'"') {
            return Err(self.fault("expected a key in double quotes"));
        }
        let key = self.string()?;
        self.add(key, open);
        self.blanks();
        if self.peek() != Some(b':') {
            return Err(self.fault("expected `:` after the key"));
        }
        self.at += 1;
        Ok(())
    }

    fn add(&mut self, node: YamlNodeId, open: &mut [OpenJsonNode]) {
        if let Some(inner) = open.last_mut() {
            self.tree.append(inner.node, inner.last, node);
            inner.last = Some(node);
        }
    }

    fn literal(&mut self) -> Result<YamlNodeId, DocumentFault> {
        let (mark, start) = (self.mark(), self.at);
        let rest = self.text.get(start..).unwrap_or_default();
        let word = rest
            .bytes()
            .take(MAX_SCALAR_BYTES + 1)
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
            .count();
        if word > MAX_SCALAR_BYTES {
            return Err(too_long(mark));
        }
        let word = rest.get(..word).unwrap_or_default();
        if !matches!(word, "true" | "false" | "null") && !is_number(word) {
            return Err(self.fault("expected a value"));
        }
        self.at += word.len();
        self.within_limits(0, mark)?;
        Ok(self.tree.push_borrowed(YamlNodeKind::Literal, ScalarTag::None, mark, start, word.len()))
    }

    fn string(&mut self) -> Result<YamlNodeId, DocumentFault> {
        let mark = self.mark();
        let start = self.at + 1;
        let rest = self.text.get(start..).unwrap_or_default();
        let plain = plain_run(rest);
        self.within_limits(0, mark)?;
        if plain > MAX_SCALAR_BYTES {
            return Err(too_long(mark));
        }
        self.at = start + plain;
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(self.tree.push_borrowed(YamlNodeKind::Quoted, ScalarTag::None, mark, start, plain));
        }
        let mut out = rest.get(..plain).unwrap_or_default().to_owned();
        loop {
            if out.len() > MAX_SCALAR_BYTES {
                return Err(too_long(mark));
            }
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(self.tree.push_owned(
                        YamlNodeKind::Quoted,
                        ScalarTag::None,
                        mark,
                        out.into_boxed_str(),
                    ));
                }
                Some(b'\\') => self.escape(&mut out)?,
                Some(0..=0x1F) => {
                    return Err(self.fault("a control character must be escaped inside a string"));
                }
                Some(_) => {
                    let rest = self.text.get(self.at..).unwrap_or_default();
                    let plain = plain_run(rest);
                    if plain > MAX_SCALAR_BYTES {
                        return Err(too_long(mark));
                    }
                    out.push_str(rest.get(..plain).unwrap_or_default());
                    self.at += plain;
                }
                None => return Err(self.fault("the string does not end")),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), DocumentFault> {
        let letter = self.text.as_bytes().get(self.at + 1).copied();
        out.push(match letter {
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(out),
            _ => return Err(self.fault("no such escape in a string")),
        });
        self.at += 2;
        Ok(())
    }

    fn unicode(&mut self, out: &mut String) -> Result<(), DocumentFault> {
        let Some(unit) = self.hex(self.at) else { return Err(self.fault("`\\u` needs four hex digits")) };
        self.at += 6;
        if (0xD800..0xDC00).contains(&unit)
            && let Some(low @ 0xDC00..=0xDFFF) = self.hex(self.at)
        {
            self.at += 6;
            let both = 0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
            out.push(char::from_u32(both).unwrap_or(char::REPLACEMENT_CHARACTER));
            return Ok(());
        }
        // Half a pair stands for no character.
        out.push(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
        Ok(())
    }

    /// Returns the code unit of a `\uXXXX` at a place.
    fn hex(&self, at: usize) -> Option<u32> {
        let [b'\\', b'u', digits @ ..] = self.text.as_bytes().get(at..at + 6)? else { return None };
        let mut unit = 0;
        for digit in digits {
            unit = unit << 4 | char::from(*digit).to_digit(16)?;
        }
        Some(unit)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while let Some(b @ (b' ' | b'\t' | b'\r' | b'\n')) = self.peek() {
            self.at += 1;
            if b == b'\n' || (b == b'\r' && self.peek() != Some(b'\n')) {
                self.line += 1;
                self.counted = self.at;
                self.column = 1;
            }
        }
    }

    /// Returns the place of the next character. Counts on from the last place, so that a file of
    /// one line costs no more than one of many.
    fn mark(&mut self) -> TextMark {
        let passed = self.text.get(self.counted..self.at).unwrap_or_default();
        self.column += passed.chars().count() as u32;
        self.counted = self.at;
        TextMark { line: self.line, column: self.column }
    }

    fn fault(&mut self, message: &str) -> DocumentFault {
        let message = if self.peek().is_none() { "it ends in the middle" } else { message };
        DocumentFault::new(self.mark(), "json-syntax", format!("this is not JSON: {message}"))
    }
}

/// Returns how many bytes of a string need no closer look; one more than a text may have if there
/// are more.
fn plain_run(text: &str) -> usize {
    let ends = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1F);
    text.bytes().take(MAX_SCALAR_BYTES + 1).take_while(|byte| !ends(byte)).count()
}

fn is_number(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (text.get(..at).unwrap_or_default(), text.get(at + 1..)),
        None => (text, None),
    };
    let (integer_part, fraction) = match mantissa.split_once('.') {
        Some((integer_part, fraction)) => (integer_part, Some(fraction)),
        None => (mantissa, None),
    };
    digits(integer_part)
        && (integer_part.len() == 1 || !integer_part.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|text| digits(text.strip_prefix(['+', '-']).unwrap_or(text)))
}
