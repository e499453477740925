//! `rhumb top`: the terminal and the polling, around a model and its picture.

mod bars;
mod details;
mod draw;
mod keys;
mod layout;
mod model;
mod panes;
mod screen;
mod status_poller;
mod styled_text;
mod table;
#[cfg(test)]
mod tests;

use std::pin::pin;

use jiff::Timestamp;
use tokio::signal::unix::{Signal, SignalKind};
use tokio::sync::{mpsc, watch};

use super::args::{GlobalArgs, TopArgs};
use super::signals::listen_for;
use super::status::StatusReader;
use super::{CommandError, ExitStatus, Terminal, session};
use crate::config::DnsLabel;
use crate::object::ErrorClass;
use keys::ScreenAction;
use model::TopModel;
use screen::{Screen, TerminalInput};
use status_poller::StatusPoller;

/// Carries the command out.
pub(super) fn carry_out(
    args: &TopArgs,
    global: &GlobalArgs,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    if !Terminal::is_screen() {
        return Err(CommandError::usage_error(
            "`rhumb top` needs a full screen, and standard output is no terminal that has one",
        )
        .hint("`rhumb status --watch` tells each change in lines"));
    }
    session::start_runtime()?.block_on(async {
        let reader = StatusReader::find(global, args.socket.socket.as_deref(), terminal).await?;
        let mut poller = StatusPoller::of(reader);
        let refresh = poller.poll(None).await?;
        let only = args.source.as_ref().map(DnsLabel::as_str);
        if let Some(name) = only.filter(|name| refresh.view.sources.iter().all(|source| source.name != *name))
        {
            return Err(CommandError::usage_error(format!("there is no source {name}"))
                .hint("`rhumb status` lists them"));
        }
        let mut model =
            TopModel::new(poller.status_origin(), terminal.palette(), only.map(str::to_owned), refresh);
        show(&mut model, poller).await?;
        Ok(ExitStatus::Done)
    })
}

/// Signals that end it, and the one that brings it back from the background.
struct TerminalSignals {
    ends: [Signal; 3],
    back: Signal,
}

impl TerminalSignals {
    fn listen() -> Result<Self, CommandError> {
        let ends = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
        let [terminate, interrupt, hangup] = ends.map(listen_for);
        let back = listen_for(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?;
        Ok(Self { ends: [terminate?, interrupt?, hangup?], back })
    }

    /// Waits for the first signal of any kind.
    async fn next(&mut self) -> TerminalSignal {
        let [terminate, interrupt, hangup] = &mut self.ends;
        tokio::select! {
            _ = terminate.recv() => TerminalSignal::End,
            _ = interrupt.recv() => TerminalSignal::End,
            _ = hangup.recv() => TerminalSignal::End,
            _ = self.back.recv() => TerminalSignal::Back,
        }
    }
}

/// The meaning of a signal.
enum TerminalSignal {
    End,
    Back,
}

/// Shows it until somebody ends it.
async fn show(model: &mut TopModel, poller: StatusPoller) -> Result<(), CommandError> {
    let mut signals = TerminalSignals::listen()?;
    let (wanted, requested) = watch::channel(None);
    let (sink, mut refreshes) = mpsc::channel(1);
    let mut asking = pin!(poller.run_loop(requested, sink));
    let mut screen = Screen::enter()?;
    let mut typed = screen::read_input();
    loop {
        let (columns, rows) = screen.screen_size()?;
        model.resize(columns, rows);
        screen.draw(|frame| draw::draw(model, frame))?;
        let wish = tokio::select! {
            key = typed.recv() => match key {
                Some(TerminalInput::Key(key)) => model.handle_key(key),
                Some(TerminalInput::Resized) => None,
                None => {
                    return Err(CommandError::new(ErrorClass::Internal, "keys cannot be read from the terminal"));
                }
            },
            Some(answer) = refreshes.recv() => {
                match answer {
                    Ok(refresh) => model.refresh(refresh),
                    Err(why) => model.note_failure(Timestamp::now(), why),
                }
                None
            }
            heard = signals.next() => Some(match heard {
                TerminalSignal::End => ScreenAction::Quit,
                TerminalSignal::Back => ScreenAction::Redraw,
            }),
            // It never ends, as long as somebody receives its answers.
            () = &mut asking => None,
        };
        match wish {
            Some(ScreenAction::Quit) => return Ok(()),
            Some(ScreenAction::Suspend) => screen.stop()?,
            Some(ScreenAction::Redraw) => screen.take_again()?,
            None => {}
        }
        wanted.send_if_modified(|object| {
            let now = model.requested_object();
            let is_new = object.as_ref() != now;
            if is_new {
                *object = now.cloned();
            }
            is_new
        });
    }
}
