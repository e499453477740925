//! Foreign marks on our object, and its owner then.

use serde_json::{Value, json};

use crate::ignored::{events, status};
use crate::support::{DEFAULT_TIMEOUT, Daemon, Repo, TestNamespace, at, eventually, source, until, yaml};

const SET: &str = "/metadata/labels/applyset.kubernetes.io~1part-of";
const UNKNOWN: &str = "applyset-wHf5Gity0G0nPN34KuNBIBBEOu2H9ED2KqsblMPFygM-v1";

fn repo() -> Repo {
    Repo::new(&[("map.yaml", yaml::config_map("map", "a", "ours"))])
}

fn daemon(site: &TestNamespace<'_>, repo: &Repo, opt_out: &str) -> Daemon {
    let settings = site.configuration(repo.path(), "budget: {soak: 0s}");
    site.configured(&settings.replacen("spec:\n", &format!("spec:\n  optOut: {opt_out}\n"), 1))
}

/// Returns the patches of somebody who may patch the object, beside a change of its data, and the
/// word for each.
fn claims(site: &TestNamespace<'_>) -> [(Value, &'static str); 3] {
    let anchor = site.api.create(
        &site.at("ConfigMap", ""),
        "somebody",
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "anchor"}}),
    );
    let reference = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "anchor", "uid": anchor["metadata"]["uid"], "controller": true,
    });
    let argo = "argocd.argoproj.io/instance";
    let marked = json!({"applyset.kubernetes.io/part-of": null, argo: "shop"});
    let both =
        json!({"labels": {"applyset.kubernetes.io/part-of": null}, "ownerReferences": [reference.clone()]});
    [
        (json!({"ownerReferences": [reference]}), "metadata.ownerReferences"),
        (json!({"labels": marked}), argo),
        (both, "metadata.ownerReferences"),
    ]
}

/// Takes all of that back but the label, which is for rhumb to put back.
fn unclaim(site: &TestNamespace<'_>) {
    let back =
        json!({"metadata": {"ownerReferences": null, "labels": {"argocd.argoproj.io/instance": null}}});
    site.api.merge(&site.at("ConfigMap", "map"), "somebody", &back);
}

fn claim(site: &TestNamespace<'_>, metadata: &Value) {
    let change = json!({"metadata": metadata, "data": {"a": "theirs"}});
    site.api.merge(&site.at("ConfigMap", "map"), "somebody", &change);
}

#[test]
fn where_opting_out_is_denied_no_mark_of_another_owner_keeps_our_object_from_being_repaired() {
    let site = TestNamespace::new("claimed-denied");
    let repo = repo();
    let _daemon = daemon(&site, &repo, "denied");
    site.await_data("map", "a", "ours");
    let set = site.value("ConfigMap", "map", SET);
    let mut claims = claims(&site).to_vec();
    // As the second one, without the `managedFields` entry that shows that we wrote it.
    let (mut bare, word) = claims[1].clone();
    bare["managedFields"] = json!([{}]);
    claims.push((bare, word));
    for (metadata, _) in claims {
        claim(&site, &metadata);
        site.await_data("map", "a", "ours");
        assert_eq!(site.value("ConfigMap", "map", SET), set, "{metadata}");
        unclaim(&site);
    }
}

#[test]
fn where_opting_out_is_allowed_the_mark_of_another_owner_is_reported_and_counted_as_such() {
    let site = TestNamespace::new("claimed-allowed");
    let repo = repo();
    let _daemon = daemon(&site, &repo, "allowed");
    site.await_data("map", "a", "ours");
    for (metadata, word) in claims(&site) {
        claim(&site, &metadata);
        until("it is counted", || status(&site).ends_with("1 object: 1 OptedOut"));
        let expected = format!("{word} is set on the live object");
        until("an Event tells it", || events(&site, "map").iter().any(|event| event.contains(&expected)));
        assert_eq!(site.data("map", "a"), "theirs");
        unclaim(&site);
        let label = json!({"metadata": {"labels": {"applyset.kubernetes.io/part-of": label_of(&site)}}});
        site.api.merge(&site.at("ConfigMap", "map"), "somebody", &label);
        site.await_data("map", "a", "ours");
    }
}

