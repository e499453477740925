//! How many workloads roll at once, in which order, and who scales them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Api, Repo, SOON, Site, eventually, until, yaml};

/// The most Deployments that were seen rolling at the same time while something happens.
pub(crate) fn most_rolling<T>(site: &Site<'_>, work: impl FnOnce() -> T) -> (usize, T) {
    let (over, path) = (AtomicBool::new(false), site.at("Deployment", ""));
    let api: Api = site.api.clone();
    thread::scope(|scope| {
        let observer = scope.spawn(|| {
            let mut most = 0;
            while !over.load(Ordering::Relaxed) {
                let rolling = api.list(&path).iter().filter(|deployment| is_rolling(deployment)).count();
                most = most.max(rolling);
                thread::sleep(Duration::from_millis(5));
            }
            most
        });
        let guard = Stop(&over);
        let done = work();
        drop(guard);
        (observer.join().unwrap(), done)
    })
}

/// Ends the observer, also when the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn is_rolling(deployment: &Value) -> bool {
    let number = |pointer: &str| deployment.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let wanted = number("/spec/replicas");
    number("/status/observedGeneration") != number("/metadata/generation")
        || number("/status/updatedReplicas") != wanted
        || number("/status/availableReplicas") != wanted
        || number("/status/replicas") != wanted
}

/// Eight Deployments, the last four in a later wave, whose new pods are ready after a moment.
fn eight(image: &str, annotations: &str) -> Vec<(String, String)> {
    let one = |n: u32| {
        let name = format!("d{n}");
        let wave = format!("  name: {name}\n  annotations: {{rhumb.dev/wave: \"{}\"}}\nspec", n / 4);
        let text = yaml::workload("Deployment", &name, 2, image, annotations);
        (format!("{name}.yaml"), text.replace(&format!("  name: {name}\nspec"), &wave))
    };
    (0..8).map(one).collect()
}

fn write(repo: &Repo, files: Vec<(String, String)>) {
    for (name, text) in files {
        repo.write(&name, &text);
    }
}

#[test]
fn of_eight_changed_workloads_three_roll_at_once_and_wave_after_wave() {
    let site = Site::new("budget");
    let slow = "{controlplane/ready-delay: 700ms}";
    let repo = Repo::new(&eight("nginx:1", slow));
    let _daemon = site.daemon(repo.path());
    for n in 0..8 {
        site.await_rollout(&format!("d{n}"));
    }
    let window = site.window();
    let (most, ()) = most_rolling(&site, || {
        write(&repo, eight("nginx:2", slow));
        repo.commit("Change all");
        eventually("all run the new image", SOON * 2, || {
            let all = site.api.list(&site.at("Deployment", ""));
            let image =
                |d: &Value| d.pointer("/spec/template/spec/containers/0/image") == Some(&json!("nginx:2"));
            let done = all.iter().filter(|d| image(d) && !is_rolling(d)).count();
            if done == 8 { Ok(()) } else { Err(format!("{done} are done")) }
        });
    });
    assert_eq!(most, 3);
    let written: Vec<String> = window.writes().into_iter().map(|event| event.name).collect();
    assert_eq!(written.len(), 8, "{written:?}");
    assert!(written[..4].iter().all(|name| name.as_str() < "d4"), "{written:?}");
}

#[test]
fn the_budget_is_what_the_configuration_says() {
    let site = Site::new("budget-one");
    let few = |image: &str| -> Vec<(String, String)> { eight(image, "{}").into_iter().take(3).collect() };
    let repo = Repo::new(&few("nginx:1"));
    let _daemon = site.configured(&site.configuration(repo.path(), "budget: {maxWorkloads: 1}"));
    for n in 0..3 {
        site.await_rollout(&format!("d{n}"));
    }
    let (most, ()) = most_rolling(&site, || {
        write(&repo, few("nginx:2"));
        repo.commit("Change all");
        for n in 0..3 {
            until("it runs the new image", || {
                site.value("Deployment", &format!("d{n}"), "/spec/template/spec/containers/0/image")
                    == json!("nginx:2")
            });
            site.await_rollout(&format!("d{n}"));
        }
    });
    assert_eq!(most, 1);
}

#[test]
fn apply_keeps_the_budget_as_well_and_waits_for_its_end() {
    let site = Site::new("budget-apply");
    let slow = "{controlplane/ready-delay: 400ms}";
    let repo = Repo::new(&eight("nginx:1", slow));
    site.apply(repo.path(), &["--wait"]).ends(0);
    let (most, ()) = most_rolling(&site, || {
        write(&repo, eight("nginx:2", slow));
        site.diff(repo.path(), &[]).ends(1).says(&["d0", "restarts 2 pods"]);
        site.apply(repo.path(), &["--wait"]).ends(0);
    });
    assert_eq!(most, 3);
}

