//! The tasks that carry decisions out, and their outcomes.
//!
//! `turn_executor.rs` spawns them. The answer comes back as `LoopEvent::ActionDone`.
//! `finish_action` hands it over as `Input::Answered`, which changes the entry.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::drift::ComparisonRequest;
use super::super::executor::Executor;
use super::super::loop_event::LoopEvent;
use super::Reconciler;
use crate::cluster::{Cluster, ServiceAccount};
use crate::engine::{
    Action, ActionResult, ApplyPurpose, ApplyRequest, DeletionReason, Input, OWN_INFORMER_GROUP, PrunePolicy,
    Reason, RefusalRule, SourceId, WriteFailure,
};
use crate::object::{GroupKind, ObjectId};
use crate::queue::WorkQueue;
use crate::report::Outcome;

/// The delay after another client wrote first, for the first conflicts in a row: the next view is
/// on its way.
const SHORT_CONFLICT_DELAY: Duration = Duration::from_secs(1);

/// The maximum number of conflicts in a row after which an object is decided on as soon as the
/// newer view is here. While a workload rolls out, its status alone makes every view old within
/// moments.
const MAX_IMMEDIATE_CONFLICTS: u32 = 3;

/// The maximum number of conflicts in a row with the short delay. More of them are no race any
/// more.
const MAX_SHORT_CONFLICTS: u32 = 8;

/// The delay after more conflicts in a row than that.
const LONG_CONFLICT_DELAY: Duration = Duration::from_secs(15);

/// The least delay before a write is tried again that the user is not allowed. One of these objects
/// notices a role that is granted within it, and the others follow at once.
const DENIED_RETRY_DELAY: Duration = Duration::from_secs(15);

/// The delay for each denied object, where all of them together give a longer one.
const DENIED_DELAY_PER_OBJECT: Duration = Duration::from_millis(50);

/// Returns the metric label of an action.
fn action_label(action: &Action) -> &'static str {
    match action {
        Action::DryRun(_) => "dry-run",
        Action::Apply(apply) => match apply.purpose {
            ApplyPurpose::Create => "create",
            ApplyPurpose::Change => "change",
            ApplyPurpose::Repair => "repair",
            ApplyPurpose::Adopt => "adopt",
            ApplyPurpose::Transfer => "transfer",
            ApplyPurpose::Step => "step",
            ApplyPurpose::Restart => "restart",
        },
        Action::Delete(_, _, DeletionReason::Prune) => "prune",
        Action::Delete(_, _, DeletionReason::Recreate) => "recreate",
        _ => "other",
    }
}

/// Returns whether a reason stands until the answer to an action is there. A content that the
/// server has not taken is not in force because it is sent again.
fn is_kept_during(reason: &Reason, action: &Action) -> bool {
    let is_try = !matches!(action, Action::Nothing | Action::Forget | Action::Delete(..));
    is_try && matches!(reason, Reason::Refused(..) | Reason::Retrying(..))
}

/// The kind, namespace and account that are looked up together.
type LookupGroup = (GroupKind, Option<String>, Option<ServiceAccount>);

/// Questions that are asked together.
#[derive(Default)]
pub(super) struct LookupBatch {
    pub(super) lookups: Vec<ObjectId>,
    pub(super) comparisons: Vec<ComparisonRequest>,
}

impl Reconciler {
    /// Returns the cluster as the source sees it that an object is of.
    pub(super) fn cluster_for(&self, id: &ObjectId) -> &Cluster {
        self.cluster_for_source(self.engine.view().acting_source(id))
    }

    /// Returns the cluster as a source sees it; as rhumb itself does, where there is none.
    pub(super) fn cluster_for_source(&self, source: Option<SourceId>) -> &Cluster {
        let informer_group = source
            .map_or(OWN_INFORMER_GROUP, |source| self.engine.view().source(source).declared.informer_group);
        self.watches.kinds.cluster_for_informer_group(informer_group)
    }

    /// Returns the executor for an object.
    pub(super) fn executor_for(&self, id: &ObjectId) -> Executor {
        self.executor_of(self.engine.view().acting_source(id))
    }

