//! The inventory of a source, and what it means to the engine.

mod finished_jobs;
mod rewrites;

use std::collections::BTreeSet;
use std::time::Instant;

pub(super) use finished_jobs::FINISHED_JOBS_KEY;
use finished_jobs::ended_jobs;
use rewrites::InventoryRewrites;

use super::accepted_revision::{accepted_revision, is_recorded};
use super::unreadable_records::UnreadableRecords;
use super::{handover, unreadable_records};
use crate::cluster::{
    ACKNOWLEDGED_KEY, InventoryObject, KEPT_KEY, LOCATION_SEPARATOR, PENDING_PRUNES_KEY, PRUNE_CLOSED_KEY,
    REJECTED_KEY, UNLISTED_PENDING_KEY,
};
use crate::engine::{
    Acknowledgement, HashCipherStatus, HashCiphers, Inventory, MAX_RECORD_BYTES, PauseIntent, PendingPrune,
    PruneDecision, Rejection, ResourceVersion, SourceId, SourceLifecycle, Uid, UnlistedReason,
    UnwatchedNamespaces, View, finished_jobs_text, kept_text, parse_finished_jobs, rejections_seal_status,
    rejections_text,
};
use crate::object::{GroupKind, Revision, annotations};
use crate::report::StatusSummary;
use crate::source::VerificationRecord;

/// The text in place of a location that an inventory does not have.
pub(super) const UNKNOWN_LOCATION: &str = "a location that is not recorded (its ConfigMap was lost, or the source was never complete since it was made)";

/// The maximum number of locations that are named.
const MAX_LOCATIONS: usize = 8;

/// Data key with the confirmed deletions: one uid a line.
pub(super) const CONFIRMED_PRUNES_KEY: &str = "confirmed-prunes";

/// The maximum number of pending deletions in an inventory. Rejections need room beside them.
const MAX_LISTED_PENDING: usize = 2000;
/// The most bytes of their list, which has room for all of these with usual names and reasons.
const MAX_PENDING_BYTES: usize = 380_000;

/// A longer text of acknowledgements is written anew: an older version took over whatever was
/// written on objects, until nothing else had room any more.
const MAX_ACKNOWLEDGED_BYTES: usize = 200 << 10;

/// Returns how the hashes of Secrets are sealed in an inventory.
pub(super) fn seal_status(inventory: Option<&InventoryObject>, seals: &HashCiphers) -> HashCipherStatus {
    let text = inventory.and_then(|inventory| inventory.data.get(REJECTED_KEY));
    text.map(|text| rejections_seal_status(text, seals)).unwrap_or_default()
}

/// Returns whether there is a key, and hashes of Secrets in an inventory are not sealed by it.
fn is_to_be_sealed(engine: View<'_>, inventory: Option<&InventoryObject>) -> bool {
    engine.seals().number().is_some() && seal_status(inventory, engine.seals()) == HashCipherStatus::Stale
}

/// Returns whether an inventory says more of orders than has room beside all else.
fn is_overlong(inventory: Option<&InventoryObject>) -> bool {
    let text = inventory.and_then(|inventory| inventory.data.get(ACKNOWLEDGED_KEY));
    text.is_some_and(|text| text.len() > MAX_ACKNOWLEDGED_BYTES)
}

/// Returns the text about a kind that cannot be listed. Where the reason is the same, the recorded
/// text stays, as its time is that of the beginning.
fn unlisted_text(engine: View<'_>, source: SourceId, known: Option<&InventoryObject>) -> Option<String> {
    // Where nothing is to go it keeps nobody from anything, and is not worth a write.
    engine.prune_decisions(source).next()?;
    let why = engine.unlisted_reason(source)?;
    let recorded = known.and_then(InventoryObject::unlisted_reason);
    let recorded = recorded.filter(|recorded| recorded.ends_with(&format!(": {why}")));
    let now = || format!("since {}: {why}", jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S UTC"));
    Some(recorded.map_or_else(now, str::to_owned))
}

/// Returns the pending deletions of a source, and the number of those that have no room in the
/// list.
fn list_pending(engine: View<'_>, source: SourceId, max_bytes: usize) -> [(&'static str, Option<String>); 2] {
    let waiting = engine.prune_decisions(source).filter_map(|(id, decision)| match decision {
        PruneDecision::Confirm(why) => {
            let uid = engine.informer_object(id)?.uid.clone();
            Some(PendingPrune { uid, id: id.clone(), reason: why.to_string() })
        }
        _ => None,
    });
    let (list, left) = list_within(waiting, max_bytes.min(MAX_PENDING_BYTES));
    [
        (PENDING_PRUNES_KEY, Some(list).filter(|list| !list.is_empty())),
        (UNLISTED_PENDING_KEY, (left > 0).then(|| left.to_string())),
    ]
}

