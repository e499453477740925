//! Confirmed deletions: who may confirm, where that is recorded, and how long it counts.

use serde_json::{Value, json};

use crate::orders::{grant, grant_printed_role, orders_of};
use crate::support::{DEFAULT_TIMEOUT, Folder, Repo, TestNamespace, at, eventually, until, yaml};

/// Returns a ConfigMap whose deletion waits for a confirmation.
fn asking(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  annotations: \
         {{argocd.argoproj.io/sync-options: Prune=confirm}}\ndata: {{a: \"1\"}}\n"
    )
}

/// Returns the file of another ConfigMap, of which there are enough for some to go without a
/// confirmation.
fn plain(number: u32) -> (String, String) {
    (format!("c{number:03}.yaml"), yaml::config_map(&format!("c{number:03}"), "key", "one"))
}

fn files() -> Vec<(String, String)> {
    let mut files: Vec<_> = (0..30).map(plain).collect();
    files.push(("asking.yaml".to_owned(), asking("asking")));
    files
}

#[track_caller]
fn await_waiting(site: &TestNamespace<'_>, source: &str, name: &str) {
    let expected = format!("{}/configmap/{name}\n", site.name);
    eventually("its deletion is listed", DEFAULT_TIMEOUT, || {
        let list = site.rhumb(&["prune", "list", "-o", "name", "--source", source]).stdout;
        if list == expected { Ok(()) } else { Err(list) }
    });
}

fn is_empty(data: &Value) -> bool {
    data.as_object().is_none_or(serde_json::Map::is_empty)
}

/// Checks that the right to the orders object of one source suffices for its deletions, and for no
/// others.
#[test]
fn who_may_order_confirms_the_deletions_of_that_source_and_is_named() {
    let mut site = TestNamespace::new("confirm-team");
    let mine = Repo::new(&files());
    let theirs =
        Repo::new(&[("theirs.yaml", asking("theirs")), ("other.yaml", yaml::config_map("other", "a", "1"))]);
    let source = |name: &str, repo: &Repo| {
        let source = crate::support::source(name, "confirm-team", repo.path(), "");
        source.replacen("spec:\n", "spec:\n  pruneDelay: 1s\n", 1)
    };
    let (mine_of, theirs_of) = (source("confirm-team", &mine), source("confirm-other", &theirs));
    let head = "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\n";
    let daemon = site.configured(&format!("{head}---\n{mine_of}---\n{theirs_of}"));
    for name in ["asking", "theirs", "other"] {
        site.await_object("ConfigMap", name);
    }
    mine.remove("asking.yaml");
    mine.commit("Remove");
    theirs.remove("theirs.yaml");
    theirs.commit("Remove");
    await_waiting(&site, "confirm-team", "asking");
    await_waiting(&site, "confirm-other", "theirs");
    // Nothing that is on the inventory itself confirms, as older versions read it there.
    let uid = site.value("ConfigMap", "asking", "/metadata/uid");
    let annotated = json!({"metadata": {"annotations": {"rhumb.dev/prune-confirmed": uid}}});
    site.api.merge(&at("ConfigMap", &site.system(), "confirm-team"), "somebody", &annotated);
    mine.remove("c000.yaml");
    mine.commit("Remove one more");
    site.await_absence("ConfigMap", "c000");
    assert!(site.has("ConfigMap", "asking"));
    site.limited();
    grant_printed_role(&site, "confirm-team");
    // The right to read the record of the other source confirms nothing.
    let other = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"],
                       "resourceNames": ["confirm-other"]});
    grant(&site, &json!([other]));
    let expected =
        format!("confirmed: the deletion of ConfigMap confirm-team/asking (ordered by {})", site.user);
    site.rhumb(&["prune", "confirm", "configmap/asking"]).ends(0).says(&[&expected]);
    site.await_absence("ConfigMap", "asking");
    daemon.says(&["order: ", &expected]);
    until("an Event names who it was", || {
        let events = site.api.list(&format!("/api/v1/namespaces/{}/events", site.name));
        events.iter().any(|event| event["reason"] == "OrderDone" && event["message"] == expected.as_str())
    });
    until("the order is taken out, and the record with what it confirmed", || {
        let record = site.inventory().unwrap().pointer("/data/confirmed-prunes").cloned();
        is_empty(&site.api.value(&orders_of(&site, "confirm-team"), "/data")) && record.is_none()
    });
    let run = site.rhumb(&["prune", "confirm", "configmap/theirs", "--source", "confirm-other"]).ends(3);
    run.says(&["orders.confirm-other.rhumb.dev", "cannot patch resource \"configmaps\""]);
    run.says(&["allow to give orders to source confirm-other"]);
    // Nor by the own orders object.
    let uid = site.value("ConfigMap", "theirs", "/metadata/uid");
    let order =
        json!({"verb": "confirm", "object": "ConfigMap/confirm-team/theirs", "uids": [uid]}).to_string();
    site.api.merge(&orders_of(&site, "confirm-team"), "somebody", &json!({"data": {"1-a": order}}));
    let expected =
        "1-a nothing was confirmed: of what is named, nothing waits for its deletion in confirm-team";
    eventually("it is refused", DEFAULT_TIMEOUT, || {
        let said = site.inventory().unwrap()["data"]["acknowledged"].as_str().unwrap_or_default().to_owned();
        if said.contains(expected) { Ok(()) } else { Err(said) }
    });
    assert!(site.has("ConfigMap", "theirs"));
}