    /// Returns the executor for the objects of a source.
    pub(super) fn executor_of(&self, source: Option<SourceId>) -> Executor {
        Executor {
            cluster: self.cluster_for_source(source).clone(),
            contents: self.executor.contents.clone(),
        }
    }

    pub(super) fn kind_of(&self, id: &ObjectId) -> Option<Arc<crate::cluster::ServedKind>> {
        let wanted = self
            .engine
            .view()
            .entry(id)
            .and_then(|entry| entry.target_content())
            .map(|(_, desired)| desired.gvk.clone());
        wanted
            .and_then(|gvk| self.watches.kinds.served_kind_of_version(&gvk))
            .or_else(|| self.watches.kinds.kind(&id.group_kind()))
    }

    pub(super) fn spawn(&mut self, task: impl Future<Output = LoopEvent> + Send + 'static) {
        self.events.spawn(task);
    }

    /// Does the same as [`Self::spawn`], for writes that do not count in the window: a stop waits
    /// for their answers.
    pub(super) fn spawn_write(&mut self, task: impl Future<Output = LoopEvent> + Send + 'static) {
        let in_flight_guard = self.writes.uncounted_write();
        self.spawn(async move {
            let event = task.await;
            // Before the loop gets the event and counts the writes in flight.
            drop(in_flight_guard);
            event
        });
    }

    pub(super) fn send_batch(&mut self, batch: LookupBatch) {
        if !batch.comparisons.is_empty() {
            self.spawn(self.executor.clone().compare_cached(batch.comparisons));
        }
        let mut groups: HashMap<LookupGroup, Vec<ObjectId>> = HashMap::new();
        for id in batch.lookups {
            let account = self.cluster_for(&id).account().cloned();
            let group = (id.group_kind(), id.namespace().map(str::to_owned), account);
            groups.entry(group).or_default().push(id);
        }
        for ((_, namespace, account), ids) in groups {
            let cluster = self.executor.cluster.with_account(account);
            let executor = Executor { cluster, contents: self.executor.contents.clone() };
            match ids.first().and_then(|id| self.kind_of(id)) {
                Some(kind) => self.spawn(executor.look_up(kind, namespace, ids)),
                None => ids.iter().for_each(|id| self.queue.finish(id)),
            }
        }
    }

    /// Keeps why an object is not applied, and reports what is new.
    pub(super) fn record_reason(&mut self, id: &ObjectId, reason: Option<Reason>, action: &Action) {
        let wanted = self.engine.view().entry(id).is_some_and(|entry| !entry.targets.is_empty());
        // Nobody asked for what was not named.
        let is_requested = |_: &Reason| wanted || !self.is_partial();
        if let Some(reason) = reason.filter(is_requested) {
            // A refusal of another content may have the same words, and is kept until then.
            if reason.is_refusal() || self.objects.reasons.get(id) != Some(&reason) {
                let passing = matches!(
                    reason,
                    Reason::OwnWrite
                        | Reason::Claiming
                        | Reason::Syncing(_)
                        | Reason::Inventory(_)
                        | Reason::ReadingPeers
                );
                let fight = |reason: Option<&Reason>| matches!(reason, Some(Reason::Fight(..)));
                let known_fight = fight(Some(&reason)) && fight(self.objects.reasons.get(id));
                if reason.is_refusal() {
                    let content = self
                        .engine
                        .view()
                        .entry(id)
                        .and_then(|entry| entry.target_content())
                        .map(|(_, desired)| desired.hash);
                    let refusal = (content, reason.to_string());
                    let is_new =
                        self.objects.logged_refusals.insert(id.clone(), refusal.clone()) != Some(refusal);
                    // One reason for thousands of objects is one line, and one Event.
                    if is_new && reason.representative().is_none_or(|first| first == id) {
                        let outcome = Outcome::Refused(reason.clone());
                        self.record_outcome(id, outcome);
                    }
                } else if !passing && !known_fight {
                    self.record_outcome(id, Outcome::Waiting(reason.clone()));
                }
                self.objects.reasons.insert(id.clone(), reason);
            }
        } else {
            let is_kept = |known: &Reason| wanted && is_kept_during(known, action);
            if !self.objects.reasons.get(id).is_some_and(is_kept) {
                self.objects.reasons.remove(id);
            }
            if matches!(action, Action::Nothing | Action::Forget) {
                self.objects.logged_refusals.remove(id);
            }
            if *action == Action::Nothing && wanted {
                self.queue.forget(id);
                if !self.run_mode.is_daemon() && !self.objects.outcomes.contains_key(id) {
                    self.record_outcome(id, Outcome::Unchanged);
                }
            }
        }
    }

