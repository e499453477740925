//! The progress of one rollout, and the time that it may go without any.
//!
//! Newer pods are progress. A repair of the same content is none, or else whoever may write a
//! workload could keep its failing rollout, and its slot, for ever. So the part of the deadline
//! that a rollout has used up goes over to the one that takes its place with the same content.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::engine::decide::decision::{Action, ApplyPurpose};
use crate::engine::facts::entry::VerifiedOwnership;
use crate::engine::rollout::rollouts::Rollout;
use crate::engine::state::Engine;
use crate::engine::{FieldOwnership, LiveObject, ReplicaStatus};
use crate::object::{ContentHash, ObjectId};

/// The progress of a rollout, with its times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct ProgressTracking {
    /// The farthest that it has come: updated pods, and the available ones at that time.
    pub(in crate::engine) best_numbers: Option<(u32, u32)>,
    /// The most new pods that it has had at once, as its pods were last reported.
    most_new_pods: u32,
    /// The time of its last progress.
    last: Option<Instant>,
    /// The time without progress that was used up before, where the content was written again.
    elapsed: Duration,
    /// The time since which the cluster shows the write.
    shown_since: Option<Instant>,
    /// The time of its last evaluation.
    evaluated: Option<Instant>,
    /// The time since which its workload is deleted and not there again.
    missing_since: Option<Instant>,
}

/// Says whose pods a rollout is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum RolloutInitiator {
    /// Ours: its content is known, and another template is somebody else's.
    Claim,
    /// Somebody else's: another template begins it anew.
    Others,
}

impl ProgressTracking {
    /// Notes that the cluster shows the write.
    pub(in crate::engine) fn note_view(&mut self, now: Instant) {
        self.shown_since.get_or_insert(now);
        (self.evaluated, self.missing_since) = (Some(now), None);
    }

    /// Notes that its workload is deleted and not there again. Returns since when.
    pub(in crate::engine) fn note_missing(&mut self, now: Instant) -> Instant {
        *self.missing_since.get_or_insert(now)
    }

    /// Notes the numbers of its workload.
    pub(in crate::engine) fn note_numbers(
        &mut self,
        status: ReplicaStatus,
        initiator: RolloutInitiator,
        now: Instant,
    ) {
        let came = (status.updated, status.available);
        let best = self.best_numbers.unwrap_or_default();
        // It was scaled down: fewer pods than it had are all that there can be.
        let best = if best.0 > status.replicas.max(came.0) { came } else { best };
        let begins_anew = initiator == RolloutInitiator::Others && came.0 < best.0;
        // Pods that come and go are no progress.
        if self.best_numbers.is_none() || came > best || begins_anew {
            (self.best_numbers, self.last, self.elapsed) = (Some(came), Some(now), Duration::ZERO);
        } else {
            self.best_numbers = Some(best);
        }
    }

    /// Notes how many new pods there are. One more is progress, also where the workload's own
    /// status shows it later.
    pub(in crate::engine) fn note_pods(&mut self, count: u32) {
        if count > self.most_new_pods {
            (self.most_new_pods, self.last, self.elapsed) = (count, None, Duration::ZERO);
        }
    }

    /// Lets its deadline begin with the next evaluation.
    pub(in crate::engine) fn postpone(&mut self) {
        self.last = None;
    }

    /// Notes that it need not make any progress now. The whole deadline begins with the next
    /// evaluation at which it has to: the last one before may be long ago.
    pub(in crate::engine) fn suspend(&mut self) {
        (self.last, self.elapsed) = (None, Duration::ZERO);
    }

    /// Returns since when it makes no progress.
    pub(in crate::engine) fn start_progress_clock(&mut self, now: Instant) -> Instant {
        *self.last.get_or_insert(now.checked_sub(self.elapsed).unwrap_or(now))
    }

