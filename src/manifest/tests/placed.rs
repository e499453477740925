//! Values with their places.

use std::sync::Arc;

use serde_json::json;

use crate::manifest::placed::PlacedFile;
use crate::manifest::{
    EntryOrigin, PlacedValue, ScalarStyle, TextPosition, read_documents, read_first_document,
    read_first_document_own_first, yaml_documents,
};
use crate::object::Diagnostic;

fn all(text: &str) -> PlacedFile {
    read_documents(&Arc::from("file.yaml"), text.as_bytes())
}

fn entry<'a>(value: &'a PlacedValue, key: &str) -> (&'a PlacedValue, TextPosition) {
    let entry =
        value.entries().iter().find(|entry| entry.key == key).unwrap_or_else(|| panic!("{key} in {value:?}"));
    (&entry.value, entry.position)
}

#[track_caller]
fn check_place(value: &PlacedValue, line: u32, column: u32) {
    assert_eq!(value.position, TextPosition { line, column });
}

#[test]
fn each_part_of_a_value_has_its_place() {
    let file =
        all("# first\nlist:\n- a\n- {b: c}\nshared: &s {x: 1}\nalias: *s\nmerged:\n  <<: *s\n  z: 2\n");
    let [document] = file.documents.as_slice() else { panic!("one document") };
    check_place(document, 2, 1);
    let (list, key) = entry(document, "list");
    assert_eq!(key, TextPosition { line: 2, column: 1 });
    check_place(&list.items()[0], 3, 3);
    check_place(entry(&list.items()[1], "b").0, 4, 7);
    // An alias is where it is written, and what it stands for where that is.
    let (alias, _) = entry(document, "alias");
    check_place(alias, 6, 8);
    check_place(entry(alias, "x").0, 5, 16);
    let (merged, _) = entry(document, "merged");
    check_place(entry(merged, "x").0, 5, 16);
    check_place(entry(merged, "z").0, 9, 6);
    assert_eq!(merged.to_value(), json!({"x": 1, "z": 2}));
    assert_eq!(document.clone().into_value(), document.to_value());
}

#[test]
fn an_alias_names_the_place_of_what_it_stands_for_and_a_merged_key_the_way_it_came() {
    let text = "one: &t yes\nlist: [*t]\na: &a {x: *t}\nb: &b\n  <<: [*a]\n  w: 1\nc:\n  <<: [*b]\nd: {<<: *b, z: 1}\n";
    let file = all(text);
    let [document] = file.documents.as_slice() else { panic!("one document") };
    let item = &entry(document, "list").0.items()[0];
    check_place(item, 2, 8);
    let at = |line, column| TextPosition { line, column };
    assert_eq!(
        (item.target, item.style, entry(document, "one").0.target),
        (at(1, 9), ScalarStyle::Plain, at(1, 9))
    );
    let check = |mapping: &str, key: &str, origin: EntryOrigin, position: TextPosition| {
        let found = entry(document, mapping).0.entries().iter().find(|entry| entry.key == key).unwrap();
        assert_eq!((found.origin, found.position), (origin, position), "{mapping}.{key}");
    };
    check("a", "x", EntryOrigin::Own, at(3, 8));
    check("b", "x", EntryOrigin::MergedValue, at(3, 8));
    check("b", "w", EntryOrigin::Own, at(6, 3));
    // Through another mapping that is merged.
    check("c", "x", EntryOrigin::MergedValue, at(3, 8));
    check("c", "w", EntryOrigin::MergedValue, at(6, 3));
    check("d", "x", EntryOrigin::MergedAlias, at(3, 8));
    check("d", "z", EntryOrigin::Own, at(9, 13));
}

#[test]
fn own_keys_win_over_merged_ones_for_a_reader_that_says_so() {
    let text = "a: &a {x: 1, w: 1}\nb: &b\n  x: 2\n  <<: *a\nc:\n  <<: [*b]\n";
    let check = |file: PlacedFile, expected: serde_json::Value| {
        for mapping in ["b", "c"] {
            assert_eq!(entry(&file.documents[0], mapping).0.to_value(), expected, "{mapping}");
        }
    };
    let name = Arc::from("file.yaml");
    check(read_first_document(&name, text.as_bytes()), json!({"x": 1, "w": 1}));
    check(read_first_document_own_first(&name, text.as_bytes()), json!({"x": 2, "w": 1}));
}

