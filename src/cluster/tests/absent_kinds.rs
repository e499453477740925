use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::fake::{FakeApiServer, ScriptedReply};
use crate::object::GroupKind;

/// Returns a server with one kind, one definition, one group of its own and one of another server.
fn answer(path: &str, ready: bool) -> (u16, Value) {
    let groups = json!([
        { "metadata": { "name": "shop.org" }, "versions": [{ "version": "v1", "resources": [
            { "resource": "carts", "responseKind": { "kind": "Cart" }, "scope": "Namespaced", "verbs": ["list"] } ] }] },
        { "metadata": { "name": "stale.org" }, "versions": [{ "version": "v1", "freshness": "Stale" }] },
    ]);
    let definition = |kind: &str| json!({ "spec": { "group": "shop.org", "names": { "kind": kind } } });
    match path.split('?').next().unwrap_or_default() {
        "/readyz" if ready => (200, json!("ok")),
        "/version" => {
            let version = json!({ "major": "1", "minor": "36", "gitVersion": "v1.36.4", "gitCommit": "",
                "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": "" });
            (200, version)
        }
        "/api" => (200, json!({ "items": [{ "metadata": { "name": "" }, "versions": [] }] })),
        "/apis" => (200, json!({ "items": groups })),
        // Two pages.
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions" if path.contains("continue=more") => {
            (200, json!({ "metadata": {}, "items": [definition("Hidden")] }))
        }
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions" => {
            (200, json!({ "metadata": { "continue": "more" }, "items": [definition("Cart")] }))
        }
        "/apis/apiregistration.k8s.io/v1/apiservices" => {
            let services = json!([
                { "spec": { "group": "shop.org", "service": null } },
                { "spec": { "version": "v1" } },
                { "spec": { "group": "down.org", "service": { "name": "a", "namespace": "b" } } },
            ]);
            (200, json!({ "metadata": {}, "items": services }))
        }
        _ => (500, json!({ "message": "no" })),
    }
}

#[tokio::test]
async fn a_kind_is_absent_only_where_nothing_speaks_for_it() {
    let kinds = [
        "Cart.shop.org",
        "Hidden.shop.org",
        "Gone.shop.org",
        "Thing.stale.org",
        "Thing.down.org",
        "Old.gone.org",
    ];
    let kinds: BTreeSet<GroupKind> = kinds.into_iter().map(GroupKind::parse).collect();
    for ready in [true, false] {
        let fake = FakeApiServer::start(move |_, asked| {
            let (code, body) = answer(&asked.path, ready);
            ScriptedReply::Complete(code, "", body.to_string())
        })
        .await;
        let absent = fake.cluster.find_absent_kinds(&kinds).await.ok();
        let expected = ["Gone.shop.org", "Old.gone.org"].map(GroupKind::parse);
        assert_eq!(absent, ready.then(|| expected.into()));
    }
}

#[tokio::test]
async fn the_version_of_a_server_that_may_have_just_started_is_known_unless_it_is_not_ready() {
    for (code, is_known) in [(200, true), (500, false), (503, false), (403, true), (404, true)] {
        let fake = FakeApiServer::start(move |_, asked| {
            let (code, body) = match asked.path.as_str() {
                "/readyz" => (code, json!({ "kind": "Status", "code": code, "message": "no" })),
                path => answer(path, true),
            };
            ScriptedReply::Complete(code, "", body.to_string())
        })
        .await;
        let kinds = fake.cluster.discover_first().await.unwrap();
        assert_eq!(kinds.server_version().is_ok(), is_known, "{code}");
        assert_eq!(kinds.unready_reason().is_none(), is_known, "{code}");
        assert!(kinds.api_versions().contains("shop.org/v1/Cart"), "{code}");
        let asked = fake.asked();
        assert_eq!(asked.first().map(|asked| asked.path.as_str()), Some("/readyz"));
        assert!(fake.cluster.discover().await.unwrap().server_version().is_ok());
    }
}
