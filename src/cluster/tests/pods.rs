use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::fake::{FakeApiServer, ReceivedCall, ScriptedReply, kind};
use crate::cluster::{EvictionResponse, PodsChange, PodsEvent};
use crate::engine::{Uid, find_failure};
use crate::object::{ErrorClass, ObjectId};

fn line(what: &str, object: &Value) -> String {
    format!("{}\n", json!({ "type": what, "object": object }))
}

fn end_of_list() -> String {
    let metadata = json!({ "resourceVersion": "9", "annotations": { "k8s.io/initial-events-end": "true" } });
    line("BOOKMARK", &json!({ "metadata": metadata }))
}

#[tokio::test]
async fn a_failure_is_reported_and_the_pods_again_after_it() {
    let set = json!({
        "metadata": { "name": "web", "namespace": "shop", "uid": "set", "resourceVersion": "5", "generation": 2 },
        "spec": { "replicas": 1 },
        "status": { "observedGeneration": 2, "updateRevision": "r1" },
    });
    let stuck = [json!({ "name": "c", "state": { "waiting": { "reason": "InvalidImageName" } } })];
    let pod = json!({
        "metadata": {
            "name": "web-1", "namespace": "shop", "uid": "u1", "resourceVersion": "7",
            "labels": { "controller-revision-hash": "r1" },
            "ownerReferences": [{ "uid": "set", "controller": true }],
        },
        "status": { "phase": "Pending", "containerStatuses": stuck },
    });
    let failed_once = std::sync::Mutex::new(false);
    let fake = FakeApiServer::start(move |_, asked: &ReceivedCall| {
        if asked.path.contains("/statefulsets?") {
            return ScriptedReply::Stream([line("ADDED", &set), end_of_list()].concat());
        }
        assert!(asked.path.starts_with("/api/v1/namespaces/shop/pods?"), "{}", asked.path);
        assert!(asked.path.contains("labelSelector=app%3Dweb"), "{}", asked.path);
        if !std::mem::replace(&mut *failed_once.lock().unwrap(), true) {
            return ScriptedReply::Complete(500, "", "{}".to_owned());
        }
        ScriptedReply::Stream([line("ADDED", &pod), end_of_list()].concat())
    })
    .await;
    let sets = kind("apps/v1", "StatefulSet", "statefulsets");
    let id = ObjectId::new(&sets.gvk.group_kind(), Some("shop"), "web");
    let (sink, mut events) = mpsc::channel(8);
    let watch = fake.cluster.watch_pods(&sets, &id, &Uid("set".into()), "app=web", sink).unwrap();
    let mut next = async || {
        tokio::time::timeout(Duration::from_secs(20), events.recv())
            .await
            .unwrap()
            .map(|PodsEvent { change, .. }| change)
    };
    let Some(PodsChange::Failed(error, _)) = next().await else { panic!() };
    assert_eq!(error.class(), ErrorClass::Transient);
    let Some(PodsChange::Observed(pods)) = next().await else { panic!() };
    let failing = find_failure(&pods, Instant::now()).unwrap();
    assert_eq!(failing.to_string(), "pod web-1, container c: InvalidImageName");
    drop(watch);
    assert!(next().await.is_none());
}

#[tokio::test]
async fn a_kind_without_pods_of_its_own_is_not_followed() {
    let fake = FakeApiServer::start(|_, _| ScriptedReply::Silence).await;
    let jobs = kind("batch/v1", "Job", "jobs");
    let id = ObjectId::new(&jobs.gvk.group_kind(), Some("shop"), "web");
    let (sink, _events) = mpsc::channel(8);
    assert!(fake.cluster.watch_pods(&jobs, &id, &Uid("u".into()), "app=web", sink).is_none());
    assert!(fake.asked().is_empty());
}

