//! Trees, policies and runs for the tests.

use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use controlplane::Renderers;
use rhumb::testing::config::SandboxMode;
use rhumb::testing::input::sandbox::{
    NetworkReach, ProgramCommand, RunOutput, Sandbox, SandboxError, SandboxLimits, SandboxPart, SandboxPolicy,
};
use tempfile::TempDir;

/// The content that nobody outside of this file may print.
pub(crate) const CANARY: &str = "canary-7f3a: do-not-tell";

/// The memory at which the renderers collect garbage, below their limit.
const GO_MEMORY: u64 = 192 << 20;

/// A tree that a program may read, a folder that it may write, and a file that is none of its
/// business.
pub(crate) struct Fixture {
    dir: TempDir,
    pub(crate) policy: SandboxPolicy,
}

impl Fixture {
    /// Returns the files of the tree, each a path and a text.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let dir = TempDir::new().unwrap();
        for folder in ["tree", "private"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        fs::write(dir.path().join("canary"), CANARY).unwrap();
        let policy = SandboxPolicy {
            mode: SandboxMode::Full,
            readable: vec![dir.path().join("tree")],
            private: dir.path().join("private"),
            network: NetworkReach::None,
            limits: SandboxLimits { deadline: Duration::from_secs(30), ..SandboxLimits::default() },
        };
        let fixture = Self { dir, policy };
        for (path, text) in files {
            fixture.add(path, text);
        }
        fixture
    }

    pub(crate) fn add(&self, path: &str, text: &str) {
        let path = self.tree().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn link(&self, path: &str, to: impl AsRef<Path>) {
        let path = self.tree().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(to, path).unwrap();
    }

    pub(crate) fn limits(mut self, change: impl FnOnce(&mut SandboxLimits)) -> Self {
        change(&mut self.policy.limits);
        self
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.dir.path().join("tree")
    }

    pub(crate) fn private(&self) -> PathBuf {
        self.dir.path().join("private")
    }

    pub(crate) fn canary(&self) -> PathBuf {
        self.dir.path().join("canary")
    }

    pub(crate) fn command(&self, program: &Path, words: &[&str]) -> ProgramCommand {
        ProgramCommand::new(program, self.tree()).arguments(words.iter().copied())
    }

    pub(crate) fn run(&self, command: &ProgramCommand) -> Result<RunOutput, SandboxError> {
        wait_for(sandbox().run(&self.policy, command))
    }

    /// Runs a renderer as rhumb does.
    pub(crate) fn render(&self, program: &Path, words: &[&str]) -> Result<RunOutput, SandboxError> {
        self.run(&self.command(program, words).go_runtime(GO_MEMORY, 2))
    }

    /// Runs a renderer without any sandbox, for what it would have done.
    pub(crate) fn bare(&self, program: &Path, words: &[&str]) -> UnsandboxedRun {
        let mut command = Command::new(program);
        command.current_dir(self.tree()).args(words).env_clear().env("HOME", self.private());
        let output = command.env("PATH", "/usr/bin:/bin").output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        UnsandboxedRun {
            success: output.status.success(),
            output: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }
}

/// The answer of a program without any sandbox.
#[derive(Debug)]
pub(crate) struct UnsandboxedRun {
    pub(crate) success: bool,
    pub(crate) output: String,
    pub(crate) stderr: String,
}

pub(crate) fn sandbox() -> Sandbox {
    Sandbox::launched_by(env!("CARGO_BIN_EXE_rhumb"))
}

pub(crate) fn wait_for<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) fn kustomize() -> &'static Path {
    &renderers().kustomize
}

pub(crate) fn helm() -> &'static Path {
    &renderers().helm
}

fn renderers() -> &'static Renderers {
    static FOUND: OnceLock<Renderers> = OnceLock::new();
    FOUND.get_or_init(|| Renderers::find().unwrap_or_else(|error| panic!("{error}")))
}

/// The part of the sandbox that stopped an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The part ended the program.
    Killed(SandboxPart),
    /// The part refused a call, and the program gave up with these words.
    Denied(SandboxPart, &'static str),
    /// The program refused by itself, with these words.
    Refused(&'static str),
}

#[track_caller]
pub(crate) fn assert_stopped(case: &str, outcome: Result<RunOutput, SandboxError>, by: &[Stop]) {
    let said = match &outcome {
        Ok(output) => format!("{}{}", String::from_utf8_lossy(&output.output), output.stderr),
        Err(error) => error.to_string(),
    };
    let shown: String = said.chars().take(2000).collect();
    assert!(!said.contains(CANARY), "{case}: it tells the canary: {shown}");
    assert!(!said.contains("root:x:0:0"), "{case}: it tells of accounts: {shown}");
    let stopped = by.iter().any(|stop| match (&outcome, *stop) {
        (Err(error), Stop::Killed(part)) => error.part() == Some(part),
        (Ok(output), Stop::Denied(part, words)) => {
            output.denied_part() == Some(part) && output.stderr.contains(words)
        }
        (Ok(output), Stop::Refused(words)) => {
            !output.is_success() && output.denied_part().is_none() && output.stderr.contains(words)
        }
        _ => false,
    });
    assert!(stopped, "{case}: expected {by:?}, found {:?}: {shown}", found(&outcome));
}

fn found(outcome: &Result<RunOutput, SandboxError>) -> String {
    match outcome {
        Ok(output) => format!("exit {}, denied by {:?}", output.code, output.denied_part()),
        Err(error) => format!("{:?}", error.part()),
    }
}

/// Returns the text of a successful run.
#[track_caller]
pub(crate) fn text(outcome: Result<RunOutput, SandboxError>) -> String {
    let output = outcome.unwrap_or_else(|error| panic!("{error}"));
    assert!(output.is_success(), "exit {}: {}", output.code, output.stderr);
    String::from_utf8(output.output).unwrap()
}