#[test]
fn what_comes_back_before_it_went_needs_a_new_confirmation() {
    let site = TestNamespace::new("confirm-back");
    let repo = Repo::new(&files());
    let _daemon = site.daemon(repo.path());
    site.await_object("ConfigMap", "asking");
    repo.remove("asking.yaml");
    repo.commit("Remove");
    await_waiting(&site, "confirm-back", "asking");
    // Nothing is deleted for now, so that it can come back in time.
    site.rhumb(&["rollout", "pause", "source/confirm-back"]).ends(0);
    site.rhumb(&["prune", "confirm", "configmap/asking"]).ends(0).says(&["confirmed: the deletion of"]);
    let recorded = || site.inventory().unwrap().pointer("/data/confirmed-prunes").cloned();
    assert!(recorded().is_some());
    repo.change("asking.yaml", &asking("asking"));
    until("its confirmation is over", || recorded().is_none());
    repo.remove("asking.yaml");
    repo.remove("c000.yaml");
    repo.commit("Remove again");
    await_waiting(&site, "confirm-back", "asking");
    site.rhumb(&["rollout", "resume", "source/confirm-back"]).ends(0);
    site.await_absence("ConfigMap", "c000");
    assert!(site.has("ConfigMap", "asking"));
    site.rhumb(&["prune", "confirm", "configmap/asking"]).ends(0);
    site.await_absence("ConfigMap", "asking");
}

#[test]
fn a_single_pass_takes_note_of_what_was_confirmed_and_of_what_came_back() {
    let site = TestNamespace::new("confirm-apply");
    let folder = Folder::new(&files());
    site.apply(folder.path(), &[]).ends(0);
    let remove_it = || {
        folder.remove("asking.yaml");
        site.apply(folder.path(), &["--prune"])
            .ends(4)
            .says(&["configmap/asking", "asks for a confirmation"]);
    };
    let confirm = || {
        let run = site.rhumb(&["prune", "confirm", "configmap/asking"]).ends(0);
        run.says(&["1 confirmed in ConfigMap confirm-apply-rhumb/orders.confirm-apply.rhumb.dev"]);
    };
    remove_it();
    confirm();
    folder.write("asking.yaml", &asking("asking"));
    let run = site.apply(folder.path(), &[]).ends(0);
    run.says(&["nothing was confirmed: of what is named, nothing waits for its deletion in confirm-apply"]);
    remove_it();
    assert!(site.has("ConfigMap", "asking"));
    confirm();
    // A pass that prunes nothing takes note of it for the next one.
    site.diff(folder.path(), &[]).ends(1).says(&["- ConfigMap confirm-apply/asking"]);
    let expected =
        format!("confirmed: the deletion of ConfigMap confirm-apply/asking (ordered by {})", site.user);
    site.apply(folder.path(), &[]).ends(0).says(&[&expected]);
    assert!(site.has("ConfigMap", "asking"));
    assert!(is_empty(&site.api.value(&orders_of(&site, "confirm-apply"), "/data")));
    site.apply(folder.path(), &["--prune"]).ends(0).says(&["configmap/asking", "pruned"]);
    assert!(!site.has("ConfigMap", "asking"));
}

/// Checks that an orders object is bounded, and that a text that is no confirmation confirms
/// nothing.
#[test]
fn a_confirmation_that_is_none_is_taken_out_and_deletes_nothing() {
    let site = TestNamespace::new("confirm-garbage");
    let repo = Repo::new(&files());
    let daemon = site.daemon(repo.path());
    site.await_object("ConfigMap", "asking");
    repo.remove("asking.yaml");
    repo.commit("Remove");
    await_waiting(&site, "confirm-garbage", "asking");
    let uid = site.value("ConfigMap", "asking", "/metadata/uid");
    let text = |verb: &str, object: &str, uids: Value| {
        json!({"verb": verb, "object": object, "uids": uids}).to_string()
    };
    let asked = "ConfigMap/confirm-garbage/asking";
    let many: Vec<String> = (0..2001).map(|number| format!("u{number}")).collect();
    let named = json!({"verb": "confirm", "object": asked, "argument": uid}).to_string();
    let orders = orders_of(&site, "confirm-garbage");
    let garbage = [
        ("1-none", text("confirm", asked, json!([]))),
        ("1-text", text("confirm", asked, uid.clone())),
        ("1-number", text("confirm", asked, json!([7]))),
        ("1-many", text("confirm", asked, json!(many))),
        ("1-long", text("confirm", asked, json!(["u".repeat(200_000)]))),
        ("1-named", named),
        ("1-nothing", text("confirm", "", json!([uid]))),
    ];
    let data: serde_json::Map<String, Value> =
        garbage.iter().map(|(key, text)| ((*key).to_owned(), json!(text))).collect();
    site.api.merge(&orders, "somebody", &json!({"data": data}));
    until("all of it is taken out", || is_empty(&site.api.value(&orders, "/data")));
    daemon.says(&["7 keys are no orders"]);
    // Other orders name no uids, and these mean nothing there.
    let retry = text("retry", asked, json!([uid]));
    site.api.merge(&orders, "somebody", &json!({"data": {"2-retry": retry}}));
    until("it is taken out", || is_empty(&site.api.value(&orders, "/data")));
    repo.remove("c000.yaml");
    repo.commit("Remove one more");
    site.await_absence("ConfigMap", "c000");
    assert!(site.has("ConfigMap", "asking"));
}
