//! Subcommands and exit codes.
//!
//! Owns the command line, the way from flags to checked settings, what is printed where, and how
//! each command ends. Each command has a module with a `carry_out`, which gets its arguments and
//! checked settings.
//!
//! **Invariant:** only [`Terminal`] prints, and the screen of `top` draws; only `settings` reads
//! the environment.

mod accounts;
mod apply;
mod args;
mod check;
mod cluster_status;
mod comparison;
mod configured;
mod crash;
mod debug;
mod derived_name;
mod diff;
mod events;
mod exit;
mod facts;
mod generate;
mod help;
mod history;
mod identities;
mod journal;
mod left_steps;
mod lock;
mod log;
mod log_line;
mod manifest_set;
mod object_argument;
mod one_shot_input;
mod orders;
mod overview;
mod pass_progress;
mod process_sources;
mod prune;
mod rbac;
mod reload;
mod render;
mod rendering;
mod revisions;
mod rights;
mod rollout;
mod rollout_words;
mod run;
mod session;
mod settings;
mod signals;
mod socket;
mod source_contents;
mod source_objects;
mod status;
mod status_view;
mod steps;
mod target;
mod terminal;
mod top;
mod uninstall;
mod unwanted_objects;
mod validate;
mod why;

use std::ffi::OsString;
use std::process::ExitCode;

pub(crate) use args::{Command, CommandLine};
pub(crate) use exit::{CommandError, ExitStatus};
pub(crate) use object_argument::ObjectArgument;
pub(crate) use terminal::Terminal;

use args::{Color, LogFormat};
use log::Verbosity;
use one_shot_input::OneShotSource;

use crate::input::sandbox;

/// Runs one command line, its first word being the program's name, and returns how it ended.
pub fn main(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    crash::redact_panics(LogFormat::Text);
    let words: Vec<OsString> = words.into_iter().collect();
    // Before any other word is understood: it must be quick, and is nothing for people.
    if words.get(1).is_some_and(|word| word == sandbox::ENTRY_COMMAND) {
        return sandbox::enter(words.into_iter().skip(2));
    }
    let line = match args::parse(words) {
        Ok(line) => line,
        Err(error) => return explain(&error).into(),
    };
    crash::redact_panics(line.global.log_format);
    let terminal = Terminal::new(line.global.color);
    let exit = carry_out(&line, &terminal).unwrap_or_else(|error| {
        report_error(&line, &error, &terminal);
        error.exit
    });
    exit.into()
}

/// Says why a command could not do its work: of the daemon in the form of its log.
fn report_error(line: &CommandLine, error: &CommandError, terminal: &Terminal) {
    match line.command {
        Command::Run(_) if line.global.log_format == LogFormat::Json && !error.message.is_empty() => {
            terminal.report(&log_line::json_line(&error.message, &error.hints));
        }
        _ => terminal.print_error(error),
    }
}

fn carry_out(line: &CommandLine, terminal: &Terminal) -> Result<ExitStatus, CommandError> {
    let global = &line.global;
    let verbosity = match line.command {
        Command::Run(_) => Verbosity::Normal,
        Command::Top(_) if Terminal::is_error_terminal() => Verbosity::Silent,
        _ => Verbosity::Quiet,
    };
    log::start(global, verbosity, terminal)?;
    match &line.command {
        Command::Run(args) => run::carry_out(args, global, terminal),
        Command::Diff(args) => diff::carry_out(args, global, terminal),
        Command::Apply(args) => {
            apply::carry_out(args, OneShotSource::for_apply(global, args, terminal)?, terminal)
        }
        Command::Validate(args) => validate::carry_out(args, global, terminal),
        Command::Render(args) => render::carry_out(args, global, terminal),
        Command::Lock(args) => lock::carry_out(args, global, terminal),
        Command::Prune { command } => {
            prune::carry_out(command, settings::connection_config(global), global.name.as_ref(), terminal)
        }
        Command::Rollout { command } => rollout::carry_out(command, global, terminal),
        Command::Status(args) => status::carry_out(args, global, terminal),
        Command::Why(args) => why::carry_out(args, global, terminal),
        Command::Hold(args) => rollout::hold(args, global, terminal),
        Command::Release(args) => rollout::release(&args.object, global, terminal),
        Command::Top(args) => top::carry_out(args, global, terminal),
        Command::Events(args) => events::carry_out(args, global, terminal),
        Command::Check(args) => check::carry_out(args, global, terminal),
        Command::Uninstall(args) => {
            uninstall::carry_out(args, global.name.as_ref(), &settings::connection_config(global), terminal)
        }
        Command::Rbac(args) => rbac::carry_out(args, global, terminal),
        Command::Debug { command } => debug::carry_out(command, terminal),
        Command::Generate(args) => generate::carry_out(args),
        Command::Version(_) => {
            terminal.print(concat!("rhumb ", env!("CARGO_PKG_VERSION"), "\n"))?;
            Ok(ExitStatus::Done)
        }
    }
}

/// Prints what clap has to say, in colours of its own: help and version are results, the rest is
/// wrong usage.
fn explain(error: &clap::Error) -> ExitStatus {
    let terminal = Terminal::new(Color::Auto);
    let text = error.render();
    let coloured = |palette| match palette {
        crate::render::Palette::Plain => text.to_string(),
        crate::render::Palette::Colour => text.ansi().to_string(),
    };
    if error.use_stderr() {
        terminal::write_error(&coloured(terminal.error_palette()));
        return ExitStatus::Unreadable;
    }
    terminal::write(&coloured(terminal.palette())).map_or_else(|error| error.exit, |()| ExitStatus::Done)
}
