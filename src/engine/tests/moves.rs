//! An object that moves between sources is never deleted on the way, whichever processes serve
//! them.

use std::time::{Duration, Instant};

use super::world::{FIRST, SECOND, SET, World, WorldObject, config, desired, following, reading};
use crate::engine::*;
use crate::object::{ObjectId, Revision};

const OTHER: &str = "applyset-other-v1";
const REPOSITORY: &str = "host/shop HEAD";

/// Returns two sources of one process; the first has the object `a`, and both have read `c1`.
fn two(of: [RepositoryIdentity; 2], adopt: AdoptPolicy) -> (Engine, ObjectId, Instant) {
    let (id, now) = (config("a"), Instant::now());
    let [one, two] = of;
    let mut engine = following(&[("one", SET, one), ("two", OTHER, two)], adopt);
    engine.require_peer_consent();
    engine.set_reading(FIRST, reading("c1", &[("a", Some(desired(&id, 1, "a")))]));
    engine.observe_object(&id, World::live(&id, &WorldObject::settled(desired(&id, 1, "a").hash, "c1", 1)));
    engine.set_reading(SECOND, reading("c1", &[("b", Some(desired(&config("b"), 1, "b")))]));
    engine.set_peers(Vec::new(), now);
    (engine, id, now)
}

/// Returns whether an object is among those that a source requests, as far as can be known.
fn can_hold(requests: &TakeoverRequests, id: &ObjectId) -> bool {
    match requests {
        TakeoverRequests::Listed(marks) => marks.contains(&object_hash(id)),
        TakeoverRequests::Unlisted => true,
    }
}

fn at(repository: &str) -> RepositoryIdentity {
    RepositoryIdentity::Repository(repository.into())
}

/// Says what becomes of the object, where all else that a process asks for has been answered.
fn fate(engine: &mut Engine, id: &ObjectId, now: Instant) -> String {
    engine.record_check(FIRST, engine.last_observation_number());
    engine.record_check(SECOND, engine.last_observation_number());
    engine.set_peers(Vec::new(), now);
    let decision = engine.decide(id, now);
    match (decision.action, decision.reason) {
        (Action::Delete(..), _) => "deleted".to_owned(),
        (Action::Apply(apply), _) => format!("{:?} to source {}", apply.purpose, apply.source),
        (_, Some(reason)) => reason.to_string(),
        (action, None) => format!("{action:?}"),
    }
}

#[test]
fn what_a_source_drops_stays_while_another_one_of_its_repository_and_process_was_not_read_completely() {
    let (mut engine, id, now) = two([at(REPOSITORY), at(REPOSITORY)], AdoptPolicy::IfUnowned);
    engine.set_reading(FIRST, reading("c2", &[("a", None)]));
    let broken = FileFacts { completeness: FileCompleteness::Partial, ..FileFacts::default() };
    engine.set_reading(
        SECOND,
        SourceReading { files: vec![("b/a".into(), Some(broken))], ..reading("c2", &[]) },
    );
    let why = "source two of the same repository may want it: it has not been read completely";
    assert_eq!(fate(&mut engine, &id, now), format!("not pruned now: {why}"));
    let for_long = fate(&mut engine, &id, now + Duration::from_mins(2));
    assert_eq!(for_long, format!("{why}; see `rhumb prune list`"));
    // The file is mended, and has it.
    engine.set_reading(SECOND, reading("c3", &[("b/a", Some(desired(&id, 1, "b/a")))]));
    engine.set_reading(FIRST, reading("c3", &[]));
    assert_eq!(fate(&mut engine, &id, now + Duration::from_mins(2)), "Transfer to source 1");
}

