//! The lines about Jobs that have ended in an inventory.

use std::collections::BTreeMap;

use crate::engine::{FinishedJob, ObjectLifetime, SourceId, View};
use crate::object::{ContentHash, GroupKind, ObjectId, Revision};

/// Data key with the contents of Jobs that have ended and go away by themselves.
pub(in crate::daemon) const FINISHED_JOBS_KEY: &str = "finished-jobs";

/// The word at the end of the line of a Job that has failed.
const FAILED_WORD: &str = "failed";

/// The most bytes about Jobs that have ended.
pub(super) const MAX_FINISHED_BYTES: usize = 200_000;

/// Reads the lines about Jobs that have ended. One that cannot be read is left out.
pub(super) fn parse_finished(text: &str) -> BTreeMap<ObjectId, FinishedJob> {
    text.lines().filter_map(parse_finished_job).collect()
}

/// Reads one line: `Job.batch shop/migrate <hash>`, and ` failed <revision>` after it for one that
/// has failed. An older line lacks the revision.
pub(in crate::daemon) fn parse_finished_job(line: &str) -> Option<(ObjectId, FinishedJob)> {
    let mut words = line.split(' ');
    let (kind, name, hash) = (words.next()?, words.next()?, words.next()?);
    let (namespace, name) = name.split_once('/')?;
    let id = ObjectId::new(&GroupKind::parse(kind), Some(namespace), name);
    let content = ContentHash::parse(hash)?;
    let has_failed = words.next() == Some(FAILED_WORD);
    let revision = words.next().filter(|word| has_failed && is_word(word)).map(Revision::new);
    Some((id, FinishedJob { content, has_failed, revision }))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace)
}

/// Returns the lines about Jobs that have ended, as many as have room.
pub(super) fn finished_text(finished: &BTreeMap<ObjectId, FinishedJob>) -> String {
    let line = |(id, job): (&ObjectId, &FinishedJob)| {
        let revision = job.revision.as_ref().map_or_else(String::new, |revision| format!(" {revision}"));
        let end = if job.has_failed { format!(" {FAILED_WORD}{revision}") } else { String::new() };
        let (kind, namespace) = (id.group_kind(), id.namespace().unwrap_or_default());
        format!("{kind} {namespace}/{} {}{end}\n", id.name(), job.content)
    };
    let mut text = String::new();
    // One that is left out may run again once it is gone: a source that can write nothing does
    // nothing at all.
    for line in finished.iter().map(line) {
        if text.len() + line.len() > MAX_FINISHED_BYTES {
            break;
        }
        text.push_str(&line);
    }
    text
}

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
            && let Some(hash) = entry.ended.as_deref().filter(|hash| desired.has_hash(**hash))
        {
            let failed = known.get(id).filter(|job| job.has_failed && desired.has_hash(job.content));
            let revision = failed.and_then(|job| job.revision.clone());
            let job = FinishedJob { content: *hash, has_failed: failed.is_some(), revision };
            ended.insert(id.clone(), job);
        }
    }
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_has_failed_is_recorded_as_such() {
        let line = format!("Job.batch shop/migrate {}", "0".repeat(32));
        let revision = "1".repeat(40);
        let ends = [
            (String::new(), false, None),
            (" failed".to_owned(), true, None),
            (format!(" failed {revision}"), true, Some(&*revision)),
        ];
        for (end, failed, of) in ends {
            let text = format!("{line}{end}\n");
            let jobs = parse_finished(&text);
            let found: Vec<(bool, Option<&str>)> = jobs
                .values()
                .map(|job| (job.has_failed, job.revision.as_ref().map(Revision::as_str)))
                .collect();
            assert_eq!(found, [(failed, of)], "{text}");
            assert_eq!(finished_text(&jobs), text);
        }
    }

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
