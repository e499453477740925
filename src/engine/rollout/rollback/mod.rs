//! Rollback: contents that failed, the last good ones, and the return to them.

pub(in crate::engine) mod lifecycle;
pub(in crate::engine) mod pending_rollbacks;
pub(in crate::engine) mod rejection;
pub(in crate::engine) mod retry;
