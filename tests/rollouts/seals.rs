//! Hashes of Secrets are nowhere in plain where others than their readers may read.

use controlplane::{Answer, Fault, FaultProxy, Requests, Rule};
use serde_json::{Value, json};

use crate::failures::{BOUNDS, BUDGET, IMAGE, at_rest, await_image, await_rejection, push};
use crate::manifests::Web;
use crate::support::{DEFAULT_TIMEOUT, Repo, TestNamespace, eventually, until, yaml};

const RELEASE: &str = "/metadata/annotations/rhumb.dev~1release";
const KEY: &str = "config-key.rhumb.dev";

fn files(web: &Web, value: &str) -> Vec<(String, String)> {
    let uses = web.clone().container("envFrom: [{secretRef: {name: password}}]");
    vec![uses.file(), ("password.yaml".to_owned(), yaml::secret("password", "word", value))]
}

fn bad() -> Web {
    Web::new("web", "app:2").fault("never-ready: \"true\"").impatient()
}

/// Returns the release of the Secret that is there: `<hash>@<revision>`.
fn release(site: &TestNamespace<'_>) -> String {
    site.value("Secret", "password", RELEASE).as_str().unwrap_or_default().to_owned()
}

fn hash(release: &str) -> &str {
    release.split_once('@').unwrap().0
}

/// Waits until the Secret shows another release than these, and returns which.
fn await_release(site: &TestNamespace<'_>, known: &[&str]) -> String {
    eventually("the Secret has another content", DEFAULT_TIMEOUT, || {
        let release = release(site);
        let new = !release.is_empty() && !known.contains(&&*release);
        if new { Ok(release.clone()) } else { Err(release) }
    })
}

/// Returns all that is in ConfigMaps beside the inventory, which has none of these hashes.
#[track_caller]
fn records(site: &TestNamespace<'_>, releases: &[&str]) -> String {
    let all = site.api.list(&format!("/api/v1/namespaces/{}/configmaps", site.system()));
    let text = json!(all).to_string();
    for release in releases {
        assert!(!text.contains(hash(release)), "{release}: {text}");
    }
    text
}

fn budget_at(site: &TestNamespace<'_>) -> String {
    format!("/api/v1/namespaces/{}/configmaps/rollout-budget.rhumb.dev", site.system())
}

fn key_at(site: &TestNamespace<'_>) -> String {
    format!("/api/v1/namespaces/{}/secrets/{KEY}", site.system())
}

/// Returns the fault by which the user may not read the key.
fn without_key() -> Rule {
    let key = Requests::any().path_suffix(&format!("/secrets/{KEY}"));
    Rule::new(key, Fault::Replace(Answer::error(403, "Forbidden")))
}

/// Returns somebody who may read workloads and ConfigMaps, and no Secret.
fn viewer(site: &TestNamespace<'static>) -> TestNamespace<'static> {
    let mut viewer = site.with_empty_state();
    viewer.limited();
    let api = "/apis/rbac.authorization.k8s.io/v1";
    let rules = json!([
        {"apiGroups": ["apps"], "resources": ["deployments", "replicasets"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["configmaps", "pods", "events"], "verbs": ["get", "list", "watch"]},
    ]);
    let named =
        |kind: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": viewer.user});
    let metadata = json!({"name": viewer.user});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules});
    site.api.create(&format!("{api}/clusterroles"), "setup", &role);
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": metadata,
        "roleRef": named("ClusterRole"), "subjects": [named("User")],
    });
    site.api.create(&format!("{api}/clusterrolebindings"), "setup", &binding);
    let asked = json!({"group": "", "resource": "events", "verb": "list"});
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": viewer.user, "resourceAttributes": asked},
    });
    // The server hears of roles and bindings a moment later.
    until("what is granted counts", || {
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        site.api.create(path, "setup", &review)["status"]["allowed"] == json!(true)
    });
    viewer
}

