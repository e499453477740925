//! The renders of one revision by several facts of the cluster, and what differs between two
//! revisions that were rendered.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::sync::{Arc, Mutex};

use super::fixture::{TestRepository, git, state};
use crate::object::{GroupKind, ObjectId, Revision};
use crate::source::{
    BlobId, ClusterFacts, FactUse, KnownClusterFacts, ObjectFact, RemainingRenderWork, RenderRequest,
    RenderedContent, RenderedRoot, RenderedSnapshot, RootOutcome, Snapshot, SnapshotFile, SnapshotRenderer,
    Source, SourceError, SourceSettings,
};

/// A renderer that makes one object of a text; none of an empty one.
#[derive(Debug, Default)]
pub(super) struct TextRenderer {
    pub(super) text: Mutex<String>,
}

impl SnapshotRenderer for TextRenderer {
    fn has_roots(&self, _: &Snapshot) -> bool {
        true
    }

    fn plain_part(&self, raw: Snapshot) -> Snapshot {
        Snapshot { files: Vec::new(), ..raw }
    }

    fn render(&self, request: RenderRequest<'_>) -> Result<RenderedSnapshot, SourceError> {
        let text = self.text.lock().unwrap().clone();
        let (blob, size) = (BlobId::of(text.as_bytes()), text.len() as u64);
        let file = SnapshotFile { blob, size, ..SnapshotFile::in_test("app#a") };
        let files = Some(file).filter(|_| !text.is_empty());
        let mut key = [0; 32];
        key[..20].copy_from_slice(&<[u8; 20]>::from(blob));
        Ok(RenderedSnapshot {
            plain: self.plain_part(request.raw),
            roots: vec![RenderedRoot::new(
                "app".into(),
                key,
                RootOutcome::Rendered(files.into_iter().collect()),
            )],
            contents: vec![RenderedContent { blob, bytes: text.into_bytes().into() }],
            rest: RemainingRenderWork::None,
            used: FactUse { versions: false, objects: [vars()].into() },
        })
    }
}

fn vars() -> ObjectId {
    ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), "vars")
}

#[tokio::test]
async fn the_last_renders_of_a_revision_stay_readable_and_no_more_of_them() {
    let (repo, revision) = TestRepository::with(&[("a.yaml", "a")]);
    let renderer = Arc::new(TextRenderer::default());
    let settings = || {
        let renderer: Arc<dyn SnapshotRenderer> = renderer.clone();
        SourceSettings { renderer: Some(renderer), ..SourceSettings::default() }
    };
    let folder = state(&repo.dir);
    let open = || Source::open_with("test", &repo.location(), &folder, settings()).unwrap();
    let texts = |source: &Source, files: &[SnapshotFile]| -> Vec<String> {
        let text = |file: &SnapshotFile| String::from_utf8(source.read(file.blob).unwrap()).unwrap();
        files.iter().map(text).collect()
    };
    let mut source = open();
    for number in 0..10 {
        *renderer.text.lock().unwrap() = format!("{number}");
        let fact = ObjectFact::Found(serde_json::json!(number).into());
        let objects = [(vars(), fact)].into();
        source.set_facts(ClusterFacts::Queried(KnownClusterFacts { versions: None, objects }));
        source.observe().await.unwrap();
        let newest = source.snapshot(&revision).unwrap();
        assert_eq!(texts(&source, &newest.files), [format!("{number}")]);
    }
    // Another process finds them too.
    drop(source);
    let source = open();
    let earlier = source.reader().earlier_objects(&revision).unwrap();
    assert_eq!(texts(&source, &earlier), ["8", "7", "6", "5", "4", "3", "2"]);
}

/// Checks that a commit without the key of its roots is read as any other. Another one of the same
/// tree takes its place.
#[tokio::test]
async fn a_render_that_an_older_version_wrote_is_kept_once() {
    let (repo, revision) = TestRepository::with(&[("a.yaml", "a")]);
    let renderer = Arc::new(TextRenderer::default());
    let (store, name) = (state(&repo.dir).join("revisions.git"), format!("refs/rhumb/rendered/{revision}"));
    let open = || {
        let settings = SourceSettings { renderer: Some(renderer.clone()), ..SourceSettings::default() };
        Source::open_with("test", &repo.location(), &state(&repo.dir), settings).unwrap()
    };
    let check = async |text: &str, earlier: &[&str]| {
        *renderer.text.lock().unwrap() = text.to_owned();
        let mut source = open();
        source.observe().await.unwrap();
        let files = source.reader().earlier_objects(&revision).unwrap();
        let found = files.iter().map(|file| source.read(file.blob).unwrap()).collect::<Vec<_>>();
        assert_eq!(found, earlier.iter().map(|text| text.as_bytes()).collect::<Vec<_>>(), "{text}");
    };
    check("1", &[]).await;
    let written = git(&store, &["cat-file", "commit", &name]);
    let (older, _) = written.split_once("\nRender-Key: ").unwrap();
    let repository = git2::Repository::open(&store).unwrap();
    let (objects, text) = (repository.odb().unwrap(), format!("{older}\n"));
    let older = objects.write(git2::ObjectType::Commit, text.as_bytes()).unwrap();
    repository.reference(&name, older, true, "").unwrap();
    let read = open().snapshot(&revision).unwrap();
    assert_eq!(read.files.len(), 1);
    check("1", &[]).await;
    assert_eq!(git(&store, &["cat-file", "commit", &name]), written, "the same roots are the same commit");

    repository.reference(&name, older, true, "").unwrap();
    check("2", &["1"]).await;
    check("1", &["2"]).await;
}

