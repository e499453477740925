//! A dry run over a directory of which one file in a hundred changed, beside kubectl's, and an
//! apply of it before that.

use std::collections::BTreeSet;

use controlplane::Cluster;

use crate::Outcome;
use crate::bounds::Ratio;
use crate::first_apply::AppliedDirectory;
use crate::numbers::{Times, ratio};
use crate::program::run;
use crate::table::{AimComparison, Table, progress};

/// The number of runs of the quick one of the two.
const RUNS: usize = 3;

/// Measures S6 on what was applied.
pub(crate) fn measure(cluster: &Cluster, place: &AppliedDirectory, table: &mut Table) -> Outcome<()> {
    let count = place.corpus.count();
    let path = place.folder.path().to_string_lossy();
    apply_again(place, &path, table)?;
    let changed: Vec<usize> = place.corpus.config_maps(count / 100).collect();
    for number in &changed {
        place.corpus.config_map(*number, "2").write(place.folder.path())?;
    }
    let mut times = Vec::new();
    let mut names = BTreeSet::new();
    for _ in 0..RUNS {
        let diff = run(place.program.command(&["diff", &path, "--source", &place.name, "-o", "name"]), &[1])?;
        names = diff.output.lines().map(|line| line.rsplit('/').next().unwrap_or(line).to_owned()).collect();
        progress(&format!("diff: {:.0} ms, {} objects", diff.time.as_secs_f64() * 1e3, names.len()));
        times.push(diff.time);
    }
    let ours = Times::new(times).median();
    let mut other = Vec::new();
    for concurrency in ["1", "16"] {
        let mut kubectl = cluster.kubectl_command();
        kubectl.args([
            "diff",
            "--server-side",
            "--force-conflicts",
            "--recursive",
            "--concurrency",
            concurrency,
        ]);
        kubectl.args(["--filename", &path]);
        let diff = run(kubectl, &[1])?;
        progress(&format!("kubectl diff, concurrency {concurrency}: {:.2} s", diff.time.as_secs_f64()));
        let theirs: BTreeSet<String> = diff
            .output
            .lines()
            .filter(|line| line.starts_with("diff "))
            .filter_map(|line| Some(line.rsplit('.').next()?.to_owned()))
            .collect();
        if theirs != names || names.len() != changed.len() {
            return Err(format!("kubectl finds {theirs:?}, rhumb {names:?}").into());
        }
        other.push(diff.time);
    }
    let measured = format!("{:.0} ms", ours.as_secs_f64() * 1e3);
    table.add(&format!("S6 diff of {count}, {} changed, whole process", changed.len()), measured);
    let times = ratio(other[0], ours);
    let measured = format!("{times:.1} × faster ({:.2} s)", other[0].as_secs_f64());
    table.judge(
        "S6 compared with kubectl diff --server-side",
        measured,
        AimComparison::of("≥ 10 ×", times >= 10.0),
    );
    table.note_ratio(Ratio::DiffSpeed, times);
    let measured = format!("{:.1} × faster ({:.2} s)", ratio(other[1], ours), other[1].as_secs_f64());
    table.add("S6 compared with the same with --concurrency=16", measured);
    Ok(())
}

/// Measures the processor time of a further apply, which finds nothing to do.
fn apply_again(place: &AppliedDirectory, path: &str, table: &mut Table) -> Outcome<()> {
    let (mut times, mut cpu) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let applied = run(place.program.command(&["apply", path, "--source", &place.name]), &[0])?;
        progress(&format!("apply again: {:.0} ms", applied.time.as_secs_f64() * 1e3));
        times.push(applied.time);
        cpu.push(applied.cpu);
    }
    let (time, cpu) = (Times::new(times).median().as_secs_f64(), Times::new(cpu).median().as_secs_f64());
    table.judge(
        &format!("S6 apply of {}, nothing to do, own processor time", place.corpus.count()),
        format!("{cpu:.2} s of {time:.2} s"),
        AimComparison::of("≤ 0.15 s", cpu <= 0.15),
    );
    Ok(())
}
