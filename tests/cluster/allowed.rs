//! The allow-list of a source: objects outside are refused by name, and those that it has there are
//! left as they are.

use serde_json::json;

use crate::support::{ProgramOutput, Repo, TestNamespace, at, run, source, until, yaml};

/// Returns a command with a configuration.
fn configured(site: &TestNamespace<'_>, text: &str, arguments: &[&str]) -> ProgramOutput {
    let file = site.state.path().join("rhumb.yaml");
    std::fs::write(&file, text).unwrap();
    let mut command = site.bare_command();
    command.args(arguments).arg("--config").arg(file);
    run(command)
}

fn only(site: &TestNamespace<'_>, repo: &Repo, allow: &str) -> String {
    format!(
        "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\nresync: 2s\nserve: {{socket: {}}}\n---\n{}",
        socket(site),
        source(&site.name, &site.name, repo.path(), &format!("  allow: {allow}"))
    )
}

fn socket(site: &TestNamespace<'_>) -> String {
    site.state.path().join("rhumb.sock").display().to_string()
}

fn role(kind: &str, name: &str) -> String {
    format!("apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata: {{name: {name}}}\n")
}

fn binding(name: &str) -> String {
    let to = "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}\n";
    role("RoleBinding", name) + to
}

fn namespace(name: &str) -> String {
    format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n")
}

#[test]
fn what_is_not_allowed_is_refused_with_its_place_and_holds_up_nothing_else() {
    let site = TestNamespace::new("allowed");
    let elsewhere =
        yaml::config_map("elsewhere", "a", "1").replace("metadata:", "metadata:\n  namespace: default");
    let repo = Repo::new(&[
        ("env.yaml", yaml::documents(&[yaml::config_map("env", "a", "1"), elsewhere])),
        (
            "rights.yaml",
            yaml::documents(&[role("Role", "reader"), binding("reads"), role("ClusterRole", "allowed")]),
        ),
        ("web.yaml", yaml::deployment("web", 1, "nginx:1")),
        ("namespaces.yaml", yaml::documents(&[namespace("allowed"), namespace("allowed-new")])),
    ]);
    let kinds = "[apps/*, ConfigMap, rbac.authorization.k8s.io/Role]";
    let text =
        only(&site, &repo, &format!("{{namespaces: [allowed], kinds: {kinds}, clusterScoped: [Namespace]}}"));
    let refused = [
        ["env.yaml:8", "ConfigMap default/elsewhere is not allowed", "the namespace default is not among"],
        [
            "rights.yaml:5",
            "RoleBinding allowed/reads is not allowed",
            "rbac.authorization.k8s.io/RoleBinding",
        ],
        ["rights.yaml:10", "ClusterRole allowed is not allowed", "`allow.clusterScoped`"],
        ["namespaces.yaml:5", "Namespace allowed-new is not allowed", "it is the namespace allowed-new"],
    ];
    let window = site.window();
    let diff = configured(&site, &text, &["diff"]).ends(1);
    diff.says(&["+ ConfigMap allowed/env", "env.yaml:1"]);
    let validated = configured(&site, &text, &["validate"]).ends(1);
    for texts in &refused {
        diff.says(texts);
        validated.says(texts);
    }
    window.assert_no_writes();

    let mut daemon = site.configured(&text);
    site.await_data("env", "a", "1");
    site.await_rollout("web");
    site.await_object("Role", "reader");
    for texts in &refused {
        daemon.says(texts);
    }
    let status = || site.rhumb(&["status", "--socket", &socket(&site)]);
    until("the status tells what is refused", || {
        refused.iter().all(|[place, what, _]| {
            status().all().lines().any(|line| line.contains(place) && line.contains(what))
        })
    });
    // A refusal keeps the source from being healthy, and its revision from being settled.
    let shown = site.rhumb(&["status", "--exit-code", "--socket", &socket(&site)]).ends(1);
    shown.says(&["4 refused"]);
    assert!(!shown.all().contains("healthy"), "{shown:#?}");
    let recorded = |key: &str| site.inventory().map(|inventory| inventory["data"][key].clone());
    until("the record names what is refused", || {
        let open = recorded("not-as-wanted").and_then(|open| Some(open.as_str()?.to_owned()));
        open.is_some_and(|open| open.matches("Refused ").count() == refused.len())
    });
    assert_eq!(recorded("settled"), Some(json!(null)));
    assert!(!daemon.log().contains("settled"), "{}", daemon.log());
    let why = site.rhumb(&["status", "RoleBinding/reads", "--socket", &socket(&site)]);
    why.says(&["phase", "Refused"]);
    why.says(&["reason", "RoleBinding allowed/reads is not allowed"]);
    why.says(&["rights.yaml:5"]);
    let written = window.writes();
    for name in ["elsewhere", "reads", "allowed-new"] {
        assert!(written.iter().all(|call| call.name != name), "{written:#?}");
    }
    assert!(written.iter().all(|call| call.resource != "clusterroles"), "{written:#?}");
    assert!(daemon.is_running());
    // Without a daemon the record says so.
    daemon.stop();
    site.rhumb(&["status", "--exit-code"]).ends(1).says(&["4 refused"]);
}

