//! The watches of all sources over few instances of inotify. The kernel gives a user 128 by
//! default.
//!
//! An instance has one watch of a folder, and reports it under one path. So folders that overlap,
//! and are not the same watch, go to different instances. So do file systems: one that does not
//! answer blocks the thread of its instance.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

/// The depth of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchDepth {
    /// The entries of the folder.
    Flat,
    /// All that is below it.
    Deep,
}

/// The watch target of a subscription: a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WatchTarget {
    /// The path under which events are reported.
    path: PathBuf,
    depth: WatchDepth,
    /// The path without links.
    resolved: PathBuf,
}

impl WatchTarget {
    pub(super) fn new(path: &Path, depth: WatchDepth) -> Self {
        let resolved = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        Self { path: path.to_owned(), depth, resolved }
    }

    /// Returns whether one instance cannot have both watches beside each other.
    fn is_conflicting_with(&self, other: &Self) -> bool {
        if self.resolved == other.resolved {
            return self.path != other.path || self.depth != other.depth;
        }
        let holds = |outer: &Self, inner: &Self| {
            outer.depth == WatchDepth::Deep && inner.resolved.starts_with(&outer.resolved)
        };
        holds(self, other) || holds(other, self)
    }
}

/// The sink for the events of one subscription, and of others of its instance.
type FileEventHandler = Box<dyn Fn(&notify::Result<notify::Event>) + Send>;

/// The instances of a process.
#[derive(Default)]
pub(super) struct WatchPool(Mutex<PoolState>);

#[derive(Default)]
struct PoolState {
    /// The number of the next subscription.
    next: u64,
    instances: Vec<PooledInstance>,
}

struct PooledInstance {
    instance: Arc<WatchInstance>,
    /// The device of what it watches.
    device: Option<u64>,
    /// The share of each subscription: its targets.
    shares: BTreeMap<u64, Vec<WatchTarget>>,
}

impl PooledInstance {
    fn has_room_for(&self, targets: &[WatchTarget]) -> bool {
        let mut watched = self.shares.values().flatten();
        watched.all(|one| !targets.iter().any(|target| target.is_conflicting_with(one)))
    }
}

/// One instance of inotify, and the sinks of its events.
///
/// **Invariant:** no lock that a sink needs is held while the watcher is asked for anything: its
/// thread answers, and calls the sinks.
struct WatchInstance {
    watcher: Mutex<RecommendedWatcher>,
    sinks: Arc<Mutex<BTreeMap<u64, FileEventHandler>>>,
}

impl WatchInstance {
    fn start() -> notify::Result<Self> {
        let sinks: Arc<Mutex<BTreeMap<u64, FileEventHandler>>> = Arc::default();
        let reported = sinks.clone();
        let report = move |event: notify::Result<notify::Event>| {
            for sink in lock_ignoring_poison(&reported).values() {
                sink(&event);
            }
        };
        // A link below may lead anywhere, and is not read through.
        let config = notify::Config::default().with_follow_symlinks(false);
        Ok(Self { watcher: Mutex::new(RecommendedWatcher::new(report, config)?), sinks })
    }
}

/// The watches of one source. They end when it is dropped.
pub(super) struct WatchSubscription {
    pool: Arc<WatchPool>,
    instance: Arc<WatchInstance>,
    number: u64,
}

impl WatchPool {
    /// Returns the one of this process.
    pub(super) fn shared() -> Arc<Self> {
        static SHARED_POOL: LazyLock<Arc<WatchPool>> = LazyLock::new(Arc::default);
        SHARED_POOL.clone()
    }

    /// Watches folders of one device. The sink also sees what others of its instance watch.
    ///
    /// Fails where no instance can be had, or a folder cannot be watched.
    pub(super) fn watch(
        self: &Arc<Self>,
        device: Option<u64>,
        targets: Vec<WatchTarget>,
        sink: FileEventHandler,
    ) -> notify::Result<WatchSubscription> {
        let (instance, number) = self.subscribe(device, targets.clone())?;
        let subscription = WatchSubscription { pool: self.clone(), instance, number };
        let instance = &subscription.instance;
        lock_ignoring_poison(&instance.sinks).insert(number, sink);
        let mut watcher = lock_ignoring_poison(&instance.watcher);
        for target in &targets {
            let mode = match target.depth {
                WatchDepth::Flat => RecursiveMode::NonRecursive,
                WatchDepth::Deep => RecursiveMode::Recursive,
            };
            // Also where another one watches it: what was there then may be gone.
            watcher.watch(&target.path, mode)?;
        }
        drop(watcher);
        Ok(subscription)
    }

    /// Finds an instance with room for these targets, or starts one.
    fn subscribe(
        &self,
        device: Option<u64>,
        targets: Vec<WatchTarget>,
    ) -> notify::Result<(Arc<WatchInstance>, u64)> {
        let mut state = lock_ignoring_poison(&self.0);
        let number = state.next;
        state.next += 1;
        let fits = |pooled: &PooledInstance| pooled.device == device && pooled.has_room_for(&targets);
        let position = if let Some(position) = state.instances.iter().position(fits) {
            position
        } else {
            let instance = Arc::new(WatchInstance::start()?);
            state.instances.push(PooledInstance { instance, device, shares: BTreeMap::new() });
            state.instances.len() - 1
        };
        let pooled = &mut state.instances[position];
        pooled.shares.insert(number, targets);
        Ok((pooled.instance.clone(), number))
    }

