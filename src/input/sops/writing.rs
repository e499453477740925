//! Opened values as scalars of YAML and JSON, in the forms that SOPS gives them.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use zeroize::Zeroizing;

use crate::manifest::{Scalar, ScalarTag, is_old_boolean, is_timestamp, resolve_scalar};
use crate::object::canonical_json;

use super::value::DecryptedValue;

/// A scalar as it is written.
pub(super) enum WrittenScalar {
    /// On one line.
    Line(Zeroizing<String>),
    /// A header, and lines without their indentation. The line break after the last is left out.
    Block { header: String, indent: usize, lines: Zeroizing<String> },
}

/// The surroundings of a value in YAML.
#[derive(Clone, Copy)]
pub(super) enum YamlContext {
    /// In brackets or braces, or where lines must not move.
    Line,
    /// In a block whose parent begins in this column, from 0, and whose lines get this indentation.
    Block { parent: usize, indent: usize },
}

/// Writes a value as YAML. Empty for a comment.
pub(super) fn yaml(value: &DecryptedValue, context: YamlContext) -> WrittenScalar {
    WrittenScalar::Line(Zeroizing::new(match value {
        DecryptedValue::Text(text) => return yaml_text(text, context),
        DecryptedValue::Bytes(bytes) => format!("!!binary {}", STANDARD.encode(bytes)),
        DecryptedValue::Int(int) => int.to_string(),
        DecryptedValue::Float(float) => yaml_float(*float),
        DecryptedValue::Bool(truth) => truth.to_string(),
        DecryptedValue::Time(time) if is_timestamp(time) => time.to_string(),
        DecryptedValue::Time(time) => return WrittenScalar::Line(double_quoted(time)),
        DecryptedValue::Comment(_) => String::new(),
    }))
}

fn yaml_text(text: &str, context: YamlContext) -> WrittenScalar {
    let YamlContext::Block { parent, indent } = context else {
        return WrittenScalar::Line(double_quoted(text));
    };
    let styled = StyledText(text);
    if text.contains('\n') {
        if !styled.can_be_block() {
            return WrittenScalar::Line(double_quoted(text));
        }
        let hint = if text.starts_with([' ', '\n']) { (indent - parent).to_string() } else { String::new() };
        let (lines, chomp) = match text.strip_suffix('\n') {
            None => (text, "-"),
            Some(lines) if lines.is_empty() || lines.ends_with('\n') => (lines, "+"),
            Some(lines) => (lines, ""),
        };
        let lines = Zeroizing::new(lines.to_owned());
        return WrittenScalar::Block { header: format!("|{hint}{chomp}"), indent, lines };
    }
    WrittenScalar::Line(if !is_text_when_plain(text) {
        double_quoted(text)
    } else if styled.can_be_plain() {
        Zeroizing::new(text.to_owned())
    } else if styled.can_be_single_quoted() {
        Zeroizing::new(format!("'{}'", text.replace('\'', "''")))
    } else {
        double_quoted(text)
    })
}

/// Returns whether every reader takes an unquoted text for a text.
fn is_text_when_plain(text: &str) -> bool {
    let resolved = resolve_scalar(ScalarTag::None, text);
    let other = text == "<<" || is_timestamp(text) || is_old_boolean(text) || is_base_60(text);
    !other && matches!(resolved, Ok(Scalar::Text))
}

/// A text, as far as it decides about its style.
#[derive(Clone, Copy)]
struct StyledText<'t>(&'t str);

