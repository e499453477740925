//! One budget over all processes: what one of them sees counts for all, and what has begun is never
//! forgotten.

use std::time::Instant;

use serde_json::{Value, json};

use crate::failures::{BOUNDS, BUDGET, IMAGE, await_image, push};
use crate::manifests::Web;
use crate::observer::Observer;
use crate::support::{DEFAULT_TIMEOUT, Repo, TestNamespace, at, eventually, source, until};

fn files(names: &[&str], image: &str) -> Vec<(String, String)> {
    names.iter().map(|name| Web::new(name, image).file()).collect()
}

fn configuration(site: &TestNamespace<'_>, name: &str, repo: &Repo, budget: &str) -> String {
    let source = source(name, &site.name, repo.path(), "");
    format!("apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\n{budget}\n---\n{source}")
}

fn budget_text(site: &TestNamespace<'_>) -> String {
    let budget = at("ConfigMap", &site.system(), "rollout-budget.rhumb.dev");
    site.api.value(&budget, "/data/claims").as_str().unwrap_or_default().to_owned()
}

/// Returns the paths of the pods of a workload.
fn pods_of(site: &TestNamespace<'_>, name: &str) -> Vec<String> {
    let all = site.api.list(&site.at("Pod", ""));
    let names = all.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned());
    names.filter(|pod| pod.starts_with(&format!("{name}-"))).map(|pod| site.at("Pod", &pod)).collect()
}

fn is_new(site: &TestNamespace<'_>, name: &str) -> bool {
    site.value("Deployment", name, IMAGE) == json!("app:2")
}

#[test]
fn pods_that_crash_under_another_daemon_hold_a_rollout_up() {
    let site = TestNamespace::new("shared-sick");
    let (one, two) = (Repo::new(&files(&["a", "b"], "app:1")), Repo::new(&files(&["sick"], "app:1")));
    let other = site.with_empty_state();
    let _daemon = site.configured(&configuration(&site, "shared-sick-one", &one, BUDGET));
    let mut theirs = other.configured(&configuration(&site, "shared-sick-other", &two, BUDGET));
    for name in ["a", "b", "sick"] {
        site.await_rollout(name);
    }
    site.await_free_budget();
    let observer = Observer::new(&site);
    let sick: Vec<String> = pods_of(&site, "sick").into_iter().take(2).collect();
    for pod in &sick {
        site.api.merge(pod, "setup", &json!({"metadata": {"annotations": {"controlplane/crash": "true"}}}));
    }
    eventually("it is reported", DEFAULT_TIMEOUT, || {
        let ledger = budget_text(&site);
        let pods = r#""unavailable":{"Deployment.apps/shared-sick/sick":2}"#;
        if ledger.contains(pods) { Ok(()) } else { Err(ledger) }
    });
    // Nobody serves them any more, and they count all the same.
    theirs.kill();
    push(&one, &files(&["a", "b"], "app:2"), "Change all");
    let waits = "2 pods of Deployment shared-sick/sick of source shared-sick-other are unavailable";
    eventually("it is reported why nothing rolls", DEFAULT_TIMEOUT, || {
        let why = site.rhumb(&["why", "deploy/a"]).all();
        if why.contains(waits) { Ok(()) } else { Err(why) }
    });
    assert!(!is_new(&site, "a") && !is_new(&site, "b"));
    site.rhumb(&["rollout", "status"]).says(&["which may take down 2 pods"]);
    // New ones take their place, which no event reports either: they are looked at.
    for pod in &sick {
        site.api.delete(pod);
    }
    for name in ["a", "b"] {
        await_image(&site, name, "app:2");
    }
    assert_eq!(observer.judge(BOUNDS).pods, 2);
}

/// The workloads of two daemons. A tenth of all their pods is two, and of those of either one.
const OURS: [&str; 4] = ["a", "b", "c", "d"];
const THEIRS: [&str; 4] = ["u", "v", "w", "x"];

