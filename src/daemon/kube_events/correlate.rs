//! The choice of Events to write, and their times, as in client-go's correlator. A repetition
//! raises a count, many similar ones become one, and no source writes more than one a second for
//! long.
//!
//! **Invariant:** pure. The time is an argument.

use crate::object::annotations;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::cluster::{EventType, KubernetesEvent, MAX_EVENT_MESSAGE_BYTES};
use crate::engine::Uid;
use crate::object::{GroupKind, Gvk, ObjectId};
use crate::render::sanitize_line;
use crate::report::{EventReason, EventRecord};

/// The burst of Events of a source.
const MAX_EVENT_BURST: u32 = 25;

/// Then one each.
const EVENT_INTERVAL: Duration = Duration::from_secs(1);

/// The different messages about one object and reason within [`SIMILARITY_WINDOW`] after which the
/// next count as one.
const MAX_SIMILAR_EVENTS: usize = 10;
const SIMILARITY_WINDOW: Duration = Duration::from_mins(10);

/// The maximum number of waiting Events. Beyond it the oldest one about an object that is no
/// warning is dropped.
const MAX_PENDING_EVENTS: usize = 256;

/// The maximum number of tries of one Event.
const MAX_EVENT_TRIES: u32 = 12;

/// The number of written Events that are remembered.
const MAX_REMEMBERED_EVENTS: usize = 1024;

/// The longest name of an object, less what an Event's name has behind it.
const MAX_EVENT_NAME_BYTES: usize = 253 - 24;

/// The identity of an Event for counting.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct EventKey {
    about: ObjectId,
    uid: Option<Uid>,
    reason: EventReason,
    message: String,
}

/// An Event that waits to be written.
#[derive(Debug)]
struct WaitingEvent {
    source: String,
    key: EventKey,
    name: String,
    occurrence: KubernetesEvent,
    /// Indicates whether it is about a source: what happens to many objects is counted there.
    of_source: bool,
    /// The number of failed tries.
    attempts: u32,
}

/// The way in which an Event is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventWriteVerb {
    /// It is created.
    Create,
    /// It is there, and its count goes up.
    Patch,
}

/// An Event that is to be written now.
#[derive(Debug)]
pub(super) struct EventWrite {
    /// The kind of write.
    pub(super) verb: EventWriteVerb,
    /// Its name.
    pub(super) name: String,
    /// The Event.
    pub(super) occurrence: KubernetesEvent,
    /// The source.
    pub(super) source: String,
    key: EventKey,
    of_source: bool,
    attempts: u32,
    /// The number of new occurrences in its count.
    added: u32,
}

impl EventWrite {
    /// Returns whether it was tried before, in vain as it seemed.
    pub(super) fn is_retry(&self) -> bool {
        self.attempts > 0
    }
}

/// An Event that was made.
#[derive(Debug)]
struct WrittenEvent {
    name: String,
    count: u32,
    first: Timestamp,
}

/// Different messages about the same, with their times.
type SimilarMessages = VecDeque<(Instant, String)>;

/// The object that an Event is about.
struct EventSubject {
    id: ObjectId,
    gvk: Gvk,
    uid: Option<Uid>,
    /// Indicates whether it stands for a source as a whole.
    is_source: bool,
}

/// The Events to write, and those written.
#[derive(Debug)]
pub(super) struct EventCorrelator {
    namespace: String,
    waiting: VecDeque<WaitingEvent>,
    made: HashMap<EventKey, WrittenEvent>,
    /// The keys of what was made, the oldest first.
    order: VecDeque<EventKey>,
    similar: HashMap<(ObjectId, EventReason), SimilarMessages>,
    /// The time at which each source has its next whole burst.
    full: HashMap<String, Instant>,
    /// The number in the name of the last Event.
    number: u64,
    /// The number of dropped Events since the last log line about them.
    lost: u64,
}

