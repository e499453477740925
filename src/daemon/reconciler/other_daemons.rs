//! Another process that serves the source of a single pass: each would undo what the other one
//! writes, for ever.

use super::Reconciler;
use crate::engine::{LiveObject, ObjectOwner};
use crate::object::ObjectId;
use crate::report::Outcome;

impl Reconciler {
    /// Says that another rhumb has put something else where this pass had just put what it wants.
    ///
    /// Only a release of this very source proves that: whatever else writes there is drift, and is
    /// repaired.
    pub(super) fn find_rival(&self, id: &ObjectId, live: &LiveObject) -> Option<String> {
        let outcome = self.objects.outcomes.get(id);
        let is_written = matches!(
            outcome,
            Some(
                Outcome::Created
                    | Outcome::Configured
                    | Outcome::Adopted(_)
                    | Outcome::Recreated
                    | Outcome::Repaired(_)
            )
        );
        if !is_written || !live.has_release_annotation() {
            return None;
        }
        let entry = self.engine.view().entry(id)?;
        let (source, wanted) = entry.target_content().filter(|_| entry.unreleased_content().is_none())?;
        let source = self.engine.view().source(source);
        // An unproven release is enough, as it only keeps this pass from writing.
        let release = live.shown_release()?;
        let ours = matches!(&live.owner, ObjectOwner::Ours(set) if *set == source.declared.inventory_id);
        // This view is from before our write.
        let is_newer = self.engine.view().live_object(id).is_some_and(|shown| shown.rv < live.rv);
        (ours && is_newer && !wanted.has_hash(release.hash)).then(|| {
            format!(
                "another rhumb serves source {}: it has put {id} back to revision {} right after this pass had \
                 written it, so the pass stops",
                source.declared.name,
                release.revision.short_name()
            )
        })
    }
}
