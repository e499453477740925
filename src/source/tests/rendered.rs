//! The renders of one revision by several facts of the cluster.

use std::os::unix::fs::symlink;
use std::sync::{Arc, Mutex};

use super::fixture::{TestRepository, state};
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
