//! Followed folders of which a part is rendered: all their entries are frozen, whatever their
//! names.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::fixture::{folder, paths, put, refused};
use super::loose::put_pipe;
use super::unreadable::without_rights;
use crate::object::Revision;
use crate::source::file_names::EntryKind;
use crate::source::{
    DiskTree, FactUse, RemainingRenderWork, RenderRequest, RenderedRoot, RenderedSnapshot, ResolvedLocation,
    RootOutcome, Snapshot, SnapshotRenderer, Source, SourceError, SourceSettings, TreeEntry, read_disk,
};

/// A renderer of whose roots nothing comes.
#[derive(Debug)]
struct NoRenderer;

impl SnapshotRenderer for NoRenderer {
    fn has_roots(&self, raw: &Snapshot) -> bool {
        !raw.refused.is_empty()
    }

    fn plain_part(&self, raw: Snapshot) -> Snapshot {
        Snapshot { refused: Vec::new(), ..raw }
    }

    fn render(&self, request: RenderRequest<'_>) -> Result<RenderedSnapshot, SourceError> {
        let root =
            RenderedRoot::new("web/Chart.yaml".into(), [0; 32], RootOutcome::Rendered(Vec::new().into()));
        Ok(RenderedSnapshot {
            plain: self.plain_part(request.raw),
            roots: vec![root],
            contents: Vec::new(),
            rest: RemainingRenderWork::None,
            used: FactUse::default(),
        })
    }
}

/// A folder with a chart and a plain file, a state directory, and a clock that does not advance.
struct FrozenFixture {
    root: TempDir,
    state: TempDir,
    now: Arc<Mutex<Instant>>,
}

impl FrozenFixture {
    fn new() -> Self {
        let root = folder(&[
            ("web/Chart.yaml", "name: web"),
            ("web/templates/a.yaml", "a"),
            ("shared/b.yaml", "b"),
            ("own.yaml", "own"),
        ]);
        Self { root, state: tempfile::tempdir().unwrap(), now: Arc::new(Mutex::new(Instant::now())) }
    }

    fn open(&self) -> Source {
        let now = self.now.clone();
        let settings = SourceSettings {
            pause: Duration::from_millis(1),
            clock: Arc::new(move || *now.lock().unwrap()),
            renderer: Some(Arc::new(NoRenderer)),
            ..SourceSettings::default()
        };
        let location = ResolvedLocation::Directory(self.root.path().to_owned());
        Source::open_with("test", &location, self.state.path(), settings).unwrap()
    }

    fn path(&self, inside: &str) -> std::path::PathBuf {
        self.root.path().join(inside)
    }

    /// Lets everybody who cleans up in again.
    fn allow_all(&self) {
        for path in ["web", "web/templates", "web/templates/b.yaml", "web/templates/inner"] {
            let _ = fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755));
        }
    }
}

/// Observes a source with no more rights than permissions give.
fn seen(source: &mut Source) -> Revision {
    without_rights(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(source.observe()).unwrap().revision
    })
}

fn word(entry: Option<TreeEntry>) -> String {
    match entry {
        None => "nothing".to_owned(),
        Some(TreeEntry::Folder) => "folder".to_owned(),
        Some(TreeEntry::File(_)) => "file".to_owned(),
        Some(TreeEntry::Link(link)) => format!("link {}", link.target),
        Some(TreeEntry::Defect(defect)) => format!("{defect:?}"),
    }
}

fn frozen(source: &Source, revision: &Revision, path: &str) -> String {
    word(source.reader().tree(revision).unwrap().entry(path).unwrap())
}