#[test]
fn a_percentage_is_of_the_pods_of_all_daemons_and_bounds_their_sum() {
    let site = TestNamespace::new("shared-percent");
    let budget = "budget: {maxWorkloads: 9, maxUnavailable: 10%, startsPerMinute: 1000, soak: 0s}";
    let (one, two) = (Repo::new(&files(&OURS, "app:1")), Repo::new(&files(&THEIRS, "app:1")));
    let other = site.with_empty_state();
    let _both = (
        site.configured(&configuration(&site, "shared-percent-one", &one, budget)),
        other.configured(&configuration(&site, "shared-percent-other", &two, budget)),
    );
    for name in OURS.iter().chain(&THEIRS) {
        site.await_rollout(name);
    }
    site.await_free_budget();
    let observer = Observer::new(&site);
    let pods: Vec<String> = pods_of(&site, "u").into_iter().take(2).collect();
    let crash = |nth: usize| {
        let change = json!({"metadata": {"annotations": {"controlplane/crash": "true"}}});
        site.api.merge(&pods[nth], "setup", &change);
        let expected = format!(r#""unavailable":{{"Deployment.apps/shared-percent/u":{}}}"#, nth + 1);
        eventually("it is reported", DEFAULT_TIMEOUT, || {
            let ledger = budget_text(&site);
            if ledger.contains(&expected) { Ok(()) } else { Err(ledger) }
        });
    };
    // A tenth of its own pods would be used up by that one, and it may take down another one.
    crash(0);
    push(&one, &files(&["a"], "app:2"), "Change one");
    await_image(&site, "a", "app:2");
    site.await_free_budget();
    crash(1);
    push(&one, &files(&["b"], "app:2"), "Change another");
    push(&two, &files(&["v"], "app:2"), "Change one");
    for name in ["b", "v"] {
        eventually("it is reported why it waits", DEFAULT_TIMEOUT, || {
            let why = site.rhumb(&["why", &format!("deploy/{name}")]).all();
            if why.contains("2 of at most 2 pods are unavailable") { Ok(()) } else { Err(why) }
        });
    }
    assert!(!is_new(&site, "b") && !is_new(&site, "v"));
    // New ones take their place, and all goes on.
    for pod in &pods {
        site.api.delete(pod);
    }
    for name in ["b", "v"] {
        await_image(&site, name, "app:2");
    }
    assert_eq!(observer.judge(BOUNDS).pods, 2);
}

/// Workloads, so many that the last one waits for longer than the test takes on a busy machine.
const NINE: [&str; 9] = ["a", "b", "c", "d", "e", "f", "g", "h", "web"];

/// Reloads three times, kills once and adds a second daemon, all within a minute.
#[test]
fn starts_of_a_minute_are_counted_over_reloads_kills_and_daemons() {
    let site = TestNamespace::new("shared-starts");
    let budget = "budget: {maxWorkloads: 9, maxUnavailable: 100%, startsPerMinute: 2, soak: 0s}";
    let (one, two) = (Repo::new(&files(&NINE, "app:1")), Repo::new(&files(&["u", "v"], "app:1")));
    let text = configuration(&site, "shared-starts-one", &one, budget);
    let other = site.with_empty_state();
    let mut daemon = site.configured(&text);
    let _theirs = other.configured(&configuration(&site, "shared-starts-other", &two, budget));
    for name in NINE.iter().chain(&["u", "v"]) {
        site.await_rollout(name);
    }
    site.await_free_budget();
    let begun = Instant::now();
    push(&one, &files(&NINE, "app:2"), "Change all");
    // On a slow machine more than a minute may have passed.
    let most = || 2 + 2 * (begun.elapsed().as_secs() / 60) as usize;
    let new = || NINE.iter().chain(&["u", "v"]).filter(|name| is_new(&site, name)).count();
    let waits_for_a_minute = |name: &str| {
        eventually("it waits for the minute to pass", DEFAULT_TIMEOUT, || {
            let why = site.rhumb(&["why", &format!("deploy/{name}")]).all();
            if why.contains("2 rollouts have started in the last minute") { Ok(()) } else { Err(why) }
        });
    };
    until("two have begun", || new() >= 2);
    waits_for_a_minute("web");
    push(&two, &files(&["u", "v"], "app:2"), "Change all");
    waits_for_a_minute("v");
    for reload in 0..3 {
        // A new configuration differs, or nothing would begin anew.
        let changed = text.replace("maxWorkloads: 9", &format!("maxWorkloads: {}", 10 + reload));
        let mark = daemon.mark();
        std::fs::write(site.state.path().join("rhumb.yaml"), changed).unwrap();
        daemon.signal("HUP");
        daemon.says_since(mark, &["configuration"]);
        waits_for_a_minute("web");
        assert!(new() <= most(), "{} after {reload} reloads", new());
    }
    daemon.kill();
    let _third = site.configured(&text);
    waits_for_a_minute("web");
    assert!(new() <= most(), "{} after a kill", new());
}

/// Returns what `rhumb status` says without a daemon.
fn status_of(site: &TestNamespace<'_>) -> Value {
    serde_json::from_str(&site.rhumb(&["status", "-o", "json"]).stdout).unwrap()
}

#[test]
fn what_an_apply_has_left_behind_is_waited_for_and_counts_no_longer_than_it_rolls() {
    let site = TestNamespace::new("shared-once");
    // It rolls for longer than the commands take that are to see it roll.
    let slow = |image: &str| vec![Web::new("slow", image).fault("ready-delay: 6s").file()];
    let (one, two) = (Repo::new(&slow("app:1")), Repo::new(&files(&["web"], "app:1")));
    site.apply(one.path(), &["--wait"]).ends(0);
    let other = |repo: &Repo, flags: &[&str]| {
        let mut command = site.bare_command();
        command
            .arg("apply")
            .arg(repo.path())
            .args(["--source", "shared-once-other", "-n", &site.name])
            .args(flags);
        crate::support::run(command)
    };
    other(&two, &["--wait"]).ends(0);
    push(&one, &slow("app:2"), "Change it");
    push(&two, &files(&["web"], "app:2"), "Change it");
    let observer = Observer::new(&site);
    site.apply(one.path(), &[]).ends(0);
    let status = site.rhumb(&["rollout", "status"]).all();
    assert!(
        status.contains("source shared-once, process ") && status.contains("which has ended"),
        "{status}"
    );
    let rollout = &status_of(&site)["rollout"];
    assert_eq!(rollout["workloads"]["used"], 1, "{rollout}");
    let holder = rollout["rolling"][0]["holder"].as_str().unwrap_or_default();
    assert!(holder.contains("which has ended"), "{rollout}");
    // It waits in the queue, and has its turn soon after that rollout is over.
    other(&two, &["--wait=3m"]).ends(0);
    assert!(is_new(&site, "slow") && is_new(&site, "web"));
    site.rhumb(&["rollout", "status"])
        .ends(0)
        .says(&["rollout budget: 0 workloads rolling out, which may take down 0 pods"]);
    // The claim of the first command is still recorded, and `status` leaves it out too.
    let rollout = &status_of(&site)["rollout"];
    assert_eq!((&rollout["workloads"]["used"], &rollout["unavailable"]["used"]), (&json!(0), &json!(0)));
    let most = observer.judge(BOUNDS);
    assert_eq!((most.workloads, most.pods), (1, 1));
}
