//! The `cluster` module against a real API server.
//!
//! All tests share one control plane; each works in its own namespace. The one that restarts the
//! server runs alone.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, also in its own functions")]

mod data;
mod informers;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rhumb::testing::cluster::{
    AccessDenial, ApplyForce, Cluster, ClusterFault, Connection, DeleteResult, InformerChange, InformerEvent,
    InventoryObject, KindLookup, KindTable, ListSelector, LiveLookup, ReclaimResult, RetryAdvice, ServedKind,
    inventory_id_of,
};
use rhumb::testing::engine::Precondition;
use rhumb::testing::engine::{ObjectOwner, ResourceVersion, Uid};
use rhumb::testing::object::{GroupKind, Gvk, ObjectId};
use serde_json::{Value, json};
use tokio::sync::{RwLock, RwLockReadGuard, mpsc};

static ALONE: RwLock<()> = RwLock::const_new(());

fn plane() -> &'static controlplane::Cluster {
    static PLANE: OnceLock<controlplane::Cluster> = OnceLock::new();
    PLANE.get_or_init(|| controlplane::Cluster::builder().bare().audit().start().unwrap())
}

/// One test's view of the cluster.
struct Harness {
    cluster: Cluster,
    kinds: KindTable,
    namespace: String,
    together: RwLockReadGuard<'static, ()>,
}

impl Harness {
    async fn new(namespace: &str) -> Self {
        let together = ALONE.read().await;
        let cluster = connect("rhumb").await;
        let kinds = cluster.discover().await.unwrap();
        let harness = Self { cluster, kinds, namespace: namespace.to_owned(), together };
        let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
        let id = ObjectId::new(&GroupKind::new("", "Namespace"), None, namespace);
        harness
            .cluster
            .apply(&harness.kind("v1", "Namespace"), &id, &body, &Precondition::Absent, ApplyForce::Unforced)
            .await
            .unwrap();
        harness
    }

    fn kind(&self, api_version: &str, kind: &str) -> Arc<ServedKind> {
        served(&self.kinds, api_version, kind)
    }

    fn config_maps(&self) -> Arc<ServedKind> {
        self.kind("v1", "ConfigMap")
    }

    fn id(&self, name: &str) -> ObjectId {
        ObjectId::new(&GroupKind::new("", "ConfigMap"), Some(&self.namespace), name)
    }

    fn body(&self, name: &str, data: &Value) -> Value {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": self.namespace }, "data": data })
    }

    async fn apply(
        &self,
        name: &str,
        data: Value,
        guard: Precondition,
        force: ApplyForce,
    ) -> Result<(Uid, ResourceVersion, bool), ClusterFault> {
        let body = self.body(name, &data);
        let applied = self.cluster.apply(&self.config_maps(), &self.id(name), &body, &guard, force).await;
        applied.map(|a| (a.live.uid, a.live.rv, a.created)).map_err(|error| error.fault().clone())
    }

    fn kubectl(&self, arguments: &[&str], input: &str) -> String {
        let mut all = vec!["-n", &self.namespace];
        all.extend(arguments);
        plane().kubectl_in(&all, input).unwrap()
    }

    /// Returns the precondition for what is there now.
    async fn precondition(&self, kind: &ServedKind, id: &ObjectId) -> Precondition {
        let found = self.cluster.get(kind, id).await.unwrap();
        let uid = found.map(|object| Uid(object["metadata"]["uid"].as_str().unwrap().into()));
        uid.map_or(Precondition::Absent, Precondition::Uid)
    }

    async fn data(&self, name: &str) -> Value {
        let object = self.cluster.get(&self.config_maps(), &self.id(name)).await.unwrap().unwrap();
        object["data"].clone()
    }
}

async fn connect(user: &str) -> Cluster {
    let kubeconfig = plane().kubeconfig_for(user).unwrap();
    Cluster::connect(&Connection { kubeconfig: Some(kubeconfig), ..Connection::default() }).await.unwrap()
}

