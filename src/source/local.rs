//! A repository on this host: its references are read here, its objects by a child into our store.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use git2::Oid;

use crate::object::Revision;

use super::ancestor_name::{AncestorName, AncestorStep};
use super::bounded::{WorkSlot, await_bounded};
use super::commit_verifier::{CommitVerifier, VerificationRange};
use super::error::SourceError;
use super::followed_repository::{self, RepositoryFolders};
use super::host_objects::{HostObjects, UnresolvedReference};
use super::lineage::{Ancestry, CommitRange};
use super::reader::RevisionReader;
use super::repository_references::{FoundName, NamedTarget};
use super::settings::SourceSettings;
use super::short_name::ShortName;
use super::state_lock::StateLock;
use super::store::RevisionStore;

/// One reference of one repository on this host.
#[derive(Debug)]
pub(super) struct LocalReference {
    pub(super) path: PathBuf,
    reference: Option<String>,
    shown_location: String,
    /// The reference of the last observation that found anything, named after what is followed.
    head_ref: String,
    /// The reference, where a branch and a tag may be meant.
    short_name: Option<ShortName>,
    store: RevisionStore,
    /// For the observations of its files.
    work: WorkSlot,
    /// The commit that was found for a target: an unchanged one is not looked up again.
    last: Mutex<Option<(NamedTarget, Revision)>>,
}

impl LocalReference {
    pub(super) fn new(
        path: PathBuf,
        reference: Option<&str>,
        shown_location: &str,
        store: RevisionStore,
    ) -> Result<Self, SourceError> {
        let key = store.key_of(format!("{}\n{reference:?}", path.display()).as_bytes())?;
        Ok(Self {
            path,
            reference: reference.map(str::to_owned),
            shown_location: shown_location.to_owned(),
            head_ref: format!("refs/rhumb/head/{key}"),
            short_name: ShortName::of(reference, key),
            store,
            work: WorkSlot::default(),
            last: Mutex::default(),
        })
    }

    /// Returns the revision that the last observation of an earlier process left.
    pub(super) fn remembered_revision(&self) -> Option<Revision> {
        self.store.remembered_revision(&self.head_ref)
    }

    /// Resolves the reference, copies a new revision, pins it. A revision that the guard refuses
    /// never comes into force.
    ///
    /// An unchanged reference costs no process.
    pub(super) async fn newest_revision(
        &self,
        lock: &StateLock,
        known: Option<&Revision>,
        reader: &RevisionReader,
        guard: Option<&CommitVerifier>,
    ) -> Result<Revision, SourceError> {
        // An earlier process may have followed what nobody verified.
        let settled = guard.map_or(known, CommitVerifier::accepted_revision);
        let FoundTarget { folders, target, full_name } =
            self.find_target().await.map_err(|error| match error {
                SourceError::NoReference { shown_location, reference } if known.is_some() => {
                    let reference = reference.trim_start_matches("refs/heads/").to_owned();
                    SourceError::Gone { shown_location, reference }
                }
                error => error,
            })?;
        let found = self.known_commit(&target);
        if let Some(commit) = &found
            && self.is_pinned(commit)?
            && settled == Some(commit)
            && known == settled
        {
            if let Some(short_name) = &self.short_name {
                short_name.settle(full_name, &self.store, lock, commit)?;
            }
            return Ok(commit.clone());
        }
        let objects = HostObjects::new(&self.store, lock, &folders, &self.shown_location);
        let commit = match found {
            Some(commit) => commit,
            None => match target {
                NamedTarget::Object(id) if objects.is_loose_commit(id).await? => {
                    Revision::new(&id.to_string())
                }
                _ => resolve(&objects, &target, "", self.name(), &self.shown_location).await?,
            },
        };
        if !(self.is_pinned(&commit)? && self.store.has_revision(&commit)) {
            let copied = objects.pin_copy(&commit, &self.head_ref).await;
            if matches!(copied, Err(SourceError::Damaged { .. })) {
                // Our own store may be at fault: nothing that lies there is copied again.
                reader.require_store_check();
            }
            copied?;
        }
        *self.last() = Some((target, commit.clone()));
        reader.check(&commit)?;
        if let Some(guard) = guard {
            let deadline = self.store.settings().fetch;
            await_bounded(&self.shown_location, deadline, self.pass(lock, guard, &objects, &commit)).await?;
        }
        self.store.set_reference(lock, &self.head_ref, &commit)?;
        if let Some(short_name) = &self.short_name {
            short_name.record(full_name, &self.store, lock, &commit)?;
        }
        Ok(commit)
    }

