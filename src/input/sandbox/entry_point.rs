//! The hidden entry of the program: a process that sets up a sandbox around itself, and then
//! becomes another program.
//!
//! Its standard input is a pipe to who started it. It writes to it what went wrong, or that its
//! sandbox works and the program begins, with which it closes. Nothing here asks the environment.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use rustix::process::{Resource, Rlimit, Signal};

use super::executable::{self, LinkageError, ProgramLinkage};
use super::files::{self, LandlockError, ReachableFiles};
use super::system_calls::{self, SeccompError};
use super::words::{SandboxedStart, StartReport, path_text};
use crate::config::SandboxMode;

/// The first word of the command line that leads here. No command of the program has this name.
pub const ENTRY_COMMAND: &str = "sandboxed-exec";

/// The exit code of a process that became no program.
const NO_PROGRAM_EXIT_CODE: u8 = 125;

/// The first descriptor that is none of the three that a program starts with.
const FIRST_INHERITED_DESCRIPTOR: i32 = 3;

/// The system's choice when memory is short: this process, before any other.
const OOM_SCORE_ADJUSTMENT: &str = "1000";

/// Becomes the program that the words ask for, in the sandbox that they name, and returns only
/// where that fails. The words are those after [`ENTRY_COMMAND`].
pub fn enter(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    // Anybody may call this; whoever did not make a pipe for the answer gets none.
    let Ok(report) = rustix::stdio::stdin().try_clone_to_owned() else { return NO_PROGRAM_EXIT_CODE.into() };
    let Some(start) = SandboxedStart::read(words) else { return NO_PROGRAM_EXIT_CODE.into() };
    let mut report = File::from(report);
    let (sent, code) = match become_program(&start, &mut report) {
        Ok(landlock) => (StartReport::Works { landlock }, ExitCode::SUCCESS),
        Err(error) => (error.report(), NO_PROGRAM_EXIT_CODE.into()),
    };
    send(&sent, &mut report);
    code
}

/// Writes a report, and ignores a failure: the process that started this one may be gone, and then
/// nobody reads it.
fn send(sent: &StartReport, report: &mut File) {
    let _ = report.write_all(sent.text().as_bytes());
}

/// The reason for which the program did not begin.
#[derive(Debug, thiserror::Error)]
enum EntryError {
    #[error("landlock")]
    Files(#[from] LandlockError),
    #[error("seccomp")]
    Calls(#[from] SeccompError),
    #[error("{}: {error}", path_text(.path))]
    Program { path: PathBuf, error: LinkageError },
    #[error("{}: {error}", path_text(.path))]
    Exec { path: PathBuf, error: io::Error },
    #[error("its {limit_name} cannot be bounded: {error}")]
    Limit { limit_name: &'static str, error: rustix::io::Errno },
    #[error("{0}")]
    System(#[from] rustix::io::Errno),
    #[error("the process that started it is gone")]
    Orphan,
}

impl EntryError {
    fn report(&self) -> StartReport {
        match self {
            // A path that is not there is a mistake of the policy, and no want of the kernel.
            Self::Files(LandlockError::Path(error)) => StartReport::Failed(error.to_string()),
            Self::Files(error) => unsupported_report(self, error),
            Self::Calls(error) => unsupported_report(self, error),
            Self::Program { .. } | Self::Exec { .. } => StartReport::NoProgram(self.to_string()),
            Self::Limit { .. } | Self::System(_) | Self::Orphan => StartReport::Failed(self.to_string()),
        }
    }
}

fn unsupported_report(part: &EntryError, reason: &impl ToString) -> StartReport {
    StartReport::Unsupported { part: part.to_string(), reason: reason.to_string() }
}

/// Returns the version of Landlock where no program was asked for.
fn become_program(start: &SandboxedStart, report: &mut File) -> Result<u32, EntryError> {
    die_with_parent(start.parent)?;
    // Descriptors that this program opens close by themselves; others came from who started it.
    close_fds::set_fds_cloexec(FIRST_INHERITED_DESCRIPTOR, &[]);
    // It may be refused, as in some containers, and then any process is as likely to be chosen.
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE_ADJUSTMENT);
    let linkage = start.command.as_ref().map(|(program, _)| linkage(program)).transpose()?;
    let command = start.command.as_ref().map(|(program, arguments)| (program, arguments));
    let landlock = match start.mode {
        SandboxMode::Full => files::restrict(&ReachableFiles {
            readable: start.readable.iter().map(PathBuf::as_path).collect(),
            private: &start.private,
            network: &start.network,
            program: command.zip(linkage.as_ref()).map(|((program, _), linkage)| (&**program, linkage)),
        })?,
        SandboxMode::Seccomp => 0,
    };
    limit(start)?;
    system_calls::restrict(std::process::id(), &start.network)?;
    match command {
        Some((program, arguments)) => {
            send(&StartReport::Started, report);
            exec(program, arguments).map(|never| match never {})
        }
        None => Ok(landlock),
    }
}

/// Lets the kernel kill this process when the thread that started it ends. It may have ended
/// before that was asked for.
fn die_with_parent(parent: u32) -> Result<(), EntryError> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let found = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    if found.cast_unsigned() == parent { Ok(()) } else { Err(EntryError::Orphan) }
}

fn linkage(program: &Path) -> Result<ProgramLinkage, EntryError> {
    executable::read(program).map_err(|error| EntryError::Program { path: program.to_owned(), error })
}

/// The addresses that a program of Go reserves and does not use. The kernel does not hold memory
/// that is put into a reservation against the bound of memory, so that one large request passed it.
const RESERVED_ADDRESS_BYTES: u64 = 1536 << 20;

/// Bounds memory, time, files and descriptors. No bound is above one that this process has already,
/// which nobody could raise.
fn limit(start: &SandboxedStart) -> Result<(), EntryError> {
    let bounds = [
        ("memory", Resource::Data, start.memory),
        ("address space", Resource::As, start.memory.saturating_add(RESERVED_ADDRESS_BYTES)),
        ("processor time", Resource::Cpu, start.processor),
        ("files", Resource::Fsize, start.file),
        ("descriptors", Resource::Nofile, start.descriptors),
        ("core dump", Resource::Core, 0),
        ("locked memory", Resource::Memlock, 0),
    ];
    for (limit_name, resource, bound) in bounds {
        let bound = rustix::process::getrlimit(resource).maximum.map_or(bound, |own| own.min(bound));
        let bound = Rlimit { current: Some(bound), maximum: Some(bound) };
        rustix::process::setrlimit(resource, bound)
            .map_err(|error| EntryError::Limit { limit_name, error })?;
    }
    Ok(())
}

fn exec(program: &Path, arguments: &[OsString]) -> Result<Infallible, EntryError> {
    let name = program.file_name().unwrap_or(program.as_os_str());
    let error = Command::new(program).arg0(name).args(arguments).stdin(Stdio::null()).exec();
    Err(EntryError::Exec { path: program.to_owned(), error })
}
