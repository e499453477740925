//! The writer of a path, and the words about it.

use std::collections::HashMap;

use serde_json::Value;

use super::children::ChildIndex;
use super::cover::uncovered_paths;
use super::entry::{EntryNode, ManagedEntry};
use super::members::ReplacedMember;
use super::sole::solely_owned_part;
use super::{FieldPath, PathElement};
use crate::object::{canonical_json, count_text, text_at};

/// The name under which the API server keeps what was there before anybody's ownership was tracked.
const UNKNOWN_MANAGER: &str = "before-first-apply";

/// The number of writers that are named, and of fields of each: one that changed more is found by
/// these.
const MAX_NAMED_WRITERS: usize = 3;

/// The longest name of a field manager or a path that is reported, in bytes: keys of maps are of
/// any length.
const MAX_SHOWN_NAME_BYTES: usize = 160;

/// Somebody else who owns a path that we lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldWriter {
    /// Its field manager name.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// `scale`, `status` or empty.
    pub subresource: String,
    /// The time of its last change, in RFC 3339; empty where the server does not say.
    pub time: String,
    /// The path.
    pub path: FieldPath,
}

/// Returns the owner of each lost path now, by a live object's `metadata.managedFields`. The last
/// writer comes first: a path may have owners who agreed with its value long before it was lost.
///
/// A path that somebody removed is owned by nobody: then no writer is known.
pub fn lost_field_writers(managed_fields: &Value, lost: &[FieldPath], our_manager: &str) -> Vec<FieldWriter> {
    path_owners(managed_fields, lost, our_manager).into_iter().map(|(_, writer)| writer).collect()
}

/// Does the same as [`lost_field_writers`], each with the position of its path.
fn path_owners(managed_fields: &Value, lost: &[FieldPath], our_manager: &str) -> Vec<(usize, FieldWriter)> {
    let mut found = Vec::new();
    for entry in entries(managed_fields) {
        if is_ours(entry, our_manager) || text_at(entry, &["manager"]) == UNKNOWN_MANAGER {
            continue;
        }
        let text = entry.get("fieldsV1").map(canonical_json).unwrap_or_default();
        let Some(tree) = ManagedEntry::parse(&text) else { continue };
        let mut holder = PathOwner::of(tree.root());
        for (nth, path) in lost.iter().enumerate().filter(|(_, path)| holder.holds(path.elements())) {
            let writer = FieldWriter {
                manager: text_at(entry, &["manager"]).to_owned(),
                operation: text_at(entry, &["operation"]).to_owned(),
                subresource: text_at(entry, &["subresource"]).to_owned(),
                time: text_at(entry, &["time"]).to_owned(),
                path: path.clone(),
            };
            found.push((nth, writer));
        }
    }
    found.sort_by(|(_, a), (_, b)| b.time.cmp(&a.time));
    found
}

/// An entry that is asked for many paths: somebody may take all fields of an object at once.
struct PathOwner<'e> {
    root: EntryNode<'e>,
    /// The children of each node that a path led through.
    children: HashMap<usize, ChildIndex<'e>>,
}

impl<'e> PathOwner<'e> {
    fn of(root: EntryNode<'e>) -> Self {
        Self { root, children: HashMap::new() }
    }

    /// Returns whether it owns this path, something below it, or all that it lies in.
    fn holds(&mut self, path: &[PathElement]) -> bool {
        let mut node = self.root;
        for (depth, element) in path.iter().enumerate() {
            if depth > 0 && node.is_leaf() {
                return true;
            }
            let children = self.children.entry(node.index()).or_insert_with(|| ChildIndex::of(node));
            let Some(next) = children.step(element) else { return false };
            node = next;
        }
        true
    }
}