#[test]
fn a_secret_rolls_out_and_goes_back_and_its_hash_is_shown_to_nobody() {
    let site = TestNamespace::new("seals");
    let repo = Repo::new(&files(&Web::new("web", "app:1"), "one"));
    let (mut daemon, observer) = at_rest(&site, &repo, &["web"]);
    let viewer = viewer(&site);
    viewer
        .rhumb(&["why", "secret/password"])
        .ends(3)
        .says(&["Secret seals/password: the user may not do this"]);
    let one = release(&site);
    push(&repo, &files(&bad(), "two"), "Change both");
    let two = await_release(&site, &[&one]);
    let text = records(&site, &[&one, &two]);
    assert!(text.contains("Secret/seals/password") && text.contains("\\\"~"), "{text}");
    let status = viewer.rhumb(&["rollout", "status", "deploy/web"]).all();
    for release in [&one, &two] {
        assert!(!status.contains(hash(release)), "{status}");
    }
    await_rejection(&site, &["web", "password"]);
    await_image(&site, "web", "app:1");
    until("the Secret goes back", || hash(&release(&site)) == hash(&one));
    site.await_free_budget();
    let inventory = site.inventory().unwrap()["data"]["rejected"].as_str().unwrap().to_owned();
    assert!(inventory.contains("\"~"), "{inventory}");
    records(&site, &[&one, &two]);
    // The daemon publishes its status some seconds later.
    until("its status is published", || viewer.rhumb(&["rollout", "status", "deploy/web"]).code == 0);
    viewer.rhumb(&["rollout", "history", "deploy/web"]).ends(0);
    viewer.rhumb(&["why", "deploy/web"]).ends(0).says(&["phase", "RolledBack"]);
    let back = release(&site);
    push(&repo, &files(&Web::new("web", "app:3"), "three"), "Mend it");
    let three = await_release(&site, &[&one, &two, &back]);
    await_image(&site, "web", "app:3");
    site.await_free_budget();
    let text = records(&site, &[&one, &two, &three]);
    assert!(text.contains("\\\"past\\\":[{") && text.contains("\\\"~"), "{text}");
    // A sealed record is read again by the next process.
    daemon.stop();
    let _next = site.configured(&site.configuration(repo.path(), BUDGET));
    site.order(&["rollout", "undo", "deploy/web"], &["undone"]);
    await_image(&site, "web", "app:1");
    until("the Secret goes back", || hash(&release(&site)) == hash(&one));
    records(&site, &[&one, &two, &three]);
    observer.judge(BOUNDS);
}

/// Returns a text of the rollout ledger as an older version wrote it.
fn as_of_old(text: &str, content: &str, good: &str) -> String {
    let mut record: Value = serde_json::from_str(text).unwrap();
    let members = record["past"].as_array_mut().unwrap().iter_mut();
    let members = members.flat_map(|unit| unit["members"].as_array_mut().unwrap());
    for member in members.filter(|member| member["object"].as_str().unwrap().starts_with("Secret/")) {
        // It knew no seals of releases.
        let good = good.split(' ').next();
        (member["content"], member["good"]) = (json!(hash(content)), json!(good));
    }
    record.to_string()
}

#[test]
fn what_an_older_version_wrote_in_plain_is_sealed_and_still_known() {
    let site = TestNamespace::new("seals-upgrade");
    let repo = Repo::new(&files(&Web::new("web", "app:1"), "one"));
    let (mut daemon, _observer) = at_rest(&site, &repo, &["web"]);
    let one = release(&site);
    push(&repo, &files(&Web::new("web", "app:2"), "two"), "Change both");
    await_image(&site, "web", "app:2");
    let two = release(&site);
    site.await_free_budget();
    daemon.stop();
    let text = site.api.value(&budget_at(&site), "/data/claims").as_str().unwrap().to_owned();
    let old = as_of_old(&text, &two, &one);
    assert!(old.contains(hash(&one)) && old.contains(hash(&two)), "{old}");
    site.api.merge(&budget_at(&site), "setup", &json!({"data": {"claims": old}}));
    site.api.delete(&key_at(&site));
    let _next = site.configured(&site.configuration(repo.path(), BUDGET));
    eventually("it is sealed", DEFAULT_TIMEOUT, || {
        let text = site.api.value(&budget_at(&site), "/data/claims").to_string();
        let plain = text.contains(hash(&one)) || text.contains(hash(&two));
        if plain { Err(text) } else { Ok(()) }
    });
    site.order(&["rollout", "undo", "deploy/web"], &["undone", "2 objects"]);
    await_image(&site, "web", "app:1");
    until("the Secret goes back", || hash(&release(&site)) == hash(&one));
    records(&site, &[&one, &two]);
}

