//! The limits of a source, which tests make small.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::credentials::Credentials;
use super::reader::{MAX_FOLDER_ENTRIES, MAX_READ_TIME, MAX_SOURCE_FILE_BYTES, ReadLimits};
use super::rendering::SnapshotRenderer;
use crate::config::CredentialUse;

/// The time limits and size limits of a source.
#[derive(Clone)]
pub(crate) struct SourceSettings {
    /// The time limit for a remote to name its references.
    pub answer: Duration,
    /// The time limit of a fetch; its processes are killed then.
    pub fetch: Duration,
    /// The time for which another process may hold the state directory.
    pub lock: Duration,
    /// The size in bytes that a source's store may have on disk.
    pub quota: u64,
    /// The memory of each git process, in bytes.
    pub memory: u64,
    /// A larger file, in bytes, is refused.
    pub max_file: u64,
    /// A repository's revision with more files and folders is refused.
    pub max_entries: usize,
    /// The time for which a file must be gone from a folder before that counts.
    pub settle: Duration,
    /// The pause between the two observations of a folder that must be equal.
    pub pause: Duration,
    /// The time for which a folder must be quiet before a hint is given.
    pub quiet: Duration,
    /// The longest time for which a hint is held back.
    pub max_quiet: Duration,
    /// The allowed transports.
    pub transports: TransportPolicy,
    /// The folder of credentials for git servers.
    pub credentials: Credentials,
    /// The clock for [`SourceSettings::settle`].
    pub clock: Clock,
    /// The renderer of its folders; none where nothing is rendered.
    pub renderer: Option<Arc<dyn SnapshotRenderer>>,
}

/// A function that returns the time.
pub(crate) type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// The transports that may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransportPolicy {
    /// `https` and `ssh`, which know whom they talk to.
    Authenticated,
    /// Also `http` and `git`, whose answers anybody on the way can write: for servers of tests.
    #[cfg(test)]
    Any,
}

impl SourceSettings {
    /// Returns the usual ones, with what a source may show of this service's credentials.
    pub(crate) fn of_service(source: &str, shown: &CredentialUse) -> Self {
        Self { credentials: Credentials::of_service(source, shown), ..Self::default() }
    }

    pub(super) const fn read_limits(&self) -> ReadLimits {
        ReadLimits { file: self.max_file, entries: self.max_entries, time: self.fetch }
    }
}

impl Default for SourceSettings {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(30),
            fetch: MAX_READ_TIME,
            lock: Duration::from_secs(30),
            quota: 4 << 30,
            // A million references, or two versions of a file of 200 MB, fit.
            memory: 512 << 20,
            max_file: MAX_SOURCE_FILE_BYTES,
            max_entries: MAX_FOLDER_ENTRIES,
            settle: Duration::from_mins(1),
            pause: Duration::from_millis(100),
            quiet: Duration::from_millis(250),
            max_quiet: Duration::from_secs(2),
            transports: TransportPolicy::Authenticated,
            credentials: Credentials::default(),
            clock: Arc::new(Instant::now),
            renderer: None,
        }
    }
}

impl fmt::Debug for SourceSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("answer", &self.answer)
            .field("fetch", &self.fetch)
            .field("quota", &self.quota)
            .field("settle", &self.settle)
            .field("transports", &self.transports)
            .finish_non_exhaustive()
    }
}
