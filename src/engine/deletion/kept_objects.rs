//! The objects whose manifests ask to be kept, or to be deleted only after a confirmation.
//!
//! An object's own annotation for that is a claim: it may be taken off, and an earlier release with
//! its seal may be written back. So the inventory records it, beside the memory of this process.
//!
//! **Invariant:** a record only ever keeps an object. It is made as soon as a manifest asks for it.
//! It is dropped when another one is in force, or the object was deleted by rhumb.

use crate::engine::facts::lookup_counts;
use crate::engine::facts::records::kept_objects::{KeptObjects, KeptTiming};
use crate::engine::state::Engine;
use crate::engine::{LiveObject, PruneTiming, SourceId};
use crate::object::ObjectId;

impl Engine {
    /// Returns the objects of a source that its inventory is to record as kept.
    pub(in crate::engine) fn kept_objects(&self, source: SourceId) -> KeptObjects {
        let state = &self.sources[source];
        let mut kept = state.inventory.as_ref().map(|recorded| recorded.kept.clone()).unwrap_or_default();
        lookup_counts::count(kept.timings.len());
        kept.timings.retain(|id, _| self.manifest_prune_timing(source, id).is_none_or(PruneTiming::is_kept));
        for id in state.manifests.kept_ids() {
            lookup_counts::count(1);
            let requested = self.wanted_timing(source, id).filter(|requested| requested.is_kept());
            let recorded = kept.timings.get(id).map_or(0, |kept| kept.serial);
            let serial = self.newest_serial(id).max(recorded);
            kept.timings.extend(requested.map(|timing| (id.clone(), KeptTiming { timing, serial })));
        }
        kept
    }

    /// Returns the time of deletion that the newest manifest asks for, in force or not. A client
    /// that can have it held back does not get the object deleted by that.
    fn wanted_timing(&self, source: SourceId, id: &ObjectId) -> Option<PruneTiming> {
        let (wanting, desired) = self.entry(id)?.target_content()?;
        (wanting == source).then_some(desired.traits.prune_timing)
    }

    /// Returns the time of deletion that the manifest in force asks for; none where another one is
    /// to follow it, or nobody wants the object.
    fn manifest_prune_timing(&self, source: SourceId, id: &ObjectId) -> Option<PruneTiming> {
        let entry = self.entry(id)?;
        let (wanting, desired) = entry.target_content()?;
        (wanting == source && entry.accepted.is(desired.hash)).then_some(desired.traits.prune_timing)
    }

    /// Returns when an object may be deleted, as the inventories of all sources record it. It may
    /// have had the label of several, also of other processes.
    pub(in crate::engine) fn recorded_timing(&self, id: &ObjectId, live: &LiveObject) -> PruneTiming {
        let recorded = self.source_ids().filter_map(|source| self.sources[source].inventory.as_ref());
        let here = recorded.map(|inventory| inventory.kept.timing(id));
        let elsewhere = self.peers().map(|peer| peer.kept.timing_until(id, live.release_serial));
        here.chain(elsewhere).fold(PruneTiming::default(), PruneTiming::strictest)
    }

    /// Forgets that an object is kept by all sources but one: that one has written it, or nobody
    /// has it any more.
    pub(in crate::engine) fn forget_kept(&mut self, id: &ObjectId, except: Option<SourceId>) {
        for source in self.source_ids().filter(|source| Some(*source) != except) {
            if let Some(inventory) = &mut self.sources[source].inventory {
                inventory.kept.timings.remove(id);
            }
        }
    }
}