#[test]
fn what_a_narrower_list_leaves_out_is_neither_repaired_nor_pruned_nor_taken_back() {
    let site = TestNamespace::new("allowed-less");
    let web = |image: &str| {
        let from = format!("image: {image}\n        envFrom: [{{configMapRef: {{name: env}}}}]");
        yaml::deployment("web", 1, image).replace(&format!("image: {image}"), &from)
    };
    let repo = Repo::new(&[
        ("env.yaml", yaml::config_map("env", "a", "1")),
        ("gone.yaml", yaml::config_map("gone", "a", "1")),
        ("web.yaml", web("nginx:1")),
    ]);
    let wide = only(&site, &repo, "{kinds: [apps/*, ConfigMap]}");
    let mut daemon = site.configured(&wide);
    site.await_rollout("web");
    site.await_data("gone", "a", "1");
    repo.write("env.yaml", &yaml::config_map("env", "a", "2"));
    repo.change("web.yaml", &web("nginx:2"));
    site.await_data("env", "a", "2");
    let image = || site.value("Deployment", "web", "/spec/template/spec/containers/0/image");
    until("the new image is there", || image() == json!("nginx:2"));
    site.await_rollout("web");
    site.await_free_budget();
    daemon.stop();

    let narrow = only(&site, &repo, "{kinds: [apps/Deployment]}");
    repo.remove("gone.yaml");
    repo.change("env.yaml", &yaml::config_map("env", "a", "3"));
    site.api.merge(&site.at("ConfigMap", "env"), "them", &json!({"data": {"a": "theirs"}}));
    let diff = configured(&site, &narrow, &["diff"]).ends(1);
    diff.says(&["env.yaml:1", "ConfigMap allowed-less/env is not allowed"]);
    assert!(!diff.all().contains("ConfigMap allowed-less/gone"), "{diff:#?}");
    let window = site.window();
    let daemon = site.configured(&narrow);
    daemon.says(&["ConfigMap allowed-less/env is not allowed", "the kind ConfigMap is not among"]);
    site.rhumb(&["rollout", "undo", "deploy/web"]).ends(0).says(&["undone"]);
    until("the older image is back", || image() == json!("nginx:1"));
    site.await_rollout("web");
    assert_eq!(site.data("env", "a"), "theirs");
    assert!(site.has("ConfigMap", "gone"));
    window.assert_no_deletes();
    for name in ["env", "gone"] {
        assert_eq!(window.to("configmaps", name).len(), 0);
    }
    // The wider list takes all of it up again.
    drop(daemon);
    let _daemon = site.configured(&wide);
    site.await_data("env", "a", "3");
    site.await_absence("ConfigMap", "gone");
    assert!(site.api.get(&at("Namespace", "", &site.name)).is_some());
}

// A list of kinds would let the author of one source give orders to another.
#[test]
fn a_list_that_does_not_name_the_namespace_of_rhumbs_records_allows_nothing_there() {
    let site = TestNamespace::new("allowed-records");
    let name = "orders.allowed-other.rhumb.dev";
    let orders = yaml::config_map(name, "17-a", "{}")
        .replace("metadata:", &format!("metadata:\n  namespace: {}", site.system()));
    let repo = Repo::new(&[("orders.yaml", orders), ("env.yaml", yaml::config_map("env", "a", "1"))]);
    let text = only(&site, &repo, "{kinds: [ConfigMap]}");
    let why = format!("{} is the namespace of rhumb's own records", site.system());
    let hint = "or list all namespaces of the source in `allow.namespaces`";
    let diff = configured(&site, &text, &["diff"]).ends(1);
    diff.says(&["orders.yaml:1", name, &why]);
    diff.says(&[hint]);
    let daemon = site.configured(&text);
    site.await_data("env", "a", "1");
    daemon.says(&["orders.yaml:1", name, "is not allowed", &why]);
    assert!(site.api.get(&at("ConfigMap", &site.system(), name)).is_none(), "it was written");
}