/// Checks that what was rendered of a revision stays as long as the revision is pinned.
#[tokio::test]
async fn a_render_is_pinned_as_its_revision_is() {
    let (repo, first) = TestRepository::with(&[("a.yaml", "a")]);
    let renderer = Arc::new(TextRenderer::default());
    let settings = SourceSettings { renderer: Some(renderer.clone()), ..SourceSettings::default() };
    let mut source = Source::open_with("test", &repo.location(), &state(&repo.dir), settings).unwrap();
    let mut revisions = vec![first];
    for number in 1..4 {
        *renderer.text.lock().unwrap() = format!("{number}");
        source.observe().await.unwrap();
        source.pin(&revisions.iter().cloned().collect()).await.unwrap();
        revisions.push(repo.commit(&[("a.yaml", &format!("a{number}"))]));
    }
    source.observe().await.unwrap();
    let text = |source: &Source, revision: &Revision| {
        let snapshot = source.snapshot(revision).ok()?;
        snapshot.files.first().map(|file| String::from_utf8(source.read(file.blob).unwrap()).unwrap())
    };
    let texts = |source: &Source| revisions.iter().map(|revision| text(source, revision)).collect::<Vec<_>>();
    let of = |text: &str| Some(text.to_owned());
    assert_eq!(texts(&source), [of("1"), of("2"), of("3"), of("3")]);
    source.pin(&[revisions[1].clone()].into()).await.unwrap();
    assert_eq!(texts(&source), [None, of("2"), None, of("3")]);
}

#[tokio::test]
async fn a_revision_whose_roots_print_no_object_is_refused_as_such() {
    let (repo, revision) = TestRepository::with(&[("a.yaml", "a")]);
    let renderer: Arc<dyn SnapshotRenderer> = Arc::<TextRenderer>::default();
    let settings = SourceSettings { renderer: Some(renderer), ..SourceSettings::default() };
    let mut source = Source::open_with("test", &repo.location(), &state(&repo.dir), settings).unwrap();
    source.observe().await.unwrap();
    let refused = source.snapshot(&revision).unwrap_err();
    assert!(matches!(refused, SourceError::NothingRendered { .. }), "{refused}");
}

// Its objects may be in the file that was not read.
#[tokio::test]
async fn a_revision_of_which_a_file_was_not_read_is_not_taken_for_an_empty_one() {
    let (repo, _) = TestRepository::with(&[("a.yaml", "a")]);
    symlink("a.yaml", repo.path().join("b.yaml")).unwrap();
    let revision = repo.commit(&[]);
    let renderer: Arc<dyn SnapshotRenderer> = Arc::<TextRenderer>::default();
    let settings = SourceSettings { renderer: Some(renderer), ..SourceSettings::default() };
    let mut source = Source::open_with("test", &repo.location(), &state(&repo.dir), settings).unwrap();
    source.observe().await.unwrap();
    let snapshot = source.snapshot(&revision).unwrap();
    assert!(snapshot.files.is_empty() && !snapshot.is_complete(), "{snapshot:?}");
}

/// Objects, each a name and a text.
type RootObjects = Vec<(&'static str, &'static str)>;

/// A renderer of roots that a test names: the objects of each, or none where it does not render.
#[derive(Debug, Default)]
struct NamedRoots {
    roots: Mutex<BTreeMap<&'static str, Option<RootObjects>>>,
}

impl NamedRoots {
    fn set(&self, root: &'static str, objects: Option<&[(&'static str, &'static str)]>) {
        self.roots.lock().unwrap().insert(root, objects.map(<[_]>::to_vec));
    }
}

impl SnapshotRenderer for NamedRoots {
    fn has_roots(&self, _: &Snapshot) -> bool {
        true
    }

    fn plain_part(&self, mut raw: Snapshot) -> Snapshot {
        raw.refused.clear();
        raw
    }

    fn render(&self, request: RenderRequest<'_>) -> Result<RenderedSnapshot, SourceError> {
        let (mut roots, mut contents) = (Vec::new(), Vec::new());
        for (root, objects) in &*self.roots.lock().unwrap() {
            let outcome = objects.as_ref().map(|objects| {
                let file = |(name, text): &(&str, &str)| {
                    let (blob, size) = (BlobId::of(text.as_bytes()), text.len() as u64);
                    contents.push(RenderedContent { blob, bytes: text.as_bytes().into() });
                    let path = RenderedRoot::object_path(root, name);
                    SnapshotFile { path, blob, size, origin: None }
                };
                RootOutcome::Rendered(objects.iter().map(file).collect())
            });
            let outcome = outcome.unwrap_or_else(|| RootOutcome::Refused(Vec::new()));
            roots.push(RenderedRoot::new((*root).into(), [0; 32], outcome));
        }
        let (rest, used) = (RemainingRenderWork::None, FactUse::default());
        Ok(RenderedSnapshot { plain: self.plain_part(request.raw), roots, contents, rest, used })
    }
}

