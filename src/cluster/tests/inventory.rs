use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::fake::{FakeApiServer, ScriptedReply};
use crate::cluster::{ClusterFault, InventoryObject, inventory_id_of};
use crate::engine::{ResourceVersion, Uid};
use crate::object::{ErrorClass, GroupKind};

#[test]
fn the_id_is_that_of_kep_3659() {
    // printf %s web.rhumb-system.ConfigMap. | openssl dgst -sha256 -binary | basenc --base64url |
    // tr -d =
    assert_eq!(
        inventory_id_of("rhumb-system", "web"),
        "applyset-BC8kkurJigrvgsN2y_k8zTtU2-lI5ZzcBFXVK3IdkS0-v1"
    );
}

fn stored(annotations: &Value, data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": { "name": "web", "namespace": "rhumb-system", "uid": "u-1", "resourceVersion": "7", "annotations": annotations },
    })
}

fn inventory() -> InventoryObject {
    InventoryObject {
        known: Some((Uid("u-1".into()), ResourceVersion(7))),
        tooling: "rhumb/v1".to_owned(),
        kinds: [GroupKind::new("apps", "Deployment"), GroupKind::new("", "ConfigMap")].into(),
        namespaces: ["shop".to_owned()].into(),
        annotations: [("rhumb.dev/source".to_owned(), "url".to_owned())].into(),
        requests_observation: false,
        data: [("finished".to_owned(), "x".to_owned())].into(),
        ..InventoryObject::default()
    }
}

const ANNOTATIONS: &str = r#"{"applyset.kubernetes.io/tooling":"rhumb/v1","applyset.kubernetes.io/contains-group-kinds":"ConfigMap,Deployment.apps","applyset.kubernetes.io/additional-namespaces":"shop","rhumb.dev/source":"url","example.com/mine":"stays"}"#;

#[tokio::test]
async fn an_inventory_is_read_and_only_its_difference_written() {
    let annotations: Value = serde_json::from_str(ANNOTATIONS).unwrap();
    let object = stored(&annotations, &json!({ "finished": "x" }));
    let fake = FakeApiServer::start(move |_, _| ScriptedReply::Complete(200, "", object.to_string())).await;
    let read = fake.cluster.read_inventory("rhumb-system", "web").await.unwrap().unwrap();
    assert_eq!(read, inventory());
    // Nothing to write: no call.
    assert_eq!(
        fake.cluster.save_inventory("rhumb-system", "web", Some(&read), &inventory()).await.unwrap(),
        read
    );
    assert_eq!(fake.asked().len(), 1);
    let mut after = inventory();
    after.kinds.remove(&GroupKind::new("", "ConfigMap"));
    after.annotations = [("rhumb.dev/confirmed".to_owned(), "yes".to_owned())].into();
    after.data.clear();
    fake.cluster.save_inventory("rhumb-system", "web", Some(&read), &after).await.unwrap();
    let asked = &fake.asked()[1];
    assert_eq!(
        (asked.method.as_str(), asked.path.as_str()),
        ("PATCH", "/api/v1/namespaces/rhumb-system/configmaps/web?fieldManager=rhumb")
    );
    let sent: Value = serde_json::from_str(&asked.body).unwrap();
    let expected = json!({
        "metadata": {
            "uid": "u-1", "resourceVersion": "7",
            "labels": { "applyset.kubernetes.io/id": inventory_id_of("rhumb-system", "web") },
            "annotations": {
                "applyset.kubernetes.io/contains-group-kinds": "Deployment.apps",
                "rhumb.dev/confirmed": "yes", "rhumb.dev/source": null,
            },
        },
        "data": { "finished": null },
    });
    assert_eq!(sent, expected);
}

// The daemons of other sources watch this label.
#[tokio::test]
async fn the_label_of_a_observation_request_comes_with_the_request_and_goes_with_it() {
    let annotations: Value = serde_json::from_str(ANNOTATIONS).unwrap();
    let object = stored(&annotations, &json!({ "finished": "x" }));
    let fake = FakeApiServer::start(move |_, _| ScriptedReply::Complete(200, "", object.to_string())).await;
    let asks = InventoryObject { requests_observation: true, ..inventory() };
    let mut labels = Vec::new();
    for (before, after) in [(inventory(), asks.clone()), (asks.clone(), asks.clone()), (asks, inventory())] {
        let calls = fake.asked().len();
        fake.cluster.save_inventory("rhumb-system", "web", Some(&before), &after).await.unwrap();
        let sent = fake.asked().split_off(calls);
        let bodies = sent.iter().map(|call| serde_json::from_str::<Value>(&call.body).unwrap());
        labels.extend(bodies.map(|body| body["metadata"]["labels"]["rhumb.dev/look-request"].clone()));
    }
    assert_eq!(labels, [json!("true"), Value::Null]);
}

