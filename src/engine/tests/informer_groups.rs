//! Sources that are watched by different accounts, or in some namespaces alone: what one of them
//! cannot see says nothing about what the others can.

use std::sync::Arc;
use std::time::Instant;

use super::harness::release_key;
use super::world::{FIRST, SECOND, SET, World, WorldObject, config, desired, naming, reading};
use crate::engine::*;
use crate::object::{ErrorClass, GroupKind, ObjectId};

const OTHER: &str = "other-v1";

/// An engine with two sources, each with an informer group of its own; each wants one object.
struct TwoInformerGroups {
    engine: Engine,
    informer_groups: [InformerGroupId; 2],
    now: Instant,
}

impl TwoInformerGroups {
    fn new() -> Self {
        let (mut engine, now) = (Engine::new(super::world::budget(3)), Instant::now());
        engine.set_release_key(ReadState::Value(release_key()));
        engine.set_ledger(RolloutLedger::default());
        let informer_groups = [OWN_INFORMER_GROUP, engine.add_informer_group(None)];
        for (informer_group, set) in informer_groups.into_iter().zip([SET, OTHER]) {
            let radius = BlastRadius { count: 100, percent: 100 };
            let mut source =
                SourceDeclaration::new(set, set, AdoptPolicy::IfUnowned, PrunePolicy::On, radius);
            source.informer_group = informer_group;
            let source = engine.add_source(source);
            engine.set_inventory(source, naming([maps()]));
        }
        engine
            .set_kind_availability(crate::object::Gvk::new("", "v1", "ConfigMap"), KindAvailability::Served);
        Self { engine, informer_groups, now }
    }

    fn list(&mut self, source: SourceId, shown: &[(&ObjectId, LiveObject)]) {
        let listing = WatchScope::cluster_wide(self.informer_groups[source.position()], &maps());
        self.engine.list_started(&listing);
        for (id, live) in shown {
            self.engine.observe_object_by(listing.informer_group, id, live.clone());
        }
        self.engine.list_complete(&listing);
    }

    fn blind(&mut self, source: SourceId) {
        let listing = WatchScope::cluster_wide(self.informer_groups[source.position()], &maps());
        self.engine
            .set_informer_state(&listing, KindState::Unobservable("denied".into(), ErrorClass::Forbidden));
    }

    fn read(&mut self, source: SourceId, revision: &str, names: &[(&str, Option<u32>)]) {
        let files: Vec<(&str, Option<SharedDesiredObject>)> = names
            .iter()
            .map(|(name, content)| {
                let wanted = content.map(|content| desired(&config(name), content, name));
                (*name, wanted)
            })
            .collect();
        self.engine.set_reading(source, reading(revision, &files));
    }

    fn decide(&mut self, name: &str) -> Decision {
        self.engine.decide(&config(name), self.now)
    }
}

fn maps() -> GroupKind {
    config("a").group_kind()
}

/// Returns the view of an object in the inventory of a set.
fn shown(name: &str, set: &str, rv: u64) -> LiveObject {
    let wanted = desired(&config(name), 1, name);
    let thing = WorldObject { rv, ..WorldObject::settled(wanted.hash, "r1", 1) };
    LiveObject { owner: ObjectOwner::Ours(set.into()), ..World::live(&config(name), &thing) }
}

#[test]
fn an_account_that_may_not_list_a_kind_holds_up_only_its_own_sources() {
    let mut two = TwoInformerGroups::new();
    two.list(FIRST, &[(&config("old"), shown("old", SET, 1))]);
    two.blind(SECOND);
    two.read(FIRST, "r1", &[("a", Some(1)), ("old", Some(1))]);
    two.read(SECOND, "r1", &[("b", Some(1))]);
    assert_eq!(two.decide("a").action, Action::Lookup);
    let reason = two.decide("b").reason;
    assert_eq!(reason, Some(Reason::Unobservable(maps(), "denied".into(), ErrorClass::Forbidden)));
    assert!(two.engine.is_synced(FIRST, &maps()) && !two.engine.is_synced(SECOND, &maps()));
    // Nor does it delay what the others no longer want.
    two.read(FIRST, "r2", &[("a", Some(1)), ("old", None)]);
    two.engine.record_check(SECOND, two.engine.last_observation_number());
    assert!(matches!(two.decide("old").action, Action::Delete(..)), "{:?}", two.decide("old"));
    assert_eq!(two.engine.unlisted_reason(FIRST), None);
    assert!(two.engine.unlisted_reason(SECOND).unwrap().to_string().contains("denied"));
}

#[test]
fn an_account_that_is_still_listing_is_waited_for_by_its_own_sources() {
    let mut two = TwoInformerGroups::new();
    two.list(SECOND, &[]);
    two.engine.list_started(WatchScope::cluster_wide(two.informer_groups[0], &maps()));
    two.read(FIRST, "r1", &[("a", Some(1))]);
    two.read(SECOND, "r1", &[("b", Some(1))]);
    assert_eq!(two.decide("a").reason, Some(Reason::Syncing(maps())));
    assert_eq!(two.decide("b").action, Action::Lookup);
}

