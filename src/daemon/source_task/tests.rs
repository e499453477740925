//! The reports of a source task about its source, without repetitions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tempfile::TempDir;

mod older_contents;
mod outage;
mod renders;

use super::super::manifest_facts::NameInterner;
use super::super::parsed_manifests::ParsedManifests;
use super::*;
use crate::engine::SourceId;
use crate::heartbeat::Heartbeats;
use crate::input::VariableMode;
use crate::object::{Diagnostic, GroupKind, RenderOrigin};
use crate::source::{
    BlobId, FactUse, GitLocation, RemainingRenderWork, RenderRequest, RenderedContent, RenderedRoot,
    RenderedSnapshot, ResolvedLocation, RootOutcome, SignatureVerification, Snapshot, SnapshotFile,
    SnapshotRenderer, SourceError, SourceSettings, VerifiedCommits,
};

/// A repository with one manifest, and a source task that has reported nothing yet.
struct SourceTaskFixture {
    dir: TempDir,
    state: TempDir,
    source_task: SourceTask,
    events: mpsc::Receiver<LoopEvent>,
    scopes: watch::Sender<KindScopes>,
}

const FIRST: SourceId = SourceId::new(0);

const MANIFEST: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";

fn git(folder: &Path, args: &[&str]) {
    let command = Command::new("git")
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .args(["-c", "user.name=A Person", "-c", "user.email=person@example.com"])
        .args(args)
        .status();
    assert!(command.unwrap().success(), "{args:?}");
}

/// Commits all that is in the folder of a repository.
fn commit_all(folder: &Path) {
    git(folder, &["add", "."]);
    git(folder, &["commit", "--quiet", "--message=x"]);
}

fn make(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    git(folder, &["init", "--quiet", "--initial-branch=main", "."]);
    fs::write(folder.join("a.yaml"), MANIFEST).unwrap();
    commit_all(folder);
}

impl SourceTaskFixture {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("repo");
        let location = ResolvedLocation::Git(GitLocation::new(path.to_str().unwrap())).into_awaited();
        Self::of(dir, &location)
    }

    fn of(dir: TempDir, location: &ResolvedLocation) -> Self {
        Self::with_settings(dir, location, SourceSettings::default())
    }

    fn with_settings(dir: TempDir, location: &ResolvedLocation, settings: SourceSettings) -> Self {
        Self::with_state(dir, TempDir::new().unwrap(), location, settings)
    }

    /// Returns one on a host that has this state.
    fn with_state(
        dir: TempDir,
        state: TempDir,
        location: &ResolvedLocation,
        settings: SourceSettings,
    ) -> Self {
        let source = Source::open_with("test", location, state.path(), settings).unwrap();
        let settings = ReadSettings {
            source: FIRST,
            inventory_id: "set".into(),
            namespace: "default".into(),
            allow: Arc::default(),
            decrypter: std::sync::Arc::default(),
            variables: VariableMode::Literal,
            names: NameInterner::default(),
            parsed: ParsedManifests::default(),
        };
        let (sink, events) = mpsc::channel(8);
        let scopes = watch::Sender::new(KindScopes::builtin());
        let heartbeat = Heartbeats::default().expect_part("test", Duration::MAX);
        Self {
            dir,
            state,
            source_task: SourceTask::new(source, settings, scopes.subscribe(), sink, heartbeat),
            events,
            scopes,
        }
    }

    fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("repo")
    }

    /// Runs one check, and returns what it reported, in a few words.
    async fn check(&mut self) -> String {
        let last = self.source_task.check_source().await;
        let first = std::iter::from_fn(|| self.events.try_recv().ok());
        let answers = first.collect::<Vec<_>>().into_iter().chain(last);
        let words: Vec<String> = answers.filter_map(said).collect();
        words.join(", ")
    }
}

