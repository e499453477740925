//! Restarts of workloads whose configuration has changed.

pub(super) mod config_consumers;
pub(super) mod config_restart;
