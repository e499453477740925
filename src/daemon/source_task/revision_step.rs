//! Observes a source, and reads a revision at the cost of what differs from the one that was last
//! reported.
//!
//! [`SourceTask::check_source`] reports it as [`LoopEvent::SourceRead`], which `handle_event` in
//! `reconciler/event_handlers.rs` takes.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::super::loop_event::LoopEvent;
use super::super::manifest_facts::ReadSettings;
use super::super::parse_ahead::parse_ahead;
use super::{ReadMode, SourceTask, authorship, refusal_text};
use crate::engine::{FileCompleteness, FileFacts, MAX_SOURCE_FINDINGS, SourceReading};
use crate::manifest::{KindScopes, ManifestFile};
use crate::object::{GroupKind, Revision};
use crate::source::{
    Ancestry, BlobId, ChangedFile, LastReadRevision, RenderStep, RenderedChanges, RevisionReader, Snapshot,
    SnapshotFile, SourceError, SourceObservation,
};

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

impl SourceTask {
    /// Observes the source, and reports what changed as [`LoopEvent::SourceRead`].
    pub(super) async fn check_source(&mut self) -> Vec<LoopEvent> {
        // The record of the accepted revision has not arrived yet.
        if !self.source.has_verification_record() {
            return Vec::new();
        }
        let number = self.settings.source;
        let read = |(reading, unknown)| LoopEvent::SourceRead(number, reading, unknown);
        let seen = self.read_newest_revision().await;
        let mut events = Vec::new();
        if self.identity != self.source.identity() {
            self.source.identity().clone_into(&mut self.identity);
            events.push(LoopEvent::Location(number, self.identity.clone()));
        }
        let repository = self.repository_identity();
        if self.repository != repository {
            self.repository.clone_from(&repository);
            events.push(LoopEvent::Repository(number, repository));
        }
        if !self.uses_versions && self.source.used_facts().versions {
            self.uses_versions = true;
            events.push(LoopEvent::VersionsUsed);
        }
        match seen {
            Ok(reading) => {
                self.last_error = None;
                self.last_check.set(jiff::Timestamp::now());
                events.extend(self.take_accepted());
                events.extend(reading.map(read));
                if self.check_done < self.check_requested {
                    self.check_done = self.check_requested;
                    events.push(LoopEvent::SourceChecked(number, self.check_requested));
                }
            }
            Err(error) => {
                let remembered = self.read_remembered().await;
                // The same trouble again is no news, also where its place was reached since.
                let reason: Arc<str> = error.to_string().into();
                let why: Arc<str> = self.with_age(&reason).into();
                let known = self.last_error.replace(reason.clone()).is_some_and(|before| before == reason);
                if remembered.is_some() || !known {
                    let marked =
                        remembered.map(|(reading, unknown)| read((mark_unreadable(reading, &why), unknown)));
                    events.extend(marked);
                    events.push(LoopEvent::Unreadable(number, why));
                }
            }
        }
        events
    }

    /// Says what stays in force meanwhile, if anything does, and since when nobody knows whether it
    /// is still the newest.
    fn with_age(&self, error: &str) -> String {
        match (self.source.current_revision(), self.source.last_success()) {
            (Some(revision), Some(reached)) => {
                let age = jiff::SignedDuration::try_from(reached.elapsed()).unwrap_or_default();
                let time = (jiff::Timestamp::now() - age).strftime("%Y-%m-%d %H:%M:%S UTC");
                format!("{error} (in force: {}, last seen {time})", revision.short_name())
            }
            (Some(revision), None) if self.reported.is_some() => {
                format!("{error} (in force: {}, not seen since rhumb started)", revision.short_name())
            }
            (Some(revision), None) if self.first_record.is_some() => {
                format!(
                    "{error} (nothing is applied: {} of this host may be an older revision)",
                    revision.short_name()
                )
            }
            (None, _) => format!("{error} (no revision of it was read on this host, so nothing is applied)"),
            (Some(_), None) => error.to_owned(),
        }
    }

