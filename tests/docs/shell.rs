//! A reader's shell: a cluster, a home directory, and a daemon in the background.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use controlplane::Cluster;
use tempfile::TempDir;

use crate::normal_form::{fits, normal_form};
use crate::page::ShownCommand;
use crate::root;
use crate::support::{Daemon, eventually};

/// The longest time until a command has printed what its page shows, on a busy machine.
const LIMIT: Duration = Duration::from_mins(3);

/// The home directory as pages show it.
const HOME: &str = "/home/ann";

/// The commands that only look. Their output comes about by itself, so they are run until it did.
const REPEATED_COMMANDS: [&str; 8] = [
    "rhumb diff",
    "rhumb status",
    "rhumb why",
    "rhumb events",
    "rhumb rollout status",
    "rhumb rollout history",
    "rhumb prune list",
    "kubectl get",
];

/// A reader's shell.
pub(crate) struct Shell {
    home: TempDir,
    daemon: Option<Daemon>,
    cluster: Cluster,
}

/// The end of a command.
struct CommandEnd {
    exit_code: i32,
    output: String,
}

impl Shell {
    /// Opens a shell on a new cluster, in a home directory with the examples.
    pub(crate) fn new() -> Self {
        let cluster = Cluster::start().unwrap_or_else(|error| panic!("{error}"));
        let home = TempDir::new().unwrap();
        std::os::unix::fs::symlink(root().join("examples"), home.path().join("examples")).unwrap();
        let runtime = home.path().join(".runtime");
        fs::create_dir(&runtime).unwrap();
        fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700)).unwrap();
        Self { home, daemon: None, cluster }
    }

    /// Writes a file that the page shows.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.home.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs a command, and holds what it prints against what the page shows.
    pub(crate) fn run(&mut self, page: &str, command: &ShownCommand) {
        let place = format!("{page}:{}: {}", command.line, command.text);
        if ["rhumb run ", "rhumb uninstall"].iter().any(|ends| command.text.starts_with(ends)) {
            self.stop_daemon();
        }
        if command.text.starts_with("rhumb run ") {
            let daemon = Daemon::start(self.command(&format!("exec {}", command.text)));
            eventually(&place, LIMIT, || {
                self.compared(command, &CommandEnd { exit_code: 0, output: daemon.log() })
            });
            self.daemon = Some(daemon);
        } else if REPEATED_COMMANDS.iter().any(|start| command.text.starts_with(start)) {
            eventually(&place, LIMIT, || self.compared(command, &self.ended(&place, &command.text)));
        } else if let Err(why) = self.compared(command, &self.ended(&place, &command.text)) {
            panic!("{place}: {why}");
        }
    }

    /// Stops what runs in the background.
    pub(crate) fn end(mut self) {
        self.stop_daemon();
    }

    fn stop_daemon(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let status = daemon.stop();
            assert!(status.success(), "rhumb run ended with {status}");
        }
    }

    /// Runs a command to its end.
    fn ended(&self, place: &str, text: &str) -> CommandEnd {
        let printed = self.home.path().join(".printed");
        let file = File::create(&printed).unwrap();
        let mut command = self.command(text);
        let mut child = command.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        let status = eventually(place, LIMIT, || match child.try_wait().unwrap() {
            Some(status) => Ok(status),
            None => Err(fs::read_to_string(&printed).unwrap()),
        });
        CommandEnd { exit_code: status.code().unwrap_or(-1), output: fs::read_to_string(printed).unwrap() }
    }

    /// Prepares a command in the home directory, with no settings of this machine.
    fn command(&self, text: &str) -> Command {
        let home = self.home.path();
        let rhumb = Path::new(env!("CARGO_BIN_EXE_rhumb")).parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{}:{path}", rhumb.display(), self.cluster.programs().display());
        let mut command = Command::new("bash");
        command.args(["-c", text]).current_dir(home).stdin(Stdio::null());
        command.env_clear().env("PATH", path).env("HOME", home).env("KUBECONFIG", self.cluster.kubeconfig());
        command.env("XDG_RUNTIME_DIR", home.join(".runtime")).env("LANG", "C.UTF-8");
        command.envs([("GIT_AUTHOR_NAME", "Ann"), ("GIT_AUTHOR_EMAIL", "ann@example.org")]);
        command.envs([("GIT_COMMITTER_NAME", "Ann"), ("GIT_COMMITTER_EMAIL", "ann@example.org")]);
        command.env("GIT_CONFIG_NOSYSTEM", "1");
        command
    }

    /// Says how what was printed differs from what the page shows.
    fn compared(&self, command: &ShownCommand, ended: &CommandEnd) -> Result<(), String> {
        let home = self.home.path().to_str().unwrap();
        let output = ended.output.replace(home, HOME);
        let normal = |line: &str| normal_form(line);
        let printed: Vec<String> = output.lines().map(normal).filter(|line| !line.is_empty()).collect();
        let shown = command.output.iter().map(|line| normal(line));
        let shown: Vec<String> = shown.filter(|line| !line.is_empty()).collect();
        if ended.exit_code != command.exit_code {
            return Err(format!("it exits with {}:\n{output}", ended.exit_code));
        }
        let is_equal = shown.is_empty() || fits(&shown, &printed);
        if is_equal {
            Ok(())
        } else {
            Err(format!("it prints:\n{output}\nas compared: {printed:#?}\nnot: {shown:#?}"))
        }
    }
}
