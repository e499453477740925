//! A folder that is followed as it is: read twice, snapshotted into our own store.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use git2::{Odb, Oid};

use crate::object::Revision;

use super::bounded::run_bounded;
use super::error::SourceError;
use super::file_names;
use super::folder::{self, FileReadResult, FileStat, OpenFolder};
use super::reader::RevisionReader;
use super::refusal::{RefusalReason, RefusedFile};
use super::settling::{AbsentFiles, FolderEntry, FolderReplacement};
use super::state_lock::StateLock;
use super::store::RevisionStore;
use super::tree_builder::{self, ObjectSink as _};

/// The number of passes over a folder that changes while it is read.
const MAX_FOLDER_PASSES: usize = 6;
/// A file touched within this time may change again without a trace.
const RACY_WINDOW: Duration = Duration::from_secs(2);

/// A folder and what is known of it.
#[derive(Debug)]
pub(super) struct DirectorySource {
    pub(super) path: PathBuf,
    place: String,
    /// The newest snapshot: named after the path, so that another folder's is not mistaken for this
    /// one's.
    head: String,
    pub(super) store: RevisionStore,
    memory: Arc<Mutex<DirectoryMemory>>,
}

/// Device, number and birth of a store's folder: numbers are used again, at once by some file
/// systems.
type FolderIdentity = (u64, u64, Option<SystemTime>);

#[derive(Debug, Default)]
struct DirectoryMemory {
    /// The repository of these contents; one that is made anew has none of them.
    store: Option<FolderIdentity>,
    files: HashMap<String, KnownFile>,
    absences: AbsentFiles,
    shown: Option<ShownSnapshot>,
    /// The target of the path at that time.
    target: Option<PathBuf>,
    /// Some files were too young to be trusted at the next observation.
    young: bool,
}

#[derive(Debug)]
struct KnownFile {
    stat: FileStat,
    content: Result<Oid, RefusalReason>,
    /// Old enough to be taken as unchanged when its stamps are.
    sure: bool,
}

#[derive(Debug)]
struct ShownSnapshot {
    revision: Revision,
    files: Vec<FolderEntry>,
    refusals: Vec<RefusedFile>,
}

/// The files seen in one pass.
#[derive(Debug, PartialEq, Eq)]
struct DirectoryPass {
    target: PathBuf,
    files: Vec<FolderEntry>,
    refusals: Vec<RefusedFile>,
}

enum PassStep {
    Done(Revision),
    Again(Option<DirectoryPass>),
}

impl DirectorySource {
    pub(super) fn new(path: &Path, place: &str, store: RevisionStore) -> Result<Self, SourceError> {
        // Relative paths are taken from where rhumb was started, whatever happens later.
        let path = std::path::absolute(path)
            .map_err(|error| SourceError::Unreadable { place: place.to_owned(), error })?;
        let key = store.key_of(path.as_os_str().as_encoded_bytes())?;
        let head = format!("refs/rhumb/head/{key}");
        Ok(Self { path, place: place.to_owned(), head, store, memory: Arc::default() })
    }

    /// Returns the revision that the last observation of an earlier process left.
    pub(super) fn remembered(&self) -> Option<Revision> {
        self.store.remembered_revision(&self.head)
    }

    /// Observes until two observations in a row are equal, and makes a snapshot if they differ from
    /// the last one.
    pub(super) async fn newest(
        &self,
        lock: StateLock,
        reader: &RevisionReader,
    ) -> Result<(StateLock, Revision), SourceError> {
        let (mut lock, mut last) = (lock, None);
        for _ in 0..MAX_FOLDER_PASSES {
            let work = PassInput {
                path: self.path.clone(),
                place: self.place.clone(),
                head: self.head.clone(),
                store: self.store.clone(),
                reader: reader.clone(),
            };
            let memory = self.memory.clone();
            // The lock goes along: the work goes on when nobody waits for it any more.
            let deadline = self.store.settings().fetch;
            let done = run_bounded(&self.place, deadline, move || {
                let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
                let step = work.step(&mut memory, &lock, last);
                (lock, step)
            });
            let done = done.await?;
            lock = done.0;
            match done.1? {
                PassStep::Done(revision) => return Ok((lock, revision)),
                PassStep::Again(pass) => last = pass,
            }
            tokio::time::sleep(self.store.settings().pause).await;
        }
        Err(SourceError::Moving { place: self.place.clone() })
    }

