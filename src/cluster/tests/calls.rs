//! Verbs, URLs, bodies, deadlines and the rate limiter, byte by byte.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fake::{FakeApiServer, ReceivedCall, ScriptedReply, config_maps, kind};
use crate::cluster::call::MAX_ANSWER_BYTES;
use crate::cluster::connect::WatchTimeouts;
use crate::cluster::rate_limit::CallKind;
use crate::cluster::{
    ApplyForce, ClusterFault, Connection, DeleteResult, KindLookup, KindTable, ListSelector, LiveLookup,
    ServedScope,
};
use crate::engine::Precondition;
use crate::engine::{ResourceVersion, Uid};
use crate::object::{ErrorClass, GroupKind, Gvk, ObjectId};

fn id(name: &str) -> ObjectId {
    ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), name)
}

fn uid() -> Uid {
    Uid("u-1".into())
}

fn ok(body: &Value) -> ScriptedReply {
    ScriptedReply::Complete(200, "", body.to_string())
}

fn not_found(name: &str) -> ScriptedReply {
    let status = json!({ "kind": "Status", "code": 404, "reason": "NotFound", "details": { "name": name, "kind": "configmaps" } });
    ScriptedReply::Complete(404, "", status.to_string())
}

fn object(name: &str) -> Value {
    json!({ "metadata": { "name": name, "namespace": "shop", "uid": "u-1", "resourceVersion": "7" } })
}

