//! Sources whose `allow.namespaces` names namespaces: they are watched there and nowhere else, with
//! rights there and nowhere else. Their objects elsewhere stay, and stay known.

use std::collections::BTreeSet;

use controlplane::AuditEvent;
use serde_json::{Value, json};

use crate::support::{Daemon, Repo, TestNamespace, at, run, source, until, yaml};

const ROLE: &str = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: parted}\n\
                    rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n";

/// Returns a configuration with one source that may have objects in these namespaces.
fn configuration(site: &TestNamespace<'_>, repo: &Repo, namespaces: &[&str], settings: &str) -> String {
    let spec = format!(
        "  blastRadius: {{count: 10, percent: 100}}\n  allow: {{namespaces: [{}]{settings}}}",
        namespaces.join(", ")
    );
    let source = source(&site.name, &site.name, repo.path(), &spec);
    format!("apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\nresync: 2s\n---\n{source}")
}

/// Returns the output of `rhumb rbac` for the user of the site.
fn roles(site: &TestNamespace<'_>, text: &str) -> String {
    site.with_config(&["rbac", "--user", &site.user], text).ends(0).stdout
}

fn make_namespace(site: &TestNamespace<'_>, name: &str) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    site.api.create("/api/v1/namespaces", "setup", &namespace);
}

fn in_namespace(namespace: &str, text: &str) -> String {
    text.replacen("metadata:\n", &format!("metadata:\n  namespace: {namespace}\n"), 1)
}

