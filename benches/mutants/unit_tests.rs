//! The unit tests, as processes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::journal::Journal;
use crate::site::{Mutant, Number};

/// The time that a process has where it waits for something that never comes.
const MIN_TIME_LIMIT: Duration = Duration::from_mins(1);
/// The processor's time after which a test without a mutant is not waited for.
const LONGEST_RECORD: Duration = Duration::from_secs(4);
/// Tests in the first process of a mutant, and the factor from one process to the next.
const FIRST_CHUNK: usize = 8;
const CHUNK_FACTOR: usize = 8;

/// The program with all unit tests.
#[derive(Debug)]
pub(crate) struct UnitTests {
    pub(crate) program: PathBuf,
    /// The package's root, where the tests run.
    pub(crate) root: PathBuf,
    /// The folder of the journals, and of what tests leave behind.
    pub(crate) folder: PathBuf,
    /// Processes at a time.
    pub(crate) jobs: usize,
}

/// A test without any mutant.
#[derive(Clone, Debug)]
pub(crate) struct TestRecord {
    pub(crate) name: String,
    ended: TestRunEnd,
    /// The processor's time that it takes, which other work on the machine does not change.
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

impl TestRecord {
    /// Returns it as a result of the journal.
    fn text(&self) -> String {
        let reached: Vec<String> = self.reached.iter().map(ToString::to_string).collect();
        format!("{:?} {} {}", self.ended, self.took.as_millis(), reached.join(","))
    }

    fn parse(name: &str, text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let word = words.next()?;
        let ended = [TestRunEnd::Passed, TestRunEnd::Failed, TestRunEnd::Late]
            .into_iter()
            .find(|ended| format!("{ended:?}") == word)?;
        let took = Duration::from_millis(words.next()?.parse().ok()?);
        let reached = words.next()?.split(',').filter_map(|number| number.parse().ok()).collect();
        Some(Self { name: name.to_owned(), ended, took, reached })
    }
}

impl Verdict {
    const ALL: [Self; 5] = [Self::Killed, Self::Endless, Self::Survived, Self::NotReached, Self::NotCompiled];

    /// Returns the word of the tables.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::Endless => "endless",
            Self::Survived => "survived",
            Self::NotReached => "not reached",
            Self::NotCompiled => "not compiled",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.word() == word)
    }
}

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TestRunEnd {
    Passed,
    Failed,
    Late,
}

/// A process that has ended.
#[derive(Clone, Debug)]
struct Run {
    ended: TestRunEnd,
    /// The test that failed, where it is known.
    failed: Option<String>,
    /// The processor's time that it took.
    took: Duration,
}

impl UnitTests {
    /// Runs each test alone, and returns those that pass in time; the others are named.
    ///
    /// # Errors
    ///
    /// Fails if the program cannot list its tests, or if the disk fails.
    pub(crate) fn record(&self, longest: Duration) -> Result<Vec<TestRecord>, String> {
        let names = self.names()?;
        let journal = Journal::open(&self.folder.join("tests.tsv"), &self.program)?;
        let records = Mutex::new(Vec::new());
        self.share(names.len(), |index| {
            let name = &names[index];
            let record = journal.result_of(name).and_then(|text| TestRecord::parse(name, text));
            let record = record.unwrap_or_else(|| {
                let record = self.record_one(name);
                journal.note(name, &record.text());
                record
            });
            if record.ended == TestRunEnd::Failed {
                println!("it fails without a mutant, and is left out: {name}");
            } else if record.ended == TestRunEnd::Passed && record.took < longest {
                locked(&records).push(record);
            } else {
                println!("it takes longer, and is left out: {name}");
            }
        });
        let mut records = records.into_inner().unwrap_or_default();
        records.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(records)
    }

    /// Runs a test without any mutant.
    fn record_one(&self, name: &String) -> TestRecord {
        let notes = self.temporary().join(format!("reached-{}", name.replace("::", "-")));
        let variables = [("RHUMB_MUTANTS_REACHED", &*notes.to_string_lossy())];
        let Run { ended, took, .. } = self.run(&[name], &variables, LONGEST_RECORD);
        let bytes = fs::read(&notes).unwrap_or_default();
        let _ = fs::remove_file(&notes);
        let numbers = bytes.chunks_exact(4).filter_map(|chunk| chunk.try_into().ok());
        let reached = numbers.map(Number::from_le_bytes).collect();
        TestRecord { name: name.clone(), ended, took, reached }
    }

