//! The decisions of the prune guard about one source, as they were judged last.
//!
//! **Invariant:** decides nothing, and forgets nothing by itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::Uid;
use crate::engine::facts::causes::prune_cause::PruneCause;
use crate::engine::facts::prune_timing::PruneTiming;
use crate::object::{ContentHash, ObjectId};

/// The decision about one pending object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PruneDecision {
    /// It may be deleted now.
    Delete,
    /// It stays until something passes by itself.
    Defer(PruneCause),
    /// It stays until a person confirms.
    Confirm(PruneCause),
    /// It stays.
    Keep(PruneCause),
    /// It stays, and is not repaired either.
    Ignore(PruneCause),
}

/// The facts about one live object that its own decision follows from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) struct CandidateFacts {
    pub(in crate::engine) uid: Uid,
    pub(in crate::engine) prune_timing: PruneTiming,
    pub(in crate::engine) is_unproven: bool,
    /// The content that was applied last, where it has been read.
    pub(in crate::engine) accepted: Option<ContentHash>,
    /// Indicates whether that content has yet to be read: nothing is pruned before.
    pub(in crate::engine) is_unread: bool,
}

/// The decisions about all candidates of one source, as they were judged last.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct CachedPruneDecisions {
    pub(in crate::engine) decisions: BTreeMap<ObjectId, PruneDecision>,
    pub(in crate::engine) facts: BTreeMap<ObjectId, CandidateFacts>,
    /// The decision for each object alike while the guard was closed. None for a source that goes:
    /// there an object that is kept keeps what it uses.
    pub(in crate::engine) blocker: Option<PruneDecision>,
    pub(in crate::engine) is_stale: bool,
    /// Objects whose own facts have changed while the guard was closed.
    pub(in crate::engine) changed: BTreeSet<ObjectId>,
    /// The number of candidates that are gone as decided, since all were judged.
    pub(in crate::engine) deleted: usize,
    /// The number of decided deletions that are left.
    pub(in crate::engine) undone: usize,
}

impl Default for CachedPruneDecisions {
    fn default() -> Self {
        Self {
            decisions: BTreeMap::new(),
            facts: BTreeMap::new(),
            blocker: None,
            is_stale: true,
            changed: BTreeSet::new(),
            deleted: 0,
            undone: 0,
        }
    }
}

impl CachedPruneDecisions {
    /// Returns the decisions about all candidates.
    pub(in crate::engine) fn decisions(&self) -> &BTreeMap<ObjectId, PruneDecision> {
        &self.decisions
    }

    /// Marks all candidates for another judgement.
    pub(in crate::engine) fn mark_stale(&mut self) {
        self.is_stale = true;
    }
}
