//! Standard output and standard error. The only place that prints.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;

use tokio::io::{Interest, Ready};
use tokio::net::unix::pipe::Sender;
use unicode_width::UnicodeWidthChar as _;

use super::CommandError;
use super::args::Color;
use crate::render::{Palette, TextStyle};

/// The two outputs of a command, each with its palette.
#[derive(Debug)]
pub(crate) struct Terminal {
    out: Palette,
    error: Palette,
    progress: ProgressDisplay,
}

/// Indicates whether somebody watches standard error, so that a line of progress may come and go
/// there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgressDisplay {
    Shown,
    Hidden,
}

/// The answer of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirmation {
    /// Go on.
    Confirmed,
    /// Anything else.
    Declined,
}

impl Terminal {
    /// Returns the outputs of this process; colours only on a terminal and without `NO_COLOR`
    /// (<https://no-color.org>), unless the command line says otherwise.
    pub(crate) fn new(color: Color) -> Self {
        let variable = std::env::var_os;
        let wanted = variable("NO_COLOR").is_none_or(|value| value.is_empty()) && !is_dumb();
        let palette = |terminal: bool| match color {
            Color::Always => Palette::Colour,
            Color::Auto if wanted && terminal => Palette::Colour,
            Color::Auto | Color::Never => Palette::Plain,
        };
        let shown = io::stderr().is_terminal() && !is_dumb();
        Self {
            out: palette(io::stdout().is_terminal()),
            error: palette(io::stderr().is_terminal()),
            progress: if shown { ProgressDisplay::Shown } else { ProgressDisplay::Hidden },
        }
    }

    /// Returns the palette of standard output.
    pub(crate) const fn palette(&self) -> Palette {
        self.out
    }

    /// Returns the palette of standard error.
    pub(crate) const fn error_palette(&self) -> Palette {
        self.error
    }

    /// Asks a person on standard error; none when there is nobody to ask, that is when input or
    /// error is no terminal. Only `y` and `yes` are a yes.
    pub(crate) fn ask(&self, question: &str) -> Option<Confirmation> {
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return None;
        }
        self.report(&format!("{question} [y/N] "));
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line);
        let yes = read.is_ok() && matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes");
        Some(if yes { Confirmation::Confirmed } else { Confirmation::Declined })
    }

    /// Writes results for people to standard output, without control characters: a pod's message or
    /// a person's reason may hold some.
    ///
    /// # Errors
    ///
    /// Standard output is closed or full.
    pub(crate) fn print(&self, text: &str) -> Result<(), CommandError> {
        write(&self.out.sanitize(text))
    }

    /// Writes results for programs to standard output, as they are, unless it is a terminal.
    ///
    /// # Errors
    ///
    /// As of [`Self::print`].
    pub(crate) fn write_output(&self, text: &str) -> Result<(), CommandError> {
        if io::stdout().is_terminal() { self.print(text) } else { write(text) }
    }

    /// Waits until standard output is closed by its reader, as by `head`. Output that is no pipe is
    /// always read.
    pub(crate) async fn wait_until_closed(&self) {
        let out = io::stdout().as_fd().try_clone_to_owned().and_then(Sender::from_owned_fd_unchecked);
        match out {
            // The kernel reports to writers that the last reader is gone (poll(2), POLLERR).
            Ok(out) if out.ready(Interest::ERROR).await.is_ok_and(Ready::is_error) => {}
            _ => std::future::pending().await,
        }
    }

    /// Returns whether standard output is a terminal that can show a screen full.
    pub(crate) fn is_screen() -> bool {
        io::stdout().is_terminal() && !is_dumb()
    }

    /// Returns whether standard error comes to a terminal.
    pub(crate) fn is_error_terminal() -> bool {
        io::stderr().is_terminal()
    }

    /// Returns whether standard output is a terminal on which what was shown can be shown anew in
    /// its place.
    pub(crate) fn is_redrawing(&self) -> bool {
        self.progress == ProgressDisplay::Shown && io::stdout().is_terminal()
    }

    /// Shows a text in place of all that is on the terminal. Its lines are cut where the terminal
    /// ends.
    pub(crate) fn redraw(&self, text: &str) -> Result<(), CommandError> {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_col > 0);
        let (rows, columns) = size.map_or((24, 80), |size| (size.ws_row.into(), size.ws_col.into()));
        write(&screen_text(&self.out.sanitize(text), rows, columns))
    }

    /// Shows one line of progress in place of the last one, on a terminal only. An empty text takes
    /// it away.
    pub(crate) fn show_progress(&self, text: &str) {
        if self.progress == ProgressDisplay::Shown {
            // A terminal whose size nobody has set has no columns.
            let width = match rustix::termios::tcgetwinsize(io::stderr()) {
                Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
                _ => 80,
            };
            let shown: String = Palette::Plain.sanitize(text).chars().take(width.saturating_sub(1)).collect();
            // Back to the first column, and clear to the end of the line (ECMA-48 EL).
            write_error(&format!("\r\u{1b}[K{shown}"));
        }
    }

    /// Writes to standard error, as [`Self::print`] does.
    pub(crate) fn report(&self, text: &str) {
        write_error(&self.error.sanitize(text));
    }

    /// Writes an error and its hints to standard error.
    pub(crate) fn print_error(&self, error: &CommandError) {
        if error.message.is_empty() {
            return;
        }
        let mut text = format!("{}: {error}\n", self.error.paint(TextStyle::Error, "error"));
        for hint in &error.hints {
            let _ = writeln!(text, "{}: {hint}", self.error.paint(TextStyle::Strong, "hint"));
        }
        self.report(&text);
    }
}

/// Writes a text as it is.
pub(super) fn write(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes to standard error. A closed standard error is no error.
pub(super) fn write_error(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Returns whether the terminal can do nothing but lines.
fn is_dumb() -> bool {
    std::env::var_os("TERM").as_deref() == Some(OsStr::new("dumb"))
}

/// Returns the text that draws a screen (ECMA-48 CUP, EL, ED). It begins at home, cuts and clears
/// each line at its end, and clears everything below.
fn screen_text(text: &str, rows: usize, columns: usize) -> String {
    let mut out = "\u{1b}[H".to_owned();
    for line in text.lines().take(rows.saturating_sub(1)) {
        out += &cut_line(line, columns);
        out += "\u{1b}[0m\u{1b}[K\r\n";
    }
    out + "\u{1b}[J"
}

/// Returns as much of a line as fits; colours take no room.
fn cut_line(line: &str, columns: usize) -> String {
    let (mut used, mut escape, mut out) = (0, false, String::new());
    for c in line.chars() {
        if escape || c == '\u{1b}' {
            escape = c != 'm';
        } else {
            used += c.width().unwrap_or(0);
            if used > columns {
                break;
            }
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_redrawn_never_wraps_or_scrolls() {
        assert_eq!(cut_line("abcdef", 4), "abcd");
        assert_eq!(cut_line("\u{1b}[31mabcdef\u{1b}[0m", 4), "\u{1b}[31mabcd");
        assert_eq!(
            cut_line("\u{65e5}\u{672c}", 3),
            "\u{65e5}",
            "a wide character that does not fit is left out"
        );
        let shown = screen_text("one\ntwo\nthree\n", 3, 80);
        assert_eq!(shown, "\u{1b}[Hone\u{1b}[0m\u{1b}[K\r\ntwo\u{1b}[0m\u{1b}[K\r\n\u{1b}[J");
    }
}
