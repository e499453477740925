//! The statements of other sources keep this one from deleting, and let it take over what they
//! release.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::world::{FIRST, SECOND, SET, World, WorldObject, config, desired, following, reading};
use crate::engine::decide::decision::{Observation, labelled_inventory_id};
use crate::engine::deletion::peer_sources::DeletionConsent;
use crate::engine::facts::lookup_counts::take_count;
use crate::engine::*;
use crate::object::{ContentHash, ObjectId, Revision};

pub(super) const OTHER: &str = "applyset-other-v1";
pub(super) const REPOSITORY: &str = "host/shop HEAD";

pub(super) fn follows(repository: &str, read: Option<&str>) -> SourceProgress {
    SourceProgress::Revision { repository: repository.into(), read: read.map(Revision::new) }
}

pub(super) fn these(ids: &[&ObjectId]) -> BTreeSet<ContentHash> {
    ids.iter().map(|id| object_hash(id)).collect()
}

pub(super) fn says(
    progress: SourceProgress,
    requests: &[&ObjectId],
    released: &[&ObjectId],
) -> SourceStatement {
    let takeover_requests = TakeoverRequests::Listed(these(requests));
    SourceStatement { progress, takeover_requests, released: these(released), ..SourceStatement::default() }
}

pub(super) fn peer(says: Result<SourceStatement, &str>) -> PeerSource {
    PeerSource {
        name: "other".into(),
        inventory_id: OTHER.into(),
        statement: says.map_err(|why| UnknownStatement::Unreadable(why.into())),
        kept: KeptObjects::default(),
        rejections: Vec::new(),
    }
}

#[test]
fn a_statement_is_read_as_it_was_written() {
    let check =
        |statement: SourceStatement| assert_eq!(SourceStatement::parse(&statement.text()), Ok(statement));
    let (a, b) = (config("a"), config("b"));
    check(says(SourceProgress::Unversioned, &[], &[]));
    check(says(follows(REPOSITORY, Some("c1")), &[&a, &b], &[&b]));
    check(says(follows("host/a folder HEAD", None), &[], &[&a]));
    check(SourceStatement {
        takeover_requests: TakeoverRequests::Unlisted,
        ..says(SourceProgress::Unversioned, &[], &[])
    });
    check(SourceStatement {
        released_since: Some(1_700_000_000),
        completeness: SourceCompleteness::Partial,
        service: SourceService::Daemon,
        observation_request: Some(ObservationRequest::new("host-1", 7)),
        answered_requests: [
            (Arc::from(SET), ObservationRequest::new("host-2", 3)),
            (OTHER.into(), ObservationRequest::new("", 0)),
        ]
        .into(),
        ..says(SourceProgress::Unversioned, &[], &[&a])
    });
}

#[test]
fn a_statement_of_an_earlier_release_says_nothing_of_observations() {
    let text = "read c1 host/shop HEAD\nclaims\nreleased\n";
    assert_eq!(SourceStatement::parse(text), Ok(says(follows(REPOSITORY, Some("c1")), &[], &[])));
}

#[test]
fn what_is_no_statement_of_ours_is_a_doubt_and_never_empty() {
    let check = |text: &str| assert!(SourceStatement::parse(text).is_err(), "{text:?}");
    check("");
    check("read -");
    check("read -\nclaims\n");
    check("claims\nread -\nreleased\n");
    check("read c1\nclaims\nreleased\n");
    check("read -\nclaims zz\nreleased\n");
    check("read -\nclaims *  \nreleased\n");
    check("read -\nclaimsx\nreleased\n");
    check("read -\nclaims\nreleased\nmore");
    let check_answer = |since: &str, state: &str, asks: &str, answered: &str| {
        check(&format!(
            "read -\nclaims\nreleased\nsince {since}\nstate {state}\nasks {asks}\nlooked{answered}\n"
        ));
    };
    let request = ObservationRequest::new("host", 1);
    check_answer("soon", "complete -", "-", "");
    check_answer("-", "complete", "-", "");
    check_answer("-", "half -", "-", "");
    check_answer("-", "complete somebody", "-", "");
    check_answer("-", "complete -", "host-1", "");
    check_answer("-", "complete -", "-", &format!(" {request}"));
    check_answer("-", "complete -", "-", " set=1");
    check(&format!("read -\nclaims\nreleased{}\n", " ".repeat(300 << 10)));
}

