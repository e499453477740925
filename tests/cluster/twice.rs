//! One object that is defined twice: neither candidate is applied, and what was accepted stays
//! defended.

use controlplane::{Answer, Fault, Requests, Rule};
use serde_json::json;

use crate::support::{Folder, Repo, TestNamespace, run, source, yaml};

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
