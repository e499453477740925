//! The causes for which something is tried again. `render` has the sentence of each.

use std::sync::Arc;

use crate::engine::facts::causes::reason_code::CauseCode;
use crate::object::ObjectId;

/// The cause for which something is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RetryCause {
    /// Another client wrote first.
    Conflict,
    /// The rollout ledger has no room for the record of a unit.
    LedgerFull {
        /// The workload of the unit that asks first.
        workload: ObjectId,
        /// The kilobytes that rollouts take which are not over.
        used: u32,
        /// The kilobytes that there may be.
        limit: u32,
    },
    /// A call failed, as these words say.
    Message(Arc<str>),
}

impl RetryCause {
    /// Returns its code; none for the words of others.
    pub(crate) const fn code(&self) -> Option<CauseCode> {
        match self {
            Self::Conflict => Some(CauseCode::WriteConflict),
            Self::LedgerFull { .. } => Some(CauseCode::LedgerFull),
            Self::Message(_) => None,
        }
    }
}