#[test]
fn other_repositories_of_the_same_process_have_a_time_to_request_what_one_drops() {
    let check = |other: RepositoryIdentity| {
        let (mut engine, id, now) = two([at(REPOSITORY), other], AdoptPolicy::IfUnowned);
        engine.set_reading(FIRST, reading("c2", &[("a", None)]));
        let waits = "pruned when other sources have had 30 s to take it over";
        assert_eq!(fate(&mut engine, &id, now), waits);
        assert_eq!(fate(&mut engine, &id, now + Duration::from_secs(29)), waits);
        let expected = "pruned when source two, which may want it, was observed again";
        assert_eq!(fate(&mut engine, &id, now + Duration::from_secs(31)), expected);
        assert_eq!(fate(&mut engine, &id, now + Duration::from_secs(31)), "deleted");
    };
    check(at("host/other HEAD"));
    check(RepositoryIdentity::None);
    let (mut engine, id, now) = two([at(REPOSITORY), at(REPOSITORY)], AdoptPolicy::IfUnowned);
    engine.set_reading(FIRST, reading("c2", &[("a", None)]));
    engine.set_reading(SECOND, reading("c2", &[]));
    assert_eq!(fate(&mut engine, &id, now), "deleted");
}

// It may move to a source that is configured only after the commit.
#[test]
fn a_source_of_a_folder_waits_for_sources_that_nobody_knows_yet() {
    let (mut engine, id, now) = two([at(REPOSITORY), at(REPOSITORY)], AdoptPolicy::IfUnowned);
    engine.sources[FIRST].declared.extent = RepositoryExtent::Folder;
    engine.set_reading(FIRST, reading("c2", &[("a", None)]));
    engine.set_reading(SECOND, reading("c2", &[]));
    let waits = "pruned when other sources have had 30 s to take it over";
    assert_eq!(fate(&mut engine, &id, now), waits);
    assert_eq!(fate(&mut engine, &id, now + Duration::from_secs(29)), waits);
    assert_eq!(fate(&mut engine, &id, now + Duration::from_secs(31)), "deleted");
}

#[test]
fn a_policy_never_to_adopt_leaves_what_another_source_of_the_process_gives_up() {
    let (mut engine, id, now) = two([at(REPOSITORY), at(REPOSITORY)], AdoptPolicy::Never);
    engine.set_reading(FIRST, reading("c2", &[("a", None)]));
    engine.set_reading(SECOND, reading("c2", &[("b/a", Some(desired(&id, 2, "b/a")))]));
    let why = fate(&mut engine, &id, now);
    assert!(why.contains("source one, which no longer wants it and keeps it, as adopt is `never`"), "{why}");
}

/// Returns a process with one source that has the object `a`, beside a source of another process.
fn beside(requests: &[&ObjectId]) -> (Engine, ObjectId, Instant) {
    let (mut engine, id, now) = two([at(REPOSITORY), at(REPOSITORY)], AdoptPolicy::IfUnowned);
    engine.set_clock(now, jiff::Timestamp::UNIX_EPOCH);
    engine.set_peers(vec![elsewhere(requests)], now);
    (engine, id, now)
}

fn elsewhere(requests: &[&ObjectId]) -> PeerSource {
    let takeover_requests = TakeoverRequests::Listed(requests.iter().map(|id| object_hash(id)).collect());
    let says = SourceStatement { takeover_requests, ..SourceStatement::default() };
    let inventory_id = "applyset-elsewhere-v1".into();
    PeerSource {
        name: "other".into(),
        inventory_id,
        statement: Ok(says),
        kept: KeptObjects::default(),
        rejections: Vec::new(),
    }
}

