//! Waits end by themselves, and objects that change hands or have an autoscaler are left as they
//! are.

use std::time::{Duration, Instant};

use controlplane::{Fault, Requests, Rule};
use serde_json::json;

use crate::support::{DEFAULT_TIMEOUT, Folder, Repo, TestNamespace, at, eventually, yaml};

#[test]
fn each_wave_follows_when_the_one_before_is_healthy() {
    let site = TestNamespace::new("waits-waves");
    // Not in the order of their names.
    let names = ["c", "b", "a"];
    let wave = |name: &str, n: usize, image: &str| {
        let line = format!("  name: {name}\n");
        let waved = format!("{line}  annotations: {{rhumb.dev/wave: \"{n}\"}}\n");
        yaml::workload("Deployment", name, 1, image, "{controlplane/ready-delay: 500ms}")
            .replacen(&line, &waved, 1)
    };
    let files = |image: &str| {
        names
            .iter()
            .enumerate()
            .map(|(n, name)| (format!("{name}.yaml"), wave(name, n, image)))
            .collect::<Vec<_>>()
    };
    let folder = Folder::new(&files("app:1"));
    site.apply(folder.path(), &["--wait=3m"]).ends(0);
    let window = site.window();
    for (file, text) in files("app:2") {
        folder.write(&file, &text);
    }
    let begun = Instant::now();
    site.apply(folder.path(), &["--wait=3m"]).ends(0);
    let image = |name| site.value("Deployment", name, "/spec/template/spec/containers/0/image");
    assert_eq!(names.map(image), ["app:2"; 3]);
    let written =
        window.writes().into_iter().filter(|event| event.resource == "deployments" && event.code < 300);
    let mut written: Vec<String> = written.map(|event| event.name).collect();
    written.dedup();
    assert_eq!(written, names);
    assert!(begun.elapsed() >= Duration::from_millis(1500), "each waits for the pods of the one before");
}

#[test]
fn what_an_object_needs_comes_with_its_wave() {
    let site = TestNamespace::new("waits-needs");
    let waved = |kind: &str, name: &str, wave: i32, rest: &str| {
        format!(
            "apiVersion: {kind}\nmetadata:\n  name: {name}\n  annotations: {{rhumb.dev/wave: \"{wave}\"}}\n{rest}"
        )
    };
    let binding = "  namespace: waits-needs-inner\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}\n\
                   subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: nobody}]\n";
    let rbac = |kind: &str| format!("rbac.authorization.k8s.io/v1\nkind: {kind}");
    let folder = Folder::new(&[
        ("binding.yaml", waved(&rbac("RoleBinding"), "reads", -1, binding)),
        ("role.yaml", waved(&rbac("Role"), "reader", 2, "  namespace: waits-needs-inner\nrules: []\n")),
        ("namespace.yaml", waved("v1\nkind: Namespace", "waits-needs-inner", 1, "")),
    ]);
    let window = site.window();
    site.apply(folder.path(), &["--wait=3m"]).ends(0);
    let is_ours = |name: &str| ["waits-needs-inner", "reader", "reads"].contains(&name);
    let written = window.writes().into_iter().filter(|event| event.code < 300 && is_ours(&event.name));
    let mut written: Vec<String> = written.map(|event| event.name).collect();
    written.dedup();
    assert_eq!(written, ["waits-needs-inner", "reader", "reads"], "all are of the binding's wave");
}

#[test]
fn a_wave_behind_a_kind_that_is_not_installed_says_so_and_goes_on_without_it() {
    let site = TestNamespace::new("waits-unserved");
    let widget = |more: &str| {
        format!(
            "apiVersion: nobody.example.org/v1\nkind: Widget\nmetadata:\n  name: early\n  annotations:\n    \
             rhumb.dev/wave: \"-1\"\n{more}"
        )
    };
    let repo =
        Repo::new(&[("widget.yaml", widget("")), ("map.yaml", yaml::config_map("late", "key", "one"))]);
    let _daemon = site.daemon(repo.path());
    let says = |object: &str, text: &str| {
        eventually(&format!("{object}: {text}"), DEFAULT_TIMEOUT, || {
            let answer = site.rhumb(&["why", object]).all();
            if answer.contains(text) { Ok(()) } else { Err(answer) }
        });
    };
    says("configmap/late", "wave -1 is not finished: Widget early");
    assert!(!site.has("ConfigMap", "late"));
    repo.change("widget.yaml", &widget("    rhumb.dev/reconcile: disabled\n"));
    site.await_data("late", "key", "one");
}

#[test]
fn a_pass_without_a_terminal_says_each_ten_seconds_what_it_waits_for() {
    let site = TestNamespace::new("waits-progress");
    let sick = yaml::workload("Deployment", "sick", 1, "app:1", "{controlplane/never-ready: \"true\"}");
    let folder = Folder::new(&[("env.yaml", yaml::config_map("env", "a", "b")), ("sick.yaml", sick)]);
    let apply = site.apply(folder.path(), &["--wait=25s"]).ends(5);
    let lines: Vec<&str> = apply.stderr.lines().filter(|line| line.starts_with("progress: ")).collect();
    assert_eq!(lines.len(), 2, "{apply:#?}");
    for line in lines {
        assert!(line.starts_with("progress: 1 object done; waits-progress/deployment.apps/sick: "), "{line}");
    }
}

