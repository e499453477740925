//! Two replicas that share sources which are in the cluster.

use std::time::{Duration, Instant};

use controlplane::{Fault, Requests, ResponseCut, Rule};
use serde_json::json;

use crate::customs::{HEAD, condition, custom, own};
use crate::support::{
    AuditWindow, Daemon, DedicatedCluster, MOVED, Repo, SHARED, TestNamespace, WritesByHolder, at,
    await_shares, eventually, shared_name, yaml,
};

const SOURCES: usize = 6;

#[track_caller]
fn await_all(site: &TestNamespace<'_>, within: Duration, repos: &[Repo], content: &str) {
    let deadline = Instant::now() + within;
    let left = || deadline.saturating_duration_since(Instant::now());
    for number in 0..SOURCES {
        site.await_data_within(left(), &format!("env-{number}"), "key", content);
    }
    for (number, repo) in repos.iter().enumerate() {
        // A healthy source is reported again after some seconds only.
        eventually(&format!("{number} is reported to be ready"), left() + Duration::from_secs(10), || {
            let found = condition(site, &shared_name(number), "Ready");
            let revision =
                site.api.value(&at("Source", &site.system(), &shared_name(number)), "/status/revision");
            let ready = found.starts_with("\"True\"") && revision == json!(repo.head());
            if ready { Ok(()) } else { Err(format!("{found} at {revision}")) }
        });
    }
}

#[test]
fn each_is_served_and_reported_by_its_holder_alone_and_moves_on_in_time() {
    let cluster = DedicatedCluster::bare();
    let (one, other) = known(&cluster);
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
    eprintln!("all is there, and reported, after {:.1} s", killed.elapsed().as_secs_f32());
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
    let counts = WritesByHolder::by(&cluster, [&one.user, &other.user]).judge(|event| {
        let object = event.name.split('.').next()?;
        Some(shared_name(object.rsplit_once('-')?.1.parse().ok()?))
    });
    for what in ["configmaps", "leases", "sources/status", "sources"] {
        assert!(counts.contains_key(what), "{what}: {counts:?}");
    }
}

/// Two sources in the cluster that go with all their objects, and two replicas. The first one has
/// the first source, the second one the other. One of them sees the cluster through a proxy.
struct ReplicaPair<'a> {
    site: TestNamespace<'a>,
    repos: Vec<Repo>,
    daemons: [Daemon; 2],
}

fn env(number: usize) -> String {
    format!("env-{number}")
}

impl<'a> ReplicaPair<'a> {
    fn new([one, other]: [&TestNamespace<'a>; 2]) -> Self {
        let content = |number| yaml::config_map(&env(number), "key", "one");
        let repos: Vec<Repo> = (0..2).map(|number| Repo::new(&[("a.yaml", content(number))])).collect();
        let configuration = format!("{HEAD}leases: always\n");
        let first = one.configured(&configuration);
        for (number, repo) in repos.iter().enumerate() {
            let spec =
                json!({"git": {"url": repo.path()}, "namespace": one.name, "deletionPolicy": "Delete"});
            one.api.create(&at("Source", &one.system(), ""), "people", &custom(&shared_name(number), &spec));
            one.await_data(&env(number), "key", "one");
        }
        await_shares(one, SHARED, &[2]);
        let second = other.configured(&configuration);
        await_shares(one, SHARED, &[1, 1]);
        Self { site: one.with_empty_state(), repos, daemons: [first, second] }
    }

    /// Deletes the first source, and waits until nothing is left of it, nor of its Lease.
    fn delete_first(&self) {
        let site = &self.site;
        let uid = |lease: serde_json::Value| lease["metadata"]["uid"].clone();
        let before = self.lease().map(uid);
        site.api.delete(&at("Source", &site.system(), &shared_name(0)));
        site.await_absence("ConfigMap", &env(0));
        // A replica that does not know it may have taken the next one before somebody looks.
        eventually("its Lease is gone", SHARED, || match self.lease().map(uid) {
            held if held.is_some() && held == before => Err("it is there"),
            _ => Ok(()),
        });
    }

    fn lease(&self) -> Option<serde_json::Value> {
        self.site.api.get(&at("Lease", &self.site.system(), "rhumb-source-0"))
    }

    fn await_no_lease(&self) {
        eventually("nobody has a Lease of what is gone", SHARED, || match self.lease() {
            None => Ok(()),
            Some(lease) => Err(lease["spec"].to_string()),
        });
    }

    /// Waits until a replica that does not know yet that the source is gone has its Lease.
    fn await_lease(&self) {
        eventually("somebody takes the Lease of what is gone", SHARED, || {
            self.lease().map(drop).ok_or("none")
        });
    }

    #[track_caller]
    fn assert_nothing_made(&self, window: &AuditWindow<'_>) {
        let made = window.to("configmaps", &env(0));
        assert!(made.is_empty() && !self.site.has("ConfigMap", &env(0)), "{made:#?}");
    }

    /// Waits until a loop serves that began after the Lease was taken.
    fn await_change(&self, content: &str) {
        self.repos[1].change("a.yaml", &yaml::config_map(&env(1), "key", content));
        self.site.await_data_within(SHARED, &env(1), "key", content);
    }
}

/// Returns two replicas, each of which the server knows by a name of its own.
fn known(cluster: &DedicatedCluster) -> (TestNamespace<'_>, TestNamespace<'_>) {
    let mut one = own(cluster);
    let mut other = one.with_empty_state();
    one.known_as("one");
    other.known_as("other");
    (one, other)
}

/// Returns the requests of the list of sources. A replica cut off from it hears of everything else.
fn lists() -> Requests {
    Requests::any().method("GET").path_suffix("/sources")
}

fn refused() -> Rule {
    Rule::new(lists(), Fault::Refuse(ResponseCut::Reset))
}

#[test]
fn whoever_takes_a_source_over_and_cannot_look_at_it_makes_nothing_anew() {
    let cluster = DedicatedCluster::bare();
    let (one, mut other) = known(&cluster);
    let proxy = cluster.fault_proxy(17).unwrap();
    other.through(&proxy);
    let pair = ReplicaPair::new([&one, &other]);
    let window = other.window();
    proxy.add(refused());
    pair.delete_first();
    // It knows that this source is to be served, and that nobody serves it.
    pair.await_lease();
    pair.await_change("two");
    assert!(pair.lease().is_some(), "it has heard that the source is gone");
    proxy.clear();
    pair.await_no_lease();
    pair.assert_nothing_made(&window);
}

#[test]
fn whoever_slept_while_a_source_was_served_to_its_end_makes_nothing_anew() {
    let cluster = DedicatedCluster::bare();
    let (mut one, other) = known(&cluster);
    let proxy = cluster.fault_proxy(17).unwrap();
    one.through(&proxy);
    let pair = ReplicaPair::new([&one, &other]);
    let window = one.window();
    let [first, _] = &pair.daemons;
    first.signal("STOP");
    await_shares(&one, MOVED, &[2]);
    pair.delete_first();
    proxy.add(refused());
    proxy.end_open(&lists(), ResponseCut::Reset);
    let mark = first.mark();
    first.signal("CONT");
    // Nobody holds it: the Lease is free, and yet not what it was.
    first.says_since(mark, &["lost the Lease of the source", "source-0"]);
    pair.await_lease();
    pair.await_change("two");
    proxy.clear();
    pair.await_no_lease();
    pair.assert_nothing_made(&window);
}
