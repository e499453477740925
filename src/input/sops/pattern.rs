//! Regular expressions of Go in the words of the crate `regex`. The two differ in a few escapes and
//! in what is in brackets. Go's classes are those of ASCII.

use regex::bytes::{Regex, RegexBuilder};

/// Characters of the longest pattern that is read.
const MAX_PATTERN_CHARS: usize = 1024;
/// Bytes of the largest program that a pattern may become.
const MAX_PROGRAM_BYTES: usize = 64 << 10;

/// Returns a pattern as Go understands it. None when it has a form that is not understood.
pub(super) fn compile(pattern: &str) -> Option<Regex> {
    if pattern.len() > MAX_PATTERN_CHARS {
        return None;
    }
    RegexBuilder::new(&translate(pattern)?).octal(true).size_limit(MAX_PROGRAM_BYTES).build().ok()
}

/// The position of the translation in a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PatternState {
    Outside,
    /// In brackets, at their first character or behind it.
    Class {
        first: bool,
    },
}

fn translate(pattern: &str) -> Option<String> {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut state = PatternState::Outside;
    let mut rest = pattern;
    while let Some(character) = rest.chars().next() {
        rest = rest.get(character.len_utf8()..)?;
        match (state, character) {
            (_, '\\') => {
                rest = escape(rest, state, &mut out)?;
                state = next(state);
            }
            (PatternState::Outside, '[') => {
                out.push('[');
                rest = rest.strip_prefix('^').inspect(|_| out.push('^')).unwrap_or(rest);
                state = PatternState::Class { first: true };
            }
            (PatternState::Outside, _) => {
                // Flags that only the other side knows would change the meaning.
                if character == '(' && rest.starts_with('?') && !is_known_group(rest) {
                    return None;
                }
                out.push(character);
            }
            (PatternState::Class { first: false }, ']') => {
                out.push(']');
                state = PatternState::Outside;
            }
            (PatternState::Class { .. }, '[') if rest.starts_with(':') => {
                let end = rest.find(":]")? + 2;
                out.push('[');
                out.push_str(rest.get(..end)?);
                rest = rest.get(end..)?;
                state = next(state);
            }
            (PatternState::Class { .. }, '[' | ']' | '&' | '~') => {
                out.extend(['\\', character]);
                state = next(state);
            }
            (PatternState::Class { .. }, _) => {
                out.push(character);
                state = next(state);
            }
        }
    }
    (state == PatternState::Outside).then_some(out)
}

const fn next(state: PatternState) -> PatternState {
    match state {
        PatternState::Outside => state,
        PatternState::Class { .. } => PatternState::Class { first: false },
    }
}

/// Returns whether Go has this kind of group: a name, or flags among `imsU`.
fn is_known_group(after: &str) -> bool {
    let inside = after.get(1..).unwrap_or_default();
    let flags = inside.find([':', ')']).and_then(|end| inside.get(..end)).unwrap_or(inside);
    inside.starts_with("P<") || inside.starts_with('<') || flags.chars().all(|flag| "imsU-".contains(flag))
}

/// Translates what follows a backslash, and returns what follows that.
fn escape<'p>(rest: &'p str, state: PatternState, out: &mut String) -> Option<&'p str> {
    let character = rest.chars().next()?;
    let after = rest.get(character.len_utf8()..)?;
    let outside = state == PatternState::Outside;
    match character {
        'd' => out.push_str("[0-9]"),
        'D' => out.push_str("[^0-9]"),
        's' => out.push_str("[\\t\\n\\x0C\\r ]"),
        'S' => out.push_str("[^\\t\\n\\x0C\\r ]"),
        'w' => out.push_str("[0-9A-Za-z_]"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        'b' if outside => out.push_str("(?-u:\\b)"),
        'B' if outside => out.push_str("(?-u:\\B)"),
        'Q' => {
            let (quoted, after) = after.split_once("\\E").unwrap_or((after, ""));
            out.push_str(&regex::escape(quoted));
            return Some(after);
        }
        'A' | 'z' if outside => out.extend(['\\', character]),
        'a' | 'f' | 'n' | 'r' | 't' | 'v' | 'x' | 'p' | 'P' | '0'..='7' => out.extend(['\\', character]),
        _ if character.is_ascii_punctuation() => {
            if !matches!(character, '<' | '>' | '_') {
                out.push('\\');
            }
            out.push(character);
        }
        _ => return None,
    }
    Some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares patterns with the answers of Go 1.26, by `regexp.MatchString`.
    #[test]
    fn patterns_mean_what_go_means() {
        for (pattern, text, expected) in [
            ("^(data|stringData)$", "data", Some(true)),
            ("^(data|stringData)$", "metadata", Some(false)),
            ("pass", "my_password", Some(true)),
            ("(?i)^SECRET", "secretKey", Some(true)),
            ("^\\d+$", "12", Some(true)),
            ("^\\d+$", "١٢", Some(false)),
            ("^\\w+$", "é", Some(false)),
            ("^\\S+$", "a\u{a0}b", Some(true)),
            ("^[[]x]$", "[x]", Some(true)),
            ("^[]x]+$", "x]", Some(true)),
            ("^[a&&b]+$", "a&", Some(true)),
            ("^[\\w-]+$", "a-b_9", Some(true)),
            ("^[[:alpha:]_]+$", "ab_", Some(true)),
            ("^a\\.b$", "axb", Some(false)),
            ("^\\Qa.b\\E$", "a.b", Some(true)),
            ("\\<x\\>", "<x>", Some(true)),
            ("\\bkey\\b", "a-key-b", Some(true)),
            ("\\bkey\\b", "monkey", Some(false)),
            ("^\\pL+$", "é", Some(true)),
            ("^.$", "é", Some(true)),
            ("a{2}", "aa", Some(true)),
            ("x*", "", Some(true)),
            ("(", "(", None),
            ("[a", "a", None),
            ("(?x)a b", "ab", None),
            ("(?=a)", "a", None),
            ("\\C", "a", None),
            ("\\K", "a", None),
        ] {
            let found = compile(pattern).map(|pattern| pattern.is_match(text.as_bytes()));
            assert_eq!(found, expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn a_pattern_that_grows_without_measure_is_none() {
        assert!(compile("((a{100}){100}){100}").is_none());
        assert!(compile(&"a".repeat(MAX_PATTERN_CHARS + 1)).is_none());
    }
}
