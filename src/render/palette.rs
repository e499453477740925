//! Colours. The only place that knows terminal escapes.

use std::borrow::Cow;

/// Whether colours are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Palette {
    /// Text alone.
    #[default]
    Plain,
    /// With ANSI escapes.
    Colour,
}

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Comes into being.
    Added,
    /// Goes away.
    Removed,
    /// Changes.
    Changed,
    /// Waits.
    Waiting,
    /// An error.
    Error,
    /// A warning.
    Warning,
    /// The thing that a line is about.
    Strong,
    /// Of less interest.
    Faint,
}

impl Palette {
    /// The text in this style.
    pub fn paint(self, style: Style, text: &str) -> Cow<'_, str> {
        let code = match style {
            _ if self == Self::Plain || text.is_empty() => return Cow::Borrowed(text),
            Style::Added => "32",
            Style::Removed => "31",
            Style::Changed => "33",
            Style::Waiting => "36",
            Style::Error => "1;31",
            Style::Warning => "1;33",
            Style::Strong => "1",
            Style::Faint => "2",
        };
        Cow::Owned(format!("\u{1b}[{code}m{text}\u{1b}[0m"))
    }
}

/// The text with everything replaced that could steer a terminal or mislead a reader.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if text.chars().any(steers) {
        Cow::Owned(text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// The text for a terminal: nothing in it steers that but colours and the ends of lines.
///
/// Colours are left, as they are in all that is drawn: at worst somebody else's text is red.
pub fn tamed(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| c != '\n' && steers(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let colour = colour(rest);
        let length = if colour > 0 { colour } else { c.len_utf8() };
        let (piece, after) = rest.split_at(length);
        out.push_str(if colour == 0 && steers(c) && !matches!(c, '\n' | '\t') { "\u{fffd}" } else { piece });
        rest = after;
    }
    Cow::Owned(out)
}

/// The length of the colour that a text begins with (ECMA-48 SGR).
fn colour(text: &str) -> usize {
    let Some(codes) = text.strip_prefix("\u{1b}[") else { return 0 };
    let length = codes.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    if codes.as_bytes().get(length) == Some(&b'm') { length + 3 } else { 0 }
}

/// Control characters, and those that change the direction of the text around them.
pub(super) fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_colours_reach_a_terminal() {
        fn check(text: &str, expected: &str) {
            assert_eq!(tamed(text), expected);
        }
        check("a\tb\nc", "a\tb\nc");
        check("\u{1b}[1;31merror\u{1b}[0m: \u{e4}", "\u{1b}[1;31merror\u{1b}[0m: \u{e4}");
        check("\u{1b}]0;title\u{7}", "\u{fffd}]0;title\u{fffd}");
        check("\u{1b}[2J\u{9b}2J\r", "\u{fffd}[2J\u{fffd}2J\u{fffd}");
        check("\u{1b}", "\u{fffd}");
        check("\u{1b}[31", "\u{fffd}[31");
        check("\u{202e}\u{61c}", "\u{fffd}\u{fffd}");
    }
}
