//! The daemon with nothing to do: its memory, its calls, and what a look at everything costs.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use controlplane::Cluster;
use tempfile::TempDir;

use crate::api::Api;
use crate::bounds::Ratio;
use crate::corpus::{Corpus, KindMix};
use crate::numbers::{Times, ms};
use crate::options::{Options, Scenario};
use crate::program::{Daemon, Memory, Program};
use crate::repository::Repository;
use crate::table::{AimComparison, Table, progress};
use crate::{Outcome, block_on};

/// The user that the daemon is to the server.
pub(crate) const USER: &str = "rhumb";

/// The record of the last change is written this much later, once.
const RECORD_DELAY: Duration = Duration::from_secs(10);

/// The daemon's message after each resync, at debug level.
const RESYNCED: &str = "checked everything";

/// The interval of resyncs.
const RESYNC: Duration = Duration::from_secs(15);

/// The number of timed resyncs.
const RESYNC_COUNT: usize = 3;
/// The source, by a command or a configuration: what one process made is found by the next.
const NAME: &str = "default";

/// Measures S4 and S5 on one cluster with an audit log.
pub(crate) fn measure(options: &Options, table: &mut Table) -> Outcome<()> {
    let cluster = Cluster::builder().bare().audit().start()?;
    let corpus = Corpus::new("fleet", KindMix::Deployments, options.many);
    block_on(async {
        Api::connect(cluster.kubeconfig()).await?.make_namespaces(&corpus.namespaces()).await
    })?;
    let repository = Repository::new(corpus.manifests())?;
    let program = Program::new(&cluster.kubeconfig_for(USER)?)?;
    let source = repository.path().to_string_lossy().into_owned();
    let start = Instant::now();
    let daemon = program.daemon(&["run", &source, "--source", NAME])?;
    daemon.says("created", options.many, Duration::from_mins(15))?;
    progress(&format!("{} Deployments were made in {:.1} s", options.many, start.elapsed().as_secs_f64()));
    daemon.rests()?;
    if options.is_selected(Scenario::Idle) {
        idle(options, &cluster, daemon, &program, &source, table)?;
    } else {
        drop(daemon);
    }
    if options.is_selected(Scenario::Resync) {
        resync(options, &cluster, &program, &source, table)?;
    }
    Ok(())
}

fn idle(
    options: &Options,
    cluster: &Cluster,
    daemon: Daemon,
    program: &Program,
    source: &str,
    table: &mut Table,
) -> Outcome<()> {
    std::thread::sleep(RECORD_DELAY);
    let (cpu, before) = (daemon.cpu()?, calls(cluster)?);
    std::thread::sleep(options.idle);
    let spent = daemon.cpu()?.saturating_sub(cpu);
    let made = new_calls(&before, &calls(cluster)?);
    let after_apply = daemon.memory()?;
    drop(daemon);
    let daemon = program.daemon(&["run", source, "--source", NAME])?;
    daemon.says("read", 1, Duration::from_mins(1))?;
    daemon.rests()?;
    let after_start = daemon.memory()?;
    let what = |when: &str| format!("S4 memory at {} Deployments, {when}", options.many);
    let aim = |memory: Memory| AimComparison::of("≤ 32 MiB", memory.rss <= 32.0);
    table.judge(&what("having made them"), after_apply.to_string(), aim(after_apply));
    table.judge(&what("having found them"), after_start.to_string(), aim(after_start));
    for memory in [&after_apply, &after_start] {
        table.note_ratio(Ratio::IdleMemory, memory.rss / memory.file);
    }
    let (watches, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
        made.into_iter().partition(|(call, _)| call.starts_with("watch "));
    let renewed: usize = watches.values().sum();
    let measured = format!("{} {others:?} ({renewed} watches renewed)", others.values().sum::<usize>());
    let what = format!("S4 calls in {} s but watch renewals", options.idle.as_secs());
    table.judge(&what, measured, AimComparison::of("0", others.is_empty()));
    let share = 100.0 * spent.as_secs_f64() / options.idle.as_secs_f64().max(1.0);
    let aim = AimComparison::of("< 0.1 %", share < 0.1);
    table.judge("S4 processor time, of one core", format!("{share:.3} %"), aim);
    Ok(())
}

fn resync(
    options: &Options,
    cluster: &Cluster,
    program: &Program,
    source: &str,
    table: &mut Table,
) -> Outcome<()> {
    let folder = TempDir::new()?;
    let config = folder.path().join("rhumb.yaml");
    let version = "apiVersion: rhumb.dev/v1alpha1";
    let text = format!(
        "{version}\nkind: Configuration\nresync: {}s\n---\n{version}\nkind: Source\nmetadata:\n  name: {NAME}\n\
         spec:\n  git:\n    url: {source}\n",
        RESYNC.as_secs()
    );
    std::fs::write(&config, text)?;
    let daemon =
        program.daemon(&["run", "--config", &config.to_string_lossy(), "--log-level", "rhumb=debug"])?;
    daemon.says("read", 1, Duration::from_mins(1))?;
    daemon.rests()?;
    // Every second resync goes with an audit of the watches, which is no part of it: the first does
    // not.
    let before = calls(cluster)?;
    let seen = daemon.says(RESYNCED, 0, RESYNC)?.len();
    daemon.says(RESYNCED, seen + 1, RESYNC * 2)?;
    let made = new_calls(&before, &calls(cluster)?);
    let lines = daemon.says(RESYNCED, RESYNC_COUNT, RESYNC * 2 * RESYNC_COUNT as u32)?;
    let mut times = Vec::new();
    for line in &lines {
        let number = line.split("ms=").nth(1).and_then(|rest| rest.split_whitespace().next());
        let number: f64 = number.ok_or_else(|| format!("no time in {line:?}"))?.parse()?;
        times.push(Duration::from_secs_f64(number / 1e3));
    }
    let median = ms(Times::new(times).median());
    let aim = AimComparison::of("< 20 ms", median < 20.0);
    let what = format!("S5 resync of {} objects, nothing to do", options.many);
    table.judge(&what, format!("{median:.1} ms"), aim);
    let others: usize = made.values().sum();
    table.judge("S5 calls of a resync", format!("{others} {made:?}"), AimComparison::of("0", others == 0));
    Ok(())
}

/// Returns the calls of the daemon so far, by verb and resource.
pub(crate) fn calls(cluster: &Cluster) -> Outcome<BTreeMap<String, usize>> {
    let mut counts = BTreeMap::new();
    for event in cluster.audit()?.into_iter().filter(|event| event.user == USER) {
        let verb = if event.dry_run { "dry run" } else { &event.verb };
        *counts.entry(format!("{verb} {}", event.resource)).or_default() += 1;
    }
    Ok(counts)
}

/// Returns the calls between two counts.
pub(crate) fn new_calls(
    before: &BTreeMap<String, usize>,
    after: &BTreeMap<String, usize>,
) -> BTreeMap<String, usize> {
    let change = |(call, count): (&String, &usize)| (call.clone(), count - before.get(call).unwrap_or(&0));
    after.iter().map(change).filter(|(_, count)| *count > 0).collect()
}
