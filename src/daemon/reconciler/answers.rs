//! Answers to those who ask where things stand, from the engine's facts of this very moment.

use std::time::Instant;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use super::Reconciler;
use crate::engine::Engine;
use crate::object::ObjectId;
use crate::report::{self, Beside, Filter, Metrics, ObjectStatus, Status};

/// A question, with where its answer goes.
pub(super) enum Question {
    Status(oneshot::Sender<Status>),
    Objects(Filter, oneshot::Sender<Vec<ObjectStatus>>),
    Object(ObjectId, oneshot::Sender<Option<ObjectStatus>>),
}

/// Asks a running reconciler. Costs nothing while nobody asks; each question has none as its answer once the loop has
/// ended.
#[derive(Clone, Debug)]
pub struct Inquiries {
    questions: mpsc::Sender<Question>,
    metrics: Metrics,
}

impl Inquiries {
    /// Where everything stands.
    pub async fn status(&self) -> Option<Status> {
        self.ask(Question::Status).await
    }

    /// The objects that a filter lets through.
    pub async fn objects(&self, filter: Filter) -> Option<Vec<ObjectStatus>> {
        self.ask(|answer| Question::Objects(filter, answer)).await
    }

    /// One object; the inner none where no source of the process knows it.
    pub async fn object(&self, id: ObjectId) -> Option<Option<ObjectStatus>> {
        self.ask(|answer| Question::Object(id, answer)).await
    }

    /// What the loop counts.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Question) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        self.questions.send(question(answer)).await.ok()?;
        answered.await.ok()
    }
}

impl Reconciler {
    /// A way to ask it while it runs.
    pub fn inquiries(&self) -> Inquiries {
        Inquiries { questions: self.channels.questions.clone(), metrics: self.metrics.clone() }
    }

    /// Whoever has gone away meanwhile gets no answer.
    pub(super) fn answer(&mut self, question: Question) {
        let now = Instant::now();
        match question {
            Question::Status(answer) => drop(answer.send(self.with_beside(now, report::status))),
            Question::Objects(filter, answer) => {
                let objects =
                    self.with_beside(now, |engine, beside| report::objects(engine, beside, &filter));
                drop(answer.send(objects));
            }
            Question::Object(id, answer) => {
                let object = self.with_beside(now, |engine, beside| report::object_of(engine, beside, &id));
                drop(answer.send(object));
            }
        }
    }

    /// Tells something of the engine's facts and of what the loop knows beside them.
    pub(super) fn with_beside<T>(&self, now: Instant, tell: impl FnOnce(&Engine, &Beside<'_>) -> T) -> T {
        let at = Timestamp::now();
        let (depth, times) = (self.queue.depth(), self.chronicle.times());
        let beside = Beside {
            open: &self.open,
            places: &self.places,
            times: &times,
            since: self.since,
            next_resync: self.next_resync(now, at),
            queue: depth.ready + depth.processing,
            unfinished: self.queue.unfinished(now),
            now: (now, at),
        };
        tell(&self.engine, &beside)
    }
}
