//! Replicas that share sources by Leases: who holds which.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::api::at;
use super::site::TestNamespace;
use super::wait::eventually;

/// The time for which sources may stay without a holder, after a replica was killed: twice what is
/// promised, because the machine may be busy.
pub(crate) const MOVED: Duration = Duration::from_secs(30);
/// In this time all has found its place, as newcomers are waited for.
pub(crate) const SHARED: Duration = Duration::from_mins(2);

/// Returns the name of a source whose Lease counts here.
pub(crate) fn shared_name(number: usize) -> String {
    format!("source-{number}")
}

/// Returns the sources of each holder, beside those that nobody holds.
pub(crate) fn holders(site: &TestNamespace<'_>) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for lease in site.api.list(&at("Lease", &site.system(), "")) {
        let text = |pointer: &str| lease.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let Some(source) = text("/metadata/name").strip_prefix("rhumb-source-") else { continue };
        let holder = text("/spec/holderIdentity");
        if !holder.is_empty() {
            all.entry(holder.to_owned()).or_default().push(source.to_owned());
        }
    }
    all
}

/// Waits until so many replicas have these numbers of sources, the fewest first.
#[track_caller]
pub(crate) fn await_shares(site: &TestNamespace<'_>, within: Duration, expected: &[usize]) {
    eventually(&format!("shares of {expected:?}"), within, || {
        let holders = holders(site);
        let mut shares: Vec<usize> = holders.values().map(Vec::len).collect();
        shares.sort_unstable();
        if shares == expected { Ok(()) } else { Err(format!("{holders:?}")) }
    });
}
