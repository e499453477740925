use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::mpsc::{self, Receiver};

use super::fake::{FakeApiServer, ReceivedCall, ScriptedReply, config_maps};
use crate::cluster::call::MAX_ANSWER_BYTES;
use crate::cluster::connect::WatchTimeouts;
use crate::cluster::wire::{DecodedObject, WireDecoder};
use crate::cluster::{ClusterFault, Connection, Informer, InformerChange, InformerEvent, ListSelector};
use crate::engine::LiveObject;

fn object(name: &str, version: u64) -> Value {
    json!({ "metadata": { "name": name, "namespace": "shop", "uid": "u", "resourceVersion": version.to_string() } })
}

fn event(what: &str, object: &Value) -> String {
    format!("{}\n", json!({ "type": what, "object": object }))
}

fn seen(name: &str, version: u64) -> String {
    event("ADDED", &object(name, version))
}

fn bookmark(version: u64, annotations: &Value) -> String {
    event(
        "BOOKMARK",
        &json!({ "metadata": { "resourceVersion": version.to_string(), "annotations": annotations } }),
    )
}

fn end_of_list(version: u64) -> String {
    bookmark(version, &json!({ "k8s.io/initial-events-end": "true" }))
}

fn is_streaming(asked: &ReceivedCall) -> bool {
    asked.path.contains("sendInitialEvents=true")
}

fn inform(fake: &FakeApiServer) -> (Informer, Receiver<InformerEvent>) {
    let (sink, events) = mpsc::channel(64);
    (fake.cluster.informer(&config_maps(), ListSelector::All, 0, sink), events)
}

/// Returns the next so many pieces of news, in words.
async fn next_events(events: &mut Receiver<InformerEvent>, count: usize) -> Vec<String> {
    let mut words = Vec::new();
    while words.len() < count {
        let event = tokio::time::timeout(Duration::from_secs(20), events.recv()).await;
        let Ok(Some(event)) = event else { panic!("no news after {words:?}") };
        words.push(match event.change {
            InformerChange::Init => "started".to_owned(),
            InformerChange::Apply(id, live) => format!("seen {}@{}", id.name(), live.rv),
            InformerChange::Delete(id, rv) => format!("gone {}@{rv}", id.name()),
            InformerChange::InitDone => "synced".to_owned(),
            InformerChange::Failed(error, _) => format!("failed {}", error.class()),
            InformerChange::Resumed => "resumed".to_owned(),
        });
    }
    words
}

#[tokio::test]
async fn a_streaming_list_goes_over_into_its_watch() {
    let fake = FakeApiServer::start(|_, _| {
        let gone = event("DELETED", &object("a", 12));
        ScriptedReply::Stream([seen("a", 3), seen("b", 5), end_of_list(10), seen("c", 11), gone].concat())
    })
    .await;
    let (informer, mut events) = inform(&fake);
    let expected = ["started", "seen a@3", "seen b@5", "synced", "seen c@11", "gone a@12"];
    assert_eq!(next_events(&mut events, 6).await, expected);
    let asked = fake.asked();
    assert_eq!(asked.len(), 1);
    for part in
        ["watch=true", "allowWatchBookmarks=true", "resourceVersionMatch=NotOlderThan", "timeoutSeconds="]
    {
        assert!(asked[0].path.contains(part), "{}", asked[0].path);
    }
    assert!(!asked[0].path.contains("resourceVersion="), "the newest state, not any: {}", asked[0].path);
    drop(informer);
    assert!(events.recv().await.is_none());
}

#[tokio::test]
async fn pages_where_the_server_has_no_streaming_lists() {
    let page = |next: &str, name: &str| json!({ "metadata": { "resourceVersion": "9", "continue": next }, "items": [object(name, 2)] });
    let fake = FakeApiServer::start(move |_, asked| {
        if is_streaming(asked) {
            ScriptedReply::Complete(
                422,
                "",
                json!({ "code": 422, "message": "sendInitialEvents is forbidden" }).to_string(),
            )
        } else if asked.path.contains("watch=true") {
            ScriptedReply::Stream(seen("c", 12))
        } else if asked.path.contains("continue=") {
            ScriptedReply::Complete(200, "", page("", "b").to_string())
        } else {
            ScriptedReply::Complete(200, "", page("more", "a").to_string())
        }
    })
    .await;
    let (informer, mut events) = inform(&fake);
    assert_eq!(next_events(&mut events, 5).await, ["started", "seen a@2", "seen b@2", "synced", "seen c@12"]);
    assert!(
        fake.asked()[3].path.contains("resourceVersion=9&")
            || fake.asked()[3].path.ends_with("resourceVersion=9")
    );
    // It does not ask for what was refused once.
    informer.relist();
    assert_eq!(next_events(&mut events, 4).await, ["started", "seen a@2", "seen b@2", "synced"]);
    assert_eq!(fake.asked().iter().filter(|asked| is_streaming(asked)).count(), 1);
}

