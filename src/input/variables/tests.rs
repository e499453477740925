//! Documents with variables, and what is said of them.

use std::sync::Arc;

use proptest::prelude::*;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use super::*;
use crate::config::{
    SubstitutionConfig, VariableHolder, VariableHolderKind, VariableHolderNeed, VariableSecrecy,
};
use crate::manifest::read_documents;

/// Returns the variables of all cases. `TOKEN` comes from a Secret.
fn table() -> VariableTable {
    let open = [
        ("NAME", "shop"),
        ("REPLICAS", "3"),
        ("TRUE", "true"),
        ("YES", "yes"),
        ("OCTAL", "0755"),
        ("FLOAT", "1.50"),
        ("LARGE", "18446744073709551615"),
        ("DATE", "2001-01-01"),
        ("EMPTY", ""),
        ("NULL", "null"),
        ("INF", ".inf"),
        ("LIST", "[a, b]"),
        ("MAP", "{a: b}"),
        ("COMMENT", "a # b"),
        ("PAIR", "a: b"),
        ("quote", "\""),
        ("EVIL", "x\n  privileged: true"),
        ("LITERAL", "${NAME}"),
    ];
    let values = open.iter().map(|(name, value)| (name.parse().unwrap(), (*value).to_owned()));
    let holder = VariableHolder {
        kind: VariableHolderKind::Secret,
        namespace: "shop".parse().unwrap(),
        name: "tokens".parse().unwrap(),
        need: VariableHolderNeed::Required,
        secrecy: VariableSecrecy::Secret,
    };
    let config = SubstitutionConfig { values: values.collect(), from: vec![holder] };
    let secret = [("TOKEN".to_owned(), b"canary".to_vec()), ("PIN".to_owned(), b"0123".to_vec())];
    VariableTable::assemble(&config, [HolderAnswer::Found(ObjectVariables::new(secret))]).0
}

fn read(text: &str) -> SubstitutedFile {
    substitute(&"a.yaml".into(), text.as_bytes(), &table())
}

/// Returns the findings with their places.
fn findings_of(text: &str) -> Vec<String> {
    let file = read(text);
    let tell = |found: &crate::object::Diagnostic| {
        let (at, severity) = (&found.origin, found.severity);
        format!("{}:{}:{}: {severity} {}: {}", at.file, at.line, at.column, found.code, found.message)
    };
    file.diagnostics(&"a.yaml".into()).iter().map(tell).collect()
}

#[track_caller]
fn check(text: &str, expected: Value) {
    let file = read(text);
    assert_eq!(file.diagnostics(&"a.yaml".into()), [], "{text}");
    let documents: Vec<Value> = file.documents.iter().map(|document| document.value.to_value()).collect();
    assert_eq!(documents, [expected], "{text}");
}

#[track_caller]
fn check_findings(text: &str, expected: &[&str]) {
    assert_eq!(findings_of(text), expected, "{text}");
}

#[test]
fn a_plain_scalar_gets_its_type_from_the_text_that_it_becomes() {
    check("a: ${REPLICAS}", json!({ "a": 3 }));
    check("a: 1${REPLICAS}", json!({ "a": 13 }));
    check("a: v${REPLICAS}", json!({ "a": "v3" }));
    check("a: ${TRUE}", json!({ "a": true }));
    check("a: ${YES}", json!({ "a": true }));
    check("a: ${OCTAL}", json!({ "a": 493 }));
    check("a: ${FLOAT}", json!({ "a": 1.5 }));
    check("a: ${LARGE}", json!({ "a": 1.844_674_407_370_955_2e19 }));
    check("a: ${DATE}", json!({ "a": "2001-01-01" }));
    check("a: ${EMPTY}", json!({ "a": null }));
    check("a: ${NULL}", json!({ "a": null }));
    check("a: ${UNSET:=5}", json!({ "a": 5 }));
    check("- ${REPLICAS}\n- ${NAME}", json!([3, "shop"]));
    check("a: {b: '${NAME}', c: [\"${REPLICAS}\"]}", json!({ "a": { "b": "shop", "c": ["3"] } }));
    // The way by which texts are kept for Flux.
    check("a: ${quote}${REPLICAS}${quote}", json!({ "a": "3" }));
    check("a: ${UNSET:=\"5\"}", json!({ "a": "5" }));
    check("a: ${UNSET:='it''s'}", json!({ "a": "it's" }));
}

