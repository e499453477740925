//! Foreign changes and commits in the middle of a rollout.

use serde_json::json;

use crate::failures::{
    BOUNDS, BUDGET, IMAGE, ONE, at_rest, at_rest_within, await_image, await_rejection, narrow, push,
};
use crate::manifests::{Web, config};
use crate::observer::Observer;
use crate::replay::Bounds;
use crate::sets::await_set;
use crate::support::{Repo, TestNamespace, until};

/// The bounds where a template is left and taken up again. Its controller counts by the status of
/// its ReplicaSet, which may still show the pod that it had before. So one pod more goes
/// (`reconcileOldReplicaSets` of Kubernetes' Deployment controller).
const LEFT_AND_TAKEN_UP: Bounds = Bounds { workloads: 1, pods: 2 };

/// Returns a Deployment that takes its time.
fn slow(name: &str, image: &str) -> Web {
    Web::new(name, image).fault("ready-delay: 500ms")
}

/// Waits until there has been a new pod of a rollout to this image. It may be gone by now.
#[track_caller]
fn await_start(observer: &Observer, name: &str, image: &str) {
    observer.await_state("a new pod has been there", "Pod", |pod| {
        pod["metadata"]["labels"]["app"] == name && pod["spec"]["containers"][0]["image"] == image
    });
}

/// Returns all that runs, by the name of the pod.
fn pods(site: &TestNamespace<'_>) -> Vec<String> {
    let names = site.api.list(&site.at("Pod", "")).into_iter();
    let mut names: Vec<String> = names.map(|pod| pod["metadata"]["name"].to_string()).collect();
    names.sort();
    names
}