fn served(kinds: &KindTable, api_version: &str, kind: &str) -> Arc<ServedKind> {
    match kinds.get(&Gvk::from_api_version(api_version, kind)) {
        KindLookup::Served(kind) => kind,
        other => panic!("{api_version} {kind}: {other:?}"),
    }
}

/// Reads news until one passes, and returns all in words.
async fn until(events: &mut mpsc::Receiver<InformerEvent>, last: &str) -> Vec<String> {
    let mut events_seen: Vec<String> = Vec::new();
    while events_seen.last().is_none_or(|words| words != last) {
        let Ok(Some(event)) = tokio::time::timeout(Duration::from_mins(1), events.recv()).await else {
            panic!("no {last:?} after {events_seen:?}")
        };
        events_seen.push(match event.change {
            InformerChange::Init => "started".to_owned(),
            InformerChange::Apply(id, live) => format!("seen {} {:?}", id.name(), live.owner),
            InformerChange::Delete(id, _) => format!("gone {}", id.name()),
            InformerChange::InitDone => "synced".to_owned(),
            InformerChange::Failed(error, _) => format!("failed {}", error.class()),
            InformerChange::Resumed => "resumed".to_owned(),
        });
    }
    events_seen
}

#[tokio::test]
async fn guards_hold_as_the_table_says() {
    let harness = Harness::new("guards").await;
    let one = || json!({ "a": "1" });
    let other = Uid("6e4f9a52-0000-4000-8000-000000000000".into());
    // A uid forbids creation.
    let stale = harness.apply("x", one(), Precondition::Uid(other.clone()), ApplyForce::Forced).await;
    assert_eq!(stale, Err(ClusterFault::VersionConflict));
    let (uid, first, created) =
        harness.apply("x", one(), Precondition::Absent, ApplyForce::Unforced).await.unwrap();
    assert!(created);
    // The same again changes nothing.
    let again = harness.apply("x", one(), Precondition::Uid(uid.clone()), ApplyForce::Forced).await;
    assert_eq!(again, Ok((uid.clone(), first, false)));
    let (_, second, _) = harness
        .apply("x", json!({ "a": "2" }), Precondition::Exact(uid.clone(), first), ApplyForce::Forced)
        .await
        .unwrap();
    assert!(second > first);
    assert_eq!(
        harness.apply("x", one(), Precondition::Exact(uid.clone(), first), ApplyForce::Forced).await,
        Err(ClusterFault::VersionConflict)
    );
    assert_eq!(
        harness.apply("x", one(), Precondition::Uid(other), ApplyForce::Forced).await,
        Err(ClusterFault::VersionConflict)
    );
    assert_eq!(harness.data("x").await, json!({ "a": "2" }));
}

#[tokio::test]
async fn an_unforced_apply_names_who_owns_the_fields() {
    let harness = Harness::new("owned").await;
    harness.kubectl(&["create", "configmap", "x", "--from-literal=a=1", "--from-literal=b=2"], "");
    let there = harness.precondition(&harness.config_maps(), &harness.id("x")).await;
    // The same value is owned together.
    harness.apply("x", json!({ "a": "1" }), there.clone(), ApplyForce::Unforced).await.unwrap();
    let Err(ClusterFault::FieldConflicts { conflicts }) =
        harness.apply("x", json!({ "a": "9", "b": "9" }), there.clone(), ApplyForce::Unforced).await
    else {
        panic!()
    };
    let found: Vec<(&str, &str)> = conflicts.iter().map(|c| (c.manager.as_str(), c.field.as_str())).collect();
    assert_eq!(found, [("kubectl-create", ".data.a"), ("kubectl-create", ".data.b")]);
    harness.apply("x", json!({ "a": "9" }), there, ApplyForce::Forced).await.unwrap();
    assert_eq!(harness.data("x").await, json!({ "a": "9", "b": "2" }));
}

