//! The entry that the server notes down as ours covers the applied content, and each loss is
//! noticed.

use std::time::{Duration, Instant};

use rhumb::testing::change::{self, ImpactKind};
use rhumb::testing::fields::{
    OwnershipCheck, ValueSchema, check_ownership, differing_values, uncovered_paths, value_digest,
};
use rhumb::testing::object::{Gvk, ObjectId};
use serde_json::{Map, Value};

use crate::server::{Server, documents, our_entry};

fn id(object: &Value) -> ObjectId {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = Gvk::from_api_version(&text(&object["apiVersion"]), &text(&object["kind"])).group_kind();
    ObjectId::new(&kind, object["metadata"]["namespace"].as_str(), &text(&object["metadata"]["name"]))
}

/// Returns the paths that the server does not track: associative lists and sets that are empty.
fn without_a_path(object: &Value) -> &'static [&'static str] {
    match (object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap()) {
        ("Deployment", "web") => &[r#".spec.template.spec.containers[name="sidecar"].env"#],
        ("Thing", "hollow") => &[".spec.ports", ".spec.tags"],
        _ => &[],
    }
}

#[tokio::test]
async fn every_kind_is_covered_by_what_the_server_noted_down() {
    let mut server = Server::start().await;
    let objects = documents(include_str!("kinds.yaml"));
    assert!(objects.len() > 40, "{} kinds", objects.len());
    let (mut cuts, mut silent, mut doubts) = (0, Vec::new(), Vec::new());
    for object in &objects {
        let id = id(object);
        if object["kind"] == "Thing" {
            established(&mut server).await;
        }
        let live = server.apply(object).await.unwrap_or_else(|refusal| panic!("{id}: {refusal:?}"));
        let entry = our_entry(&live).unwrap();
        let expected = without_a_path(object);
        match check_ownership(object, Some(&entry)) {
            OwnershipCheck::Complete => assert!(expected.is_empty(), "{id}"),
            OwnershipCheck::OnlyEmpty(paths) => {
                assert_eq!(paths.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{id}");
            }
            OwnershipCheck::Lost(paths) => panic!("{id}: {paths:?} in {entry}"),
        }
        doubts.extend(doubts_about(&id, object, &live, &entry));
        second_pass_changes_nothing(&server, object).await;
        let before = uncovered_paths(object, Some(&entry));
        let tree: Value = serde_json::from_str(&entry).unwrap();
        for cut in cut_each(&tree) {
            cuts += 1;
            let text = cut.rest.as_ref().map(Value::to_string);
            if uncovered_paths(object, text.as_deref()) == before {
                silent.push(format!("{id}: {}", cut.path));
            }
        }
    }
    assert!(cuts > 400, "{cuts} cuts");
    assert_eq!(silent, [""; 0], "unnoticed of {cuts}");
    assert_eq!(doubts, SPELLED_OTHERWISE, "what a look at the server has to settle");
}

/// The only values that the server spells in a way that is not known without asking it.
const SPELLED_OTHERWISE: [&str; 5] = [
    "LimitRange shop/limits .spec.limits",
    "Pod shop/pod .spec.tolerations",
    "EndpointSlice shop/outside-1 .ports",
    "ValidatingAdmissionPolicy shop .spec.matchConstraints",
    // A list with keys and defaults, of a kind that nobody knows.
    "Thing shop/thing .spec.ports",
];

/// Returns the paths at which what the server shows is not known to be what was applied.
fn doubts_about(id: &ObjectId, object: &Value, live: &Value, entry: &str) -> Vec<String> {
    let schema = ValueSchema::of(&id.group_kind());
    let paths = differing_values(object, live, entry, schema);
    let is_equal = value_digest(object, entry, schema) == value_digest(live, entry, schema);
    assert_eq!(is_equal, paths.is_empty(), "{id}");
    paths.iter().map(|path| format!("{id} {path}")).collect()
}

/// Checks that the server and we agree that nothing is to be done, and that nothing is called
/// immutable by mistake.
async fn second_pass_changes_nothing(server: &Server, object: &Value) {
    let id = id(object);
    // The server's own controllers write the status of some kinds meanwhile.
    let deadline = Instant::now() + Duration::from_mins(1);
    let (live, answer) = loop {
        let live = server.get(object).await;
        let answer = server.dry_run(object).await.unwrap();
        if answer["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"] {
            break (live, answer);
        }
        assert!(Instant::now() < deadline, "{id} is changed by a second apply");
    };
    let live = &live;
    assert_eq!(change::diff_fields(&id, Some(live), Some(&answer)), [], "{id}");
    assert_eq!(
        change::change_impact(&id.group_kind(), Some(live), Some(&answer)).kind,
        ImpactKind::None,
        "{id}"
    );
    assert_eq!(change::immutable_fields(&id.group_kind(), live, object), [], "{id}");
    assert_eq!(change::immutable_fields(&id.group_kind(), live, &answer), [], "{id}");
}

async fn established(server: &mut Server) {
    let definition = serde_json::json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.org"}});
    let deadline = Instant::now() + Duration::from_mins(1);
    while !rhumb::testing::health::of(&server.get(&definition).await).is_current() {
        assert!(Instant::now() < deadline, "the kind is not established");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    server.discover().await;
}

struct CutContent {
    path: String,
    rest: Option<Value>,
}

/// Returns all ways to take one node out of an entry, with the parents that become empty, as the
/// server does.
fn cut_each(node: &Value) -> Vec<CutContent> {
    let map: &Map<String, Value> = node.as_object().unwrap();
    let mut all = Vec::new();
    for (key, kid) in map.iter().filter(|(key, _)| *key != ".") {
        let everything = CutContent { path: String::new(), rest: None };
        for cut in cut_each(kid).into_iter().chain([everything]) {
            let mut rest = map.clone();
            match cut.rest {
                Some(kid) => rest.insert(key.clone(), kid),
                None => rest.remove(key),
            };
            // An item that loses its last field but "." stays; a map does not.
            all.push(CutContent {
                path: format!("/{key}{}", cut.path),
                rest: (!rest.is_empty()).then_some(Value::Object(rest)),
            });
        }
    }
    all
}
