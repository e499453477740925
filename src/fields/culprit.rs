//! Who took a path, and in which words that is told.

use std::collections::HashMap;

use serde_json::Value;

use super::entry::{Entry, Node};
use super::kids::Kids;
use super::{Element, Path};
use crate::object::{canonical_json, text_at};

/// The name under which the API server keeps what was there before anybody's ownership was tracked.
const NOBODY: &str = "before-first-apply";

/// So many writers are named, and so many fields of each: one that changed more is found by these.
const NAMED: usize = 3;

/// The longest name of a field manager or a path that is told, in bytes: keys of maps are of any length.
const LONGEST: usize = 160;

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
    holders(managed_fields, lost, our_manager).into_iter().map(|(_, culprit)| culprit).collect()
}

/// As [`culprits`], each with the position of its path.
fn holders(managed_fields: &Value, lost: &[Path], our_manager: &str) -> Vec<(usize, Culprit)> {
    let mut found = Vec::new();
    for entry in entries(managed_fields) {
        if is_ours(entry, our_manager) || text_at(entry, &["manager"]) == NOBODY {
            continue;
        }
        let text = entry.get("fieldsV1").map(canonical_json).unwrap_or_default();
        let Some(tree) = Entry::parse(&text) else { continue };
        let mut holder = Holder::of(tree.root());
        for (nth, path) in lost.iter().enumerate().filter(|(_, path)| holder.holds(path.elements())) {
            let culprit = Culprit {
                manager: text_at(entry, &["manager"]).to_owned(),
                operation: text_at(entry, &["operation"]).to_owned(),
                subresource: text_at(entry, &["subresource"]).to_owned(),
                time: text_at(entry, &["time"]).to_owned(),
                path: path.clone(),
            };
            found.push((nth, culprit));
        }
    }
    found.sort_by(|(_, a), (_, b)| b.time.cmp(&a.time));
    found
}

/// An entry that is asked for many paths: somebody may take all fields of an object at once.
struct Holder<'e> {
    root: Node<'e>,
    /// The children of each node that a path led through.
    kids: HashMap<usize, Kids<'e>>,
}

impl<'e> Holder<'e> {
    fn of(root: Node<'e>) -> Self {
        Self { root, kids: HashMap::new() }
    }

    /// Whether it owns this path, something below it, or all that it lies in.
    fn holds(&mut self, path: &[Element]) -> bool {
        let mut node = self.root;
        for (depth, element) in path.iter().enumerate() {
            if depth > 0 && node.is_leaf() {
                return true;
            }
            let kids = self.kids.entry(node.index()).or_insert_with(|| Kids::of(node));
            let Some(next) = kids.step(element) else { return false };
            node = next;
        }
        true
    }
}

/// Tells who changed what, and when: `kubectl-edit changed .data.mode at 2026-01-02T00:00:00Z`; none where nothing is
/// known to have changed.
///
/// `taken` are the paths that left our entry; `rewritten` are those that are still ours with other values, which
/// somebody put there under our name.
pub fn drift_words(
    managed_fields: &Value,
    taken: &[Path],
    rewritten: &[Path],
    our_manager: &str,
) -> Option<String> {
    let mut writers: Vec<Writer> = Vec::new();
    let found = holders(managed_fields, taken, our_manager);
    let mut last: HashMap<usize, &Culprit> = HashMap::new();
    for (nth, culprit) in &found {
        last.entry(*nth).or_insert(culprit);
    }
    for (nth, path) in taken.iter().enumerate() {
        match last.get(&nth) {
            Some(culprit) => Writer::note(&mut writers, Writer::of(culprit), path),
            None => Writer::note(&mut writers, Writer::nobody(), path),
        }
    }
    let own = entries(managed_fields).iter().find(|entry| is_ours(entry, our_manager));
    let time = own.map(|own| text_at(own, &["time"])).unwrap_or_default();
    for path in rewritten {
        Writer::note(&mut writers, Writer::under_our_name(our_manager, time), path);
    }
    let mut words: Vec<String> = writers.iter().take(NAMED).map(Writer::words).collect();
    match writers.len().saturating_sub(NAMED) {
        0 => {}
        more => words.push(format!("{more} more writers changed others")),
    }
    (!words.is_empty()).then(|| words.join("; "))
}

