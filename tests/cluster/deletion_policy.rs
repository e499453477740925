//! The objects of a `Source` after a person deletes it.

use std::path::Path;

use serde_json::{Value, json};

use crate::customs::{HEAD, await_condition, condition, custom, own};
use crate::state::await_pin;
use crate::support::{
    DEFAULT_TIMEOUT, Daemon, DedicatedCluster, Repo, TestNamespace, at, eventually, run, source, yaml,
};

const FINALIZER: &str = "rhumb.dev/prune";

fn spec(url: &str, site: &TestNamespace<'_>, policy: &str) -> Value {
    json!({"git": {"url": url}, "namespace": site.name, "deletionPolicy": policy})
}

fn path(site: &TestNamespace<'_>, name: &str) -> String {
    at("Source", &site.system(), name)
}

fn create(site: &TestNamespace<'_>, name: &str, repository: &Path, policy: &str) {
    let spec = spec(repository.to_str().unwrap(), site, policy);
    site.api.create(&path(site, ""), "people", &custom(name, &spec));
}

#[track_caller]
fn await_ready(site: &TestNamespace<'_>, name: &str) {
    eventually(&format!("{name} is ready"), DEFAULT_TIMEOUT, || {
        let found = condition(site, name, "Ready");
        if found.starts_with("\"True\"") { Ok(()) } else { Err(found) }
    });
}

#[track_caller]
fn await_gone(site: &TestNamespace<'_>, name: &str) {
    eventually(&format!("the source {name} is gone"), DEFAULT_TIMEOUT * 2, || {
        match site.api.get(&path(site, name)) {
            None => Ok(()),
            Some(source) => Err(source.to_string()),
        }
    });
}

fn finalizers(site: &TestNamespace<'_>, name: &str) -> Value {
    site.api.value(&path(site, name), "/metadata/finalizers")
}

fn daemon(site: &TestNamespace<'_>) -> Daemon {
    site.configured(HEAD)
}

/// Returns more than a commit could take away without a confirmation; one uses another, and one is
/// to be kept.
fn shop() -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = (0..14)
        .map(|number| (format!("{number}.yaml"), yaml::config_map(&format!("c{number}"), "a", "1")))
        .collect();
    let web = yaml::deployment("web", 1, "app:1")
        .replace("        image:", "        envFrom:\n        - configMapRef: {name: c0}\n        image:");
    let kept = yaml::config_map("kept", "a", "1");
    let kept = kept.replace("metadata:\n", "metadata:\n  annotations: {rhumb.dev/prune: never}\n");
    files.extend([("web.yaml".to_owned(), web), ("kept.yaml".to_owned(), kept)]);
    files
}

#[test]
fn delete_takes_along_all_but_what_is_kept_in_its_order_though_the_repository_is_gone() {
    let cluster = DedicatedCluster::bare();
    let site = own(&cluster);
    let (dir, bare) = Repo::new(&shop()).bare();
    let mut first = daemon(&site);
    let url = format!("file://{}", bare.display());
    site.api.create(&path(&site, ""), "people", &custom("shop", &spec(&url, &site, "Delete")));
    await_condition(&site, "shop", "Reconciling", &["True Progressing"]);
    site.await_object("ConfigMap", "kept");
    assert_eq!(finalizers(&site, "shop"), json!([FINALIZER]));
    // The order follows from their contents, so the revision must be on this host before its
    // repository goes.
    await_pin(&site);
    assert_eq!(first.stop().code(), Some(0));
    drop(dir);
    assert!(!bare.exists());
    let window = site.window();
    site.api.delete(&path(&site, "shop"));
    // Begun by a new process, which knows nothing but what is in the cluster and on its disk.
    let mut second = daemon(&site);
    await_gone(&site, "shop");
    assert_eq!(second.stop().code(), Some(0));
    let left =
        site.api.list(&format!("{}?labelSelector=applyset.kubernetes.io/part-of", site.at("ConfigMap", "")));
    let left: Vec<&str> = left.iter().filter_map(|left| left["metadata"]["name"].as_str()).collect();
    assert_eq!(left, ["kept"]);
    assert!(!site.has("Deployment", "web"));
    let deletes = window.deletes();
    let when = |name: &str| deletes.iter().position(|delete| delete.name == name).unwrap();
    assert_eq!(deletes.len(), 15);
    assert!(when("web") < when("c0"), "{deletes:#?}");
}

