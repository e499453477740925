//! YAML that people read, and that reads back as the same tree.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::write_yaml;
use crate::manifest;

#[test]
fn trees_are_written_as_kubectl_writes_them() {
    let value = json!({"data": {"app.conf": "a = 1\nb = 2\n", "mode": "0644", "on": "on", "empty": "", "n": 420,
        "f": 0.5, "nothing": null, "yes": true, "list": [{"name": "a", "args": ["-x", "--y=z"]}, [["deep"]], {}],
        "none": {}, "address": "10.0.0.1", "port": "8080", "image": "web:1.2@sha256:ab", "url": "http://x/y?z=1"}});
    let expected = "\
data:
  address: 10.0.0.1
  app.conf: |
    a = 1
    b = 2
  empty: ''
  f: 0.5
  image: web:1.2@sha256:ab
  list:
  - args:
    - -x
    - --y=z
    name: a
  - - - deep
  - {}
  mode: '0644'
  'n': 420
  none: {}
  nothing: null
  'on': 'on'
  port: '8080'
  url: http://x/y?z=1
  'yes': true
";
    assert_eq!(write_yaml(&value), expected);
    assert_eq!(write_yaml(&Value::Null), "");
    assert_eq!(write_yaml(&json!("x")), "x\n");
    assert_eq!(write_yaml(&json!([])), "[]\n");
}

#[test]
fn texts_of_several_lines_stay_several_lines() {
    fn check(text: &str, expected: &str) {
        assert_eq!(write_yaml(&json!({ "k": text })), expected);
    }
    check("a\nb", "k: |-\n  a\n  b\n");
    check("a \n\n b\n", "k: |\n  a \n\n   b\n");
    check("a\n\n", "k: |+\n  a\n\n");
    check(" a\nb", "k: |2-\n   a\n  b\n");
    check("\na\n", "k: |2\n\n  a\n");
    check("a\r\n b\r\n", "k: \"a\\r\\n\\\n  \\ b\\r\\n\"\n");
    check("\n", "k: \"\\n\"\n");
    check("a\u{1b}[31m\nb", "k: \"a\\x1b[31m\\n\\\n  b\"\n");
    check("a\u{202e}b", "k: \"a\\u202eb\"\n");
    check("tab\there", "k: \"tab\\there\"\n");
}

#[test]
fn texts_that_some_reader_takes_for_something_else_are_quoted() {
    let texts = [
        "y",
        "N",
        "Yes",
        "OFF",
        "~",
        "null",
        "Null",
        "0",
        "-1",
        "+1",
        "1_000",
        "0x1F",
        "0o17",
        "0b11",
        "017",
        "1e3",
        ".5",
        "5.",
        ".inf",
        "-.INF",
        ".NaN",
        "12:30",
        "1:2:3.5",
        "2026-01-02",
        "2026-1-2T00:00:00Z",
        "<<",
        "=",
        "- a",
        "-",
        "a: b",
        "a:",
        "a #b",
        "#a",
        "&a",
        "*a",
        "!a",
        "|",
        ">",
        "%a",
        "@a",
        "`a",
        "[a",
        "{a",
        "a ",
        " a",
        "?",
        "? a",
        ",",
        "'",
        "\"",
        "---",
        "...",
        "inf",
    ];
    for text in texts {
        let written = write_yaml(&json!({ "k": text }));
        assert!(
            written.starts_with("k: '") || written.starts_with("k: \""),
            "{text:?} is written {written:?}"
        );
    }
    for text in
        ["a:b", "a#b", "v1", "1.2.3", "10.0.0.0/8", "-x", "--y=z", "5m", "100m", "1Gi", "$(A)", "(a)", "é"]
    {
        assert_eq!(write_yaml(&json!({ "k": text })), format!("k: {text}\n"));
    }
}

#[test]
fn a_key_that_is_too_long_for_its_line_is_written_with_a_mark() {
    fn check(key: &str, value: &Value, expected: &str) {
        let tree = json!({ key: value });
        let written = write_yaml(&tree);
        assert_eq!(written.replace(key, "KEY"), expected);
        let object = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}, "spec": tree,
            "then": [tree, [tree], {"on": tree, "x": 1}]});
        let written = write_yaml(&object);
        assert_eq!(serde_yaml::from_str::<Value>(&written).unwrap(), object, "{written}");
        let read = manifest::read(&"a.yaml".into(), written.as_bytes());
        let bodies: Vec<&Value> = read.items.iter().map(|item| &item.body).collect();
        assert_eq!(bodies, [&object], "{written}");
    }
    let (fits, long) = ("k".repeat(1024), "k".repeat(1025));
    check(&fits, &json!("v"), "KEY: v\n");
    check(&long, &json!("v"), "? KEY\n: v\n");
    check(&long, &json!(null), "? KEY\n: null\n");
    check(&long, &json!([]), "? KEY\n: []\n");
    check(&long, &json!("a\nb\n"), "? KEY\n: |\n  a\n  b\n");
    check(&long, &json!({"a": {"b": 1}, "c": 2}), "? KEY\n:\n  a:\n    b: 1\n  c: 2\n");
    check(&long, &json!([1, {"a": 2, "b": [3]}]), "? KEY\n:\n- 1\n- a: 2\n  b:\n  - 3\n");
    // The quotes count, and so does what is written for a character.
    check(&" ".repeat(1022), &json!("v"), "'KEY': v\n");
    check(&" ".repeat(1023), &json!("v"), "? 'KEY'\n: v\n");
    let escapes = write_yaml(&json!({ "\u{1b}".repeat(256): "v" }));
    assert_eq!(escapes, format!("? \"{}\"\n: v\n", "\\x1b".repeat(256)));
    check(&"é".repeat(512), &json!("v"), "KEY: v\n");
    check(&"é".repeat(513), &json!("v"), "? KEY\n: v\n");
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9:#. \\-\\n\\t'\"\\\\]{0,12}",
        "[ \\n\\tab]{0,8}",
        "\\PC{0,6}",
        ".{0,6}",
        "[0-9+\\-._:eExob]{1,6}",
    ]
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 30, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_written_reads_back(tree in tree().prop_filter("null is nothing", |tree| !tree.is_null())) {
        let written = write_yaml(&tree);
        prop_assert!(written.ends_with('\n'));
        let read: Value = serde_yaml::from_str(&written).map_err(|e| TestCaseError::fail(format!("{e}\n{written}")))?;
        prop_assert_eq!(read, tree, "{}", written);
    }
}
