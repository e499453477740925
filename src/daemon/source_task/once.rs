//! Sources that are read once: a folder as it was, or the newest revision.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::action_executor::run_blocking;
use super::super::loop_event::LoopEvent;
use super::super::manifest_facts::{FileReading, ReadSettings};
use super::super::parse_ahead::{EarlyParse, parse_ahead};
use super::older_revision::ContentSearch;
use super::revision_step::read_newest;
use super::{ClusterFactReader, ReadMode, WantedContent, authorship, older_revision, refusal_text};
use crate::engine::{MAX_SOURCE_FINDINGS, SourceReading};
use crate::manifest::{KindScopes, ManifestFile};
use crate::object::{ContentHash, GroupKind, ObjectId, Revision};
use crate::source::{DiskSnapshot, RevisionReader, SnapshotFile, Source, SourceError};

/// Reads what was on disk, once.
pub(in crate::daemon) async fn read_once(
    disk: Arc<DiskSnapshot>,
    settings: ReadSettings,
    scopes: KindScopes,
    early: Option<EarlyParse>,
) -> LoopEvent {
    run_blocking(move || {
        let (reading, unknown) = read_disk(&disk, &settings, scopes, early);
        LoopEvent::SourceRead(settings.source, reading, unknown)
    })
    .await
}

/// Reads all files that were on disk. They may be parsed already, by the same identities.
pub(in crate::daemon) fn read_disk<'a>(
    disk: &'a DiskSnapshot,
    settings: &ReadSettings,
    mut scopes: KindScopes,
    early: Option<EarlyParse>,
) -> (SourceReading, BTreeSet<GroupKind>) {
    let snapshot = &disk.snapshot;
    let mut reading = SourceReading { revision: Some(snapshot.revision.clone()), ..SourceReading::default() };
    reading.authored = disk.commit.as_ref().map(authorship);
    let mut files: BTreeMap<&Arc<str>, FileReading> = BTreeMap::new();
    let mut remaining_findings = MAX_SOURCE_FINDINGS;
    let bytes_of = |file: &SnapshotFile| disk.read(file.blob).unwrap_or_default();
    let parse = |file: &SnapshotFile| settings.parse(file, bytes_of(file));
    let mut take = |file: &'a SnapshotFile, parsed: ManifestFile| {
        let mut read = settings.assemble(file, parsed, &mut scopes);
        read.facts.bound_findings(&mut remaining_findings);
        files.insert(&file.path, read);
    };
    if let Some(early) = early {
        for file in &snapshot.files {
            let parsed = early.next_file().map(|parsed| settings.keep(file, bytes_of(file), parsed));
            take(file, parsed.unwrap_or_else(|| parse(file)));
        }
    } else {
        parse_ahead(snapshot.files.len(), take, |each| {
            snapshot.files.iter().for_each(|file| each(file, parse(file)));
        });
    }
    // A definition may be in a later file than its objects.
    for file in &snapshot.files {
        let is_final = |read: &FileReading| read.unknown.iter().all(|kind| scopes.get(kind).is_none());
        if files.get(&file.path).is_some_and(is_final) {
            continue;
        }
        let mut read = settings.assemble(file, parse(file), &mut scopes);
        read.facts.bound_findings(&mut remaining_findings);
        files.insert(&file.path, read);
    }
    let unknown = files.values().flat_map(|read| read.unknown.iter().cloned()).collect();
    reading.files = files.into_iter().map(|(path, read)| (path.clone(), Some(read.facts))).collect();
    reading.incomplete_reason = refusal_text(snapshot);
    reading.unrendered = snapshot.lacking_roots();
    reading.refused.clone_from(&snapshot.refused);
    reading.warnings.clone_from(&snapshot.warnings);
    reading.rendered_kinds.clone_from(&disk.rendered_kinds);
    (reading, unknown)
}

/// Reads a source at its newest revision, once. Returns the reader of its older contents too.
pub(in crate::daemon) async fn read_newest_once(
    mut source: Source,
    settings: ReadSettings,
    scopes: KindScopes,
    mut facts: ClusterFactReader,
) -> Result<(SourceReading, OlderContents), SourceError> {
    let mut observed = Box::pin(facts.observe(&mut source)).await?;
    while source.has_postponed_roots() {
        observed = Box::pin(facts.observe(&mut source)).await?;
    }
    let (of_newest, kinds) = (settings.clone(), scopes.clone());
    let read = move |reader: &RevisionReader| {
        read_newest(reader, &of_newest, kinds, None, ReadMode::Changes, &observed.revision)
    };
    let mut step = source.reader().read_bounded(read).await?;
    step.reading.rendered_kinds = source.rendered_kinds();
    Ok((step.reading, OlderContents { source, settings, scopes }))
}

/// The older contents of a source that is read once.
pub(in crate::daemon) struct OlderContents {
    source: Source,
    settings: ReadSettings,
    scopes: KindScopes,
}

impl OlderContents {
    /// Returns contents of an older revision, as far as this host has them. Where a file cannot be
    /// read, it says nothing of those that it may have.
    ///
    /// # Errors
    /// Fails where the revision cannot be read.
    pub(in crate::daemon) async fn read(
        &mut self,
        revision: Revision,
        contents: Vec<(ObjectId, ContentHash)>,
    ) -> Result<older_revision::FoundContents, SourceError> {
        if self.source.is_on_host() {
            self.source.fetch_revision(&revision).await?;
        }
        let (settings, scopes) = (self.settings.clone(), self.scopes.clone());
        let contents: Vec<WantedContent> =
            contents.into_iter().map(|(id, hash)| WantedContent::own(id, hash)).collect();
        let read = move |reader: &RevisionReader| {
            older_revision::read_contents(reader, &settings, &scopes, &revision, &contents)
        };
        self.source.read_bounded(read).await.map(ContentSearch::into_known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::manifest_facts::NameInterner;
    use crate::daemon::parsed_manifests::ParsedManifests;
    use crate::engine::SourceId;
    use crate::input::VariableMode;

    // Charts leave out objects of a kind that the server did not list. These are not pruned.
    #[test]
    fn a_folder_is_read_with_the_kinds_that_the_server_listed_for_its_charts() {
        let folder = tempfile::tempdir().unwrap();
        let text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}";
        std::fs::write(folder.path().join("a.yaml"), text).unwrap();
        let settings = ReadSettings {
            source: SourceId::new(0),
            inventory_id: "set".into(),
            namespace: "default".into(),
            allow: Arc::default(),
            decrypter: Arc::default(),
            variables: VariableMode::Literal,
            names: NameInterner::default(),
            parsed: ParsedManifests::default(),
        };
        for kinds in [None, Some(Arc::new(BTreeSet::from([GroupKind::new("", "ConfigMap")])))] {
            let mut disk = crate::source::read_disk(folder.path()).unwrap();
            disk.rendered_kinds.clone_from(&kinds);
            let (reading, _) = read_disk(&disk, &settings, KindScopes::builtin(), None);
            assert_eq!(reading.rendered_kinds, kinds);
        }
    }
}
