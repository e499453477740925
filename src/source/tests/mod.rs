//! Tests against real repositories, made by the `git` program in temporary folders.

mod awaited;
mod bombs;
mod change_hints;
mod credentials;
mod directory;
mod disk_snapshot;
mod fixture;
mod forms;
mod frozen;
mod hostile;
mod http;
mod identity;
mod local;
mod location;
mod loose;
mod outage;
mod packs;
mod pointers;
mod raw_listing;
mod readings;
mod remote;
mod rendered;
mod revision_tree;
mod server;
mod server_limits;
mod server_packs;
mod state;
mod stuck;
mod unreadable;
mod verify;

use std::path::Path;
use std::time::Duration;

use super::location::GitLocation;
use super::snapshot::SnapshotFile;
use super::{
    BlobId, ChangedFile, CommitInfo, ResolvedLocation, Snapshot, Source, SourceError, SourceSettings,
};
use crate::config::CredentialUse;
use crate::object::Revision;

impl Source {
    /// Does the same as [`Source::open_with`], with the limits of a service.
    pub(crate) fn open(
        name: &str,
        location: &ResolvedLocation,
        state_dir: &Path,
    ) -> Result<Self, SourceError> {
        Self::open_with(name, location, state_dir, SourceSettings::of_service(name, &CredentialUse::Own))
    }

    /// Returns its own store, to put into it what no git would copy.
    pub(super) fn own_store(&self) -> git2::Repository {
        git2::Repository::init_bare(self.store.path()).unwrap()
    }

    /// Lists the files of a revision. Blocks.
    pub(super) fn snapshot(&self, revision: &Revision) -> Result<Snapshot, SourceError> {
        self.reader().snapshot(revision)
    }

    /// Compares two revisions, by their whole snapshots where nothing else can compare them.
    /// Blocks.
    pub(super) fn changes(&self, from: &Revision, to: &Revision) -> Result<Vec<ChangedFile>, SourceError> {
        let snapshot_of = |revision: &Revision| self.snapshot(revision);
        let rendered = self.reader().render_id(from)?;
        Ok(match self.reader().plain_changes(from, rendered, to)? {
            Some(changed) => changed,
            None => compare(&snapshot_of(from)?.files, &snapshot_of(to)?.files),
        })
    }

    /// Returns who made a revision; none for the snapshot of a folder. Blocks.
    pub(super) fn commit(&self, revision: &Revision) -> Result<Option<CommitInfo>, SourceError> {
        self.reader().commit(revision)
    }

    /// Reads one file's bytes. Blocks.
    pub(super) fn read(&self, blob: BlobId) -> Result<Vec<u8>, SourceError> {
        self.reader().read(blob)
    }
}

impl GitLocation {
    /// Returns the root of what HEAD names, looked at each minute.
    pub(crate) fn new(url: impl Into<String>) -> Self {
        let interval = Duration::from_mins(1);
        Self { url: url.into(), reference: None, path: None, interval, verify: None }
    }
}

/// Compares two lists of files that are ordered by path.
fn compare(old: &[SnapshotFile], new: &[SnapshotFile]) -> Vec<ChangedFile> {
    let mut changed = Vec::new();
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    let content = |file: &SnapshotFile| Some((file.blob, file.size));
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return changed,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(a), Some(b)) => a.path.cmp(&b.path),
        };
        let before = if order.is_le() { old.next() } else { None };
        let after = if order.is_ge() { new.next() } else { None };
        if before.map(|file| file.blob) == after.map(|file| file.blob) {
            continue;
        }
        if let Some(file) = before.or(after) {
            changed.push(ChangedFile {
                path: file.path.clone(),
                old: before.and_then(content),
                new: after.and_then(content),
            });
        }
    }
}
