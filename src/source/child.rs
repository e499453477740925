//! The `git` program as a child: its environment, its deadline, and the end of all its processes.
//!
//! Network goes through it because libgit2's own transports hang on a silent server for ever.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use super::lock::Lock;
use super::settings::Transports;

/// What is kept of an answer; the listing of a few references has a few hundred bytes.
const MOST_OUTPUT: usize = 1 << 20;

/// What the child talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer<'a> {
    /// A remote.
    Network(Transports),
    /// A repository on this host, which this configuration file declares safe: its owner was judged when it
    /// was opened.
    Host(&'a Path),
    /// Nobody.
    Nobody,
}

/// What a child said and how it ended.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) status: ExitStatus,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Output {
    /// Whether it was stopped by the limit on file sizes.
    pub(super) fn overflowed(&self) -> bool {
        self.status.signal() == Some(Signal::XFSZ.as_raw())
    }
}

/// Why there is no output.
#[derive(Debug)]
pub(super) enum Failure {
    NotStarted(io::Error),
    Silent,
    /// It said more than anything that is asked for would.
    TooMuch,
}

/// A git command on a store, that asks nobody anything, reads no configuration but the store's, and runs no
/// hook. Protocols are limited by [`Peer`].
pub(super) fn git(store: &Path, peer: Peer<'_>) -> Command {
    let mut command = Command::new("git");
    command.env_clear();
    for name in ["PATH", "SUDO_UID", "SSH_AUTH_SOCK", "GIT_SSL_CAINFO"] {
        pass(&mut command, name);
    }
    for name in ["https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"] {
        pass(&mut command, name);
    }
    let global = if let Peer::Host(file) = peer { file } else { Path::new("/dev/null") };
    let protocols = match peer {
        Peer::Network(Transports::Authenticated) => "https:ssh",
        Peer::Network(Transports::Any) => "https:ssh:http:git",
        Peer::Host(_) => "file",
        Peer::Nobody => "none",
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
        .env("GIT_OPTIONAL_LOCKS", "0");
    let mut folder = std::ffi::OsString::from("--git-dir=");
    folder.push(store);
    command.arg(folder);
    for setting in [
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "core.bigFileThreshold=1m",
        "credential.helper=",
        "gc.auto=0",
        "maintenance.auto=false",
        "fetch.fsckObjects=true",
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

/// Kills all processes of a child when dropped before the child has been waited for: killing the child
/// alone would leave its helpers running, and a killed helper's half pack is smaller than a running one's.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0.take() {
            // Only fails when no process is left.
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
    }
}

/// Runs a command to its end, or to the deadline. No file that it writes grows over `most` bytes.
///
/// It holds the store's lock as long as it lives: should this process be killed, the next one must not work
/// in the store beside a child that goes on.
pub(super) async fn run(
    mut command: Command,
    lock: &Lock,
    deadline: Duration,
    most: u64,
) -> Result<Output, Failure> {
    // As its standard input, which it never reads and does not hand on.
    command.stdin(lock.share().map_err(Failure::NotStarted)?).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let mut child = command.spawn().map_err(Failure::NotStarted)?;
    let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let mut group = Group(pid);
    // Helpers inherit it. They start after a network exchange, so that this comes first in practice; a
    // helper that was faster still ends by the deadline.
    let limit = Rlimit { current: Some(most), maximum: Some(most) };
    let _ = rustix::process::prlimit(pid, Resource::Fsize, limit);
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    let ended = tokio::time::timeout(deadline, async {
        let (out, err) = tokio::join!(drained(stdout.as_mut()), drained(stderr.as_mut()));
        (out, err, child.wait().await)
    })
    .await;
    let Ok(((stdout, fits), (stderr, _), status)) = ended else {
        drop(group);
        let _ = child.wait().await;
        return Err(Failure::Silent);
    };
    group.0 = None;
    let status = status.map_err(Failure::NotStarted)?;
    if fits { Ok(Output { status, stdout, stderr }) } else { Err(Failure::TooMuch) }
}

/// Reads to the end, keeps the beginning, and says whether that was all.
async fn drained(stream: Option<&mut (impl AsyncRead + Unpin)>) -> (String, bool) {
    let mut kept = Vec::new();
    let mut fits = true;
    let Some(stream) = stream else { return (String::new(), true) };
    let mut buffer = vec![0; 8192];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        let part = buffer.get(..count).unwrap_or_default();
        let room = (MOST_OUTPUT - kept.len()).min(count);
        kept.extend_from_slice(part.get(..room).unwrap_or_default());
        fits &= room == count;
    }
    (String::from_utf8_lossy(&kept).into_owned(), fits)
}
