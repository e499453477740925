//! The document that describes the answers names every route and every parameter, and no other.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::Request;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::session::SIGN_IN_PATH;
use super::{ProcessHandle, RequestGuard, RouteSet, UnservedSources, WebhookReceiver, router};
use crate::engine::{CauseCode, ReasonCode};
use crate::heartbeat::Heartbeats;
use crate::render::{CodedReason, ReasonDetails};
use crate::report::{
    BoundUsage, CommitStatus, DaemonStatus, DifferingObject, EndpointMetrics, EventReason, EventRecord,
    EventRecorder, Metrics, ObjectComparison, ObjectRef, ObjectStatus, Phase, ProcessStatus,
    QueuedWorkloadStatus, RolloutStatus, ServiceNotifier, SourceStatus, SystemdService,
    WorkloadRolloutStatus,
};

fn document() -> Value {
    serde_json::from_str(include_str!("openapi.json")).unwrap()
}

fn process() -> ProcessHandle {
    ProcessHandle {
        running: watch::channel(None).1,
        heartbeats: Heartbeats::default(),
        metrics: Metrics::default(),
        service: SystemdService::new(ServiceNotifier::default()),
        recorder: EventRecorder::new(jiff::Timestamp::UNIX_EPOCH),
        endpoints: EndpointMetrics::default(),
    }
}

async fn ask(target: &str) -> (u16, String) {
    let router = TowerToHyperService::new(router(
        process(),
        WebhookReceiver::new(None, UnservedSources::Nobody),
        RouteSet::Guarded(RequestGuard::of_socket(&[])),
    ));
    let answer = router.call(Request::get(target).body(Body::empty()).unwrap()).await.unwrap();
    let code = answer.status().as_u16();
    let media = answer.headers().get("content-type").map(|value| value.to_str().unwrap().to_owned());
    (code, media.unwrap_or_default())
}

