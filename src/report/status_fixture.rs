//! A status for tests.

use serde_json::{Value, json};

use super::DaemonStatus;

/// Returns the status of a process with these sources and rollouts.
pub(crate) fn daemon_status(sources: &[Value], rolling: &[Value]) -> DaemonStatus {
    let share = json!({"used": 0, "of": 0});
    let status = json!({
        "apiVersion": "", "kind": "Status", "at": "2030-01-02T03:04:05Z",
        "process": {
            "version": "", "since": "2030-01-02T03:04:05Z", "nextResync": "2030-01-02T03:04:05.6Z", "queue": 0,
            "unfinishedSeconds": 0, "longestSeconds": 0,
        },
        "sources": sources,
        "rollout": {
            "known": true, "workloads": share, "unavailable": share, "starts": share, "window": 0,
            "onFailure": "", "rolling": rolling, "queue": [],
        },
    });
    serde_json::from_value(status).unwrap()
}

/// Returns the status of a source that was read completely, with these objects by phase.
pub(crate) fn source_status(name: &str, objects: &Value) -> Value {
    json!({
        "name": name, "location": "", "complete": true, "observed": false, "healthy": true,
        "objects": objects, "findings": 0, "pruneWaiting": 0,
    })
}