#[tokio::test]
async fn a_server_that_never_ends_its_list_is_read_in_pages() {
    let fake = FakeApiServer::start(|_, asked| {
        if asked.path.contains("watch=true") {
            ScriptedReply::Stream(String::new())
        } else {
            ScriptedReply::Complete(
                200,
                "",
                json!({ "metadata": { "resourceVersion": "9" }, "items": [object("a", 2)] }).to_string(),
            )
        }
    })
    .await;
    let (_informer, mut events) = inform(&fake);
    let expected =
        ["started", "failed transient", "started", "failed transient", "started", "seen a@2", "synced"];
    assert_eq!(next_events(&mut events, 7).await, expected);
}

// Objects that a list did not show would be taken for gone.
#[tokio::test]
async fn a_streaming_list_that_is_cut_is_not_complete() {
    let begun = || [seen("a", 3), "{\"type\":\"ADDED\",\"obj".to_owned()].concat();
    for cut in [
        ScriptedReply::Lines(seen("a", 3)),
        ScriptedReply::Lines(begun()),
        ScriptedReply::Cut(seen("a", 3)),
        ScriptedReply::Cut(begun()),
        // A bookmark in the middle does not end it.
        ScriptedReply::Lines([seen("a", 3), bookmark(9, &json!({}))].concat()),
    ] {
        let fake = FakeApiServer::start(move |number, _| match number {
            0 => cut.clone(),
            _ => ScriptedReply::Stream([seen("a", 3), seen("b", 5), end_of_list(10)].concat()),
        })
        .await;
        let (_informer, mut events) = inform(&fake);
        let expected =
            ["started", "seen a@3", "failed transient", "started", "seen a@3", "seen b@5", "synced"];
        assert_eq!(next_events(&mut events, 7).await, expected);
        assert!(fake.asked().iter().all(is_streaming), "it is listed anew, as a whole");
    }
}

// Only a server that never ends its list has no such lists.
#[tokio::test]
async fn a_list_that_is_cut_more_than_once_is_still_read_as_a_stream() {
    let fake = FakeApiServer::start(|number, _| match number {
        0 | 1 => ScriptedReply::Lines(seen("a", 3)),
        _ => ScriptedReply::Stream([seen("a", 3), end_of_list(10)].concat()),
    })
    .await;
    let (_informer, mut events) = inform(&fake);
    let cut = ["started", "seen a@3", "failed transient"];
    let expected = [cut, cut, ["started", "seen a@3", "synced"]].concat();
    assert_eq!(next_events(&mut events, 9).await, expected);
    assert!(fake.asked().iter().all(is_streaming));
}

#[tokio::test]
async fn after_watches_that_the_server_breaks_soon_the_waits_grow() {
    let broken = || event("ERROR", &json!({ "kind": "Status", "code": 500, "reason": "InternalError" }));
    let fake = FakeApiServer::start(move |number, _| {
        let list = if number == 0 { end_of_list(10) } else { String::new() };
        ScriptedReply::Stream(list + &broken())
    })
    .await;
    let (_informer, mut events) = inform(&fake);
    let mut waits = Vec::new();
    while waits.len() < 2 {
        if let InformerChange::Failed(_, wait) = events.recv().await.unwrap().change {
            waits.push(wait);
        }
    }
    let first = Duration::from_millis(800);
    assert!(waits[0] < first && waits[1] >= first, "{waits:?}");
}

#[tokio::test]
async fn a_list_of_which_a_page_is_missing_is_not_complete() {
    let page = |next: &str, name: &str| json!({ "metadata": { "resourceVersion": "9", "continue": next }, "items": [object(name, 2)] });
    for (code, reason) in [(500, "InternalError"), (410, "Expired")] {
        let fake = FakeApiServer::start(move |number, asked| {
            if is_streaming(asked) {
                let refusal = json!({ "code": 422, "message": "sendInitialEvents is forbidden" });
                ScriptedReply::Complete(422, "", refusal.to_string())
            } else if asked.path.contains("watch=true") {
                ScriptedReply::Stream(seen("c", 12))
            } else if asked.path.contains("continue=") && number < 3 {
                ScriptedReply::Complete(code, "", json!({ "code": code, "reason": reason }).to_string())
            } else if asked.path.contains("continue=") {
                ScriptedReply::Complete(200, "", page("", "b").to_string())
            } else {
                ScriptedReply::Complete(200, "", page("more", "a").to_string())
            }
        })
        .await;
        let (_informer, mut events) = inform(&fake);
        let expected =
            ["started", "seen a@2", "failed transient", "started", "seen a@2", "seen b@2", "synced"];
        assert_eq!(next_events(&mut events, 7).await, expected, "{code}");
    }
}

