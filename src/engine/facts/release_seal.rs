//! The release annotation, and the seal that proves that rhumb wrote it.
//!
//! Anybody who may write an object may write its annotations, under the name of our field manager
//! too. So the annotation alone is unproven. Its seal makes it a fact: an HMAC over the source, the
//! identity of the object, the hash of the content and the revision. That of a workload covers its
//! overlay too. The key is in rhumb's namespace alone.
//!
//! A seal of the past is valid too: whoever may read an object may keep its annotation, and write
//! it back later. So a seal has a serial number, which rises with each content that is written. Of
//! one object only the newest release that this process has seen is proven.
//!
//! A manifest that asks to keep its object has a seal of its own. So that word outlives the
//! annotation on the object, which others may take off, and the revision, which may be lost.
//!
//! **Invariant:** [`LiveObject::release`] is a fact. Only a proven release deletes an object, is
//! gone back to, or names a revision to fetch. An unproven one keeps rhumb from writing that very
//! object, and does nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::engine::facts::config_hash::{HashKey, key_id};
use crate::engine::facts::entry::{AcceptedContent, DirectView, ObjectEntry, WaitTopic};
use crate::engine::facts::read_state::ReadState;
use crate::engine::facts::release_annotation::{ReleaseAnnotation, ReleaseKey, SealedFacts, SealedOverlay};
use crate::engine::state::Engine;
use crate::engine::{
    ContentRef, LiveObject, ObjectOwner, RolloutOverlayState, SourceId, WorkloadPhase, is_workload,
};
use crate::object::{ContentHash, ObjectId, Revision};

/// The newest release that was seen on an object, by its seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewestRelease {
    pub(in crate::engine) serial: u64,
    pub(in crate::engine) hash: ContentHash,
    /// The source that it was sealed for, where that is one of this process.
    pub(in crate::engine) source: Option<SourceId>,
    /// The overlay of a workload, as its seal proves it.
    pub(in crate::engine) overlay: RolloutOverlayState,
}

/// The keys that this process has known, and the objects whose annotation none of them proves.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct ReleaseProofs {
    /// The newest one seals, each proves.
    pub(in crate::engine) keys: Vec<ReleaseKey>,
    /// The reason for a missing key, where that is known.
    pub(in crate::engine) unreadable_reason: Option<Arc<str>>,
    /// The objects that the informers show with an unproven release.
    unproven: BTreeSet<ObjectId>,
}

impl LiveObject {
    /// Returns the release of its annotation, proven or not.
    ///
    /// It is good enough to leave the object as it is, and for nothing that reaches beyond it.
    pub fn shown_release(&self) -> Option<&ContentRef> {
        self.release.as_ref().or_else(|| self.unproven_release.as_ref().map(|annotation| &annotation.release))
    }

    /// Returns whether nothing proves that we put there what is there.
    pub fn is_unproven(&self) -> bool {
        self.release.is_none()
    }
}

impl ObjectEntry {
    /// Returns whether an annotation is of an earlier release than one that was seen already.
    /// Somebody has written it back.
    pub(in crate::engine) fn is_outdated(&self, annotation: &ReleaseAnnotation) -> bool {
        let serial = annotation.seal.map_or(0, |seal| seal.serial);
        self.newest_release.is_some_and(|newest| serial < newest.serial)
    }

    /// Returns whether another incarnation of a Job has shown this very release before. Somebody has
    /// copied it: each creation of a Job by rhumb has a number of its own.
    ///
    /// Older versions gave no numbers, so nothing is known of theirs.
    pub(in crate::engine) fn is_copied_release(&self, live: &LiveObject) -> bool {
        let is_newest = self
            .newest_release
            .is_some_and(|newest| newest.serial > 0 && newest.serial == live.release_serial);
        is_newest && self.rare.release_incarnation.as_ref().is_some_and(|first| *first != live.uid)
    }
}

