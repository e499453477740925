//! Before an object that a source has dropped is deleted, each other source is looked at.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::world::{FIRST, SECOND, SET, World, WorldObject, config, desired, following, reading};
use crate::engine::*;
use crate::object::{ObjectId, Revision};

const OTHER: &str = "applyset-other-v1";
const SECOND_SET: &str = "applyset-second-v1";
const DELAY: Duration = Duration::from_secs(30);

fn at(repository: &str) -> RepositoryIdentity {
    RepositoryIdentity::Repository(repository.into())
}

/// Returns an engine whose first source has dropped the object `a`, beside sources that follow
/// other repositories.
fn dropped(others: &[(&str, &str, RepositoryIdentity)]) -> (Engine, ObjectId, Instant) {
    let (id, now) = (config("a"), Instant::now());
    let own = [("own", SET, at("host/shop HEAD"))];
    let all: Vec<_> = own.into_iter().chain(others.iter().cloned()).collect();
    let mut engine = following(&all, AdoptPolicy::IfUnowned);
    engine.set_clock(now, jiff::Timestamp::from_second(1_000).unwrap());
    engine.set_holder("process-1");
    engine.require_peer_consent();
    engine.answer_observation_requests();
    engine.set_reading(FIRST, reading("c1", &[("a", Some(desired(&id, 1, "a")))]));
    engine.observe_object(&id, World::live(&id, &WorldObject::settled(desired(&id, 1, "a").hash, "c1", 1)));
    if !others.is_empty() {
        engine.set_reading(SECOND, reading("d1", &[]));
    }
    engine.set_reading(FIRST, reading("c2", &[("a", None)]));
    let last = engine.last_observation_number();
    engine.source_ids().for_each(|source| engine.record_check(source, last));
    (engine, id, now)
}

/// Returns another source of another repository, which a daemon serves.
fn peer(says: SourceStatement) -> PeerSource {
    let service = SourceService::Daemon;
    PeerSource {
        name: "other".into(),
        inventory_id: OTHER.into(),
        statement: Ok(SourceStatement { service, ..says }),
        kept: KeptObjects::default(),
        rejections: Vec::new(),
    }
}

fn answered(request: ObservationRequest) -> SourceStatement {
    SourceStatement { answered_requests: [(Arc::from(SET), request)].into(), ..SourceStatement::default() }
}

/// Says what becomes of the object, where the others were read a moment ago.
fn fate(engine: &mut Engine, id: &ObjectId, peers: &[PeerSource], now: Instant) -> String {
    engine.set_peers(peers.to_vec(), now);
    engine.process_changes();
    let decision = engine.decide(id, now);
    match (decision.action, decision.reason) {
        (Action::Delete(..), _) => "deleted".to_owned(),
        (_, Some(reason)) => reason.to_string(),
        (action, None) => format!("{action:?}"),
    }
}

const WAITS: &str = "pruned when source other, which may want it, was observed again";

#[test]
fn what_was_dropped_is_deleted_when_a_daemon_of_another_repository_has_observed_after_its_time_to_request() {
    let (mut engine, id, now) = dropped(&[]);
    let silent = || peer(SourceStatement::default());
    let waits = "pruned when other sources have had 30 s to take it over";
    assert_eq!(fate(&mut engine, &id, &[silent()], now), waits);
    assert_eq!(engine.statement(FIRST, None).unwrap().observation_request, None, "nobody is asked before");
    assert_eq!(fate(&mut engine, &id, &[silent()], now + DELAY), WAITS);
    let request = engine.statement(FIRST, None).unwrap().observation_request.unwrap();
    // An answer to another process, or to an earlier request, is none.
    for old in [ObservationRequest::new("process-0", 99), ObservationRequest::new("process-1", 0)] {
        assert_eq!(fate(&mut engine, &id, &[peer(answered(old))], now + DELAY), WAITS);
    }
    assert_eq!(fate(&mut engine, &id, &[peer(answered(request))], now + DELAY), "deleted");
}

#[test]
fn a_source_that_only_passes_serve_is_not_asked() {
    let (mut engine, id, now) = dropped(&[]);
    let passes = PeerSource { statement: Ok(SourceStatement::default()), ..peer(SourceStatement::default()) };
    assert_eq!(
        fate(&mut engine, &id, std::slice::from_ref(&passes), now),
        "pruned when other sources have had 30 s to take it over"
    );
    assert_eq!(fate(&mut engine, &id, &[passes], now + DELAY), "deleted");
}

