//! The locks of the roots on disk, as they are and as they should be.

use std::path::{Component, Path, PathBuf};

use super::chart_lock::{ChartLock, LOCK_FILE, LockChange};
use super::chart_supply::PinPolicy;
use super::kustomize::ParsedFiles;
use super::paths;
use super::roots::find_roots;
use super::source_renderer::SourceRenderer;
use super::tree::{self, FileTree, ResolvedPath};
use crate::object::Diagnostic;
use crate::source::{self, Snapshot, SourceError};

/// A root with charts of servers, or with a lock.
#[derive(Debug)]
pub(crate) struct RootLock {
    /// The file of the lock, whether it is there or not.
    pub file: PathBuf,
    /// The text that it should have; none where it should not be there.
    pub text: Option<String>,
    /// The changes from the text that it has.
    pub changes: Vec<LockChange>,
    /// Says whether the file is as it should be.
    pub state: LockState,
}

/// The state of a lock: whether it is as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockState {
    /// It says what is true.
    Current,
    /// It has to be written anew.
    Outdated,
}

/// The locks below one folder.
#[derive(Debug, Default)]
pub(crate) struct RootLocks {
    /// The roots whose charts are known, ordered by path.
    pub roots: Vec<RootLock>,
    /// The findings that keep a lasting lock from being written.
    pub refused: Vec<Diagnostic>,
    /// The findings that another try may do without.
    pub interrupted: Vec<Diagnostic>,
}

/// Finds the locks of all roots below a folder. Asks servers, where the renderer may.
///
/// # Errors
/// Fails where the files cannot be read.
pub(crate) fn find_locks(
    folder: &Path,
    renderer: &SourceRenderer,
    policy: PinPolicy,
) -> Result<RootLocks, SourceError> {
    let snapshot: Snapshot = source::read_disk(folder)?.snapshot;
    let (files, start) = source::tree_around(folder)?;
    let mut parsed = ParsedFiles::default();
    let listing = find_roots(renderer.mode(), &start, snapshot, &files, &mut parsed, |_| false)?;
    let mut locks = RootLocks::default();
    for root in listing.roots {
        let closure = renderer.find_closure(&root, &start, &files, &mut parsed, policy)?;
        let seen = |found: &Diagnostic| {
            let mut found = found.clone();
            let file = place(folder, &paths::relative_to(&start, &found.origin.file));
            found.origin.file = file.to_string_lossy().into();
            found
        };
        let refused = closure.closure().diagnostics.iter().filter(|found| found.is_error());
        let before = (locks.refused.len(), locks.interrupted.len());
        locks.refused.extend(refused.map(seen));
        locks.interrupted.extend(closure.interruptions().iter().map(seen));
        if before != (locks.refused.len(), locks.interrupted.len()) {
            continue;
        }
        let known = read_lock(&files, &root.folder)?;
        let needed = ChartLock::of(closure.charts.used.into_iter().collect());
        let below = place(folder, &paths::relative_to(&start, &root.folder));
        locks.roots.extend(compare_lock(below.join(LOCK_FILE), known.as_deref(), needed));
    }
    Ok(locks)
}

/// Returns a path as it is reached over a folder, without detours.
fn place(folder: &Path, seen: &str) -> PathBuf {
    let joined = folder.join(seen);
    joined.components().filter(|part| *part != Component::CurDir).collect()
}

/// Returns the lock of a root, if it has or needs one.
fn compare_lock(file: PathBuf, known: Option<&[u8]>, needed: ChartLock) -> Option<RootLock> {
    let text = (!needed.charts().is_empty()).then(|| needed.to_text());
    let read = known.and_then(|known| ChartLock::read(&LOCK_FILE.into(), known).ok());
    let state = match (&read, known) {
        (None, None) if text.is_none() => return None,
        (Some(read), _) if *read == needed && text.is_some() => LockState::Current,
        _ => LockState::Outdated,
    };
    let changes = LockChange::between(&read.unwrap_or_default(), &needed);
    Some(RootLock { file, text, changes, state })
}