#[test]
fn orphan_leaves_everything_and_takes_the_finalizer_off_at_any_time() {
    let cluster = DedicatedCluster::bare();
    let site = own(&cluster);
    let repo = |name: &str| {
        Repo::new(&[
            ("a.yaml", yaml::config_map(name, "a", "1")),
            ("b.yaml", yaml::workload("StatefulSet", name, 1, "app:1", "{}")),
        ])
    };
    let (plain, changed, late) = (repo("plain"), repo("changed"), repo("late"));
    let _daemon = daemon(&site);
    create(&site, "plain", plain.path(), "Orphan");
    create(&site, "changed", changed.path(), "Delete");
    create(&site, "late", late.path(), "Delete");
    for name in ["plain", "changed", "late"] {
        site.await_object("ConfigMap", name);
        site.await_object("StatefulSet", name);
    }
    let window = site.window();
    assert_eq!(finalizers(&site, "plain"), Value::Null);
    site.api.delete(&path(&site, "plain"));
    await_gone(&site, "plain");
    let orphan = json!({"spec": {"deletionPolicy": "Orphan"}});
    site.api.merge(&path(&site, "changed"), "people", &orphan);
    eventually("the finalizer is off", DEFAULT_TIMEOUT, || match finalizers(&site, "changed") {
        Value::Null => Ok(()),
        other => Err(other.to_string()),
    });
    site.api.delete(&path(&site, "changed"));
    await_gone(&site, "changed");
    window.assert_no_deletes();
    // A deletion that waits for a person can be let go too.
    site.api.delete(&path(&site, "late"));
    await_condition(&site, "late", "Stalled", &["True PruneWaiting"]);
    site.await_absence("ConfigMap", "late");
    site.api.merge(&path(&site, "late"), "people", &orphan);
    await_gone(&site, "late");
    for name in ["plain", "changed", "late"] {
        assert!(site.has("StatefulSet", name), "{name}");
        assert_eq!(site.has("ConfigMap", name), name != "late");
    }
}

#[test]
fn what_is_always_asked_about_is_asked_and_a_new_process_goes_on() {
    let cluster = DedicatedCluster::bare();
    let site = own(&cluster);
    let slow = yaml::config_map("slow", "a", "1");
    let repo =
        Repo::new(&[("db.yaml", yaml::workload("StatefulSet", "db", 1, "app:1", "{}")), ("slow.yaml", slow)]);
    let mut first = daemon(&site);
    create(&site, "shop", repo.path(), "Delete");
    site.await_object("StatefulSet", "db");
    site.await_object("ConfigMap", "slow");
    let slow = site.at("ConfigMap", "slow");
    site.api.merge(&slow, "somebody", &json!({"metadata": {"finalizers": ["example.org/slow"]}}));
    site.api.delete(&path(&site, "shop"));
    let command = "rhumb prune confirm --source shop OBJECT...";
    await_condition(&site, "shop", "Stalled", &["True PruneWaiting", "1 pending deletion", command]);
    await_condition(&site, "shop", "Ready", &["False PruneWaiting"]);
    eventually("the deletion of the other one has begun", DEFAULT_TIMEOUT, || {
        let deleted = site.api.value(&slow, "/metadata/deletionTimestamp");
        if deleted.is_string() { Ok(()) } else { Err("it has not") }
    });
    first.kill();
    let _second = daemon(&site);
    await_condition(&site, "shop", "Stalled", &["True PruneWaiting"]);
    // A new process has to look at everything before it can say again what waits.
    eventually("it is confirmed", DEFAULT_TIMEOUT, || {
        let mut confirm = site.bare_command();
        confirm.args(["prune", "confirm", "--source", "shop", "statefulset/db"]);
        let confirmed = run(confirm);
        if confirmed.code == 0 { Ok(()) } else { Err(confirmed.all()) }
    });
    site.await_absence("StatefulSet", "db");
    // As long as anything is left of them, it stays.
    await_condition(&site, "shop", "Reconciling", &["True Deleting", "are left"]);
    assert_eq!(finalizers(&site, "shop"), json!([FINALIZER]));
    site.api.merge(&slow, "somebody", &json!({"metadata": {"finalizers": null}}));
    await_gone(&site, "shop");
    assert!(!site.has("ConfigMap", "slow"));
}