    /// Ends the share of a subscription, and returns the paths that nobody else watches.
    fn unsubscribe(&self, instance: &Arc<WatchInstance>, number: u64) -> Vec<PathBuf> {
        let mut state = lock_ignoring_poison(&self.0);
        let found = state.instances.iter().position(|pooled| Arc::ptr_eq(&pooled.instance, instance));
        let Some(position) = found else { return Vec::new() };
        let pooled = &mut state.instances[position];
        let ended = pooled.shares.remove(&number).unwrap_or_default();
        let is_watched = |path: &Path| pooled.shares.values().flatten().any(|other| other.path == path);
        let free = ended.into_iter().map(|target| target.path).filter(|path| !is_watched(path)).collect();
        if pooled.shares.is_empty() {
            state.instances.swap_remove(position);
        }
        free
    }

    #[cfg(test)]
    fn count_instances(&self) -> usize {
        lock_ignoring_poison(&self.0).instances.len()
    }
}

impl Drop for WatchSubscription {
    fn drop(&mut self) {
        lock_ignoring_poison(&self.instance.sinks).remove(&self.number);
        // Locked before the share ends: a later subscription to one of its paths watches it after
        // this has unwatched it.
        let mut watcher = lock_ignoring_poison(&self.instance.watcher);
        for path in self.pool.unsubscribe(&self.instance, self.number) {
            // Fails where the folder is gone, and its watch with it.
            let _ = watcher.unwatch(&path);
        }
    }
}

/// Locks what a panic of another thread left as it was.
fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use super::*;

    /// Subscribes to folders, and gives the paths of their events.
    fn watch(
        pool: &Arc<WatchPool>,
        targets: &[(&Path, WatchDepth)],
    ) -> (WatchSubscription, Receiver<PathBuf>) {
        let (sender, events) = channel();
        let sink = move |event: &notify::Result<notify::Event>| {
            for path in &event.as_ref().unwrap().paths {
                let _ = sender.send(path.clone());
            }
        };
        let targets = targets.iter().map(|(path, depth)| WatchTarget::new(path, *depth)).collect();
        (pool.watch(Some(1), targets, Box::new(sink)).unwrap(), events)
    }

    fn wait_for(events: &Receiver<PathBuf>, path: &Path) {
        while events.recv_timeout(Duration::from_secs(20)).expect("the event comes") != path {}
    }

    #[test]
    fn two_hundred_sources_share_one_instance() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let pool = Arc::new(WatchPool::default());
        let mut subscriptions = Vec::new();
        for number in 0..200 {
            let folder = root.join(number.to_string());
            fs::create_dir_all(folder.join("deep")).unwrap();
            let targets = [(&*folder, WatchDepth::Deep), (&*root, WatchDepth::Flat)];
            subscriptions.push((folder.clone(), watch(&pool, &targets)));
        }
        assert_eq!(pool.count_instances(), 1);
        // Half of them end, and their common parent stays watched.
        subscriptions.drain(..100);
        for (folder, (_, events)) in &subscriptions {
            let file = folder.join("deep/file");
            fs::write(&file, "1").unwrap();
            wait_for(events, &file);
        }
        let beside = root.join("beside");
        fs::create_dir(&beside).unwrap();
        wait_for(&subscriptions[99].1.1, &beside);
        subscriptions.clear();
        assert_eq!(pool.count_instances(), 0);
    }

    #[test]
    fn watches_that_are_at_odds_have_an_instance_each() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        symlink(root.join("a"), root.join("link")).unwrap();
        let check = |first: (&str, WatchDepth), second: (&str, WatchDepth), expected: usize| {
            let pool = Arc::new(WatchPool::default());
            let (first_path, second_path) = (root.join(first.0), root.join(second.0));
            let (_first, of_first) = watch(&pool, &[(&first_path, first.1)]);
            let (of_second, _) = watch(&pool, &[(&second_path, second.1)]);
            assert_eq!(pool.count_instances(), expected, "{first:?} {second:?}");
            drop(of_second);
            // The end of one takes no watch of another along.
            let file = first_path.join("file");
            fs::write(&file, "1").unwrap();
            wait_for(&of_first, &file);
        };
        check(("a", WatchDepth::Deep), ("a", WatchDepth::Deep), 1);
        check(("a", WatchDepth::Flat), ("a", WatchDepth::Deep), 2);
        check(("a", WatchDepth::Flat), ("a/b", WatchDepth::Deep), 1);
        check(("a", WatchDepth::Deep), ("a/b", WatchDepth::Flat), 2);
        check(("a/b", WatchDepth::Flat), ("a", WatchDepth::Deep), 2);
        check(("a", WatchDepth::Flat), ("link", WatchDepth::Flat), 2);
        check(("link", WatchDepth::Flat), ("a/b", WatchDepth::Flat), 1);
    }

    #[test]
    fn devices_have_an_instance_each() {
        let dir = tempfile::tempdir().unwrap();
        let pool = Arc::new(WatchPool::default());
        let ask = |device: u64| {
            let targets = vec![WatchTarget::new(dir.path(), WatchDepth::Flat)];
            pool.watch(Some(device), targets, Box::new(|_| {})).unwrap()
        };
        let _watched = [ask(1), ask(2), ask(1)];
        assert_eq!(pool.count_instances(), 2);
    }
}
