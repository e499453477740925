//! The number of workloads that roll out at once, their order, and scales.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Api, DEFAULT_TIMEOUT, Repo, TestNamespace, eventually, until, yaml};

/// Returns the most Deployments that were seen rolling at the same time while something happens.
pub(crate) fn most_rolling<T>(site: &TestNamespace<'_>, work: impl FnOnce() -> T) -> (usize, T) {
    let (over, path) = (AtomicBool::new(false), site.at("Deployment", ""));
    let api: Api = site.api.clone();
    thread::scope(|scope| {
        let observer = scope.spawn(|| {
            let mut most = 0;
            while !over.load(Ordering::Relaxed) {
                let all = api.list(&path);
                let rolling: Vec<_> = all.iter().filter(|deployment| is_rolling(deployment)).collect();
                if rolling.len() > most {
                    most = rolling.len();
                    // For whoever looks for the reason of a failure.
                    let seen = |one: &&Value| {
                        let (name, generation) = (&one["metadata"]["name"], &one["metadata"]["generation"]);
                        format!("{name} in generation {generation}: {}", one["status"])
                    };
                    let seen: Vec<String> = rolling.iter().map(seen).collect();
                    eprintln!("{}: {most} roll: {seen:#?}", jiff::Timestamp::now());
                }
                thread::sleep(Duration::from_millis(5));
            }
            most
        });
        let guard = ObserverGuard(&over);
        let done = work();
        drop(guard);
        (observer.join().unwrap(), done)
    })
}

/// The guard that ends the observer, also when the test fails.
struct ObserverGuard<'a>(&'a AtomicBool);

impl Drop for ObserverGuard<'_> {
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

/// Returns eight Deployments, the last four in a later wave, whose new pods are ready after a
/// moment.
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
    let site = TestNamespace::new("budget");
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
        eventually("all run the new image", DEFAULT_TIMEOUT * 2, || {
            let all = site.api.list(&site.at("Deployment", ""));
            let image =
                |d: &Value| d.pointer("/spec/template/spec/containers/0/image") == Some(&json!("nginx:2"));
            let done = all.iter().filter(|d| image(d) && !is_rolling(d)).count();
            if done == 8 { Ok(()) } else { Err(format!("{done} are done")) }
        });
    });
    assert_eq!(most, 3);
    // One that meets a newer status is refused, and sent again.
    let written = window.writes().into_iter().filter(|event| event.code < 300);
    let written: Vec<String> = written.map(|event| event.name).collect();
    assert_eq!(written.len(), 8, "{written:?}");
    assert!(written[..4].iter().all(|name| name.as_str() < "d4"), "{written:?}");
}

