//! The rendered form of a revision, as a commit in the source's own store.
//!
//! The commit of a revision is at `refs/rhumb/rendered/<revision>`. Its parents are the last
//! renders, the newest first, where the revision was rendered by several facts of the cluster. Its
//! tree has a folder for each root: a list of the root's objects with their origins, and a blob for
//! each object. Its trailers are for people: the revision, and the key of all roots. Only the
//! source's own store is asked: nobody who may write to a followed repository can plant one.

use std::collections::BTreeMap;
use std::sync::Arc;

use git2::{ErrorCode, ObjectType, Oid, Repository};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::object::{
    Diagnostic, ManifestOrigin, NameWords, PossibleNames, RenderOrigin, Revision, hex_bytes, hex_text,
};

use super::error::SourceError;
use super::object_stores::{self, ObjectDatabase};
use super::rendering::{
    DUPLICATE_KEY, HOOK_NOT_RUN, RenderedRoot, RenderedSnapshot, RootKey, RootOutcome, StoredRoot,
};
use super::shared_texts::SharedTexts;
use super::snapshot::{BlobId, SnapshotFile};
use super::state_lock::StateLock;
use super::store::RevisionStore;
use super::store_usage::ObjectWriter;
use super::tree_builder::{self, NewEntry, ObjectSink as _, RenderSubject};

/// The rendered form of a revision: `refs/rhumb/rendered/<revision>`.
const RENDERED_PREFIX: &str = "refs/rhumb/rendered/";
/// Renders of one revision that are kept: what is in force may come from an older one. Facts of the
/// cluster change rarely, and a rollout ends within hours.
const MAX_KEPT_RENDERS: usize = 8;
/// The list of a root, in its folder.
const ROOT_RECORD_FILE: &str = "root.json";
/// The code of what was found wrong with a root, when it is read again.
const FAILED_ROOT: &str = "render-failed";

/// The list of one root.
#[derive(Debug, Serialize, Deserialize)]
struct RootList {
    path: String,
    key: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    objects: Vec<ListedObject>,
    /// Says that it did not render, for these reasons.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    failed: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    errors: Vec<ListedError>,
    /// The hooks that are not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<ListedError>,
    /// The words of its names, with a blank between two; none where nothing is known of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    words: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ListedObject {
    path: String,
    blob: String,
    size: u64,
    root: String,
    renderer: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    places: Vec<ListedOrigin>,
}

/// File, line and column.
#[derive(Debug, Serialize, Deserialize)]
struct ListedOrigin(String, u32, u32);

#[derive(Debug, Serialize, Deserialize)]
struct ListedError {
    place: ListedOrigin,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The code of a warning that is not about a hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

impl RevisionStore {
    /// Writes what was rendered of a revision, before what was there, and returns its roots as they
    /// are stored now.
    pub(super) fn keep_rendered(
        &self,
        _: &StateLock,
        revision: &Revision,
        rendered: RenderedSnapshot,
    ) -> Result<StoredRoots, SourceError> {
        self.remaining_quota()?;
        let repository = self.repository()?;
        let mut writer = self.writer(&repository)?;
        let written = write(&repository, &mut writer, revision, rendered);
        let (id, stored) = written.map_err(|error| self.classify_error(&error))?;
        let name = format!("{RENDERED_PREFIX}{revision}");
        let done = repository.reference(&name, id, true, "").map(|_| stored);
        done.map_err(|error| self.classify_error(&error))
    }

