//! The shortage of the budget for which a write that restarts pods waits.

use std::iter;
use std::mem::{self, Discriminant};
use std::sync::Arc;

use crate::engine::decide::budget_holding::BudgetHolding;
use crate::engine::{CauseCode, SourceId};
use crate::object::ObjectId;

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
