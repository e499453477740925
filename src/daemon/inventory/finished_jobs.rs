//! The lines about Jobs that have ended in an inventory.

use std::collections::BTreeMap;

use crate::engine::{FinishedJob, ObjectLifetime, SourceId, View};
use crate::object::{ContentHash, GroupKind, ObjectId};

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

/// Reads one line: `Job.batch shop/migrate <hash>`, and ` failed` after it for one that has failed.
pub(in crate::daemon) fn parse_finished_job(line: &str) -> Option<(ObjectId, FinishedJob)> {
    let mut words = line.split(' ');
    let (kind, name, hash) = (words.next()?, words.next()?, words.next()?);
    let (namespace, name) = name.split_once('/')?;
    let id = ObjectId::new(&GroupKind::parse(kind), Some(namespace), name);
    let job =
        FinishedJob { content: ContentHash::parse(hash)?, has_failed: words.next() == Some(FAILED_WORD) };
    Some((id, job))
}

/// Returns the lines about Jobs that have ended, as many as have room.
pub(super) fn finished_text(finished: &BTreeMap<ObjectId, FinishedJob>) -> String {
    let line = |(id, job): (&ObjectId, &FinishedJob)| {
        let end = if job.has_failed { format!(" {FAILED_WORD}") } else { String::new() };
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
        .map(|(id, job)| (id.clone(), *job))
        .collect();
    let manifests = &state.manifests;
    let has_jobs = manifests.object_counts().kinds().any(|kind| kind.is("batch", "Job"));
    for id in manifests.ids().filter(|id| has_jobs && id.is("batch", "Job")) {
        let Some(entry) = engine.entry(id) else { continue };
        let Some((_, desired)) = entry.target_content() else { continue };
        if desired.traits.lifetime == ObjectLifetime::AfterFinish
            && let Some(hash) = entry.ended.as_deref().filter(|hash| desired.has_hash(**hash))
        {
            let has_failed = known.get(id).is_some_and(|job| job.has_failed);
            ended.insert(id.clone(), FinishedJob { content: *hash, has_failed });
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
        for (text, failed) in [(format!("{line}\n"), 0), (format!("{line} failed\n"), 1)] {
            let jobs = parse_finished(&text);
            assert_eq!(jobs.values().filter(|job| job.has_failed).count(), failed, "{text}");
            assert_eq!(jobs.len(), 1, "{text}");
            assert_eq!(finished_text(&jobs), text);
        }
    }
}
