use std::sync::Arc;

use serde_json::json;

use super::fake::{config_maps, kind};
use crate::cluster::interner::Interner;
use crate::cluster::wire::{
    AutoscalerDecoder, LiveDecoder, MAX_HEALTH_MESSAGE_BYTES, MAX_OUR_FIELDS_BYTES, MAX_TARGET_NAME_BYTES,
    WireDecoder, WireForm,
};
use crate::engine::{
    LiveObject, ObjectOwner, ReleaseAnnotation, ResourceVersion, VolumeClaimRetention, WorkloadPhase,
};
use crate::graph::LabelSelection;
use crate::object::ObjectId;

pub(super) fn live_of(text: &str) -> Option<(ObjectId, LiveObject)> {
    let decoder = LiveDecoder::new(&config_maps(), &Arc::default(), WireForm::Full);
    decoder.decode(text).map(|seen| (seen.id, seen.record))
}

/// A Deployment as the server sends it, with what a reader must skip.
const DEPLOYMENT: &str = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop",
"uid":"0c2f1d5e-1b1f-4a52-9c35-1f6c8f2b7a10","resourceVersion":"4711","generation":3,"creationTimestamp":"2026-01-01T10:00:00Z",
"labels":{"app":"web","applyset.kubernetes.io/part-of":"applyset-x-v1"},
"annotations":{"deployment.kubernetes.io/revision":"2","rhumb.dev/release":"00112233445566778899aabbccddeeff@0123456789012345678901234567890123456789","note":"a \"quoted\" \\ text"},
"managedFields":[
{"manager":"rhumb","operation":"Apply","apiVersion":"apps/v1","time":"2026-01-01T10:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{"f:applyset.kubernetes.io/part-of":{}}},"f:spec":{"f:template":{}}}},
{"manager":"hpa","operation":"Update","apiVersion":"apps/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}},"subresource":"scale"},
{"manager":"kube-controller-manager","operation":"Update","apiVersion":"apps/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:replicas":{}}},"subresource":"status"}]},
"spec":{"replicas":3,"strategy":{"type":"RollingUpdate"},"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}},
"status":{"observedGeneration":3,"replicas":4,"updatedReplicas":1,"readyReplicas":3,"availableReplicas":3}}"#;

#[test]
fn a_deployment_becomes_a_record() {
    let interner: Arc<Interner> = Arc::default();
    let decoder = LiveDecoder::new(&kind("apps/v1", "Deployment", "deployments"), &interner, WireForm::Full);
    let seen = decoder.decode(DEPLOYMENT).unwrap();
    assert_eq!(seen.id.to_string(), "Deployment shop/web");
    let live = seen.record;
    assert_eq!(&*live.uid.0, "0c2f1d5e-1b1f-4a52-9c35-1f6c8f2b7a10");
    assert_eq!((seen.rv, live.rv), (ResourceVersion(4711), ResourceVersion(4711)));
    assert_eq!(live.owner, ObjectOwner::Ours("applyset-x-v1".into()));
    let release = "00112233445566778899aabbccddeeff@0123456789012345678901234567890123456789";
    assert_eq!(live.release, None, "nothing proves it yet");
    assert_eq!(live.unproven_release.as_deref(), ReleaseAnnotation::parse(release).as_ref());
    let ours =
        r#"{"f:metadata":{"f:labels":{"f:applyset.kubernetes.io/part-of":{}}},"f:spec":{"f:template":{}}}"#;
    assert_eq!(live.our_fields.as_deref(), Some(ours));
    let others: Vec<(&str, &str)> = live.other_managers.iter().map(|m| (&*m.name, &*m.subresource)).collect();
    assert_eq!(others, [("hpa", "scale"), ("kube-controller-manager", "status")]);
    assert!(live.replicas_ceded);
    assert!(!live.deleting && !live.finished);
    let replica_status = live.replica_status.unwrap();
    assert_eq!((replica_status.replicas, replica_status.updated, replica_status.available), (3, 1, 3));
    assert_eq!(replica_status.phase, WorkloadPhase::Replacing);
}

