//! The process dies, or there are two of it: the budget holds all the same.

use std::thread;

use controlplane::{Fault, Requests, ResponseCut, Rule};

use crate::failures::{BOUNDS, BUDGET, await_image, await_rejection, push};
use crate::manifests::{Web, config};
use crate::observer::Observer;
use crate::replay::Bounds;
use crate::support::{DEFAULT_TIMEOUT, Repo, TestNamespace, eventually, source};

pub(crate) const FIVE: [&str; 5] = ["a", "b", "c", "d", "web"];

fn five(image: &str, web: &str, content: &str) -> Vec<(String, String)> {
    let others = FIVE[..4].iter().map(|name| Web::new(name, image).file());
    others.chain([Web::new("web", web).uses("env").file(), config("env", content)]).collect()
}

pub(crate) fn writes() -> Requests {
    let methods = ["POST", "PUT", "PATCH", "DELETE"].into_iter();
    // Events about them change nothing.
    methods.fold(Requests::any(), Requests::method).query_lacks("dryRun").path_lacks("/events")
}

/// Kills the process after so many writes of a rollout that fails in one of its workloads; the next
/// process ends it.
fn killed_after(most: u64) {
    let mut site = TestNamespace::new(&format!("killed-{most}"));
    let repo = Repo::new(&five("app:1", "app:1", "one"));
    let text = site.configuration(repo.path(), BUDGET);
    let mut first = site.configured(&text);
    for name in FIVE {
        site.await_rollout(name);
    }
    site.await_free_budget();
    first.kill();
    let observer = Observer::new(&site);
    let (direct, window) = (site.with_empty_state(), site.window());
    let proxy = site.cluster.fault_proxy(most).unwrap();
    proxy.add(Rule::new(writes(), Fault::Pass).times(most));
    proxy.add(Rule::new(writes(), Fault::Refuse(ResponseCut::Silence)));
    site.through(&proxy);
    push(&repo, &five("app:2", "app:broken", "two"), "Change all");
    let mut second = site.configured(&text);
    eventually(&format!("{most} writes"), DEFAULT_TIMEOUT, || {
        let done = window.all_writes().len() as u64;
        if done >= most { Ok(()) } else { Err(format!("{done} are done")) }
    });
    second.kill();
    let third = direct.configured(&text);
    await_rejection(&direct, &["web"]);
    for name in &FIVE[..4] {
        await_image(&direct, name, "app:2");
    }
    await_image(&direct, "web", "app:1");
    direct.await_data("env", "key", "one");
    direct.await_free_budget();
    let most = observer.judge(BOUNDS);
    assert!(most.pods > 0, "{most:?} was seen");
    drop(third);
}

#[test]
fn killed_after_any_write_the_budget_holds_and_the_next_process_goes_on() {
    thread::scope(|scope| {
        for lane in 0..3 {
            scope.spawn(move || (1..=12).filter(|most| most % 3 == lane).for_each(killed_after));
        }
    });
}

/// Runs two daemons with one system namespace.
#[test]
fn two_daemons_with_different_sources_keep_one_budget() {
    let site = TestNamespace::new("two-different");
    let files = |names: &[&str], image: &str| -> Vec<(String, String)> {
        names.iter().map(|name| Web::new(name, image).fault("ready-delay: 300ms").file()).collect()
    };
    let (one, two) = (Repo::new(&files(&FIVE[..3], "app:1")), Repo::new(&files(&FIVE[3..], "app:1")));
    let budget = BUDGET.replace("maxWorkloads: 2", "maxWorkloads: 1");
    let configuration = |name: &str, repo: &Repo| {
        let source = source(name, &site.name, repo.path(), "");
        format!("apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\n{budget}\n---\n{source}")
    };
    let other = site.with_empty_state();
    let _both = (
        site.configured(&configuration("two-one", &one)),
        other.configured(&configuration("two-other", &two)),
    );
    for name in FIVE {
        site.await_rollout(name);
    }
    site.await_free_budget();
    let observer = Observer::new(&site);
    push(&one, &files(&FIVE[..3], "app:2"), "Change all");
    push(&two, &files(&FIVE[3..], "app:2"), "Change all");
    for name in FIVE {
        await_image(&site, name, "app:2");
    }
    site.await_free_budget();
    let most = observer.judge(Bounds { workloads: 1, pods: 1 });
    assert_eq!((most.workloads, most.pods), (1, 1));
}

/// Runs the same daemon twice, as by mistake or while one replaces the other.
#[test]
fn two_daemons_with_the_same_source_keep_one_budget() {
    let site = TestNamespace::new("two-same");
    let files = |image: &str| -> Vec<(String, String)> {
        FIVE.iter().map(|name| Web::new(name, image).fault("ready-delay: 300ms").file()).collect()
    };
    let repo = Repo::new(&files("app:1"));
    let text = site.configuration(repo.path(), &BUDGET.replace("maxWorkloads: 2", "maxWorkloads: 1"));
    let other = site.with_empty_state();
    let _both = (site.configured(&text), other.configured(&text));
    for name in FIVE {
        site.await_rollout(name);
    }
    site.await_free_budget();
    let observer = Observer::new(&site);
    push(&repo, &files("app:2"), "Change all");
    for name in FIVE {
        await_image(&site, name, "app:2");
    }
    site.await_free_budget();
    let most = observer.judge(Bounds { workloads: 1, pods: 1 });
    assert_eq!((most.workloads, most.pods), (1, 1));
}
