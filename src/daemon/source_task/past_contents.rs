//! Contents of older revisions.

use std::collections::{BTreeMap, BTreeSet};

use super::super::reading::{FileReading, ReadSettings};
use crate::engine::{PastRevision, Release, SharedDesired, UndoRequest};
use crate::manifest::KindScopes;
use crate::object::{ContentHash, ObjectId, Revision};
use crate::source::{Ancestry, MAX_FILE, RevisionReader, SourceError};

/// Returns all that a revision says of some objects.
fn contents(
    reader: &RevisionReader,
    settings: &ReadSettings,
    mut scopes: KindScopes,
    revision: &Revision,
    ids: BTreeSet<&ObjectId>,
) -> Result<BTreeMap<ObjectId, Vec<SharedDesired>>, SourceError> {
    let mut found: BTreeMap<ObjectId, Vec<SharedDesired>> = BTreeMap::new();
    for file in reader.snapshot(revision)?.files.iter().filter(|file| file.size <= MAX_FILE) {
        let Ok(bytes) = reader.read(file.blob) else { continue };
        let FileReading { facts, .. } = settings.read(file, &bytes, &mut scopes);
        for object in facts.objects.into_iter().filter(|object| ids.contains(&object.id)) {
            found.entry(object.id.clone()).or_default().push(object);
        }
    }
    Ok(found)
}

/// Contents of a revision, each with what it is there, or nothing where it cannot be had.
pub(super) type ResolvedContents = Vec<(ObjectId, Release, Option<SharedDesired>)>;

/// Looks up contents in an older revision.
pub(super) fn resolve(
    reader: &RevisionReader,
    settings: &ReadSettings,
    scopes: KindScopes,
    revision: &Revision,
    wanted: &[(ObjectId, ContentHash)],
) -> Result<ResolvedContents, SourceError> {
    let ids = wanted.iter().map(|(id, _)| id).collect();
    let found = contents(reader, settings, scopes, revision, ids)?;
    let lookup = |(id, hash): &(ObjectId, ContentHash)| {
        let content = found.get(id).and_then(|all| all.iter().find(|desired| desired.is_release(*hash)));
        (id.clone(), Release { hash: *hash, revision: revision.clone() }, content.cloned())
    };
    Ok(wanted.iter().map(lookup).collect())
}

/// Looks up where a way back leads to, or says why it leads nowhere.
pub(super) fn look_back(
    reader: &RevisionReader,
    settings: &ReadSettings,
    scopes: KindScopes,
    undo: &UndoRequest,
    head: Option<&Revision>,
) -> Result<PastRevision, String> {
    let revision = undo_target_revision(reader, undo)?;
    require_followed(reader, undo, &revision, head)?;
    let unreadable =
        |error: SourceError| format!("revision {} cannot be read: {error}", revision.short_name());
    let found = contents(reader, settings, scopes, &revision, undo.objects.iter().collect());
    let mut contents = BTreeMap::new();
    for (id, all) in found.map_err(unreadable)? {
        match <[SharedDesired; 1]>::try_from(all) {
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
            "whether revision {short} was ever followed cannot be told: it was not in force here, and of the history \
             before {}, which the source is at, too little was fetched",
            head.short_name()
        )),
        Ok(Ancestry::Apart) => Err(format!(
            "revision {short} was never in force here and is no ancestor of {}, which the source is at; merge it first",
            head.short_name()
        )),
        Err(error) => {
            Err(format!("it cannot be found out whether revision {short} was ever followed: {error}"))
        }
    }
}