#[test]
fn another_source_lets_an_object_go_only_where_it_has_read_as_far_and_does_not_request_it() {
    let (id, beside) = (config("a"), config("b"));
    let here = || follows(REPOSITORY, Some("c2"));
    let check = |own: SourceProgress, stated: Result<SourceStatement, &str>, expected: &str| {
        let found = match peer(stated).deletion_consent(object_hash(&id), &own) {
            DeletionConsent::Given => "given".to_owned(),
            DeletionConsent::AfterDelay => "after a time".to_owned(),
            DeletionConsent::Withheld(interest) => WithheldCause::Peer("other".into(), interest).to_string(),
        };
        assert_eq!(found, expected);
    };
    check(here(), Ok(says(here(), &[], &[])), "given");
    check(here(), Ok(says(here(), &[&beside], &[])), "given");
    check(here(), Ok(says(here(), &[&id], &[])), "source other wants it");
    let behind = || Ok(says(follows(REPOSITORY, Some("c1")), &[], &[]));
    check(here(), behind(), "source other of the same repository may want it: it has read revision c1");
    let unread = || Ok(says(follows(REPOSITORY, None), &[], &[]));
    check(
        here(),
        unread(),
        "source other of the same repository may want it: it has not been read completely",
    );
    let elsewhere = || follows("host/other HEAD", Some("c2"));
    check(here(), Ok(says(elsewhere(), &[], &[])), "after a time");
    check(here(), Ok(says(elsewhere(), &[&id], &[])), "source other wants it");
    check(here(), Ok(says(SourceProgress::Unversioned, &[], &[])), "after a time");
    check(SourceProgress::Unversioned, Ok(says(here(), &[], &[])), "after a time");
    let partial = |progress: SourceProgress| {
        let completeness = SourceCompleteness::Partial;
        Ok(SourceStatement { completeness, ..says(progress, &[], &[]) })
    };
    let may_want_it = "source other may want it: it has not been read completely";
    check(here(), partial(elsewhere()), may_want_it);
    check(SourceProgress::Unversioned, partial(SourceProgress::Unversioned), may_want_it);
    check(
        here(),
        partial(here()),
        "source other of the same repository may want it: it has not been read completely",
    );
    let anything =
        SourceStatement { takeover_requests: TakeoverRequests::Unlisted, ..says(here(), &[], &[]) };
    check(here(), Ok(anything), "source other may want it, as it brings many objects");
    let why = "source other may want it: what its ConfigMap tells cannot be read: it is garbled";
    check(here(), Err("it is garbled"), why);
}

/// Returns an engine of one process whose source follows the repository, with an object of it in
/// the cluster.
pub(super) fn engine(adopt: AdoptPolicy) -> (Engine, ObjectId, Instant) {
    let (id, now) = (config("a"), Instant::now());
    let mut engine = following(&[("own", SET, RepositoryIdentity::Repository(REPOSITORY.into()))], adopt);
    engine.require_peer_consent();
    engine.set_reading(
        FIRST,
        reading("c1", &[("a", Some(desired(&id, 1, "a"))), ("b", Some(desired(&config("b"), 1, "b")))]),
    );
    (engine, id, now)
}

pub(super) fn dropped() -> (Engine, ObjectId, Instant) {
    let (mut engine, id, now) = engine(AdoptPolicy::IfUnowned);
    engine.observe_object(&id, World::live(&id, &WorldObject::settled(desired(&id, 1, "a").hash, "c1", 1)));
    engine.set_reading(FIRST, reading("c2", &[("a", None)]));
    (engine, id, now)
}