#[test]
fn a_text_that_ends_inside_a_collection_is_refused() {
    for text in
        ["{\"a\":\"b\",", "{a: b,", "{a: {b: c,", "[{a: b,", "[{a", "[{? a", "[a: b", "{a: [", "- {a: b,"]
    {
        let fault = yaml_documents(text).err().unwrap_or_else(|| panic!("{text}"));
        assert_eq!(fault.code, "yaml-syntax", "{text}");
    }
}

#[test]
fn one_document_is_read_or_all() {
    let text = "---\n# nothing\n---\na: 1\n---\nb: 2\n";
    let values = |file: PlacedFile| file.documents.iter().map(PlacedValue::to_value).collect::<Vec<_>>();
    assert_eq!(values(all(text)), [json!({"a": 1}), json!({"b": 2})]);
    let first = |text: &str| values(read_first_document(&Arc::from("file.yaml"), text.as_bytes()));
    assert_eq!(first("a: 1\n---\nb: 2\n"), [json!({"a": 1})]);
    assert_eq!(first("# nothing\n"), Vec::<serde_json::Value>::new());
    assert_eq!(values(all("{\"a\": 1} {\"b\": 2}")), [json!({"a": 1}), json!({"b": 2})]);
}

#[test]
fn text_that_nothing_reads_is_refused_where_all_documents_are_asked_for() {
    let errors = |file: &PlacedFile| {
        let errors = file.diagnostics.iter().filter(|found| found.is_error());
        errors.map(|found| format!("{}: {}", found.origin, found.code)).collect::<Vec<_>>()
    };
    let check = |text: &str, expected: &[&str]| assert_eq!(errors(&all(text)), expected, "{text}");
    check("a: 1\n...\nb: 2\n", &["file.yaml:3: unread"]);
    check("a: 1\n---\nb: 2\n...\nc: 3\n---\nd: 4\n", &["file.yaml:5: unread"]);
    check("a: 1\n...\n# nothing\n---\nb: 2\n...\n", &[]);
    let many = "# nothing\n---\n".repeat(100_001);
    assert_eq!(errors(&all(&many)), ["file.yaml: too-many-documents"]);
    let first = read_first_document(&Arc::from("file.yaml"), b"a: 1\n...\nb: 2\n");
    assert_eq!((first.documents.len(), errors(&first)), (1, Vec::new()));
}

#[test]
fn a_separator_at_the_end_begins_no_document_for_any_reader() {
    let has_error = |found: &[Diagnostic]| found.iter().any(Diagnostic::is_error);
    for (count, is_refused) in [(100_000, false), (100_001, true)] {
        let text = "# nothing\n---\n".repeat(count);
        assert_eq!(has_error(&all(&text).diagnostics), is_refused, "{count}");
        let manifest = crate::manifest::read(&Arc::from("file.yaml"), text.as_bytes());
        assert_eq!(has_error(&manifest.diagnostics), is_refused, "{count}");
        assert_eq!(yaml_documents(&text).is_err(), is_refused, "{count}");
    }
}

#[test]
fn a_fault_names_its_place_and_shows_no_line() {
    let file = all("token: hunter2\nlist: [\n");
    assert_eq!(file.documents, []);
    let [found] = file.diagnostics.as_slice() else { panic!("one finding: {:?}", file.diagnostics) };
    assert!(found.is_error() && found.origin.line > 0);
    assert_eq!(found.excerpt, None);
    assert!(!format!("{found:?}").contains("hunter2"));
}

#[test]
fn what_would_exhaust_a_reader_is_bounded() {
    // Deeper than places go, and not so deep that another reader gives up.
    let deep = "[".repeat(100) + &"]".repeat(100);
    let file = all(&deep);
    assert_eq!(file.documents[0].to_value(), serde_json::from_str::<serde_json::Value>(&deep).unwrap());
    for text in ["[".repeat(100_000), format!("a: &a {}\nb: [{}]\n", "x".repeat(4000), "*a,".repeat(4000))] {
        let file = all(&text);
        assert!(file.documents.is_empty() && file.diagnostics.iter().any(Diagnostic::is_error));
    }
}