#[test]
fn every_route_is_described_and_no_other() {
    let text = include_str!("routes.rs");
    let (_, questions) = text.split_once("fn router(").unwrap();
    let mut routes: BTreeSet<&str> =
        questions.split(".route(\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    // The guard answers the form before any route is looked for.
    routes.insert(SIGN_IN_PATH);
    let document = document();
    let described: BTreeSet<&str> =
        document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(routes, described);
}

#[tokio::test]
async fn every_parameter_is_described_and_no_other() {
    for (path, item) in document()["paths"].as_object().unwrap().clone() {
        let Some(parameters) = item["get"].as_object().map(|get| get.get("parameters")) else { continue };
        let target = path.replace("{kind}", "ConfigMap").replace("{namespace}", "a").replace("{name}", "b");
        let described: BTreeSet<String> = parameters
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter(|parameter| parameter["in"] == "query")
            .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
            .collect();
        let router = TowerToHyperService::new(router(
            process(),
            WebhookReceiver::new(None, UnservedSources::Nobody),
            RouteSet::Guarded(RequestGuard::of_socket(&[])),
        ));
        let asked = Request::get(format!("{target}?nonsense=1")).body(Body::empty()).unwrap();
        let answer = router.call(asked).await.unwrap();
        if described.is_empty() {
            assert_ne!(answer.status(), 400, "{path} knows parameters");
            continue;
        }
        assert_eq!(answer.status(), 400, "{path}");
        let said = axum::body::to_bytes(answer.into_body(), 1 << 16).await.unwrap();
        let said = String::from_utf8(said.to_vec()).unwrap();
        // `unknown field `nonsense`, expected one of `source`, `phase``
        let known: BTreeSet<String> = said.split('`').skip(3).step_by(2).map(str::to_owned).collect();
        assert_eq!(known, described, "{path}: {said}");
    }
}

#[tokio::test]
async fn answers_are_of_the_described_media_types() {
    for (path, item) in document()["paths"].as_object().unwrap() {
        if path.contains('{') || item["get"].is_null() {
            continue;
        }
        let follow = if path == "/v1/events" { "?follow=no" } else { "" };
        let (code, media) = ask(&format!("{path}{follow}")).await;
        let described = &item["get"]["responses"][code.to_string()]["content"];
        let named = described.as_object().unwrap_or_else(|| panic!("{path}: {code}")).keys().next().unwrap();
        assert!(media.starts_with(named), "{path}: {media}");
    }
}

#[tokio::test]
async fn what_is_no_text_is_refused_in_the_described_form() {
    let (code, media) = ask("/v1/objects/%ff/a/b").await;
    assert_eq!((code, &*media), (400, "application/json"));
    let document = document();
    let responses = &document["paths"]["/v1/objects/{kind}/{namespace}/{name}"]["get"]["responses"];
    assert!(responses["400"]["content"]["application/json"].is_object(), "{responses:#}");
}

#[test]
fn the_form_names_every_phase() {
    let document = document();
    let phases: Vec<String> = crate::report::PHASES.iter().map(ToString::to_string).collect();
    assert_eq!(document["components"]["schemas"]["Phase"]["enum"], serde_json::json!(phases));
}

/// Returns an object of which everything is known.
fn named() -> ObjectRef {
    let [group, kind, name] = ["apps", "Deployment", "web"].map(str::to_owned);
    ObjectRef { group, kind, namespace: Some("shop".to_owned()), name }
}

/// Returns a reason of which everything is known.
fn details() -> ReasonDetails {
    let some = || Some(String::new());
    ReasonDetails {
        cause: some(),
        object: Some(named()),
        objects: vec![named()],
        kind: some(),
        version: some(),
        served_versions: vec![String::new()],
        config_map: some(),
        source: some(),
        namespace: some(),
        wave: Some(0),
        step: Some(0),
        steps: Some(0),
        ready: Some(0),
        target: Some(0),
        node: some(),
        pod: some(),
        container: some(),
        pod_reason: some(),
        restarts: Some(0),
        used: Some(0),
        limit: Some(0),
        takes_down: Some(0),
        count: Some(0),
        total: Some(0),
        holder: some(),
        revision: some(),
        until: some(),
        annotation: some(),
        file: some(),
        location: some(),
        error_class: some(),
        retry_after_seconds: Some(0),
        period_seconds: Some(0),
        message: some(),
    }
}

fn coded() -> CodedReason {
    CodedReason { code: Some(String::new()), details: Some(Box::new(details())) }
}

#[test]
fn the_form_names_every_code_and_every_cause() {
    let document = document();
    let schemas = &document["components"]["schemas"];
    let codes: Vec<&str> = ReasonCode::ALL.iter().map(|code| code.word()).collect();
    assert_eq!(schemas["ReasonCode"]["enum"], json!(codes));
    let causes: Vec<&str> = CauseCode::ALL.iter().map(|code| code.word()).collect();
    assert_eq!(schemas["CauseCode"]["enum"], json!(causes));
}

fn object() -> ObjectStatus {
    let some = || Some(String::new());
    ObjectStatus {
        object: named(),
        source: String::new(),
        phase: Phase::Settled,
        reason: some(),
        coded: coded(),
        revision: some(),
        origin: some(),
        wave: 0,
    }
}

fn source(now: Timestamp) -> SourceStatus {
    let some = || Some(String::new());
    SourceStatus {
        revision: some(),
        author: some(),
        subject: some(),
        since: Some(now),
        looked: Some(now),
        incomplete: some(),
        paused: some(),
        unlisted: some(),
        unwatched: some(),
        first_findings: vec!["env.yaml:1: error: it is so".to_owned()],
        ..SourceStatus::default()
    }
}

fn process_status(now: Timestamp) -> ProcessStatus {
    ProcessStatus {
        server_silent_since: Some(now),
        version: String::new(),
        since: now,
        next_resync: now,
        queue: 0,
        unfinished_seconds: 0.0,
        longest_seconds: 0.0,
    }
}

// A part of an answer that is never sent would be a promise.
#[test]
fn the_forms_have_what_is_reported_and_nothing_else() {
    let document = document();
    let check = |form: &str, answer: Value| {
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        let described = &document["components"]["schemas"][form]["properties"];
        assert_eq!(keys(&answer), keys(described), "{form}");
    };
    let (now, text, some) = (Timestamp::UNIX_EPOCH, String::new, || Some(String::new()));
    let (share, difference) = (BoundUsage { used: 0, of: 0 }, text());
    check("Named", json!(named()));
    check("Object", json!(object()));
    check("Differing", json!(DifferingObject { object: object(), difference: text(), note: some() }));
    let mut one = json!(object());
    let compared = json!(ObjectComparison { live: some(), desired: some(), difference, note: some() });
    one.as_object_mut().unwrap().extend(compared.as_object().unwrap().clone());
    one["apiVersion"] = json!("");
    check("OneObject", one);
    check("Source", json!(source(now)));
    check("Commit", json!(CommitStatus { revision: text(), author: text(), subject: text() }));
    check("Share", json!(share));
    let rolling = WorkloadRolloutStatus {
        object: named(),
        source: some(),
        holder: some(),
        replicas: 0,
        updated: 0,
        available: 0,
        unavailable: 0,
        step: some(),
    };
    check("Rolling", json!(rolling));
    let queued = QueuedWorkloadStatus { object: named(), position: Some(1), reason: text(), coded: coded() };
    check("Queued", json!(queued));
    check("ReasonDetails", json!(details()));
    let rollout = RolloutStatus {
        unreadable: Some(String::new()),
        known: true,
        workloads: share,
        unavailable: share,
        starts: share,
        window: 0,
        on_failure: text(),
        rolling: Vec::new(),
        queue: Vec::new(),
    };
    check("Rollout", json!(rollout));
    let process = process_status(now);
    check("Process", json!(process));
    let (api_version, kind) = (text(), text());
    let (sources, unreadable) = (Vec::new(), vec![text()]);
    let status = DaemonStatus { api_version, kind, at: now, process, sources, rollout, unreadable };
    check("Status", json!(status));
    let event = EventRecord {
        number: 1,
        at: now,
        reason: EventReason::Created,
        source: text(),
        object: Some(named()),
        message: text(),
        coded: coded(),
        revision: some(),
        author: some(),
        subject: some(),
        regarding: None,
    };
    check("Event", json!(event));
}
