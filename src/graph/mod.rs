//! References between objects, and the order that follows from them.
//!
//! Owns [`references()`] (which objects one object needs before it can work), [`configuration()`] (which
//! `ConfigMaps` and Secrets its pods use), [`Selects`] and [`Labels`] (what is connected by labels), [`rank()`] (the
//! customary order of kinds, for what no reference tells), [`cycles()`] (who waits for themselves) and [`Units`]
//! with [`connected`] (what belongs together).
//!
//! **Invariant:** knows contents only, no rollouts and no cluster.

mod cycles;
mod order;
mod references;
mod selectors;
mod units;

pub use cycles::{Edges, cycles};
pub use order::rank;
pub use references::{configuration, depends_on, names_itself, references, unreadable_dependencies};
pub use selectors::{Labels, Namespaces, Selects, Target};
pub use units::{Node, Units, connected};

#[cfg(test)]
mod connection_tests;
#[cfg(test)]
mod tests;
