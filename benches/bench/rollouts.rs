//! A commit that changes every workload: how long until all are rolled out, beside what the budget
//! allows.

use std::collections::{BTreeMap, VecDeque};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use controlplane::Cluster;
use serde_json::Value;

use crate::api::Api;
use crate::bounds::Ratio;
use crate::corpus::Manifest;
use crate::idle::{USER, calls, new_calls};
use crate::numbers::{Times, ratio};
use crate::options::Options;
use crate::program::{Daemon, Program, run};
use crate::repository::Repository;
use crate::table::{AimComparison, Table, progress};
use crate::{Outcome, block_on};

const NAMESPACE: &str = "fleet";
/// Workloads in flight at once.
const MAX_IN_FLIGHT: usize = 10;
/// The number of timed rollouts of one workload alone.
const ALONE: usize = 5;

/// Measures S7: a hundred workloads of three pods, beside kubectl, and many of one pod.
pub(crate) fn measure(options: &Options, table: &mut Table) -> Outcome<()> {
    let fleet = RolloutBench { count: options.rollouts, replicas: 3 };
    let (cluster, mut repository, program) = prepared(fleet)?;
    let daemon = daemon(&program, &repository)?;
    let what = format!("S7 {} Deployments of 3 pods, {MAX_IN_FLIGHT} at once", fleet.count);
    let alone = alone(fleet, &mut repository, &cluster, &daemon)?;
    let before = calls(&cluster)?;
    let rolled = rolled_out(&cluster, fleet, "all", |manifests| repository.push_all(manifests))?;
    daemon.rests()?;
    let mut made = new_calls(&before, &calls(&cluster)?);
    made.retain(|call, _| !call.starts_with("watch "));
    let ideal = ideal(fleet.count, MAX_IN_FLIGHT, alone);
    table.add(&format!("{what}: one alone"), seconds(alone));
    judge(table, &what, &rolled, ideal);
    let slots = rolled.lags(SlowStart::Yes);
    let lag = AimComparison::of("p50 ≤ 20 ms", slots.median() <= Duration::from_millis(20));
    table.judge(&format!("{what}: last pod ready → next start"), slots.spread(), lag);
    let each = made.values().sum::<usize>() as f64 / fleet.count as f64;
    table.add(&format!("{what}: calls for each, but watches"), format!("{each:.1} {made:?}"));
    drop(daemon);
    let loops = rolled_out(&cluster, fleet, "by-hand", |manifests| by_kubectl(&cluster, manifests))?;
    let lag = loops.lags(SlowStart::No);
    table.add(
        &format!("{what}: kubectl apply and rollout status, {MAX_IN_FLIGHT} at a time"),
        format!("{}; {}", seconds(loops.makespan()), lag.spread()),
    );
    let times = ratio(loops.makespan(), rolled.makespan());
    table.add(&format!("{what}: that loop beside rhumb"), format!("{times:.2} × as long"));
    drop(cluster);
    many(options, table)
}

fn many(options: &Options, table: &mut Table) -> Outcome<()> {
    let fleet = RolloutBench { count: options.rollouts * 10, replicas: 1 };
    let (cluster, mut repository, program) = prepared(fleet)?;
    let daemon = daemon(&program, &repository)?;
    let alone = alone(fleet, &mut repository, &cluster, &daemon)?;
    let rolled = rolled_out(&cluster, fleet, "all", |manifests| repository.push_all(manifests))?;
    let what = format!("S7 {} Deployments of 1 pod, {MAX_IN_FLIGHT} at once", fleet.count);
    let bound = ideal(fleet.count, MAX_IN_FLIGHT, alone);
    let share = ratio(rolled.makespan(), bound);
    let shown =
        format!("{}: {share:.2} × the budget's own bound {}", seconds(rolled.makespan()), seconds(bound));
    table.add(&format!("{what}: from the commit to the last"), shown);
    judge_most(table, &what, &rolled);
    Ok(())
}

fn judge(table: &mut Table, what: &str, rolled: &ObservedRollouts, ideal: Duration) {
    let share = ratio(rolled.makespan(), ideal);
    let shown = format!("{}: {share:.2} × the ideal {}", seconds(rolled.makespan()), seconds(ideal));
    table.judge(
        &format!("{what}: from the commit to the last"),
        shown,
        AimComparison::of("≤ 1.10 ×", share <= 1.10),
    );
    table.note_ratio(Ratio::RolloutTime, share);
    judge_most(table, what, rolled);
}