fn said(event: LoopEvent) -> Option<String> {
    Some(match event {
        LoopEvent::SourceRead(_, reading, _) => {
            let read_mode =
                reading.incomplete_reason.map_or_else(|| "whole".to_owned(), |why| format!("without {why}"));
            format!("read {} files {read_mode}", reading.files.len())
        }
        LoopEvent::Unreadable(_, why) => format!("unreadable: {why}"),
        LoopEvent::Location(_, location) => format!("at {location}"),
        LoopEvent::Repository(..) => return None,
        other => panic!("{other:?}"),
    })
}

#[tokio::test]
async fn trouble_is_reported_once_and_so_is_its_end() {
    let mut fixture = SourceTaskFixture::new();
    let path = fixture.path();
    let missing = fixture.check().await;
    let nothing_known =
        "no such file or folder (no revision of it was read on this host, so nothing is applied)";
    assert!(missing.starts_with("unreadable: ") && missing.contains(nothing_known), "{missing}");
    assert_eq!(fixture.check().await, "", "no news");
    make(&path);
    assert_eq!(fixture.check().await, "read 1 files whole");
    assert_eq!(fixture.check().await, "");

    let aside = fixture.dir.path().join("aside");
    fs::rename(&path, &aside).unwrap();
    let gone = fixture.check().await;
    assert!(gone.contains("no such file or folder (in force: "), "{gone}");
    assert!(gone.contains("last seen 2"), "its age is reported: {gone}");
    assert_eq!(fixture.check().await, "", "no news");
    fs::rename(&aside, &path).unwrap();
    // The same revision as before, and it is complete again: without this nothing would ever be
    // pruned.
    assert_eq!(fixture.check().await, "read 0 files whole");
    assert_eq!(fixture.check().await, "");
}

// Without this, what the unread file wants would be deleted after any short outage.
#[tokio::test]
async fn a_source_that_was_not_read_completely_is_incomplete_after_an_outage_too() {
    let mut fixture = SourceTaskFixture::new();
    make(&fixture.path());
    std::os::unix::fs::symlink("a.yaml", fixture.path().join("link.yaml")).unwrap();
    commit_all(&fixture.path());
    let why = "without link.yaml: symbolic links are not followed";
    assert_eq!(fixture.check().await, format!("read 1 files {why}"));
    let aside = fixture.dir.path().join("aside");
    fs::rename(fixture.path(), &aside).unwrap();
    assert!(fixture.check().await.starts_with("unreadable: "));
    fs::rename(&aside, fixture.path()).unwrap();
    assert_eq!(fixture.check().await, format!("read 0 files {why}"));
    git(&fixture.path(), &["rm", "--quiet", "link.yaml"]);
    git(&fixture.path(), &["commit", "--quiet", "--message=z"]);
    assert_eq!(fixture.check().await, "read 0 files whole");
}

// Only contents differ, and still the lists of files are not the same.
#[tokio::test]
async fn a_file_that_becomes_a_pointer_to_its_content_makes_the_source_incomplete() {
    let mut fixture = SourceTaskFixture::new();
    make(&fixture.path());
    assert_eq!(fixture.check().await, "read 1 files whole");
    let hash = "0".repeat(64);
    let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{hash}\nsize 12345\n");
    for (text, expected) in [
        (
            pointer.as_str(),
            "read 1 files without a.yaml: this is a Git LFS pointer, not the content it stands for",
        ),
        (MANIFEST, "read 1 files whole"),
    ] {
        fs::write(fixture.path().join("a.yaml"), text).unwrap();
        git(&fixture.path(), &["commit", "--quiet", "--all", "--message=y"]);
        assert_eq!(fixture.check().await, expected);
    }
}

#[tokio::test]
async fn a_place_is_reported_before_what_was_read_there() {
    let mut fixture = SourceTaskFixture::new();
    fixture.check().await;
    make(&fixture.path());
    git(&fixture.path(), &["remote", "add", "origin", "https://me:hunter2@example.com/shop.git"]);
    assert_eq!(fixture.check().await, "at example.com/shop, read 1 files whole");
}

