//! Informers, and calls that go wrong on the way.

use std::sync::Arc;
use std::time::{Duration, Instant};

use controlplane::{Answer, Fault as Broken, FaultProxy, Requests, ResponseCut, Rule};
use rhumb::testing::cluster::{
    ApplyForce, Cluster, ClusterFault, Connection, Informer, InformerEvent, ListSelector, RetryAdvice,
};
use rhumb::testing::engine::{Precondition, Uid};
use rhumb::testing::object::{GroupKind, ObjectId};
use serde_json::json;
use tokio::sync::mpsc;

use super::{ALONE, Harness, plane, served, until};

fn members(harness: &Harness, set: &str) -> (Informer, mpsc::Receiver<InformerEvent>) {
    let (sink, events) = mpsc::channel(64);
    let selector = ListSelector::ApplySets([Arc::<str>::from(set)].into());
    (harness.cluster.informer(&harness.config_maps(), selector, 0, sink), events)
}

async fn make_member(harness: &Harness, name: &str, set: &str) -> Uid {
    let mut body = harness.body(name, &json!({}));
    body["metadata"]["labels"] = json!({ "applyset.kubernetes.io/part-of": set });
    let id = harness.id(name);
    harness
        .cluster
        .apply(&harness.config_maps(), &id, &body, &Precondition::Absent, ApplyForce::Unforced)
        .await
        .unwrap()
        .live
        .uid
}

#[tokio::test]
async fn an_informer_tells_what_happens_to_members() {
    let harness = Harness::new("informers").await;
    let set = "applyset-informers-v1";
    make_member(&harness, "a", set).await;
    let (informer, mut events) = members(&harness, set);
    let ours = |name: &str| format!("seen {name} Ours(\"{set}\")");
    assert_eq!(until(&mut events, "synced").await, ["started".to_owned(), ours("a"), "synced".to_owned()]);
    make_member(&harness, "b", set).await;
    assert_eq!(until(&mut events, &ours("b")).await, [ours("b")]);
    // A stripped label looks like an end.
    harness.kubectl(&["label", "configmap", "a", "applyset.kubernetes.io/part-of-"], "");
    assert_eq!(until(&mut events, "gone a").await, ["gone a"]);
    harness.kubectl(&["delete", "configmap", "b"], "");
    assert_eq!(until(&mut events, "gone b").await, ["gone b"]);
    informer.relist();
    assert_eq!(until(&mut events, "synced").await, ["started", "synced"]);
    assert!(!informer.is_finished());
}

/// Starts a proxy for the calls of a harness, which makes the faults that it is given.
async fn faulty(harness: &mut Harness) -> FaultProxy {
    let proxy = plane().fault_proxy(7).unwrap();
    let connection = Connection {
        kubeconfig: Some(proxy.kubeconfig("rhumb").unwrap()),
        timeout: Duration::from_secs(2),
        ..Connection::default()
    };
    harness.cluster = Cluster::connect(&connection).await.unwrap();
    proxy
}

#[tokio::test]
async fn an_answer_that_is_lost_is_no_word_about_the_write() {
    let mut harness = Harness::new("lost").await;
    let proxy = faulty(&mut harness).await;
    for (name, ending) in
        [("closed", ResponseCut::Close), ("reset", ResponseCut::Reset), ("silent", ResponseCut::Silence)]
    {
        proxy.add(Rule::new(Requests::any().method("PATCH"), Broken::DropAnswer(ending)).times(1));
        let fault = harness
            .apply(name, json!({ "a": "1" }), Precondition::Absent, ApplyForce::Unforced)
            .await
            .unwrap_err();
        assert_eq!(fault.retry(), RetryAdvice::ShortBackoff, "{fault}");
        assert!(matches!(fault, ClusterFault::Unreachable { .. } | ClusterFault::Timeout { .. }), "{fault}");
        // It was done.
        assert_eq!(harness.data(name).await, json!({ "a": "1" }));
    }
    proxy.add(Rule::new(Requests::any().method("GET"), Broken::Truncate(20)).times(1));
    let error = harness.cluster.get(&harness.config_maps(), &harness.id("closed")).await.unwrap_err();
    assert!(matches!(error.fault(), ClusterFault::Garbled { .. }), "{error}");
    let slow = Answer::error(429, "TooManyRequests").header("Retry-After", "1");
    proxy.add(Rule::new(Requests::any(), Broken::Replace(slow)).times(1));
    let error = harness.cluster.get(&harness.config_maps(), &harness.id("closed")).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
}

#[tokio::test]
async fn an_informer_misses_nothing_when_watches_break() {
    let mut harness = Harness::new("cuts").await;
    let proxy = faulty(&mut harness).await;
    let set = "applyset-cuts-v1";
    let ours = |name: &str| format!("seen {name} Ours(\"{set}\")");
    let (_informer, mut events) = members(&harness, set);
    until(&mut events, "synced").await;
    for (name, ending) in [("a", ResponseCut::Close), ("b", ResponseCut::Reset)] {
        proxy.end_open(&Requests::any().watches(), ending);
        make_member(&harness, name, set).await;
        let events_seen = until(&mut events, &ours(name)).await;
        assert!(!events_seen.contains(&"started".to_owned()), "it resumes: {events_seen:?}");
    }
    // Too old: listed again.
    proxy.add(
        Rule::new(Requests::any().watches(), Broken::Replace(Answer::watch_error(410, "Expired"))).times(1),
    );
    proxy.end_open(&Requests::any().watches(), ResponseCut::Close);
    let events_seen = until(&mut events, "synced").await;
    assert!(events_seen.contains(&ours("a")) && events_seen.contains(&ours("b")), "{events_seen:?}");
    // A kind that is forbidden for a while.
    let rule =
        proxy.add(Rule::new(Requests::any().watches(), Broken::Replace(Answer::error(403, "Forbidden"))));
    proxy.end_open(&Requests::any().watches(), ResponseCut::Close);
    until(&mut events, "failed forbidden").await;
    make_member(&harness, "c", set).await;
    proxy.remove(rule);
    until(&mut events, &ours("c")).await;
}

#[tokio::test]
async fn an_informer_outlives_the_server() {
    let harness = Harness::new("restart").await;
    let set = "applyset-restart-v1";
    make_member(&harness, "a", set).await;
    let (_informer, mut events) = members(&harness, set);
    until(&mut events, "synced").await;
    let Harness { cluster, kinds, namespace, together } = harness;
    drop(together);
    let _alone = ALONE.write().await;
    plane().kill_apiserver().unwrap();
    assert_eq!(until(&mut events, "failed transient").await.len(), 1);
    plane().start_apiserver().unwrap();
    let back = Instant::now();
    let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "b", "namespace": namespace, "labels": { "applyset.kubernetes.io/part-of": set } } });
    let id = ObjectId::new(&GroupKind::new("", "ConfigMap"), Some(&namespace), "b");
    let kind = served(&kinds, "v1", "ConfigMap");
    cluster.apply(&kind, &id, &body, &Precondition::Absent, ApplyForce::Unforced).await.unwrap();
    let events_seen = until(&mut events, &format!("seen b Ours(\"{set}\")")).await;
    assert!(back.elapsed() < Duration::from_secs(30), "{:?}", back.elapsed());
    assert!(!events_seen.contains(&"gone a".to_owned()), "{events_seen:?}");
}
