//! Pods that fail as only real ones do: the commit is judged as failed, and goes back by itself.

use crate::site::{BUDGET, RealSite, SLOW_TIMEOUT, uids};
use crate::support::eventually;
use crate::workload::Workload;

/// Checks that a change that fails goes back. Its reason names the pod, and has one of these texts.
fn goes_back(name: &str, bad: Workload, reasons: &[&str]) {
    goes_back_within(name, BUDGET, bad, reasons);
}

fn goes_back_within(name: &str, budget: &str, bad: Workload, reasons: &[&str]) {
    let good = Workload::new("web", "app:1");
    let Some(place) = RealSite::with_budget(name, budget, &[good.file()]) else { return };
    place.await_rollout(&good);
    place.site.await_free_budget();
    let before = place.pods("web");
    place.push(&[bad.file()], "Change it");
    let records = place.await_rejection(&["rejected", "web"]);
    let says_why =
        |text: &str| text.contains("pod web-") && reasons.iter().any(|reason| text.contains(reason));
    assert!(says_why(&records), "{reasons:?}: {records}");
    eventually("people are told the pod and its reason", SLOW_TIMEOUT, || {
        let all = place.site.rhumb(&["why", "deploy/web"]).all();
        if says_why(&all) { Ok(()) } else { Err(all) }
    });
    place.await_rollout(&good);
    place.site.await_free_budget();
    // No pod that served was touched: the update may not take one down before its successor is ready.
    assert_eq!(uids(&place.pods("web")), uids(&before));
}

#[test]
fn an_image_that_is_missing_goes_back() {
    goes_back("back-missing", Workload::new("web", "missing:1"), &["ErrImagePull", "ImagePullBackOff"]);
}

#[test]
fn an_image_that_is_denied_goes_back() {
    goes_back("back-denied", Workload::new("web", "denied:1"), &["ErrImagePull", "ImagePullBackOff"]);
}

#[test]
fn an_image_whose_registry_fails_goes_back() {
    goes_back("back-failing", Workload::new("web", "failing:1"), &["ErrImagePull", "ImagePullBackOff"]);
}

#[test]
fn an_image_whose_name_is_none_goes_back() {
    goes_back("back-name", Workload::new("web", "App:2"), &["InvalidImageName"]);
}

#[test]
fn an_image_that_may_not_be_pulled_goes_back() {
    let bad = Workload::new("web", "app:never-pulled").has("imagePullPolicy: Never");
    goes_back("back-never-pulled", bad, &["ErrImageNeverPull"]);
}

// The ConfigMap is in each namespace, and has no such key.
#[test]
fn a_container_that_needs_a_missing_key_goes_back() {
    let bad = Workload::new("web", "app:2").shows("kube-root-ca.crt", "missing");
    goes_back("back-key", bad, &["CreateContainerConfigError"]);
}

#[test]
fn a_container_whose_command_is_missing_goes_back() {
    let bad = Workload::new("web", "app:2").has("command: [/nothing]");
    goes_back("back-command", bad, &["RunContainerError", "StartError", "CrashLoopBackOff"]);
}

// The third restart would end it too, and comes only after the back-off.
#[test]
fn a_crash_loop_goes_back_in_its_first_back_off() {
    let bad = Workload::new("web", "app:2").variable("READY_AFTER", "never").variable("CRASH_AFTER", "200ms");
    goes_back("back-crash", bad, &["CrashLoopBackOff"]);
}

#[test]
fn an_init_container_that_fails_goes_back() {
    goes_back("back-init", Workload::new("web", "app:2").init_exits(3), &["CrashLoopBackOff", "restart"]);
}

#[test]
fn a_container_that_takes_too_much_memory_goes_back() {
    goes_back("back-memory", Workload::new("web", "app:2").hogs_memory(), &["OOMKilled"]);
}

// The probe is what the Events say; the container itself ends well each time.
#[test]
fn a_container_that_its_liveness_probe_restarts_goes_back() {
    let bad = Workload::new("web", "app:2").probed_for_life();
    let bad = bad.variable("READY_AFTER", "never").variable("SICK_AFTER", "1s");
    goes_back("back-sick", bad, &["Liveness probe failed"]);
}

#[test]
fn a_pod_that_never_gets_ready_goes_back() {
    let bad = Workload::new("web", "app:2").variable("READY_AFTER", "never");
    let reasons = ["container main is running but not ready; Pod web-"];
    goes_back_within("back-never", &BUDGET.replace("deadline: 90s", "deadline: 30s"), bad, &reasons);
}
