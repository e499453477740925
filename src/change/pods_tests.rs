//! The impact of a change on running pods.

use serde_json::{Value, json};

use super::{Impact, ImpactKind, can_release_pods, can_touch_template, change_impact};
use crate::fields::FieldPath;
use crate::object::GroupKind;

fn kind(name: &str) -> GroupKind {
    match name {
        "Pod" | "ConfigMap" | "ReplicationController" => GroupKind::new("", name),
        "Job" | "CronJob" => GroupKind::new("batch", name),
        "Rollout" => GroupKind::new("argoproj.io", name),
        _ => GroupKind::new("apps", name),
    }
}

/// Returns a workload with this image and more of its spec.
fn workload(image: &str, spec: Value) -> Value {
    let mut object =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}}});
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    object
}

fn with_status(mut object: Value, status: Value) -> Value {
    object["status"] = status;
    object
}

fn check(name: &str, before: Option<Value>, after: Option<Value>, expected: ImpactKind, pods: u32) {
    let found = change_impact(&kind(name), before.as_ref(), after.as_ref());
    assert_eq!(found, Impact { kind: expected, pods }, "{name} {before:?} {after:?}");
}

#[test]
fn a_changed_template_restarts_the_pods_that_its_controller_replaces() {
    let change = |name, spec: Value, expected, pods| {
        check(name, Some(workload("web:1", spec.clone())), Some(workload("web:2", spec)), expected, pods);
    };
    change("Deployment", json!({"replicas": 3}), ImpactKind::Restart, 3);
    change("Deployment", json!({}), ImpactKind::Restart, 1);
    change("Deployment", json!({"replicas": 0}), ImpactKind::InPlace, 0);
    change("Deployment", json!({"replicas": 3, "paused": true}), ImpactKind::InPlace, 0);
    change("Deployment", json!({"replicas": 3, "strategy": {"type": "Recreate"}}), ImpactKind::Restart, 3);
    change("StatefulSet", json!({"replicas": 3}), ImpactKind::Restart, 3);
    change(
        "StatefulSet",
        json!({"replicas": 3, "updateStrategy": {"type": "OnDelete"}}),
        ImpactKind::InPlace,
        0,
    );
    let partition = |n: i64| json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": n}}});
    change("StatefulSet", partition(2), ImpactKind::Restart, 1);
    change("StatefulSet", partition(3), ImpactKind::InPlace, 0);
    change("StatefulSet", partition(9), ImpactKind::InPlace, 0);
    change("ReplicaSet", json!({"replicas": 3}), ImpactKind::InPlace, 0);
    change("ReplicationController", json!({"replicas": 3}), ImpactKind::InPlace, 0);
    change("CronJob", json!({}), ImpactKind::InPlace, 0);
    change("Rollout", json!({"replicas": 3}), ImpactKind::Restart, 3);
    change("Job", json!({"parallelism": 2}), ImpactKind::Recreate, 2);
    let nodes = json!({"desiredNumberScheduled": 4});
    let daemon = |image, strategy: &str| {
        with_status(workload(image, json!({"updateStrategy": {"type": strategy}})), nodes.clone())
    };
    check(
        "DaemonSet",
        Some(daemon("a", "RollingUpdate")),
        Some(daemon("b", "RollingUpdate")),
        ImpactKind::Restart,
        4,
    );
    check("DaemonSet", Some(daemon("a", "OnDelete")), Some(daemon("b", "OnDelete")), ImpactKind::InPlace, 0);
}

#[test]
fn what_sets_a_held_rollout_free_restarts_the_pods_left() {
    let paused = |is: bool| json!({"replicas": 5, "paused": is});
    let updated =
        |n: u32| json!({"replicas": 5, "updatedReplicas": n, "currentRevision": "1", "updateRevision": "2"});
    let resume = |n, expected, pods| {
        let before = with_status(workload("web:1", paused(true)), updated(n));
        check("Deployment", Some(before), Some(workload("web:1", paused(false))), expected, pods);
    };
    resume(2, ImpactKind::Restart, 3);
    resume(5, ImpactKind::InPlace, 0);
    let at = |n: i64| json!({"replicas": 5, "updateStrategy": {"rollingUpdate": {"partition": n}}});
    let step = |from, to, status: Value, expected, pods| {
        let before = with_status(workload("db:1", at(from)), status);
        check("StatefulSet", Some(before), Some(workload("db:1", at(to))), expected, pods);
    };
    step(4, 0, updated(1), ImpactKind::Restart, 4);
    step(4, 3, updated(1), ImpactKind::Restart, 2);
    step(0, 4, updated(1), ImpactKind::InPlace, 0);
    step(4, 0, json!({"currentRevision": "2", "updateRevision": "2"}), ImpactKind::InPlace, 0);
    let daemon = |strategy: &str| workload("agent:1", json!({"updateStrategy": {"type": strategy}}));
    let status = json!({"desiredNumberScheduled": 4, "updatedNumberScheduled": 1});
    check(
        "DaemonSet",
        Some(with_status(daemon("OnDelete"), status)),
        Some(daemon("RollingUpdate")),
        ImpactKind::Restart,
        3,
    );
}

