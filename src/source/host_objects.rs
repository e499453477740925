//! Objects of a repository that others write, copied into our own store by git's own program. They
//! are of a followed one on this host, or of what a remote sent.
//!
//! **Invariant:** no object of a pack is read in this process before it is in a store of ours.
//!
//! A pack that was written by hand decides what a reader of it does. Two deltas that name each
//! other have no end, and a short one may take any memory. So a child reads them, in a sandbox and
//! with limits. It writes each object without a delta. An object without one needs no more memory
//! than its size says. A second child computes the id of each.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::{ObjectType, Oid, Repository, RepositoryInitOptions};
use tempfile::NamedTempFile;
use tokio::process::Command;
use tokio::sync::OnceCell;

use super::bounded::run_bounded;
use super::child::{self, ChildOutput, ChildPeer, CopyScope};
use super::error::SourceError;
use super::followed_repository::RepositoryFolders;
use super::git_messages::{self, GitErrorKind};
use super::loose_objects::LooseObjects;
use super::state_lock::StateLock;
use super::store::{RemainingReadQuota, RevisionStore, remove_folder};
use crate::object::Revision;

/// Each step of the history leaves a pack. With more of them it is copied anew.
const MAX_HISTORY_PACKS: usize = 50;

/// The commit whose history is copied.
const HISTORY_REF: &str = "refs/rhumb/history";

/// The file of the commits at which the copied history was cut off.
const HISTORY_CUTS: &str = "rhumb-cuts";

/// The reason for which a name leads to no commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnresolvedReference {
    /// Nothing is called so.
    Unknown,
    /// More than one object begins with it.
    Ambiguous,
    /// It is another object.
    NoCommit,
}

/// The objects of a repository that others write, and the store that they are copied into.
pub(super) struct HostObjects<'a> {
    store: &'a RevisionStore,
    lock: &'a StateLock,
    folders: &'a RepositoryFolders,
    /// The repository's name in errors.
    shown_location: &'a str,
    /// Indicates whether its loose objects were judged.
    file_check: OnceCell<()>,
}

impl<'a> HostObjects<'a> {
    /// Returns the objects in the folders of a repository. Nothing is read yet.
    pub(super) fn new(
        store: &'a RevisionStore,
        lock: &'a StateLock,
        folders: &'a RepositoryFolders,
        shown_location: &'a str,
    ) -> Self {
        Self { store, lock, folders, shown_location, file_check: OnceCell::new() }
    }

    /// Looks once at the files of the objects, so that those are named on which no child would end.
    pub(super) async fn check_files(&self) -> Result<(), SourceError> {
        let check = async || {
            let (looked_at, most) = (self.folders.clone(), self.store.settings().quota);
            let check = move || looked_at.judge_loose_objects(most);
            let file_check = run_bounded(self.shown_location, self.store.settings().fetch, check).await?;
            file_check.map_err(|error| error.into_source_error(self.shown_location))
        };
        self.file_check.get_or_try_init(check).await.map(drop)
    }

    fn objects(&self) -> PathBuf {
        self.folders.common.join("objects")
    }

    /// Returns the commit that an expression of an id leads to, as `1234^{commit}~2`.
    pub(super) async fn resolve(
        &self,
        expression: &str,
    ) -> Result<Result<Revision, UnresolvedReference>, SourceError> {
        let objects = self.objects();
        let mut command = child::git_command(self.store.path(), ChildPeer::Host(&objects));
        command.args(["rev-parse", "--verify", expression]);
        let settings = self.store.settings();
        let limit = settings.answer.min(settings.fetch);
        let output = self.run(command, limit, RemainingReadQuota(settings.quota)).await?;
        let id = output.stdout.trim();
        if output.status.success() && id.len() == 40 && Oid::from_str(id).is_ok() {
            return Ok(Ok(Revision::new(id)));
        }
        let has_message = |text: &str| output.stderr.contains(text);
        if has_message("is ambiguous") {
            return Ok(Err(UnresolvedReference::Ambiguous));
        }
        if has_message("expected commit type") {
            return Ok(Err(UnresolvedReference::NoCommit));
        }
        let only_missing = output.stderr.lines().all(|line| line == "fatal: Needed a single revision");
        if only_missing { Ok(Err(UnresolvedReference::Unknown)) } else { Err(self.copy_error(&output)) }
    }

