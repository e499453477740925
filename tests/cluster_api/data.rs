//! The data that pods use, as hashes, and the key for them.

use std::collections::BTreeSet;
use std::time::Duration;

use rhumb::testing::cluster::{Cluster, ConfigKey, DataChange, DataEvent};
use rhumb::testing::engine::{ConfigData, Precondition};
use rhumb::testing::object::{GroupKind, ObjectId};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{Harness, connect};
use rhumb::testing::cluster::ApplyForce;

fn id(namespace: &str, kind: &str, name: &str) -> ObjectId {
    ObjectId::new(&GroupKind::new("", kind), Some(namespace), name)
}

/// Returns the next news about each of these objects.
async fn next_event(events: &mut mpsc::Receiver<DataEvent>) -> (String, Option<ConfigData>) {
    let event = tokio::time::timeout(Duration::from_secs(30), events.recv()).await.unwrap().unwrap();
    match event.change {
        DataChange::Value(data) => (event.id.name().to_owned(), data),
        DataChange::Failed(why, _) => panic!("{}: {why}", event.id),
    }
}

async fn write(harness: &Harness, name: &str, data: &Value) -> ConfigData {
    let id = id(&harness.namespace, "Secret", name);
    let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": harness.namespace}, "data": data});
    let kind = harness.kind("v1", "Secret");
    let found = harness.cluster.get(&kind, &id).await.unwrap();
    let uid = found.map(|found| found["metadata"]["uid"].as_str().unwrap().to_owned());
    let guard = uid.map_or(Precondition::Absent, |uid| {
        Precondition::Uid(rhumb::testing::engine::Uid(uid.as_str().into()))
    });
    harness.cluster.apply(&kind, &id, &body, &guard, ApplyForce::Forced).await.unwrap();
    ConfigData::of(&id, &body)
}

#[tokio::test]
async fn the_data_of_named_objects_are_reported_and_of_no_others() {
    let harness = Harness::new("data-follow").await;
    let a = write(&harness, "a", &json!({"x": "MQ=="})).await;
    for names in [&["a"][..], &["a", "b"]] {
        let ids: BTreeSet<ObjectId> = names.iter().map(|name| id("data-follow", "Secret", name)).collect();
        let (sink, mut events) = mpsc::channel(64);
        let follower = harness.cluster.watch_data(&ids, sink).unwrap();
        assert_eq!(next_event(&mut events).await, ("a".to_owned(), Some(a)));
        if names.len() > 1 {
            assert_eq!(next_event(&mut events).await, ("b".to_owned(), None));
            write(&harness, "other", &json!({"x": "MQ=="})).await;
            let b = write(&harness, "b", &json!({"x": "MQ=="})).await;
            assert_eq!(next_event(&mut events).await, ("b".to_owned(), Some(b)));
            let changed = write(&harness, "b", &json!({"x": "Mg=="})).await;
            assert_ne!(b, changed);
            assert_eq!(next_event(&mut events).await, ("b".to_owned(), Some(changed)));
            // An audit reports all again.
            follower.relist();
            let again = [next_event(&mut events).await.0, next_event(&mut events).await.0];
            assert_eq!(BTreeSet::from(again), BTreeSet::from(["a".to_owned(), "b".to_owned()]));
        }
    }
    assert_eq!(harness.cluster.read_config_data(&id("data-follow", "Secret", "a")).await.unwrap(), Some(a));
    assert_eq!(harness.cluster.read_config_data(&id("data-follow", "Secret", "none")).await.unwrap(), None);
    drop(harness);
}

#[tokio::test]
async fn many_who_make_the_key_at_once_end_with_the_same() {
    let harness = Harness::new("data-key").await;
    let cluster: Cluster = connect("rhumb").await;
    assert_eq!(cluster.read_config_key("data-key").await.unwrap(), None);
    let make = || async {
        let own = ConfigKey::new_random().unwrap();
        (own.clone(), cluster.make_config_key("data-key", &own).await.unwrap())
    };
    let all = [make(), make(), make(), make()];
    let keys = futures::future::join_all(all).await;
    let there = cluster.read_config_key("data-key").await.unwrap().unwrap();
    assert!(keys.iter().all(|(_, got)| *got == there));
    assert_eq!(keys.iter().filter(|(own, _)| *own == there).count(), 1);
    assert_eq!(format!("{there:?}"), "ConfigKey(..)");
    drop(harness);
}
