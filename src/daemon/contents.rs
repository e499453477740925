//! Bodies of objects, read again when they are needed: entries keep hashes and no bodies.
//!
//! `src/daemon/action_executor.rs` asks for them before each write.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::parsed_manifests::ParsedManifests;
use super::setup::SourceFiles;
use crate::cluster::FieldOwners;
use crate::engine::{
    ApplyVariant, DesiredObject, ReleaseAnnotation, VersionBinding, effective_content, remove_ignored,
    resolve_ignores, stamp_release,
};
use crate::input::{Decrypter, read_manifest};
use crate::manifest::{self, ManifestItem};
use crate::object::{ContentHash, Object};
use crate::source::{self, BlobId, DiskSnapshot, RevisionReader, SnapshotFile};

/// The maximum number of parsed files kept: a first apply asks for the objects of one file one
/// after the other.
const MAX_PARSED_FILES: usize = 16;

/// The kept files together are not larger than this, unless it is one alone.
const MAX_KEPT_FILE_BYTES: usize = 1 << 20;

/// The reason for a missing body.
#[derive(Debug, thiserror::Error)]
pub(super) enum ContentError {
    /// The source's store does not give the file.
    #[error("{file} cannot be read again: {source}")]
    Store {
        /// The file.
        file: Arc<str>,
        /// The reason.
        source: source::SourceError,
    },
    /// The file does not hold what it held.
    #[error("{file}:{line} does not hold the content that was decided on")]
    Changed {
        /// The file.
        file: Arc<str>,
        /// The line at which the object was.
        line: u32,
    },
}

/// The store of a source's bytes.
#[derive(Clone)]
pub(super) enum SourceBytes {
    /// In a git store.
    Store(RevisionReader),
    /// In memory, as they were on disk.
    Disk(Arc<DiskSnapshot>),
}

impl SourceBytes {
    /// Returns the bytes of a source's files.
    pub(super) fn of(files: &SourceFiles) -> Self {
        match files {
            SourceFiles::Source(source) => Self::Store(source.reader()),
            SourceFiles::Snapshot(disk) => Self::Disk(disk.clone()),
        }
    }
}

/// The place of the contents of one source.
#[derive(Clone)]
pub(super) struct ContentOrigin {
    /// The id of its inventory.
    pub(super) inventory_id: Arc<str>,
    /// Namespace of objects that name none.
    pub(super) namespace: Arc<str>,
    /// The bytes of its files.
    pub(super) bytes: SourceBytes,
    /// The identities that open what is encrypted.
    pub(super) decrypter: Arc<Decrypter>,
}

/// Files that were parsed last, each with its size in bytes.
type RecentParses = VecDeque<(BlobId, usize, Arc<Vec<ManifestItem>>)>;

/// The content store: bodies of the objects of all sources. Cheap to clone.
#[derive(Clone)]
pub(super) struct ContentStore {
    origins: Arc<Vec<ContentOrigin>>,
    kept: Arc<Mutex<RecentParses>>,
    /// The files that were parsed when they were read first.
    parsed: ParsedManifests,
}

impl ContentStore {
    /// Returns a store over sources in the order of their numbers, each with the id of its
    /// inventory.
    pub(super) fn new(sources: impl IntoIterator<Item = ContentOrigin>) -> Self {
        let origins = Arc::new(sources.into_iter().collect());
        Self { origins, kept: Arc::default(), parsed: ParsedManifests::default() }
    }

    /// Returns one that takes what is kept here as it was parsed.
    pub(super) fn with_parsed(self, parsed: ParsedManifests) -> Self {
        Self { parsed, ..self }
    }

    /// Returns where whoever reads a source keeps what was parsed.
    pub(super) fn parsed_files(&self) -> ParsedManifests {
        self.parsed.clone()
    }

    /// Adds those of the source with the next number.
    pub(super) fn add(&mut self, origin: ContentOrigin) {
        Arc::make_mut(&mut self.origins).push(origin);
    }

    /// Returns whether the contents of an object's source need no disk.
    pub(super) fn is_in_memory(&self, desired: &DesiredObject) -> bool {
        matches!(self.origins[desired.body.source].bytes, SourceBytes::Disk(_))
    }

    /// Returns the effective content of a desired object, with what it leaves to others. Blocks on
    /// the disk.
    pub(super) fn effective_content(&self, desired: &DesiredObject) -> Result<Value, ContentError> {
        let file = || desired.origin.file.clone();
        let origin = &self.origins[desired.body.source];
        let parsed = self.manifest_items(origin, desired)?;
        let found = parsed.binary_search_by_key(&desired.body.index, |one| one.index);
        let found = found.ok().and_then(|origin| parsed.get(origin));
        let content = found
            .map(|found| object(found, desired, &origin.namespace))
            .map(|object| effective_content(&object, &origin.inventory_id));
        let hash = |content: &Value| match desired.ignores {
            Some(_) => ContentHash::of(&remove_ignored(content.clone())),
            None => ContentHash::of(content),
        };
        let content = content.filter(|content| hash(content) == desired.hash);
        content.ok_or_else(|| ContentError::Changed { file: file(), line: desired.origin.line })
    }

