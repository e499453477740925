//! Reasons for machines: a code, and the values that the sentence is made of.

#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ObjectRef;
use super::reason_sentences::writers_text;
use super::rollout_sentences::holdings_text;
use crate::engine::{
    AllowViolation, BudgetScope, BudgetShortage, ChangeMilestone, DependencyState, FightCause, HeldStep,
    IncompleteCause, IncompleteSource, ManifestFault, ManifestOrigins, OrderObstacle, OrderOutcome,
    PauseSubject, PeerInterest, PossibleMove, PruneCause, Reason, ReasonCode, RefusalCause, RejectedUnit,
    RetryCause, RolloutFailureCause, StalledState, StepObstacle, StepRequirement, SurplusOutcome, WatchFault,
    WithheldCause,
};
use crate::object::{Gvk, ObjectId, truncate};

/// The maximum number of objects named.
const MAX_NAMED_OBJECTS: usize = 10;

/// The maximum number of bytes of others' words: the sentence has all of them.
const MAX_MESSAGE_BYTES: usize = 1000;

/// A reason for machines. The sentence is beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CodedReason {
    /// The code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The values of the sentence; none where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<ReasonDetails>>,
}

impl CodedReason {
    /// Returns the form of a reason.
    pub(crate) fn of(reason: &Reason) -> Self {
        let details = ReasonDetails::of(reason);
        let is_empty = details == ReasonDetails::default();
        Self { details: (!is_empty).then(|| Box::new(details)), ..Self::of_code(reason.code()) }
    }

    /// Returns the form of the cause for which a rollout failed.
    pub(crate) fn of_failure(cause: &RolloutFailureCause) -> Self {
        let details = Some(Box::new(ReasonDetails::of_failure(cause)));
        Self { details, ..Self::of_code(ReasonCode::RolloutFailed) }
    }

    /// Returns the form of the outcome of an order.
    pub(crate) fn of_order(outcome: &OrderOutcome) -> Self {
        let mut details =
            ReasonDetails { cause: Some(outcome.code().to_string()), ..ReasonDetails::default() };
        details.add_order(outcome);
        Self { details: Some(Box::new(details)), ..Self::of_code(ReasonCode::OrderAnswered) }
    }

    /// Returns the form of a reason of which nothing but the code is known.
    pub(crate) fn of_code(code: ReasonCode) -> Self {
        Self { code: Some(code.to_string()), details: None }
    }
}

