//! Sources that are not there when they are opened.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::fixture::{TestRepository, git, paths, put};
use crate::object::ErrorClass;
use crate::source::{GitLocation, ResolvedLocation, Source, SourceError, SourceSettings};

struct AwaitedFixture {
    dir: TempDir,
    state: TempDir,
}

impl AwaitedFixture {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("there")
    }

    fn open(&self, inside: Option<&str>) -> Source {
        let git = GitLocation {
            path: inside.map(str::to_owned),
            ..GitLocation::new(self.path().to_str().unwrap())
        };
        open(&ResolvedLocation::Git(git).into_awaited(), self.state.path())
    }

    /// Puts a repository there.
    fn clone_of(&self, repo: &TestRepository) {
        repo.git(&["clone", "--quiet", ".", self.path().to_str().unwrap()]);
    }
}

fn open(location: &ResolvedLocation, state: &Path) -> Source {
    let settings = SourceSettings {
        pause: Duration::from_millis(1),
        quiet: Duration::from_millis(20),
        settle: Duration::ZERO,
        ..SourceSettings::default()
    };
    Source::open_with("test", location, state, settings).unwrap()
}

#[tokio::test]
async fn what_comes_is_taken_for_what_it_is() {
    let (repo, head) = TestRepository::with(&[("deploy/a.yaml", "1")]);
    let fixture = AwaitedFixture::new();
    let mut source = fixture.open(Some("deploy"));
    assert!(matches!(source.observe().await, Err(SourceError::Missing { .. })));
    fs::create_dir(fixture.path()).unwrap();
    assert!(matches!(source.observe().await, Err(SourceError::Empty { .. })), "nothing is mounted yet");
    assert_eq!(source.current_revision(), None);
    let reader = source.reader();
    fixture.clone_of(&repo);
    put(&fixture.path(), &[("deploy/b.yaml", "not committed")]);
    assert_eq!(source.observe().await.unwrap().revision, head);
    let snapshot = source.snapshot(&head).unwrap();
    assert_eq!(paths(&snapshot), ["a.yaml"]);
    assert_eq!(reader.read(snapshot.files[0].blob).unwrap(), b"1", "handles from before go on");

    let fixture = AwaitedFixture::new();
    let mut source = fixture.open(Some("deploy"));
    assert!(source.observe().await.is_err());
    put(&fixture.path(), &[("deploy/a.yaml", "1"), ("b.yaml", "1")]);
    let seen = source.observe().await.unwrap();
    assert_eq!(paths(&source.snapshot(&seen.revision).unwrap()), ["a.yaml"]);

    let fixture = AwaitedFixture::new();
    let mut source = fixture.open(None);
    fs::write(fixture.path(), "a file").unwrap();
    assert!(source.observe().await.unwrap_err().to_string().contains("it is a file"));
}

#[tokio::test]
async fn which_repository_it_is_is_known_whenever_that_came() {
    let (repo, _) = TestRepository::with(&[("deploy/a.yaml", "1")]);
    let fixture = AwaitedFixture::new();
    let mut early = fixture.open(Some("deploy"));
    assert!(early.is_awaited() && early.repository().is_none());
    fixture.clone_of(&repo);
    let mut late = fixture.open(Some("deploy"));
    for source in [&mut early, &mut late] {
        source.observe().await.unwrap();
        assert!(!source.is_awaited());
        assert!(source.repository().is_some_and(|repository| repository.ends_with(" HEAD")));
    }
    assert_eq!(early.repository(), late.repository());
    assert_eq!(early.identity(), late.identity());

    let fixture = AwaitedFixture::new();
    put(&fixture.path(), &[("a.yaml", "1")]);
    let source = fixture.open(None);
    assert!(!source.is_awaited() && source.repository().is_none(), "a folder is no repository");
}

#[tokio::test]
async fn what_comes_is_a_hint_and_is_watched_then() {
    let (repo, _) = TestRepository::with(&[("a.yaml", "1")]);
    let fixture = AwaitedFixture::new();
    let mut source = fixture.open(None);
    let hints = source.change_hints();
    let observe_until = async |source: &mut Source, expected: &crate::object::Revision| {
        let seen = tokio::time::timeout(Duration::from_secs(20), async {
            loop {
                hints.next_hint().await;
                if let Ok(seen) = source.observe().await
                    && seen.revision == *expected
                {
                    return;
                }
            }
        });
        seen.await.expect("a hint");
    };
    fixture.clone_of(&repo);
    observe_until(&mut source, &repo.head()).await;
    let next = repo.commit(&[("a.yaml", "2")]);
    git(&fixture.path(), &["pull", "--quiet"]);
    observe_until(&mut source, &next).await;
}

