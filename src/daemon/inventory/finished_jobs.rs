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
        .map(|(id, job)| (id.clone(), job.clone()))
        .collect();
    let manifests = &state.manifests;
    let has_jobs = manifests.object_counts().kinds().any(|kind| kind.is("batch", "Job"));
    for id in manifests.ids().filter(|id| has_jobs && id.is("batch", "Job")) {
        let Some(entry) = engine.entry(id) else { continue };
        let Some((_, desired)) = entry.target_content() else { continue };
        if desired.traits.lifetime == ObjectLifetime::AfterFinish
            && let Some(hash) = entry.rare.ended.filter(|hash| desired.has_hash(*hash))
        {
            let failed = known.get(id).filter(|job| job.has_failed && desired.has_hash(job.content));
            let revision = failed.and_then(|job| job.revision.clone());
            let job = FinishedJob { content: hash, has_failed: failed.is_some(), revision };
            ended.insert(id.clone(), job);
        }
    }
    ended
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Revision;

    // The record may be about the content before.
    #[test]
    fn a_job_has_failed_by_the_record_of_its_own_content_alone() {
        use crate::engine::tests::world::{FIRST, SET, World, WorldObject, desired, following, id, reading};
        use crate::engine::{AdoptPolicy, LiveObject, RepositoryIdentity};
        let job = id("batch", "Job", "shop", "migrate");
        for (recorded, has_failed) in [(1, true), (2, false)] {
            let mut engine = following(&[("shop", SET, RepositoryIdentity::None)], AdoptPolicy::IfUnowned);
            let mut wanted = (*desired(&job, 1, "job")).clone();
            wanted.traits.lifetime = ObjectLifetime::AfterFinish;
            let content = wanted.hash;
            engine.read(FIRST, reading("r1", &[("job", Some(wanted.into()))]));
            let shown = World::live(&job, &WorldObject::settled(content, "r1", 1));
            engine.observe_object(&job, LiveObject { finished: true, ..shown });
            let known = FinishedJob {
                content: desired(&job, recorded, "job").hash,
                has_failed: true,
                revision: Some(Revision::new("r1")),
            };
            let ended = ended_jobs(engine.view(), FIRST, &[(job.clone(), known)].into());
            let revision = has_failed.then(|| Revision::new("r1"));
            assert_eq!(ended[&job], FinishedJob { content, has_failed, revision }, "{recorded}");
        }
    }
}