/// Returns who changed what, and when: `kubectl-edit changed .data.mode at 2026-01-02T00:00:00Z`;
/// none where nothing is known to have changed.
///
/// A member of a union that somebody replaced has no owner any more. The one of the other member
/// has replaced it: `kubectl-edit replaced .tmp.emptyDir by .tmp.hostPath at 2026-01-02T00:00:00Z`.
pub(crate) fn drift_words(
    managed_fields: &Value,
    drifted: DriftedPaths<'_>,
    our_manager: &str,
) -> Option<String> {
    let DriftedPaths { taken, replaced, rewritten } = drifted;
    let mut writers: Vec<WriterPaths> = Vec::new();
    let found = path_owners(managed_fields, taken, our_manager);
    let mut last: HashMap<usize, &FieldWriter> = HashMap::new();
    for (nth, writer) in &found {
        last.entry(*nth).or_insert(writer);
    }
    let replacements: Vec<OverwrittenMember<'_>> = replaced
        .iter()
        .filter_map(|one| {
            let by = lost_field_writers(managed_fields, &one.others, our_manager).into_iter().next()?;
            Some(OverwrittenMember { missing: &one.missing, by })
        })
        .collect();
    for (nth, path) in taken.iter().enumerate() {
        let is_within = |one: &&OverwrittenMember<'_>| path.elements().starts_with(one.missing.elements());
        match (last.get(&nth), replacements.iter().find(is_within)) {
            (Some(writer), _) => WriterPaths::note(&mut writers, WriterPaths::of(writer), path),
            (None, Some(one)) => one.note(&mut writers),
            (None, None) => WriterPaths::note(&mut writers, WriterPaths::nobody(), path),
        }
    }
    let own = entries(managed_fields).iter().find(|entry| is_ours(entry, our_manager));
    let time = own.map(|own| text_at(own, &["time"])).unwrap_or_default();
    for path in rewritten {
        WriterPaths::note(&mut writers, WriterPaths::with_our_field_manager(our_manager, time), path);
    }
    let mut words: Vec<String> =
        writers.iter().take(MAX_NAMED_WRITERS).map(WriterPaths::description).collect();
    match writers.len().saturating_sub(MAX_NAMED_WRITERS) {
        0 => {}
        more => words.push(format!("{} changed others", count_text(more, "more writer"))),
    }
    (!words.is_empty()).then(|| words.join("; "))
}

/// The paths of an object at which it is not as its content asks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DriftedPaths<'a> {
    /// The paths that left our entry.
    pub taken: &'a [FieldPath],
    /// The members of unions among them that somebody set others in the place of.
    pub replaced: &'a [ReplacedMember],
    /// The paths that are still ours with other values, which somebody put there under our name.
    pub rewritten: &'a [FieldPath],
}

/// A member of ours, and the writer of the one in its place.
struct OverwrittenMember<'a> {
    missing: &'a FieldPath,
    by: FieldWriter,
}

impl OverwrittenMember<'_> {
    fn note(&self, writers: &mut Vec<WriterPaths>) {
        let writer = WriterPaths { action: "replaced", ..WriterPaths::of(&self.by) };
        let path = format!("{} by {}", cut(&self.missing.to_string()), cut(&self.by.path.to_string()));
        writer.note_text(writers, path);
    }
}

/// The managers of Kubernetes itself: what they fill in is no change of anybody's.
const CONTROL_PLANE_MANAGERS: [&str; 3] = ["kube-controller-manager", "kube-scheduler", "kubelet"];

/// Returns whether what an entry of `managedFields` holds is known to be a person's or a tool's.
/// The control plane, its autoscalers and who wrote before ownership was tracked are none.
pub(crate) fn has_known_writer(entry: &Value) -> bool {
    let manager = text_at(entry, &["manager"]);
    !manager.is_empty()
        && manager != UNKNOWN_MANAGER
        && !CONTROL_PLANE_MANAGERS.contains(&manager)
        && text_at(entry, &["subresource"]).is_empty()
}

