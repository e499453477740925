//! The objects that the inventory of a source records as kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::engine::facts::prune_timing::PruneTiming;
use crate::object::ObjectId;

/// The objects of one source that are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptObjects {
    /// Each with the time of its deletion.
    pub(crate) timings: BTreeMap<ObjectId, KeptTiming>,
    /// Indicates whether some of them have no room in the inventory, or cannot be read. Then nobody
    /// knows whether any other object is kept, so each deletion of the source needs a confirmation.
    pub(crate) is_truncated: bool,
}

/// The time of the deletion of an object that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptTiming {
    /// Never, or after a confirmation.
    pub(crate) timing: PruneTiming,
    /// The serial number of the newest release that was seen on it; 0 where none is known.
    pub(crate) serial: u64,
}

impl KeptObjects {
    /// Returns when an object may be deleted, as far as these records say.
    pub(crate) fn timing(&self, id: &ObjectId) -> PruneTiming {
        self.timings.get(id).map(|kept| kept.timing).unwrap_or_default()
    }

    /// Does the same for another process, on an object with a release of this serial number. A
    /// newer release than the recorded one has ended what is recorded.
    pub(in crate::engine) fn timing_until(&self, id: &ObjectId, serial: u64) -> PruneTiming {
        let kept = self.timings.get(id).filter(|kept| kept.serial == 0 || serial <= kept.serial);
        kept.map(|kept| kept.timing).unwrap_or_default()
    }
}