#[test]
fn a_daemon_that_does_not_answer_withholds_the_deletion_until_a_person_confirms() {
    let (mut engine, id, now) = dropped(&[]);
    let silent = || [peer(SourceStatement::default())];
    let waits = "pruned when other sources have had 30 s to take it over";
    assert_eq!(fate(&mut engine, &id, &silent(), now), waits);
    assert_eq!(fate(&mut engine, &id, &silent(), now + DELAY), WAITS);
    assert_eq!(fate(&mut engine, &id, &silent(), now + DELAY + Duration::from_secs(59)), WAITS);
    let late = now + DELAY + Duration::from_mins(1);
    let why = "source other may want it: it was asked for an observation, and has not answered; see `rhumb prune list`";
    assert_eq!(fate(&mut engine, &id, &silent(), late), why);
    let confirmed = [Uid("1".into())].into();
    let inventory = Inventory { kinds: [id.group_kind()].into(), confirmed, ..Inventory::default() };
    engine.set_inventory(FIRST, inventory);
    assert_eq!(fate(&mut engine, &id, &silent(), late), "deleted");
}

// An observation from before its time was over proves nothing about it.
#[test]
fn objects_whose_time_to_request_ends_within_a_second_are_asked_about_together() {
    let check = |gap: Duration, expected: &str| {
        let (mut engine, id, now) = dropped(&[]);
        let (other, silent) = (config("b"), || [peer(SourceStatement::default())]);
        engine.set_reading(FIRST, reading("c3", &[("b", Some(desired(&other, 1, "b")))]));
        let thing = WorldObject::settled(desired(&other, 1, "b").hash, "c3", 2);
        engine.observe_object(&other, World::live(&other, &thing));
        fate(&mut engine, &id, &silent(), now);
        engine.set_reading(FIRST, reading("c4", &[("b", None)]));
        fate(&mut engine, &other, &silent(), now + gap);
        assert_eq!(fate(&mut engine, &id, &silent(), now + DELAY), WAITS);
        let request = engine.statement(FIRST, None).unwrap().observation_request.unwrap();
        let answer = [peer(answered(request))];
        assert_eq!(fate(&mut engine, &id, &answer, now + DELAY), "deleted");
        assert_eq!(fate(&mut engine, &other, &answer, now + gap + DELAY), expected, "{gap:?}");
    };
    check(Duration::ZERO, "deleted");
    check(Duration::from_secs(1), "deleted");
    check(Duration::from_millis(1_001), WAITS);
    check(Duration::from_secs(20), WAITS);
}

/// Brings an object with the label and the seal of a source that had dropped it long ago. Somebody
/// wrote it over one of another source, whose process may be down.
#[test]
fn what_comes_with_a_label_is_deleted_only_when_the_daemons_of_the_same_repository_have_observed_too() {
    let progress = |revision: &str| SourceProgress::Revision {
        repository: "host/shop HEAD".into(),
        read: Some(Revision::new(revision)),
    };
    let beside = |answers: Option<ObservationRequest>| {
        let answers = answers.map(answered).unwrap_or_default();
        [peer(SourceStatement { progress: progress("c2"), ..answers })]
    };
    let (mut engine, id, now) = dropped(&[]);
    assert_eq!(fate(&mut engine, &id, &beside(None), now), "deleted", "it was there before");
    engine.observe_absence(&id);
    engine.observe_object(&id, World::live(&id, &WorldObject::settled(desired(&id, 1, "a").hash, "c1", 2)));
    engine.process_changes();
    let waits = "pruned when other sources have had 30 s to take it over";
    assert_eq!(fate(&mut engine, &id, &beside(None), now), waits);
    assert_eq!(fate(&mut engine, &id, &beside(None), now + DELAY), WAITS);
    let request = engine.statement(FIRST, None).unwrap().observation_request.unwrap();
    assert_eq!(fate(&mut engine, &id, &beside(Some(request)), now + DELAY), "deleted");
}

#[test]
fn a_source_answers_requests_of_the_same_repository() {
    let (mut engine, _, now) = dropped(&[]);
    let progress = SourceProgress::Revision { repository: "host/shop HEAD".into(), read: None };
    let request = Some(ObservationRequest::new("process-2", 1));
    let asks = SourceStatement { progress, observation_request: request, ..SourceStatement::default() };
    engine.take_due_observations();
    engine.set_peers(vec![peer(asks)], now);
    let due: Vec<SourceId> = engine.take_due_observations().into_iter().map(|(source, _)| source).collect();
    assert_eq!(due, [FIRST]);
}

