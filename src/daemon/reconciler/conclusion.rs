//! The end of one pass, and its summary.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::time::Instant;

use super::super::pass_result::{PassEnding, PassResult};
use super::{Reconciler, RunMode};
use crate::engine::{DesiredState, PruneDecision, Reason, ReconcilePolicy, SourceState, View};
use crate::health::HealthStatus;
use crate::object::{ErrorClass, Gvk, ManifestOrigin, ObjectId};
use crate::queue::WorkQueue;
use crate::report::Outcome;

/// The reasons of one moment, of which some pass by themselves.
struct TransientReasons<'a> {
    engine: View<'a>,
    queue: &'a WorkQueue<ObjectId>,
    reasons: &'a BTreeMap<ObjectId, Reason>,
    until: RunMode,
    /// Indicates whether any object is being made or is not healthy yet: all are asked, so only
    /// once.
    is_anything_working: OnceCell<bool>,
}

impl TransientReasons<'_> {
    /// Returns whether a reason passes by itself soon; `depth` bounds chains of objects that wait
    /// for each other.
    fn is_transient(&self, id: &ObjectId, reason: &Reason, depth: u8) -> bool {
        let works = |id: &ObjectId| self.is_progressing(id, depth);
        match reason {
            Reason::Syncing(_)
            | Reason::Inventory(_)
            | Reason::OwnWrite
            | Reason::Claiming
            | Reason::ReadingRevision(_)
            | Reason::Reading(_)
            | Reason::ReadingPeers
            | Reason::Terminating => true,
            Reason::Retrying(..) => self.queue.failures(id) <= MAX_FAILURES_IN_PASS,
            Reason::Needs(need, _) | Reason::Wave(_, need) => works(need),
            // A pass that waits for health waits in the queue too.
            Reason::Budget(short) if matches!(self.until, RunMode::UntilHealthy(_)) => short.is_temporary(),
            Reason::Budget(_) => {
                self.engine.is_any_in_progress() || self.engine.next_due(Instant::now()).is_some()
            }
            Reason::Step(_) => self.engine.is_stepping(id, Instant::now()),
            Reason::UnitWorkload(id) => works(id),
            Reason::Unserved(gvk, others) => {
                // Discovery lists a new kind some moments after its definition is established.
                let is_established =
                    |crd| self.engine.live_object(crd).is_some_and(|live| live.health.is_current());
                let arrives = |crd| works(crd) || (!self.reasons.contains_key(crd) && is_established(crd));
                others.is_empty() && self.engine.definitions_of(&gvk.group_kind()).any(arrives)
            }
            Reason::Unobservable(_, _, class) => *class == ErrorClass::Transient,
            Reason::Prune(_) => self.is_prune_progressing(id),
            Reason::UnknownKind(_)
            | Reason::Refused(..)
            | Reason::Owned(_)
            | Reason::NotAdopted
            | Reason::Unusable(_)
            | Reason::Oversized(_)
            | Reason::Rejected(_)
            | Reason::Generated(_)
            | Reason::Paused(..)
            | Reason::OnHold(_)
            | Reason::Fight(..)
            | Reason::KeyUnavailable(_)
            | Reason::RecordUnreadable(_)
            | Reason::Incomplete(_)
            | Reason::Confirm(_)
            | Reason::Kept(_)
            | Reason::LeftAlone(_)
            | Reason::OptedOut(_)
            | Reason::Observed => false,
        }
    }

    /// Returns whether an object is on its way to what is wanted.
    fn is_progressing(&self, id: &ObjectId, depth: u8) -> bool {
        if let Some(reason) = self.reasons.get(id) {
            return depth > 0 && self.is_transient(id, reason, depth - 1);
        }
        match self.engine.live_object(id) {
            Some(_) if self.engine.is_in_progress(id) => true,
            Some(live) => matches!(live.health.status, HealthStatus::InProgress | HealthStatus::Unknown),
            None => self.engine.entry(id).is_some(),
        }
    }

    fn is_prune_progressing(&self, id: &ObjectId) -> bool {
        let source = self.engine.informer_object(id).and_then(|live| self.engine.source_of(live));
        let decision = source.and_then(|source| self.engine.prune_decision_of(source, id));
        // The order of deletions follows from contents that are read again first.
        let recalls = || !self.engine.unread_contents().is_empty();
        match decision {
            Some(PruneDecision::Delete) => true,
            Some(PruneDecision::Defer(_)) => self.is_anything_working() || recalls(),
            _ => false,
        }
    }

    fn is_anything_working(&self) -> bool {
        let engine = self.engine;
        let works =
            |id| engine.live_object(id).is_some_and(|live| live.health.status == HealthStatus::InProgress);
        let is_working = || engine.is_any_in_progress() || engine.informer_objects().any(|(id, _)| works(id));
        *self.is_anything_working.get_or_init(is_working)
    }
}

