//! The `git` program as a child: its environment, its deadline, and the end of all its processes.
//!
//! Network goes through it because libgit2's own transports hang on a silent server for ever.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Resource, Signal};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::sync::OnceCell;

use super::lock::StateLock;
use super::program::GitVersion;
use super::settings::TransportPolicy;

/// The number of bytes kept of the output; the listing of a few references has a few hundred.
const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// The time limit for the program's version; it answers at once.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Sets the limits that all of git's helpers inherit before any of them can talk to anybody.
///
/// A limit that is set from outside after the start comes too late where the machine is busy. An
/// exit with [`NO_LIMITS_EXIT_CODE`] says that one could not be set.
const LIMITED_SHELL: &str = "ulimit -c 0 && ulimit -d \"$RHUMB_DATA\" && ulimit -f \"$RHUMB_FILE\" || exit 125; \
     unset RHUMB_DATA RHUMB_FILE; exec git \"$@\"";
/// No exit code of git.
const NO_LIMITS_EXIT_CODE: i32 = 125;
/// The exit codes of a shell without such a program, or with one that cannot be run.
const NO_PROGRAM_EXIT_CODES: [i32; 2] = [126, 127];
/// `ulimit -d` counts in these.
const KIB: u64 = 1024;
/// `ulimit -f` counts in these.
const ULIMIT_BLOCK_BYTES: u64 = 512;

/// The limits of one command. Each of its processes has these for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChildLimits {
    /// Its time; all its processes are killed then.
    pub(super) time: Duration,
    /// The bytes of the largest file that it may write, a pack that it receives among them.
    pub(super) file: u64,
    /// The bytes of memory that is its own: not the files that it maps to read them.
    pub(super) memory: u64,
}

/// The peer that the child talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildPeer<'a> {
    /// A remote.
    Network(TransportPolicy),
    /// A repository on this host, which this configuration file declares safe: its owner was judged
    /// when it was opened.
    Host(&'a Path),
    /// Nobody.
    Nobody,
}

/// The output of a child, and its end.
#[derive(Debug)]
pub(super) struct ChildOutput {
    pub(super) status: ExitStatus,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl ChildOutput {
    /// Returns whether it was stopped by the limit on file sizes.
    pub(super) fn is_overflowed(&self) -> bool {
        self.status.signal() == Some(Signal::XFSZ.as_raw())
    }
}

/// The reason for a missing output.
#[derive(Debug)]
pub(super) enum ChildError {
    NotStarted(io::Error),
    /// The program is older than the oldest that is safe.
    TooOld(String),
    Silent,
    /// It said more than anything that is asked for would.
    TooMuch,
}

/// Returns a git command on a store, that asks nobody anything, reads no configuration but the
/// store's, and runs no hook. Protocols are limited by [`ChildPeer`].
pub(super) fn git_command(store: &Path, peer: ChildPeer<'_>) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", LIMITED_SHELL, "git"]).env_clear();
    for name in ["PATH", "SUDO_UID", "SSH_AUTH_SOCK", "GIT_SSL_CAINFO"] {
        pass(&mut command, name);
    }
    for name in ["https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"] {
        pass(&mut command, name);
    }
    let global = if let ChildPeer::Host(file) = peer { file } else { Path::new("/dev/null") };
    let protocols = match peer {
        ChildPeer::Network(TransportPolicy::Authenticated) => "https:ssh",
        #[cfg(test)]
        ChildPeer::Network(TransportPolicy::Any) => "https:ssh:http:git",
        ChildPeer::Host(_) => "file",
        ChildPeer::Nobody => "none",
    };
    command
        .current_dir("/")
        .env("HOME", "/nonexistent")
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", global)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ASKPASS", "/bin/false")
        .env("SSH_ASKPASS", "/bin/false")
        .env("GIT_ALLOW_PROTOCOL", protocols)
        .env("GIT_PROTOCOL_FROM_USER", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        // A foreign repository's configuration names the command that such a fetch would run.
        .env("GIT_NO_LAZY_FETCH", "1")
        // One heap for all threads: the reserves of others would count as memory.
        .env("MALLOC_ARENA_MAX", "1");
    let mut folder = std::ffi::OsString::from("--git-dir=");
    folder.push(store);
    command.arg(folder);
    for setting in [
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "core.bigFileThreshold=1m",
        "core.deltaBaseCacheLimit=16m",
        "pack.threads=1",
        "pack.windowMemory=64m",
        "pack.deltaCacheSize=16m",
        "credential.helper=",
        "gc.auto=0",
        "maintenance.auto=false",
        "fetch.fsckObjects=true",
        // A server that is asked with a token could send it on to any other.
        "http.followRedirects=false",
        "http.lowSpeedLimit=1000",
        "http.lowSpeedTime=20",
    ] {
        command.args(["-c", setting]);
    }
    command
}

fn pass(command: &mut Command, name: &str) {
    if let Some(value) = std::env::var_os(name) {
        command.env(name, value);
    }
}

/// Kills all processes of a child when dropped before the child has been waited for. Killing the
/// child alone would leave its helpers running; a killed helper's half pack is smaller than a
/// running one's.
struct ChildProcessGroup(Option<Pid>);

impl Drop for ChildProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0.take() {
            // Only fails when no process is left.
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
    }
}

