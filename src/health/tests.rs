//! Hostile shapes; the fixtures of each kind and state are in `tests/health/`.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const KINDS: [(&str, &str); 20] = [
    ("v1", "Namespace"),
    ("v1", "Node"),
    ("v1", "PersistentVolume"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "Pod"),
    ("v1", "Service"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("batch/v1", "Job"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("apiregistration.k8s.io/v1", "APIService"),
    ("certificates.k8s.io/v1", "CertificateSigningRequest"),
    ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema"),
    ("policy/v1", "PodDisruptionBudget"),
    ("storage.k8s.io/v1", "VolumeAttachment"),
    ("storagemigration.k8s.io/v1beta1", "StorageVersionMigration"),
    ("example.org/v1", "Thing"),
];

#[test]
fn no_shape_of_a_tree_makes_it_fail() {
    let shapes = [
        json!(null),
        json!("text"),
        json!([[]]),
        json!({"metadata": 1, "spec": "s", "status": [1]}),
        json!({"metadata": {"generation": "x", "deletionTimestamp": 7}, "status": {"conditions": {"a": 1}}}),
        json!({"metadata": {"generation": 1e300}, "spec": {"replicas": "three", "updateStrategy": []},
            "status": {"conditions": [1, null, {"type": 3}, {"type": "Ready", "status": true}], "replicas": {}}}),
        json!({"metadata": {"generation": i64::MIN}, "spec": {"replicas": i64::MAX, "completions": i64::MIN,
            "updateStrategy": {"rollingUpdate": {"partition": i64::MIN}}},
            "status": {"replicas": i64::MIN, "updatedReplicas": i64::MIN, "readyReplicas": i64::MIN,
                "observedGeneration": i64::MIN, "containerStatuses": [1, {"state": 1}]}}),
    ];
    for (api_version, kind) in KINDS {
        for shape in &shapes {
            let mut object = shape.clone();
            if let Some(map) = object.as_object_mut() {
                map.insert("apiVersion".to_owned(), api_version.into());
                map.insert("kind".to_owned(), kind.into());
            }
            let health = of(&object);
            assert_eq!(health.is_current(), health.message.is_empty(), "{object}: {health:?}");
            let _ = is_finished(&GroupKind::new("batch", kind), &object);
        }
    }
}

#[test]
fn foreign_messages_stay_one_bounded_line_without_control_characters() {
    fn check(message: &str, expected: &str) {
        let object = json!({"apiVersion": "example.org/v1", "kind": "Thing",
            "status": {"conditions": [{"type": "Ready", "status": "False", "message": message}]}});
        assert_eq!(&*of(&object).message, expected);
    }
    check("two\nlines\t and  more ", "two lines and more");
    check("\u{1b}[31mred\u{7}", "[31mred");
    check(&"x".repeat(1000), &format!("{}…", "x".repeat(400)));
    check(&"é ".repeat(1000), &format!("{}…", "é ".repeat(200)));
}

#[test]
fn jobs_and_pods_end_and_nothing_else_does() {
    fn check(kind: &GroupKind, status: Value, expected: bool) {
        assert_eq!(is_finished(kind, &json!({"status": status})), expected, "{kind} {status}");
    }
    let (job, pod) = (GroupKind::new("batch", "Job"), GroupKind::new("", "Pod"));
    check(&job, json!({"conditions": [{"type": "Complete", "status": "True"}]}), true);
    check(&job, json!({"conditions": [{"type": "Failed", "status": "True"}]}), true);
    check(&job, json!({"conditions": [{"type": "Suspended", "status": "True"}]}), false);
    check(&pod, json!({"phase": "Succeeded"}), true);
    check(&pod, json!({"phase": "Failed"}), true);
    check(&pod, json!({"phase": "Running"}), false);
    check(&GroupKind::new("apps", "Deployment"), json!({"phase": "Succeeded"}), false);
}

fn any_json() -> impl Strategy<Value = Value> {
    let keys = prop::sample::select(vec![
        "metadata",
        "spec",
        "status",
        "conditions",
        "type",
        "reason",
        "message",
        "phase",
        "generation",
        "replicas",
        "observedGeneration",
        "updatedReplicas",
        "updateStrategy",
        "rollingUpdate",
        "partition",
        "state",
        "waiting",
        "containerStatuses",
        "initContainerStatuses",
        "terminated",
        "exitCode",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![
            "True",
            "False",
            "Ready",
            "Stalled",
            "Pending",
            "Running",
            "OnDelete",
            "CrashLoopBackOff"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keys.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_tree_has_a_health(object in any_json(), nth in 0..KINDS.len()) {
        let (api_version, kind) = KINDS[nth];
        let gvk = Gvk::from_api_version(api_version, kind);
        let health = of_kind(&gvk.group_kind(), &object);
        prop_assert_eq!(health.is_current(), health.message.is_empty());
    }
}
