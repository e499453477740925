//! Carries an action out and returns its result. `src/daemon/contents.rs` makes the body, and
//! `src/cluster/write.rs` sends it.
//!
//! Decides nothing about objects. It adapts the precondition of a write to the version that it
//! read. Two writes of its own may precede the apply, and one its repetition after a refusal:
//! `reclaim`, `take_rolling_update_ownership` and `take_replacing_members_ownership`. After the
//! first, which reclaims fields of kubectl, the precondition is the uid alone. After another one it
//! is that write's version.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::contents::{self, ContentStore};
use super::drift::{self, ComparedObject, ComparisonRequest};
use super::loop_event::{LookupFailure, LoopEvent};
use crate::change;
use crate::cluster::{
    self, AccessDenial, ApplyForce, Cluster, ClusterError, ClusterFault, DeleteResult, LiveLookup,
    ReclaimResult, RetryAdvice, ServedKind,
};
use crate::engine::{
    Action, ActionResult, ApplyPurpose, ApplyRequest, ApplyVariant, DeletionReason, DirectView, DryRunImpact,
    Precondition, RefusalRule, ResourceVersion, Uid, VersionBinding, WriteFailure, WriteResult,
};
use crate::object::{ObjectId, text_at, value_at};
use crate::report::Outcome;

/// The owner before, of an object that came at the same time as our creation. It is said where the
/// server merged the two.
const SIMULTANEOUS_CREATOR: &str = "another client, which created it at the same time";

/// The warning about a server that took a creation for a change.
const UNGUARDED_CREATION: &str = "another client created it at the same time, and this API server does not \
    heed that rhumb would only create it: the two are one object now";

/// An apply by what it turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompletedWrite {
    /// It created the object.
    Creation,
    /// It was to create the object, and the server merged it into one that was there.
    MergedCreation,
    /// It changed the object.
    Change,
}

impl CompletedWrite {
    fn of(precondition: &Precondition, created: bool) -> Self {
        match precondition {
            _ if created => Self::Creation,
            Precondition::Absent => Self::MergedCreation,
            Precondition::Uid(_) | Precondition::Exact(..) => Self::Change,
        }
    }

    /// Returns the outcome, with the drift that was put back and the owner before.
    fn outcome(self, drift: Option<String>, owner: Option<Arc<str>>) -> Outcome {
        match (self, drift) {
            (Self::Creation, _) => Outcome::Created,
            (Self::MergedCreation, _) => Outcome::Adopted(SIMULTANEOUS_CREATOR.into()),
            (Self::Change, Some(drift)) => Outcome::Repaired(drift.into()),
            (Self::Change, None) => owner.map_or(Outcome::Configured, Outcome::Adopted),
        }
    }
}

/// The executor of actions. Cheap to clone.
#[derive(Clone)]
pub(super) struct ActionExecutor {
    pub(super) cluster: Cluster,
    pub(super) contents: ContentStore,
}

