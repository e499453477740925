//! References between objects, and the order that follows from them.
//!
//! Owns [`references()`] (which objects one object needs before it can work), [`rank()`] (the customary order
//! of kinds, for what no reference tells), [`cycles()`] (who waits for themselves) and [`Units`] (what belongs
//! together).
//!
//! **Invariant:** knows contents only, no rollouts and no cluster.

mod cycles;
mod order;
mod references;
mod units;

pub use cycles::{Edges, cycles};
pub use order::rank;
pub use references::{depends_on, names_itself, references, unreadable_dependencies};
pub use units::Units;

#[cfg(test)]
mod tests;