    /// Forgets what was rendered of all revisions but these.
    pub(super) fn forget_rendered(
        &self,
        _: &StateLock,
        keep: impl Fn(&Revision) -> bool,
    ) -> Result<(), SourceError> {
        let repository = self.repository()?;
        let references = repository.references_glob(&format!("{RENDERED_PREFIX}*"));
        for reference in references.map_err(|error| self.classify_error(&error))? {
            let mut reference = reference.map_err(|error| self.classify_error(&error))?;
            let name = reference.name().ok().and_then(|name| name.strip_prefix(RENDERED_PREFIX));
            if name.is_some_and(|name| !keep(&Revision::new(name))) {
                reference.delete().map_err(|error| self.classify_error(&error))?;
            }
        }
        Ok(())
    }
}

/// Writes the roots that are not stored yet, and the commit of all.
fn write(
    repository: &Repository,
    writer: &mut ObjectWriter<'_>,
    revision: &Revision,
    rendered: RenderedSnapshot,
) -> Result<(Oid, StoredRoots), git2::Error> {
    let RenderedSnapshot { mut roots, contents, .. } = rendered;
    for content in &contents {
        // Of a root that has changed, most objects are as they were.
        if !writer.is_known(content.blob.oid()) {
            writer.put(ObjectType::Blob, &content.bytes)?;
        }
    }
    let mut folders = Vec::with_capacity(roots.len());
    for root in &mut roots {
        let folder = match root.stored {
            Some(StoredRoot(folder)) => folder,
            None => write_root(writer, root)?,
        };
        root.stored = Some(StoredRoot(folder));
        folders.push(folder);
    }
    let key = key_of_roots(&roots);
    let subject = RenderSubject { revision, key: &key };
    let commit = tree_builder::write_rendered_commit(writer, &folders, subject)?;
    let mut renders = vec![commit.id];
    // Older versions wrote the same tree under other words. One that cannot be read is of no use to
    // anybody, and would make the others unreadable too.
    let odb = ObjectDatabase::of(repository)?;
    let is_other = |id: &Oid| odb.find_commit(*id).is_ok_and(|earlier| earlier.tree_id() != commit.tree);
    renders.extend(kept_renders(repository, revision)?.into_iter().filter(is_other));
    renders.truncate(MAX_KEPT_RENDERS);
    let id = match &renders[..] {
        [only] => *only,
        several => tree_builder::write_render(writer, commit.tree, several, subject)?,
    };
    Ok((id, StoredRoots { tree: commit.tree, roots: roots.into() }))
}

/// Returns the key of a rendered revision: the SHA-256 of the path and the key of each root.
fn key_of_roots(roots: &[RenderedRoot]) -> RootKey {
    let mut hash = Sha256::new();
    for root in roots {
        hash.update((root.path.len() as u64).to_be_bytes());
        hash.update(root.path.as_bytes());
        hash.update(root.key);
    }
    hash.finalize().into()
}

/// Writes the folder of one root: its list, and a name for each object, which are stored already.
fn write_root(writer: &mut ObjectWriter<'_>, root: &RenderedRoot) -> Result<Oid, git2::Error> {
    let list = serde_json::to_vec(&list_of(root)).unwrap_or_default();
    let mut files = BTreeMap::from([(ROOT_RECORD_FILE.to_owned(), writer.put(ObjectType::Blob, &list)?)]);
    if let RootOutcome::Rendered(objects) = &root.outcome {
        files.extend(objects.iter().map(|file| (file.blob.to_string(), file.blob.oid())));
    }
    let files: Vec<NewEntry<'_>> = files.iter().map(|(name, id)| NewEntry::file(name, *id)).collect();
    tree_builder::write_root_folder(writer, &files)
}

fn list_of(root: &RenderedRoot) -> RootList {
    let mut list = RootList {
        path: root.path.to_string(),
        key: hex_text(&root.key),
        objects: Vec::new(),
        failed: false,
        errors: Vec::new(),
        warnings: root.warnings.iter().map(listed_error).collect(),
        words: None,
    };
    match &root.outcome {
        RootOutcome::Rendered(files) => list.objects = files.iter().map(listed_object).collect(),
        RootOutcome::Refused(found) | RootOutcome::Interrupted(found) => {
            list.failed = true;
            list.errors = found.iter().map(listed_error).collect();
            if let PossibleNames::Words(words) = &root.names {
                list.words = Some(words.to_text());
            }
        }
    }
    list
}

fn listed_object(file: &SnapshotFile) -> ListedObject {
    let render = file.origin.as_deref();
    ListedObject {
        path: file.path.to_string(),
        blob: file.blob.to_string(),
        size: file.size,
        root: render.map(|render| render.root.to_string()).unwrap_or_default(),
        renderer: render.map(|render| render.renderer.to_string()).unwrap_or_default(),
        places: render.iter().flat_map(|render| render.places.iter()).map(listed_place).collect(),
    }
}

fn listed_place(origin: &ManifestOrigin) -> ListedOrigin {
    ListedOrigin(origin.file.to_string(), origin.line, origin.column)
}

fn listed_error(found: &Diagnostic) -> ListedError {
    ListedError {
        place: listed_place(&found.origin),
        message: found.message.clone(),
        hint: found.hint.clone(),
        code: Some(found.code).filter(|code| *code == DUPLICATE_KEY).map(str::to_owned),
    }
}

/// Returns the tree of what was rendered of a revision, if a store has it.
pub(super) fn rendered_tree(store: &Repository, revision: &Revision) -> Result<Option<Oid>, git2::Error> {
    match store.find_reference(&format!("{RENDERED_PREFIX}{revision}")) {
        Ok(found) => Ok(Some(object_stores::referenced_commit(store, &found)?.tree_id())),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the commits of the renders of a revision that a store has, the newest first.
fn kept_renders(store: &Repository, revision: &Revision) -> Result<Vec<Oid>, git2::Error> {
    let kept = match store.find_reference(&format!("{RENDERED_PREFIX}{revision}")) {
        Ok(found) => object_stores::referenced_commit(store, &found)?,
        Err(error) if error.code() == ErrorCode::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let renders: Vec<Oid> = kept.parent_ids().collect();
    Ok(if renders.is_empty() { vec![kept.id()] } else { renders })
}

/// Returns the trees of the renders of a revision before the newest one, the newest of them first.
pub(super) fn earlier_trees(store: &Repository, revision: &Revision) -> Result<Vec<Oid>, git2::Error> {
    let earlier = kept_renders(store, revision)?.into_iter().skip(1);
    let odb = ObjectDatabase::of(store)?;
    earlier.map(|render| Ok(odb.find_commit(render)?.tree_id())).collect()
}

/// The roots of a rendered revision, as the store has them.
#[derive(Clone, Debug)]
pub(super) struct StoredRoots {
    /// The tree of their folders.
    pub(super) tree: Oid,
    /// The roots, ordered by path.
    pub(super) roots: Arc<[RenderedRoot]>,
}

/// Reads the roots of what was rendered.
pub(super) fn read_roots(store: &Repository, tree: Oid) -> Result<StoredRoots, git2::Error> {
    let odb = ObjectDatabase::of(store)?;
    let (mut roots, mut texts) = (Vec::new(), SharedTexts::default());
    for folder in &odb.find_tree(tree)? {
        let folder = odb.find_tree(folder.id())?;
        let list = folder.get_name(ROOT_RECORD_FILE).map(|entry| entry.id());
        let list = list.ok_or_else(|| damaged_record_error("a root has no list"))?;
        let stored = Some(StoredRoot(folder.id()));
        roots.push(RenderedRoot { stored, ..read_list(&odb, list, &mut texts)? });
    }
    roots.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(StoredRoots { tree, roots: roots.into() })
}

fn read_list(
    odb: &ObjectDatabase<'_>,
    list: Oid,
    texts: &mut SharedTexts,
) -> Result<RenderedRoot, git2::Error> {
    let object = odb.read_structure(list)?;
    let list: RootList = serde_json::from_slice(object.data())
        .map_err(|_| damaged_record_error("the list of a root cannot be read"))?;
    let key = hex_bytes(&list.key).ok_or_else(|| damaged_record_error("the key of a root cannot be read"))?;
    let outcome = if list.failed {
        RootOutcome::Interrupted(list.errors.into_iter().map(read_error).collect())
    } else {
        let objects = list.objects.iter().map(|listed| read_object(listed, texts));
        RootOutcome::Rendered(objects.collect::<Result<_, _>>()?)
    };
    let words = list.words.and_then(|words| NameWords::default().with_text(words.as_bytes()));
    let names = words.map_or(PossibleNames::Any, |words| PossibleNames::Words(words.into()));
    let warnings = list.warnings.into_iter().map(read_warning).collect();
    Ok(RenderedRoot { names, warnings, ..RenderedRoot::new(list.path.into(), key, outcome) })
}

fn read_object(listed: &ListedObject, texts: &mut SharedTexts) -> Result<SnapshotFile, git2::Error> {
    let place = |ListedOrigin(file, line, column): &ListedOrigin, texts: &mut SharedTexts| {
        ManifestOrigin::new(texts.share(file), *line, *column)
    };
    let render = RenderOrigin {
        root: texts.share(&listed.root),
        renderer: texts.share(&listed.renderer),
        places: listed.places.iter().map(|listed| place(listed, texts)).collect(),
    };
    Ok(SnapshotFile {
        path: listed.path.as_str().into(),
        blob: BlobId::from_oid(Oid::from_str(&listed.blob)?),
        size: listed.size,
        origin: Some(render.into()),
    })
}

fn read_place(origin: &ListedOrigin) -> ManifestOrigin {
    let ListedOrigin(file, line, column) = origin;
    ManifestOrigin::new(file.as_str().into(), *line, *column)
}

fn read_error(listed: ListedError) -> Diagnostic {
    let found = Diagnostic::error(read_place(&listed.place), FAILED_ROOT, listed.message);
    match listed.hint {
        Some(hint) => found.hint(hint),
        None => found,
    }
}

fn read_warning(listed: ListedError) -> Diagnostic {
    let code = if listed.code.as_deref() == Some(DUPLICATE_KEY) { DUPLICATE_KEY } else { HOOK_NOT_RUN };
    let found = Diagnostic::warning(read_place(&listed.place), code, listed.message);
    match listed.hint {
        Some(hint) => found.hint(hint),
        None => found,
    }
}

fn damaged_record_error(text: &str) -> git2::Error {
    git2::Error::new(ErrorCode::GenericError, git2::ErrorClass::Odb, text)
}
