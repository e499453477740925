//! The rollout budget: which of the writes that restart pods may start now.
//!
//! Every such write goes through [`grant_slots`]: a new content, a repair of a pod template, an
//! adoption, a rollback. There is one budget over the whole cluster; a source and a namespace may
//! have narrower bounds, and all bounds hold at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::iter;
use std::mem::{self, Discriminant};
use std::sync::Arc;

use crate::engine::rollout::budget_holding::BudgetHolding;
use crate::engine::{CauseCode, SourceId};
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

/// The scope of a bound.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BudgetScope {
    /// Everywhere.
    Cluster,
    /// The objects of one source.
    Source(SourceId, Arc<str>),
    /// In one namespace.
    Namespace(Arc<str>),
}

impl BudgetScope {
    pub(in crate::engine) fn is_applicable_to(&self, id: &ObjectId, source: Option<SourceId>) -> bool {
        match self {
            Self::Cluster => true,
            Self::Source(number, _) => source == Some(*number),
            Self::Namespace(name) => id.namespace() == Some(name),
        }
    }
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

/// The reason for which a write that restarts pods has to wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BudgetShortage {
    /// The maximum number of workloads rolls out, and these are they.
    Workloads(BudgetScope, u32, Arc<[ObjectId]>),
    /// The first ones of a rollout are to succeed before more begin; the number that may roll now.
    SlowStart(u32, Arc<[ObjectId]>),
    /// The pods that it may take down, those unavailable elsewhere, and the maximum of both.
    Pods(BudgetScope, u32, u32, u32),
    /// The pods that it takes down at once: more than may ever be unavailable.
    TooMany(BudgetScope, u32, u32),
    /// The maximum number of rollouts has begun in this minute.
    Starts(BudgetScope, u32),
    /// One that was asked for earlier waits for pods to become available.
    Behind(ObjectId),
    /// This is short, and the account may not read whether the workload of a claim still rolls.
    Hidden(Box<BudgetShortage>, ObjectId, Arc<str>),
    /// This is short, and others who share the budget hold these parts of it.
    Shared(Box<BudgetShortage>, Arc<[BudgetHolding]>),
    /// The rollout ledger was made anew, and others have this number of seconds in all to write
    /// their claims again.
    Recovering(u64),
}

impl BudgetShortage {
    /// Returns the code of what is short.
    pub(in crate::engine) fn code(&self) -> CauseCode {
        match self {
            Self::Workloads(..) => CauseCode::MaxWorkloads,
            Self::SlowStart(..) => CauseCode::SlowStart,
            Self::Pods(..) => CauseCode::MaxUnavailable,
            Self::TooMany(..) => CauseCode::TakesDownTooMany,
            Self::Starts(..) => CauseCode::MaxStarts,
            Self::Behind(_) => CauseCode::BehindAnother,
            Self::Hidden(short, ..) | Self::Shared(short, _) => short.code(),
            Self::Recovering(_) => CauseCode::LedgerRecreated,
        }
    }

    /// Returns whether it may be short because of what others have claimed.
    pub(in crate::engine) fn is_of_claims(&self) -> bool {
        match self {
            Self::Workloads(..) | Self::SlowStart(..) | Self::Pods(..) => true,
            Self::Hidden(short, ..) => short.is_of_claims(),
            _ => false,
        }
    }

    /// Returns what is short, from the outermost words to the innermost: numbers and names in it
    /// change all the time.
    pub(in crate::engine) fn kinds(&self) -> Vec<Discriminant<Self>> {
        let inner = match self {
            Self::Hidden(short, ..) | Self::Shared(short, _) => short.kinds(),
            _ => Vec::new(),
        };
        iter::once(mem::discriminant(self)).chain(inner).collect()
    }

    /// Returns whether it passes by itself, be it because others end what they have begun.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::TooMany(..) => false,
            Self::Hidden(short, ..) | Self::Shared(short, _) => short.is_temporary(),
            _ => true,
        }
    }
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