    async fn read_newest_revision(
        &mut self,
    ) -> Result<Option<(SourceReading, BTreeSet<GroupKind>)>, SourceError> {
        self.cluster_facts.set_versions(self.versions.borrow_and_update().clone());
        let SourceObservation { revision, rendered, .. } =
            self.cluster_facts.observe(&mut self.source).await?;
        self.has_postponed_roots = rendered == RenderStep::Rendered && self.source.has_postponed_roots();
        let reported = self.reported.as_ref().map(|reported| &reported.snapshot);
        // The read after an earlier render may have failed.
        let is_read = |reported: &&Snapshot| {
            reported.revision == revision && reported.rendered == self.source.render_id()
        };
        let same = reported.filter(is_read).filter(|_| rendered == RenderStep::Kept);
        if let (Some(reported), ReadMode::Changes) = (same, self.read_mode) {
            // Nothing is new, except that it can be read again.
            let reading = SourceReading {
                revision: Some(revision),
                incomplete_reason: refusal_text(reported),
                unrendered: reported.lacking_roots(),
                refused: reported.refused.clone(),
                warnings: reported.warnings.clone(),
                rendered_kinds: self.source.rendered_kinds(),
                ..SourceReading::default()
            };
            return Ok(self.last_error.is_some().then(|| (reading, BTreeSet::new())));
        }
        self.read_revision(revision).await.map(Some)
    }

    /// Reads what an earlier process left, where the first check of this one failed.
    async fn read_remembered(&mut self) -> Option<(SourceReading, BTreeSet<GroupKind>)> {
        let revision = self.source.current_revision().filter(|_| self.reported.is_none()).cloned()?;
        if !self.is_newest_known(&revision).await {
            return None;
        }
        self.read_revision(revision).await.ok()
    }

    /// Does the same once it is known what was read last, where a check had failed before that.
    pub(super) async fn read_remembered_late(&mut self) -> Vec<LoopEvent> {
        let (number, Some(reason)) = (self.settings.source, self.last_error.clone()) else {
            return Vec::new();
        };
        let remembered = self.read_remembered().await;
        let why: Arc<str> = self.with_age(&reason).into();
        let read = remembered
            .map(|(reading, unknown)| LoopEvent::SourceRead(number, mark_unreadable(reading, &why), unknown));
        read.into_iter().chain([LoopEvent::Unreadable(number, why)]).collect()
    }

    /// Returns whether no newer revision than this one was read before, as far as the inventory
    /// records that. The state of this host may be of long ago: another replica served the source
    /// since, or the state was restored from a backup.
    async fn is_newest_known(&mut self, revision: &Revision) -> bool {
        let Some(record) = &self.first_record else { return false };
        let is_of_same = |last: &&LastReadRevision| self.source.repository() == Some(&*last.repository);
        let Some(last) = record.last_read.as_ref().filter(is_of_same) else { return true };
        let (older, newer) = (last.revision.clone(), revision.clone());
        let ancestry = move |reader: &RevisionReader| reader.ancestry(&older, &newer);
        matches!(self.source.read_bounded(ancestry).await, Ok(Ancestry::Descends))
    }

    async fn read_revision(
        &mut self,
        revision: Revision,
    ) -> Result<(SourceReading, BTreeSet<GroupKind>), SourceError> {
        let (settings, scopes) = (self.settings.clone(), self.known_scopes());
        let (from, read_mode) = (self.reported.clone(), self.read_mode);
        let read =
            move |reader: &RevisionReader| read_newest(reader, &settings, scopes, from, read_mode, &revision);
        let mut step = self.source.read_bounded(read).await?;
        step.reading.rendered_kinds = self.source.rendered_kinds();
        self.reported = Some(step.reported);
        self.scopes = step.scopes;
        self.read_mode = ReadMode::Changes;
        Ok((step.reading, step.unknown))
    }
}

/// Marks the reading of what an earlier process left as one of a source that cannot be read now.
/// The loop may decide about prunes before it takes the event that says so.
fn mark_unreadable(reading: SourceReading, why: &Arc<str>) -> SourceReading {
    let incomplete_reason = Some(why.clone());
    SourceReading { incomplete_reason, unrendered: Arc::default(), ..reading }
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
    let Ok(Some(changes)) = reader.plain_changes(&from.snapshot.revision, from.snapshot.rendered, to) else {
        return match root_changes(reader, &from, to) {
            Some(changes) => Ok(RevisionDiff::of_roots(from.snapshot, changes, to)),
            None => compare_file_lists(reader, Some(&from), to),
        };
    };
    let ReportedSnapshot { mut snapshot, unrendered } = from;
    ChangedFile::apply_all(&changes, &mut snapshot.files);
    snapshot.revision = to.clone();
    let (mut replaced, mut gone) = (BTreeMap::new(), BTreeSet::new());
    for change in changes {
        match change.after() {
            Some(file) => drop(replaced.insert(change.path, file)),
            None => drop(gone.insert(change.path)),
        }
    }
    Ok(RevisionDiff { snapshot, changed: replaced, gone, unrendered })
}

