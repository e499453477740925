//! Annotations: the words in manifests, and those that anybody may write on live objects.

use std::fmt::Display;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{FuzzTarget, fuzz, seeds, shape};
use crate::engine::{
    BodyLocation, ConfigStamp, DesiredObject, GeneratedMark, IgnoredFields, LabelSelector, ObjectIntents,
    ReleaseAnnotation, ResourceVersion, SourceId, check_annotations, check_variables, remove_ignored,
    tool_requests,
};
use crate::object::annotations::ANNOTATIONS;
use crate::object::{GroupKind, Gvk, ManifestOrigin, Object, ObjectId, parse_duration};

const WORDS: &[&str] = &[
    "1, 25%, 50%",
    "100%",
    "30s",
    "1h30m",
    "manual",
    "auto",
    "true",
    "first",
    "never",
    "disabled",
    ".spec.replicas",
    "/spec/a~1b",
    ".spec.template.spec.containers[name=\"web\"].image",
    "[*]",
    "[0]",
    "['a.b']",
    "apps/namespaces/shop/Deployment/web",
    "/namespaces//Secret/a",
    "key in (a, b)",
    "!key",
    "key!=value",
    "until=2030-01-01T00:00:00Z",
    "data=00112233445566778899aabbccddeeff",
    " key=00000001",
    " as=none:none",
    " changed=0,63",
    "@",
    "00112233445566778899aabbccddeeff@0123456789",
    "${NAME:-x}",
    "argocd.argoproj.io/sync-options: Prune=false",
    "kustomize.toolkit.fluxcd.io/prune: disabled",
];

/// Returns a workload with an annotation for each line, `<key>: <value>`; the keys of rhumb stand
/// without their prefix.
fn workload(text: &str) -> Object {
    let mut annotations = Map::new();
    for (key, value) in text.lines().filter_map(|line| line.split_once(": ")) {
        let own = format!("rhumb.dev/{key}");
        let key = if ANNOTATIONS.iter().any(|known| known.key == own) { own } else { key.to_owned() };
        annotations.insert(key, value.into());
    }
    let container = json!({"name": "web", "image": "web:1", "env": [{"name": "A", "value": "1"}]});
    let body = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "annotations": annotations},
        "spec": {"replicas": 3, "template": {"spec": {"containers": [container]}}},
    });
    let kind = GroupKind::new("apps", "Deployment");
    Object {
        id: ObjectId::new(&kind, Some("shop"), "web"),
        gvk: Gvk::new("apps", "v1", "Deployment"),
        body: Arc::new(body),
        origin: ManifestOrigin::new("web.yaml".into(), 1, 1),
    }
}

fn check_words(bytes: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(bytes);
    let object = workload(&text);
    let found = check_annotations(&object);
    for diagnostic in &found {
        assert_eq!(&*diagnostic.origin.file, "web.yaml");
        assert!(diagnostic.message.len() <= 1100, "{diagnostic:?}");
    }
    let place = BodyLocation { source: SourceId::new(0), blob: [0; 20], index: 0 };
    let desired = DesiredObject::of(&object, place, "applyset-x-v1");
    assert_eq!(desired.id, object.id);
    let ignored = IgnoredFields::of(&object.body);
    let without = remove_ignored((*object.body).clone());
    assert_eq!(ignored.remove_from((*object.body).clone()), without, "both leave the same fields out");
    assert_eq!(without.pointer("/metadata/name"), Some(&Value::from("web")), "the object has its name");
    let live = ignored.copy_live_values(without.clone(), &object.body);
    assert_eq!(ignored.remove_from(live), without, "what is copied is what was left out");
    std::hint::black_box(tool_requests(&object.body));
    let codes: Vec<_> = found.iter().map(|found| (found.code, found.message.split(' ').next())).collect();
    shape((codes, check_variables(&object).is_some(), ignored.is_empty(), desired.needs.len()))
}

/// Checks that a value is read again from what is written of it.
fn check_written<T: Display + PartialEq + std::fmt::Debug>(
    read: Option<T>,
    parse: impl Fn(&str) -> Option<T>,
) -> bool {
    let Some(value) = read else { return false };
    let text = value.to_string();
    assert_eq!(parse(&text), Some(value), "{text:?}");
    true
}

/// Checks each reader with each line.
fn check_live_words(bytes: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(bytes);
    let mut shapes = Vec::new();
    for line in text.lines() {
        let intents = ObjectIntents::parse(Some(line), Some(line), Some(line));
        if let Some(paused) = intents.as_ref().and_then(|intents| intents.paused.as_ref()) {
            assert!(paused.token.len() <= 64 && paused.reason.len() <= 256, "{paused:?}");
        }
        let version = ResourceVersion::read(line);
        shapes.push((
            check_written(ReleaseAnnotation::parse(line), ReleaseAnnotation::parse),
            check_written(GeneratedMark::parse(line), GeneratedMark::parse),
            check_written(line.parse::<ConfigStamp>().ok(), |text| text.parse().ok()),
            version.precondition_text().is_some_and(|text| ResourceVersion::read(&text) == version),
            LabelSelector::parse(line).map(|selector| selector.matches(|_| Some("a"))),
            parse_duration(line).is_some(),
            intents.is_some_and(|intents| intents.hold.is_some_and(|hold| hold.until.is_some())),
        ));
    }
    shapes.sort_unstable();
    shapes.dedup();
    shape(shapes)
}

#[test]
fn annotation_words() {
    let seeds = seeds(&[
        "steps: 1, 25%, 50%\nstep-soak: 10m\nstep-promote: manual\nstep-mode: surge\nwave: -1\nprune: never",
        "step-nodes: pool in (a, b), !spot\nsteps: 10%\ndepends-on: apps/namespaces/shop/Deployment/db, v1/namespaces//ConfigMap/a",
        "ignore-fields: .spec.replicas, .spec.template.spec.containers[name=web].image, /metadata/labels/a~1b\nrecreate: true",
        "ignore-fields: .spec.template.spec.containers[*].env[0].value\nrestart-on-change: true\nsubstitute: disabled\nreconcile: disabled",
        "argocd.argoproj.io/sync-wave: 5\nkustomize.toolkit.fluxcd.io/reconcile: disabled\nhelm.sh/resource-policy: keep",
    ]);
    fuzz(&FuzzTarget { name: "annotation_words", seeds, words: WORDS, inputs: 2000 }, check_words);
}

#[test]
fn live_words() {
    let hash = "00112233445566778899aabbccddeeff";
    let seeds = seeds(&[
        format!("{hash}@0123456789abcdef0123456789abcdef01234567 {hash} 1764338069"),
        format!("data={hash} key=0000000f as={hash}:none changed=0,2\nshop/db 7f3a"),
        "17-a0 until=1970-01-01T00:02:00Z looking for a leak\n17-a0 a long weekend\n1h30m\n12345".to_owned(),
        "app=web, tier in (a, b), !spot, key != x, other".to_owned(),
    ]);
    fuzz(&FuzzTarget { name: "live_words", seeds, words: WORDS, inputs: 3000 }, check_live_words);
}