    /// Runs each mutant against the tests that reach it, and returns the verdicts in their order.
    pub(crate) fn judge(
        &self,
        mutants: &[(Number, &Mutant)],
        tests: &[TestRecord],
    ) -> Result<Vec<Verdict>, String> {
        let journal = Journal::open(&self.folder.join("verdicts.tsv"), &self.program)?;
        let verdicts = Mutex::new(vec![Verdict::NotReached; mutants.len()]);
        let kills: Mutex<BTreeMap<(&str, &str), usize>> = Mutex::default();
        let done = AtomicUsize::new(0);
        self.share(mutants.len(), |index| {
            let (number, mutant) = mutants[index];
            let name = number.to_string();
            if let Some(verdict) = journal.result_of(&name).and_then(Verdict::parse) {
                locked(&verdicts)[index] = verdict;
                return;
            }
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
            journal.note(&name, verdict.word());
            let count = done.fetch_add(1, Ordering::Relaxed) + 1;
            if count.is_multiple_of(100) {
                println!("{count} of {}", mutants.len());
            }
        });
        Ok(verdicts.into_inner().unwrap_or_default())
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
            let longest = Duration::from_secs(2) + chunk.iter().map(|test| test.took).sum::<Duration>() * 5;
            let run = self.run(&names, &[("RHUMB_MUTANT", &number.to_string())], longest);
            let killer =
                chunk.iter().map(|test| test.name.as_str()).find(|name| run.failed.as_deref() == Some(*name));
            match run.ended {
                TestRunEnd::Failed => return (Verdict::Killed, killer),
                TestRunEnd::Late => return (Verdict::Endless, None),
                TestRunEnd::Passed => {}
            }
            rest = behind;
            size *= CHUNK_FACTOR;
        }
        (Verdict::Survived, None)
    }

    /// Returns the folder of what tests leave behind.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.folder.join("temporary")
    }

    /// Returns the names of all tests.
    fn names(&self) -> Result<Vec<String>, String> {
        let output = Command::new(&self.program).args(["--list", "--format", "terse"]).output();
        let output = output.map_err(|error| format!("{}: {error}", self.program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(ToOwned::to_owned).collect())
    }

    /// Runs tests in a process of their own, until one fails or they take too long.
    fn run(&self, names: &[&String], variables: &[(&str, &str)], longest: Duration) -> Run {
        // A mutant may ask for memory and time without end.
        let child = Command::new("sh")
            .args([
                "-c",
                "ulimit -c 0 && ulimit -v 16777216 && ulimit -S -t \"$1\"; shift; exec \"$@\"",
                "sh",
            ])
            .arg((longest.as_secs() + 1).to_string())
            .arg(&self.program)
            .args(["--exact", "--test-threads=1"])
            .args(names)
            .envs(variables.iter().copied())
            .env("CARGO_MANIFEST_DIR", &self.root)
            .env("INSTA_UPDATE", "no")
            .env("PROPTEST_RNG_SEED", "1")
            .env("RUST_BACKTRACE", "0")
            .env("TMPDIR", self.temporary())
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        let Ok(mut child) = child else {
            return Run { ended: TestRunEnd::Failed, failed: None, took: Duration::ZERO };
        };
        let run = watch(&mut child, MIN_TIME_LIMIT + longest * 60);
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        let _ = child.wait();
        run
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
fn watch(child: &mut Child, limit: Duration) -> Run {
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
    let mut run = Run { ended: TestRunEnd::Late, failed: None, took: Duration::ZERO };
    while begun.elapsed() < limit {
        match lines.recv_timeout(Duration::from_millis(50)) {
            Ok(line) => {
                let failed = line.strip_suffix(" ... FAILED").and_then(|line| line.strip_prefix("test "));
                if let Some(name) = failed {
                    return Run { ended: TestRunEnd::Failed, failed: Some(name.to_owned()), ..run };
                }
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(Duration::from_millis(2)),
            Err(RecvTimeoutError::Timeout) => {}
        }
        run.took = processor_time(child.id()).unwrap_or(run.took);
        if let Ok(Some(status)) = child.try_wait() {
            run.ended = match status.signal() {
                Some(signal) if signal == Signal::XCPU.as_raw() => TestRunEnd::Late,
                _ if status.success() => TestRunEnd::Passed,
                _ => TestRunEnd::Failed,
            };
            return run;
        }
    }
    run
}

/// Returns the processor's time of a process and of its children that have ended.
fn processor_time(process: u32) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name may have blanks and parentheses in it; the times are the 14th to the 17th field.
    let (_, fields) = text.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(4).map_while(|field| field.parse::<u64>().ok());
    Some(Duration::from_millis(ticks.sum::<u64>() * 1000 / rustix::param::clock_ticks_per_second()))
}

/// Locks what threads share; one that panicked leaves it as it was.
fn locked<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
