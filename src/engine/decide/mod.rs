//! The decision about one object: its blockers, what is done, and the reason where nothing is.
//!
//! [`crate::engine::Engine::decide`] asks the budget, the prune guard and the blockers in its
//! order.

pub(super) mod absent_dependencies;
pub(super) mod blockers;
pub(super) mod budget_holding;
pub(super) mod budget_shortage;
pub(super) mod competing_accounts;
pub(super) mod cycles;
#[expect(clippy::module_inception, reason = "the function that the module is named after")]
pub(super) mod decide;
pub(super) mod decision;
pub(super) mod dependencies;
pub(super) mod key_blockers;
pub(super) mod outcome;
pub(super) mod ownership;
pub(super) mod reason;
pub(super) mod reason_payload;
pub(super) mod release_sealing;
pub(super) mod repair;
pub(super) mod standing_blockers;
pub(super) mod step_wait;
pub(super) mod waits;
pub(super) mod write_filters;