#[test]
fn nothing_is_deleted_before_the_others_were_read_at_that_moment() {
    let (mut engine, id, now) = dropped();
    let reason = |engine: &mut Engine, now| engine.decide(&id, now).reason;
    assert!(!engine.is_peer_read_needed());
    assert_eq!(reason(&mut engine, now), Some(Reason::ReadingPeers));
    assert!(engine.is_peer_read_needed());
    // Alone in the cluster it does not wait any longer.
    engine.set_peers(Vec::new(), now);
    assert!(matches!(engine.decide(&id, now).action, Action::Delete(..)));
    // An old statement soon counts no more.
    assert_eq!(reason(&mut engine, now + Duration::from_secs(4)), Some(Reason::ReadingPeers));
}

#[test]
fn a_deletion_waits_for_who_is_behind_and_a_person_can_confirm_it_in_the_end() {
    let (mut engine, id, now) = dropped();
    let behind = || vec![peer(Ok(says(follows(REPOSITORY, Some("c1")), &[], &[])))];
    assert_eq!(engine.set_peers(behind(), now), [FIRST], "this source may be the one that is behind");
    let decision = engine.decide(&id, now);
    assert!(matches!(decision.action, Action::CompareCached(..)), "what stays is defended");
    assert!(
        matches!(&decision.reason, Some(Reason::Prune(cause)) if cause.to_string().contains("it has read revision c1"))
    );
    assert_eq!(decision.requeue_after, Some(Duration::from_secs(1)));
    let later = now + Duration::from_mins(2);
    assert!(engine.set_peers(behind(), later).is_empty(), "it was looked at again for that already");
    engine.process_changes();
    let judged: Vec<PruneDecision> =
        engine.prune_decisions(FIRST).map(|(_, judged)| judged.clone()).collect();
    assert!(
        matches!(&judged[..], [PruneDecision::Confirm(cause)] if cause.to_string().contains("source other")),
        "{judged:?}"
    );
    let confirmed = [Uid("1".into())].into();
    let inventory = Inventory { kinds: [id.group_kind()].into(), confirmed, ..Inventory::default() };
    engine.set_inventory(FIRST, inventory);
    assert!(matches!(engine.decide(&id, later).action, Action::Delete(..)));
}

#[test]
fn sources_of_another_repository_have_a_time_to_request() {
    let (mut engine, id, now) = dropped();
    let elsewhere = |requests: &[&ObjectId]| vec![peer(Ok(says(SourceProgress::Unversioned, requests, &[])))];
    engine.set_peers(elsewhere(&[]), now);
    let decision = engine.decide(&id, now + Duration::from_secs(1));
    assert_eq!(decision.action, Action::Nothing);
    assert_eq!(decision.requeue_after, Some(Duration::from_secs(29)));
    let after = now + Duration::from_secs(31);
    assert_eq!(engine.decide(&id, after).reason, Some(Reason::ReadingPeers));
    engine.set_peers(elsewhere(&[&id]), after);
    let kept = engine.decide(&id, after);
    assert!(
        matches!(&kept.reason, Some(Reason::Prune(cause)) if cause.to_string().contains("source other wants it"))
    );
    engine.set_peers(elsewhere(&[]), after);
    assert!(matches!(engine.decide(&id, after).action, Action::Delete(..)));
}