    /// Returns the files that are gone and still shown.
    pub(super) fn waiting(&self) -> Vec<Arc<str>> {
        let Ok(memory) = self.memory.try_lock() else { return Vec::new() };
        memory.absences.pending_files().map(Arc::from).collect()
    }

    /// Returns how soon something may have come to count without any event.
    pub(super) fn due(&self) -> Option<Duration> {
        let settings = self.store.settings();
        // Taken only while an observation goes on, be it for ever on a dead network disk.
        let memory = self.memory.try_lock().ok()?;
        let absent = memory.absences.time_left((settings.clock)(), settings.settle);
        let young = memory.young.then_some(RACY_WINDOW);
        absent.into_iter().chain(young).min()
    }
}

/// The input of a blocking pass.
struct PassInput {
    path: PathBuf,
    place: String,
    head: String,
    store: RevisionStore,
    reader: RevisionReader,
}

impl PassInput {
    fn step(
        &self,
        memory: &mut DirectoryMemory,
        lock: &StateLock,
        last: Option<DirectoryPass>,
    ) -> Result<PassStep, SourceError> {
        let repository = self.store.repository()?;
        let mut odb = repository.odb().map_err(|error| self.store.classify_error(&error))?;
        self.recall(memory, &odb)?;
        let Some(pass) = self.pass(memory, &mut odb)? else { return Ok(PassStep::Again(None)) };
        if pass.files.is_empty() && pass.refusals.is_empty() {
            return Err(SourceError::Empty { place: self.place.clone(), within: "the folder".to_owned() });
        }
        let manner = match &memory.target {
            Some(target) if *target != pass.target => FolderReplacement::Swapped,
            _ => FolderReplacement::Gradual,
        };
        let settings = self.store.settings();
        let before = memory.shown.as_ref().map(|shown| shown.files.as_slice()).unwrap_or_default();
        let now = (settings.clock)();
        let files = memory.absences.merge(&pass.files, before, manner, now, settings.settle);
        if let Some(shown) = &memory.shown
            && shown.files == files
            && shown.refusals == pass.refusals
        {
            memory.target = Some(pass.target);
            return Ok(PassStep::Done(shown.revision.clone()));
        }
        if last.as_ref() != Some(&pass) {
            return Ok(PassStep::Again(Some(pass)));
        }
        self.publish(memory, lock, &mut odb, files, pass).map(PassStep::Done)
    }

    fn publish(
        &self,
        memory: &mut DirectoryMemory,
        lock: &StateLock,
        odb: &mut Odb<'_>,
        files: Vec<FolderEntry>,
        pass: DirectoryPass,
    ) -> Result<Revision, SourceError> {
        self.store.quota_room()?;
        let plain: Vec<(&str, Oid)> = files.iter().map(|entry| (entry.0.as_str(), entry.1)).collect();
        let id = tree_builder::write_commit(odb, &plain, &pass.refusals)
            .map_err(|error| self.store.classify_error(&error))?;
        let revision = Revision::new(&id.to_string());
        self.store.pin(lock, &revision)?;
        self.store.set_reference(lock, &self.head, &revision)?;
        memory.target = Some(pass.target);
        memory.absences.forget_published(&files);
        memory.shown = Some(ShownSnapshot { revision: revision.clone(), files, refusals: pass.refusals });
        Ok(revision)
    }

    /// Drops what was known of a store that is no more, and reads what an earlier process had
    /// shown.
    fn recall(&self, memory: &mut DirectoryMemory, odb: &Odb<'_>) -> Result<(), SourceError> {
        let metadata = fs::metadata(self.store.path()).map_err(|error| SourceError::State {
            path: self.store.path().to_owned(),
            doing: "cannot read",
            error,
        })?;
        let identity = Some((metadata.dev(), metadata.ino(), metadata.created().ok()));
        let is_here =
            |shown: &ShownSnapshot| Oid::from_str(shown.revision.as_str()).is_ok_and(|id| odb.exists(id));
        if memory.store != identity || !memory.shown.as_ref().is_none_or(is_here) {
            *memory =
                DirectoryMemory { store: identity, shown: self.remembered()?, ..DirectoryMemory::default() };
        }
        Ok(())
    }

