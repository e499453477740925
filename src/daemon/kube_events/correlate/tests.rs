//! The choice and the time of Events.

use super::*;
use crate::report::{EventDraft, EventRecorder, RegardingObjects};

const NAMESPACE: &str = "rhumb-system";

struct CorrelatorFixture {
    correlator: EventCorrelator,
    recorder: EventRecorder,
    now: Instant,
    /// The author and the subject of the revision.
    made: Option<(String, String)>,
}

impl CorrelatorFixture {
    fn new() -> Self {
        let recorder = EventRecorder::new(Timestamp::UNIX_EPOCH);
        Self { correlator: EventCorrelator::new(NAMESPACE), recorder, now: Instant::now(), made: None }
    }

    /// Records an occurrence about an object; about the source as a whole where none is named.
    fn happens(&mut self, reason: EventReason, name: Option<&str>, message: &str) {
        let object = name.map(|name| {
            let gvk = Gvk::new("apps", "v1", "Deployment");
            (ObjectId::new(&gvk.group_kind(), Some("shop"), name), gvk, Some(Uid("u".into())))
        });
        let about = object.as_ref().map(|(id, ..)| id.clone());
        // An object's Events alone, unless it is about the source.
        let regarding = RegardingObjects { inventory: name.is_none().then(|| Uid("p".into())), object };
        self.records(reason, about, message, regarding);
    }

    fn records(
        &mut self,
        reason: EventReason,
        object: Option<ObjectId>,
        message: &str,
        regarding: RegardingObjects,
    ) {
        let draft = EventDraft {
            reason,
            source: "shop".into(),
            object,
            regarding: Some(regarding),
            message: message.to_owned().into(),
            revision: Some("1a2b".to_owned()),
            author: self.made.clone().map(|(author, _)| author),
            subject: self.made.clone().map(|(_, subject)| subject),
        };
        self.recorder.record(Timestamp::UNIX_EPOCH, draft);
        let last = self.recorder.subscribe_after(0).backlog.pop().unwrap();
        self.correlator.offer(&last, self.now);
    }

    /// Returns the Events written now: `web RolloutFailed 2: message`.
    fn written(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.correlator.next(self.now)).map(|write| words(&write)).collect()
    }
}

fn words(write: &EventWrite) -> String {
    let KubernetesEvent { id, reason, count, message, .. } = &write.occurrence;
    let verb = if write.verb == EventWriteVerb::Create { "" } else { " again" };
    format!("{} {reason}{verb} {count}: {message}", id.name())
}

#[test]
fn what_others_wrote_begins_no_line_and_steers_no_terminal() {
    let mut fixture = CorrelatorFixture::new();
    fixture.happens(EventReason::Refused, Some("web"), "no:\nall\tis \u{1b}[2Jwell\u{202e}");
    assert_eq!(fixture.written(), ["web Refused 1: no: all is \u{fffd}[2Jwell\u{fffd}"]);
    let gvk = Gvk::new("rbac.authorization.k8s.io", "v1", "Role");
    let id = ObjectId::new(&gvk.group_kind(), Some("shop"), "x\u{202e}\ny");
    let regarding =
        RegardingObjects { object: Some((id.clone(), gvk, None)), inventory: Some(Uid("p".into())) };
    fixture.records(EventReason::Refused, Some(id), "no", regarding);
    assert_eq!(fixture.written().last().unwrap(), "shop Refused 1: Role shop/x\u{fffd} y: no");
}

#[test]
fn what_happens_again_raises_a_count() {
    let mut fixture = CorrelatorFixture::new();
    fixture.happens(EventReason::DriftRepaired, Some("web"), "changed");
    fixture.happens(EventReason::DriftRepaired, Some("web"), "changed");
    assert_eq!(fixture.written(), ["web DriftRepaired 2: changed"]);
    fixture.happens(EventReason::DriftRepaired, Some("web"), "changed");
    fixture.happens(EventReason::DriftRepaired, Some("api"), "changed");
    assert_eq!(fixture.written(), ["web DriftRepaired again 3: changed", "api DriftRepaired 1: changed"]);
}

#[test]
fn one_that_has_expired_is_made_anew() {
    let mut fixture = CorrelatorFixture::new();
    fixture.happens(EventReason::Refused, Some("web"), "no");
    fixture.written();
    fixture.happens(EventReason::Refused, Some("web"), "no");
    let write = fixture.correlator.next(fixture.now).unwrap();
    assert_eq!(words(&write), "web Refused again 2: no");
    fixture.correlator.forget_event(write);
    assert_eq!(fixture.written(), ["web Refused 1: no"]);
    fixture.happens(EventReason::Refused, Some("web"), "no");
    assert_eq!(fixture.written(), ["web Refused again 2: no"]);
}