    /// Returns whether an object is a commit that lies in a file of its own.
    pub(super) async fn is_loose_commit(&self, id: Oid) -> Result<bool, SourceError> {
        let objects = self.objects();
        let read = move || {
            let mut loose = LooseObjects::open(&objects)?;
            loose.read(id, ObjectType::Commit)
        };
        let read = run_bounded(self.shown_location, self.store.settings().fetch, read).await?;
        Ok(read.is_some())
    }

    /// Copies a commit beside the one that a reference of the store leads to, judges it and pins
    /// it. A child does that, but for what lies in small files of its own.
    ///
    /// Fails where it is no honest commit, or not all of it is there.
    pub(super) async fn pin_copy(&self, commit: &Revision, older_ref: &str) -> Result<(), SourceError> {
        let (store, wanted, objects) = (self.store.clone(), commit.clone(), self.objects());
        let copy = move || store.try_complete_from_files(&wanted, &objects);
        if run_bounded(self.shown_location, self.store.settings().fetch, copy).await? {
            // The commit was judged then, and each object of it was found.
            self.store.cut_history(self.lock, commit)?;
            return self.store.pin(self.lock, commit);
        }
        let older = self.store.remembered_revision(older_ref).filter(|older| self.store.has_revision(older));
        self.copy_commit(commit, older.as_ref()).await?;
        let damaged =
            |detail: String| SourceError::Damaged { shown_location: self.shown_location.to_owned(), detail };
        let file_check = self.store.require_honest_commit(commit);
        file_check.map_err(|error| damaged(error.message().to_owned()))?;
        if !self.store.has_revision(commit) {
            return Err(damaged(format!("not all objects of {commit} are there")));
        }
        self.store.pin(self.lock, commit)
    }

    /// Copies all that a commit needs beside an older one that is here completely. Its history is
    /// cut off behind it.
    pub(super) async fn copy_commit(
        &self,
        commit: &Revision,
        older: Option<&Revision>,
    ) -> Result<(), SourceError> {
        let mut revisions = format!("--shallow {commit}\n{commit}\n");
        if let Some(older) = older {
            let _ = writeln!(revisions, "^{older}^{{tree}}");
        }
        self.copy(self.store.path(), &revisions, CopyScope::Everything).await?;
        self.store.cut_history(self.lock, commit)
    }

    /// Copies each commit that leads to this one, as far as they are not here yet.
    pub(super) async fn copy_history(&self, commit: &Revision) -> Result<(), SourceError> {
        let path = self.store.history_path();
        let known = known_history(&path);
        if known.is_none() {
            self.make_history(&path)?;
        }
        let shallow =
            self.folders.shallow_commits().map_err(|error| error.into_source_error(self.shown_location))?;
        let mut cuts = String::new();
        for cut in shallow {
            let _ = writeln!(cuts, "--shallow {cut}");
        }
        // Behind another cut there may be more of what is known.
        let known =
            known.filter(|_| fs::read(path.join(HISTORY_CUTS)).is_ok_and(|old| old == cuts.as_bytes()));
        if known.as_ref() == Some(commit) {
            return Ok(());
        }
        let mut revisions = format!("{cuts}{commit}\n");
        if let Some(known) = &known {
            let _ = writeln!(revisions, "^{known}");
        }
        let copied = match self.copy(&path, &revisions, CopyScope::Commits).await {
            Ok(()) => self.note_history(&path, commit, &cuts),
            failed => failed,
        };
        if copied.is_err() {
            // Should it be at fault itself, the next copy is a whole one.
            let _ = fs::remove_dir_all(&path);
        }
        copied
    }

