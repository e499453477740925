//! The time from a commit to its write, and from a foreign write to its repair.

use std::time::{Duration, Instant};

use controlplane::Cluster;
use serde_json::{Value, json};

use crate::api::{Api, Watch, Write, version};
use crate::bounds::Ratio;
use crate::corpus::{Corpus, KindMix, Manifest};
use crate::numbers::{Times, ms, ratio};
use crate::options::{Options, Scenario};
use crate::program::{Daemon, Program};
use crate::repository::Repository;
use crate::table::{AimComparison, Table, progress};
use crate::{Outcome, block_on};

/// Between two samples, so that each is a commit of its own and not part of a burst.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// Measures S2 and S3, each with few and with many objects.
pub(crate) fn measure(options: &Options, table: &mut Table) -> Outcome<()> {
    let few = follow(options, options.few)?;
    let many = follow(options, options.many)?;
    if let (Some(few_times), Some(many_times)) = (&few.commits, &many.commits) {
        let aim = |times: &Times| AimComparison::of("p50 ≤ 15 ms", ms(times.median()) <= 15.0);
        let what = |count: usize| format!("S2 commit → write answered, {count} objects");
        table.judge(&what(options.few), few_times.spread(), aim(few_times));
        table.judge(&what(options.many), many_times.spread(), aim(many_times));
        let growth = ratio(many_times.median(), few_times.median());
        let measured = format!("{growth:.2}");
        table.judge(
            "S2 ratio of many to few objects, p50",
            measured,
            AimComparison::of("≤ 1.2", growth <= 1.2),
        );
        table.note_ratio(Ratio::CommitGrowth, growth);
    }
    for (count, times) in [(options.few, few.repairs), (options.many, many.repairs)] {
        if let Some(times) = times {
            let aim = AimComparison::of("p50 ≤ 10 ms", ms(times.median()) <= 10.0);
            table.judge(&format!("S3 foreign write → repaired, {count} objects"), times.spread(), aim);
        }
    }
    Ok(())
}

struct LatencySamples {
    commits: Option<Times>,
    repairs: Option<Times>,
}

fn follow(options: &Options, count: usize) -> Outcome<LatencySamples> {
    let cluster = Cluster::builder().bare().start()?;
    let api = block_on(Api::connect(cluster.kubeconfig()))?;
    let corpus = Corpus::new("shop", KindMix::Apps, count);
    block_on(api.make_namespaces(&corpus.namespaces()))?;
    let mut repository = Repository::new(corpus.manifests())?;
    let program = Program::new(&cluster.kubeconfig_for("rhumb")?)?;
    let start = Instant::now();
    let daemon = program.daemon(&["run", &repository.path().to_string_lossy()])?;
    daemon.says("created", count, Duration::from_mins(15))?;
    progress(&format!("{count} objects were made in {:.1} s", start.elapsed().as_secs_f64()));
    daemon.rests()?;
    let mut watch = block_on(api.watch_config_maps())?;
    let mut measured = LatencySamples { commits: None, repairs: None };
    if options.is_selected(Scenario::Commit) {
        let mut followed =
            FollowedRepository { repository: &mut repository, watch: &mut watch, daemon: &daemon };
        let numbers: Vec<usize> = corpus.config_maps(options.samples).collect();
        let file = |sample: usize, version: &str| corpus.config_map(numbers[sample], version);
        let times = followed.commit_times(numbers.len(), file)?;
        progress(&format!("commit → write, {count} objects: {}", times.spread()));
        measured.commits = Some(times);
    }
    if options.is_selected(Scenario::Drift) {
        let times = repairs(&corpus, &api, &mut watch, &daemon, options.samples)?;
        progress(&format!("foreign write → repair, {count} objects: {}", times.spread()));
        measured.repairs = Some(times);
    }
    Ok(measured)
}

/// A daemon that follows a repository, and a view of its writes.
pub(crate) struct FollowedRepository<'a> {
    /// The repository.
    pub(crate) repository: &'a mut Repository,
    /// The writes.
    pub(crate) watch: &'a mut Watch,
    /// The daemon.
    pub(crate) daemon: &'a Daemon,
}

impl FollowedRepository<'_> {
    /// Returns the times from commits of one file to their writes. The file of each sample has a
    /// version, which a ConfigMap gets.
    pub(crate) fn commit_times(
        &mut self,
        samples: usize,
        file: impl Fn(usize, &str) -> Manifest,
    ) -> Outcome<Times> {
        self.commit_times_of_many(samples, |sample, version| vec![file(sample, version)])
    }

    /// Does the same as [`FollowedRepository::commit_times`], with several files in each commit, up
    /// to the first write.
    pub(crate) fn commit_times_of_many(
        &mut self,
        samples: usize,
        files: impl Fn(usize, &str) -> Vec<Manifest>,
    ) -> Outcome<Times> {
        let mut times = Vec::new();
        for sample in 0..samples {
            let version = format!("commit {sample}");
            let moved = self.repository.push_all(&files(sample, &version))?;
            block_on(self.watch.until(|seen| seen.version == version))?;
            times.push(moved.elapsed());
            std::thread::sleep(PAUSE);
        }
        self.daemon.rests()?;
        Ok(Times::new(times))
    }
}

fn repairs(corpus: &Corpus, api: &Api, watch: &mut Watch, daemon: &Daemon, samples: usize) -> Outcome<Times> {
    let mut times = Vec::new();
    for number in corpus.config_maps(samples) {
        let manifest = corpus.config_map(number, "");
        let name = manifest.url.rsplit('/').next().unwrap_or_default();
        let elapsed = block_on(async {
            let patch = json!({"data": {"LOG_LEVEL": "trace", "version": "foreign"}});
            let answer = api.send(Write::merge(&manifest.url, "foreign", &patch)?).await?;
            let answered = Instant::now();
            let object: Value = serde_json::from_str(&answer)?;
            let rv = version(object["metadata"]["resourceVersion"].as_str().unwrap_or_default());
            watch.until(|seen| seen.name == name && seen.rv > rv && seen.version != "foreign").await?;
            Outcome::Ok(answered.elapsed())
        })?;
        times.push(elapsed);
        std::thread::sleep(PAUSE);
    }
    daemon.rests()?;
    Ok(Times::new(times))
}
