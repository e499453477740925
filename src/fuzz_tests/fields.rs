//! FieldsV1: entries that anybody may write who may write the object.

use serde_json::{Value, json};

use super::{FuzzTarget, fuzz, seeds, shape};
use crate::fields::{
    FieldsV1Texts, ValueSchema, check_ownership, differing_values, later_writers, lost_field_writers, owns,
    replaced_members, solely_owned_part, uncovered_paths, value_digest, value_digest_of_text,
};
use crate::object::GroupKind;

const DEPLOYMENT: &str = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{"app":"web"}},"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"web","image":"web:1","ports":[{"containerPort":80,"protocol":"TCP"}],"env":[{"name":"A","value":"1"}],"args":["-x"]}]}}}}
{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}},"f:env":{"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}},"f:args":{}}}}}}}
{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{"f:image":{}}}}}}}"#;
const SERVICE: &str = r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","finalizers":["x/y"]},"spec":{"ports":[{"port":80}],"externalIPs":["10.0.0.1"],"selector":null}}
{"f:metadata":{"f:finalizers":{".":{},"v:\"x/y\"":{}}},"f:spec":{"f:ports":{"i:0":{}},"f:externalIPs":{}}}
{}"#;
const CONFIG_MAP: &str = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"data\":{\"a\":\"1\",\"b.c\":\"\",\"d\":\"\u{e9}\"}}\n{\"f:data\":{\".\":{},\"f:a\":{},\"f:b.c\":{},\"f:d\":{}}}\n{\"f:data\":{}}";

const WORDS: &[&str] = &[
    "{",
    "}",
    "{}",
    "[]",
    "\".\":{},",
    "\"f:a\":{},",
    "\"k:{\\\"name\\\":\\\"web\\\"}\":{},",
    "\"k:{}\":{},",
    "\"v:1\":{},",
    "\"v:null\":{},",
    "\"i:0\":{},",
    "\"i:18446744073709551615\":{},",
    "\"x:\":{},",
    "\\u0066",
    "\\ud800",
    "\\\"",
    ":",
    ",",
    "null",
    "1e400",
    "-0.0",
    "{\"name\":\"web\"}",
    "\"image\":\"web:2\",",
];

/// Checks an object, and two entries of its owners: a line each.
fn check(bytes: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.split('\n');
    let (object, ours) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let theirs = lines.next().unwrap_or_default();
    let Ok(value) = serde_json::from_str::<Value>(object) else { return 0 };
    let schema = ValueSchema::of(&GroupKind::new("apps", "Deployment"));
    let digest = value_digest(&value, ours, schema);
    // The quick reader sees what the slow one does.
    let of_text = value_digest_of_text(object, ours, schema);
    assert!(of_text.is_none_or(|of_text| of_text == digest), "the digests differ");
    let differing = differing_values(&value, &value, ours, schema);
    assert!(differing.is_empty(), "{differing:?} of one object");
    let coverage = check_ownership(&value, Some(ours));
    let uncovered = uncovered_paths(&value, Some(ours));
    for path in &uncovered {
        assert!(path.find(&value).is_some(), "{path} is no path of the object");
    }
    let alone = solely_owned_part(&value, ours, &[theirs]);
    let written = alone.to_string().len();
    // At most a null for each item that is left out.
    assert!(written <= 5 * object.len() + 4, "{written} bytes of {}", object.len());
    let entry = |manager: &str, text: &str| {
        let fields = serde_json::from_str(text).unwrap_or(Value::Null);
        json!({"manager": manager, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields})
    };
    let managed = json!([entry("rhumb", ours), entry("other", theirs)]);
    let writers = lost_field_writers(&managed, &uncovered, "rhumb");
    assert!(writers.iter().all(|writer| writer.manager == "other"), "{writers:?}");
    let live = json!({"metadata": {"managedFields": managed}});
    let later = later_writers(&live, ["rhumb", "rhumb"]);
    let owners = FieldsV1Texts { ours: Some(ours), others: &[theirs.to_owned()], unnamed: &[] };
    drop(replaced_members(&value, &live, owners));
    let owned = owns(ours, &["spec", "replicas"]);
    shape((
        format!("{coverage:?}").len() / 8,
        writers.len(),
        later.is_some(),
        owned,
        of_text.is_some(),
        written / 8,
    ))
}

#[test]
fn field_owners() {
    let seeds = seeds(&[DEPLOYMENT, SERVICE, CONFIG_MAP]);
    fuzz(&FuzzTarget { name: "field_owners", seeds, words: WORDS, inputs: 3000 }, check);
}
