//! Taking one pod away, with and without a disruption budget.

use std::time::{Duration, Instant};

use rhumb::testing::cluster::{DeleteResult, EvictionResponse};
use rhumb::testing::engine::Uid;
use serde_json::json;

use crate::harness::{Harness, SLOW_TIMEOUT, plane};

fn budget(name: &str, app: &str, available: u32) {
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "minAvailable": available, "selector": { "matchLabels": { "app": app } } },
    });
    plane().kubectl_in(&["apply", "-f", "-"], &budget.to_string()).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_eviction_obeys_the_budgets_and_meets_one_incarnation_only() {
    let harness = Harness::new().await;
    let mut web = harness.workload("Deployment", "default", "evictable").start().await;
    let before = web.settles().await;
    let pod = &before.pods[0];
    let evict = async |name: &str, uid: &Uid| harness.cluster.evict("default", name, uid).await.unwrap();
    assert_eq!(evict("nobody", &pod.uid).await, EvictionResponse::Gone);
    assert_eq!(evict(&pod.name, &Uid("another".into())).await, EvictionResponse::Gone);
    budget("strict", "deployment-evictable", 2);
    let deadline = Instant::now() + SLOW_TIMEOUT;
    loop {
        let EvictionResponse::Blocked(reason) = evict(&pod.name, &pod.uid).await else { panic!("evicted") };
        assert!(reason.contains("The disruption budget strict"), "{reason}");
        if reason.contains("needs 2 healthy pods and has 2 currently") {
            break;
        }
        // Its controller has not counted yet.
        assert!(Instant::now() < deadline, "{reason}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    budget("second", "deployment-evictable", 1);
    let deadline = Instant::now() + SLOW_TIMEOUT;
    loop {
        match evict(&pod.name, &pod.uid).await {
            EvictionResponse::Blocked(reason) if reason.contains("more than one PodDisruptionBudget") => {
                break;
            }
            other => assert!(Instant::now() < deadline, "{other:?}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    plane().kubectl(&["delete", "pdb", "strict", "second"]).unwrap();
    let deadline = Instant::now() + SLOW_TIMEOUT;
    while evict(&pod.name, &pod.uid).await != EvictionResponse::Accepted {
        // The server looks at a cache of its own.
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let uid = pod.uid.clone();
    let after =
        web.until(|pods| pods.count_ready_newest() == 2 && pods.pods.iter().all(|p| p.uid != uid)).await;
    // And without a budget a pod can also be deleted, in exactly the version that was seen.
    let pod = &after.pods[0];
    let deleted = harness.cluster.delete_pod("default", &pod.name, &pod.uid, pod.rv).await.unwrap();
    assert!(matches!(deleted, DeleteResult::Gone | DeleteResult::Accepted), "{deleted:?}");
    let uid = pod.uid.clone();
    web.until(|pods| pods.count_ready_newest() == 2 && pods.pods.iter().all(|p| p.uid != uid)).await;
}
