//! Nothing of a Secret is shown, whatever is wrong with it or beside it.

use super::{account, read_text, unindented};

/// The word that stands for what must not be shown.
const WORD: &str = "hunter2";

/// Checks that something is said of the file, and that nothing of it holds the word.
#[track_caller]
fn check(text: &str) {
    let reading = read_text(text);
    assert!(unindented(text).contains(WORD) && !reading.diagnostics.is_empty(), "{text}");
    for found in &reading.diagnostics {
        let shown = format!("{} {:?} {:?}", found.message, found.hint, found.excerpt);
        assert!(!shown.contains(WORD), "{shown}");
        assert_eq!(found.excerpt, None, "a line is shown of {text}");
    }
    assert!(!account(&[("a.yaml", text)]).contains(WORD));
}

#[test]
fn not_where_it_does_not_parse() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n";
    for fault in [
        "  p: @hunter2",
        "  p: hunter2: x",
        "  p: *hunter2",
        "  p: &hunter2. x",
        "  p: !<hunter2 x",
        "  p: \"hunter2",
        "  p: \"hunter2\\d\"",
        "  p: [hunter2",
        "  p: {hunter2",
        "  p: `hunter2`",
        "  p: | hunter2",
        "  p: %hunter2",
        "  p: hunter2\n\tq: x",
        "  p: hunter2\n q: x",
        "  ? [hunter2]\n  : x",
        "  p: !!int hunter2",
        "  p: \"hunter2\u{1}\"",
        "  <<: hunter2",
    ] {
        check(&format!("{secret}{fault}\n"));
        check(&format!("stringData:\n{fault}\n"));
    }
}

#[test]
fn not_where_it_is_invalid() {
    for text in [
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {p: [hunter2]}\n",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: A}\nstringData: {p: hunter2}\n",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {p: hunter2, p: x}\n",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {q: !hunter2 x, p: hunter2}\n",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {p: hunter2, q: yes}\n",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: hunter2\n",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {password:hunter2}\n",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  password:hunter2: 1\n",
        "{apiVersion: v1, kind: Secret, metadata: {name: a, uid: x}, data: {p: hunter2}}\n",
        "apiVersion: v1\nkind: secret\nmetadata: {name: A}\ndata: {p: hunter2}\n",
        "{metadata: {name: a}, stringData: {p: hunter2}}\n",
        "{kind: Secret, metadata: {name: a}, data: {p: hunter2}}\n",
        "apiVersion: v1\nkind: SecretList\nitems: [{metadata: {name: A}, data: {p: hunter2}}]\n",
        "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret, metadata: {name: A}, data: {p: hunter2}}]\n",
    ] {
        check(text);
    }
}

#[test]
fn not_where_a_neighbour_in_its_line_is_wrong() {
    let secret = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"p":"hunter2"}}"#;
    let wrong = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"A"}}"#;
    for text in [
        format!("{secret}{wrong}\n"),
        format!("{wrong}{secret}\n"),
        format!("{secret}{{\"kind\": }}\n"),
        format!("{secret}{{}}\n"),
    ] {
        check(&text);
    }
}

#[test]
fn numbers_and_booleans_of_other_objects_are_named() {
    let text = |kind: &str| {
        format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: a}}\nspec: {{a: yes, b: 0123, c: 08}}\n")
    };
    let said = |kind: &str| -> Vec<String> {
        read_text(&text(kind)).diagnostics.into_iter().map(|found| found.message).collect()
    };
    let named = ["`yes` is read as true", "`0123` is read as 83", "`08` is read as 8"];
    for (message, part) in said("T").iter().zip(named) {
        assert!(message.ends_with(part), "{message}");
    }
    assert_eq!(said("Secret").len(), named.len());
    assert!(said("Secret").iter().all(|message| !message.contains('`')));
}