#[tokio::test]
async fn a_creation_leaves_an_object_alone_that_is_there() {
    let harness = Harness::new("created").await;
    harness.kubectl(&["create", "configmap", "x", "--from-literal=a=1"], "");
    for force in [ApplyForce::Unforced, ApplyForce::Forced] {
        // No field of it is in conflict with what somebody else has.
        let over = harness.apply("x", json!({ "b": "2" }), Precondition::Absent, force).await;
        assert_eq!(over, Err(ClusterFault::VersionConflict), "{force:?}");
    }
    assert_eq!(harness.data("x").await, json!({ "a": "1" }));
    harness.kubectl(&["create", "clusterrole", "created", "--verb=get", "--resource=nodes"], "");
    let kind = harness.kind("rbac.authorization.k8s.io/v1", "ClusterRole");
    let id = ObjectId::new(&kind.gvk.group_kind(), None, "created");
    let body = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "created" },
        "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }],
    });
    let over =
        harness.cluster.apply(&kind, &id, &body, &Precondition::Absent, ApplyForce::Unforced).await.map(drop);
    // The server looks for conflicts of fields first.
    assert!(matches!(over.unwrap_err().fault(), ClusterFault::FieldConflicts { .. }));
    let (_, _, created) =
        harness.apply("y", json!({ "a": "1" }), Precondition::Absent, ApplyForce::Unforced).await.unwrap();
    assert!(created);
}

#[tokio::test]
async fn refusals_have_their_class() {
    let harness = Harness::new("refusals").await;
    let fault = async |api_version: &str, kind: &str, namespace: &str, body: Value| {
        let mut manifest = json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "x", "namespace": namespace } });
        manifest.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let kind = harness.kind(api_version, kind);
        let id = ObjectId::new(&kind.gvk.group_kind(), Some(namespace), "x");
        let there = harness.precondition(&kind, &id).await;
        let applied = harness.cluster.apply(&kind, &id, &manifest, &there, ApplyForce::Unforced).await;
        let error = applied.unwrap_err();
        (error.fault().clone(), error.retry(), error.to_string())
    };
    let (unknown, retry, text) = fault("v1", "ConfigMap", "refusals", json!({ "dta": {} })).await;
    let ClusterFault::Invalid { fields, .. } = unknown else { panic!("{text}") };
    assert_eq!((fields[0].field.as_str(), retry), (".dta", RetryAdvice::LongBackoff));
    let (missing, ..) = fault("v1", "ConfigMap", "nowhere", json!({})).await;
    assert_eq!(missing, ClusterFault::NoNamespace { namespace: "nowhere".to_owned() });
    for data in [
        json!({ "data": { "a": 5 } }),
        json!({ "data": { "a": "hunter2!" } }),
        json!({ "hunter": "hunter2!" }),
    ] {
        let (invalid, _, text) = fault("v1", "Secret", "refusals", data).await;
        assert!(matches!(invalid, ClusterFault::Invalid { .. }), "{text}");
        assert!(text.starts_with("Secret refusals/x: ") && !text.contains("hunter2"), "{text}");
    }
    let template = |label: &str| {
        json!({ "spec": {
            "selector": { "matchLabels": { "app": label } },
            "template": { "metadata": { "labels": { "app": label } }, "spec": { "containers": [{ "name": "c", "image": "i" }] } },
        } })
    };
    let (invalid, _, text) =
        fault("apps/v1", "Deployment", "refusals", json!({ "spec": { "replicas": -1 } })).await;
    let ClusterFault::Invalid { fields, .. } = invalid else { panic!("{text}") };
    assert!(fields.iter().any(|wrong| wrong.field == "spec.replicas"), "{fields:?}");
    let deployments = harness.kind("apps/v1", "Deployment");
    let id = ObjectId::new(&deployments.gvk.group_kind(), Some("refusals"), "x");
    let mut body = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "x", "namespace": "refusals" } });
    body["spec"] = template("a")["spec"].clone();
    let made = harness
        .cluster
        .apply(&deployments, &id, &body, &Precondition::Absent, ApplyForce::Unforced)
        .await
        .unwrap();
    assert!(made.live.replica_status.is_some());
    let (fixed, retry, text) = fault("apps/v1", "Deployment", "refusals", template("b")).await;
    assert!(matches!(fixed, ClusterFault::Immutable { .. }), "{text}");
    assert_eq!(retry, RetryAdvice::Never);
    let mut set = template("a");
    set["spec"]["serviceName"] = json!("one");
    let sets = harness.kind("apps/v1", "StatefulSet");
    let set_id = ObjectId::new(&sets.gvk.group_kind(), Some("refusals"), "x");
    let mut body = json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "x", "namespace": "refusals" } });
    body["spec"] = set["spec"].clone();
    harness.cluster.apply(&sets, &set_id, &body, &Precondition::Absent, ApplyForce::Unforced).await.unwrap();
    set["spec"]["serviceName"] = json!("two");
    let (fixed, _, text) = fault("apps/v1", "StatefulSet", "refusals", set).await;
    assert!(matches!(fixed, ClusterFault::Immutable { .. }), "{text}");
    let kind = Arc::new(ServedKind { plural: "nothings".into(), ..(*deployments).clone() });
    let error = harness
        .cluster
        .apply(&kind, &id, &body, &Precondition::Absent, ApplyForce::Unforced)
        .await
        .unwrap_err();
    assert_eq!(*error.fault(), ClusterFault::NoKind);
}

