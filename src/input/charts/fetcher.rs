//! Finds charts: in the store, else by helm.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use super::error::FetchError;
use super::reference::{ChartDigest, ChartReference, FetchedChart};
use crate::config::FetchConfig;
use crate::input::render_host::RenderHost;

/// The parts of rhumb's surroundings that a fetch depends on.
#[derive(Clone, Default)]
pub(crate) struct FetchSurroundings {
    /// The folder with credentials; none where there is none.
    pub credentials: Option<PathBuf>,
    /// Variables that name certificates and proxies, which helm sees too.
    pub variables: Vec<(OsString, OsString)>,
}

/// A proxy's address may hold a password.
impl fmt::Debug for FetchSurroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchSurroundings").field("credentials", &self.credentials).finish_non_exhaustive()
    }
}

/// Finds charts of servers: in the store, else by helm.
#[derive(Debug)]
pub(crate) struct ChartFetcher {
    config: FetchConfig,
    folder: PathBuf,
    surroundings: FetchSurroundings,
}

impl ChartFetcher {
    /// Returns one that fetches what a configuration allows, and keeps it below a folder.
    pub(crate) const fn new(config: FetchConfig, folder: PathBuf, surroundings: FetchSurroundings) -> Self {
        Self { config, folder, surroundings }
    }

    /// Returns a chart of a server, whose digest must be that of the pin.
    ///
    /// # Errors
    /// Fails where it may not be fetched, and where it cannot be.
    #[expect(clippy::unused_async, reason = "nothing is fetched yet")]
    pub(crate) async fn fetch(
        &self,
        _host: &RenderHost,
        reference: &ChartReference,
        _pin: Option<&ChartDigest>,
    ) -> Result<FetchedChart, FetchError> {
        let ChartReference { repository, name, version } = reference.clone();
        Err(FetchError::NotAllowed { repository, name, version, setting: self.config.setting })
    }

    /// Returns the newest version in a range, for messages and for `rhumb lock`.
    ///
    /// # Errors
    /// As [`ChartFetcher::fetch`].
    #[expect(clippy::unused_async, reason = "nothing is fetched yet")]
    pub(crate) async fn newest_version(
        &self,
        _host: &RenderHost,
        repository: &str,
        name: &str,
        constraint: &str,
    ) -> Result<String, FetchError> {
        let (repository, name, version) = (repository.to_owned(), name.to_owned(), constraint.to_owned());
        Err(FetchError::NotAllowed { repository, name, version, setting: self.config.setting })
    }
}
