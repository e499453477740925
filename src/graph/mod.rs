//! References between objects, and the order that follows from them.
//!
//! Owns [`references`] (which objects one object needs before it can work), [`rank`] (the customary order
//! of kinds, for what no reference tells) and [`Units`] (what belongs together).
//!
//! **Invariant:** knows contents only, no rollouts and no cluster.

mod order;
mod references;
mod units;

pub use order::rank;
pub use references::{depends_on, references};
pub use units::Units;

#[cfg(test)]
mod tests;
