//! One sandboxed process: its start, its end, and the thread that waits for it.
//!
//! The kernel kills the process when the thread that started it ends (`PR_SET_PDEATHSIG` counts
//! threads). So each process has a thread of its own, which starts it and then waits for it.

use std::io::{self, PipeReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::sync::oneshot;

use super::outcome::processor_time;

/// The stack of a thread that does nothing but wait.
const THREAD_STACK_BYTES: usize = 128 << 10;

/// The facts that can be read of a process.
#[derive(Debug)]
pub(super) struct ProcessPipes {
    pub(super) output: ChildStdout,
    pub(super) stderr: ChildStderr,
    /// Closes when the process has become the program.
    pub(super) report: PipeReader,
}

/// The end of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessEnd {
    pub(super) status: ExitStatus,
    /// The time on all processors.
    pub(super) processor: Duration,
}

/// The state of a process, as far as a kill is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessState {
    /// Not started yet.
    Awaited,
    /// It lives, or was not waited for: its number is its own.
    Present(Pid),
    /// Its number may belong to others.
    Gone,
    /// It must not live.
    Unwanted,
}

/// A process that is killed when this is dropped.
#[derive(Debug)]
pub(super) struct SandboxedProcess(Arc<Mutex<ProcessState>>);

impl SandboxedProcess {
    /// Kills it, with its whole group, at once.
    pub(super) fn kill(&self) {
        let mut state = state(&self.0);
        if let ProcessState::Present(pid) = *state {
            // Only fails when no process is left.
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        } else if *state == ProcessState::Awaited {
            *state = ProcessState::Unwanted;
        }
    }
}

impl Drop for SandboxedProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

fn state(shared: &Mutex<ProcessState>) -> MutexGuard<'_, ProcessState> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The answers of a process's thread: what can be read of it, and later its end.
type ProcessReceivers =
    (oneshot::Receiver<io::Result<ProcessPipes>>, oneshot::Receiver<io::Result<ProcessEnd>>);

/// Starts a command, in a group of its own and with pipes.
pub(super) fn start(command: Command) -> io::Result<(SandboxedProcess, ProcessReceivers)> {
    let shared = Arc::new(Mutex::new(ProcessState::Awaited));
    let process = SandboxedProcess(shared.clone());
    let (begun, pipes) = oneshot::channel();
    let (ended, end) = oneshot::channel();
    // Nobody may wait for the answers any more: then the process is killed already.
    let work = move || match spawn(command, &shared) {
        Ok((child, pipes)) => {
            let _ = begun.send(Ok(pipes));
            let _ = ended.send(wait(child, &shared));
        }
        Err(error) => drop(begun.send(Err(error))),
    };
    thread::Builder::new().name("sandboxed".to_owned()).stack_size(THREAD_STACK_BYTES).spawn(work)?;
    Ok((process, (pipes, end)))
}

fn spawn(mut command: Command, shared: &Mutex<ProcessState>) -> io::Result<(Child, ProcessPipes)> {
    let (report, reporter) = io::pipe()?;
    command.stdin(reporter).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut state = state(shared);
    if *state == ProcessState::Unwanted {
        return Err(io::ErrorKind::Interrupted.into());
    }
    let mut child = command.spawn()?;
    *state = Pid::from_raw(child.id().cast_signed()).map_or(ProcessState::Gone, ProcessState::Present);
    match (child.stdout.take(), child.stderr.take()) {
        (Some(output), Some(stderr)) => Ok((child, ProcessPipes { output, stderr, report })),
        _ => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

fn wait(mut child: Child, shared: &Mutex<ProcessState>) -> io::Result<ProcessEnd> {
    let pid = Pid::from_child(&child);
    // Not taken away yet, so that its number stays its own and its times can be read.
    while let Err(error) =
        rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
    {
        if error != rustix::io::Errno::INTR {
            return Err(error.into());
        }
    }
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    let processor = processor_time(&stat, rustix::param::clock_ticks_per_second()).unwrap_or_default();
    let mut state = state(shared);
    *state = ProcessState::Gone;
    Ok(ProcessEnd { status: child.wait()?, processor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_wants_any_more_does_not_begin() {
        let shared = Arc::new(Mutex::new(ProcessState::Awaited));
        drop(SandboxedProcess(shared.clone()));
        let dir = tempfile::TempDir::new().unwrap();
        let mut command = Command::new("touch");
        command.arg(dir.path().join("begun"));
        let error = spawn(command, &shared).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        assert!(!dir.path().join("begun").exists());
    }

    #[test]
    fn a_number_that_may_be_anothers_is_not_killed() {
        let shared = Arc::new(Mutex::new(ProcessState::Awaited));
        let process = SandboxedProcess(shared.clone());
        let (child, pipes) = spawn(Command::new("true"), &shared).unwrap();
        assert!(matches!(*state(&shared), ProcessState::Present(_)));
        let end = wait(child, &shared).unwrap();
        assert!(end.status.success());
        assert_eq!(*state(&shared), ProcessState::Gone);
        process.kill();
        assert_eq!(*state(&shared), ProcessState::Gone);
        drop(pipes);
    }
}
