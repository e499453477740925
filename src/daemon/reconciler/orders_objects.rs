//! Reads the orders objects of the sources, and takes out of them what is done.

use crate::object::annotations;
use std::time::{Duration, Instant};

use super::super::inventory::CallState;
use super::super::loop_event::LoopEvent;
use super::Reconciler;
use super::loop_state::{MIN_RETRY_DELAY, PERSON_RETRY_DELAY};
use crate::cluster::{self, InformerEvent, OrdersObject, source_of_orders};
use crate::engine::{self, Input, OrderVerb, ResourceVersion, SourceId, SourceLifecycle, SourceWrites};
use crate::object::ErrorClass;
use crate::render::CodedReason;
use crate::report::{EventMessage, EventReason};

/// The number of deletions after which the log says so.
const DELETIONS_BEFORE_WARNING: u32 = 3;
/// The longest wait before an object is made anew that is deleted again and again.
const MAX_RENEWAL_DELAY: Duration = Duration::from_mins(1);

/// The order store: the orders object of one source, as it was last read.
#[derive(Debug)]
pub(super) struct OrderStore {
    /// The object as last read.
    object: OrdersState,
    /// Indicates whether a call about it is on its way.
    call: CallState,
    /// The newest version that its watch has shown since it was asked for.
    seen: ResourceVersion,
    /// How often it was deleted since all of them were last read again: each time it is made anew
    /// later.
    deletions: u32,
    /// Keys that ask if anybody serves the source.
    questions: Vec<String>,
    /// Keys that are no orders.
    refused: Vec<String>,
    /// The reason for the last failed call about it, as logged.
    last_error: Option<String>,
    /// Notes for the person who began a single pass.
    notes: Vec<String>,
}

impl OrderStore {
    /// Returns whether no call about it is on its way.
    pub(super) fn is_quiet(&self) -> bool {
        self.call == CallState::None
    }

    /// Returns what whoever began a single pass is to know of it.
    pub(super) fn notes(&self) -> impl Iterator<Item = &String> {
        self.notes.iter()
    }
}

/// The state of an orders object.
#[derive(Clone, Debug, PartialEq, Eq)]
enum OrdersState {
    /// It was never read, or not since it went.
    Unread,
    /// It does not exist.
    Absent,
    /// It exists, with this content.
    Present(OrdersObject),
}

/// Returns the wait before an object is made anew that was deleted this many times. There is none
/// for the first. Then it is a second, and twice as long each time.
fn renewal_delay(deletions: u32) -> Duration {
    match deletions.checked_sub(2) {
        None => Duration::ZERO,
        Some(more) => MAX_RENEWAL_DELAY.min(Duration::from_secs(1) * 2_u32.saturating_pow(more.min(16))),
    }
}

impl Default for OrderStore {
    fn default() -> Self {
        let (questions, refused) = (Vec::new(), Vec::new());
        Self {
            object: OrdersState::Unread,
            call: CallState::None,
            seen: ResourceVersion(0),
            deletions: 0,
            questions,
            refused,
            last_error: None,
            notes: Vec::new(),
        }
    }
}

impl Reconciler {
    /// Takes an orders object that a person or rhumb has written.
    pub(super) fn handle_orders_event(&mut self, event: InformerEvent<ResourceVersion>) {
        let Some((id, rv)) = self.own_object_event(event, "the orders objects") else { return };
        let source = source_of_orders(id.name()).and_then(|name| self.source_by_name(name));
        let Some(source) = source else { return };
        let store = &mut self.records.orders[source];
        if let Some(rv) = rv {
            store.seen = rv;
            return;
        }
        // Somebody who may write there may have taken its label away.
        store.object = OrdersState::Unread;
        store.deletions = store.deletions.saturating_add(1);
        self.warn_of_deletions(source);
        // It goes with its inventory.
        self.read_inventory(source);
    }

    fn warn_of_deletions(&self, source: SourceId) {
        if self.records.orders[source].deletions == DELETIONS_BEFORE_WARNING {
            let name = cluster::orders_name(&self.engine.view().source(source).declared.name);
            tracing::warn!("ConfigMap {name} is deleted again and again: it is made anew with growing waits");
        }
    }

    /// Reads them all again, as an audit of what the watch reported.
    pub(super) fn reread_orders(&mut self) {
        for store in &mut self.records.orders {
            (store.object, store.deletions) = (OrdersState::Unread, 0);
        }
    }

