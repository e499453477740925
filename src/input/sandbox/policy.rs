//! The sandbox of one program, and what it is asked to do in it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::SandboxMode;

/// The bounds of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxLimits {
    /// Bytes of memory that is its own. Go needs 128 MiB to start.
    pub memory: u64,
    /// Time on all processors together, in whole seconds.
    pub processor: Duration,
    /// Time on the clock, after which it is killed.
    pub deadline: Duration,
    /// Bytes of the largest file that it may write.
    pub file: u64,
    /// Descriptors that it may have open.
    pub descriptors: u64,
    /// Bytes that it may print.
    pub output: usize,
    /// Bytes that are kept of its complaints, from their beginning and their end.
    pub stderr: usize,
}

impl Default for SandboxLimits {
    fn default() -> Self {
        Self {
            memory: 512 << 20,
            processor: Duration::from_mins(1),
            deadline: Duration::from_mins(1),
            file: 16 << 20,
            descriptors: 256,
            output: 64 << 20,
            stderr: 64 << 10,
        }
    }
}

/// The network that a program may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NetworkReach {
    /// None: it can make no socket.
    #[default]
    None,
    /// Servers of the internet protocols, by TCP at these ports alone and by UDP at any. The ports
    /// are bound where Landlock knows ports: its fourth version, of Linux 6.7.
    Ports(Vec<u16>),
}

/// The bounds of what a program may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxPolicy {
    /// The parts of the sandbox that it must have.
    pub mode: SandboxMode,
    /// Files, and folders with all that is below them, that it may read.
    pub readable: Vec<PathBuf>,
    /// The one folder that it may write: its `HOME` and `TMPDIR`.
    pub private: PathBuf,
    /// The network that it may reach.
    pub network: NetworkReach,
    /// The bounds of the run.
    pub limits: SandboxLimits,
}

/// A program and what it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramCommand {
    /// The program's file; no search is made.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The folder that it starts in.
    pub directory: PathBuf,
    /// Its variables, besides `HOME` and `TMPDIR`.
    pub environment: Vec<(OsString, OsString)>,
}

impl ProgramCommand {
    /// Returns a command without arguments and variables.
    pub fn new(program: impl Into<PathBuf>, directory: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            directory: directory.into(),
            environment: Vec::new(),
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn arguments<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Adds a variable.
    #[must_use]
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets how a Go program uses memory and processors. It collects garbage only near `memory`
    /// bytes, as it ends before it has much. It runs on `processors` processors.
    #[must_use]
    pub fn go_runtime(self, memory: u64, processors: usize) -> Self {
        self.variable("GOGC", "off")
            .variable("GOMEMLIMIT", memory.to_string())
            .variable("GOMAXPROCS", processors.to_string())
    }
}
