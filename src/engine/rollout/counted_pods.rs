//! The pods of a workload that the budget counts: those that serve, and those that were lost.
//!
//! The count in a spec is unproven, as others may scale the workload. By itself it neither gives
//! others a larger budget nor uses theirs up: pods that never served were never there to be lost.

use crate::engine::facts::entry::SourceId;
use crate::engine::{ReplicaStatus, RolloutOverlay, RolloutOverlayState, WorkloadPhase};

/// The origin of a workload's count of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum CountOrigin {
    /// The manifest gives this count.
    Manifest(u32),
    /// A DaemonSet has as many as there are nodes for it.
    Nodes,
    /// The scale gives it: the manifest leaves it out, or an autoscaler sets it.
    Scale,
    /// The source or the autoscalers have not been read.
    Unknown,
}

impl CountOrigin {
    /// Returns how many of the pods that a spec asks for there are to be lost, as far as its status
    /// shows. Pods of a manifest's count are missed also where they cannot be made.
    pub(in crate::engine) fn credible_pods(self, replica_status: ReplicaStatus) -> u32 {
        let credible = match self {
            Self::Manifest(count) => count,
            Self::Nodes => replica_status.replicas,
            Self::Scale | Self::Unknown => {
                replica_status.pods.max(replica_status.ready).max(replica_status.available)
            }
        };
        credible.min(replica_status.replicas)
    }

    /// Returns the most pods that count, however many serve.
    fn most(self, replica_status: ReplicaStatus) -> u32 {
        match self {
            Self::Manifest(count) => count.min(replica_status.replicas),
            _ => replica_status.replicas,
        }
    }
}

/// The counted load of a workload, as it is taken out of the count again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct CountedLoad {
    pub(in crate::engine) source: SourceId,
    replica_status: ReplicaStatus,
    shown: RolloutOverlayState,
    origin: CountOrigin,
    /// The pods that count: the most that have served, of those that it is to have still.
    pub(in crate::engine) pods: u32,
}

impl CountedLoad {
    /// Returns the load of a workload that was counted so before; none at first sight.
    pub(in crate::engine) fn new(
        source: SourceId,
        replica_status: ReplicaStatus,
        shown: RolloutOverlayState,
        origin: CountOrigin,
        before: Option<Self>,
    ) -> Self {
        let serving = serving_pods(replica_status, shown);
        let is_news = |before: &Self| {
            before.origin == CountOrigin::Unknown && matches!(origin, CountOrigin::Manifest(_))
        };
        let pods = match before.filter(|before| !is_news(before)) {
            Some(before) => before.pods.max(serving),
            None if replica_status.phase == WorkloadPhase::FirstStart => serving,
            None => origin.credible_pods(replica_status),
        };
        Self { source, replica_status, shown, origin, pods: pods.min(origin.most(replica_status)) }
    }

    /// Returns how many of its pods are unavailable.
    pub(in crate::engine) fn unavailable_pods(self) -> u32 {
        match self.replica_status.phase {
            WorkloadPhase::FirstStart => 0,
            _ => self.pods.saturating_sub(serving_pods(self.replica_status, self.shown)),
        }
    }
}

/// Returns how many of the pods that a workload asks for are unavailable. The pods of a first start
/// do not count.
pub(in crate::engine) fn unavailable_pods(replica_status: ReplicaStatus, shown: RolloutOverlayState) -> u32 {
    match replica_status.phase {
        WorkloadPhase::FirstStart => 0,
        _ => replica_status.replicas.saturating_sub(serving_pods(replica_status, shown)),
    }
}

