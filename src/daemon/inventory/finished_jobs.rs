//! The Jobs that an inventory records as ended.

use std::collections::BTreeMap;

use crate::engine::{FinishedJob, ObjectLifetime, SourceId, View};
use crate::object::ObjectId;

/// Data key with the contents of Jobs that have ended and go away by themselves.
pub(in crate::daemon) const FINISHED_JOBS_KEY: &str = "finished-jobs";

/// Returns the Jobs that have ended with the content that is wanted: that they go away is no drift.
pub(super) fn ended_jobs(
    engine: View<'_>,
    source: SourceId,
    known: &BTreeMap<ObjectId, FinishedJob>,
) -> BTreeMap<ObjectId, FinishedJob> {
    let state = engine.source(source);
    let mut ended: BTreeMap<ObjectId, FinishedJob> = known
        .iter()
        .filter(|(id, job)| {
            let wanted = engine.entry(id).and_then(|entry| entry.target_content());
            // A manifest that was not read, or is disallowed for now, may be wanted still, and
            // would run again.
            let may_be = !state.is_complete() || !engine.is_allowed(source, id);
            wanted.map_or(may_be, |(_, desired)| desired.has_hash(job.content))
        })
        .map(|(id, job)| (id.clone(), *job))
        .collect();
    let manifests = &state.manifests;
    let has_jobs = manifests.object_counts().kinds().any(|kind| kind.is("batch", "Job"));
    for id in manifests.ids().filter(|id| has_jobs && id.is("batch", "Job")) {
        let Some(entry) = engine.entry(id) else { continue };
        let Some((_, desired)) = entry.target_content() else { continue };
        if desired.traits.lifetime == ObjectLifetime::AfterFinish
            && let Some(hash) = entry.rare.ended.filter(|hash| desired.has_hash(*hash))
        {
            let has_failed = known.get(id).is_some_and(|job| job.has_failed);
            ended.insert(id.clone(), FinishedJob { content: hash, has_failed });
        }
    }
    ended
}
