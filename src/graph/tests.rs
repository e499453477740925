use serde_json::{Value, json};

use super::*;
use crate::object::{GroupKind, ObjectId};

fn id(group: &str, kind: &str, namespace: &str, name: &str) -> ObjectId {
    ObjectId::new(&GroupKind::new(group, kind), (!namespace.is_empty()).then_some(namespace), name)
}

#[test]
fn references_name_what_must_be_there_first() {
    fn check(of: ObjectId, body: Value, expected: &[&str]) {
        let found: Vec<String> = references(&of, &body).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{of}");
    }
    check(
        id("apps", "Deployment", "shop", "web"),
        json!({"spec": {"template": {"spec": {
            "serviceAccountName": "robot", "priorityClassName": "high",
            "imagePullSecrets": [{"name": "pull"}],
            "containers": [{"env": [{"valueFrom": {"configMapKeyRef": {"name": "env", "key": "a"}}}],
                            "envFrom": [{"secretRef": {"name": "from"}}, {"configMapRef": {"name": "may", "optional": true}}]}],
            "volumes": [{"configMap": {"name": "files"}}, {"secret": {"secretName": "tls"}},
                        {"persistentVolumeClaim": {"claimName": "disk"}},
                        {"projected": {"sources": [{"configMap": {"name": "part"}}]}}, {"emptyDir": {}}]}}}}),
        &[
            "ConfigMap shop/env",
            "ConfigMap shop/files",
            "ConfigMap shop/part",
            "PersistentVolumeClaim shop/disk",
            "Secret shop/from",
            "Secret shop/pull",
            "Secret shop/tls",
            "ServiceAccount shop/robot",
            "PriorityClass high",
        ],
    );
    check(
        id("batch", "CronJob", "shop", "nightly"),
        json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": {"serviceAccountName": "robot"}}}}}}),
        &["ServiceAccount shop/robot"],
    );
    check(
        id("apps", "StatefulSet", "shop", "db"),
        json!({"spec": {"serviceName": "db", "volumeClaimTemplates": [{"spec": {"storageClassName": "fast"}}]}}),
        &["Service shop/db", "StorageClass fast"],
    );
    check(
        id("networking.k8s.io", "Ingress", "shop", "front"),
        json!({"spec": {"rules": [{"http": {"paths": [{"backend": {"service": {"name": "web"}}}]}}]}}),
        &["Service shop/web"],
    );
    check(
        id("autoscaling", "HorizontalPodAutoscaler", "shop", "web"),
        json!({"spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}),
        &["Deployment shop/web"],
    );
    check(
        id("rbac.authorization.k8s.io", "RoleBinding", "shop", "b"),
        json!({"roleRef": {"kind": "ClusterRole", "name": "view"},
               "subjects": [{"kind": "ServiceAccount", "namespace": "ops", "name": "bot"}, {"kind": "User", "name": "u"}]}),
        &["ServiceAccount ops/bot", "ClusterRole view"],
    );
    check(
        id("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", "", "b"),
        json!({"spec": {"policyName": "tags", "paramRef": {"name": "a"}}}),
        &["ValidatingAdmissionPolicy tags"],
    );
    check(id("", "ConfigMap", "shop", "plain"), json!({"data": {"a": "b"}}), &[]);
}

#[test]
fn an_annotation_names_what_must_be_healthy_first() {
    let body = json!({"metadata": {"annotations": {
        "rhumb.dev/depends-on": "apps/namespaces/shop/Deployment/web, Job/migrate",
        "config.kubernetes.io/depends-on": "/Namespace/other"}}});
    let found = annotated_dependencies(&id("", "ConfigMap", "shop", "late"), &body);
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found, ["Namespace other", "Deployment shop/web", "Job shop/migrate"]);
}

#[test]
fn namespaces_and_definitions_come_first_and_webhooks_last() {
    let order = [
        "Namespace",
        "CustomResourceDefinition.apiextensions.k8s.io",
        "ServiceAccount",
        "ConfigMap",
        "Service",
        "Deployment.apps",
        "Widget.example.com",
        "ValidatingWebhookConfiguration.admissionregistration.k8s.io",
    ];
    let ranks: Vec<u8> = order.iter().map(|kind| rank(&GroupKind::parse(kind))).collect();
    assert!(ranks.is_sorted(), "{ranks:?}");
}

#[test]
fn units_are_the_connected_parts() {
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| id("", "ConfigMap", "shop", name));
    let mut units = ConnectedUnits::default();
    units.add(&d);
    units.join(&a, &b);
    units.join(&c, &b);
    assert!(units.is_same_unit(&a, &c));
    assert!(!units.is_same_unit(&a, &d));
    assert!(!units.is_same_unit(&a, &id("", "ConfigMap", "shop", "never seen")));
}

#[test]
fn a_cycle_is_found_and_those_who_wait_for_one_are_not_in_it() {
    fn check(edges: &[&str], expected: &[&str]) {
        let named = |name: &str| id("", "ConfigMap", "shop", name);
        let mut all = WaitEdges::new();
        for edge in edges {
            let (from, to) = edge.split_once(' ').unwrap();
            all.entry(named(from)).or_default().insert(named(to));
        }
        let found = find_cycles(&all);
        let found: Vec<String> =
            found.iter().map(|c| c.iter().map(ObjectId::name).collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(found, expected, "{edges:?}");
    }
    check(&[], &[]);
    check(&["a b", "b c", "a c"], &[]);
    check(&["a b", "b a"], &["a b"]);
    check(&["c b", "b a", "a c"], &["a c b"]);
    check(&["x a", "a b", "b a", "a y"], &["a b"]);
    check(&["a b", "b a", "d c", "c d", "b c"], &["a b", "c d"]);
}
