//! Charts of servers: which may be fetched, how that is done, and what is kept of them.
//!
//! Owns the names of charts ([`ChartReference`]) and the check against what rhumb's own
//! configuration allows. Also owns the run of `helm pull` without the tree, the unpacking of what
//! it brings, and the store of archives by their digests.
//!
//! **Invariants:** a chart in the store starts no process and no call. Nothing is fetched from a
//! place that the configuration does not allow, and a credential is in no argument, error or
//! `Debug`. A chart whose archive changed under the same version is an error. Knows nothing of who
//! uses a chart.

mod error;
mod fetcher;
mod helm_error;
mod login;
mod network;
mod pull;
mod reference;
mod slow_servers;
mod store;
mod unpack;
mod version;

pub use error::FetchError;
pub use fetcher::{ChartFetcher, FetchEnvironment, UnlockedCharts};
pub use network::PASSED_VARIABLES;
pub use reference::{ChartDigest, ChartFile, ChartReference, ExpectedDigest, FetchedChart};
pub use store::StoreError;
pub use unpack::UnpackError;
pub(super) use version::is_exact;
