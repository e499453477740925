use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn yaml_is_laid_out_as_kubectl_does() {
    let layout = json!({
        "empty": {"list": [], "map": {}, "text": "", "nothing": null},
        "lists": [[1, [2]], [], {"a": {"b": 1}, "c": [1]}],
        "texts": ["a\nb", "a\nb\n", "a\n\nb\n\n", " a\nb"],
        "numbers": [420, -1, 0.5, 1e21],
    });
    assert_snapshot!(yaml(&layout), @r#"
    empty:
      list: []
      map: {}
      nothing: null
      text: ""
    lists:
    - - 1
      - - 2
    - []
    - a:
        b: 1
      c:
      - 1
    numbers:
    - 420
    - -1
    - 0.5
    - 1e+21
    texts:
    - |-
      a
      b
    - |
      a
      b
    - |+
      a

      b

    - " a\nb"
    "#);
}

#[test]
fn what_any_reader_could_mistake_is_quoted() {
    let value = json!({
        "plain": ["web:1", "100m", "a b", "/srv", "--flag=1", "-v", "k8s.io/name", "80%", "a (b)"],
        "quoted": ["-1", "---", "on", "Yes", "null", "0644", "1_000", "2024-01-01", "<<", "=", "- a", "a: b", "a #b", "a:", " a", "~"],
        "escaped": ["a\rb", "\u{1b}[31m\t", "\u{202e}", "\"\\", "é😀"],
        "a: b": {"on": 1},
    });
    assert_snapshot!(yaml(&value), @r#"
    "a: b":
      "on": 1
    escaped:
    - "a\rb"
    - "\u001b[31m\t"
    - "\u202e"
    - "\"\\"
    - "é😀"
    plain:
    - web:1
    - 100m
    - a b
    - /srv
    - --flag=1
    - -v
    - k8s.io/name
    - 80%
    - a (b)
    quoted:
    - "-1"
    - "---"
    - "on"
    - "Yes"
    - "null"
    - "0644"
    - "1_000"
    - "2024-01-01"
    - "<<"
    - "="
    - "- a"
    - "a: b"
    - "a #b"
    - "a:"
    - " a"
    - "~"
    "#);
    assert_eq!(yaml(&json!("on")), "\"on\"\n");
    assert_eq!(yaml(&json!({})), "{}\n");
}

fn any_yaml() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[ -~\n\t]{0,12}",
        "\\PC{0,8}",
        any::<String>(),
        "[0-9eE.+_:x-]{1,8}",
        "(on|Off|YES|no|y|null|~|true|[.]inf|[.]nan|<<|=|---|[.]{3}|#|- |[?] |a: )[a-z]{0,1}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9_f64).prop_map(|number| Value::from(number + 0.0)),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn yaml_reads_back(value in any_yaml()) {
        let written = yaml(&value);
        let read: Value = serde_yaml::from_str(&written).map_err(|error| TestCaseError::fail(format!("{error}\n{written}")))?;
        prop_assert_eq!(canonical_json(&read), canonical_json(&value), "{}", written);
    }

    #[test]
    fn kubectl_reads_the_same(value in any_yaml()) {
        let object = json!({"apiVersion": "rhumb.dev/v1", "kind": "Test", "metadata": {"name": "a"}, "spec": value});
        let written = yaml(&object);
        let reading = crate::manifest::read(&"a.yaml".into(), written.as_bytes());
        prop_assert!(reading.diagnostics.is_empty(), "{:?}\n{}", reading.diagnostics, written);
        prop_assert_eq!(canonical_json(&reading.items[0].body), canonical_json(&object), "{}", written);
    }
}