/// The values of a sentence. Values that it does not have are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ReasonDetails {
    /// The code of the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The object that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
    /// The first of many objects that it is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectRef>,
    /// The kind, as `Deployment.apps`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The version of the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The versions of the kind that the server has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub served_versions: Vec<String>,
    /// The ConfigMap of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map: Option<String>,
    /// The source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The namespace whose bound it is, or that is not allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The wave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wave: Option<i32>,
    /// The step of the rollout, from 1; beyond the last, the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// The number of steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// The number of new pods that are ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<u32>,
    /// The number of ready pods that the step needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<u32>,
    /// The node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// The container of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The word of a kubelet or of a controller about the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_reason: Option<String>,
    /// The number of restarts of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u32>,
    /// The number in use of what is bounded; of a record, in kilobytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<u32>,
    /// The bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The pods that the object takes down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes_down: Option<u32>,
    /// The number of objects that would be deleted, or that are released together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// The number of all objects among which they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u32>,
    /// The owner of the object, its competing writer, or the holder of what is bounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// The revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The end of a hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The annotation that asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotation: Option<String>,
    /// The file, or the folder of a root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The other location of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The class of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_class: Option<String>,
    /// The time until the next try, in full seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u64>,
    /// The whole time that others are given, or that has passed, in full seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_seconds: Option<u64>,
    /// The words of the server, of a controller or of a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl ReasonDetails {
    /// Returns the values of a reason.
    pub(crate) fn of(reason: &Reason) -> Self {
        let mut details = Self { cause: reason.cause_code().map(|code| code.to_string()), ..Self::default() };
        details.add(reason);
        details
    }

    /// Returns the values of the cause for which a rollout failed.
    fn of_failure(cause: &RolloutFailureCause) -> Self {
        let mut details = Self { cause: Some(cause.code().to_string()), ..Self::default() };
        details.add_failure(cause);
        details
    }

    fn add_failure(&mut self, cause: &RolloutFailureCause) {
        match cause {
            RolloutFailureCause::Pods(failure) => {
                self.pod = failure.pod.as_deref().and_then(bound_message);
                self.container = failure.container.as_deref().and_then(bound_message);
                self.pod_reason = bound_message(&failure.reason);
                (self.restarts, self.message) = (failure.restarts, bound_message(&failure.message));
            }
            RolloutFailureCause::Status(message) => self.message = bound_message(message),
            RolloutFailureCause::RecreationRefused(cause) => self.message = refusal_message(cause),
            RolloutFailureCause::Stalled(stalled) => {
                self.period_seconds = Some(full_seconds(stalled.timeout));
                match &stalled.state {
                    StalledState::Step(step) => self.add_step(step),
                    StalledState::Health(health) => self.message = bound_message(&health.to_string()),
                }
                if let Some(pod) = &stalled.unready {
                    self.pod = bound_message(&pod.name);
                    let message = pod.message.as_deref().and_then(bound_message);
                    self.message = message.or_else(|| self.message.take());
                }
            }
            RolloutFailureCause::WorkloadMissing(time) => self.period_seconds = Some(full_seconds(*time)),
        }
    }

    fn add(&mut self, reason: &Reason) {
        match reason {
            Reason::Syncing(kind) => self.kind = Some(kind.to_string()),
            Reason::Unobservable(kind, fault, class) => {
                (self.kind, self.error_class) = (Some(kind.to_string()), Some(class.label().to_owned()));
                if let WatchFault::Message(message) = fault {
                    self.message = bound_message(message);
                }
            }
            Reason::Inventory(name) => self.config_map = Some(name.to_string()),
            Reason::Unserved(gvk, served) => {
                self.set_kind(gvk);
                self.served_versions = served.to_vec();
            }
            Reason::UnknownKind(gvk) => self.set_kind(gvk),
            Reason::Needs(id, state) => {
                (self.object, self.message) = (Some(ObjectRef::of(id)), dependency_message(state));
            }
            Reason::Wave(wave, id) => (self.wave, self.object) = (Some(*wave), Some(ObjectRef::of(id))),
            Reason::Budget(shortage) => self.add_shortage(shortage),
            Reason::UnitWorkload(id) | Reason::Generated(id) | Reason::Reading(id) => {
                self.object = Some(ObjectRef::of(id));
            }
            Reason::Step(step) => self.add_step(step),
            Reason::Rejected(rejected) => {
                self.revision = rejected.revision().map(str::to_owned);
                self.message = bound_message(&rejected.cause);
            }
            Reason::Paused(subject, why) => {
                if let PauseSubject::Source(name) = subject {
                    self.source = Some(name.to_string());
                }
                self.message = bound_message(why);
            }
            Reason::OnHold(hold) => {
                self.until = hold.until.map(|until| until.to_string());
                self.message = bound_message(&hold.reason);
            }
            Reason::Refused(cause, after) => {
                (self.message, self.retry_after_seconds) = (refusal_message(cause), after.map(full_seconds));
            }
            Reason::Owned(owner) => self.holder = bound_message(owner.name()),
            Reason::Oversized(unit) => {
                (self.object, self.count) = (Some(ObjectRef::of(&unit.workload)), Some(unit.objects));
                (self.used, self.limit) = (Some(unit.used), Some(unit.limit));
            }
            Reason::Retrying(cause, after) => self.add_retry(cause, *after),
            Reason::Fight(cause, after) => {
                if let FightCause::Changes(writers) = cause {
                    self.holder = bound_message(&writers_text(writers));
                }
                self.retry_after_seconds = Some(full_seconds(*after));
            }
            Reason::ReadingRevision(revision) => self.revision = bound_message(revision),
            Reason::RecordUnreadable(why) | Reason::KeyUnavailable(why) => self.message = bound_message(why),
            Reason::Incomplete(IncompleteSource::Incomplete(cause)) => self.add_incompleteness(cause),
            Reason::Incomplete(IncompleteSource::Unrendered(root)) => self.file = bound_message(&root.folder),
            Reason::Unusable(fault) => self.add_fault(fault),
            Reason::Prune(cause) | Reason::Confirm(cause) | Reason::Kept(cause) => {
                self.add_prune_cause(cause);
            }
            Reason::OptedOut(key) => self.annotation = Some((*key).to_owned()),
            Reason::Claiming
            | Reason::NotAdopted
            | Reason::Terminating
            | Reason::OwnWrite
            | Reason::LeftAlone(_)
            | Reason::ReadingPeers
            | Reason::Observed => {}
        }
    }

    fn add_order(&mut self, outcome: &OrderOutcome) {
        match outcome {
            OrderOutcome::Promoted(id, step) => {
                (self.object, self.step) = (Some(ObjectRef::of(id)), Some(*step));
            }
            OrderOutcome::Aborted(unit) => self.add_unit(unit),
            OrderOutcome::Undone(undone) => {
                self.add_unit(&undone.unit);
                self.objects = undone.kept.iter().take(MAX_NAMED_OBJECTS).map(ObjectRef::of).collect();
            }
            OrderOutcome::Retried { objects, cause } => {
                (self.count, self.message) = (Some(*objects), bound_message(cause));
            }
            OrderOutcome::Confirmed { first, others, .. } => {
                (self.object, self.count) = (Some(ObjectRef::of(first)), Some(others + 1));
            }
            OrderOutcome::NothingDone(obstacle) => self.add_obstacle(obstacle),
        }
    }

    fn add_unit(&mut self, unit: &RejectedUnit) {
        (self.object, self.count) = (Some(ObjectRef::of(&unit.object)), Some(unit.objects));
        self.revision = bound_message(unit.revision.short_name());
    }

    fn add_obstacle(&mut self, obstacle: &OrderObstacle) {
        match obstacle {
            OrderObstacle::ForeignObject(id, source) => {
                (self.object, self.source) = (Some(ObjectRef::of(id)), bound_message(source));
            }
            OrderObstacle::UnknownOrder(message) | OrderObstacle::UnavailableRevision(message) => {
                self.message = bound_message(message);
            }
            OrderObstacle::NoStep(id)
            | OrderObstacle::NoRollout(id)
            | OrderObstacle::NoRevision(id)
            | OrderObstacle::UnknownContent(id)
            | OrderObstacle::DesiredBefore(id, _)
            | OrderObstacle::NothingRejected(id) => self.object = Some(ObjectRef::of(id)),
            OrderObstacle::Lacking(id, revision)
            | OrderObstacle::Unchanged(id, revision)
            | OrderObstacle::Desired(id, revision) => {
                self.object = Some(ObjectRef::of(id));
                self.revision = bound_message(revision.short_name());
            }
            OrderObstacle::NothingPending(source) => self.source = bound_message(source),
            OrderObstacle::TooManyConfirmations(source, most) => {
                (self.source, self.limit) = (bound_message(source), Some(*most));
            }
        }
    }

    fn add_fault(&mut self, fault: &ManifestFault) {
        match fault {
            ManifestFault::Finding(message) => self.message = bound_message(message),
            ManifestFault::UnreadableFile(file) => self.file = bound_message(file),
            ManifestFault::UnrenderedFolder => {}
            ManifestFault::Repeated(places) | ManifestFault::Outranked(places) => self.set_place(places),
            ManifestFault::Contested(places, refused) => {
                self.set_place(places);
                self.message = refused.as_ref().and_then(refusal_message);
            }
            ManifestFault::HadByOther { object, owner } => {
                (self.object, self.holder) = (Some(ObjectRef::of(object)), bound_message(owner));
            }
            ManifestFault::Cycle { first, .. } => {
                self.objects = first.iter().map(ObjectRef::of).collect();
            }
            ManifestFault::LaterWave { after, theirs, .. } => {
                (self.object, self.wave) = (Some(ObjectRef::of(after)), Some(*theirs));
            }
        }
    }

    fn add_incompleteness(&mut self, cause: &IncompleteCause) {
        match cause {
            IncompleteCause::Unread => {}
            IncompleteCause::UnreadableFile(file) => self.file = bound_message(file),
            IncompleteCause::Message(message) => self.message = bound_message(message),
        }
    }

    fn set_place(&mut self, places: &ManifestOrigins) {
        self.file = places.first.first().and_then(|origin| bound_message(&origin.file));
    }

    fn add_retry(&mut self, cause: &RetryCause, after: Duration) {
        self.retry_after_seconds = Some(full_seconds(after));
        match cause {
            RetryCause::Conflict => {}
            RetryCause::LedgerFull { workload, used, limit } => {
                self.object = Some(ObjectRef::of(workload));
                (self.used, self.limit) = (Some(*used), Some(*limit));
            }
            RetryCause::Message(why) => self.message = bound_message(why),
        }
    }

    fn set_kind(&mut self, gvk: &Gvk) {
        self.kind = Some(gvk.group_kind().to_string());
        self.version = Some(gvk.version.to_string());
    }

    fn set_scope(&mut self, scope: &BudgetScope) {
        match scope {
            BudgetScope::Cluster => {}
            BudgetScope::Source(_, name) => self.source = Some(name.to_string()),
            BudgetScope::Namespace(name) => self.namespace = Some(name.to_string()),
        }
    }

    fn add_shortage(&mut self, shortage: &BudgetShortage) {
        let first_of =
            |ids: &[ObjectId]| ids.iter().take(MAX_NAMED_OBJECTS).map(ObjectRef::of).collect::<Vec<_>>();
        match shortage {
            BudgetShortage::Workloads(scope, most, rolling) => {
                self.set_scope(scope);
                // Claims that cannot be read name none.
                let used = (rolling.len() as u32).max(*most);
                (self.used, self.limit, self.objects) = (Some(used), Some(*most), first_of(rolling));
            }
            BudgetShortage::SlowStart(most, rolling) => {
                let used = rolling.len() as u32;
                (self.used, self.limit, self.objects) = (Some(used), Some(*most), first_of(rolling));
            }
            BudgetShortage::Pods(scope, cost, away, most) => {
                self.set_scope(scope);
                (self.used, self.limit, self.takes_down) = (Some(*away), Some(*most), Some(*cost));
            }
            BudgetShortage::TooMany(scope, cost, most) => {
                self.set_scope(scope);
                (self.limit, self.takes_down) = (Some(*most), Some(*cost));
            }
            BudgetShortage::Starts(scope, most) => {
                self.set_scope(scope);
                (self.used, self.limit) = (Some(*most), Some(*most));
            }
            BudgetShortage::Behind(first) => self.object = Some(ObjectRef::of(first)),
            BudgetShortage::Hidden(short, claimed, why) => {
                self.add_shortage(short);
                (self.object, self.message) = (Some(ObjectRef::of(claimed)), bound_message(why));
            }
            BudgetShortage::Shared(short, holdings) => {
                self.add_shortage(short);
                self.holder = bound_message(&holdings_text(holdings));
            }
            BudgetShortage::Recovering(seconds) => self.period_seconds = Some(*seconds),
        }
    }

    fn add_step(&mut self, step: &HeldStep) {
        match step {
            HeldStep::Pods(wait, why) => {
                (self.step, self.steps) = (Some(wait.step), Some(wait.of));
                if let StepRequirement::Pods { ready, target } = wait.lacks {
                    (self.ready, self.target) = (Some(ready), Some(target));
                }
                if let Some(obstacle) = why {
                    self.add_step_obstacle(obstacle);
                }
            }
            HeldStep::LostNode(node) => self.node = Some(node.to_string()),
            HeldStep::Surplus(SurplusOutcome::Kept(why)) => self.message = bound_message(why),
            HeldStep::Surplus(SurplusOutcome::Removed) => {}
        }
    }

    fn add_step_obstacle(&mut self, obstacle: &StepObstacle) {
        match obstacle {
            StepObstacle::Reason(reason) => self.message = bound_message(&reason.to_string()),
            StepObstacle::EvictionRefused { pod, node, message } => {
                (self.pod, self.node) = (bound_message(pod), bound_message(node));
                self.message = bound_message(message);
            }
            StepObstacle::EvictionDenied(message) | StepObstacle::UnreadableNodes(message) => {
                self.message = bound_message(message);
            }
            StepObstacle::UnlistedNodes => {}
        }
    }

    fn add_prune_cause(&mut self, cause: &PruneCause) {
        match cause {
            PruneCause::UsedByKept(id) | PruneCause::UsedBy(id) | PruneCause::UnreadContent(id) => {
                self.object = Some(ObjectRef::of(id));
            }
            PruneCause::NotAllowed(object) => {
                (self.step, self.message) = (object.step, bound_message(&object.violation.to_string()));
                self.add_violation(&object.violation);
            }
            PruneCause::Unrendered(root) => self.file = bound_message(&root.folder),
            PruneCause::Incomplete(cause) => self.add_incompleteness(cause),
            PruneCause::UncheckedSeals(why) => self.message = bound_message(why),
            PruneCause::WithheldForNow(cause) | PruneCause::Withheld(cause) => self.add_withheld(cause),
            PruneCause::OtherLocation(location) => self.location = bound_message(location),
            PruneCause::BlastRadius { count, total } => {
                (self.count, self.total) = (Some(*count), Some(*total));
            }
            PruneCause::AllOfKind(kind, all) => {
                (self.kind, self.count, self.total) = (Some(kind.to_string()), Some(*all), Some(*all));
            }
            PruneCause::Unfinished(id, milestone) => {
                self.object = Some(ObjectRef::of(id));
                if let ChangeMilestone::Healthy(health) = milestone {
                    self.message = bound_message(&health.to_string());
                }
            }
            PruneCause::UnobservedSource(name) => self.source = Some(name.to_string()),
            PruneCause::UnscopedFile(file, kind) => {
                (self.file, self.kind) = (bound_message(file), Some(kind.to_string()));
            }
            PruneCause::UnrecordedRevision(revision) => self.revision = bound_message(revision),
            PruneCause::UnlistedKind(kind) | PruneCause::UnrenderedKind(kind) => {
                self.kind = Some(kind.to_string());
            }
            PruneCause::TakeoverPeriod(seconds) => self.period_seconds = Some(*seconds),
            PruneCause::Annotated
            | PruneCause::Unproven
            | PruneCause::DataLoss(_)
            | PruneCause::ConfirmationRequested
            | PruneCause::UnknownKept
            | PruneCause::PolicyOff
            | PruneCause::NotInFiles
            | PruneCause::UnreadKey
            | PruneCause::UnreadInventory
            | PruneCause::UnsearchedFolders
            | PruneCause::Undecided => {}
        }
    }

    fn add_violation(&mut self, violation: &AllowViolation) {
        match violation {
            AllowViolation::Namespace(name)
            | AllowViolation::NamespaceItself(name)
            | AllowViolation::Records(name) => self.namespace = bound_message(name),
            AllowViolation::Kind(kind) | AllowViolation::ClusterScoped(kind) => {
                self.kind = Some(kind.to_string());
            }
            AllowViolation::Outer(inner) => self.add_violation(inner),
        }
    }

    fn add_withheld(&mut self, cause: &WithheldCause) {
        self.source = cause.source().map(str::to_owned);
        match cause {
            WithheldCause::Moved(PossibleMove::Named(file)) => self.file = bound_message(file),
            WithheldCause::Moved(PossibleMove::Unreadable(why))
            | WithheldCause::Peer(_, PeerInterest::Unreadable(why)) => self.message = bound_message(why),
            WithheldCause::Peer(_, PeerInterest::Elsewhere(revision)) => {
                self.revision = bound_message(revision);
            }
            WithheldCause::Peer(..) => {}
        }
    }
}

/// Returns the words of others about the state of a needed object.
fn dependency_message(state: &DependencyState) -> Option<String> {
    match state {
        DependencyState::Unhealthy(health) => bound_message(&health.to_string()),
        DependencyState::Refused(cause) => refusal_message(cause),
        DependencyState::Unusable(fault) => bound_message(&fault.to_string()),
        DependencyState::Missing
        | DependencyState::Unnamed
        | DependencyState::Deleting
        | DependencyState::Unchanged
        | DependencyState::RollingOut
        | DependencyState::Soaking
        | DependencyState::RollingBack
        | DependencyState::Contested
        | DependencyState::Paused => None,
    }
}

/// Returns the words of the API server about a refusal.
fn refusal_message(cause: &RefusalCause) -> Option<String> {
    cause.message().and_then(bound_message)
}

/// Returns as much of a text as is shown; none where it is empty.
fn bound_message(text: &str) -> Option<String> {
    Some(truncate(text, MAX_MESSAGE_BYTES).to_owned()).filter(|text| !text.is_empty())
}

fn full_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
