//! The requests of people: orders that are carried out once, and pauses and holds that last.

pub(super) mod carry_out;
pub(super) mod confirmations;
pub(super) mod intent_outcome;
pub(super) mod order;
pub(super) mod order_outcome;
pub(super) mod pauses;
pub(super) mod retry;
pub(super) mod undo;
