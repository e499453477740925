//! Several replicas share the sources by Leases: one dies, sleeps or ends, and the others go on.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use controlplane::{AuditEvent, Fault, Requests, ResponseCut, Rule};
use jiff::Timestamp;
use serde_json::Value;

use crate::failures::{BOUNDS, BUDGET, await_image};
use crate::manifests::Web;
use crate::observer::Observer;
use crate::support::shares::holders;
use crate::support::{
    AuditWindow, DEFAULT_TIMEOUT, Daemon, MOVED, Repo, SHARED, TestNamespace, WritesByHolder, at,
    await_shares, eventually, in_time, shared_name, source,
};

const SOURCES: usize = 10;

/// The time for which a start counts.
const START_WINDOW: Duration = Duration::from_mins(1);

/// The most that two recorded times are off. A process reads an instant and the time one after the
/// other, and may be stopped in between.
const CLOCK_READING: Duration = Duration::from_millis(250);

/// A source each of which has one workload and one ConfigMap.
struct ReplicaFixture {
    repos: Vec<Repo>,
    text: String,
}

fn web(number: usize) -> String {
    format!("web-{number}")
}

fn files(number: usize, image: &str, content: &str) -> Vec<(String, String)> {
    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: env-{number}}}\ndata: {{key: \"{content}\"}}\n"
    );
    let web = Web::new(&web(number), image).fault("ready-delay: 300ms");
    vec![web.file(), (format!("env-{number}.yaml"), text)]
}

impl ReplicaFixture {
    fn new(site: &TestNamespace<'_>, settings: &str) -> Self {
        let repos: Vec<Repo> = (0..SOURCES).map(|number| Repo::new(&files(number, "app:1", "one"))).collect();
        let mut text =
            format!("apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\nleases: always\n{settings}\n");
        for (number, repo) in repos.iter().enumerate() {
            text.push_str("---\n");
            text.push_str(&source(&shared_name(number), &site.name, repo.path(), ""));
        }
        Self { repos, text }
    }

    fn push(&self, image: &str, content: &str) {
        for (number, repo) in self.repos.iter().enumerate() {
            for (file, text) in files(number, image, content) {
                repo.write(&file, &text);
            }
            repo.commit("Change all");
        }
    }
}

#[track_caller]
fn await_all(site: &TestNamespace<'_>, within: Duration, content: &str) {
    let deadline = Instant::now() + within;
    for number in 0..SOURCES {
        let left = deadline.saturating_duration_since(Instant::now());
        site.await_data_within(left, &format!("env-{number}"), "key", content);
    }
}

/// Returns two replicas, each with five sources, and each a user of its own.
fn two<'a>(name: &str) -> (TestNamespace<'a>, TestNamespace<'a>, ReplicaFixture, Daemon, Daemon)
where
    'static: 'a,
{
    two_within(name, BUDGET)
}

/// Does the same as [`two`], with a budget of its own.
fn two_within<'a>(
    name: &str,
    budget: &str,
) -> (TestNamespace<'a>, TestNamespace<'a>, ReplicaFixture, Daemon, Daemon)
where
    'static: 'a,
{
    let mut one = TestNamespace::new(name);
    let mut other = one.with_empty_state();
    one.known_as("one");
    other.known_as("other");
    let fixture = ReplicaFixture::new(&one, budget);
    let (first, second) = (one.configured(&fixture.text), other.configured(&fixture.text));
    await_shares(&one, SHARED, &[5, 5]);
    for number in 0..SOURCES {
        one.await_rollout(&web(number));
    }
    one.await_free_budget();
    (one, other, fixture, first, second)
}

/// Returns the source that a write is for: each object has its number, and so have its Events, its
/// ConfigMap and its Lease.
fn source_of(event: &AuditEvent) -> Option<String> {
    let object = event.name.split('.').next()?;
    let number = object.rsplit_once('-')?.1.parse::<usize>().ok()?;
    Some(shared_name(number))
}

/// Fails if one replica ever wrote for a source of the other, of whatever kind.
#[track_caller]
fn assert_only_holders_wrote(one: &TestNamespace<'_>, other: &TestNamespace<'_>) {
    let counts = WritesByHolder::by(one.cluster, [&one.user, &other.user]).judge(source_of);
    for resource in ["configmaps", "deployments", "events", "leases"] {
        assert!(counts.get(resource).is_some_and(|count| *count >= SOURCES), "{resource}: {counts:?}");
    }
}

