//! The rollout budget: which of the writes that restart pods may start now.
//!
//! Every such write goes through [`grant_slots`]: a new content, a repair of a pod template, an
//! adoption, a rollback. There is one budget over the whole cluster; a source and a namespace may
//! have narrower bounds, and all bounds hold at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::iter;
use std::mem::{self, Discriminant};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::engine::rollout::budget_holding::BudgetHolding;
use crate::engine::{CauseCode, SourceId};
use crate::object::ObjectId;

/// A number of pods: an absolute one, or a percentage of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodAmount {
    /// A number of pods.
    Pods(u32),
    /// Percent of all, from 0 to 100.
    Percent(u8),
}

impl PodAmount {
    /// Returns the number among all pods: a percentage is rounded down, and is at least 1.
    pub fn of(self, all: u32) -> u32 {
        match self {
            Self::Pods(pods) => pods,
            Self::Percent(share) => {
                let pods = u64::from(all) * u64::from(share) / 100;
                u32::try_from(pods).unwrap_or(u32::MAX).max(1)
            }
        }
    }
}

/// `3`, or `10%`.
impl fmt::Display for PodAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pods(pods) => write!(f, "{pods}"),
            Self::Percent(share) => write!(f, "{share}%"),
        }
    }
}

/// A text that is neither `3` nor `10%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a number of pods (3) or a percentage from 0% to 100% (10%)")]
pub struct ParsePodAmountError;

impl FromStr for PodAmount {
    type Err = ParsePodAmountError;

    fn from_str(text: &str) -> Result<Self, ParsePodAmountError> {
        let read = match text.strip_suffix('%') {
            Some(share) => share.parse().ok().filter(|share| *share <= 100).map(Self::Percent),
            None => text.parse().ok().map(Self::Pods),
        };
        read.ok_or(ParsePodAmountError)
    }
}

impl Serialize for PodAmount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Pods(pods) => serializer.serialize_u32(*pods),
            Self::Percent(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for PodAmount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PodAmountVisitor;
        impl Visitor<'_> for PodAmountVisitor {
            type Value = PodAmount;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of pods (3) or a percentage from 0% to 100% (10%)")
            }
            fn visit_u64<E: de::Error>(self, pods: u64) -> Result<PodAmount, E> {
                let wrong = |_| E::invalid_value(de::Unexpected::Unsigned(pods), &self);
                u32::try_from(pods).map(PodAmount::Pods).map_err(wrong)
            }
            fn visit_i64<E: de::Error>(self, pods: i64) -> Result<PodAmount, E> {
                let wrong = |_| E::invalid_value(de::Unexpected::Signed(pods), &self);
                u32::try_from(pods).map(PodAmount::Pods).map_err(wrong)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<PodAmount, E> {
                text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(PodAmountVisitor)
    }
}

/// The action after a failed rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// Its unit goes back to its last good content.
    #[default]
    Rollback,
    /// It stays as it is until git changes the content, or a person orders a retry.
    Quarantine,
}

/// The budget of the whole cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Budget {
    /// Workloads whose pods are being replaced at a time.
    pub max_workloads: u32,
    /// Pods of managed workloads that may be unavailable at a time.
    pub max_unavailable: PodAmount,
    /// Rollouts that may begin in any minute.
    pub starts_per_minute: u32,
    /// The time for which a workload must be healthy before its rollout succeeds.
    pub soak: Duration,
    /// The longest time that a rollout may go without any progress.
    pub deadline: Duration,
    /// The action after a failure.
    pub on_failure: OnFailure,
    /// Narrower bounds, by namespace.
    pub namespaces: BTreeMap<Arc<str>, BudgetNarrowing>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            max_workloads: 3,
            max_unavailable: PodAmount::Percent(10),
            starts_per_minute: 30,
            soak: Duration::from_secs(10),
            deadline: Duration::from_mins(10),
            on_failure: OnFailure::Rollback,
            namespaces: BTreeMap::new(),
        }
    }
}

/// Bounds that hold beside those of the whole cluster: they narrow, and never widen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BudgetNarrowing {
    /// As [`Budget::max_workloads`].
    pub max_workloads: Option<u32>,
    /// As [`Budget::max_unavailable`], of the pods of this source or namespace.
    pub max_unavailable: Option<PodAmount>,
    /// As [`Budget::starts_per_minute`].
    pub starts_per_minute: Option<u32>,
    /// Longer than [`Budget::soak`].
    pub soak: Option<Duration>,
    /// Shorter than [`Budget::deadline`].
    pub deadline: Option<Duration>,
    /// `Quarantine` where [`Budget::on_failure`] is `Rollback`.
    pub on_failure: Option<OnFailure>,
}

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