#[tokio::test]
async fn a_user_without_rights_is_informed() {
    let harness = Harness::new("rights").await;
    let kubeconfig = plane().kubeconfig_limited("nobody").unwrap();
    let connection = Connection { kubeconfig: Some(kubeconfig), ..Connection::default() };
    let nobody = Cluster::connect(&connection).await.unwrap();
    let error = nobody.list(&harness.config_maps(), &ListSelector::All).await.unwrap_err();
    assert!(matches!(error.fault(), ClusterFault::Denied { by: AccessDenial::Rbac, .. }), "{error}");
    assert!(
        error.to_string().starts_with("ConfigMap: configmaps is forbidden: User \"nobody\" cannot list"),
        "{error}"
    );
}

#[tokio::test]
async fn a_dry_run_writes_nothing() {
    let harness = Harness::new("dry").await;
    let body = harness.body("x", &json!({ "a": "1" }));
    let kind = harness.config_maps();
    let after =
        harness.cluster.dry_run(&kind, &harness.id("x"), &body, None, &Precondition::Absent).await.unwrap();
    assert_eq!(after["data"], json!({ "a": "1" }));
    assert_eq!(harness.cluster.get(&kind, &harness.id("x")).await.unwrap(), None);
    let log = plane().audit().unwrap();
    let ours: Vec<_> = log
        .iter()
        .filter(|e| e.namespace == "dry" && e.user == "rhumb" && e.resource == "configmaps")
        .collect();
    assert!(ours.iter().any(|event| event.dry_run) && ours.iter().all(|event| !event.is_write()), "{ours:?}");
    assert!(ours.iter().all(|event| event.user_agent.starts_with("rhumb/")), "{ours:?}");
}

#[tokio::test]
async fn warnings_of_the_server_come_along() {
    let harness = Harness::new("warnings").await;
    let kind = harness.kind("v1", "Endpoints");
    let id = ObjectId::new(&kind.gvk.group_kind(), Some("warnings"), "x");
    let body = json!({ "apiVersion": "v1", "kind": "Endpoints", "metadata": { "name": "x", "namespace": "warnings" } });
    let applied =
        harness.cluster.apply(&kind, &id, &body, &Precondition::Absent, ApplyForce::Unforced).await.unwrap();
    assert!(applied.warnings.iter().any(|text| text.contains("deprecated")), "{:?}", applied.warnings);
}