#[test]
fn the_time_to_request_begins_with_the_deletion_and_anew_after_a_return() {
    let (mut engine, id, now) = dropped();
    let elsewhere = || vec![peer(Ok(says(SourceProgress::Unversioned, &[], &[])))];
    let left = |engine: &mut Engine, now| engine.decide(&id, now).requeue_after;
    let second = Duration::from_secs(1);
    // The others were read for another object a moment before this one is given up.
    engine.set_reading(FIRST, reading("c3", &[("a", Some(desired(&id, 1, "a")))]));
    engine.set_peers(elsewhere(), now);
    engine.set_reading(FIRST, reading("c4", &[("a", None)]));
    assert_eq!(left(&mut engine, now + second), Some(30 * second));
    engine.set_peers(elsewhere(), now + 11 * second);
    assert_eq!(left(&mut engine, now + 11 * second), Some(20 * second));
    engine.set_reading(FIRST, reading("c5", &[("a", Some(desired(&id, 1, "a")))]));
    engine.set_reading(FIRST, reading("c6", &[("a", None)]));
    engine.set_peers(elsewhere(), now + 40 * second);
    assert_eq!(left(&mut engine, now + 40 * second), Some(30 * second));
    engine.set_peers(elsewhere(), now + 70 * second);
    assert!(matches!(engine.decide(&id, now + 70 * second).action, Action::Delete(..)));
}

/// Returns an object of another process' source, as a lookup finds it.
pub(super) fn anothers(adopt: AdoptPolicy) -> (Engine, ObjectId, Instant) {
    let (mut engine, id, now) = engine(adopt);
    let mut live = World::live(&id, &WorldObject::settled(desired(&id, 1, "a").hash, "c1", 1));
    live.owner = ObjectOwner::Ours(OTHER.into());
    assert_eq!(engine.decide(&id, now).action, Action::Lookup);
    engine.record_lookup(&id, DirectView::Found(Box::new(live)));
    (engine, id, now)
}

#[test]
fn an_object_of_another_source_is_taken_over_once_that_one_gives_it_up() {
    let (mut engine, id, now) = anothers(AdoptPolicy::IfUnowned);
    assert_eq!(engine.decide(&id, now).reason, Some(Reason::ReadingPeers));
    let progress = || follows(REPOSITORY, Some("c1"));
    engine.set_peers(vec![peer(Ok(says(progress(), &[], &[])))], now);
    let waits = engine.decide(&id, now);
    assert_eq!(waits.reason, Some(Reason::Owned(CurrentOwner::Source("other".into()))));
    assert_eq!(waits.requeue_after, Some(Duration::from_secs(1)), "it is asked again");
    engine.set_peers(vec![peer(Ok(says(progress(), &[], &[&id])))], now);
    let taken = engine.decide(&id, now).action;
    let Action::Apply(ApplyRequest { purpose: ApplyPurpose::Transfer, precondition, .. }) = taken else {
        panic!("{taken:?}")
    };
    assert_eq!(precondition, Precondition::Exact(Uid("1".into()), ResourceVersion(1)));
    // That was long ago: its owner may want it again.
    let later = now + Duration::from_secs(30);
    assert_eq!(engine.decide(&id, later).reason, Some(Reason::ReadingPeers));
    assert!(engine.is_peer_read_needed());
    engine.set_peers(vec![peer(Ok(says(progress(), &[], &[&id])))], later);
    assert!(matches!(engine.decide(&id, later).action, Action::Apply(_)));
}

/// Takes an annotation of a person off an object that no informer shows: only a lookup tells.
#[test]
fn an_object_under_a_hold_or_a_pause_is_not_taken_over_until_a_lookup_shows_that_it_ended() {
    let hold = (None, Some("1-a until=1970-01-01T01:00:00Z heap dump"), "on hold until");
    let pause = (Some("1-a looking at it"), None, "it is paused: looking at it");
    for (paused, held, reason) in [hold, pause] {
        let (mut engine, id, now) = engine(AdoptPolicy::IfUnowned);
        engine.set_clock(now, jiff::Timestamp::UNIX_EPOCH);
        let mut live = World::live(&id, &WorldObject::settled(desired(&id, 2, "a").hash, "c1", 1));
        (live.owner, live.intents) =
            (ObjectOwner::Ours(OTHER.into()), ObjectIntents::parse(None, paused, held));
        assert_eq!(engine.decide(&id, now).action, Action::Lookup);
        engine.record_lookup(&id, DirectView::Found(Box::new(live.clone())));
        let gives_up = || vec![peer(Ok(says(follows(REPOSITORY, Some("c1")), &[], &[&id])))];
        engine.set_peers(gives_up(), now);
        let second = Duration::from_secs(1);
        let kept = engine.decide(&id, now);
        let why = kept.reason.unwrap().to_string();
        assert!(why.starts_with(reason) && !matches!(kept.action, Action::Apply(_)), "{why}");
        assert_eq!(kept.requeue_after, Some(15 * second));
        assert_eq!(engine.opt_outs(FIRST, now).len(), 1, "it is counted");
        let later = now + 15 * second;
        assert_eq!(engine.decide(&id, later).action, Action::Lookup);
        live.intents = None;
        engine.record_lookup(&id, DirectView::Found(Box::new(live)));
        engine.set_peers(gives_up(), later);
        let taken = engine.decide(&id, later).action;
        assert!(
            matches!(taken, Action::Apply(ApplyRequest { purpose: ApplyPurpose::Transfer, .. })),
            "{taken:?}"
        );
    }
}

