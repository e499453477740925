//! Charts of servers as those who use them see them: what is asked for, and what may become of it.
//!
//! Knows no network, and no lock: a [`ChartSupply`] finds the charts.

use std::fmt;
use std::sync::Arc;

use super::charts::{ChartReference, ExpectedDigest, FetchedChart};
use crate::manifest::TextPosition;
use crate::object::DiagnosticCode;

/// A supply of charts of servers.
pub(super) trait ChartSupply: fmt::Debug + Send + Sync {
    /// Returns a chart with the expected digest.
    ///
    /// # Errors
    /// Fails where it may not be fetched, and where it cannot be.
    fn fetch(
        &self,
        reference: &ChartReference,
        expected: ExpectedDigest,
    ) -> Result<FetchedChart, SupplyError>;

    /// Returns the newest version in a range.
    ///
    /// # Errors
    /// As [`ChartSupply::fetch`].
    fn newest_version(&self, repository: &str, name: &str, constraint: &str) -> Result<String, SupplyError>;
}

/// The reason for which there is no chart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(super) struct SupplyError {
    /// The code of the finding.
    pub(super) code: DiagnosticCode,
    /// The reason.
    pub(super) message: String,
    /// The remedy.
    pub(super) hint: String,
    /// Says whether another try may do better.
    pub(super) duration: FailureDuration,
}

/// The prospect of another try of the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureDuration {
    /// It may do better.
    Transient,
    /// It gives the same.
    Permanent,
}

/// The version that a text stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PinPolicy {
    /// The word of `rhumb.lock`, where there is one; else the text itself, which must be a version.
    #[default]
    Strict,
    /// The word of `rhumb.lock`, and the newest in a range that it does not name.
    Fill,
    /// The newest in each range, with the digest that it has now.
    Update,
}

/// The place at which a chart is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChartRequestSite<'a> {
    /// The file in the revision.
    pub(super) file: &'a Arc<str>,
    /// The place in it.
    pub(super) position: TextPosition,
}

/// A chart of a server, as a file asks for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChartRequest<'a> {
    /// The repository.
    pub(super) repository: &'a str,
    /// The name.
    pub(super) name: &'a str,
    /// The version, or a range of them.
    pub(super) version: &'a str,
}

/// Returns whether an address is one of a server.
pub(super) fn is_server(repository: &str) -> bool {
    let Some((scheme, _)) = repository.split_once("://") else { return false };
    ["https", "http", "oci"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// Returns whether a name can be that of a chart's folder, which helm reads.
pub(super) fn is_folder_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(['.', '_']) && !name.contains(['/', '\\', '\0'])
}