    /// Reads the orders objects of which there is something new, makes those that are missing, and
    /// takes out what is done. A source goes on whatever becomes of its own. A single pass reads
    /// them once, for confirmations alone, and makes none.
    pub(super) fn sync_orders(&mut self) {
        self.log_orders();
        let stays = self.run_mode.is_daemon();
        for source in self.engine.view().source_ids() {
            let state = self.engine.view().source(source);
            let inventory = self.records.inventories[source]
                .inventory
                .inventory()
                .and_then(|inventory| inventory.known.as_ref());
            let Some((inventory, _)) = inventory.filter(|_| state.declared.writes == SourceWrites::Allowed)
            else {
                continue;
            };
            let (inventory, lives, name) = (
                inventory.clone(),
                state.declared.lifecycle == SourceLifecycle::Active,
                state.declared.name.clone(),
            );
            let store = &self.records.orders[source];
            if store.call == CallState::Busy {
                continue;
            }
            let (cluster, namespace) = (self.executor.cluster.clone(), self.records.namespace.clone());
            match store.object.clone() {
                OrdersState::Absent if lives && stays => {
                    self.call_begins(source);
                    self.spawn_write(async move {
                        let made = cluster.make_orders(&namespace, &name, &inventory).await;
                        LoopEvent::Orders(source, made.map(Some))
                    });
                }
                OrdersState::Absent => {}
                OrdersState::Present(object) if object.known.1 >= store.seen => {
                    let finished = self.engine.view().finished_orders(source);
                    let finished = finished.iter().map(ToString::to_string);
                    let others = store.questions.iter().chain(&store.refused).filter(|_| stays);
                    let keys: Vec<String> = finished.chain(others.cloned()).collect();
                    if keys.is_empty() && (object.is_labelled || !stays) {
                        self.records.orders[source].last_error = None;
                        continue;
                    }
                    self.call_begins(source);
                    self.spawn_write(async move {
                        let struck = cluster.remove_orders(&namespace, &name, &object, &keys).await;
                        LoopEvent::Orders(source, struck.map(Some))
                    });
                }
                OrdersState::Unread => self.read_orders(source, renewal_delay(store.deletions)),
                OrdersState::Present(_) => self.read_orders(source, Duration::ZERO),
            }
        }
    }

    /// Marks the beginning of a call: the watch's news from here on may be newer than the answer.
    fn call_begins(&mut self, source: SourceId) {
        (self.records.orders[source].call, self.records.orders[source].seen) =
            (CallState::Busy, ResourceVersion(0));
    }

    fn read_orders(&mut self, source: SourceId, wait: Duration) {
        self.call_begins(source);
        let cluster = self.executor.cluster.clone();
        let (namespace, name) =
            (self.records.namespace.clone(), self.engine.view().source(source).declared.name.clone());
        self.spawn(async move {
            tokio::time::sleep(wait).await;
            LoopEvent::Orders(source, cluster.read_orders(&namespace, &name).await)
        });
    }

    /// Records an orders object that was read or written.
    pub(super) fn record_orders(
        &mut self,
        source: SourceId,
        answer: Result<Option<OrdersObject>, cluster::ClusterError>,
    ) {
        let store = &mut self.records.orders[source];
        store.call = CallState::None;
        let object = match answer {
            Ok(object) => object,
            // Somebody else was faster, as people are.
            Err(error) if error.class() == ErrorClass::Conflict => {
                store.object = OrdersState::Unread;
                return;
            }
            // Nobody waits here for a person to help.
            Err(error) if !self.run_mode.is_daemon() && error.class() != ErrorClass::Transient => {
                let name = &self.engine.view().source(source).declared.name;
                store.notes.push(format!("confirmed deletions of source {name} do not count: {error}"));
                store.object = OrdersState::Absent;
                return;
            }
            Err(error) => {
                let words = format!("orders wait until this passes: {error}");
                let wait =
                    if error.class() == ErrorClass::Transient { MIN_RETRY_DELAY } else { PERSON_RETRY_DELAY };
                if store.last_error.as_ref() != Some(&words) {
                    store.last_error = Some(words.clone());
                    self.record_event(EventReason::OrderIgnored, source, None, words, None);
                }
                return self.read_orders(source, wait.mul_f64(1.0 + super::super::random_fraction()));
            }
        };
        let Some(object) = object else {
            store.object = OrdersState::Absent;
            return self.engine.handle(Input::Ordered { source, orders: Vec::new() }, Instant::now());
        };
        let mut list = engine::parse_orders(&object.data);
        if !self.run_mode.is_daemon() {
            list.orders.retain(|order| matches!(order.verb, OrderVerb::Confirm(_)));
        }
        let news = list.why.filter(|_| store.refused != list.refused);
        store.object = OrdersState::Present(object);
        (store.questions, store.refused) = (list.questions, list.refused);
        let count = store.refused.len();
        self.engine.handle(Input::Ordered { source, orders: list.orders }, Instant::now());
        if let Some(why) = news {
            let subject = if count == 1 {
                "1 key is no order and is".to_owned()
            } else {
                format!("{count} keys are no orders and are")
            };
            let name = cluster::orders_name(&self.engine.view().source(source).declared.name);
            let message = format!("{subject} taken out of ConfigMap {name}: {why}");
            self.record_event(EventReason::OrderIgnored, source, None, message, None);
        }
    }

    /// Logs which orders were carried out, and which are in a place where none is obeyed.
    fn log_orders(&mut self) {
        for (source, id, answer) in self.engine.take_done_orders() {
            let text = answer.to_string();
            let head = self.engine.view().source(source).head.clone();
            if !self.run_mode.is_daemon() {
                self.records.orders[source].notes.push(format!("{id}: {text}"));
            }
            let message = EventMessage { text, coded: CodedReason::of_order(&answer.outcome) };
            self.record_event(EventReason::OrderDone, source, Some(&id), message, head);
        }
        for (source, id) in self.engine.take_misplaced_orders() {
            let message = format!(
                "an order on an object is not obeyed: give it by `rhumb rollout`, and take the annotation {} away",
                annotations::ORDER
            );
            self.record_event(EventReason::OrderIgnored, source, Some(&id), message, None);
        }
    }
}