#[test]
fn without_the_right_to_the_key_a_secret_and_its_workload_wait_with_a_reason() {
    let mut site = TestNamespace::new("seals-rights");
    let proxy: FaultProxy = site.cluster.fault_proxy(1).unwrap();
    let rule = proxy.add(without_key());
    site.through(&proxy);
    let alone = |image: &str| Web::new("alone", image).file();
    let repo = Repo::new(&[files(&Web::new("web", "app:1"), "one"), vec![alone("app:1")]].concat());
    let (daemon, _observer) = at_rest(&site, &repo, &["web", "alone"]);
    let one = release(&site);
    push(&repo, &[files(&Web::new("web", "app:2"), "two"), vec![alone("app:2")]].concat(), "Change all");
    await_image(&site, "alone", "app:2");
    daemon.says(&["Secret seals-rights-rhumb/config-key.rhumb.dev", "none is released with a Secret"]);
    let waits = "the recorded hashes of Secrets are sealed, and the key is not available";
    eventually("it is reported", DEFAULT_TIMEOUT, || {
        let why = site.rhumb(&["why", "deploy/web"]).ends(0).all();
        if why.contains(waits) { Ok(()) } else { Err(why) }
    });
    assert_eq!((release(&site), site.value("Deployment", "web", IMAGE)), (one, json!("app:1")));
    proxy.remove(rule);
    await_image(&site, "web", "app:2");
    site.await_free_budget();
}

#[test]
fn commands_without_the_right_to_the_key_touch_nothing_that_they_cannot_read() {
    let mut site = TestNamespace::new("seals-commands");
    let repo = Repo::new(&files(&Web::new("web", "app:1"), "one"));
    let (mut daemon, _observer) = at_rest(&site, &repo, &["web"]);
    push(&repo, &files(&bad(), "two"), "Change both");
    await_rejection(&site, &["web", "password"]);
    await_image(&site, "web", "app:1");
    site.await_free_budget();
    daemon.stop();
    let proxy: FaultProxy = site.cluster.fault_proxy(1).unwrap();
    let rule = proxy.add(without_key());
    site.through(&proxy);
    let window = site.window();
    let diff = site.diff(repo.path(), &[]);
    assert!(diff.all().contains("is sealed by a key that is not known here"), "{diff:?}");
    let apply = site.apply(repo.path(), &[]).all();
    assert!(apply.contains("the recorded hashes of Secrets are sealed, and the key"), "{apply}");
    assert!(window.to("deployments", "web").is_empty() && window.to("secrets", "password").is_empty());
    // With it they see what the daemon sees.
    proxy.remove(rule);
    let diff = site.diff(repo.path(), &[]).all();
    assert!(diff.contains("failed") && !diff.contains("sealed"), "{diff}");
    let apply = site.apply(repo.path(), &[]).all();
    assert!(apply.contains("it is back at revision") && !apply.contains("sealed"), "{apply}");
}

#[test]
fn where_the_key_is_lost_what_went_back_stays_as_it_is() {
    let site = TestNamespace::new("seals-lost");
    let repo = Repo::new(&files(&Web::new("web", "app:1"), "one"));
    let (mut daemon, _observer) = at_rest(&site, &repo, &["web"]);
    let one = release(&site);
    push(&repo, &files(&bad(), "two"), "Change both");
    await_rejection(&site, &["web", "password"]);
    await_image(&site, "web", "app:1");
    until("the Secret goes back", || hash(&release(&site)) == hash(&one));
    site.await_free_budget();
    daemon.stop();
    site.api.delete(&key_at(&site));
    let window = site.window();
    let next = site.configured(&site.configuration(repo.path(), BUDGET));
    push(&repo, &[crate::manifests::config("other", "one")], "Add something else");
    site.await_data("other", "key", "one");
    eventually("it is reported", DEFAULT_TIMEOUT, || {
        let why = next.log();
        if why.contains("is sealed by a key that is not known here") { Ok(()) } else { Err(why) }
    });
    assert!(window.to("deployments", "web").is_empty() && window.to("secrets", "password").is_empty());
    // Another content is released as ever.
    push(&repo, &files(&Web::new("web", "app:3"), "three"), "Mend it");
    await_image(&site, "web", "app:3");
    site.await_free_budget();
    drop(next);
}