#[test]
fn many_different_messages_about_the_same_become_one() {
    let mut fixture = CorrelatorFixture::new();
    for number in 0..MAX_SIMILAR_EVENTS + 3 {
        fixture.happens(EventReason::RolloutStarted, Some("web"), &format!("revision {number}"));
    }
    let written = fixture.written();
    assert_eq!(written.len(), MAX_SIMILAR_EVENTS + 1);
    assert_eq!(
        written[MAX_SIMILAR_EVENTS], "web RolloutStarted 3: (combined from similar events) revision 12",
        "the newest words"
    );
    fixture.now += SIMILARITY_WINDOW;
    fixture.happens(EventReason::RolloutStarted, Some("web"), "revision 99");
    assert_eq!(fixture.written(), ["web RolloutStarted 1: revision 99"]);
}

#[test]
fn a_source_writes_a_burst_and_then_one_a_second_and_warnings_first() {
    let mut fixture = CorrelatorFixture::new();
    for number in 0..30 {
        fixture.happens(EventReason::DriftRepaired, Some(&format!("o{number}")), "changed");
    }
    fixture.happens(EventReason::RolloutFailed, Some("web"), "bad");
    let first = fixture.written();
    assert_eq!((first.len(), &*first[0]), (25, "web RolloutFailed 1: bad"));
    assert_eq!(fixture.correlator.next_due(), Some(fixture.now + EVENT_INTERVAL));
    for number in 24..30 {
        fixture.now += EVENT_INTERVAL;
        assert_eq!(fixture.written(), [format!("o{number} DriftRepaired 1: changed")]);
    }
    assert_eq!(fixture.correlator.next_due(), None);
    fixture.now += EVENT_INTERVAL * 3;
    for number in 0..5 {
        fixture.happens(EventReason::DriftRepaired, Some(&format!("p{number}")), "changed");
    }
    assert_eq!(fixture.written().len(), 3, "only so much has been gained back");
}

#[test]
fn too_many_are_not_written_and_no_warning_is_among_them() {
    let mut fixture = CorrelatorFixture::new();
    fixture.happens(EventReason::Conflict, Some("web"), "somebody else's");
    for number in 0..2 * MAX_PENDING_EVENTS {
        fixture.happens(EventReason::DriftRepaired, Some(&format!("o{number}")), "changed");
    }
    assert_eq!(fixture.correlator.waiting.len(), MAX_PENDING_EVENTS);
    assert_eq!(fixture.written()[0], "web Conflict 1: somebody else's");
}

#[test]
fn events_are_about_the_object_and_about_the_source() {
    let mut fixture = CorrelatorFixture::new();
    fixture.happens(EventReason::RevisionRead, None, "revision 1a2b was read");
    fixture.happens(EventReason::Created, Some("web"), "created");
    let write = fixture.correlator.next(fixture.now).unwrap();
    let KubernetesEvent { id, uid, annotations, severity, .. } = &write.occurrence;
    assert_eq!(id.to_string(), "ConfigMap rhumb-system/shop");
    assert_eq!((uid.as_ref().map(|uid| &*uid.0), *severity), (Some("p"), EventType::Normal));
    assert_eq!(annotations["rhumb.dev/revision"], "1a2b");
    assert_eq!(fixture.written(), [""; 0], "what is merely made is reported nowhere");
}

// An object may have the name of its source, and be in the namespace of the inventories.
#[test]
fn two_kubernetes_events_of_one_event_have_two_names() {
    let mut fixture = CorrelatorFixture::new();
    let gvk = Gvk::new("apps", "v1", "Deployment");
    let id = ObjectId::new(&gvk.group_kind(), Some(NAMESPACE), "shop");
    let both = RegardingObjects { object: Some((id, gvk, None)), inventory: Some(Uid("p".into())) };
    for message in ["a", "b"] {
        fixture.records(EventReason::RolloutStarted, None, message, both.clone());
    }
    let names: HashSet<String> =
        std::iter::from_fn(|| fixture.correlator.next(fixture.now)).map(|write| write.name).collect();
    assert_eq!(names.len(), 4, "{names:?}");
}

#[test]
fn long_words_leave_room_for_the_commit() {
    let mut fixture = CorrelatorFixture::new();
    fixture.made = Some(("é".repeat(100), "😀".repeat(100)));
    fixture.happens(EventReason::Refused, None, &"no ".repeat(1000));
    let write = fixture.correlator.next(fixture.now).unwrap();
    let message = write.occurrence.message;
    let expected = format!(" ({}: {})", "é".repeat(100), "😀".repeat(100));
    assert!(message.starts_with("no no ") && message.ends_with(&expected), "{message}");
    assert!(message.len() <= MAX_EVENT_MESSAGE_BYTES, "{}", message.len());
}