#[tokio::test]
async fn deletes_hit_only_what_was_meant() {
    let harness = Harness::new("deletes").await;
    let (uid, first, _) =
        harness.apply("x", json!({ "a": "1" }), Precondition::Absent, ApplyForce::Unforced).await.unwrap();
    let (_, second, _) = harness
        .apply("x", json!({ "a": "2" }), Precondition::Uid(uid.clone()), ApplyForce::Unforced)
        .await
        .unwrap();
    let delete = async |uid: &Uid, rv: ResourceVersion| {
        let done = harness.cluster.delete(&harness.config_maps(), &harness.id("x"), uid, rv).await;
        done.map_err(|error| error.fault().clone())
    };
    assert_eq!(delete(&uid, first).await, Err(ClusterFault::VersionConflict));
    let other = Uid("6e4f9a52-0000-4000-8000-000000000000".into());
    assert_eq!(delete(&other, second).await, Ok(DeleteResult::Gone));
    assert_eq!(harness.data("x").await, json!({ "a": "2" }));
    harness.kubectl(
        &[
            "patch",
            "configmap",
            "x",
            "--type=merge",
            "-p",
            r#"{"metadata":{"finalizers":["example.com/wait"]}}"#,
        ],
        "",
    );
    let LiveLookup::Found(live) = harness
        .cluster
        .look_up(&harness.config_maps(), Some("deletes"), &["x".to_owned()].into())
        .await
        .unwrap()["x"]
        .clone()
    else {
        panic!()
    };
    assert_eq!(delete(&uid, live.rv).await, Ok(DeleteResult::Accepted));
    harness.kubectl(
        &["patch", "configmap", "x", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#],
        "",
    );
    assert_eq!(delete(&uid, live.rv).await, Ok(DeleteResult::Gone));
}

#[tokio::test]
async fn a_lookup_tells_what_is_there_and_whose() {
    let harness = Harness::new("look").await;
    let mut body = harness.body("ours", &json!({ "a": "1" }));
    body["metadata"]["labels"] = json!({ "applyset.kubernetes.io/part-of": "applyset-x-v1" });
    body["metadata"]["annotations"] = json!({ "rhumb.dev/release": "00112233445566778899aabbccddeeff@0123456789012345678901234567890123456789" });
    let id = harness.id("ours");
    harness
        .cluster
        .apply(&harness.config_maps(), &id, &body, &Precondition::Absent, ApplyForce::Unforced)
        .await
        .unwrap();
    harness.kubectl(&["create", "configmap", "theirs"], "");
    harness.kubectl(&["label", "configmap", "theirs", "applyset.kubernetes.io/part-of=applyset-x-v1"], "");
    harness.kubectl(&["create", "configmap", "nobodys"], "");
    let names: BTreeSet<String> = ["ours", "theirs", "nobodys", "absent"].map(str::to_owned).into();
    let owners = async |namespace: &str, names: &BTreeSet<String>| {
        let lookups = harness.cluster.look_up(&harness.config_maps(), Some(namespace), names).await.unwrap();
        let owner =
            |lookups: LiveLookup| if let LiveLookup::Found(live) = lookups { Some(live.owner) } else { None };
        lookups.into_iter().map(|(name, lookups)| (name, owner(lookups))).collect::<Vec<_>>()
    };
    let set: Arc<str> = "applyset-x-v1".into();
    let expected = [
        ("absent", None),
        ("nobodys", Some(ObjectOwner::Nobody)),
        ("ours", Some(ObjectOwner::Ours(set.clone()))),
        ("theirs", Some(ObjectOwner::Labelled(set))),
    ]
    .map(|(name, owner)| (name.to_owned(), owner));
    assert_eq!(owners("look", &names).await, expected);
    for (name, owner) in expected {
        assert_eq!(owners("look", &[name.clone()].into()).await, [(name, owner)]);
    }
    assert!(owners("nowhere", &names).await.iter().all(|(_, owner)| owner.is_none()));
    let listed = harness
        .cluster
        .list(&harness.config_maps(), &ListSelector::ApplySets(["applyset-x-v1".into()].into()))
        .await
        .unwrap();
    let listed: BTreeSet<&str> = listed.iter().map(|(id, _)| id.name()).collect();
    assert!(listed.is_superset(&["ours", "theirs"].into()) && !listed.contains("nobodys"));
}

#[tokio::test]
async fn what_client_side_apply_owned_goes_away_after_reclaiming() {
    let harness = Harness::new("reclaim").await;
    let manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: '1', b: '2'}}";
    harness.kubectl(&["apply", "-f", "-"], manifest);
    let LiveLookup::Found(live) = harness
        .cluster
        .look_up(&harness.config_maps(), Some("reclaim"), &["x".to_owned()].into())
        .await
        .unwrap()["x"]
        .clone()
    else {
        panic!()
    };
    let exact = Precondition::Exact(live.uid.clone(), live.rv);
    harness.apply("x", json!({ "a": "1" }), exact, ApplyForce::Forced).await.unwrap();
    // Without more, the field that left the manifest stays.
    assert_eq!(harness.data("x").await, json!({ "a": "1", "b": "2" }));
    let reclaim =
        async || harness.cluster.reclaim(&harness.config_maps(), &harness.id("x"), &live.uid).await.unwrap();
    assert_eq!(reclaim().await, ReclaimResult::Taken);
    assert_eq!(reclaim().await, ReclaimResult::Nothing);
    assert_eq!(harness.data("x").await, json!({ "a": "1", "b": "2" }));
    harness
        .apply("x", json!({ "a": "1" }), Precondition::Uid(live.uid.clone()), ApplyForce::Forced)
        .await
        .unwrap();
    let object = harness.cluster.get(&harness.config_maps(), &harness.id("x")).await.unwrap().unwrap();
    assert_eq!(object["data"], json!({ "a": "1" }));
    // The note that would make a later client-side apply take fields away is gone too.
    assert_eq!(object["metadata"].get("annotations"), None);
    let wrong = Uid("6e4f9a52-0000-4000-8000-000000000000".into());
    let error = harness.cluster.reclaim(&harness.config_maps(), &harness.id("x"), &wrong).await.unwrap_err();
    assert_eq!(*error.fault(), ClusterFault::VersionConflict);
}