// The other source has the object. It has read the same revision, so that it consents at once to
// what this one drops.
#[test]
fn what_comes_with_a_label_of_a_source_that_does_not_want_it_is_left_to_whoever_had_it_for_a_time() {
    let peer = || PeerSource {
        statement: Ok(SourceStatement {
            progress: SourceProgress::Revision {
                repository: REPOSITORY.into(),
                read: Some(Revision::new("c2")),
            },
            ..SourceStatement::default()
        }),
        ..elsewhere(&[])
    };
    let fate = |engine: &mut Engine, id: &ObjectId, peers: Vec<PeerSource>, now: Instant| {
        engine.record_check(FIRST, engine.last_observation_number());
        engine.record_check(SECOND, engine.last_observation_number());
        engine.set_peers(peers, now);
        engine.process_changes();
        let decision = engine.decide(id, now);
        decision.reason.map_or_else(|| format!("{:?}", decision.action), |reason| reason.to_string())
    };
    let (mut engine, id, now) = beside(&[]);
    engine.set_reading(FIRST, reading("c2", &[("a", None)]));
    engine.set_reading(SECOND, reading("c2", &[]));
    let live = engine.live_object(&id).unwrap().clone();
    assert!(fate(&mut engine, &id, vec![peer()], now).starts_with("Delete"), "its own source dropped it");

    engine.observe_absence(&id);
    engine.observe_object(&id, LiveObject { rv: ResourceVersion(100), ..live.clone() });
    let waits = "pruned when other sources have had 30 s to take it over";
    assert_eq!(fate(&mut engine, &id, vec![peer()], now), waits);
    assert_eq!(fate(&mut engine, &id, vec![peer()], now + Duration::from_secs(29)), waits);
    let later = now + Duration::from_secs(31);
    assert!(fate(&mut engine, &id, vec![peer()], later).starts_with("Delete"));
    // The time before counts for nothing, also where the peers were not read meanwhile.
    engine.observe_absence(&id);
    engine.set_clock(later, jiff::Timestamp::UNIX_EPOCH);
    engine.observe_object(&id, LiveObject { rv: ResourceVersion(102), ..live.clone() });
    assert_eq!(fate(&mut engine, &id, vec![peer()], later), waits);
    // Where there is nobody else it has nobody else's label to come from.
    engine.observe_absence(&id);
    engine.observe_object(&id, LiveObject { rv: ResourceVersion(103), ..live });
    assert!(fate(&mut engine, &id, Vec::new(), later).starts_with("Delete"));
}

#[test]
fn what_was_given_up_and_is_wanted_again_is_requested_until_the_old_word_counts_no_more() {
    let (mut engine, id, now) = beside(&[]);
    engine.set_reading(FIRST, reading("c2", &[("a", None)]));
    let statement = engine.statement(FIRST, None).unwrap();
    assert!(statement.released.contains(&object_hash(&id)));
    engine.set_reading(FIRST, reading("c3", &[("a", Some(desired(&id, 1, "a")))]));
    let requested = |says: Option<SourceStatement>| can_hold(&says.unwrap().takeover_requests, &id);
    let says = engine.statement(FIRST, Some(&statement)).unwrap();
    assert!(says.released.is_empty() && can_hold(&says.takeover_requests, &id));
    // The other one takes it over for what it has read before, and drops it at once.
    assert!(requested(engine.tidy_statement(FIRST, Some(&says))));
    engine.set_clock(now + Duration::from_mins(2), jiff::Timestamp::UNIX_EPOCH);
    assert!(!requested(engine.tidy_statement(FIRST, Some(&says))));
}

#[test]
fn a_new_process_requests_what_the_one_before_it_gave_up_and_it_wants_again() {
    let (mut engine, known, now) = beside(&[]);
    let read_later = config("later");
    let released = [object_hash(&known), object_hash(&read_later)].into();
    engine.restore_statement(FIRST, &SourceStatement { released, ..SourceStatement::default() });
    let content = desired(&read_later, 1, "later");
    engine.set_reading(FIRST, reading("c2", &[("later", Some(content.clone()))]));
    engine
        .observe_object(&read_later, World::live(&read_later, &WorldObject::settled(content.hash, "c1", 7)));
    let requested = |engine: &mut Engine| {
        let says = engine.tidy_statement(FIRST, None).unwrap();
        [&known, &read_later].map(|id| can_hold(&says.takeover_requests, id))
    };
    assert_eq!(requested(&mut engine), [true, true]);
    engine.set_clock(now + Duration::from_mins(2), jiff::Timestamp::UNIX_EPOCH);
    assert_eq!(requested(&mut engine), [false, false]);
}

