//! Servers of charts in memory, for tests.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::chart_supply::{ChartSupply, FailureDuration, SupplyError};
use super::charts::{ChartDigest, ChartFile, ChartReference, ExpectedDigest, FetchedChart};

/// Servers in memory.
#[derive(Debug, Default)]
pub(super) struct MemorySupply {
    charts: BTreeMap<ChartReference, FetchedChart>,
    is_offline: bool,
    fetched: Mutex<Vec<String>>,
}

impl MemorySupply {
    /// Adds a chart with these files, and a `Chart.yaml` where none is among them.
    pub(super) fn chart(
        mut self,
        repository: &str,
        name: &str,
        version: &str,
        files: &[(&str, &str)],
    ) -> Self {
        let chart = Self::fetched_chart(repository, name, version, files);
        self.charts.insert(chart.reference.clone(), chart);
        self
    }

    /// Returns a chart as a server gives it.
    pub(super) fn fetched_chart(
        repository: &str,
        name: &str,
        version: &str,
        files: &[(&str, &str)],
    ) -> FetchedChart {
        let own = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
        let has_own = files.iter().any(|(path, _)| *path == "Chart.yaml");
        let own = (!has_own).then_some(("Chart.yaml", own.as_str()));
        let mut archive = String::new();
        let files = own.iter().chain(files).map(|(path, text)| {
            archive.extend([*path, "\0", *text, "\0"]);
            ChartFile { path: (*path).to_owned(), content: text.as_bytes().to_vec() }
        });
        let files = files.collect();
        let reference =
            ChartReference { repository: repository.into(), name: name.into(), version: version.into() };
        let digest = ChartDigest::of(archive.as_bytes());
        FetchedChart { reference, digest, files }
    }

    /// Takes the network away.
    pub(super) fn without_network(mut self) -> Self {
        self.is_offline = true;
        self
    }

    /// Returns the digest of a chart.
    pub(super) fn digest(&self, repository: &str, name: &str, version: &str) -> ChartDigest {
        let wanted =
            ChartReference { repository: repository.into(), name: name.into(), version: version.into() };
        self.charts[&wanted].digest
    }

    /// Returns all that was asked for, in order.
    pub(super) fn fetched(&self) -> Vec<String> {
        self.fetched.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn online(&self) -> Result<(), SupplyError> {
        if self.is_offline {
            return Err(error(
                "chart-unreachable",
                "the server does not answer".into(),
                FailureDuration::Transient,
            ));
        }
        Ok(())
    }
}

impl ChartSupply for MemorySupply {
    fn fetch(
        &self,
        reference: &ChartReference,
        expected: ExpectedDigest,
    ) -> Result<FetchedChart, SupplyError> {
        let ChartReference { name, version, .. } = reference;
        self.fetched.lock().unwrap_or_else(PoisonError::into_inner).push(match expected {
            ExpectedDigest::Any => format!("{name} {version} as it is now"),
            ExpectedDigest::First | ExpectedDigest::Pinned(_) => format!("{name} {version}"),
        });
        self.online()?;
        let found = self.charts.get(reference).cloned();
        let found = found.ok_or_else(|| {
            error(
                "chart-not-found",
                format!("there is no chart {name} {version}"),
                FailureDuration::Permanent,
            )
        })?;
        if matches!(expected, ExpectedDigest::Pinned(pin) if pin != found.digest) {
            let message = format!("the chart {name} {version} has another digest");
            return Err(error("chart-changed", message, FailureDuration::Permanent));
        }
        Ok(found)
    }

    fn newest_version(&self, repository: &str, name: &str, _: &str) -> Result<String, SupplyError> {
        self.online()?;
        let same = self.charts.keys().filter(|known| known.repository == repository && known.name == name);
        let newest = same.map(|known| known.version.clone()).max();
        newest.ok_or_else(|| {
            error("chart-not-found", format!("there is no chart {name}"), FailureDuration::Permanent)
        })
    }
}

fn error(code: &'static str, message: String, duration: FailureDuration) -> SupplyError {
    SupplyError { code, message, hint: String::new(), duration }
}
