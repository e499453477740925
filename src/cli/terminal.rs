//! Standard output and standard error. The only place that prints.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};

use super::CommandError;
use super::args::Color;
use crate::render::{Palette, Style};

/// The two outputs of a command, each with its palette.
#[derive(Debug)]
pub struct Terminal {
    out: Palette,
    error: Palette,
    progress: Progress,
}

/// Whether somebody watches standard error, so that a line of progress may come and go there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Shown,
    Left,
}

/// What a person said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Go on.
    Yes,
    /// Anything else.
    No,
}

impl Terminal {
    /// The outputs of this process; colours only on a terminal and without `NO_COLOR`
    /// (<https://no-color.org>), unless the command line says otherwise.
    pub fn new(color: Color) -> Self {
        let variable = std::env::var_os;
        let wanted = variable("NO_COLOR").is_none_or(|value| value.is_empty())
            && variable("TERM").as_deref() != Some(OsStr::new("dumb"));
        let palette = |terminal: bool| match color {
            Color::Always => Palette::Colour,
            Color::Auto if wanted && terminal => Palette::Colour,
            Color::Auto | Color::Never => Palette::Plain,
        };
        let shown = io::stderr().is_terminal() && variable("TERM").as_deref() != Some(OsStr::new("dumb"));
        Self {
            out: palette(io::stdout().is_terminal()),
            error: palette(io::stderr().is_terminal()),
            progress: if shown { Progress::Shown } else { Progress::Left },
        }
    }

    /// The palette of standard output.
    pub const fn palette(&self) -> Palette {
        self.out
    }

    /// The palette of standard error.
    pub const fn error_palette(&self) -> Palette {
        self.error
    }

    /// Asks a person on standard error; none when there is nobody to ask, that is when input or error is
    /// no terminal. Only `y` and `yes` are a yes.
    pub fn ask(&self, question: &str) -> Option<Answer> {
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return None;
        }
        self.tell(&format!("{question} [y/N] "));
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line);
        let yes = read.is_ok() && matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes");
        Some(if yes { Answer::Yes } else { Answer::No })
    }

    /// Writes results to standard output, as they are.
    ///
    /// # Errors
    ///
    /// Standard output is closed or full.
    pub fn print(&self, text: &str) -> Result<(), CommandError> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        Ok(())
    }

    /// Shows one line of progress in place of the last one, on a terminal only. An empty text takes it away.
    pub fn progress(&self, text: &str) {
        if self.progress == Progress::Shown {
            // A terminal whose size nobody has set has no columns.
            let width = match rustix::termios::tcgetwinsize(io::stderr()) {
                Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
                _ => 80,
            };
            let shown: String = text.chars().take(width.saturating_sub(1)).collect();
            // Back to the first column, and clear to the end of the line (ECMA-48 EL).
            self.tell(&format!("\r\u{1b}[K{shown}"));
        }
    }

    /// Writes to standard error, as it is. Whoever closed it wants to hear nothing.
    pub fn tell(&self, text: &str) {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// Writes an error and its hints to standard error.
    pub fn complain(&self, error: &CommandError) {
        if error.message.is_empty() {
            return;
        }
        let mut text = format!("{}: {error}\n", self.error.paint(Style::Error, "error"));
        for hint in &error.hints {
            let _ = writeln!(text, "{}: {hint}", self.error.paint(Style::Strong, "hint"));
        }
        self.tell(&text);
    }
}
