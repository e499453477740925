//! Restarts of workloads whose configuration has changed.

pub(super) mod changed_data;
pub(super) mod config_consumers;
pub(super) mod config_hash;
pub(super) mod config_restart;
pub(super) mod config_stamp;
pub(super) mod key_answers;
