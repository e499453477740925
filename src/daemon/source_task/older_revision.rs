//! Contents of older revisions, for rollbacks, repairs and undos.
//!
//! `View::unread_contents` says which, and `reconciler/older_contents.rs` asks for them. Each
//! answer is a `LoopEvent::ContentsRead`, and goes in as `Input::OlderContent`. That to an undo is
//! a `LoopEvent::UndoTargetRead`.
//!
//! A revision that is not in the store is fetched from the source, once that can be read. One that
//! cannot be read now is not lost. A new state directory holds only the newest revision of a
//! remote, and a repository may be away for a time. A content is reported as gone where the
//! source can be read, and no longer has its revision. So is one that its revision does not have.
//! Where a file could not be read, that is known only after another look. A store that turns out to
//! be damaged is made anew before it.
//!
//! An object may have moved to the source's folder since. So where the folder lacks a content, all
//! plain files of the revision are searched for it. The hash proves that it is the very content
//! that was in force.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::loop_event::LoopEvent;
use super::super::manifest_facts::{FileReading, ReadSettings};
use super::cluster_fact_reader::RevisionAccess;
use super::{ContentReader, SourceTask};
use crate::engine::{ContentRef, FileCompleteness, OlderRevision, SharedDesiredObject, UndoRequest};
use crate::manifest::KindScopes;
use crate::object::{ContentHash, ErrorClass, ObjectId, Revision};
use crate::source::{Ancestry, MAX_SOURCE_FILE_BYTES, RevisionReader, SnapshotFile, SourceError};

/// A content of an older revision that a decision needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::daemon) struct WantedContent {
    pub(in crate::daemon) id: ObjectId,
    /// Its hash in the inventory that it was released in.
    pub(in crate::daemon) hash: ContentHash,
    /// That inventory, where it is another source's.
    pub(in crate::daemon) former_inventory: Option<Arc<str>>,
}

impl WantedContent {
    /// Returns one that was released in the source's own inventory.
    pub(super) const fn own(id: ObjectId, hash: ContentHash) -> Self {
        Self { id, hash, former_inventory: None }
    }
}

/// The contents of some objects in a revision.
#[derive(Debug, Default)]
struct RevisionContents {
    found: BTreeMap<ObjectId, Vec<SharedDesiredObject>>,
    /// The first place that was not read completely, where any object may be; none when all was.
    unread: Option<String>,
    /// The first failure of a read, which another one may not meet.
    failure: Option<SourceError>,
}

/// Returns all that a revision says of some objects. The folder that the source follows now may be
/// younger, and then it says nothing.
fn contents(
    reader: &RevisionReader,
    settings: &ReadSettings,
    scopes: &mut KindScopes,
    revision: &Revision,
    ids: &BTreeSet<&ObjectId>,
) -> Result<RevisionContents, SourceError> {
    let snapshot = match reader.snapshot(revision) {
        Err(SourceError::NoPath { .. } | SourceError::Empty { .. }) => return Ok(RevisionContents::default()),
        read => read?,
    };
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
            let bytes = file_bytes(reader, file).unwrap_or_else(|error| {
                self.failure.get_or_insert(error);
                None
            });
            let Some(bytes) = bytes else {
                self.unread.get_or_insert_with(|| file.path.to_string());
                continue;
            };
            let FileReading { facts, .. } = settings.read(file, &bytes, scopes);
            let is_complete = facts.completeness == FileCompleteness::Complete
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

    /// Returns the objects of which the content is not there.
    fn missing_objects<'a>(&self, wanted: &[&'a WantedContent]) -> BTreeSet<&'a ObjectId> {
        let is_missing = |wanted: &&&WantedContent| self.content(&wanted.id, wanted.hash).is_none();
        wanted.iter().filter(is_missing).map(|wanted| &wanted.id).collect()
    }

    fn content(&self, id: &ObjectId, hash: ContentHash) -> Option<&SharedDesiredObject> {
        self.found.get(id)?.iter().find(|desired| desired.has_hash(hash))
    }

    /// Returns an object that another reading has found in the same place of the same file.
    fn counterpart(&self, other: &SharedDesiredObject) -> Option<&SharedDesiredObject> {
        self.found.get(&other.id)?.iter().find(|desired| desired.body == other.body)
    }
}

