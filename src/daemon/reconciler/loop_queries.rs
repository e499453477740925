//! Answers to those who ask for the status, from the engine's facts of this very moment.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::super::loop_event::LoopEvent;
use super::super::source_task::SourceTaskRequest;
use super::Reconciler;
use super::comparisons::ComparisonInput;
use crate::engine::View;
use crate::object::ObjectId;
use crate::report::{
    self, DaemonStatus, DifferingObject, ObjectComparison, ObjectFilter, ObjectStatus, RemainingObjects,
    StatusContext,
};

/// The maximum number of objects compared for one answer, and at a time for all answers.
const MAX_COMPARED_OBJECTS: usize = 50;
const CONCURRENT_COMPARISONS: usize = 4;

/// The maximum number of questions that wait for the loop at a time. A page that asks for more than
/// can be answered slows itself down, and no event of the loop.
const MAX_OPEN_QUERIES: usize = 16;

/// A question, with where its answer goes.
pub(in crate::daemon) enum LoopQuery {
    Status(oneshot::Sender<DaemonStatus>),
    Objects(ObjectFilter, oneshot::Sender<Vec<ObjectStatus>>),
    Object(ObjectId, oneshot::Sender<Option<ObjectStatus>>),
    ObjectWithComparison(ObjectId, oneshot::Sender<Option<(ObjectStatus, ComparisonInput)>>),
    Differing(Option<String>, oneshot::Sender<Vec<(ObjectStatus, ComparisonInput)>>),
    Fetch(String, oneshot::Sender<FetchResult>),
    RemainingObjects(oneshot::Sender<BTreeMap<Arc<str>, RemainingObjects>>),
    IsKnownSource(String, oneshot::Sender<bool>),
}

/// Leaves out where the answer goes.
impl fmt::Debug for LoopQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LoopQuery")
    }
}

/// The result of a hint from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchResult {
    /// The source is checked, as soon as its current task is done.
    Begun,
    /// There is no such source.
    NoSource,
}

/// The sender of questions to a running reconciler. Once the loop has ended, each question has none
/// as its answer.
#[derive(Clone, Debug)]
pub(crate) struct LoopQueries {
    events: mpsc::Sender<LoopEvent>,
    /// Permits of questions that may wait for the loop.
    open: Arc<Semaphore>,
    /// Objects that may be compared at a time: comparisons for people keep nothing else from the
    /// API server.
    comparing: Arc<Semaphore>,
}

impl LoopQueries {
    fn of_loop(events: mpsc::Sender<LoopEvent>) -> Self {
        let open = Arc::new(Semaphore::new(MAX_OPEN_QUERIES));
        Self { events, open, comparing: Arc::new(Semaphore::new(CONCURRENT_COMPARISONS)) }
    }

    /// Returns the status of everything.
    pub(crate) async fn status(&self) -> Option<DaemonStatus> {
        self.query(LoopQuery::Status).await
    }

    /// Returns the objects that a filter lets through.
    pub(crate) async fn objects(&self, filter: ObjectFilter) -> Option<Vec<ObjectStatus>> {
        self.query(|answer| LoopQuery::Objects(filter, answer)).await
    }

    /// Returns one object; the inner none where no source of the process knows it.
    pub(crate) async fn object(&self, id: ObjectId) -> Option<Option<ObjectStatus>> {
        self.query(|answer| LoopQuery::Object(id, answer)).await
    }

    /// Compares one object with what is asked for, masked; the inner none where no source of the
    /// process knows it.
    pub(crate) async fn compare_object(
        &self,
        id: ObjectId,
    ) -> Option<Option<(ObjectStatus, ObjectComparison)>> {
        let found = self.query(|answer| LoopQuery::ObjectWithComparison(id, answer)).await?;
        Some(match found {
            Some((status, input)) => Some((status, self.compare(input).await)),
            None => None,
        })
    }

    /// Returns the objects of a source, or of all, that differ from their content, with the changes
    /// to come. Also returns how many more were not compared.
    pub(crate) async fn differing_objects(
        &self,
        source: Option<String>,
    ) -> Option<(Vec<DifferingObject>, usize)> {
        let mut found = self.query(|answer| LoopQuery::Differing(source, answer)).await?;
        let more = found.len().saturating_sub(MAX_COMPARED_OBJECTS);
        found.truncate(MAX_COMPARED_OBJECTS);
        let compared = stream::iter(found).map(async |(object, input)| {
            let ObjectComparison { difference, note, .. } = self.compare(input).await;
            DifferingObject { object, difference, note }
        });
        Some((compared.buffered(CONCURRENT_COMPARISONS).collect().await, more))
    }

    async fn compare(&self, input: ComparisonInput) -> ObjectComparison {
        let _permit = self.comparing.acquire().await;
        input.compare().await
    }

    /// Hints that a source has something new. It is checked as in each interval, and nothing else
    /// follows from that.
    pub(crate) async fn fetch(&self, source: &str) -> Option<FetchResult> {
        self.query(|answer| LoopQuery::Fetch(source.to_owned(), answer)).await
    }

    /// Returns the remaining objects of each source that a person has deleted. A source of which
    /// that is not known yet is not named.
    pub(crate) async fn ending_sources(&self) -> Option<BTreeMap<Arc<str>, RemainingObjects>> {
        self.query(LoopQuery::RemainingObjects).await
    }

    /// Returns whether there is a source of this name.
    pub(crate) async fn has_source(&self, source: &str) -> Option<bool> {
        self.query(|answer| LoopQuery::IsKnownSource(source.to_owned(), answer)).await
    }

