//! Answers to those who ask where things stand, from the engine's facts of this very moment.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::super::feed::Order;
use super::Reconciler;
use super::views::Glance;
use crate::engine::Engine;
use crate::object::ObjectId;
use crate::report::{self, Beside, Compared, Differing, Filter, Left, ObjectStatus, Status};

/// So many objects are compared for one answer, and so many at a time for all.
const COMPARED: usize = 50;
const COMPARING: usize = 4;

/// A question, with where its answer goes.
pub(super) enum Question {
    Status(oneshot::Sender<Status>),
    Objects(Filter, oneshot::Sender<Vec<ObjectStatus>>),
    Object(ObjectId, oneshot::Sender<Option<ObjectStatus>>),
    Glance(ObjectId, oneshot::Sender<Option<(ObjectStatus, Glance)>>),
    Differing(Option<String>, oneshot::Sender<Vec<(ObjectStatus, Glance)>>),
    Fetch(String, oneshot::Sender<Fetch>),
    Endings(oneshot::Sender<BTreeMap<Arc<str>, Left>>),
    Knows(String, oneshot::Sender<bool>),
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
    /// Objects that may be compared at a time: what people look at keeps nothing else from the API server.
    comparing: Arc<Semaphore>,
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

    /// One object beside what is asked for, masked; the inner none where no source of the process knows it.
    pub async fn compared(&self, id: ObjectId) -> Option<Option<(ObjectStatus, Compared)>> {
        let found = self.ask(|answer| Question::Glance(id, answer)).await?;
        Some(match found {
            Some((status, glance)) => Some((status, self.compare(glance).await)),
            None => None,
        })
    }

    /// The objects of a source, or of all, that are not as asked for, with what would change; and how many more there
    /// are that were not compared.
    pub async fn differing(&self, source: Option<String>) -> Option<(Vec<Differing>, usize)> {
        let mut found = self.ask(|answer| Question::Differing(source, answer)).await?;
        let more = found.len().saturating_sub(COMPARED);
        found.truncate(COMPARED);
        let compared = stream::iter(found).map(async |(object, glance)| {
            let Compared { difference, note, .. } = self.compare(glance).await;
            Differing { object, difference, note }
        });
        Some((compared.buffered(COMPARING).collect().await, more))
    }

    async fn compare(&self, glance: Glance) -> Compared {
        let _permit = self.comparing.acquire().await;
        glance.compare().await
    }

    /// Hints that a source has something new. It is looked at, as ever, and nothing else follows from that.
    pub async fn fetch(&self, source: &str) -> Option<Fetch> {
        self.ask(|answer| Question::Fetch(source.to_owned(), answer)).await
    }

    /// What is left of each source that a person has deleted; those of which that is not known yet are not named.
    pub async fn endings(&self) -> Option<BTreeMap<Arc<str>, Left>> {
        self.ask(Question::Endings).await
    }

    /// Whether there is a source of this name.
    pub async fn knows(&self, source: &str) -> Option<bool> {
        self.ask(|answer| Question::Knows(source.to_owned(), answer)).await
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
        let comparing = Arc::new(Semaphore::new(COMPARING));
        Inquiries { questions: self.channels.questions.clone(), comparing }
    }

    /// Whoever has gone away meanwhile gets no answer.
    pub(super) fn answer(&mut self, question: Question) {
        let now = Instant::now();
        match question {
            Question::Status(answer) => drop(answer.send(self.with_beside(now, report::status))),
            Question::Objects(filter, answer) => drop(answer.send(self.objects(now, &filter))),
            Question::Object(id, answer) => drop(answer.send(self.object(now, &id))),
            Question::Glance(id, answer) => {
                let found = self.object(now, &id).map(|status| (status, self.glance(&id)));
                drop(answer.send(found));
            }
            Question::Differing(source, answer) => {
                let all = self.objects(now, &Filter { source, ..Filter::default() });
                let differ = all.into_iter().filter(|object| self.may_differ(object));
                let glances = differ.map(|object| (object.clone(), self.glance(&object.object.id())));
                drop(answer.send(glances.collect()));
            }
            Question::Fetch(name, answer) => drop(answer.send(self.hint(&name))),
            Question::Endings(answer) => drop(answer.send(self.endings())),
            Question::Knows(name, answer) => {
                let _ = answer.send(self.engine.sources().iter().any(|source| *source.name == *name));
            }
        }
    }

    fn objects(&self, now: Instant, filter: &Filter) -> Vec<ObjectStatus> {
        self.with_beside(now, |engine, beside| report::objects(engine, beside, filter))
    }

    fn object(&self, now: Instant, id: &ObjectId) -> Option<ObjectStatus> {
        self.with_beside(now, |engine, beside| report::object_of(engine, beside, id))
    }

    /// Tells something of the engine's facts and of what the loop knows beside them.
    pub(super) fn with_beside<T>(&self, now: Instant, tell: impl FnOnce(&Engine, &Beside<'_>) -> T) -> T {
        let at = Timestamp::now();
        let (depth, times) = (self.queue.depth(), self.chronicle.times());
        let troubles: Vec<_> = (0..self.ledgers.len()).map(|source| self.trouble(source)).collect();
        let beside = Beside {
            open: &self.open,
            places: &self.places,
            troubles: &troubles,
            budget: self.keeper.unreadable.as_deref(),
            times: &times,
            metrics: &self.metrics,
            since: self.since,
            next_resync: self.next_resync(now, at),
            queue: depth.ready + depth.processing,
            unfinished: self.queue.unfinished(now),
            now: (now, at),
        };
        tell(&self.engine, &beside)
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
