//! The unit tests, as processes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::site::{Mutant, Number};

/// A test that takes longer counts as slow, and is not waited for.
const PATIENCE: Duration = Duration::from_secs(20);
/// Tests in the first process of a mutant, and the factor from one process to the next.
const FIRST_CHUNK: usize = 8;
const CHUNK_FACTOR: usize = 8;

/// The program with all unit tests.
#[derive(Debug)]
pub(crate) struct UnitTests {
    pub(crate) program: PathBuf,
    /// The package's root, where the tests run.
    pub(crate) root: PathBuf,
    /// For what tests leave behind.
    pub(crate) temporary: PathBuf,
    /// Processes at a time.
    pub(crate) jobs: usize,
}

/// A test without any mutant.
#[derive(Clone, Debug)]
pub(crate) struct TestRecord {
    pub(crate) name: String,
    /// How long its process takes.
    pub(crate) took: Duration,
    /// The mutants that it reaches.
    pub(crate) reached: BTreeSet<Number>,
}

/// The end of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A test failed.
    Killed,
    /// The tests did not end.
    Endless,
    /// All tests passed.
    Survived,
    /// No test that is fast enough reaches it.
    NotReached,
    /// It does not compile.
    NotCompiled,
}

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Passed,
    Failed,
    Late,
}

impl UnitTests {
    /// Runs each test alone, and returns those that pass in time; the others are named.
    ///
    /// # Errors
    ///
    /// Fails if the program cannot list its tests.
    pub(crate) fn record(&self, longest: Duration) -> Result<Vec<TestRecord>, String> {
        let names = self.names()?;
        let records = Mutex::new(Vec::new());
        self.share(names.len(), |index| {
            let name = &names[index];
            let notes = self.temporary.join(format!("reached-{index}"));
            let begun = Instant::now();
            let ended = self.run(&[name], &[("RHUMB_MUTANTS_REACHED", &notes.to_string_lossy())], PATIENCE);
            let took = begun.elapsed();
            let bytes = fs::read(&notes).unwrap_or_default();
            let _ = fs::remove_file(&notes);
            if ended == Ended::Failed {
                println!("it fails without a mutant, and is left out: {name}");
            } else if took < longest {
                let numbers = bytes.chunks_exact(4).filter_map(|chunk| chunk.try_into().ok());
                let reached = numbers.map(Number::from_le_bytes).collect();
                locked(&records).push(TestRecord { name: name.clone(), took, reached });
            } else {
                println!("it takes {:.1} s, and is left out: {name}", took.as_secs_f64());
            }
        });
        let mut records = records.into_inner().unwrap_or_default();
        records.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(records)
    }

    /// Runs each mutant against the tests that reach it, and returns the verdicts in their order.
    pub(crate) fn judge(&self, mutants: &[(Number, &Mutant)], tests: &[TestRecord]) -> Vec<Verdict> {
        let verdicts = Mutex::new(vec![Verdict::NotReached; mutants.len()]);
        let kills: Mutex<BTreeMap<(&str, &str), usize>> = Mutex::default();
        let done = AtomicUsize::new(0);
        self.share(mutants.len(), |index| {
            let (number, mutant) = mutants[index];
            let mut reaching: Vec<&TestRecord> =
                tests.iter().filter(|test| test.reached.contains(&number)).collect();
            {
                // Tests that killed in this file, then those that reach little else.
                let kills = locked(&kills);
                reaching.sort_by_key(|test| {
                    let killed = kills.get(&(mutant.file.as_str(), test.name.as_str())).copied();
                    (std::cmp::Reverse(killed.unwrap_or(0)), test.reached.len())
                });
            }
            let (verdict, killer) = self.judge_one(number, &reaching);
            if let Some(killer) = killer {
                *locked(&kills).entry((mutant.file.as_str(), killer)).or_default() += 1;
            }
            locked(&verdicts)[index] = verdict;
            let count = done.fetch_add(1, Ordering::Relaxed) + 1;
            if count.is_multiple_of(100) {
                println!("{count} of {}", mutants.len());
            }
        });
        verdicts.into_inner().unwrap_or_default()
    }

