//! The pods that count: those of the newest revision, of this workload.

use std::time::{Duration, Instant};

use rhumb::testing::cluster::DeleteResult;
use rhumb::testing::engine::find_failure;
use serde_json::json;

use crate::harness::{Harness, KINDS, all_at_once, plane};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_of_an_older_revision_never_count() {
    async fn check(harness: Harness, kind: &str) {
        let mut web = harness.workload(kind, "default", "older");
        web.image("web:broken");
        let mut web = web.start().await;
        web.fails().await;
        web.workload.image("web:2");
        web.roll().await;
        if kind == "StatefulSet" {
            // It does not come back by itself: the broken pod must go first, and is no failure of
            // the new one.
            let pods = web.until(|pods| pods.newest.is_some() && pods.count_updated() == 0).await;
            assert_eq!(find_failure(&pods, Instant::now() + Duration::from_hours(1)), None);
            let pod = &pods.pods[0];
            assert_ne!(pod.revision, pods.newest);
            assert!(pod.container_failure.is_some(), "{pod:#?}");
            let deleted = harness.cluster.delete_pod("default", &pod.name, &pod.uid, pod.rv).await.unwrap();
            assert!(matches!(deleted, DeleteResult::Accepted | DeleteResult::Gone), "{deleted:?}");
        }
        web.settles().await;
    }
    let harness = Harness::new().await;
    all_at_once(KINDS.map(|kind| check(harness.clone(), kind))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rollback_is_never_judged_by_the_pods_that_it_replaces() {
    // The controller counts a generation as observed too early: before it sets the number of the
    // revision that it took back. Where it also scales, even before it makes a new one. Each round
    // passes through both.
    async fn check(harness: Harness, kind: &str) {
        let mut web = harness.workload(kind, "default", "back").start().await;
        let good = web.settles().await.newest;
        for round in 0..4 {
            if kind == "Deployment" {
                // Broken and good pods are as many, so that counts alone do not distinguish them.
                web.workload.body["spec"]["strategy"] =
                    json!({ "rollingUpdate": { "maxSurge": 0, "maxUnavailable": 1 } });
                web.workload.body["spec"]["replicas"] = json!(2 + round % 2);
            }
            web.workload.image(&format!("web-{round}:broken"));
            web.roll().await;
            let (failing, _) = web.fails().await;
            assert_eq!(&*failing.reason, "ImagePullBackOff", "{failing}");
            web.workload.image("web:1");
            if kind == "Deployment" {
                web.workload.body["spec"]["replicas"] = json!(2);
            }
            web.roll().await;
            let back = web.settles().await;
            assert_eq!(back.newest, good, "round {round}");
        }
    }
    let harness = Harness::new().await;
    all_at_once(["Deployment", "DaemonSet"].map(|kind| check(harness.clone(), kind))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_of_others_are_not_mistaken() {
    async fn check(harness: Harness, kind: &str) {
        let labels = json!({ "app": format!("twins-{}", kind.to_lowercase()) });
        let twin = |name: &str, image: &str| {
            let mut web = harness.workload(kind, "default", name);
            web.body["spec"]["selector"]["matchLabels"] = labels.clone();
            web.template()["metadata"]["labels"] = labels.clone();
            web.image(image);
            web
        };
        let (mut good, mut bad) =
            (twin("good", "web:1").start().await, twin("bad", "web:broken").start().await);
        let (failing_pod, _) = bad.fails().await;
        let settled = good.settles().await;
        assert_eq!(settled.pods.len(), 2);
        assert!(settled.pods.iter().all(|pod| pod.name.starts_with("good-")), "{settled:#?}");
        assert!(failing_pod.pod.unwrap().starts_with("bad-"));
        let bad = bad.pods.unwrap();
        assert!(!bad.pods.is_empty() && bad.pods.iter().all(|pod| pod.name.starts_with("bad-")), "{bad:#?}");
        // A second incarnation under the same name is another workload.
        plane().kubectl(&["delete", kind, "good", "--cascade=foreground"]).unwrap();
        let mut again = twin("good", "web:1").start().await;
        again.settles().await;
        good.is_about(&again);
        good.until(|pods| pods.newest.is_none() && pods.pods.is_empty()).await;
    }
    let harness = Harness::new().await;
    all_at_once(KINDS.map(|kind| check(harness.clone(), kind))).await;
}
