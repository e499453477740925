//! Rollouts that fail, and the rollback.

use serde_json::json;

use crate::support::{Repo, TestNamespace, until, yaml};

const BUDGET: &str = "budget: {soak: 0s, maxUnavailable: 100%}";

fn image(site: &TestNamespace<'_>, kind: &str, name: &str) -> serde_json::Value {
    site.value(kind, name, "/spec/template/spec/containers/0/image")
}

#[test]
fn a_broken_image_goes_back_and_the_log_names_the_pod_and_the_reason() {
    let site = TestNamespace::new("failures-image");
    let files = |tag: &str| {
        let web = yaml::deployment("web", 3, &format!("nginx:{tag}"));
        let web =
            web.replace("containers:", "volumes: [{name: e, configMap: {name: env}}]\n      containers:");
        [("env.yaml".to_owned(), yaml::config_map("env", "tag", tag)), ("web.yaml".to_owned(), web)]
    };
    let repo = Repo::new(&files("1"));
    let daemon = site.configured(&site.configuration(repo.path(), BUDGET));
    site.await_rollout("web");
    for (name, text) in files("broken") {
        repo.write(&name, &text);
    }
    repo.commit("Break it");
    daemon.says(&["ImagePullBackOff", "Deployment failures-image/web", "it is back at revision"]);
    site.await_rollout("web");
    assert_eq!(image(&site, "Deployment", "web"), json!("nginx:1"));
    site.await_data("env", "tag", "1");
    site.await_free_budget();
    // Nothing tries it again, and a content that differs is tried.
    for (name, text) in files("2") {
        repo.write(&name, &text);
    }
    repo.commit("Mend it");
    until("it runs the new image", || image(&site, "Deployment", "web") == json!("nginx:2"));
    site.await_rollout("web");
    site.await_data("env", "tag", "2");
}

#[test]
fn a_stateful_set_that_is_stuck_on_its_bad_pod_is_freed() {
    let site = TestNamespace::new("failures-stuck");
    let set = |tag: &str| yaml::workload("StatefulSet", "db", 3, &format!("pg:{tag}"), "{}");
    let repo = Repo::new(&[("db.yaml", set("1"))]);
    let daemon = site.configured(&site.configuration(repo.path(), BUDGET));
    let ready = || site.value("StatefulSet", "db", "/status/readyReplicas") == json!(3);
    until("all are ready", ready);
    repo.change("db.yaml", &set("broken"));
    daemon.says(&["StatefulSet failures-stuck/db", "it is back at revision"]);
    until("it is complete again", || {
        let updated = site.value("StatefulSet", "db", "/status/updateRevision");
        ready()
            && image(&site, "StatefulSet", "db") == json!("pg:1")
            && updated == site.value("StatefulSet", "db", "/status/currentRevision")
    });
    site.await_free_budget();
}

/// Returns a Service before pods of this colour, and the Deployments of these colours.
fn colours(before: &str, all: &[(&str, &str)]) -> Vec<(String, String)> {
    let service =
        yaml::service("web", "web").replace("{app: web}", &format!("{{app: web, colour: {before}}}"));
    let one = |(colour, image): &(&str, &str)| {
        let text = yaml::deployment(&format!("web-{colour}"), 2, image);
        let labels = format!("{{app: web, colour: {colour}}}");
        (format!("{colour}.yaml"), text.replace(&format!("{{app: web-{colour}}}"), &labels))
    };
    all.iter().map(one).chain([("service.yaml".to_owned(), service)]).collect()
}

fn switch(repo: &Repo, before: &str, image: &str) {
    repo.remove("blue.yaml");
    for (name, text) in colours(before, &[("green", image)]) {
        repo.write(&name, &text);
    }
    repo.commit("Switch");
}

#[test]
fn a_service_is_switched_only_to_pods_that_are_ready_and_the_old_ones_go_last() {
    let site = TestNamespace::new("failures-green");
    let repo = Repo::new(&colours("blue", &[("blue", "nginx:1")]));
    let _daemon =
        site.configured(&site.configuration(repo.path(), "budget: {soak: 1s, maxUnavailable: 100%}"));
    site.await_rollout("web-blue");
    site.await_object("Service", "web");
    let window = site.window();
    switch(&repo, "green", "nginx:2");
    site.await_absence("Deployment", "web-blue");
    site.await_rollout("web-green");
    assert_eq!(site.value("Service", "web", "/spec/selector/colour"), json!("green"));
    // One that meets a newer status is refused, and sent again.
    let writes = window.writes().into_iter().filter(|write| write.code != 409);
    let writes: Vec<String> = writes.map(|write| format!("{} {}", write.resource, write.name)).collect();
    assert_eq!(writes, ["deployments web-green", "services web", "deployments web-blue"]);
}

#[test]
fn a_service_is_not_switched_to_pods_that_fail_and_what_was_added_goes_again() {
    let site = TestNamespace::new("failures-red");
    let repo = Repo::new(&colours("blue", &[("blue", "nginx:1")]));
    let daemon =
        site.configured(&site.configuration(repo.path(), "budget: {soak: 1s, maxUnavailable: 100%}"));
    site.await_rollout("web-blue");
    site.await_object("Service", "web");
    switch(&repo, "green", "nginx:broken");
    daemon.says(&["ImagePullBackOff"]);
    site.await_absence("Deployment", "web-green");
    assert_eq!(site.value("Service", "web", "/spec/selector/colour"), json!("blue"));
    site.await_rollout("web-blue");
    site.await_free_budget();
}

#[test]
fn the_pods_of_a_rollout_are_those_of_the_selector_that_the_cluster_has() {
    let site = TestNamespace::new("failures-selector");
    let web = yaml::deployment("web", 1, "nginx:1");
    let repo = Repo::new(&[("web.yaml", &web)]);
    let daemon = site.configured(&site.configuration(repo.path(), BUDGET));
    site.await_rollout("web");
    site.await_free_budget();
    let window = site.window();
    // The API server refuses it, so the workload keeps its selector.
    repo.change("web.yaml", &web.replace("app: web", "app: other"));
    daemon.says(&["Deployment failures-selector/web", "immutable"]);
    // As `kubectl rollout restart` does.
    let restarted = json!({"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}}});
    site.api.merge(&site.at("Deployment", "web"), "somebody", &restarted);
    let followed = || -> Vec<String> {
        let calls = window.calls().into_iter().filter(|call| call.resource == "pods");
        calls.map(|call| call.uri).filter(|uri| uri.contains("labelSelector=")).collect()
    };
    until("its pods are followed", || !followed().is_empty());
    let uris = followed();
    assert!(uris.iter().all(|uri| uri.contains("labelSelector=app%3Dweb")), "{uris:#?}");
}
