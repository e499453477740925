//! Variables that a source puts into its manifests.

use controlplane::Renderers;
use serde_json::json;

use crate::support::{Repo, TestNamespace, run, until, yaml};

#[test]
fn variables_are_put_into_plain_files_and_rendered_ones() {
    let site = TestNamespace::new("variables");
    let repo = Repo::new(&[
        ("plain.yaml", yaml::config_map("plain", "cluster", "${CLUSTER}")),
        ("default.yaml", yaml::config_map("default", "zone", "${ZONE:-a}")),
        ("literal.yaml", yaml::config_map("literal", "text", "$${CLUSTER}")),
        ("app/kustomization.yaml", "resources: [web.yaml]\n".to_owned()),
        (
            "app/web.yaml",
            yaml::deployment("web", 7, "nginx:1").replace("replicas: 7", "replicas: ${REPLICAS}"),
        ),
        ("other/kustomization.yaml", "resources: [map.yaml]\n".to_owned()),
        ("other/map.yaml", yaml::config_map("other", "key", "one")),
        ("vars.yaml", yaml::config_map("vars", "ZONE", "b")),
    ]);
    let programs = format!("programs: {{kustomize: {}}}", Renderers::find().unwrap().kustomize.display());
    let text = site.configuration(repo.path(), &programs);
    let text = format!(
        "{}\n  substitute: {{CLUSTER: prod, REPLICAS: '2'}}\n  substituteFrom: [{{kind: ConfigMap, name: vars}}]\n",
        text.trim_end()
    );
    let mut daemon = site.configured(&text);
    site.await_data("plain", "cluster", "prod");
    site.await_data("default", "zone", "b");
    site.await_data("literal", "text", "${CLUSTER}");
    until("the number is a number", || site.value("Deployment", "web", "/spec/replicas") == json!(2));
    site.await_data("other", "key", "one");

    // An unset variable holds up its own file alone, which stays as it was.
    let mark = daemon.mark();
    repo.write("plain.yaml", &yaml::config_map("plain", "cluster", "${UNKNOWN}"));
    repo.change("vars.yaml", &yaml::config_map("vars", "ZONE", "c"));
    site.await_data("default", "zone", "c");
    // Of the two roots one names variables.
    daemon.says_since(mark, &["rendered in", "roots=1"]);
    daemon.says(&["WARN", "UNKNOWN"]);
    assert_eq!(site.data("plain", "cluster"), "prod");
    assert!(daemon.is_running());
}

#[test]
fn variables_may_be_in_a_root_which_is_applied_before_them() {
    let site = TestNamespace::new("variables-root");
    let repo = Repo::new(&[
        ("vars/kustomization.yaml", "resources: [vars.yaml]\n".to_owned()),
        ("vars/vars.yaml", yaml::config_map("vars", "ZONE", "b")),
        ("a.yaml", yaml::config_map("a", "zone", "${ZONE}")),
    ]);
    let programs = format!("programs: {{kustomize: {}}}", Renderers::find().unwrap().kustomize.display());
    let text = site.configuration(repo.path(), &programs).replace("git: {", "git: {interval: 1s, ");
    let from = "  substituteFrom: [{kind: ConfigMap, name: vars}]\n";
    let mut daemon = site.configured(&format!("{}\n{from}", text.trim_end()));
    site.await_data("a", "zone", "b");
    assert_eq!(site.data("vars", "ZONE"), "b");
    assert!(daemon.is_running());
}

