//! Events: what happened, for all who listen.
//!
//! The loop makes an event once, and the [`EventRecorder`] keeps it for a while. The event stream,
//! the Kubernetes Events, the log and the notifications take it from there. No slow listener holds
//! anybody up. A client that is slow is let go, and finds the kept events. The process' own
//! listeners lose none, however much happens at once.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::{broadcast, mpsc};

use super::ObjectRef;
use crate::engine::Uid;
use crate::object::{Gvk, ObjectId};
use crate::render::CodedReason;

/// The number of events kept for later listeners.
const MAX_KEPT_EVENTS: usize = 512;

/// The number of events after which a slow listener misses some, and learns that.
const MAX_LISTENER_LAG: usize = 1024;

/// The bytes to which a message is cut: the API server takes no longer one in an Event.
const MAX_EVENT_MESSAGE_BYTES: usize = 1024;

/// The reason word of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum EventReason {
    /// Another revision of a source is in force.
    RevisionRead,
    /// All that a revision asks for is applied and healthy.
    RevisionSettled,
    /// The newest state of a source could not be read completely.
    SourceIncomplete,
    /// One of rhumb's own records in its namespace cannot be read before a person fixes it.
    RecordUnreadable,
    /// The pods of a workload are being replaced.
    RolloutStarted,
    /// The pods of a workload are replaced, and healthy.
    RolloutSucceeded,
    /// The new pods of a workload do not come up.
    RolloutFailed,
    /// A failed unit was put back to its last good content.
    RolledBack,
    /// A change by others was undone.
    DriftRepaired,
    /// Deletions wait for a confirmation.
    PruneWaiting,
    /// Somebody else has, or changes again and again, what a source wants.
    Conflict,
    /// Somebody's annotation on a live object takes it out of our hands.
    OptedOut,
    /// Such an annotation no longer takes an object out of our hands.
    OptOutEnded,
    /// A desired object is refused until a person changes something.
    Refused,
    /// An object was made.
    Created,
    /// An object was changed.
    Configured,
    /// An object was adopted from another owner.
    Adopted,
    /// An object that no source wants any more was deleted.
    Pruned,
    /// An object was deleted, to be made again.
    Recreated,
    /// An order was carried out, or there was nothing to do.
    OrderDone,
    /// Something that looks like an order is none, or is where none is obeyed.
    OrderIgnored,
}

impl EventReason {
    /// All reasons.
    pub(crate) const ALL: [Self; 21] = [
        Self::RevisionRead,
        Self::RevisionSettled,
        Self::SourceIncomplete,
        Self::RecordUnreadable,
        Self::RolloutStarted,
        Self::RolloutSucceeded,
        Self::RolloutFailed,
        Self::RolledBack,
        Self::DriftRepaired,
        Self::PruneWaiting,
        Self::Conflict,
        Self::OptedOut,
        Self::OptOutEnded,
        Self::Refused,
        Self::Created,
        Self::Configured,
        Self::Adopted,
        Self::Pruned,
        Self::Recreated,
        Self::OrderDone,
        Self::OrderIgnored,
    ];

    /// Returns whether it needs a person's attention.
    pub(crate) const fn is_warning(self) -> bool {
        matches!(
            self,
            Self::SourceIncomplete
                | Self::RecordUnreadable
                | Self::RolloutFailed
                | Self::RolledBack
                | Self::PruneWaiting
                | Self::Conflict
                | Self::OptedOut
                | Self::Refused
                | Self::OrderIgnored
        )
    }
}

impl fmt::Display for EventReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventRecord {
    /// Larger than that of every event before it, also of those of an earlier process.
    pub number: u64,
    /// The time.
    pub at: Timestamp,
    /// The reason word.
    pub reason: EventReason,
    /// The source.
    pub source: String,
    /// The object; none where it is about the source as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
    /// The message, as a sentence.
    pub message: String,
    /// The reason in these words for machines; empty where there is none.
    #[serde(flatten)]
    pub coded: CodedReason,
    /// The revision that it follows from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The revision's author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The first line of the revision's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The subject of Kubernetes Events; none where none are written, as the source is only
    /// observed.
    #[serde(skip)]
    pub regarding: Option<RegardingObjects>,
}

/// The subject of the Kubernetes Events about an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RegardingObjects {
    /// The object, in which version of its kind, and which incarnation where one is known.
    pub object: Option<(ObjectId, Gvk, Option<Uid>)>,
    /// The incarnation of the source's `ConfigMap`; none where there is none.
    pub inventory: Option<Uid>,
}

/// `RolloutStarted Deployment shop/web: revision 1a2b3c4d5e6f (Ann: Two replicas)`.
impl fmt::Display for EventRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.reason)?;
        match &self.object {
            Some(object) => write!(f, " {object}")?,
            None => write!(f, " {}", self.source)?,
        }
        write!(f, ": {}", self.message)
    }
}

