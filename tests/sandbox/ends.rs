//! Descriptors that a program inherits, and its end with the process that wants it.

use std::fs::{self, File};
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::thread;

use rhumb::testing::input::sandbox::{Sandbox, SandboxError};
use rustix::io::FdFlags;

use crate::fixture::{Fixture, sandbox, text, wait_for};
use crate::probe::{Link, probe};
use crate::wait::{DEFAULT_TIMEOUT, until};

/// The variable that makes this program start a sandboxed one, and then be killed.
const OWNER: &str = "RHUMB_TEST_SANDBOX_OWNER";

/// Returns the processes whose command line has a word.
fn processes(word: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap());
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has_word = |number: &u32| {
        let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        // A process that still sets up its sandbox has another name.
        line.starts_with(b"probe-") && line.split(|byte| *byte == 0).any(|part| part == word.as_bytes())
    };
    numbers.filter(has_word).collect()
}

fn await_one(word: &str) -> u32 {
    until("the program runs", || !processes(word).is_empty());
    processes(word)[0]
}

fn await_none(word: &str) {
    until("the program is gone", || processes(word).is_empty());
}

#[test]
fn its_environment_is_what_it_was_given() {
    let fixture = Fixture::new(&[]);
    let command = fixture.command(probe(Link::Dynamic), &["environment"]).variable("HELM_NAMESPACE", "a");
    let printed = text(fixture.run(&command));
    let mut variables: Vec<&str> = printed.lines().collect();
    variables.sort_unstable();
    let private = fixture.private();
    let (home, folder) = (format!("HOME={}", private.display()), format!("TMPDIR={}", private.display()));
    assert_eq!(variables, ["HELM_NAMESPACE=a", &home, &folder]);
}

#[test]
fn it_has_three_descriptors_and_nothing_to_read() {
    let leaked = File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap();
    rustix::io::fcntl_setfd(&leaked, FdFlags::empty()).unwrap();
    let fixture = Fixture::new(&[]);
    assert_eq!(text(fixture.run(&fixture.command(probe(Link::Static), &["descriptors"]))), "0\n1\n2\n");
    // `/dev/null`, at its end.
    assert_eq!(text(fixture.run(&fixture.command(probe(Link::Static), &["input"]))), "1:3 0\n");
}

#[test]
fn its_exit_code_is_reported() {
    let fixture = Fixture::new(&[]);
    for code in ["1", "125", "255"] {
        let output = fixture.run(&fixture.command(probe(Link::Static), &["exit", code])).unwrap();
        assert_eq!((output.code.to_string(), output.is_success()), (code.to_owned(), false));
    }
}

#[test]
fn it_is_the_first_to_die_and_somebody_elses_kill_is_reported_as_such() {
    let fixture = Fixture::new(&[]);
    let word = "first-to-die";
    let run = thread::scope(|scope| {
        let running = scope.spawn(|| fixture.run(&fixture.command(probe(Link::Static), &["stay", word])));
        let process = await_one(word);
        let read = |name: &str| fs::read_to_string(format!("/proc/{process}/{name}")).unwrap();
        assert_eq!(read("oom_score_adj"), "1000\n");
        let status = read("status");
        assert!(status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"), "{status}");
        let process = rustix::process::Pid::from_raw(process.cast_signed()).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
        running.join().unwrap()
    });
    assert!(matches!(run, Err(SandboxError::Killed { signal: 9, .. })), "{run:?}");
}

#[test]
fn it_is_killed_when_nobody_waits_for_it_any_more() {
    let fixture = Fixture::new(&[]);
    let word = "nobody-waits";
    let command = fixture.command(probe(Link::Static), &["stay", word]);
    wait_for(async {
        let sandbox = sandbox();
        let run = sandbox.run(&fixture.policy, &command);
        let running = tokio::task::spawn_blocking(move || await_one(word));
        tokio::select! {
            outcome = run => panic!("it ended: {outcome:?}"),
            found = running => assert!(found.is_ok()),
        }
        tokio::task::spawn_blocking(move || await_none(word)).await.unwrap();
    });
}

/// Starts a sandboxed program and waits for its end, which does not come.
#[test]
fn it_is_killed_when_the_process_that_started_it_is() {
    let word = "orphan";
    if std::env::var_os(OWNER).is_some() {
        let fixture = Fixture::new(&[]).limits(|limits| limits.deadline = DEFAULT_TIMEOUT);
        let outcome = fixture.run(&fixture.command(probe(Link::Static), &["stay", word]));
        panic!("it ended: {outcome:?}");
    }
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ends::it_is_killed_when_the_process_that_started_it_is", "--nocapture"])
        .env(OWNER, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let process = await_one(word);
    owner.kill().unwrap();
    owner.wait().unwrap();
    await_none(word);
    assert!(!fs::exists(format!("/proc/{process}/exe")).unwrap_or(false));
}

#[test]
fn the_entry_does_nothing_for_others() {
    let run = |words: &[&str], input: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rhumb"));
        command
            .arg(rhumb::testing::input::sandbox::ENTRY_COMMAND)
            .args(words)
            .stdin(input)
            .stdout(Stdio::piped());
        command.output().unwrap()
    };
    let parent = "1";
    let orphan =
        ["full", parent, "0", "1", "0", "9", "0", "/tmp", "none", "/bin/sh", "-c", "echo a shell runs"];
    for words in [&[][..], &["full"], &orphan] {
        let output = run(words, Stdio::null());
        assert_eq!((output.status.code(), &*output.stdout), (Some(125), &b""[..]), "{words:?}");
    }
    // Its output goes to the pipe that its starter made.
    let (mut reader, writer) = std::io::pipe().unwrap();
    let output = run(&orphan, Stdio::from(writer));
    assert_eq!(output.status.code(), Some(125));
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    assert_eq!(said, "failed\nthe process that started it is gone");
}

#[test]
fn a_start_without_a_sandbox_is_no_run() {
    let fixture = Fixture::new(&[]);
    let command = fixture.command(probe(Link::Static), &["thread"]);
    // A launcher that ends well, and knows nothing of sandboxes.
    let run = wait_for(Sandbox::launched_by("/bin/true").run(&fixture.policy, &command));
    let error = run.unwrap_err();
    assert!(error.to_string().contains("ended before its sandbox was complete"), "{error}");
}