impl ActionExecutor {
    /// Applies a content. `owner` is from whom it is adopted.
    pub(super) async fn apply(
        self,
        kind: Arc<ServedKind>,
        id: ObjectId,
        apply: ApplyRequest,
        owner: Option<Arc<str>>,
    ) -> LoopEvent {
        let force = if apply.precondition == Precondition::Absent {
            ApplyForce::Unforced
        } else {
            ApplyForce::Forced
        };
        let (body, precondition) = match self.prepare(&kind, &id, &apply).await {
            Ok(prepared) => prepared,
            Err(failure) => {
                return LoopEvent::ActionDone(id, Action::Apply(apply), ActionResult::Failed(failure), None);
            }
        };
        // Before the apply, which takes over the managedFields entries that name the writer.
        let drifted = drift::read_drifted(&self.cluster, &kind, &id, &apply).await;
        let answer = self.cluster.apply(&kind, &id, &body, &precondition, force).await;
        let mut replaced = Vec::new();
        let answer = match answer {
            Err(refusal) if cluster::is_replaceable(&apply.desired, &refusal) => {
                match self.cluster.take_replacing_members_ownership(&kind, &id, &body, &precondition).await {
                    Ok(Some(members)) => {
                        replaced = members.replaced;
                        self.cluster.apply(&kind, &id, &body, &members.precondition, ApplyForce::Forced).await
                    }
                    Ok(None) => Err(refusal),
                    Err(error) => Err(error),
                }
            }
            answer => answer,
        };
        let (result, outcome) = match answer {
            Ok(applied) => {
                for warning in &applied.warnings {
                    tracing::warn!(object = %id, "the server warns: {warning}");
                }
                let drift = match drifted.filter(|_| !applied.created) {
                    Some(shown) => {
                        drift::describe_writers(&self.contents, &id, &apply, shown, replaced).await
                    }
                    None => None,
                };
                let write = CompletedWrite::of(&apply.precondition, applied.created);
                if write == CompletedWrite::MergedCreation {
                    tracing::warn!(object = %id, "{UNGUARDED_CREATION}");
                }
                let outcome = write.outcome(drift, owner);
                (ActionResult::Applied(WriteResult { live: applied.live }), Some(outcome))
            }
            Err(error) => (ActionResult::Failed(classify_failure(&error)), None),
        };
        LoopEvent::ActionDone(id, Action::Apply(apply), result, outcome)
    }

    /// Asks the server for the impact of a write on pods. The overlay is left out, as it only
    /// delays the pods.
    pub(super) async fn query_dry_run(
        self,
        kind: Arc<ServedKind>,
        id: ObjectId,
        apply: ApplyRequest,
    ) -> LoopEvent {
        let result = self.query_impact(&kind, &id, &apply).await;
        let result = result.map_or_else(ActionResult::Failed, ActionResult::DryRun);
        LoopEvent::ActionDone(id, Action::DryRun(apply), result, None)
    }

    async fn query_impact(
        &self,
        kind: &ServedKind,
        id: &ObjectId,
        apply: &ApplyRequest,
    ) -> Result<DryRunImpact, WriteFailure> {
        let before = self.cluster.get(kind, id).await.map_err(|error| classify_failure(&error))?;
        let before = before.ok_or(WriteFailure::Conflict(Duration::ZERO))?;
        let annotation = apply.release_annotation();
        let (contents, desired) = (self.contents.clone(), apply.desired.clone());
        let (variant, live) = (ApplyVariant { overlay: None, ..apply.variant }, before.clone());
        let body = run_blocking(move || contents.body_for_live(&desired, &annotation, variant, &live)).await;
        let (body, _) =
            body.map_err(|error| WriteFailure::Unknown(error.to_string().into(), Duration::ZERO))?;
        let uid = Uid(text_at(&before, &["metadata", "uid"]).into());
        let generation = value_at(&before, &["metadata", "generation"]).and_then(Value::as_i64).unwrap_or(0);
        let precondition = Precondition::Uid(uid.clone());
        let after =
            self.cluster.dry_run_replacing(kind, &apply.desired, &body, Some(&before), &precondition).await;
        let after = after.map_err(|error| classify_failure(&error))?.after;
        let impact = change::change_impact(&id.group_kind(), Some(&before), Some(&after));
        Ok(DryRunImpact { content: apply.desired.hash, uid, generation, impact })
    }

