//! Entries and every decision.

mod live;
mod plan;

pub use live::{Live, Manager, Owner, Release, RollPhase, Rolling, Rv, Uid};
pub use plan::{Plan, Planned, Verdict};