impl Engine {
    /// Records a proven release of an object. From then on no earlier one is proven.
    pub(in crate::engine) fn note_release(&mut self, id: &ObjectId, live: &LiveObject) {
        let Some(release) = &live.release else { return };
        let newest = NewestRelease {
            serial: live.release_serial,
            hash: release.hash,
            source: self.source_of(live),
            overlay: live.overlay,
        };
        let Some(entry) = self.objects.entries.get_mut(id) else { return };
        if entry.newest_release.is_none_or(|known| known.serial < newest.serial) {
            let first = id.is("batch", "Job").then(|| live.uid.clone());
            if first != entry.rare.release_incarnation {
                entry.rare.change(|rare| rare.release_incarnation = first);
            }
        }
        if entry.newest_release.is_none_or(|known| known.serial <= newest.serial) {
            entry.newest_release = Some(newest);
        }
    }

    /// Returns the serial number of the newest release that was seen on an object; 0 where none was.
    pub(in crate::engine) fn newest_serial(&self, id: &ObjectId) -> u64 {
        self.entry(id).and_then(|entry| entry.newest_release).map_or(0, |newest| newest.serial)
    }

    /// Takes over the key for the seals of releases, or that there is none.
    pub(in crate::engine) fn set_release_key(&mut self, key: ReadState<HashKey>) {
        let proofs = &mut self.objects.proofs;
        match key {
            ReadState::Value(key)
                if proofs.keys.last().is_some_and(|known| known.number() == key.number()) =>
            {
                return;
            }
            ReadState::Value(key) => {
                proofs.keys.retain(|known| known.number() != key.number());
                proofs.keys.push(ReleaseKey::of(&key));
                proofs.unreadable_reason = None;
                self.prove_again();
            }
            // A key that was known is good for all that was written with it.
            ReadState::Unreadable(why)
                if proofs.keys.is_empty() && proofs.unreadable_reason.as_ref() != Some(&why) =>
            {
                proofs.unreadable_reason = Some(why);
            }
            ReadState::Unreadable(_) | ReadState::Reading => return,
        }
        self.wake_topic(&WaitTopic::Object(key_id()));
        self.mark_prunes_stale();
        self.orders.mark_stale();
    }

    /// Returns whether it is not known yet if there is a key.
    pub(in crate::engine) fn is_reading_release_key(&self) -> bool {
        self.objects.proofs.keys.is_empty() && self.objects.proofs.unreadable_reason.is_none()
    }

    /// Returns the source in whose inventory an object provably is. Only such an object counts, and
    /// can be deleted.
    pub(in crate::engine) fn inventory_source(&self, live: &LiveObject) -> Option<SourceId> {
        self.source_of(live).filter(|_| !live.is_unproven())
    }

    /// Moves an unproven release that its seal proves to the proven one. The overlay that the seal
    /// proves is taken for the one that is there.
    ///
    /// The annotation of the overlay alone proves nothing: somebody may have changed it, to let more
    /// pods go or to end a step. The change itself is drift.
    pub(in crate::engine) fn prove(&self, id: &ObjectId, live: &mut LiveObject) {
        let sealed = self.prove_release(id, live);
        if !is_workload(id) {
            return;
        }
        live.overlay = match sealed {
            Some(SealedOverlay::Known(overlay)) => overlay.into(),
            // An older version made the seal.
            Some(SealedOverlay::Unsaid) => self.unsealed_overlay(id, live),
            None if !live.is_unproven() => live.overlay,
            // Without a key our own writes have no seal either.
            None if self.objects.proofs.keys.is_empty() => self.unsealed_overlay(id, live),
            None => self.written_overlay(id, live).unwrap_or_else(|| unproven_overlay(live)),
        };
    }

