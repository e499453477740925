//! Hints that something may have changed on this host. Only hints: what is true is read, and
//! polling goes on where no hint can be had.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime};

use notify::EventKind;
use notify::event::{ModifyKind, RenameMode};
use tokio::sync::Notify;

use super::folder;
use super::local;
use super::settings::SourceSettings;
use super::watch_pool::{WatchDepth, WatchPool, WatchSubscription, WatchTarget};

/// The interval at which the watched folders are checked to be the same ones.
const FOLDER_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// A reference in a new folder may be written before that folder is watched: look once more.
const LATE_CHANGE_DELAY: Duration = Duration::from_millis(100);

/// The hints that something may have changed. Dropped, they end the watching.
#[derive(Debug)]
pub(crate) struct ChangeHints {
    wake: Arc<Notify>,
    stop: Option<SyncSender<HintMessage>>,
}

impl ChangeHints {
    /// Waits for the next hint; hints that came while nobody waited are one. Never comes back for a
    /// remote.
    pub(crate) async fn next_hint(&self) {
        self.wake.notified().await;
    }

    /// Returns hints for a source that cannot be watched.
    pub(super) fn disabled() -> Self {
        Self { wake: Arc::default(), stop: None }
    }

    /// Watches from a thread of its own, which also does the blocking work of watching.
    pub(super) fn start(name: &str, watched: HintTarget, settings: &SourceSettings) -> Self {
        let wake = Arc::new(Notify::new());
        let (sender, receiver) = sync_channel(64);
        let watch = HintWatcher {
            watched,
            quiet: settings.quiet,
            max_quiet: settings.max_quiet,
            wake: wake.clone(),
            sender: sender.clone(),
        };
        let thread = std::thread::Builder::new().name(format!("watch {name}"));
        if let Err(error) = thread.spawn(move || watch.run(&receiver)) {
            tracing::warn!(source = name, %error, "its files cannot be watched, so they are polled");
        }
        Self { wake, stop: Some(sender) }
    }
}

impl Drop for ChangeHints {
    fn drop(&mut self) {
        if let Some(sender) = &self.stop {
            // A full channel wakes the thread too, and then it sees that nobody holds the other
            // end.
            let _ = sender.try_send(HintMessage::Stop);
        }
    }
}

/// The watch target of a source: what its change hints are about.
#[derive(Clone, Debug)]
pub(super) enum HintTarget {
    /// The references of a repository; each change counts at once.
    Repository(PathBuf),
    /// The files of a folder; a hint comes when they are quiet.
    Folder(PathBuf),
    /// Either of them, or nothing yet.
    Awaited(PathBuf),
}

enum HintMessage {
    Event,
    Stop,
}

/// A folder to watch, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WatchedFolder {
    path: PathBuf,
    depth: WatchDepth,
    /// Device, inode and birth: inodes are given again at once.
    identity: Option<(u64, u64, Option<SystemTime>)>,
    filter: NameFilter,
}

/// The names in a target that count.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NameFilter {
    /// Names in a repository's own folder that lead to revisions.
    Heads,
    /// References, without the locks they are written through.
    References,
    /// The files that are not hidden, below this root.
    Files,
    /// One entry.
    Entry(PathBuf),
}

impl NameFilter {
    fn is_relevant(&self, root: &Path, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().as_bytes();
        match self {
            Self::Heads => matches!(name, b"HEAD" | b"packed-refs" | b"refs"),
            Self::References => !name.ends_with(b".lock"),
            Self::Files => path.strip_prefix(root).is_ok_and(|inside| {
                inside.iter().map(std::ffi::OsStr::as_bytes).all(|part| {
                    !part.starts_with(b".")
                        || part == b"..data"
                        || part == super::file_names::IGNORE_FILE.as_bytes()
                })
            }),
            Self::Entry(entry) => path == entry,
        }
    }
}

