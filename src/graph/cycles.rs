//! Objects that wait for themselves.

use std::collections::{BTreeMap, BTreeSet};

use crate::object::ObjectId;

/// The objects that each object waits for.
pub(crate) type WaitEdges = BTreeMap<ObjectId, BTreeSet<ObjectId>>;

/// Finds the cycles that keep anything from being first: whoever waits without end waits for one of
/// them. Each begins with the smallest of its objects, and each object follows the one that waits
/// for it.
pub(crate) fn find_cycles(edges: &WaitEdges) -> Vec<Vec<ObjectId>> {
    let stuck = objects_in_cycles(edges);
    let next = |id: &ObjectId| edges[id].iter().find(|next| stuck.contains(*next)).cloned();
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for start in &stuck {
        let mut path: Vec<ObjectId> = Vec::new();
        let mut at = start.clone();
        while seen.insert(at.clone()) {
            path.push(at.clone());
            let Some(next) = next(&at) else { break };
            at = next;
        }
        if let Some(begin) = path.iter().position(|id| *id == at) {
            let mut cycle = path.split_off(begin);
            let smallest = cycle.iter().enumerate().min_by_key(|(_, id)| *id).map_or(0, |(at, _)| at);
            cycle.rotate_left(smallest);
            found.insert(cycle);
        }
    }
    found.into_iter().collect()
}

/// Returns those that are left when whoever waits for nothing is taken away, again and again.
fn objects_in_cycles(edges: &WaitEdges) -> BTreeSet<ObjectId> {
    let mut waiting: BTreeMap<&ObjectId, usize> = BTreeMap::new();
    let mut users: BTreeMap<&ObjectId, Vec<&ObjectId>> = BTreeMap::new();
    for (id, next) in edges {
        waiting.insert(id, next.iter().filter(|next| edges.contains_key(*next)).count());
        for next in next {
            users.entry(next).or_default().push(id);
        }
    }
    let mut free: Vec<&ObjectId> =
        waiting.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
    while let Some(id) = free.pop() {
        waiting.remove(id);
        for user in users.get(id).into_iter().flatten() {
            if let Some(count) = waiting.get_mut(user) {
                *count -= 1;
                if *count == 0 {
                    free.push(user);
                }
            }
        }
    }
    waiting.into_keys().cloned().collect()
}