    /// Returns the overlay of a workload where no seal can say it. It is the one that this process
    /// has written. The shown one counts during a write of ours, and under another content.
    fn unsealed_overlay(&self, id: &ObjectId, live: &LiveObject) -> RolloutOverlayState {
        let awaited = |entry: &ObjectEntry| entry.min_resource_version.is_some();
        let is_own_write = self.rollouts.writes_in_flight.contains(id) || self.entry(id).is_some_and(awaited);
        let accepted = self.entry(id).and_then(|entry| entry.accepted.content());
        let is_same =
            live.shown_release().zip(accepted).is_some_and(|(shown, accepted)| accepted.has_hash(shown.hash));
        let written = self.written_overlay(id, live).filter(|_| is_same && !is_own_write);
        written.unwrap_or(live.overlay)
    }

    /// Proves the release of an object. Returns what its seal says of an overlay; none where it
    /// proves nothing now.
    fn prove_release(&self, id: &ObjectId, live: &mut LiveObject) -> Option<SealedOverlay> {
        let annotation = live.unproven_release.as_deref()?;
        if self.entry(id).is_some_and(|entry| entry.is_outdated(annotation)) {
            return None;
        }
        let facts_of = |inventory_id: &str| {
            self.objects.proofs.keys.iter().find_map(|key| key.proven_facts(inventory_id, id, annotation))
        };
        let wanting = || self.entry(id).into_iter().flat_map(|entry| &entry.targets);
        let (sealed, is_relabelled) = match &live.owner {
            ObjectOwner::Ours(set) => {
                let own = facts_of(set);
                // A source that takes an object over seals it anew: until then the label is
                // unproven. The release of an unwanted object stays unproven, so that its source
                // reports that it is kept.
                let other =
                    || wanting().find_map(|(source, _)| facts_of(&self.sources.inventory_ids()[*source]));
                let sealed = own.or_else(other);
                (sealed, own.is_none() && sealed.is_some())
            }
            // Its label is gone or altered, which is drift where we wrote it.
            _ => (self.sources.inventory_ids().iter().find_map(|set| facts_of(set)), false),
        };
        let SealedFacts { timing, serial, overlay, creator, render } = sealed?;
        live.release = live.unproven_release.take().map(|annotation| annotation.release);
        live.release_serial = serial;
        live.job_creator = creator;
        live.sealed_render = render.map(Box::new);
        live.prune_timing = live.prune_timing.strictest(timing);
        if let (true, ObjectOwner::Ours(set)) = (is_relabelled, &live.owner) {
            live.owner = ObjectOwner::Labelled(set.clone());
        }
        Some(overlay)
    }

    /// Proves the record of an object that a source has come to want: it may have been
    /// unproven under another label.
    pub(in crate::engine) fn prove_wanted(&mut self, id: &ObjectId) {
        if self.objects.proofs.unproven.contains(id) {
            self.prove_shown(id);
        }
    }

    fn prove_shown(&mut self, id: &ObjectId) {
        let Some(mut live) = self.informer_object(id).cloned() else { return };
        self.prove(id, &mut live);
        if !live.is_unproven() {
            self.store_live_object(id, live);
        }
    }

    /// Records whether an object is shown with an unproven release.
    pub(in crate::engine) fn track_unproven(&mut self, id: &ObjectId) {
        if self.informer_object(id).is_some_and(|live| live.unproven_release.is_some()) {
            self.objects.proofs.unproven.insert(id.clone());
        } else {
            self.objects.proofs.unproven.remove(id);
        }
    }

    /// Checks again all seals that were not proven, as there is another key.
    fn prove_again(&mut self) {
        for id in self.objects.proofs.unproven.clone() {
            self.prove_shown(&id);
        }
        let unproven = |entry: &ObjectEntry| matches!(&entry.direct_view, Some(DirectView::Found(live)) if live.unproven_release.is_some());
        let found: Vec<ObjectId> =
            self.entries().filter(|(_, entry)| unproven(entry)).map(|(id, _)| id.clone()).collect();
        for id in found {
            let view = self.objects.entries.get_mut(&id).and_then(|entry| entry.direct_view.take());
            let Some(DirectView::Found(mut live)) = view else { continue };
            self.prove(&id, &mut live);
            self.note_release(&id, &live);
            if let Some(entry) = self.objects.entries.get_mut(&id) {
                if !live.is_unproven() {
                    entry.restore_accepted(&live, None);
                }
                entry.direct_view = Some(DirectView::Found(live));
            }
            self.track(&id);
            self.note_object_change(&id);
        }
    }