#[test]
fn a_policy_never_to_adopt_leaves_even_what_another_source_gives_up() {
    let (mut engine, id, now) = anothers(AdoptPolicy::Never);
    engine.set_peers(vec![peer(Ok(says(SourceProgress::Unversioned, &[], &[&id])))], now);
    let decision = engine.decide(&id, now);
    assert_eq!(decision.action, Action::Nothing);
    assert_eq!(decision.reason, Some(Reason::Owned(CurrentOwner::FormerSource("other".into()))));
}

#[test]
fn a_source_requests_what_is_not_its_own_and_gives_up_what_it_drops() {
    let (mut engine, id, now) = engine(AdoptPolicy::IfUnowned);
    let requests = |engine: &Engine| engine.statement(FIRST, None).unwrap().takeover_requests;
    assert_eq!(requests(&engine), TakeoverRequests::Listed(these(&[&id, &config("b")])));
    engine.observe_object(&id, World::live(&id, &WorldObject::settled(desired(&id, 1, "a").hash, "c1", 1)));
    assert_eq!(requests(&engine), TakeoverRequests::Listed(these(&[&config("b")])));
    // Requests stay until all is at rest: fewer writes, and nobody deletes more for it.
    let statement = says(follows(REPOSITORY, Some("c1")), &[&id, &config("b")], &[]);
    assert_eq!(engine.statement(FIRST, Some(&statement)), Some(statement.clone()));
    // It is known that less is needed, also where the inventory was tidied before the object was
    // seen.
    assert!(engine.has_excess_requests(FIRST, &statement));
    let tidied = engine.tidy_statement(FIRST, Some(&statement)).unwrap();
    assert!(!engine.has_excess_requests(FIRST, &tidied));
    engine.set_peers(vec![peer(Ok(says(SourceProgress::Unversioned, &[], &[])))], now);
    engine.set_reading(FIRST, reading("c2", &[("a", None)]));
    let released = |engine: &Engine| engine.statement(FIRST, None).unwrap().released;
    assert_eq!(released(&engine), these(&[&id]));
    engine.set_reading(FIRST, reading("c3", &[("a", Some(desired(&id, 1, "a")))]));
    assert_eq!(released(&engine), these(&[]), "it is wanted again");
}

#[test]
fn what_others_want_costs_the_statement_of_a_source_nothing() {
    let lookups = |others: usize| {
        let at = |path: &str| RepositoryIdentity::Repository(path.into());
        let of = [("own", SET, at(REPOSITORY)), ("beside", OTHER, at("host/beside HEAD"))];
        let mut engine = following(&of, AdoptPolicy::IfUnowned);
        engine.require_peer_consent();
        engine.set_clock(Instant::now(), jiff::Timestamp::UNIX_EPOCH);
        let own = config("own");
        engine.set_reading(FIRST, reading("c1", &[("own", Some(desired(&own, 1, "own")))]));
        for number in 0..others {
            let id = config(&format!("other-{number}"));
            let file = format!("{number}.yaml");
            engine.set_reading(SECOND, reading("c1", &[(&file, Some(desired(&id, 1, &file)))]));
        }
        engine.process_changes();
        take_count();
        let says = engine.statement(FIRST, None).unwrap();
        assert_eq!(says.takeover_requests, TakeoverRequests::Listed(these(&[&own])));
        take_count()
    };
    assert_eq!(lookups(5), lookups(50));
}