#[tokio::test]
async fn what_was_accepted_is_readable_while_its_source_is_gone() {
    let (repo, head) = TestRepository::with(&[("deploy/a.yaml", "1")]);
    let fixture = AwaitedFixture::new();
    fixture.clone_of(&repo);
    let mut source = fixture.open(Some("deploy"));
    source.observe().await.unwrap();
    source.pin(&BTreeSet::from([head.clone()])).await.unwrap();
    fs::remove_dir_all(fixture.path()).unwrap();
    // A repository left copies of its commits.
    let mut source = fixture.open(Some("deploy"));
    assert!(matches!(source.observe().await, Err(SourceError::Missing { .. })));
    assert_eq!(paths(&source.snapshot(&head).unwrap()), ["a.yaml"]);
    assert_eq!(source.pin(&BTreeSet::from([head.clone()])).await.unwrap(), []);
    assert_eq!(paths(&source.snapshot(&head).unwrap()), ["a.yaml"]);

    // A folder left its snapshot, which is still in force.
    let fixture = AwaitedFixture::new();
    put(&fixture.path(), &[("deploy/a.yaml", "1")]);
    let first = fixture.open(Some("deploy")).observe().await.unwrap().revision;
    fs::remove_dir_all(fixture.path()).unwrap();
    let mut source = fixture.open(Some("deploy"));
    assert_eq!(source.current_revision(), Some(&first));
    assert!(source.observe().await.is_err());
    assert_eq!(source.pin(&BTreeSet::new()).await.unwrap(), []);
    assert_eq!(paths(&source.snapshot(&first).unwrap()), ["a.yaml"]);
    put(&fixture.path(), &[("deploy/a.yaml", "1")]);
    assert_eq!(source.observe().await.unwrap().revision, first);
}

#[tokio::test]
async fn its_place_is_known_when_it_is_there() {
    let (repo, _) = TestRepository::with(&[("a.yaml", "1")]);
    let fixture = AwaitedFixture::new();
    let mut source = fixture.open(None);
    assert_eq!(source.identity(), fixture.path().to_str().unwrap());
    fixture.clone_of(&repo);
    git(&fixture.path(), &["remote", "set-url", "origin", "git@example.com:org/shop.git"]);
    source.observe().await.unwrap();
    assert_eq!(source.identity(), "example.com/org/shop");
}

#[tokio::test]
async fn opening_waits_for_what_can_come_and_fails_for_what_cannot() {
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().join("there");
    let text = there.to_str().unwrap();
    let locations =
        [ResolvedLocation::Git(GitLocation::new(text)), ResolvedLocation::Directory(there.clone())];
    for (location, in_the_way) in locations.into_iter().zip(["one", "two"]) {
        let state = dir.path().join(in_the_way).join("state");
        let mut source = open(&location, &state);
        fs::write(dir.path().join(in_the_way), "x").unwrap();
        assert!(source.observe().await.is_err());
        let (repo, _) = TestRepository::with(&[("a.yaml", "1")]);
        repo.git(&["clone", "--quiet", ".", text]);
        assert!(source.observe().await.is_err(), "the state directory cannot be made");
        fs::remove_file(dir.path().join(in_the_way)).unwrap();
        assert!(source.observe().await.is_ok(), "recovers by itself");
        fs::remove_dir_all(&there).unwrap();
    }
    let refuses = |location: GitLocation| {
        let error = Source::open("test", &ResolvedLocation::Git(location), dir.path()).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Config, "{error}");
    };
    refuses(GitLocation::new("nonsense://example.com/a"));
    refuses(GitLocation::new("https:///a"));
    refuses(GitLocation::new("git://example.com/a"));
    refuses(GitLocation { path: Some("../a".to_owned()), ..GitLocation::new(text) });
    let reference = Some("a..b".to_owned());
    refuses(GitLocation { reference, ..GitLocation::new("https://example.com/a") });
}