impl StyledText<'_> {
    fn can_be_plain(self) -> bool {
        let open_ends = self.0.starts_with([' ', '\n']) || self.0.ends_with([' ', '\n']);
        self.can_be_single_quoted() && !open_ends && !self.has_ambiguous_start() && !self.has_key_or_comment()
    }

    fn can_be_single_quoted(self) -> bool {
        !(self.has_escapes() || self.0.contains('\t') || self.0.contains(" \n"))
    }

    fn can_be_block(self) -> bool {
        // Readers do not agree on a tab where they look for the indentation.
        let tab = self.0.trim_start_matches([' ', '\n']).starts_with('\t');
        !(tab || self.has_escapes() || self.0.ends_with(' ') || self.0.contains(" \n"))
    }

    /// Returns whether it has characters that are written as escapes.
    fn has_escapes(self) -> bool {
        self.0.chars().any(|character| character != '\t' && !is_plain(character))
    }

    /// Returns whether it begins like something else than a text.
    fn has_ambiguous_start(self) -> bool {
        const INDICATORS: [char; 15] =
            ['#', ',', '[', ']', '{', '}', '&', '*', '!', '|', '>', '\'', '"', '%', '@'];
        let text = self.0;
        let marks = ["---", "...", "- ", "? ", "-\n", "?\n", "-\t", "?\t", "`"];
        text.starts_with(INDICATORS)
            || matches!(text, "-" | "?" | ":")
            || marks.iter().any(|mark| text.starts_with(mark))
    }

    /// Returns whether a reader would find a key or a comment in it.
    fn has_key_or_comment(self) -> bool {
        let text = self.0;
        let blank = |character: char| matches!(character, ' ' | '\t' | '\n');
        let after =
            |at: usize| text.get(at + 1..).is_some_and(|rest| rest.is_empty() || rest.starts_with(blank));
        let before = |at: usize| text.get(..at).is_some_and(|head| head.ends_with(blank));
        text.match_indices(':').any(|(at, _)| after(at)) || text.match_indices('#').any(|(at, _)| before(at))
    }
}

/// Returns whether a character stands for itself in every style.
const fn is_plain(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{A0}'..='\u{2027}' | '\u{202A}'..='\u{D7FF}'
        | '\u{E000}'..='\u{FEFE}' | '\u{FF00}'..='\u{FFFD}')
}

/// Returns whether YAML 1.1 takes a text for a number of base 60, for example `12:30`.
fn is_base_60(text: &str) -> bool {
    let mut parts = text.strip_prefix(['+', '-']).unwrap_or(text).split(':');
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let Some(first) = parts.next() else { return false };
    let mut rest: Vec<&str> = parts.collect();
    if let Some(last) = rest.last_mut()
        && let Some((integer, fraction)) = last.split_once('.')
        && digits(fraction)
    {
        *last = integer;
    }
    let sixtieth = |part: &&str| match part.as_bytes() {
        [one] => one.is_ascii_digit(),
        [ten, one] => matches!(ten, b'0'..=b'5') && one.is_ascii_digit(),
        _ => false,
    };
    first.starts_with(|first: char| first.is_ascii_digit())
        && digits(first)
        && !rest.is_empty()
        && rest.iter().all(sixtieth)
}

/// Writes a text in double quotes, on one line.
pub(super) fn double_quoted(text: &str) -> Zeroizing<String> {
    let mut out = Zeroizing::new(String::with_capacity(text.len() + 2));
    out.push('"');
    for character in text.chars() {
        match character {
            '\0' => out.push_str("\\0"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\u{1b}' => out.push_str("\\e"),
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{85}' => out.push_str("\\N"),
            '\u{2028}' => out.push_str("\\L"),
            '\u{2029}' => out.push_str("\\P"),
            _ if is_plain(character) => out.push(character),
            _ => {
                let code = u32::from(character);
                let _ = match code {
                    0..=0xFF => write!(out, "\\x{code:02X}"),
                    0x100..=0xFFFF => write!(out, "\\u{code:04X}"),
                    _ => write!(out, "\\U{code:08X}"),
                };
            }
        }
    }
    out.push('"');
    out
}

/// Writes a float as Go does by default: with an exponent below 1e-4 and from 1e6 on.
fn yaml_float(float: f64) -> String {
    if !float.is_finite() {
        return if float.is_nan() {
            ".nan"
        } else if float > 0.0 {
            ".inf"
        } else {
            "-.inf"
        }
        .to_owned();
    }
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if float == 0.0 || (-4..6).contains(&exponent) {
        return format!("{float}");
    }
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// Writes a value as JSON. None for what JSON does not have.
pub(super) fn json(value: &DecryptedValue) -> Option<Zeroizing<String>> {
    Some(match value {
        DecryptedValue::Text(text) | DecryptedValue::Time(text) => json_text(text),
        DecryptedValue::Int(int) => Zeroizing::new(int.to_string()),
        DecryptedValue::Bool(truth) => Zeroizing::new(truth.to_string()),
        DecryptedValue::Float(float) if float.is_finite() => {
            Zeroizing::new(canonical_json(&Value::from(*float)))
        }
        DecryptedValue::Comment(_) => Zeroizing::new(String::new()),
        DecryptedValue::Float(_) | DecryptedValue::Bytes(_) => return None,
    })
}

fn json_text(text: &str) -> Zeroizing<String> {
    let mut out = Zeroizing::new(String::with_capacity(text.len() + 2));
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
    out
}