#[test]
fn other_changes_scale_or_stay_in_place() {
    let replicas = |n: u32| Some(workload("web:1", json!({ "replicas": n })));
    check("Deployment", replicas(3), replicas(5), ImpactKind::Scale, 2);
    check("Deployment", replicas(3), replicas(0), ImpactKind::Scale, 3);
    check("ReplicaSet", replicas(1), replicas(2), ImpactKind::Scale, 1);
    check("Rollout", replicas(1), replicas(2), ImpactKind::Scale, 1);
    check("Deployment", replicas(3), Some(workload("web:1", json!({}))), ImpactKind::InPlace, 0);
    check("Deployment", replicas(3), replicas(3), ImpactKind::None, 0);
    check("Deployment", None, None, ImpactKind::None, 0);
    let minimum = Some(workload("web:1", json!({"replicas": 3, "minReadySeconds": 5})));
    check("Deployment", replicas(3), minimum, ImpactKind::InPlace, 0);
    check(
        "ConfigMap",
        Some(json!({"data": {"a": "1"}})),
        Some(json!({"data": {"a": "2"}})),
        ImpactKind::InPlace,
        0,
    );
    let parallel = |n: u32| Some(workload("job:1", json!({ "parallelism": n })));
    check("Job", parallel(1), parallel(4), ImpactKind::Scale, 3);
    let both = Some(workload("web:2", json!({"replicas": 5})));
    check("Deployment", replicas(3), both, ImpactKind::Restart, 5);
    check("Deployment", Some(json!({"spec": "hostile"})), Some(json!({"spec": [1]})), ImpactKind::InPlace, 0);
}

#[test]
fn from_and_to_no_pods_nothing_restarts() {
    let web = |image: &str, n: u32| Some(workload(image, json!({ "replicas": n })));
    check("Deployment", web("web:1", 0), web("web:2", 3), ImpactKind::Scale, 3);
    check("Deployment", web("web:1", 3), web("web:2", 0), ImpactKind::Scale, 3);
    check("StatefulSet", web("web:1", 0), web("web:2", 3), ImpactKind::Scale, 3);
    check("Deployment", web("web:1", 3), web("web:2", 1), ImpactKind::Restart, 3);
}

#[test]
fn pods_with_other_ordinals_are_other_pods() {
    let from = |image: &str, start: u32, n: u32| {
        Some(workload(image, json!({"replicas": n, "ordinals": {"start": start}})))
    };
    check("StatefulSet", from("db:1", 0, 3), from("db:1", 1, 3), ImpactKind::Restart, 1);
    check("StatefulSet", from("db:1", 5, 3), from("db:1", 0, 3), ImpactKind::Restart, 3);
    check("StatefulSet", from("db:1", 0, 3), from("db:1", 1, 2), ImpactKind::Scale, 1);
    check("StatefulSet", from("db:1", 0, 3), from("db:2", 1, 3), ImpactKind::Restart, 3);
    let on_delete = |start: u32| {
        let strategy = json!({"type": "OnDelete"});
        Some(workload(
            "db:1",
            json!({"replicas": 3, "ordinals": {"start": start}, "updateStrategy": strategy}),
        ))
    };
    check("StatefulSet", on_delete(0), on_delete(2), ImpactKind::Restart, 2);
}

#[test]
fn a_held_daemon_leaves_nodes_that_do_not_fit() {
    let daemon = |node: Value, strategy: &str| {
        let mut daemon = workload("agent:1", json!({"updateStrategy": {"type": strategy}}));
        daemon["spec"]["template"]["spec"]["nodeSelector"] = node;
        Some(with_status(daemon, json!({"desiredNumberScheduled": 4})))
    };
    let (all, some) = (json!({}), json!({"disk": "fast"}));
    let check = |before, after, expected, pods| check("DaemonSet", before, after, expected, pods);
    check(daemon(all.clone(), "OnDelete"), daemon(some.clone(), "OnDelete"), ImpactKind::Scale, 4);
    check(daemon(all, "RollingUpdate"), daemon(some, "RollingUpdate"), ImpactKind::Restart, 4);
}

