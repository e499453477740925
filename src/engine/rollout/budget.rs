//! The rollout budget: which of the writes that restart pods may start now.
//!
//! Every such write goes through [`grant_slots`]: a new content, a repair of a pod template, an
//! adoption, a rollback. There is one budget over the whole cluster; a source and a namespace may
//! have narrower bounds, and all bounds hold at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::engine::SourceId;
use crate::engine::decide::budget_shortage::{BudgetScope, BudgetShortage};
use crate::object::ObjectId;

/// The priority of a request for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SlotPriority {
    /// Going back to what was good.
    Rollback,
    /// Restoring what the cluster must show.
    Repair,
    /// A new content.
    NewContent,
    /// A repair of what was repaired within the last minute. Others may change it again and again.
    RepeatedRepair,
    /// A restart for data that are in force already. Others may write them again and again.
    Restart,
}

/// One write that would restart the pods of a workload. The order of requests is the order in
/// which they get their slots.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SlotRequest {
    /// The priority.
    pub priority: SlotPriority,
    /// Lower waves first.
    pub wave: i32,
    /// The workload.
    pub id: ObjectId,
    /// The source.
    pub source: SourceId,
    /// The number of pods beyond the unavailable ones that the write may take down at a time.
    pub additional_unavailable: u32,
    /// The number of pods that it may have unavailable at a time once it has started, those that are
    /// unavailable already among them.
    pub reserved: u32,
}

/// Indicates whether a workload holds one of the slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BudgetSlot {
    /// It takes one.
    Taken,
    /// It takes none. It is not in flight, its step is held and healthy, or a Service waits for it.
    /// Or it has failed, and does not go back, or nobody can judge that yet.
    None,
}

/// The share of the budget that a workload takes now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkloadLoad {
    /// The workload.
    pub id: ObjectId,
    /// The source; none for a workload of another daemon.
    pub source: Option<SourceId>,
    /// Indicates whether it is one of the workloads in flight.
    pub slot: BudgetSlot,
    /// Its pods that are unavailable, or may become so by what was begun.
    pub unavailable: u32,
}

/// The bounds of one scope, in numbers of now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BudgetBound {
    /// The scope.
    pub scope: BudgetScope,
    /// Workloads in flight.
    pub workloads: u32,
    /// Pods unavailable.
    pub unavailable: u32,
    /// Pods that count beside those of all loads.
    pub unnamed: u32,
    /// Claims that cannot be read: each counts as a workload in flight.
    pub unreadable_claims: u32,
    /// Starts that are left in this minute, and how many a minute has.
    pub starts: (u32, u32),
}

/// Answers each request: it may start beside what is in flight, or else the reason why not.
///
/// `window` bounds the workloads in flight while a rollout begins. A workload that holds a slot
/// needs no second one. One that takes down no pod beyond those that are unavailable already may
/// start however many are, so that a fix always can. Nobody overtakes one that waits for pods, or a
/// large one might wait for ever.
pub(crate) fn grant_slots(
    requests: &BTreeSet<SlotRequest>,
    loads: &[WorkloadLoad],
    bounds: &[BudgetBound],
    window: u32,
) -> BTreeMap<ObjectId, Option<BudgetShortage>> {
    let mut accounts = BudgetAccounts::new(loads, bounds);
    requests.iter().map(|request| (request.id.clone(), accounts.consider(request, window))).collect()
}

struct BudgetAccounts<'a> {
    bounds: &'a [BudgetBound],
    loads: HashMap<&'a ObjectId, &'a WorkloadLoad>,
    rolling: Vec<ObjectId>,
    /// The usage of each bound.
    used: Vec<ScopeUsage>,
}

/// The part of a bound that is taken.
struct ScopeUsage {
    /// Workloads in flight.
    workloads: u32,
    /// Unavailable pods.
    unavailable: u32,
    /// Starts that were granted now.
    starts: u32,
    /// The first object that waits for pods there.
    first_waiting: Option<ObjectId>,
}

