//! Contents of older revisions, wherever they were then.

use super::super::older_revision::WantedContents;
use super::*;
use crate::object::{ContentHash, ObjectId};

/// Returns the task's answer for the first revision, of which only a second one is in the store.
async fn first_of_two(
    place: impl Fn(&Path) -> String,
    disturb: impl Fn(&Path),
    mend: impl Fn(&Path),
) -> bool {
    let location = |repo: &Path| GitLocation::new(place(repo));
    let change = |repo: &Path| fs::write(repo.join("a.yaml"), format!("{MANIFEST}data: {{b: c}}\n")).unwrap();
    first_before(None, location, change, disturb, mend).await
}

/// Returns the task's answer for the first revision, which was changed in the second one. It may
/// have been released in another inventory.
async fn first_before(
    former_inventory: Option<&str>,
    place: impl Fn(&Path) -> GitLocation,
    change: impl Fn(&Path),
    disturb: impl Fn(&Path),
    mend: impl Fn(&Path),
) -> bool {
    let dir = TempDir::new().unwrap();
    let origin = dir.path().join("repo");
    make(&origin);
    let head = Command::new("git").current_dir(&origin).args(["rev-parse", "HEAD"]).output().unwrap();
    let first = Revision::new(String::from_utf8(head.stdout).unwrap().trim());
    change(&origin);
    commit_all(&origin);
    let location = ResolvedLocation::Git(place(&origin));
    let SourceTaskFixture { dir: _dir, state: _state, source_task, mut events, .. } =
        SourceTaskFixture::of(dir, &location);
    let inventory_id = former_inventory.unwrap_or("set").into();
    let settings = ReadSettings { inventory_id, ..source_task.settings.clone() };
    let read =
        settings.read(&SnapshotFile::in_test("a.yaml"), MANIFEST.as_bytes(), &mut KindScopes::builtin());
    let wanted = WantedContent {
        id: read.facts.objects[0].id.clone(),
        hash: read.facts.objects[0].hash,
        former_inventory: former_inventory.map(Arc::from),
    };
    let (orders, from_loop) = mpsc::channel(8);
    let running = tokio::spawn(source_task.run(from_loop));
    let limit = Duration::from_secs(20);
    while !matches!(
        tokio::time::timeout(limit, events.recv()).await.unwrap().unwrap(),
        LoopEvent::SourceRead(..)
    ) {}
    disturb(&origin);
    orders.send(SourceTaskRequest::ReadContents(first, vec![wanted])).await.unwrap();
    let found = loop {
        match tokio::time::timeout(limit, events.recv()).await.unwrap().unwrap() {
            LoopEvent::ContentsRead(found) => break found,
            LoopEvent::Unreadable(..) => {
                mend(&origin);
                orders.send(SourceTaskRequest::CheckAfter(1)).await.unwrap();
            }
            _ => {}
        }
    };
    drop(orders);
    running.await.unwrap();
    found[0].2.is_some()
}

fn aside(repo: &Path) -> std::path::PathBuf {
    repo.with_file_name("aside")
}

// A new state directory holds nothing but the newest revision.
#[tokio::test]
async fn an_older_revision_is_fetched_when_it_is_not_here() {
    let url = |path: &Path| format!("file://{}", path.display());
    assert!(first_of_two(url, |_| {}, |_| {}).await);
    let rewrite = |repo: &Path| {
        git(repo, &["checkout", "--quiet", "--orphan", "other"]);
        git(repo, &["commit", "--quiet", "--message=z"]);
        git(repo, &["branch", "--quiet", "--delete", "--force", "main"]);
        git(repo, &["branch", "--quiet", "--move", "main"]);
        git(repo, &["reflog", "expire", "--expire=now", "--all"]);
        git(repo, &["gc", "--quiet", "--prune=now"]);
    };
    assert!(!first_of_two(url, rewrite, |_| {}).await, "it is gone");
}

// A revision that cannot be read now is not lost.
#[tokio::test]
async fn an_older_revision_is_awaited_while_the_repository_is_away() {
    let away = |repo: &Path| fs::rename(repo, aside(repo)).unwrap();
    // It may be reported more than once that the repository is away.
    let back = |repo: &Path| {
        if aside(repo).exists() {
            fs::rename(aside(repo), repo).unwrap();
        }
    };
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    assert!(first_of_two(path, away, back).await);
    let url = |path: &Path| format!("file://{}", path.display());
    assert!(first_of_two(url, away, back).await);
}

