//! The one table that is printed.

use std::io::Write as _;

use crate::bounds::Ratio;

/// Rows as they are measured.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<[String; 4]>,
    ratios: Vec<(Ratio, f64)>,
}

/// The comparison of a result with its aim.
#[derive(Clone, Copy)]
pub(crate) struct AimComparison<'a> {
    words: &'a str,
    met: bool,
}

impl<'a> AimComparison<'a> {
    /// Returns an aim in words, and whether the number beside it reaches it.
    pub(crate) const fn of(words: &'a str, met: bool) -> Self {
        Self { words, met }
    }
}

impl Table {
    /// Adds a number without an aim.
    pub(crate) fn add(&mut self, what: &str, measured: impl Into<String>) {
        self.rows.push([what.to_owned(), measured.into(), String::new(), String::new()]);
    }

    /// Adds a number beside its aim.
    pub(crate) fn judge(&mut self, what: &str, measured: impl Into<String>, aim: AimComparison<'_>) {
        let verdict = if aim.met { "met" } else { "missed" };
        self.rows.push([what.to_owned(), measured.into(), aim.words.to_owned(), verdict.to_owned()]);
    }

    /// Adds a ratio that has a bound. A row says it in words.
    pub(crate) fn note_ratio(&mut self, ratio: Ratio, value: f64) {
        self.ratios.push((ratio, value));
    }

    /// Returns the ratios that have a bound.
    pub(crate) fn ratios(&self) -> &[(Ratio, f64)] {
        &self.ratios
    }

    /// Prints all rows as a Markdown table.
    pub(crate) fn print(&self, title: &str) {
        let heads = ["what", "measured", "aim", ""].map(str::to_owned);
        let width = |column: usize| {
            std::iter::once(&heads)
                .chain(&self.rows)
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths = [width(0), width(1), width(2), width(3)];
        let line = |row: &[String; 4]| {
            let cells: Vec<String> =
                row.iter().zip(widths).map(|(cell, width)| format!(" {cell:<width$} ")).collect();
            format!("|{}|\n", cells.join("|"))
        };
        let rule = widths.map(|width| "-".repeat(width + 2)).join("|");
        let body: String = self.rows.iter().map(line).collect();
        say(&format!("\n{title}\n\n{}|{rule}|\n{body}", line(&heads)));
    }
}

/// Prints a line of progress on standard error.
pub(crate) fn progress(text: &str) {
    let _ = writeln!(std::io::stderr(), "  {text}");
}

fn say(text: &str) {
    let _ = write!(std::io::stdout(), "{text}");
}