// A process that has just started sees what it has before it has read what it wants.
#[test]
fn nothing_is_given_up_before_it_is_known_what_is_wanted_and_nothing_requested_for_that() {
    let (kept, dropped) = (config("a"), config("b"));
    let mut engine =
        following(&[("own", SET, RepositoryIdentity::Repository(REPOSITORY.into()))], AdoptPolicy::IfUnowned);
    engine.require_peer_consent();
    engine.set_clock(Instant::now(), jiff::Timestamp::UNIX_EPOCH);
    engine.set_peers(vec![peer(Ok(says(SourceProgress::Unversioned, &[], &[])))], Instant::now());
    for id in [&kept, &dropped] {
        engine.observe_object(
            id,
            World::live(id, &WorldObject::settled(desired(id, 1, id.name()).hash, "c1", 1)),
        );
    }
    engine.process_changes();
    assert_eq!(engine.statement(FIRST, None).unwrap().released, these(&[]));
    engine.set_reading(FIRST, reading("c2", &[("a", Some(desired(&kept, 1, "a")))]));
    engine.process_changes();
    let says = engine.statement(FIRST, None).unwrap();
    assert_eq!(
        (says.takeover_requests, says.released),
        (TakeoverRequests::Listed(these(&[])), these(&[&dropped]))
    );
}

#[test]
fn a_revision_that_is_not_read_completely_takes_nothing_back() {
    let (mut engine, _, _) = engine(AdoptPolicy::IfUnowned);
    let statement = engine.statement(FIRST, None).unwrap();
    assert_eq!(statement.progress, follows(REPOSITORY, Some("c1")));
    engine.set_reading(
        FIRST,
        SourceReading { incomplete_reason: Some("a.yaml: broken".into()), ..reading("c2", &[]) },
    );
    assert_eq!(engine.statement(FIRST, Some(&statement)).unwrap().progress, follows(REPOSITORY, Some("c1")));
    assert_eq!(engine.statement(FIRST, None).unwrap().progress, follows(REPOSITORY, None));
}

/// Returns two sources of one process, of which the second comes to want what the first has, or may
/// have.
fn rivals(shown: bool) -> (Engine, ObjectId) {
    let id = config("a");
    let nowhere = || RepositoryIdentity::None;
    let mut engine = following(&[(SET, SET, nowhere()), (OTHER, OTHER, nowhere())], AdoptPolicy::IfUnowned);
    engine.set_reading(FIRST, reading("c1", &[("a", Some(desired(&id, 1, "a")))]));
    if shown {
        engine
            .observe_object(&id, World::live(&id, &WorldObject::settled(desired(&id, 1, "a").hash, "c1", 1)));
    }
    engine.set_reading(SECOND, reading("c1", &[("b", Some(desired(&id, 2, "b")))]));
    (engine, id)
}

#[test]
fn the_source_that_has_an_object_goes_on_when_another_one_comes_to_want_it() {
    let (mut engine, id) = rivals(true);
    engine.set_reading(FIRST, reading("c2", &[("a", Some(desired(&id, 3, "a")))]));
    let decision = engine.decide(&id, Instant::now());
    let Action::Apply(apply) = decision.action else { panic!("{decision:?}") };
    assert_eq!((apply.source, apply.desired.hash), (FIRST, desired(&id, 3, "a").hash));
    // Once it gives the object up, the other one has it.
    engine.set_reading(FIRST, reading("c3", &[("a", None)]));
    let decision = engine.decide(&id, Instant::now());
    assert!(
        matches!(
            &decision.action,
            Action::Apply(ApplyRequest { purpose: ApplyPurpose::Transfer, source: SECOND, .. })
        ),
        "{decision:?}"
    );
}