#[tokio::test]
async fn an_apply_carries_manager_strictness_and_precondition() {
    let fake = FakeApiServer::start(|_, _| {
        ScriptedReply::Complete(201, "warning: 299 - \"v1 \\\"x\\\" is old\"\r\n", object("a").to_string())
    })
    .await;
    let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "uid": "old", "resourceVersion": "1" }, "data": { "k": "v" } });
    let exact = Precondition::Exact(uid(), ResourceVersion(7));
    let applied =
        fake.cluster.apply(&config_maps(), &id("a"), &body, &exact, ApplyForce::Forced).await.unwrap();
    assert!(applied.created);
    assert_eq!((applied.live.uid, applied.live.rv), (uid(), ResourceVersion(7)));
    assert_eq!(applied.warnings, [r#"v1 "x" is old"#]);
    fake.cluster
        .apply(&config_maps(), &id("a"), &body, &Precondition::Uid(uid()), ApplyForce::Unforced)
        .await
        .unwrap();
    fake.cluster.dry_run(&config_maps(), &id("a"), &body, None, &Precondition::Absent).await.unwrap();
    fake.cluster
        .apply(&config_maps(), &id("a"), &body, &Precondition::Absent, ApplyForce::Unforced)
        .await
        .unwrap();
    let asked = fake.asked();
    let check = |asked: &ReceivedCall, query: &str, metadata: Value| {
        assert_eq!(asked.method, "PATCH");
        assert_eq!(
            asked.path,
            format!("/api/v1/namespaces/shop/configmaps/a?fieldManager=rhumb&fieldValidation=Strict{query}")
        );
        assert!(asked.head.contains("content-type: application/apply-patch+yaml"), "{}", asked.head);
        let sent: Value = serde_json::from_str(&asked.body).unwrap();
        assert_eq!(sent["metadata"], metadata);
        assert_eq!(sent["data"], json!({ "k": "v" }));
    };
    check(&asked[0], "&force=true", json!({ "name": "a", "uid": "u-1", "resourceVersion": "7" }));
    check(&asked[1], "", json!({ "name": "a", "uid": "u-1" }));
    check(&asked[2], "&dryRun=All", json!({ "name": "a" }));
    // No object has this version: where one is there, the server refuses the creation.
    check(&asked[3], "", json!({ "name": "a", "resourceVersion": "1" }));
}

// The storage of an aggregated API server may refuse a new object that names a version.
#[tokio::test]
async fn a_creation_that_is_refused_for_its_version_is_sent_without_one_and_no_other_write_is() {
    async fn check(precondition: &Precondition, code: u16, message: &str, field: &str, is_created: bool) {
        let causes = json!([{ "reason": "FieldValueInvalid", "message": message, "field": field }]);
        let refusal =
            json!({ "kind": "Status", "code": code, "message": message, "details": { "causes": causes } });
        let fake = FakeApiServer::start(move |number, _| match number {
            0 => ScriptedReply::Complete(code, "", refusal.to_string()),
            _ => ScriptedReply::Complete(201, "", object("a").to_string()),
        })
        .await;
        let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
        let applied =
            fake.cluster.apply(&config_maps(), &id("a"), &body, precondition, ApplyForce::Unforced).await;
        assert_eq!(applied.is_ok_and(|applied| applied.created), is_created, "{code} {message}");
        let asked = fake.asked();
        assert_eq!(asked.len(), if is_created { 2 } else { 1 }, "{code} {message}");
        let Some(again) = asked.get(1) else { return };
        let sent: Value = serde_json::from_str(&again.body).unwrap();
        assert_eq!(sent["metadata"], json!({ "name": "a" }));
        assert!(!again.path.contains("force"), "{}", again.path);
    }
    let absent = Precondition::Absent;
    let unwanted =
        "error with field Metadata.ResourceVersion = '1' (field must not be set for a Create request)";
    check(&absent, 500, unwanted, "", true).await;
    check(&absent, 500, "resourceVersion should not be set on objects to be created", "", true).await;
    check(&absent, 422, "field must not be set for a Create request", "Metadata.ResourceVersion", true).await;
    check(&absent, 500, "etcdserver: request timed out", "", false).await;
    check(&absent, 422, "must be at least 1", "spec.replicas", false).await;
    // An object is there: it is looked up again.
    let conflict = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified";
    check(&absent, 409, conflict, "", false).await;
    check(&Precondition::Uid(uid()), 500, unwanted, "", false).await;
}

#[tokio::test]
async fn a_write_to_a_version_that_cannot_be_named_is_refused_unsent() {
    let fake = FakeApiServer::start(|_, _| ok(&object("a"))).await;
    let (kind, id) = (config_maps(), id("a"));
    let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
    let exact = Precondition::Exact(uid(), ResourceVersion::UNREADABLE);
    let applied = fake.cluster.apply(&kind, &id, &body, &exact, ApplyForce::Forced).await.map(drop);
    let tried = fake.cluster.dry_run(&kind, &id, &body, None, &exact).await.map(drop);
    let deleted = fake.cluster.delete(&kind, &id, &uid(), ResourceVersion::UNREADABLE).await.map(drop);
    let scaled = fake.cluster.scale_replica_set("shop", "a", &uid(), ResourceVersion::UNREADABLE, 1).await;
    for result in [applied, tried, deleted, scaled] {
        assert_eq!(*result.unwrap_err().fault(), ClusterFault::UnreadableVersion);
    }
    assert_eq!(fake.asked().len(), 0);
}

#[tokio::test]
async fn urls_of_all_sorts_of_objects() {
    let fake = FakeApiServer::start(|number, _| not_found(["web", "system:a b/ü", "shop"][number])).await;
    let deployments = kind("apps/v1", "Deployment", "deployments");
    let roles = kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles");
    let namespaces = kind("v1", "Namespace", "namespaces");
    let of = |group: &str, kind: &str, namespace, name| {
        ObjectId::new(&GroupKind::new(group, kind), namespace, name)
    };
    let absent =
        fake.cluster.get(&deployments, &of("apps", "Deployment", Some("shop"), "web")).await.unwrap();
    assert_eq!(absent, None);
    fake.cluster
        .get(&roles, &of("rbac.authorization.k8s.io", "ClusterRole", None, "system:a b/ü"))
        .await
        .unwrap();
    fake.cluster.get(&namespaces, &of("", "Namespace", None, "shop")).await.unwrap();
    let paths: Vec<String> = fake.asked().into_iter().map(|asked| asked.path).collect();
    assert_eq!(
        paths,
        [
            "/apis/apps/v1/namespaces/shop/deployments/web",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:a%20b%2F%C3%BC",
            "/api/v1/namespaces/shop",
        ]
    );
    assert!(fake.asked()[0].head.contains("authorization: Bearer t"));
}

#[tokio::test]
async fn a_delete_names_incarnation_and_version() {
    let terminating = json!({ "kind": "ConfigMap", "metadata": { "name": "a", "uid": "u-1", "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    let gone = json!({ "kind": "Status", "status": "Success" });
    let stale =
        json!({ "kind": "Status", "code": 409, "reason": "Conflict", "message": "Precondition failed" });
    let other = json!({ "metadata": { "name": "a", "uid": "u-2" } });
    let fake = FakeApiServer::start(move |number, _| match number {
        0 => ok(&gone),
        1 => ok(&terminating),
        2 => not_found("a"),
        3 | 5 => ScriptedReply::Complete(409, "", stale.to_string()),
        4 => ok(&object("a")),
        _ => ok(&other),
    })
    .await;
    let delete = || async { fake.cluster.delete(&config_maps(), &id("a"), &uid(), ResourceVersion(7)).await };
    assert_eq!(delete().await.unwrap(), DeleteResult::Gone);
    assert_eq!(delete().await.unwrap(), DeleteResult::Accepted);
    assert_eq!(delete().await.unwrap(), DeleteResult::Gone);
    // Still this incarnation: the version has moved on.
    assert_eq!(*delete().await.unwrap_err().fault(), ClusterFault::VersionConflict);
    // Another one: this one is gone, and the other is left alone.
    assert_eq!(delete().await.unwrap(), DeleteResult::Gone);
    let asked = fake.asked();
    let sent: Value = serde_json::from_str(&asked[0].body).unwrap();
    assert_eq!(asked[0].method, "DELETE");
    assert_eq!(sent["preconditions"], json!({ "uid": "u-1", "resourceVersion": "7" }));
    assert_eq!(sent["propagationPolicy"], "Background");
    let methods: Vec<&str> = asked.iter().map(|asked| asked.method.as_str()).collect();
    assert_eq!(methods, ["DELETE", "DELETE", "DELETE", "DELETE", "GET", "DELETE", "GET"]);
}

#[tokio::test]
async fn a_refusal_is_asked_for_once() {
    for code in [429, 500, 503, 504] {
        let fake = FakeApiServer::start(move |_, _| {
            ScriptedReply::Complete(code, "retry-after: 2\r\n", "busy".to_owned())
        })
        .await;
        let error = fake.cluster.get(&config_maps(), &id("a")).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Transient);
        assert_eq!(fake.asked().len(), 1, "{code}");
        assert_eq!(error.retry_after().is_some(), code == 429);
    }
}

#[tokio::test]
async fn silence_is_bounded_and_the_next_call_works() {
    let fake = FakeApiServer::start(|number, _| match number {
        0 => ScriptedReply::Silence,
        1 => ScriptedReply::Stream("{\"metadata\":".to_owned()),
        _ => ok(&object("a")),
    })
    .await;
    for _ in 0..2 {
        let since = Instant::now();
        let error = fake.cluster.get(&config_maps(), &id("a")).await.unwrap_err();
        assert!(
            matches!(error.fault(), ClusterFault::Timeout { after, .. } if *after == Duration::from_secs(2))
        );
        let expected =
            format!("ConfigMap shop/a: no answer from the API server at {} within 2 s", fake.address());
        assert_eq!(error.to_string(), expected);
        assert!(since.elapsed() < Duration::from_secs(20));
    }
    assert!(fake.cluster.get(&config_maps(), &id("a")).await.unwrap().is_some());
}

#[tokio::test]
async fn no_server_and_no_json_are_reported() {
    let fake =
        FakeApiServer::start(|_, _| ScriptedReply::Complete(200, "", "<html>hunter2</html>".to_owned()))
            .await;
    let error = fake.cluster.get(&config_maps(), &id("a")).await.unwrap_err();
    assert_eq!(error.to_string(), "ConfigMap shop/a: the answer cannot be read (line 1, column 1)");
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let text = super::fake::kubeconfig_text("x", &format!("http://{nobody}"), "");
    std::fs::write(fake.kubeconfig(), text).unwrap();
    let connection = Connection { kubeconfig: Some(fake.kubeconfig()), ..Connection::default() };
    let cluster = crate::cluster::Cluster::connect(&connection).await.unwrap();
    let error = cluster.get(&config_maps(), &id("a")).await.unwrap_err();
    assert!(error.is_unreachable());
    let expected = format!("ConfigMap shop/a: the API server at {nobody} cannot be reached: ");
    assert!(error.to_string().starts_with(&expected), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn credentials_are_read_again_after_a_401() {
    let fake = FakeApiServer::start(|_, asked| {
        if asked.head.contains("Bearer new") {
            ok(&object("a"))
        } else {
            ScriptedReply::Complete(401, "", "{}".to_owned())
        }
    })
    .await;
    let text = std::fs::read_to_string(fake.kubeconfig()).unwrap().replace("token: t", "token: new");
    std::fs::write(fake.kubeconfig(), text).unwrap();
    let error = fake.cluster.get(&config_maps(), &id("a")).await.unwrap_err();
    assert_eq!(*error.fault(), ClusterFault::Unauthorized);
    assert!(fake.cluster.get(&config_maps(), &id("a")).await.unwrap().is_some());
}

/// Returns the cluster with this uid. It accepts the token `new`, and what came first.
async fn cluster_of(uid: &'static str) -> FakeApiServer {
    FakeApiServer::start(move |number, asked| {
        if number > 0 && !asked.head.contains("Bearer new") {
            return ScriptedReply::Complete(401, "", "{}".to_owned());
        }
        ok(&json!({ "metadata": { "name": "a", "namespace": "shop", "uid": uid, "resourceVersion": "7" } }))
    })
    .await
}

#[tokio::test]
async fn a_kubeconfig_that_names_another_cluster_now_ends_all_calls() {
    let check = async |uid: &'static str, token: &str, expected: &str| {
        let (old, now) = (cluster_of("old").await, cluster_of(uid).await);
        assert_eq!(old.cluster.uid().await.unwrap(), Uid("old".into()));
        // Its first answer is given to anybody.
        now.cluster.uid().await.unwrap();
        let text = super::fake::kubeconfig_text(
            "double",
            &format!("http://{}", now.address()),
            &format!("token: {token}"),
        );
        std::fs::write(old.kubeconfig(), text).unwrap();
        assert_eq!(
            *old.cluster.get(&config_maps(), &id("a")).await.unwrap_err().fault(),
            ClusterFault::Unauthorized
        );
        let body = json!({ "metadata": { "name": "a" } });
        let wrote = old
            .cluster
            .apply(&config_maps(), &id("a"), &body, &Precondition::Absent, ApplyForce::Unforced)
            .await;
        let class = wrote.as_ref().err().map(crate::cluster::ClusterError::class);
        let words = wrote.map_or_else(|error| error.to_string(), |applied| applied.live.uid.to_string());
        assert!(words.contains(expected), "{words}");
        // It is known with the answer, or never.
        let astray = tokio::time::timeout(Duration::ZERO, old.cluster.wait_for_other_cluster()).await;
        assert_eq!(astray.is_ok(), class == Some(ErrorClass::Config), "{expected}");
        let writes = now.asked().iter().filter(|asked| asked.method != "GET").count();
        assert_eq!(writes, usize::from(uid == "old" && token == "new"), "{expected}");
    };
    check("old", "new", "old").await;
    check("new", "new", "the kubeconfig names another cluster now, at 127.0.0.1:").await;
    // It does not say which one it is: nothing is sent there.
    check("new", "wrong", "(401)").await;
}

#[tokio::test]
async fn the_rate_limit_holds_until_the_server_queues() {
    let slow = Connection { qps: 10.0, burst: 1, timeout: Duration::from_secs(5), ..Connection::default() };
    let fake = FakeApiServer::start_with(slow, WatchTimeouts::default(), |number, _| {
        let header = if number < 4 { "" } else { "x-kubernetes-pf-flowschema-uid: f\r\n" };
        ScriptedReply::Complete(200, header, object("a").to_string())
    })
    .await;
    let since = Instant::now();
    for _ in 0..5 {
        fake.cluster.get(&config_maps(), &id("a")).await.unwrap();
    }
    assert!(since.elapsed() >= Duration::from_millis(390), "{:?}", since.elapsed());
    let limiter = fake.cluster.rate_limiter();
    assert!(!limiter.is_limiting());
    // As many at once as its rate allows in two seconds.
    for number in 0..20 {
        let admitted = tokio::time::timeout(Duration::ZERO, limiter.admit(CallKind::Read)).await;
        assert!(admitted.is_ok(), "{number}");
    }
}

#[tokio::test]
async fn only_so_many_writes_are_in_flight_and_reads_go_past_them() {
    let narrow = Connection { concurrency: 3, ..Connection::default() };
    let fake = FakeApiServer::start_with(narrow, WatchTimeouts::default(), |number, asked| {
        // The first ones last until the read is over, also on a busy machine.
        let wait = if number < 3 && asked.method == "PATCH" { 3_000 } else { 0 };
        ScriptedReply::Late(Duration::from_millis(wait), object("a").to_string())
    })
    .await;
    let body = json!({ "metadata": { "name": "a" } });
    let writes = (0..9).map(|_| async {
        fake.cluster
            .apply(&config_maps(), &id("a"), &body, &Precondition::Absent, ApplyForce::Unforced)
            .await
            .unwrap();
    });
    let lookups = async {
        let begun = async {
            while fake.asked().len() < 3 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), begun).await.unwrap();
        // A fourth write would have been sent before this read.
        fake.cluster.get(&config_maps(), &id("a")).await.unwrap();
        assert_eq!(fake.asked().len(), 4);
    };
    tokio::join!(futures::future::join_all(writes), lookups);
    assert_eq!(fake.asked().len(), 10);
}

#[tokio::test]
async fn a_lookup_asks_singly_or_by_list() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let fake = FakeApiServer::start(|_, asked| {
        let name = asked.path.rsplit('/').next().unwrap_or_default();
        match name.split('?').next().unwrap_or_default() {
            "configmaps" => ok(&json!({ "metadata": { "resourceVersion": "9" }, "items": [object("a"), object("c"), object("z")] })),
            "a" => ok(&object("a")),
            other => not_found(other),
        }
    })
    .await;
    let cluster = &fake.cluster;
    let lookups = |wanted: BTreeSet<String>| async move {
        let found_lookups = cluster.look_up(&config_maps(), Some("shop"), &wanted).await.unwrap();
        let found = |found_lookups: LiveLookup| {
            if let LiveLookup::Found(live) = found_lookups { Some(live.rv) } else { None }
        };
        found_lookups
            .into_iter()
            .map(|(name, found_lookups)| (name, found(found_lookups)))
            .collect::<Vec<_>>()
    };
    let seen = |name: &str, there: bool| (name.to_owned(), there.then_some(ResourceVersion(7)));
    assert_eq!(lookups(names(&["a", "b"])).await, [seen("a", true), seen("b", false)]);
    let single = fake.asked();
    assert_eq!(single.len(), 2);
    assert!(single[0].head.contains("as=PartialObjectMetadata;"));
    assert_eq!(lookups(names(&["a", "b", "c"])).await, [seen("a", true), seen("b", false), seen("c", true)]);
    let list = &fake.asked()[2..];
    assert_eq!(list.len(), 1);
    assert_eq!(list[0].path, "/api/v1/namespaces/shop/configmaps?limit=500");
    assert!(list[0].head.contains("as=PartialObjectMetadataList;"));
}

// A workload that is to be taken over may be rolling out, or held at a step.
#[tokio::test]
async fn a_lookup_of_a_workload_shows_its_rollout() {
    let fake = FakeApiServer::start(|_, asked| {
        let web = |name: &str| {
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {
                    "name": name, "namespace": "shop", "uid": "1", "resourceVersion": "7", "generation": 2,
                    "annotations": {"rhumb.dev/overlay": "surge 1 step 1"},
                },
                "spec": {"replicas": 4},
                "status": {"observedGeneration": 1},
            })
        };
        if asked.path.contains('?') {
            ok(&json!({ "metadata": { "resourceVersion": "9" }, "items": [web("a"), web("b"), web("c")] }))
        } else {
            ok(&web("a"))
        }
    })
    .await;
    let deployments = kind("apps/v1", "Deployment", "deployments");
    for wanted in [&["a"][..], &["a", "b", "c"]] {
        let names = wanted.iter().map(|name| (*name).to_owned()).collect();
        let found = fake.cluster.look_up(&deployments, Some("shop"), &names).await.unwrap();
        for (name, lookup) in found {
            let LiveLookup::Found(live) = lookup else { panic!("{name} is there") };
            assert_eq!(live.replica_status.map(|status| status.replicas), Some(4), "{name}");
        }
    }
    assert!(fake.asked().iter().all(|asked| !asked.head.contains("PartialObjectMetadata")));
}

