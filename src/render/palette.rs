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

/// Control characters, and those that change the direction of the text around them.
pub(super) fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}