#[test]
fn sources_of_one_process_are_looked_at_after_the_time_to_request_too() {
    let (mut engine, id, now) = dropped(&[("other", SECOND_SET, at("host/other HEAD"))]);
    engine.take_due_observations();
    assert_eq!(fate(&mut engine, &id, &[], now), "pruned when other sources have had 30 s to take it over");
    assert_eq!(engine.take_due_observations(), []);
    assert_eq!(fate(&mut engine, &id, &[], now + DELAY), WAITS);
    let due = engine.take_due_observations();
    let [(SECOND, number)] = due[..] else { panic!("{due:?}") };
    engine.record_check(SECOND, number - 1);
    assert_eq!(fate(&mut engine, &id, &[], now + DELAY), WAITS);
    engine.record_check(SECOND, number);
    assert_eq!(fate(&mut engine, &id, &[], now + DELAY), "deleted");
}

#[test]
fn a_source_that_was_not_read_completely_withholds_what_a_source_of_another_repository_drops() {
    let (mut engine, id, now) = dropped(&[("other", SECOND_SET, at("host/other HEAD"))]);
    engine.set_reading(
        SECOND,
        SourceReading { incomplete_reason: Some("b.yaml: broken".into()), ..reading("d2", &[]) },
    );
    let why = "source other may want it: it has not been read completely";
    assert_eq!(fate(&mut engine, &id, &[], now), format!("not pruned now: {why}"));
    let late = fate(&mut engine, &id, &[], now + Duration::from_mins(1));
    assert_eq!(late, format!("{why}; see `rhumb prune list`"));
    // One that may not have the object is not minded.
    engine.sources[SECOND].declared.allow =
        Arc::new(AllowList { namespaces: Some(["elsewhere".into()].into()), ..AllowList::default() });
    engine.mark_prunes_stale();
    assert_eq!(fate(&mut engine, &id, &[], now + Duration::from_mins(2)), "deleted");
}

#[test]
fn a_daemon_answers_a_request_when_its_source_was_looked_at_after_it() {
    let (mut engine, _, now) = dropped(&[]);
    let request = ObservationRequest::new("process-2", 5);
    let asks = || SourceStatement {
        observation_request: Some(ObservationRequest::new("process-2", 5)),
        ..SourceStatement::default()
    };
    let taken = |engine: &Engine| engine.statement(FIRST, None).unwrap().answered_requests;
    assert!(!engine.is_peer_read_needed());
    engine.expect_observation_request();
    assert!(engine.is_peer_read_needed());
    engine.set_peers(vec![peer(asks())], now);
    assert!(!engine.is_peer_read_needed());
    let due = engine.take_due_observations();
    let [(FIRST, number)] = due[..] else { panic!("{due:?}") };
    engine.record_check(FIRST, number - 1);
    assert_eq!(taken(&engine), [].into());
    engine.record_check(FIRST, number);
    assert_eq!(taken(&engine), [(Arc::from(OTHER), request)].into());
    // Once is enough.
    engine.set_peers(vec![peer(asks())], now);
    assert_eq!(engine.take_due_observations(), []);
    // Nobody waits any more.
    engine.set_peers(vec![peer(SourceStatement::default())], now);
    assert_eq!(engine.tidy_statement(FIRST, None).unwrap().answered_requests, [].into());
}

#[test]
fn a_request_is_taken_back_when_nothing_waits_for_it() {
    let (mut engine, id, now) = dropped(&[]);
    let silent = || [peer(SourceStatement::default())];
    fate(&mut engine, &id, &silent(), now);
    fate(&mut engine, &id, &silent(), now + DELAY);
    let statement = engine.statement(FIRST, None).unwrap();
    assert!(statement.observation_request.is_some() && !engine.has_excess_requests(FIRST, &statement));
    engine.set_reading(FIRST, reading("c3", &[("a", Some(desired(&id, 1, "a")))]));
    assert!(engine.has_excess_requests(FIRST, &statement));
    assert_eq!(engine.tidy_statement(FIRST, Some(&statement)).unwrap().observation_request, None);
}

