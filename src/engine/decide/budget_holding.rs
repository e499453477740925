//! The parts of the budget that others hold, as the ledger names them. `render` has the words of
//! each.

use std::sync::Arc;

use crate::object::ObjectId;

/// A part of the budget that others hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BudgetHolding {
    /// Claims that cannot be read, and their remedy, in words.
    UnreadableClaims(Arc<str>),
    /// The claim on this workload.
    Claim(ObjectId, ClaimHolder),
    /// Unavailable pods of a workload without a claim.
    UnavailablePods {
        /// The workload.
        workload: ObjectId,
        /// Their number.
        pods: u32,
        /// The name of its source; none where that is not known.
        source: Option<Arc<str>>,
    },
}

/// The holder of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimHolder {
    /// The name of its source; none where that is not known.
    pub source: Option<Arc<str>>,
    /// The process; none where the claim names none.
    pub process: Option<HolderProcess>,
    /// Indicates whether the process has ended.
    pub has_ended: bool,
}

/// The process that has a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HolderProcess {
    /// Its number.
    pub number: Arc<str>,
    /// Its host.
    pub host: Arc<str>,
}