#[tokio::test]
async fn an_inventory_is_replaced_only_by_who_read_it() {
    let harness = Harness::new("inventories").await;
    let first = InventoryObject {
        kinds: [GroupKind::new("apps", "Deployment")].into(),
        annotations: [("rhumb.dev/source".to_owned(), "https://example.com/shop.git".to_owned())].into(),
        data: [("finished".to_owned(), "job/x".to_owned())].into(),
        ..InventoryObject::default()
    };
    let cluster = &harness.cluster;
    assert_eq!(cluster.read_inventory("inventories-new", "web").await.unwrap(), None);
    let made = cluster.save_inventory("inventories-new", "web", None, &first).await.unwrap();
    assert_eq!(cluster.read_inventory("inventories-new", "web").await.unwrap().as_ref(), Some(&made));
    assert_eq!((&made.kinds, &made.data, made.tooling.as_str()), (&first.kinds, &first.data, "rhumb/v1"));
    assert_eq!(
        *cluster.save_inventory("inventories-new", "web", None, &first).await.unwrap_err().fault(),
        ClusterFault::VersionConflict
    );
    // A foreign value there stays, but the swap sees the write.
    plane()
        .kubectl(&[
            "-n",
            "inventories-new",
            "annotate",
            "configmap",
            "web",
            "example.com/x=y",
            "rhumb.dev/confirm=all",
        ])
        .unwrap();
    let second =
        InventoryObject { data: [("finished".to_owned(), "job/y".to_owned())].into(), ..made.clone() };
    let error = cluster.save_inventory("inventories-new", "web", Some(&made), &second).await.unwrap_err();
    assert_eq!(*error.fault(), ClusterFault::VersionConflict);
    let read = cluster.read_inventory("inventories-new", "web").await.unwrap().unwrap();
    assert_eq!(read.annotations["rhumb.dev/confirm"], "all");
    let saved = cluster.save_inventory("inventories-new", "web", Some(&read), &second).await.unwrap();
    assert_eq!((&saved.data, &saved.annotations), (&second.data, &second.annotations));
    let text = plane().kubectl(&["-n", "inventories-new", "get", "configmap", "web", "-o", "json"]).unwrap();
    let object: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(object["metadata"]["annotations"]["example.com/x"], "y");
    assert_eq!(
        object["metadata"]["labels"]["applyset.kubernetes.io/id"],
        inventory_id_of("inventories-new", "web")
    );
}

