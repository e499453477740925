//! The lines about Jobs that have ended in an inventory.

use std::collections::BTreeMap;

use crate::engine::{ObjectLifetime, SourceId, View};
use crate::object::{ContentHash, GroupKind, ObjectId};

/// Data key with the contents of Jobs that have ended and go away by themselves.
pub(in crate::daemon) const FINISHED_JOBS_KEY: &str = "finished-jobs";

/// The most bytes about Jobs that have ended.
pub(super) const MAX_FINISHED_BYTES: usize = 200_000;

/// Reads the lines about Jobs that have ended. One that cannot be read is left out.
pub(super) fn parse_finished(text: &str) -> BTreeMap<ObjectId, ContentHash> {
    text.lines().filter_map(parse_finished_job).collect()
}

/// Reads one line: `Job.batch shop/migrate <hash>`.
pub(in crate::daemon) fn parse_finished_job(line: &str) -> Option<(ObjectId, ContentHash)> {
    let mut words = line.split(' ');
    let (kind, name, hash) = (words.next()?, words.next()?, words.next()?);
    let (namespace, name) = name.split_once('/')?;
    Some((ObjectId::new(&GroupKind::parse(kind), Some(namespace), name), ContentHash::parse(hash)?))
}

/// Returns the lines about Jobs that have ended, as many as have room.
pub(super) fn finished_text(finished: &BTreeMap<ObjectId, ContentHash>) -> String {
    let line = |(id, hash): (&ObjectId, &ContentHash)| {
        format!("{} {}/{} {hash}\n", id.group_kind(), id.namespace().unwrap_or_default(), id.name())
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
