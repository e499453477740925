//! The causes that facts and reasons name, each with its code. `render` has the sentence of each.
//!
//! **Invariant:** decides nothing.

pub(in crate::engine) mod lossy_kind;
pub(in crate::engine) mod prune_cause;
pub(in crate::engine) mod reason_code;
pub(in crate::engine) mod refusal_cause;
pub(in crate::engine) mod retry_cause;
