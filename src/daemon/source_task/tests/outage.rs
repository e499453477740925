//! A repository that cannot be read when a process begins, on a host that has followed it before.

use super::*;
use crate::source::LastReadRevision;

/// Returns the id of the newest commit of a repository.
fn head_of(folder: &Path) -> Revision {
    let head = Command::new("git").current_dir(folder).args(["rev-parse", "HEAD"]).output().unwrap();
    Revision::new(String::from_utf8(head.stdout).unwrap().trim())
}

// Another replica may have served the source since, or the state came out of a backup.
#[tokio::test]
async fn what_an_earlier_process_left_is_in_force_unless_something_newer_was_read_since() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("repo");
    make(&path);
    let first = head_of(&path);
    fs::write(path.join("b.yaml"), MANIFEST.replace("name: a", "name: b")).unwrap();
    commit_all(&path);
    let (left, unknown) = (head_of(&path), Revision::new(&"1".repeat(40)));
    let location = ResolvedLocation::Git(GitLocation::new(path.to_str().unwrap()));
    let mut before = SourceTaskFixture::of(dir, &location);
    assert_eq!(before.check().await, "read 2 files whole");
    let same = before.source_task.source.repository().unwrap().to_owned();
    let SourceTaskFixture { mut dir, mut state, source_task, .. } = before;
    drop(source_task);
    fs::rename(&path, dir.path().join("aside")).unwrap();
    let last_read = |repository: &str, revision: &Revision| {
        Some(LastReadRevision { repository: repository.into(), revision: revision.clone() })
    };
    for (last_read, is_in_force) in [
        (None, true),
        (last_read(&same, &left), true),
        // It comes after that one.
        (last_read(&same, &first), true),
        (last_read(&same, &unknown), false),
        // The revisions of two repositories have no order.
        (last_read("elsewhere HEAD", &unknown), true),
    ] {
        let mut after = SourceTaskFixture::with_state(dir, state, &location, SourceSettings::default());
        let early = after.check().await;
        assert!(early.starts_with("unreadable: ") && !early.contains("in force: "), "{early}");
        let record = VerificationRecord { last_read: last_read.clone(), ..VerificationRecord::default() };
        let events = after.source_task.record_verification(record.clone()).await;
        let words = events.into_iter().filter_map(said).collect::<Vec<_>>().join(", ");
        // By a complete one something might be pruned before the next event.
        assert_eq!(words.starts_with("read 2 files without "), is_in_force, "{last_read:?}: {words}");
        assert_eq!(words.contains("in force: "), is_in_force, "{last_read:?}: {words}");
        assert_eq!(words.contains("nothing is applied"), !is_in_force, "{last_read:?}: {words}");
        assert!(after.source_task.record_verification(record).await.is_empty(), "the same again is no news");
        SourceTaskFixture { dir, state, .. } = after;
    }
}
