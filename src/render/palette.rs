//! Colours. The only place that knows terminal escapes.

use std::borrow::Cow;

/// Indicates whether colours are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Palette {
    /// Text alone.
    #[default]
    Plain,
    /// With ANSI escapes.
    Colour,
}

/// The meaning of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextStyle {
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
    /// A text of less interest.
    Faint,
}

impl Palette {
    /// Returns the text in this style.
    pub(crate) fn paint(self, style: TextStyle, text: &str) -> Cow<'_, str> {
        if self == Self::Plain || text.is_empty() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(format!("{}{text}{STYLE_RESET}", style.begin()))
    }

    /// Returns a whole output in which foreign texts may be as they came. Of the characters that
    /// steer a terminal only line ends, tabs and the colours of this palette are left.
    pub(crate) fn sanitize(self, text: &str) -> Cow<'_, str> {
        let foreign = |c: char| is_invisible_control(c) && !matches!(c, '\n' | '\t');
        if !text.contains(foreign) {
            return Cow::Borrowed(text);
        }
        let (mut out, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(at) = rest.find(foreign) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let painted = self.escape_length(rest);
            if painted == 0 {
                out.push('\u{fffd}');
            }
            out.push_str(&rest[..painted]);
            rest = &rest[painted.max(rest.chars().next().map_or(0, char::len_utf8))..];
        }
        Cow::Owned(out + rest)
    }

    /// Returns how long the escape is that a text begins with, if it is one of this palette's.
    fn escape_length(self, text: &str) -> usize {
        let ours = ALL_STYLES.into_iter().map(TextStyle::begin).chain([STYLE_RESET]);
        let begins = |escape: &&str| self == Self::Colour && text.starts_with(escape);
        ours.into_iter().find(begins).map_or(0, str::len)
    }
}

/// The end of a style.
const STYLE_RESET: &str = "\u{1b}[0m";

/// All of them.
const ALL_STYLES: [TextStyle; 8] = [
    TextStyle::Added,
    TextStyle::Removed,
    TextStyle::Changed,
    TextStyle::Waiting,
    TextStyle::Error,
    TextStyle::Warning,
    TextStyle::Strong,
    TextStyle::Faint,
];

impl TextStyle {
    const fn begin(self) -> &'static str {
        match self {
            Self::Added => "\u{1b}[32m",
            Self::Removed => "\u{1b}[31m",
            Self::Changed => "\u{1b}[33m",
            Self::Waiting => "\u{1b}[36m",
            Self::Error => "\u{1b}[1;31m",
            Self::Warning => "\u{1b}[1;33m",
            Self::Strong => "\u{1b}[1m",
            Self::Faint => "\u{1b}[2m",
        }
    }
}

/// Returns the text with everything replaced that could steer a terminal or mislead a reader.
pub(crate) fn sanitize(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_invisible_control) {
        Cow::Owned(text.chars().map(|c| if is_invisible_control(c) { '\u{fffd}' } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns the same in one line, for what is read in lines.
pub(crate) fn sanitize_line(text: &str) -> String {
    sanitize(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

/// Returns whether a character steers a terminal, changes the direction of text, or shows nothing:
/// two texts that look the same are the same. The joiners of scripts, and the selectors of text and
/// emoji, stay.
///
/// Beside controls and separators of lines these are the characters with the property
/// `Default_Ignorable_Code_Point` of Unicode 17. The page has the same list.
pub(super) fn is_invisible_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}')
        || matches!(c, '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}' | '\u{200f}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0d}')
        || matches!(c, '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}')
        || matches!(c, '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_steers_no_terminal_and_hides_nothing() {
        for steering in [
            "\u{0}",
            "\u{7}",
            "\n",
            "\r",
            "\u{1b}",
            "\u{7f}",
            "\u{9b}",
            "\u{61c}",
            "\u{200b}",
            "\u{200e}",
            "\u{202e}",
            "\u{2060}",
            "\u{2066}",
            "\u{feff}",
            "\u{e0041}",
            // More of those that Unicode has nothing shown for (DerivedCoreProperties,
            // Default_Ignorable_Code_Point).
            "\u{34f}",
            "\u{1160}",
            "\u{17b4}",
            "\u{180b}",
            "\u{206a}",
            "\u{3164}",
            "\u{fe00}",
            "\u{ffa0}",
            "\u{1bca0}",
            "\u{1d173}",
            "\u{e0100}",
        ] {
            assert_eq!(sanitize(&format!("a{steering}b")), "a\u{fffd}b", "{steering:?}");
        }
        let joined = "\u{1f468}\u{200d}\u{1f33e} \u{2764}\u{fe0f} \u{e9} \u{65e5}\u{672c}";
        assert_eq!(sanitize(joined), joined);
    }

    #[test]
    fn of_a_whole_output_the_colours_stay_that_are_its_own() {
        let own = Palette::Colour.paint(TextStyle::Error, "no\tway\n").into_owned();
        assert_eq!(Palette::Colour.sanitize(&own), own);
        assert_eq!(Palette::Plain.sanitize(&own), "\u{fffd}[1;31mno\tway\n\u{fffd}[0m");
        for palette in [Palette::Plain, Palette::Colour] {
            let foreign = "\u{1b}]0;title\u{7} \u{1b}[8mhidden \u{9b}2J\r\u{1b}";
            let shown = "\u{fffd}]0;title\u{fffd} \u{fffd}[8mhidden \u{fffd}2J\u{fffd}\u{fffd}";
            assert_eq!(palette.sanitize(foreign), shown);
        }
    }
}
