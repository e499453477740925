//! Log lines: one for each change of state.
//!
//! People read the message, the object, the source and the revision. Machines get the parts of the
//! object's name, the action, and a number for each kind of event: the journal as fields, JSON as
//! keys.

use std::borrow::Cow;
use std::sync::Arc;

use tracing::{Level, debug, info, warn};

use super::{EventReason, EventRecord, ObjectRef, Outcome};
use crate::engine::Reason;
use crate::object::{ObjectId, Revision};

/// The outcome of an object, with its source.
#[derive(Clone, Debug)]
pub(crate) struct ObjectEvent {
    /// The object.
    pub id: ObjectId,
    /// The outcome.
    pub outcome: Outcome,
    /// The event reason; none where it is no event.
    pub reason: Option<EventReason>,
    /// The source that wants it, or wanted it.
    pub source: Option<Arc<str>>,
    /// The revision that it follows from.
    pub revision: Option<Revision>,
    /// The reason for its failure, where the failed rollout has reported it already.
    pub known: Option<Arc<str>>,
}

/// The maximum number of characters of a failure's reason in a line: pods and webhooks may say
/// pages. `rhumb why` has all of it.
const MAX_BRIEF_CHARS: usize = 200;

/// The length of the end of a long text, which says what came of it.
const BRIEF_TAIL_CHARS: usize = 110;

/// Returns as much of a text as a line has room for: its beginning and its end.
pub(crate) fn shorten_text(text: &str) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= MAX_BRIEF_CHARS {
        return Cow::Borrowed(text);
    }
    let head: String = text.chars().take(MAX_BRIEF_CHARS - BRIEF_TAIL_CHARS - 3).collect();
    let tail: String = text.chars().skip(count - BRIEF_TAIL_CHARS).collect();
    Cow::Owned(format!("{} … {}", head.trim_end(), tail.trim_start()))
}

/// Fields that the line of text leaves out: they say in parts what is in it anyway, or are for
/// machines alone.
pub(crate) const MACHINE_FIELDS: [&str; 8] = [
    "action",
    "author",
    "subject",
    "message_id",
    "object.group",
    "object.kind",
    "object.namespace",
    "object.name",
];

/// Writes a line at a level that is known only now.
macro_rules! line {
    ($level:expr, $($rest:tt)+) => {
        match $level {
            Level::WARN => warn!($($rest)+),
            Level::INFO => info!($($rest)+),
            _ => debug!($($rest)+),
        }
    };
}

/// Writes the line of what became of an object: what changes the cluster at info, what waits at
/// warn, the rest at debug.
pub(crate) fn log(event: &ObjectEvent) {
    let ObjectEvent { id, outcome, reason, source, revision, known } = event;
    let level = match outcome {
        Outcome::Waiting(Reason::Fight(..)) | Outcome::Refused(_) => Level::WARN,
        // rhumb itself acts on the pods.
        Outcome::Waiting(Reason::Step(_)) => Level::INFO,
        Outcome::Unchanged | Outcome::Unhealthy(_) | Outcome::Waiting(_) => Level::DEBUG,
        _ => Level::INFO,
    };
    let repaired = *reason == Some(EventReason::DriftRepaired);
    let words = match outcome {
        Outcome::Repaired(who) if repaired => format!("drift repaired: {who}; put back"),
        _ if repaired => "drift repaired".to_owned(),
        Outcome::Refused(Reason::Rejected(_)) => {
            let words = outcome.to_string();
            let words = known.as_ref().map_or_else(|| words.clone(), |why| words.replace(&**why, "…"));
            shorten_text(&words).into_owned()
        }
        outcome => outcome.to_string(),
    };
    let group = Some(id.group()).filter(|group| !group.is_empty());
    line!(
        level,
        object = %id,
        source = source.as_ref().map(display),
        revision = revision.as_ref().map(display),
        action = if repaired { "repair" } else { outcome.action_word() },
        message_id = reason.map(EventReason::message_id),
        object.group = group,
        object.kind = id.kind(),
        object.namespace = id.namespace(),
        object.name = id.name(),
        "{words}"
    );
}

/// Returns whether this kind of event has a line of its own.
pub(crate) fn has_line(reason: EventReason) -> bool {
    event_words(reason).is_some()
}

fn event_words(reason: EventReason) -> Option<&'static str> {
    Some(match reason {
        EventReason::RolloutStarted => "rollout started",
        EventReason::RolloutSucceeded => "rollout succeeded",
        EventReason::RolloutFailed => "rollout failed",
        EventReason::RolledBack => "rolled back",
        EventReason::PruneWaiting => "prune waiting",
        EventReason::OptedOut => "opted out",
        EventReason::OptOutEnded => "opt-out ended",
        EventReason::RevisionSettled => "settled",
        EventReason::OrderDone => "order",
        EventReason::OrderIgnored => "no order",
        // A reading has its line where it is found.
        EventReason::RevisionRead
        | EventReason::SourceIncomplete
        | EventReason::RecordUnreadable
        | EventReason::DriftRepaired
        | EventReason::Conflict
        | EventReason::Refused
        | EventReason::Created
        | EventReason::Configured
        | EventReason::Adopted
        | EventReason::Pruned
        | EventReason::Recreated => return None,
    })
}

