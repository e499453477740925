//! Charts of servers as those who use them see them: what is asked for, and what may become of it.
//!
//! Knows no network, and no lock: a [`ChartSupply`] finds the charts.

use std::fmt;
use std::sync::Arc;

use super::charts::{ChartDigest, ChartReference, FetchedChart};
use super::kustomize::printable;
use crate::manifest::TextPlace;
use crate::object::DiagnosticCode;

/// Finds charts of servers.
pub(super) trait ChartSupply: fmt::Debug + Send + Sync {
    /// Returns a chart, whose digest must be that of the pin.
    ///
    /// # Errors
    /// Fails where it may not be fetched, and where it cannot be.
    fn fetch(
        &self,
        reference: &ChartReference,
        pin: Option<&ChartDigest>,
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
    pub(super) outlook: Outlook,
}

/// The prospect of another try of the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outlook {
    /// It may do better.
    Passing,
    /// It gives the same.
    Lasting,
}

/// Finds no chart: no server may be asked.
#[derive(Debug)]
pub(super) struct NoServers;

impl NoServers {
    fn refusal(repository: &str, name: &str, version: &str) -> SupplyError {
        let [repository, name, version] = [repository, name, version].map(printable);
        SupplyError {
            code: "fetch-not-allowed",
            message: format!("the chart {name} {version} may not be fetched from {repository}"),
            hint: format!("allow it in rhumb's own configuration: `spec.fetch.allow: [\"{repository}\"]`"),
            outlook: Outlook::Lasting,
        }
    }
}

impl ChartSupply for NoServers {
    fn fetch(
        &self,
        reference: &ChartReference,
        _: Option<&ChartDigest>,
    ) -> Result<FetchedChart, SupplyError> {
        Err(Self::refusal(&reference.repository, &reference.name, &reference.version))
    }

    fn newest_version(&self, repository: &str, name: &str, constraint: &str) -> Result<String, SupplyError> {
        Err(Self::refusal(repository, name, constraint))
    }
}

/// The version that a text stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PinPolicy {
    /// The word of `rhumb.lock`, where there is one; else the text itself, which must be a version.
    #[default]
    Strict,
    /// The word of `rhumb.lock`, and the newest in a range that it does not name.
    Fill,
    /// The newest in each range.
    Update,
}

/// The place at which a chart is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct AskedAt<'a> {
    /// The file in the revision.
    pub(super) file: &'a Arc<str>,
    /// The place in it.
    pub(super) place: TextPlace,
}

/// A chart of a server, as a file asks for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AskedChart<'a> {
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

/// Returns whether a text is one version, and no range of them: three numbers, and what may follow.
pub(super) fn is_exact(version: &str) -> bool {
    let text = version.strip_prefix('v').unwrap_or(version);
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (core, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-+.".contains(letter);
    core.split('.').count() == 3 && core.split('.').all(is_number) && rest.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_exact_or_a_range() {
        for text in ["1.2.3", "v1.2.3", "1.2.3-rc.1", "1.2.3+build.5", "0.0.0-0+x-y"] {
            assert!(is_exact(text), "{text}");
        }
        for text in [
            "",
            "1",
            "1.2",
            "1.x.0",
            "~1.2.3",
            "^1",
            ">=1.0.0",
            "1.2.3 - 2.0.0",
            "1.2.3.4",
            "*",
            "1.2.3 || 2.0.0",
            "V1.2.3",
        ] {
            assert!(!is_exact(text), "{text}");
        }
    }
}