#[test]
fn a_plan_without_a_terminal_says_meanwhile_how_many_objects_are_compared() {
    let mut site = TestNamespace::new("waits-plan");
    let proxy = site.cluster.fault_proxy(14).unwrap();
    site.through(&proxy);
    let pause = Duration::from_secs(15);
    let late = Requests::any().method("PATCH").path_suffix("/configmaps/late").query_contains("dryRun");
    proxy.add(Rule::new(late, Fault::Delay(pause, pause)).times(1));
    let map = |name: &str| (format!("{name}.yaml"), yaml::config_map(name, "a", "b"));
    let folder = Folder::new(&["early", "late"].map(map));
    let diff = site.diff(folder.path(), &[]).ends(1);
    let lines: Vec<&str> = diff.stderr.lines().filter(|line| line.starts_with("progress: ")).collect();
    // On a busy machine there may be others before it, and the same again.
    assert!(lines.contains(&"progress: 1 of 2 objects compared"), "{diff:#?}");
}

#[test]
fn a_count_that_an_autoscaler_owns_survives_a_restart() {
    let site = TestNamespace::new("waits-scaled");
    let scaler = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec:\n  \
                  {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, metrics: \
                  [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}\n";
    let folder =
        Folder::new(&[("web.yaml", yaml::deployment("web", 2, "app:1")), ("hpa.yaml", scaler.to_owned())]);
    let mut daemon = site.daemon(folder.path());
    site.await_rollout("web");
    site.await_object("HorizontalPodAutoscaler", "web");
    site.kubectl(&["scale", "deployment/web", "--replicas=5"]);
    site.await_rollout("web");
    daemon.stop();
    let daemon = site.daemon(folder.path());
    daemon.says(&["read", "files=2"]);
    folder.write("more.yaml", &yaml::config_map("more", "a", "b"));
    site.await_object("ConfigMap", "more");
    assert_eq!(site.value("Deployment", "web", "/spec/replicas"), 5);
}

#[test]
fn an_inventory_that_was_edited_or_deleted_is_mended_and_holds_nothing_up() {
    let site = TestNamespace::new("waits-inventory");
    let folder = Folder::new(&[("a.yaml", yaml::config_map("a", "a", "b"))]);
    let settings = "resync: 2s";
    let text = format!(
        "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\n{settings}\n---\napiVersion: rhumb.dev/v1alpha1\n\
         kind: Source\nmetadata: {{name: waits-inventory}}\nspec: {{namespace: waits-inventory, directory: {}}}\n",
        folder.path().display()
    );
    let daemon = site.configured(&text);
    site.await_data("a", "a", "b");
    let inventory = at("ConfigMap", "waits-inventory-rhumb", "waits-inventory");
    let kinds = "/metadata/annotations/applyset.kubernetes.io~1contains-group-kinds";
    let mended = || {
        eventually("the inventory names the kind", DEFAULT_TIMEOUT, || {
            let recorded = site.inventory().and_then(|inventory| inventory.pointer(kinds).cloned());
            if recorded == Some(json!("ConfigMap")) { Ok(()) } else { Err(format!("{recorded:?}")) }
        });
    };
    let edited =
        json!({"metadata": {"annotations": {"applyset.kubernetes.io/contains-group-kinds": "Secret"}}});
    site.api.merge(&inventory, "somebody", &edited);
    mended();
    site.api.delete(&inventory);
    mended();
    site.api.merge(&site.at("ConfigMap", "a"), "somebody", &json!({"data": {"a": "c"}}));
    site.await_data("a", "a", "b");
    drop(daemon);
}

#[test]
fn an_object_that_moves_between_sources_in_one_commit_stays_the_same_object() {
    let site = TestNamespace::new("waits-moves");
    let config = |name| yaml::config_map(name, "a", "b");
    let repo =
        Repo::new(&[("a/keep.yaml", config("a")), ("b/keep.yaml", config("b")), ("b/m.yaml", config("m"))]);
    let source = |name: &str| {
        format!(
            "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {{name: waits-moves-{name}}}\nspec:\n  namespace: \
             waits-moves\n  git: {{url: {}, path: {name}}}\n",
            repo.path().display()
        )
    };
    let daemon = site.configured(&format!("{}---\n{}", source("a"), source("b")));
    let uid = site.await_object("ConfigMap", "m").pointer("/metadata/uid").cloned();
    for (from, to) in [("b", "a"), ("a", "b"), ("b", "a"), ("a", "b")] {
        repo.write(&format!("{to}/m.yaml"), &config("m"));
        repo.remove(&format!("{from}/m.yaml"));
        let mark = daemon.mark();
        let commit = repo.commit("move");
        for source in ["a", "b"] {
            daemon.says_since(mark, &["read", &format!("source=waits-moves-{source}"), &commit]);
        }
        daemon.says_since(mark, &["configured", "waits-moves/m"]);
    }
    assert_eq!(site.get("ConfigMap", "m").and_then(|m| m.pointer("/metadata/uid").cloned()), uid);
    repo.remove("b/m.yaml");
    repo.commit("take it away");
    site.await_absence("ConfigMap", "m");
}