    /// Returns the content to send, and its precondition.
    async fn prepare(
        &self,
        kind: &ServedKind,
        id: &ObjectId,
        apply: &ApplyRequest,
    ) -> Result<(Value, Precondition), WriteFailure> {
        let unreadable =
            |error: contents::ContentError| WriteFailure::Unknown(error.to_string().into(), Duration::ZERO);
        if apply.desired.ignores.is_none() || apply.precondition == Precondition::Absent {
            let body = self.body(apply).await.map_err(unreadable)?;
            let precondition =
                self.reclaim(kind, id, apply).await.map_err(|error| classify_failure(&error))?;
            let precondition =
                self.cluster.take_rolling_update_ownership(kind, id, &body, precondition).await;
            return Ok((body, precondition.map_err(|error| classify_failure(&error))?));
        }
        // The owners are read after fields were taken over, as those would be reset.
        let precondition = self.reclaim(kind, id, apply).await.map_err(|error| classify_failure(&error))?;
        let live = self.cluster.get(kind, id).await.map_err(|error| classify_failure(&error))?;
        let Some(live) = live else { return Err(WriteFailure::Conflict(Duration::ZERO)) };
        let version = ResourceVersion::read(text_at(&live, &["metadata", "resourceVersion"]));
        let annotation = apply.release_annotation();
        let (contents, desired, variant) = (self.contents.clone(), apply.desired.clone(), apply.variant);
        let prepared =
            run_blocking(move || contents.body_for_live(&desired, &annotation, variant, &live)).await;
        let (body, binds) = prepared.map_err(unreadable)?;
        // A body repeated from one version would undo somebody's later change.
        let precondition = match (precondition, binds) {
            (Precondition::Uid(uid), VersionBinding::OneVersion) => Precondition::Exact(uid, version),
            (precondition, _) => precondition,
        };
        let precondition = self
            .cluster
            .take_rolling_update_ownership(kind, id, &body, precondition)
            .await
            .map_err(|error| classify_failure(&error))?;
        Ok((body, precondition))
    }

    /// Takes over the fields of an object that client-side `kubectl apply` may have made. Without
    /// that, a field that leaves the manifest would stay for ever. Returns the precondition of the
    /// write.
    async fn reclaim(
        &self,
        kind: &ServedKind,
        id: &ObjectId,
        apply: &ApplyRequest,
    ) -> Result<Precondition, ClusterError> {
        let Precondition::Exact(uid, _) = apply.precondition.clone() else {
            return Ok(apply.precondition.clone());
        };
        if apply.purpose != ApplyPurpose::Adopt {
            return Ok(apply.precondition.clone());
        }
        match self.cluster.reclaim(kind, id, &uid).await? {
            ReclaimResult::Nothing => Ok(apply.precondition.clone()),
            ReclaimResult::Taken => Ok(Precondition::Uid(uid)),
        }
    }

    async fn body(&self, apply: &ApplyRequest) -> Result<Value, contents::ContentError> {
        let annotation = apply.release_annotation();
        if self.contents.is_in_memory(&apply.desired) {
            return self.contents.body_without_live(&apply.desired, &annotation, apply.variant);
        }
        let (contents, desired, variant) = (self.contents.clone(), apply.desired.clone(), apply.variant);
        run_blocking(move || contents.body_without_live(&desired, &annotation, variant)).await
    }

    /// Deletes one incarnation in one version.
    pub(super) async fn delete(
        self,
        kind: Arc<ServedKind>,
        id: ObjectId,
        uid: Uid,
        rv: ResourceVersion,
        reason: DeletionReason,
    ) -> LoopEvent {
        let answer = self.cluster.delete(&kind, &id, &uid, rv).await;
        let (result, outcome) = match answer {
            Ok(DeleteResult::Gone | DeleteResult::Accepted) => {
                let outcome = match reason {
                    DeletionReason::Prune => Outcome::Pruned,
                    DeletionReason::Recreate => Outcome::Recreating,
                };
                (ActionResult::Deleted, Some(outcome))
            }
            Err(error) => (ActionResult::Failed(classify_failure(&error)), None),
        };
        LoopEvent::ActionDone(id, Action::Delete(uid, rv, reason), result, outcome)
    }

