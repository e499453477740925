//! New pods that the API server refuses: the reason is told in the server's words, and the unit goes back.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::failures::{BOUNDS, IMAGE, at_rest, await_image, await_rejection, push};
use crate::manifests::{Web, config};
use crate::support::{Repo, Site, at, until};

/// A failure is noticed within 5 s of its signal, and the way back begins within 10 s of that.
const BACK: Duration = Duration::from_secs(15);

/// New pods of `web` are refused: it goes back with its configuration, and other workloads go on.
fn goes_back(site: &Site<'_>, bad: &Web, told: &[&str]) {
    let web = Web::new("web", "app:1").uses("env");
    let repo = Repo::new(&[web.file(), config("env", "one"), Web::new("api", "app:1").file()]);
    let (daemon, observer) = at_rest(site, &repo, &["web", "api"]);
    push(&repo, &[bad.file(), config("env", "two"), Web::new("api", "app:2").file()], "Change all");
    until("it rolls", || site.value("Deployment", "web", IMAGE) == json!("app:2"));
    let begun = Instant::now();
    until("it goes back", || site.value("Deployment", "web", IMAGE) == json!("app:1"));
    assert!(begun.elapsed() < BACK, "it took {:?}", begun.elapsed());
    let told = [&["/web: no new pod can be created: FailedCreate"], told].concat();
    await_rejection(site, &told);
    daemon.says(&told);
    await_image(site, "web", "app:1");
    site.await_data("env", "key", "one");
    await_image(site, "api", "app:2");
    site.await_free_budget();
    let most = observer.judge(BOUNDS);
    assert!(most.pods > 0, "{most:?} was seen");
}

#[test]
fn a_quota_that_is_exhausted() {
    let site = Site::new("quota");
    let hard = json!({"requests.example.com/gpu": "0"});
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "no-gpu"}, "spec": {"hard": hard}});
    site.api.create(&site.at("ResourceQuota", ""), "setup", &quota);
    let bad = Web::new("web", "app:2").uses("env").container("resources: {limits: {example.com/gpu: 1}}");
    goes_back(&site, &bad, &["exceeded quota: no-gpu"]);
}

#[test]
fn pods_that_admission_refuses() {
    let site = Site::new("admission");
    let labels = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}});
    site.api.merge(&at("Namespace", "", &site.name), "setup", &labels);
    let bad = Web::new("web", "app:2").uses("env").container("securityContext: {privileged: true}");
    goes_back(&site, &bad, &["violates PodSecurity"]);
}