/// Returns the objects of the roots that differ, and the other files. None where only whole lists
/// show what has changed.
fn root_changes(reader: &RevisionReader, from: &ReportedSnapshot, to: &Revision) -> Option<RenderedChanges> {
    let ReportedSnapshot { snapshot, unrendered } = from;
    if !unrendered.is_empty() || !snapshot.failed_roots.is_empty() {
        return None;
    }
    let changes = reader.rendered_changes(&snapshot.revision, snapshot.rendered?, to).ok()??;
    // A revision without any object is refused, which the whole list says.
    (!changes.after.is_empty()).then_some(changes)
}

impl RevisionDiff {
    /// Puts what differs into the snapshot of the older revision.
    fn of_roots(older: Snapshot, changes: RenderedChanges, to: &Revision) -> Self {
        let RenderedChanges { before, after, rendered, warnings } = changes;
        let ListDifference { changed, gone } = ListDifference::of(&before, &after);
        let mut snapshot = Snapshot { revision: to.clone(), rendered: Some(rendered), warnings, ..older };
        let known: HashSet<&str> = before.iter().map(|file| &*file.path).collect();
        let mut new = Vec::new();
        for file in after {
            let found = snapshot.files.binary_search_by(|older| older.path.cmp(&file.path)).ok();
            let place = found.filter(|_| known.contains(&*file.path));
            match place.and_then(|place| snapshot.files.get_mut(place)) {
                Some(older) => *older = file,
                None => new.push(file),
            }
        }
        // Most commits change contents alone, and no file has another place in the list then.
        if !(new.is_empty() && gone.is_empty()) {
            snapshot.files.retain(|file| !gone.contains(&file.path));
            snapshot.files.extend(new);
            // Runs in order are merged, not sorted anew.
            snapshot.files.sort();
        }
        Self { snapshot, changed, gone, unrendered: BTreeSet::new() }
    }
}

/// Compares whole lists of files. The objects of a root that is not rendered now are not gone.
fn compare_file_lists(
    reader: &RevisionReader,
    from: Option<&ReportedSnapshot>,
    to: &Revision,
) -> Result<RevisionDiff, SourceError> {
    let snapshot = reader.snapshot(to)?;
    let known = from.iter().flat_map(|from| &from.snapshot.files);
    let ListDifference { changed, mut gone } = ListDifference::of(known, &snapshot.files);
    let mut lost: BTreeSet<Arc<str>> = from.iter().flat_map(|from| &from.unrendered).cloned().collect();
    if !lost.is_empty() {
        for file in &snapshot.files {
            lost.remove(&file.path);
        }
    }
    gone.append(&mut lost);
    let unrendered = gone.extract_if(.., |path| snapshot.is_of_failed_root(path)).collect();
    Ok(RevisionDiff { snapshot, changed, gone, unrendered })
}

/// The difference of two lists of files.
#[derive(Debug, Default, PartialEq, Eq)]
struct ListDifference {
    /// The files that are new, or have another content or origin.
    changed: BTreeMap<Arc<str>, SnapshotFile>,
    /// The paths that are no more.
    gone: BTreeSet<Arc<str>>,
}