fn watched_folder(path: &Path, depth: WatchDepth, filter: NameFilter) -> WatchedFolder {
    let identity =
        fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino(), metadata.created().ok()));
    WatchedFolder { path: path.to_owned(), depth, identity, filter }
}

impl HintTarget {
    /// Returns the present form of the target.
    fn resolve(&self) -> Self {
        match self {
            Self::Awaited(path) if local::repository_folders(path).is_ok() => Self::Repository(path.clone()),
            Self::Awaited(path) => Self::Folder(path.clone()),
            other => other.clone(),
        }
    }

    /// Returns the folders to watch now; empty where nothing is there.
    fn watched_folders(&self) -> Vec<WatchedFolder> {
        match self {
            Self::Awaited(_) => self.resolve().watched_folders(),
            Self::Repository(path) => {
                let Ok(folders) = local::repository_folders(path) else { return Vec::new() };
                let mut targets = vec![
                    watched_folder(&folders.common, WatchDepth::Flat, NameFilter::Heads),
                    watched_folder(&folders.common.join("refs"), WatchDepth::Deep, NameFilter::References),
                ];
                if folders.own != folders.common {
                    targets.push(watched_folder(&folders.own, WatchDepth::Flat, NameFilter::Heads));
                }
                targets
            }
            Self::Folder(path) => {
                let Ok(real) = folder::resolve(path) else { return Vec::new() };
                let mut targets = vec![watched_folder(&real, WatchDepth::Deep, NameFilter::Files)];
                if let Some(parent) = path.parent() {
                    targets.push(watched_folder(parent, WatchDepth::Flat, NameFilter::Entry(path.clone())));
                }
                // No folder twice: the second watch would take the place of the first.
                if let Ok(volume) = fs::canonicalize(path)
                    && volume != real
                {
                    targets.push(watched_folder(
                        &volume,
                        WatchDepth::Flat,
                        NameFilter::Entry(volume.join("..data")),
                    ));
                }
                targets
            }
        }
    }
}

struct HintWatcher {
    watched: HintTarget,
    quiet: Duration,
    max_quiet: Duration,
    wake: Arc<Notify>,
    sender: SyncSender<HintMessage>,
}

impl HintWatcher {
    fn run(&self, receiver: &Receiver<HintMessage>) {
        let mut complained = false;
        loop {
            let targets = self.watched.watched_folders();
            let stale = Arc::new(AtomicBool::new(false));
            let watcher = self.start_watch(&targets, stale.clone());
            match &watcher {
                Err(error) if !complained => {
                    complained = true;
                    tracing::warn!(watched = ?self.watched, %error, "its files cannot be watched, so they are polled");
                }
                Ok(_) => complained = false,
                Err(_) => {}
            }
            // An event may have come while nothing was watched.
            self.wake.notify_one();
            stale.fetch_or(watcher.is_err() && !targets.is_empty(), Ordering::Relaxed);
            if !self.follow(receiver, &targets, &stale) {
                return;
            }
        }
    }

    /// Sets the watch; it becomes stale when a folder that is watched is gone.
    fn start_watch(
        &self,
        targets: &[WatchedFolder],
        stale: Arc<AtomicBool>,
    ) -> notify::Result<WatchSubscription> {
        let (sender, filters) = (self.sender.clone(), targets.to_vec());
        let pass_on = move |event: &notify::Result<notify::Event>| {
            let gone = event.as_ref().is_ok_and(|event| is_removal(&filters, event));
            if !gone && event.as_ref().is_ok_and(|event| !is_relevant(&filters, event)) {
                return;
            }
            stale.fetch_or(gone, Ordering::Relaxed);
            // A full channel holds a message that says the same.
            let _ = sender.try_send(HintMessage::Event);
        };
        let device = targets.first().and_then(|target| target.identity).map(|(device, ..)| device);
        let watched = targets.iter().map(|target| WatchTarget::new(&target.path, target.depth)).collect();
        WatchPool::shared().watch(device, watched, Box::new(pass_on))
    }