#[test]
fn whoever_waits_for_an_object_of_another_source_is_informed_of_both() {
    let (mut engine, id) = rivals(true);
    let decision = engine.decide(&id, Instant::now());
    let Action::CompareCached(desired, variant) = decision.action else { panic!("{decision:?}") };
    let managed_fields = engine.informer_object(&id).and_then(|live| live.our_fields.clone());
    let verified = VerifiedOwnership {
        content: variant.hash(&desired),
        overlay: None,
        config_stamp: None,
        managed_fields,
        value_digest: None,
        cover: FieldOwnership::Complete,
    };
    engine.record_coverage(&id, verified);
    let decision = engine.decide(&id, Instant::now());
    assert_eq!(decision.action, Action::Nothing);
    let why = decision.reason.unwrap().to_string();
    assert_eq!(why, "2 sources want it: a:1 and b:1; the first of them applies it");
}

#[test]
fn an_object_that_is_nobodys_yet_is_not_made_while_two_sources_want_it() {
    let (mut engine, id) = rivals(false);
    engine.record_lookup(&id, DirectView::Absent);
    let decision = engine.decide(&id, Instant::now());
    assert_eq!(decision.action, Action::Nothing);
    assert_eq!(decision.reason.and_then(|why| why.cause_code()), Some(CauseCode::WantedBySeveral));
}

#[test]
fn a_plan_for_one_of_two_sources_says_for_which_an_object_is_decided_on() {
    #[track_caller]
    fn check(engine: &Engine, id: &ObjectId, expected: [Option<(&str, bool)>; 2]) {
        for (source, expected) in engine.source_ids().zip(expected) {
            let found = engine.prior_source(source, id);
            let found = found.map(|prior| (prior.to_string(), matches!(prior, PriorSource::Owner(_))));
            assert_eq!(found.as_ref().map(|(why, wants)| (&**why, *wants)), expected, "source {source}");
        }
    }
    let (engine, id) = rivals(false);
    check(&engine, &id, [None, None]);
    let (mut engine, id) = rivals(true);
    let both = "2 sources want it: a:1 and b:1; the first of them applies it";
    check(&engine, &id, [None, Some((both, true))]);
    engine.set_reading(FIRST, reading("c2", &[("a", None)]));
    let theirs = format!("source {OTHER} wants it");
    check(&engine, &id, [Some((&theirs, false)), None]);
    engine.set_reading(SECOND, reading("c2", &[("b", None)]));
    check(&engine, &id, [None, None]);
}

#[test]
fn a_statement_is_read_up_to_its_longest_length() {
    let frame = "read -\nclaims\nreleased\n";
    let padded = |length: usize| {
        let spaces = " ".repeat(length - frame.len());
        format!("read -\nclaims\nreleased{spaces}\n")
    };
    let longest = 256 << 10;
    assert_eq!(SourceStatement::parse(&padded(longest)), Ok(SourceStatement::default()));
    let why = SourceStatement::parse(&padded(longest + 1)).unwrap_err();
    assert_eq!(*why, *"it is 262145 bytes long, and at most 262144 are read");
}

#[test]
fn requests_cover_others_where_each_of_them_is_among_them() {
    let (a, b) = (config("a"), config("b"));
    let listed = |ids: &[&ObjectId]| TakeoverRequests::Listed(these(ids));
    let check = |all: &TakeoverRequests, some: &TakeoverRequests, expected: bool| {
        assert_eq!(all.covers(some), expected, "{all:?} {some:?}");
    };
    check(&listed(&[&a, &b]), &listed(&[&a]), true);
    check(&listed(&[&a]), &listed(&[&a]), true);
    check(&listed(&[&a]), &listed(&[]), true);
    check(&listed(&[&a]), &listed(&[&a, &b]), false);
    check(&listed(&[&a]), &listed(&[&b]), false);
    check(&TakeoverRequests::Unlisted, &listed(&[&a]), true);
    check(&TakeoverRequests::Unlisted, &TakeoverRequests::Unlisted, true);
    check(&listed(&[&a]), &TakeoverRequests::Unlisted, false);
}