    /// Returns the newest revision of the source that wants an object.
    pub(in crate::engine) fn newest_revision_of(&self, id: &ObjectId) -> Option<Revision> {
        let (source, _) = self.entry(id)?.target_content()?;
        self.sources[source].head.clone()
    }

    /// Returns the revisions in force of objects with an unproven release, which this process found
    /// to be as the followed reference asks.
    pub(in crate::engine) fn unproven_revisions(&self) -> impl Iterator<Item = Revision> {
        let found = |id: &ObjectId| Some(self.known_content_ref(id, self.informer_object(id)?)?.revision);
        self.objects.proofs.unproven.iter().filter_map(found)
    }

    /// Returns the release that a rollback can go back to. That is a proven one, else one that this
    /// process has found to be what the followed reference asked for.
    pub(in crate::engine) fn known_content_ref(
        &self,
        id: &ObjectId,
        live: &LiveObject,
    ) -> Option<ContentRef> {
        if live.release.is_some() {
            return live.release.clone();
        }
        let shown = live.shown_release().filter(|_| live.has_release_annotation())?;
        let entry = self.entry(id)?;
        entry.accepted.content().filter(|accepted| accepted.has_hash(shown.hash))?;
        Some(ContentRef { hash: shown.hash, revision: entry.revision.clone()? })
    }
}

/// Returns the overlay to reckon with where nothing proves the one that is shown. A rollout that
/// may be held begins its steps anew.
fn unproven_overlay(live: &LiveObject) -> RolloutOverlayState {
    let is_rolling = live.replica_status.is_some_and(|replica_status| {
        replica_status.phase == WorkloadPhase::Replacing || replica_status.updated < replica_status.replicas
    });
    match live.overlay {
        RolloutOverlayState::Plain if !is_rolling => RolloutOverlayState::Plain,
        _ => RolloutOverlayState::Unreadable,
    }
}

impl ObjectEntry {
    /// Takes over the accepted content from the release annotation. A proven one is a fact of the
    /// cluster and wins over the memory, unless somebody else wrote it.
    ///
    /// An unproven release is taken up only where it is what the newest revision asks for: nothing
    /// is written for that.
    pub(in crate::engine) fn restore_accepted(&mut self, live: &LiveObject, newest: Option<&Revision>) {
        let Some(shown) = live.shown_release().filter(|_| live.has_release_annotation()) else { return };
        let wanted = self
            .target_content()
            .map(|(_, desired)| desired)
            .filter(|desired| desired.has_hash(shown.hash))
            .cloned();
        let Some(release) = &live.release else {
            let Some(desired) = wanted else { return };
            self.incarnation = Some(live.uid.clone());
            self.note_end(live, shown.hash);
            if !self.accepted.content().is_some_and(|accepted| accepted.has_hash(shown.hash)) {
                (self.accepted, self.revision) = (AcceptedContent::Known(desired), newest.cloned());
            } else if self.revision.is_none() {
                self.revision = newest.cloned();
            }
            return;
        };
        self.revision = Some(release.revision.clone());
        self.incarnation = Some(live.uid.clone());
        self.note_end(live, release.hash);
        match (&self.accepted, wanted) {
            (AcceptedContent::Known(accepted), _) if accepted.has_hash(release.hash) => {}
            (_, Some(desired)) => self.accepted = AcceptedContent::Known(desired),
            (AcceptedContent::Unreadable(lost), _) if lost == release => {}
            _ => self.accepted = AcceptedContent::Unread(release.clone()),
        }
    }
}
