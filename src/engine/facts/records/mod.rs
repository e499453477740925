//! The values of rhumb's records: of inventories, the rollout ledger and people's annotations.
//!
//! **Invariant:** decides nothing, and does no I/O.

pub(in crate::engine) mod clock_skew;
pub(in crate::engine) mod intents;
pub(in crate::engine) mod json_lines;
pub(in crate::engine) mod kept_objects;
pub(in crate::engine) mod object_word;
pub(in crate::engine) mod rejection;
pub(in crate::engine) mod release_unit;