#[test]
fn a_name_that_the_file_has_takes_nothing_of_the_files_along() {
    let cluster = DedicatedCluster::bare();
    let site = own(&cluster);
    let repo = Repo::new(&[("a.yaml", yaml::config_map("a", "a", "1"))]);
    let first = daemon(&site);
    create(&site, "shop", repo.path(), "Delete");
    await_ready(&site, "shop");
    drop(first);
    let text = format!("{HEAD}---\n{}", crate::support::source("shop", &site.name, repo.path(), ""));
    let _second = site.configured(&text);
    let window = site.window();
    site.api.delete(&path(&site, "shop"));
    await_gone(&site, "shop");
    repo.change("a.yaml", &yaml::config_map("a", "a", "2"));
    site.await_data("a", "a", "2");
    window.assert_no_deletes();
}

/// Confirms the deletion of so many objects of a source.
fn confirm(site: &TestNamespace<'_>, name: &str, count: usize) {
    let mut command = site.bare_command();
    command.args(["prune", "confirm", "--source", name, "--count", &count.to_string()]);
    run(command).ends(0);
}

/// Takes over an inventory by a new `Source` of the name that it has already.
#[test]
fn what_another_place_brought_under_the_same_name_is_deleted_only_when_a_person_confirms_it() {
    let cluster = DedicatedCluster::bare();
    let site = own(&cluster);
    let repo = |name: &str| Repo::new(&[("a.yaml", yaml::config_map(name, "a", "1"))]);
    let (before, other) = (repo("before"), repo("other"));
    let text = format!("{HEAD}---\n{}", source("shop", &site.name, before.path(), ""));
    let mut first = site.configured(&text);
    site.await_data("before", "a", "1");
    assert_eq!(first.stop().code(), Some(0));
    // The file no longer declares it.
    let mut second = daemon(&site);
    create(&site, "shop", other.path(), "Delete");
    site.await_data("other", "a", "1");
    let window = site.window();
    site.api.delete(&path(&site, "shop"));
    await_condition(&site, "shop", "Stalled", &["True PruneWaiting", "2 pending deletions"]);
    assert!(site.has("ConfigMap", "before"));
    window.assert_no_deletes();
    confirm(&site, "shop", 2);
    await_gone(&site, "shop");
    site.await_absence("ConfigMap", "before");
    // A `Source` of which nothing is understood names no place either. The daemon that takes the
    // inventory away has ended before another one makes it anew.
    assert_eq!(second.stop().code(), Some(0));
    let mut third = site.configured(&text);
    site.await_data("before", "a", "1");
    assert_eq!(third.stop().code(), Some(0));
    let mut bad = custom("shop", &json!({"git": {"url": "x:"}, "deletionPolicy": "Delete"}));
    bad["metadata"]["finalizers"] = json!([FINALIZER]);
    site.api.create(&path(&site, ""), "people", &bad);
    site.api.delete(&path(&site, "shop"));
    let _last = daemon(&site);
    await_condition(&site, "shop", "Stalled", &["True PruneWaiting", "1 pending deletion"]);
    assert!(site.has("ConfigMap", "before"));
}

