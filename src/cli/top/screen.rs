//! The terminal while it shows a full screen: its modes, and what is typed.

use std::io;
use std::mem::ManuallyDrop;

use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::{execute, style, terminal};
use ratatui::layout::Rect;
use ratatui::prelude::CrosstermBackend;
use ratatui::{DefaultTerminal, Frame, TerminalOptions, Viewport};
use rustix::process::{Signal, getpid, kill_process};
use tokio::sync::mpsc;

use super::super::exit::os_message;
use super::keys::Key;
use crate::cli::CommandError;
use crate::object::ErrorClass;

/// Columns and rows of a terminal that reports none.
const DEFAULT_SIZE: (u16, u16) = (80, 24);

/// The screen: entered when this is made, and left when it is dropped, whyever.
pub(super) struct Screen {
    /// The terminal. It is never dropped. Where it is gone, its drop would write to standard error,
    /// which is gone too, and so panic in the middle of the end. Everything that it would do is
    /// done below.
    terminal: ManuallyDrop<DefaultTerminal>,
}

/// An input at the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TerminalInput {
    Key(Key),
    /// The terminal has another size.
    Resized,
}

impl Screen {
    /// Enters it. A panic leaves it before it says anything.
    pub(super) fn enter() -> Result<Self, CommandError> {
        // The palette decides the colours.
        style::force_color_output(true);
        let entered = ratatui::try_init().and_then(with_size).map_err(|error| {
            // It may have come half-way.
            let _ = ratatui::try_restore();
            CommandError::new(
                ErrorClass::Internal,
                format!("the terminal takes no full screen: {}", os_message(&error)),
            )
            .hint("`rhumb status --watch` needs none")
        })?;
        Ok(Self { terminal: ManuallyDrop::new(entered) })
    }

    /// Returns the columns and rows.
    pub(super) fn screen_size(&self) -> io::Result<(u16, u16)> {
        let size = self.terminal.size()?;
        Ok(if size.area() == 0 { DEFAULT_SIZE } else { (size.width, size.height) })
    }

    /// Draws what has changed.
    pub(super) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(picture).map(|_| ())
    }

    /// Takes the terminal again, whatever others did to it, and forgets what was drawn.
    pub(super) fn take_again(&mut self) -> io::Result<()> {
        terminal::disable_raw_mode()?;
        terminal::enable_raw_mode()?;
        execute!(io::stdout(), terminal::EnterAlternateScreen)?;
        // To clear it would ask the terminal where its cursor is; the answer goes to whoever reads
        // keys.
        let (columns, rows) = self.screen_size()?;
        self.terminal.resize(Rect::new(0, 0, columns, rows))
    }

    /// Goes to the background; comes back where somebody lets it.
    pub(super) fn stop(&mut self) -> io::Result<()> {
        leave()?;
        // Where nobody could bring it back, the kernel ignores this.
        kill_process(getpid(), Signal::TSTP)?;
        self.take_again()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A panic has left it already, and left once more it would put its cursor onto what the
        // panic said. A terminal that is gone needs no error.
        let _ = if std::thread::panicking() { execute!(io::stdout(), Show) } else { leave() };
    }
}

/// Returns the terminal; with the usual size where it does not know its own, as on a serial line.
fn with_size(terminal: DefaultTerminal) -> io::Result<DefaultTerminal> {
    if terminal.size()?.area() > 0 {
        return Ok(terminal);
    }
    let viewport = Viewport::Fixed(Rect::new(0, 0, DEFAULT_SIZE.0, DEFAULT_SIZE.1));
    ratatui::Terminal::with_options(CrosstermBackend::new(io::stdout()), TerminalOptions { viewport })
}

fn leave() -> io::Result<()> {
    ratatui::try_restore()?;
    execute!(io::stdout(), Show)
}

/// Reads what is typed, on a thread of its own: reading cannot be given up, and ends with the
/// process.
pub(super) fn read_input() -> mpsc::UnboundedReceiver<TerminalInput> {
    let (sender, typed) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if let Some(typed) = input_of(&event)
                && sender.send(typed).is_err()
            {
                return;
            }
        }
    });
    typed
}

fn input_of(event: &Event) -> Option<TerminalInput> {
    match event {
        Event::Resize(..) => Some(TerminalInput::Resized),
        Event::Key(event) if event.kind != KeyEventKind::Release => key(event).map(TerminalInput::Key),
        _ => None,
    }
}

fn key(event: &KeyEvent) -> Option<Key> {
    let is_control = event.modifiers.contains(KeyModifiers::CONTROL);
    Some(match event.code {
        KeyCode::Char(c) if is_control => Key::Ctrl(c.to_ascii_lowercase()),
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Esc,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    })
}