#[test]
fn what_one_list_does_not_show_another_one_may() {
    let mut two = TwoInformerGroups::new();
    let (a, b) = (config("a"), config("b"));
    two.list(FIRST, &[(&a, shown("a", SET, 1))]);
    two.list(SECOND, &[(&b, shown("b", OTHER, 1))]);
    two.list(FIRST, &[(&a, shown("a", SET, 1))]);
    assert!(two.engine.informer_object(&a).is_some() && two.engine.informer_object(&b).is_some());
    two.list(FIRST, &[]);
    assert!(two.engine.informer_object(&a).is_none() && two.engine.informer_object(&b).is_some());
}

/// Reports the move as two watches do, one that the object is gone and one that it is there, in any
/// order.
#[test]
fn an_object_that_moves_to_another_account_is_there_all_the_time() {
    let (a, moved) = (config("a"), 2);
    for late in [false, true] {
        let mut two = TwoInformerGroups::new();
        two.list(FIRST, &[(&a, shown("a", SET, 1))]);
        two.list(SECOND, &[]);
        let [first, second] = two.informer_groups;
        two.engine.list_started(WatchScope::cluster_wide(first, &maps()));
        if late {
            two.engine.observe_object_by(second, &a, shown("a", OTHER, moved));
            two.engine.observe_absence_by(first, &a);
        } else {
            two.engine.observe_absence_by(first, &a);
            two.engine.observe_object_by(second, &a, shown("a", OTHER, moved));
        }
        // A list that began before shows it as it was, or not at all.
        two.engine.observe_object_by(first, &a, shown("a", SET, 1));
        two.engine.list_complete(WatchScope::cluster_wide(first, &maps()));
        let live = two.engine.informer_object(&a).unwrap();
        assert_eq!(
            (&live.owner, live.rv),
            (&ObjectOwner::Ours(OTHER.into()), ResourceVersion(moved)),
            "{late}"
        );
        // The informer group that shows it now is the one that reports its deletion.
        two.engine.observe_absence_by(second, &a);
        assert!(two.engine.informer_object(&a).is_none());
    }
}

#[test]
fn whose_rights_count_follows_from_who_wants_it_and_else_from_who_has_it() {
    let mut two = TwoInformerGroups::new();
    two.list(FIRST, &[(&config("a"), shown("a", SET, 1))]);
    two.list(SECOND, &[(&config("b"), shown("b", OTHER, 1))]);
    two.read(SECOND, "r1", &[("a", Some(2)), ("c", Some(1))]);
    for (name, expected) in [("a", Some(SECOND)), ("b", Some(SECOND)), ("c", Some(SECOND)), ("d", None)] {
        assert_eq!(two.engine.acting_source(&config(name)), expected, "{name}");
    }
}

#[test]
fn a_kind_is_known_where_each_namespace_of_a_source_is() {
    let (mut engine, of) = looking_into_two();
    let informer_group = of("one").informer_group;
    let id = |namespace: &str| ObjectId::new(&maps(), Some(namespace), "a");
    let states = |engine: &Engine| {
        let of = |namespace| engine.is_observable_by(informer_group, &id(namespace));
        (
            engine.is_syncing(FIRST, &maps()),
            engine.is_synced(FIRST, &maps()),
            of("one"),
            of("two"),
            of("three"),
        )
    };
    // A kind that discovery does not list has no namespaces.
    engine.set_informer_state(
        WatchScope::cluster_wide(informer_group, &maps()),
        KindState::Unobservable("unlisted".into(), ErrorClass::Source),
    );
    assert_eq!(states(&engine), (false, false, false, false, false));
    for (listing, expected) in
        [("one", (true, false, true, false, false)), ("two", (false, true, true, true, false))]
    {
        engine.set_informer_state(of(listing), KindState::Syncing);
        engine.list_started(of(listing));
        assert!(engine.is_syncing(FIRST, &maps()));
        engine.list_complete(of(listing));
        assert_eq!(states(&engine), expected, "{listing}");
    }
    engine.set_informer_state(of("two"), KindState::Unobservable("denied".into(), ErrorClass::Forbidden));
    assert_eq!(states(&engine), (false, false, true, false, false));
    // The cluster as a whole is another question, and of kinds without a namespace the only one.
    let nodes = GroupKind::new("", "Node");
    engine.set_informer_state(WatchScope::cluster_wide(informer_group, &nodes), KindState::Synced);
    assert!(engine.is_synced(FIRST, &nodes));
}

