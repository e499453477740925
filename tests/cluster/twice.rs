//! One object that is defined twice: neither candidate is applied, and what was accepted stays
//! defended.

use controlplane::{Answer, Fault, Requests, Rule};
use serde_json::json;

use crate::others::await_requests;
use crate::support::{Folder, Repo, TestNamespace, run, source, until, yaml};

#[test]
fn an_object_in_two_files_is_refused_and_both_are_named() {
    let site = TestNamespace::new("two-files");
    let folder = Folder::new(&[
        ("a.yaml", yaml::config_map("env", "key", "a")),
        ("b.yaml", yaml::config_map("env", "key", "b")),
        ("c.yaml", yaml::config_map("other", "key", "c")),
    ]);
    let apply = site.apply(folder.path(), &[]).ends(1);
    apply.says(&["refused", "a.yaml:1", "b.yaml:1"]);
    apply.says(&["a.yaml:1", "error", "b.yaml:1"]);
    assert!(!site.has("ConfigMap", "env"));
    assert_eq!(site.data("other", "key"), "c");
    site.diff(folder.path(), &[]).ends(1).says(&["a.yaml:1", "error", "b.yaml:1"]);
}

#[test]
fn what_was_accepted_stays_defended_while_its_object_is_defined_in_two_files() {
    let site = TestNamespace::new("two-files-later");
    let repo = Repo::new(&[("a.yaml", yaml::config_map("env", "key", "a"))]);
    let daemon = site.daemon(repo.path());
    site.await_data("env", "key", "a");
    repo.write("a.yaml", &yaml::config_map("env", "key", "newer"));
    repo.change("b.yaml", &yaml::config_map("env", "key", "b"));
    daemon.says(&["refused", "a.yaml:1", "b.yaml:1"]);
    site.api.merge(&site.at("ConfigMap", "env"), "somebody", &json!({"data": {"key": "foreign"}}));
    site.await_data("env", "key", "a");
    repo.remove("b.yaml");
    repo.commit("Decide");
    site.await_data("env", "key", "newer");
}

fn two(site: &TestNamespace<'_>, one: &Repo, other: &Repo) -> String {
    format!(
        "{}---\n{}",
        source(&format!("{}-one", site.name), &site.name, one.path(), ""),
        source(&format!("{}-other", site.name), &site.name, other.path(), "")
    )
}

#[test]
fn an_object_of_two_sources_stays_with_the_one_that_has_it_and_both_are_named() {
    let site = TestNamespace::new("two-sources");
    let one = Repo::new(&[("one.yaml", yaml::config_map("env", "key", "one"))]);
    let other = Repo::new(&[("other.yaml", yaml::config_map("own", "key", "other"))]);
    let daemon = site.configured(&two(&site, &one, &other));
    site.await_data("env", "key", "one");
    site.await_data("own", "key", "other");
    let window = site.window();
    other.change("env.yaml", &yaml::config_map("env", "key", "other"));
    daemon.says(&["refused", "one.yaml:1", "env.yaml:1"]);
    one.change("one.yaml", &yaml::config_map("env", "key", "newer"));
    other.change("other.yaml", &yaml::config_map("own", "key", "newer"));
    site.await_data("own", "key", "newer");
    site.api.merge(&site.at("ConfigMap", "env"), "somebody", &json!({"data": {"key": "foreign"}}));
    site.await_data("env", "key", "newer");
    window.assert_no_deletes();
    // The first source gives it up: it changes owner, and is never deleted.
    one.remove("one.yaml");
    one.change("rest.yaml", &yaml::config_map("rest", "key", "one"));
    site.await_data("env", "key", "other");
    site.await_data("rest", "key", "one");
    window.assert_no_deletes();
}

#[test]
fn the_source_that_has_an_object_goes_on_while_one_of_another_process_waits_for_it() {
    let site = TestNamespace::new("two-processes");
    let mut other = site.with_empty_state();
    other.known_as("newcomer");
    let files = |image: &str, value: &str| {
        [("env.yaml", yaml::config_map("env", "key", value)), ("web.yaml", yaml::deployment("web", 2, image))]
    };
    let owner = Repo::new(&files("app:1", "one"));
    let newcomer = Repo::new(&files("app:theirs", "theirs"));
    newcomer.change("own.yaml", &yaml::config_map("own", "key", "one"));
    let _first = site.configured(&site.configuration(owner.path(), "budget: {soak: 0s}"));
    site.await_data("env", "key", "one");
    site.await_rollout("web");
    let uids = || {
        [("ConfigMap", "env"), ("Deployment", "web")]
            .map(|(kind, name)| site.value(kind, name, "/metadata/uid"))
    };
    let before = uids();
    let (window, theirs) = (site.window(), other.window());
    let second = other.configured(&source("two-processes-newcomer", &site.name, newcomer.path(), ""));
    for object in ["ConfigMap two-processes/env", "Deployment two-processes/web"] {
        second.says(&["refused", "it belongs to source two-processes", object]);
    }
    site.await_data("own", "key", "one");
    await_requests(&site, "two-processes-newcomer", 2);
    for (image, value) in [("app:2", "two"), ("app:3", "three")] {
        for (file, text) in files(image, value) {
            owner.write(file, &text);
        }
        owner.commit("Change both");
        site.await_data("env", "key", value);
        let live = "/spec/template/spec/containers/0/image";
        until("web has the newer image", || site.value("Deployment", "web", live) == json!(image));
        site.await_rollout("web");
    }
    // All else of the one that waits goes on too.
    newcomer.change("own.yaml", &yaml::config_map("own", "key", "two"));
    site.await_data("own", "key", "two");
    assert_eq!(uids(), before);
    for (resource, name) in [("configmaps", "env"), ("deployments", "web")] {
        let tried = theirs.to(resource, name);
        assert!(tried.is_empty(), "{tried:#?}");
    }
    window.assert_no_deletes();
    theirs.assert_no_deletes();
}

#[test]
fn an_object_of_two_sources_that_is_nobodys_yet_is_not_made() {
    let mut site = TestNamespace::new("two-sources-new");
    let proxy = site.cluster.fault_proxy(0).unwrap();
    site.through(&proxy);
    let one = Repo::new(&[("one.yaml", yaml::config_map("env", "key", "one"))]);
    let other = Repo::new(&[
        ("env.yaml", yaml::config_map("env", "key", "other")),
        ("own.yaml", yaml::config_map("own", "key", "other")),
    ]);
    // The one that is read first may make it, until the other is read.
    let creations = Requests::any().method("PATCH").path_contains("configmaps/env");
    let denied = proxy.add(Rule::new(creations, Fault::Replace(Answer::error(503, "ServiceUnavailable"))));
    let mut daemon = site.configured(&two(&site, &one, &other));
    daemon.says(&["refused", "one.yaml:1", "env.yaml:1"]);
    proxy.remove(denied);
    site.await_data("own", "key", "other");
    daemon.stop();
    assert!(!site.has("ConfigMap", "env"));
    let window = site.window();
    let mut command = site.bare_command();
    command.args(["diff", "--source", "two-sources-new-one", "-n", &site.name]).arg(one.path());
    // One source alone says nothing of the other: it may make its object.
    assert_eq!(run(command).code, 1);
    window.assert_silent();
}