#[tokio::test]
async fn an_inventory_of_another_tool_is_left_alone() {
    let object = stored(&json!({ "applyset.kubernetes.io/tooling": "kubectl/v1.36" }), &json!(null));
    let fake = FakeApiServer::start(move |_, _| ScriptedReply::Complete(200, "", object.to_string())).await;
    let error = fake.cluster.read_inventory("rhumb-system", "web").await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Config);
    assert!(error.to_string().contains("it is the inventory of kubectl/v1.36"), "{error}");
}

#[tokio::test]
async fn a_config_map_that_is_no_inventory_is_left_alone() {
    let read = async |metadata: Value, data: Value| {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
        let fake =
            FakeApiServer::start(move |_, _| ScriptedReply::Complete(200, "", object.to_string())).await;
        fake.cluster.read_inventory("rhumb-system", "web").await.map(|found| found.is_some())
    };
    let data = json!({ "rhumb.yaml": "a" });
    for metadata in [json!({}), json!({"labels": {"app": "web"}, "annotations": {"example.org/a": "b"}})] {
        let error = read(metadata, data.clone()).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Config);
        assert!(error.to_string().contains("no inventory, and left alone"), "{error}");
    }
    // An inventory that lost a part of its marks, and an object that has none to lose.
    for (metadata, data) in [
        (json!({}), json!(null)),
        (json!({"labels": {"applyset.kubernetes.io/id": "a"}}), data.clone()),
        (json!({"annotations": {"applyset.kubernetes.io/tooling": "rhumb/v1"}}), data.clone()),
        (json!({"annotations": {"rhumb.dev/source": "a"}}), data.clone()),
    ] {
        assert!(read(metadata, data).await.unwrap());
    }
}

#[tokio::test]
async fn a_missing_namespace_is_made_with_the_inventory() {
    let there = Arc::new(Mutex::new(false));
    let status = |code: u16, name: &str, kind: &str| {
        json!({ "kind": "Status", "code": code, "message": "m", "details": { "name": name, "kind": kind } })
            .to_string()
    };
    let fake = FakeApiServer::start(move |_, asked| {
        let mut there = there.lock().unwrap();
        match (asked.method.as_str(), asked.path.as_str(), *there) {
            ("POST", "/api/v1/namespaces?fieldManager=rhumb", _) => {
                *there = true;
                // Somebody else was faster.
                ScriptedReply::Complete(409, "", status(409, "rhumb-system", "namespaces"))
            }
            ("POST", _, true) => ScriptedReply::Complete(201, "", stored(&json!({}), &json!({})).to_string()),
            ("POST", _, false) => ScriptedReply::Complete(404, "", status(404, "rhumb-system", "namespaces")),
            _ => ScriptedReply::Complete(404, "", status(404, "web", "configmaps")),
        }
    })
    .await;
    assert_eq!(fake.cluster.read_inventory("rhumb-system", "web").await.unwrap(), None);
    let made = fake.cluster.save_inventory("rhumb-system", "web", None, &inventory()).await.unwrap();
    assert_eq!(made.known, Some((Uid("u-1".into()), ResourceVersion(7))));
    assert_eq!(fake.asked().len(), 4);
}

#[tokio::test]
async fn an_inventory_that_somebody_else_wrote_is_stale() {
    for (code, name) in [(409, "web"), (404, "web")] {
        let fake = FakeApiServer::start(move |_, _| {
            let status =
                json!({ "kind": "Status", "code": code, "details": { "name": name, "kind": "configmaps" } });
            ScriptedReply::Complete(code, "", status.to_string())
        })
        .await;
        let after = InventoryObject { data: [("k".to_owned(), "v".to_owned())].into(), ..inventory() };
        let error =
            fake.cluster.save_inventory("rhumb-system", "web", Some(&inventory()), &after).await.unwrap_err();
        assert_eq!(*error.fault(), ClusterFault::VersionConflict);
    }
}
