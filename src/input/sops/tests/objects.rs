//! Values in objects that went through a renderer.

use serde_json::{Value, json};

use super::super::open_object;
use super::super::value::DataKey;
use super::sealing::{DATA_KEY, seal};
use crate::object::ManifestOrigin;

fn opened(mut object: Value, keys: &[DataKey]) -> Result<Value, String> {
    let at = ManifestOrigin::new("web.yaml".into(), 3, 1);
    open_object(&mut object, &at, keys).map(|()| object).map_err(|error| error.to_string())
}

fn keys() -> [DataKey; 2] {
    [DataKey::new(&[1; 32]).unwrap(), DataKey::new(&DATA_KEY).unwrap()]
}

#[test]
fn values_are_opened_at_their_key_paths() {
    for (object, expected) in [
        (json!({"a": seal("a:", "str", "x")}), json!({"a": "x"})),
        (json!({"a": {"b": [seal("a:b:", "str", "x"), "y"]}}), json!({"a": {"b": ["x", "y"]}})),
        (json!({"a": seal("a:", "int", "12")}), json!({"a": 12})),
        (json!({"a": seal("a:", "float", "1000")}), json!({"a": 1000})),
        (json!({"a": seal("a:", "float", "1.5")}), json!({"a": 1.5})),
        (json!({"a": seal("a:", "bool", "True")}), json!({"a": true})),
        (json!({"a": seal("a:", "time", "2020-02-03T00:00:00Z")}), json!({"a": "2020-02-03T00:00:00Z"})),
        // A list of objects was taken apart.
        (json!({"data": {"a": seal("items:data:a:", "str", "x")}}), json!({"data": {"a": "x"}})),
        (json!({"a": [seal("a:", "comment", "x"), seal("a:", "str", "y")]}), json!({"a": ["y"]})),
        (json!({"a": 1, "sops": {"mac": "x"}}), json!({"a": 1})),
        // Only the root's is metadata.
        (json!({"a": {"sops": {"mac": "x"}}}), json!({"a": {"sops": {"mac": "x"}}})),
        (json!({"a": "ENC[other]", "b": null}), json!({"a": "ENC[other]", "b": null})),
    ] {
        assert_eq!(opened(object.clone(), &keys()), Ok(expected), "{object}");
    }
}

#[test]
fn values_that_do_not_fit_are_named_and_not_shown() {
    let edited = "web.yaml:3: the encrypted value of a.b was edited or moved to another key, or belongs to another file";
    for (value, expected) in [
        (seal("a:c:", "str", "canary"), edited),
        (seal("a:b:", "str", "canary").replace("iv:BQ", "iv:BA"), edited),
        (
            seal("a:b:", "str", "canary").replace(",type:str", ""),
            "web.yaml:3: the encrypted value of a.b is malformed",
        ),
        (seal("a:b:", "int", "canary"), "web.yaml:3: the encrypted value of a.b is not of its type"),
        (seal("a:b:", "other", "canary"), "web.yaml:3: the encrypted value of a.b is not of its type"),
        (seal("a:b:", "comment", "canary"), "web.yaml:3: the encrypted value of a.b is not of its type"),
        (seal("a:b:", "float", "NaN"), "web.yaml:3: the encrypted value of a.b is no number that JSON has"),
        (
            seal("a:b:", "str", b"canary\xff"),
            "web.yaml:3: the encrypted value of a.b is binary, so it cannot be text of a manifest: put it below `data`, in base64",
        ),
    ] {
        assert_eq!(opened(json!({"a": {"b": value.clone()}}), &keys()), Err(expected.to_owned()), "{value}");
    }
    let nobody = opened(json!({"a": {"b": seal("a:b:", "str", "canary")}}), &[]);
    assert_eq!(nobody, Err(edited.to_owned()));
}

// Each value costs its key path once for every key.
#[test]
fn work_for_one_object_is_bounded() {
    let key = "k".repeat(1 << 20);
    let value = seal("other:", "str", "x");
    let object = json!({ key: vec![value; 100] });
    let many: Vec<DataKey> = (0..100).map(|byte| DataKey::new(&[byte; 32]).unwrap()).collect();
    let error = opened(object, &many).unwrap_err();
    assert!(
        error.ends_with("is one too many: the key paths of the file are too long for so many values"),
        "{error}"
    );
}
