//! Who took a path.

use serde_json::Value;

use super::Path;
use super::cover::holds;
use super::entry::Entry;
use crate::object::{canonical_json, text_at};

/// The name under which the API server keeps what was there before anybody's ownership was tracked.
const NOBODY: &str = "before-first-apply";

/// Somebody else who owns a path that we lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// Its field manager name.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// `scale`, `status` or empty.
    pub subresource: String,
    /// When it last changed what it owns, in RFC 3339; empty where the server does not say.
    pub time: String,
    /// The path.
    pub path: Path,
}

/// Names who owns each lost path now, by a live object's `metadata.managedFields`; the last writer first, for a
/// path may have owners who agreed with its value long before it was lost.
///
/// A path that somebody removed is owned by nobody: then no culprit is known.
pub fn culprits(managed_fields: &Value, lost: &[Path], our_manager: &str) -> Vec<Culprit> {
    let entries = managed_fields.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut found = Vec::new();
    for entry in entries {
        if [our_manager, NOBODY].contains(&text_at(entry, &["manager"])) {
            continue;
        }
        let text = entry.get("fieldsV1").map(canonical_json).unwrap_or_default();
        let Some(tree) = Entry::parse(&text) else { continue };
        for path in lost.iter().filter(|path| holds(tree.root(), path.elements())) {
            found.push(Culprit {
                manager: text_at(entry, &["manager"]).to_owned(),
                operation: text_at(entry, &["operation"]).to_owned(),
                subresource: text_at(entry, &["subresource"]).to_owned(),
                time: text_at(entry, &["time"]).to_owned(),
                path: path.clone(),
            });
        }
    }
    found.sort_by(|a, b| b.time.cmp(&a.time));
    found
}