/// Returns each file as `path=text`.
fn shown(source: &Source, files: &[SnapshotFile]) -> Vec<String> {
    let text = |file: &SnapshotFile| String::from_utf8(source.read(file.blob).unwrap()).unwrap();
    files.iter().map(|file| format!("{}={}", file.path, text(file))).collect()
}

#[tokio::test]
async fn two_revisions_with_the_same_roots_are_compared_at_the_cost_of_what_differs() {
    let marker = "resources: []";
    let (repo, first) = TestRepository::with(&[
        ("a/kustomization.yaml", marker),
        ("b/kustomization.yaml", marker),
        ("c.yaml", "c"),
    ]);
    let roots = Arc::new(NamedRoots::default());
    roots.set("a/kustomization.yaml", Some(&[("x", "1"), ("y", "1")]));
    roots.set("b/kustomization.yaml", Some(&[("x", "1")]));
    let settings = SourceSettings { renderer: Some(roots.clone()), ..SourceSettings::default() };
    let mut source = Source::open_with("test", &repo.location(), &state(&repo.dir), settings).unwrap();
    source.observe().await.unwrap();
    let before = source.snapshot(&first).unwrap();

    roots.set("a/kustomization.yaml", Some(&[("x", "2"), ("z", "1")]));
    let second = repo.commit(&[("a/kustomization.yaml", "resources: [x]"), ("c.yaml", ""), ("d.yaml", "d")]);
    source.observe().await.unwrap();
    let changes =
        source.reader().rendered_changes(&first, before.rendered.unwrap(), &second).unwrap().unwrap();
    let after = source.snapshot(&second).unwrap();
    assert_eq!(Some(changes.rendered), after.rendered);
    let older = ["a/kustomization.yaml#x=1", "a/kustomization.yaml#y=1", "c.yaml=c"];
    assert_eq!(shown(&source, &changes.before), older);
    let newer = ["a/kustomization.yaml#x=2", "a/kustomization.yaml#z=1", "d.yaml=d"];
    assert_eq!(shown(&source, &changes.after), newer);
    let mut files: Vec<SnapshotFile> =
        before.files.iter().filter(|file| !changes.before.contains(file)).cloned().collect();
    files.extend(changes.after);
    files.sort();
    assert_eq!(files, after.files, "no other file differs");

    // Where a root is new, or does not render, whole lists are compared.
    let mut earlier = (second, after.rendered.unwrap());
    for (root, objects) in [("e/kustomization.yaml", Some(&[("x", "1")][..])), ("a/kustomization.yaml", None)]
    {
        roots.set(root, objects);
        let next = repo.commit(&[("f.txt", root)]);
        source.observe().await.unwrap();
        let (revision, rendered) = &earlier;
        assert!(source.reader().rendered_changes(revision, *rendered, &next).unwrap().is_none(), "{root}");
        let rendered = source.snapshot(&next).unwrap().rendered.unwrap();
        earlier = (next, rendered);
    }
}

#[tokio::test]
async fn what_was_rendered_is_a_commit_with_a_folder_for_each_root() {
    let (repo, revision) = TestRepository::with(&[("a/kustomization.yaml", "resources: []")]);
    let renderer = Arc::new(NamedRoots::default());
    renderer.set("a/kustomization.yaml", Some(&[("x", "object")]));
    let settings = SourceSettings { renderer: Some(renderer), ..SourceSettings::default() };
    let mut source = Source::open_with("test", &repo.location(), &state(&repo.dir), settings).unwrap();
    source.observe().await.unwrap();
    let (store, name) = (state(&repo.dir).join("revisions.git"), format!("refs/rhumb/rendered/{revision}"));
    let commit = git(&store, &["cat-file", "commit", &name]);
    // The SHA-256 of the length of the path, the path and the key.
    let key = "3b821365b79eb11fbfbe037f6993e5a2a8ae18a8a73d5d7532bcab348a797e43";
    let trailers = format!("\n\nRendered\n\nSource-Commit: {revision}\nRender-Key: {key}");
    assert!(commit.ends_with(&trailers), "{commit}");
    let blob = BlobId::of(b"object");
    let listed = git(&store, &["ls-tree", "-r", "--name-only", &name]);
    assert_eq!(listed, format!("000000/{blob}\n000000/root.json"));
    let list: serde_json::Value =
        serde_json::from_str(&git(&store, &["show", &format!("{name}:000000/root.json")])).unwrap();
    assert_eq!((&list["path"], &list["key"]), (&"a/kustomization.yaml".into(), &"00".repeat(32).into()));
    let object = &list["objects"][0];
    assert_eq!(
        (&object["path"], &object["blob"]),
        (&"a/kustomization.yaml#x".into(), &blob.to_string().into())
    );
}