fn entries(managed_fields: &Value) -> &[Value] {
    managed_fields.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Whether it is the entry of our own applies. Under our name there may be others, which are somebody else's.
fn is_ours(entry: &Value, our_manager: &str) -> bool {
    text_at(entry, &["manager"]) == our_manager
        && text_at(entry, &["operation"]) == "Apply"
        && text_at(entry, &["subresource"]).is_empty()
}

#[derive(PartialEq, Eq)]
struct Writer {
    name: String,
    deed: &'static str,
    time: String,
    paths: Vec<String>,
}

impl Writer {
    fn of(culprit: &Culprit) -> Self {
        let through = match &*culprit.subresource {
            "" => String::new(),
            subresource => format!(" ({})", cut(subresource)),
        };
        let name = format!("{}{through}", cut(&culprit.manager));
        Self { name, deed: "changed", time: cut(&culprit.time), paths: Vec::new() }
    }

    fn nobody() -> Self {
        Self { name: "somebody".to_owned(), deed: "removed", time: String::new(), paths: Vec::new() }
    }

    fn under_our_name(our_manager: &str, time: &str) -> Self {
        let name = format!("another client with the field manager {our_manager}");
        Self { name, deed: "changed", time: cut(time), paths: Vec::new() }
    }

    fn note(writers: &mut Vec<Self>, writer: Self, path: &Path) {
        let path = cut(&path.to_string());
        let known = writers.iter_mut().find(|known| known.name == writer.name && known.time == writer.time);
        match known {
            Some(known) => known.paths.push(path),
            None => writers.push(Self { paths: vec![path], ..writer }),
        }
    }

    fn words(&self) -> String {
        let mut paths = self.paths.get(..NAMED).unwrap_or(&self.paths).join(", ");
        match self.paths.len().saturating_sub(NAMED) {
            0 => {}
            more => paths = format!("{paths} and {more} more"),
        }
        let at = if self.time.is_empty() { String::new() } else { format!(" at {}", self.time) };
        format!("{} {} {paths}{at}", self.name, self.deed)
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().map(|(at, _)| at).take_while(|at| *at <= LONGEST).last() {
        Some(end) if text.len() > LONGEST => format!("{}...", text.get(..end).unwrap_or_default()),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_wrote_is_told_with_the_fields_and_the_time_and_never_at_length() {
        #[track_caller]
        fn check(taken: &[&str], rewritten: &[&str], expected: &str) {
            let managed = json!([
                {"manager": "rhumb", "operation": "Apply", "time": "2026-01-01T00:00:00Z",
                    "fieldsV1": {"f:data": {"f:own": {}}}},
                {"manager": "rhumb", "operation": "Update", "time": "2026-01-02T00:00:00Z",
                    "fieldsV1": {"f:data": {"f:edited": {}}}},
                {"manager": "kubectl-edit", "operation": "Update", "time": "2026-01-03T00:00:00Z",
                    "fieldsV1": {"f:data": {"f:a": {}, "f:b": {}, "f:c": {}, "f:d": {}}}},
                {"manager": "hpa", "operation": "Update", "subresource": "scale", "time": "2026-01-04T00:00:00Z",
                    "fieldsV1": {"f:data": {"f:count": {}}}},
            ]);
            let paths =
                |keys: &[&str]| keys.iter().map(|key| Path::of_keys(&["data", key])).collect::<Vec<_>>();
            let words = drift_words(&managed, &paths(taken), &paths(rewritten), "rhumb");
            assert_eq!(words.as_deref().unwrap_or_default(), expected);
        }
        check(&[], &[], "");
        check(&["a"], &[], "kubectl-edit changed .data.a at 2026-01-03T00:00:00Z");
        check(
            &["a", "b", "c", "d"],
            &[],
            "kubectl-edit changed .data.a, .data.b, .data.c and 1 more at 2026-01-03T00:00:00Z",
        );
        check(&["count"], &[], "hpa (scale) changed .data.count at 2026-01-04T00:00:00Z");
        check(&["gone"], &[], "somebody removed .data.gone");
        check(&["edited"], &[], "rhumb changed .data.edited at 2026-01-02T00:00:00Z");
        let forged = "another client with the field manager rhumb changed .data.own at 2026-01-01T00:00:00Z";
        check(&[], &["own"], forged);
        check(&["a"], &["own"], &format!("kubectl-edit changed .data.a at 2026-01-03T00:00:00Z; {forged}"));
        let long = "ü".repeat(5_000);
        check(&[&long], &[], &format!("somebody removed {}...", &format!(".data[\"{long}")[..159]));
    }
}