/// Returns the bytes of a file; none of one that is too large.
fn file_bytes(reader: &RevisionReader, file: &SnapshotFile) -> Result<Option<Vec<u8>>, SourceError> {
    (file.size <= MAX_SOURCE_FILE_BYTES).then(|| reader.read(file.blob)).transpose()
}

/// The files of a whole revision that name some objects.
#[derive(Default)]
struct FileSearch {
    files: Vec<SnapshotFile>,
    /// The first failure of a read: another file may name them too.
    failure: Option<SourceError>,
}

/// Returns the files of a whole revision that name one of these objects. None where it is too large
/// to be searched.
fn whole_files(
    reader: &RevisionReader,
    revision: &Revision,
    ids: &BTreeSet<&ObjectId>,
) -> Result<FileSearch, SourceError> {
    let snapshot = match reader.whole_snapshot(revision) {
        Err(SourceError::TooMany { .. } | SourceError::Empty { .. }) => None,
        read => read?,
    };
    let names_any = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        ids.iter().any(|id| text.contains(id.name()))
    };
    let mut naming = FileSearch::default();
    for file in snapshot.map(|snapshot| snapshot.files).unwrap_or_default() {
        match file_bytes(reader, &file) {
            Ok(Some(bytes)) if names_any(&bytes) => naming.files.push(file),
            Ok(_) => {}
            Err(error) => {
                naming.failure.get_or_insert(error);
            }
        }
    }
    Ok(naming)
}

/// Contents of a revision, each with what it is there, or nothing where it cannot be had.
pub(in crate::daemon) type FoundContents = Vec<(ObjectId, ContentRef, Option<SharedDesiredObject>)>;

/// The result of a search for contents in a revision.
pub(super) struct ContentSearch {
    found: FoundContents,
    /// The failure of a read, where a content was not found that may be what could not be read.
    failure: Option<SourceError>,
}

impl ContentSearch {
    /// Returns what is known for certain: where a read failed, only what was found.
    pub(super) fn into_known(self) -> FoundContents {
        let Self { mut found, failure } = self;
        found.retain(|(_, _, content)| content.is_some() || failure.is_none());
        found
    }
}

/// Searches a revision for contents: its folder, what was rendered of it earlier, and all of it.
fn search(
    reader: &RevisionReader,
    settings: &ReadSettings,
    mut scopes: KindScopes,
    revision: &Revision,
    wanted: &[&WantedContent],
) -> Result<RevisionContents, SourceError> {
    let ids = wanted.iter().map(|wanted| &wanted.id).collect();
    // A content is found by its hash, whatever else cannot be read.
    let mut contents = contents(reader, settings, &mut scopes, revision, &ids)?;
    let missing = contents.missing_objects(wanted);
    if !missing.is_empty() {
        // Facts of the cluster have changed since: it is in an older render of the same revision.
        let files = reader.earlier_objects(revision)?;
        contents.add(reader, settings, &mut scopes, &files, &missing);
    }
    let missing = contents.missing_objects(wanted);
    if !missing.is_empty() {
        // It was in another folder then, of this source or of the one that had it.
        let FileSearch { files, failure } = whole_files(reader, revision, &missing)?;
        contents.add(reader, settings, &mut scopes, &files, &missing);
        contents.failure = contents.failure.or(failure);
    }
    Ok(contents)
}