/// Returns the list of as many deletions as have room, and how many have none.
fn list_within(waiting: impl Iterator<Item = PendingPrune>, max_bytes: usize) -> (String, usize) {
    let (mut list, mut listed, mut left) = (String::new(), 0, 0_usize);
    for pending in waiting {
        let line = pending.line() + "\n";
        if left == 0 && listed < MAX_LISTED_PENDING && list.len() + line.len() <= max_bytes {
            list.push_str(&line);
            listed += 1;
        } else {
            left += 1;
        }
    }
    (list, left)
}

/// Returns the bytes that an inventory has left for the list of deletions.
fn room_left(inventory: &InventoryObject) -> usize {
    let others =
        inventory.data.iter().filter(|(key, _)| *key != PENDING_PRUNES_KEY && *key != UNLISTED_PENDING_KEY);
    MAX_RECORD_BYTES.saturating_sub(others.map(|(key, text)| key.len() + text.len()).sum())
}

/// Returns whether an inventory names the kinds and namespaces of all that is to be written.
fn is_naming_targets(engine: View<'_>, source: SourceId, inventory: &InventoryObject) -> bool {
    let targets = engine.source(source).desired_counts();
    targets.kinds().all(|kind| inventory.kinds.contains(kind))
        && targets.namespaces().all(|namespace| inventory.namespaces.contains(namespace))
}

/// Returns whether the inventory records the deletions that wait as they are, and every Job that
/// has ended.
pub(super) fn is_current(engine: View<'_>, source: SourceId, inventory: Option<&InventoryObject>) -> bool {
    let text = |key| inventory.and_then(|inventory| inventory.data.get(key));
    let known = engine.source(source).inventory.iter().flat_map(|recorded| &recorded.finished);
    let mut ended = known.filter(|(id, job)| engine.is_target_hash(id, job.content)).peekable();
    if ended.peek().is_some() {
        let recorded = text(FINISHED_JOBS_KEY).map(|text| parse_finished_jobs(text)).unwrap_or_default();
        if ended.any(|(id, job)| recorded.get(id) != Some(job)) {
            return false;
        }
    }
    inventory.is_none_or(|inventory| is_naming_targets(engine, source, inventory))
        && engine.next_rejections(source).is_none()
        && engine.next_acknowledged(source).is_none()
        && engine.next_confirmed(source).is_none()
        && !is_overlong(inventory)
        && !is_to_be_sealed(engine, inventory)
        && handover::is_recorded(engine, source, inventory)
        && text(KEPT_KEY) == kept_text(&engine.kept_objects(source)).as_ref()
        && list_pending(engine, source, inventory.map_or(MAX_RECORD_BYTES, room_left))
            .iter()
            .all(|(key, recorded)| text(key) == recorded.as_ref())
        && text(PRUNE_CLOSED_KEY) == unlisted_text(engine, source, inventory).as_ref()
}