#[test]
fn a_source_requests_what_it_names_and_nothing_else() {
    let (a, b) = (config("a"), config("b"));
    let names_a = || says(SourceProgress::Unversioned, &[&a], &[&b]);
    assert!(peer(Ok(names_a())).is_requesting(&a));
    assert!(!peer(Ok(names_a())).is_requesting(&b));
    let unlisted = SourceStatement { takeover_requests: TakeoverRequests::Unlisted, ..names_a() };
    assert!(!peer(Ok(unlisted)).is_requesting(&a));
    assert!(!peer(Err("it is garbled")).is_requesting(&a));
}

#[test]
fn no_source_lets_an_object_go_by_a_revision_that_its_owner_has_not_read() {
    let stated = peer(Ok(says(follows(REPOSITORY, Some("c1")), &[], &[])));
    let consent = stated.deletion_consent(object_hash(&config("a")), &follows(REPOSITORY, None));
    assert_eq!(consent, DeletionConsent::Withheld(PeerInterest::Elsewhere("c1".into())));
}

#[test]
fn the_hash_of_an_object_is_that_of_its_whole_name() {
    let id = super::world::id;
    let all = [
        id("apps", "Deployment", "shop", "web"),
        id("", "Deployment", "shop", "web"),
        id("apps", "StatefulSet", "shop", "web"),
        id("apps", "Deployment", "other", "web"),
        id("apps", "Deployment", "", "web"),
        id("apps", "Deployment", "shop", "api"),
    ];
    let hashes: BTreeSet<ContentHash> = all.iter().map(object_hash).collect();
    assert_eq!(hashes.len(), all.len());
}

#[test]
fn others_are_there_once_they_were_read_and_there_is_one() {
    let (mut engine, _, now) = engine(AdoptPolicy::IfUnowned);
    assert!(!engine.handover.has_peers(), "nobody has read them");
    engine.set_peers(Vec::new(), now);
    assert!(!engine.handover.has_peers());
    engine.set_peers(vec![peer(Ok(SourceStatement::default()))], now);
    assert!(engine.handover.has_peers());
}

#[test]
fn an_arrival_is_known_by_its_incarnation_until_it_is_out_of_sight() {
    let (mut engine, _, now) = engine(AdoptPolicy::IfUnowned);
    let (one, other) = (Uid("1".into()), Uid("2".into()));
    engine.handover.note_arrival(one.clone(), now);
    assert!(engine.handover.has_arrived(&one) && !engine.handover.has_arrived(&other));
    engine.handover.forget_wait(&other);
    assert!(engine.handover.has_arrived(&one));
    engine.handover.forget_wait(&one);
    assert!(!engine.handover.has_arrived(&one));
}

#[test]
fn only_a_label_that_our_own_entry_owns_names_an_inventory() {
    let a = config("a");
    let live = World::live(&a, &WorldObject::settled(desired(&a, 1, "a").hash, "c1", 1));
    let check = |owner: ObjectOwner, expected: Option<&str>| {
        let live = LiveObject { owner: owner.clone(), ..live.clone() };
        let found = labelled_inventory_id(&Observation::Seen(&live));
        assert_eq!(found.as_deref(), expected, "{owner:?}");
    };
    check(ObjectOwner::Ours(OTHER.into()), Some(OTHER));
    check(ObjectOwner::Labelled(OTHER.into()), None);
    check(ObjectOwner::Nobody, None);
    assert_eq!(labelled_inventory_id(&Observation::NotSeen), None);
    assert_eq!(labelled_inventory_id(&Observation::Absent), None);
}
