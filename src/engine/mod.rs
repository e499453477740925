//! Entries and every decision.

mod live;
mod plan;
mod policy;

pub use live::{Live, Manager, Owner, Release, RollPhase, Rolling, Rv, Uid};
pub use plan::{Plan, Planned, Verdict};
pub use policy::{Adopt, BlastRadius, NotABlastRadius, Prune};