    fn make_history(&self, path: &Path) -> Result<(), SourceError> {
        let failed = |error| SourceError::State { path: path.to_owned(), doing: "cannot replace", error };
        remove_folder(path).map_err(failed)?;
        let mut options = RepositoryInitOptions::new();
        options.bare(true).external_template(false).no_reinit(true);
        Repository::init_opts(path, &options).map(drop).map_err(|error| self.store.classify_error(&error))
    }

    fn note_history(&self, path: &Path, commit: &Revision, cuts: &str) -> Result<(), SourceError> {
        let failed = |error| SourceError::State { path: path.to_owned(), doing: "cannot write to", error };
        fs::write(path.join(HISTORY_CUTS), cuts).map_err(failed)?;
        let done = super::object_stores::open(path).and_then(|history| {
            history.reference(HISTORY_REF, Oid::from_str(commit.as_str())?, true, "").map(drop)
        });
        done.map_err(|error| self.store.classify_error(&error))
    }

    async fn copy(&self, into: &Path, revisions: &str, scope: CopyScope) -> Result<(), SourceError> {
        let list = self.write_list(revisions)?;
        let command = child::copy_command(into, &self.objects(), list.path(), scope);
        let copy = self.run(command, self.store.settings().fetch, self.store.remaining_quota()?);
        let output = self.store.count_packs(into, copy).await?;
        if output.status.success() { Ok(()) } else { Err(self.copy_error(&output)) }
    }

    fn write_list(&self, revisions: &str) -> Result<NamedTempFile, SourceError> {
        let state_error = |error| SourceError::State {
            path: self.store.state_directory().to_owned(),
            doing: "cannot write to",
            error,
        };
        let mut builder = tempfile::Builder::new();
        let file = builder.prefix("copy-").suffix(".revisions").tempfile_in(self.store.state_directory());
        let mut file = file.map_err(state_error)?;
        file.write_all(revisions.as_bytes()).map_err(state_error)?;
        Ok(file)
    }

    async fn run(
        &self,
        command: Command,
        limit: Duration,
        quota: RemainingReadQuota,
    ) -> Result<ChildOutput, SourceError> {
        self.check_files().await?;
        let state = self.store.state_directory();
        let failed = |error| SourceError::State { path: state.to_owned(), doing: "cannot use", error };
        let folders = vec![fs::canonicalize(state).map_err(failed)?, self.objects()];
        let bounds = self.store.child_limits(limit, quota);
        let too_much = |shown_location| {
            let detail = "git says more of it than there is to say".to_owned();
            SourceError::Damaged { shown_location, detail }
        };
        let output = child::run_within(folders, command, self.lock, bounds).await;
        output.map_err(|failure| failure.into_source_error(self.shown_location, limit, too_much))
    }

    fn copy_error(&self, output: &ChildOutput) -> SourceError {
        if output.is_overflowed() {
            let detail = "the objects to copy are larger than the quota leaves room for".to_owned();
            return SourceError::Full { path: self.store.path().to_owned(), detail };
        }
        // The second child only sees that the first one ended.
        let first: Vec<&str> = output.stderr.lines().filter(|line| !line.contains("early EOF")).collect();
        let message = first.join("\n");
        let (kind, detail) = (git_messages::kind(&message), git_messages::error_detail(&message, &[]));
        match kind {
            GitErrorKind::Memory | GitErrorKind::Full | GitErrorKind::NotWritable => {
                git_messages::exchange_error(kind, self.shown_location, detail, self.store)
            }
            _ => SourceError::Damaged { shown_location: self.shown_location.to_owned(), detail },
        }
    }
}

/// Returns the commit whose history is here; none where it is to be copied anew.
fn known_history(path: &Path) -> Option<Revision> {
    let packs = fs::read_dir(path.join("objects/pack")).ok()?.flatten();
    if packs.filter(|entry| entry.path().extension().is_some_and(|end| end == "pack")).count()
        > MAX_HISTORY_PACKS
    {
        return None;
    }
    let history = super::object_stores::open(path).ok()?;
    let known = history.find_reference(HISTORY_REF).ok()?.target()?;
    history.odb().ok()?.exists(known).then(|| Revision::new(&known.to_string()))
}
