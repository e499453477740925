//! Reads a revision at the cost of what differs from the one that was last reported.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::manifest_facts::ReadSettings;
use super::{ReadMode, authorship, refusal_text};
use crate::engine::{FileCompleteness, FileFacts, MAX_SOURCE_FINDINGS, SourceReading};
use crate::manifest::KindScopes;
use crate::object::{GroupKind, Revision};
use crate::source::{BlobId, RevisionReader, Snapshot, SnapshotFile, SourceError};

/// A snapshot that was reported.
#[derive(Clone, Debug)]
pub(super) struct ReportedSnapshot {
    /// The snapshot.
    pub(super) snapshot: Snapshot,
    /// The objects that were reported before, of roots that are not rendered now.
    pub(super) unrendered: BTreeSet<Arc<str>>,
}

/// The result of reading a revision.
pub(super) struct ReadStep {
    pub(super) reported: ReportedSnapshot,
    pub(super) reading: SourceReading,
    pub(super) unknown: BTreeSet<GroupKind>,
    pub(super) scopes: KindScopes,
}

/// The difference of a revision from the one last reported.
struct RevisionDiff {
    snapshot: Snapshot,
    changed: BTreeMap<Arc<str>, SnapshotFile>,
    gone: BTreeSet<Arc<str>>,
    unrendered: BTreeSet<Arc<str>>,
}

/// Compares at the cost of what changed, wherever the changes alone show it.
fn compare_revisions(
    reader: &RevisionReader,
    from: Option<ReportedSnapshot>,
    read_mode: ReadMode,
    to: &Revision,
) -> Result<RevisionDiff, SourceError> {
    let Some(from) = from else { return compare_file_lists(reader, None, to) };
    if read_mode == ReadMode::Everything {
        let mut all = compare_file_lists(reader, Some(&from), to)?;
        all.changed = all.snapshot.files.iter().map(|file| (file.path.clone(), file.clone())).collect();
        return Ok(all);
    }
    let Ok(Some(changes)) = reader.plain_changes(&from.snapshot.revision, to) else {
        return compare_file_lists(reader, Some(&from), to);
    };
    let ReportedSnapshot { mut snapshot, unrendered } = from;
    let (mut replaced, mut gone) = (BTreeMap::new(), BTreeSet::new());
    for change in changes {
        snapshot.files.retain(|file| file.path != change.path);
        match change.new {
            Some((blob, size)) => {
                let file = SnapshotFile { path: change.path.clone(), blob, size, origin: None };
                snapshot.files.push(file.clone());
                replaced.insert(change.path, file);
            }
            None => drop(gone.insert(change.path)),
        }
    }
    snapshot.revision = to.clone();
    Ok(RevisionDiff { snapshot, changed: replaced, gone, unrendered })
}

/// Compares whole lists of files. The objects of a root that is not rendered now are not gone.
fn compare_file_lists(
    reader: &RevisionReader,
    from: Option<&ReportedSnapshot>,
    to: &Revision,
) -> Result<RevisionDiff, SourceError> {
    let snapshot = reader.snapshot(to)?;
    let old = from.iter().flat_map(|from| &from.snapshot.files);
    let old: BTreeMap<&Arc<str>, &SnapshotFile> = old.map(|file| (&file.path, file)).collect();
    let mut gone: BTreeSet<Arc<str>> = old.keys().map(|path| (*path).clone()).collect();
    gone.extend(from.iter().flat_map(|from| &from.unrendered).cloned());
    let mut changed = BTreeMap::new();
    for file in &snapshot.files {
        gone.remove(&file.path);
        if old.get(&file.path).is_none_or(|known| known.blob != file.blob || known.origin != file.origin) {
            changed.insert(file.path.clone(), file.clone());
        }
    }
    let unrendered = gone.extract_if(.., |path| snapshot.is_of_failed_root(path)).collect();
    Ok(RevisionDiff { snapshot, changed, gone, unrendered })
}

/// Reads what changed since the last reading, or all.
pub(super) fn read_newest(
    reader: &RevisionReader,
    settings: &ReadSettings,
    mut scopes: KindScopes,
    from: Option<ReportedSnapshot>,
    read_mode: ReadMode,
    to: &Revision,
) -> Result<ReadStep, SourceError> {
    let RevisionDiff { snapshot, changed, gone, unrendered } =
        compare_revisions(reader, from, read_mode, to)?;
    let mut files: BTreeMap<Arc<str>, Option<FileFacts>> =
        gone.into_iter().map(|path| (path, None)).collect();
    files.extend(unrendered.iter().map(|path| {
        let facts = FileFacts { completeness: FileCompleteness::Unrendered, ..FileFacts::default() };
        (path.clone(), Some(facts))
    }));
    let mut remaining_findings = MAX_SOURCE_FINDINGS;
    let mut unknown =
        read_files(reader, settings, &mut scopes, &changed, &mut files, &mut remaining_findings)?;
    // A definition may be in a later file than its objects.
    let learnt = |kinds: &BTreeSet<GroupKind>| kinds.iter().any(|kind| scopes.get(kind).is_some());
    let again: BTreeMap<Arc<str>, SnapshotFile> = unknown
        .iter()
        .filter(|(_, kinds)| learnt(kinds))
        .filter_map(|(path, _)| Some((path.clone(), changed.get(path)?.clone())))
        .collect();
    if !again.is_empty() {
        unknown.retain(|path, _| !again.contains_key(path));
        unknown.extend(read_files(
            reader,
            settings,
            &mut scopes,
            &again,
            &mut files,
            &mut remaining_findings,
        )?);
    }
    let mut reading = SourceReading {
        revision: Some(to.clone()),
        files: files.into_iter().collect(),
        ..SourceReading::default()
    };
    reading.authored = reader.commit(to)?.map(|commit| authorship(&commit));
    reading.incomplete = refusal_text(&snapshot);
    reading.unrendered = snapshot.lacking_roots();
    reading.refused.clone_from(&snapshot.refused);
    reading.warnings.clone_from(&snapshot.warnings);
    let unknown = unknown.into_values().flatten().collect();
    Ok(ReadStep { reported: ReportedSnapshot { snapshot, unrendered }, reading, unknown, scopes })
}

/// Reads files, and returns the kinds of unknown scope in each that has some. The number of
/// findings that may still be kept goes down by theirs.
fn read_files(
    reader: &RevisionReader,
    settings: &ReadSettings,
    scopes: &mut KindScopes,
    wanted: &BTreeMap<Arc<str>, SnapshotFile>,
    files: &mut BTreeMap<Arc<str>, Option<FileFacts>>,
    remaining_findings: &mut usize,
) -> Result<BTreeMap<Arc<str>, BTreeSet<GroupKind>>, SourceError> {
    let mut unknown = BTreeMap::new();
    let blobs: Vec<BlobId> = wanted.values().map(|file| file.blob).collect();
    let mut wanted = wanted.values();
    reader.read_all(blobs, |_, bytes| {
        if let Some(file) = wanted.next() {
            let mut read = settings.read(file, &bytes, scopes);
            read.facts.bound_findings(remaining_findings);
            if !read.unknown.is_empty() {
                unknown.insert(file.path.clone(), read.unknown);
            }
            files.insert(file.path.clone(), Some(read.facts));
        }
        Ok(())
    })?;
    Ok(unknown)
}