fn read_lock(files: &impl FileTree, root: &str) -> Result<Option<Vec<u8>>, SourceError> {
    match tree::resolve(files, root, LOCK_FILE, |_| ())? {
        Ok(ResolvedPath { file: Some(file), .. }) => files.read(file.blob).map(|bytes| Some(bytes.to_vec())),
        Ok(_) | Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::{RenderMode, RendererConfig};
    use crate::input::chart_lock::LockedChart;
    use crate::input::charts::ChartFetcher;
    use crate::input::memory_supply::MemorySupply;
    use crate::input::{Decrypter, HelmReleaseSettings, RenderHost};

    fn chart(version: &str) -> LockedChart {
        LockedChart {
            repository: "https://charts.example.org".into(),
            name: "redis".into(),
            constraint: Some("~7".into()),
            version: version.into(),
            digest: format!("sha256:{}", "a".repeat(64)).parse().unwrap(),
        }
    }

    #[test]
    fn a_lock_is_current_or_is_to_be_written_or_taken_away() {
        let lock = |versions: &[&str]| ChartLock::of(versions.iter().map(|version| chart(version)).collect());
        let check = |known: Option<&str>, needed: &[&str], expected: Option<(LockState, bool)>| {
            let judged = compare_lock("rhumb.lock".into(), known.map(str::as_bytes), lock(needed));
            let judged = judged.map(|judged| (judged.state, judged.text.is_some()));
            assert_eq!(judged, expected, "{known:?} {needed:?}");
        };
        let text = lock(&["7.1.0"]).to_text();
        check(None, &[], None);
        check(None, &["7.1.0"], Some((LockState::Outdated, true)));
        check(Some(&text), &["7.1.0"], Some((LockState::Current, true)));
        check(Some(&format!("# mine\n{text}")), &["7.1.0"], Some((LockState::Current, true)));
        check(Some(&text), &["7.2.0"], Some((LockState::Outdated, true)));
        check(Some(&text), &[], Some((LockState::Outdated, false)));
        check(Some("a: ["), &["7.1.0"], Some((LockState::Outdated, true)));
        check(Some("a: ["), &[], Some((LockState::Outdated, false)));
    }

    fn renderer(supply: MemorySupply) -> SourceRenderer {
        let host = RenderHost::new(&RendererConfig::default(), "".into(), std::env::temp_dir());
        let decrypter = Arc::new(Decrypter::new(Vec::new(), None));
        let releases = HelmReleaseSettings { namespace: "prod".to_owned(), ..HelmReleaseSettings::default() };
        let renderer =
            SourceRenderer::new(host.into(), RenderMode::Auto, decrypter, ChartFetcher::without_servers());
        renderer.with_releases(releases).with_supply(Arc::new(supply))
    }

    fn server(versions: &[&str]) -> MemorySupply {
        let add = |supply: MemorySupply, version: &&str| {
            supply.chart("https://charts.example.org", "redis", version, &[("values.yaml", "")])
        };
        versions.iter().fold(MemorySupply::default(), add)
    }

    /// Returns each lock below a folder, and what is wrong.
    fn locks(folder: &Path, supply: MemorySupply, policy: PinPolicy) -> (Vec<String>, Vec<String>) {
        let found = find_locks(folder, &renderer(supply), policy).unwrap();
        let changes = found.roots.iter().map(|lock| {
            let changes: Vec<String> = lock.changes.iter().map(ToString::to_string).collect();
            if let Some(text) = &lock.text {
                std::fs::write(&lock.file, text).unwrap();
            }
            let file = lock.file.strip_prefix(folder).unwrap().display();
            format!("{file} {:?} {}", lock.state, changes.join("; "))
        });
        let wrong = found.refused.iter().chain(&found.interrupted);
        (changes.collect(), wrong.map(|found| found.code.to_owned()).collect())
    }

    #[test]
    fn the_roots_below_a_folder_are_locked_and_stay_so() {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let part = "{name: redis, version: ~7, repository: 'https://charts.example.org'}";
        put("a/Chart.yaml", &format!("apiVersion: v2\nname: a\nversion: 1.0.0\ndependencies: [{part}]\n"));
        put(
            "b/kustomization.yaml",
            "helmCharts: [{name: redis, releaseName: b, version: 7.1.0, repo: 'https://charts.example.org'}]\n",
        );
        put("c/Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n");
        let at = folder.path();
        let all = |found: (Vec<String>, Vec<String>)| {
            assert_eq!(found.1, [""; 0]);
            found.0
        };
        let from = "from https://charts.example.org";
        assert_eq!(
            all(locks(at, server(&["7.1.0"]), PinPolicy::Fill)),
            [
                format!("a/rhumb.lock Outdated + redis 7.1.0 {from}, for ~7"),
                format!("b/rhumb.lock Outdated + redis 7.1.0 {from}"),
            ]
        );
        let current = ["a/rhumb.lock Current ", "b/rhumb.lock Current "];
        assert_eq!(all(locks(at, server(&["7.1.0", "7.2.0"]), PinPolicy::Fill)), current);
        assert_eq!(
            all(locks(at, server(&["7.1.0", "7.2.0"]), PinPolicy::Update)),
            [
                format!("a/rhumb.lock Outdated ~ redis 7.2.0 {from}, before 7.1.0, for ~7"),
                "b/rhumb.lock Current ".to_owned(),
            ]
        );
        let offline = locks(at, server(&["7.2.0"]).without_network(), PinPolicy::Fill);
        assert_eq!(offline, (vec![], vec!["chart-unreachable".to_owned(); 2]));
        assert_eq!(locks(at, server(&["7.2.0"]), PinPolicy::Fill).1, ["chart-not-found"]);
    }
}
