//! Charts of servers for one source: those that its configuration allows, by helm of this host.

use std::sync::Arc;

use super::chart_supply::{ChartSupply, FailureDuration, SupplyError};
use super::charts::{ChartFetcher, ChartReference, ExpectedDigest, FetchError, FetchedChart};
use super::own_thread;
use super::render_host::RenderHost;

/// A supply of charts by the fetcher of a source.
#[derive(Debug)]
pub(super) struct ServerCharts {
    fetcher: ChartFetcher,
    host: Arc<RenderHost>,
}

impl ServerCharts {
    /// Returns one that runs helm of this host.
    pub(super) const fn new(fetcher: ChartFetcher, host: Arc<RenderHost>) -> Self {
        Self { fetcher, host }
    }

    /// Waits for a fetch.
    fn wait<T: Send>(
        &self,
        fetch: impl AsyncFnOnce(&ChartFetcher, &RenderHost) -> Result<T, FetchError> + Send,
    ) -> Result<T, SupplyError> {
        let fetched = own_thread::wait_for(async || fetch(&self.fetcher, &self.host).await);
        let fetched = fetched.map_err(|error| SupplyError {
            code: "fetch-failed",
            message: format!("the chart cannot be fetched: {error}"),
            hint: "it is tried again".to_owned(),
            duration: FailureDuration::Transient,
        })?;
        fetched.map_err(|error| supply_error(&error))
    }
}

impl ChartSupply for ServerCharts {
    fn fetch(
        &self,
        reference: &ChartReference,
        expected: ExpectedDigest,
    ) -> Result<FetchedChart, SupplyError> {
        self.wait(async |fetcher, host| fetcher.fetch(host, reference, expected).await)
    }

    fn newest_version(&self, repository: &str, name: &str, constraint: &str) -> Result<String, SupplyError> {
        self.wait(async |fetcher, host| fetcher.newest_version(host, repository, name, constraint).await)
    }
}

fn supply_error(error: &FetchError) -> SupplyError {
    SupplyError {
        code: error.code(),
        message: error.to_string(),
        hint: error.hint(),
        duration: if error.is_transient() { FailureDuration::Transient } else { FailureDuration::Permanent },
    }
}
