//! The seal of a decided write: its release annotation, and the facts that the seal proves.
//!
//! `src/engine/facts/release_seal.rs` says why a release has a seal, and checks it.

use crate::engine::decide::decision::{Action, ApplyRequest, Decision, Precondition};
use crate::engine::decide::reason::Reason;
use crate::engine::facts::config_hash::key_id;
use crate::engine::facts::release_annotation::{JobCreator, ReleaseAnnotation, SealedFacts, SealedOverlay};
use crate::engine::state::Engine;
use crate::engine::{ContentRef, GeneratedMark, RolloutOverlayState, is_workload};
use crate::object::{ContentHash, ObjectId};

impl ApplyRequest {
    /// Returns the annotation for the written object.
    pub(crate) fn release_annotation(&self) -> ReleaseAnnotation {
        let release = ContentRef { hash: self.variant.hash(&self.desired), revision: self.revision.clone() };
        ReleaseAnnotation { release, seal: self.seal }
    }
}

impl SealedFacts {
    /// Returns the facts for the seal of a write.
    fn of_write(id: &ObjectId, apply: &ApplyRequest, serial: u64) -> Self {
        let overlay =
            if is_workload(id) { SealedOverlay::Known(apply.variant.overlay) } else { SealedOverlay::Unsaid };
        Self { overlay, ..Self::of(apply.desired.traits.prune_timing, serial) }
    }
}

impl Engine {
    /// Returns the serial number for the next release of an object. The same release under the same
    /// overlay keeps its own, so that to write it again changes nothing. A Job that is created gets
    /// another one: by that it is known from an earlier incarnation, and from a copy.
    ///
    /// It is the time in seconds at least. So it is above all earlier ones, also of an earlier
    /// object of this name, and of releases that this process has not seen.
    fn next_serial(&self, id: &ObjectId, apply: &ApplyRequest, hash: ContentHash) -> u64 {
        let wall = self.wall_clock().map_or(1, |wall| wall.as_second().max(1).cast_unsigned());
        let is_new_job = id.is("batch", "Job") && apply.precondition == Precondition::Absent;
        match self.entry(id).and_then(|entry| entry.newest_release) {
            Some(newest)
                if !is_new_job
                    && newest.hash == hash
                    && newest.source == Some(apply.source)
                    && newest.overlay == RolloutOverlayState::from(apply.variant.overlay) =>
            {
                newest.serial.max(1)
            }
            Some(newest) => wall.max(newest.serial + 1),
            None => wall,
        }
    }

    /// Returns why no seal can be checked or made; none where that can be done.
    pub(in crate::engine) fn release_key_blocker(&self) -> Option<Reason> {
        match &self.objects.proofs.unreadable_reason {
            _ if !self.objects.proofs.keys.is_empty() => None,
            Some(why) => Some(Reason::KeyUnavailable(why.clone())),
            None => Some(Reason::Reading(key_id())),
        }
    }

    /// Returns who created the incarnation of a Job that a write is for.
    fn job_creator(&self, id: &ObjectId, apply: &ApplyRequest) -> JobCreator {
        let is_trusted = || {
            let shown = self.entry(id).zip(self.live_object(id));
            shown.is_some_and(|(entry, live)| entry.is_created_by_rhumb(live))
        };
        if !id.is("batch", "Job") || apply.precondition == Precondition::Absent || is_trusted() {
            JobCreator::Rhumb
        } else {
            JobCreator::Others
        }
    }

    /// Returns the hash of the render that made up values of an object, for the seal of a write. A
    /// creation brings the values; later they are left alone, and only a seal says whose they are.
    /// So none is known of an object that an older version created, as its seals name no render.
    fn render_for_seal(&self, id: &ObjectId, apply: &ApplyRequest) -> Option<ContentHash> {
        if apply.precondition == Precondition::Absent {
            return apply.desired.generated.as_deref().map(GeneratedMark::render_hash);
        }
        self.live_object(id)?.sealed_render.as_deref().copied()
    }

    /// Seals what a write is to say.
    pub(in crate::engine) fn seal_decision(&self, id: &ObjectId, decision: Decision) -> Decision {
        let (Action::Apply(apply), Some(key)) = (&decision.action, self.objects.proofs.keys.last()) else {
            return decision;
        };
        let release = apply.release_annotation().release;
        let facts = SealedFacts {
            creator: self.job_creator(id, apply),
            render: self.render_for_seal(id, apply),
            ..SealedFacts::of_write(id, apply, self.next_serial(id, apply, release.hash))
        };
        let seal = key.seal(&self.sources.inventory_ids()[apply.source], id, &release, facts);
        Decision { action: Action::Apply(ApplyRequest { seal: Some(seal), ..apply.clone() }), ..decision }
    }
}
