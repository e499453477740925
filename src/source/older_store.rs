//! The store that an older version left, in which the packs of a server are as they came.
//!
//! **Invariant:** no object of it is read in this process.
//!
//! It has another name than the store of this version, so that nothing opens it by mistake. A
//! bounded child packs it once, each object whole. Then it takes the name of this version. So what
//! was in force, and what is pinned, stays readable while the remote is away.

use std::fs;

use super::child::{self, ChildError, ChildPeer};
use super::error::SourceError;
use super::git_messages;
use super::state_lock::StateLock;
use super::store::{RemainingReadQuota, RevisionStore, remove_path};

/// The name of the store before foreign deltas were kept out of it.
const OLDER_STORE_NAME: &str = "store.git";

/// The command that packs all that is referenced, and keeps no delta.
const REPACK_ARGUMENTS: [&str; 6] = ["repack", "-a", "-d", "-f", "-q", "--window=0"];

impl RevisionStore {
    /// Returns whether an older version left a store here.
    pub(super) fn has_legacy_store(&self) -> bool {
        fs::symlink_metadata(self.older().path()).is_ok()
    }

    /// Takes over what an older version left. Where that cannot be packed anew, it is moved aside as
    /// a damaged store is, and all is fetched again.
    ///
    /// # Errors
    /// Fails where git cannot be started, or where the state directory cannot be written.
    pub(super) async fn migrate_legacy_store(&self, lock: &StateLock) -> Result<(), SourceError> {
        if !self.has_legacy_store() {
            return Ok(());
        }
        let older = self.older();
        if self.exists() {
            // A version before this one ran again: what it left is here, or is fetched.
            return remove_path(older.path()).map_err(self.io_error("cannot replace"));
        }
        match older.pack_whole(lock).await? {
            Ok(()) => {
                fs::rename(older.path(), self.path()).map_err(self.io_error("cannot replace"))?;
                tracing::info!(store = %self.path().display(), "took over the store of an older version");
                Ok(())
            }
            Err(why) => {
                tracing::warn!(
                    store = %older.path().display(), reason = why,
                    "the store of an older version cannot be taken over: moved aside, to be rebuilt"
                );
                self.set_aside(older.path())
            }
        }
    }

    fn older(&self) -> Self {
        self.sibling(OLDER_STORE_NAME)
    }

    /// Packs each object whole. Returns why that failed, where the content or its size is at fault.
    async fn pack_whole(&self, lock: &StateLock) -> Result<Result<(), String>, SourceError> {
        // A pack that is marked to be kept would be.
        self.sweep()?;
        let mut command = child::git_command(self.path(), ChildPeer::Nobody);
        command.args(REPACK_ARGUMENTS);
        let settings = self.settings();
        let bounds = self.child_limits(settings.fetch, RemainingReadQuota(settings.quota));
        match child::run(command, lock, bounds).await {
            Ok(output) if output.status.success() => Ok(Ok(())),
            Ok(output) => Ok(Err(git_messages::error_detail(&output.stderr, &[]))),
            Err(ChildError::Silent) => Ok(Err(format!("not packed within {} s", settings.fetch.as_secs()))),
            Err(failure) => {
                let shown_location = self.path().display().to_string();
                let detail = "git says more of it than there is to say".to_owned();
                let too_much = |shown_location| SourceError::Damaged { shown_location, detail };
                Err(failure.into_source_error(&shown_location, settings.fetch, too_much))
            }
        }
    }
}