#[test]
fn nulls_and_the_servers_own_fields_are_no_change() {
    let with_null = workload("web:1", json!({"replicas": 3, "paused": null}));
    let before = with_status(workload("web:1", json!({"replicas": 3})), json!({"replicas": 1}));
    check("Deployment", Some(before.clone()), Some(with_null), ImpactKind::None, 0);
    let mut template = workload("web:1", json!({"replicas": 3, "minReadySeconds": 1}));
    template["spec"]["template"]["metadata"] = json!({"creationTimestamp": null});
    let mut old = before;
    old["spec"]["template"]["metadata"] = json!({});
    check("Deployment", Some(old), Some(template), ImpactKind::InPlace, 0);
}

#[test]
fn what_comes_starts_pods_and_what_goes_stops_them() {
    let comes = |name, object: Value, pods| check(name, None, Some(object), ImpactKind::InPlace, pods);
    comes("Deployment", workload("web:1", json!({"replicas": 3})), 3);
    comes("StatefulSet", workload("web:1", json!({})), 1);
    comes("DaemonSet", workload("web:1", json!({})), 0);
    comes("Pod", json!({"spec": {}}), 1);
    comes("Job", workload("job:1", json!({"parallelism": 2})), 2);
    comes("Job", workload("job:1", json!({"suspend": true})), 0);
    comes("ConfigMap", json!({}), 0);
    let goes = |name, object: Value, expected, pods| check(name, Some(object), None, expected, pods);
    goes("Deployment", workload("web:1", json!({"replicas": 3})), ImpactKind::Scale, 3);
    goes("DaemonSet", json!({"status": {"desiredNumberScheduled": 4}}), ImpactKind::Scale, 4);
    goes("ConfigMap", json!({}), ImpactKind::InPlace, 0);
}

#[test]
fn a_bare_pod_restarts_for_an_image_and_is_recreated_for_the_rest() {
    let pod = |image: &str, command: Value| {
        Some(json!({"spec": {"containers": [{"name": "web", "image": image, "command": command}]}}))
    };
    check("Pod", pod("web:1", json!(["a"])), pod("web:2", json!(["a"])), ImpactKind::Restart, 1);
    check("Pod", pod("web:1", json!(["a"])), pod("web:1", json!(["b"])), ImpactKind::Recreate, 1);
    let labelled = |label: &str| Some(json!({"metadata": {"labels": {"a": label}}, "spec": {}}));
    check("Pod", labelled("1"), labelled("2"), ImpactKind::InPlace, 0);
}

#[test]
fn an_immutable_field_recreates_the_object_with_its_pods() {
    let set = |name: &str| Some(workload("db:1", json!({"replicas": 3, "serviceName": name})));
    check("StatefulSet", set("a"), set("b"), ImpactKind::Recreate, 3);
}

#[test]
fn lost_paths_of_a_template_cost_pods_to_repair() {
    fn check(name: &str, path: &[&str], expected: bool) {
        let paths = [FieldPath::of_keys(&["metadata", "labels", "a"]), FieldPath::of_keys(path)];
        assert_eq!(can_touch_template(&kind(name), &paths), expected, "{name} {path:?}");
    }
    check("Deployment", &["spec", "template", "spec", "containers"], true);
    check("Deployment", &["spec", "template"], true);
    check("Deployment", &["spec"], true);
    check("Deployment", &["spec", "replicas"], false);
    check("Rollout", &["spec", "template", "spec"], true);
    check("StatefulSet", &["spec", "ordinals", "start"], true);
    check("Deployment", &["spec", "ordinals", "start"], false);
    check("CronJob", &["spec", "jobTemplate"], false);
    check("ReplicaSet", &["spec", "template", "spec"], false);
    check("ConfigMap", &["data", "a"], false);
    check("Pod", &["spec", "containers"], true);
    assert!(!can_touch_template(&kind("Deployment"), &[]));
}

#[test]
fn lost_paths_that_hold_pods_back_let_them_go_when_they_are_set() {
    fn check(name: &str, path: &[&str], expected: bool) {
        let paths = [FieldPath::of_keys(&["metadata", "labels", "a"]), FieldPath::of_keys(path)];
        assert_eq!(can_release_pods(&kind(name), &paths), expected, "{name} {path:?}");
    }
    check("Deployment", &["spec", "paused"], true);
    check("Deployment", &["spec", "strategy", "type"], false);
    check("Deployment", &["spec", "replicas"], false);
    check("StatefulSet", &["spec", "updateStrategy", "rollingUpdate", "partition"], true);
    check("StatefulSet", &["spec", "updateStrategy", "type"], true);
    check("DaemonSet", &["spec", "updateStrategy", "type"], true);
    check("DaemonSet", &["spec", "paused"], false);
    check("ReplicaSet", &["spec", "updateStrategy"], false);
    check("ConfigMap", &["spec", "paused"], false);
}
