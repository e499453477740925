//! A well-made application serves while it changes: no request of a client fails.

use crate::client::{Client, address_of};
use crate::site::{BUDGET, RealSite, SLOW_TIMEOUT};
use crate::support::{eventually, yaml};
use crate::workload::{CANARY, Workload};

/// Returns a workload that goes on serving until every node knows that it ends, which takes seconds
/// on a busy machine.
fn serving(name: &str, image: &str) -> Workload {
    Workload::new(name, image).farewell(15).grace(40)
}

fn web(image: &str) -> Workload {
    serving("web", image)
}

fn service(app: &str) -> (String, String) {
    ("service.yaml".to_owned(), yaml::service("web", app))
}

/// Starts a client once a workload is rolled out behind its Service.
fn serve(place: &RealSite, workload: &Workload) -> Client {
    place.await_rollout(workload);
    let address = address_of(place, "web");
    if place.is_followed() {
        place.site.await_free_budget();
    }
    Client::start(place, &address)
}

// Beside it `kubectl apply` makes the same change alone, and its count is printed.
#[test]
fn no_request_fails_over_a_rolling_update() {
    let files = |image: &str| [web(image).file(), service("web")];
    let Some(ours) = RealSite::new("serving", &files("app:1")) else { return };
    let Some(theirs) = RealSite::without_rhumb("serving-kubectl", &files("app:1")) else { return };
    let clients = [&ours, &theirs].map(|place| serve(place, &web("app:1")));
    for place in [&ours, &theirs] {
        place.push(&files("app:2"), "Change the image");
    }
    for place in [&ours, &theirs] {
        place.await_rollout(&web("app:2"));
    }
    ours.await_success();
    let [count, of_kubectl] = clients.map(Client::stop);
    eprintln!("rolling update: {count:?}; by kubectl alone: {of_kubectl:?}");
    count.is_served_by(&["version=1", "version=2"]);
}

#[test]
fn no_request_fails_over_a_canary_that_is_promoted() {
    let web = |image: &str| web(image).annotation(CANARY);
    let Some(place) = RealSite::new("serving-canary", &[web("app:1").file(), service("web")]) else { return };
    let client = serve(&place, &web("app:1"));
    place.push(&[web("app:2").file()], "Change the image");
    place.await_words(&["rollout", "status", "deploy/web"], "held at step 1 of 1");
    place.await_ready(&web("app:2"), 1);
    place.await_ready(&web("app:1"), 3);
    place.site.order(&["rollout", "promote", "deploy/web"], &["promoted"]);
    place.await_rollout(&web("app:2"));
    place.await_success();
    let count = client.stop();
    eprintln!("canary: {count:?}");
    count.is_served_by(&["version=1", "version=2"]);
}

// The new pod serves for long enough to be asked. It is unready again before its step has soaked.
#[test]
fn no_request_fails_over_a_rollback() {
    let steps = "rhumb.dev/steps: \"1\", rhumb.dev/step-soak: 24s";
    let good = web("app:1").annotation(steps);
    let bad = web("app:2").annotation(steps).variable("UNREADY_AFTER", "12s");
    let budget = BUDGET.replace("deadline: 90s", "deadline: 25s");
    let files = [good.file(), service("web")];
    let Some(place) = RealSite::with_budget("serving-rollback", &budget, &files) else { return };
    let client = serve(&place, &good);
    place.push(&[bad.file()], "Change the image");
    place.await_rejection(&["rejected", "no progress for 49s", "container main is running but not ready"]);
    place.await_rollout(&good);
    place.site.await_free_budget();
    let count = client.stop();
    eprintln!("rollback: {count:?}");
    count.is_served_by(&["version=1", "version=2"]);
}

// One commit adds the new workload and switches the Service to it. Where `kubectl apply` does both
// at once, requests fail, so that the client can notice it.
#[test]
fn no_request_fails_over_a_switch_from_blue_to_green() {
    let color = |name: &str, image: &str| serving(name, image).variable("READY_AFTER", "2s");
    let (blue, green) = (color("blue", "app:1"), color("green", "app:2"));
    let files = [blue.file(), service("blue")];
    let Some(ours) = RealSite::new("serving-switch", &files) else { return };
    let Some(theirs) = RealSite::without_rhumb("serving-switch-kubectl", &files) else { return };
    let clients = [&ours, &theirs].map(|place| serve(place, &blue));
    for place in [&ours, &theirs] {
        place.push(&[green.file(), service("green")], "Switch to green");
    }
    for place in [&ours, &theirs] {
        eventually("the Service selects green", SLOW_TIMEOUT, || {
            let selected = place.site.value("Service", "web", "/spec/selector/app");
            if selected == "green" { Ok(()) } else { Err(selected) }
        });
        place.await_rollout(&green);
    }
    ours.await_success();
    ours.repo.remove("blue.yaml");
    ours.repo.commit("Remove blue");
    eventually("blue is gone", SLOW_TIMEOUT, || {
        let left = ours.pods("blue").len();
        if left == 0 { Ok(()) } else { Err(format!("{left} pods are left")) }
    });
    let [count, of_kubectl] = clients.map(Client::stop);
    eprintln!("switch: {count:?}; by kubectl alone: {of_kubectl:?}");
    count.is_served_by(&["version=1", "version=2"]);
    assert!(!of_kubectl.failures.is_empty(), "{of_kubectl:#?}");
}