/// Returns an engine with one source that looks into these two namespaces.
fn looking_into_two() -> (Engine, impl Fn(&str) -> WatchScope) {
    let mut engine = Engine::new(super::world::budget(3));
    let informer_group = engine.add_informer_group(Some(["one".into(), "two".into()].into()));
    let radius = BlastRadius { count: 100, percent: 100 };
    let mut source = SourceDeclaration::new("a", SET, AdoptPolicy::IfUnowned, PrunePolicy::On, radius);
    source.informer_group = informer_group;
    engine.add_source(source);
    (engine, move |namespace: &str| WatchScope {
        informer_group,
        kind: maps(),
        namespace: Some(namespace.into()),
    })
}

// A source that takes it for looked at would begin to report, to claim and to end.
#[test]
fn a_namespace_that_is_forbidden_does_not_hide_that_another_one_is_still_listed() {
    let (mut engine, of) = looking_into_two();
    for (first, second) in [("one", "two"), ("two", "one")] {
        engine.set_informer_state(of(first), KindState::Unobservable("denied".into(), ErrorClass::Forbidden));
        engine.set_informer_state(of(second), KindState::Syncing);
        assert!(engine.is_syncing(FIRST, &maps()) && !engine.is_synced(FIRST, &maps()), "{second}");
        engine.list_complete(of(second));
        assert!(!engine.is_syncing(FIRST, &maps()) && !engine.is_synced(FIRST, &maps()), "{first}");
    }
}

#[test]
fn a_kind_that_the_server_does_not_have_is_absent_for_all_who_watch() {
    let (mut engine, _) = looking_into_two();
    engine.set_kind_absent(&maps());
    assert!(engine.is_synced(FIRST, &maps()));
    assert!(engine.is_listed(&WatchScope::cluster_wide(OWN_INFORMER_GROUP, &maps())));
}

#[test]
fn what_is_in_a_namespace_that_nobody_looks_into_any_more_is_reported() {
    let (mut engine, _) = looking_into_two();
    let namespaces: [Arc<str>; 4] = ["one", "three", "two", "four"].map(Into::into);
    for (named, expected) in
        [(0..0, None), (0..1, None), (0..2, Some("namespace three")), (0..4, Some("namespaces four, three"))]
    {
        let namespaces = namespaces[named].iter().cloned().collect();
        engine.set_inventory(FIRST, Inventory { namespaces, kinds: [maps()].into(), ..Inventory::default() });
        let found = engine.unwatched_namespaces(FIRST).map(|found| found.to_string());
        assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
        assert_eq!(engine.has_unwatched(FIRST), expected.is_some());
        assert!(expected.is_none_or(|words| found.unwrap().contains(&format!("{words} are neither"))));
    }
}

// Nobody wants it and nobody shows it: whoever still lists may come upon it.
#[test]
fn an_object_that_nobody_watches_is_seen_once_all_that_can_list_have_listed() {
    let denied = || KindState::Unobservable("denied".into(), ErrorClass::Forbidden);
    let check = |states: [KindState; 2], expected: bool| {
        let mut two = TwoInformerGroups::new();
        for (informer_group, state) in two.informer_groups.into_iter().zip(states.clone()) {
            two.engine.set_informer_state(WatchScope::cluster_wide(informer_group, &maps()), state);
        }
        assert_eq!(two.engine.is_observable(&config("x")), expected, "{states:?}");
    };
    check([KindState::Synced, KindState::Synced], true);
    check([KindState::Synced, KindState::Syncing], false);
    check([KindState::Syncing, KindState::Absent], false);
    check([denied(), KindState::Synced], true);
    check([denied(), denied()], false);
}

// The informer group to which it moves is about to show it.
#[test]
fn an_object_that_our_own_write_gave_to_another_account_is_there_until_that_shows_it() {
    let (mut two, a) = (TwoInformerGroups::new(), config("a"));
    two.list(FIRST, &[(&a, shown("a", SET, 1))]);
    two.list(SECOND, &[]);
    for source in [FIRST, SECOND] {
        two.read(source, "r1", &[("a", Some(1))]);
    }
    two.read(FIRST, "r2", &[("a", None)]);
    let action = two.decide("a").action;
    let Action::Apply(apply) = &action else { panic!("{action:?}") };
    assert_eq!((apply.source, apply.purpose), (SECOND, ApplyPurpose::Transfer));
    let written = ActionResult::Applied(WriteResult { live: shown("a", OTHER, 2) });
    two.engine.record_result(&a, &action, written, two.now);
    let [first, second] = two.informer_groups;
    two.engine.observe_absence_by(first, &a);
    let owner = two.engine.live_object(&a).map(|live| live.owner.clone());
    assert_eq!(owner, Some(ObjectOwner::Ours(OTHER.into())));
    two.engine.observe_object_by(second, &a, shown("a", OTHER, 2));
    two.engine.observe_absence_by(second, &a);
    assert!(two.engine.live_object(&a).is_none());
}