/// Runs one pass after another, each as a process of its own.
#[test]
fn the_time_of_a_release_is_kept_from_one_process_to_the_next() {
    let (engine, _, _) = dropped(&[("other", SECOND_SET, at("host/other HEAD"))]);
    let statement = engine.statement(FIRST, None).unwrap();
    assert_eq!(statement.released_since, None, "nobody else of the cluster is there");
    let (mut engine, id, now) = dropped(&[]);
    engine.set_peers(vec![peer(SourceStatement::default())], now);
    let statement = engine.statement(FIRST, None).unwrap();
    assert_eq!(statement.released_since, Some(1_000));
    let (mut next, _, now) = dropped(&[]);
    next.set_clock(now, jiff::Timestamp::from_second(1_061).unwrap());
    next.restore_statement(FIRST, &statement);
    let behind = SourceProgress::Revision { repository: "host/shop HEAD".into(), read: None };
    let behind = peer(SourceStatement { progress: behind, ..SourceStatement::default() });
    let why = "source other of the same repository may want it: it has not been read completely";
    assert_eq!(fate(&mut next, &id, &[behind], now), format!("{why}; see `rhumb prune list`"));
}

// A clock that is ahead must not end the time of the others.
#[test]
fn no_skew_of_minutes_shortens_the_time_in_which_others_may_request() {
    let check = |clock: i64, expected: &str| {
        let (mut engine, _, now) = dropped(&[]);
        engine.set_peers(vec![peer(SourceStatement::default())], now);
        let reported = engine.statement(FIRST, None).unwrap();
        assert_eq!(reported.released_since, Some(1_000));
        let (mut next, id, now) = dropped(&[]);
        next.set_clock(now, jiff::Timestamp::from_second(clock).unwrap());
        next.restore_statement(FIRST, &reported);
        assert_eq!(fate(&mut next, &id, &[peer(SourceStatement::default())], now), expected, "{clock}");
    };
    let waits = "pruned when other sources have had 30 s to take it over";
    for clock in [700, 1_000, 1_031, 1_300, 1_329] {
        check(clock, waits);
    }
    // No clock is so wrong.
    check(1_330, WAITS);
}

#[test]
fn a_source_of_the_process_that_cannot_be_looked_at_withholds_deletions_until_a_person_confirms() {
    let (mut engine, id, now) = dropped(&[("other", SECOND_SET, at("host/other HEAD"))]);
    engine.set_reading(FIRST, reading("c3", &[("a", Some(desired(&id, 1, "a")))]));
    engine.set_reading(FIRST, reading("c4", &[("a", None)]));
    assert_eq!(fate(&mut engine, &id, &[], now + Duration::from_secs(59)), WAITS);
    let why = "source other may want it: it was not observed since; see `rhumb prune list`";
    assert_eq!(fate(&mut engine, &id, &[], now + Duration::from_mins(1)), why);
    engine.record_check(SECOND, engine.last_observation_number());
    let waits = "pruned when other sources have had 30 s to take it over";
    assert_eq!(fate(&mut engine, &id, &[], now + Duration::from_mins(1)), waits);
}

#[test]
fn an_observation_answers_the_earlier_requests_of_the_same_process() {
    let request = ObservationRequest::new;
    let check = |seen: (&str, u64), asked: (&str, u64), expected: bool| {
        let covers = request(seen.0, seen.1).covers(&request(asked.0, asked.1));
        assert_eq!(covers, expected, "{seen:?} {asked:?}");
    };
    check(("a", 2), ("a", 1), true);
    check(("a", 2), ("a", 2), true);
    check(("a", 2), ("a", 3), false);
    check(("a", 2), ("b", 1), false);
    check(("a", 2), ("b", 2), false);
}

#[test]
fn a_request_is_read_as_it_is_written() {
    for request in [ObservationRequest::new("a", 0), ObservationRequest::new("", u64::MAX)] {
        assert_eq!(ObservationRequest::parse(&request.to_string()), Some(request));
    }
    let process = ObservationRequest::new("a", 1).to_string().replace("-1", "");
    for wrong in ["", "1", "a-1", &process, &format!("{process}-"), &format!("{process}-x")] {
        assert_eq!(ObservationRequest::parse(wrong), None, "{wrong}");
    }
}

// The clocks of the hosts differ by up to five minutes.
#[test]
fn a_wait_that_is_said_to_have_begun_earlier_is_proven_as_far_as_clocks_can_be_trusted() {
    use crate::engine::deletion::observation_requests::TakeoverWait;

    let begun = Instant::now();
    let minutes = |count: u64| begun + Duration::from_mins(count);
    for (now, proven) in [(0, 0), (3, 3), (5, 5), (6, 5), (60, 5)] {
        let wait = TakeoverWait::begin(begun, minutes(now));
        assert_eq!((wait.since, wait.proven_since), (begun, minutes(proven)), "{now}");
        assert_eq!(wait.request, None);
    }
}
