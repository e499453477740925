//! Readings, and the handles that their passes share.

use std::sync::Arc;

use super::fixture::{TestRepository, state};
use super::rendered::TextRenderer;
use crate::object::Revision;
use crate::source::object_stores::{self, StorePath, TREE_READS};
use crate::source::reader::{ReadLimits, RevisionForm};
use crate::source::{RevisionReader, Source, SourceSettings};

/// Returns how many repositories a read opens.
fn opened_by(read: impl FnOnce()) -> usize {
    let before = object_stores::OPENED_REPOSITORIES.get();
    read();
    object_stores::OPENED_REPOSITORIES.get() - before
}

fn reader_of(repo: &TestRepository) -> RevisionReader {
    let stores = vec![StorePath::Own(repo.path().join(".git"))];
    RevisionReader::new(stores, RevisionForm::Commits, "repo".to_owned(), None, ReadLimits::default())
}

#[test]
fn a_difference_that_a_render_has_looked_at_is_given_once_without_another_look() {
    let (repo, first) = TestRepository::with(&[("a.yaml", "1"), ("b/c.yaml", "2")]);
    let second = repo.commit(&[("a.yaml", "11")]);
    let third = repo.commit(&[("b/c.yaml", "22")]);
    let reader = reader_of(&repo);
    let changes = |to: &Revision| {
        let before = TREE_READS.get();
        let found = reader.plain_changes(&first, None, to).unwrap().unwrap();
        let paths: Vec<String> = found.iter().map(|file| file.path.to_string()).collect();
        (paths, TREE_READS.get() > before)
    };
    let (one, both) = (vec!["a.yaml".to_owned()], vec!["a.yaml".to_owned(), "b/c.yaml".to_owned()]);
    assert_eq!(changes(&second), (one.clone(), true));
    assert!(reader.is_plain_step(&first, &second));
    assert_eq!(changes(&third), (both, true), "it is of another revision");
    assert_eq!(changes(&second), (one.clone(), false));
    assert_eq!(changes(&second), (one, true));
}

#[test]
fn the_passes_of_a_reading_share_their_handles() {
    let (repo, first) = TestRepository::with(&[("a.yaml", "1"), ("b/c.yaml", "2")]);
    let second = repo.commit(&[("a.yaml", "11")]);
    let reader = reader_of(&repo);
    let read = |reader: &RevisionReader| {
        let snapshot = reader.snapshot(&second).unwrap();
        reader.read_all(snapshot.files.iter().map(|file| file.blob), |_, _| Ok(())).unwrap();
        let changes = reader.plain_changes(&first, None, &second).unwrap();
        assert_eq!(changes.map(|changes| changes.len()), Some(1));
        assert!(reader.commit(&second).unwrap().is_some());
        let tree = reader.tree(&second).unwrap();
        assert_eq!(tree.names("b").unwrap(), Some(vec!["c.yaml".to_owned()]));
    };
    let alone = opened_by(|| read(&reader));
    assert_eq!(alone, 6, "each pass opens its own, and so does the first look");
    // A machine that stands still for a second lets one handle grow too old.
    let shared = opened_by(|| read(&reader.with_shared_handles()));
    assert!(shared <= 2, "{shared}");
}

#[tokio::test]
async fn the_looks_of_a_reading_at_what_was_rendered_share_a_handle() {
    let (repo, revision) = TestRepository::with(&[("a.yaml", "a")]);
    let renderer = TextRenderer::default();
    *renderer.text.lock().unwrap() = "one".to_owned();
    let settings = SourceSettings { renderer: Some(Arc::new(renderer)), ..SourceSettings::default() };
    let mut source = Source::open_with("test", &repo.location(), &state(&repo.dir), settings).unwrap();
    source.observe().await.unwrap();
    let read = |reader: &RevisionReader| {
        assert!(reader.render_id(&revision).unwrap().is_some());
        for _ in 0..5 {
            assert_eq!(reader.rendered_roots(&revision).unwrap().map(|roots| roots.len()), Some(1));
        }
    };
    let alone = opened_by(|| read(&source.reader()));
    assert_eq!(alone, 6);
    let shared = opened_by(|| read(&source.reader().with_shared_handles()));
    assert!(shared <= 2, "{shared}");
}
