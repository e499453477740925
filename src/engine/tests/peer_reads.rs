//! The reads of other sources' statements: when they count, when they are read again, and for how
//! long our own says what it says.

use std::time::Duration;

use super::handover::{REPOSITORY, anothers, dropped, engine, follows, peer, says, these};
use super::world::{FIRST, World, WorldObject, config, desired, reading};
use crate::engine::*;

const ONE_SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_source_may_be_behind_one_of_its_repository_that_has_read_another_revision() {
    let check = |stated: SourceProgress, expected: &[SourceId]| {
        let (mut engine, _, now) = engine(AdoptPolicy::IfUnowned);
        let behind = engine.set_peers(vec![peer(Ok(says(stated.clone(), &[], &[])))], now);
        assert_eq!(behind, expected, "{stated:?}");
    };
    check(follows(REPOSITORY, Some("c2")), &[FIRST]);
    check(follows(REPOSITORY, Some("c1")), &[]);
    check(follows("host/other HEAD", Some("c2")), &[]);
    check(SourceProgress::Unversioned, &[]);
}

#[test]
fn a_source_has_read_a_revision_of_its_repository_until_it_is_deleted() {
    use SourceLifecycle::{Active, Deleting};
    let repository = || RepositoryIdentity::Repository(REPOSITORY.into());
    let check = |lifecycle: SourceLifecycle, of: RepositoryIdentity, expected: Option<SourceProgress>| {
        let (mut engine, _, _) = engine(AdoptPolicy::IfUnowned);
        engine.sources[FIRST].declared.lifecycle = lifecycle;
        engine.set_repository(FIRST, of.clone());
        assert_eq!(engine.progress(FIRST), expected, "{lifecycle:?} {of:?}");
    };
    check(Active, repository(), Some(follows(REPOSITORY, Some("c1"))));
    check(Active, RepositoryIdentity::None, Some(SourceProgress::Unversioned));
    check(Active, RepositoryIdentity::Unknown, None);
    check(Deleting, repository(), Some(SourceProgress::Unversioned));
    check(Deleting, RepositoryIdentity::None, Some(SourceProgress::Unversioned));
    check(Deleting, RepositoryIdentity::Unknown, Some(SourceProgress::Unversioned));
}

#[test]
fn a_deletion_relies_on_what_was_read_within_three_seconds() {
    let (mut engine, id, now) = dropped();
    engine.set_peers(Vec::new(), now);
    let last = now + 3 * ONE_SECOND;
    assert!(matches!(engine.decide(&id, last).action, Action::Delete(..)));
    let late = last + Duration::from_millis(1);
    assert_eq!(engine.decide(&id, late).reason, Some(Reason::ReadingPeers));
}

#[test]
fn whoever_waits_for_others_has_them_read_again_once_their_rest_is_over() {
    let (mut engine, id, now) = dropped();
    engine.set_peers(vec![peer(Ok(says(follows(REPOSITORY, Some("c1")), &[], &[])))], now);
    for (millis, expected) in [(0, false), (999, false), (1_000, true)] {
        engine.decide(&id, now + Duration::from_millis(millis));
        assert_eq!(engine.is_peer_read_needed(), expected, "{millis}");
    }
}

#[test]
fn a_takeover_relies_on_what_was_read_within_thirty_seconds() {
    let (mut engine, id, now) = anothers(AdoptPolicy::IfUnowned);
    engine.set_peers(vec![peer(Ok(says(follows(REPOSITORY, Some("c1")), &[], &[&id])))], now);
    let action = engine.decide(&id, now + 29 * ONE_SECOND).action;
    assert!(
        matches!(action, Action::Apply(ApplyRequest { purpose: ApplyPurpose::Transfer, .. })),
        "{action:?}"
    );
    assert_eq!(engine.decide(&id, now + 30 * ONE_SECOND).reason, Some(Reason::ReadingPeers));
}

#[test]
fn an_event_about_a_dropped_object_gives_others_no_more_time_to_request_it() {
    let (mut engine, id, now) = dropped();
    let elsewhere = || vec![peer(Ok(says(SourceProgress::Unversioned, &[], &[])))];
    engine.set_peers(elsewhere(), now);
    let thing = WorldObject { rv: 2, ..WorldObject::settled(desired(&id, 1, "a").hash, "c1", 1) };
    engine.observe_object(&id, World::live(&id, &thing));
    let later = now + 10 * ONE_SECOND;
    engine.set_peers(elsewhere(), later);
    assert_eq!(engine.decide(&id, later).requeue_after, Some(20 * ONE_SECOND));
}

// Somebody may take it over by the statement from before, and drop it.
#[test]
fn what_is_wanted_again_is_requested_as_long_as_an_old_statement_may_count() {
    let (mut engine, id, now) = engine(AdoptPolicy::IfUnowned);
    let other = config("b");
    engine.set_clock(now, jiff::Timestamp::UNIX_EPOCH);
    engine.observe_object(&id, World::live(&id, &WorldObject::settled(desired(&id, 1, "a").hash, "c1", 1)));
    engine.set_peers(vec![peer(Ok(says(SourceProgress::Unversioned, &[], &[])))], now);
    engine.set_reading(FIRST, reading("c2", &[("a", None)]));
    engine.set_reading(FIRST, reading("c3", &[("a", Some(desired(&id, 1, "a")))]));
    for (millis, expected) in
        [(0, these(&[&id, &other])), (119_999, these(&[&id, &other])), (120_000, these(&[&other]))]
    {
        engine.set_clock(now + Duration::from_millis(millis), jiff::Timestamp::UNIX_EPOCH);
        let requests = engine.statement(FIRST, None).unwrap().takeover_requests;
        assert_eq!(requests, TakeoverRequests::Listed(expected), "{millis}");
    }
}
