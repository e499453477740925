//! The events of rollouts: that one began, succeeded or failed, for the log, Events and
//! notifications.
//!
//! **Invariant:** what is reported here changes no decision.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::engine::facts::entry::SourceId;
use crate::engine::rollout::failure_cause::RolloutFailureCause;
use crate::engine::rollout::rollouts::Rollout;
use crate::engine::state::Engine;
use crate::engine::{Authorship, ReplacementContent, Uid};
use crate::object::{ContentHash, ObjectId, Revision};

/// The maximum number of events that wait: in a single pass nobody takes them, and more are only
/// logged.
const MAX_PENDING_ROLLOUT_EVENTS: usize = 1024;

/// An event of one rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RolloutEvent {
    /// The workload.
    pub id: ObjectId,
    /// Its source.
    pub source: SourceId,
    /// The content of the rollout, with the data that its pods were started with where they count.
    pub content: ContentHash,
    /// The kind of the event.
    pub kind: RolloutEventKind,
    /// The reason for a rollback, in words. None where the rollout is not one of the rollback target.
    pub rollback_cause: Option<Arc<str>>,
}

/// The kind of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum RolloutEventKind {
    /// It was written, and its pods are being replaced.
    Started,
    /// It has been complete for the soak.
    Succeeded,
    /// It failed, for this cause.
    Failed(RolloutFailureCause),
}

/// The events of rollouts that were not reported yet.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct UnreportedEvents {
    /// The events, in their order.
    events: Vec<RolloutEvent>,
    /// Workloads whose rollout has failed, and whose Events have not been asked for.
    newly_failed: BTreeMap<ObjectId, Vec<Uid>>,
}

impl UnreportedEvents {
    /// Records that a rollout has failed, with the objects whose Events say more.
    pub(in crate::engine) fn add_failed(&mut self, id: &ObjectId, event_subjects: Vec<Uid>) {
        self.newly_failed.insert(id.clone(), event_subjects);
    }

    /// Takes the workloads whose rollout has just failed, each with the objects whose Events say
    /// more.
    pub(in crate::engine) fn take_failed(&mut self) -> BTreeMap<ObjectId, Vec<Uid>> {
        std::mem::take(&mut self.newly_failed)
    }
}

#[cfg(test)]
impl UnreportedEvents {
    /// Returns the workloads whose rollout has just failed.
    pub(in crate::engine) fn newly_failed(&self) -> &BTreeMap<ObjectId, Vec<Uid>> {
        &self.newly_failed
    }
}

impl Engine {
    /// Takes the events since the last time, in their order.
    pub(in crate::engine) fn take_rollout_events(&mut self) -> Vec<RolloutEvent> {
        std::mem::take(&mut self.rollouts.unreported.events)
    }

    /// Notes an event of a rollout that was claimed for a source of ours: what others began, they
    /// report themselves.
    pub(in crate::engine) fn note_rollout_event(
        &mut self,
        id: &ObjectId,
        rollout: &Rollout,
        kind: RolloutEventKind,
    ) {
        let Some(claim) = &rollout.claim else { return };
        let Some(source) = self.source_of_inventory_id(&claim.inventory_id) else {
            return;
        };
        let content = claim.rollout_key;
        let rollback_cause = self.rollback_cause(id, content, &kind);
        let event = RolloutEvent { id: id.clone(), source, content, kind, rollback_cause };
        if self.rollouts.unreported.events.len() < MAX_PENDING_ROLLOUT_EVENTS {
            self.rollouts.unreported.events.push(event);
        }
    }

    /// Returns the reason for a rollback, where an event is one of it.
    ///
    /// A rejection can be known while the rejected content still rolls out, as a sibling of its unit
    /// failed first. So the begin is judged by the written content, the end by the live object.
    fn rollback_cause(
        &self,
        id: &ObjectId,
        written: ContentHash,
        kind: &RolloutEventKind,
    ) -> Option<Arc<str>> {
        let rejection =
            self.entry(id)?.rejection.as_deref().filter(|rejection| !rejection.is_newest_content)?;
        let ReplacementContent::Read(target, _) = &rejection.replacement else { return None };
        let is_of_target = match kind {
            RolloutEventKind::Started => written == target.hash,
            RolloutEventKind::Succeeded | RolloutEventKind::Failed(_) => self.is_showing(id, target.hash),
        };
        is_of_target.then(|| rejection.cause.clone())
    }

    /// Returns who made a revision of a source, as far as that is known.
    pub(in crate::engine) fn author(&self, source: SourceId, revision: &Revision) -> Option<&Authorship> {
        let pending_author = self.sources[source].authors.iter().find(|(known, _)| known == revision);
        let recorded =
            || self.rollouts.ledger.latest()?.author(&self.sources.inventory_ids()[source], revision);
        pending_author.map(|(_, authored)| authored).or_else(recorded)
    }
}
