//! Sources that are read once: a folder as it was, or the newest revision.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::act::blocking;
use super::super::event::Event;
use super::super::reading::{Dialect, Read};
use super::{Extent, advance, authored, refusal};
use crate::engine::Reading;
use crate::manifest::Scopes;
use crate::object::GroupKind;
use crate::source::{Disk, Error, Source};

/// Reads what was on disk, once.
pub(in crate::daemon) async fn once(disk: Arc<Disk>, dialect: Dialect, scopes: Scopes) -> Event {
    blocking(move || {
        let (reading, unknown) = read_disk(&disk, &dialect, scopes);
        Event::Read(dialect.source, reading, unknown)
    })
    .await
}

/// Reads all files that were on disk.
pub(in crate::daemon) fn read_disk(
    disk: &Disk,
    dialect: &Dialect,
    mut scopes: Scopes,
) -> (Reading, BTreeSet<GroupKind>) {
    let snapshot = &disk.snapshot;
    let mut reading = Reading { revision: Some(snapshot.revision.clone()), ..Reading::default() };
    reading.authored = disk.commit.as_ref().map(authored);
    let mut files: BTreeMap<&Arc<str>, Read> = BTreeMap::new();
    for again in [Again::First, Again::WithDefinitions] {
        for file in &snapshot.files {
            let known = |read: &Read| read.unknown.iter().all(|kind| scopes.get(kind).is_none());
            if again == Again::WithDefinitions && files.get(&file.path).is_some_and(known) {
                continue;
            }
            let bytes = disk.read(file.blob).unwrap_or_default();
            files.insert(&file.path, dialect.read(&file.path, bytes, file.blob.into(), &mut scopes));
        }
    }
    let unknown = files.values().flat_map(|read| read.unknown.iter().cloned()).collect();
    reading.files = files.into_iter().map(|(path, read)| (path.clone(), Some(read.facts))).collect();
    reading.incomplete = refusal(snapshot);
    reading.refused.clone_from(&snapshot.refused);
    (reading, unknown)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    First,
    WithDefinitions,
}

/// Reads a source at its newest revision, once.
pub(in crate::daemon) async fn at_newest(
    mut source: Source,
    dialect: Dialect,
    scopes: Scopes,
) -> Result<Reading, Error> {
    let observed = source.observe().await?;
    let reader = source.reader();
    let step =
        blocking(move || advance(&reader, &dialect, scopes, (None, Extent::Changes), &observed.revision))
            .await?;
    Ok(step.reading)
}
