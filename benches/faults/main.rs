//! Faults with counts: the program on a real control plane, each fault many times, and an observer
//! that counts the violations of the invariants.
//!
//! A run brings a small source to rest, injects one fault around two commits, and heals it. Then
//! the cluster must show what git says. The judgement is made by the server's audit log, by watches
//! of its own and by the machine. Only I11 asks the program, because it is about its answers.
//!
//! `cargo bench --bench faults` runs all rows, `-- --only NAME --seed 7` repeats one run. A seed
//! decides all that is drawn by lot: places, times and numbers. It does not decide the order of
//! threads and processes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a run that cannot be made fails by panicking")]
#![allow(clippy::print_stderr, reason = "what a failing run shows")]

mod configuration;
mod daemons;
mod desired;
mod disk;
mod fault;
mod git;
mod invariant;
mod judge;
#[path = "../../tests/rollouts/manifests.rs"]
#[allow(dead_code, reason = "the tests of rollouts have more workloads")]
mod manifests;
mod network;
#[path = "../../tests/rollouts/observer.rs"]
#[allow(dead_code, reason = "the tests of rollouts judge by panicking")]
mod observer;
mod options;
mod people;
mod planted;
mod processes;
#[path = "../../tests/rollouts/replay.rs"]
#[allow(dead_code, unused_imports, reason = "its tests run with those of rollouts")]
mod replay;
mod replica;
mod resources;
mod rollbacks;
mod runs;
mod servers;
mod stage;
#[path = "../../tests/cluster/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the tests of the program use the rest")]
mod support;
mod table;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use fault::{ClusterUse, Fault};
use options::Options;
use runs::Run;
use table::{Table, progress};

/// Returns all rows.
fn faults() -> Vec<Fault> {
    let families = [
        network::faults(),
        servers::faults(),
        processes::faults(),
        disk::faults(),
        git::faults(),
        rollbacks::faults(),
        people::faults(),
        configuration::faults(),
        daemons::faults(),
        planted::faults(),
    ];
    families.into_iter().flatten().collect()
}

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            progress(&error);
            return ExitCode::from(2);
        }
    };
    let all = faults();
    let wanted: Vec<(usize, &Fault)> =
        all.iter().enumerate().filter(|(_, fault)| options.is_selected(fault.name)).collect();
    if options.is_list || wanted.is_empty() {
        table::list(&wanted);
        return if wanted.is_empty() { ExitCode::from(2) } else { ExitCode::SUCCESS };
    }
    let table = Mutex::new(Table::new(&wanted));
    let begun = Instant::now();
    let attempt = |(number, fault): (usize, &Fault), seed: u64| {
        if begun.elapsed() < options.limit {
            let run = Run::make(number, fault, seed);
            table.lock().unwrap().add(number, &run);
        }
    };
    let (shared, alone): (Vec<_>, Vec<_>) =
        wanted.iter().partition(|(_, fault)| fault.sharing == ClusterUse::Shared);
    // All rows once, then all rows again: an early end leaves no row without a run.
    let next = AtomicUsize::new(0);
    let count = |rows: &[(usize, &Fault)]| rows.len() * usize::try_from(options.runs).unwrap();
    for index in 0..count(&alone) {
        attempt(alone[index % alone.len()], options.seed + (index / alone.len()) as u64);
    }
    thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::SeqCst);
                    if index >= count(&shared) {
                        return;
                    }
                    attempt(shared[index % shared.len()], options.seed + (index / shared.len()) as u64);
                }
            });
        }
    });
    let table = table.into_inner().unwrap();
    table.print(&options, begun.elapsed());
    if table.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