/// Returns the values of an annotation of the source's inventory.
fn named(site: &TestNamespace<'_>, annotation: &str) -> BTreeSet<String> {
    let inventory = site.inventory().unwrap();
    let key = format!("applyset.kubernetes.io/{annotation}");
    let text = inventory["metadata"]["annotations"][key].as_str().unwrap_or_default();
    text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[test]
fn whoever_has_rights_in_one_namespace_applies_repairs_and_prunes_there() {
    let mut site = TestNamespace::new("namespaced");
    let repo = Repo::new(&[
        ("key.yaml", yaml::secret("key", "token", "right")),
        ("old.yaml", yaml::secret("old", "token", "old")),
        ("web.yaml", yaml::deployment("web", 1, "app:1")),
    ]);
    site.limited();
    let text = configuration(&site, &repo, &["namespaced"], "");
    site.cluster.kubectl_in(&["apply", "-f", "-"], &roles(&site, &text)).unwrap();
    until("all is granted", || site.with_config(&["check"], &text).code == 0);
    let window = site.window();
    let mut daemon = site.configured(&text);
    site.await_object("Secret", "old");
    site.await_object("Deployment", "web");
    let token = || site.value("Secret", "key", "/data/token");
    let right = site.await_object("Secret", "key")["data"]["token"].clone();
    site.api.merge(&site.at("Secret", "key"), "somebody", &json!({"data": {"token": "d3Jvbmc="}}));
    until("the drift is repaired", || token() == right);
    repo.remove("old.yaml");
    repo.commit("Remove one");
    site.await_absence("Secret", "old");
    site.await_rollout("web");
    daemon.stop();

    let calls = window.calls();
    let denied: Vec<_> = calls.iter().filter(|call| call.code == 403).collect();
    assert!(denied.is_empty(), "{denied:#?}");
    let is_read = |call: &&AuditEvent| call.resource == "secrets" && ["list", "watch"].contains(&&*call.verb);
    let (here, elsewhere): (Vec<_>, Vec<_>) =
        calls.iter().filter(is_read).partition(|call| call.namespace == site.name);
    assert!(!here.is_empty() && elsewhere.is_empty(), "{elsewhere:#?}");
    // A one-shot command needs no more.
    let status = site.rhumb(&["status", "-o", "json"]).ends(0).json();
    let source = &status["sources"][0];
    assert_eq!(
        (&source["objects"]["Settled"], &source["incomplete"]),
        (&json!(2), &Value::Null),
        "{status:#}"
    );
}

#[test]
fn what_is_in_a_namespace_that_left_the_list_is_kept_and_reported_and_never_forgotten() {
    let site = TestNamespace::new("parted");
    make_namespace(&site, "parted-other");
    let there = |name: &str| in_namespace("parted-other", &yaml::secret(name, "a", "1"));
    let repo = Repo::new(&[
        ("env.yaml", yaml::config_map("env", "a", "1")),
        ("old.yaml", yaml::config_map("old", "a", "1")),
        ("role.yaml", ROLE.to_owned()),
        ("kept.yaml", there("kept")),
        ("gone.yaml", there("gone")),
    ]);
    let of = |namespaces: &[&str]| configuration(&site, &repo, namespaces, ", clusterScoped: true");
    let away = |name: &str| site.api.get(&at("Secret", "parted-other", name));
    let both = ["parted", "parted-other"];
    let mut daemon = site.configured(&of(&both));
    site.await_data("old", "a", "1");
    until("all is there", || away("kept").is_some() && away("gone").is_some());
    until("its places are known", || named(&site, "additional-namespaces") == both.map(str::to_owned).into());
    daemon.stop();

    // It no longer names one object here, one there, and one that lives nowhere.
    for file in ["old.yaml", "gone.yaml", "role.yaml"] {
        repo.remove(file);
    }
    repo.commit("Remove three");
    let window = site.window();
    let mut daemon = site.configured(&of(&both[..1]));
    daemon.says(&["any objects of it in namespace parted-other are neither watched, repaired nor deleted"]);
    site.await_absence("ConfigMap", "old");
    // The inventory is tidied when nothing is left to do.
    until("the inventory is tidied", || {
        !named(&site, "contains-group-kinds").contains("ClusterRole.rbac.authorization.k8s.io")
    });
    assert_eq!(named(&site, "additional-namespaces"), both.map(str::to_owned).into());
    assert!(named(&site, "contains-group-kinds").contains("Secret"));
    assert!(away("kept").is_some() && away("gone").is_some());
    let reports = daemon.log().matches("any objects of it in namespace").count();
    assert_eq!(reports, 1);
    daemon.stop();
    let is_read = |call: &AuditEvent| call.resource == "secrets" && call.namespace == "parted-other";
    assert!(!window.calls().iter().any(is_read));

    // It is looked at again, and what it no longer names goes the usual way.
    let _daemon = site.configured(&of(&both));
    until("it is pruned", || away("gone").is_none());
    assert!(away("kept").is_some());
}

#[test]
fn a_namespace_that_is_not_there_yet_keeps_all_from_being_pruned_and_nothing_from_being_applied() {
    let mut site = TestNamespace::new("unready");
    let repo = Repo::new(&[
        ("env.yaml", yaml::config_map("env", "a", "1")),
        ("old.yaml", yaml::config_map("old", "a", "1")),
        ("later.yaml", in_namespace("unready-later", &yaml::config_map("later", "a", "1"))),
    ]);
    site.limited();
    let text = configuration(&site, &repo, &["unready", "unready-later"], "");
    let roles = roles(&site, &text);
    // The roles of the namespace that is missing are refused.
    let refused = site.cluster.kubectl_in(&["apply", "-f", "-"], &roles).unwrap_err();
    assert!(refused.to_string().contains("unready-later"), "{refused}");
    let daemon = Daemon::start(site.command_with_config(&["run", "-v"], &text));
    site.await_data("env", "a", "1");
    site.await_data("old", "a", "1");
    repo.remove("old.yaml");
    repo.change("env.yaml", &yaml::config_map("env", "a", "2"));
    site.await_data("env", "a", "2");
    daemon.says(&["nothing is pruned while ConfigMap cannot be listed", "unready-later"]);
    // Two looks at everything later it is still there.
    for _ in 0..2 {
        daemon.says_since(daemon.mark(), &["checked everything"]);
    }
    assert!(site.has("ConfigMap", "old"));
    make_namespace(&site, "unready-later");
    site.cluster.kubectl_in(&["apply", "-f", "-"], &roles).unwrap();
    site.await_absence("ConfigMap", "old");
    let later = at("ConfigMap", "unready-later", "later");
    until("the rest is applied", || site.api.get(&later).is_some());
}

/// Grants a user all rights in some namespaces, and the one to know the cluster.
fn all_rights_in(namespaces: &[&str], user: &str) -> String {
    let grant = |place: &str, kind: &str, rules: &str| {
        let (head, name) = ("apiVersion: rbac.authorization.k8s.io/v1", "in-namespaces-alone");
        format!(
            "---\n{head}\nkind: {kind}\nmetadata: {{name: {name}{place}}}\nrules: [{rules}]\n---\n{head}\nkind: {kind}Binding\n\
             metadata: {{name: {name}{place}}}\nroleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: {name}}}\n\
             subjects: [{{kind: User, name: {user}, apiGroup: rbac.authorization.k8s.io}}]\n"
        )
    };
    let roles = namespaces.iter().map(|namespace| {
        let place = format!(", namespace: {namespace}");
        grant(&place, "Role", "{apiGroups: ['*'], resources: ['*'], verbs: ['*']}")
    });
    let cluster = "{apiGroups: [''], resources: [namespaces], resourceNames: [kube-system], verbs: [get]}";
    roles.chain([grant("", "ClusterRole", cluster)]).collect()
}

#[test]
fn whoever_has_rights_in_some_namespaces_takes_a_source_away_there() {
    let mut site = TestNamespace::new("taken");
    let repo = Repo::new(&[("key.yaml", yaml::secret("key", "a", "1"))]);
    site.apply(repo.path(), &[]).ends(0);
    site.limited();
    let rights = all_rights_in(&[&site.name, &site.system()], &site.user);
    site.cluster.kubectl_in(&["apply", "-f", "-"], &rights).unwrap();
    let uninstall = |flag: &[&str]| {
        let mut command = site.bare_command();
        command.args(["uninstall", &site.name, "--delete-objects"]).args(flag);
        run(command)
    };
    until("what was granted counts", || uninstall(&["--dry-run"]).code == 0);
    let output = uninstall(&["--count", "1"]).ends(0);
    output.says(&["taken/secret/key"]);
    assert!(!site.has("Secret", "key") && site.inventory().is_none());
}
