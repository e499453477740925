//! The measured program: its runs, its daemon, and what the operating system says of it.

use std::io::{BufRead as _, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::Outcome;

/// The program with a cluster and a state directory of its own.
pub(crate) struct Program {
    kubeconfig: PathBuf,
    state: TempDir,
    runtime: TempDir,
}

/// Makes a folder in memory, as a service has one for what is gone when it ends.
pub(crate) fn runtime_folder() -> Outcome<TempDir> {
    let memory = Path::new("/dev/shm");
    Ok(if memory.is_dir() { TempDir::new_in(memory)? } else { TempDir::new()? })
}

impl Program {
    /// Returns the program as a user of a cluster.
    pub(crate) fn new(kubeconfig: &Path) -> Outcome<Self> {
        let (state, runtime) = (TempDir::new()?, runtime_folder()?);
        Ok(Self { kubeconfig: kubeconfig.to_owned(), state, runtime })
    }

    /// Returns a command of it.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rhumb"));
        command.args(arguments).env("KUBECONFIG", &self.kubeconfig).env("STATE_DIRECTORY", self.state.path());
        command.env("RUNTIME_DIRECTORY", self.runtime.path());
        command.env_remove("RUST_LOG").env("NO_COLOR", "1");
        command
    }

    /// Starts the daemon as the unit files do: one heap for all threads, and free memory is given
    /// back.
    pub(crate) fn daemon(&self, arguments: &[&str]) -> Outcome<Daemon> {
        let mut command = self.command(arguments);
        command.env("MALLOC_ARENA_MAX", "1").env("MALLOC_TRIM_THRESHOLD_", "131072");
        Daemon::start(command)
    }
}

/// The duration of a command, and its output.
pub(crate) struct Run {
    /// From its start to its end.
    pub(crate) time: Duration,
    /// Its own processor time.
    pub(crate) cpu: Duration,
    /// Its standard output.
    pub(crate) output: String,
}

/// Runs a command to its end; one that ends otherwise than with these codes has failed.
pub(crate) fn run(mut command: Command, codes: &[i32]) -> Outcome<Run> {
    let (before, start) = (ended_children()?, Instant::now());
    let output = command.stdin(Stdio::null()).output()?;
    let (time, cpu) = (start.elapsed(), ended_children()?.saturating_sub(before));
    let code = output.status.code().unwrap_or(-1);
    if !codes.contains(&code) {
        let said = String::from_utf8_lossy(&output.stderr);
        let tail: Vec<&str> = said.lines().rev().take(5).collect();
        return Err(
            format!("{} ended with {code}: {}", command.get_program().display(), tail.join(" | ")).into()
        );
    }
    Ok(Run { time, cpu, output: String::from_utf8_lossy(&output.stdout).into_owned() })
}

/// Returns the processor time of all commands that have ended: in hundredths of a second, on every
/// Linux.
fn ended_children() -> Outcome<Duration> {
    // `cutime` and `cstime`, the 16th and 17th of all fields.
    stat_times("/proc/self/stat", 13..15)
}

/// Returns the sum of some times, by their numbers behind the name of the program.
fn stat_times(path: &str, numbers: Range<usize>) -> Outcome<Duration> {
    let text = std::fs::read_to_string(path)?;
    let fields = text.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect::<Vec<_>>());
    let ticks = |number: usize| fields.as_ref()?.get(number)?.parse::<u64>().ok();
    let spent: Option<u64> = numbers.map(ticks).sum();
    Ok(Duration::from_millis(spent.ok_or_else(|| format!("no times in {path}"))? * 10))
}

/// A running daemon, which is killed when this is dropped, or when this process ends.
pub(crate) struct Daemon {
    child: Child,
    said: Arc<OutputLines>,
    watchdog: Child,
    _lifeline: Option<ChildStdin>,
}

#[derive(Default)]
struct OutputLines {
    lines: Mutex<Vec<String>>,
    more: Condvar,
}