    /// Pins an older revision out of the history of the followed reference; false where that does
    /// not show it.
    pub(super) async fn fetch_older(
        &self,
        lock: &StateLock,
        revision: &Revision,
    ) -> Result<bool, SourceError> {
        let FoundTarget { folders, .. } = self.find_target().await?;
        let objects = HostObjects::new(&self.store, lock, &folders, &self.shown_location);
        for tip in self.tips()? {
            objects.copy_history(&tip).await?;
            let (store, wanted) = (self.store.clone(), revision.clone());
            if self.run_blocking(move || store.ancestry(&tip, &wanted)).await? == Ancestry::Descends {
                objects.pin_copy(revision, &self.head_ref).await?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Puts a revision that was accepted before in force again; false where it cannot be had any
    /// more.
    pub(super) async fn fall_back_to_accepted(
        &self,
        lock: &StateLock,
        accepted: &Revision,
    ) -> Result<bool, SourceError> {
        let is_here = self.store.has_revision(accepted) || self.fetch_older(lock, accepted).await?;
        if is_here {
            self.store.set_reference(lock, &self.head_ref, accepted)?;
        }
        Ok(is_here)
    }

    /// Copies each commit that led to what was found last.
    pub(super) async fn copy_history(&self, lock: &StateLock) -> Result<(), SourceError> {
        let FoundTarget { folders, .. } = self.find_target().await?;
        let Some(tip) = self.tips()?.into_iter().next() else { return Ok(()) };
        HostObjects::new(&self.store, lock, &folders, &self.shown_location).copy_history(&tip).await
    }

    /// Returns what was followed last, and what was found since and may have been refused.
    fn tips(&self) -> Result<Vec<Revision>, SourceError> {
        let followed = self.store.reference_target(&self.head_ref)?;
        let found = self.last().as_ref().map(|(_, commit)| commit.clone());
        Ok(followed.into_iter().chain(found).collect())
    }

    /// Fails unless a guard lets a revision pass.
    async fn pass(
        &self,
        lock: &StateLock,
        guard: &CommitVerifier,
        objects: &HostObjects<'_>,
        revision: &Revision,
    ) -> Result<(), SourceError> {
        let check = async |commits: &[Oid]| guard.check(&self.store, lock, revision, commits).await;
        let id = Oid::from_str(revision.as_str()).map_err(|error| self.damaged_error(&error))?;
        let base = match guard.verification_range(revision) {
            VerificationRange::Nothing => return Ok(()),
            VerificationRange::Single => return check(&[id]).await,
            VerificationRange::After(base) => base,
        };
        objects.copy_history(revision).await?;
        match guard.commits_between(&self.store, &base, revision).await? {
            CommitRange::Exactly(commits) | CommitRange::AtMost(commits) => check(&commits).await,
            CommitRange::Diverged => Err(guard.unrelated_error(revision, &base)),
            CommitRange::Unknown => Err(guard.shallow_error(revision, &base)),
        }
    }

    /// Finds what the reference means: what it meant before, where a revision came into force by
    /// that.
    async fn find_target(&self) -> Result<FoundTarget, SourceError> {
        let known = match &self.short_name {
            Some(short_name) => short_name.meaning(&self.store)?,
            None => None,
        };
        let is_sought = known.is_none() && self.short_name.is_some();
        let (path, name) = (self.path.clone(), known.map(str::to_owned).or_else(|| self.reference.clone()));
        self.run_blocking(move || {
            let found = find_target(&path, name.as_deref())?;
            Ok(FoundTarget { full_name: found.full_name.filter(|_| is_sought), ..found })
        })
        .await
    }

    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, SourceError> + Send + 'static,
    ) -> Result<T, SourceError> {
        self.work.run_bounded(&self.shown_location, self.store.settings().fetch, work).await?
    }

    /// Returns the commit of a target, where that is known without an observation of the
    /// repository.
    fn known_commit(&self, target: &NamedTarget) -> Option<Revision> {
        if let Some((known, commit)) = &*self.last()
            && known == target
        {
            return Some(commit.clone());
        }
        let commit = match target {
            NamedTarget::Object(id) => Revision::new(&id.to_string()),
            NamedTarget::Prefix(id) if id.len() == 40 => Revision::new(id),
            _ => return None,
        };
        self.is_pinned(&commit).is_ok_and(|pinned| pinned).then_some(commit)
    }

    fn is_pinned(&self, commit: &Revision) -> Result<bool, SourceError> {
        if !self.store.exists() {
            return Ok(false);
        }
        Ok(self.store.reference_target(&RevisionStore::pin_name(commit))?.is_some())
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<(NamedTarget, Revision)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn name(&self) -> &str {
        self.reference.as_deref().unwrap_or("HEAD")
    }

    fn damaged_error(&self, error: &git2::Error) -> SourceError {
        SourceError::Damaged {
            shown_location: self.shown_location.clone(),
            detail: error.message().to_owned(),
        }
    }
}

/// The meaning of a reference in a repository.
struct FoundTarget {
    folders: RepositoryFolders,
    target: NamedTarget,
    /// The full name of the reference; none where it is none, or is not sought.
    full_name: Option<String>,
}

/// Returns the revision that a person names: as a source's reference, or as an ancestor of one.
/// The state directory is for what is made on the way.
///
/// A source follows no ancestors: a push would change which one is meant.
///
/// # Errors
/// Fails where the repository cannot be read, or has no such commit.
pub(crate) async fn find_revision(path: &Path, name: &str, state: &Path) -> Result<Revision, SourceError> {
    let shown_location = path.display().to_string();
    let named = AncestorName::parse(name);
    let steps: String = named.iter().flat_map(|named| &named.steps).map(|step| step_text(*step)).collect();
    let base = named.map_or(name, |named| named.base);
    let FoundTarget { folders, target, .. } = find_target(path, Some(base))?;
    let store = RevisionStore::new(state, SourceSettings::default());
    let lock = store.lock().await?;
    store.prepare(&lock)?;
    let objects = HostObjects::new(&store, &lock, &folders, &shown_location);
    resolve(&objects, &target, &steps, name, &shown_location).await
}

fn step_text(step: AncestorStep) -> String {
    match step {
        AncestorStep::First(times) => format!("~{times}"),
        AncestorStep::Parent(number) => format!("^{number}"),
    }
}

/// Returns the folders of a repository, and what a name means in it.
fn find_target(path: &Path, name: Option<&str>) -> Result<FoundTarget, SourceError> {
    let shown_location = || path.display().to_string();
    let folders = repository_folders(path)?;
    let found = folders.find_target(name).map_err(|error| error.into_source_error(&shown_location()))?;
    let FoundName { target, full_name } = found;
    let reference = match &target {
        NamedTarget::Object(_) | NamedTarget::Prefix(_) => {
            return Ok(FoundTarget { folders, target, full_name });
        }
        NamedTarget::Nothing => name.unwrap_or("HEAD").to_owned(),
        NamedTarget::Unborn { branch, has_others: true } => format!("{branch}, which HEAD names"),
        NamedTarget::Unborn { has_others: false, .. } => {
            let within = "the repository, which has no commit yet".to_owned();
            return Err(SourceError::Empty { shown_location: shown_location(), within });
        }
    };
    Err(SourceError::NoReference { shown_location: shown_location(), reference })
}

/// Returns the commit of a target, or an ancestor of it.
async fn resolve(
    objects: &HostObjects<'_>,
    target: &NamedTarget,
    steps: &str,
    name: &str,
    shown_location: &str,
) -> Result<Revision, SourceError> {
    let mut expression = match target {
        NamedTarget::Prefix(prefix) => prefix.clone(),
        NamedTarget::Object(id) => id.to_string(),
        NamedTarget::Unborn { .. } | NamedTarget::Nothing => String::new(),
    };
    let _ = write!(expression, "^{{commit}}{steps}");
    let shown_location = shown_location.to_owned();
    let why = match objects.resolve(&expression).await? {
        Ok(commit) => return Ok(commit),
        Err(UnresolvedReference::Unknown) if matches!(target, NamedTarget::Object(_)) && steps.is_empty() => {
            let detail = format!("{name} names an object that is not there");
            return Err(SourceError::Damaged { shown_location, detail });
        }
        Err(UnresolvedReference::Unknown) => "",
        Err(UnresolvedReference::Ambiguous) => " (more than one object begins with it)",
        Err(UnresolvedReference::NoCommit) => " (it leads to no commit)",
    };
    Err(SourceError::NoReference { shown_location, reference: format!("{name}{why}") })
}

/// Returns where HEAD, refs and objects are.
pub(super) fn repository_folders(path: &Path) -> Result<RepositoryFolders, SourceError> {
    let shown_location = || path.display().to_string();
    match followed_repository::open(path) {
        Ok(opened) => Ok(opened.folders),
        Err(error) if error.is_no_repository() && !path.exists() => {
            Err(SourceError::Missing { shown_location: shown_location() })
        }
        Err(error) if error.is_no_repository() => {
            let detail = "the folder is no repository".to_owned();
            Err(SourceError::NotARepository { shown_location: shown_location(), detail })
        }
        Err(error) => Err(error.into_source_error(&shown_location())),
    }
}
