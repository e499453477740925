//! The results of a reading beside its findings: shown lines, places found again, and cut texts.

use std::sync::Arc;

use super::{read, read_text};
use crate::manifest::{MAX_MANIFEST_BYTES, clean, too_large};
use crate::object::Severity;

fn object(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
}

#[test]
fn objects_behind_a_fault_are_read_and_not_shown() {
    let reading = read_text(&[object("a"), "[\n".to_owned(), object("b")].join("---\n"));
    let names = |items: Vec<&crate::manifest::ManifestItem>| -> Vec<String> {
        items.iter().map(|item| item.name.clone()).collect()
    };
    assert_eq!(names(reading.items.iter().collect()), ["a", "b"]);
    assert_eq!(names(reading.readable_items().collect()), ["a"], "kubectl stops at the fault");
    assert!(!reading.understood);
}

#[test]
fn objects_of_wrong_types_are_held_and_not_shown() {
    let reading = read_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {a: 1}}\n");
    assert_eq!((reading.items.len(), reading.readable_items().count()), (1, 0));
    assert!(!reading.items[0].valid && reading.understood, "it is known which object this is");
}

#[test]
fn items_are_numbered_by_their_position() {
    let text = format!(
        "{}---\napiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {{name: b}}\n- metadata: {{name: c}}\n",
        object("a")
    );
    let file = Arc::from("a.yaml");
    let all = read(&file, text.as_bytes()).items;
    for (item, index) in all.iter().zip(0..) {
        assert_eq!(item.index, index);
    }
    assert_eq!(all.iter().map(|item| item.origin.line).collect::<Vec<_>>(), [1, 8, 9]);
}

#[test]
fn what_is_sent_lacks_what_the_server_writes() {
    let reading = read_text(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a, uid: x, generation: 1, finalizers: [b], ownerReferences: [], generateName: ''}
        status: {}
        data: {status: x, uid: z}
        ",
    );
    let sent = clean(reading.items[0].body.clone());
    let expected = serde_json::json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "finalizers": ["b"], "ownerReferences": [], "generateName": ""},
        "data": {"status": "x", "uid": "z"},
    });
    assert_eq!(sent, expected);
}

#[test]
fn a_line_is_shown_as_far_as_the_fault() {
    let shown = |before: usize| {
        let text =
            format!("{}data: {{a: {}, b: 1, c: {}}}\n", object("a"), "x".repeat(before), "y".repeat(900));
        let found = read_text(&text).diagnostics.remove(0);
        (found.origin.column as usize, found.excerpt.map(|excerpt| excerpt.chars().count()))
    };
    assert_eq!(shown(9), (25, Some(145)));
    assert_eq!(shown(900), (916, Some(1036)));
    assert_eq!(shown(5000), (5016, None), "a line of a machine is not for people");
}

#[test]
fn findings_are_counted_where_they_are_too_many() {
    let reading = read_text(&format!("{}data:\n{}", object("a"), "  a: x\n".repeat(301)));
    assert_eq!(reading.diagnostics.len(), 201);
    let last = &reading.diagnostics[200];
    assert_eq!(
        (last.code, last.message.as_str()),
        ("more-findings", "100 more findings in this file are not shown")
    );
    let booleans = read_text(&format!(
        "apiVersion: v1\nkind: T\nmetadata: {{name: a}}\na: [{}z: {{}}]\n",
        "y, ".repeat(300)
    ));
    assert!(booleans.diagnostics.iter().all(|found| found.severity == Severity::Warning));
    assert!(booleans.items[0].valid);
    let text = format!("apiVersion: v1\nkind: T\nmetadata: {{name: A}}\na: [{}z]\n", "y, ".repeat(300));
    let errors: Vec<_> =
        read_text(&text).diagnostics.into_iter().filter(crate::object::Diagnostic::is_error).collect();
    assert_eq!(errors[0].code, "bad-name", "the first error is not crowded out by warnings");
}

#[test]
fn what_is_missing_at_the_end_is_missed_in_the_last_line() {
    fn check(text: &str, expected: (u32, u32)) {
        let found = super::read(&std::sync::Arc::from("a.yaml"), text.as_bytes()).diagnostics;
        assert_eq!((found[0].origin.line, found[0].origin.column), expected, "{text:?}");
    }
    check("a: {", (1, 5));
    check("a: {\r\nb: [", (2, 5));
    check("a: {\n", (2, 1));
}

#[test]
fn places_are_found_through_merges_and_odd_keys_and_lists() {
    let positions = |text: &str| -> Vec<(u32, u32)> {
        read_text(text)
            .diagnostics
            .iter()
            .filter(|found| found.is_error())
            .map(|found| (found.origin.line, found.origin.column))
            .collect()
    };
    let merged = "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        x: &x {one: 1}
        y: &y {two: 2}
        data: {<<: [*x, *y], yes: 3, 0x10: 4}
        ";
    assert_eq!(positions(merged), [(4, 13), (5, 13), (6, 27), (6, 36)]);
    let listed = "
        apiVersion: v1
        kind: Pod
        metadata: {name: a}
        spec:
          containers:
          - name: a
          - &b
            args: [a, 1]
          - *b
        ";
    assert_eq!(positions(listed), [(8, 15), (8, 15)]);
}

#[test]
fn a_file_that_is_too_large_is_named_with_its_size() {
    let found = too_large(&Arc::from("a.yaml"), MAX_MANIFEST_BYTES + 1);
    assert_eq!(found.message, "the file has 16777217 bytes; manifests are read up to 16777216 bytes");
    assert_eq!((found.code, found.is_error()), ("file-too-large", true));
}
