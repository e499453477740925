//! The health that real controllers bring each kind to.

use std::time::{Duration, Instant};

use controlplane::Cluster;
use rhumb::testing::health;
use serde_json::Value;

use crate::server::{Server, documents};

fn shown(object: &Value) -> String {
    let health = health::of(object);
    let colon = if health.message.is_empty() { "" } else { ": " };
    format!("{}{colon}{}", health.status, health.message)
}

#[tokio::test]
async fn real_controllers_bring_each_kind_to_the_health_that_it_should_have() {
    let server = Server::of(Cluster::builder().nodes(2).start().unwrap()).await;
    let mut waiting = documents(include_str!("health.yaml"));
    for document in &waiting {
        server.apply(&document["object"]).await.unwrap_or_else(|refusal| panic!("{document}: {refusal:?}"));
    }
    // Each is reached at some time; none is passed through only.
    let deadline = Instant::now() + Duration::from_mins(1);
    while !waiting.is_empty() {
        let mut left = Vec::new();
        for document in waiting {
            let found = shown(&server.get(&document["object"]).await);
            let expected = document["expect"].as_str().unwrap();
            if !found.starts_with(expected) {
                let last = Instant::now() > deadline;
                assert!(!last, "{} is {found}, not {expected}", document["object"]["metadata"]["name"]);
                left.push(document);
            }
        }
        waiting = left;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn a_namespace_tells_what_keeps_it() {
    let server = Server::of(Cluster::builder().nodes(1).start().unwrap()).await;
    let namespace =
        serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kept"}});
    let guarded = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "guarded", "namespace": "kept", "finalizers": ["example.org/guard"]}});
    server.apply(&namespace).await.unwrap();
    server.apply(&guarded).await.unwrap();
    server.cluster.kubectl(&["delete", "namespace", "kept", "--wait=false"]).unwrap();
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let found = shown(&server.get(&namespace).await);
        assert!(found.starts_with("Terminating: "), "{found}");
        if found.contains("example.org/guard in 1 resource instances") {
            break;
        }
        assert!(Instant::now() < deadline, "{found}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
