//! Runs of sandboxed programs: bounded output, a deadline, and an end at once.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;

use super::entry_point::ENTRY_COMMAND;
use super::error::SandboxError;
use super::outcome::{RunOutput, SandboxPart, part_of_signal};
use super::policy::{ProgramCommand, SandboxPolicy};
use super::process::{self, ProcessEnd, SandboxedProcess};
use super::words::{SandboxedStart, StartReport};

/// The longest report of a process that became no program.
const MAX_REPORT_BYTES: usize = 4096;

/// The bytes that are read at once of a stream that is kept in part.
const READ_CHUNK_BYTES: usize = 64 << 10;

/// Stands for what is not kept.
pub(in crate::input) const OMISSION_MARK: &str = "\n[...]\n";

/// A way to start sandboxed programs.
#[derive(Clone, Debug)]
pub struct Sandbox {
    launcher: PathBuf,
}

impl Default for Sandbox {
    /// Starts this very program for each run. The path leads to it even after its file was
    /// replaced, so that both sides speak the same words.
    fn default() -> Self {
        Self { launcher: "/proc/self/exe".into() }
    }
}

/// The result of the part of a run that its deadline bounds.
struct RawOutcome {
    report: String,
    output: StreamStart,
    stderr: Vec<u8>,
    end: ProcessEnd,
}

/// The beginning of a stream.
struct StreamStart {
    bytes: Vec<u8>,
    /// Says that there was more.
    overflows: bool,
}

impl Sandbox {
    /// Returns one that starts another copy of the program, as tests do.
    pub fn launched_by(launcher: impl Into<PathBuf>) -> Self {
        Self { launcher: launcher.into() }
    }

    /// Runs a program to its own end or to a bound. Dropped before that, it kills the program.
    ///
    /// # Errors
    /// Fails where a part cannot be set up, the program cannot be started, or a part or a signal
    /// ended it. A program that fails by itself is no error: its exit code says so.
    pub async fn run(
        &self,
        policy: &SandboxPolicy,
        command: &ProgramCommand,
    ) -> Result<RunOutput, SandboxError> {
        let program = name(&command.program);
        let raw = self.raw_run(policy, Some(command), &program).await?;
        match StartReport::read(&raw.report) {
            Some(StartReport::Started) => {}
            report => return Err(refusal(report, program)),
        }
        let stderr = String::from_utf8_lossy(&raw.stderr).into_owned();
        if raw.output.overflows {
            return Err(SandboxError::Stopped { program, part: SandboxPart::Output, stderr });
        }
        if let Some(signal) = raw.end.status.signal() {
            return Err(match part_of_signal(signal, raw.end.processor, policy.limits.processor) {
                Some(part) => SandboxError::Stopped { program, part, stderr },
                None => SandboxError::Killed { program, signal, stderr },
            });
        }
        Ok(RunOutput {
            code: raw.end.status.code().unwrap_or(-1),
            output: raw.output.bytes,
            stderr,
            processor: raw.end.processor,
        })
    }

    /// Sets up the sandbox of a policy around a process that does nothing, and returns what it says.
    pub(super) async fn test_sandbox(&self, policy: &SandboxPolicy) -> Result<StartReport, SandboxError> {
        let program = name(&self.launcher);
        let raw = self.raw_run(policy, None, &program).await?;
        StartReport::read(&raw.report).ok_or_else(|| SandboxError::NotStarted {
            program,
            error: io::Error::other("it does not say whether its sandbox works"),
        })
    }