impl EventCorrelator {
    /// Creates a correlator that has written nothing yet. The sources' `ConfigMap`s are in this
    /// namespace.
    pub(super) fn new(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            waiting: VecDeque::new(),
            made: HashMap::new(),
            order: VecDeque::new(),
            similar: HashMap::new(),
            full: HashMap::new(),
            number: 0,
            lost: 0,
        }
    }

    /// Takes an event: it becomes an Event on its object, and one on its source.
    pub(super) fn offer(&mut self, event: &EventRecord, now: Instant) {
        let Some(regarding) = &event.regarding else { return };
        if !has_kubernetes_event(event.reason) {
            return;
        }
        let made = match (&event.author, &event.subject) {
            (Some(author), Some(subject)) => format!(" ({author}: {subject})"),
            _ => String::new(),
        };
        let message = sanitize_line(&event.message);
        if let Some((id, gvk, uid)) = &regarding.object {
            let (id, gvk, uid) = (id.clone(), gvk.clone(), uid.clone());
            let subject = EventSubject { id, gvk, uid, is_source: false };
            self.add(event, subject, message.clone(), &made, now);
        }
        if let Some(inventory) = &regarding.inventory {
            let gvk = Gvk::new("", "v1", "ConfigMap");
            let id = ObjectId::new(&GroupKind::new("", "ConfigMap"), Some(&self.namespace), &event.source);
            let message = match &regarding.object {
                Some((object, ..)) => format!("{}: {message}", sanitize_line(&object.to_string())),
                None => message,
            };
            let subject = EventSubject { id, gvk, uid: Some(inventory.clone()), is_source: true };
            self.add(event, subject, message, &made, now);
        }
    }

    fn add(
        &mut self,
        event: &EventRecord,
        subject: EventSubject,
        mut message: String,
        made: &str,
        now: Instant,
    ) {
        let EventSubject { id, gvk, uid, is_source } = subject;
        let alike = self.is_one_of_many(&id, event.reason, &format!("{message}{made}"), now);
        if alike {
            message.insert_str(0, "(combined from similar events) ");
        }
        // Long words of a server do not push out who made the commit.
        message.truncate(message.floor_char_boundary(MAX_EVENT_MESSAGE_BYTES.saturating_sub(made.len())));
        message.push_str(made);
        message.truncate(message.floor_char_boundary(MAX_EVENT_MESSAGE_BYTES));
        let key_message = if alike { String::new() } else { message.clone() };
        let key =
            EventKey { about: id.clone(), uid: uid.clone(), reason: event.reason, message: key_message };
        if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.key == key) {
            waiting.occurrence.count += 1;
            (waiting.occurrence.last, waiting.occurrence.message) = (event.at, message);
            return;
        }
        let revision =
            event.revision.iter().map(|revision| (annotations::REVISION.to_owned(), revision.clone()));
        let occurrence = KubernetesEvent {
            reason: event.reason.to_string(),
            severity: if event.reason.is_warning() { EventType::Warning } else { EventType::Normal },
            count: 1,
            first: event.at,
            last: event.at,
            annotations: revision.collect::<BTreeMap<_, _>>(),
            id,
            gvk,
            uid,
            message,
        };
        let name = self.name(&occurrence, event.number);
        if self.waiting.len() >= MAX_PENDING_EVENTS {
            self.lose_one();
        }
        let (source, of_source) = (event.source.clone(), is_source);
        self.waiting.push_back(WaitingEvent { source, key, name, occurrence, of_source, attempts: 0 });
    }

    /// Drops one Event to make room. An Event about a source stands for many of its objects, so it
    /// goes last.
    fn lose_one(&mut self) {
        let worth = |one: &WaitingEvent| (one.of_source, one.occurrence.severity == EventType::Warning);
        let least = self.waiting.iter().enumerate().min_by_key(|(_, one)| worth(one));
        if let Some(lost) = least.map(|(index, _)| index).and_then(|index| self.waiting.remove(index)) {
            self.lost += u64::from(lost.occurrence.count);
        }
    }

    /// Returns how many things are reported by no Event, once nothing waits any more; each is
    /// counted once.
    pub(super) fn take_unreported_count(&mut self) -> u64 {
        if self.waiting.is_empty() { std::mem::take(&mut self.lost) } else { 0 }
    }

    /// Returns the number of occurrences that stay without an Event where none is written any more.
    pub(super) fn unwritten_count(&self) -> u64 {
        self.lost + self.waiting.iter().map(|one| u64::from(one.occurrence.count)).sum::<u64>()
    }

    /// Returns a name that no Event of this process has: one event may have two, about objects of
    /// the same name.
    fn name(&mut self, occurrence: &KubernetesEvent, number: u64) -> String {
        self.number = number.max(self.number + 1);
        event_name(occurrence.id.name(), self.number)
    }

    /// Returns whether [`MAX_SIMILAR_EVENTS`] different messages about an object and reason came
    /// lately, so that this one counts as one more of them.
    fn is_one_of_many(&mut self, id: &ObjectId, reason: EventReason, message: &str, now: Instant) -> bool {
        let over = |at: &Instant| now.duration_since(*at) >= SIMILARITY_WINDOW;
        if self.similar.len() >= MAX_REMEMBERED_EVENTS {
            self.similar.retain(|_, messages| messages.back().is_some_and(|(at, _)| !over(at)));
        }
        // One by one they would be searched for each of as many objects.
        if self.similar.len() >= MAX_REMEMBERED_EVENTS {
            self.similar.retain(|_, messages| messages.len() > 1);
        }
        if self.similar.len() >= MAX_REMEMBERED_EVENTS {
            self.similar.clear();
        }
        let messages = self.similar.entry((id.clone(), reason)).or_default();
        while messages.front().is_some_and(|(at, _)| over(at)) {
            messages.pop_front();
        }
        if messages.iter().any(|(_, known)| known == message) {
            return false;
        }
        if messages.len() < MAX_SIMILAR_EVENTS {
            messages.push_back((now, message.to_owned()));
            return false;
        }
        true
    }

    /// Returns the next Event that may be written now: a warning first.
    pub(super) fn next(&mut self, now: Instant) -> Option<EventWrite> {
        let may = |full: &HashMap<String, Instant>, source: &str| {
            full.get(source).is_none_or(|full| {
                full.saturating_duration_since(now) <= EVENT_INTERVAL * (MAX_EVENT_BURST - 1)
            })
        };
        let (full, waiting) = (&self.full, &self.waiting);
        let allowed = |of: EventType| {
            waiting.iter().position(|one| one.occurrence.severity == of && may(full, &one.source))
        };
        let index = allowed(EventType::Warning).or_else(|| allowed(EventType::Normal))?;
        let WaitingEvent { source, key, name, mut occurrence, of_source, attempts } =
            self.waiting.remove(index)?;
        let added = occurrence.count;
        let full = self.full.entry(source.clone()).or_insert(now);
        *full = (*full).max(now) + EVENT_INTERVAL;
        let (verb, name) = if let Some(made) = self.made.get_mut(&key) {
            made.count += occurrence.count;
            (occurrence.count, occurrence.first) = (made.count, made.first);
            (EventWriteVerb::Patch, made.name.clone())
        } else {
            self.record_made(&key, &name, &occurrence);
            (EventWriteVerb::Create, name)
        };
        Some(EventWrite { verb, name, occurrence, source, key, of_source, attempts, added })
    }

    fn record_made(&mut self, key: &EventKey, name: &str, occurrence: &KubernetesEvent) {
        if self.order.len() >= MAX_REMEMBERED_EVENTS
            && let Some(oldest) = self.order.pop_front()
        {
            self.made.remove(&oldest);
        }
        let made = WrittenEvent { name: name.to_owned(), count: occurrence.count, first: occurrence.first };
        self.made.insert(key.clone(), made);
        self.order.push_back(key.clone());
    }

    /// Forgets an Event that was to be changed and is gone: it is made anew.
    pub(super) fn forget_event(&mut self, write: EventWrite) {
        let EventWrite { mut occurrence, key, source, of_source, attempts, added, .. } = write;
        self.drop_made(&key);
        (occurrence.count, occurrence.first) = (added, occurrence.last);
        let name = self.name(&occurrence, 0);
        self.waiting.push_front(WaitingEvent { source, key, name, occurrence, of_source, attempts });
    }

    /// Notes an Event that could not be written, and returns whether it is worth another try. It
    /// waits again under the same name, as it may have been made.
    pub(super) fn try_requeue(&mut self, write: EventWrite) -> bool {
        let EventWrite { verb, mut occurrence, key, source, of_source, attempts, added, name } = write;
        match self.made.get_mut(&key) {
            Some(made) if verb == EventWriteVerb::Patch => made.count -= added,
            _ => self.drop_made(&key),
        }
        if attempts + 1 >= MAX_EVENT_TRIES {
            self.lost += u64::from(added);
            return false;
        }
        occurrence.count = added;
        self.waiting.push_front(WaitingEvent {
            source,
            key,
            name,
            occurrence,
            of_source,
            attempts: attempts + 1,
        });
        true
    }

    /// Drops an Event that nobody misses.
    pub(super) fn note_skipped(&mut self, write: &EventWrite) {
        match self.made.get_mut(&write.key) {
            Some(made) if write.verb == EventWriteVerb::Patch => made.count -= write.added,
            _ => self.drop_made(&write.key),
        }
    }

    /// Drops an Event, and counts what it says as lost.
    pub(super) fn note_lost(&mut self, write: &EventWrite) {
        self.note_skipped(write);
        self.lost += u64::from(write.added);
    }

    fn drop_made(&mut self, key: &EventKey) {
        self.made.remove(key);
        self.order.retain(|other| other != key);
    }

    /// Returns when the next one that waits may be written.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let sources: HashSet<&String> = self.waiting.iter().map(|waiting| &waiting.source).collect();
        let full = sources.into_iter().filter_map(|source| self.full.get(source));
        full.filter_map(|full| full.checked_sub(EVENT_INTERVAL * (MAX_EVENT_BURST - 1))).min()
    }
}

/// Returns whether an event reason gets a Kubernetes Event: people look for it beside an object.
/// The single objects of a large commit do not.
fn has_kubernetes_event(reason: EventReason) -> bool {
    !matches!(
        reason,
        EventReason::Created | EventReason::Configured | EventReason::Pruned | EventReason::Recreated
    )
}

/// Returns a name in the form of a DNS subdomain, which not every object has.
fn event_name(object: &str, number: u64) -> String {
    let plain = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' };
    let name: String = object.chars().take(MAX_EVENT_NAME_BYTES).map(plain).collect();
    let name = name.trim_matches('-');
    format!("{}.{number:x}", if name.is_empty() { "rhumb" } else { name })
}

#[cfg(test)]
mod tests;