    /// Looks up whether objects of one kind and namespace exist.
    pub(super) async fn look_up(
        self,
        kind: Arc<ServedKind>,
        namespace: Option<String>,
        ids: Vec<ObjectId>,
    ) -> LoopEvent {
        let names: BTreeSet<String> = ids.iter().map(|id| id.name().to_owned()).collect();
        let answer = self.cluster.look_up(&kind, namespace.as_deref(), &names).await;
        let answers = ids.into_iter().map(|id| {
            let view = match &answer {
                Ok(found) => Ok(direct_view(found.get(id.name()))),
                Err(error) => Err(LookupFailure(error.reason().into())),
            };
            (id, view)
        });
        LoopEvent::LiveObjectsRead(answers.collect())
    }

    /// Compares contents with what the informers showed last.
    pub(super) async fn compare_cached(self, requests: Vec<ComparisonRequest>) -> LoopEvent {
        let compared = drift::compare_cached(&self.contents, requests).await;
        let answers = compared.into_iter().map(|ComparedObject { request, verified }| {
            (request.id, verified.map_err(|error| LookupFailure(error.to_string().into())))
        });
        LoopEvent::Compared(answers.collect())
    }

    /// Compares a content with a live read of its object.
    pub(super) async fn compare_live(self, kind: Arc<ServedKind>, request: ComparisonRequest) -> LoopEvent {
        let verified = drift::compare_live(&self.cluster, &self.contents, &kind, &request).await;
        LoopEvent::Compared(vec![(request.id, verified)])
    }
}

/// Returns the view that a lookup gives of an object. One without an answer is not there.
pub(super) fn direct_view(found: Option<&LiveLookup>) -> DirectView {
    match found {
        Some(LiveLookup::Found(live)) => DirectView::Found(live.clone()),
        Some(LiveLookup::Absent) | None => DirectView::Absent,
    }
}

/// Returns the meaning of an API server's error for the object. The wait is the server's; the
/// backoff is the queue's.
fn classify_failure(error: &ClusterError) -> WriteFailure {
    let text: Arc<str> = error.reason().into();
    let wait = error.retry_after().unwrap_or(Duration::ZERO);
    match (error.fault(), error.retry()) {
        (ClusterFault::FieldConflicts { .. } | ClusterFault::NoObject, _)
        | (_, RetryAdvice::AfterDecision) => WriteFailure::Conflict(wait),
        // Credentials that cannot be had now say nothing about the content.
        (ClusterFault::Config { .. }, _) => WriteFailure::Unknown(text, wait),
        (ClusterFault::Immutable { .. }, _) => WriteFailure::Refused(text, RefusalRule::Immutable, None),
        (ClusterFault::Denied { by: AccessDenial::Rbac | AccessDenial::Impersonation, .. }, _) => {
            WriteFailure::Refused(text, RefusalRule::Rights, Some(wait))
        }
        (ClusterFault::Webhook { .. }, _) => WriteFailure::Refused(text, RefusalRule::Webhook, Some(wait)),
        (_, RetryAdvice::Never) => WriteFailure::Refused(text, RefusalRule::Other, None),
        (_, RetryAdvice::LongBackoff) => WriteFailure::Refused(text, RefusalRule::Other, Some(wait)),
        (_, RetryAdvice::ShortBackoff) => WriteFailure::Unknown(text, wait),
    }
}

/// Runs a function that blocks on the disk. A panic in it is passed on.
pub(crate) async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Blocking work is cancelled only when the runtime ends, and with it whoever waits
            // here.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_creation_that_the_server_merged_into_another_object_is_reported_as_an_adoption() {
        let check = |precondition: &Precondition, created: bool, drift: Option<&str>, expected: &str| {
            let write = CompletedWrite::of(precondition, created);
            let outcome = write.outcome(drift.map(ToOwned::to_owned), Some("somebody".into()));
            assert_eq!(outcome.to_string(), expected, "{precondition:?} {created} {drift:?}");
        };
        let there = Precondition::Uid(Uid("u-1".into()));
        let merged = "configured: adopted from another client, which created it at the same time";
        check(&Precondition::Absent, true, None, "created");
        check(&Precondition::Absent, false, None, merged);
        check(&there, false, None, "configured: adopted from somebody");
        check(&there, false, Some("x changed"), "configured: x changed; put back");
    }
}
