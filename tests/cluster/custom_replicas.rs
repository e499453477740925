//! Two replicas that share sources which stand in the cluster.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::customs::{HEAD, condition, custom, own};
use crate::support::{Held, MOVED, Own, Repo, SHARED, Site, at, await_shares, eventually, shared_name, yaml};

const SOURCES: usize = 6;

#[track_caller]
fn await_all(site: &Site<'_>, within: Duration, repos: &[Repo], content: &str) {
    let deadline = Instant::now() + within;
    let left = || deadline.saturating_duration_since(Instant::now());
    for number in 0..SOURCES {
        site.await_data_within(left(), &format!("env-{number}"), "key", content);
    }
    for (number, repo) in repos.iter().enumerate() {
        // What is well is told so again after some seconds only.
        eventually(&format!("{number} is told to be ready"), left() + Duration::from_secs(10), || {
            let found = condition(site, &shared_name(number), "Ready");
            let revision =
                site.api.value(&at("Source", &site.system(), &shared_name(number)), "/status/revision");
            let ready = found.starts_with("\"True\"") && revision == json!(repo.head());
            if ready { Ok(()) } else { Err(format!("{found} at {revision}")) }
        });
    }
}

#[test]
fn each_is_served_and_told_of_by_its_holder_alone_and_moves_on_in_time() {
    let cluster = Own::bare();
    let mut one = own(&cluster);
    let mut other = one.with_empty_state();
    one.known_as("one");
    other.known_as("other");
    let content = |number: usize, text: &str| yaml::config_map(&format!("env-{number}"), "key", text);
    let repos: Vec<Repo> =
        (0..SOURCES).map(|number| Repo::new(&[("a.yaml", content(number, "one"))])).collect();
    let configuration = format!("{HEAD}leases: always\n");
    let (mut first, _second) = (one.configured(&configuration), other.configured(&configuration));
    for (number, repo) in repos.iter().enumerate() {
        let policy = if number == 0 { "Delete" } else { "Orphan" };
        let spec = json!({"git": {"url": repo.path()}, "namespace": one.name, "deletionPolicy": policy});
        one.api.create(&at("Source", &one.system(), ""), "people", &custom(&shared_name(number), &spec));
    }
    await_shares(&one, SHARED, &[SOURCES / 2, SOURCES / 2]);
    await_all(&one, SHARED, &repos, "one");
    first.kill();
    let killed = Instant::now();
    let window = one.window();
    for (number, repo) in repos.iter().enumerate() {
        repo.change("a.yaml", &content(number, "two"));
    }
    await_all(&one, MOVED, &repos, "two");
    eprintln!("all is there, and told, after {:.1} s", killed.elapsed().as_secs_f32());
    await_shares(&one, MOVED, &[SOURCES]);
    window.assert_silent();
    one.api.delete(&at("Source", &one.system(), &shared_name(0)));
    one.await_absence("ConfigMap", "env-0");
    eventually("nobody has a Lease of what is gone", SHARED, || {
        match one.api.get(&at("Lease", &one.system(), "rhumb-source-0")) {
            None => Ok(()),
            Some(lease) => Err(lease["spec"].to_string()),
        }
    });
    let counts = Held::by(&cluster, [&one.user, &other.user]).judge(|event| {
        let object = event.name.split('.').next()?;
        Some(shared_name(object.rsplit_once('-')?.1.parse().ok()?))
    });
    for what in ["configmaps", "leases", "sources/status", "sources"] {
        assert!(counts.contains_key(what), "{what}: {counts:?}");
    }
}
