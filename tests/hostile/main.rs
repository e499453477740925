//! Hostile manifests: each is read or refused in bounded time and memory, with bounded findings.
//!
//! Each case runs in its own process (this one, started again). Memory that an earlier case has
//! left to the allocator would hide what a later one takes. The time is that of the processor,
//! because the reader waits for nothing and other tests run beside this one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking; a measuring process answers on its standard output"
)]

mod cases;

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use cases::{CASES, Case, FILE};
use rhumb::testing::manifest;

/// The variables that make this program measure one case at one scale.
const CASE: &str = "RHUMB_TEST_CASE";
const PARTS: &str = "RHUMB_TEST_PARTS";

/// The time limit of reading one file; without optimisation and on a busy machine, several times
/// that.
const TIME: Duration = Duration::from_secs(if cfg!(debug_assertions) { 5 } else { 2 });
const MEMORY: u64 = 64 << 20;

/// Findings that one file may have: those that are shown, and the line that counts the others.
const FINDINGS: usize = 202;

/// The cost of reading one file.
#[derive(Debug)]
struct Cost {
    time: Duration,
    memory: u64,
    findings: usize,
    objects: usize,
    refused: bool,
}

/// Returns the time that this thread has had from the processors.
fn processor_time() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

/// Returns the most memory that this process has held at once, in bytes.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

fn measure(bytes: &[u8]) -> Cost {
    // Makes the peak what is held now.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let (time, memory) = (processor_time(), peak_memory());
    let reading = manifest::read(&Arc::from("hostile.yaml"), bytes);
    Cost {
        time: processor_time().saturating_sub(time),
        memory: peak_memory().saturating_sub(memory),
        findings: reading.diagnostics.len(),
        objects: reading.items.len(),
        refused: reading.diagnostics.iter().any(rhumb::testing::object::Diagnostic::is_error),
    }
}

/// Measures in a process of its own.
fn cost(case: &Case, parts: usize) -> Cost {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "one_case_is_measured", "--nocapture"])
        .env(CASE, case.name)
        .env(PARTS, parts.to_string())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.split_once("cost: ")).map(|(_, numbers)| numbers);
    let line = line.unwrap_or_else(|| {
        panic!("{}: {} {text}{}", case.name, output.status, String::from_utf8_lossy(&output.stderr))
    });
    let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
    let &[nanos, memory, findings, objects, refused] = numbers.as_slice() else { panic!("{line}") };
    Cost {
        time: Duration::from_nanos(nanos),
        memory,
        findings: findings as usize,
        objects: objects as usize,
        refused: refused == 1,
    }
}

/// Runs nothing by itself: it is the entry point of the other tests' processes.
#[test]
fn one_case_is_measured() {
    let (Ok(name), Ok(parts)) = (std::env::var(CASE), std::env::var(PARTS)) else { return };
    let case = CASES.iter().find(|case| case.name == name).unwrap();
    let Cost { time, memory, findings, objects, refused } = measure(&(case.make)(parts.parse().unwrap()));
    println!("cost: {} {memory} {findings} {objects} {}", time.as_nanos(), u8::from(refused));
}

/// Returns the least of a few measurements: other programs on the machine only ever make it slower.
fn least_cost(case: &Case, parts: usize, enough: Duration) -> Cost {
    let mut least = cost(case, parts);
    for _ in 0..2 {
        if least.time <= enough {
            break;
        }
        let again = cost(case, parts);
        if again.time < least.time {
            least = again;
        }
    }
    least
}

#[test]
fn every_case_is_read_or_refused_within_bounds() {
    let mut faults = Vec::new();
    for case in CASES {
        let cost = least_cost(case, case.parts, TIME);
        println!(
            "{:32} {:>6} ms {:>4} MiB {:>6} objects {:>4} findings{}",
            case.name,
            cost.time.as_millis(),
            cost.memory >> 20,
            cost.objects,
            cost.findings,
            if cost.refused { ", refused" } else { "" }
        );
        let bounded = cost.time <= TIME && cost.memory <= MEMORY && cost.findings <= FINDINGS;
        if !bounded {
            faults.push(format!("{}: {cost:?}", case.name));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn no_case_is_larger_than_what_is_read() {
    assert_eq!(FILE as u64, manifest::MAX_MANIFEST_BYTES);
    let largest = "x".repeat(FILE);
    assert!(manifest::read(&Arc::from("a.yaml"), largest.as_bytes()).diagnostics[0].is_error());
}
