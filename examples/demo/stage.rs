//! The output of the demo: numbered steps, commands as they are typed, and what was seen.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

const STRONG: &str = "1";
const FAINT: &str = "2";
const GREEN: &str = "32";
const RED: &str = "31";

/// Why a step failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The expected observation.
    pub(crate) expected: String,
    /// The observation.
    pub(crate) seen: String,
}

/// A step's result.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// Returns a failure of what is named first.
    pub(crate) fn new(expected: impl Display, seen: impl Display) -> Self {
        Self { expected: expected.to_string(), seen: seen.to_string() }
    }
}

/// The extension of an error by what it stood in the way of.
pub(crate) trait ErrorContext<T> {
    /// Turns an error into a failure.
    fn expected(self, what: impl Display) -> Outcome<T>;
}

impl<T, E: Display> ErrorContext<T> for Result<T, E> {
    fn expected(self, what: impl Display) -> Outcome<T> {
        self.map_err(|error| Failure::new(what, error))
    }
}

/// Standard output; colours only on a terminal.
#[derive(Debug)]
pub(crate) struct Stage {
    colour: bool,
    steps: usize,
}

impl Stage {
    /// Opens the stage.
    pub(crate) fn open() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { colour: wanted && io::stdout().is_terminal(), steps: 0 }
    }

    /// Returns how many steps there were.
    pub(crate) const fn steps(&self) -> usize {
        self.steps
    }

    /// Prints the title.
    pub(crate) fn title(&self, text: &str) {
        print(&format!("{}\n", self.paint(STRONG, text)));
    }

    /// Begins a step.
    pub(crate) fn step(&mut self, title: &str) {
        self.steps += 1;
        print(&format!("\n{}\n", self.paint(STRONG, &format!("{} {title}", self.steps))));
    }

    /// Explains.
    pub(crate) fn note(&self, text: &str) {
        print(&format!("  {}\n", self.paint(FAINT, text)));
    }

    /// Shows a command that is run now.
    pub(crate) fn command(&self, text: &str) {
        print(&format!("  {} {text}\n", self.paint(FAINT, "$")));
    }

    /// Shows lines that a program printed.
    pub(crate) fn quote(&self, text: &str) {
        for line in text.lines() {
            print(&format!("    {}\n", self.paint(FAINT, line)));
        }
    }

    /// Says what was seen in the cluster.
    pub(crate) fn seen(&self, text: &str) {
        print(&format!("  {} {text}\n", self.paint(GREEN, "✓")));
    }

    /// Says what was not.
    pub(crate) fn report_failure(&self, failure: &Failure) {
        print(&format!("  {} expected: {}\n", self.paint(RED, "✗"), failure.expected));
        print(&format!("    seen:     {}\n", failure.seen.replace('\n', "\n              ")));
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Prints a part of a line.
pub(crate) fn print(text: &str) {
    // A closed standard output means that nothing more is wanted.
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Returns `7 ms`, `3.2 s`.
pub(crate) fn time(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}