#[tokio::test]
async fn a_lookup_gives_up_a_long_list() {
    // Four pages without an end cost as much as four names.
    for (remaining, calls) in [(Some(5000), 1 + 3), (None, 4 + 3)] {
        let fake = FakeApiServer::start(move |_, asked| {
            if asked.path.contains('?') {
                let metadata = json!({ "continue": "next", "remainingItemCount": remaining });
                ok(&json!({ "metadata": metadata, "items": [object("a")] }))
            } else {
                not_found(asked.path.rsplit('/').next().unwrap_or_default())
            }
        })
        .await;
        let names = ["a", "b", "c", "d"].map(str::to_owned).into_iter().collect();
        let found = fake.cluster.look_up(&config_maps(), Some("shop"), &names).await.unwrap();
        assert_eq!(found.values().filter(|found| **found == LiveLookup::Absent).count(), 3);
        assert_eq!(fake.asked().len(), calls, "{remaining:?}");
    }
}

#[tokio::test]
async fn a_kind_that_is_not_served_is_no_absent_object() {
    let fake =
        FakeApiServer::start(|_, _| ScriptedReply::Complete(404, "", "404 page not found\n".to_owned()))
            .await;
    let names: BTreeSet<String> = BTreeSet::from(["a".to_owned()]);
    let found_lookups = fake.cluster.look_up(&config_maps(), Some("shop"), &names).await;
    assert_eq!(*found_lookups.unwrap_err().fault(), ClusterFault::NoKind);
    assert_eq!(*fake.cluster.get(&config_maps(), &id("a")).await.unwrap_err().fault(), ClusterFault::NoKind);
}