/// Runs a command to its end, or to one of its limits.
///
/// It holds the store's lock as long as it lives: should this process be killed, the next one must
/// not work in the store beside a child that goes on.
pub(super) async fn run(
    mut command: Command,
    lock: &StateLock,
    bounds: ChildLimits,
) -> Result<ChildOutput, ChildError> {
    Box::pin(require_safe_git()).await?;
    command
        .env("RHUMB_DATA", (lower_limit(Resource::Data, bounds.memory) / KIB).to_string())
        .env("RHUMB_FILE", (lower_limit(Resource::Fsize, bounds.file) / ULIMIT_BLOCK_BYTES).to_string());
    // As its standard input, which it never reads and does not hand on.
    command
        .stdin(lock.share().map_err(ChildError::NotStarted)?)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let mut child = command.spawn().map_err(ChildError::NotStarted)?;
    let mut group = ChildProcessGroup(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    let ended = tokio::time::timeout(bounds.time, async {
        let (out, err) = tokio::join!(drain(stdout.as_mut()), drain(stderr.as_mut()));
        (out, err, child.wait().await)
    })
    .await;
    let Ok(((stdout, fits), (stderr, _), status)) = ended else {
        drop(group);
        let _ = child.wait().await;
        return Err(ChildError::Silent);
    };
    group.0 = None;
    let status = status.map_err(ChildError::NotStarted)?;
    match status.code() {
        Some(NO_LIMITS_EXIT_CODE) => {
            let why = format!("its limits cannot be set: {}", stderr.trim());
            Err(ChildError::NotStarted(io::Error::other(why)))
        }
        Some(code) if NO_PROGRAM_EXIT_CODES.contains(&code) => {
            Err(ChildError::NotStarted(io::ErrorKind::NotFound.into()))
        }
        _ if fits => Ok(ChildOutput { status, stdout, stderr }),
        _ => Err(ChildError::TooMuch),
    }
}

/// Returns the limit, or the one that this process has itself where that is less: nobody may raise
/// it.
fn lower_limit(resource: Resource, limit: u64) -> u64 {
    rustix::process::getrlimit(resource).maximum.map_or(limit, |own| own.min(limit))
}

/// Fails where the program is one that is known to run what a repository's configuration names.
///
/// Asked until it is well once: what is too old may be replaced while this process lives.
async fn require_safe_git() -> Result<(), ChildError> {
    static SAFE: OnceCell<()> = OnceCell::const_new();
    let asked = async {
        let mut command = Command::new("git");
        command.arg("--version").stdin(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(VERSION_TIMEOUT, command.output()).await;
        let output = output.map_err(|_| ChildError::Silent)?.map_err(ChildError::NotStarted)?;
        let said = String::from_utf8_lossy(&output.stdout);
        match GitVersion::read(&said) {
            Some(version) if version.is_safe() => Ok(()),
            _ => Err(ChildError::TooOld(said.trim().chars().take(100).collect())),
        }
    };
    SAFE.get_or_try_init(|| asked).await.map(drop)
}

/// Reads to the end, keeps the beginning, and says whether that was all.
async fn drain(stream: Option<&mut (impl AsyncRead + Unpin)>) -> (String, bool) {
    let mut kept = Vec::new();
    let mut fits = true;
    let Some(stream) = stream else { return (String::new(), true) };
    let mut buffer = vec![0; 8192];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        let part = buffer.get(..count).unwrap_or_default();
        let room = (MAX_OUTPUT_BYTES - kept.len()).min(count);
        kept.extend_from_slice(part.get(..room).unwrap_or_default());
        fits &= room == count;
    }
    (String::from_utf8_lossy(&kept).into_owned(), fits)
}