    /// Returns the content of a desired object that is compared and defended. Blocks on the disk.
    pub(super) fn defended_content(&self, desired: &DesiredObject) -> Result<Value, ContentError> {
        self.effective_content(desired).map(remove_ignored)
    }

    /// Returns the content to send where no live object need be read: it is created, or leaves no
    /// field to others. It is the effective content with the release annotation. Blocks on the disk.
    pub(super) fn body_without_live(
        &self,
        desired: &DesiredObject,
        annotation: &ReleaseAnnotation,
        variant: ApplyVariant,
    ) -> Result<Value, ContentError> {
        Ok(stamp_release(self.effective_content(desired)?, annotation, variant))
    }

    /// Returns the content to send to an object; without a live one, to create it. Blocks on the
    /// disk.
    pub(super) fn body(
        &self,
        desired: &DesiredObject,
        annotation: &ReleaseAnnotation,
        variant: ApplyVariant,
        live: Option<&Value>,
    ) -> Result<Value, ContentError> {
        match live {
            Some(live) => self.body_for_live(desired, annotation, variant, live).map(|(body, _)| body),
            None => self.body_without_live(desired, annotation, variant),
        }
    }

    /// Returns the content to send to a live object, and whether it is good for this version of it
    /// only. Blocks on the disk.
    pub(super) fn body_for_live(
        &self,
        desired: &DesiredObject,
        annotation: &ReleaseAnnotation,
        variant: ApplyVariant,
        live: &Value,
    ) -> Result<(Value, VersionBinding), ContentError> {
        let owners = FieldOwners::of(live);
        let others: Vec<&str> = owners.others.iter().map(String::as_str).collect();
        let settled =
            resolve_ignores(self.effective_content(desired)?, live, owners.ours.as_deref(), &others);
        Ok((stamp_release(settled.content, annotation, variant), settled.binds))
    }

    fn manifest_items(
        &self,
        origin: &ContentOrigin,
        desired: &DesiredObject,
    ) -> Result<Arc<Vec<ManifestItem>>, ContentError> {
        let blob = BlobId::from(desired.body.blob);
        if let Some(parsed) = self.parsed.get(blob) {
            return Ok(parsed);
        }
        let known =
            |kept: &RecentParses| kept.iter().find(|(id, ..)| *id == blob).map(|(_, _, items)| items.clone());
        if let Some(parsed) = known(&self.kept.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(parsed);
        }
        let missing = |source| ContentError::Store { file: desired.origin.file.clone(), source };
        let bytes = match &origin.bytes {
            SourceBytes::Store(reader) => reader.read(blob).map_err(missing)?,
            SourceBytes::Disk(disk) => disk.read(blob).unwrap_or_default().to_vec(),
        };
        let items = Arc::new(read_manifest(&file_of(desired), &bytes, &origin.decrypter).items);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back((blob, bytes.len(), items.clone()));
        let size = |kept: &RecentParses| kept.iter().map(|(_, size, _)| size).sum::<usize>();
        while kept.len() > MAX_PARSED_FILES || (kept.len() > 1 && size(&kept) > MAX_KEPT_FILE_BYTES) {
            kept.pop_front();
        }
        drop(kept);
        Ok(items)
    }

    /// Forgets the parsed files and closes what they were read from.
    pub(super) fn clear(&self) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
        for origin in self.origins.iter() {
            if let SourceBytes::Store(reader) = &origin.bytes {
                reader.close();
            }
        }
    }
}

/// Returns the file that a desired object was read from.
fn file_of(desired: &DesiredObject) -> SnapshotFile {
    SnapshotFile {
        path: desired.origin.file.clone(),
        blob: desired.body.blob.into(),
        size: 0,
        origin: desired.origin.render.clone(),
    }
}

fn object(item: &ManifestItem, desired: &DesiredObject, default_namespace: &str) -> Object {
    let mut body = manifest::clean(item.body.clone());
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        match desired.id.namespace() {
            Some(namespace) => metadata.insert("namespace".to_owned(), Value::String(namespace.to_owned())),
            None => metadata.remove("namespace"),
        };
    }
    manifest::complete_dependencies(&mut body, default_namespace);
    Object {
        id: desired.id.clone(),
        gvk: desired.gvk.clone(),
        body: Arc::new(body),
        origin: desired.origin.clone(),
    }
}