impl OutputLines {
    fn lines(&self) -> MutexGuard<'_, Vec<String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Daemon {
    fn start(mut command: Command) -> Outcome<Self> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut watchdog = Command::new("/bin/sh")
            .args(["-c", "read -r never; kill -9 \"$1\"", "watchdog", &child.id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let lifeline = watchdog.stdin.take();
        let said = Arc::new(OutputLines::default());
        if let Some(stderr) = child.stderr.take() {
            let said = said.clone();
            thread::spawn(move || {
                for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                    said.lines().push(line);
                    said.more.notify_all();
                }
            });
        }
        Ok(Self { child, said, watchdog, _lifeline: lifeline })
    }

    /// Waits for so many lines with a text in them, and returns all there are.
    pub(crate) fn says(&self, text: &str, count: usize, patience: Duration) -> Outcome<Vec<String>> {
        let deadline = Instant::now() + patience;
        let mut lines = self.said.lines();
        let mut known = 0;
        let mut found = Vec::new();
        loop {
            found.extend(lines.iter().skip(known).filter(|line| line.contains(text)).cloned());
            known = lines.len();
            if found.len() >= count {
                return Ok(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let tail: Vec<&String> = lines.iter().rev().take(3).collect();
                let there = found.len();
                return Err(format!("{there} of {count} lines with {text:?}; the last ones: {tail:?}").into());
            }
            lines = self.said.more.wait_timeout(lines, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until it has used no processor time worth the name for a second.
    pub(crate) fn rests(&self) -> Outcome<()> {
        let deadline = Instant::now() + Duration::from_mins(2);
        let mut before = self.cpu()?;
        let mut quiet = 0;
        while quiet < 4 {
            thread::sleep(Duration::from_millis(250));
            let now = self.cpu()?;
            quiet = if now.saturating_sub(before) <= Duration::from_millis(1) { quiet + 1 } else { 0 };
            before = now;
            if Instant::now() > deadline {
                return Err("the daemon does not come to rest".into());
            }
        }
        Ok(())
    }

    /// Returns the processor time of its threads that are there now.
    pub(crate) fn cpu(&self) -> Outcome<Duration> {
        let mut total = 0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            // A thread may end meanwhile.
            let spent = std::fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
            total += spent.split(' ').next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(Duration::from_nanos(total))
    }

    /// Returns the processor time of all its threads and of its children that have ended.
    pub(crate) fn total_cpu(&self) -> Outcome<Duration> {
        stat_times(&format!("/proc/{}/stat", self.child.id()), 11..15)
    }

    /// Returns its memory now.
    pub(crate) fn memory(&self) -> Outcome<Memory> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        // The daemon lets nobody but root read its memory.
        let rollup = format!("/proc/{}/smaps_rollup", self.child.id());
        let rollup = std::fs::read_to_string(rollup).unwrap_or_default();
        let kib = |text: &str, key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            let number = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
            number.unwrap_or(f64::NAN) / 1024.0
        };
        Ok(Memory {
            rss: kib(&status, "VmRSS"),
            file: kib(&status, "RssFile"),
            peak: kib(&status, "VmHWM"),
            pss: kib(&rollup, "Pss"),
        })
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // It must not outlive the daemon's number.
        let _ = self.watchdog.kill();
        let _ = self.watchdog.wait();
    }
}

/// A process's memory in MiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// Resident.
    pub(crate) rss: f64,
    /// The pages of files among them: the program itself.
    pub(crate) file: f64,
    /// The most that was ever resident.
    pub(crate) peak: f64,
    /// Its proportional share.
    pub(crate) pss: f64,
}

impl std::fmt::Display for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { rss, file, peak, pss } = self;
        write!(f, "VmRSS {rss:.1} MiB ({file:.1} the program), peak {peak:.1}, PSS {pss:.1}")
    }
}
