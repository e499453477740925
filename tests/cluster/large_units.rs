//! A unit whose record would be larger than an object of the cluster may be.

use serde_json::json;

use crate::support::{DEFAULT_TIMEOUT, Repo, TestNamespace, until, yaml};

/// The ConfigMaps of the unit: their names alone are more than half of what its record may have.
const CONFIGS: usize = 1_500;

/// Returns a name that is as long as one may be.
fn config_name(number: usize) -> String {
    format!("env-{number:0>249}")
}

/// Returns a workload with this image, and the ConfigMaps that it needs with these contents.
fn unit(image: &str, content: impl Fn(usize) -> &'static str) -> [(&'static str, String); 2] {
    let configs: Vec<(String, &str)> =
        (0..CONFIGS).map(|number| (config_name(number), content(number))).collect();
    yaml::unit(&yaml::deployment("web", 1, image), &configs)
}

#[test]
fn a_unit_whose_record_is_too_large_is_refused_by_name_and_nothing_of_it_is_sent() {
    let site = TestNamespace::new("large-unit");
    let repo = Repo::new(&unit("app:1", |_| "1"));
    repo.change("other.yaml", &yaml::config_map("other", "key", "1"));
    let mut daemon = site.configured(&site.configuration(repo.path(), "budget: {soak: 0s}"));
    site.await_data_within(DEFAULT_TIMEOUT * 3, "other", "key", "1");
    site.await_rollout_within(DEFAULT_TIMEOUT * 3, "web");
    site.await_free_budget();
    let (window, mark) = (site.window(), daemon.mark());
    for (file, text) in unit("app:2", |_| "2") {
        repo.write(file, &text);
    }
    repo.commit("Change all");
    let first = "1501 objects are released together with Deployment large-unit/web";
    let refusal = daemon.says_since(mark, &["WARN", "refused", first]);
    for words in ["larger than one may be (600 kB)", "change fewer of them in one commit"] {
        assert!(refusal.contains(words), "{refusal}");
    }
    // Several commits later it was still not tried, and what is not of it went on.
    for value in ["2", "3", "4"] {
        repo.change("other.yaml", &yaml::config_map("other", "key", value));
        site.await_data("other", "key", value);
    }
    let written: Vec<String> = window.writes().into_iter().map(|event| event.name).collect();
    assert_eq!(written, ["other"; 3]);
    let mut refused = window.calls();
    refused.retain(|call| [413, 422].contains(&call.code));
    assert!(refused.is_empty(), "{refused:#?}");
    assert_eq!(daemon.log().matches(first).count(), 1, "it is reported once, and not of each object");
    // A commit that changes fewer of them is released.
    for (file, text) in unit("app:2", |number| if number == 0 { "2" } else { "1" }) {
        repo.write(file, &text);
    }
    repo.commit("Change two");
    site.await_data(&config_name(0), "key", "2");
    let image = "/spec/template/spec/containers/0/image";
    until("the workload has its content too", || site.value("Deployment", "web", image) == json!("app:2"));
    assert_eq!(daemon.stop().code(), Some(0));
}
