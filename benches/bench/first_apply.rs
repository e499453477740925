//! The first apply of a directory, beside the same writes made beforehand.

use std::cell::Cell;
use std::time::{Duration, Instant};

use controlplane::Cluster;
use futures::{StreamExt as _, stream};
use tempfile::TempDir;

use crate::api::{Api, Write, since};
use crate::bounds::Ratio;
use crate::corpus::{Corpus, KindMix};
use crate::numbers::{Times, ratio};
use crate::options::{Options, Scenario};
use crate::program::{Program, run};
use crate::repository::Repository;
use crate::table::{AimComparison, Table, progress};
use crate::{Outcome, block_on};

/// Writes in flight at once, as many as the program has by default.
const CONNECTIONS: usize = 8;

/// Measures the floor and S1, and leaves what was applied last.
pub(crate) fn measure(
    cluster: &Cluster,
    options: &Options,
    table: &mut Table,
) -> Outcome<Option<AppliedDirectory>> {
    let api = block_on(Api::connect(cluster.kubeconfig()))?;
    let count = options.few;
    // The first writes of a server are slower than all that follow.
    floor(&api, &Corpus::new("warm", KindMix::Apps, count / 4))?;
    let needed = options.is_selected(Scenario::FirstApply) || options.is_selected(Scenario::Diff);
    let (mut floors, mut firsts, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    let mut last = None;
    for round in 0..options.rounds {
        // In turn, and each first as often as the other.
        for turn in 0..2 {
            if (turn + round) % 2 == 0 {
                floors.push(floor(&api, &Corpus::new(&format!("floor{round}"), KindMix::Apps, count))?);
                progress(&format!("floor: {:.2} s", floors[floors.len() - 1].as_secs_f64()));
            } else if needed {
                let applied = apply(cluster, &api, &round.to_string(), count)?;
                progress(&format!(
                    "first apply: {:.2} s, calls {:?}",
                    applied.time.as_secs_f64(),
                    applied.calls
                ));
                firsts.push(applied.time);
                calls.push(applied.calls.values().sum::<u64>() as f64 / count as f64);
                last = Some(applied.place);
            }
        }
    }
    report(options, table, &Times::new(floors), Times::new(firsts), &calls);
    if options.is_selected(Scenario::FirstApply) {
        growth(cluster, &api, options, table)?;
    }
    Ok(last)
}

/// Measures what a first apply of few and of many objects takes of the processor, and the first
/// sync of a daemon.
fn growth(cluster: &Cluster, api: &Api, options: &Options, table: &mut Table) -> Outcome<()> {
    let of_many = Cell::new(Duration::ZERO);
    let applied = |name: &str, count| {
        let applied = apply(cluster, api, name, count)?;
        of_many.set(applied.time);
        Ok(applied.cpu)
    };
    let grows = compare("first apply", applied, options, table)?;
    table.note_ratio(Ratio::ApplyGrowth, grows);
    let floor = floor(api, &Corpus::new("floor-many", KindMix::Apps, options.many))?;
    let share = 100.0 / ratio(of_many.get(), floor);
    table.judge(
        &format!("S1 share of the floor, {} objects", options.many),
        format!("{share:.0} %, {:.1} s for {:.1} s", of_many.get().as_secs_f64(), floor.as_secs_f64()),
        AimComparison::of("≥ 90 %", share >= 90.0),
    );
    let synced = |name: &str, count| sync(cluster, api, name, count);
    let grows = compare("first sync of a daemon", synced, options, table)?;
    table.note_ratio(Ratio::SyncGrowth, grows);
    Ok(())
}

/// Compares the processor time for each object, of few and of many. Returns how much more it is.
fn compare(
    what: &str,
    measure: impl Fn(&str, usize) -> Outcome<Duration>,
    options: &Options,
    table: &mut Table,
) -> Outcome<f64> {
    let mut each = Vec::new();
    for (name, count) in [("few", options.few), ("many", options.many)] {
        let cpu = measure(name, count)?.as_secs_f64();
        let one = cpu * 1e3 / count as f64;
        table.add(
            &format!("S1 own processor time, {what} of {count}"),
            format!("{cpu:.2} s, {one:.2} ms each"),
        );
        each.push(one);
    }
    let grows = each[1] / each[0];
    table.judge(
        &format!("S1 time for each object, {what}, many compared with few"),
        format!("{grows:.2}"),
        AimComparison::of("≤ 1.3", grows <= 1.3),
    );
    Ok(grows)
}

/// Returns what a daemon takes of the processor until it has created all objects of a repository,
/// and rests.
fn sync(cluster: &Cluster, api: &Api, name: &str, count: usize) -> Outcome<Duration> {
    let name = format!("sync-{name}");
    let corpus = Corpus::new(&name, KindMix::Apps, count);
    block_on(api.make_namespaces(&corpus.namespaces()))?;
    let repository = Repository::new(corpus.manifests())?;
    let program = Program::new(&cluster.kubeconfig_for("rhumb")?)?;
    let start = Instant::now();
    let daemon = program.daemon(&["run", &repository.path().to_string_lossy(), "--source", &name])?;
    daemon.says("created", count, Duration::from_mins(15))?;
    progress(&format!("first sync of {count}: {:.2} s", start.elapsed().as_secs_f64()));
    daemon.rests()?;
    daemon.total_cpu()
}

fn report(options: &Options, table: &mut Table, floors: &Times, firsts: Times, calls: &[f64]) {
    let count = options.few;
    let pace =
        |time: Duration| format!("{:.2} s, {:.0}/s", time.as_secs_f64(), count as f64 / time.as_secs_f64());
    let floor = floors.median();
    table.add(&format!("floor: {count} prebuilt writes, {CONNECTIONS} connections"), pace(floor));
    if options.is_selected(Scenario::FirstApply) {
        let first = firsts.median();
        table.add(&format!("S1 first apply of {count}, whole process"), pace(first));
        let share = 100.0 / ratio(first, floor);
        table.judge(
            "S1 share of the floor",
            format!("{share:.0} %"),
            AimComparison::of("≥ 90 %", share >= 90.0),
        );
        table.note_ratio(Ratio::ApplyPace, share / 100.0);
        let most = calls.iter().copied().fold(0.0, f64::max);
        let aim = AimComparison::of("1.0", format!("{most:.1}") == "1.0");
        table.judge("S1 calls for each object, lists and the inventory included", format!("{most:.3}"), aim);
        table.note_ratio(Ratio::CallsForEachObject, most);
    }
}

/// Sends prebuilt writes, and returns how long it took until the last was answered.
fn floor(api: &Api, corpus: &Corpus) -> Outcome<Duration> {
    let mut writes = Vec::new();
    for manifest in corpus.manifests() {
        writes.push(Write::apply(&manifest.url, "floor", manifest.body()?));
    }
    block_on(async {
        api.make_namespaces(&corpus.namespaces()).await?;
        let start = Instant::now();
        let mut answers = stream::iter(writes).map(|write| api.send(write)).buffer_unordered(CONNECTIONS);
        while let Some(answer) = answers.next().await {
            answer?;
        }
        Ok(start.elapsed())
    })
}

/// A directory that was applied.
pub(crate) struct AppliedDirectory {
    /// Its manifests.
    pub(crate) corpus: Corpus,
    /// The folder of the objects.
    pub(crate) folder: TempDir,
    /// Name of the source.
    pub(crate) name: String,
    /// The program that applied it.
    pub(crate) program: Program,
}

struct Applier {
    time: Duration,
    cpu: Duration,
    calls: std::collections::BTreeMap<String, u64>,
    place: AppliedDirectory,
}

fn apply(cluster: &Cluster, api: &Api, name: &str, count: usize) -> Outcome<Applier> {
    let name = format!("apply-{name}");
    let corpus = Corpus::new(&name, KindMix::Apps, count);
    let folder = TempDir::new()?;
    corpus.write(folder.path())?;
    block_on(api.make_namespaces(&corpus.namespaces()))?;
    let program = Program::new(&cluster.kubeconfig_for("rhumb")?)?;
    let before = block_on(api.counts())?;
    let path = folder.path().to_string_lossy();
    let applied = run(program.command(&["apply", &path, "--source", &name]), &[0])?;
    let calls = since(&before, &block_on(api.counts())?);
    let created = applied.output.lines().filter(|line| line.contains("created")).count();
    drop(path);
    if created < count {
        return Err(format!("{created} of {count} objects were created").into());
    }
    Ok(Applier {
        time: applied.time,
        cpu: applied.cpu,
        calls,
        place: AppliedDirectory { corpus, folder, name, program },
    })
}
