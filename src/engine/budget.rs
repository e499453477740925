//! The rollout budget: which of the changes that restart pods may start now.
//!
//! Every such write goes through [`release`]: a new content, a repair of a pod template, an adoption. The
//! workloads in flight are those that the cluster shows rolling and those that we wrote to and that have not
//! come back settled. Creating a workload takes no token, and one whose pods were never available does not
//! count.

use std::collections::BTreeSet;

use crate::object::ObjectId;

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Restoring what the cluster must show.
    Repair,
    /// A new content.
    Candidate,
}

/// One write that would restart the pods of a workload. The order of asks is the order of release.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ask {
    /// Who goes first.
    pub priority: Priority,
    /// Lower waves first.
    pub wave: i32,
    /// The workload.
    pub id: ObjectId,
}

/// Returns which asks may start, beside the workloads in flight. A workload already in flight needs no
/// second token.
pub fn release<'a>(
    asks: &'a BTreeSet<Ask>,
    in_flight: &BTreeSet<ObjectId>,
    most: u32,
) -> BTreeSet<&'a ObjectId> {
    let free = (most as usize).saturating_sub(in_flight.len());
    let second = asks.iter().filter(|ask| in_flight.contains(&ask.id));
    let first = asks.iter().filter(|ask| !in_flight.contains(&ask.id)).take(free);
    second.chain(first).map(|ask| &ask.id).collect()
}
