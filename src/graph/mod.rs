//! References between objects, and the order that follows from them.
//!
//! Owns [`references()`] (the objects that one object needs before it can work) and
//! [`configuration()`] (the `ConfigMaps` and Secrets that its pods use). Also owns
//! [`LabelSelection`] and [`SelectableLabels`] (connections by labels), and [`rank()`] (the
//! customary order of kinds, where there is no reference). [`find_cycles()`] finds objects that
//! wait for themselves, [`ConnectedUnits`] and [`connect_objects`] find connected parts.
//!
//! **Invariant:** knows contents only, no rollouts and no cluster.

mod cycles;
mod kind_order;
mod references;
mod selectors;
mod units;

pub(crate) use cycles::{WaitEdges, find_cycles};
pub(crate) use kind_order::rank;
pub(crate) use references::{
    annotated_dependencies, configuration, has_self_reference, references, unreadable_dependencies,
};
pub(crate) use selectors::{LabelSelection, SelectableLabels};
pub(crate) use units::{ConnectedUnits, GraphNode, connect_objects};

#[cfg(test)]
mod connection_tests;
#[cfg(test)]
mod tests;
