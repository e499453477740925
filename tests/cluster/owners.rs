//! Objects of somebody else: not touched, and named.

use serde_json::{Value, json};

use crate::support::{DEFAULT_TIMEOUT, Folder, Repo, TestNamespace, eventually, yaml};

/// Returns the marks of other owners, by the name of an object that carries them, and how each
/// owner is named.
fn marks() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        (
            "flux",
            json!({"labels": {"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}}),
            "Flux Kustomization flux-system/apps",
        ),
        (
            "flux-helm",
            json!({"labels": {"helm.toolkit.fluxcd.io/name": "redis", "helm.toolkit.fluxcd.io/namespace": "db"}}),
            "Flux HelmRelease db/redis",
        ),
        (
            "argo-annotation",
            json!({"annotations": {"argocd.argoproj.io/tracking-id": "shop:/ConfigMap:owners/argo-annotation"}}),
            "Argo CD Application shop",
        ),
        (
            "argo-label",
            json!({"labels": {"argocd.argoproj.io/instance": "shop"}}),
            "Argo CD Application shop",
        ),
        (
            "helm",
            json!({"labels": {"app.kubernetes.io/managed-by": "Helm"},
                "annotations": {"meta.helm.sh/release-name": "redis", "meta.helm.sh/release-namespace": "db"}}),
            "Helm release db/redis",
        ),
        (
            "other-set",
            json!({"labels": {"applyset.kubernetes.io/part-of": "applyset-wHf5Gity0G0nPN34KuNBIBBEOu2H9ED2KqsblMPFygM-v1"}}),
            "the ApplySet applyset-wHf5Gity0G0nPN34KuNBIBBEOu2H9ED2KqsblMPFygM-v1: `kubectl get configmaps,secrets -A \
             -l applyset.kubernetes.io/id=applyset-wHf5Gity0G0nPN34KuNBIBBEOu2H9ED2KqsblMPFygM-v1` finds its parent",
        ),
    ]
}

fn existing(site: &TestNamespace<'_>, name: &str, metadata: &Value) -> Value {
    let mut object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": "theirs"}});
    object["metadata"]["name"] = name.into();
    site.api.create(&site.at("ConfigMap", ""), "other-tool", &object)
}

fn wanted(names: &[&str]) -> Vec<(String, String)> {
    names.iter().map(|name| (format!("{name}.yaml"), yaml::config_map(name, "key", "ours"))).collect()
}

#[test]
fn an_object_with_another_owners_mark_is_not_touched_and_its_owner_is_named() {
    let site = TestNamespace::new("owners");
    let mut names = vec!["free"];
    for (name, metadata, _) in marks() {
        existing(&site, name, &metadata);
        names.push(name);
    }
    let repo = Repo::new(&wanted(&names));
    let window = site.window();
    let diff = site.diff(repo.path(), &[]).ends(1);
    let apply = site.apply(repo.path(), &["--prune"]).ends(1);
    let daemon = site.daemon(repo.path());
    for (name, _, owner) in marks() {
        let both = format!("! ConfigMap owners/{name}  {name}.yaml:1\n    refused: it belongs to {owner}\n");
        assert!(diff.stdout.contains(&both), "{both} is not in {diff:#?}");
        apply.says(&[&format!("configmap/{name} "), "refused", owner]);
        daemon.says(&[name, "refused", owner]);
        assert_eq!(site.data(name, "key"), "theirs");
        assert_eq!(window.to("configmaps", name).len(), 0, "{name}");
    }
    assert_eq!(site.data("free", "key"), "ours");
    // An object that is no longer wanted was never ours either.
    repo.git(&["rm", "--quiet", "flux.yaml", "helm.yaml"]);
    repo.commit("Leave them to their owners");
    repo.change("free.yaml", &yaml::config_map("free", "key", "newer"));
    site.await_data("free", "key", "newer");
    assert!(site.has("ConfigMap", "flux") && site.has("ConfigMap", "helm"));
    window.assert_no_deletes();
}

#[test]
fn an_object_of_a_controller_is_not_touched_whatever_the_policy() {
    let site = TestNamespace::new("controlled");
    let folder = Folder::new(&[("web.yaml", yaml::deployment("web", 1, "nginx:1"))]);
    site.apply(folder.path(), &["--wait"]).ends(0);
    let set = site.api.list(&site.at("ReplicaSet", "")).remove(0);
    let name = set["metadata"]["name"].as_str().unwrap().to_owned();
    let owned = format!(
        "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {{name: {name}, labels: {{mine: \"true\"}}}}\nspec:\n  \
         replicas: 1\n  selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: \
         web}}}}\n    spec: {{containers: [{{name: main, image: nginx:1}}]}}\n"
    );
    folder.write("set.yaml", &owned);
    let window = site.window();
    for policy in ["if-unowned", "always"] {
        let apply = site.apply(folder.path(), &["--adopt", policy]).ends(1);
        apply.says(&[&name, "refused", "Deployment", "web"]);
    }
    assert_eq!(window.to("replicasets", &name).len(), 0);
    assert_eq!(site.value("ReplicaSet", &name, "/metadata/labels/mine"), Value::Null);
}

#[test]
fn an_object_of_another_source_is_not_touched_and_the_other_goes_on() {
    let site = TestNamespace::new("other-source");
    let theirs = Repo::new(&[("env.yaml", yaml::config_map("env", "key", "theirs"))]);
    let mut command = site.bare_command();
    command.args(["apply", "--source", "other-source-first", "-n", &site.name]).arg(theirs.path());
    assert_eq!(crate::support::run(command).code, 0);
    let ours = Repo::new(&[
        ("env.yaml", yaml::config_map("env", "key", "ours")),
        ("own.yaml", yaml::config_map("own", "key", "ours")),
    ]);
    let window = site.window();
    let apply = site.apply(ours.path(), &["--prune"]).ends(1);
    apply.says(&["configmap/env", "refused", "it belongs to source other-source-first"]);
    assert_eq!((site.data("env", "key"), site.data("own", "key")), ("theirs".to_owned(), "ours".to_owned()));
    let daemon = site.daemon(ours.path());
    let log = daemon.says(&["env", "it belongs to source other-source-first"]);
    assert!(!log.contains("older revision"), "what the other source brought is not looked for: {log}");
    assert_eq!(window.to("configmaps", "env").len(), 0);
    window.assert_no_deletes();
}

#[test]
fn a_mark_that_is_added_to_our_object_does_not_make_it_anothers() {
    let site = TestNamespace::new("marked-later");
    let repo = Repo::new(&wanted(&["env"]));
    let _daemon = site.daemon(repo.path());
    site.await_data("env", "key", "ours");
    let marked =
        json!({"metadata": {"labels": {"argocd.argoproj.io/instance": "shop"}}, "data": {"key": "theirs"}});
    site.api.merge(&site.at("ConfigMap", "env"), "argocd-controller", &marked);
    site.await_data("env", "key", "ours");
    repo.change("env.yaml", &yaml::config_map("env", "key", "newer"));
    site.await_data("env", "key", "newer");
    eventually("the label stays", DEFAULT_TIMEOUT, || {
        let label = site.value("ConfigMap", "env", "/metadata/labels/argocd.argoproj.io~1instance");
        if label == "shop" { Ok(()) } else { Err(label.to_string()) }
    });
}
