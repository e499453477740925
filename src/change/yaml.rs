//! JSON trees as YAML that people read and Kubernetes reads back as the same tree.
//!
//! The usual writers fall short on both. They leave `on` and `0o7` plain, which Kubernetes' YAML
//! 1.1 does not read as text. They fold a text of many lines into one as soon as a line ends in a
//! space.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Writes a tree as block YAML, texts of several lines as blocks; nothing for null.
pub(crate) fn write_yaml(value: &Value) -> String {
    let mut writer = YamlWriter { out: String::new() };
    match value {
        Value::Null => {}
        Value::String(_) => {
            writer.scalar(value, 2);
            writer.out.push('\n');
        }
        _ => writer.block(value, 0),
    }
    writer.out
}

/// The most bytes of a key, with its quotes, that YAML reads without a `?` before it. By its
/// definition they are characters, but there are readers that count bytes.
const MAX_SIMPLE_KEY_CHARS: usize = 1024;

struct YamlWriter {
    out: String,
}

impl YamlWriter {
    /// Writes a value whose first line has been indented already.
    fn block(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Object(map) if !map.is_empty() => self.map(map, indent),
            Value::Array(items) if !items.is_empty() => {
                for (nth, item) in items.iter().enumerate() {
                    self.pad(nth, indent);
                    self.out.push_str("- ");
                    self.block(item, indent + 2);
                }
            }
            _ => {
                self.scalar(value, indent);
                self.out.push('\n');
            }
        }
    }

    fn map(&mut self, map: &Map<String, Value>, indent: usize) {
        for (nth, (key, value)) in map.iter().enumerate() {
            self.pad(nth, indent);
            self.key(key, indent);
            self.out.push(':');
            // As kubectl does, a list is under its key's own column.
            let inner = match value {
                Value::Object(map) if !map.is_empty() => Some(indent + 2),
                Value::Array(items) if !items.is_empty() => Some(indent),
                _ => None,
            };
            if let Some(inner) = inner {
                self.out.push('\n');
                self.pad(1, inner);
                self.block(value, inner);
            } else {
                self.out.push(' ');
                self.scalar(value, indent + 2);
                self.out.push('\n');
            }
        }
    }

    /// Writes a key without its colon, which gets a line of its own after a long one.
    fn key(&mut self, key: &str, indent: usize) {
        let begin = self.out.len();
        if is_plain(key) {
            self.out.push_str(key);
        } else {
            self.write_quoted(key);
        }
        if self.out.len() - begin > MAX_SIMPLE_KEY_CHARS {
            self.out.insert_str(begin, "? ");
            self.out.push('\n');
            self.pad(1, indent);
        }
    }

    fn pad(&mut self, nth: usize, indent: usize) {
        if nth > 0 {
            self.out.extend(std::iter::repeat_n(' ', indent));
        }
    }

    /// Writes a value of one line, or a text whose further lines are at the indent.
    fn scalar(&mut self, value: &Value, indent: usize) {
        match value {
            Value::String(text) if is_plain(text) => self.out.push_str(text),
            Value::String(text) if is_literal(text) => self.write_literal(text, indent),
            Value::String(text) if text.contains('\n') => self.write_broken_text(text, indent),
            Value::String(text) => self.write_quoted(text),
            other => {
                let _ = write!(self.out, "{other}");
            }
        }
    }

    fn write_quoted(&mut self, text: &str) {
        if text.chars().all(is_printable) {
            let _ = write!(self.out, "'{}'", text.replace('\'', "''"));
        } else {
            self.out.push('"');
            text.chars().for_each(|c| self.write_escaped(c));
            self.out.push('"');
        }
    }

    /// Writes a text as a literal block: `|` ends in one line break, `|-` in none, `|+` in several.
    fn write_literal(&mut self, text: &str, indent: usize) {
        // The indentation of a block is taken from its first line, which here would be misread.
        let width = if text.starts_with([' ', '\t', '\n']) { "2" } else { "" };
        let body = text.strip_suffix('\n').unwrap_or(text);
        let ending = match text.len() - text.trim_end_matches('\n').len() {
            0 => "-",
            1 => "",
            _ => "+",
        };
        let _ = write!(self.out, "|{width}{ending}");
        for line in body.split('\n') {
            self.out.push('\n');
            if !line.is_empty() {
                self.pad(1, indent);
                self.out.push_str(line);
            }
        }
    }

    /// Writes a text of several lines that no block can hold, for example one with Windows' line
    /// ends: quoted, and broken where its lines end.
    fn write_broken_text(&mut self, text: &str, indent: usize) {
        self.out.push('"');
        for (nth, line) in text.split_inclusive('\n').enumerate() {
            if nth > 0 {
                self.out.push_str("\\\n");
                self.pad(1, indent);
            }
            if nth > 0 && line.starts_with(' ') {
                self.out.push('\\');
            }
            line.chars().for_each(|c| self.write_escaped(c));
        }
        self.out.push('"');
    }

    fn write_escaped(&mut self, c: char) {
        let code = u32::from(c);
        let _ = match c {
            '"' | '\\' => write!(self.out, "\\{c}"),
            '\n' => write!(self.out, "\\n"),
            '\r' => write!(self.out, "\\r"),
            '\t' => write!(self.out, "\\t"),
            c if is_printable(c) => write!(self.out, "{c}"),
            _ if code <= 0xff => write!(self.out, "\\x{code:02x}"),
            _ if code <= 0xffff => write!(self.out, "\\u{code:04x}"),
            _ => write!(self.out, "\\U{code:08x}"),
        };
    }
}