/// Looks up contents in an older revision.
pub(super) fn read_contents(
    reader: &RevisionReader,
    settings: &ReadSettings,
    scopes: &KindScopes,
    revision: &Revision,
    wanted: &[WantedContent],
) -> Result<ContentSearch, SourceError> {
    let mut groups: BTreeMap<Option<&Arc<str>>, Vec<&WantedContent>> = BTreeMap::new();
    for content in wanted {
        groups.entry(content.former_inventory.as_ref()).or_default().push(content);
    }
    let (mut found, mut failure) = (Vec::with_capacity(wanted.len()), None);
    for (former, wanted) in groups {
        let own = search(reader, settings, scopes.clone(), revision, &wanted)?;
        let released = match former {
            Some(inventory_id) => {
                let settings = ReadSettings { inventory_id: inventory_id.clone(), ..settings.clone() };
                Some(search(reader, &settings, scopes.clone(), revision, &wanted)?)
            }
            None => None,
        };
        for WantedContent { id, hash, .. } in wanted {
            let release = ContentRef { hash: *hash, revision: revision.clone() };
            let content = match &released {
                // The hash proves the content as it was there; here it has another one.
                Some(released) => released.content(id, *hash).and_then(|there| own.counterpart(there)),
                None => own.content(id, *hash),
            };
            found.push((id.clone(), release, content.cloned()));
        }
        failure = failure.or(own.failure).or(released.and_then(|released| released.failure));
    }
    let is_complete = found.iter().all(|(_, _, content)| content.is_some());
    Ok(ContentSearch { found, failure: failure.filter(|_| !is_complete) })
}

/// Looks up where an undo leads to, or says why it leads nowhere.
pub(super) fn read_undo_target(
    reader: &RevisionReader,
    settings: &ReadSettings,
    mut scopes: KindScopes,
    undo: &UndoRequest,
    head: Option<&Revision>,
) -> Result<OlderRevision, String> {
    let revision = undo_target_revision(reader, undo)?;
    require_followed(reader, undo, &revision, head)?;
    let unreadable =
        |error: SourceError| format!("revision {} cannot be read: {error}", revision.short_name());
    let ids: BTreeSet<&ObjectId> = undo.objects.iter().collect();
    let RevisionContents { found, unread, .. } =
        contents(reader, settings, &mut scopes, &revision, &ids).map_err(unreadable)?;
    let absent: BTreeSet<&ObjectId> = ids.into_iter().filter(|id| !found.contains_key(*id)).collect();
    if let (Some(id), Some(unread_location)) = (absent.first(), unread) {
        return Err(format!(
            "revision {} was not read completely, and may have {id}: {unread_location}",
            revision.short_name()
        ));
    }
    require_absence(reader, settings, &mut scopes, &revision, &absent)?;
    let mut contents = BTreeMap::new();
    for (id, all) in found {
        match <[SharedDesiredObject; 1]>::try_from(all) {
            Ok([content]) => drop(contents.insert(id, content)),
            Err(_) => return Err(format!("revision {} names {id} more than once", revision.short_name())),
        }
    }
    Ok(OlderRevision { revision, contents })
}