#[tokio::test]
async fn the_answers_to_an_eviction_are_distinguished() {
    async fn check(code: u16, status: Value, there: &'static str, expected: Result<EvictionResponse, &str>) {
        let fake = FakeApiServer::start(move |_, asked| match &*asked.method {
            "POST" => ScriptedReply::Complete(code, "", status.to_string()),
            _ => ScriptedReply::Complete(200, "", json!({ "metadata": { "uid": there } }).to_string()),
        })
        .await;
        let answer = fake.cluster.evict("shop", "web-1", &Uid("u".into())).await;
        assert_eq!(answer.map_err(|error| error.reason()), expected.map_err(str::to_owned));
        let asked = &fake.asked()[0];
        assert_eq!(asked.path, "/api/v1/namespaces/shop/pods/web-1/eviction");
        let body: Value = serde_json::from_str(&asked.body).unwrap();
        assert_eq!(body["deleteOptions"]["preconditions"]["uid"], "u");
    }
    let status = |message: &str, causes: Value| json!({ "kind": "Status", "message": message, "details": { "name": "web-1", "kind": "pods", "causes": causes } });
    check(201, status("", json!([])), "u", Ok(EvictionResponse::Accepted)).await;
    check(404, status("pods \"web-1\" not found", json!([])), "u", Ok(EvictionResponse::Gone)).await;
    let cause = json!([{ "reason": "DisruptionBudget", "message": "The disruption budget few needs 2" }]);
    let blocked = Ok(EvictionResponse::Blocked("The disruption budget few needs 2".into()));
    check(429, status("Cannot evict pod", cause), "u", blocked).await;
    let slow = Err("the server asks to slow down (429)");
    check(429, status("too many requests", json!([])), "u", slow).await;
    let several = "This pod has more than one PodDisruptionBudget, which is not supported.";
    check(500, status(several, json!([])), "u", Ok(EvictionResponse::Blocked(several.into()))).await;
    check(500, status("broken", json!([])), "u", Err("broken (status 500)")).await;
    check(409, status("the UID differs", json!([])), "v", Ok(EvictionResponse::Gone)).await;
    check(409, status("the UID differs", json!([])), "u", Err("it has changed meanwhile")).await;
}

#[tokio::test]
async fn the_last_warnings_are_reported_once_each_and_newest_last() {
    let event = |uid: &str, message: &str, at: &str, count: u64| {
        json!({
            "metadata": { "name": format!("{uid}-{message}-{at}"), "namespace": "shop" },
            "involvedObject": { "kind": "Pod", "name": uid, "uid": uid },
            "reason": "BackOff", "message": message, "lastTimestamp": at, "count": count,
        })
    };
    let time = |minute: u32| format!("2026-01-02T03:{minute:02}:00Z");
    let fake = FakeApiServer::start(move |_, asked| {
        assert!(asked.path.starts_with("/api/v1/namespaces/shop/events?"), "{}", asked.path);
        assert!(asked.path.contains("type%3DWarning"), "{}", asked.path);
        let items = if asked.path.contains("involvedObject.uid%3Da%2C") {
            let mut series = event("a", "combined", "", 0);
            series["message"] = json!("(combined from similar events): sum");
            series["series"] = json!({ "count": 9, "lastObservedTime": "2026-01-02T03:30:00.123456Z" });
            let many = (0..4).map(|n| event("a", &format!("m{n}"), &time(n), 1));
            many.chain([series, json!("no event")]).collect()
        } else {
            vec![event("b", "one\ntwo", &time(10), 2), event("b", "one\ntwo", &time(20), 3)]
        };
        ScriptedReply::Complete(200, "", json!({ "items": items }).to_string())
    })
    .await;
    let warnings = fake.cluster.read_warnings("shop", &[Uid("a".into()), Uid("b".into())]).await.unwrap();
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "Pod a: BackOff: m1",
            "Pod a: BackOff: m2",
            "Pod a: BackOff: m3",
            "Pod b: BackOff: one two (5 times)",
            "Pod a: BackOff: sum (9 times)",
        ]
    );
}
