//! The program that is shown: building it, running it once, and running it as a daemon.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::stage::{ErrorContext as _, Failure, Outcome};

/// The script that runs the words after it, and kills them when the pipe on standard input closes,
/// however the demo ends.
const GUARD: &str =
    "exec 3<&0; { cat <&3; kill -KILL 0; } >/dev/null 2>&1 & exec 3<&- \"$0\" \"$@\" </dev/null";

/// So long a daemon may take to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns a command under the guard.
fn guarded(program: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(GUARD).arg(program).stdin(Stdio::piped()).process_group(0);
    command
}

/// Runs a guarded command to its end.
fn output(mut command: Command, expected: &str) -> Outcome<Output> {
    let mut child = command.stdout(Stdio::piped()).spawn().expected(expected)?;
    // Taken, so that waiting does not close it.
    let guard = child.stdin.take();
    let output = child.wait_with_output().expected(expected);
    drop(guard);
    output
}

/// The `rhumb` program, with what each run of it gets.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    binary: PathBuf,
    /// The directory that it is run in.
    pub(crate) directory: PathBuf,
    /// Its user's kubeconfig.
    pub(crate) kubeconfig: PathBuf,
    /// The kustomize that it finds.
    kustomize: PathBuf,
}

/// Builds the program in the profile of this example, unless that was done already.
///
/// The example is named too, and cargo's variables about the example's package are taken away.
/// Otherwise cargo would choose other features for the dependencies, or run build scripts anew that
/// look at these variables. It would compile again, now and at the next start.
pub(crate) fn build() -> Outcome<PathBuf> {
    let own = std::env::current_exe().expected("to know where this example is")?;
    let folder = own.parent().and_then(Path::parent).unwrap_or(Path::new("target/debug"));
    let profile = folder.file_name().and_then(|name| name.to_str()).unwrap_or("debug");
    let mut cargo = guarded(Path::new(env!("CARGO")));
    cargo
        .args(["build", "--quiet", "--bin", "rhumb", "--example", "demo"])
        .args(["--message-format", "json-render-diagnostics"])
        .args(["--profile", if profile == "debug" { "dev" } else { profile }])
        .arg("--target-dir")
        .arg(folder.parent().unwrap_or(Path::new("target")))
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    for (name, _) in std::env::vars_os() {
        let of_package = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        if name.to_str().is_some_and(|name| of_package.iter().any(|prefix| name.starts_with(prefix))) {
            cargo.env_remove(&name);
        }
    }
    let output = output(cargo, "to start cargo")?;
    let built = String::from_utf8_lossy(&output.stdout).lines().find_map(executable);
    built.ok_or_else(|| Failure::new("`cargo build --bin rhumb` to give a program", output.status))
}

fn executable(line: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(line).ok()?;
    let is_rhumb = message["target"]["name"] == "rhumb" && message["target"]["kind"][0] == "bin";
    is_rhumb.then(|| message["executable"].as_str().map(PathBuf::from))?
}

impl Program {
    /// Returns a program that works in a directory, as the user of a kubeconfig.
    pub(crate) fn new(binary: PathBuf, directory: &Path, kubeconfig: PathBuf, kustomize: PathBuf) -> Self {
        Self { binary, directory: directory.to_owned(), kubeconfig, kustomize }
    }

    /// Runs it once.
    pub(crate) fn once(&self, arguments: &[&str]) -> Outcome<Output> {
        let mut command = guarded(&self.binary);
        self.prepare(&mut command).args(arguments).stderr(Stdio::piped());
        output(command, &format!("to start {}", self.binary.display()))
    }

    /// Starts it as a daemon, which logs to `rhumb.log`.
    pub(crate) fn start(&self, arguments: &[&str]) -> Outcome<Daemon> {
        let path = self.directory.join("rhumb.log");
        let log = File::create(&path).expected("to write the log")?;
        let mut command = guarded(&self.binary);
        self.prepare(&mut command).args(arguments).stdout(Stdio::null()).stderr(log);
        let mut child = command.spawn().expected(format!("to start {}", self.binary.display()))?;
        let guard = child.stdin.take();
        Ok(Daemon { child, guard, log: path })
    }

    fn prepare<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let folders = self.kustomize.parent().map(Path::to_owned).into_iter();
        let others = std::env::var_os("PATH").unwrap_or_default();
        let search = std::env::join_paths(folders.chain(std::env::split_paths(&others)));
        command
            .env("PATH", search.unwrap_or(others))
            .current_dir(&self.directory)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("STATE_DIRECTORY", self.directory.join("state"))
            .env_remove("RUST_LOG")
            .env("NO_COLOR", "1")
    }
}

/// A running `rhumb run`; dropping it kills it.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    guard: Option<ChildStdin>,
    log: PathBuf,
}

impl Daemon {
    /// Returns its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the file that it logs to.
    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// Returns the first line of its log that holds a text, without time and level.
    pub(crate) fn says(&self, text: &str) -> Option<String> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let line = log.lines().find(|line| line.contains(text))?;
        line.split_once(" WARN ").map(|(_, said)| said.trim().to_owned())
    }

    /// Returns the last lines of its log.
    pub(crate) fn tail(&self, lines: usize) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let all: Vec<&str> = log.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }

    /// Stops it with SIGTERM, as systemd does, and returns how it ended.
    pub(crate) fn stop(&mut self) -> Outcome<i32> {
        let expected = "rhumb to end by itself after SIGTERM";
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).expected(expected)?;
        let deadline = Instant::now() + STOP_TIMEOUT;
        loop {
            match self.child.try_wait().expected(expected)? {
                Some(status) => {
                    return status.code().ok_or_else(|| Failure::new(expected, status));
                }
                None if Instant::now() > deadline => {
                    return Err(Failure::new(expected, "it still runs after 30 s"));
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.guard.take());
        let _ = self.child.wait();
    }
}