#[test]
fn what_could_not_be_written_is_tried_again_and_counted_once() {
    let mut fixture = CorrelatorFixture::new();
    let fails = |fixture: &mut CorrelatorFixture, expected: &str| {
        let write = fixture.correlator.next(fixture.now).unwrap();
        assert_eq!(words(&write), expected);
        fixture.correlator.try_requeue(write)
    };
    fixture.happens(EventReason::Refused, Some("web"), "no");
    assert!(fails(&mut fixture, "web Refused 1: no"));
    fixture.happens(EventReason::Refused, Some("web"), "no");
    assert!(fails(&mut fixture, "web Refused 2: no"));
    assert_eq!(fixture.written(), ["web Refused 2: no"]);
    fixture.happens(EventReason::Refused, Some("web"), "no");
    assert!(fails(&mut fixture, "web Refused again 3: no"));
    assert_eq!(
        (fixture.written(), fixture.correlator.take_unreported_count()),
        (vec!["web Refused again 3: no".to_owned()], 0)
    );
    // Not for ever.
    fixture.now += EVENT_INTERVAL * MAX_EVENT_TRIES;
    fixture.happens(EventReason::Refused, Some("api"), "no");
    for _ in 1..MAX_EVENT_TRIES {
        assert!(fails(&mut fixture, "api Refused 1: no"));
    }
    assert!(!fails(&mut fixture, "api Refused 1: no"));
    assert_eq!(
        (
            fixture.written().len(),
            fixture.correlator.take_unreported_count(),
            fixture.correlator.take_unreported_count()
        ),
        (0, 1, 0)
    );
}

/// Checks that the count on a source covers all similar events, though some alone are written for
/// an object.
#[test]
fn no_count_is_lost() {
    let mut fixture = CorrelatorFixture::new();
    let all: usize = 4 * MAX_PENDING_EVENTS;
    for number in 0..all {
        let gvk = Gvk::new("apps", "v1", "Deployment");
        let id = ObjectId::new(&gvk.group_kind(), Some("shop"), &format!("o{number}"));
        let both = RegardingObjects { object: Some((id, gvk, None)), inventory: Some(Uid("p".into())) };
        fixture.records(EventReason::DriftRepaired, None, &format!("changed {number}"), both);
    }
    let mut written: Vec<EventWrite> = Vec::new();
    while fixture.correlator.next_due().is_some() || written.is_empty() {
        written.extend(std::iter::from_fn(|| fixture.correlator.next(fixture.now)));
        fixture.now += EVENT_INTERVAL;
    }
    let of_source = written.iter().filter(|write| write.occurrence.id.name() == "shop");
    let counted: u32 = of_source.map(|write| write.occurrence.count).sum();
    assert_eq!(usize::try_from(counted).unwrap(), all);
    let lost = usize::try_from(fixture.correlator.take_unreported_count()).unwrap();
    assert_eq!(lost + written.len() - MAX_SIMILAR_EVENTS - 1, all);
}

#[test]
fn a_name_is_one_that_the_server_takes() {
    fn check(object: &str, expected: &str) {
        assert_eq!(event_name(object, 0x1f), expected);
    }
    check("web", "web.1f");
    check("system:foo.Bar", "system-foo--ar.1f");
    check(".-:", "rhumb.1f");
    check(&"a".repeat(253), &format!("{}.1f", "a".repeat(MAX_EVENT_NAME_BYTES)));
}

// A thousand objects may be refused within ten minutes, and looking through all of them for each
// would hold up all else.
#[test]
fn of_so_many_objects_is_remembered_what_was_said() {
    let mut fixture = CorrelatorFixture::new();
    for round in 0..2 {
        for number in 0..2 * MAX_REMEMBERED_EVENTS {
            fixture.happens(EventReason::Refused, Some(&format!("o{number}")), &format!("no {round}"));
            fixture.happens(EventReason::Refused, None, &format!("o{number}: no {round}"));
            assert!(
                fixture.correlator.similar.len() <= MAX_REMEMBERED_EVENTS,
                "{}",
                fixture.correlator.similar.len()
            );
        }
    }
    // Events about the source are not forgotten for them: it stays one Event.
    let keys: HashSet<String> = fixture
        .correlator
        .waiting
        .iter()
        .filter(|one| one.of_source)
        .map(|one| one.key.message.clone())
        .collect();
    assert!(keys.len() <= MAX_SIMILAR_EVENTS + 1, "{}", keys.len());
}

// The rollout ledger has it, which people may write.
#[test]
fn whoever_made_the_commit_a_message_is_one_that_the_server_takes() {
    let mut fixture = CorrelatorFixture::new();
    fixture.made = Some(("é".repeat(MAX_EVENT_MESSAGE_BYTES), "subject".to_owned()));
    fixture.happens(EventReason::Refused, None, "no");
    let write = fixture.correlator.next(fixture.now).unwrap();
    assert!(write.occurrence.message.len() <= MAX_EVENT_MESSAGE_BYTES, "{}", write.occurrence.message.len());
}

#[test]
fn what_waits_at_the_end_is_counted() {
    let mut fixture = CorrelatorFixture::new();
    for name in ["web", "web", "api"] {
        fixture.happens(EventReason::DriftRepaired, Some(name), "changed");
    }
    assert_eq!(fixture.correlator.unwritten_count(), 3);
    assert_eq!((fixture.written().len(), fixture.correlator.unwritten_count()), (2, 0));
}
