//! A rollback of something that was somebody else's before: nothing of its unit goes back alone.

use serde_json::json;

use crate::failures::{BOUNDS, IMAGE, at_rest, await_image, await_rejection, push};
use crate::manifests::{Web, config};
use crate::support::{Repo, TestNamespace, until};

#[test]
fn an_adopted_workload_that_fails_stays_with_its_configuration() {
    let site = TestNamespace::new("adopted");
    let web = |image: &str| Web::new("web", image).uses("env");
    let repo = Repo::new(&[config("env", "one"), Web::new("api", "app:1").file()]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("web.yaml");
    std::fs::write(&file, web("app:1").text()).unwrap();
    site.kubectl(&["apply", "--server-side", "-f", file.to_str().unwrap()]);
    let (daemon, observer) = at_rest(&site, &repo, &["api", "web"]);
    push(&repo, &[web("app:broken").file(), config("env", "two")], "Adopt it, and break it");
    let expected = ["it cannot go back, as the earlier content of Deployment adopted/web is not known"];
    await_rejection(&site, &[&["held", "failed: Deployment"][..], &expected].concat());
    daemon.says(&expected);
    site.rhumb(&["why", "deploy/web"]).ends(0).says(&expected);
    site.await_free_budget();
    let window = site.window();
    push(&repo, &[Web::new("api", "app:2").file()], "Change another");
    await_image(&site, "api", "app:2");
    site.await_free_budget();
    for (resource, name) in [("deployments", "web"), ("configmaps", "env")] {
        let wrote = window.to(resource, name);
        assert!(wrote.is_empty(), "{wrote:#?}");
    }
    assert_eq!(site.value("Deployment", "web", IMAGE), json!("app:broken"));
    assert_eq!(site.data("env", "key"), "two");
    push(&repo, &[web("app:3").file(), config("env", "three")], "Mend it");
    await_image(&site, "web", "app:3");
    site.await_data("env", "key", "three");
    until("it is released", || !site.records().contains("cannot go back"));
    site.await_free_budget();
    observer.judge(BOUNDS);
}