#[test]
fn the_sources_of_a_killed_replica_move_on_and_the_budget_is_kept() {
    let (one, other, fixture, mut first, _second) = two("replica-killed");
    let observer = Observer::new(&one);
    fixture.push("app:2", "two");
    // In the middle of its rollouts.
    eventually("something rolls", SHARED, || {
        let rolls = (0..SOURCES).any(|number| one.data(&format!("env-{number}"), "key") == "two");
        if rolls { Ok(()) } else { Err("nothing does") }
    });
    first.kill();
    let killed = Instant::now();
    await_shares(&one, MOVED, &[10]);
    eprintln!("all Leases have moved after {:.1} s", killed.elapsed().as_secs_f32());
    // Until then the server may still take what the replica had sent.
    let silent = one.window();
    for number in 0..SOURCES {
        await_image(&one, &web(number), "app:2");
    }
    eprintln!("all is rolled out after {:.1} s", killed.elapsed().as_secs_f32());
    // Its claims are taken back, or the budget would never be free again.
    one.await_free_budget();
    let most = observer.judge(BOUNDS);
    assert!(most.workloads > 0, "{most:?} was seen");
    silent.assert_silent();
    assert_only_holders_wrote(&one, &other);
}

/// Returns the first write to each Deployment in these windows, the oldest first.
fn first_writes(windows: &[AuditWindow<'_>]) -> Vec<AuditEvent> {
    let mut all: Vec<AuditEvent> = windows.iter().flat_map(AuditWindow::writes).collect();
    all.retain(|event| event.resource == "deployments" && event.code < 300);
    all.sort_by_key(|event| event.timestamp);
    let mut seen = BTreeSet::new();
    all.retain(|event| seen.insert(event.name.clone()));
    all
}

/// Returns the starts that the rollout ledger has, each with the workload that it is of.
fn recorded_starts(site: &TestNamespace<'_>) -> Vec<(Timestamp, String)> {
    let budget = at("ConfigMap", &site.system(), "rollout-budget.rhumb.dev");
    let ledger = site.api.value(&budget, "/data/claims");
    let ledger: Value = serde_json::from_str(ledger.as_str().unwrap_or("{}")).unwrap();
    let text = |start: &Value, key: &str| start[key].as_str().unwrap().to_owned();
    let starts = ledger["starts"].as_array().into_iter().flatten();
    starts.map(|start| (text(start, "at").parse().unwrap(), text(start, "object"))).collect()
}

/// Fails if a write has no claim before it, or if three claims since this time are within the time
/// for which a start counts. A start counts from its claim. The workload is written after that, by
/// any time.
#[track_caller]
fn assert_starts_are_apart(
    site: &TestNamespace<'_>,
    begun: &[AuditEvent],
    claims: BTreeSet<(Timestamp, String)>,
    since: Timestamp,
) {
    let claims: Vec<(Timestamp, String)> = claims.into_iter().filter(|(at, _)| *at >= since).collect();
    for write in begun {
        let word = format!("Deployment.apps/{}/{}", site.name, write.name);
        let latest = write.timestamp + CLOCK_READING;
        let is_before = |claim: &(Timestamp, String)| claim.1 == word && claim.0 <= latest;
        assert!(claims.iter().any(is_before), "{word} has no claim before {}: {claims:#?}", write.timestamp);
    }
    for three in claims.windows(3) {
        let between = three[2].0.duration_since(three[0].0);
        let apart = between.unsigned_abs() + CLOCK_READING;
        assert!(apart >= START_WINDOW, "three in {between:#}: {claims:#?}");
    }
}

const TWO_STARTS: &str = "budget: {maxWorkloads: 9, maxUnavailable: 100%, startsPerMinute: 2, soak: 0s}";

#[test]
fn no_minute_has_more_claims_than_allowed_although_new_configurations_come_in_it() {
    let site = TestNamespace::new("reload-starts");
    let fixture = ReplicaFixture::new(&site, TWO_STARTS);
    let daemon = site.configured(&fixture.text);
    for number in 0..SOURCES {
        site.await_rollout(&web(number));
    }
    site.await_free_budget();
    let windows = [site.window()];
    let (mut claims, mut begun) = (BTreeSet::new(), Vec::new());
    let pushed = Timestamp::now();
    fixture.push("app:2", "one");
    for count in 1..=4 {
        in_time("so many rollouts begin", DEFAULT_TIMEOUT, || {
            begun = first_writes(&windows);
            claims.extend(recorded_starts(&site));
            if begun.len() >= count { Ok(()) } else { Err(format!("{} have begun", begun.len())) }
        });
        let newer = fixture.text.replace("maxWorkloads: 9", &format!("maxWorkloads: {}", 9 - count));
        std::fs::write(site.state.path().join("rhumb.yaml"), newer).unwrap();
        let mark = daemon.mark();
        daemon.signal("HUP");
        daemon.says_since(mark, &["new configuration: "]);
    }
    assert_starts_are_apart(&site, &begun, claims, pushed);
}

#[test]
fn no_minute_has_more_claims_than_allowed_although_leases_move_in_it() {
    let (one, other, fixture, mut first, mut second) = two_within("replica-starts", TWO_STARTS);
    let windows = [one.window(), other.window()];
    let mut claims = BTreeSet::new();
    let mut begun = |count: usize| {
        in_time("so many rollouts begin", DEFAULT_TIMEOUT, || {
            let begun = first_writes(&windows);
            // A start is kept for two minutes, which is longer than what lies between two looks.
            claims.extend(recorded_starts(&one));
            if begun.len() >= count { Ok(begun) } else { Err(format!("{} have begun", begun.len())) }
        })
    };
    let pushed = Timestamp::now();
    fixture.push("app:2", "one");
    // The one that began first is killed, and its sources go to the other.
    let killed = if begun(1)[0].user == one.user { &mut first } else { &mut second };
    killed.kill();
    await_shares(&one, MOVED, &[10]);
    let begun = begun(4);
    assert_starts_are_apart(&one, &begun, claims, pushed);
    assert_only_holders_wrote(&one, &other);
}

#[test]
fn a_commit_reaches_the_cluster_in_time_after_a_replica_was_killed() {
    let (one, other, fixture, mut first, _second) = two("replica-commit");
    first.kill();
    let killed = Instant::now();
    fixture.push("app:1", "two");
    await_all(&one, MOVED, "two");
    eprintln!("all commits are there after {:.1} s", killed.elapsed().as_secs_f32());
    assert_only_holders_wrote(&one, &other);
}

#[test]
fn a_replica_that_was_stopped_releases_at_once() {
    let (one, other, fixture, mut first, _second) = two("replica-ends");
    assert_eq!(first.stop().code(), Some(0));
    let ended = Instant::now();
    // It gave back what it held, so nobody has to wait until it runs out.
    let left = holders(&one);
    assert!(left.len() <= 1, "{left:?}");
    await_shares(&one, MOVED, &[10]);
    eprintln!("all Leases have moved after {:.1} s", ended.elapsed().as_secs_f32());
    fixture.push("app:1", "two");
    await_all(&one, SHARED, "two");
    eprintln!("all commits are there after {:.1} s", ended.elapsed().as_secs_f32());
    assert_only_holders_wrote(&one, &other);
}

#[test]
fn a_replica_that_is_stopped_while_it_writes_inventories_releases_its_sources_too() {
    let mut site = TestNamespace::new("replica-writes");
    let proxy = site.cluster.fault_proxy(23).unwrap();
    site.through(&proxy);
    let fixture = ReplicaFixture::new(&site, BUDGET);
    let mut daemon = site.configured(&fixture.text);
    await_shares(&site, SHARED, &[10]);
    await_all(&site, SHARED, "one");
    // A stop waits for some seconds, and writes each inventory once more.
    let slowly = Fault::Delay(Duration::from_millis(600), Duration::from_millis(600));
    let inventories = format!("/namespaces/{}/configmaps/source-", site.system());
    let rule = proxy.add(Rule::new(Requests::any().method("PATCH").path_contains(&inventories), slowly));
    fixture.push("app:1", "two");
    eventually("an inventory is being written", SHARED, || {
        if proxy.hits(rule).fired > 0 { Ok(()) } else { Err("none is") }
    });
    assert_eq!(daemon.stop().code(), Some(0));
    let left = holders(&site);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_replica_that_slept_longer_than_its_leases_writes_nothing() {
    let (one, other, fixture, first, _second) = two("replica-sleeps");
    first.signal("STOP");
    await_shares(&one, MOVED, &[10]);
    // Until then the server may still take what the replica had sent.
    let window = one.window();
    // Both would write this, and undo that.
    fixture.push("app:1", "two");
    await_all(&one, SHARED, "two");
    let mark = first.mark();
    first.signal("CONT");
    first.says_since(mark, &["lost the Lease of the source"]);
    window.assert_silent();
    // It is given its share again, by and by, and serves that.
    await_shares(&one, SHARED, &[5, 5]);
    fixture.push("app:1", "three");
    await_all(&one, SHARED, "three");
    assert!(!window.all_writes().is_empty());
    assert_only_holders_wrote(&one, &other);
}

#[test]
fn an_api_server_that_is_away_ends_the_writes_and_not_the_loop() {
    let mut site = TestNamespace::new("replica-outage");
    let proxy = site.cluster.fault_proxy(17).unwrap();
    site.through(&proxy);
    let fixture = ReplicaFixture::new(&site, BUDGET);
    let daemon = site.configured(&fixture.text);
    await_shares(&site, SHARED, &[10]);
    await_all(&site, SHARED, "one");
    let mark = daemon.mark();
    proxy.add(Rule::new(Requests::any(), Fault::Refuse(ResponseCut::Reset)));
    proxy.end_open(&Requests::any(), ResponseCut::Reset);
    daemon.says_since(mark, &["the Lease of the source was not renewed in time"]);
    fixture.push("app:1", "two");
    proxy.clear();
    await_all(&site, SHARED, "two");
    await_shares(&site, SHARED, &[10]);
    let served = daemon.log().lines().skip(mark).filter(|line| line.contains("by Lease")).count();
    assert_eq!(served, 0);
}