/// Returns who else has written to an object since our last apply, and which fields, by the object
/// alone; none where nobody did.
///
/// The status does not count. A field that somebody removed leaves no trace.
pub(crate) fn later_writers(object: &Value, our_managers: [&str; 2]) -> Option<String> {
    let [our_manager, our_commands] = our_managers;
    let all = object.pointer("/metadata/managedFields")?;
    let text = |entry: &Value| entry.get("fieldsV1").map(canonical_json).unwrap_or_default();
    let own = entries(all).iter().find(|entry| is_ours(entry, our_manager))?;
    let since = text_at(own, &["time"]);
    let is_later = |entry: &&Value| {
        let manager = text_at(entry, &["manager"]);
        !is_ours(entry, our_manager)
            && manager != our_commands
            && !CONTROL_PLANE_MANAGERS.contains(&manager)
            && text_at(entry, &["subresource"]) != "status"
            && text_at(entry, &["time"]) >= since
    };
    let ours = text(own);
    let others: Vec<String> = entries(all).iter().filter(is_later).map(text).collect();
    let mut known = vec![ours.as_str()];
    let mut taken = Vec::new();
    for entry in &others {
        // A field that several have written counts once.
        let part = solely_owned_part(object, entry, &known);
        taken.extend(uncovered_paths(&part, Some(&ours)));
        known.push(entry);
    }
    drift_words(all, DriftedPaths { taken: &taken, ..DriftedPaths::default() }, our_manager)
}

