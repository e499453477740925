//! Benchmarks: the program against a real API server, as whole processes, in one run.
//!
//! `cargo bench` measures all; words behind `--` choose, for example `s1 s5`. Each
//! scenario has its own cluster, so that none slows another down; all but s7 have a bare one, etcd
//! and the API server. Ratios carry over from one machine to another. Nothing fails here, as the
//! aim is beside the result. With `--check` a ratio beyond its bound in `benches/bounds.json` does.
//!
//! | scenario | measures |
//! |---|---|
//! | floor | the same objects as prebuilt server-side applies over 8 connections, no logic |
//! | s1 | the first apply and sync: share of the floor, calls for each object, processor time of few and of many |
//! | s2 | from a commit to the answered write that it asks for, with few and with many objects |
//! | s3 | from a foreign write to its repair |
//! | s4 | memory and calls of the idle daemon |
//! | s5 | a resync that finds nothing to do |
//! | s6 | an apply with nothing to do, and a dry run with one object in a hundred changed, beside kubectl's |
//! | s7 | a commit that restarts every workload, beside what the budget allows, and beside a loop of kubectl |
//! | s8 | answers of a daemon that follows many objects, none of them healthy |
//! | s9 | renders by kustomize and helm, compared with the same programs alone, and those that commits ask for |

mod answers;
mod api;
mod bounds;
mod corpus;
mod diff;
mod first_apply;
mod idle;
mod inputs;
mod latency;
mod numbers;
mod options;
mod program;
mod renders;
mod repository;
mod rollouts;
mod table;

use std::process::ExitCode;
use std::sync::OnceLock;

use controlplane::Cluster;
use options::{BoundsUse, Options, Scenario};
use table::{Table, progress};
use tokio::runtime::{Builder, Runtime};

/// A result whose error is only printed.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            progress(&error.to_string());
            return ExitCode::from(2);
        }
    };
    let mut table = Table::default();
    let mut attempt =
        |name: &str, scenarios: &[Scenario], measure: fn(&Options, &mut Table) -> Outcome<()>| {
            if scenarios.iter().any(|scenario| options.is_selected(*scenario))
                && let Err(error) = measure(&options, &mut table)
            {
                table.add(name, format!("not measured: {error}"));
            }
        };
    attempt("floor, S1, S6", &[Scenario::Floor, Scenario::FirstApply, Scenario::Diff], applied);
    attempt("S2, S3", &[Scenario::Commit, Scenario::Drift], latency::measure);
    attempt("S4, S5", &[Scenario::Idle, Scenario::Resync], idle::measure);
    attempt("S7", &[Scenario::Rollouts], rollouts::measure);
    attempt("S8", &[Scenario::Answers], answers::measure);
    attempt("S9", &[Scenario::Renders], renders::measure);
    table.print(&machine());
    match options.bounds {
        BoundsUse::Ignored => ExitCode::SUCCESS,
        BoundsUse::Checked => check_bounds(&options, &table),
    }
}

/// Names each bound that was missed, and fails where there is one.
fn check_bounds(options: &Options, table: &Table) -> ExitCode {
    let bounds = match bounds::parse_bounds(include_str!("../bounds.json")) {
        Ok(bounds) => bounds,
        Err(error) => {
            progress(&format!("benches/bounds.json: {error}"));
            return ExitCode::from(2);
        }
    };
    let missed = bounds::missed_bounds(&bounds, |scenario| options.wants_named(scenario), table.ratios());
    for bound in &missed {
        progress(&format!("missed: {bound}"));
    }
    if missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Measures the first apply and a later change on one cluster.
fn applied(options: &Options, table: &mut Table) -> Outcome<()> {
    let cluster = Cluster::builder().bare().start()?;
    match first_apply::measure(&cluster, options, table)? {
        Some(place) if options.is_selected(Scenario::Diff) => diff::measure(&cluster, &place, table),
        _ => Ok(()),
    }
}

/// Returns the size of the machine.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let (info, cpu) = (text("/proc/meminfo"), text("/proc/cpuinfo"));
    let kib = info.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0);
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let load = text("/proc/loadavg");
    format!(
        "rhumb {} on {cores} cores ({}), {:.0} GiB; load at the end {}",
        env!("CARGO_PKG_VERSION"),
        model.map_or("unknown", |(_, name)| name),
        kib / 1024.0 / 1024.0,
        load.split(' ').next().unwrap_or("unknown"),
    )
}

/// Runs a future on the one runtime of this process, which has one thread: a client needs no more.
fn block_on<T>(future: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    static RUNTIME: OnceLock<std::io::Result<Runtime>> = OnceLock::new();
    match RUNTIME.get_or_init(|| Builder::new_current_thread().enable_all().build()) {
        Ok(runtime) => runtime.block_on(future),
        Err(error) => Err(format!("the runtime does not start: {error}").into()),
    }
}