/// Returns a kind whose objects may hold anything.
fn definition(plural: &str, kind: &str) -> String {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.example.com") },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List") },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }],
        },
    })
    .to_string()
}

#[tokio::test]
async fn discovery_sees_new_kinds_and_doubts_stale_groups() {
    let harness = Harness::new("discovery").await;
    assert!(harness.cluster.server_version().await.unwrap().starts_with("v1."));
    assert_eq!(harness.cluster.uid().await.unwrap().0.len(), 36);
    let broken =
        "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1beta1.metrics.k8s.io},
        spec: {group: metrics.k8s.io, version: v1beta1, groupPriorityMinimum: 100, versionPriority: 100,
        insecureSkipTLSVerify: true, service: {name: metrics, namespace: kube-system}}}";
    harness.kubectl(&["apply", "-f", "-"], broken);
    harness.kubectl(&["apply", "-f", "-"], &definition("oddities", "Oddity"));
    let metrics = Gvk::from_api_version("metrics.k8s.io/v1beta1", "PodMetrics");
    let oddity = Gvk::from_api_version("example.com/v1", "Oddity");
    let deadline = Instant::now() + Duration::from_secs(30);
    let kind = loop {
        let kinds = harness.cluster.discover().await.unwrap();
        if let (KindLookup::Unknown, KindLookup::Served(kind)) = (kinds.get(&metrics), kinds.get(&oddity)) {
            served(&kinds, "apps/v1", "Deployment");
            break kind;
        }
        assert!(Instant::now() < deadline, "{:?} {:?}", kinds.get(&metrics), kinds.get(&oddity));
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    // An informer of it survives whatever its objects hold.
    let odd = |name: &str, rest: &str| {
        format!("{{apiVersion: example.com/v1, kind: Oddity, metadata: {{name: {name}}}, {rest}}}")
    };
    harness.kubectl(&["create", "-f", "-"], &odd("one", "spec: text, status: [1]"));
    harness.kubectl(
        &["create", "-f", "-"],
        &odd("two", "spec: {replicas: three}, status: {conditions: {a: 1}}"),
    );
    let (sink, mut events) = mpsc::channel(64);
    let _informer = harness.cluster.informer(&kind, ListSelector::All, 0, sink);
    assert_eq!(
        until(&mut events, "synced").await,
        ["started", "seen one Nobody", "seen two Nobody", "synced"]
    );
    harness.kubectl(&["create", "-f", "-"], &odd("three", "status: null"));
    until(&mut events, "seen three Nobody").await;
    plane().kubectl(&["delete", "apiservice", "v1beta1.metrics.k8s.io"]).unwrap();
}

#[tokio::test]
async fn autoscalers_tell_their_targets() {
    let harness = Harness::new("scalers").await;
    let hpa = "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h},
        spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}";
    harness.kubectl(&["apply", "-f", "-"], hpa);
    let (sink, mut events) = mpsc::channel(64);
    let _informer =
        harness.cluster.autoscaler_informer(&harness.kind("autoscaling/v2", "HorizontalPodAutoscaler"), sink);
    loop {
        if let InformerChange::Apply(id, scaler) = events.recv().await.unwrap().change {
            assert_eq!(id.name(), "h");
            assert_eq!(scaler.target.unwrap().id.to_string(), "Deployment scalers/web");
            break;
        }
    }
}