#[test]
fn variables_are_taken_from_the_cluster_too_and_follow_what_is_there() {
    let site = TestNamespace::new("variables-cluster");
    let vars = |zone: &str| json!({ "data": { "ZONE": zone } });
    let create = |name: &str, zone: &str| {
        let mut object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
        object["data"] = vars(zone)["data"].clone();
        site.api.create(&site.at("ConfigMap", ""), "people", &object);
    };
    create("cluster-vars", "b");
    let repo = Repo::new(&[
        ("a.yaml", yaml::config_map("a", "zone", "${ZONE}")),
        ("plain.yaml", yaml::config_map("plain", "a", "1")),
    ]);
    let configuration = |name: &str| {
        let text = site.configuration(repo.path(), "").replace("git: {", "git: {interval: 1s, ");
        let from = format!("{{kind: ConfigMap, name: {name}}}");
        format!("{}\n  substituteFrom: [{from}]\n", text.trim_end())
    };
    // A dry run asks the cluster as the daemon does.
    let file = site.state.path().join("once.yaml");
    std::fs::write(&file, configuration("cluster-vars")).unwrap();
    let mut diff = site.bare_command();
    diff.args(["diff", "--config"]).arg(&file);
    run(diff).ends(1).says(&["+ ConfigMap variables-cluster/a"]);

    let mut daemon = site.configured(&configuration("cluster-vars"));
    site.await_data("a", "zone", "b");
    site.api.merge(&site.at("ConfigMap", "cluster-vars"), "people", &vars("c"));
    site.await_data("a", "zone", "c");
    // Gone, it holds up what names its variables. All else goes on, and nothing is pruned.
    site.api.delete(&site.at("ConfigMap", "cluster-vars"));
    daemon.says(&["neither the source nor the cluster has the ConfigMap variables-cluster/cluster-vars"]);
    repo.change("plain.yaml", &yaml::config_map("plain", "a", "2"));
    site.await_data("plain", "a", "2");
    assert_eq!(site.data("a", "zone"), "c");
    // Another process repairs it all the same, by what was rendered then.
    assert_eq!(daemon.stop().code(), Some(0));
    let mut daemon = site.configured(&configuration("cluster-vars"));
    site.api.merge(&site.at("ConfigMap", "a"), "them", &json!({ "data": { "zone": "theirs" } }));
    site.await_data("a", "zone", "c");
    create("cluster-vars", "d");
    site.await_data("a", "zone", "d");
    assert!(daemon.is_running());
}

#[test]
fn the_values_of_a_secret_are_taken_from_the_cluster_only_where_they_are_no_secrets() {
    let site = TestNamespace::new("variables-secret");
    let values = |domain: &str| json!({ "stringData": { "SECRET_DOMAIN": domain } });
    let mut object =
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "cluster-secrets" } });
    object["stringData"] = values("home.example")["stringData"].clone();
    site.api.create(&site.at("Secret", ""), "people", &object);
    let repo = Repo::new(&[
        ("a.yaml", yaml::config_map("a", "host", "web.${SECRET_DOMAIN}")),
        ("plain.yaml", yaml::config_map("plain", "a", "1")),
    ]);
    let configuration = |key: &str| {
        let text = site.configuration(repo.path(), "").replace("git: {", "git: {interval: 1s, ");
        let from = format!("{{kind: Secret, name: cluster-secrets{key}}}");
        format!("{}\n  substituteFrom: [{from}]\n", text.trim_end())
    };
    let window = site.window();
    let reads = || -> Vec<String> {
        let calls = window.calls().into_iter();
        let reads = calls.filter(|call| call.resource == "secrets" && call.namespace == site.name);
        reads.map(|call| format!("{} {}", call.verb, call.name)).collect()
    };
    let mut daemon = site.configured(&configuration(""));
    daemon.says(&["no manifest of the source has the Secret variables-secret/cluster-secrets"]);
    site.await_data("plain", "a", "1");
    assert_eq!(daemon.stop().code(), Some(0));
    assert_eq!(reads(), Vec::<String>::new());
    assert!(!site.has("ConfigMap", "a"));

    let mut daemon = site.configured(&configuration(", sensitive: false"));
    site.await_data("a", "host", "web.home.example");
    site.api.merge(&site.at("Secret", "cluster-secrets"), "people", &values("home.test"));
    site.await_data("a", "host", "web.home.test");
    site.api.delete(&site.at("Secret", "cluster-secrets"));
    daemon.says(&["neither the source nor the cluster has the Secret variables-secret/cluster-secrets"]);
    repo.change("plain.yaml", &yaml::config_map("plain", "a", "2"));
    site.await_data("plain", "a", "2");
    assert_eq!(site.data("a", "host"), "web.home.test");
    assert!(daemon.is_running());
    // By its name alone: no others are listed.
    let reads = reads();
    assert!(reads.len() >= 2 && reads.iter().all(|read| read == "get cluster-secrets"), "{reads:?}");
}
