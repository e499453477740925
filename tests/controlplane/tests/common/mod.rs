//! The parts that the tests of the control plane share.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::time::{Duration, Instant};

use controlplane::Cluster;

/// Waits until a look shows what is expected; says what it showed last otherwise.
pub(crate) fn eventually<T: PartialEq + std::fmt::Debug>(
    limit: Duration,
    expected: T,
    mut probe: impl FnMut() -> T,
) -> Duration {
    let begun = Instant::now();
    loop {
        let seen = probe();
        if seen == expected {
            return begun.elapsed();
        }
        assert!(begun.elapsed() < limit, "expected {expected:?} within {limit:?}, last seen: {seen:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The time limit of anything that happens at once: generous, because the machine may be busy.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(180);

/// Returns a field of an object by a JSON path, empty where there is none.
pub(crate) fn field(cluster: &Cluster, object: &str, path: &str) -> String {
    cluster
        .kubectl(&["get", object, "-o", &format!("jsonpath={path}")])
        .unwrap_or_else(|error| error.to_string())
}

pub(crate) fn apply(cluster: &Cluster, text: &str) {
    cluster.kubectl_in(&["apply", "--server-side", "-f", "-"], text).unwrap();
}

pub(crate) fn config_map(name: &str) -> String {
    format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{a: b}}}}")
}