// A commit has moved the object into the folder of the source since.
#[tokio::test]
async fn a_content_is_found_where_it_was_before_it_came_to_the_folder_of_the_source() {
    let path = |repo: &Path| repo.to_str().unwrap().to_owned();
    let url = |repo: &Path| format!("file://{}", repo.display());
    let moved = |repo: &Path| {
        fs::create_dir(repo.join("b")).unwrap();
        fs::remove_file(repo.join("a.yaml")).unwrap();
        fs::write(repo.join("b/a.yaml"), format!("{MANIFEST}data: {{b: c}}\n")).unwrap();
    };
    let everywhere = [path as fn(&Path) -> String, url].map(|place| [(place, None), (place, Some("former"))]);
    for (place, former) in everywhere.into_iter().flatten() {
        let location =
            |repo: &Path| GitLocation { path: Some("b".to_owned()), ..GitLocation::new(place(repo)) };
        assert!(first_before(former, location, moved, |_| {}, |_| {}).await, "{former:?}");
    }
}

/// Returns the answer to an undo to the first revision, after which a commit has changed the
/// repository.
async fn undo_to_first(change: impl Fn(&Path), path: &str) -> Result<usize, String> {
    let dir = TempDir::new().unwrap();
    let origin = dir.path().join("repo");
    make(&origin);
    let head = |repo: &Path| {
        let head = Command::new("git").current_dir(repo).args(["rev-parse", "HEAD"]).output().unwrap();
        Revision::new(String::from_utf8(head.stdout).unwrap().trim())
    };
    let first = head(&origin);
    change(&origin);
    commit_all(&origin);
    let url = origin.to_str().unwrap().to_owned();
    let location = GitLocation { path: Some(path.to_owned()), ..GitLocation::new(url) };
    let SourceTaskFixture { dir: _dir, state: _state, source_task, mut events, .. } =
        SourceTaskFixture::of(dir, &ResolvedLocation::Git(location));
    let read = source_task.settings.read(
        &SnapshotFile::in_test("a.yaml"),
        MANIFEST.as_bytes(),
        &mut KindScopes::builtin(),
    );
    let id = read.facts.objects[0].id.clone();
    let undo = UndoRequest {
        token: "1-a".into(),
        id: id.clone(),
        source: FIRST,
        from: head(&origin),
        to: Some(first.as_str().into()),
        objects: vec![id],
        in_force: BTreeSet::new(),
        by: "".into(),
    };
    let (orders, from_loop) = mpsc::channel(8);
    let running = tokio::spawn(source_task.run(from_loop));
    let limit = Duration::from_secs(20);
    let mut next = async || tokio::time::timeout(limit, events.recv()).await.unwrap().unwrap();
    while !matches!(next().await, LoopEvent::SourceRead(..)) {}
    orders.send(SourceTaskRequest::ReadUndoTarget(undo)).await.unwrap();
    let found = loop {
        if let LoopEvent::UndoTargetRead(.., found) = next().await {
            break found;
        }
    };
    drop(orders);
    running.await.unwrap();
    let short = first.short_name().to_owned();
    found.map(|found| found.contents.len()).map_err(|why| why.replace(&short, "FIRST"))
}

// Nothing shows that it was in force there. It was not absent.
#[tokio::test]
async fn an_undo_takes_an_object_of_another_folder_for_no_absent_one() {
    let moved = |repo: &Path| {
        fs::create_dir(repo.join("b")).unwrap();
        fs::rename(repo.join("a.yaml"), repo.join("b/a.yaml")).unwrap();
    };
    let copied = |repo: &Path| {
        fs::create_dir(repo.join("b")).unwrap();
        fs::write(repo.join("b/a.yaml"), MANIFEST).unwrap();
        fs::write(repo.join("a.yaml"), format!("{MANIFEST}data: {{b: c}}\n")).unwrap();
    };
    let changed =
        |repo: &Path| fs::write(repo.join("a.yaml"), format!("{MANIFEST}data: {{b: c}}\n")).unwrap();
    assert_eq!(undo_to_first(changed, "").await, Ok(1));
    for change in [moved as fn(&Path), copied] {
        let why = undo_to_first(change, "b").await.unwrap_err();
        assert!(why.contains("a.yaml, which this source does not read: revert the commit"), "{why}");
    }
}

/// Puts the file of another object in the place of the manifest in the task's own store. Its size
/// can be read then, and its content cannot.
fn damage_manifest(fixture: &SourceTaskFixture) {
    let objects = fixture.state.path().join("revisions.git/objects");
    let place = |file: &str| {
        let name = format!("HEAD:{file}");
        let id = Command::new("git").current_dir(fixture.path()).args(["rev-parse", &name]).output().unwrap();
        let id = String::from_utf8(id.stdout).unwrap();
        let (folder, file) = id.trim().split_at(2);
        objects.join(folder).join(file)
    };
    let bytes = fs::read(place("other.txt")).unwrap();
    fs::remove_file(place("a.yaml")).unwrap();
    fs::write(place("a.yaml"), bytes).unwrap();
}

