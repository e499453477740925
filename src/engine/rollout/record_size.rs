//! The sizes of rhumb's own objects. Kubernetes refuses a ConfigMap of more than 1 MiB, and one
//! that is refused again and again stops everything that it is for.
//!
//! **Invariant:** sizes are never underestimated: an object that is said to fit fits.

use std::collections::BTreeMap;

use crate::engine::facts::entry::SourceId;
use crate::engine::facts::hash_seal::HashCiphers;
use crate::engine::facts::lookup_counts;
use crate::engine::facts::records::release_unit::{ReleaseUnit, RollbackTarget, UnitMember};
use crate::engine::rollout::ledger::{RolloutClaim, RolloutLedger};
use crate::engine::state::Engine;
use crate::engine::{OversizedUnit, Reason, RetryCause};
use crate::object::ObjectId;

/// The most bytes of data in one ConfigMap of ours: what Kubernetes allows, less what its keys and
/// others may add.
pub(crate) const MAX_RECORD_BYTES: usize = 900_000;

/// The most bytes of one unit's record: where it fails, its source's ConfigMap has to hold it
/// beside all else. It is enough for 2,700 objects with names of 60 characters.
const MAX_UNIT_BYTES: usize = 600_000;

/// Keys, quotes and commas of one object in a record.
const MEMBER_OVERHEAD_BYTES: usize = 60;
/// A hash in hexadecimal, and what is between two of them.
const HASH_BYTES: usize = 33;
/// The number of a key, and the word before it.
const KEY_NUMBER_BYTES: usize = 13;
/// The number of bytes that a seal adds to a hash.
const SEAL_BYTES: usize = 10;
/// Keys, quotes, commas and numbers of one claim, or of a record's beginning.
const CLAIM_OVERHEAD_BYTES: usize = 120;

/// A rollout that waits for room asks again after this time: rollouts end in minutes.
const ROOM_RETRY_DELAY: std::time::Duration = std::time::Duration::from_secs(15);

/// The size of one unit's record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct RecordSize {
    /// Its objects.
    objects: usize,
    /// Its bytes, at most.
    bytes: usize,
}

/// The records of the units that are about to be released, each by the workload that asks first.
pub(in crate::engine) type RecordSizes = BTreeMap<ObjectId, RecordSize>;

/// Returns the bytes of a text in JSON, at most: what is escaped takes up to six.
fn text_bytes(text: &str) -> usize {
    text.bytes().map(|byte| if byte < 0x20 || matches!(byte, b'"' | b'\\') { 6 } else { 1 }).sum()
}

fn id_bytes(id: &ObjectId) -> usize {
    let namespace = id.namespace().unwrap_or_default();
    let parts = [id.group(), id.kind(), namespace, id.name()];
    parts.into_iter().map(text_bytes).sum::<usize>() + 3
}

impl UnitMember {
    fn bytes(&self, id: &ObjectId) -> usize {
        let hash = if id.is("", "Secret") { HASH_BYTES + SEAL_BYTES } else { HASH_BYTES };
        let content = self.content.map_or(0, |_| hash);
        let good = match &self.rollback_target {
            RollbackTarget::Content(release) => hash + text_bytes(release.revision.as_str()),
            RollbackTarget::FormerContent { content, inventory_id } => {
                hash + text_bytes(content.revision.as_str()) + text_bytes(inventory_id)
            }
            RollbackTarget::Absent | RollbackTarget::Unknown => HASH_BYTES,
        };
        let restarted = self.restarted.map_or(0, |_| 3 * HASH_BYTES + KEY_NUMBER_BYTES);
        MEMBER_OVERHEAD_BYTES + id_bytes(id) + content + good + restarted
    }
}

impl ReleaseUnit {
    /// Returns the bytes of its record, at most.
    pub(in crate::engine) fn bytes(&self) -> usize {
        let members: usize = self.members.iter().map(|(id, member)| member.bytes(id)).sum();
        CLAIM_OVERHEAD_BYTES + text_bytes(&self.inventory_id) + text_bytes(self.revision.as_str()) + members
    }
}