    async fn query<T>(&self, query: impl FnOnce(oneshot::Sender<T>) -> LoopQuery) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        let _permit = self.open.acquire().await;
        self.events.send(LoopEvent::LoopQuery(query(answer))).await.ok()?;
        answered.await.ok()
    }
}

#[cfg(test)]
impl LoopQueries {
    /// Returns those to a loop that has this status, and answers nothing else.
    pub(crate) fn of_status(status: DaemonStatus) -> Self {
        let (events, mut received) = mpsc::channel(1);
        tokio::spawn(async move {
            while let Some(event) = received.recv().await {
                if let LoopEvent::LoopQuery(LoopQuery::Status(answer)) = event {
                    let _ = answer.send(status.clone());
                }
            }
        });
        Self::of_loop(events)
    }
}

impl Reconciler {
    /// Returns a way to ask it while it runs.
    pub(crate) fn query_sender(&self) -> LoopQueries {
        LoopQueries::of_loop(self.events.sender.clone())
    }

    /// Answers what was asked since the last turn.
    pub(super) fn answer_queries(&mut self) {
        for query in std::mem::take(&mut self.telemetry.open_queries) {
            self.answer_query(query);
        }
    }

    /// Answers a query. One whose asker has gone away gets no answer.
    fn answer_query(&mut self, query: LoopQuery) {
        let now = Instant::now();
        match query {
            LoopQuery::Status(answer) => drop(answer.send(self.with_context(now, report::status))),
            LoopQuery::Objects(filter, answer) => drop(answer.send(self.objects(now, &filter))),
            LoopQuery::Object(id, answer) => drop(answer.send(self.object(now, &id))),
            LoopQuery::ObjectWithComparison(id, answer) => {
                let found = self.object(now, &id).map(|status| (status, self.comparison_input(&id)));
                drop(answer.send(found));
            }
            LoopQuery::Differing(source, answer) => {
                let all = self.objects(now, &ObjectFilter { source, ..ObjectFilter::default() });
                let differ = all.into_iter().filter(|object| self.can_differ(object));
                let inputs =
                    differ.map(|object| (object.clone(), self.comparison_input(&object.object.id())));
                drop(answer.send(inputs.collect()));
            }
            LoopQuery::Fetch(name, answer) => drop(answer.send(self.hint(&name))),
            LoopQuery::RemainingObjects(answer) => drop(answer.send(self.remaining_by_source())),
            LoopQuery::IsKnownSource(name, answer) => {
                let _ = answer
                    .send(self.engine.view().sources().iter().any(|source| *source.declared.name == *name));
            }
        }
    }

    fn objects(&self, now: Instant, filter: &ObjectFilter) -> Vec<ObjectStatus> {
        self.with_context(now, |engine, context| report::objects(engine, context, filter))
    }

    fn object(&self, now: Instant, id: &ObjectId) -> Option<ObjectStatus> {
        self.with_context(now, |engine, context| report::object_status(engine, context, id))
    }

    /// Returns an answer from the engine's facts and from what the loop knows beside them.
    pub(super) fn with_context<T>(
        &self,
        now: Instant,
        answer: impl FnOnce(View<'_>, &StatusContext<'_>) -> T,
    ) -> T {
        let at = Timestamp::now();
        let (depth, times) = (self.queue.depth(), self.telemetry.history.source_times());
        let troubles: Vec<_> =
            self.engine.view().source_ids().map(|source| self.blocking_reason(source)).collect();
        let own = self.records.inventories.iter().flat_map(|store| &store.unreadable);
        let unreadable: Vec<String> = own.chain(&self.records.unreadable_peers).cloned().collect();
        let context = StatusContext {
            open: &self.objects.reasons,
            locations: &self.sources.locations,
            troubles: &troubles,
            budget: self.records.ledger.unreadable.as_deref(),
            unreadable: &unreadable,
            times: &times,
            metrics: &self.telemetry.metrics,
            since: self.telemetry.started_at,
            next_resync: self.next_resync(now, at),
            queue: depth.ready + depth.processing,
            unfinished: self.queue.processing_times(now),
            now: (now, at),
        };
        answer(self.engine.view(), &context)
    }

    /// Hints a source task. One that has not begun begins with a check, and one with a full queue
    /// checks anyway.
    fn hint(&self, name: &str) -> FetchResult {
        let Some(source) =
            self.engine.view().sources().iter().position(|source| *source.declared.name == *name)
        else {
            return FetchResult::NoSource;
        };
        if let Some(source_task) = &self.sources.requests[source] {
            let _ = source_task.try_send(SourceTaskRequest::Hint);
        }
        FetchResult::Begun
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::setup::Setup;
    use super::super::RunMode;
    use super::*;
    use crate::cluster::tests::fake::{FakeApiServer, ScriptedReply};
    use crate::object::GroupKind;

    // A new revision and a question may come together. The revision alone says nothing of what
    // follows from it, for example of pending deletions.
    #[tokio::test]
    async fn what_came_with_a_question_is_decided_before_the_answer() {
        let cluster = FakeApiServer::start(|_, _| ScriptedReply::Silence).await.cluster;
        let setup = Setup::in_test(cluster, Vec::new());
        let mut reconciler = Reconciler::new(setup, RunMode::Daemon, mpsc::unbounded_channel().0);
        let (answer, mut answered) = oneshot::channel();
        reconciler.queue.add(ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), "env"));
        assert!(reconciler.events.sender.try_send(LoopEvent::LoopQuery(LoopQuery::Status(answer))).is_ok());
        reconciler.drain_events();
        assert!(answered.try_recv().is_err());
        reconciler.turn();
        assert_eq!(answered.try_recv().unwrap().process.queue, 0);
    }
}
