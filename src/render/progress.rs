//! What became of an object, a line each, in kubectl's habit.

use super::palette::harmless;
use super::{Palette, Style};
use crate::object::ObjectId;

/// What became of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// It did not exist.
    Created,
    /// It was changed.
    Configured,
    /// It was as wanted.
    Unchanged,
    /// It was deleted and created again.
    Recreated,
    /// It was not wanted any more and is deleted.
    Pruned,
    /// It is not wanted any more, and stays.
    Kept(&'a str),
    /// Something that can pass holds it back.
    Waiting(&'a str),
    /// We or the server refused it.
    Refused(&'a str),
    /// Its rollout failed.
    Failed(&'a str),
}

/// `deployment.apps/web created (shop)`, or `deployment.apps/web (shop) waiting: …`, with its line end.
pub fn progress(id: &ObjectId, outcome: Outcome<'_>, palette: Palette) -> String {
    let (word, style) = match outcome {
        Outcome::Created => ("created", Style::Added),
        Outcome::Configured => ("configured", Style::Changed),
        Outcome::Unchanged => ("unchanged", Style::Faint),
        Outcome::Recreated => ("recreated", Style::Changed),
        Outcome::Pruned => ("pruned", Style::Removed),
        Outcome::Kept(_) => ("kept", Style::Faint),
        Outcome::Waiting(_) => ("waiting", Style::Waiting),
        Outcome::Refused(_) => ("refused", Style::Error),
        Outcome::Failed(_) => ("failed", Style::Error),
    };
    let name = id.resource_name();
    let name = harmless(&name);
    let word = palette.paint(style, word);
    let place = id.namespace().map(|namespace| format!(" ({namespace})")).unwrap_or_default();
    match outcome {
        Outcome::Kept(reason)
        | Outcome::Waiting(reason)
        | Outcome::Refused(reason)
        | Outcome::Failed(reason) => {
            let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("{name}{place} {word}: {}\n", harmless(&reason))
        }
        _ => format!("{name} {word}{place}\n"),
    }
}