#[test]
fn a_scalar_in_quotes_with_a_tag_or_in_a_block_stays_text() {
    check("a: \"${REPLICAS}\"", json!({ "a": "3" }));
    check("a: '${TRUE}'", json!({ "a": "true" }));
    check("a: |\n  n: ${REPLICAS}\n  ${NAME}\n", json!({ "a": "n: 3\nshop\n" }));
    check("a: |-\n  ${REPLICAS}\n", json!({ "a": "3" }));
    check("a: >-\n  ${REPLICAS}\n", json!({ "a": "3" }));
    check("a: !!str ${REPLICAS}", json!({ "a": "3" }));
    check(r#"{"a": "${REPLICAS}"}"#, json!({ "a": "3" }));
}

#[test]
fn a_value_stays_one_scalar_whatever_is_in_it() {
    check("a: ${EVIL}\nb: 1", json!({ "a": "x  privileged: true", "b": 1 }));
    check("a: \"${EVIL}\"", json!({ "a": "x  privileged: true" }));
    check("a: |\n  ${EVIL}\n", json!({ "a": "x  privileged: true\n" }));
    check("a: ${PAIR}", json!({ "a": "a: b" }));
    check("a: ${COMMENT}", json!({ "a": "a # b" }));
    // A value is never read for variables again.
    check("a: ${LITERAL}", json!({ "a": "${NAME}" }));
    check("a: $${NAME} $NAME", json!({ "a": "${NAME} $NAME" }));
    for (text, value) in [("a: ${LIST}", "[a, b]"), ("a: ${MAP}", "{a: b}")] {
        let file = read(text);
        assert_eq!(file.documents[0].value.to_value(), json!({ "a": value }));
        assert_eq!(file.documents[0].usability, DocumentUsability::Sound);
        check_findings(
            text,
            &[
                "a.yaml:1:4: warning variable-not-scalar: a: with its variables this looks like a list or mapping, and stays text",
            ],
        );
    }
}

// Kubernetes takes nothing but text there.
#[test]
fn labels_annotations_and_data_stay_text() {
    check(
        "metadata:\n  labels:\n    a: ${REPLICAS}\n  annotations:\n    b: ${TRUE}\n  generation: ${REPLICAS}\n",
        json!({ "metadata": { "labels": { "a": "3" }, "annotations": { "b": "true" }, "generation": 3 } }),
    );
    // The way by which texts are kept for Flux gives the same text here.
    for quoted in ["${quote}${REPLICAS}${quote}", "${UNSET:=\"3\"}", "${UNSET:='3'}", "${UNSET:= 3 }"] {
        let text = format!("metadata:\n  annotations:\n    a: {quoted}\n");
        check(&text, json!({ "metadata": { "annotations": { "a": "3" } } }));
        let text = format!("apiVersion: v1\nkind: ConfigMap\ndata:\n  a: {quoted}\n");
        check(&text, json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "3" } }));
    }
    check(
        "metadata:\n  labels:\n    a: '${quote}x${quote}'\n    b: ${quote}x\n    c: ${EMPTY}\n",
        json!({ "metadata": { "labels": { "a": "\"x\"", "b": "\"x", "c": "" } } }),
    );
    let data = |head: &str| format!("{head}\ndata:\n  a: ${{REPLICAS}}\n");
    let read = |head: &str| read(&data(head)).documents[0].value.to_value()["data"]["a"].clone();
    assert_eq!(read("apiVersion: v1\nkind: ConfigMap"), json!("3"));
    assert_eq!(read("apiVersion: v1\nkind: Secret"), json!("3"));
    assert_eq!(read("apiVersion: a.example/v1\nkind: ConfigMap"), json!(3));
    let list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  data:\n    a: ${REPLICAS}\n";
    let items = json!([{ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "3" } }]);
    check(list, json!({ "apiVersion": "v1", "kind": "List", "items": items }));
}

#[test]
fn everything_that_is_not_set_is_named_at_once() {
    check_findings(
        "spec:\n  a: ${ONE}\n  b:\n  - ${TWO}-${THREE^^}\n  - x: \"${ONE} ${NAME}\"\n---\nc: ${1}\n",
        &[
            "a.yaml:2:6: error unset-variable: spec.a: the variable ONE is not set, and has no default",
            "a.yaml:4:5: error unset-variable: spec.b[0]: the variable THREE is not set, and has no default",
            "a.yaml:4:5: error unset-variable: spec.b[0]: the variable TWO is not set, and has no default",
            "a.yaml:5:8: error unset-variable: spec.b[1].x: the variable ONE is not set, and has no default",
            "a.yaml:7:4: error unset-variable: c: the variable 1 is not set, and has no default",
        ],
    );
    let file = read("a: ${NAME}\nb: ${ONE}\n---\na: ${NAME}\n");
    let usability: Vec<_> = file.documents.iter().map(|document| document.usability).collect();
    assert_eq!(usability, [DocumentUsability::Faulty, DocumentUsability::Sound]);
    // A faulty scalar stays as it was.
    assert_eq!(file.documents[0].value.to_value(), json!({ "a": "shop", "b": "${ONE}" }));
}