/// Reads an inventory, as seen from a source at this location. An inventory that cannot be read
/// completely is left as it is.
pub(super) fn read(inventory: Option<&InventoryObject>, location: &str, seals: &HashCiphers) -> Inventory {
    let Some(inventory) = inventory else {
        return Inventory { other_location: Some(UNKNOWN_LOCATION.into()), ..Inventory::default() };
    };
    let annotation = |key: &str| inventory.annotations.get(key).map(String::as_str).unwrap_or_default();
    let made_from = annotation(annotations::SOURCE);
    let confirmed = inventory.data.get(CONFIRMED_PRUNES_KEY).map(String::as_str).unwrap_or_default();
    Inventory {
        kinds: inventory.kinds.clone(),
        namespaces: inventory.namespaces.iter().map(|name| name.as_str().into()).collect(),
        other_location: match made_from {
            "" => Some(UNKNOWN_LOCATION.into()),
            other => (other != location).then(|| other.into()),
        },
        lacks_location: !made_from.is_empty() && inventory.is_made_from(location) == Some(false),
        accepted: accepted_revision(inventory),
        confirmed: confirmed.lines().map(|uid| Uid(uid.into())).collect(),
        kept: inventory.kept_objects(),
        finished: inventory
            .data
            .get(FINISHED_JOBS_KEY)
            .map(|text| parse_finished_jobs(text))
            .unwrap_or_default(),
        rejections: inventory
            .rejections(seals)
            .into_iter()
            .map(Rejection::quarantine_if_unreadable)
            .collect(),
        unreadable_rejections: None,
        unreadable_finished: None,
        paused: PauseIntent::parse(annotation(annotations::PAUSED)),
        acknowledged: inventory.acknowledgements(),
    }
}

/// Returns the locations that an inventory was made from, with one more. Of many some are left out:
/// that there are several is what counts, and an annotation has a bound.
fn join_locations(location: &str, made_from: &str) -> String {
    let mut locations: Vec<&str> = made_from.split(LOCATION_SEPARATOR).collect();
    while locations.len() >= MAX_LOCATIONS {
        locations.remove(1);
    }
    locations.push(location);
    locations.join(LOCATION_SEPARATOR)
}

/// Returns the inventory as it should be now. A kind or namespace is added before its first object
/// is written, and removed when the last object is gone and nothing waits. None where the hash of a
/// Secret is to be sealed, and no key is known.
pub(super) fn wanted_inventory(
    engine: View<'_>,
    source: SourceId,
    location: &str,
    known: Option<&InventoryObject>,
    mode: InventoryWriteMode,
) -> Option<InventoryObject> {
    let mut inventory = known.cloned().unwrap_or_default();
    let state = engine.source(source);
    let (declared, members) = (state.manifests.object_counts(), state.live_counts());
    let targets = state.desired_counts();
    let namespaces = declared.namespaces().chain(targets.namespaces()).chain(members.namespaces());
    let namespaces = namespaces.map(str::to_owned);
    let unseen = UnlistedScope::of(engine, source, &inventory);
    let sees_all = unseen.kinds.is_empty() && unseen.namespaces.is_empty();
    match mode {
        InventoryWriteMode::Grow => {
            inventory.kinds.extend(declared.kinds().chain(targets.kinds()).cloned());
            inventory.namespaces.extend(namespaces);
        }
        InventoryWriteMode::Exact => {
            let present = targets.kinds().chain(members.kinds());
            inventory.kinds = declared.kinds().chain(present).cloned().chain(unseen.kinds).collect();
            inventory.namespaces = namespaces.chain(unseen.namespaces).collect();
        }
    }
    let recorded = read(known, location, engine.seals());
    // The present location is written down only when nothing of the other one is left to be
    // confirmed.
    let here = state.inventory.as_ref().is_some_and(|recorded| recorded.other_location.is_none());
    let all_wanted =
        || sees_all && state.declared.lifecycle == SourceLifecycle::Active && !engine.has_unwanted(source);
    if here || (mode == InventoryWriteMode::Exact && all_wanted()) {
        inventory.annotations.insert(annotations::SOURCE.to_owned(), location.to_owned());
    } else if recorded.lacks_location
        && state.declared.lifecycle == SourceLifecycle::Active
        && let Some(made_from) = inventory.annotations.get_mut(annotations::SOURCE)
    {
        // After a return to the other location these objects must not pass for that one's.
        *made_from = join_locations(location, made_from);
    }
    let confirmed = match mode {
        InventoryWriteMode::Grow => engine.next_confirmed(source),
        InventoryWriteMode::Exact => Some(engine.open_confirmations(source)),
    };
    if let Some(confirmed) = confirmed {
        let uids: Vec<String> = confirmed.iter().map(ToString::to_string).collect();
        replace(&mut inventory, CONFIRMED_PRUNES_KEY, (!uids.is_empty()).then(|| uids.join("\n")));
    }
    replace(&mut inventory, PRUNE_CLOSED_KEY, unlisted_text(engine, source, known));
    let unsealed = || {
        let inventory = state.inventory.as_ref().filter(|_| is_to_be_sealed(engine, known));
        inventory.map(|recorded| recorded.rejections.clone())
    };
    if let Some(rejections) = engine.next_rejections(source).or_else(unsealed) {
        let unread = unreadable_records::kept_rejections(known);
        match rejections_text(&rejections, engine.seals())? + &unread {
            none if none.is_empty() => drop(inventory.data.remove(REJECTED_KEY)),
            text => drop(inventory.data.insert(REJECTED_KEY.to_owned(), text)),
        }
    }
    let overlong = is_overlong(known).then(|| recorded.acknowledged.clone());
    if let Some(acknowledged) = engine.next_acknowledged(source).or(overlong) {
        inventory.data.insert(ACKNOWLEDGED_KEY.to_owned(), Acknowledgement::text(&acknowledged));
    }
    let jobs = state.inventory.as_ref().unwrap_or(&recorded);
    let ended = finished_jobs_text(&ended_jobs(engine, source, &jobs.finished))
        + &unreadable_records::kept_finished_jobs(known);
    replace(&mut inventory, KEPT_KEY, kept_text(&engine.kept_objects(source)));
    replace(&mut inventory, FINISHED_JOBS_KEY, Some(ended).filter(|text| !text.is_empty()));
    // Last, as it takes the room that is left.
    for (key, text) in list_pending(engine, source, room_left(&inventory)) {
        replace(&mut inventory, key, text);
    }
    Some(inventory)
}

