//! Answers to those who ask where things stand, from the engine's facts of this very moment.

use std::time::Instant;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use super::super::feed::Order;
use super::Reconciler;
use crate::object::ObjectId;
use crate::report::{self, Beside, Filter, Metrics, ObjectStatus, Status};

/// A question, with where its answer goes.
pub(super) enum Question {
    Status(oneshot::Sender<Status>),
    Objects(Filter, oneshot::Sender<Vec<ObjectStatus>>),
    Object(ObjectId, oneshot::Sender<Option<ObjectStatus>>),
    Fetch(String, oneshot::Sender<Fetch>),
}

/// What came of a hint from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetch {
    /// The source is looked at, as soon as what is being done with it is done.
    Begun,
    /// There is no such source.
    NoSource,
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

    /// Hints that a source has something new. It is looked at, as ever, and nothing else follows from that.
    pub async fn fetch(&self, source: &str) -> Option<Fetch> {
        self.ask(|answer| Question::Fetch(source.to_owned(), answer)).await
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
        let (now, at) = (Instant::now(), Timestamp::now());
        let depth = self.queue.depth();
        let beside = Beside {
            open: &self.open,
            places: &self.places,
            since: self.since,
            next_resync: self.next_resync(now, at),
            queue: depth.ready + depth.processing,
            unfinished: self.queue.unfinished(now),
            now: (now, at),
        };
        match question {
            Question::Status(answer) => drop(answer.send(report::status(&self.engine, &beside))),
            Question::Objects(filter, answer) => {
                drop(answer.send(report::objects(&self.engine, &beside, &filter)));
            }
            Question::Object(id, answer) => drop(answer.send(report::object_of(&self.engine, &beside, &id))),
            Question::Fetch(name, answer) => drop(answer.send(self.hint(&name))),
        }
    }

    /// A feed that has not begun begins with a look, and one that is told a thousand things more looks anyway.
    fn hint(&self, name: &str) -> Fetch {
        let Some(source) = self.engine.sources().iter().position(|source| *source.name == *name) else {
            return Fetch::NoSource;
        };
        if let Some(feed) = &self.feeds[source] {
            let _ = feed.try_send(Order::Hint);
        }
        Fetch::Begun
    }
}