/// Returns the label of the source's objects.
fn label_of(site: &TestNamespace<'_>) -> Value {
    site.inventory().unwrap().pointer("/metadata/labels/applyset.kubernetes.io~1id").unwrap().clone()
}

/// Applies the object in our name, as somebody does, with the label of an inventory that nobody
/// knows.
fn relabel(site: &TestNamespace<'_>, release: &Value) {
    let annotations = json!({"rhumb.dev/release": release});
    let body = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "theirs"},
        "metadata": {"name": "map", "labels": {"applyset.kubernetes.io/part-of": UNKNOWN}, "annotations": annotations},
    });
    site.api.apply(&site.at("ConfigMap", "map"), "rhumb", &body);
    if release.is_null() {
        let none = json!({"metadata": {"annotations": {"rhumb.dev/release": null}}});
        site.api.merge(&site.at("ConfigMap", "map"), "rhumb", &none);
    }
}

#[test]
fn the_label_of_another_inventory_does_not_keep_what_rhumb_wrote_from_being_repaired() {
    let site = TestNamespace::new("relabelled");
    let repo = repo();
    let mut running = daemon(&site, &repo, "allowed");
    site.await_data("map", "a", "ours");
    let set = site.value("ConfigMap", "map", SET);
    let release = || site.value("ConfigMap", "map", "/metadata/annotations/rhumb.dev~1release");
    let is_back = || {
        site.data("map", "a") == "ours" && site.value("ConfigMap", "map", SET) == set && release().is_string()
    };
    let unsealed = |release: Value| json!(release.as_str().unwrap().split_once(' ').unwrap().0);
    for release in [release(), unsealed(release()), Value::Null] {
        relabel(&site, &release);
        until(&format!("it is put back with {release}"), is_back);
    }
    // A process that begins later knows it by what the annotation says.
    for release in [release(), unsealed(release())] {
        assert!(running.stop().success());
        relabel(&site, &release);
        running = daemon(&site, &repo, "allowed");
        until(&format!("it is put back with {release}"), is_back);
    }
    // Without one nobody knows that it was ours, which is reported.
    assert!(running.stop().success());
    relabel(&site, &Value::Null);
    running = daemon(&site, &repo, "allowed");
    running.says(&["map", "refused", &format!("it belongs to the ApplySet {UNKNOWN}")]);
    assert_eq!(site.data("map", "a"), "theirs");
}

#[test]
fn an_order_to_one_source_does_not_reach_what_another_one_brings_under_a_label_that_somebody_changed() {
    let site = TestNamespace::new("relabelled-order");
    let (mine, theirs) = (repo(), Repo::new(&[("theirs.yaml", yaml::config_map("theirs", "a", "one"))]));
    let other = source("relabelled-other", &site.name, theirs.path(), "");
    let configuration = site.configuration(mine.path(), "budget: {soak: 0s}");
    let daemon = site.configured(&format!("{configuration}---\n{other}"));
    site.await_data("map", "a", "ours");
    site.await_data("theirs", "a", "one");
    let orders = at("ConfigMap", &site.system(), &format!("orders.{}.rhumb.dev", site.name));
    until("the orders object is made", || site.api.get(&orders).is_some());
    // The hold keeps the label as it is, and a newer content waits.
    let marks = json!({"metadata": {
        "annotations": {"rhumb.dev/hold": "1-h until=2999-01-01T00:00:00Z mine"},
        "labels": {"applyset.kubernetes.io/part-of": label_of(&site)},
    }});
    site.api.merge(&site.at("ConfigMap", "theirs"), "rhumb", &marks);
    let newest = theirs.change("theirs.yaml", &yaml::config_map("theirs", "a", "two"));
    daemon.says(&["read source=relabelled-other", &newest]);
    let order = json!({"verb": "abort", "object": format!("ConfigMap/{}/theirs", site.name)}).to_string();
    site.api.merge(&orders, "somebody", &json!({"data": {"1-a": order}}));
    let expected =
        format!("1-a nothing was done: ConfigMap {0}/theirs is no object of source {0}", site.name);
    eventually("it is refused", DEFAULT_TIMEOUT, || {
        let said = site.inventory().unwrap()["data"]["acknowledged"].as_str().unwrap_or_default().to_owned();
        if said.contains(&expected) { Ok(()) } else { Err(said) }
    });
    assert_eq!(site.inventory().unwrap().pointer("/data/rejected"), None);
}
