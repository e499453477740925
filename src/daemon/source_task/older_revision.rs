//! Contents of older revisions.

use std::collections::{BTreeMap, BTreeSet};

use super::super::manifest_facts::{FileReading, ReadSettings};
use crate::engine::{ContentRef, FileCompleteness, PastRevision, SharedDesiredObject, UndoRequest};
use crate::manifest::KindScopes;
use crate::object::{ContentHash, ObjectId, Revision};
use crate::source::{Ancestry, MAX_FILE, RevisionReader, SnapshotFile, SourceError};

/// The contents of some objects in a revision.
#[derive(Debug, Default)]
struct RevisionContents {
    found: BTreeMap<ObjectId, Vec<SharedDesiredObject>>,
    /// The first place that was not read completely, where any object may be; none when all was.
    unread: Option<String>,
}

/// Returns all that a revision says of some objects.
fn contents(
    reader: &RevisionReader,
    settings: &ReadSettings,
    scopes: &mut KindScopes,
    revision: &Revision,
    ids: &BTreeSet<&ObjectId>,
) -> Result<RevisionContents, SourceError> {
    let snapshot = reader.snapshot(revision)?;
    let mut contents = RevisionContents {
        unread: snapshot.refused.first().map(|refused| refused.origin.to_string()),
        ..RevisionContents::default()
    };
    contents.add(reader, settings, scopes, &snapshot.files, ids);
    Ok(contents)
}

impl RevisionContents {
    fn add(
        &mut self,
        reader: &RevisionReader,
        settings: &ReadSettings,
        scopes: &mut KindScopes,
        files: &[SnapshotFile],
        ids: &BTreeSet<&ObjectId>,
    ) {
        for file in files {
            let bytes = if file.size <= MAX_FILE { reader.read(file.blob).ok() } else { None };
            let Some(bytes) = bytes else {
                self.unread.get_or_insert_with(|| file.path.to_string());
                continue;
            };
            let FileReading { facts, .. } = settings.read(file, &bytes, scopes);
            let is_complete = facts.understood == FileCompleteness::Complete
                && facts.unscoped.is_empty()
                && facts.unusable.iter().all(|object| !ids.contains(&object.id));
            if !is_complete {
                self.unread.get_or_insert_with(|| file.path.to_string());
            }
            for object in facts.objects.into_iter().filter(|object| ids.contains(&object.id)) {
                self.found.entry(object.id.clone()).or_default().push(object);
            }
        }
    }

    fn content(&self, id: &ObjectId, hash: ContentHash) -> Option<&SharedDesiredObject> {
        self.found.get(id)?.iter().find(|desired| desired.has_hash(hash))
    }
}

/// Contents of a revision, each with what it is there, or nothing where it cannot be had.
pub(in crate::daemon) type FoundContents = Vec<(ObjectId, ContentRef, Option<SharedDesiredObject>)>;

/// Looks up contents in an older revision.
pub(super) fn read_contents(
    reader: &RevisionReader,
    settings: &ReadSettings,
    mut scopes: KindScopes,
    revision: &Revision,
    wanted: &[(ObjectId, ContentHash)],
) -> Result<FoundContents, SourceError> {
    let ids = wanted.iter().map(|(id, _)| id).collect();
    // A content is found by its hash, so a place that cannot be read only means that it is not had.
    let mut contents = contents(reader, settings, &mut scopes, revision, &ids)?;
    let missing = wanted.iter().filter(|(id, hash)| contents.content(id, *hash).is_none());
    let missing: BTreeSet<&ObjectId> = missing.map(|(id, _)| id).collect();
    if !missing.is_empty() {
        // Facts of the cluster have changed since: it is in an older render of the same revision.
        let files = reader.earlier_objects(revision)?;
        contents.add(reader, settings, &mut scopes, &files, &missing);
    }
    let lookup = |(id, hash): &(ObjectId, ContentHash)| {
        let release = ContentRef { hash: *hash, revision: revision.clone() };
        (id.clone(), release, contents.content(id, *hash).cloned())
    };
    Ok(wanted.iter().map(lookup).collect())
}

/// Looks up where an undo leads to, or says why it leads nowhere.
pub(super) fn read_undo_target(
    reader: &RevisionReader,
    settings: &ReadSettings,
    mut scopes: KindScopes,
    undo: &UndoRequest,
    head: Option<&Revision>,
) -> Result<PastRevision, String> {
    let revision = undo_target_revision(reader, undo)?;
    require_followed(reader, undo, &revision, head)?;
    let unreadable =
        |error: SourceError| format!("revision {} cannot be read: {error}", revision.short_name());
    let ids: BTreeSet<&ObjectId> = undo.objects.iter().collect();
    let RevisionContents { found, unread } =
        contents(reader, settings, &mut scopes, &revision, &ids).map_err(unreadable)?;
    // An object is absent only where the whole revision was read: its absence deletes it.
    let absent = ids.iter().find(|id| !found.contains_key(**id));
    if let (Some(id), Some(place)) = (absent, unread) {
        return Err(format!(
            "revision {} was not read completely, and may have {id}: {place}",
            revision.short_name()
        ));
    }
    let mut contents = BTreeMap::new();
    for (id, all) in found {
        match <[SharedDesiredObject; 1]>::try_from(all) {
            Ok([content]) => drop(contents.insert(id, content)),
            Err(_) => return Err(format!("revision {} names {id} more than once", revision.short_name())),
        }
    }
    Ok(PastRevision { revision, contents })
}

pub(super) fn undo_target_revision(reader: &RevisionReader, undo: &UndoRequest) -> Result<Revision, String> {
    if let Some(name) = &undo.to {
        let found = reader.find_by_prefix(name).map_err(|error| error.to_string())?;
        return found.ok_or_else(|| format!("no revision is called {name}, or more than one"));
    }
    let from = undo.from.short_name();
    match reader.parent(&undo.from) {
        Ok(Some(parent)) => Ok(parent),
        Ok(None) => Err(format!("revision {from}, which brought it, has none before it")),
        Err(error) => Err(format!("revision {from}, which brought it, cannot be read: {error}")),
    }
}

/// Refuses a revision that was not in force here and that the followed reference never passed. A
/// push to another branch must not decide which revision runs.
fn require_followed(
    reader: &RevisionReader,
    undo: &UndoRequest,
    revision: &Revision,
    head: Option<&Revision>,
) -> Result<(), String> {
    if undo.in_force.contains(revision) {
        return Ok(());
    }
    let short = revision.short_name();
    let Some(head) = head else {
        return Err(format!("the source cannot be read, and {short} was not in force here"));
    };
    match reader.ancestry(revision, head) {
        Ok(Ancestry::Descends) => Ok(()),
        Ok(Ancestry::Unknown) => Err(format!(
            "it is not known whether revision {short} was ever followed: it was not in force here, and of the history \
             before {}, which the source is at, too little was fetched",
            head.short_name()
        )),
        Ok(Ancestry::Diverged) => Err(format!(
            "revision {short} was never in force here and is no ancestor of {}, which the source is at; merge it first",
            head.short_name()
        )),
        Err(error) => {
            Err(format!("it cannot be found out whether revision {short} was ever followed: {error}"))
        }
    }
}
