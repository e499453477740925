//! The bare repository in a source's state directory: what was fetched or snapshotted, and what is
//! pinned.
//!
//! A cache: when it is damaged it is moved aside and made anew. Every change to it asks for its
//! [`StateLock`].

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use git2::{ErrorCode, ObjectType, Oid, Repository, RepositoryInitOptions};
use walkdir::WalkDir;

use crate::object::Revision;

use super::child::{self, ChildLimits, ChildPeer};
use super::complete_revisions::{self, CompleteRevisions};
use super::error::SourceError;
use super::git_messages::{self, GitErrorKind};
use super::incoming::IncomingRepository;
use super::lineage::{self, Ancestry};
use super::loose_objects::LooseObjects;
use super::object_stores::{self, ObjectDatabase};
use super::rendered_roots::Rendering;
use super::settings::SourceSettings;
use super::state_lock::StateLock;
use super::store_usage::{self, ObjectWriter, StoreUsage, pack_bytes};

/// No name of an older version: see [`super::older_store`].
const STORE_NAME: &str = "revisions.git";
/// The prefix of pins: `refs/rhumb/keep/<id>`.
const PINS_PREFIX: &str = "refs/rhumb/keep/";
/// The packs that may gather. Each fetch leaves one, as fsck on receive keeps even small ones.
const MAX_PACKS: usize = 50;
/// The loose objects that may gather in one of 256 folders: about 4,000 in all.
const MAX_LOOSE_OBJECTS: usize = 16;

/// The revision store: one source's own repository.
#[derive(Clone, Debug)]
pub(super) struct RevisionStore {
    folder: PathBuf,
    path: PathBuf,
    settings: SourceSettings,
    complete: Arc<CompleteRevisions>,
    usage: Arc<StoreUsage>,
    /// The number of times that this process has made the repository.
    creations: Arc<AtomicUsize>,
}

/// The rest of the quota in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemainingReadQuota(pub(super) u64);

impl RevisionStore {
    pub(super) fn new(folder: &Path, settings: SourceSettings) -> Self {
        // Children run in another folder. Only fails for an empty path, which then fails to be
        // made.
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let path = folder.join(STORE_NAME);
        Self::at(folder, path, settings)
    }

    fn at(folder: PathBuf, path: PathBuf, settings: SourceSettings) -> Self {
        let (complete, usage, creations) = (Arc::default(), Arc::default(), Arc::default());
        Self { folder, path, settings, complete, usage, creations }
    }

    /// Returns the one of another name in the same state directory.
    pub(super) fn sibling(&self, name: &str) -> Self {
        Self::at(self.folder.clone(), self.folder.join(name), self.settings.clone())
    }

    /// Returns the state directory.
    pub(super) fn state_directory(&self) -> &Path {
        &self.folder
    }

    /// Returns the key under which the references of what is followed are kept.
    pub(super) fn key_of(&self, followed: &[u8]) -> Result<Oid, SourceError> {
        Oid::hash_object(ObjectType::Blob, followed).map_err(|error| self.classify_error(&error))
    }

    /// Returns the revision that a reference of an earlier process names; none where none does.
    pub(super) fn remembered_revision(&self, reference: &str) -> Option<Revision> {
        if !self.exists() {
            return None;
        }
        self.reference_target(reference).ok().flatten()
    }

    /// Returns the repository of commits without their files: the history of a repository on this
    /// host. It is inside the other one, so that whatever counts or replaces that one does so with
    /// it. Nothing is packed anew there.
    pub(super) fn history_path(&self) -> PathBuf {
        self.path.join("history.git")
    }

    /// Returns the repository in which the packs of a remote arrive. It is inside this one, as the
    /// history is. Only [`IncomingRepository`] uses it.
    pub(super) fn incoming_store(&self) -> Self {
        let (folder, path) = (self.path.clone(), self.path.join("incoming.git"));
        Self::at(folder, path, self.settings.clone())
    }

    /// Returns the repository in it.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the renderer, and where its results are kept.
    pub(super) fn rendering(&self) -> Option<Rendering> {
        let renderer = self.settings.renderer.clone()?;
        Some(Rendering { store: self.path.clone(), renderer })
    }

    pub(super) fn settings(&self) -> &SourceSettings {
        &self.settings
    }

    pub(super) fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Returns how often this process has made the repository: another number, another one.
    pub(super) fn creation_count(&self) -> usize {
        self.creations.load(Ordering::Relaxed)
    }

