//! The pods of the workloads that count for the rollout budget, and those of them that are
//! unavailable.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::engine::facts::entry::SourceId;
use crate::engine::rollout::counted_pods::CountedLoad;
use crate::object::ObjectId;

/// The counted loads, and their sums.
///
/// **Invariant:** the sums are those of the loads.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct PodCounts {
    /// The counted load of each workload that a source wants, or that is provably ours.
    counted: HashMap<ObjectId, CountedLoad>,
    /// Pods that are unavailable on workloads of ours.
    unavailable: BTreeMap<ObjectId, (SourceId, u32)>,
    /// Counted pods of managed workloads, per source and per namespace.
    pods: HashMap<SourceId, u32>,
    pods_in: HashMap<SourceId, HashMap<Arc<str>, u32>>,
}

impl PodCounts {
    /// Takes over the counted load of a workload; none where it does not count any more.
    pub(in crate::engine) fn set_load(&mut self, id: &ObjectId, load: Option<CountedLoad>) {
        let before = match load {
            Some(counted) => self.counted.insert(id.clone(), counted),
            None => self.counted.remove(id),
        };
        if let Some(counted) = before {
            self.count_pods(id, counted.source, counted.pods, 0);
        }
        if let Some(counted) = load {
            self.count_pods(id, counted.source, 0, counted.pods);
        }
        match load.map(|counted| (counted.source, counted.unavailable_pods())) {
            Some((source, away)) if away > 0 => {
                self.unavailable.insert(id.clone(), (source, away));
            }
            _ => {
                self.unavailable.remove(id);
            }
        }
    }

    fn count_pods(&mut self, id: &ObjectId, source: SourceId, before: u32, now: u32) {
        let recount = |count: &mut u32| *count = count.saturating_sub(before).saturating_add(now);
        recount(self.pods.entry(source).or_default());
        if let Some(namespace) = id.namespace() {
            let spaces = self.pods_in.entry(source).or_default();
            match spaces.get_mut(namespace) {
                Some(count) => recount(count),
                None => drop(spaces.insert(namespace.into(), now)),
            }
        }
    }

    /// Returns the counted load of a workload; none where it does not count.
    pub(in crate::engine) fn load_of(&self, id: &ObjectId) -> Option<CountedLoad> {
        self.counted.get(id).copied()
    }

    /// Returns how many pods of a workload are unavailable.
    pub(in crate::engine) fn unavailable_of(&self, id: &ObjectId) -> u32 {
        self.unavailable.get(id).map_or(0, |(_, away)| *away)
    }

    /// Returns the workloads with unavailable pods, each with its source and their number.
    pub(in crate::engine) fn unavailable_workloads(&self) -> &BTreeMap<ObjectId, (SourceId, u32)> {
        &self.unavailable
    }

    /// Returns the number of counted pods of a source.
    pub(in crate::engine) fn pods_of(&self, source: SourceId) -> u32 {
        self.pods.get(&source).copied().unwrap_or(0)
    }

    /// Returns the number of counted pods of a source in one namespace.
    pub(in crate::engine) fn pods_of_in(&self, source: SourceId, namespace: &str) -> u32 {
        self.pods_in.get(&source).and_then(|spaces| spaces.get(namespace)).copied().unwrap_or(0)
    }

    /// Returns the number of counted pods of all sources in one namespace.
    pub(in crate::engine) fn pods_in(&self, namespace: &str) -> u32 {
        let counts = self.pods_in.values().filter_map(|spaces| spaces.get(namespace));
        counts.copied().fold(0, u32::saturating_add)
    }
}