#[test]
fn workloads_that_were_never_available_take_no_token() {
    let site = Site::new("budget-sick");
    let sick = "{controlplane/never-ready: \"true\"}";
    let few = |image: &str, annotations: &str| -> Vec<(String, String)> {
        let all = (0..5).map(|n| {
            (format!("d{n}.yaml"), yaml::workload("Deployment", &format!("d{n}"), 1, image, annotations))
        });
        all.collect()
    };
    let repo = Repo::new(&few("nginx:1", sick));
    let _daemon = site.daemon(repo.path());
    for n in 0..5 {
        site.await_object("Deployment", &format!("d{n}"));
    }
    for (image, annotations) in [("nginx:2", sick), ("nginx:3", "{}")] {
        write(&repo, few(image, annotations));
        repo.commit("Change all");
        for n in 0..5 {
            until("it has the new image", || {
                site.value("Deployment", &format!("d{n}"), "/spec/template/spec/containers/0/image")
                    == json!(image)
            });
        }
    }
    site.await_rollout("d4");
}

#[test]
fn a_change_that_restarts_nothing_needs_no_token() {
    let site = Site::new("budget-free");
    let stuck = |image: &str| yaml::deployment("stuck", 1, image);
    let repo = Repo::new(&[
        ("stuck.yaml", stuck("nginx:1")),
        ("plain.yaml", yaml::deployment("plain", 1, "nginx:1")),
        ("env.yaml", yaml::config_map("env", "a", "one")),
    ]);
    let _daemon = site.configured(&site.configuration(repo.path(), "budget: {maxWorkloads: 1}"));
    site.await_rollout("stuck");
    site.await_rollout("plain");
    // The only token is taken by a rollout that never ends.
    repo.change("stuck.yaml", &stuck("nginx:broken"));
    until("it rolls", || {
        site.value("Deployment", "stuck", "/spec/template/spec/containers/0/image") == json!("nginx:broken")
    });
    repo.write("env.yaml", &yaml::config_map("env", "a", "two"));
    repo.write("plain.yaml", &yaml::deployment("plain", 3, "nginx:1"));
    repo.commit("Scale");
    site.await_data("env", "a", "two");
    until("it is scaled", || site.value("Deployment", "plain", "/spec/replicas") == json!(3));
    // And a better image for the one that is stuck needs no second one.
    repo.change("stuck.yaml", &stuck("nginx:2"));
    site.await_rollout("stuck");
}

fn autoscaler(target: &str) -> String {
    format!(
        "apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: {target}}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {target}}}
  minReplicas: 1
  maxReplicas: 9
"
    )
}

/// As the autoscaler's controller does it.
fn scale(site: &Site<'_>, name: &str, replicas: u32) {
    let path = format!("{}/scale", site.at("Deployment", name));
    site.api.merge(&path, "kube-controller-manager", &json!({"spec": {"replicas": replicas}}));
}

#[test]
fn the_replicas_of_an_autoscalers_target_are_left_to_it() {
    let site = Site::new("autoscaler");
    let repo =
        Repo::new(&[("web.yaml", yaml::deployment("web", 2, "nginx:1")), ("hpa.yaml", autoscaler("web"))]);
    let mut daemon = site.daemon(repo.path());
    site.await_rollout("web");
    site.await_object("HorizontalPodAutoscaler", "web");
    scale(&site, "web", 5);
    let replicas = || site.value("Deployment", "web", "/spec/replicas");
    // An own field that is taken away at the same time is given back, and the count stays.
    site.api.merge(&site.at("Deployment", "web"), "somebody", &json!({"metadata": {"labels": null}}));
    repo.change("web.yaml", &yaml::deployment("web", 2, "nginx:2"));
    until("it runs the new image", || {
        site.value("Deployment", "web", "/spec/template/spec/containers/0/image") == json!("nginx:2")
    });
    assert_eq!(replicas(), json!(5));
    scale(&site, "web", 4);
    site.await_rollout("web");
    site.await_free_budget();
    daemon.stop();
    let window = site.window();
    let new = site.with_empty_state();
    new.diff(repo.path(), &[]).ends(0);
    new.apply(repo.path(), &[]).ends(0);
    window.assert_silent();
    assert_eq!(replicas(), json!(4));
}

#[test]
fn an_autoscaler_that_comes_later_takes_the_replicas_over_as_they_are() {
    let site = Site::new("autoscaler-later");
    let repo = Repo::new(&[("web.yaml", yaml::deployment("web", 3, "nginx:1"))]);
    let _daemon = site.daemon(repo.path());
    site.await_rollout("web");
    let window = site.window();
    repo.change("hpa.yaml", &autoscaler("web"));
    site.await_object("HorizontalPodAutoscaler", "web");
    scale(&site, "web", 6);
    repo.change("web.yaml", &yaml::deployment("web", 3, "nginx:2"));
    until("it runs the new image", || {
        site.value("Deployment", "web", "/spec/template/spec/containers/0/image") == json!("nginx:2")
    });
    site.await_rollout("web");
    assert_eq!(site.value("Deployment", "web", "/spec/replicas"), json!(6));
    assert!(window.to("deployments", "web").len() <= 3, "{:#?}", window.to("deployments", "web"));
}