    pub(super) async fn lock(&self) -> Result<StateLock, SourceError> {
        super::state_lock::take(&self.folder, self.settings.lock).await
    }

    pub(super) fn io_error(&self, doing: &'static str) -> impl Fn(io::Error) -> SourceError {
        let path = self.path.clone();
        move |error| match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                SourceError::Full { path: path.clone(), detail: error.to_string() }
            }
            _ => SourceError::State { path: path.clone(), doing, error },
        }
    }

    /// Returns libgit2's error about the store, by whether the disk or the content is at fault.
    pub(super) fn classify_error(&self, error: &git2::Error) -> SourceError {
        let text = error.message();
        let os = |sign| text.contains(sign);
        if os("No space left") || os("quota") || os("File too large") {
            return SourceError::Full { path: self.path.clone(), detail: text.to_owned() };
        }
        let denied = os("Permission denied") || os("Read-only file system") || os("Not a directory");
        if denied || error.code() == ErrorCode::Owner {
            let error = io::Error::other(text.to_owned());
            return SourceError::State { path: self.path.clone(), doing: "cannot use", error };
        }
        SourceError::Damaged { shown_location: self.shown_location(), detail: text.to_owned() }
    }

    /// Returns the store's name in errors.
    pub(super) fn shown_location(&self) -> String {
        self.path.display().to_string()
    }

    /// Makes the repository where it is missing, and replaces it where it is no repository. Removes
    /// leftovers of killed processes: `shallow.lock` alone would block every later fetch.
    pub(super) fn prepare(&self, lock: &StateLock) -> Result<(), SourceError> {
        match object_stores::open(&self.path) {
            // The program is stricter than the library.
            Ok(_) if !fs::read(self.path.join("HEAD")).is_ok_and(|head| head.starts_with(b"ref: refs/")) => {
                self.replace(lock, "HEAD is damaged")?;
            }
            Ok(_) => {}
            Err(_) if !self.path.exists() => self.create(lock)?,
            Err(error) => match self.classify_error(&error) {
                SourceError::Damaged { detail, .. } => self.replace(lock, &detail)?,
                other => return Err(other),
            },
        }
        self.sweep()
    }

    /// Makes the repository where it is missing, and fails where it is no repository.
    pub(super) fn prepare_as_it_is(&self, lock: &StateLock) -> Result<(), SourceError> {
        if !self.path.exists() {
            self.create(lock)?;
        }
        self.repository()?;
        self.sweep()
    }

    /// Removes what is read again where it is missing: the history, and what arrived of a remote.
    pub(super) fn discard_caches(&self, lock: &StateLock) -> Result<(), SourceError> {
        IncomingRepository::of(self).discard(lock)?;
        remove_folder(&self.history_path()).map_err(self.io_error("cannot clean"))
    }

    fn create(&self, _: &StateLock) -> Result<(), SourceError> {
        self.complete.clear();
        self.usage.forget();
        self.creations.fetch_add(1, Ordering::Relaxed);
        let young = self.folder.join(format!("{STORE_NAME}.new"));
        remove_folder(&young).map_err(self.io_error("cannot replace"))?;
        let mut options = RepositoryInitOptions::new();
        options.bare(true).external_template(false).no_reinit(true);
        Repository::init_opts(&young, &options).map_err(|error| self.classify_error(&error))?;
        fs::rename(&young, &self.path).map_err(self.io_error("cannot create"))
    }

    /// Moves a damaged repository aside, where a person can look at it, and makes a new one. Only
    /// the last damaged one is kept.
    pub(super) fn replace(&self, lock: &StateLock, why: &str) -> Result<(), SourceError> {
        tracing::warn!(store = %self.path.display(), reason = why, "damaged store: moved aside, to be rebuilt");
        self.set_aside(&self.path)?;
        self.create(lock)
    }

    /// Moves a repository of the state directory aside, in place of what was moved before.
    pub(super) fn set_aside(&self, repository: &Path) -> Result<(), SourceError> {
        let aside = self.folder.join(format!("{STORE_NAME}.broken"));
        remove_path(&aside).map_err(self.io_error("cannot replace"))?;
        fs::rename(repository, &aside).map_err(self.io_error("cannot move aside"))
    }

    pub(super) fn sweep(&self) -> Result<(), SourceError> {
        let remove = |path: PathBuf| match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(self.io_error("cannot clean")(error))
            }
            _ => Ok(()),
        };
        let names = |folder: &str| -> Vec<PathBuf> {
            let entries = fs::read_dir(self.path.join(folder)).into_iter().flatten().flatten();
            entries
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
                .map(|e| e.path())
                .collect()
        };
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let ends = |path: &Path, ending: &str| path.extension().is_some_and(|found| found == ending);
        for path in names("").into_iter().filter(|path| ends(path, "lock")) {
            remove(path)?;
        }
        for path in names("objects/pack") {
            let begin = name(&path);
            if begin.starts_with("tmp_") || begin.starts_with(".tmp-") || ends(&path, "keep") {
                remove(path)?;
            }
        }
        for entry in WalkDir::new(self.path.join("refs")).into_iter().flatten() {
            if entry.file_type().is_file() && ends(entry.path(), "lock") {
                remove(entry.into_path())?;
            }
        }
        Ok(())
    }

    pub(super) fn repository(&self) -> Result<Repository, SourceError> {
        object_stores::open(&self.path).map_err(|error| self.classify_error(&error))
    }

    /// Returns the commit that a reference leads to; none where it is missing or leads to no
    /// commit.
    pub(super) fn reference_target(&self, name: &str) -> Result<Option<Revision>, SourceError> {
        let repository = self.repository()?;
        match repository.find_reference(name) {
            Ok(reference) => {
                let commit = object_stores::referenced_commit(&repository, &reference).ok();
                Ok(commit.map(|commit| Revision::new(&commit.id().to_string())))
            }
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(self.classify_error(&error)),
        }
    }

    /// Points a reference at a commit.
    pub(super) fn set_reference(
        &self,
        _: &StateLock,
        name: &str,
        revision: &Revision,
    ) -> Result<(), SourceError> {
        let repository = self.repository()?;
        let done = Oid::from_str(revision.as_str())
            .and_then(|id| repository.reference(name, id, true, "").map(|_| ()));
        done.map_err(|error| self.classify_error(&error))
    }

    /// Pins a revision that is here.
    pub(super) fn pin(&self, lock: &StateLock, revision: &Revision) -> Result<(), SourceError> {
        self.set_reference(lock, &Self::pin_name(revision), revision)
    }

    pub(super) fn pin_name(revision: &Revision) -> String {
        format!("{PINS_PREFIX}{revision}")
    }

    /// Returns the pinned revisions.
    pub(super) fn pinned_revisions(&self) -> Result<BTreeSet<Revision>, SourceError> {
        let repository = self.repository()?;
        let references = repository
            .references_glob(&format!("{PINS_PREFIX}*"))
            .map_err(|error| self.classify_error(&error))?;
        let mut pinned = BTreeSet::new();
        for reference in references {
            let reference = reference.map_err(|error| self.classify_error(&error))?;
            if let Some(id) = reference.name().ok().and_then(|name| name.strip_prefix(PINS_PREFIX)) {
                pinned.insert(Revision::new(id));
            }
        }
        Ok(pinned)
    }

    /// Takes a pin away; the objects stay until the next maintenance.
    pub(super) fn unpin(&self, _: &StateLock, revision: &Revision) -> Result<(), SourceError> {
        let repository = self.repository()?;
        match repository.find_reference(&Self::pin_name(revision)).and_then(|mut found| found.delete()) {
            Err(error) if error.code() != ErrorCode::NotFound => Err(self.classify_error(&error)),
            _ => Ok(()),
        }
    }

    /// Returns how a commit relates to another one: the same, after it, or apart. Blocks.
    pub(super) fn ancestry(&self, tip: &Revision, revision: &Revision) -> Result<Ancestry, SourceError> {
        let id = |revision: &Revision| Oid::from_str(revision.as_str());
        let ancestry = self.walk_history(|odbs| lineage::ancestry(odbs, id(revision)?, id(tip)?));
        ancestry.map_err(|error| self.classify_error(&error))
    }

    /// Gives a walk all commits that are here. Blocks.
    pub(super) fn walk_history<T>(
        &self,
        walk: impl FnOnce(&[ObjectDatabase<'_>]) -> Result<T, git2::Error>,
    ) -> Result<T, git2::Error> {
        let mut repositories = vec![object_stores::open(&self.path)?];
        repositories.extend(object_stores::open(&self.history_path()).ok());
        let odbs: Vec<_> = repositories.iter().map(ObjectDatabase::of).collect::<Result<_, _>>()?;
        walk(&odbs)
    }

    /// Returns whether a commit is here, be it in the history alone.
    pub(super) fn has_commit(&self, commit: &Revision) -> Result<bool, git2::Error> {
        let id = Oid::from_str(commit.as_str())?;
        self.walk_history(|odbs| Ok(odbs.iter().any(|odb| odb.exists(id))))
    }

    /// Fails where a commit is not here, or is larger than any honest one. Reads nothing of it.
    pub(super) fn require_honest_commit(&self, commit: &Revision) -> Result<(), git2::Error> {
        let repository = object_stores::open(&self.path)?;
        ObjectDatabase::of(&repository)?.judge_structure(Oid::from_str(commit.as_str())?).map(drop)
    }

    /// Marks for git that the history behind a commit is not here, as that would count as damage.
    pub(super) fn cut_history(&self, _: &StateLock, commit: &Revision) -> Result<(), SourceError> {
        let (file, young) = (self.path.join("shallow"), self.path.join("shallow.lock"));
        let mut text = fs::read_to_string(&file).unwrap_or_default();
        if text.lines().any(|line| line == commit.as_str()) {
            return Ok(());
        }
        text.push_str(commit.as_str());
        text.push('\n');
        let written = fs::write(&young, text).and_then(|()| fs::rename(&young, &file));
        written.map_err(self.io_error("cannot write to"))
    }

    /// Returns whether every object of a revision is here; contents are not read. One that was
    /// found complete counts as such as long as its commit is here.
    pub(super) fn has_revision(&self, revision: &Revision) -> bool {
        self.repository().is_ok_and(|store| self.try_complete_from(&store, revision, &mut |_, _| false))
    }

    /// Copies the missing objects of a revision that lie in files of their own in a folder. Returns
    /// whether every object of it is here then.
    pub(super) fn try_complete_from_files(&self, revision: &Revision, objects: &Path) -> bool {
        let (Ok(repository), Some(mut loose)) = (self.repository(), LooseObjects::open(objects)) else {
            return false;
        };
        if self.remaining_quota().is_err() {
            return false;
        }
        let Ok(mut writer) = self.writer(&repository) else { return false };
        self.try_complete_from(&repository, revision, &mut |id, kind| loose.try_copy(id, kind, &mut writer))
    }

    fn try_complete_from(
        &self,
        repository: &Repository,
        revision: &Revision,
        supply: &mut dyn FnMut(Oid, ObjectType) -> bool,
    ) -> bool {
        let Ok(commit) = Oid::from_str(revision.as_str()) else { return false };
        let Ok(odb) = ObjectDatabase::of(repository) else { return false };
        if self.complete.contains(commit) && odb.exists(commit) {
            return true;
        }
        let base = self.complete.last(&odb);
        let is_complete = complete_revisions::is_complete(repository, commit, base, supply);
        if is_complete {
            self.complete.add(commit);
        }
        is_complete
    }

    /// Returns whether all that is pinned or in force is here.
    pub(super) fn is_sound(&self) -> bool {
        // The library passes over references that it cannot read.
        let readable = |path: &Path| {
            fs::read(path).is_ok_and(|text| {
                text.starts_with(b"ref: ")
                    || std::str::from_utf8(&text).is_ok_and(|text| Oid::from_str(text.trim()).is_ok())
            })
        };
        let mut files = WalkDir::new(self.path.join("refs")).into_iter();
        if files.any(|entry| entry.is_ok_and(|entry| entry.file_type().is_file() && !readable(entry.path())))
        {
            return false;
        }
        if !fs::read(self.path.join("packed-refs")).map_or(true, |text| is_packed_refs(&text)) {
            return false;
        }
        let named = self.repository().and_then(|repository| {
            let mut named = BTreeSet::new();
            for found in
                repository.references_glob("refs/rhumb/*").map_err(|error| self.classify_error(&error))?
            {
                let commit =
                    found.and_then(|reference| object_stores::referenced_commit(&repository, &reference));
                named.insert(commit.map_err(|error| self.classify_error(&error))?.id());
            }
            Ok(named)
        });
        self.complete.clear();
        named.is_ok_and(|named| named.iter().all(|id| self.has_revision(&Revision::new(&id.to_string()))))
    }

    /// Returns whether git's own program finds something missing or damaged of what is referenced.
    pub(super) async fn is_damaged_for_git(&self, lock: &StateLock) -> bool {
        let mut command = child::git_command(&self.path, ChildPeer::Nobody);
        command.args(["rev-list", "--objects", "--all", "--quiet"]);
        let bounds = self.child_limits(self.settings.fetch, RemainingReadQuota(self.settings.quota));
        match child::run(command, lock, bounds).await {
            Ok(output) if !output.status.success() => {
                git_messages::kind(&output.stderr) != GitErrorKind::Memory
            }
            _ => false,
        }
    }

    /// Returns the room that the quota leaves for new files. They are counted where an estimate is
    /// not enough to tell.
    pub(super) fn remaining_quota(&self) -> Result<RemainingReadQuota, SourceError> {
        let left = |used: u64| self.settings.quota.checked_sub(used).filter(|left| *left > 0);
        if let Some(left) = self.usage.estimated_bytes().and_then(left) {
            return Ok(RemainingReadQuota(left));
        }
        let used = store_usage::folder_bytes(&self.path);
        self.usage.set_counted(used);
        left(used).map(RemainingReadQuota).ok_or_else(|| SourceError::Full {
            path: self.path.clone(),
            detail: format!("{used} bytes are used of a quota of {}", self.settings.quota),
        })
    }

    /// Returns a writer of objects. Its bytes count for the quota.
    pub(super) fn writer<'r>(&self, repository: &'r Repository) -> Result<ObjectWriter<'r>, SourceError> {
        let odb = repository.odb().map_err(|error| self.classify_error(&error))?;
        Ok(ObjectWriter::new(odb, self.usage.clone()))
    }

    /// Runs a program that writes packs to a repository of the store, and counts them for the quota.
    pub(super) async fn count_packs<T>(&self, repository: &Path, program: impl Future<Output = T>) -> T {
        let before = pack_bytes(repository);
        let done = program.await;
        self.usage.note_written(pack_bytes(repository).saturating_sub(before));
        done
    }

    /// Returns how much a command of git may take.
    pub(super) const fn child_limits(&self, time: Duration, quota: RemainingReadQuota) -> ChildLimits {
        ChildLimits { time, file: quota.0, memory: self.settings.memory }
    }

    /// Returns whether enough has gathered for [`RevisionStore::maintain`] to be worth its while.
    pub(super) fn is_maintenance_due(&self) -> bool {
        let count = |folder: &str, ending: &str| {
            let entries = fs::read_dir(self.path.join(folder)).into_iter().flatten().flatten();
            entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(ending)).count()
        };
        count("objects/pack", ".pack") > MAX_PACKS || count("objects/17", "") > MAX_LOOSE_OBJECTS
    }

    /// Packs what is referenced and drops the rest, if enough has gathered. A failure leaves the
    /// store as it was and is only logged: the next time may do better.
    pub(super) async fn maintain(&self, lock: &StateLock) {
        if self.is_maintenance_due() {
            self.try_maintain_now(lock).await;
        }
        Box::pin(IncomingRepository::of(self).maintain(lock)).await;
    }

    /// Packs and drops now, however little has gathered. Returns whether that succeeded.
    pub(super) async fn try_maintain_now(&self, lock: &StateLock) -> bool {
        self.usage.forget();
        let steps: [&[&str]; 3] =
            [&["repack", "-adq"], &["prune", "--expire=now"], &["pack-refs", "--all", "--prune"]];
        for step in steps {
            let mut command = child::git_command(&self.path, ChildPeer::Nobody);
            command.args(step);
            let bounds = self.child_limits(self.settings.fetch, RemainingReadQuota(self.settings.quota));
            let done = child::run(command, lock, bounds).await;
            let failure = match done {
                Ok(output) if output.status.success() => continue,
                Ok(output) => git_messages::error_detail(&output.stderr, &[]),
                Err(failure) => format!("{failure:?}"),
            };
            tracing::warn!(store = %self.path.display(), step = ?step, failure, "the store cannot be packed");
            return false;
        }
        true
    }
}

/// Returns whether these are lines of `ID NAME`, `^ID` and comments, each with its end.
fn is_packed_refs(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let line = |line: &str| {
        let id = line.strip_prefix('^').or_else(|| line.split_once(' ').map(|(id, _)| id));
        line.starts_with('#') || id.is_some_and(|id| id.len() == 40 && Oid::from_str(id).is_ok())
    };
    (text.is_empty() || text.ends_with('\n')) && text.lines().all(line)
}

/// Removes a folder or file, whichever is at a path. None is no error.
pub(super) fn remove_path(path: &Path) -> io::Result<()> {
    match remove_folder(path) {
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => fs::remove_file(path),
        removed => removed,
    }
}

/// Removes a folder with all that is in it. One that is not there is no error.
pub(super) fn remove_folder(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
