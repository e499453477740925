//! A folder that is followed as it is: read twice, snapshotted into our own store.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use git2::Oid;

use crate::object::Revision;

use super::bounded::run_bounded;
use super::error::SourceError;
use super::file_names::{self, EntryKind};
use super::folder::{self, FileReadResult, FileStat, FolderListing, OpenFolder};
use super::folder_entries::{EntryForm, ListedEntry};
use super::reader::RevisionReader;
use super::refusal::{RefusalReason, RefusedFile};
use super::settling::{AbsentFiles, FolderEntry, FolderReplacement};
use super::state_lock::StateLock;
use super::store::RevisionStore;
use super::store_usage::ObjectWriter;
use super::tree_builder::{self, NewEntry, ObjectSink as _};

/// The number of passes over a folder that changes while it is read.
const MAX_FOLDER_PASSES: usize = 6;
/// A file touched within this time may change again without a trace.
const RACY_WINDOW: Duration = Duration::from_secs(2);

/// A folder and what is known of it.
#[derive(Debug)]
pub(super) struct DirectorySource {
    pub(super) path: PathBuf,
    shown_location: String,
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
    pub(super) fn new(path: &Path, shown_location: &str, store: RevisionStore) -> Result<Self, SourceError> {
        // Relative paths are taken from where rhumb was started, whatever happens later.
        let path = std::path::absolute(path)
            .map_err(|error| SourceError::Unreadable { shown_location: shown_location.to_owned(), error })?;
        let key = store.key_of(path.as_os_str().as_encoded_bytes())?;
        let head = format!("refs/rhumb/head/{key}");
        Ok(Self { path, shown_location: shown_location.to_owned(), head, store, memory: Arc::default() })
    }