impl ListDifference {
    /// Compares two lists in one pass over both, once they are in order. Most are.
    fn of<'f>(
        old: impl IntoIterator<Item = &'f SnapshotFile>,
        new: impl IntoIterator<Item = &'f SnapshotFile>,
    ) -> Self {
        let mut old: Vec<&SnapshotFile> = old.into_iter().collect();
        let mut new: Vec<&SnapshotFile> = new.into_iter().collect();
        old.sort_by(|a, b| a.path.cmp(&b.path));
        new.sort_by(|a, b| a.path.cmp(&b.path));
        let mut old = old.into_iter().peekable();
        let mut difference = Self::default();
        for file in new {
            while let Some(before) = old.next_if(|before| before.path < file.path) {
                difference.gone.insert(before.path.clone());
            }
            let mut is_known = false;
            // A path that comes twice is not gone.
            while let Some(before) = old.next_if(|before| before.path == file.path) {
                is_known = before.blob == file.blob && before.origin == file.origin;
            }
            if !is_known {
                difference.changed.insert(file.path.clone(), file.clone());
            }
        }
        difference.gone.extend(old.map(|before| before.path.clone()));
        difference
    }
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
    let has_new_scope = |kinds: &BTreeSet<GroupKind>| kinds.iter().any(|kind| scopes.get(kind).is_some());
    let again: BTreeMap<Arc<str>, SnapshotFile> = unknown
        .iter()
        .filter(|(_, kinds)| has_new_scope(kinds))
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
    reading.incomplete_reason = refusal_text(&snapshot);
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
    let mut remaining_files = wanted.values();
    let take = |file: &SnapshotFile, parsed: ManifestFile| {
        let mut read = settings.assemble(file, parsed, scopes);
        read.facts.bound_findings(remaining_findings);
        if !read.unknown.is_empty() {
            unknown.insert(file.path.clone(), read.unknown);
        }
        files.insert(file.path.clone(), Some(read.facts));
    };
    parse_ahead(wanted.len(), take, |each| {
        reader.read_all(blobs, |_, bytes| {
            if let Some(file) = remaining_files.next() {
                each(file, settings.parse(file, &bytes));
            }
            Ok(())
        })
    })?;
    Ok(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::RenderOrigin;
    use crate::source::RenderId;

    /// Returns files of `PATH=CONTENT`, or `PATH=CONTENT@ROOT` where it was rendered.
    fn files(texts: &[&str]) -> Vec<SnapshotFile> {
        let file = |text: &&str| {
            let (path, content) = text.split_once('=').unwrap();
            let (content, root) = content.split_once('@').unwrap_or((content, ""));
            let render = RenderOrigin { root: root.into(), renderer: "kustomize".into(), places: [].into() };
            let origin = Some(Arc::new(render)).filter(|render| !render.root.is_empty());
            SnapshotFile { blob: BlobId::of(content.as_bytes()), origin, ..SnapshotFile::in_test(path) }
        };
        texts.iter().map(file).collect()
    }

    #[test]
    fn what_differs_is_put_into_the_list_of_before() {
        let check = |older: &[&str], before: &[&str], after: &[&str], expected: &[&str]| {
            let older = Snapshot::of_files(Revision::new("1"), files(older), Vec::new());
            let rendered = RenderId::in_test();
            let changes = RenderedChanges {
                before: files(before),
                after: files(after),
                rendered,
                warnings: Vec::new(),
            };
            let found = RevisionDiff::of_roots(older, changes, &Revision::new("2"));
            assert_eq!(found.snapshot.files, files(expected), "{before:?} {after:?}");
            assert_eq!(
                (found.snapshot.revision, found.snapshot.rendered),
                (Revision::new("2"), Some(rendered))
            );
            let of_lists = ListDifference::of(&files(before), &files(after));
            assert_eq!(ListDifference { changed: found.changed, gone: found.gone }, of_lists);
        };
        let older = ["a#x=1@a", "a#y=1@a", "b#x=1@b", "c=1"];
        let after = ["a#x=2@a", "a#z=1@a"];
        check(&older, &older[..2], &after, &["a#x=2@a", "a#z=1@a", "b#x=1@b", "c=1"]);
        check(&older, &["a#x=1@a", "a#y=1@a", "c=1"], &["a#x=1@a"], &["a#x=1@a", "b#x=1@b"]);
        // A root whose path begins with that of another one keeps its objects.
        let nested = ["a#b#x=1@b", "a#x=1@a", "a/b#x=1@c"];
        check(&nested, &nested[1..2], &["a#x=2@a"], &["a#b#x=1@b", "a#x=2@a", "a/b#x=1@c"]);
        check(&nested, &nested[1..2], &[], &["a#b#x=1@b", "a/b#x=1@c"]);
        check(&older, &["c=1"], &["c=2"], &["a#x=1@a", "a#y=1@a", "b#x=1@b", "c=2"]);
    }

    #[test]
    fn lists_differ_by_paths_contents_and_origins() {
        let check = |old: &[&str], new: &[&str], changed: &[&str], gone: &[&str]| {
            let found = ListDifference::of(&files(old), &files(new));
            let found_changed: Vec<&str> = found.changed.keys().map(|path| &**path).collect();
            let found_gone: Vec<&str> = found.gone.iter().map(|path| &**path).collect();
            assert_eq!((&*found_changed, &*found_gone), (changed, gone), "{old:?} {new:?}");
        };
        check(&[], &[], &[], &[]);
        check(&[], &["a=1"], &["a"], &[]);
        check(&["a=1"], &[], &[], &["a"]);
        check(&["a=1", "b=1"], &["a=1", "b=1"], &[], &[]);
        check(&["a=1", "b=1", "d=1"], &["b=2", "c=1", "d=1"], &["b", "c"], &["a"]);
        check(&["a#x=1@a"], &["a#x=1@b"], &["a#x"], &[]);
        // Both may be in any order, and name a path twice.
        check(&["c=1", "a=1", "b=1"], &["a=1", "c=1"], &[], &["b"]);
        check(&["a=1", "b=1", "c=1"], &["c=1", "a=1"], &[], &["b"]);
        check(&["a=1", "a=1", "b=1"], &["a=1", "b=1"], &[], &[]);
        check(&["a=1", "a=2"], &["a=2"], &[], &[]);
    }
}