#[test]
fn the_budget_is_what_the_configuration_says() {
    let site = TestNamespace::new("budget-one");
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
fn diff_tells_what_restarts_and_in_which_order() {
    let site = TestNamespace::new("budget-diff");
    let web = |wave: u32, env: &str, image: &str| {
        let text = yaml::deployment("web", 2, image).replace(
            "  name: web\nspec",
            &format!("  name: web\n  annotations: {{rhumb.dev/wave: \"{wave}\"}}\nspec"),
        );
        text + &format!("        envFrom: [{{configMapRef: {{name: {env}}}}}]\n")
    };
    let repo = Repo::new(&[
        ("web.yaml", web(1, "env", "nginx:1")),
        ("env.yaml", yaml::config_map("env", "a", "one")),
        ("other.yaml", yaml::config_map("other", "a", "one")),
        ("api.yaml", yaml::deployment("api", 1, "nginx:1")),
        ("plain.yaml", yaml::deployment("plain", 1, "nginx:1")),
    ]);
    site.apply(repo.path(), &["--wait"]).ends(0);
    repo.write("web.yaml", &web(1, "env", "nginx:2"));
    repo.write("env.yaml", &yaml::config_map("env", "a", "two"));
    repo.write("other.yaml", &yaml::config_map("other", "a", "two"));
    repo.write("api.yaml", &yaml::deployment("api", 1, "nginx:2"));
    // A field that the server fills in anyway restarts nothing.
    repo.write(
        "plain.yaml",
        &(yaml::deployment("plain", 1, "nginx:1") + "        imagePullPolicy: IfNotPresent\n"),
    );
    repo.commit("Change all");
    let window = site.window();
    let said = site.diff(repo.path(), &[]).ends(1).all();
    let order = said.split("\n\n").find(|part| part.starts_with("restarts")).unwrap_or_default();
    let expected = "restarts, in order of release:
  1. wave 0: Deployment budget-diff/api restarts 1 pod
  2. wave 1: Deployment budget-diff/web restarts 2 pods; with ConfigMap budget-diff/env in wave 0
2 workloads, 3 pods, in 2 units";
    assert_eq!(order, expected, "{said}");
    let json = site.diff(repo.path(), &["-o", "json"]).ends(1).json();
    assert_eq!(json["summary"]["restarts"], json!({"workloads": 2, "pods": 3}));
    window.assert_silent();
}

#[test]
fn apply_keeps_the_budget_as_well_and_waits_for_its_end() {
    let site = TestNamespace::new("budget-apply");
    let slow = "{controlplane/ready-delay: 700ms}";
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
fn workloads_that_were_never_available_take_no_slot() {
    let site = TestNamespace::new("budget-sick");
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

/// Returns the behaviour of this image's pods.
fn never_ready(image: &str) -> &'static str {
    if image == "nginx:never" { "{controlplane/never-ready: \"true\"}" } else { "{}" }
}

#[test]
fn a_change_that_restarts_nothing_needs_no_slot() {
    let site = TestNamespace::new("budget-free");
    let stuck = |image: &str| yaml::workload("Deployment", "stuck", 1, image, never_ready(image));
    let repo = Repo::new(&[
        ("stuck.yaml", stuck("nginx:1")),
        ("plain.yaml", yaml::deployment("plain", 1, "nginx:1")),
        ("env.yaml", yaml::config_map("env", "a", "one")),
    ]);
    let _daemon = site.configured(&site.configuration(repo.path(), "budget: {maxWorkloads: 1}"));
    site.await_rollout("stuck");
    site.await_rollout("plain");
    // The only slot is taken by a rollout that never ends.
    repo.change("stuck.yaml", &stuck("nginx:never"));
    until("it rolls", || {
        site.value("Deployment", "stuck", "/spec/template/spec/containers/0/image") == json!("nginx:never")
    });
    repo.write("env.yaml", &yaml::config_map("env", "a", "two"));
    repo.write("plain.yaml", &yaml::deployment("plain", 3, "nginx:1"));
    repo.commit("Scale");
    site.await_data("env", "a", "two");
    until("it is scaled", || site.value("Deployment", "plain", "/spec/replicas") == json!(3));
    // A default may be spelled out, and a matching object may be taken over.
    let template =
        || site.value("Deployment", "plain", "/metadata/annotations/deployment.kubernetes.io~1revision");
    let before = template();
    let spelled_out =
        "        imagePullPolicy: IfNotPresent\n        terminationMessagePath: /dev/termination-log\n";
    repo.write("plain.yaml", &(yaml::deployment("plain", 3, "nginx:1") + spelled_out));
    repo.write("found.yaml", &yaml::deployment("found", 1, "nginx:1"));
    site.kubectl(&["create", "-f", repo.path().join("found.yaml").to_str().unwrap()]);
    site.await_rollout("found");
    repo.commit("Spell it out");
    let entries = |name: &str| site.value("Deployment", name, "/metadata/managedFields").to_string();
    until("it is taken over", || entries("found").contains("rhumb.dev/release"));
    until("it is applied", || entries("plain").contains("f:terminationMessagePath"));
    assert_eq!(template(), before);
    // And a better image for the one that is stuck needs no second one.
    repo.change("stuck.yaml", &stuck("nginx:2"));
    site.await_rollout("stuck");
}

#[test]
fn a_change_beside_a_template_that_somebody_changed_waits_for_a_slot() {
    let site = TestNamespace::new("budget-beside");
    let stuck = |image: &str| yaml::workload("Deployment", "stuck", 1, image, never_ready(image));
    let repo = Repo::new(&[
        ("stuck.yaml", stuck("nginx:1")),
        ("plain.yaml", yaml::deployment("plain", 1, "nginx:1")),
    ]);
    let configuration = site.configuration(repo.path(), "budget: {maxWorkloads: 1}");
    let mut daemon = site.configured(&configuration);
    site.await_rollout("stuck");
    site.await_rollout("plain");
    repo.change("stuck.yaml", &stuck("nginx:never"));
    let image = |name: &str| site.value("Deployment", name, "/spec/template/spec/containers/0/image");
    until("it rolls", || image("stuck") == json!("nginx:never"));
    daemon.stop();
    site.kubectl(&["set", "image", "deployment/plain", "main=nginx:hand"]);
    site.await_rollout("plain");
    let window = site.window();
    let _daemon = site.configured(&configuration);
    // It brings another count, and it would bring back the image.
    repo.write("seen.yaml", &yaml::config_map("seen", "a", "b"));
    repo.change("plain.yaml", &yaml::deployment("plain", 2, "nginx:1"));
    site.await_data("seen", "a", "b");
    repo.change("stuck.yaml", &stuck("nginx:2"));
    until("both are applied", || image("plain") == json!("nginx:1") && image("stuck") == json!("nginx:2"));
    site.await_rollout("plain");
    site.await_rollout("stuck");
    assert_eq!(site.value("Deployment", "plain", "/spec/replicas"), json!(2));
    let own = window.writes().into_iter().filter(|event| event.resource == "deployments");
    let order: Vec<String> = own.map(|event| event.name).collect();
    assert_eq!(order.first().map(String::as_str), Some("stuck"), "{order:?}");
}

#[test]
fn pods_that_a_scale_asks_for_hold_nobody_up() {
    let site = TestNamespace::new("budget-scale");
    let big = |replicas| {
        yaml::workload("Deployment", "big", replicas, "nginx:1", "{controlplane/ready-delay: 20s}")
    };
    let web = |image: &str| yaml::deployment("web", 4, image);
    let repo = Repo::new(&[("big.yaml", big(1)), ("web.yaml", web("nginx:1"))]);
    let _daemon = site.configured(&site.configuration(repo.path(), "budget: {maxUnavailable: 1, soak: 0s}"));
    site.await_rollout("big");
    site.await_rollout("web");
    repo.change("big.yaml", &big(5));
    let available = || site.value("Deployment", "big", "/status/availableReplicas");
    until("its pods are made", || site.value("Deployment", "big", "/status/replicas") == json!(5));
    repo.change("web.yaml", &web("nginx:2"));
    until("web rolls", || {
        site.value("Deployment", "web", "/spec/template/spec/containers/0/image") == json!("nginx:2")
    });
    assert_eq!(available(), json!(1), "it has not waited for these pods");
    site.await_rollout("big");
    site.await_rollout("web");
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

/// Scales as the autoscaler's controller does it.
fn scale(site: &TestNamespace<'_>, name: &str, replicas: u32) {
    let path = format!("{}/scale", site.at("Deployment", name));
    site.api.merge(&path, "kube-controller-manager", &json!({"spec": {"replicas": replicas}}));
}

#[test]
fn the_replicas_of_an_autoscalers_target_are_left_to_it() {
    let site = TestNamespace::new("autoscaler");
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
    let site = TestNamespace::new("autoscaler-later");
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
    // One that meets a newer status is refused, and sent again.
    let mut written = window.to("deployments", "web");
    written.retain(|event| event.code != 409);
    assert!(written.len() <= 3, "{written:#?}");
}