    async fn raw_run(
        &self,
        policy: &SandboxPolicy,
        command: Option<&ProgramCommand>,
        program: &str,
    ) -> Result<RawOutcome, SandboxError> {
        let not_started = |error| SandboxError::NotStarted { program: program.to_owned(), error };
        let (process, (pipes, end)) = process::start(self.command(policy, command)).map_err(not_started)?;
        let bounded = async {
            let pipes = pipes.await.map_err(|_| io::ErrorKind::BrokenPipe)??;
            let (mut output, mut stderr) = (receiver(pipes.output)?, receiver(pipes.stderr)?);
            let mut report = receiver(pipes.report)?;
            let (output, stderr, report) = tokio::try_join!(
                read_or_kill(&mut output, policy.limits.output, &process),
                read_both_ends(&mut stderr, policy.limits.stderr),
                read_both_ends(&mut report, MAX_REPORT_BYTES),
            )?;
            let end = wait_for_end(end).await?;
            let report = String::from_utf8_lossy(&report).into_owned();
            Ok(RawOutcome { report, output, stderr, end })
        };
        let in_time = tokio::time::timeout(policy.limits.deadline, bounded).await;
        // It is killed when `process` is dropped.
        let Ok(outcome) = in_time else {
            let (program, deadline) = (program.to_owned(), policy.limits.deadline);
            return Err(SandboxError::Deadline { program, deadline });
        };
        outcome.map_err(not_started)
    }

    fn command(&self, policy: &SandboxPolicy, command: Option<&ProgramCommand>) -> Command {
        let mut launched = Command::new(&self.launcher);
        launched
            .arg0("rhumb")
            .arg(ENTRY_COMMAND)
            .args(SandboxedStart::new(std::process::id(), policy, command).words())
            .env_clear()
            .env("HOME", &policy.private)
            .env("TMPDIR", &policy.private)
            .current_dir(command.map_or(policy.private.as_path(), |command| &command.directory));
        let variables = command.map(|command| &command.environment).into_iter().flatten();
        launched.envs(variables.map(|(name, value): &(OsString, OsString)| (name, value)));
        launched
    }
}

fn name(program: &Path) -> String {
    program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned()
}

fn refusal(report: Option<StartReport>, program: String) -> SandboxError {
    let reason = match report {
        Some(StartReport::Unsupported { part, reason }) => {
            return SandboxError::Unsupported { program, part, reason };
        }
        Some(StartReport::NoProgram(reason)) => return SandboxError::NoProgram { reason },
        Some(StartReport::Failed(reason)) => reason,
        Some(StartReport::Works { .. } | StartReport::Started) => {
            "it was asked for something else".to_owned()
        }
        None => "the process ended before its sandbox was complete".to_owned(),
    };
    SandboxError::NotStarted { program, error: io::Error::other(reason) }
}

fn receiver(pipe: impl Into<OwnedFd>) -> io::Result<Receiver> {
    Receiver::from_owned_fd(pipe.into())
}

async fn wait_for_end(end: oneshot::Receiver<io::Result<ProcessEnd>>) -> io::Result<ProcessEnd> {
    end.await.map_err(|_| io::ErrorKind::BrokenPipe)?
}

/// Reads at most `most` bytes, and kills a process that writes more.
async fn read_or_kill(
    stream: &mut Receiver,
    most: usize,
    process: &SandboxedProcess,
) -> io::Result<StreamStart> {
    let mut bytes = Vec::new();
    // One more than may be, to see that there is more.
    stream.take(most as u64 + 1).read_to_end(&mut bytes).await?;
    let overflows = bytes.len() > most;
    if overflows {
        process.kill();
    }
    Ok(StreamStart { bytes, overflows })
}

/// Reads to the end, as a program that waits for room would never end. Keeps the beginning and the
/// end, as the cause of an error comes last.
async fn read_both_ends(stream: &mut Receiver, most: usize) -> io::Result<Vec<u8>> {
    let half = most / 2;
    let mut bytes = Vec::new();
    stream.take(half as u64).read_to_end(&mut bytes).await?;
    let mut last = Vec::new();
    let mut left_out = false;
    while stream.take(READ_CHUNK_BYTES as u64).read_to_end(&mut last).await? > 0 {
        let surplus = last.len().saturating_sub(half);
        left_out |= surplus > 0;
        last.drain(..surplus);
    }
    if left_out {
        bytes.extend_from_slice(OMISSION_MARK.as_bytes());
    }
    bytes.append(&mut last);
    Ok(bytes)
}
