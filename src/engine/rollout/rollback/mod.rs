//! Rollback: contents that failed, the last good ones, and the return to them.

pub(in crate::engine) mod last_good;
pub(in crate::engine) mod readiness;
pub(in crate::engine) mod refused_rollback;
pub(in crate::engine) mod rejection;
pub(in crate::engine) mod retry;
