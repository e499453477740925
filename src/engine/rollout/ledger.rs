//! The cluster's rollout ledger in values: who may restart pods now, and where a unit goes back to.
//!
//! A claim is written, by compare-and-swap, before the write that it is for, and is taken back when
//! the rollout has ended. So whatever dies when, the next process knows what may be under way; and
//! several daemons that share a cluster keep one budget. The record of a unit is written with its
//! first claim, or without one where nothing of it takes a slot.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::facts::records::release_unit::ReleaseUnit;
use crate::engine::rollout::budget_tally::BudgetTally;
use crate::engine::rollout::ledger_authors::AuthoredRevision;
use crate::engine::rollout::queue::QueuedObject;
use crate::engine::rollout::start_rate::RolloutStart;
use crate::object::{ContentHash, ObjectId};

/// The rollout ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RolloutLedger {
    /// The claims, by workload.
    pub claims: BTreeMap<ObjectId, RolloutClaim>,
    /// Units that are being released.
    pub units: Vec<ReleaseUnit>,
    /// Units that were released, the newest last: what an undo goes back to.
    pub history: Vec<ReleaseUnit>,
    /// The authors of the newest revisions.
    pub commits: Vec<AuthoredRevision>,
    /// The rollout queue, for people: nothing is decided by it.
    pub queue: Vec<QueuedObject>,
    /// The share of the budget that each source takes beside its claims.
    pub tallies: Vec<BudgetTally>,
    /// Rollouts that have begun lately.
    pub starts: Vec<RolloutStart>,
    /// Claims that cannot be read, as those of a later version: they count, and stay as they are.
    pub unreadable_claims: Vec<UnreadableClaim>,
    /// The time at which the ledger was begun; none where there is none, or an older version has
    /// made it.
    pub begun: Option<Timestamp>,
}

/// A claim that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnreadableClaim {
    /// The text that the object has.
    pub raw: Value,
    /// The pods that it counts for: one at least, as nobody knows.
    pub pods: u32,
}

/// The number of objects remembered of released units. They take some 50 KB of an object that is
/// written twice for each rollout. It holds 1 MiB.
const MAX_HISTORY_OBJECTS: usize = 200;

/// One workload that may restart pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RolloutClaim {
    /// The inventory that it is in.
    pub inventory_id: Arc<str>,
    /// The process that claims: two may serve the same source.
    pub holder: Arc<str>,
    /// The hash of the content that is rolled out; for a restart, that of the content and its data.
    pub rollout_key: ContentHash,
    /// The most pods that this may have unavailable at a time.
    pub reserved: u32,
    /// The process has ended in good order: nobody of its own takes the claim back.
    pub holder_exited: bool,
    /// The process deletes the workload and creates it again: it goes on while there is none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recreates: bool,
    /// The seconds for which the process waits for the workload that it creates again. None for any
    /// other claim, and for one of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recreation_deadline: Option<u32>,
}

impl RolloutLedger {
    /// Remembers a unit that was released. Of what would be too much the oldest is forgotten.
    pub(in crate::engine) fn push_history(&mut self, unit: ReleaseUnit) {
        self.history.push(unit);
        let count = |past: &[ReleaseUnit]| past.iter().map(|unit| unit.members.len()).sum::<usize>();
        while count(&self.history) > MAX_HISTORY_OBJECTS {
            self.history.remove(0);
        }
    }

    /// Returns the record of the unit that an object of an inventory is in.
    pub(in crate::engine) fn unit_of(&self, inventory_id: &str, id: &ObjectId) -> Option<&ReleaseUnit> {
        self.units.iter().find(|unit| &*unit.inventory_id == inventory_id && unit.members.contains_key(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::facts::records::release_unit::{RollbackTarget, UnitMember};
    use crate::object::{GroupKind, Revision};

    fn config(name: &str) -> ObjectId {
        ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), name)
    }

    #[test]
    fn of_released_units_the_newest_are_remembered() {
        let member =
            || UnitMember { content: None, rollback_target: RollbackTarget::Unknown, restarted: None };
        let unit = |revision: usize, objects: usize| ReleaseUnit {
            inventory_id: "a-v1".into(),
            revision: Revision::new(&revision.to_string()),
            members: (0..objects).map(|n| (config(&n.to_string()), member())).collect(),
        };
        let check = |sizes: &[usize], expected: &[usize]| {
            let mut ledger = RolloutLedger::default();
            for (revision, size) in sizes.iter().enumerate() {
                ledger.push_history(unit(revision, *size));
            }
            let kept: Vec<String> = ledger.history.iter().map(|unit| unit.revision.to_string()).collect();
            assert_eq!(kept, expected.iter().map(ToString::to_string).collect::<Vec<_>>(), "{sizes:?}");
        };
        check(&[1, 1], &[0, 1]);
        check(&[MAX_HISTORY_OBJECTS, 1], &[1]);
        check(&[1, MAX_HISTORY_OBJECTS - 2, 2], &[1, 2]);
        check(&[1, MAX_HISTORY_OBJECTS + 1], &[]);
    }

    #[test]
    fn an_object_is_in_the_unit_of_its_own_inventory() {
        let unit = |inventory_id: &str, name: &str| {
            let member =
                UnitMember { content: None, rollback_target: RollbackTarget::Absent, restarted: None };
            let members = [(config(name), member)].into();
            ReleaseUnit { inventory_id: inventory_id.into(), revision: Revision::new("r1"), members }
        };
        let units = vec![unit("b-v1", "a"), unit("a-v1", "b"), unit("a-v1", "a")];
        let ledger = RolloutLedger { units: units.clone(), ..RolloutLedger::default() };
        assert_eq!(ledger.unit_of("a-v1", &config("a")), Some(&units[2]));
        assert_eq!(ledger.unit_of("b-v1", &config("a")), Some(&units[0]));
        assert_eq!(ledger.unit_of("b-v1", &config("b")), None);
        assert_eq!(ledger.unit_of("a-v1", &config("c")), None);
    }
}
