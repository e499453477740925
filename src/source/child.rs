//! The `git` program as a child: its environment, its deadline, and the end of all its processes.
//!
//! Network goes through it because libgit2's own transports hang on a silent server for ever.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Resource, Signal};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;

use super::error::SourceError;
use super::program::GitVersion;
use super::read_sandbox;
use super::settings::TransportPolicy;
use super::state_lock::StateLock;

/// The number of bytes kept of the output; the listing of a few references has a few hundred.
const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// The time limit for the program's version; it answers at once.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Sets the limits that all of git's helpers inherit before any of them can talk to anybody. Where
/// memory is short, the system chooses them before this process. In a sandbox that is not set.
///
/// A limit that is set from outside after the start comes too late where the machine is busy. An
/// exit with [`NO_LIMITS_EXIT_CODE`] says that one could not be set. The limit on processor time
/// ends what spins where nobody is left to watch the clock.
macro_rules! limited_script {
    ($command:literal) => {
        concat!(
            "{ echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null; ulimit -c 0 && ulimit -d \"$RHUMB_DATA\" && ulimit -f \"$RHUMB_FILE\" && ",
            "ulimit -t \"$RHUMB_SECONDS\" || exit 125; unset RHUMB_DATA RHUMB_FILE RHUMB_SECONDS; ",
            $command
        )
    };
}

/// The script that runs one command of git.
const RUN_SCRIPT: &str = limited_script!("exec git \"$@\"");

/// The script that packs what a list of revisions names, and takes the pack into the store that is
/// named by the arguments. Both commands hold the store's lock, which is the standard input of the
/// shell.
///
/// The one that writes sees the store alone. So it computes the id of each object by itself.
const COPY_SCRIPT: &str = limited_script!(
    "exec 3<&0; \
     git \"$@\" pack-objects $RHUMB_SCOPE --quiet --revs --stdout --no-use-bitmap-index --no-reuse-delta --window=0 \
     <\"$RHUMB_REVISIONS\" | \
     { unset GIT_ALTERNATE_OBJECT_DIRECTORIES; git \"$@\" index-pack --stdin >/dev/null; }"
);
/// The exit code of a child whose limits could not be set; git has no such one.
const NO_LIMITS_EXIT_CODE: i32 = 125;
/// The exit codes of a shell without such a program, or with one that cannot be run.
const NO_PROGRAM_EXIT_CODES: [i32; 2] = [126, 127];
/// The exit code of a shell whose command was ended by a signal, less the signal's number.
const SHELL_SIGNAL_CODE: i32 = 128;
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

/// The objects that a copy takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyScope {
    /// All that the revisions lead to.
    Everything,
    /// The commits alone.
    Commits,
}

/// The peer that the child talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildPeer<'a> {
    /// A remote.
    Network(TransportPolicy),
    /// A folder of objects in a repository on this host, which others may write.
    Host(&'a Path),
    /// The child talks to nobody.
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
    /// Returns whether it was stopped by the limit on file sizes. A shell reports that by its exit
    /// code.
    pub(super) fn is_overflowed(&self) -> bool {
        let signal = Signal::XFSZ.as_raw();
        self.status.signal() == Some(signal) || self.status.code() == Some(SHELL_SIGNAL_CODE + signal)
    }
}

/// The reason for a missing output.
#[derive(Debug)]
pub(super) enum ChildError {
    NotStarted(io::Error),
    /// A folder of its sandbox cannot be opened.
    NoFolder(io::Error),
    /// The program is older than the oldest that is safe.
    TooOld(String),
    Silent,
    /// It said more than anything that is asked for would.
    TooMuch,
}

impl ChildError {
    /// Returns the error of a source, whose child had this time. `too_much` is that of one that
    /// prints without an end.
    pub(super) fn into_source_error(
        self,
        shown_location: &str,
        after: Duration,
        too_much: impl FnOnce(String) -> SourceError,
    ) -> SourceError {
        let shown_location = shown_location.to_owned();
        match self {
            Self::NotStarted(error) => SourceError::NoGit { error },
            Self::NoFolder(error) => SourceError::Unreadable { shown_location, error },
            Self::TooOld(found) => SourceError::OldGit { found },
            Self::Silent => SourceError::Silent { shown_location, after },
            Self::TooMuch => too_much(shown_location),
        }
    }
}

/// Returns a git command on a store, that asks nobody anything, reads no configuration but the
/// store's, and runs no hook. Protocols are limited by [`ChildPeer`].
pub(super) fn git_command(store: &Path, peer: ChildPeer<'_>) -> Command {
    script_command(RUN_SCRIPT, store, peer)
}

/// Returns a command that copies what a file of revisions names out of a folder of objects into a
/// store. The file has lines as `git rev-list --stdin` takes them.
pub(super) fn copy_command(store: &Path, objects: &Path, revisions: &Path, scope: CopyScope) -> Command {
    let mut command = script_command(COPY_SCRIPT, store, ChildPeer::Host(objects));
    let scope = match scope {
        CopyScope::Everything => "",
        CopyScope::Commits => "--filter=tree:0",
    };
    command.env("RHUMB_REVISIONS", revisions).env("RHUMB_SCOPE", scope);
    command
}