impl<'a> BudgetAccounts<'a> {
    fn new(loads: &'a [WorkloadLoad], bounds: &'a [BudgetBound]) -> Self {
        let used = |bound: &BudgetBound| {
            let here = || loads.iter().filter(|load| bound.scope.is_applicable_to(&load.id, load.source));
            let slots = here().filter(|load| load.slot == BudgetSlot::Taken).count() as u32;
            let slots = slots.saturating_add(bound.unreadable_claims);
            let unavailable = here().map(|load| load.unavailable).fold(bound.unnamed, u32::saturating_add);
            ScopeUsage { workloads: slots, unavailable, starts: 0, first_waiting: None }
        };
        let rolling = loads.iter().filter(|load| load.slot == BudgetSlot::Taken).map(|load| load.id.clone());
        Self {
            bounds,
            loads: loads.iter().map(|load| (&load.id, load)).collect(),
            rolling: rolling.collect(),
            used: bounds.iter().map(used).collect(),
        }
    }

    fn consider(&mut self, request: &SlotRequest, window: u32) -> Option<BudgetShortage> {
        let own = self.loads.get(&request.id).copied();
        let mut short = None;
        for (bound, used) in self.bounds.iter().zip(&mut self.used) {
            if bound.scope.is_applicable_to(&request.id, Some(request.source)) {
                short = find_shortage(request, own, bound, used, window, &self.rolling);
                if short.is_some() {
                    break;
                }
            }
        }
        if short.is_none() {
            self.start(request, own);
        }
        short
    }

    fn start(&mut self, request: &SlotRequest, own: Option<&WorkloadLoad>) {
        let (holds, away) = own_share(own);
        for (bound, used) in self.bounds.iter().zip(&mut self.used) {
            if bound.scope.is_applicable_to(&request.id, Some(request.source)) {
                used.workloads += u32::from(!holds);
                // Its unavailable pods stay so. A workload in flight has reserved the pods that it
                // may take down, and the larger reservation takes the place of that.
                let more = if holds {
                    request.reserved.saturating_sub(away)
                } else {
                    request.additional_unavailable
                };
                used.unavailable = used.unavailable.saturating_add(more);
                used.starts += u32::from(!holds);
            }
        }
        if !holds {
            self.rolling.push(request.id.clone());
        }
    }
}

/// Returns whether a workload is in flight, and how many of its pods count as unavailable.
fn own_share(own: Option<&WorkloadLoad>) -> (bool, u32) {
    own.map_or((false, 0), |load| (load.slot == BudgetSlot::Taken, load.unavailable))
}

fn find_shortage(
    request: &SlotRequest,
    own: Option<&WorkloadLoad>,
    bound: &BudgetBound,
    used: &mut ScopeUsage,
    window: u32,
    rolling: &[ObjectId],
) -> Option<BudgetShortage> {
    let scope = || bound.scope.clone();
    let (holds, away) = own_share(own);
    if !holds {
        if used.workloads >= bound.workloads {
            return Some(BudgetShortage::Workloads(scope(), bound.workloads, rolling.into()));
        }
        if bound.scope == BudgetScope::Cluster
            && used.workloads.saturating_sub(bound.unreadable_claims) >= window
        {
            return Some(BudgetShortage::SlowStart(window, rolling.into()));
        }
        if used.starts >= bound.starts.0 {
            return Some(BudgetShortage::Starts(scope(), bound.starts.1));
        }
    }
    if request.additional_unavailable == 0 {
        return None;
    }
    if request.additional_unavailable > bound.unavailable {
        return Some(BudgetShortage::TooMany(scope(), request.additional_unavailable, bound.unavailable));
    }
    let elsewhere = used.unavailable.saturating_sub(away);
    if elsewhere.saturating_add(request.additional_unavailable) > bound.unavailable {
        used.first_waiting.get_or_insert_with(|| request.id.clone());
        return Some(BudgetShortage::Pods(
            scope(),
            request.additional_unavailable,
            elsewhere,
            bound.unavailable,
        ));
    }
    used.first_waiting.clone().map(BudgetShortage::Behind)
}