// By it other sources know whether the same files are followed twice.
#[tokio::test]
async fn the_repository_is_reported_when_it_is_known_and_not_again() {
    let mut fixture = SourceTaskFixture::new();
    let mut reported = Vec::new();
    for make_it in [false, true, false] {
        if make_it {
            make(&fixture.path());
        }
        let events = fixture.source_task.check_source().await;
        let repositories = events.iter().filter_map(|event| match event {
            LoopEvent::Repository(_, repository) => {
                Some(matches!(repository, RepositoryIdentity::Repository(_)))
            }
            _ => None,
        });
        reported.push(repositories.collect::<Vec<_>>());
    }
    assert_eq!(reported, [vec![], vec![true], vec![]]);
}

#[tokio::test]
async fn a_file_that_goes_while_all_is_read_again_is_reported_to_be_gone() {
    let mut fixture = SourceTaskFixture::new();
    make(&fixture.path());
    fs::write(fixture.path().join("b.yaml"), MANIFEST.replace("name: a", "name: b")).unwrap();
    commit_all(&fixture.path());
    assert_eq!(fixture.check().await, "read 2 files whole");
    git(&fixture.path(), &["rm", "--quiet", "b.yaml"]);
    git(&fixture.path(), &["commit", "--quiet", "--message=z"]);
    // A kind has come meanwhile: every file is read again, at a newer revision.
    let answers = fixture.source_task.carry_out(SourceOperation::ReadAgain).await;
    let [LoopEvent::SourceRead(_, reading, _)] = &answers[..] else { panic!("{answers:?}") };
    let files: Vec<_> = reading.files.iter().map(|(file, facts)| (&**file, facts.is_some())).collect();
    assert_eq!(files, [("a.yaml", true), ("b.yaml", false)]);
    assert_eq!(fixture.check().await, "");
}

/// A renderer to which all is a part for others.
#[derive(Debug)]
struct PartsRenderer;

impl SnapshotRenderer for PartsRenderer {
    fn has_roots(&self, _: &Snapshot) -> bool {
        true
    }

    fn plain_part(&self, raw: Snapshot) -> Snapshot {
        Snapshot { files: Vec::new(), refused: Vec::new(), ..raw }
    }

    fn render(&self, request: RenderRequest<'_>) -> Result<RenderedSnapshot, SourceError> {
        Ok(RenderedSnapshot::of_known_roots(self.plain_part(request.raw), Vec::new()))
    }
}

#[tokio::test]
async fn that_all_is_a_part_for_others_is_reported_once() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("repo");
    make(&path);
    // Each check reaches the place at another time, which the words about it have in them.
    let minutes = AtomicU64::new(0);
    let begin = std::time::Instant::now();
    let age = move || Duration::from_mins(minutes.fetch_add(1, Ordering::SeqCst));
    let clock = move || begin.checked_sub(age()).unwrap();
    let renderer = Some(Arc::new(PartsRenderer) as Arc<dyn SnapshotRenderer>);
    let settings = SourceSettings { renderer, clock: Arc::new(clock), ..SourceSettings::default() };
    let location = ResolvedLocation::Git(GitLocation::new(path.to_str().unwrap()));
    let mut fixture = SourceTaskFixture::with_settings(dir, &location, settings);
    let answers = fixture.check().await;
    assert!(answers.contains("unreadable: ") && answers.contains("only library charts"), "{answers}");
    assert!(answers.contains("last seen "), "{answers}");
    let reached = fixture.source_task.source.last_success();
    for _ in 0..3 {
        assert_eq!(fixture.check().await, "");
    }
    assert_ne!(fixture.source_task.source.last_success(), reached);
}

/// A renderer of one root, which gives one object or fails.
#[derive(Debug)]
struct RootRenderer {
    /// The name of what it gives, or the reason for which it fails.
    gives: std::sync::Mutex<Result<&'static str, &'static str>>,
    /// The program that it names.
    program: std::sync::Mutex<&'static str>,
    /// The work that it leaves for the next check.
    rest: std::sync::Mutex<RemainingRenderWork>,
    /// Says that the next read fails, after the render.
    fails_read: AtomicBool,
}

