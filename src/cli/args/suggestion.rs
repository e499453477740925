//! Tips for commands that are not there: what other tools call them, and none that `--help` does
//! not show.

use std::ffi::{OsStr, OsString};

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::config::PositiveDuration;

/// Commands of kubectl, Flux and Argo CD, each with the way that rhumb has for it.
const FOREIGN_COMMANDS: [(&str, &str); 8] = [
    (
        "delete",
        "`rhumb apply --prune` deletes objects that left a source; `rhumb uninstall --delete-objects` deletes all of them",
    ),
    ("get", "`rhumb status` shows sources and objects; `rhumb why NAME` explains one object"),
    ("describe", "`rhumb why NAME` explains one object"),
    ("sync", "`rhumb apply` applies a source once; `rhumb run` follows it"),
    ("reconcile", "`rhumb run` follows a source; SIGHUP makes it read its configuration again"),
    (
        "suspend",
        "`rhumb rollout pause SOURCE` releases nothing new; `rhumb hold NAME` writes nothing for a time",
    ),
    ("rollback", "`rhumb rollout undo NAME` goes back"),
    ("logs", "`rhumb events` shows what happened; the log is in the journal or in `kubectl logs`"),
];

/// Flags of kubectl, each with the way that rhumb has for it.
const FOREIGN_FLAGS: [(&str, &str); 6] = [
    ("--timeout", "`--wait=TIMEOUT` waits at most this long"),
    ("-k", "`kubectl kustomize DIR | rhumb diff -f -` reads what kustomize renders"),
    ("--kustomize", "`kubectl kustomize DIR | rhumb diff -f -` reads what kustomize renders"),
    ("-R", "a directory is read with all that is below it"),
    ("--recursive", "a directory is read with all that is below it"),
    ("--server-side", "rhumb always applies on the server's side"),
];

/// Replaces clap's guesses about an unknown command, which name hidden commands too, and says what
/// a flag of another tool is called here. `words` are those of the command line.
pub(super) fn add_known_tips(error: clap::Error, command: &clap::Command, words: &[OsString]) -> clap::Error {
    let mut error = add_commands(error, command);
    let unknown = || match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(arg)) => FOREIGN_FLAGS.iter().find(|(flag, _)| flag == arg),
        _ => None,
    };
    let tip = match error.kind() {
        ErrorKind::UnknownArgument | ErrorKind::ArgumentConflict => {
            find_detached_timeout(words).or_else(|| unknown().map(|(_, tip)| (*tip).to_owned()))
        }
        ErrorKind::TooManyValues if words.iter().any(|word| is_dry_run(word)) => {
            Some("`--dry-run` takes no value: it always asks the server".to_owned())
        }
        _ => None,
    };
    if let Some(tip) = tip {
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    error
}

/// Returns the hint about a timeout that is behind `--wait` as a word of its own, and so is no
/// timeout.
fn find_detached_timeout(words: &[OsString]) -> Option<String> {
    let pairs = words.iter().zip(words.iter().skip(1));
    let mut detached = pairs.filter(|(flag, _)| *flag == "--wait").filter_map(|(_, value)| value.to_str());
    let value = detached.find(|value| value.parse::<PositiveDuration>().is_ok())?;
    Some(format!("write the timeout behind `=`: --wait={value}"))
}

fn is_dry_run(word: &OsStr) -> bool {
    word.to_str().is_some_and(|word| word.starts_with("--dry-run="))
}

fn add_commands(mut error: clap::Error, command: &clap::Command) -> clap::Error {
    if let Some(ContextValue::Strings(guesses)) = error.remove(ContextKind::SuggestedSubcommand) {
        let hidden = |guess: &String| command.find_subcommand(guess).is_some_and(clap::Command::is_hide_set);
        let shown: Vec<String> = guesses.into_iter().filter(|guess| !hidden(guess)).collect();
        if !shown.is_empty() {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(shown));
        }
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    if let Some((_, tip)) = FOREIGN_COMMANDS.iter().find(|(other, _)| other == word) {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(*tip)]));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn words_of_other_tools_are_explained_in_ours() {
        let check = |line: &str, expected: &str| {
            let words = std::iter::once("rhumb").chain(line.split_whitespace());
            let message = parse(words.map(Into::into)).unwrap_err().to_string();
            assert!(message.contains(expected), "{line}: {message}");
        };
        check("apply deploy --wait 3m", "write the timeout behind `=`: --wait=3m");
        check("apply --wait 3m deploy", "write the timeout behind `=`: --wait=3m");
        check("apply -f a.yaml --wait 3m", "write the timeout behind `=`: --wait=3m");
        check("apply deploy --timeout=3m", "`--wait=TIMEOUT`");
        check("apply deploy --dry-run=server", "`--dry-run` takes no value");
        check("apply -k deploy", "kubectl kustomize DIR");
        check("diff -f deploy -R", "all that is below it");
        check("sync", "`rhumb apply` applies a source once");
        assert!(parse(["rhumb", "apply", "deploy", "--wait=3m"].map(Into::into)).is_ok());
    }
}