fn judge_most(table: &mut Table, what: &str, rolled: &ObservedRollouts) {
    let most = rolled.most();
    table.judge(
        &format!("{what}: most that were seen at once"),
        most.to_string(),
        AimComparison::of("≤ 10", most <= MAX_IN_FLIGHT),
    );
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Workloads that are alike.
#[derive(Clone, Copy)]
struct RolloutBench {
    count: usize,
    replicas: u32,
}

impl RolloutBench {
    fn manifests(self, version: &str) -> Vec<Manifest> {
        (0..self.count).map(|number| self.manifest(number, version)).collect()
    }

    fn manifest(self, number: usize, version: &str) -> Manifest {
        let name = format!("app-{number:04}");
        let replicas = self.replicas;
        let text = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n  namespace: {NAMESPACE}\nspec:\n  replicas: {replicas}\n  \
             selector:\n    matchLabels: {{app: {name}}}\n  template:\n    metadata:\n      labels: {{app: {name}}}\n      annotations:\n        \
             controlplane/ready-delay: 1s\n    spec:\n      containers:\n      - name: app\n        image: registry.example.org/app:{version}\n"
        );
        let url = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}");
        Manifest { file: format!("{name}.yaml"), url, text }
    }
}

/// Starts a cluster in which all is rolled out once.
fn prepared(fleet: RolloutBench) -> Outcome<(Cluster, Repository, Program)> {
    let cluster = Cluster::builder().nodes(5).audit().start()?;
    block_on(async {
        Api::connect(cluster.kubeconfig()).await?.make_namespaces(&[NAMESPACE.to_owned()]).await
    })?;
    let repository = Repository::new(fleet.manifests("first").into_iter())?;
    let program = Program::new(&cluster.kubeconfig_for(USER)?)?;
    Ok((cluster, repository, program))
}

fn daemon(program: &Program, repository: &Repository) -> Outcome<Daemon> {
    let version = "apiVersion: rhumb.dev/v1alpha1";
    let budget =
        format!("{{maxWorkloads: {MAX_IN_FLIGHT}, maxUnavailable: 100%, startsPerMinute: 6000, soak: 0s}}");
    let text = format!(
        "{version}\nkind: Configuration\nbudget: {budget}\n---\n{version}\nkind: Source\nmetadata: {{name: default}}\nspec:\n  git: {{url: {}}}\n",
        repository.path().display()
    );
    let config = repository.path().with_extension("yaml");
    std::fs::write(&config, text)?;
    program.daemon(&["run", "--config", &config.to_string_lossy()])
}

/// Returns the duration of one workload's rollout, from its first to its last event: the median of
/// some.
fn alone(
    fleet: RolloutBench,
    repository: &mut Repository,
    cluster: &Cluster,
    daemon: &Daemon,
) -> Outcome<Duration> {
    daemon.says("created", fleet.count, Duration::from_mins(10))?;
    daemon.rests()?;
    let mut times = Vec::new();
    for number in 0..ALONE.min(fleet.count) {
        let one = |_: &[Manifest]| repository.push(&fleet.manifest(number, "alone"));
        let rolled = watched(cluster, fleet, 1, "alone", one)?;
        times.extend(
            rolled
                .completed
                .iter()
                .zip(&rolled.begun)
                .map(|(completed, begun)| completed.1.duration_since(begun.1)),
        );
        daemon.rests()?;
    }
    let alone = Times::new(times).median();
    progress(&format!("one Deployment of {} is rolled out in {}", fleet.replicas, seconds(alone)));
    Ok(alone)
}

fn rolled_out(
    cluster: &Cluster,
    fleet: RolloutBench,
    version: &str,
    release: impl FnOnce(&[Manifest]) -> Outcome<Instant>,
) -> Outcome<ObservedRollouts> {
    let rolled = watched(cluster, fleet, fleet.count, version, release)?;
    progress(&format!("{} Deployments of {}: {}", fleet.count, fleet.replicas, seconds(rolled.makespan())));
    Ok(rolled)
}

/// The rollouts that an observer saw.
struct ObservedRollouts {
    released: Instant,
    /// In the order in which they began, and became complete.
    begun: Vec<(String, Instant)>,
    completed: Vec<(String, Instant)>,
}

/// Indicates whether a rollout begins with few at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SlowStart {
    Yes,
    No,
}

impl ObservedRollouts {
    fn makespan(&self) -> Duration {
        self.completed.last().map_or(Duration::ZERO, |(_, last)| last.duration_since(self.released))
    }