fn all_but_sources() -> Value {
    json!([
        {"apiGroups": ["", "apps", "autoscaling", "coordination.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["rhumb.dev"], "resources": ["sources"], "verbs": ["list"]},
        {"apiGroups": ["rhumb.dev"], "resources": ["sources/status"], "verbs": ["patch"]},
        {"nonResourceURLs": ["*"], "verbs": ["get"]},
    ])
}

const LIMITED: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/limited";

/// Gives the user of a place, which can do nothing, these rights.
fn grant(site: &TestNamespace<'_>, rules: &Value) {
    let group = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "limited"}, "rules": rules});
    site.api.create(&format!("{group}/clusterroles"), "setup", &role);
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "limited"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "limited"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": site.user}],
    });
    site.api.create(&format!("{group}/clusterrolebindings"), "setup", &binding);
}

#[test]
fn a_finalizer_that_may_not_be_written_is_said_and_nothing_is_begun() {
    let cluster = DedicatedCluster::bare();
    let mut site = own(&cluster);
    site.limited();
    let mut rules = all_but_sources();
    grant(&site, &rules);
    let repo = Repo::new(&[("a.yaml", yaml::config_map("a", "a", "1"))]);
    let orphan = Repo::new(&[("b.yaml", yaml::config_map("b", "a", "1"))]);
    let daemon = daemon(&site);
    create(&site, "shop", repo.path(), "Delete");
    create(&site, "orphan", orphan.path(), "Orphan");
    await_condition(
        &site,
        "shop",
        "Stalled",
        &["True FinalizerRefused", "rhumb.dev/prune cannot be written"],
    );
    site.await_data("b", "a", "1");
    assert!(!site.has("ConfigMap", "a"));
    daemon.says(&["rhumb.dev/prune cannot be written"]);
    rules[1]["verbs"] = json!(["list", "patch"]);
    site.api.merge(LIMITED, "setup", &json!({"rules": rules}));
    site.await_data("a", "a", "1");
    assert_eq!(finalizers(&site, "shop"), json!([FINALIZER]));
}

#[test]
fn where_the_inventory_is_lost_the_source_stays_until_a_person_lets_it_go() {
    let cluster = DedicatedCluster::bare();
    let site = own(&cluster);
    let repo = Repo::new(&[("a.yaml", yaml::config_map("a", "a", "1"))]);
    let first = daemon(&site);
    create(&site, "shop", repo.path(), "Delete");
    await_ready(&site, "shop");
    drop(first);
    site.api.delete(&at("ConfigMap", &site.system(), "shop"));
    site.api.delete(&path(&site, "shop"));
    let _second = daemon(&site);
    await_condition(&site, "shop", "Stalled", &["True InventoryLost", "deletionPolicy: Orphan"]);
    site.api.merge(&path(&site, "shop"), "people", &json!({"spec": {"deletionPolicy": "Orphan"}}));
    await_gone(&site, "shop");
    assert!(site.has("ConfigMap", "a"));
}

#[test]
fn a_source_with_the_name_of_somebodys_data_goes_when_it_is_deleted_and_the_data_stay() {
    let cluster = DedicatedCluster::bare();
    let site = own(&cluster);
    let repo = Repo::new(&[("a.yaml", yaml::config_map("a", "a", "1"))]);
    let _daemon = daemon(&site);
    let data = json!({"x": "y"});
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop"}, "data": data});
    site.api.create(&at("ConfigMap", &site.system(), ""), "people", &object);
    create(&site, "shop", repo.path(), "Delete");
    await_condition(&site, "shop", "Ready", &["False InventoryUnread", "no inventory"]);
    assert_eq!(finalizers(&site, "shop"), json!([FINALIZER]));
    site.api.delete(&path(&site, "shop"));
    await_gone(&site, "shop");
    assert_eq!(site.api.value(&at("ConfigMap", &site.system(), "shop"), "/data"), data);
    assert!(!site.has("ConfigMap", "a"));
}

