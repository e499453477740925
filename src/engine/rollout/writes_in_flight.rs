//! The writes that are not answered yet.

use std::collections::BTreeSet;

use crate::object::ObjectId;

/// The objects that are being written now.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct WritesInFlight {
    /// Objects that are being written now, and of which nobody knows what they show next.
    objects: BTreeSet<ObjectId>,
    /// Objects among these that an informer has ceased to show meanwhile: an answer may be older.
    unshown: BTreeSet<ObjectId>,
}

impl WritesInFlight {
    /// Records that the write of an object is on its way.
    pub(in crate::engine) fn begin(&mut self, id: &ObjectId) {
        self.objects.insert(id.clone());
    }

    /// Records that an informer has ceased to show an object, where that is being written.
    pub(in crate::engine) fn note_unshown(&mut self, id: &ObjectId) {
        if self.contains(id) {
            self.unshown.insert(id.clone());
        }
    }

    /// Records that the write of an object was answered. Returns whether an informer has ceased to
    /// show it meanwhile.
    pub(in crate::engine) fn end(&mut self, id: &ObjectId) -> bool {
        self.objects.remove(id);
        self.unshown.remove(id)
    }

    /// Returns whether an object is being written.
    pub(in crate::engine) fn contains(&self, id: &ObjectId) -> bool {
        self.objects.contains(id)
    }
}
