//! The message of a panic: its place, and never the values in memory there.
//!
//! A panic of the standard library repeats the text that could not be sliced; one of a library, the
//! unexpected error. Either may hold a Secret.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::Write as _;
use std::panic::{self, PanicHookInfo};

use super::args::{Color, LogFormat};
use super::log_line::json_line;
use super::terminal::Terminal;
use crate::render::sanitize;

/// The beginnings of standard library messages that contain only numbers, up to the first quote.
const NUMERIC_PANIC_PREFIXES: [&str; 8] = [
    "index out of bounds: ",
    "range start index ",
    "range end index ",
    "slice index starts at ",
    "byte index ",
    "start byte index ",
    "end byte index ",
    "begin <= end ",
];

/// Lets every panic from now on say what may be shown of it, in the form of the log.
pub(super) fn redact_panics(format: LogFormat) {
    let terminal = Terminal::new(Color::Never);
    panic::set_hook(Box::new(move |panic| {
        let text = message(panic, &Backtrace::capture());
        terminal.report(&if format == LogFormat::Json { json_line(&text, &[]) } else { text });
    }));
}

fn message(panic: &PanicHookInfo<'_>, backtrace: &Backtrace) -> String {
    let thread = std::thread::current();
    let mut text = format!("thread '{}' panicked", sanitize(thread.name().unwrap_or("<unnamed>")));
    if let Some(location) = panic.location() {
        let _ = write!(text, " at {location}");
    }
    let words = safe_payload(panic.payload());
    let words = words.as_deref().unwrap_or("(what it says is not shown: it may hold values)");
    let _ = write!(text, ":\n{words}\n");
    let _ = match backtrace.status() {
        // Names of functions, files and lines.
        BacktraceStatus::Captured => write!(text, "stack backtrace:\n{backtrace}"),
        _ => writeln!(text, "note: run with RUST_BACKTRACE=1 in the environment to see a backtrace"),
    };
    text
}

/// Returns a message that has nothing put into it, or numbers alone.
fn safe_payload(payload: &(dyn Any + Send)) -> Option<String> {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        return Some((*text).to_owned());
    }
    let text = payload.downcast_ref::<String>()?;
    NUMERIC_PANIC_PREFIXES.iter().find(|begin| text.starts_with(**begin))?;
    let end = text.find(['`', '\'', '"']).unwrap_or(text.len());
    Some(sanitize(text[..end].trim_end()).into_owned())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// The variable that says how the process is to panic.
    const ROLE: &str = "RHUMB_TEST_CRASH";

    const NAME: &str = "cli::crash::tests::a_panic_shows_no_value";

    /// Behind what cannot be cut.
    const SECRET: &str = "\u{e9}hunter2-hunter2-hunter2";

    fn panic_by(role: &str) {
        redact_panics(if role == "json" { LogFormat::Json } else { LogFormat::Text });
        let secret = std::hint::black_box(SECRET);
        let number = std::hint::black_box(7);
        let end = std::hint::black_box(1);
        match role {
            "a text that is cut" => drop(secret[..end].to_owned()),
            "an error" => {
                let failed: Result<u8, String> = std::hint::black_box(Err(secret.to_owned()));
                assert_eq!(failed.unwrap(), 0);
            }
            "words" | "json" => panic!("{secret} is not good"),
            "an index" => drop([1, 2, 3][..number].to_vec()),
            "a task" => {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                let ended = runtime.block_on(async { tokio::spawn(async move { panic!("{secret}") }).await });
                ended.unwrap();
            }
            _ => panic!("no words at all"),
        }
    }

    #[test]
    fn a_panic_shows_no_value() {
        if let Ok(role) = std::env::var(ROLE) {
            return panic_by(&role);
        }
        for (role, expected) in [
            ("a text that is cut", "byte index 1 is not a char boundary; it is inside\n"),
            ("an error", "(what it says is not shown"),
            ("words", "(what it says is not shown"),
            ("an index", "range end index 7 out of range for slice of length 3\n"),
            ("a task", "(what it says is not shown"),
            ("literal", "no words at all\n"),
        ] {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args([NAME, "--exact", "--nocapture"]).env(ROLE, role).env("RUST_BACKTRACE", "full");
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            assert!(!output.status.success(), "{role}: {said}");
            assert!(!said.contains("hunter2"), "{role}: {said}");
            for text in [expected, "crash.rs:", "stack backtrace:\n", "panic_by"] {
                assert!(said.contains(text), "{role} does not say {text:?}: {said}");
            }
        }
    }

    #[test]
    fn a_panic_is_a_line_where_all_else_is_lines() {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([NAME, "--exact", "--nocapture"]).env(ROLE, "json").env("RUST_BACKTRACE", "full");
        let said = String::from_utf8(command.output().unwrap().stderr).unwrap();
        assert!(!said.contains("hunter2"), "{said}");
        let begins = |line: &&str| line.starts_with('{');
        let [line] = said.lines().filter(begins).collect::<Vec<_>>()[..] else { panic!("{said}") };
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["level"], "ERROR");
        assert!(line["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{line}");
        let message = line["message"].as_str().unwrap();
        for text in ["panicked at ", "crash.rs:", "(what it says is not shown", "stack backtrace:\n"] {
            assert!(message.contains(text), "{text:?} is not in {message}");
        }
    }
}