/// Refuses a revision that has one of these objects in a folder that the source does not read. It
/// may have been in force there, and nothing shows that.
fn require_absence(
    reader: &RevisionReader,
    settings: &ReadSettings,
    scopes: &mut KindScopes,
    revision: &Revision,
    absent: &BTreeSet<&ObjectId>,
) -> Result<(), String> {
    if absent.is_empty() {
        return Ok(());
    }
    let short = revision.short_name();
    let unsearched = |error: SourceError| format!("revision {short} cannot be searched: {error}");
    let FileSearch { files, failure } = whole_files(reader, revision, absent).map_err(unsearched)?;
    if let Some(error) = failure {
        return Err(unsearched(error));
    }
    let mut elsewhere = RevisionContents::default();
    elsewhere.add(reader, settings, scopes, &files, absent);
    let Some(there) = elsewhere.found.into_values().flatten().next() else {
        return elsewhere.failure.map_or(Ok(()), |error| Err(unsearched(error)));
    };
    let file = files.iter().find(|file| file.blob == there.body.blob.into());
    let file_text = file.map(|file| format!(" in {}", file.path)).unwrap_or_default();
    Err(format!(
        "in revision {short} {} was{file_text}, which this source does not read: revert the commit",
        there.id
    ))
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

/// Contents of one revision.
#[derive(Debug)]
pub(super) struct WantedContents {
    pub(super) revision: Revision,
    pub(super) contents: Vec<WantedContent>,
}

impl WantedContents {
    /// Returns what a search has found, where the next one would find no more. Fails with the
    /// wanted contents where it ended by something that passes: none of them is known to be gone.
    pub(super) fn resolve(self, search: Result<ContentSearch, SourceError>) -> Result<FoundContents, Self> {
        let (found, failure) = match search {
            Ok(ContentSearch { found, failure }) => (Some(found), failure),
            Err(error) => (None, Some(error)),
        };
        match failure {
            Some(error) if error.class() == ErrorClass::Transient => Err(self),
            _ => Ok(found.unwrap_or_else(|| self.empty_answer())),
        }
    }

    /// Returns the answer where none of them can be had.
    fn empty_answer(self) -> FoundContents {
        let none =
            |WantedContent { id, hash, .. }| (id, ContentRef { hash, revision: self.revision.clone() }, None);
        self.contents.into_iter().map(none).collect()
    }
}

/// The past contents of revisions that are not here.
pub(super) type MissingContents = Vec<WantedContents>;

/// The result of a lookup.
pub(super) enum ContentLookup {
    /// An answer.
    Done(Box<LoopEvent>),
    /// The revision cannot be read here and now.
    NeedsFetch(WantedContents),
    /// The revision of an undo is not here yet.
    UndoNeedsFetch(Box<UndoRequest>),
}

impl ContentReader {
    pub(super) async fn read_contents(
        self,
        revision: Revision,
        contents: Vec<WantedContent>,
    ) -> ContentLookup {
        let wanted = WantedContents { revision, contents };
        match self.look_up(wanted).await {
            (_, Ok(ContentSearch { found, failure: None })) => {
                ContentLookup::Done(Box::new(LoopEvent::ContentsRead(found)))
            }
            (wanted, _) => ContentLookup::NeedsFetch(wanted),
        }
    }

    pub(super) async fn look_up(
        self,
        wanted: WantedContents,
    ) -> (WantedContents, Result<ContentSearch, SourceError>) {
        let Self { reader, settings, scopes, .. } = self;
        let (revision, contents) = (wanted.revision.clone(), wanted.contents.clone());
        let read =
            move |reader: &RevisionReader| read_contents(reader, &settings, &scopes, &revision, &contents);
        let found = reader.read_bounded(read).await;
        (wanted, found)
    }
}

impl SourceTask {
    /// Looks up again what was missing, with whatever has to be fetched for that. Nothing is fetched
    /// while a remote cannot be read. A repository on this host may hold what is in force beside a
    /// newest commit that cannot be read.
    pub(super) async fn fetch_missing(&mut self) -> Vec<LoopEvent> {
        let is_read = self.reported.is_some() && self.last_error.is_none();
        if !is_read && !self.source.is_on_host() {
            return Vec::new();
        }
        let mut events = Vec::new();
        for wanted in std::mem::take(&mut self.missing) {
            self.heartbeat.record(super::MAX_OPERATION_DURATION);
            if let Err(error) = self
                .cluster_facts
                .prepare_revision(&mut self.source, &wanted.revision, RevisionAccess::Fetched)
                .await
                && (!is_read || error.class() == ErrorClass::Transient)
            {
                tracing::debug!(source = self.source.name(), %error, "an older revision cannot be had now");
                self.missing.push(wanted);
                continue;
            }
            let (wanted, search) = self.content_reader().look_up(wanted).await;
            let (found, failure) = match search {
                Ok(ContentSearch { found, failure }) => (Some(found), failure),
                Err(error) => (None, Some(error)),
            };
            if let Some(error) = failure {
                if !is_read || error.class() == ErrorClass::Transient {
                    self.missing.push(wanted);
                    continue;
                }
                tracing::warn!(revision = %wanted.revision, "an older revision cannot be read: {error}");
            }
            events.push(LoopEvent::ContentsRead(found.unwrap_or_else(|| wanted.empty_answer())));
        }
        events
    }
}
