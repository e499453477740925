//! The outcome of each object, a line each, in kubectl's habit.

use super::palette::sanitize;
use super::{Palette, TextStyle};
use crate::object::ObjectId;

/// The outcome of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApplyLine<'a> {
    /// It did not exist.
    Created,
    /// It was changed.
    Configured,
    /// It was changed, and taken from this owner.
    Adopted(&'a str),
    /// It was applied already.
    Unchanged,
    /// It was deleted and created again.
    Recreated,
    /// It was no longer wanted and is deleted.
    Pruned,
    /// It is no longer wanted, and stays.
    Kept(&'a str),
    /// An annotation asks to leave it as it is.
    LeftAlone(&'a str),
    /// Something that can pass holds it back.
    Waiting(&'a str),
    /// We or the server refused it.
    Refused(&'a str),
    /// Its rollout failed.
    Failed(&'a str),
}

/// Returns `deployment.apps/web created (shop)`, or `deployment.apps/web (shop) waiting: …`, with
/// its line end.
pub(crate) fn progress_line(id: &ObjectId, outcome: ApplyLine<'_>, palette: Palette) -> String {
    let (word, style) = match outcome {
        ApplyLine::Created => ("created", TextStyle::Added),
        ApplyLine::Configured | ApplyLine::Adopted(_) => ("configured", TextStyle::Changed),
        ApplyLine::Unchanged => ("unchanged", TextStyle::Faint),
        ApplyLine::Recreated => ("recreated", TextStyle::Changed),
        ApplyLine::Pruned => ("pruned", TextStyle::Removed),
        ApplyLine::Kept(_) => ("kept", TextStyle::Faint),
        ApplyLine::LeftAlone(_) => ("left alone", TextStyle::Faint),
        ApplyLine::Waiting(_) => ("waiting", TextStyle::Waiting),
        ApplyLine::Refused(_) => ("refused", TextStyle::Error),
        ApplyLine::Failed(_) => ("failed", TextStyle::Error),
    };
    let name = id.resource_name();
    let name = sanitize(&name);
    let word = palette.paint(style, word);
    let namespace_text = id.namespace().map(|namespace| format!(" ({namespace})")).unwrap_or_default();
    match outcome {
        ApplyLine::Kept(reason)
        | ApplyLine::LeftAlone(reason)
        | ApplyLine::Waiting(reason)
        | ApplyLine::Refused(reason)
        | ApplyLine::Failed(reason) => {
            let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("{name}{namespace_text} {word}: {}\n", sanitize(&reason))
        }
        ApplyLine::Adopted(owner) => {
            let owner = owner.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("{name} {word}{namespace_text}: adopted from {}\n", sanitize(&owner))
        }
        _ => format!("{name} {word}{namespace_text}\n"),
    }
}
