//! The process dies in the middle of a rollback.

use std::thread;

use controlplane::{Fault, FaultProxy, Requests, ResponseCut, Rule};
use serde_json::Value;

use crate::failures::{BOUNDS, BUDGET, await_image, await_rejection, push};
use crate::manifests::{Web, config};
use crate::observer::Observer;
use crate::processes::writes;
use crate::support::{AuditWindow, DEFAULT_TIMEOUT, Repo, TestNamespace, eventually, until};

/// Three workloads that belong together by their configuration.
const NAMES: [&str; 3] = ["a", "b", "web"];

/// A claim, the configuration, a workload, the claims of the others, and these: one less than it
/// takes.
const POINTS: u64 = 6;

fn unit(image: &str, web: &str, content: &str) -> Vec<(String, String)> {
    let one = |name: &str, image: &str| Web::new(name, image).uses("env").file();
    vec![one("a", image), one("b", image), one("web", web), config("env", content)]
}

/// Leaves a cluster with all of a bad commit, and its rejection recorded. Nothing has gone back
/// yet: the process that was to do that is dead.
fn rejected(site: &mut TestNamespace<'static>, repo: &Repo, text: &str) {
    let mut first = site.configured(text);
    for name in NAMES {
        site.await_rollout(name);
    }
    site.await_free_budget();
    first.kill();
    let proxy: FaultProxy = site.cluster.fault_proxy(1).unwrap();
    let env = || Requests::any().method("PATCH").path_suffix("/configmaps/env").query_lacks("dryRun");
    proxy.add(Rule::new(env(), Fault::Pass).times(1));
    let blocked = proxy.add(Rule::new(env(), Fault::Refuse(ResponseCut::Silence)));
    site.through(&proxy);
    push(repo, &unit("app:2", "app:broken", "two"), "Change all");
    let mut second = site.configured(text);
    await_rejection(site, &["back", "web"]);
    until("it begins to go back", || proxy.hits(blocked).fired > 0);
    second.kill();
}

fn generation(site: &TestNamespace<'_>, name: &str) -> u64 {
    site.value("Deployment", name, "/metadata/generation").as_u64().unwrap()
}

/// Returns the number of writes of one object that reached the server.
fn carried_out(window: &AuditWindow<'_>, resource: &str, name: &str) -> usize {
    window.to(resource, name).into_iter().filter(|event| event.code < 300).count()
}

/// Kills the process after so many writes of a rollback; the next process ends it.
fn killed_after(most: u64) {
    let direct = TestNamespace::new(&format!("back-{most}"));
    let repo = Repo::new(&unit("app:1", "app:1", "one"));
    let text = direct.configuration(repo.path(), BUDGET);
    rejected(&mut direct.with_empty_state(), &repo, &text);
    let mut site = direct.with_empty_state();
    let observer = Observer::new(&site);
    let (generations, window) = (NAMES.map(|name| generation(&site, name)), site.window());
    let proxy = site.cluster.fault_proxy(most).unwrap();
    proxy.add(Rule::new(writes(), Fault::Pass).times(most));
    proxy.add(Rule::new(writes(), Fault::Refuse(ResponseCut::Silence)));
    site.through(&proxy);
    let mut killed = site.configured(&text);
    eventually(&format!("{most} writes"), DEFAULT_TIMEOUT, || {
        let done = window.all_writes().len() as u64;
        if done >= most { Ok(()) } else { Err(format!("{done} are done")) }
    });
    killed.kill();
    let last = direct.configured(&text);
    for name in NAMES {
        await_image(&direct, name, "app:1");
    }
    direct.await_data("env", "key", "one");
    direct.await_free_budget();
    // Each is changed once, so none was ever given the rejected content again.
    for (name, before) in NAMES.into_iter().zip(generations) {
        assert_eq!(generation(&direct, name), before + 1, "{name}: {:#?}", window.to("deployments", name));
    }
    assert_eq!(carried_out(&window, "configmaps", "env"), 1);
    let rejected = direct.inventory().unwrap()["data"]["rejected"].clone();
    assert!(matches!(&rejected, Value::String(text) if text.contains("\"way\":\"back\"")), "{rejected}");
    observer.judge(BOUNDS);
    drop(last);
}

#[test]
fn killed_after_any_write_of_a_rollback_the_next_process_ends_it() {
    thread::scope(|scope| {
        for lane in 0..3 {
            scope.spawn(move || (1..=POINTS).filter(|most| most % 3 == lane).for_each(killed_after));
        }
    });
}