#[test]
fn of_more_than_can_be_named_that_is_given_up_first_which_somebody_requests() {
    let last = config("z");
    let (mut engine, _, now) = beside(&[&last]);
    let many: Vec<ObjectId> =
        (0..MAX_REQUESTED_OBJECTS).map(|number| config(&format!("c{number}"))).collect();
    let names: Vec<String> = many.iter().chain([&last]).map(|id| id.name().to_owned()).collect();
    let files = |is_there: bool| {
        let all = many.iter().chain([&last]).zip(&names);
        let files = all.map(|(id, name)| (name.as_str(), is_there.then(|| desired(id, 1, name))));
        files.collect::<Vec<_>>()
    };
    engine.set_reading(FIRST, reading("c2", &files(true)));
    for (number, id) in many.iter().chain([&last]).enumerate() {
        engine.observe_object(
            id,
            World::live(id, &WorldObject::settled(desired(id, 1, id.name()).hash, "c1", number as u64 + 2)),
        );
    }
    engine.set_reading(FIRST, reading("c3", &files(false)));
    engine.set_peers(vec![elsewhere(&[&last])], now);
    let released = engine.statement(FIRST, None).unwrap().released;
    assert_eq!((released.len(), released.contains(&object_hash(&last))), (MAX_REQUESTED_OBJECTS, true));
}

#[test]
fn what_is_kept_is_given_up_also_where_nobody_is_there_yet_who_could_want_it() {
    let check = |prune: PrunePolicy, expected: bool| {
        let (mut engine, id, _) = two([at(REPOSITORY), at(REPOSITORY)], AdoptPolicy::IfUnowned);
        engine.sources[FIRST].declared.prune = prune;
        engine.set_reading(FIRST, reading("c2", &[("a", None)]));
        engine.record_check(SECOND, engine.last_observation_number());
        engine.process_changes();
        let says = engine.statement(FIRST, None).unwrap();
        assert_eq!(says.released.contains(&object_hash(&id)), expected, "{prune:?}");
    };
    check(PrunePolicy::Off, true);
    check(PrunePolicy::On, false);
}

#[test]
fn a_revision_with_a_kind_that_nobody_knows_is_not_read_completely_for_others() {
    let (mut engine, _, _) = beside(&[]);
    let statement = engine.statement(FIRST, None).unwrap();
    let facts = FileFacts {
        unscoped: [crate::object::GroupKind::new("example.org", "Foo")].into(),
        ..FileFacts::default()
    };
    engine
        .set_reading(FIRST, SourceReading { files: vec![("foo".into(), Some(facts))], ..reading("c2", &[]) });
    assert_eq!(engine.statement(FIRST, Some(&statement)).unwrap().progress, statement.progress);
    engine.set_reading(FIRST, reading("c3", &[("foo", None)]));
    assert_ne!(engine.statement(FIRST, Some(&statement)).unwrap().progress, statement.progress);
}

#[test]
fn what_is_wanted_again_is_looked_for_at_once_though_its_deletion_was_seen_before_it_was_answered() {
    let (mut engine, id, now) = two([at(REPOSITORY), at(REPOSITORY)], AdoptPolicy::IfUnowned);
    for source in [FIRST, SECOND] {
        engine.set_reading(source, reading("c2", &[("a", None)]));
        engine.record_check(source, engine.last_observation_number());
    }
    engine.set_peers(Vec::new(), now);
    let action = engine.decide(&id, now).action;
    assert!(matches!(action, Action::Delete(..)), "{action:?}");
    engine.observe_absence(&id);
    engine.record_result(&id, &action, ActionResult::Deleted, now);
    engine.set_reading(SECOND, reading("c3", &[("b/a", Some(desired(&id, 2, "b/a")))]));
    assert_eq!(engine.decide(&id, now).action, Action::Lookup);
}
