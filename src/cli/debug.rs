//! `rhumb debug`.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use super::args::{DebugCommand, ReplayArgs};
use super::exit::os_message;
use super::{CommandError, ExitStatus, Terminal};
use crate::engine::{MAX_TRACE_LINE_BYTES, Replay, ReplayedCall};
use crate::object::{ErrorClass, count_text};

/// Carries the command out; needs no cluster.
pub(super) fn carry_out(command: &DebugCommand, terminal: &Terminal) -> Result<ExitStatus, CommandError> {
    match command {
        DebugCommand::Replay(args) => replay(args, terminal),
    }
}

/// Replays a trace, up to the first difference.
fn replay(args: &ReplayArgs, terminal: &Terminal) -> Result<ExitStatus, CommandError> {
    let file = File::open(&args.file).map_err(|error| trace_error(&args.file, None, &os_message(&error)))?;
    let mut lines = TraceLines::of(BufReader::new(file), MAX_TRACE_LINE_BYTES);
    let mut replay = Replay::new(Instant::now());
    let mut calls = 0;
    for number in 1_u64.. {
        let unreadable_line = |why: &str| trace_error(&args.file, Some(number), why);
        let Some(line) = lines.next_line().map_err(|why| unreadable_line(&why))? else { break };
        let replayed = replay.replay_line(line).map_err(|error| unreadable_line(&error.to_string()))?;
        let Some(call) = replayed else { continue };
        calls += 1;
        if !call.is_same() {
            terminal.print(&difference_text(&args.file, number, &call))?;
            return Ok(ExitStatus::Differs);
        }
        if !args.quiet && !call.replayed.is_null() {
            terminal.print(&effects_text(number, &call))?;
        }
    }
    if calls == 0 {
        return Err(trace_error(&args.file, None, "it has no line of a trace"));
    }
    terminal.report(&format!("{}: the same effects\n", count_text(calls, "call")));
    Ok(ExitStatus::Done)
}

/// Returns the line about the effects of a call.
fn effects_text(number: u64, call: &ReplayedCall) -> String {
    let line = serde_json::json!({ "line": number, "call": call.call, "effects": call.replayed });
    format!("{line}\n")
}

/// Returns the text about effects that differ.
fn difference_text(file: &Path, number: u64, call: &ReplayedCall) -> String {
    let ReplayedCall { call, recorded, replayed } = call;
    let shown = |effects: &Value| if effects.is_null() { "none".to_owned() } else { effects.to_string() };
    let (file, recorded, replayed) = (file.display(), shown(recorded), shown(replayed));
    format!("{file}:{number}: other effects of {call}\n  recorded: {recorded}\n  replayed: {replayed}\n")
}

/// Returns the error about a trace, at a line where one is to blame.
fn trace_error(file: &Path, line: Option<u64>, why: &str) -> CommandError {
    let place = line.map_or_else(String::new, |number| format!(":{number}"));
    CommandError::new(ErrorClass::Config, format!("{}{place}: {why}", file.display()))
}

/// The lines of a trace, each within a bound.
struct TraceLines<R> {
    reader: R,
    line: Vec<u8>,
    most: usize,
}

impl<R: BufRead> TraceLines<R> {
    /// Reads lines of at most so many bytes.
    fn of(reader: R, most: usize) -> Self {
        Self { reader, line: Vec::new(), most }
    }

    /// Reads the next line; none at the end. A last line that was not written to its end is none.
    fn next_line(&mut self) -> Result<Option<&[u8]>, String> {
        self.line.clear();
        let mut bounded = self.reader.by_ref().take(self.most as u64 + 1);
        let read = bounded.read_until(b'\n', &mut self.line).map_err(|error| os_message(&error))?;
        match self.line.strip_suffix(b"\n") {
            Some(line) => Ok(Some(line)),
            None if read > self.most => Err(format!("the line is longer than {} bytes", self.most)),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is read of a text, with lines of at most 4 bytes.
    fn read(text: &str) -> Vec<Result<String, String>> {
        let mut lines = TraceLines::of(text.as_bytes(), 4);
        let mut found = Vec::new();
        loop {
            match lines.next_line() {
                Ok(Some(line)) => found.push(Ok(String::from_utf8_lossy(line).into_owned())),
                Ok(None) => return found,
                Err(why) => {
                    found.push(Err(why));
                    return found;
                }
            }
        }
    }

    #[test]
    fn lines_are_read_within_their_bound() {
        #[track_caller]
        fn check(text: &str, expected: &[Result<&str, &str>]) {
            let expected: Vec<_> =
                expected.iter().map(|line| line.map(str::to_owned).map_err(str::to_owned)).collect();
            assert_eq!(read(text), expected);
        }
        check("", &[]);
        check("one\ntwo\n", &[Ok("one"), Ok("two")]);
        check("four\n", &[Ok("four")]);
        check("one\nlonger\n", &[Ok("one"), Err("the line is longer than 4 bytes")]);
        // The daemon was killed while it wrote the last one.
        check("one\ntw", &[Ok("one")]);
    }

    #[test]
    fn a_difference_names_its_line_and_both_effects() {
        let call = ReplayedCall {
            call: "poll".to_owned(),
            recorded: Value::Null,
            replayed: serde_json::json!({ "keys": ["ConfigMap/shop/web"] }),
        };
        assert!(!call.is_same());
        let text = difference_text(Path::new("trace.jsonl"), 7, &call);
        let expected = "trace.jsonl:7: other effects of poll\n  recorded: none\n  replayed: {\"keys\":[\"ConfigMap/shop/web\"]}\n";
        assert_eq!(text, expected);
    }
}