    /// Returns the revision that the last observation of an earlier process left.
    pub(super) fn recorded_revision(&self) -> Option<Revision> {
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
                shown_location: self.shown_location.clone(),
                head: self.head.clone(),
                store: self.store.clone(),
                reader: reader.clone(),
            };
            let memory = self.memory.clone();
            // The lock goes along: the work goes on when nobody waits for it any more.
            let deadline = self.store.settings().fetch;
            let done = run_bounded(&self.shown_location, deadline, move || {
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
        Err(SourceError::Moving { shown_location: self.shown_location.clone() })
    }

    /// Returns the files that are gone and still shown.
    pub(super) fn absent_files(&self) -> Vec<Arc<str>> {
        let Ok(memory) = self.memory.try_lock() else { return Vec::new() };
        memory.absences.pending_files().map(Arc::from).collect()
    }

    /// Returns how soon something may have come to count without any event.
    pub(super) fn next_check(&self) -> Option<Duration> {
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
    shown_location: String,
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
        let mut writer = self.store.writer(&repository)?;
        self.recall(memory, &writer)?;
        let Some(pass) = self.pass(memory, &mut writer)? else { return Ok(PassStep::Again(None)) };
        if pass.files.is_empty() && pass.refusals.is_empty() {
            return Err(SourceError::Empty {
                shown_location: self.shown_location.clone(),
                within: "the folder".to_owned(),
            });
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
        self.publish(memory, lock, &mut writer, files, pass).map(PassStep::Done)
    }

    fn publish(
        &self,
        memory: &mut DirectoryMemory,
        lock: &StateLock,
        writer: &mut ObjectWriter<'_>,
        files: Vec<FolderEntry>,
        pass: DirectoryPass,
    ) -> Result<Revision, SourceError> {
        self.store.remaining_quota()?;
        let entries =
            files.iter().map(|entry| NewEntry { path: &entry.path, kind: entry.kind, id: entry.id });
        let entries: Vec<NewEntry<'_>> = entries.collect();
        let id = tree_builder::write_commit(writer, &entries, &pass.refusals)
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
    fn recall(&self, memory: &mut DirectoryMemory, writer: &ObjectWriter<'_>) -> Result<(), SourceError> {
        let metadata = fs::metadata(self.store.path()).map_err(|error| SourceError::State {
            path: self.store.path().to_owned(),
            doing: "cannot read",
            error,
        })?;
        let identity = Some((metadata.dev(), metadata.ino(), metadata.created().ok()));
        let is_here =
            |shown: &ShownSnapshot| Oid::from_str(shown.revision.as_str()).is_ok_and(|id| writer.exists(id));
        if memory.store != identity || !memory.shown.as_ref().is_none_or(is_here) {
            *memory = DirectoryMemory {
                store: identity,
                shown: self.recorded_snapshot()?,
                ..DirectoryMemory::default()
            };
        }
        Ok(())
    }

    fn recorded_snapshot(&self) -> Result<Option<ShownSnapshot>, SourceError> {
        let Some(revision) = self.store.reference_target(&self.head)? else { return Ok(None) };
        let (files, refusals) = self.reader.frozen_files(&revision)?;
        Ok(Some(ShownSnapshot { revision, files, refusals }))
    }

    /// Reads what is not known; none if something changed meanwhile.
    fn pass(
        &self,
        memory: &mut DirectoryMemory,
        writer: &mut ObjectWriter<'_>,
    ) -> Result<Option<DirectoryPass>, SourceError> {
        let target = folder::resolve(&self.path)?;
        let root = OpenFolder::open(&target)?;
        let FolderListing { files, mut refusals } = root.list()?;
        let is_root = |refusal: &RefusedFile| refusal.reason.is_root();
        let is_rendered = self.reader.renderer().is_some() && refusals.iter().any(is_root);
        let manifests: HashSet<String> = files.iter().map(|(path, _)| path.clone()).collect();
        // A render may read files of any name.
        let entries = if is_rendered { root.list_everything()? } else { listed_files(files) };
        let mut reading = FolderReading {
            input: self,
            root: &root,
            before: &mut memory.files,
            known: HashMap::with_capacity(entries.len()),
            old_enough: jiff::Timestamp::now().as_second() - RACY_WINDOW.as_secs().cast_signed(),
        };
        let (mut frozen, mut moved) = (Vec::with_capacity(entries.len()), false);
        for entry in entries {
            match reading.read(entry, writer)? {
                EntryReading::Frozen(entry) => frozen.push(entry),
                EntryReading::Refused(refusal) => {
                    // Nobody may take it for a file that is not there.
                    if is_rendered {
                        frozen.push(FolderEntry::refused(&refusal));
                    }
                    if manifests.contains(&refusal.path) {
                        refusals.push(refusal);
                    }
                }
                EntryReading::Moved => moved = true,
            }
        }
        if is_rendered {
            // The frozen tree refuses its roots by itself, where it has what makes them roots.
            let has = |path: &String| frozen.binary_search_by(|entry| entry.path.cmp(path)).is_ok();
            refusals.retain(|refusal| !is_root(refusal) || !has(&refusal.path));
        }
        refusals.sort_unstable();
        let known = reading.known;
        memory.young = known.values().any(|seen| !seen.sure);
        memory.files = known;
        Ok((!moved).then_some(DirectoryPass { target, files: frozen, refusals }))
    }
}

/// One pass over the entries of a folder.
struct FolderReading<'a> {
    input: &'a PassInput,
    root: &'a OpenFolder,
    /// The files that were known before it, and those that are known by it.
    before: &'a mut HashMap<String, KnownFile>,
    known: HashMap<String, KnownFile>,
    /// The second of the wall clock before which a file must have been touched to be sure.
    old_enough: i64,
}

impl FolderReading<'_> {
    /// Reads one entry, where it is not known.
    fn read(
        &mut self,
        entry: ListedEntry,
        writer: &mut ObjectWriter<'_>,
    ) -> Result<EntryReading, SourceError> {
        let ListedEntry { path, form } = entry;
        let stat = match form {
            EntryForm::File(stat) => stat,
            EntryForm::Link(target) => {
                let (id, size) = (self.input.put(writer, &target)?, target.len() as u64);
                return Ok(EntryReading::Frozen(FolderEntry { path, kind: EntryKind::Symlink, id, size }));
            }
            EntryForm::Defect(reason) => return Ok(EntryReading::Refused(RefusedFile::new(path, reason))),
        };
        let seen = match self.before.remove(&path) {
            Some(seen) if seen.sure && seen.stat == stat => seen,
            _ => match self.input.observe_file(self.root, &path, writer)? {
                FileObservation::Known(stat, content) => {
                    KnownFile { stat, content, sure: stat.is_older_than(self.old_enough) }
                }
                FileObservation::Refused(refusal) => return Ok(EntryReading::Refused(refusal)),
                FileObservation::Moved => return Ok(EntryReading::Moved),
            },
        };
        let reading = match seen.content {
            Ok(id) => EntryReading::Frozen(FolderEntry {
                path: path.clone(),
                kind: EntryKind::File,
                id,
                size: seen.stat.size,
            }),
            Err(reason) => EntryReading::Refused(RefusedFile::new(path.clone(), reason)),
        };
        self.known.insert(path, seen);
        Ok(reading)
    }
}

impl PassInput {
    fn put(&self, writer: &mut ObjectWriter<'_>, bytes: &[u8]) -> Result<Oid, SourceError> {
        writer.put(git2::ObjectType::Blob, bytes).map_err(|error| self.store.classify_error(&error))
    }

    fn observe_file(
        &self,
        root: &OpenFolder,
        path: &str,
        writer: &mut ObjectWriter<'_>,
    ) -> Result<FileObservation, SourceError> {
        let refused = |reason| FileObservation::Refused(RefusedFile::new(path, reason));
        Ok(match root.read(path, self.store.settings().max_file) {
            Ok(FileReadResult::Whole(stat, bytes)) => {
                let content = match file_names::refused_content(&bytes) {
                    Some(reason) => Err(reason),
                    None => Ok(self.put(writer, &bytes)?),
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

/// The result of one entry.
enum EntryReading {
    Frozen(FolderEntry),
    Refused(RefusedFile),
    Moved,
}

fn listed_files(files: Vec<(String, FileStat)>) -> Vec<ListedEntry> {
    files.into_iter().map(|(path, stat)| ListedEntry { path, form: EntryForm::File(stat) }).collect()
}
