//! The lines about Jobs that have ended in an inventory.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::{ObjectLifetime, SourceId, View};
use crate::object::{ContentHash, GroupKind, ObjectId};

/// Data key with the contents of Jobs that have ended and go away by themselves.
pub(in crate::daemon) const FINISHED_JOBS_KEY: &str = "finished-jobs";

/// The word at the end of the line of a Job that has failed.
const FAILED_WORD: &str = "failed";

/// The most bytes about Jobs that have ended.
pub(super) const MAX_FINISHED_BYTES: usize = 200_000;

/// Reads the lines about Jobs that have ended. One that cannot be read is left out.
pub(super) fn parse_finished(text: &str) -> BTreeMap<ObjectId, ContentHash> {
    text.lines().filter_map(parse_finished_job).collect()
}

/// Reads which of the Jobs that have ended have failed.
pub(super) fn parse_failed(text: &str) -> BTreeSet<ObjectId> {
    let failed = text.lines().filter(|line| line.split(' ').nth(3) == Some(FAILED_WORD));
    failed.filter_map(parse_finished_job).map(|(id, _)| id).collect()
}

/// Reads one line: `Job.batch shop/migrate <hash>`, and ` failed` after it for one that has failed.
pub(in crate::daemon) fn parse_finished_job(line: &str) -> Option<(ObjectId, ContentHash)> {
    let mut words = line.split(' ');
    let (kind, name, hash) = (words.next()?, words.next()?, words.next()?);
    let (namespace, name) = name.split_once('/')?;
    Some((ObjectId::new(&GroupKind::parse(kind), Some(namespace), name), ContentHash::parse(hash)?))
}

/// Returns the lines about Jobs that have ended, as many as have room.
pub(super) fn finished_text(
    finished: &BTreeMap<ObjectId, ContentHash>,
    failed: &BTreeSet<ObjectId>,
) -> String {
    let line = |(id, hash): (&ObjectId, &ContentHash)| {
        let end = if failed.contains(id) { format!(" {FAILED_WORD}") } else { String::new() };
        format!("{} {}/{} {hash}{end}\n", id.group_kind(), id.namespace().unwrap_or_default(), id.name())
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
    known: BTreeMap<ObjectId, ContentHash>,
) -> BTreeMap<ObjectId, ContentHash> {
    let state = engine.source(source);
    let mut ended: BTreeMap<ObjectId, ContentHash> = known
        .into_iter()
        .filter(|(id, hash)| {
            let wanted = engine.entry(id).and_then(|entry| entry.target_content());
            // A manifest that was not read, or is disallowed for now, may be wanted still, and
            // would run again.
            let may_be = !state.is_complete() || !engine.is_allowed(source, id);
            wanted.map_or(may_be, |(_, desired)| desired.has_hash(*hash))
        })
        .collect();
    let manifests = &state.manifests;
    let has_jobs = manifests.object_counts().kinds().any(|kind| kind.is("batch", "Job"));
    for id in manifests.ids().filter(|id| has_jobs && id.is("batch", "Job")) {
        let Some(entry) = engine.entry(id) else { continue };
        let Some((_, desired)) = entry.target_content() else { continue };
        if desired.traits.lifetime == ObjectLifetime::AfterFinish
            && let Some(hash) = entry.ended.as_deref().filter(|hash| desired.has_hash(**hash))
        {
            ended.insert(id.clone(), *hash);
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
            assert_eq!(parse_failed(&text).len(), failed, "{text}");
            assert_eq!(parse_finished(&text).len(), 1, "{text}");
            assert_eq!(finished_text(&parse_finished(&text), &parse_failed(&text)), text);
        }
    }
}