/// Kinds and namespaces in an inventory that nobody lists: objects may be there still.
struct UnlistedScope {
    kinds: BTreeSet<GroupKind>,
    namespaces: BTreeSet<String>,
}

impl UnlistedScope {
    fn of(engine: View<'_>, source: SourceId, inventory: &InventoryObject) -> Self {
        let is_outside = |name: &&String| !engine.is_watching(source, name);
        let outside: BTreeSet<String> = inventory.namespaces.iter().filter(is_outside).cloned().collect();
        let is_seen = |kind: &GroupKind| {
            engine.is_kind_allowed(source, kind)
                && (outside.is_empty() || !engine.can_be_elsewhere(source, kind))
        };
        let kinds = inventory.kinds.iter().filter(|kind| !is_seen(kind)).cloned().collect();
        // A kind that is not listed at all may be wherever anything was.
        let lists_all = inventory.kinds.iter().all(|kind| engine.is_kind_allowed(source, kind));
        let namespaces = if lists_all { outside } else { inventory.namespaces.clone() };
        Self { kinds, namespaces }
    }
}

/// Lets an inventory say this under a key, or nothing.
fn replace(inventory: &mut InventoryObject, key: &str, text: Option<String>) {
    match text {
        Some(text) => drop(inventory.data.insert(key.to_owned(), text)),
        None => drop(inventory.data.remove(key)),
    }
}

/// Indicates whether the inventory only grows, or is made to say exactly what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InventoryWriteMode {
    /// Before writing.
    Grow,
    /// The inventory names exactly the present kinds, once nothing is left to do.
    Exact,
}

/// The need to write an inventory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InventoryNeed {
    /// Nothing.
    Nothing,
    /// It must name the kinds and namespaces that are going to be written.
    Growth,
    /// Once nothing else is left to do, it must say exactly what is there.
    Cleanup,
}