#[tokio::test]
async fn a_watch_goes_on_after_its_end_and_lists_again_after_410() {
    let fake = FakeApiServer::start(|number, asked| match number {
        0 => ScriptedReply::Lines([seen("a", 3), end_of_list(10), bookmark(20, &json!({}))].concat()),
        1 => {
            assert!(asked.path.contains("resourceVersion=20"), "{}", asked.path);
            ScriptedReply::Lines(seen("a", 21))
        }
        2 => {
            assert!(asked.path.contains("resourceVersion=21"), "{}", asked.path);
            ScriptedReply::Stream(event(
                "ERROR",
                &json!({ "kind": "Status", "code": 410, "reason": "Expired" }),
            ))
        }
        _ => ScriptedReply::Stream([seen("b", 30), end_of_list(31)].concat()),
    })
    .await;
    let (_informer, mut events) = inform(&fake);
    let expected =
        ["started", "seen a@3", "synced", "seen a@21", "failed transient", "started", "seen b@30", "synced"];
    assert_eq!(next_events(&mut events, 8).await, expected);
    assert!(is_streaming(&fake.asked()[3]));
}

#[tokio::test]
async fn a_410_at_the_start_of_a_watch_lists_again() {
    let fake = FakeApiServer::start(|number, _| match number {
        0 => ScriptedReply::Lines([seen("a", 3), end_of_list(10)].concat()),
        1 => ScriptedReply::Complete(410, "", json!({ "code": 410, "reason": "Gone" }).to_string()),
        _ => ScriptedReply::Stream(end_of_list(31)),
    })
    .await;
    let (_informer, mut events) = inform(&fake);
    assert_eq!(
        next_events(&mut events, 6).await,
        ["started", "seen a@3", "synced", "failed transient", "started", "synced"]
    );
}

#[tokio::test]
async fn watches_that_are_cut_at_once_are_not_asked_for_in_a_loop() {
    let (sink, mut times) = mpsc::unbounded_channel();
    let fake = FakeApiServer::start(move |number, _| {
        // Nobody listens any more at the end.
        let _ = sink.send(Instant::now());
        ScriptedReply::Lines(if number == 0 { end_of_list(10) } else { String::new() })
    })
    .await;
    let (_informer, mut events) = inform(&fake);
    next_events(&mut events, 2).await;
    let mut before = times.recv().await.unwrap();
    // At least half of the backoff, which doubles.
    for least in [400, 800].map(Duration::from_millis) {
        let next = times.recv().await.unwrap();
        assert!(next - before >= least, "{:?} after the one before it", next - before);
        before = next;
    }
}

#[tokio::test]
async fn a_silent_watch_is_given_up_and_resumed() {
    let patience = WatchTimeouts {
        lifetime: Duration::from_secs(100),
        grace: Duration::from_secs(100),
        silence: Duration::from_secs(1),
    };
    let fake = FakeApiServer::start_with(Connection::default(), patience, |number, _| match number {
        // Only a bookmark after the list shows that this server sends them.
        0 => ScriptedReply::Stream([end_of_list(10), bookmark(11, &json!({}))].concat()),
        _ => ScriptedReply::Stream(seen("a", 12)),
    })
    .await;
    let since = Instant::now();
    let (_informer, mut events) = inform(&fake);
    assert_eq!(
        next_events(&mut events, 5).await,
        ["started", "synced", "failed transient", "resumed", "seen a@12"]
    );
    assert!(since.elapsed() < Duration::from_secs(30));
    assert!(fake.asked()[1].path.contains("resourceVersion=11"));
}

#[tokio::test]
async fn one_object_that_cannot_be_read_holds_up_nothing() {
    let odd = event("ADDED", &json!({ "metadata": { "name": 5 }, "spec": "text" }));
    let fake = FakeApiServer::start(move |_, _| {
        let unordered = format!("{{\"object\":{},\"type\":\"ADDED\"}}\n", object("b", 4));
        ScriptedReply::Stream(
            [odd.clone(), event("ADDED", &json!(null)), seen("a", 3), unordered, end_of_list(10)].concat(),
        )
    })
    .await;
    let (_informer, mut events) = inform(&fake);
    assert_eq!(next_events(&mut events, 4).await, ["started", "seen a@3", "seen b@4", "synced"]);
}

