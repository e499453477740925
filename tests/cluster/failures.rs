//! Rollouts that fail, and the way back.

use serde_json::json;

use crate::support::{Repo, Site, until, yaml};

const BUDGET: &str = "budget: {soak: 0s, maxUnavailable: 100%}";

fn image(site: &Site<'_>, kind: &str, name: &str) -> serde_json::Value {
    site.value(kind, name, "/spec/template/spec/containers/0/image")
}

#[test]
fn a_broken_image_goes_back_and_the_log_names_the_pod_and_the_reason() {
    let site = Site::new("failures-image");
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
    let site = Site::new("failures-stuck");
    let set = |tag: &str| yaml::workload("StatefulSet", "db", 3, &format!("pg:{tag}"), "{}");
    let repo = Repo::new(&[("db.yaml", set("1"))]);
    let daemon = site.configured(&site.configuration(repo.path(), BUDGET));
    let ready = || site.value("StatefulSet", "db", "/status/readyReplicas") == json!(3);
    until("all are ready", ready);
    repo.change("db.yaml", &set("broken"));
    daemon.says(&["StatefulSet failures-stuck/db", "it is back at revision"]);
    until("it is whole again", || {
        let updated = site.value("StatefulSet", "db", "/status/updateRevision");
        ready()
            && image(&site, "StatefulSet", "db") == json!("pg:1")
            && updated == site.value("StatefulSet", "db", "/status/currentRevision")
    });
    site.await_free_budget();
}