fn close(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn pipe(path: &Path) {
    fs::write(path, "").unwrap();
    put_pipe(path);
}

fn pointer() -> String {
    let hash = "0".repeat(64);
    format!("version https://git-lfs.github.com/spec/v1\noid sha256:{hash}\nsize 12345\n")
}

/// The name of the file that is made in each row.
const B: &str = "web/templates/b.yaml";

/// Makes something in a folder with a chart. Compares what is frozen at a path, and what one
/// reading of the disk finds there.
#[track_caller]
fn check(make: impl Fn(&Path), path: &str, expected: [&str; 2]) {
    let fixture = FrozenFixture::new();
    make(fixture.root.path());
    let mut source = fixture.open();
    let revision = seen(&mut source);
    let disk = || {
        let tree = DiskTree::open_alone(fixture.root.path()).unwrap();
        tree.names(path).map_or_else(|_| "error".to_owned(), |_| word(tree.entry(path).unwrap()))
    };
    assert_eq!([frozen(&source, &revision, path), without_rights(disk)], expected);
    // None of it is where plain files are.
    let raw = source.reader().raw_snapshot(&revision).unwrap();
    assert_eq!(refused(&raw.refused), ["helm-chart web/Chart.yaml"]);
    assert_eq!(paths(&raw), ["own.yaml", "shared/b.yaml"]);
    fixture.allow_all();
}

#[test]
fn what_cannot_be_read_of_a_chart_is_there_with_the_reason() {
    check(|root| fs::write(root.join(B), "b").unwrap(), B, ["file"; 2]);
    let closed = |root: &Path| {
        fs::write(root.join(B), "b").unwrap();
        close(&root.join(B), 0);
    };
    check(closed, B, ["Unreadable"; 2]);
    check(|root| fs::File::create(root.join(B)).unwrap().set_len(17 << 20).unwrap(), B, ["TooLarge"; 2]);
    check(|root| fs::write(root.join(B), pointer()).unwrap(), B, ["LfsPointer"; 2]);
    check(|root| pipe(&root.join(B)), B, ["NotAFile"; 2]);
    let link =
        |target: &'static [u8]| move |root: &Path| symlink(OsStr::from_bytes(target), root.join(B)).unwrap();
    check(link(b"../../shared/b.yaml"), B, ["link ../../shared/b.yaml"; 2]);
    check(link(b"/etc/hostname"), B, ["link /etc/hostname"; 2]);
    check(link(b"\xff"), B, ["BadLink"; 2]);
    let unlisted = |root: &Path| {
        put(root, &[("web/templates/inner/c.yaml", "c")]);
        close(&root.join("web/templates/inner"), 0o311);
    };
    check(unlisted, "web/templates/inner", ["Unreadable", "error"]);
    check(unlisted, "web/templates/inner/c.yaml", ["nothing", "file"]);
    let nested = |root: &Path| put(root, &[("web/charts/a/.git/config", "x"), ("web/charts/a/c.yaml", "c")]);
    check(nested, "web/charts/a", ["Submodule"; 2]);
    check(nested, "web/charts/a/c.yaml", ["nothing"; 2]);
    let own = |root: &Path| put(root, &[("web/.GIT/config", "x"), (".git/config", "x")]);
    check(own, "web/.GIT/config", ["nothing"; 2]);
    check(own, ".git/config", ["nothing"; 2]);
    let inner = vec!["d"; 99].join("/");
    let deep =
        |root: &Path| put(root, &[(&format!("web/{inner}/c"), "c"), (&format!("web/{inner}/d/c"), "c")]);
    check(deep, &format!("web/{inner}/c"), ["file"; 2]);
    check(deep, &format!("web/{inner}/d"), ["TooDeep", "folder"]);
}

#[test]
fn what_is_refused_of_plain_files_is_reported_once() {
    let fixture = FrozenFixture::new();
    let root = fixture.root.path();
    put(
        root,
        &[
            ("pointer.yaml", &pointer()),
            ("README", &pointer()),
            ("nested/.git/config", "x"),
            ("nested/a.yaml", "a"),
            ("ignored/.rhumbignore", "*.yaml\n"),
            ("ignored/b.yaml", &pointer()),
            ("bad/.rhumbignore", "{a\n"),
            ("bad/a.yaml", "a"),
        ],
    );
    fs::File::create(root.join("large.yaml")).unwrap().set_len(17 << 20).unwrap();
    symlink("own.yaml", root.join("link.yaml")).unwrap();
    symlink("own.yaml", root.join(".hidden.yaml")).unwrap();
    pipe(&root.join("pipe.yaml"));
    pipe(&root.join("pipe"));
    let mut source = fixture.open();
    let revision = seen(&mut source);
    let expected = [
        "ignore-file bad/.rhumbignore",
        "too-large large.yaml",
        "symlink link.yaml",
        "submodule nested",
        "not-a-file pipe.yaml",
        "lfs-pointer pointer.yaml",
        "helm-chart web/Chart.yaml",
    ];
    let raw = source.reader().raw_snapshot(&revision).unwrap();
    assert_eq!(refused(&raw.refused), expected);
    let disk = read_disk(root).unwrap().snapshot;
    assert_eq!((raw.files, raw.refused), (disk.files, disk.refused));
    // Another process reads the same out of the store.
    let kinds = |source: &Source| -> Vec<(String, EntryKind)> {
        let (entries, _) = source.reader().frozen_files(&revision).unwrap();
        let kept = |path: &str| ["large.yaml", "link.yaml", "nested", "own.yaml", "pipe"].contains(&path);
        entries.into_iter().filter(|entry| kept(&entry.path)).map(|entry| (entry.path, entry.kind)).collect()
    };
    let expected = [
        ("large.yaml", EntryKind::Other),
        ("link.yaml", EntryKind::Symlink),
        ("nested", EntryKind::Other),
        ("own.yaml", EntryKind::File),
        ("pipe", EntryKind::Other),
    ];
    assert_eq!(kinds(&fixture.open()), expected.map(|(path, kind)| (path.to_owned(), kind)));
}

// Nobody may take it for a folder without a chart.
#[test]
fn a_chart_whose_folder_cannot_be_listed_stays_a_root() {
    let fixture = FrozenFixture::new();
    put(fixture.root.path(), &[("other/Chart.yaml", "name: other")]);
    close(&fixture.path("web"), 0o311);
    let mut source = fixture.open();
    let revision = seen(&mut source);
    let raw = source.reader().raw_snapshot(&revision).unwrap();
    assert_eq!(refused(&raw.refused), ["helm-chart other/Chart.yaml", "helm-chart web/Chart.yaml"]);
    assert_eq!(frozen(&source, &revision, "web"), "Unreadable");
    fixture.allow_all();
}

#[test]
fn what_cannot_be_read_any_more_counts_at_once_and_goes_as_a_file_does() {
    let fixture = FrozenFixture::new();
    let b = fixture.path(B);
    fs::write(&b, "b").unwrap();
    let mut source = fixture.open();
    let mut at = |seconds: u64, expected: &str| {
        *fixture.now.lock().unwrap() += Duration::from_secs(seconds);
        let revision = seen(&mut source);
        assert_eq!(frozen(&source, &revision, B), expected);
    };
    at(0, "file");
    close(&b, 0);
    at(0, "Unreadable");
    close(&b, 0o644);
    at(0, "file");
    close(&b, 0);
    at(0, "Unreadable");
    fs::remove_file(&b).unwrap();
    at(0, "Unreadable");
    at(59, "Unreadable");
    at(1, "nothing");
}

#[tokio::test]
async fn a_snapshot_with_what_was_not_read_is_whole_for_us_and_for_git() {
    let fixture = FrozenFixture::new();
    pipe(&fixture.path(B));
    symlink("b.yaml", fixture.path("web/templates/link.yaml")).unwrap();
    let mut source = fixture.open();
    let revision = source.observe().await.unwrap().revision;
    assert_eq!(source.pin(&[revision.clone()].into()).await.unwrap(), []);
    let lock = source.store.lock().await.unwrap();
    assert!(source.store.try_maintain_now(&lock).await);
    assert!(!source.store.is_damaged_for_git(&lock).await);
    drop(lock);
    assert!(source.store.is_sound());
    let source = fixture.open();
    assert!(source.store.has_revision(&revision));
    assert_eq!(frozen(&source, &revision, B), "NotAFile");
    assert_eq!(frozen(&source, &revision, "web/templates/link.yaml"), "link b.yaml");
}