/// The message of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventMessage {
    /// The message, as a sentence.
    pub text: String,
    /// The reason in these words for machines.
    pub coded: CodedReason,
}

impl From<String> for EventMessage {
    fn from(text: String) -> Self {
        Self { text, coded: CodedReason::default() }
    }
}

/// An event without its number and time.
#[derive(Clone, Debug)]
pub(crate) struct EventDraft {
    /// See [`EventRecord::reason`].
    pub reason: EventReason,
    /// See [`EventRecord::source`].
    pub source: Arc<str>,
    /// See [`EventRecord::object`].
    pub object: Option<ObjectId>,
    /// See [`EventRecord::regarding`].
    pub regarding: Option<RegardingObjects>,
    /// See [`EventRecord::message`].
    pub message: EventMessage,
    /// See [`EventRecord::revision`].
    pub revision: Option<String>,
    /// See [`EventRecord::author`].
    pub author: Option<String>,
    /// See [`EventRecord::subject`].
    pub subject: Option<String>,
}

/// The record of the last events, which hands each to all who listen. Cheap to clone; all clones
/// are the same.
#[derive(Clone, Debug)]
pub(crate) struct EventRecorder(Arc<RecorderState>);

#[derive(Debug)]
struct RecorderState {
    backlog: Mutex<EventBacklog>,
    listeners: broadcast::Sender<Arc<EventRecord>>,
    /// No event has this number, or a smaller one.
    first: u64,
}

/// The kept events, and the lossless listeners.
#[derive(Debug, Default)]
struct EventBacklog {
    kept: VecDeque<Arc<EventRecord>>,
    followers: Vec<EventSubscriber>,
}

/// The filter of a listener, and its channel.
type EventSubscriber = (fn(EventReason) -> bool, mpsc::UnboundedSender<Arc<EventRecord>>);

/// The kept events and those to come, without loss.
#[derive(Debug)]
pub(crate) struct LosslessSubscription {
    /// Events that are still known, the oldest first.
    pub backlog: Vec<Arc<EventRecord>>,
    /// Events to come, none of which is in the past.
    pub live: mpsc::UnboundedReceiver<Arc<EventRecord>>,
}

/// The kept events and those to come. A listener too far behind loses some.
#[derive(Debug)]
pub(crate) struct EventSubscription {
    /// Events that are still known, the oldest first.
    pub backlog: Vec<Arc<EventRecord>>,
    /// Events to come, none of which is in the past.
    pub live: broadcast::Receiver<Arc<EventRecord>>,
}

impl EventRecorder {
    /// Creates a recorder whose numbers are larger than those of all that began earlier.
    pub(crate) fn new(now: Timestamp) -> Self {
        let first = u64::try_from(now.as_microsecond()).unwrap_or(0);
        Self(Arc::new(RecorderState {
            backlog: Mutex::default(),
            listeners: broadcast::Sender::new(MAX_LISTENER_LAG),
            first,
        }))
    }

    /// Records an event, and sends it to all who listen.
    pub(crate) fn record(&self, now: Timestamp, draft: EventDraft) {
        let EventDraft { reason, source, object, regarding, message, revision, author, subject } = draft;
        let EventMessage { text: mut message, coded } = message;
        message.truncate(message.floor_char_boundary(MAX_EVENT_MESSAGE_BYTES));
        let mut backlog = self.backlog();
        let EventBacklog { kept, followers } = &mut *backlog;
        let event = Arc::new(EventRecord {
            number: kept.back().map_or(self.0.first, |last| last.number) + 1,
            at: now,
            reason,
            source: source.to_string(),
            object: object.as_ref().map(ObjectRef::of),
            message,
            coded,
            revision,
            author,
            subject,
            regarding,
        });
        if kept.len() == MAX_KEPT_EVENTS {
            kept.pop_front();
        }
        kept.push_back(event.clone());
        followers.retain(|(wants, follower)| {
            if wants(reason) { follower.send(event.clone()).is_ok() } else { !follower.is_closed() }
        });
        // Under the lock, so that whoever begins to listen misses none and hears none twice. Nobody
        // may listen.
        let _ = self.0.listeners.send(event);
    }

    /// Returns the kept events after this number, and those to come; 0 for all.
    pub(crate) fn subscribe_after(&self, number: u64) -> EventSubscription {
        let backlog = self.backlog();
        let past = backlog.kept.iter().filter(|event| event.number > number).cloned().collect();
        EventSubscription { backlog: past, live: self.0.listeners.subscribe() }
    }

    /// Returns the kept events with these reasons, and all to come, were it thousands at once. For
    /// listeners that take them in whatever else they wait for: an event that is not taken stays in
    /// memory.
    pub(crate) fn follow(&self, wants: fn(EventReason) -> bool) -> LosslessSubscription {
        let (follower, coming) = mpsc::unbounded_channel();
        let mut backlog = self.backlog();
        backlog.followers.push((wants, follower));
        let past = backlog.kept.iter().filter(|event| wants(event.reason)).cloned().collect();
        LosslessSubscription { backlog: past, live: coming }
    }

