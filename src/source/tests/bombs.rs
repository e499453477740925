//! Names of a repository that are too long to be held.

use git2::{ObjectType, Oid};

use super::fixture::{TestRepository, refused, state, write_commit, write_tree};
use crate::source::Source;

#[tokio::test]
async fn the_paths_of_a_repository_have_a_bound_in_bytes() {
    let (repo, plain) = TestRepository::with(&[("a.yaml", "1")]);
    let mut source = Source::open("test", &repo.location(), &state(&repo.dir)).unwrap();
    source.observe().await.unwrap();
    let repository = source.own_store();
    let blob = repository.odb().unwrap().write(ObjectType::Blob, b"a: 1").unwrap();
    let names: Vec<String> = (0..20).map(|number| format!("f{number:02}.yaml")).collect();
    let files: Vec<(&str, &[u8], Oid)> = names.iter().map(|name| ("100644", name.as_bytes(), blob)).collect();
    let long = vec![b'a'; 65_000];
    let mut folder = write_tree(&repository, &files);
    for _ in 0..90 {
        folder = write_tree(&repository, &[("40000", &long, folder)]);
    }
    let revision = write_commit(
        &repository,
        write_tree(&repository, &[("100644", b"ok.yaml", blob), ("40000", b"x", folder)]),
        "long",
    );
    let snapshot = source.snapshot(&revision).unwrap();
    let bytes: usize = snapshot.files.iter().map(|file| file.path.len()).sum();
    let refusals: usize = refused(&snapshot.refused).iter().map(String::len).sum();
    assert!(bytes + refusals < 10_000, "{bytes} and {refusals} bytes");
    let changed = source.changes(&plain, &revision).unwrap();
    let bytes: usize = changed.iter().map(|file| file.path.len()).sum();
    assert!(bytes < 10_000, "{bytes} bytes");
}