/// Returns the pods that serve. The pods that a step holds never count as available, so the Ready
/// ones are taken.
pub(in crate::engine) fn serving_pods(replica_status: ReplicaStatus, shown: RolloutOverlayState) -> u32 {
    match shown {
        RolloutOverlayState::Overlaid(RolloutOverlay::Surge { .. } | RolloutOverlay::InPlace { .. }) => {
            replica_status.ready
        }
        _ => replica_status.available,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers(replicas: u32, pods: u32, serving: u32) -> ReplicaStatus {
        let phase = WorkloadPhase::Recovering;
        ReplicaStatus { replicas, pods, ready: serving, available: serving, phase, ..Default::default() }
    }

    fn counted(
        replica_status: ReplicaStatus,
        origin: CountOrigin,
        before: Option<CountedLoad>,
    ) -> CountedLoad {
        CountedLoad::new(SourceId::new(0), replica_status, RolloutOverlayState::Plain, origin, before)
    }

    /// Checks the pods that count and those that are unavailable, state after state.
    fn check(origin: CountOrigin, states: &[(u32, u32)], expected: &[(u32, u32)]) {
        let mut load = None;
        let found = states.iter().map(|(replicas, serving)| {
            let next = counted(numbers(*replicas, *replicas, *serving), origin, load);
            load = Some(next);
            (next.pods, next.unavailable_pods())
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{origin:?} {states:?}");
    }

    #[test]
    fn pods_that_a_larger_count_asks_for_count_once_they_serve() {
        let scale = CountOrigin::Scale;
        check(scale, &[(3, 3), (10, 3), (10, 6), (10, 10)], &[(3, 0), (3, 0), (6, 0), (10, 0)]);
        // A pod that fails meanwhile is away; one that comes back is not counted twice.
        check(scale, &[(3, 3), (10, 2), (10, 3), (10, 2)], &[(3, 0), (3, 1), (3, 0), (3, 1)]);
        check(scale, &[(3, 3), (10, 3), (5, 3), (3, 3)], &[(3, 0), (3, 0), (3, 0), (3, 0)]);
        check(scale, &[(0, 0), (3, 0), (3, 3), (3, 1)], &[(0, 0), (0, 0), (3, 0), (3, 2)]);
        // A scale down removes the unavailable pods first.
        check(scale, &[(8, 8), (8, 3), (4, 3), (3, 3)], &[(8, 0), (8, 5), (4, 1), (3, 0)]);
        // Nobody but the manifest makes more of them.
        let manifest = CountOrigin::Manifest(3);
        check(manifest, &[(10, 10), (10, 2), (10, 9)], &[(3, 0), (3, 1), (3, 0)]);
        check(manifest, &[(1, 1), (3, 1), (3, 3)], &[(1, 0), (1, 0), (3, 0)]);
        check(CountOrigin::Nodes, &[(3, 1), (5, 1), (5, 5), (5, 3)], &[(3, 2), (3, 2), (5, 0), (5, 2)]);
    }

    // It was scaled to nothing, and is started anew.
    #[test]
    fn no_pod_of_a_first_start_is_unavailable() {
        let before = counted(numbers(3, 3, 3), CountOrigin::Scale, None);
        let first = ReplicaStatus { phase: WorkloadPhase::FirstStart, ..numbers(3, 3, 1) };
        assert_eq!(counted(first, CountOrigin::Scale, Some(before)).unavailable_pods(), 0);
        assert_eq!(unavailable_pods(first, RolloutOverlayState::Plain), 0);
        assert_eq!(unavailable_pods(numbers(3, 3, 1), RolloutOverlayState::Plain), 2);
    }

    #[test]
    fn a_count_that_becomes_known_is_counted_as_at_first_sight() {
        // Two of three cannot be made again.
        let unknown = counted(numbers(3, 1, 1), CountOrigin::Unknown, None);
        assert_eq!((unknown.pods, unknown.unavailable_pods()), (1, 0));
        let known = counted(numbers(3, 1, 1), CountOrigin::Manifest(3), Some(unknown));
        assert_eq!((known.pods, known.unavailable_pods()), (3, 2));
    }

    // The pods that a step holds are Ready, and never available.
    #[test]
    fn held_pods_serve_as_soon_as_they_are_ready() {
        let status = ReplicaStatus { ready: 3, available: 1, ..numbers(4, 4, 0) };
        let check = |shown: RolloutOverlayState, expected: u32| {
            assert_eq!(serving_pods(status, shown), expected, "{shown:?}");
            assert_eq!(unavailable_pods(status, shown), 4 - expected, "{shown:?}");
        };
        for (overlay, expected) in [
            (RolloutOverlay::Surge { pods: 1, step: 1 }, 3),
            (RolloutOverlay::InPlace { pods: 1, step: 1 }, 3),
            (RolloutOverlay::Partition { from: 3, step: 1 }, 1),
            (RolloutOverlay::OnDelete { step: 1 }, 1),
            (RolloutOverlay::Narrow(1), 1),
        ] {
            check(RolloutOverlayState::Overlaid(overlay), expected);
        }
        for shown in [RolloutOverlayState::Plain, RolloutOverlayState::Other, RolloutOverlayState::Unreadable]
        {
            check(shown, 1);
        }
    }

    proptest! {
        /// Counts only pods that served before, or that a manifest gives, at any count of the spec.
        #[test]
        fn no_count_makes_pods_that_never_served_count(
            steps in prop::collection::vec((0..5000_u32, 0..20_u32), 1..20),
            manifest in prop::option::of(0..10_u32),
        ) {
            let origin = manifest.map_or(CountOrigin::Scale, CountOrigin::Manifest);
            let mut served = manifest.unwrap_or(0);
            let mut load = None;
            for (replicas, serving) in steps {
                let next = counted(numbers(replicas, serving, serving), origin, load);
                served = served.max(serving);
                prop_assert!(next.pods <= served.min(replicas));
                prop_assert!(next.unavailable_pods() <= next.pods);
                prop_assert!(manifest.is_none_or(|count| next.pods <= count));
                prop_assert!(next.pods >= serving.min(origin.most(numbers(replicas, serving, serving))));
                load = Some(next);
            }
        }
    }
}
