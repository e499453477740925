//! Objects that other sources have and one here wants. Their holders are looked up again, and an
//! object that another source took is requested at once.

use std::time::{Duration, Instant};

use super::handover::{OTHER, REPOSITORY, anothers, dropped, engine, follows, peer, says, these};
use super::world::{FIRST, World, WorldObject, config, desired, reading};
use crate::engine::*;
use crate::object::ObjectId;

const THIRD: &str = "applyset-third-v1";

/// Returns the statements of two other sources that have read the same revision. The second one
/// gives these objects up.
fn others(given_up: &[&ObjectId]) -> Vec<PeerSource> {
    let stated = |released: &[&ObjectId]| Ok(says(follows(REPOSITORY, Some("c1")), &[], released));
    let third = PeerSource { name: "third".into(), inventory_id: THIRD.into(), ..peer(stated(given_up)) };
    vec![peer(stated(&[])), third]
}

/// Decides again and again, each time when that is due, until an object is looked up. Returns the
/// time of that, where it comes within some minutes.
fn next_lookup(
    engine: &mut Engine,
    id: &ObjectId,
    start: Instant,
    peers: impl Fn() -> Vec<PeerSource>,
) -> Option<Instant> {
    let mut now = start;
    for _ in 0..50 {
        let decision = engine.decide(id, now);
        if decision.action == Action::Lookup {
            return Some(now);
        }
        if engine.is_peer_read_needed() {
            engine.set_peers(peers(), now);
        }
        now += decision.requeue_after.unwrap_or(Duration::from_secs(5));
    }
    None
}

#[test]
fn an_object_that_went_on_to_a_third_source_is_taken_over_from_that_one() {
    let (mut engine, id, start) = anothers(AdoptPolicy::IfUnowned);
    // By the first lookup another source has it, which never gives it up: it has gone on.
    let now = next_lookup(&mut engine, &id, start, || others(&[&id])).expect("it is looked up again");
    assert!(now <= start + Duration::from_mins(1), "{:?}", now - start);
    let thing = WorldObject { uid: 1, ..WorldObject::settled(desired(&id, 1, "a").hash, "c1", 2) };
    let mut live = World::live(&id, &thing);
    live.owner = ObjectOwner::Ours(THIRD.into());
    engine.record_lookup(&id, DirectView::Found(Box::new(live)));
    engine.set_peers(others(&[&id]), now);
    let taken = engine.decide(&id, now).action;
    let Action::Apply(ApplyRequest { purpose: ApplyPurpose::Transfer, precondition, .. }) = taken else {
        panic!("{taken:?}")
    };
    assert_eq!(precondition, Precondition::Exact(Uid("1".into()), ResourceVersion(2)));
}

#[test]
fn an_object_that_its_holder_keeps_is_never_taken_over_however_often_it_is_looked_up() {
    let (mut engine, id, start) = anothers(AdoptPolicy::IfUnowned);
    let mut now = start;
    for _ in 0..3 {
        let looked_up = next_lookup(&mut engine, &id, now, || others(&[&id])).expect("it is looked up again");
        assert!(looked_up >= now + Duration::from_secs(15), "{:?}", looked_up - now);
        now = looked_up;
        let mut live = World::live(&id, &WorldObject::settled(desired(&id, 1, "a").hash, "c1", 1));
        live.owner = ObjectOwner::Ours(OTHER.into());
        engine.record_lookup(&id, DirectView::Found(Box::new(live)));
        engine.set_peers(others(&[&id]), now);
        let kept = engine.decide(&id, now);
        assert_eq!(kept.action, Action::Nothing);
        assert_eq!(kept.reason, Some(Reason::Owned(CurrentOwner::Source("other".into()))));
    }
}

#[test]
fn an_object_that_its_holder_gives_up_is_not_looked_up_again() {
    let (mut engine, id, start) = anothers(AdoptPolicy::IfUnowned);
    let gives_up = || vec![peer(Ok(says(follows(REPOSITORY, Some("c1")), &[], &[&id])))];
    assert_eq!(next_lookup(&mut engine, &id, start, gives_up), None);
}

#[test]
fn what_another_source_has_taken_is_requested_as_soon_as_it_is_out_of_sight() {
    let (mut engine, id, _) = engine(AdoptPolicy::IfUnowned);
    let requests = |engine: &Engine| engine.statement(FIRST, None).unwrap().takeover_requests;
    let beside = config("b");
    engine.observe_object(&id, World::live(&id, &WorldObject::settled(desired(&id, 1, "a").hash, "c1", 1)));
    assert_eq!(requests(&engine), TakeoverRequests::Listed(these(&[&beside])));
    engine.observe_absence(&id);
    assert_eq!(requests(&engine), TakeoverRequests::Listed(these(&[&id, &beside])));
}

#[test]
fn what_came_back_and_is_dropped_again_is_released_whenever_its_return_is_shown() {
    let check = |is_shown_first: bool| {
        let (mut engine, id, now) = dropped();
        engine.set_peers(others(&[]), now);
        let released = |engine: &Engine| engine.statement(FIRST, None).unwrap().released;
        assert_eq!(released(&engine), these(&[&id]));
        // Another source takes it, and drops it.
        engine.observe_absence(&id);
        engine.set_reading(FIRST, reading("c3", &[("a", Some(desired(&id, 1, "a")))]));
        assert_eq!(released(&engine), these(&[]));
        let back = World::live(&id, &WorldObject::settled(desired(&id, 1, "a").hash, "c3", 3));
        let gone = reading("c4", &[("a", None)]);
        if is_shown_first {
            engine.observe_object(&id, back);
            engine.set_reading(FIRST, gone);
        } else {
            engine.set_reading(FIRST, gone);
            engine.observe_object(&id, back);
        }
        assert_eq!(released(&engine), these(&[&id]), "{is_shown_first}");
    };
    check(true);
    check(false);
}