    /// Returns the time at which it fails without progress.
    ///
    /// A repair may have begun all pods anew, so they have the whole timeout. All repairs together
    /// make it no longer than twice the timeout.
    pub(in crate::engine) fn progress_deadline(
        &mut self,
        progress_timeout: Duration,
        now: Instant,
    ) -> Instant {
        let since = self.start_progress_clock(now);
        let shown = self.shown_since.unwrap_or(since);
        (since + progress_timeout).max((shown + progress_timeout).min(since + progress_timeout * 2))
    }

    /// Returns the progress of a rollout that goes on with the same content after another write.
    pub(in crate::engine) fn continuation(self) -> Self {
        let elapsed = self.last.zip(self.evaluated);
        let elapsed =
            elapsed.map_or(self.elapsed, |(last, evaluated)| evaluated.saturating_duration_since(last));
        Self {
            best_numbers: self.best_numbers,
            most_new_pods: self.most_new_pods,
            elapsed,
            ..Self::default()
        }
    }
}

impl Rollout {
    /// Returns whose pods it is about.
    pub(in crate::engine) fn initiator(&self) -> RolloutInitiator {
        if self.claim.is_some() { RolloutInitiator::Claim } else { RolloutInitiator::Others }
    }
}

/// The progress of a rollout whose workload is not seen at present, or is made again.
#[derive(Clone, Copy, Debug)]
struct InterruptedRollout {
    content: ContentHash,
    progress: ProgressTracking,
}

/// The rollouts whose workload is not seen at present.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct InterruptedRollouts {
    by_id: BTreeMap<ObjectId, InterruptedRollout>,
}

impl InterruptedRollouts {
    /// Forgets the progress of a rollout whose workload is gone.
    pub(in crate::engine) fn forget(&mut self, id: &ObjectId) {
        self.by_id.remove(id);
    }
}

impl Engine {
    /// Removes a rollout whose workload is not seen any more, and keeps its progress.
    pub(in crate::engine) fn interrupt_rollout(&mut self, id: &ObjectId) {
        let Some(rollout) = self.rollouts.in_flight.remove(id) else { return };
        self.rollouts.slot_requests.mark_stale();
        if let Some(content) = rollout.content().filter(|_| rollout.failed.is_none()) {
            let interrupted = InterruptedRollout { content, progress: rollout.progress };
            self.rollouts.interrupted.by_id.insert(id.clone(), interrupted);
        }
    }

    /// Lets a rollout go on from where the one before it was, where it is of the same content.
    pub(in crate::engine) fn resume_rollout(&mut self, id: &ObjectId, rollout: &mut Rollout) {
        let Some(before) = self.rollouts.interrupted.by_id.remove(id) else { return };
        if rollout.content() == Some(before.content) {
            rollout.progress = before.progress.continuation();
        }
    }

    /// Does the same for a write, which may take the place of a rollout.
    pub(in crate::engine) fn continue_rollout(
        &mut self,
        id: &ObjectId,
        action: &Action,
        rollout: &mut Rollout,
    ) {
        let purpose = match action {
            Action::Apply(apply) => apply.purpose,
            _ => return,
        };
        let Some(before) = &rollout.replaced else { return self.resume_rollout(id, rollout) };
        self.rollouts.interrupted.forget(id);
        let is_same = match purpose {
            ApplyPurpose::Repair => true,
            ApplyPurpose::Step | ApplyPurpose::Restart => false,
            _ => {
                let content = rollout.content();
                content.is_some() && content == before.content() && before.failed.is_none()
            }
        };
        if is_same {
            rollout.progress = before.progress.continuation();
        }
    }

    /// Returns whether a workload that we roll out shows what somebody else has made of it, as far
    /// as is known. Its pods say nothing of our content then.
    pub(in crate::engine) fn is_changed_by_others(
        &self,
        id: &ObjectId,
        rollout: &Rollout,
        live: &LiveObject,
    ) -> bool {
        let is_lost = |verified: &VerifiedOwnership| {
            matches!(verified.cover, FieldOwnership::Lost(_)) && verified.is_of_view(live)
        };
        let verified = self.entry(id).and_then(|entry| entry.verified.as_ref());
        rollout.initiator() == RolloutInitiator::Claim && verified.is_some_and(is_lost)
    }
}
