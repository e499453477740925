//! Limits: memory, processor, files, descriptors, threads, output, time.

use std::time::{Duration, Instant};

use rhumb::testing::input::sandbox::SandboxPart;

use crate::fixture::{Fixture, Stop, assert_stopped, text};
use crate::probe::{Link, probe};

const MIB: u64 = 1 << 20;

#[test]
fn limits_are_those_of_the_policy() {
    let fixture = Fixture::new(&[]).limits(|limits| {
        (limits.memory, limits.processor, limits.file) = (100 * MIB, Duration::from_secs(7), 3 * MIB);
        limits.descriptors = 20;
    });
    let expected = format!(
        "memory {0} {0}\nprocessor 7 7\nfile {1} {1}\ndescriptors 20 20\ncore 0 0\n",
        100 * MIB,
        3 * MIB
    );
    assert_eq!(text(fixture.run(&fixture.command(probe(Link::Static), &["limits"]))), expected);
}

#[test]
fn memory_ends() {
    let fixture = Fixture::new(&[]).limits(|limits| limits.memory = 64 * MIB);
    let outcome = fixture.run(&fixture.command(probe(Link::Static), &["eat"]));
    assert_stopped("eat", outcome, &[Stop::Denied(SandboxPart::Memory, "Cannot allocate memory")]);
}

#[test]
fn memory_over_reserved_addresses_ends() {
    let fixture = Fixture::new(&[]).limits(|limits| limits.memory = 64 * MIB);
    let outcome = fixture.run(&fixture.command(probe(Link::Static), &["reserve"]));
    assert_stopped("reserve", outcome, &[Stop::Denied(SandboxPart::Memory, "Cannot allocate memory")]);
}

#[test]
fn threads_end_with_the_memory_for_their_stacks() {
    let fixture = Fixture::new(&[]).limits(|limits| limits.memory = 64 * MIB);
    let output = fixture.run(&fixture.command(probe(Link::Dynamic), &["threads", "10000"])).unwrap();
    let made: u64 = String::from_utf8(output.output).unwrap().trim().parse().unwrap();
    assert!((1..100).contains(&made), "{made} threads");
    assert!(output.stderr.contains("Resource temporarily unavailable"), "{}", output.stderr);
}

#[test]
fn processor_time_ends() {
    let fixture = Fixture::new(&[]).limits(|limits| limits.processor = Duration::from_secs(1));
    let outcome = fixture.run(&fixture.command(probe(Link::Static), &["spin"]));
    assert_stopped("spin", outcome, &[Stop::Killed(SandboxPart::Processor)]);
}

#[test]
fn files_end() {
    let fixture = Fixture::new(&[]).limits(|limits| limits.file = MIB);
    let path = fixture.private().join("file");
    let words = ["write", path.to_str().unwrap(), "100000000"];
    let outcome = fixture.run(&fixture.command(probe(Link::Static), &words));
    assert_stopped("write", outcome, &[Stop::Killed(SandboxPart::FileSize)]);
    assert_eq!(path.metadata().unwrap().len(), MIB);
}

#[test]
fn descriptors_end() {
    let fixture = Fixture::new(&[("file", "")]);
    let outcome = fixture.run(&fixture.command(probe(Link::Static), &["open", "file"]));
    assert_stopped("open", outcome, &[Stop::Denied(SandboxPart::Descriptors, "Too many open files")]);
}

#[test]
fn output_ends_at_its_last_byte() {
    let fixture = Fixture::new(&[]).limits(|limits| limits.output = 1 << 20);
    let print = |bytes: &str| fixture.run(&fixture.command(probe(Link::Static), &["print", bytes]));
    assert_eq!(text(print("1048576")).len(), 1 << 20);
    assert_stopped("1 MiB and a part", print("1048577"), &[Stop::Killed(SandboxPart::Output)]);
    assert_stopped("300 MB", print("300000000"), &[Stop::Killed(SandboxPart::Output)]);
}

#[test]
fn of_complaints_both_ends_are_kept() {
    let fixture = Fixture::new(&[]);
    let complain = |bytes: &str| {
        let output = fixture.run(&fixture.command(probe(Link::Static), &["complain", bytes])).unwrap();
        assert!(output.is_success());
        output.stderr
    };
    assert_eq!(complain("1").len(), 64 << 10);
    let long = complain("300000000");
    let half = "x".repeat(32 << 10);
    assert_eq!(long, format!("{half}\n[...]\n{half}"));
}

#[test]
fn time_ends_for_a_program_that_ignores_every_signal() {
    let deadline = Duration::from_millis(300);
    let fixture = Fixture::new(&[]).limits(|limits| limits.deadline = deadline);
    let begun = Instant::now();
    let outcome = fixture.run(&fixture.command(probe(Link::Static), &["stay"]));
    assert_stopped("stay", outcome, &[Stop::Killed(SandboxPart::Deadline)]);
    let elapsed = begun.elapsed();
    // A second signal, after a wait for the first one, would come later.
    assert!(elapsed >= deadline && elapsed < Duration::from_secs(5), "{elapsed:?}");
}
