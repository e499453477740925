//! Work on a source that does not end.

use std::sync::mpsc::channel;
use std::time::Duration;

use super::fixture::TestRepository;
use crate::source::{Source, SourceError, SourceSettings};

#[tokio::test]
async fn a_read_that_does_not_end_is_reported_and_no_observation_begins_beside_it() {
    let (repo, first) = TestRepository::with(&[("a.yaml", "1")]);
    let state = tempfile::tempdir().unwrap();
    // An honest look takes some milliseconds, also on a busy machine far less than this.
    let settings = SourceSettings { fetch: Duration::from_secs(3), ..SourceSettings::default() };
    let mut source = Source::open_with("test", &repo.location(), state.path(), settings).unwrap();
    assert_eq!(source.observe().await.unwrap().revision, first);
    let (end, wait) = channel::<()>();
    let stuck = source.read_bounded(move |_| Ok(wait.recv().is_ok()));
    assert!(matches!(stuck.await, Err(SourceError::Silent { .. })));
    let second = repo.commit(&[("a.yaml", "2")]);
    for _ in 0..2 {
        let refused = source.observe().await;
        assert!(matches!(refused, Err(SourceError::Silent { .. })), "{refused:?}");
    }
    assert_eq!(source.current_revision(), Some(&first));
    drop(end);
    let seen = loop {
        match source.observe().await {
            Err(SourceError::Silent { .. }) => tokio::task::yield_now().await,
            seen => break seen.unwrap(),
        }
    };
    assert_eq!(seen.revision, second);
}

#[tokio::test]
async fn a_read_beside_the_observations_has_a_deadline_and_a_reason() {
    let (repo, first) = TestRepository::with(&[("a.yaml", "1")]);
    let state = tempfile::tempdir().unwrap();
    let settings = SourceSettings { fetch: Duration::from_secs(3), ..SourceSettings::default() };
    let mut source = Source::open_with("test", &repo.location(), state.path(), settings).unwrap();
    source.observe().await.unwrap();
    let (end, wait) = channel::<()>();
    let stuck = source.reader().read_bounded(move |_| Ok(wait.recv().is_ok())).await;
    let said = stuck.unwrap_err().to_string();
    assert!(said.contains("no answer within 3 s"), "{said}");
    // Another one reads our own store, and is not held up.
    let read = source.reader().read_bounded(move |reader| reader.snapshot(&first)).await;
    assert_eq!(read.unwrap().files.len(), 1);
    drop(end);
}