#[test]
fn what_cannot_be_read_or_used_says_where() {
    check_findings(
        "a: ${NAME\nb: ${NAME-x}\n",
        &[
            "a.yaml:1:4: error variable-expression: a: an expression that begins with `${` is not ended by a `}` where one must be",
            "a.yaml:2:4: error variable-expression: b: `-`, `+` and `?` need a `:` before them",
        ],
    );
    check_findings(
        "a:\n  x-${NAME}: 1\n  $$: 2\n",
        &[
            "a.yaml:2:3: error variable-in-key: a: the key x-${NAME} has an expression",
            "a.yaml:3:3: error variable-in-key: a: the key $$ has an expression",
        ],
    );
    check_findings(
        "a: ${INF}\n",
        &[
            "a.yaml:1:4: error not-finite: a: with its variables this is infinity or NaN, which JSON does not have",
        ],
    );
    check_findings("a: ${UNSET:=é}\nb: ${X:=${NAME}é}\nc: é${NAME:1}\n", &[]);
    let cut = "the substring of NAME begins or ends inside of a character";
    let accents = VariableTable::open([("NAME", "é")]);
    assert_eq!(expand("${NAME:1}", &accents).unwrap_err().to_string(), cut);
    assert_eq!(expand("${NAME:0:1}", &accents).unwrap_err().to_string(), cut);
    assert_eq!(expand("${NAME#?}${NAME%?}${NAME^}${#NAME}", &accents).unwrap().0, "É2");
    assert_eq!(expand("${NAME^}", &VariableTable::open([("NAME", "ß")])).unwrap().0, "ß");
}

#[test]
fn an_object_that_says_so_stays_as_it_is() {
    let object = |metadata: &str| format!("metadata: {{{metadata}}}\na: ${{ONE}} $${{NAME}}\n${{b}}: 1\n");
    let flux = "kustomize.toolkit.fluxcd.io/substitute: disabled";
    for metadata in [
        format!("annotations: {{{flux}}}"),
        format!("labels: {{{flux}}}"),
        "annotations: {rhumb.dev/substitute: disabled}".to_owned(),
    ] {
        let text = object(&metadata);
        let before = read_documents(&"a.yaml".into(), text.as_bytes()).documents;
        let after = read(&text);
        assert_eq!(after.diagnostics(&"a.yaml".into()), [], "{text}");
        assert_eq!(after.documents[0].value, before[0], "{text}");
    }
    for metadata in
        ["", "labels: {rhumb.dev/substitute: disabled}", "annotations: {rhumb.dev/substitute: enabled}"]
    {
        assert_eq!(findings_of(&object(metadata)).len(), 2, "{metadata}");
    }
    // In a list each object says so for itself.
    let list = "kind: List\nitems:\n- metadata: {annotations: {rhumb.dev/substitute: disabled}}\n  a: ${NAME}\n- a: ${NAME}\n";
    let items = read(list).documents[0].value.to_value()["items"].clone();
    assert_eq!((&items[0]["a"], &items[1]["a"]), (&json!("${NAME}"), &json!("shop")));
}