    /// Runs a mutant, and returns a test that killed it where it is known.
    fn judge_one<'a>(&self, number: Number, tests: &[&'a TestRecord]) -> (Verdict, Option<&'a str>) {
        if tests.is_empty() {
            return (Verdict::NotReached, None);
        }
        let mut rest = tests;
        let mut size = FIRST_CHUNK;
        while !rest.is_empty() {
            let (chunk, behind) = rest.split_at(size.min(rest.len()));
            let names: Vec<&String> = chunk.iter().map(|test| &test.name).collect();
            let limit = Duration::from_secs(10) + chunk.iter().map(|test| test.took).sum::<Duration>() * 10;
            let (ended, killer) = self.run_named(&names, &[("RHUMB_MUTANT", &number.to_string())], limit);
            let killer =
                chunk.iter().map(|test| test.name.as_str()).find(|name| killer.as_deref() == Some(*name));
            match ended {
                Ended::Failed => return (Verdict::Killed, killer),
                Ended::Late => return (Verdict::Endless, None),
                Ended::Passed => {}
            }
            rest = behind;
            size *= CHUNK_FACTOR;
        }
        (Verdict::Survived, None)
    }

    /// Returns the names of all tests.
    fn names(&self) -> Result<Vec<String>, String> {
        let output = Command::new(&self.program).args(["--list", "--format", "terse"]).output();
        let output = output.map_err(|error| format!("{}: {error}", self.program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(ToOwned::to_owned).collect())
    }

    fn run(&self, names: &[&String], variables: &[(&str, &str)], limit: Duration) -> Ended {
        self.run_named(names, variables, limit).0
    }

    /// Runs tests in a process of their own until one fails, and returns the name of that one.
    fn run_named(
        &self,
        names: &[&String],
        variables: &[(&str, &str)],
        limit: Duration,
    ) -> (Ended, Option<String>) {
        // A mutant may ask for memory without end.
        let child = Command::new("sh")
            .args(["-c", "ulimit -c 0 -v 16777216; exec \"$0\" \"$@\""])
            .arg(&self.program)
            .args(["--exact", "--test-threads=1"])
            .args(names)
            .envs(variables.iter().copied())
            .env("CARGO_MANIFEST_DIR", &self.root)
            .env("INSTA_UPDATE", "no")
            .env("PROPTEST_RNG_SEED", "1")
            .env("RUST_BACKTRACE", "0")
            .env("TMPDIR", &self.temporary)
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        let Ok(mut child) = child else { return (Ended::Failed, None) };
        let ended = watch(&mut child, limit);
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        let _ = child.wait();
        ended
    }

    /// Calls a function for each index, in as many threads as there are jobs.
    fn share(&self, count: usize, work: impl Fn(usize) + Sync) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..self.jobs {
                scope.spawn(|| {
                    while let Some(index) =
                        Some(next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < count)
                    {
                        work(index);
                    }
                });
            }
        });
    }
}

/// Waits for the first failure, the end or the limit.
fn watch(child: &mut Child, limit: Duration) -> (Ended, Option<String>) {
    let begun = Instant::now();
    let (sender, lines) = channel();
    if let Some(output) = child.stdout.take() {
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
    }
    let mut is_open = true;
    while begun.elapsed() < limit {
        if !is_open {
            std::thread::sleep(Duration::from_millis(5));
        }
        match lines.recv_timeout(Duration::from_millis(50)) {
            Ok(line) => {
                let failed = line.strip_suffix(" ... FAILED").and_then(|line| line.strip_prefix("test "));
                if let Some(name) = failed {
                    return (Ended::Failed, Some(name.to_owned()));
                }
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => is_open = false,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Ok(Some(status)) = child.try_wait() {
            return (if status.success() { Ended::Passed } else { Ended::Failed }, None);
        }
    }
    (Ended::Late, None)
}

/// Locks what threads share; one that panicked leaves it as it was.
fn locked<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
