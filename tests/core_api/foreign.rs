//! A foreign change leaves our entry at exactly its fields; one apply takes them back.

use rhumb::testing::fields::{lost_field_writers, uncovered_paths};
use serde_json::{Value, json};

use crate::server::{OURS, Server, our_entry};

fn wanted() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "foreign", "namespace": "shop", "labels": {"a": "1", "b": "1"}, "annotations": {"x": "1"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1", "args": ["-a", "-b"],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "resources": {"limits": {"cpu": "1000m"}}}]}}}
    })
}

/// Returns a merge patch of the only container.
fn container(change: Value) -> Value {
    let mut container = wanted()["spec"]["template"]["spec"]["containers"][0].clone();
    container.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    json!({"spec": {"template": {"spec": {"containers": [container]}}}})
}

#[tokio::test]
async fn foreign_changes_are_lost_ownership() {
    let server = Server::start().await;
    each_change_is_lost_ownership_of_what_was_changed(&server).await;
    the_scale_subresource_is_named_and_a_removed_field_names_nobody(&server).await;
    an_emptied_list_that_denies_everything_is_noticed(&server).await;
}

async fn each_change_is_lost_ownership_of_what_was_changed(server: &Server) {
    let wanted = wanted();
    let web = r#".spec.template.spec.containers[name="web"]"#;
    let at = |field: &str| format!("{web}{field}");
    server.apply(&wanted).await.unwrap();
    let label = |labels: Value| json!({"metadata": {"labels": labels}});
    let template =
        |annotations: Value| json!({"spec": {"template": {"metadata": {"annotations": annotations}}}});
    let env = |env: Value| container(json!({ "env": env }));
    let cases: [(Value, &[String]); 13] = [
        (container(json!({"image": "web:2"})), &[at(".image")]),
        (label(json!({"a": "2"})), &[".metadata.labels.a".into()]),
        (label(json!({"b": null})), &[".metadata.labels.b".into()]),
        (label(json!({"c": "new"})), &[]),
        (json!({"metadata": {"annotations": null}}), &[".metadata.annotations.x".into()]),
        (json!({"spec": {"replicas": 5}}), &[".spec.replicas".into()]),
        (
            env(json!([{"name": "A", "value": "9"}, {"name": "B", "value": "2"}])),
            &[at(r#".env[name="A"].value"#)],
        ),
        (env(json!([{"name": "A", "value": "1"}])), &[at(r#".env[name="B"]"#)]),
        (container(json!({"args": ["-a", "-c"]})), &[at(".args")]),
        (container(json!({"resources": {"limits": {"cpu": "1"}}})), &[]),
        (container(json!({"resources": {"limits": {"cpu": "2"}}})), &[at(".resources.limits.cpu")]),
        (template(json!({"kubectl.kubernetes.io/restartedAt": "now"})), &[]),
        (
            json!({"metadata": {"managedFields": [{}]}}),
            &[".metadata.annotations.x".into(), ".metadata.labels".into(), ".spec".into()],
        ),
    ];
    for (patch, expected) in cases {
        let live = server.patch(&wanted, &patch).await.unwrap();
        check(server, &wanted, &live, expected, &patch).await;
    }
    // Changed and changed back.
    server.patch(&wanted, &json!({"spec": {"replicas": 7}})).await.unwrap();
    let live = server.patch(&wanted, &json!({"spec": {"replicas": 2}})).await.unwrap();
    check(server, &wanted, &live, &[".spec.replicas".into()], &json!("changed back")).await;
    // Replaced as a whole, with no managedFields.
    let mut edited = server.get(&wanted).await;
    edited["metadata"].as_object_mut().unwrap().remove("managedFields");
    edited["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:3");
    let live = server.replace(&edited).await;
    check(server, &wanted, &live, &[at(".image")], &json!("replaced")).await;
    // Forced by another apply: it takes what differs, also in spelling (the server keeps `1000m` as
    // `1`).
    let mut theirs = wanted.clone();
    theirs["spec"]["replicas"] = json!(4);
    let live = server.apply_as("another", &theirs).await.unwrap();
    let expected = [".spec.replicas".into(), at(".resources.limits.cpu")];
    check(server, &wanted, &live, &expected, &json!("applied")).await;
}

async fn check(server: &Server, wanted: &Value, live: &Value, expected: &[String], change: &Value) {
    let lost = uncovered_paths(wanted, our_entry(live).as_deref());
    let paths: Vec<String> = lost.iter().map(ToString::to_string).collect();
    assert_eq!(paths, expected, "{change}");
    let named = lost_field_writers(&live["metadata"]["managedFields"], &lost, OURS);
    for culprit in &named {
        assert!(matches!(culprit.manager.as_str(), "somebody" | "another"), "{culprit:?}");
        assert!(culprit.time.starts_with("20"), "{culprit:?}");
    }
    let live = server.apply(wanted).await.unwrap();
    assert_eq!(uncovered_paths(wanted, our_entry(&live).as_deref()), [], "after our apply: {change}");
}

async fn the_scale_subresource_is_named_and_a_removed_field_names_nobody(server: &Server) {
    let wanted = wanted();
    server.apply(&wanted).await.unwrap();
    server.cluster.kubectl(&["scale", "deployment/foreign", "-n", "shop", "--replicas=9"]).unwrap();
    server.patch(&wanted, &json!({"metadata": {"labels": {"a": null}}})).await.unwrap();
    let live = server.get(&wanted).await;
    let lost = uncovered_paths(&wanted, our_entry(&live).as_deref());
    let paths: Vec<String> = lost.iter().map(ToString::to_string).collect();
    assert_eq!(paths, [".metadata.labels.a", ".spec.replicas"]);
    let named = lost_field_writers(&live["metadata"]["managedFields"], &lost, OURS);
    let [scaler] = named.as_slice() else { panic!("{named:?}") };
    assert_eq!((scaler.subresource.as_str(), scaler.path.to_string().as_str()), ("scale", ".spec.replicas"));
}

async fn an_emptied_list_that_denies_everything_is_noticed(server: &Server) {
    let wanted = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "deny", "namespace": "shop"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": []}});
    server.apply(&wanted).await.unwrap();
    let opened = json!({"spec": {"podSelector": {"matchLabels": {"x": "y"}}, "ingress": [{}]}});
    let live = server.patch(&wanted, &opened).await.unwrap();
    let expected = [".spec.ingress".to_owned(), ".spec.podSelector".to_owned()];
    check(server, &wanted, &live, &expected, &opened).await;
}