impl RolloutLedger {
    /// Returns the bytes of what may not be left out, at most.
    pub(in crate::engine) fn bytes(&self) -> usize {
        let claim = |(id, claim): (&ObjectId, &RolloutClaim)| {
            CLAIM_OVERHEAD_BYTES
                + HASH_BYTES
                + id_bytes(id)
                + text_bytes(&claim.inventory_id)
                + text_bytes(&claim.holder)
        };
        let claims: usize = self.claims.iter().map(claim).sum();
        let starts = self
            .starts
            .iter()
            .map(|start| (start, text_bytes(&start.inventory_id) + text_bytes(&start.clock)))
            .map(|(start, texts)| CLAIM_OVERHEAD_BYTES + id_bytes(&start.id) + texts);
        let tallies = self.tallies.iter().map(|tally| {
            let namespaces =
                tally.pods_in.keys().map(|name| CLAIM_OVERHEAD_BYTES + text_bytes(name)).sum::<usize>();
            let workloads =
                tally.unavailable.keys().map(|id| CLAIM_OVERHEAD_BYTES + id_bytes(id)).sum::<usize>();
            2 * CLAIM_OVERHEAD_BYTES
                + text_bytes(&tally.inventory_id)
                + text_bytes(&tally.name)
                + namespaces
                + workloads
        });
        let unread =
            self.unreadable_claims.iter().map(|claim| CLAIM_OVERHEAD_BYTES + claim.raw.to_string().len());
        claims
            + unread.sum::<usize>()
            + starts.sum::<usize>()
            + tallies.sum::<usize>()
            + self.units.iter().map(ReleaseUnit::bytes).sum::<usize>()
    }

    /// Returns whether one more record fits.
    pub(in crate::engine) fn has_room_for(&self, unit: &ReleaseUnit) -> bool {
        let bytes = unit.bytes();
        bytes <= MAX_UNIT_BYTES && self.bytes() + bytes <= MAX_RECORD_BYTES
    }

    /// Does the same as [`RolloutLedger::text`], without the queue, older units and authors where
    /// it would be longer than [`MAX_RECORD_BYTES`]: nothing is decided by them.
    pub(crate) fn bounded_text(&self, seals: &HashCiphers) -> Option<String> {
        let mut text = self.text(seals)?;
        let mut less = self.clone();
        let parts: [fn(&mut Self); 3] =
            [|ledger| ledger.queue.clear(), |ledger| ledger.history.clear(), |ledger| ledger.commits.clear()];
        for leave_out in parts {
            if text.len() <= MAX_RECORD_BYTES {
                break;
            }
            leave_out(&mut less);
            text = less.text(seals)?;
        }
        Some(text)
    }
}

impl Engine {
    /// Returns how large the records of the units of a source would be, as they were last found.
    pub(in crate::engine) fn record_sizes(&self, source: SourceId) -> RecordSizes {
        let mut sizes = RecordSizes::new();
        for (id, first) in self.rollouts.units.of(source).into_iter().flat_map(|units| &units.lead_workloads)
        {
            lookup_counts::count(1);
            let size = sizes.entry(first.clone()).or_default();
            size.objects += 1;
            size.bytes += self.member(source, id).bytes(id);
        }
        sizes
    }

    /// Returns why the unit that this workload asks for first cannot be recorded, and so not be
    /// released.
    pub(in crate::engine) fn room_shortage(&self, source: SourceId, first: &ObjectId) -> Option<Reason> {
        let RecordSize { objects, bytes } = *self.rollouts.units.record_sizes_of(source)?.get(first)?;
        let (workload, kilobytes) = (first.clone(), |bytes: usize| bytes.div_ceil(1000) as u32);
        if bytes > MAX_UNIT_BYTES {
            let (objects, used, limit) = (objects as u32, kilobytes(bytes), kilobytes(MAX_UNIT_BYTES));
            return Some(Reason::Oversized(OversizedUnit { workload, objects, used, limit }));
        }
        let taken = self.rollouts.ledger.fixed_bytes();
        (taken + bytes > MAX_RECORD_BYTES).then(|| {
            let (used, limit) = (kilobytes(taken), kilobytes(MAX_RECORD_BYTES));
            Reason::Retrying(RetryCause::LedgerFull { workload, used, limit }, ROOM_RETRY_DELAY)
        })
    }
}
