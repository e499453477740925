//! The seals of Secret hashes in the records of units: which records can be written, and which
//! objects wait for the key.

use crate::engine::decide::reason::Reason;
use crate::engine::facts::entry::SourceId;
use crate::engine::facts::hash_seal::is_secret;
use crate::engine::facts::records::release_unit::ReleaseUnit;
use crate::engine::rollout::ledger::RolloutLedger;
use crate::engine::rollout::units::UnitWorkloads;
use crate::engine::state::Engine;
use crate::object::{GroupKind, ObjectId};

impl Engine {
    /// Returns the rollout ledger as it was last read or written.
    pub(in crate::engine) fn known_ledger(&self) -> Option<&RolloutLedger> {
        self.rollouts.ledger.latest()
    }

    /// Returns whether the record of a unit can be written.
    pub(in crate::engine) fn can_be_recorded(&self, unit: &ReleaseUnit) -> bool {
        self.seals().number().is_some() || !unit.members.keys().any(is_secret)
    }

    /// Returns the blocker of an object for want of a key. Objects released together with a
    /// Secret wait for the key that seals the record, all objects for the key that opens the
    /// ledger.
    pub(in crate::engine) fn object_key_blocker(
        &mut self,
        source: SourceId,
        id: &ObjectId,
    ) -> Option<Reason> {
        let why = self.key_blocker()?;
        let together = |units: &UnitWorkloads| {
            let first = units.lead_workloads.get(id)?;
            let begin = ObjectId::new(&GroupKind::new("", "Secret"), None, "");
            let mut secrets = units.lead_workloads.range(begin..).take_while(|(other, _)| is_secret(other));
            secrets.any(|(_, of)| of == first).then_some(())
        };
        if self.configs.sealed.locked || self.rollouts.units.of(source).and_then(together).is_some() {
            self.configs.sealed.wanted = true;
            return Some(why);
        }
        None
    }
}
