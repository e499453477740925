//! Carries the decisions of a turn out on the cluster, by the tasks of the loop.
//!
//! Each task runs a function of `src/daemon/action_executor.rs`. That of a write has the rights of
//! its source (`executor_of`), and ends with `LoopEvent::ActionDone`. `finish_action` in
//! `action_results.rs` takes that.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use super::super::action_executor::ActionExecutor;
use super::super::drift::ComparisonRequest;
use super::super::loop_event::LoopEvent;
use super::Reconciler;
use super::write_window::RetryAdmission;
use crate::cluster::{Cluster, ServedKind, ServiceAccount};
use crate::engine::{
    Action, Admission, Decision, DecisionExecutor, Engine, OWN_INFORMER_GROUP, ObjectQuestion, ObjectWrite,
    PrunePolicy, Reason, SourceId, WriteMode,
};
use crate::object::{GroupKind, ObjectId};
use crate::report::Outcome;

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
    lookups: Vec<ObjectId>,
    comparisons: Vec<ComparisonRequest>,
}

/// The loop in one of its turns, with the questions that it asks together at the end.
pub(super) struct TurnExecutor<'a> {
    pub(super) reconciler: &'a mut Reconciler,
    pub(super) batch: &'a mut LookupBatch,
}

impl DecisionExecutor for TurnExecutor<'_> {
    const WRITE_MODE: WriteMode = WriteMode::Sent;

    fn engine_mut(&mut self) -> &mut Engine {
        &mut self.reconciler.engine
    }

    /// Reports the reason. A write waits where its kind is not served, and where too many others
    /// are tried again.
    fn admit(&mut self, id: &ObjectId, decision: &Decision, now: Instant) -> Admission {
        let reconciler = &mut *self.reconciler;
        if let Some(again) = decision.requeue_after {
            reconciler.queue.add_at(id.clone(), now + again);
        }
        reconciler.record_reason(id, decision.reason.clone(), &decision.action);
        if !matches!(decision.action, Action::DryRun(_) | Action::Apply(_) | Action::Delete(..)) {
            return Admission::Admitted;
        }
        let is_admitted = reconciler.kind_of(id).is_some()
            && (reconciler.queue.failures(id) == 0
                || reconciler.writes.admit_retry(id) == RetryAdmission::Admitted);
        if is_admitted {
            return Admission::Admitted;
        }
        reconciler.queue.finish(id);
        Admission::Deferred
    }

    fn ask(&mut self, id: ObjectId, question: ObjectQuestion) {
        let reconciler = &mut *self.reconciler;
        let shown = reconciler.engine.view().live_object(&id);
        match question {
            ObjectQuestion::Existence => self.batch.lookups.push(id),
            ObjectQuestion::CachedComparison(desired, variant) => {
                self.batch.comparisons.push(ComparisonRequest::new(id.clone(), desired, variant, shown));
            }
            ObjectQuestion::LiveComparison(desired, variant) => {
                let request = ComparisonRequest::new(id.clone(), desired, variant, shown);
                match reconciler.kind_of(&id) {
                    Some(kind) => reconciler.spawn(reconciler.executor_for(&id).compare_live(kind, request)),
                    None => reconciler.queue.finish(&id),
                }
            }
            // All contents are asked for together, at the beginning of a turn.
            ObjectQuestion::OlderContent => reconciler.queue.finish(&id),
        }
    }

    fn write(&mut self, id: ObjectId, write: ObjectWrite, _: Option<Reason>) {
        let reconciler = &mut *self.reconciler;
        let Some(kind) = reconciler.kind_of(&id) else { return reconciler.queue.finish(&id) };
        reconciler.writes.note_sent();
        match write {
            ObjectWrite::DryRun(apply) => {
                let kind =
                    reconciler.watches.kinds.served_kind_of_version(&apply.desired.gvk).unwrap_or(kind);
                let executor = reconciler.executor_of(Some(apply.source));
                reconciler.spawn(executor.query_dry_run(kind, id, apply));
            }
            ObjectWrite::Apply(apply) => {
                let kind =
                    reconciler.watches.kinds.served_kind_of_version(&apply.desired.gvk).unwrap_or(kind);
                let owner = reconciler.engine.view().previous_owner(&apply);
                let owner = owner.map(|owner| owner.to_string().into());
                let executor = reconciler.executor_of(Some(apply.source));
                reconciler.spawn(executor.apply(kind, id, apply, owner));
            }
            ObjectWrite::Delete(uid, version, reason) => {
                let executor = reconciler.executor_for(&id);
                reconciler.spawn(executor.delete(kind, id, uid, version, reason));
            }
        }
    }

    fn rest(&mut self, id: ObjectId, _: Option<Reason>) {
        self.reconciler.queue.finish(&id);
    }
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
    pub(super) fn executor_for(&self, id: &ObjectId) -> ActionExecutor {
        self.executor_of(self.engine.view().acting_source(id))
    }

    /// Returns the executor for the objects of a source, with the rights of its account.
    fn executor_of(&self, source: Option<SourceId>) -> ActionExecutor {
        ActionExecutor {
            cluster: self.cluster_for_source(source).clone(),
            contents: self.executor.contents.clone(),
        }
    }

    /// Returns the kind of an object in the version of its target, else as it is served.
    pub(super) fn kind_of(&self, id: &ObjectId) -> Option<Arc<ServedKind>> {
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

    /// Runs a task whose answer comes back to the loop.
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

    /// Asks the questions of a turn.
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
            let executor = ActionExecutor { cluster, contents: self.executor.contents.clone() };
            match ids.first().and_then(|id| self.kind_of(id)) {
                Some(kind) => self.spawn(executor.look_up(kind, namespace, ids)),
                None => ids.iter().for_each(|id| self.queue.finish(id)),
            }
        }
    }

    /// Keeps why an object is not applied, and reports what is new.
    fn record_reason(&mut self, id: &ObjectId, reason: Option<Reason>, action: &Action) {
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
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::mpsc;

    use super::super::super::setup::Setup;
    use super::super::{MAX_DECISIONS_PER_TURN, RunMode};
    use super::*;
    use crate::cluster::Connection;
    use crate::engine::{OversizedUnit, RefusalCause, RetryCause};
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
        let unit = OversizedUnit { workload: first.clone(), objects: 3001, used: 601, limit: 600 };
        let oversized = Reason::Oversized(unit);
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
            Reason::Refused(RefusalCause::Message("it is invalid".into()), None),
            Reason::Retrying(RetryCause::Message("no answer".into()), Duration::from_secs(1)),
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
