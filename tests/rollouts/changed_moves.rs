//! Objects that move to another daemon, and change, in one commit. They stay a unit there.

use serde_json::{Value, json};

use crate::failures::{IMAGE, await_image};
use crate::manifests::{Web, config};
use crate::moves::{DaemonPair, await_owner, patient, two_folders};
use crate::support::{Repo, TestNamespace, until, yaml};

/// Writes a workload with its Service, and the data that it uses, to the folder of a source.
fn write(repo: &Repo, folder: &str, web: Web, value: &str) {
    repo.write(
        &format!("{folder}/web.yaml"),
        &yaml::documents(&[web.uses("env").text(), yaml::service("web", "web")]),
    );
    let (file, text) = config("env", value);
    repo.write(&format!("{folder}/{file}"), &text);
}

fn move_to_other(repo: &Repo, files: &[&str]) {
    for file in files {
        repo.git(&["mv", &format!("a/{file}"), &format!("b/{file}")]);
    }
}

fn value_of_data(site: &TestNamespace<'_>) -> Value {
    site.value("ConfigMap", "env", "/data/key")
}

// The other daemon looks the data up before the workload, and has no other workload.
#[test]
fn data_that_move_and_change_with_their_workload_go_back_with_it() {
    let repo = two_folders();
    write(&repo, "a", Web::new("web", "app:1").strategy(1, 0), "one");
    repo.commit("Use data");
    let pair = DaemonPair::within("moves-data", &repo, &patient());
    let site = &pair.one;
    until("the data are there", || value_of_data(site) == json!("one"));
    move_to_other(&repo, &["web.yaml", "env.yaml"]);
    write(&repo, "b", Web::new("web", "app:2").strategy(1, 0).fault("never-ready: \"true\""), "two");
    repo.commit("Move and break them");
    for kind in [("Deployment", "web"), ("ConfigMap", "env")] {
        await_owner(site, &site.at(kind.0, kind.1), "b");
    }
    until("it rolls", || site.value("Deployment", "web", IMAGE) == json!("app:2"));
    assert_eq!(value_of_data(site), json!("two"));
    await_image(site, "web", "app:1");
    until("the data are back", || value_of_data(site) == json!("one"));
}

/// Moves a Service to another daemon together with the workload that it is switched to. The Service
/// selects the new pods once they are ready.
#[track_caller]
fn move_and_switch(name: &str, is_begun: impl Fn(&Repo, &TestNamespace<'_>, &str)) {
    let repo = two_folders();
    let pair = DaemonPair::new(name, &repo);
    let site = &pair.one;
    let green = Web::new("green", "app:2").fault("ready-delay: 10s").text();
    is_begun(&repo, site, &green);
    let selected = || site.value("Service", "web", "/spec/selector/app");
    until("the Service is switched", || selected() == json!("green"));
    let ready = site.value("Deployment", "green", "/status/readyReplicas");
    assert!(ready.as_u64() > Some(0), "{ready}");
}

fn blue_and_service(selected: &str) -> String {
    yaml::documents(&[Web::new("web", "app:1").text(), yaml::service("web", selected)])
}

#[test]
fn a_service_that_moves_and_switches_waits_for_the_pods_of_its_new_workload() {
    move_and_switch("moves-switch", |repo, _, green| {
        move_to_other(repo, &["web.yaml"]);
        repo.write("b/web.yaml", &blue_and_service("green"));
        repo.write("b/green.yaml", green);
        repo.commit("Move and switch");
    });
}

#[test]
fn a_switch_that_moves_in_its_middle_waits_for_the_pods_too() {
    move_and_switch("moves-switch-middle", |repo, site, green| {
        repo.write("a/web.yaml", &blue_and_service("green"));
        repo.write("a/green.yaml", green);
        repo.commit("Switch");
        until("green begins", || site.value("Deployment", "green", "/metadata/uid").is_string());
        move_to_other(repo, &["web.yaml", "green.yaml"]);
        repo.commit("Move all");
        await_owner(site, &site.at("Deployment", "green"), "b");
    });
}
