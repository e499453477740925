//! Diagnostics as people and editors read them.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;

use super::palette::{is_invisible_control, sanitize};
use super::{Palette, TextStyle};
use crate::object::{Diagnostic, Severity, count_text};

/// The number of characters shown of a long line, and of those before the fault.
const MAX_EXCERPT_CHARS: usize = 100;
const EXCERPT_CHARS_BEFORE: usize = 60;

/// Returns all of them in the order of files and lines: `file:line:column: error: message`, the
/// line with a caret under the fault, and what to do.
pub(crate) fn diagnostics(found: &[Diagnostic], palette: Palette) -> String {
    let mut sorted: Vec<&Diagnostic> = found.iter().collect();
    sorted.sort();
    let mut out = String::new();
    for found in sorted {
        diagnostic(&mut out, found, palette);
    }
    out
}

/// Returns `2 errors, 1 warning`; empty when there is nothing to count.
pub(crate) fn tally(found: &[Diagnostic]) -> String {
    let count = |severity, word: &str| match found.iter().filter(|found| found.severity == severity).count() {
        0 => None,
        count => Some(count_text(count, word)),
    };
    let parts = [count(Severity::Error, "error"), count(Severity::Warning, "warning")];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn diagnostic(out: &mut String, found: &Diagnostic, palette: Palette) {
    let (file, numbers) = match &found.origin.render {
        Some(render) => (render.to_string(), [0, 0]),
        None => (found.origin.file.to_string(), [found.origin.line, found.origin.column]),
    };
    let mut position_text = sanitize(&file).into_owned();
    for number in numbers {
        if number == 0 {
            break;
        }
        let _ = write!(position_text, ":{number}");
    }
    if !position_text.is_empty() {
        let _ = write!(out, "{}: ", palette.paint(TextStyle::Strong, &position_text));
    }
    let style = if found.is_error() { TextStyle::Error } else { TextStyle::Warning };
    let severity = found.severity.to_string();
    let _ = writeln!(out, "{}: {}", palette.paint(style, &severity), sanitize(&found.message));
    if let Some(source_line) = found.excerpt.as_deref().filter(|line| !line.trim().is_empty()) {
        let (line, caret) = excerpt(source_line, found.origin.column);
        let _ = writeln!(out, "    {line}");
        if let Some(caret) = caret {
            let _ = writeln!(out, "    {}{}", " ".repeat(caret), palette.paint(style, "^"));
        }
    }
    if let Some(hint) = &found.hint {
        let _ = writeln!(out, "  {}: {}", palette.paint(TextStyle::Strong, "hint"), sanitize(hint));
    }
}

/// Returns the part of a line that holds the fault, and where the caret goes.
fn excerpt(line: &str, column: u32) -> (String, Option<usize>) {
    let line: Vec<char> = line.trim_end().chars().map(|c| if c == '\t' { ' ' } else { c }).collect();
    let fault = (column as usize).checked_sub(1).filter(|fault| *fault <= line.len());
    let margin = line.iter().take_while(|c| c.is_whitespace()).count().min(fault.unwrap_or(usize::MAX));
    let start = match fault {
        Some(fault) if line.len() - margin > MAX_EXCERPT_CHARS => {
            fault.saturating_sub(EXCERPT_CHARS_BEFORE).max(margin)
        }
        _ => margin,
    };
    let end = line.len().min(start + MAX_EXCERPT_CHARS);
    let mut shown: String =
        line[start..end].iter().map(|c| if is_invisible_control(*c) { '\u{fffd}' } else { *c }).collect();
    if end < line.len() {
        shown.push('…');
    }
    let mut caret = fault.map(|fault| fault - start);
    if start > margin {
        shown.insert(0, '…');
        caret = caret.map(|caret| caret + 1);
    }
    // Some characters take two columns, others none.
    let caret = caret.map(|caret| shown.chars().take(caret).collect::<String>().width());
    (shown, caret)
}