#[test]
fn a_secret_value_ends_only_in_the_data_of_a_secret() {
    let secret = "apiVersion: v1\nkind: Secret\n";
    let position = |text: &str| findings_of(text).into_iter().next().unwrap_or_default();
    let refused = |line, column, path: &str| {
        format!(
            "a.yaml:{line}:{column}: error secret-variable: {path}: the variable TOKEN comes from a Secret, and this field is not data of a Secret"
        )
    };
    check(
        &format!("{secret}stringData:\n  a: ${{TOKEN}}\n  pin: ${{PIN}}\n"),
        json!({ "apiVersion": "v1", "kind": "Secret", "stringData": { "a": "canary", "pin": "0123" } }),
    );
    assert_eq!(
        position(&format!("{secret}metadata:\n  name: a-${{TOKEN}}\n")),
        refused(4, 9, "metadata.name")
    );
    assert_eq!(position("apiVersion: v1\nkind: ConfigMap\ndata:\n  a: ${TOKEN}"), refused(4, 6, "data.a"));
    assert_eq!(
        position("apiVersion: a.example/v1\nkind: Secret\ndata:\n  a: ${TOKEN}"),
        refused(4, 6, "data.a")
    );
    // Neither a part, nor a sign of it.
    for expression in
        ["${#TOKEN}", "${TOKEN:0:1}", "${UNSET:=${TOKEN}}", "${TOKEN:=x}", "${NAME/shop/${TOKEN}}"]
    {
        assert_eq!(position(&format!("a: {expression}")), refused(1, 4, "a"), "{expression}");
    }
    let list = format!(
        "kind: List\nitems:\n- data: {{a: '${{TOKEN}}'}}\n- {}",
        "{apiVersion: v1, kind: Secret, data: {a: '${TOKEN}'}}"
    );
    let file = read(&list);
    assert_eq!(position(&list), refused(3, 13, "items[0].data.a"));
    let items = file.documents[0].value.to_value()["items"].clone();
    assert_eq!((&items[0]["data"]["a"], &items[1]["data"]["a"]), (&json!("${TOKEN}"), &json!("canary")));
    let shown = format!("{file:?} {:?} {:?}", table(), file.diagnostics(&"a.yaml".into()));
    assert!(!shown.contains("canary"), "{shown}");
    // No reader takes such a list apart, so nothing in it is a Secret.
    let torn = "kind: List\nitems:\n- {apiVersion: v1, kind: Secret, data: {a: '${TOKEN}'}}\n- a\n";
    assert_eq!(position(torn), refused(3, 44, "items[0].data.a"));
}

// kustomize prints quotes only where its own reader needs them.
#[test]
fn the_output_of_a_renderer_is_read_as_a_file_is() {
    let output = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  labels:\n    app: ${NAME}\n  name: ${NAME}-web\n\
                  spec:\n  replicas: ${REPLICAS}\n  template:\n    spec:\n      containers:\n      - args:\n        - --name=${NAME}\n        image: registry/${NAME}:${UNSET:=v1}\n        name: web\n---\n\
                  apiVersion: v1\ndata:\n  run.sh: |\n    echo $${HOME} ${NAME}\nkind: ConfigMap\nmetadata:\n  name: b\n";
    let file = read(output);
    assert_eq!(file.diagnostics(&"a.yaml".into()), []);
    let documents: Vec<Value> = file.documents.iter().map(|document| document.value.to_value()).collect();
    assert_eq!(documents[0]["spec"]["replicas"], json!(3));
    assert_eq!(documents[0]["metadata"], json!({ "labels": { "app": "shop" }, "name": "shop-web" }));
    let container = &documents[0]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        (&container["image"], &container["args"][0]),
        (&json!("registry/shop:v1"), &json!("--name=shop"))
    );
    assert_eq!(documents[1]["data"]["run.sh"], json!("echo ${HOME} shop\n"));
    assert_eq!(file.documents[1].value.position.line, 17);
}

#[test]
fn what_is_nested_too_deep_is_refused() {
    let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(80), "]".repeat(80));
    assert!(
        findings_of(&deep("'${NAME}'")).iter().all(|finding| finding.contains("too-deep: ")),
        "{:?}",
        findings_of(&deep("a"))
    );
    assert_eq!(findings_of(&deep("'${NAME}'")).len(), 1);
    check_findings(&deep("'$NAME'"), &[]);
    let nested = |levels: usize| format!("{}x{}", "${UNSET:=".repeat(levels), "}".repeat(levels));
    assert_eq!(expand(&nested(MAX_NESTING), &table()).unwrap().0, "x");
    let fault = expand(&nested(MAX_NESTING + 1), &table()).unwrap_err();
    assert_eq!(fault.to_string(), "expressions are nested more than 16 levels deep");
    assert!(expand(&nested(500_000), &table()).is_err());
}

