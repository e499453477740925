//! A folder that is followed as it is: looked at twice, snapshotted into our own store.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use git2::{Odb, Oid};

use crate::object::Revision;

use super::bounded::bounded;
use super::error::Error;
use super::folder::{self, Read, Root, Stat};
use super::forest::{self, Sink as _};
use super::lock::Lock;
use super::names;
use super::reader::Reader;
use super::refusal::{Reason, Refusal};
use super::settle::{Absences, Entry, Manner};
use super::store::Store;

/// How often a folder that changes while it is read is read again.
const PASSES: usize = 6;
/// A file touched within this time may change again without a trace.
const RACY: Duration = Duration::from_secs(2);

/// A folder and what is known of it.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) path: PathBuf,
    place: String,
    /// The newest snapshot: named after the path, so that another folder's is not mistaken for this one's.
    head: String,
    pub(super) store: Store,
    memory: Arc<Mutex<Memory>>,
}

/// Device, number and birth of a store's folder: numbers are used again, at once by some file systems.
type Identity = (u64, u64, Option<SystemTime>);

#[derive(Debug, Default)]
struct Memory {
    /// Which repository this is about; made anew it knows none of the contents.
    store: Option<Identity>,
    files: HashMap<String, Known>,
    absences: Absences,
    shown: Option<Shown>,
    /// Where the path led to when that was shown.
    target: Option<PathBuf>,
    /// Some files were too young to be trusted at the next look.
    young: bool,
}

#[derive(Debug)]
struct Known {
    stat: Stat,
    content: Result<Oid, Reason>,
    /// Old enough to be taken as unchanged when its stamps are.
    sure: bool,
}

#[derive(Debug)]
struct Shown {
    revision: Revision,
    files: Vec<Entry>,
    refusals: Vec<Refusal>,
}

/// What one pass saw.
#[derive(Debug, PartialEq, Eq)]
struct Pass {
    target: PathBuf,
    files: Vec<Entry>,
    refusals: Vec<Refusal>,
}

enum Step {
    Done(Revision),
    Again(Option<Pass>),
}

impl Directory {
    pub(super) fn new(path: &Path, place: &str, store: Store) -> Result<Self, Error> {
        // Relative paths are taken from where rhumb was started, whatever happens later.
        let path = std::path::absolute(path)
            .map_err(|error| Error::Unreadable { place: place.to_owned(), error })?;
        let key = Oid::hash_object(git2::ObjectType::Blob, path.as_os_str().as_encoded_bytes())
            .map_err(|error| store.judged(&error))?;
        let head = format!("refs/rhumb/head/{key}");
        Ok(Self { path, place: place.to_owned(), head, store, memory: Arc::default() })
    }

    /// The revision that the last look of an earlier process left.
    pub(super) fn remembered(&self) -> Option<Revision> {
        if !self.store.exists() {
            return None;
        }
        self.store.target(&self.head).ok().flatten()
    }

    /// Looks until two looks in a row are equal, and makes a snapshot if they differ from the last one.
    pub(super) async fn newest(&self, lock: Lock, reader: &Reader) -> Result<(Lock, Revision), Error> {
        let (mut lock, mut last) = (lock, None);
        for _ in 0..PASSES {
            let work = Work {
                path: self.path.clone(),
                place: self.place.clone(),
                head: self.head.clone(),
                store: self.store.clone(),
                reader: reader.clone(),
            };
            let memory = self.memory.clone();
            // The lock goes along: the work goes on when nobody waits for it any more.
            let deadline = self.store.settings().fetch;
            let done = bounded(&self.place, deadline, move || {
                let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
                let step = work.step(&mut memory, &lock, last);
                (lock, step)
            });
            let done = done.await?;
            lock = done.0;
            match done.1? {
                Step::Done(revision) => return Ok((lock, revision)),
                Step::Again(pass) => last = pass,
            }
            tokio::time::sleep(self.store.settings().pause).await;
        }
        Err(Error::Moving { place: self.place.clone() })
    }

    /// The files that are gone and still shown.
    pub(super) fn waiting(&self) -> Vec<Arc<str>> {
        let Ok(memory) = self.memory.try_lock() else { return Vec::new() };
        memory.absences.waiting().map(Arc::from).collect()
    }

    /// How soon something may have come to count without any event.
    pub(super) fn due(&self) -> Option<Duration> {
        let settings = self.store.settings();
        // Taken only while a look goes on, be it for ever on a dead network disk.
        let memory = self.memory.try_lock().ok()?;
        let absent = memory.absences.due((settings.clock)(), settings.settle);
        let young = memory.young.then_some(RACY);
        absent.into_iter().chain(young).min()
    }
}

/// What a blocking pass needs.
struct Work {
    path: PathBuf,
    place: String,
    head: String,
    store: Store,
    reader: Reader,
}

