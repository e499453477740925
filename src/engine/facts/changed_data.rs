//! The data for which the pods of a workload were restarted. `render` has the words for them.

use crate::engine::facts::config_stamp::ConfigStamp;
use crate::object::ObjectId;

/// The objects whose data changed, of those that the pods of a workload use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChangedData {
    /// All of these.
    All(Vec<ObjectId>),
    /// Some of these: nobody knows which.
    AnyOf(Vec<ObjectId>),
}

impl ChangedData {
    /// Returns those of the objects that pods use whose data changed before they were started.
    pub(crate) fn of(uses: &[ObjectId], started: ConfigStamp) -> Self {
        let changed: Vec<ObjectId> =
            started.positions().filter_map(|position| uses.get(position)).cloned().collect();
        if changed.is_empty() { Self::AnyOf(uses.to_vec()) } else { Self::All(changed) }
    }
}