/// Returns whether a character can be written in one line as it is. Line breaks of Unicode cannot,
/// nor byte order marks, nor what turns the direction of a terminal's text.
fn is_printable(c: char) -> bool {
    let hidden =
        matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    !(c.is_control() || hidden)
}

fn is_literal(text: &str) -> bool {
    text.contains('\n')
        && !text.trim_start_matches('\n').is_empty()
        && text.chars().all(|c| matches!(c, '\n' | '\t') || is_printable(c))
}

/// Returns whether a text can be written without quotes: nothing in it is syntax, and no reader
/// takes it for something else.
fn is_plain(text: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '/' | '.');
    let inside = |c: char| is_word(c) || " -+:,@#%=*&!?|<>()[]{};$^~'\"\\`".contains(c);
    text.chars().next().is_some_and(|first| is_word(first) || matches!(first, '-' | '+' | '(' | '$' | '^'))
        && text.chars().all(|c| inside(c) && is_printable(c))
        && !text.starts_with("- ")
        && !text.starts_with("---")
        && !text.starts_with("...")
        && text != "-"
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && !is_other(text)
}

/// Returns whether some reader of YAML, 1.1 or 1.2, takes this text for null, a boolean, a number
/// or a date.
fn is_other(text: &str) -> bool {
    const YAML_1_1_WORDS: [&str; 12] =
        ["null", "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", ".nan", "inf"];
    let lower = text.to_lowercase();
    let bare = lower.trim_start_matches(['-', '+']).replace('_', "");
    if YAML_1_1_WORDS.contains(&bare.as_str()) || bare.parse::<f64>().is_ok() {
        return true;
    }
    let radix = ["0x", "0o", "0b"].iter().find_map(|prefix| bare.strip_prefix(prefix));
    if radix.is_some_and(|digits| digits.chars().all(|c| c.is_ascii_hexdigit())) {
        return true;
    }
    // 12:30:45 is a number of base 60 to some; a date is a date to others.
    let is_clock = bare.contains(':') && bare.chars().all(|c| c.is_ascii_digit() || matches!(c, ':' | '.'));
    is_clock || is_date(&lower)
}

fn is_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let mut digits = |least: usize| {
        parts
            .next()
            .is_some_and(|part| part.chars().take(least).filter(char::is_ascii_digit).count() == least)
    };
    text.starts_with(|c: char| c.is_ascii_digit()) && digits(4) && digits(1) && digits(1)
}
