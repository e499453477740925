//! Fields that are left to others: who changed them keeps them, and nothing is reset when we let
//! go.

use rhumb::testing::engine::{IgnoredFields, remove_ignored};
use rhumb::testing::fields::uncovered_paths;
use serde_json::{Value, json};

use crate::server::{Server, our_entry};

const IGNORED: &str = ".spec.replicas, .spec.template.spec.containers[name=web].resources.limits.cpu, \
                       /metadata/labels/team, .spec.strategy.rollingUpdate.maxSurge";

fn wanted() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "ignored", "namespace": "shop", "labels": {"a": "1", "team": "ours"},
                     "annotations": {"rhumb.dev/ignore-fields": IGNORED}},
        "spec": {"replicas": 3, "strategy": {"rollingUpdate": {"maxSurge": 1}},
                 "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1", "resources": {"limits": {"cpu": "1"}}}]}}}
    })
}

/// Returns the ignored fields.
fn shown(live: &Value) -> Value {
    let container = &live["spec"]["template"]["spec"]["containers"][0];
    json!([
        live["spec"]["replicas"],
        container["resources"]["limits"]["cpu"],
        live["metadata"]["labels"]["team"],
        live["spec"]["strategy"]["rollingUpdate"]["maxSurge"],
    ])
}

#[tokio::test]
async fn what_is_left_to_others_stays_as_they_want_it() {
    let server = Server::start().await;
    let wanted = wanted();
    let ours = remove_ignored(wanted.clone());
    server.apply(&wanted).await.unwrap();
    // As long as we are the only owner, to leave a field out is to reset it.
    let reset = server.apply(&ours).await.unwrap();
    assert_eq!(shown(&reset), json!([1, null, null, "25%"]));
    server.apply(&wanted).await.unwrap();
    // So they are sent as they are shown, until somebody else owns them.
    let live = server.get(&wanted).await;
    let sent =
        server.apply(&IgnoredFields::of(&wanted).copy_live_values(wanted.clone(), &live)).await.unwrap();
    assert_eq!(shown(&sent), json!([3, "1", "ours", 1]));
    assert_eq!(sent["metadata"]["resourceVersion"], live["metadata"]["resourceVersion"]);
    let container = json!({"name": "web", "image": "web:1", "resources": {"limits": {"cpu": "2"}}});
    let theirs = json!({"metadata": {"labels": {"team": "theirs"}}, "spec": {"replicas": 7,
        "strategy": {"rollingUpdate": {"maxSurge": 2}}, "template": {"spec": {"containers": [container]}}}});
    let live = server.patch(&wanted, &theirs).await.unwrap();
    assert_eq!(uncovered_paths(&ours, our_entry(&live).as_deref()), [], "no drift");
    let kept = server.apply(&ours).await.unwrap();
    assert_eq!(shown(&kept), json!([7, "2", "theirs", 2]));
    assert_eq!(uncovered_paths(&ours, our_entry(&kept).as_deref()), []);
    // A field that is not ignored is still defended.
    let live = server.patch(&wanted, &json!({"metadata": {"labels": {"a": "2"}}})).await.unwrap();
    assert_eq!(uncovered_paths(&ours, our_entry(&live).as_deref()).len(), 1);
    let repaired = server.apply(&ours).await.unwrap();
    assert_eq!((&repaired["metadata"]["labels"]["a"], shown(&repaired)), (&json!("1"), shown(&kept)));
    // Changed again by others, it is still no drift and still theirs.
    let live = server.patch(&wanted, &json!({"spec": {"replicas": 9}})).await.unwrap();
    assert_eq!(uncovered_paths(&ours, our_entry(&live).as_deref()), []);
    assert_eq!(shown(&server.apply(&ours).await.unwrap())[0], 9);
}