    /// Returns how many follow.
    #[cfg(test)]
    pub(crate) fn followers(&self) -> usize {
        self.backlog().followers.len()
    }

    fn backlog(&self) -> MutexGuard<'_, EventBacklog> {
        self.0.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::GroupKind;

    fn draft(message: &str) -> EventDraft {
        EventDraft {
            reason: EventReason::RevisionRead,
            source: "shop".into(),
            object: None,
            regarding: None,
            message: message.to_owned().into(),
            revision: None,
            author: None,
            subject: None,
        }
    }

    fn messages(events: &[Arc<EventRecord>]) -> Vec<&str> {
        events.iter().map(|event| &*event.message).collect()
    }

    #[test]
    fn who_comes_later_misses_nothing_and_hears_nothing_twice() {
        let now = Timestamp::UNIX_EPOCH;
        let recorder = EventRecorder::new(now);
        recorder.record(now, draft("a"));
        recorder.record(now, draft("b"));
        let mut all = recorder.subscribe_after(0);
        assert_eq!(messages(&all.backlog), ["a", "b"]);
        let first = all.backlog[0].number;
        assert_eq!(messages(&recorder.subscribe_after(first).backlog), ["b"]);
        recorder.record(now, draft("c"));
        let coming = all.live.try_recv().unwrap();
        assert_eq!((&*coming.message, coming.number), ("c", first + 2));
        assert!(all.live.try_recv().is_err());
    }

    /// Reports as many objects as one turn of the loop may have.
    #[test]
    fn who_follows_loses_nothing_among_thousands() {
        let now = Timestamp::UNIX_EPOCH;
        let recorder = EventRecorder::new(now);
        recorder.record(now, draft("before"));
        let mut all = recorder.follow(|_| true);
        let mut few = recorder.follow(|happening| happening == EventReason::RolloutFailed);
        recorder.record(now, EventDraft { reason: EventReason::RolloutFailed, ..draft("failed") });
        (0..10_000).for_each(|_| recorder.record(now, draft("read")));
        assert_eq!((messages(&all.backlog), messages(&few.backlog)), (vec!["before"], vec![]));
        let heard = |coming: &mut mpsc::UnboundedReceiver<Arc<EventRecord>>| {
            std::iter::from_fn(|| coming.try_recv().ok()).collect::<Vec<_>>()
        };
        let heard_all = heard(&mut all.live);
        assert_eq!((heard_all.len(), &*heard_all[0].message), (10_001, "failed"));
        assert_eq!(messages(&heard(&mut few.live)), ["failed"]);
        drop((all, few));
        recorder.record(now, draft("to nobody"));
        assert_eq!(recorder.followers(), 0);
    }

    #[test]
    fn a_later_process_goes_on_with_larger_numbers() {
        let now: Timestamp = "2030-01-02T03:04:05Z".parse().unwrap();
        let last = |at: Timestamp| {
            let recorder = EventRecorder::new(at);
            (0..100).for_each(|_| recorder.record(at, draft("a")));
            recorder.subscribe_after(0).backlog.last().unwrap().number
        };
        let later = now + jiff::SignedDuration::from_secs(1);
        assert!(last(now) < last(later));
        // JavaScript counts that far without loss.
        assert!(last(later) < 1 << 53);
    }

    #[test]
    fn so_many_are_kept_and_each_is_so_long() {
        let recorder = EventRecorder::new(Timestamp::UNIX_EPOCH);
        for number in 0..=MAX_KEPT_EVENTS {
            recorder.record(
                Timestamp::UNIX_EPOCH,
                draft(&format!("{number} {}", "é".repeat(MAX_EVENT_MESSAGE_BYTES))),
            );
        }
        let past = recorder.subscribe_after(0).backlog;
        assert_eq!(past.len(), MAX_KEPT_EVENTS);
        assert!(past[0].message.starts_with("1 é") && past[0].message.len() <= MAX_EVENT_MESSAGE_BYTES);
    }

    #[test]
    fn an_event_is_one_line() {
        fn check(object: Option<ObjectId>, expected: &str) {
            let recorder = EventRecorder::new(Timestamp::UNIX_EPOCH);
            recorder.record(Timestamp::UNIX_EPOCH, EventDraft { object, ..draft("so it is") });
            assert_eq!(recorder.subscribe_after(0).backlog[0].to_string(), expected);
        }
        let of = |kind: &str, namespace| Some(ObjectId::new(&GroupKind::new("", kind), namespace, "web"));
        check(None, "RevisionRead shop: so it is");
        check(of("Pod", Some("a")), "RevisionRead Pod a/web: so it is");
        check(of("Namespace", None), "RevisionRead Namespace web: so it is");
    }
}