#[tokio::test]
async fn a_forbidden_kind_fails_and_recovers_by_itself() {
    let fake = FakeApiServer::start(|number, _| match number {
        0 => ScriptedReply::Complete(403, "", json!({ "code": 403, "message": "no" }).to_string()),
        _ => ScriptedReply::Stream(end_of_list(10)),
    })
    .await;
    let (sink, mut events) = mpsc::channel(64);
    let sets = BTreeSet::from(["applyset-a-v1".into()]);
    let _informer = fake.cluster.informer(&config_maps(), ListSelector::ApplySets(sets), 0, sink);
    let first = events.recv().await.unwrap();
    assert!(matches!(first.change, InformerChange::Init));
    let Some(InformerEvent { change: InformerChange::Failed(error, wait), .. }) = events.recv().await else {
        panic!()
    };
    assert!(matches!(error.fault(), ClusterFault::Denied { .. }));
    assert_eq!(error.to_string(), "ConfigMap: no");
    assert!((Duration::from_millis(400)..=Duration::from_millis(800)).contains(&wait), "{wait:?}");
    assert_eq!(next_events(&mut events, 2).await, ["started", "synced"]);
    assert!(
        fake.asked()[0]
            .path
            .contains("labelSelector=applyset.kubernetes.io%2Fpart-of%20in%20%28applyset-a-v1%29")
    );
}

#[tokio::test]
async fn a_refusal_that_is_too_long_is_not_read() {
    let fake = FakeApiServer::start(|number, _| match number {
        0 => ScriptedReply::Complete(500, "", " ".repeat(MAX_ANSWER_BYTES + 1)),
        _ => ScriptedReply::Stream(end_of_list(10)),
    })
    .await;
    let (_informer, mut events) = inform(&fake);
    assert_eq!(next_events(&mut events, 1).await, ["started"]);
    let Some(InformerEvent { change: InformerChange::Failed(error, _), .. }) = events.recv().await else {
        panic!()
    };
    assert!(matches!(error.fault(), ClusterFault::TooLong { .. }), "{error}");
    assert_eq!(next_events(&mut events, 2).await, ["started", "synced"]);
}

#[tokio::test]
async fn a_relist_is_done_on_demand() {
    let fake = FakeApiServer::start(|number, _| {
        ScriptedReply::Stream([seen("a", 3 + number as u64), end_of_list(10)].concat())
    })
    .await;
    let (informer, mut events) = inform(&fake);
    assert_eq!(next_events(&mut events, 3).await, ["started", "seen a@3", "synced"]);
    assert!(!informer.is_finished());
    informer.relist();
    assert_eq!(next_events(&mut events, 3).await, ["started", "seen a@4", "synced"]);
    drop(events);
    drop(informer);
}

/// Reads nothing.
#[derive(Clone)]
struct BrokenDecoder;

impl WireDecoder for BrokenDecoder {
    type Record = LiveObject;

    fn decode(&self, _: &str) -> Option<DecodedObject<LiveObject>> {
        panic!("on purpose")
    }
}

#[tokio::test]
async fn the_end_of_an_informer_by_a_bug_is_reported() {
    let fake = FakeApiServer::start(|_, _| ScriptedReply::Stream(seen("a", 3))).await;
    let (sink, mut events) = mpsc::channel(64);
    let informer = fake.cluster.inform(&config_maps(), ListSelector::All, BrokenDecoder, sink);
    assert_eq!(next_events(&mut events, 2).await, ["started", "failed internal"]);
    assert!(events.recv().await.is_none());
    while !informer.is_finished() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_watch_says_until_when_its_next_sign_of_life_is_due() {
    let fake =
        FakeApiServer::start(|_, _| ScriptedReply::Stream([seen("a", 1), end_of_list(2)].concat())).await;
    let (informer, mut events) = inform(&fake);
    next_events(&mut events, 3).await;
    let signs = fake.cluster.heartbeats().statuses();
    let [sign] = &signs[..] else { panic!("{signs:?}") };
    assert_eq!(&*sign.name, "the watch over ConfigMap");
    // No later than the server itself ends the watch, with some patience.
    let wait = sign.due - sign.last;
    let WatchTimeouts { lifetime, grace, .. } = fake.cluster.watch_timeouts();
    assert!(wait > Duration::ZERO && wait <= lifetime + grace + Duration::from_mins(1), "{wait:?}");
    // Until then the server may be silent.
    while fake.cluster.heartbeats().statuses().iter().all(|sign| sign.due - sign.last < lifetime) {
        tokio::task::yield_now().await;
    }
    drop(informer);
    while !fake.cluster.heartbeats().statuses().is_empty() {
        tokio::task::yield_now().await;
    }
}
