//! One daemon of a run, which is started again where it ends, as a service manager does it.

use std::path::{Path, PathBuf};
use std::process::Command;

use controlplane::FaultProxy;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Daemon, ProgramOutput, TestNamespace, run};

/// One daemon, with a user, a state directory and a configuration of its own.
pub(crate) struct Replica {
    pub(crate) site: TestNamespace<'static>,
    /// The configuration and the runtime directory, which no fault of the state directory is about.
    folder: TempDir,
    configuration: String,
    /// The program and its arguments that start the daemon.
    wrapper: Vec<String>,
    variables: Vec<(String, String)>,
    daemon: Option<Daemon>,
    /// The log of the processes that are over.
    log: String,
    /// The number of starts, and of configurations that were read again.
    pub(crate) starts: u64,
    /// The number of times that the process ended by itself.
    pub(crate) ends: u64,
    is_stopped: bool,
}

/// Resources of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resources {
    /// The most memory that was ever resident, in KiB.
    pub(crate) peak_kib: u64,
    /// Open files.
    pub(crate) files: usize,
}

impl Replica {
    /// Returns a daemon that goes through a proxy, and does not start it.
    pub(crate) fn new(mut site: TestNamespace<'static>, letter: &str, proxy: &FaultProxy) -> Self {
        site.known_as(letter);
        site.through(proxy);
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join("run")).unwrap();
        Self {
            site,
            folder,
            configuration: String::new(),
            wrapper: Vec::new(),
            variables: Vec::new(),
            daemon: None,
            log: String::new(),
            starts: 0,
            ends: 0,
            is_stopped: true,
        }
    }

    fn configuration_file(&self) -> PathBuf {
        self.folder.path().join("rhumb.yaml")
    }

    /// Returns a folder that outlives the processes.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the configuration.
    pub(crate) fn configure(&mut self, text: &str) {
        text.clone_into(&mut self.configuration);
        std::fs::write(self.configuration_file(), text).unwrap();
    }

    /// Returns the configuration.
    pub(crate) fn configuration(&self) -> &str {
        &self.configuration
    }

    /// Writes the configuration, and asks the daemon to read it.
    pub(crate) fn reload(&mut self, text: &str) {
        self.configure(text);
        if self.is_running() {
            self.starts += 1;
            self.signal("HUP");
        }
    }

    /// Lets a program start the daemon from the next start on.
    pub(crate) fn wrap(&mut self, wrapper: &[&str]) {
        self.wrapper = wrapper.iter().map(|word| (*word).to_owned()).collect();
    }

    /// Sets an environment variable from the next start on.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// Starts the daemon.
    pub(crate) fn start(&mut self) {
        self.keep_log();
        let mut bare = self.site.bare_command();
        bare.arg("run").arg("--config").arg(self.configuration_file());
        bare.env("RUNTIME_DIRECTORY", self.folder.path().join("run"));
        // As the unit files do.
        bare.env("MALLOC_ARENA_MAX", "1").env("MALLOC_TRIM_THRESHOLD_", "131072");
        bare.envs(self.variables.iter().map(|(name, value)| (name, value)));
        self.daemon = Some(Daemon::start(wrapped(bare, &self.wrapper)));
        self.starts += 1;
        self.is_stopped = false;
    }

    /// Kills the process, and starts no other one.
    pub(crate) fn kill(&mut self) {
        self.is_stopped = true;
        if let Some(daemon) = &mut self.daemon {
            daemon.kill();
        }
    }

    /// Kills the process and starts the next one.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.start();
    }

    /// Ends the process by SIGTERM.
    pub(crate) fn stop(&mut self) {
        self.is_stopped = true;
        if let Some(daemon) = &mut self.daemon {
            daemon.stop();
        }
    }

    /// Sends the process a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        if let Some(daemon) = &self.daemon {
            daemon.signal(name);
        }
    }

    /// Returns the number of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.daemon.as_ref().map_or(0, Daemon::pid)
    }

    /// Returns whether the process runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.daemon.as_mut().is_some_and(Daemon::is_running)
    }

    /// Starts the process again where it ended by itself.
    pub(crate) fn revive(&mut self) {
        if !self.is_stopped && !self.is_running() {
            self.ends += 1;
            self.start();
        }
    }

    fn keep_log(&mut self) {
        if let Some(daemon) = self.daemon.take() {
            self.log.push_str(&daemon.log());
            self.log.push('\n');
        }
    }

    /// Returns all that the processes logged.
    pub(crate) fn log(&self) -> String {
        format!("{}{}", self.log, self.daemon.as_ref().map(Daemon::log).unwrap_or_default())
    }

    /// Returns the answer of `rhumb status` by the daemon itself.
    pub(crate) fn status(&self) -> ProgramOutput {
        let mut command = self.site.bare_command();
        command.args(["status", "-o", "json", "--socket"]).arg(self.folder.path().join("run/rhumb.sock"));
        run(command)
    }

    /// Returns what the daemon says of the objects that others depend on.
    pub(crate) fn reasons(&self) -> String {
        let explain = |object: &str| {
            let mut command = self.site.bare_command();
            command.args(["why", object, "-n", &self.site.name, "--socket"]);
            command.arg(self.folder.path().join("run/rhumb.sock"));
            run(command).all()
        };
        ["cm/env", "deploy/web", "deploy/api"].map(explain).concat()
    }

    /// Returns whether the daemon says that it has applied a revision completely, and all that it
    /// looks after is healthy. One object of the stage is opted out.
    pub(crate) fn is_claiming(&self, revision: &str) -> bool {
        let status = self.status();
        let status: Value = serde_json::from_str(&status.stdout).unwrap_or_default();
        let sources = status["sources"].as_array().cloned().unwrap_or_default();
        !sources.is_empty()
            && sources.iter().all(|source| {
                let is_of_it = source["revision"].as_str().is_some_and(|known| known == revision);
                let phases = source["objects"].as_object().into_iter().flatten();
                let is_well =
                    phases.into_iter().all(|(phase, _)| ["Settled", "OptedOut"].contains(&phase.as_str()));
                is_of_it && is_well && source["complete"] == true
            })
    }

    /// Returns the resources of the running process.
    pub(crate) fn resources(&self) -> Option<Resources> {
        let process = PathBuf::from(format!("/proc/{}", self.pid()));
        let status = std::fs::read_to_string(process.join("status")).ok()?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let peak_kib = peak.split_whitespace().next()?.parse().ok()?;
        Some(Resources { peak_kib, files: std::fs::read_dir(process.join("fd")).ok()?.count() })
    }
}

/// Returns a command that a program starts, with the same environment.
fn wrapped(bare: Command, wrapper: &[String]) -> Command {
    let Some((program, arguments)) = wrapper.split_first() else { return bare };
    let mut command = Command::new(program);
    command.args(arguments).arg(bare.get_program()).args(bare.get_args());
    for (name, value) in bare.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}