    /// Returns whether single files are applied, and nothing is said of what they do not name.
    fn is_partial(&self) -> bool {
        self.engine.view().sources().iter().any(|source| source.declared.prune == PrunePolicy::Partial)
    }

    pub(super) fn finish_action(
        &mut self,
        id: &ObjectId,
        action: Action,
        result: ActionResult,
        outcome: Option<Outcome>,
    ) {
        if let Some(parked_retry) = self.writes.note_answer(id) {
            self.queue.add(parked_retry);
        }
        let now = Instant::now();
        self.queue.tick(now);
        self.record_metrics(id, &action, &result);
        let result = match result {
            ActionResult::Failed(failure) => ActionResult::Failed(self.with_backoff(id, failure)),
            carried_out => {
                self.writes.widen();
                // A question that is answered says nothing about the write.
                if !matches!(action, Action::DryRun(_)) {
                    self.queue.forget(id);
                    self.objects.logged_refusals.remove(id);
                }
                carried_out
            }
        };
        if let ActionResult::Failed(failure) = &result {
            tracing::debug!(object = %id, "not carried out: {failure}");
        }
        let unchanged = match (&result, &action) {
            (ActionResult::Applied(written), Action::Apply(apply)) => {
                apply.decided_on == Some(written.live.rv)
            }
            _ => false,
        };
        if let (ActionResult::Applied(_), Action::Apply(apply), false) = (&result, &action, unchanged) {
            self.log_restart(id, apply);
        }
        let repair = matches!(action, Action::Apply(ApplyRequest { purpose: ApplyPurpose::Repair, .. }));
        let repaired = repair && !unchanged && matches!(result, ActionResult::Applied(_));
        let action = Box::new(action);
        self.engine.handle(Input::Answered { id: id.clone(), action, result }, now);
        if let Some(outcome) = outcome {
            let outcome = if unchanged { Outcome::Unchanged } else { outcome };
            if repaired {
                self.record_repair(id, outcome);
            } else {
                self.record_outcome(id, outcome);
            }
        }
        self.queue.finish(id);
    }

    fn record_metrics(&self, id: &ObjectId, action: &Action, outcome: &ActionResult) {
        let failed = match outcome {
            ActionResult::Failed(failure) => Some(failure.class()),
            _ => None,
        };
        self.telemetry.metrics.record_write(action_label(action), failed);
        if let (Action::Apply(ApplyRequest { purpose: ApplyPurpose::Repair, .. }), None) = (action, failed)
            && let Some((source, _)) = self.engine.view().entry(id).and_then(|entry| entry.target_content())
        {
            self.telemetry.metrics.record_repair(&self.engine.view().source(source).declared.name);
        }
    }