#[tokio::test]
async fn a_list_reads_pages_and_starts_again_when_it_expires() {
    let fake = FakeApiServer::start(|number, _| match number {
        0 => ok(&json!({ "metadata": { "continue": "t/1" }, "items": [object("a")] })),
        1 => ScriptedReply::Complete(410, "", "{}".to_owned()),
        2 => ok(&json!({ "metadata": { "continue": "t/2" }, "items": [object("a"), 5] })),
        _ => ok(&json!({ "metadata": { "resourceVersion": "9" }, "items": [object("b")] })),
    })
    .await;
    let members = ListSelector::ApplySets(BTreeSet::from(["applyset-a-v1".into(), "applyset-b-v1".into()]));
    let listed = fake.cluster.list(&config_maps(), &members).await.unwrap();
    let names: Vec<&str> = listed.iter().map(|(id, _)| id.name()).collect();
    assert_eq!(names, ["a", "b"]);
    let selector =
        "&labelSelector=applyset.kubernetes.io%2Fpart-of%20in%20%28applyset-a-v1%2Capplyset-b-v1%29";
    let asked = fake.asked();
    assert_eq!(asked[0].path, format!("/api/v1/configmaps?limit=500{selector}"));
    assert_eq!(asked[3].path, format!("/api/v1/configmaps?limit=500{selector}&continue=t%2F2"));
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_not_read_and_a_page_is_asked_for_anew() {
    let fake = FakeApiServer::start(|_, asked| match asked.path.split_once('?') {
        Some((_, "limit=20&continue=t")) => ok(&json!({ "items": [object("b")] })),
        Some((_, "limit=20")) => ok(&json!({ "metadata": { "continue": "t" }, "items": [object("a")] })),
        _ => ScriptedReply::Complete(200, "", " ".repeat(MAX_ANSWER_BYTES + 1)),
    })
    .await;
    let listed = fake.cluster.list(&config_maps(), &ListSelector::All).await.unwrap();
    let names: Vec<&str> = listed.iter().map(|(id, _)| id.name()).collect();
    assert_eq!(names, ["a", "b"]);
    let error = fake.cluster.get(&config_maps(), &id("a")).await.unwrap_err();
    assert_eq!(*error.fault(), ClusterFault::TooLong { mebibytes: MAX_ANSWER_BYTES >> 20 });
    let asked: Vec<String> = fake.asked().into_iter().map(|asked| asked.path).collect();
    // Each page of the usual size would be downloaded for nothing.
    let pages =
        ["?limit=500", "?limit=20", "?limit=20&continue=t"].map(|query| format!("/api/v1/configmaps{query}"));
    assert_eq!(asked[..3], pages);
    assert_eq!(asked[3..], ["/api/v1/namespaces/shop/configmaps/a"]);
}

/// Returns an aggregated document with one group per triple of group, version and freshness.
fn document(groups: &[(&str, &str, &str)]) -> Value {
    let resource = |group: &str, version: &str| json!({ "resource": "things", "responseKind": { "group": group, "version": version, "kind": "Thing" }, "scope": "Namespaced", "verbs": ["get", "patch"] });
    let items: Vec<Value> = groups
        .iter()
        .map(|(group, versions, freshness)| {
            let versions: Vec<Value> = versions
                .split(',')
                .map(|version| {
                    let resources =
                        if *freshness == "Stale" { json!([]) } else { json!([resource(group, version)]) };
                    json!({ "version": version, "freshness": freshness, "resources": resources })
                })
                .collect();
            json!({ "metadata": { "name": group }, "versions": versions })
        })
        .collect();
    json!({ "kind": "APIGroupDiscoveryList", "items": items })
}

#[tokio::test]
async fn discovery_tells_unknown_from_unserved() {
    let fake = FakeApiServer::start(|_, asked| match asked.path.as_str() {
        "/api" => ok(&document(&[("", "v1", "Current")])),
        "/version" => ok(&json!({ "major": "1", "minor": "36", "gitVersion": "v1.36.4", "gitCommit": "", "gitTreeState": "",
            "buildDate": "", "goVersion": "", "compiler": "", "platform": "" })),
        _ => ok(&document(&[("x.io", "v2,v1", "Current"), ("metrics.k8s.io", "v1beta1", "Stale")])),
    })
    .await;
    let kinds: KindTable = fake.cluster.discover().await.unwrap();
    let get = |api_version: &str, kind: &str| kinds.get(&Gvk::from_api_version(api_version, kind));
    let KindLookup::Served(thing) = get("x.io/v1", "Thing") else { panic!() };
    assert_eq!(
        (&*thing.plural, thing.scope, thing.is_allowed("patch")),
        ("things", ServedScope::Namespaced, true)
    );
    assert!(matches!(get("v1", "Thing"), KindLookup::Served(_)));
    assert_eq!(
        get("x.io/v1alpha1", "Thing"),
        KindLookup::Unserved { versions: vec!["v2".into(), "v1".into()] }
    );
    assert_eq!(get("x.io/v1", "Other"), KindLookup::Unserved { versions: vec![] });
    assert_eq!(get("y.io/v1", "Thing"), KindLookup::Unserved { versions: vec![] });
    assert_eq!(get("metrics.k8s.io/v1beta1", "PodMetrics"), KindLookup::Unknown);
    assert_eq!(kinds.preferred_kind(&GroupKind::new("metrics.k8s.io", "PodMetrics")), KindLookup::Unknown);
    let KindLookup::Served(thing) = kinds.preferred_kind(&GroupKind::new("x.io", "Thing")) else { panic!() };
    assert_eq!(&*thing.gvk.version, "v2");
    assert_eq!(kinds.scopes().count(), 2);
    assert_eq!(kinds.unknown_groups(), BTreeSet::from(["metrics.k8s.io"]));
    let asked = fake.asked();
    let lists = asked.iter().filter(|asked| asked.path.starts_with("/api"));
    assert!(
        lists.clone().count() == 2
            && lists.clone().all(|list| list.head.contains("as=APIGroupDiscoveryList"))
    );
    assert_eq!(kinds.server_version().as_deref(), Ok("v1.36.4"));
    let apis: Vec<String> = kinds.api_versions().into_iter().collect();
    assert_eq!(
        apis,
        ["metrics.k8s.io/v1beta1", "v1", "v1/Thing", "x.io/v1", "x.io/v1/Thing", "x.io/v2", "x.io/v2/Thing"]
    );
    assert_eq!(kinds.unknown_versions().collect::<Vec<_>>(), ["metrics.k8s.io/v1beta1"]);
}

#[tokio::test]
async fn a_server_that_hides_its_version_tells_its_kinds_all_the_same() {
    let fake = FakeApiServer::start(|_, asked| match asked.path.as_str() {
        "/version" => ScriptedReply::Complete(
            403,
            "",
            json!({ "kind": "Status", "code": 403, "reason": "Forbidden", "message": "forbidden: User \"a\" cannot get path \"/version\"" })
                .to_string(),
        ),
        _ => ok(&document(&[("", "v1", "Current")])),
    })
    .await;
    let kinds = fake.cluster.discover().await.unwrap();
    assert!(matches!(kinds.get(&Gvk::from_api_version("v1", "Thing")), KindLookup::Served(_)));
    let why = kinds.server_version().unwrap_err();
    assert!(why.contains("the server's version"), "{why}");
}

#[tokio::test]
async fn a_server_without_aggregated_discovery_is_named() {
    let fake = FakeApiServer::start(|_, _| ok(&json!({ "kind": "APIGroupList", "groups": [] }))).await;
    let error = fake.cluster.discover().await.unwrap_err();
    assert!(error.to_string().contains("Kubernetes 1.27 or later"), "{error}");
}