fn entries(managed_fields: &Value) -> &[Value] {
    managed_fields.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns whether it is the entry of our own applies. Under our name there may be others, which
/// are somebody else's.
fn is_ours(entry: &Value, our_manager: &str) -> bool {
    text_at(entry, &["manager"]) == our_manager
        && text_at(entry, &["operation"]) == "Apply"
        && text_at(entry, &["subresource"]).is_empty()
}

#[derive(PartialEq, Eq)]
struct WriterPaths {
    name: String,
    action: &'static str,
    time: String,
    paths: Vec<String>,
}

impl WriterPaths {
    fn of(writer: &FieldWriter) -> Self {
        let through = match &*writer.subresource {
            "" => String::new(),
            subresource => format!(" ({})", cut(subresource)),
        };
        let name = format!("{}{through}", cut(&writer.manager));
        Self { name, action: "changed", time: cut(&writer.time), paths: Vec::new() }
    }

    fn nobody() -> Self {
        Self { name: "somebody".to_owned(), action: "removed", time: String::new(), paths: Vec::new() }
    }

    fn with_our_field_manager(our_manager: &str, time: &str) -> Self {
        let name = format!("another client with the field manager {our_manager}");
        Self { name, action: "changed", time: cut(time), paths: Vec::new() }
    }

    fn note(writers: &mut Vec<Self>, writer: Self, path: &FieldPath) {
        writer.note_text(writers, cut(&path.to_string()));
    }

    /// Adds a path to what this writer did; the paths of one member in turn count once.
    fn note_text(self, writers: &mut Vec<Self>, path: String) {
        let is_same = |known: &&mut Self| {
            [&*known.name, known.action, &*known.time] == [&*self.name, self.action, &*self.time]
        };
        match writers.iter_mut().find(is_same) {
            Some(known) if known.paths.last() == Some(&path) => {}
            Some(known) => known.paths.push(path),
            None => writers.push(Self { paths: vec![path], ..self }),
        }
    }

    fn description(&self) -> String {
        let mut paths = self.paths.get(..MAX_NAMED_WRITERS).unwrap_or(&self.paths).join(", ");
        match self.paths.len().saturating_sub(MAX_NAMED_WRITERS) {
            0 => {}
            more => paths = format!("{paths} and {more} more"),
        }
        let at = if self.time.is_empty() { String::new() } else { format!(" at {}", self.time) };
        format!("{} {} {paths}{at}", self.name, self.action)
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().map(|(at, _)| at).take_while(|at| *at <= MAX_SHOWN_NAME_BYTES).last() {
        Some(end) if text.len() > MAX_SHOWN_NAME_BYTES => {
            format!("{}...", text.get(..end).unwrap_or_default())
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_wrote_is_reported_with_the_fields_and_the_time_and_never_at_length() {
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
                |keys: &[&str]| keys.iter().map(|key| FieldPath::of_keys(&["data", key])).collect::<Vec<_>>();
            let (taken, rewritten) = (paths(taken), paths(rewritten));
            let drifted = DriftedPaths { taken: &taken, rewritten: &rewritten, replaced: &[] };
            let words = drift_words(&managed, drifted, "rhumb");
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

    #[test]
    fn who_sets_the_other_member_of_a_union_has_replaced_ours() {
        let entry = |manager: &str, time: &str, fields: Value| json!({"manager": manager, "operation": "Update", "time": time, "fieldsV1": {"f:spec": fields}});
        let managed = json!([
            entry("old", "2026-01-01T00:00:00Z", json!({"f:exec": {"f:command": {}}})),
            entry("edit", "2026-01-02T00:00:00Z", json!({"f:exec": {"f:command": {}}, "f:more": {}})),
        ]);
        let path = |keys: &[&str]| FieldPath::of_keys(&[&["spec"], keys].concat());
        let check = |taken: &[&[&str]], other: &str, expected: &str| {
            let taken: Vec<FieldPath> = taken.iter().map(|keys| path(keys)).collect();
            let replaced = [ReplacedMember { missing: path(&["httpGet"]), others: vec![path(&[other])] }];
            let drifted = DriftedPaths { taken: &taken, replaced: &replaced, ..DriftedPaths::default() };
            assert_eq!(drift_words(&managed, drifted, "rhumb").as_deref(), Some(expected));
        };
        let replaced = "edit replaced .spec.httpGet by .spec.exec at 2026-01-02T00:00:00Z";
        check(&[&["httpGet", "path"], &["httpGet", "port"]], "exec", replaced);
        let changed = "edit changed .spec.more at 2026-01-02T00:00:00Z";
        check(&[&["httpGet"], &["more"]], "exec", &format!("{replaced}; {changed}"));
        check(&[&["gone"]], "exec", "somebody removed .spec.gone");
        check(&[&["httpGet"]], "nobodys", "somebody removed .spec.httpGet");
    }

    #[test]
    fn who_wrote_later_is_known_by_the_object_alone() {
        #[track_caller]
        fn check(manager: &str, subresource: &str, time: &str, fields: Value, expected: Option<&str>) {
            let object = json!({"data": {"a": "1", "b": "2", "c": "3"}, "status": {"a": "1"}, "metadata": {"managedFields": [
                {"manager": "rhumb", "operation": "Apply", "time": "2026-01-02T00:00:00Z",
                    "fieldsV1": {"f:data": {"f:a": {}}}},
                {"manager": "edit", "operation": "Update", "time": "2026-01-03T00:00:00Z",
                    "fieldsV1": {"f:data": {"f:c": {}}}},
                {"manager": manager, "operation": "Update", "subresource": subresource, "time": time, "fieldsV1": fields},
            ]}});
            let edit = "edit changed .data.c at 2026-01-03T00:00:00Z";
            let expected = expected.map_or_else(|| edit.to_owned(), |words| format!("{edit}; {words}"));
            assert_eq!(
                later_writers(&object, ["rhumb", "rhumb-cli"]),
                Some(expected),
                "{manager} {subresource} {time}"
            );
        }
        let [before, now, later] = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-04T00:00:00Z"];
        let b = || json!({"f:data": {"f:b": {}}});
        check("scale", "scale", later, b(), Some("scale (scale) changed .data.b at 2026-01-04T00:00:00Z"));
        check("same", "", now, b(), Some("same changed .data.b at 2026-01-02T00:00:00Z"));
        check("old", "", before, b(), None);
        check("status", "status", later, b(), None);
        check("kube-controller-manager", "", later, b(), None);
        check("rhumb-cli", "", later, b(), None);
        // It agrees with what is ours.
        check("agreed", "", later, json!({"f:data": {"f:a": {}}}), None);
        let nobody = json!({"data": {"a": "1"}, "metadata": {"managedFields": []}});
        assert_eq!(later_writers(&nobody, ["rhumb", "rhumb-cli"]), None);
    }
}