    fn remembered(&self) -> Result<Option<ShownSnapshot>, SourceError> {
        let Some(revision) = self.store.reference_target(&self.head)? else { return Ok(None) };
        let (files, refusals) = self.reader.frozen_files(&revision)?;
        Ok(Some(ShownSnapshot { revision, files, refusals }))
    }

    /// Reads what is not known; none if something changed meanwhile.
    fn pass(
        &self,
        memory: &mut DirectoryMemory,
        odb: &mut Odb<'_>,
    ) -> Result<Option<DirectoryPass>, SourceError> {
        let target = folder::resolve(&self.path)?;
        let root = OpenFolder::open(&target)?;
        let mut listing = root.list()?;
        // A render may read files of any name, and the frozen tree refuses its roots by itself.
        let is_root = |refusal: &RefusedFile| refusal.reason.is_root();
        let is_rendered = self.reader.renderer().is_some() && listing.refusals.iter().any(is_root);
        let manifests: HashSet<String> = listing.files.iter().map(|(path, _)| path.clone()).collect();
        if is_rendered {
            listing.refusals.retain(|refusal| !is_root(refusal));
            listing.files = root.list_everything()?;
        }
        let old_enough = jiff::Timestamp::now().as_second() - RACY_WINDOW.as_secs().cast_signed();
        let mut known = HashMap::with_capacity(listing.files.len());
        let mut pass = DirectoryPass { target, files: Vec::new(), refusals: listing.refusals };
        let mut moved = false;
        for (path, stat) in listing.files {
            let seen = match memory.files.remove(&path) {
                Some(seen) if seen.sure && seen.stat == stat => seen,
                _ => match self.observe_file(&root, &path, odb)? {
                    FileObservation::Known(stat, content) => {
                        KnownFile { stat, content, sure: stat.is_older_than(old_enough) }
                    }
                    FileObservation::Refused(refusal) => {
                        if manifests.contains(&path) {
                            pass.refusals.push(refusal);
                        }
                        continue;
                    }
                    FileObservation::Moved => {
                        moved = true;
                        continue;
                    }
                },
            };
            match seen.content {
                Ok(id) => pass.files.push((path.clone(), id, seen.stat.size)),
                Err(reason) if manifests.contains(&path) => {
                    pass.refusals.push(RefusedFile::new(path.clone(), reason));
                }
                Err(_) => {}
            }
            known.insert(path, seen);
        }
        pass.refusals.sort_unstable();
        memory.young = known.values().any(|seen| !seen.sure);
        memory.files = known;
        Ok((!moved).then_some(pass))
    }

    fn observe_file(
        &self,
        root: &OpenFolder,
        path: &str,
        odb: &mut Odb<'_>,
    ) -> Result<FileObservation, SourceError> {
        let refused = |reason| FileObservation::Refused(RefusedFile::new(path, reason));
        Ok(match root.read(path, self.store.settings().max_file) {
            Ok(FileReadResult::Whole(stat, bytes)) => {
                let content = match file_names::refused_content(&bytes) {
                    Some(reason) => Err(reason),
                    None => Ok(odb
                        .put(git2::ObjectType::Blob, &bytes)
                        .map_err(|error| self.store.classify_error(&error))?),
                };
                FileObservation::Known(stat, content)
            }
            Ok(FileReadResult::Refused(reason)) => refused(reason),
            Ok(FileReadResult::Moving | FileReadResult::Gone) => FileObservation::Moved,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => FileObservation::Moved,
            Err(error) => FileObservation::Refused(
                RefusedFile::new(path, RefusalReason::Unreadable).with_detail(error.to_string()),
            ),
        })
    }
}

enum FileObservation {
    Known(FileStat, Result<Oid, RefusalReason>),
    Refused(RefusedFile),
    Moved,
}