    /// Passes hints on until the targets are other ones; false when nobody listens any more.
    fn follow(
        &self,
        receiver: &Receiver<HintMessage>,
        targets: &[WatchedFolder],
        stale: &AtomicBool,
    ) -> bool {
        loop {
            match receiver.recv_timeout(FOLDER_CHECK_INTERVAL) {
                Ok(HintMessage::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
                Ok(HintMessage::Event) => {
                    if !self.wait_for_event(receiver) {
                        return false;
                    }
                }
                Err(RecvTimeoutError::Timeout) if Arc::strong_count(&self.wake) == 1 => return false,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if stale.load(Ordering::Relaxed) || self.watched.watched_folders() != targets {
                return true;
            }
        }
    }

    /// Waits for one event and those that follow it. Returns false when nobody listens any more.
    fn wait_for_event(&self, receiver: &Receiver<HintMessage>) -> bool {
        let repository = matches!(self.watched.resolve(), HintTarget::Repository(_));
        let (pause, end) = if repository {
            self.wake.notify_one();
            (LATE_CHANGE_DELAY, Instant::now() + LATE_CHANGE_DELAY)
        } else {
            (self.quiet, Instant::now() + self.max_quiet)
        };
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match receiver.recv_timeout(pause.min(left)) {
                Ok(HintMessage::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
                Ok(HintMessage::Event) => {
                    if repository {
                        self.wake.notify_one();
                    }
                    if left.is_zero() {
                        break;
                    }
                }
                Err(RecvTimeoutError::Timeout) => break,
            }
        }
        self.wake.notify_one();
        true
    }
}

/// Returns whether a watched folder itself is gone.
fn is_removal(targets: &[WatchedFolder], event: &notify::Event) -> bool {
    let kind = matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
    kind && event.paths.iter().any(|path| targets.iter().any(|target| target.path == *path))
}

/// Returns whether an event may mean a change. Reading a file is an event too, and must not wake
/// the reader. A rename comes once for each of its names, and then for both of them again.
fn is_relevant(targets: &[WatchedFolder], event: &notify::Event) -> bool {
    let rename = EventKind::Modify(ModifyKind::Name(RenameMode::Both));
    if matches!(event.kind, EventKind::Access(_)) || event.kind == rename {
        return false;
    }
    event.need_rescan()
        || event.paths.iter().any(|path| {
            targets
                .iter()
                .any(|target| path.starts_with(&target.path) && target.filter.is_relevant(&target.path, path))
        })
}

#[cfg(test)]
mod tests {
    use notify::event::{AccessKind, AccessMode, CreateKind};

    use super::*;

    #[test]
    fn a_moved_reference_wakes_once_and_its_lock_never() {
        let folder = WatchedFolder {
            path: "/refs".into(),
            depth: WatchDepth::Deep,
            identity: None,
            filter: NameFilter::References,
        };
        let check = |kind: EventKind, paths: &[&str], expected: bool| {
            let named = notify::Event {
                paths: paths.iter().map(PathBuf::from).collect(),
                ..notify::Event::new(kind)
            };
            assert_eq!(is_relevant(std::slice::from_ref(&folder), &named), expected, "{kind:?} {paths:?}");
        };
        let (old, new) = ("/refs/heads/main.lock", "/refs/heads/main");
        let rename = |mode: RenameMode| EventKind::Modify(ModifyKind::Name(mode));
        check(EventKind::Create(CreateKind::File), &[old], false);
        check(rename(RenameMode::From), &[old], false);
        check(rename(RenameMode::To), &[new], true);
        check(rename(RenameMode::Both), &[old, new], false);
        check(EventKind::Create(CreateKind::File), &[new], true);
        check(EventKind::Access(AccessKind::Open(AccessMode::Any)), &[new], false);
    }
}
