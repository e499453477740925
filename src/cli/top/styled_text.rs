//! Text as it comes to the screen: coloured, cut where there is no more room, or broken into lines.

use ratatui::style::{Color, Modifier, Style as RatatuiStyle};
use ratatui::text::Span;
use unicode_width::UnicodeWidthStr as _;

use crate::render::{Palette, TextStyle};

/// Returns how a style looks. Without colours there is still bold and dim.
pub(super) fn style_of(palette: Palette, style: TextStyle) -> RatatuiStyle {
    let (color, modifier) = match style {
        TextStyle::Added => (Some(Color::Green), Modifier::empty()),
        TextStyle::Removed => (Some(Color::Red), Modifier::empty()),
        TextStyle::Changed => (Some(Color::Yellow), Modifier::empty()),
        TextStyle::Waiting => (Some(Color::Cyan), Modifier::empty()),
        TextStyle::Error => (Some(Color::Red), Modifier::BOLD),
        TextStyle::Warning => (Some(Color::Yellow), Modifier::BOLD),
        TextStyle::Strong => (None, Modifier::BOLD),
        TextStyle::Faint => (None, Modifier::DIM),
    };
    let style = RatatuiStyle::new().add_modifier(modifier);
    match color {
        Some(color) if palette == Palette::Colour => style.fg(color),
        _ => style,
    }
}

/// Returns a piece of text in a style.
pub(super) fn styled_span(
    palette: Palette,
    style: Option<TextStyle>,
    text: impl Into<String>,
) -> Span<'static> {
    Span::styled(text.into(), style.map_or_else(RatatuiStyle::new, |style| style_of(palette, style)))
}

/// Returns the grapheme clusters of a text, each with its columns.
fn grapheme_widths(text: &str) -> Vec<(String, usize)> {
    let span = Span::raw(text);
    let characters = span.styled_graphemes(RatatuiStyle::new());
    characters.map(|character| (character.symbol.to_owned(), character.symbol.width())).collect()
}

/// Returns the beginning of a text, where not all of it fits.
pub(super) fn truncate_end(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let fitting = take_fitting(grapheme_widths(text).into_iter(), columns);
    if columns == 0 { String::new() } else { fitting.concat() + "\u{2026}" }
}

/// Returns the end of a text, where not all of it fits: the end of a name says more than its begin.
pub(super) fn truncate_start(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut fitting = take_fitting(grapheme_widths(text).into_iter().rev(), columns);
    fitting.reverse();
    if columns == 0 { String::new() } else { format!("\u{2026}{}", fitting.concat()) }
}

/// Returns as many characters as fit beside an ellipsis.
fn take_fitting(characters: impl Iterator<Item = (String, usize)>, columns: usize) -> Vec<String> {
    let mut used = 1;
    let fits = |(_, width): &(String, usize)| {
        used += width;
        used <= columns
    };
    characters.take_while(fits).map(|(character, _)| character).collect()
}

/// Returns a text with spaces behind it, or before it where it is a number.
pub(super) fn pad(text: &str, columns: usize, side: Alignment) -> String {
    let space = " ".repeat(columns.saturating_sub(text.width()));
    match side {
        Alignment::Left => format!("{text}{space}"),
        Alignment::Right => format!("{space}{text}"),
    }
}

/// The side to which a text is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alignment {
    Left,
    Right,
}

/// Returns the lines of a text, broken between words, and within a word that is longer than a line.
pub(super) fn wrap_text(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last().map_or(0, |line| line.width());
        if line > 0 && line + 1 + word.width() > columns {
            lines.push(String::new());
        } else if let Some(line) = lines.last_mut().filter(|line| !line.is_empty()) {
            line.push(' ');
        }
        for (character, width) in grapheme_widths(word) {
            if lines.last().is_some_and(|line| !line.is_empty() && line.width() + width > columns) {
                lines.push(String::new());
            }
            if let Some(line) = lines.last_mut() {
                line.push_str(&character);
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_what_readers_take_for_characters() {
        fn check(text: &str, columns: usize, beginning: &str, end: &str) {
            assert_eq!((&*truncate_end(text, columns), &*truncate_start(text, columns)), (beginning, end));
        }
        check("abc", 3, "abc", "abc");
        check("abcd", 3, "ab\u{2026}", "\u{2026}cd");
        check("abcd", 1, "\u{2026}", "\u{2026}");
        check("abcd", 0, "", "");
        // Two columns each.
        check("\u{65e5}\u{672c}\u{8a9e}", 4, "\u{65e5}\u{2026}", "\u{2026}\u{8a9e}");
        check("\u{65e5}\u{672c}\u{8a9e}", 5, "\u{65e5}\u{672c}\u{2026}", "\u{2026}\u{672c}\u{8a9e}");
        // A letter with its accent, and a flag.
        check("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}\u{2026}", "\u{2026}e\u{301}");
        check("\u{1f1e9}\u{1f1ea}abc", 3, "\u{1f1e9}\u{1f1ea}\u{2026}", "\u{2026}bc");
        check("\u{1f1e9}\u{1f1ea}abc", 2, "\u{2026}", "\u{2026}c");
    }

    #[test]
    fn lines_are_broken_between_words() {
        fn check(text: &str, columns: usize, expected: &[&str]) {
            assert_eq!(wrap_text(text, columns), expected);
        }
        check("", 5, &[""]);
        check("one two  three", 7, &["one two", "three"]);
        check("one two", 3, &["one", "two"]);
        check("a abcdefgh b", 4, &["a", "abcd", "efgh", "b"]);
        check("\u{65e5}\u{672c}\u{8a9e}", 5, &["\u{65e5}\u{672c}", "\u{8a9e}"]);
        check("ab", 0, &["a", "b"]);
    }
}