impl RootRenderer {
    fn new(name: &'static str) -> Self {
        Self {
            gives: std::sync::Mutex::new(Ok(name)),
            program: std::sync::Mutex::new("helm 4"),
            rest: std::sync::Mutex::default(),
            fails_read: AtomicBool::new(false),
        }
    }

    fn plain(raw: Snapshot) -> Snapshot {
        Snapshot { files: Vec::new(), ..raw }
    }
}

impl SnapshotRenderer for RootRenderer {
    fn has_roots(&self, _: &Snapshot) -> bool {
        true
    }

    fn plain_part(&self, raw: Snapshot) -> Snapshot {
        assert!(!self.fails_read.swap(false, Ordering::SeqCst), "on purpose");
        Self::plain(raw)
    }

    fn render(&self, request: RenderRequest<'_>) -> Result<RenderedSnapshot, SourceError> {
        let gives = *self.gives.lock().unwrap();
        let text = MANIFEST.replace("name: a", &format!("name: {}", gives.unwrap_or_else(|why| why)));
        let (blob, size) = (BlobId::of(text.as_bytes()), text.len() as u64);
        let program = *self.program.lock().unwrap();
        let mut key = [0; 32];
        key[..20].copy_from_slice(&<[u8; 20]>::from(BlobId::of(format!("{text}{program}").as_bytes())));
        let outcome = match gives {
            Ok(name) => {
                let render = RenderOrigin { root: "app".into(), renderer: program.into(), places: [].into() };
                let origin = Some(render.into());
                let file =
                    SnapshotFile { blob, size, origin, ..SnapshotFile::in_test(&format!("app#{name}")) };
                RootOutcome::Rendered([file].into())
            }
            Err(why) => RootOutcome::Refused(vec![Diagnostic::file_error("app", "x", why)]),
        };
        Ok(RenderedSnapshot {
            plain: Self::plain(request.raw),
            roots: vec![RenderedRoot::new("app".into(), key, outcome)],
            contents: vec![RenderedContent { blob, bytes: text.into_bytes().into() }],
            rest: *self.rest.lock().unwrap(),
            used: FactUse::default(),
        })
    }
}

/// Returns a source whose repository is at the path, and whose only root the renderer renders.
fn rendered_fixture() -> (SourceTaskFixture, PathBuf, Arc<RootRenderer>) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("repo");
    make(&path);
    let renderer = Arc::new(RootRenderer::new("a"));
    let settings = SourceSettings { renderer: Some(renderer.clone()), ..SourceSettings::default() };
    let location = ResolvedLocation::Git(GitLocation::new(path.to_str().unwrap()));
    (SourceTaskFixture::with_settings(dir, &location, settings), path, renderer)
}

// Its former objects may be wanted still, whatever is committed meanwhile and whatever fails.
#[tokio::test]
async fn what_a_root_gave_is_not_gone_while_it_does_not_render_and_is_known_until_it_does() {
    let (mut fixture, path, renderer) = rendered_fixture();
    // The files that are reported, and the number of roots that do not render.
    let reads = async |fixture: &mut SourceTaskFixture| {
        let events = fixture.source_task.check_source().await;
        let reading = events.into_iter().find_map(|event| match event {
            LoopEvent::SourceRead(_, reading, _) => Some(reading),
            _ => None,
        });
        let reading = reading.unwrap();
        let files = reading.files.iter().map(|(file, facts)| {
            let words = facts.as_ref().map_or("gone".to_owned(), |facts| format!("{:?}", facts.completeness));
            format!("{file} {words}")
        });
        (files.collect::<Vec<_>>(), reading.unrendered.len())
    };
    let commit = |message: &str| {
        fs::write(path.join("other.txt"), message).unwrap();
        commit_all(&path);
    };
    assert_eq!(reads(&mut fixture).await, (vec!["app#a Complete".to_owned()], 0));
    for message in ["one", "two"] {
        *renderer.gives.lock().unwrap() = Err(message);
        commit(message);
        assert_eq!(reads(&mut fixture).await, (vec!["app#a Unrendered".to_owned()], 1), "{message}");
    }
    let aside = path.with_file_name("aside");
    fs::rename(&path, &aside).unwrap();
    assert!(fixture.check().await.starts_with("unreadable: "));
    fs::rename(&aside, &path).unwrap();
    assert_eq!(reads(&mut fixture).await, (vec![], 1), "nothing is new, and it still does not render");
    *renderer.gives.lock().unwrap() = Ok("b");
    commit("three");
    assert_eq!(reads(&mut fixture).await, (vec!["app#a gone".to_owned(), "app#b Complete".to_owned()], 0));
}