#[test]
fn values_behind_our_entry_are_distinguished_and_no_others() {
    let decoder =
        |form| LiveDecoder::new(&kind("apps/v1", "Deployment", "deployments"), &Arc::default(), form);
    let values = |text: &str| decoder(WireForm::Full).decode(text).unwrap().record.value_digest;
    let known = values(DEPLOYMENT);
    assert!(known.is_some());
    let check = |from: &str, to: &str, is_same: bool| {
        let text = DEPLOYMENT.replace(from, to);
        assert_ne!(text, DEPLOYMENT);
        assert_eq!(values(&text) == known, is_same, "{from} became {to}");
    };
    check(r#""image":"i""#, r#""image":"evil""#, false);
    check(r#""image":"i""#, r#""image":"i","args":["evil"]"#, false);
    check(r#"part-of":"applyset-x-v1""#, r#"part-of":"applyset-y-v1""#, false);
    check(r#""resourceVersion":"4711""#, r#""resourceVersion":"4712""#, true);
    check(r#""readyReplicas":3"#, r#""readyReplicas":2"#, true);
    check(r#""spec":{"replicas":3"#, r#""spec":{"replicas":4"#, true);
    assert_eq!(decoder(WireForm::Metadata).decode(DEPLOYMENT).unwrap().record.value_digest, None);
    assert_eq!(values(&DEPLOYMENT.replace(r#""manager":"rhumb""#, r#""manager":"kubectl""#)), None);
}

#[test]
fn the_claims_that_go_with_a_stateful_set_are_known() {
    let kind = kind("apps/v1", "StatefulSet", "statefulsets");
    let decoder = LiveDecoder::new(&kind, &Arc::default(), WireForm::Full);
    let check = |policy: &str, expected: VolumeClaimRetention| {
        let spec = format!(r#""spec":{{{policy}"replicas":3"#);
        let text = DEPLOYMENT.replace(r#""spec":{"replicas":3"#, &spec);
        assert_eq!(decoder.decode(&text).unwrap().record.volume_claim_retention, expected, "{policy}");
    };
    check("", VolumeClaimRetention::Retain);
    let deletes = r#""persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete"},"#;
    check(deletes, VolumeClaimRetention::Delete);
}

#[test]
fn the_pods_that_a_service_selects_are_read_and_equal_those_of_its_manifest() {
    let check = |api_version: &str, name: &str, form: WireForm, spec: serde_json::Value, expected: bool| {
        let decoder = LiveDecoder::new(&kind(api_version, name, "x"), &Arc::default(), form);
        let metadata = json!({ "name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "1" });
        let object = json!({ "apiVersion": api_version, "kind": name, "metadata": metadata, "spec": spec });
        let seen = decoder.decode(&object.to_string()).unwrap();
        let wanted = LabelSelection::of(&seen.id, &object).filter(|_| expected);
        assert_eq!(seen.record.selects, wanted, "{name} {spec}");
        assert_eq!(wanted.is_some(), expected, "{name} {spec}");
    };
    let selector = json!({ "clusterIP": "10.0.0.1", "selector": { "tier": "x", "app": "web" }, "ports": [] });
    check("v1", "Service", WireForm::Full, selector.clone(), true);
    check("v1", "Service", WireForm::Metadata, selector.clone(), false);
    check("v1", "Service", WireForm::Full, json!({ "selector": {} }), false);
    check("v1", "Service", WireForm::Full, json!({}), false);
    check("apps/v1", "Deployment", WireForm::Full, selector, false);
}

#[test]
fn equal_texts_are_kept_once_and_let_go() {
    let interner: Arc<Interner> = Arc::default();
    let decoder = LiveDecoder::new(&kind("apps/v1", "Deployment", "deployments"), &interner, WireForm::Full);
    let one = decoder.decode(DEPLOYMENT).unwrap();
    let two = decoder.decode(&DEPLOYMENT.replace("\"web\"", "\"api\"")).unwrap();
    assert!(Arc::ptr_eq(one.record.our_fields.as_ref().unwrap(), two.record.our_fields.as_ref().unwrap()));
    assert!(Arc::ptr_eq(&one.record.other_managers, &two.record.other_managers));
    assert!(Arc::ptr_eq(&one.record.health.message, &two.record.health.message));
    decoder.sweep();
    assert!(interner.len() > 0);
    drop((one, two));
    decoder.sweep();
    assert_eq!(interner.len(), 0);
}

// Between two complete lists there may be minutes, and thousands of writes.
#[test]
fn texts_that_somebody_writes_over_again_and_again_are_let_go_without_a_list() {
    let interner: Arc<Interner> = Arc::default();
    let kept = interner.text("kept");
    for number in 0..200 {
        interner.text(&format!("{number} {}", "x".repeat(100_000)));
    }
    assert!(interner.len() <= 50, "{}", interner.len());
    assert!(Arc::ptr_eq(&kept, &interner.text("kept")));
}

#[test]
fn the_reason_for_the_health_of_an_object_has_a_bound() {
    let message = |length: usize| {
        let condition =
            json!({ "type": "Stalled", "status": "True", "reason": "x", "message": "y".repeat(length) });
        let metadata = json!({ "name": "a", "uid": "u", "resourceVersion": "7" });
        let object = json!({ "metadata": metadata, "status": { "conditions": [condition] } });
        let decoder =
            LiveDecoder::new(&kind("example.com/v1", "Widget", "widgets"), &Arc::default(), WireForm::Full);
        decoder.decode(&object.to_string()).unwrap().record.health.message.len()
    };
    assert!((100..200).contains(&message(100)), "{}", message(100));
    assert!((400..=MAX_HEALTH_MESSAGE_BYTES).contains(&message(1_000_000)), "{}", message(1_000_000));
}

#[test]
fn a_version_is_only_what_its_number_is_written_as() {
    let check = |text: &str, expected: Option<&str>| {
        let object = json!({ "metadata": { "name": "a", "uid": "u", "resourceVersion": text } });
        let (_, live) = live_of(&object.to_string()).unwrap();
        assert_eq!(live.rv.precondition_text().as_deref(), expected, "{text}");
    };
    check("4711", Some("4711"));
    check("18446744073709551615", Some("18446744073709551615"));
    for text in ["", "0", "007", "+7", "-7", "7 ", "18446744073709551616", "a7"] {
        check(text, None);
    }
}

#[test]
fn hostile_shapes_cost_only_themselves() {
    let named =
        |rest: &str| format!(r#"{{"metadata":{{"name":"a","uid":"u","resourceVersion":"7"}}{rest}}}"#);
    let readable = [
        named(""),
        named(r#","spec":"text","status":5"#),
        named(r#","spec":null,"status":null"#),
        named(r#","spec":[[[]]],"status":{"replicas":"three","conditions":{"a":1}}"#),
        named(r#","spec":{"replicas":1e400},"status":[]"#),
        named(&format!(r#","status":{}{}"#, "[".repeat(100_000), "]".repeat(100_000))),
        named(&format!(r#","spec":{{"a":{}{}}}"#, "{\"b\":".repeat(10_000), format_args!("1{}", "}".repeat(10_000)))),
        r#"{"metadata":{"name":"a","uid":5,"resourceVersion":7,"generation":"x","labels":[],"annotations":{"rhumb.dev/release":{}},
            "ownerReferences":{"controller":true},"managedFields":[5,{"manager":null}],"deletionTimestamp":{}}}"#.to_owned(),
        r#"{"metadata":{"name":"a","managedFields":[{"manager":"rhumb","operation":"Apply","fieldsV1":"text"}],"annotations":{"rhumb.dev/release":"zz@"}}}"#.to_owned(),
    ];
    for text in readable {
        let (id, live) = live_of(&text).unwrap_or_else(|| panic!("{}", &text[..text.len().min(200)]));
        assert_eq!(id.name(), "a");
        assert_eq!((live.owner, live.release), (ObjectOwner::Nobody, None));
    }
    for text in [
        "null",
        "[]",
        "5",
        "{}",
        r#"{"metadata":{}}"#,
        r#"{"metadata":{"name":""}}"#,
        r#"{"metadata":{"name":{}}}"#,
        "{",
    ] {
        assert!(live_of(text).is_none(), "{text}");
    }
}

#[test]
fn escapes_in_names_and_marks_are_read() {
    let text = r#"{"metadata":{"name":"a","namespace":"\u0073hop","labels":{"\u0061pplyset.kubernetes.io/part-of":"applyset-\u0078-v1"}}}"#;
    let (id, live) = live_of(text).unwrap();
    assert_eq!(id.namespace(), Some("shop"));
    assert_eq!(live.owner, ObjectOwner::Labelled("applyset-x-v1".into()));
}

#[test]
fn a_secret_leaves_nothing_behind() {
    let interner: Arc<Interner> = Arc::default();
    let decoder = LiveDecoder::new(&kind("v1", "Secret", "secrets"), &interner, WireForm::Full);
    let text = r#"{"metadata":{"name":"s","namespace":"shop","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"hunter2"}},"data":{"a":"hunter2"},"stringData":{"b":"hunter2"},"type":"Opaque"}"#;
    let live = decoder.decode(text).unwrap().record;
    assert!(!format!("{live:?} {interner:?}").contains("hunter2"));
}

#[test]
fn jobs_and_pods_end() {
    let finished = |api_version: &str, name: &str, status: serde_json::Value| {
        let decoder = LiveDecoder::new(&kind(api_version, name, "x"), &Arc::default(), WireForm::Full);
        decoder
            .decode(&json!({ "metadata": { "name": "a" }, "status": status }).to_string())
            .unwrap()
            .record
            .finished
    };
    let condition = |name: &str, status: &str| json!({ "conditions": [{ "type": name, "status": status }] });
    assert!(finished("batch/v1", "Job", condition("Complete", "True")));
    assert!(finished("batch/v1", "Job", condition("Failed", "True")));
    assert!(!finished("batch/v1", "Job", condition("Complete", "False")));
    assert!(!finished("batch/v1", "Job", condition("Suspended", "True")));
    assert!(!finished("example.com/v1", "Job", condition("Complete", "True")));
    assert!(finished("v1", "Pod", json!({ "phase": "Succeeded" })));
    assert!(!finished("v1", "Pod", json!({ "phase": "Running" })));
}

#[test]
fn an_autoscaler_tells_its_target() {
    let decoder =
        AutoscalerDecoder::new(&kind("autoscaling/v2", "HorizontalPodAutoscaler", "x"), &Arc::default());
    let target = |reference: serde_json::Value| {
        let object = json!({ "metadata": { "name": "h", "namespace": "shop", "resourceVersion": "1" }, "spec": { "scaleTargetRef": reference } });
        decoder.decode(&object.to_string()).unwrap().record.target.map(|target| target.id.resource_name())
    };
    assert_eq!(
        target(json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" })).as_deref(),
        Some("deployment.apps/web")
    );
    assert_eq!(target(json!({ "apiVersion": "v1", "kind": "X", "name": "y" })).as_deref(), Some("x/y"));
    assert_eq!(target(json!("text")), None);
    assert_eq!(target(json!({ "kind": "Deployment" })), None);
}

// Somebody who applies an object under our name chooses how long our entry is.
#[test]
fn an_entry_of_ours_is_kept_up_to_its_bound_and_counts_as_none_beyond_it() {
    let check = |bytes: usize, is_kept: bool| {
        let around = r#"{"f:data":{"f:":{}}}"#.len();
        let entry = format!(r#"{{"f:data":{{"f:{}":{{}}}}}}"#, "a".repeat(bytes - around));
        assert_eq!(entry.len(), bytes);
        let fields = format!(r#"[{{"manager":"rhumb","operation":"Apply","fieldsV1":{entry}}}]"#);
        let text = format!(r#"{{"metadata":{{"name":"a","namespace":"shop","managedFields":{fields}}}}}"#);
        let (_, live) = live_of(&text).unwrap();
        assert_eq!(live.our_fields.as_deref() == Some(&*entry), is_kept, "{bytes}");
        assert_eq!(live.our_fields.is_some(), is_kept, "{bytes}");
    };
    check(1000, true);
    check(MAX_OUR_FIELDS_BYTES, true);
    check(MAX_OUR_FIELDS_BYTES + 1, false);
}

// No object has a longer name, and no kind.
#[test]
fn a_target_of_an_autoscaler_that_no_object_can_be_is_none() {
    let decoder =
        AutoscalerDecoder::new(&kind("autoscaling/v2", "HorizontalPodAutoscaler", "x"), &Arc::default());
    let check = |part: &str, bytes: usize, is_target: bool| {
        let mut reference = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" });
        let version = if part == "apiVersion" { "/v1" } else { "" };
        reference[part] = json!(format!("{}{version}", "a".repeat(bytes)));
        let metadata = json!({ "name": "h", "namespace": "shop", "resourceVersion": "1" });
        let object = json!({ "metadata": metadata, "spec": { "scaleTargetRef": reference } });
        let target = decoder.decode(&object.to_string()).unwrap().record.target;
        assert_eq!(target.is_some(), is_target, "{part} of {bytes}");
    };
    for part in ["apiVersion", "kind", "name"] {
        check(part, MAX_TARGET_NAME_BYTES, true);
        check(part, MAX_TARGET_NAME_BYTES + 1, false);
    }
}
