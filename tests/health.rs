//! The health of each kind in each state: `health/<kind>-<state>.yaml`, whose first line says what
//! to expect.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its fixtures has failed")]

use std::collections::BTreeMap;
use std::path::Path;

use rhumb::testing::health::{self, HEALTH_SPEC_KEYS};
use serde_json::Value;

fn fixtures() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/health");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files
        .map(|path| {
            assert!(path.extension().is_some_and(|ext| ext == "yaml"), "{} is forgotten", path.display());
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(&path).unwrap())
        })
        .collect()
}

/// Returns the part of an object that an informer keeps.
fn skimmed(object: &Value) -> Value {
    let mut skimmed = object.clone();
    if let Some(spec) = skimmed.get_mut("spec").and_then(Value::as_object_mut) {
        spec.retain(|key, _| HEALTH_SPEC_KEYS.contains(&key.as_str()));
    }
    if let Some(metadata) = skimmed.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| {
            matches!(key.as_str(), "name" | "generation" | "deletionTimestamp" | "annotations")
        });
    }
    skimmed
}

#[test]
fn every_fixture_has_the_health_that_its_first_line_expects() {
    let fixtures = fixtures();
    assert!(fixtures.len() > 100, "{} fixtures", fixtures.len());
    for (name, text) in fixtures {
        let expected = text.lines().next().and_then(|line| line.strip_prefix("# expect: ")).expect(&name);
        let object: Value = serde_yaml::from_str(&text).expect(&name);
        for object in [&object, &skimmed(&object)] {
            let health = health::of(object);
            let colon = if health.message.is_empty() { "" } else { ": " };
            assert_eq!(format!("{}{colon}{}", health.status, health.message), expected, "{name}");
        }
    }
}

#[test]
fn every_fixture_is_named_after_its_kind() {
    for (name, text) in fixtures() {
        let object: Value = serde_yaml::from_str(&text).unwrap();
        let kind = object["kind"].as_str().unwrap().to_lowercase();
        let is_custom = object["apiVersion"] == "example.org/v1";
        let expected = if is_custom { "custom" } else { kind.as_str() };
        assert!(name.starts_with(&format!("{expected}-")), "{name} holds a {kind}");
    }
}

#[test]
fn a_claim_that_waits_for_its_consumer_is_distinguished_from_one_that_is_provisioned() {
    let waits = |name: &str| {
        let object: Value = serde_yaml::from_str(&fixtures()[name]).unwrap();
        health::is_waiting_for_consumer(&health::of(&object))
    };
    assert!(waits("persistentvolumeclaim-waiting"));
    assert!(!waits("persistentvolumeclaim-provisioning"));
    assert!(!waits("persistentvolumeclaim-bound"));
    assert!(!waits("pod-new"));
}