impl Work {
    fn step(&self, memory: &mut Memory, lock: &Lock, last: Option<Pass>) -> Result<Step, Error> {
        let repository = self.store.repository()?;
        let mut odb = repository.odb().map_err(|error| self.store.judged(&error))?;
        self.recall(memory, &odb)?;
        let Some(pass) = self.pass(memory, &mut odb)? else { return Ok(Step::Again(None)) };
        if pass.files.is_empty() && pass.refusals.is_empty() {
            return Err(Error::Empty { place: self.place.clone(), within: "the folder".to_owned() });
        }
        let manner = match &memory.target {
            Some(target) if *target != pass.target => Manner::Swapped,
            _ => Manner::Piecemeal,
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
            return Ok(Step::Done(shown.revision.clone()));
        }
        if last.as_ref() != Some(&pass) {
            return Ok(Step::Again(Some(pass)));
        }
        self.publish(memory, lock, &mut odb, files, pass).map(Step::Done)
    }

    fn publish(
        &self,
        memory: &mut Memory,
        lock: &Lock,
        odb: &mut Odb<'_>,
        files: Vec<Entry>,
        pass: Pass,
    ) -> Result<Revision, Error> {
        self.store.room()?;
        let plain: Vec<(&str, Oid)> = files.iter().map(|entry| (entry.0.as_str(), entry.1)).collect();
        let id = forest::snapshot(odb, &plain, &pass.refusals).map_err(|error| self.store.judged(&error))?;
        let revision = Revision::new(&id.to_string());
        self.store.pin(lock, &revision)?;
        self.store.point(lock, &self.head, &revision)?;
        memory.target = Some(pass.target);
        memory.absences.published(&files);
        memory.shown = Some(Shown { revision: revision.clone(), files, refusals: pass.refusals });
        Ok(revision)
    }

    /// Drops what was known of a store that is no more, and reads what an earlier process had shown.
    fn recall(&self, memory: &mut Memory, odb: &Odb<'_>) -> Result<(), Error> {
        let metadata = fs::metadata(self.store.path()).map_err(|error| Error::State {
            path: self.store.path().to_owned(),
            doing: "cannot read",
            error,
        })?;
        let identity = Some((metadata.dev(), metadata.ino(), metadata.created().ok()));
        let is_here = |shown: &Shown| Oid::from_str(shown.revision.as_str()).is_ok_and(|id| odb.exists(id));
        if memory.store != identity || !memory.shown.as_ref().is_none_or(is_here) {
            *memory = Memory { store: identity, shown: self.remembered()?, ..Memory::default() };
        }
        Ok(())
    }

    fn remembered(&self) -> Result<Option<Shown>, Error> {
        let Some(revision) = self.store.target(&self.head)? else { return Ok(None) };
        let (snapshot, refusals) = self.reader.snapshot_and_refusals(&revision)?;
        let files = snapshot.files.iter().map(|file| (file.path.to_string(), file.blob.oid(), file.size));
        Ok(Some(Shown { revision, files: files.collect(), refusals }))
    }

    /// Reads what is not known; none if something changed meanwhile.
    fn pass(&self, memory: &mut Memory, odb: &mut Odb<'_>) -> Result<Option<Pass>, Error> {
        let target = folder::resolve(&self.path)?;
        let root = Root::open(&target)?;
        let listing = root.list()?;
        let old_enough = jiff::Timestamp::now().as_second() - RACY.as_secs().cast_signed();
        let mut known = HashMap::with_capacity(listing.files.len());
        let mut pass = Pass { target, files: Vec::new(), refusals: listing.refusals };
        let mut moved = false;
        for (path, stat) in listing.files {
            let seen = match memory.files.remove(&path) {
                Some(seen) if seen.sure && seen.stat == stat => seen,
                _ => match self.look(&root, &path, odb)? {
                    Look::Known(stat, content) => {
                        Known { stat, content, sure: stat.is_older_than(old_enough) }
                    }
                    Look::Refused(refusal) => {
                        pass.refusals.push(refusal);
                        continue;
                    }
                    Look::Moved => {
                        moved = true;
                        continue;
                    }
                },
            };
            match seen.content {
                Ok(id) => pass.files.push((path.clone(), id, seen.stat.size)),
                Err(reason) => pass.refusals.push(Refusal::new(path.clone(), reason)),
            }
            known.insert(path, seen);
        }
        pass.refusals.sort_unstable();
        memory.young = known.values().any(|seen| !seen.sure);
        memory.files = known;
        Ok((!moved).then_some(pass))
    }

    fn look(&self, root: &Root, path: &str, odb: &mut Odb<'_>) -> Result<Look, Error> {
        let refused = |reason| Look::Refused(Refusal::new(path, reason));
        Ok(match root.read(path, self.store.settings().max_file) {
            Ok(Read::Whole(stat, bytes)) => {
                let content = match names::refused_content(&bytes) {
                    Some(reason) => Err(reason),
                    None => Ok(odb
                        .put(git2::ObjectType::Blob, &bytes)
                        .map_err(|error| self.store.judged(&error))?),
                };
                Look::Known(stat, content)
            }
            Ok(Read::Refused(reason)) => refused(reason),
            Ok(Read::Moving | Read::Gone) => Look::Moved,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Look::Moved,
            Err(error) => Look::Refused(Refusal::new(path, Reason::Unreadable).detail(error.to_string())),
        })
    }
}

enum Look {
    Known(Stat, Result<Oid, Reason>),
    Refused(Refusal),
    Moved,
}