/// Returns a task that has read a repository with a manifest and a short text, its revision, and
/// the object of the manifest.
async fn read_fixture() -> (SourceTaskFixture, Revision, WantedContent) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("repo");
    make(&path);
    fs::write(path.join("other.txt"), "x").unwrap();
    commit_all(&path);
    let location = ResolvedLocation::Git(GitLocation::new(path.to_str().unwrap()));
    let mut fixture = SourceTaskFixture::of(dir, &location);
    assert_eq!(fixture.check().await, "read 1 files whole");
    let read = fixture.source_task.settings.read(
        &SnapshotFile::in_test("a.yaml"),
        MANIFEST.as_bytes(),
        &mut KindScopes::builtin(),
    );
    let object = &read.facts.objects[0];
    let wanted = WantedContent::own(object.id.clone(), object.hash);
    let revision = fixture.source_task.head_revision().unwrap();
    (fixture, revision, wanted)
}

// The repository still has it, and our own store is made anew.
#[tokio::test]
async fn a_content_that_cannot_be_read_is_looked_for_again_before_it_is_gone() {
    let (mut fixture, revision, wanted) = read_fixture().await;
    damage_manifest(&fixture);
    let lookup = fixture.source_task.content_reader().read_contents(revision, vec![wanted]).await;
    let ContentLookup::NeedsFetch(wanted) = lookup else { panic!("it was taken for gone") };
    let events = fixture.source_task.carry_out(SourceOperation::Fetch(wanted)).await;
    let found = events.into_iter().find_map(|event| match event {
        LoopEvent::ContentsRead(found) => Some(found),
        _ => None,
    });
    assert!(found.unwrap()[0].2.is_some());
}

// Another look may find it.
#[tokio::test]
async fn of_a_content_that_could_not_be_read_nothing_is_known() {
    let (fixture, revision, wanted) = read_fixture().await;
    let known = async || {
        let wanted = WantedContents { revision: revision.clone(), contents: vec![wanted.clone()] };
        let (_, search) = fixture.source_task.content_reader().look_up(wanted).await;
        search.unwrap().into_known().len()
    };
    assert_eq!(known().await, 1);
    damage_manifest(&fixture);
    assert_eq!(known().await, 0);
}

#[test]
fn a_failure_that_passes_makes_no_content_of_a_deleted_source_gone() {
    let id = ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), "a");
    let check = |error: SourceError, expected: Option<usize>| {
        let contents = vec![WantedContent::own(id.clone(), ContentHash::hash_bytes(b"a"))];
        let shown = error.to_string();
        let found = WantedContents { revision: Revision::new("r1"), contents }.resolve(Err(error));
        let gone = found.ok().map(|found| found.iter().filter(|content| content.2.is_none()).count());
        assert_eq!(gone, expected, "{shown}");
    };
    let shown_location = "/srv/shop".to_owned();
    check(SourceError::Silent { shown_location: shown_location.clone(), after: Duration::ZERO }, None);
    let revision = Revision::new("r1");
    check(SourceError::Unknown { shown_location: shown_location.clone(), revision }, Some(1));
    check(SourceError::Damaged { shown_location, detail: "cut".to_owned() }, Some(1));
}

// The object may be in it, and an undo to where it is absent deletes it.
#[tokio::test]
async fn an_undo_takes_no_object_for_absent_while_a_file_of_another_folder_cannot_be_read() {
    let (mut fixture, revision, wanted) = read_fixture().await;
    fs::create_dir(fixture.path().join("b")).unwrap();
    fs::write(fixture.path().join("b/b.yaml"), MANIFEST.replace("name: a", "name: b")).unwrap();
    commit_all(&fixture.path());
    let url = fixture.path().to_str().unwrap().to_owned();
    let location = ResolvedLocation::Git(GitLocation { path: Some("b".to_owned()), ..GitLocation::new(url) });
    let state = fixture.state.path();
    fixture.source_task.source =
        Source::open_with("test", &location, state, SourceSettings::default()).unwrap();
    fixture.source_task.reported = None;
    assert!(fixture.check().await.ends_with("read 1 files whole"));
    fixture.source_task.source.fetch_revision(&revision).await.unwrap();
    damage_manifest(&fixture);
    let undo = UndoRequest {
        token: "1-a".into(),
        id: wanted.id.clone(),
        source: FIRST,
        from: fixture.source_task.head_revision().unwrap(),
        to: Some(revision.as_str().into()),
        objects: vec![wanted.id],
        in_force: [revision].into(),
        by: "".into(),
    };
    let head = fixture.source_task.head_revision();
    let why = fixture.source_task.content_reader().past_revision(undo, head).await.unwrap_err();
    assert!(why.contains("cannot be searched: ") && why.contains("damaged repository"), "{why}");
}