fn script_command(script: &str, store: &Path, peer: ChildPeer<'_>) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script, "git"]).env_clear();
    for name in ["PATH", "SUDO_UID", "SSH_AUTH_SOCK", "GIT_SSL_CAINFO"] {
        pass(&mut command, name);
    }
    for name in ["https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"] {
        pass(&mut command, name);
    }
    if let ChildPeer::Host(objects) = peer {
        command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quote_path(objects));
    }
    let protocols = match peer {
        ChildPeer::Network(TransportPolicy::Authenticated) => "https:ssh",
        #[cfg(test)]
        ChildPeer::Network(TransportPolicy::Any) => "https:ssh:http:git",
        ChildPeer::Host(_) | ChildPeer::Nobody => "none",
    };
    command
        .current_dir("/")
        .env("HOME", "/nonexistent")
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ASKPASS", "/bin/false")
        .env("SSH_ASKPASS", "/bin/false")
        .env("GIT_ALLOW_PROTOCOL", protocols)
        .env("GIT_PROTOCOL_FROM_USER", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        // A foreign repository's configuration names the command that such a fetch would run.
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        // One heap for all threads: the reserves of others would count as memory.
        .env("MALLOC_ARENA_MAX", "1");
    let mut folder = std::ffi::OsString::from("--git-dir=");
    folder.push(store);
    command.arg(folder);
    for setting in [
        "core.hooksPath=/dev/null",
        // Both could be another's word about what is in the commits and packs.
        "core.commitGraph=false",
        "core.multiPackIndex=false",
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

/// All processes of a child. They are killed when this is dropped before the child has been waited
/// for. Killing the child alone would leave its helpers running; a killed helper's half pack is
/// smaller than a running one's.
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
/// It holds the store's lock as long as it lives. Should this process be killed, the next one must
/// not work in the store beside a child that goes on.
pub(super) async fn run(
    mut command: Command,
    lock: &StateLock,
    bounds: ChildLimits,
) -> Result<ChildOutput, ChildError> {
    prepare(&mut command, lock, bounds).await?;
    let running = RunningChild::start(&mut command).map_err(ChildError::NotStarted)?;
    running.end(bounds).await
}

/// Does the same as [`run`] in a sandbox, in which it can open nothing but what is below these
/// folders, and programs.
pub(super) async fn run_within(
    folders: Vec<PathBuf>,
    mut command: Command,
    lock: &StateLock,
    bounds: ChildLimits,
) -> Result<ChildOutput, ChildError> {
    prepare(&mut command, lock, bounds).await?;
    let runtime = Handle::current();
    let start = move || {
        read_sandbox::run_program_within(&folders, move || {
            let _context = runtime.enter();
            RunningChild::start(&mut command)
        })
    };
    let started = tokio::task::spawn_blocking(start).await.map_err(io::Error::other);
    let running = started.flatten().map_err(ChildError::NoFolder)?.map_err(ChildError::NotStarted)?;
    running.end(bounds).await
}

/// Gives a command its limits and streams.
async fn prepare(command: &mut Command, lock: &StateLock, bounds: ChildLimits) -> Result<(), ChildError> {
    Box::pin(require_safe_git()).await?;
    let seconds = bounds.time.as_secs() + 1;
    command
        .env("RHUMB_SECONDS", lower_limit(Resource::Cpu, seconds).to_string())
        .env("RHUMB_DATA", (lower_limit(Resource::Data, bounds.memory) / KIB).to_string())
        .env("RHUMB_FILE", (lower_limit(Resource::Fsize, bounds.file) / ULIMIT_BLOCK_BYTES).to_string());
    // As its standard input, which it never reads and does not hand on.
    command
        .stdin(lock.share().map_err(ChildError::NotStarted)?)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    Ok(())
}

/// A child that was started; all its processes end with it.
struct RunningChild {
    child: Child,
    group: ChildProcessGroup,
}

impl RunningChild {
    fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.spawn()?;
        let group = ChildProcessGroup(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
        Ok(Self { child, group })
    }

    async fn end(self, bounds: ChildLimits) -> Result<ChildOutput, ChildError> {
        let Self { mut child, mut group } = self;
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
}

/// Returns a path in the form in which a colon in it parts nothing.
pub(super) fn quote_path(path: &Path) -> OsString {
    let mut text = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => text.extend([b'\\', *byte]),
            byte => text.push(*byte),
        }
    }
    text.push(b'"');
    OsString::from_vec(text)
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
    static SAFE_VERSION_CHECK: OnceCell<()> = OnceCell::const_new();
    let version_check = async {
        let mut command = Command::new("git");
        command.arg("--version").stdin(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(VERSION_TIMEOUT, command.output()).await;
        let output = output.map_err(|_| ChildError::Silent)?.map_err(ChildError::NotStarted)?;
        let version_text = String::from_utf8_lossy(&output.stdout);
        match GitVersion::read(&version_text) {
            Some(version) if version.is_safe() => Ok(()),
            _ => Err(ChildError::TooOld(version_text.trim().chars().take(100).collect())),
        }
    };
    SAFE_VERSION_CHECK.get_or_try_init(|| version_check).await.map(drop)
}

/// Reads to the end, keeps the beginning, and says whether that was all.
async fn drain(stream: Option<&mut (impl AsyncRead + Unpin)>) -> (String, bool) {
    let mut kept = Vec::new();
    let mut fits = true;
    let Some(stream) = stream else { return (String::new(), true) };
    let mut buffer = vec![0; 8192];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        let part = buffer.get(..count).unwrap_or_default();
        let capacity = (MAX_OUTPUT_BYTES - kept.len()).min(count);
        kept.extend_from_slice(part.get(..capacity).unwrap_or_default());
        fits &= capacity == count;
    }
    (String::from_utf8_lossy(&kept).into_owned(), fits)
}

#[cfg(test)]
mod tests {
    use super::super::state_lock;
    use super::*;

    fn lift_limits(command: &mut Command) {
        for limit in ["RHUMB_DATA", "RHUMB_FILE", "RHUMB_SECONDS"] {
            command.env(limit, "unlimited");
        }
    }

    /// Fetches by a helper of git that runs what the URL says.
    #[tokio::test]
    async fn a_remote_helper_runs_no_command() {
        let folder = tempfile::tempdir().unwrap();
        let (store, ran) = (folder.path().join("store.git"), folder.path().join("ran"));
        git2::Repository::init_bare(&store).unwrap();
        let url = format!("ext::touch {}", ran.display());
        let fetch = async |change: &dyn Fn(&mut Command)| {
            let peer = ChildPeer::Network(TransportPolicy::Authenticated);
            let mut command = git_command(&store, peer);
            command.args(["fetch", "--quiet", &url]);
            lift_limits(&mut command);
            change(&mut command);
            let output = command.output().await.unwrap();
            assert!(!output.status.success(), "{output:?}");
            (ran.exists(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let (is_run, words) = fetch(&|_| {}).await;
        assert!(!is_run && words.contains("transport 'ext' not allowed"), "{words}");
        // Where that word allows it, the command is run.
        let allow = |command: &mut Command| {
            command.env("GIT_ALLOW_PROTOCOL", "ext");
        };
        let (is_run, words) = fetch(&allow).await;
        assert!(is_run, "{words}");
    }

    /// Asks a store for an object that it lacks. Its configuration names where such ones are, and the
    /// program that is run for it.
    #[tokio::test]
    async fn an_object_that_is_missing_is_fetched_from_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let (store, ran) = (folder.path().join("store.git"), folder.path().join("ran"));
        git2::Repository::init_bare(&store).unwrap();
        let program = format!("touch '{}'; exit 1 #", ran.display());
        let version_check = async |change: &dyn Fn(&mut Command)| {
            let mut command = git_command(&store, ChildPeer::Nobody);
            for (name, value) in [
                ("core.repositoryFormatVersion", "1"),
                ("extensions.partialClone", "origin"),
                ("remote.origin.url", store.to_str().unwrap()),
                ("remote.origin.promisor", "true"),
                ("remote.origin.partialCloneFilter", "blob:none"),
                ("remote.origin.uploadpack", &program),
            ] {
                command.args(["-c", &format!("{name}={value}")]);
            }
            command.args(["cat-file", "-p", "0123456789abcdef0123456789abcdef01234567"]);
            lift_limits(&mut command);
            // No transport is allowed either: that is another bar.
            command.env("GIT_ALLOW_PROTOCOL", "file");
            change(&mut command);
            let output = command.output().await.unwrap();
            assert!(!output.status.success(), "{output:?}");
            (ran.exists(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let (is_run, words) = version_check(&|_| {}).await;
        assert!(!is_run, "{words}");
        // Without that word the program is run.
        let allow = |command: &mut Command| {
            command.env_remove("GIT_NO_LAZY_FETCH");
        };
        let (is_run, words) = version_check(&allow).await;
        assert!(is_run, "{words}");
    }

    #[tokio::test]
    async fn where_memory_is_short_git_ends_before_this_process() {
        let folder = tempfile::tempdir().unwrap();
        let lock = state_lock::take(folder.path(), Duration::ZERO).await.unwrap();
        let mut command = git_command(folder.path(), ChildPeer::Nobody);
        command.args(["-c", "alias.score=!cat /proc/self/oom_score_adj", "score"]);
        let bounds = ChildLimits { time: Duration::from_mins(1), file: 1 << 20, memory: 512 << 20 };
        let output = run(command, &lock, bounds).await.unwrap();
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("1000\n", ""));
    }

    #[test]
    fn a_path_with_a_colon_is_one_path() {
        assert_eq!(quote_path(Path::new("/a:b\"c\\d")), OsString::from("\"/a:b\\\"c\\\\d\""));
    }
}
