//! What the rollout budget is used for now, in numbers for people. Nothing is decided by them.

use super::budget::{Scope, Token};
use super::state::Engine;
use super::{Load, OnFailure};

/// What of the cluster's rollout budget is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Workloads in flight, and how many may be.
    pub workloads: (u32, u32),
    /// So many may begin to roll at a time just now: it grows by each success.
    pub window: u32,
    /// Pods that are unavailable or may become so by what was begun, and how many may be.
    pub unavailable: (u32, u32),
    /// Rollouts that began in the last minute, and how many may.
    pub starts: (u32, u32),
    /// What follows from a failure, where nothing narrower says otherwise.
    pub on_failure: OnFailure,
    /// Whether the budget object has been read: nothing rolls before.
    pub known: bool,
}

impl Engine {
    /// What of the rollout budget of the whole cluster is in use.
    pub fn usage(&self) -> Usage {
        let (loads, rollouts) = (self.loads(), &self.rollouts);
        let in_flight = loads.iter().filter(|load| load.token == Token::Held).count();
        let whole = self.bounds().into_iter().find(|bound| bound.scope == Scope::Cluster);
        let (workloads, away, starts) = whole.map_or((0, 0, (0, 0)), |b| (b.workloads, b.away, b.starts));
        Usage {
            workloads: ((in_flight as u32).saturating_add(self.unread(&Scope::Cluster)), workloads),
            window: rollouts.window,
            unavailable: (
                loads.iter().map(|load| load.away).fold(self.unnamed(&Scope::Cluster), u32::saturating_add),
                away,
            ),
            starts: (starts.1.saturating_sub(starts.0), starts.1),
            on_failure: rollouts.budget.on_failure,
            known: rollouts.book.is_some(),
        }
    }

    /// Workloads that roll now, and those that others have claimed, each with what it takes of the budget.
    pub fn rolling_now(&self) -> Vec<Load> {
        let taking = |load: &Load| load.token == Token::Held || self.rollouts.rolls.contains_key(&load.id);
        let mut loads: Vec<Load> = self.loads().into_iter().filter(taking).collect();
        loads.sort_by(|one, other| one.id.cmp(&other.id));
        loads
    }
}