#[test]
fn what_expressions_make_is_bounded() {
    let large = "x".repeat(MAX_VALUE_BYTES);
    let table = VariableTable::open([("L", large.as_str()), ("M", "mmmm")]);
    // The time of this thread: that of the machine depends on who else uses it.
    let processor_seconds = || clock_gettime(ClockId::ThreadCPUTime).tv_sec;
    let begun = processor_seconds();
    let codes = |text: &str| {
        let file = substitute(&"a".into(), text.as_bytes(), &table);
        let limits = file.diagnostics(&"a".into());
        assert!(limits.iter().all(|found| found.code == "variable-limit"), "{limits:?}");
        limits.iter().map(|found| found.message.clone()).collect::<Vec<_>>()
    };
    let scalar = "a: with its variables the text has more than 4194304 bytes";
    assert_eq!(codes(&format!("a: {}", "${L}".repeat(4))), Vec::<String>::new());
    assert_eq!(codes(&format!("a: {}", "${L}".repeat(5))), [scalar]);
    // Each letter becomes a million.
    assert_eq!(codes("a: ${L//x/${L}}"), [scalar]);
    assert_eq!(codes("a: ${M//${EMPTY:=}/${L}}"), [scalar]);
    let document = "[8]: with their variables the texts of this document have more than 8388608 bytes";
    assert_eq!(codes(&"- ${L}\n".repeat(1000)), [document]);
    let file = codes(&"a: ${L}\n---\n".repeat(50));
    assert!(
        file.iter().all(|finding| finding.ends_with("this file have more than 33554432 bytes")),
        "{file:?}"
    );
    assert_eq!(file.len(), 18);
    // Little comes of it, and it takes long.
    let work = "a: the expressions of this file take too much work";
    assert_eq!(
        codes(
            "a: ${L##*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*y}"
        ),
        [work]
    );
    assert_eq!(codes(&format!("a: {}", "${L//${L}/}".repeat(1000))), [work]);
    let taken = processor_seconds() - begun;
    assert!(taken < 20, "{taken} s of processor time");
}

#[test]
fn findings_of_one_file_are_counted_from_some_number_on() {
    let file = read(&"- ${ONE}\n---\n- ${TWO}\n---\n".repeat(300));
    let diagnostics = file.diagnostics(&"a.yaml".into());
    assert_eq!(diagnostics.len(), 201);
    assert_eq!(diagnostics[200].message, "400 more findings in this file are not shown");
    assert!(diagnostics[200].is_error());
    assert!(file.documents.iter().all(|document| document.usability == DocumentUsability::Faulty));
    // Warnings alone make no error of what has no room.
    let sound = read(&"- ${LIST}\n".repeat(300)).diagnostics(&"a.yaml".into());
    assert_eq!(sound[200].message, "100 more findings in this file are not shown");
    assert!(sound.iter().all(|found| !found.is_error()));
    let long = read(&format!("{}: ${{{}}}", "k".repeat(900), "V".repeat(900)));
    let message = &long.diagnostics(&"a.yaml".into())[0].message;
    assert!(message.len() < 300, "{message}");
}

fn scalars() -> impl Strategy<Value = String> {
    "[-a-z0-9:#\\[\\]{}'\" |>&*!%~.\n\t]{0,40}"
}

proptest! {
    #[test]
    fn no_text_panics(text in "(\\$\\{|\\}|\\$|[A-Z]|[-:=#%/^,?*\\[\\]\\\\]|[a-zé0-9 .]){0,30}", value in ".{0,20}") {
        let table = VariableTable::open([("A", value.as_str()), ("B", "abcABC/é")]);
        let _ = expand(&text, &table);
        let _ = expand(&format!("${{A{text}}}${{B{text}}}"), &table);
    }

    #[test]
    fn no_document_panics(text in "[-a-zA-Z${}:=\n '\"\\[\\]|&*!<]{0,60}") {
        let _ = read(&text);
    }

    #[test]
    fn a_document_without_a_dollar_is_unchanged(keys in prop::collection::vec("[a-z]{1,4}", 0..5), texts in prop::collection::vec(scalars(), 0..5), text in scalars()) {
        let pair = |(key, text): (&String, &String)| format!("{key}: {}\n", text.replace('\n', " "));
        let pairs = keys.iter().zip(&texts).map(pair).collect::<Vec<_>>().concat();
        for text in [&pairs, &text] {
            let before = read_documents(&Arc::from("a.yaml"), text.as_bytes()).documents;
            let after = read(text).documents;
            let before: Vec<String> = before.iter().map(|document| document.to_value().to_string()).collect();
            let after: Vec<String> = after.iter().map(|document| document.value.to_value().to_string()).collect();
            prop_assert_eq!(before, after);
        }
    }

    #[test]
    fn a_value_is_put_in_as_it_is(value in "[^\n]{0,40}") {
        let table = VariableTable::open([("A", value.as_str())]);
        let read = substitute(&Arc::from("a.yaml"), b"a: \"x${A}y\"\nb: 1\n", &table);
        prop_assert_eq!(read.documents[0].value.to_value(), json!({ "a": format!("x{value}y"), "b": 1 }));
    }
}
