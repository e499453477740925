//! The blockers that outlast a decision: cycles, and writes that were denied.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::engine::ManifestFault;
use crate::engine::decide::competing_accounts::{RoleScope, WriteDenial};
use crate::engine::state::DecisionMode;
use crate::object::ObjectId;

/// The blockers that are known before an object is decided about.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct StandingBlockers {
    /// Indicates whether it decides for writes or for a plan, which nothing that comes first blocks.
    pub(in crate::engine) mode: DecisionMode,
    /// Objects that wait for themselves, each with its fault.
    pub(in crate::engine) cycles: BTreeMap<ObjectId, ManifestFault>,
    /// Objects that stay as they are until a person changes something, by their last decision. None
    /// of them has a rejected content.
    refused: BTreeSet<ObjectId>,
    /// Objects that an account may not write, by account, kind and namespace.
    denied_writes: HashMap<RoleScope, BTreeSet<ObjectId>>,
    /// The sources that may not write an object that several want.
    write_denials: HashMap<ObjectId, Vec<WriteDenial>>,
}

impl StandingBlockers {
    /// Records that an object stays as it is until a person changes something. Returns whether that
    /// is new.
    pub(in crate::engine) fn record_refusal(&mut self, id: &ObjectId) -> bool {
        !self.is_refused(id) && self.refused.insert(id.clone())
    }

    /// Forgets that an object stays as it is.
    pub(in crate::engine) fn forget_refusal(&mut self, id: &ObjectId) {
        self.refused.remove(id);
    }

    /// Returns whether an object stays as it is until a person changes something.
    pub(in crate::engine) fn is_refused(&self, id: &ObjectId) -> bool {
        self.refused.contains(id)
    }

    /// Records an object that an account may not write.
    pub(in crate::engine) fn record_missing_right(&mut self, scope: RoleScope, id: &ObjectId) {
        self.denied_writes.entry(scope).or_default().insert(id.clone());
    }

    /// Takes the objects that an account could not write, as it has the right by now.
    pub(in crate::engine) fn take_denied(&mut self, scope: &RoleScope) -> BTreeSet<ObjectId> {
        self.denied_writes.remove(scope).unwrap_or_default()
    }

    /// Returns how many objects may not be written.
    pub(in crate::engine) fn count_denied(&self) -> usize {
        self.denied_writes.values().map(BTreeSet::len).sum()
    }

    /// Returns the sources that may not write an object.
    pub(in crate::engine) fn denials_of(&self, id: &ObjectId) -> &[WriteDenial] {
        self.write_denials.get(id).map(Vec::as_slice).unwrap_or_default()
    }

    /// Records a source that may not write an object, in place of what was known of it.
    pub(in crate::engine) fn deny(&mut self, id: &ObjectId, denial: WriteDenial) {
        let denials = self.write_denials.entry(id.clone()).or_default();
        denials.retain(|known| known.source != denial.source);
        denials.push(denial);
    }

    /// Forgets which sources may not write an object.
    pub(in crate::engine) fn forget_denials(&mut self, id: &ObjectId) {
        self.write_denials.remove(id);
    }
}
