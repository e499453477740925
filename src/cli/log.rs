//! Log lines: on standard error, or as fields in the journal.

use std::io;
use std::os::fd::AsFd;

use tracing::Subscriber;
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry};

use super::CommandError;
use super::args::{GlobalArgs, LogFormat};
use super::journal::JournalWriter;
use super::log_line::TextFields;
use super::terminal::Terminal;
use crate::cluster::NOISY_TARGETS;
use crate::render::Palette;

/// The log target of a library whose messages say nothing to anybody.
///
/// When a watched folder is deleted, the kernel ends its watch. `notify` asks for that end once
/// more, and logs the refusal. Nothing is watched that should not be. Watches that cannot be had
/// are errors of the call, and no messages.
const HARMLESS_TARGET: &str = "notify::inotify";

/// The verbosity of a command without flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verbosity {
    /// Only what a person must know: commands that run once.
    Quiet,
    /// Each change of state: the service.
    Normal,
    /// Nothing: a line would go right through what is drawn.
    Silent,
}

/// Starts logging. Flags take precedence over `RUST_LOG`, that over the default.
pub(super) fn start(
    global: &GlobalArgs,
    verbosity: Verbosity,
    terminal: &Terminal,
) -> Result<(), CommandError> {
    let variable = std::env::var("RUST_LOG").ok().filter(|directives| !directives.is_empty());
    let directives = directives(global, verbosity, variable);
    let filter = EnvFilter::try_new(with_silenced(&directives)).map_err(|error| {
        CommandError::usage_error(format!("wrong log level `{directives}`: {error}"))
            .hint("use error, warn, info, debug or trace, or directives as rhumb=debug,kube=info")
    })?;
    // Fails only when another subscriber was set before, as in tests of one process.
    let _ = Registry::default().with(log_layer(global.log_format, terminal).with_filter(filter)).try_init();
    Ok(())
}

fn log_layer<S>(format: LogFormat, terminal: &Terminal) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let journal = (format == LogFormat::Auto && is_journal()).then(JournalWriter::open);
    if let Some(Ok(journal)) = journal {
        return journal.boxed();
    }
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(terminal.error_palette() == Palette::Colour)
        .with_target(false);
    match format {
        LogFormat::Auto | LogFormat::Text => lines.fmt_fields(TextFields).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    }
}

/// Returns whether standard error goes to the journal, as systemd says it (`JOURNAL_STREAM`,
/// systemd.exec(5)). Behind a pipe that somebody has put there it does not.
fn is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    let Ok(stat) = rustix::fs::fstat(io::stderr().as_fd()) else { return false };
    stream == format!("{}:{}", stat.st_dev, stat.st_ino)
}

/// Returns the directives behind those that silence libraries. A later one for the same target
/// wins: whoever asks for a target by name gets it.
fn with_silenced(directives: &str) -> String {
    let silenced = NOISY_TARGETS.map(|target| format!("{target}=off")).join(",");
    format!("{silenced},{HARMLESS_TARGET}=off,{directives}")
}

fn directives(global: &GlobalArgs, verbosity: Verbosity, variable: Option<String>) -> String {
    let silent = match verbosity {
        Verbosity::Silent => return "off".to_owned(),
        Verbosity::Quiet => "warn",
        Verbosity::Normal => "info",
    };
    match (&global.log_level, global.verbose) {
        (Some(level), _) => level.clone(),
        (None, 0) => variable.unwrap_or_else(|| silent.to_owned()),
        // Messages of libraries are enabled by name.
        (None, 1) => format!("{silent},rhumb=debug"),
        (None, _) => format!("{silent},rhumb=trace"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_take_precedence_over_the_environment() {
        fn check(
            level: Option<&str>,
            verbose: u8,
            variable: Option<&str>,
            verbosity: Verbosity,
            expected: &str,
        ) {
            let global = GlobalArgs { log_level: level.map(str::to_owned), verbose, ..GlobalArgs::default() };
            let found = directives(&global, verbosity, variable.map(str::to_owned));
            assert_eq!(found, expected);
        }
        check(None, 0, None, Verbosity::Quiet, "warn");
        check(None, 0, None, Verbosity::Normal, "info");
        check(None, 1, None, Verbosity::Quiet, "warn,rhumb=debug");
        check(None, 9, None, Verbosity::Normal, "info,rhumb=trace");
        check(None, 0, Some("rhumb=debug"), Verbosity::Quiet, "rhumb=debug");
        check(None, 2, Some("error"), Verbosity::Quiet, "warn,rhumb=trace");
        check(Some("error"), 2, Some("trace"), Verbosity::Normal, "error");
        check(Some("error"), 2, Some("trace"), Verbosity::Silent, "off");
    }

    #[test]
    fn what_says_nothing_is_logged_only_where_it_is_asked_for_by_name() {
        use tracing::Level;
        fn check(directives: &str, is_enabled: impl Fn() -> bool, expected: bool) {
            let filter = EnvFilter::try_new(with_silenced(directives)).unwrap();
            // A filter of one layer alone answers for sure only where no other test logs.
            let logs = Registry::default().with(filter);
            assert_eq!(tracing::subscriber::with_default(logs, is_enabled), expected, "{directives}");
        }
        let removed = || tracing::enabled!(target: "notify::inotify", Level::INFO);
        let answer = || tracing::enabled!(target: "kube_client::client", Level::ERROR);
        for level in ["info", "warn,rhumb=debug", "debug"] {
            check(level, removed, false);
            check(level, answer, false);
        }
        check("info,notify=debug", removed, false);
        check("info,notify::inotify=info", removed, true);
    }
}
