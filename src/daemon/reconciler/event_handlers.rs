//! The handling of each event of the loop: what it changes in the engine and in the queue.
//!
//! Decides nothing: the turn that follows does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::loop_event::LoopEvent;
use super::super::tasks::FatalError;
use super::{Reconciler, StopCondition};
use crate::cluster::{InformerChange, InformerEvent, Scaler};
use crate::engine::{LiveObject, Reason};
use crate::object::ObjectId;
use crate::report::EventReason;

/// The longest rest after a call of unknown fate, so that all is soon tried again when the API
/// server is back. The number of writes in flight, which falls to one, keeps that from being a
/// storm.
pub(super) const OUTAGE: Duration = Duration::from_secs(15);

impl Reconciler {
    pub(super) fn happened(&mut self, event: LoopEvent) {
        match event {
            LoopEvent::Read(source, reading, unknown) => self.was_read(source, reading, unknown),
            LoopEvent::Unreadable(source, why) => {
                let name = self.engine.source(source).name.clone();
                let message_id = EventReason::SourceIncomplete.message_id();
                tracing::warn!(source = %name, message_id, "{why}");
                let head = self.engine.source(source).head.clone();
                self.engine.unreadable(source, why);
                self.notice_read(source, head.as_ref());
                self.read.insert(source);
            }
            LoopEvent::Accepted(source, revision) => self.stores[source].accepted = Some(revision),
            LoopEvent::Place(source, place) => self.is_at(source, place),
            LoopEvent::Repository(source, repository) => self.engine.follows(source, repository),
            LoopEvent::Peers(answer) => self.peers_answered(answer),
            LoopEvent::Checked(source, reading) => self.engine.checked(source, reading),
            LoopEvent::Resolved(all) => {
                for (id, release, content) in all {
                    self.resolving.remove(&id);
                    self.engine.resolved(&id, &release, content);
                }
            }
            LoopEvent::LookedBack(token, past) => self.undo_target_read(&token, past),
            LoopEvent::Kinds(Ok(kinds)) => self.discovered(kinds),
            LoopEvent::Kinds(Err(error)) => {
                tracing::warn!("discovery failed: {error}");
                self.watched.failed(error);
            }
            LoopEvent::Absent(Ok(kinds)) => {
                self.watched.absent(kinds, &mut self.engine);
                self.tidy_later();
            }
            LoopEvent::Absent(Err(error)) => {
                self.watched.untold();
                tracing::debug!("whether a kind is gone cannot be told: {error}");
            }
            LoopEvent::Parent(source, inventory) => self.inventory_answered(source, inventory),
            LoopEvent::Orders(source, object) => self.orders_answered(source, object),
            LoopEvent::Budget(answer) => self.budget_answered(answer),
            LoopEvent::ConfigKey(answer) => self.config_key_answered(answer),
            LoopEvent::Other(id, looked) => self.foreign_workload_read(&id, looked),
            LoopEvent::Selector(id, selector) => self.selector_found(&id, selector.as_deref()),
            LoopEvent::Freed(id) => self.engine.mark(&id),
            LoopEvent::Evicted(pod, answer) => self.was_evicted(&pod, &answer),
            LoopEvent::Rescaled(due, answer) => self.was_rescaled(&due, &answer),
            LoopEvent::Warned(id, events) => self.engine.add_failure_events(&id, &events),
            LoopEvent::Looked(all) => {
                for (id, looked) in all {
                    match looked {
                        Ok(looked) => self.engine.looked_up(&id, looked),
                        Err(trouble) => self.put_off(&id, &trouble.0),
                    }
                    self.queue.done(&id);
                }
            }
            LoopEvent::Compared(all) => {
                for (id, verified) in all {
                    match verified {
                        Ok(verified) => self.engine.verified(&id, verified),
                        Err(trouble) => self.put_off(&id, &trouble.0),
                    }
                    self.queue.done(&id);
                }
            }
            LoopEvent::Done(id, action, outcome, told) => self.was_done(&id, &action, outcome, told),
        }
    }

    pub(super) fn informed(&mut self, event: InformerEvent<LiveObject>) {
        if let (InformerChange::Apply(id, live), false) =
            (&event.change, self.until == StopCondition::Stopped)
            && let Some(why) = self.find_rival(id, live)
        {
            self.fatal = Some(FatalError::Contested(why));
        }
        if matches!(&event.change, InformerChange::Delete(..) | InformerChange::InitDone)
            || matches!(&event.change, InformerChange::Apply(_, live) if live.finished)
        {
            self.tidy_later();
        }
        if let Some(bug) = self.watched.informed(event, &mut self.engine) {
            self.fatal = Some(bug.into());
        }
    }

    pub(super) fn scaled(&mut self, event: InformerEvent<Scaler>) {
        if let Some(bug) = self.watched.scaled(event, &mut self.engine) {
            self.fatal = Some(bug.into());
        }
    }

    /// A question about an object had no answer: it is asked again later.
    fn put_off(&mut self, id: &ObjectId, why: &Arc<str>) {
        let wait = self.queue.backoff(id, super::super::random()).min(OUTAGE);
        self.open.insert(id.clone(), Reason::Retrying(why.clone(), wait));
        self.queue.add_at(id.clone(), Instant::now() + wait);
    }
}