/// Runs one rollout to `app:2`, which somebody else disturbs once it has begun. Another workload
/// waits for its slot all the time.
fn disturbed(name: &str, bounds: Bounds, disturb: impl FnOnce(&TestNamespace<'_>)) -> TestNamespace<'static> {
    let site = TestNamespace::new(name);
    // It rolls for longer than kubectl takes on a busy machine. Else both would roll at once.
    let web = |image: &str| Web::new("web", image).fault("ready-delay: 2500ms");
    let files = |image: &str| vec![web(image).file(), slow("zone", image).file()];
    let repo = Repo::new(&files("app:1"));
    let (_daemon, observer) = at_rest_within(&site, &repo, &narrow(BUDGET), &["web", "zone"]);
    push(&repo, &files("app:2"), "Change both");
    await_start(&observer, "web", "app:2");
    disturb(&site);
    for name in ["web", "zone"] {
        await_image(&site, name, "app:2");
        until("it has its count", || site.value("Deployment", name, "/spec/replicas") == json!(3));
    }
    site.await_free_budget();
    observer.judge(bounds);
    site
}

// The annotation that asks for it is not in the manifest, and stays.
#[test]
fn a_restart_by_hand_is_carried_out_beside_the_rollout() {
    let restart = |site: &TestNamespace<'_>| drop(site.kubectl(&["rollout", "restart", "deployment/web"]));
    let site = disturbed("by-hand-restart", ONE, restart);
    let asked = "/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt";
    assert!(site.value("Deployment", "web", asked).is_string());
}

#[test]
fn an_image_set_by_hand_is_repaired_under_the_same_slot() {
    let set =
        |site: &TestNamespace<'_>| drop(site.kubectl(&["set", "image", "deployment/web", "main=app:7"]));
    disturbed("by-hand-image", LEFT_AND_TAKEN_UP, set);
}

#[test]
fn an_undo_by_hand_is_repaired_under_the_same_slot() {
    let undo = |site: &TestNamespace<'_>| drop(site.kubectl(&["rollout", "undo", "deployment/web"]));
    disturbed("by-hand-undo", LEFT_AND_TAKEN_UP, undo);
}

#[test]
fn a_count_set_by_hand_is_repaired_and_costs_nobody_anything() {
    let scale = |site: &TestNamespace<'_>| drop(site.kubectl(&["scale", "deployment/web", "--replicas=5"]));
    disturbed("by-hand-scale", ONE, scale);
}

#[test]
fn a_workload_that_is_deleted_in_the_middle_is_made_again_with_the_new_content() {
    let delete = |site: &TestNamespace<'_>| drop(site.kubectl(&["delete", "deployment/web", "--wait=false"]));
    disturbed("by-hand-delete", ONE, delete);
}

/// Makes the workload again from a copy of the old manifest, as somebody does who never heard of
/// rhumb.
#[test]
fn a_workload_that_is_made_again_by_hand_in_the_middle_gets_the_new_content() {
    let again = |site: &TestNamespace<'_>| {
        site.api.delete(&site.at("Deployment", "web"));
        let text = slow("web", "app:1").text();
        let _ = site.cluster.kubectl_in(&["-n", &site.name, "create", "-f", "-"], &text);
    };
    disturbed("by-hand-again", ONE, again);
}

#[test]
fn a_set_that_is_deleted_or_scaled_in_the_middle_is_settled_in_the_end() {
    type Disturb = fn(&TestNamespace<'_>);
    let delete: Disturb = |site| site.api.delete(&site.at("StatefulSet", "db"));
    let scale: Disturb = |site| drop(site.kubectl(&["scale", "statefulset/db", "--replicas=5"]));
    for (name, disturb) in [("set-deleted", delete), ("set-scaled", scale)] {
        let site = TestNamespace::new(name);
        let db = |image: &str| vec![Web::of("StatefulSet", "db", image).fault("ready-delay: 500ms").file()];
        let repo = Repo::new(&db("app:1"));
        let _daemon = site.configured(&site.configuration(repo.path(), BUDGET));
        await_set(&site, "db", "app:1");
        site.await_free_budget();
        let observer = Observer::new(&site);
        push(&repo, &db("app:2"), "Change it");
        await_start(&observer, "db", "app:2");
        disturb(&site);
        await_set(&site, "db", "app:2");
        until("it has its count", || site.value("StatefulSet", "db", "/status/replicas") == json!(3));
        site.await_free_budget();
        observer.judge(BOUNDS);
    }
}

/// Sets an autoscaler's count by the scale subresource, before and in the middle of a rollout.
#[test]
fn an_autoscaler_keeps_its_count_while_its_target_rolls() {
    let site = TestNamespace::new("autoscaled");
    let scaler = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec:\n  \
                  minReplicas: 2\n  maxReplicas: 9\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n";
    let files = |image: &str| vec![slow("web", image).file(), ("scaler.yaml".to_owned(), scaler.to_owned())];
    let repo = Repo::new(&files("app:1"));
    let (_daemon, observer) = at_rest(&site, &repo, &["web"]);
    let scale = |count: u32| {
        let path = site.at("Deployment", "web") + "/scale";
        site.api.merge(&path, "horizontal-pod-autoscaler", &json!({"spec": {"replicas": count}}));
    };
    for (image, count) in [("app:2", 5), ("app:3", 4)] {
        push(&repo, &files(image), "Change it");
        await_start(&observer, "web", image);
        scale(count);
        await_image(&site, "web", image);
        site.await_free_budget();
        assert_eq!(site.value("Deployment", "web", "/spec/replicas"), json!(count));
    }
    observer.judge(BOUNDS);
}

#[test]
fn a_newer_commit_replaces_a_rollout_at_once() {
    let site = TestNamespace::new("newer");
    let files = |image: &str, content: &str| {
        vec![slow("web", image).uses("env").file(), slow("api", image).file(), config("env", content)]
    };
    let repo = Repo::new(&files("app:1", "one"));
    let (_daemon, observer) = at_rest(&site, &repo, &["web", "api"]);
    push(&repo, &files("app:broken", "two"), "Break it");
    await_start(&observer, "web", "app:broken");
    push(&repo, &files("app:3", "three"), "Mend it");
    for name in ["web", "api"] {
        await_image(&site, name, "app:3");
    }
    assert_eq!(site.data("env", "key"), "three");
    site.await_free_budget();
    observer.judge(BOUNDS);
}

#[test]
fn a_newer_commit_replaces_a_rollback_at_once() {
    let site = TestNamespace::new("newer-back");
    let web = |image: &str| slow("web", image).uses("env").file();
    let repo = Repo::new(&[web("app:1"), config("env", "one")]);
    let (_daemon, observer) = at_rest(&site, &repo, &["web"]);
    push(&repo, &[web("app:broken"), config("env", "two")], "Break it");
    await_rejection(&site, &["web"]);
    until("it goes back", || site.value("Deployment", "web", IMAGE) == json!("app:1"));
    push(&repo, &[web("app:3"), config("env", "three")], "Mend it");
    await_image(&site, "web", "app:3");
    assert_eq!(site.data("env", "key"), "three");
    site.await_free_budget();
    observer.judge(BOUNDS);
}

#[test]
fn a_commit_that_reverts_to_what_runs_restarts_nothing() {
    let site = TestNamespace::new("revert");
    let web = |image: &str| Web::new("web", image).uses("env").file();
    let repo = Repo::new(&[web("app:1"), config("env", "one")]);
    let daemon = site.configured(&site.configuration(repo.path(), BUDGET));
    site.await_rollout("web");
    site.await_free_budget();
    let observer = Observer::new(&site);
    push(&repo, &[web("app:broken"), config("env", "two")], "Break it");
    await_rejection(&site, &["web"]);
    await_image(&site, "web", "app:1");
    site.await_free_budget();
    until("the pod that failed is gone", || pods(&site).len() == 3);
    let (before, window) = (pods(&site), site.window());
    repo.git(&["revert", "--no-edit", "HEAD"]);
    let head = repo.head();
    daemon.says(&["read", &head]);
    until("nothing is rejected any more", || {
        !site.records().contains("broken")
            && site.inventory().is_some_and(|inventory| inventory["data"]["rejected"].is_null())
    });
    assert_eq!(pods(&site), before);
    assert!(window.to("configmaps", "env").is_empty());
    observer.judge(BOUNDS);
}