impl Reconciler {
    /// Returns whether something is left that passes by itself.
    pub(in crate::daemon) fn has_transient_reasons(&self) -> bool {
        let reasons = TransientReasons {
            engine: self.engine.view(),
            queue: &self.queue,
            reasons: &self.objects.reasons,
            until: self.run_mode,
            is_anything_working: OnceCell::new(),
        };
        self.objects.reasons.iter().any(|(id, reason)| reasons.is_transient(id, reason, 8))
    }

    /// Returns the result of a pass that ended like this.
    pub(in crate::daemon) fn pass_result(&self, ending: PassEnding) -> PassResult {
        let mut outcomes = self.objects.outcomes.clone();
        for (id, reason) in &self.objects.reasons {
            let word = if reason.is_refusal() {
                Outcome::Refused(reason.clone())
            } else {
                Outcome::Waiting(reason.clone())
            };
            outcomes.insert(id.clone(), word);
        }
        let sources = self.engine.view().sources();
        let incomplete = sources.iter().filter_map(|source| {
            Some((source.declared.name.to_string(), source.incomplete_reason.as_ref()?.to_string()))
        });
        let held = self.engine.view().held_steps(Instant::now()).into_iter();
        PassResult {
            ending,
            unhealthy: self.unhealthy_objects(),
            held: held.map(|(id, step)| (id, step.to_string())).collect(),
            stepped: self.engine.view().stepped_workloads(),
            diagnostics: sources.iter().flat_map(SourceState::diagnostics).collect(),
            incomplete: incomplete.collect(),
            left: self.remaining_by_source(),
            notes: self
                .engine
                .view()
                .source_ids()
                .flat_map(|source| {
                    self.engine
                        .view()
                        .inventory_notes(source)
                        .map(|note| note.to_string())
                        .chain(self.records.orders[source].notes().cloned())
                })
                .collect(),
            revision: sources
                .first()
                .and_then(|s| s.head.as_ref())
                .map(ToString::to_string)
                .unwrap_or_default(),
            origins: self.object_origins(&outcomes),
            outcomes,
            undiscovered: self.watches.kinds.discovery_error().cloned(),
            readable: sources.iter().any(|source| source.head.is_some()),
        }
    }

    fn object_origins(
        &self,
        outcomes: &BTreeMap<ObjectId, Outcome>,
    ) -> BTreeMap<ObjectId, (Gvk, Option<ManifestOrigin>)> {
        let origin =
            |id: &ObjectId| match self.engine.view().entry(id).and_then(|entry| entry.targets.first()) {
                Some((_, DesiredState::Object(desired))) => {
                    Some((desired.gvk.clone(), Some(desired.origin.clone())))
                }
                Some((_, DesiredState::Unusable(unusable))) => {
                    Some((unusable.gvk.clone(), Some(unusable.origin.clone())))
                }
                None => {
                    let kind = self.version(&id.group_kind());
                    let live = self.engine.view().informer_object(id).map(|live| live.gvk.clone());
                    Some((live.or(kind)?, None))
                }
            };
        outcomes.keys().filter_map(|id| Some((id.clone(), origin(id)?))).collect()
    }

    /// Returns whether all is healthy; logs what is not, each time that its health changes.
    pub(super) fn log_health_changes(&mut self) -> bool {
        let sick = self.unhealthy_objects();
        let known = std::mem::replace(&mut self.objects.unhealthy, sick.clone());
        for (id, health) in sick.into_iter().filter(|(id, health)| known.get(id) != Some(health)) {
            self.record_outcome(&id, Outcome::Unhealthy(health));
        }
        self.objects.unhealthy.is_empty()
    }

    /// Returns the desired objects that are not healthy.
    pub(in crate::daemon) fn unhealthy_objects(&self) -> BTreeMap<ObjectId, String> {
        let wanted = self.engine.view().entries().filter(|(_, entry)| entry.target_content().is_some());
        let sick = wanted.filter_map(|(id, entry)| {
            let reason = self.objects.reasons.get(id);
            // Its manifest asks to leave it alone. An annotation that somebody put on the live
            // object is no word about its health.
            if matches!(reason, Some(Reason::LeftAlone(ReconcilePolicy::Disabled))) {
                return None;
            }
            let left_alone = match reason {
                Some(reason @ Reason::OptedOut(_)) => format!("; left alone by annotation: {reason}"),
                _ => String::new(),
            };
            // An object that was just written is not as healthy as the view before it.
            let written = entry.unreleased_content().is_none();
            let live = if written {
                self.engine.view().live_object(id)
            } else {
                self.engine.view().informer_object(id)
            }?;
            let words = || match &*live.health.message {
                "" => format!("{}{left_alone}", live.health.status),
                message => format!("{}: {message}{left_alone}", live.health.status),
            };
            (!live.health.is_current()).then(|| (id.clone(), words()))
        });
        sick.collect()
    }
}

/// The failures in a row after which a pass no longer waits for an object.
const MAX_FAILURES_IN_PASS: u32 = 5;