    /// Returns the most workloads that rolled at the same time.
    fn most(&self) -> usize {
        let begun = self.begun.iter().map(|(_, at)| (*at, 1_isize));
        let mut changes: Vec<(Instant, isize)> =
            begun.chain(self.completed.iter().map(|(_, at)| (*at, -1))).collect();
        changes.sort();
        let mut now = 0;
        let most = changes.into_iter().map(|(_, change)| {
            now += change;
            now
        });
        most.max().unwrap_or(0).unsigned_abs()
    }

    /// Returns the times from the end of each rollout to the start of the next one that it makes
    /// room for. During a slow start it makes room for a second one too.
    fn lags(&self, slow: SlowStart) -> Times {
        let mut free: VecDeque<Instant> = VecDeque::new();
        let mut window = if slow == SlowStart::Yes { 1 } else { MAX_IN_FLIGHT };
        let mut ends = self.completed.iter().map(|(_, at)| *at).peekable();
        let mut lags = Vec::new();
        for (_, start) in self.begun.iter().skip(window) {
            while let Some(end) = ends.next_if(|end| end <= start) {
                free.push_back(end);
                if window < MAX_IN_FLIGHT {
                    window += 1;
                    free.push_back(end);
                }
            }
            lags.extend(free.pop_front().map(|end| start.duration_since(end)));
        }
        Times::new(lags)
    }
}

/// Watches the workloads from before a release until all have the new version and are complete.
fn watched(
    cluster: &Cluster,
    fleet: RolloutBench,
    count: usize,
    version: &str,
    release: impl FnOnce(&[Manifest]) -> Outcome<Instant>,
) -> Outcome<ObservedRollouts> {
    let image = format!("registry.example.org/app:{version}");
    let api = block_on(Api::connect(cluster.kubeconfig()))?;
    let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments");
    let mut watch = block_on(api.watch(&path))?;
    let released = release(&fleet.manifests(version))?;
    let mut rolled = ObservedRollouts { released, begun: Vec::new(), completed: Vec::new() };
    let mut states: BTreeMap<String, bool> = BTreeMap::new();
    while rolled.completed.len() < count {
        let object = block_on(watch.object())?;
        let now = Instant::now();
        let at = |pointer: &str| object.pointer(pointer);
        if at("/spec/template/spec/containers/0/image").and_then(Value::as_str) != Some(&image) {
            continue;
        }
        let name = at("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let is_complete = is_available(&object, fleet.replicas);
        match states.insert(name.clone(), is_complete) {
            None => rolled.begun.push((name, now)),
            Some(false) if is_complete => rolled.completed.push((name, now)),
            Some(_) => {}
        }
    }
    Ok(rolled)
}

fn is_available(object: &Value, replicas: u32) -> bool {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let all = ["replicas", "updatedReplicas", "availableReplicas"];
    number("/status/observedGeneration") >= number("/metadata/generation")
        && all.iter().all(|field| number(&format!("/status/{field}")) == u64::from(replicas))
}

/// Returns the ideal duration of `count` rollouts of the same length, as the budget lets them
/// begin. That is one at first, one more with each success, and never more than `most`.
fn ideal(count: usize, most: usize, alone: Duration) -> Duration {
    let (mut left, mut window, mut time) = (count, 1, Duration::ZERO);
    while left > 0 {
        let wave = window.min(left);
        left -= wave;
        time += alone;
        window = (window + wave).min(most);
    }
    time
}

/// Rolls out as a script does it: each workload is applied and waited for, some at a time.
fn by_kubectl(cluster: &Cluster, manifests: &[Manifest]) -> Outcome<Instant> {
    let folder = tempfile::TempDir::new()?;
    manifests.iter().try_for_each(|manifest| manifest.write(folder.path()))?;
    let kubectl = cluster.programs().join("kubectl");
    let script = format!(
        "ls | xargs -P {MAX_IN_FLIGHT} -I{{}} sh -c '\"$0\" apply --server-side --force-conflicts -f {{}} && \
         \"$0\" -n {NAMESPACE} rollout status -f {{}}' \"$KUBECTL\""
    );
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", &script]).current_dir(folder.path()).stdin(Stdio::null());
    command.env("KUBECTL", kubectl).env("KUBECONFIG", cluster.kubeconfig());
    let begun = Instant::now();
    // The observer goes on meanwhile; a loop that fails never comes to its end.
    thread::spawn(move || {
        let _folder = folder;
        if let Err(error) = run(command, &[0]) {
            progress(&format!("the loop of kubectl failed: {error}"));
        }
    });
    Ok(begun)
}