fn is_of_rollout(reason: EventReason) -> bool {
    matches!(reason, EventReason::RolloutStarted | EventReason::RolloutFailed | EventReason::RolledBack)
}

/// Writes the line of what happened beside what became of single objects, each of which has a line
/// of its own.
pub(crate) fn log_event(event: &EventRecord) {
    let Some(words) = event_words(event.reason) else { return };
    let level = if event.reason.is_warning() { Level::WARN } else { Level::INFO };
    let part = |of: fn(&ObjectRef) -> Option<&str>| event.object.as_ref().and_then(of);
    line!(
        level,
        object = event.object.as_ref().map(display),
        source = %event.source,
        revision = event.revision.as_ref().map(display),
        action = "report",
        author = event.author,
        subject = event.subject,
        message_id = event.reason.message_id(),
        object.group = part(|object| Some(&*object.group).filter(|group| !group.is_empty())),
        object.kind = part(|object| Some(&object.kind)),
        object.namespace = part(|object| object.namespace.as_deref()),
        object.name = part(|object| Some(&object.name)),
        "{words}: {}",
        if is_of_rollout(event.reason) { shorten_text(&event.message) } else { Cow::Borrowed(&*event.message) }
    );
}

impl Outcome {
    /// Returns the action in a word, for machines.
    pub(crate) const fn action_word(&self) -> &'static str {
        match self {
            Self::Created => "create",
            Self::Configured | Self::Adopted(_) | Self::Repaired(_) => "configure",
            Self::Unchanged => "none",
            Self::Pruned => "prune",
            Self::Recreating => "delete",
            Self::Recreated => "recreate",
            Self::Unhealthy(_) | Self::Waiting(_) => "wait",
            Self::Refused(Reason::Rejected(_)) => "fail",
            Self::Refused(_) => "refuse",
        }
    }
}

impl EventReason {
    /// Returns the number of this kind of event in the journal (`MESSAGE_ID`,
    /// systemd.journal-fields(7)). One that was given away stays what it is for ever.
    pub(crate) const fn message_id(self) -> &'static str {
        match self {
            Self::RevisionRead => "8b10c66cb2ad40da87258f8a8c2d5cf8",
            Self::RevisionSettled => "aaf8cfd3c9c643cda4b3d554835f5f3e",
            Self::SourceIncomplete => "8dfa4c5292924b949889b635761329e1",
            Self::RecordUnreadable => "2f6d0b1e7c9a4d53b8e41a90c37f5d26",
            Self::RolloutStarted => "7901a209f33d47898aff00f19f20d794",
            Self::RolloutSucceeded => "b11df7a795364c918f19aa83d211f6a4",
            Self::RolloutFailed => "0a71221f7e92415383760b821d3db64f",
            Self::RolledBack => "e3f9b23d5223453684a2eab1bffc9d26",
            Self::DriftRepaired => "ef1e11c4a4354e04a88142b05b4cc992",
            Self::PruneWaiting => "475da0f5d0a6455b842fc4e731854643",
            Self::Conflict => "5a64248add164359b3fdfc9b452dfbfb",
            Self::OptedOut => "003dadb04f304709a175b7ae562b7c2e",
            Self::OptOutEnded => "95b2461cf8ff4b0c9ab179a37dddd052",
            Self::Refused => "49be59c30f2f489aaa338ddbacd5c23c",
            Self::Created => "7476e089eaee48099bdc61f6b38e1f4c",
            Self::Configured => "14c1a083ccc046538fce6be2c1c69ba7",
            Self::Adopted => "c5b1f0a94e7d4d2c8b36a10e59f27d84",
            Self::Pruned => "c79e982f369c41b89b4f3c30df2b3a3f",
            Self::Recreated => "c192254558ec4e44a495b68515d122a6",
            Self::OrderDone => "3d9f0b7c5ab14fc1a2c86d4e7f10b935",
            Self::OrderIgnored => "b64e28a1d7f34c0f9e5308c2716dfa4b",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{MAX_BRIEF_CHARS, shorten_text};
    use crate::report::EventReason;

    #[test]
    fn a_long_reason_keeps_its_beginning_and_its_end() {
        let check = |text: &str, expected: &str| assert_eq!(shorten_text(text), expected);
        check("no progress for 10 min", "no progress for 10 min");
        let exact = "ä".repeat(MAX_BRIEF_CHARS);
        check(&exact, &exact);
        let long = format!("revision 1a2b failed: {}; it is back at revision 3c4d", "x".repeat(700));
        let text = shorten_text(&long);
        assert!(text.chars().count() <= MAX_BRIEF_CHARS, "{text}");
        assert!(text.starts_with("revision 1a2b failed: xxx"), "{text}");
        assert!(text.ends_with("x; it is back at revision 3c4d"), "{text}");
    }

    #[test]
    fn each_kind_of_event_has_a_number_of_its_own() {
        let numbers: BTreeSet<&str> = EventReason::ALL.iter().map(|reason| reason.message_id()).collect();
        assert_eq!(numbers.len(), EventReason::ALL.len());
        for reason in EventReason::ALL {
            let number = reason.message_id();
            assert!(number.len() == 32 && number.bytes().all(|byte| byte.is_ascii_hexdigit()), "{number}");
        }
    }
}