#[test]
fn an_inventory_that_is_not_the_one_it_wrote_is_never_taken_for_all_that_it_has() {
    let cluster = DedicatedCluster::bare();
    let site = own(&cluster);
    let account = |name: &str| format!("apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {name}}}\n");
    let taken = Repo::new(&[("a.yaml", yaml::config_map("taken", "a", "1"))]);
    // Nothing else has objects of these kinds, so that nobody looks at them any more.
    let anew = Repo::new(&[("a.yaml", yaml::service("anew", "web"))]);
    let lost = Repo::new(&[("a.yaml", yaml::config_map("lost", "a", "1")), ("b.yaml", account("lost"))]);
    let first = daemon(&site);
    for (name, repo) in [("taken", &taken), ("anew", &anew), ("lost", &lost)] {
        create(&site, name, repo.path(), "Delete");
        await_ready(&site, name);
    }
    drop(first);
    let inventory = |name: &str| at("ConfigMap", &site.system(), name);
    let tooling = |tool: &str| json!({"metadata": {"annotations": {"applyset.kubernetes.io/tooling": tool}}});
    site.api.merge(&inventory("taken"), "people", &tooling("other/v1"));
    for name in ["anew", "lost"] {
        site.api.delete(&inventory(name));
    }
    let empty = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "anew"}});
    site.api.create(&inventory(""), "people", &empty);
    for name in ["taken", "anew", "lost"] {
        site.api.delete(&path(&site, name));
    }
    let _second = daemon(&site);
    await_condition(&site, "taken", "Stalled", &["True InventoryUnread", "other/v1", "Orphan"]);
    for name in ["anew", "lost"] {
        await_condition(&site, name, "Stalled", &["True InventoryLost", "deletionPolicy: Orphan"]);
    }
    site.api.merge(&inventory("taken"), "people", &tooling("rhumb/v1"));
    await_gone(&site, "taken");
    assert!(!site.has("ConfigMap", "taken"));
    assert_eq!(site.inventory_of("lost"), None);
    for name in ["anew", "lost"] {
        assert_eq!(finalizers(&site, name), json!([FINALIZER]));
        site.api.merge(&path(&site, name), "people", &json!({"spec": {"deletionPolicy": "Orphan"}}));
        await_gone(&site, name);
    }
    assert!(
        site.has("Service", "anew") && site.has("ServiceAccount", "lost") && site.has("ConfigMap", "lost")
    );
}

#[test]
fn what_keeps_a_source_from_going_is_in_its_status() {
    let cluster = DedicatedCluster::bare();
    let mut site = own(&cluster);
    site.limited();
    let mut rules = all_but_sources();
    rules[1]["verbs"] = json!(["list", "patch"]);
    let fewer = rules.clone();
    rules[0]["apiGroups"].as_array_mut().unwrap().push(json!("networking.k8s.io"));
    grant(&site, &rules);
    let policy = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: p}\nspec: {podSelector: {}}\n";
    let repo = Repo::new(&[("a.yaml", yaml::config_map("a", "a", "1")), ("b.yaml", policy.to_owned())]);
    let first = daemon(&site);
    create(&site, "shop", repo.path(), "Delete");
    await_ready(&site, "shop");
    drop(first);
    site.api.merge(LIMITED, "setup", &json!({"rules": fewer}));
    create(&site, "elsewhere", Path::new("/nowhere/at/all"), "Orphan");
    site.api.delete(&path(&site, "shop"));
    let _second = daemon(&site);
    let unread = "NetworkPolicy.networking.k8s.io cannot be listed";
    await_condition(&site, "shop", "Stalled", &["True InventoryUnread", unread, "let the user list"]);
    assert!(site.has("ConfigMap", "a"));
    site.api.merge(LIMITED, "setup", &json!({"rules": rules}));
    let waits = "ConfigMap customs/a: pruned when source elsewhere, which may want it, was observed again";
    await_condition(&site, "shop", "Reconciling", &["True Deleting", waits]);
    assert!(site.has("ConfigMap", "a"));
    site.api.delete(&path(&site, "elsewhere"));
    await_gone(&site, "shop");
    let policy = format!("/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies/p", site.name);
    assert!(!site.has("ConfigMap", "a") && site.api.get(&policy).is_none());
}