// Its content is the same, and people are told which chart it comes from.
#[tokio::test]
async fn a_rendered_object_that_comes_from_elsewhere_is_reported_again() {
    let (mut fixture, path, renderer) = rendered_fixture();
    for (program, expected) in
        [("helm 3", "read 1 files whole"), ("helm 3", "read 0 files whole"), ("helm 4", "read 1 files whole")]
    {
        *renderer.program.lock().unwrap() = program;
        fs::write(path.join("other.txt"), expected).unwrap();
        git(&path, &["add", "."]);
        git(&path, &["commit", "--quiet", "--allow-empty", "--message=x"]);
        assert_eq!(fixture.check().await, expected, "{program}");
    }
}

#[tokio::test]
async fn kinds_that_the_server_has_reported_since_are_known_to_the_next_reading() {
    let mut fixture = SourceTaskFixture::new();
    make(&fixture.path());
    assert_eq!(fixture.check().await, "read 1 files whole");
    let widget = "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: NAME}\n";
    let unknown = async |fixture: &mut SourceTaskFixture, name: &str| {
        fs::write(fixture.path().join(format!("{name}.yaml")), widget.replace("NAME", name)).unwrap();
        commit_all(&fixture.path());
        let answers = fixture.source_task.carry_out(SourceOperation::Check).await;
        let [LoopEvent::SourceRead(_, _, unknown)] = &answers[..] else { panic!("{answers:?}") };
        unknown.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(unknown(&mut fixture, "a-widget").await, ["Widget.example.org"]);
    let kind = GroupKind::new("example.org", "Widget");
    fixture.scopes.send_modify(|scopes| scopes.insert(kind.clone(), crate::manifest::KindScope::Namespaced));
    assert_eq!(unknown(&mut fixture, "b-widget").await, [""; 0]);
    // Contents of older revisions are looked up by them too.
    assert!(fixture.source_task.content_reader().scopes.get(&kind).is_some());
}

#[tokio::test]
async fn an_observation_that_was_asked_for_is_answered_only_when_it_succeeded() {
    let mut fixture = SourceTaskFixture::new();
    make(&fixture.path());
    fixture.check().await;
    let aside = fixture.dir.path().join("aside");
    fs::rename(fixture.path(), &aside).unwrap();
    let answers = fixture.source_task.carry_out(SourceOperation::CheckAfter(3)).await;
    assert!(matches!(&answers[..], [LoopEvent::Unreadable(..)]), "{answers:?}");
    fs::rename(&aside, fixture.path()).unwrap();
    let answers = fixture.source_task.check_source().await;
    assert!(
        matches!(&answers[..], [LoopEvent::SourceRead(..), LoopEvent::SourceChecked(FIRST, 3)]),
        "{answers:?}"
    );
}

#[tokio::test]
async fn older_contents_are_looked_up_while_a_fetch_hangs() {
    let dir = TempDir::new().unwrap();
    let origin = dir.path().join("repo");
    make(&origin);
    // It accepts connections and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let location =
        ResolvedLocation::Git(GitLocation::new(format!("https://{}/repo", silent.local_addr().unwrap())));
    let SourceTaskFixture { dir: _dir, state, source_task, mut events, .. } =
        SourceTaskFixture::of(dir, &location);
    let read = source_task.settings.read(
        &SnapshotFile::in_test("a.yaml"),
        MANIFEST.as_bytes(),
        &mut KindScopes::builtin(),
    );
    let wanted = WantedContent::own(read.facts.objects[0].id.clone(), read.facts.objects[0].hash);
    let (orders, from_loop) = mpsc::channel(8);
    let running = tokio::spawn(source_task.run(from_loop));
    let _asked = tokio::task::spawn_blocking(move || silent.accept().unwrap()).await.unwrap();
    let store = state.path().join("revisions.git");
    git(&store, &["fetch", "--quiet", origin.to_str().unwrap(), "+refs/heads/main:refs/rhumb/keep/main"]);
    let head = Command::new("git").current_dir(&origin).args(["rev-parse", "HEAD"]).output().unwrap();
    let revision = Revision::new(String::from_utf8(head.stdout).unwrap().trim());
    orders.send(SourceTaskRequest::ReadContents(revision, vec![wanted])).await.unwrap();
    let answer = tokio::time::timeout(std::time::Duration::from_mins(1), events.recv()).await;
    let Ok(Some(LoopEvent::ContentsRead(found))) = answer else { panic!("{answer:?}") };
    assert!(found[0].2.is_some());
    drop(orders);
    running.await.unwrap();
}

#[tokio::test]
async fn what_must_be_signed_is_looked_at_once_it_is_known_what_was_accepted() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("repo");
    make(&path);
    let head = Command::new("git").current_dir(&path).args(["rev-parse", "HEAD"]).output().unwrap();
    let head = Revision::new(String::from_utf8(head.stdout).unwrap().trim());
    let verify =
        Some(SignatureVerification { keys: dir.path().join("none"), commits: VerifiedCommits::Range });
    let location = ResolvedLocation::Git(GitLocation { verify, ..GitLocation::new(path.to_str().unwrap()) });
    let verification_record = |accepted: Option<&Revision>| VerificationRecord {
        accepted_revision: accepted.cloned(),
        ..VerificationRecord::default()
    };
    let SourceTaskFixture { mut source_task, dir, state: _state, .. } = SourceTaskFixture::of(dir, &location);
    assert!(source_task.check_source().await.is_empty());
    let events = source_task.record_verification(verification_record(None)).await;
    assert!(
        events.iter().any(|event| matches!(event, LoopEvent::Unreadable(_, why) if why.contains("keys")))
    );
    let SourceTaskFixture { mut source_task, dir: _dir, state: _state, .. } =
        SourceTaskFixture::of(dir, &location);
    let events = source_task.record_verification(verification_record(Some(&head))).await;
    let accepted = |event: &LoopEvent| matches!(event, LoopEvent::RevisionAccepted(FIRST, revision) if *revision == head);
    assert!(
        events.iter().any(accepted) && events.iter().any(|event| matches!(event, LoopEvent::SourceRead(..))),
        "{events:?}"
    );
    assert!(
        source_task.record_verification(verification_record(Some(&head))).await.is_empty(),
        "the same again is no news"
    );
    assert!(!source_task.check_source().await.iter().any(accepted));
}

#[tokio::test]
async fn a_source_task_says_until_when_its_next_sign_of_life_is_due() {
    let mut fixture = SourceTaskFixture::new();
    make(&fixture.dir.path().join("repo"));
    let heartbeats = Heartbeats::default();
    fixture.source_task.heartbeat = heartbeats.expect_part("the source test", Duration::MAX);
    let (orders, from_loop) = mpsc::channel(8);
    let running = tokio::spawn(fixture.source_task.run(from_loop));
    while !matches!(fixture.events.recv().await.unwrap(), LoopEvent::SourceRead(..)) {}
    let begun = Instant::now();
    // At rest it waits for its next look, which on this host is soon, and not for a deed.
    loop {
        let sign = heartbeats.statuses().remove(0);
        if sign.due - sign.last < MAX_OPERATION_DURATION {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{sign:?}");
        tokio::task::yield_now().await;
    }
    drop(orders);
    running.await.unwrap();
    assert_eq!(heartbeats.statuses(), []);
}
