//! Tips for commands that are not there: what other tools call them, and none that `--help` does not show.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};

/// Commands of kubectl, Flux and Argo CD, each with the way that rhumb has for it.
const ELSEWHERE: [(&str, &str); 8] = [
    (
        "delete",
        "`rhumb apply --prune` deletes what a source no longer names; `rhumb prune` confirms deletions",
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

/// Replaces clap's guesses about an unknown command, which name hidden commands too.
pub(super) fn with_known_tips(mut error: clap::Error, command: &clap::Command) -> clap::Error {
    if let Some(ContextValue::Strings(guesses)) = error.remove(ContextKind::SuggestedSubcommand) {
        let hidden = |guess: &String| command.find_subcommand(guess).is_some_and(clap::Command::is_hide_set);
        let shown: Vec<String> = guesses.into_iter().filter(|guess| !hidden(guess)).collect();
        if !shown.is_empty() {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(shown));
        }
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    if let Some((_, tip)) = ELSEWHERE.iter().find(|(other, _)| other == word) {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(*tip)]));
    }
    error
}