    fn with_backoff(&mut self, id: &ObjectId, failure: WriteFailure) -> WriteFailure {
        let backoff =
            |queue: &mut WorkQueue<ObjectId>| queue.next_backoff(id, super::super::random_fraction());
        match failure {
            WriteFailure::Unknown(why, wait) => {
                self.writes.narrow();
                WriteFailure::Unknown(
                    why,
                    wait.max(backoff(&mut self.queue).min(super::event_handlers::MAX_OUTAGE_BACKOFF)),
                )
            }
            WriteFailure::Refused(why, RefusalRule::Rights, wait) => {
                let most = DENIED_RETRY_DELAY
                    .max(DENIED_DELAY_PER_OBJECT * self.engine.view().count_denied() as u32);
                let pause = backoff(&mut self.queue).min(most);
                WriteFailure::Refused(why, RefusalRule::Rights, wait.map(|wait| wait.max(pause)))
            }
            WriteFailure::Refused(why, rule, wait) => {
                WriteFailure::Refused(why, rule, wait.map(|wait| wait.max(backoff(&mut self.queue))))
            }
            WriteFailure::Conflict(_) => {
                let failures = self.queue.failures(id);
                let most =
                    if failures < MAX_SHORT_CONFLICTS { SHORT_CONFLICT_DELAY } else { LONG_CONFLICT_DELAY };
                let pause = backoff(&mut self.queue).min(most);
                WriteFailure::Conflict(if failures < MAX_IMMEDIATE_CONFLICTS {
                    Duration::ZERO
                } else {
                    pause
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::super::super::setup::Setup;
    use super::super::{MAX_DECISIONS_PER_TURN, RunMode};
    use super::*;
    use crate::cluster::Connection;
    use crate::report::ObjectEvent;

    fn id(kind: &str, name: &str) -> ObjectId {
        ObjectId::new(&GroupKind::parse(kind), Some("shop"), name)
    }

    /// Returns a loop without sources, over a cluster that never answers.
    async fn looped(dir: &std::path::Path) -> (Reconciler, mpsc::UnboundedReceiver<ObjectEvent>) {
        let kubeconfig = dir.join("config");
        let text = "{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: {server: \"http://127.0.0.1:9\"}}], \
                    users: [{name: a, user: {}}], contexts: [{name: a, context: {cluster: a, user: a}}]}";
        std::fs::write(&kubeconfig, text).unwrap();
        let connection = Connection { kubeconfig: Some(kubeconfig), ..Connection::default() };
        let setup = Setup::in_test(Cluster::connect(&connection).await.unwrap(), Vec::new());
        let (listener, events) = mpsc::unbounded_channel();
        (Reconciler::new(setup, RunMode::Daemon, listener), events)
    }

    #[tokio::test]
    async fn a_reason_that_stands_for_many_is_reported_of_one() {
        let dir = tempfile::tempdir().unwrap();
        let (mut reconciler, mut events) = looped(dir.path()).await;
        let first = id("Deployment.apps", "web");
        let all: Vec<ObjectId> =
            (0..3000).map(|number| id("ConfigMap", &number.to_string())).chain([first.clone()]).collect();
        let oversized = Reason::Oversized(first.clone(), "3001 objects are released together".into());
        // Each resync decides on all of them again.
        for _ in 0..2 {
            for object in &all {
                reconciler.record_reason(object, Some(oversized.clone()), &Action::Nothing);
            }
        }
        let event = events.try_recv().unwrap();
        assert_eq!((event.id, event.outcome), (first, Outcome::Refused(oversized)));
        assert!(events.try_recv().is_err());
        assert_eq!(reconciler.objects.reasons.len(), 3001);
        // A refusal of a single object is reported for each.
        for object in &all[..3] {
            reconciler.record_reason(object, Some(Reason::NotAdopted), &Action::Nothing);
        }
        assert_eq!(std::iter::from_fn(|| events.try_recv().ok()).count(), 3);
    }

    #[test]
    fn what_was_refused_stays_so_until_the_next_try_is_answered() {
        let refused = [
            Reason::Refused("it is invalid".into(), None),
            Reason::Retrying("no answer".into(), Duration::from_secs(1)),
        ];
        for reason in refused {
            for action in [Action::Lookup, Action::AwaitContent] {
                assert!(is_kept_during(&reason, &action), "{reason} {action:?}");
                assert!(!is_kept_during(&Reason::Claiming, &action), "{action:?}");
            }
            for action in [Action::Nothing, Action::Forget] {
                assert!(!is_kept_during(&reason, &action), "{reason} {action:?}");
            }
        }
    }

    /// Gives a stop, an answer and a question their turn in between.
    #[tokio::test]
    async fn so_many_decisions_are_made_in_one_turn_and_the_others_at_once_in_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let (mut reconciler, _events) = looped(dir.path()).await;
        for number in 0..MAX_DECISIONS_PER_TURN + 5 {
            reconciler.queue.add(id("ConfigMap", &number.to_string()));
        }
        reconciler.turn();
        assert_eq!(reconciler.queue.depth().ready, 5);
        assert!(reconciler.timers.at_once && reconciler.wake() <= Instant::now());
        reconciler.turn();
        assert_eq!(reconciler.queue.depth().ready, 0);
        assert!(!reconciler.timers.at_once && reconciler.wake() > Instant::now());
    }
}