/// The inventory store: the inventory of one source, as it was read and is to be written.
#[derive(Debug)]
pub(super) struct InventoryStore {
    /// The inventory as last read.
    pub(super) inventory: InventoryState,
    /// Indicates whether there was none when it was first read.
    pub(super) was_absent: bool,
    /// Indicates whether a read or write is on its way.
    pub(super) call: CallState,
    /// The need to write.
    pub(super) need: InventoryNeed,
    /// The state of the seals of Secret hashes in it.
    pub(super) sealing: HashCipherStatus,
    /// The records in it that cannot be read, as last shown to the engine.
    pub(super) unreadable_records: UnreadableRecords,
    /// The records in it that cannot be read, as last logged.
    pub(super) unreadable: Vec<String>,
    /// The status that it recorded when it was first read.
    pub(super) first_status: Option<StatusSummary>,
    /// The newest version that its watch has shown.
    pub(super) seen: ResourceVersion,
    /// The reason for which nothing is pruned, as last logged.
    pub(super) unlisted_reason: Option<UnlistedReason>,
    /// The namespaces that are not watched, as last logged.
    pub(super) unwatched: Option<UnwatchedNamespaces>,
    /// The reason for the last failed read or write.
    pub(super) last_error: Option<String>,
    /// Indicates whether what has its name is no inventory of ours.
    pub(super) is_foreign: bool,
    /// Calls in a row that have failed: each waits longer.
    pub(super) failures: u32,
    /// The writes of this process beside those of others.
    pub(super) rewrites: InventoryRewrites,
    /// Indicates whether this process knows that all of it was made from the source's location.
    pub(super) origin: InventoryOrigin,
    /// The last revision that this process has accepted of a source whose commits must be signed.
    pub(super) accepted_revision: Option<Revision>,
    /// The record that the source was given.
    pub(super) verification_record: Option<VerificationRecord>,
}

/// Indicates whether an inventory was made from the source's location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InventoryOrigin {
    /// Nothing but the inventory itself tells.
    Unknown,
    /// It was, as this process has seen. That stays so whatever becomes of the inventory.
    Local,
}

/// The state of reading an inventory.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum InventoryState {
    /// Nothing: it was never read.
    Unread,
    /// It does not exist.
    Absent,
    /// It says this.
    Present(InventoryObject),
}

impl InventoryState {
    /// Returns the inventory, where it exists.
    pub(super) fn inventory(&self) -> Option<&InventoryObject> {
        match self {
            Self::Present(inventory) => Some(inventory),
            Self::Unread | Self::Absent => None,
        }
    }
}

/// Indicates whether a call about an inventory is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallState {
    /// None.
    None,
    /// One.
    Busy,
}

impl InventoryStore {
    /// Returns whether the inventory, as last read, names all these kinds and namespaces.
    pub(super) fn has_all_scopes(&self, scopes: &BTreeSet<(GroupKind, Option<String>)>) -> bool {
        let Some(inventory) = self.inventory.inventory() else { return false };
        scopes.iter().all(|(kind, namespace)| {
            let named = namespace.as_ref().is_none_or(|namespace| inventory.namespaces.contains(namespace));
            inventory.kinds.contains(kind) && named
        })
    }

    /// Returns the time until which another process' write is left as it is, where that is later
    /// than now.
    pub(super) fn rest_until(&self, now: Instant) -> Option<Instant> {
        let known = self.inventory.inventory().and_then(InventoryObject::version);
        self.rewrites.next_write(known).filter(|next| now < *next)
    }

    /// Returns whether the inventory, as last read, records the revision that was accepted last.
    pub(super) fn has_accepted_revision(&self) -> bool {
        is_recorded(self.inventory.inventory(), self.accepted_revision.as_ref())
    }
}

impl Default for InventoryStore {
    fn default() -> Self {
        Self {
            inventory: InventoryState::Unread,
            was_absent: false,
            call: CallState::None,
            need: InventoryNeed::Growth,
            sealing: HashCipherStatus::Valid,
            unreadable_records: UnreadableRecords::default(),
            unreadable: Vec::new(),
            first_status: None,
            seen: ResourceVersion(0),
            unlisted_reason: None,
            unwatched: None,
            last_error: None,
            is_foreign: false,
            failures: 0,
            rewrites: InventoryRewrites::default(),
            origin: InventoryOrigin::Unknown,
            accepted_revision: None,
            verification_record: None,
        }
    }
}

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod rejection_tests;
#[cfg(test)]
mod tests;
