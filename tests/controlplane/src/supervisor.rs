//! The process that starts and ends the parts: a shell script, so that no other program has to be
//! built or found.
//!
//! **Invariant:** no part outlives this process. The script holds the read end of a pipe whose only
//! write end is here. However this process ends, the pipe closes, and the script kills every part.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::error::{Context as _, Error};
use crate::part::Part;

const SCRIPT: &str = include_str!("supervisor.sh");

/// The fate of the cluster's directory at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DirectoryFate {
    Remove,
    Keep,
}

/// A running supervisor.
#[derive(Debug)]
pub(crate) struct Supervisor {
    directory: PathBuf,
    inner: Mutex<SupervisedChild>,
}

#[derive(Debug)]
struct SupervisedChild {
    child: Child,
    /// `None` once the supervisor was asked to end.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// A process of the control plane, distinguished from a later one with the same number by its start
/// time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pid: u32,
    started: String,
}

impl Supervisor {
    /// Starts the script over a cluster's directory.
    pub(crate) fn start(directory: &Path, afterwards: DirectoryFate) -> Result<Self, Error> {
        for folder in ["run", "log"] {
            let folder = directory.join(folder);
            fs::create_dir_all(&folder).context(|| format!("create {}", folder.display()))?;
        }
        let log = directory.join("log/supervisor.log");
        let log = File::create(&log).context(|| format!("create {}", log.display()))?;
        let mut child = Command::new("/bin/sh")
            .arg("-c")
            .arg(SCRIPT)
            .arg("controlplane-supervisor")
            .arg(directory)
            .arg(if afterwards == DirectoryFate::Keep { "keep" } else { "remove" })
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()))
            .env("HOME", directory.join("home"))
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .process_group(0)
            .spawn()
            .context(|| "start /bin/sh as the supervisor".to_owned())?;
        let (orders, answers) = (child.stdin.take(), child.stdout.take());
        let answers = answers.ok_or_else(|| Error::Supervisor("no standard output".to_owned()))?;
        let inner = SupervisedChild { child, orders, answers: BufReader::new(answers) };
        Ok(Self { directory: directory.to_owned(), inner: Mutex::new(inner) })
    }

    /// Starts a part with the given arguments; what it prints is added to its log.
    pub(crate) fn spawn(&self, part: Part, program: &Path, arguments: &[String]) -> Result<Process, Error> {
        let script = self.directory.join("run").join(part.name());
        let words = std::iter::once(program.to_string_lossy().into_owned()).chain(arguments.iter().cloned());
        let words: Vec<String> = words.map(|word| quoted(&word)).collect();
        let log = quoted(&self.log(part).to_string_lossy());
        let text = format!("exec >>{log} 2>&1\nexec $CONTROLPLANE_GUARD {}\n", words.join(" \\\n  "));
        fs::write(&script, text).context(|| format!("write {}", script.display()))?;
        let answer = self.order(&format!("start {}", part.name()))?;
        let pid = answer.strip_prefix("started ").and_then(|pid| pid.parse().ok());
        let pid = pid.ok_or_else(|| Error::Supervisor(format!("strange answer {answer:?}")))?;
        let started = stat(pid).map(|stat| stat.started).unwrap_or_default();
        Ok(Process { pid, started })
    }

    /// Registers a program that runs at the end, after all parts and before the directory goes.
    pub(crate) fn run_at_end(&self, program: &Path, arguments: &[String]) -> Result<(), Error> {
        let script = self.directory.join("run/end");
        let words = std::iter::once(program.to_string_lossy().into_owned()).chain(arguments.iter().cloned());
        let words: Vec<String> = words.map(|word| quoted(&word)).collect();
        fs::write(&script, words.join(" ")).context(|| format!("write {}", script.display()))
    }

    /// Kills a part and waits until it is gone; nothing happens if it already is.
    pub(crate) fn kill(&self, part: Part) -> Result<(), Error> {
        self.order(&format!("kill {}", part.name())).map(drop)
    }

    /// Sends a signal to a part.
    pub(crate) fn signal(&self, part: Part, signal: &str) -> Result<(), Error> {
        match self.order(&format!("signal {} {signal}", part.name()))?.as_str() {
            "sent" => Ok(()),
            _ => Err(Error::NotRunning { part: part.name() }),
        }
    }

    /// Returns the file that a part's output goes to.
    pub(crate) fn log(&self, part: Part) -> PathBuf {
        self.directory.join("log").join(format!("{}.log", part.name()))
    }

    /// Ends all parts, waits for that, and removes the directory unless it is to be kept.
    pub(crate) fn stop(&self) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        drop(inner.orders.take());
        // The script kills itself last; a failure to wait leaves nothing more to do.
        let _ = inner.child.wait();
    }

    fn order(&self, order: &str) -> Result<String, Error> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |error: std::io::Error| Error::Supervisor(format!("{order}: {error}"));
        let orders = inner.orders.as_mut().ok_or_else(|| Error::Supervisor("it was stopped".to_owned()))?;
        orders.write_all(format!("{order}\n").as_bytes()).map_err(failed)?;
        let mut answer = String::new();
        inner.answers.read_line(&mut answer).map_err(failed)?;
        if answer.ends_with('\n') {
            Ok(answer.trim_end().to_owned())
        } else {
            Err(Error::Supervisor(format!("{order}: no answer: was it killed?")))
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Process {
    /// Returns the process' number.
    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns whether the process still runs (or is stopped), and is no zombie that waits to be
    /// reaped.
    pub(crate) fn is_alive(&self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.started == self.started && !matches!(stat.state, 'Z' | 'X'))
    }
}

struct Stat {
    state: char,
    started: String,
}

/// Reads a process' state and start time (fields 3 and 22 of `proc_pid_stat(5)`).
fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(Stat { state: fields.first()?.chars().next()?, started: (*fields.get(19)?).to_owned() })
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted() {
        for (word, expected) in [("a b", "'a b'"), ("$x", "'$x'"), ("it's", r"'it'\''s'"), ("", "''")] {
            assert_eq!(quoted(word), expected);
        }
    }
}
