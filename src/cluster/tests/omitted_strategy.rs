//! The owner of a `rollingUpdate`, and the content that a dry run sends.

use serde_json::{Value, json};

use crate::cluster::omitted_strategy::{OmittedStrategy, with_filled_entries_taken};
use crate::object::GroupKind;

fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
    json!({ "manager": manager, "operation": operation, "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": fields })
}

#[test]
fn what_the_api_server_filled_in_becomes_ours_alone() {
    let check = |rolling: Value, before: &[Value], expected: Option<&[Value]>| {
        let live = json!({
            "apiVersion": "apps/v1",
            "metadata": { "managedFields": before },
            "spec": { "strategy": { "rollingUpdate": rolling } },
        });
        assert_eq!(
            with_filled_entries_taken(&live, "strategy"),
            expected.map(<[Value]>::to_vec),
            "{rolling} {before:?}"
        );
    };
    let filled = json!({ "maxSurge": "25%", "maxUnavailable": 0 });
    let all = json!({ ".": {}, "f:maxSurge": {}, "f:maxUnavailable": {} });
    let rolling = |inner: &Value| json!({ "f:spec": { "f:strategy": { "f:rollingUpdate": inner } } });
    let ours = |fields: &Value| entry("rhumb", "Apply", fields);
    let theirs = |fields: &Value| entry("kubectl-edit", "Update", fields);
    let replicas = json!({ "f:spec": { "f:replicas": {} } });
    let both = json!({ "f:spec": { "f:replicas": {}, "f:strategy": { "f:rollingUpdate": all } } });
    check(Value::Null, &[ours(&replicas)], None);
    check(filled.clone(), &[], Some(&[ours(&rolling(&all))]));
    check(filled.clone(), &[ours(&replicas)], Some(&[ours(&both)]));
    check(filled.clone(), &[ours(&both)], Some(&[ours(&both)]));
    // An entry that held nothing else goes; one that held more stays with the rest.
    let one = rolling(&json!({ "f:maxSurge": {} }));
    check(filled.clone(), &[theirs(&one), ours(&replicas)], Some(&[ours(&both)]));
    check(filled.clone(), &[ours(&replicas), theirs(&both)], Some(&[ours(&both), theirs(&replicas)]));
    let itself = |rest: Value| json!({ "f:spec": { "f:strategy": { ".": {}, "f:type": {}, "f:rollingUpdate": rest } } });
    let left = json!({ "f:spec": { "f:strategy": { ".": {}, "f:type": {} } } });
    check(filled, &[theirs(&itself(json!({}))), ours(&replicas)], Some(&[theirs(&left), ours(&both)]));
}

#[test]
fn a_dry_run_leaves_out_a_strategy_that_would_be_refused() {
    let check = |kind: &str, field: &str, strategy: Value, live: Option<Value>, expected: Option<Value>| {
        let kind = GroupKind::new("apps", kind);
        let body = json!({ "spec": { "replicas": 2, field: strategy } });
        let live = live.map(|rolling| json!({ "spec": { field: { "rollingUpdate": rolling } } }));
        let answer = OmittedStrategy::of(&kind, &body, live.as_ref()).map(|left_out| {
            assert_eq!(left_out.body, json!({ "spec": { "replicas": 2 } }));
            left_out.put_back(json!({ "spec": { "replicas": 2, field: { "type": "RollingUpdate" } } }))
        });
        let expected = expected.map(|strategy| json!({ "spec": { "replicas": 2, field: strategy } }));
        assert_eq!(answer, expected, "{kind} {body} {live:?}");
    };
    let rolling = || Some(json!({ "maxSurge": 1 }));
    let recreate = json!({ "type": "Recreate" });
    let on_delete = json!({ "type": "OnDelete" });
    check("Deployment", "strategy", recreate.clone(), rolling(), Some(recreate.clone()));
    let named = json!({ "type": "Recreate", "rollingUpdate": null });
    check("Deployment", "strategy", named, rolling(), Some(recreate.clone()));
    check("Deployment", "strategy", recreate.clone(), None, None);
    check("Deployment", "strategy", recreate.clone(), Some(Value::Null), None);
    check("Deployment", "strategy", json!({ "type": "RollingUpdate" }), rolling(), None);
    // An impossible combination is left to the server.
    let wrong = json!({ "type": "Recreate", "rollingUpdate": { "maxSurge": 1 } });
    check("Deployment", "strategy", wrong, rolling(), None);
    check("StatefulSet", "updateStrategy", on_delete.clone(), rolling(), Some(on_delete.clone()));
    check("DaemonSet", "updateStrategy", on_delete, rolling(), None);
}
