use std::time::Instant;

use super::*;
use crate::engine::{Engine, Input, MAX_FINISHED_BYTES};
use crate::object::ObjectId;

#[test]
fn so_many_places_are_named_the_first_and_the_last_ones() {
    let all = (0..20).map(|number| format!("/srv/{number}"));
    let made_from = all.reduce(|made_from, location| join_locations(&location, &made_from)).unwrap();
    let last: Vec<String> = (13..20).map(|number| format!(" and /srv/{number}")).collect();
    assert_eq!(made_from, format!("/srv/0{}", last.concat()));
}

#[test]
fn what_an_older_version_took_over_from_objects_is_cut() {
    let line = |number: u32| format!("{number}-{} undone: {}\n", "t".repeat(240_000), "x".repeat(9000));
    let text: String = (0..4).map(line).collect();
    let inventory =
        InventoryObject { data: [(ACKNOWLEDGED_KEY.to_owned(), text)].into(), ..InventoryObject::default() };
    assert!(is_overlong(Some(&inventory)));
    let all = inventory.acknowledgements();
    let text = Acknowledgement::text(&all);
    assert_eq!(all.len(), 4);
    assert!(text.len() < 4 * 600, "{}", text.len());
    let many = Acknowledgement::text(&vec![all[0].clone(); 5000]);
    assert!(Acknowledgement::text(&Acknowledgement::parse_all(&many)).len() < MAX_ACKNOWLEDGED_BYTES);
}

#[test]
fn of_many_deletions_those_are_listed_that_have_room_and_the_others_are_counted() {
    let pending = |number: usize| PendingPrune {
        uid: Uid("5a1c".into()),
        id: ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), &format!("env{number:04}")),
        reason: "it is asked for by name".to_owned(),
    };
    let check = |count: usize, room: usize, listed: usize| {
        let (list, left) = list_within((0..count).map(pending), room);
        assert_eq!((list.lines().count(), left), (listed, count - listed), "{count} in {room}");
        assert!(list.len() <= room);
    };
    let line = pending(0).line().len() + 1;
    check(3, MAX_PENDING_BYTES, 3);
    check(5000, MAX_PENDING_BYTES, MAX_LISTED_PENDING);
    check(5000, line * 7 + line / 2, 7);
    check(5000, line * 7, 7);
    check(5, 0, 0);
}

#[test]
fn no_name_is_read_as_another_or_as_two() {
    for name in
        ["env", "a b", "it's 2 of 7", "a\nuid ConfigMap shop/b because", "a\r\n", "system:auth", "a+b"]
    {
        let kind = GroupKind::new("rbac.authorization.k8s.io", "ClusterRole");
        let pending = PendingPrune {
            uid: Uid("5a1c".into()),
            id: ObjectId::new(&kind, None, name),
            reason: "it is asked for by name".to_owned(),
        };
        let data = [(PENDING_PRUNES_KEY.to_owned(), format!("{0}\n{0}\n", pending.line()))].into();
        let inventory = InventoryObject { data, ..InventoryObject::default() };
        assert_eq!(inventory.pending_prunes(), [pending.clone(), pending], "{name:?}");
    }
}

/// Hands over the inventory of the only source.
pub(super) fn set_inventory(engine: &mut Engine, inventory: Inventory) {
    engine.handle_now(Input::Inventory { source: SourceId::new(0), inventory });
}

/// Returns a source that has nothing, wants nothing, and looks into these namespaces for these
/// kinds.
fn watching(namespaces: Option<&[&str]>, kinds: Option<&str>) -> Engine {
    use crate::engine::{AdoptPolicy, AllowList, BlastRadius, Budget, PrunePolicy, SourceDeclaration};
    let mut engine = Engine::new(Budget::default());
    let namespaces: Option<BTreeSet<_>> =
        namespaces.map(|names| names.iter().map(|name| (*name).into()).collect());
    let radius = BlastRadius { count: 10, percent: 10 };
    let mut source =
        SourceDeclaration::new("shop", "applyset-shop", AdoptPolicy::IfUnowned, PrunePolicy::On, radius);
    source.informer_group = engine.add_informer_group(namespaces.clone());
    let kinds = kinds.map(|kind| [kind.parse().unwrap()].into());
    source.allow = AllowList { namespaces, kinds, ..AllowList::default() }.into();
    engine.add_source(source);
    engine.handle_now(Input::Scopes(crate::manifest::KindScopes::builtin()));
    engine
}

#[test]
fn what_nobody_looks_for_stays_in_the_inventory_and_so_does_where_it_came_from() {
    let inventory = InventoryObject {
        kinds: ["ConfigMap", "Secret", "Node"].map(GroupKind::parse).into(),
        namespaces: ["one", "two"].map(str::to_owned).into(),
        annotations: [(annotations::SOURCE.to_owned(), "/srv/old".to_owned())].into(),
        ..InventoryObject::default()
    };
    let (here, both) = ("/srv/new", "/srv/old and /srv/new");
    let (one, two) = (&["one"][..], &["one", "two"][..]);
    let table = [
        (None, None, "", "", here),
        (Some(two), None, "", "", here),
        (Some(one), None, "ConfigMap Secret", "two", both),
        (Some(&[][..]), None, "ConfigMap Secret", "one two", both),
        (None, Some("ConfigMap"), "Node Secret", "one two", both),
        (Some(one), Some("ConfigMap"), "ConfigMap Node Secret", "one two", both),
    ];
    for (looks_into, allowed, kinds, namespaces, location) in table {
        let mut engine = watching(looks_into, allowed);
        set_inventory(&mut engine, read(Some(&inventory), here, &HashCiphers::default()));
        let tidied = wanted_inventory(
            engine.view(),
            SourceId::new(0),
            here,
            Some(&inventory),
            InventoryWriteMode::Exact,
        )
        .unwrap();
        let mut named: Vec<String> = tidied.kinds.iter().map(ToString::to_string).collect();
        named.sort();
        assert_eq!(named.join(" "), kinds);
        assert_eq!(tidied.namespaces.into_iter().collect::<Vec<_>>().join(" "), namespaces, "{kinds}");
        assert_eq!(tidied.annotations[annotations::SOURCE], location, "{kinds}");
    }
}

#[test]
fn a_job_that_has_ended_does_not_run_again_as_its_namespace_was_left_out_for_a_while() {
    let text = parse_finished_jobs(&format!(
        "Job.batch one/migrate {0}\nJob.batch two/migrate {0}\n",
        "0".repeat(32)
    ));
    assert_eq!(text.len(), 2);
    let mut engine = watching(Some(&["one"]), None);
    let revision = Some(Revision::new("r1"));
    engine.read(
        SourceId::new(0),
        crate::engine::SourceReading { revision, ..crate::engine::SourceReading::default() },
    );
    assert!(engine.view().source(SourceId::new(0)).is_complete());
    let kept: Vec<ObjectId> = ended_jobs(engine.view(), SourceId::new(0), &text).into_keys().collect();
    assert_eq!(kept, [ObjectId::new(&GroupKind::new("batch", "Job"), Some("two"), "migrate")]);
}

// A location that nobody knows may have been another repository's, whose objects are not ours to
// delete.
#[test]
fn an_inventory_that_is_lost_or_names_no_location_is_not_taken_for_one_of_here() {
    let named = |location: &str| InventoryObject {
        annotations: [(annotations::SOURCE.to_owned(), location.to_owned())].into(),
        ..InventoryObject::default()
    };
    let check = |inventory: Option<&InventoryObject>, other: Option<&str>, lacks: bool| {
        let read = read(inventory, "/srv/a", &HashCiphers::default());
        assert_eq!((read.other_location.as_deref(), read.lacks_location), (other, lacks), "{inventory:?}");
    };
    check(None, Some(UNKNOWN_LOCATION), false);
    check(Some(&InventoryObject::default()), Some(UNKNOWN_LOCATION), false);
    check(Some(&named("/srv/a")), None, false);
    check(Some(&named("/srv/b")), Some("/srv/b"), true);
    check(Some(&named("/srv/b and /srv/a")), Some("/srv/b and /srv/a"), false);
}

#[test]
fn the_accepted_revision_of_an_inventory_is_known_to_the_engine() {
    let (first, second) = ("a".repeat(40), "b".repeat(40));
    let inventory = InventoryObject {
        data: [("accepted".to_owned(), first.clone())].into(),
        annotations: [(annotations::ACCEPT.to_owned(), second)].into(),
        ..InventoryObject::default()
    };
    let accepted =
        |inventory: Option<&InventoryObject>| read(inventory, "/srv/a", &HashCiphers::default()).accepted;
    assert_eq!(accepted(Some(&inventory)), Some(Revision::new(&first)));
    assert_eq!([accepted(Some(&InventoryObject::default())), accepted(None)], [None, None]);
}

/// Returns a source that wants `ConfigMap shop/a`, and has `ConfigMap depot/b` still.
pub(super) fn having_one_too_many() -> (Engine, ObjectId) {
    use crate::engine::tests::world::{
        FIRST, SET, World, WorldObject, config, desired, following, id, reading,
    };
    use crate::engine::{AdoptPolicy, RepositoryIdentity};
    let mut engine = following(&[("shop", SET, RepositoryIdentity::None)], AdoptPolicy::IfUnowned);
    engine.handle_now(Input::Scopes(crate::manifest::KindScopes::builtin()));
    let (wanted, other) = (config("a"), id("", "ConfigMap", "depot", "b"));
    engine.read(FIRST, reading("r1", &[("a", Some(desired(&wanted, 1, "a")))]));
    for (uid, one) in [(1, &wanted), (2, &other)] {
        let thing = WorldObject::settled(desired(one, 1, "a").hash, "r1", uid);
        engine.observe_object(one, World::live(one, &thing));
    }
    (engine, other)
}

#[test]
fn an_inventory_names_each_kind_and_namespace_that_is_wanted_or_there() {
    let (engine, _) = having_one_too_many();
    let known = InventoryObject {
        kinds: [GroupKind::parse("Job.batch")].into(),
        namespaces: ["old".to_owned()].into(),
        ..InventoryObject::default()
    };
    let check = |known: Option<&InventoryObject>, mode, kinds: &str, namespaces: &str| {
        let wanted = wanted_inventory(engine.view(), SourceId::new(0), "/srv/a", known, mode).unwrap();
        let mut named: Vec<String> = wanted.kinds.iter().map(ToString::to_string).collect();
        named.sort();
        let spaces: Vec<String> = wanted.namespaces.into_iter().collect();
        assert_eq!((named.join(" ").as_str(), spaces.join(" ").as_str()), (kinds, namespaces), "{mode:?}");
    };
    check(None, InventoryWriteMode::Grow, "ConfigMap", "depot shop");
    check(Some(&known), InventoryWriteMode::Grow, "ConfigMap Job.batch", "depot old shop");
    check(Some(&known), InventoryWriteMode::Exact, "ConfigMap", "depot shop");
    // An unwanted object that is there is named, or nobody would ever look for it.
    let nothing = || crate::engine::tests::world::reading("r2", &[("a", None)]);
    let (mut engine, _) = having_one_too_many();
    engine.read(SourceId::new(0), nothing());
    let wanted =
        wanted_inventory(engine.view(), SourceId::new(0), "/srv/a", Some(&known), InventoryWriteMode::Exact);
    assert_eq!(wanted.unwrap().kinds, [GroupKind::parse("ConfigMap")].into());
}

#[test]
fn nothing_is_written_before_the_inventory_names_its_kind_and_its_namespace() {
    let inventory = InventoryObject {
        kinds: [GroupKind::parse("ConfigMap")].into(),
        namespaces: ["shop".to_owned()].into(),
        ..InventoryObject::default()
    };
    let check = |kind: &str, namespace: Option<&str>, expected: bool| {
        let inventory = InventoryState::Present(inventory.clone());
        let store = InventoryStore { inventory, ..InventoryStore::default() };
        let touched = [(GroupKind::parse(kind), namespace.map(str::to_owned))].into();
        assert_eq!(store.has_all_scopes(&touched), expected, "{kind} {namespace:?}");
    };
    check("ConfigMap", Some("shop"), true);
    check("ConfigMap", None, true);
    check("ConfigMap", Some("depot"), false);
    check("Secret", Some("shop"), false);
    assert!(!InventoryStore::default().has_all_scopes(&[(GroupKind::parse("ConfigMap"), None)].into()));
}

#[test]
fn the_present_location_is_written_down_once_nothing_of_the_other_one_is_left() {
    let known = InventoryObject {
        annotations: [(annotations::SOURCE.to_owned(), "/srv/old".to_owned())].into(),
        ..InventoryObject::default()
    };
    let (mut engine, other) = having_one_too_many();
    set_inventory(&mut engine, read(Some(&known), "/srv/new", &HashCiphers::default()));
    let location = |engine: &Engine, mode| {
        let wanted =
            wanted_inventory(engine.view(), SourceId::new(0), "/srv/new", Some(&known), mode).unwrap();
        wanted.annotations[annotations::SOURCE].clone()
    };
    let both = "/srv/old and /srv/new";
    assert_eq!(location(&engine, InventoryWriteMode::Grow), both);
    assert_eq!(location(&engine, InventoryWriteMode::Exact), both, "one is left");
    engine.observe_absence(&other);
    assert_eq!(location(&engine, InventoryWriteMode::Grow), both, "it may not be all that is there");
    assert_eq!(location(&engine, InventoryWriteMode::Exact), "/srv/new");
}

// It is read from nowhere, and that is no place that its objects came from.
#[test]
fn a_source_that_ends_adds_no_location_to_its_inventory() {
    use crate::engine::{AdoptPolicy, BlastRadius, Budget, PrunePolicy, SourceDeclaration};
    let known = InventoryObject {
        annotations: [(annotations::SOURCE.to_owned(), "/srv/old".to_owned())].into(),
        ..InventoryObject::default()
    };
    let location = |lifecycle, mode| {
        let mut engine = Engine::new(Budget::default());
        let radius = BlastRadius { count: 10, percent: 10 };
        let mut source =
            SourceDeclaration::new("shop", "applyset-shop", AdoptPolicy::Never, PrunePolicy::On, radius);
        source.lifecycle = lifecycle;
        let source = engine.add_source(source);
        set_inventory(&mut engine, read(Some(&known), "/nonexistent", &HashCiphers::default()));
        let wanted = wanted_inventory(engine.view(), source, "/nonexistent", Some(&known), mode);
        wanted.unwrap().annotations[annotations::SOURCE].clone()
    };
    for mode in [InventoryWriteMode::Grow, InventoryWriteMode::Exact] {
        assert_eq!(location(SourceLifecycle::Deleting, mode), "/srv/old", "{mode:?}");
    }
    assert_eq!(location(SourceLifecycle::Active, InventoryWriteMode::Grow), "/srv/old and /nonexistent");
}

#[test]
fn a_confirmed_deletion_is_recorded_as_long_as_it_is_to_come() {
    let (mut engine, other) = having_one_too_many();
    let confirmed = ["2", "gone"].map(|uid| Uid(uid.into())).into();
    let inventory = engine.view().source(SourceId::new(0)).inventory.clone().unwrap();
    set_inventory(&mut engine, Inventory { confirmed, ..inventory });
    let recorded = |engine: &Engine| {
        let known = InventoryObject {
            data: [(CONFIRMED_PRUNES_KEY.to_owned(), "2\ngone".to_owned())].into(),
            ..InventoryObject::default()
        };
        let wanted = wanted_inventory(
            engine.view(),
            SourceId::new(0),
            "/srv/a",
            Some(&known),
            InventoryWriteMode::Exact,
        );
        wanted.unwrap().data.get(CONFIRMED_PRUNES_KEY).cloned()
    };
    assert_eq!(recorded(&engine).as_deref(), Some("2"));
    engine.observe_absence(&other);
    assert_eq!(recorded(&engine), None);
}

// A file that was not read may want it still, and then it would run again.
#[test]
fn a_job_that_has_ended_does_not_run_again_as_its_manifest_was_not_read_for_a_while() {
    let text = parse_finished_jobs(&format!("Job.batch shop/migrate {}\n", "0".repeat(32)));
    let kept = |incomplete: Option<&str>| {
        let mut engine = watching(None, None);
        let (revision, incomplete) = (Some(Revision::new("r1")), incomplete.map(Into::into));
        let reading =
            crate::engine::SourceReading { revision, incomplete_reason: incomplete, ..Default::default() };
        engine.read(SourceId::new(0), reading);
        ended_jobs(engine.view(), SourceId::new(0), &text).len()
    };
    assert_eq!((kept(None), kept(Some("a.yaml cannot be read"))), (0, 1));
}

/// Returns the inventory that is to be written, where nothing is recorded yet.
fn to_write(engine: &Engine) -> InventoryObject {
    wanted_inventory(engine.view(), SourceId::new(0), "/srv/a", None, InventoryWriteMode::Exact).unwrap()
}

/// Lets an object ask that a person confirms its deletion.
fn ask_for_confirmation(engine: &mut Engine, id: &ObjectId) {
    let shown = engine.view().informer_object(id).cloned().unwrap();
    let rv = ResourceVersion(shown.rv.0 + 1);
    let asking =
        crate::engine::LiveObject { prune_timing: crate::engine::PruneTiming::OnConfirmation, rv, ..shown };
    engine.observe_object(id, asking);
    // No revision has its content any more.
    for (revision, wanted) in engine.view().unread_contents() {
        for (id, hash) in wanted {
            let release = crate::engine::ContentRef { hash, revision: revision.clone() };
            engine.handle_now(Input::OlderContent { id, release, content: None });
        }
    }
    engine.poll(Instant::now());
}

#[test]
fn a_deletion_for_which_there_is_no_room_is_counted() {
    let (mut engine, other) = having_one_too_many();
    ask_for_confirmation(&mut engine, &other);
    let listed = |max_bytes: usize| {
        let [(list_key, list), (count_key, count)] = list_pending(engine.view(), SourceId::new(0), max_bytes);
        assert_eq!((list_key, count_key), (PENDING_PRUNES_KEY, UNLISTED_PENDING_KEY));
        (list.is_some(), count)
    };
    assert_eq!(listed(MAX_RECORD_BYTES), (true, None));
    assert_eq!(listed(0), (false, Some("1".to_owned())));
}

#[test]
fn the_list_of_deletions_has_the_room_that_all_else_leaves() {
    let left = |data: &[(&str, usize)]| {
        let data = data.iter().map(|(key, bytes)| ((*key).to_owned(), "x".repeat(*bytes)));
        room_left(&InventoryObject { data: data.collect(), ..InventoryObject::default() })
    };
    assert_eq!(left(&[]), MAX_RECORD_BYTES);
    assert_eq!(left(&[("kept", 3), ("else", 10)]), MAX_RECORD_BYTES - 21);
    assert_eq!(left(&[(PENDING_PRUNES_KEY, 7), (UNLISTED_PENDING_KEY, 7)]), MAX_RECORD_BYTES);
    assert_eq!(left(&[("kept", MAX_RECORD_BYTES)]), 0);
}

#[test]
fn a_deletion_that_waits_for_a_person_is_listed_as_long_as_it_waits() {
    let (mut engine, other) = having_one_too_many();
    let listed = |engine: &Engine| {
        let inventory = to_write(engine);
        let ids = inventory.pending_prunes().into_iter().map(|pending| pending.id);
        let keys = [PENDING_PRUNES_KEY, UNLISTED_PENDING_KEY].map(|key| inventory.data.contains_key(key));
        (ids.collect::<Vec<_>>(), keys)
    };
    engine.poll(Instant::now());
    assert_eq!(listed(&engine), (vec![], [false, false]));
    ask_for_confirmation(&mut engine, &other);
    assert_eq!(listed(&engine), (vec![other.clone()], [true, false]));
    let inventory = to_write(&engine);
    assert!(is_current(engine.view(), SourceId::new(0), Some(&inventory)));
    assert!(!is_current(engine.view(), SourceId::new(0), Some(&InventoryObject::default())));
    engine.observe_absence(&other);
    engine.poll(Instant::now());
    assert!(!is_current(engine.view(), SourceId::new(0), Some(&inventory)), "nothing waits any more");
}

#[test]
fn an_inventory_is_not_current_that_says_more_than_is_so() {
    let (mut engine, _) = having_one_too_many();
    engine.poll(Instant::now());
    let check = |key: &str, text: String, expected: bool| {
        let mut inventory = to_write(&engine);
        inventory.data.insert(key.to_owned(), text);
        assert_eq!(is_current(engine.view(), SourceId::new(0), Some(&inventory)), expected, "{key}");
    };
    check("of-somebody-else", "x".to_owned(), true);
    for key in [PENDING_PRUNES_KEY, UNLISTED_PENDING_KEY, PRUNE_CLOSED_KEY, KEPT_KEY] {
        check(key, "1".to_owned(), false);
    }
    check(ACKNOWLEDGED_KEY, "x".repeat(MAX_ACKNOWLEDGED_BYTES), true);
    check(ACKNOWLEDGED_KEY, "x".repeat(MAX_ACKNOWLEDGED_BYTES + 1), false);
}

#[test]
fn of_the_jobs_that_have_ended_as_many_are_recorded_as_have_room() {
    let hash = "0".repeat(32);
    let line = |number: usize| {
        let object = format!("Job.batch/shop/nightly-report-of-job-{number:04}");
        format!("{{\"object\":\"{object}\",\"content\":\"{hash}\"}}\n")
    };
    let most = MAX_FINISHED_BYTES / line(0).len();
    assert_eq!(most * line(0).len(), MAX_FINISHED_BYTES, "the last one has just enough");
    for (count, expected) in [(0, 0), (most - 1, most - 1), (most + 1, most)] {
        let text: String = (0..count).map(line).collect();
        let written = finished_jobs_text(&parse_finished_jobs(&text));
        assert_eq!(written.lines().count(), expected);
        assert!(text.starts_with(&written));
    }
}

#[test]
fn only_a_job_that_goes_away_by_itself_is_recorded_once_it_has_ended() {
    use crate::engine::tests::world::{FIRST, SET, World, WorldObject, desired, following, id, reading};
    use crate::engine::{AdoptPolicy, FinishedJob, LiveObject, ObjectLifetime, RepositoryIdentity};
    let job = id("batch", "Job", "shop", "migrate");
    let check = |lifetime: ObjectLifetime, finished: bool, shown: u32, expected: bool| {
        let mut engine = following(&[("shop", SET, RepositoryIdentity::None)], AdoptPolicy::IfUnowned);
        let mut wanted = (*desired(&job, 1, "job")).clone();
        wanted.traits.lifetime = lifetime;
        let hash = wanted.hash;
        engine.read(FIRST, reading("r1", &[("job", Some(wanted.into()))]));
        let thing = WorldObject::settled(desired(&job, shown, "job").hash, "r1", 1);
        let live = LiveObject { finished, ..World::live(&job, &thing) };
        engine.observe_object(&job, live);
        let ended: Vec<_> =
            ended_jobs(engine.view(), FIRST, &std::collections::BTreeMap::new()).into_iter().collect();
        let end = FinishedJob { content: hash, has_failed: false, revision: None };
        let recorded = if expected { vec![(job.clone(), end)] } else { vec![] };
        assert_eq!(ended, recorded, "{lifetime:?} {finished} {shown}");
    };
    check(ObjectLifetime::AfterFinish, true, 1, true);
    check(ObjectLifetime::AfterFinish, false, 1, false);
    check(ObjectLifetime::Unlimited, true, 1, false);
    // Another content is wanted by now.
    check(ObjectLifetime::AfterFinish, true, 2, false);
}

#[test]
fn an_inventory_is_not_current_that_lacks_a_job_that_has_ended() {
    use crate::engine::FinishedJob;
    use crate::engine::tests::world::{FIRST, config, desired};
    let (mut engine, _) = having_one_too_many();
    let inventory = engine.view().source(FIRST).inventory.clone().unwrap();
    let content = desired(&config("a"), 1, "a").hash;
    let end = FinishedJob { content, has_failed: false, revision: None };
    let finished = [(config("a"), end)].into();
    set_inventory(&mut engine, Inventory { finished, ..inventory });
    engine.poll(Instant::now());
    let recorded = to_write(&engine);
    assert_eq!(recorded.data[FINISHED_JOBS_KEY].lines().count(), 1);
    assert!(is_current(engine.view(), FIRST, Some(&recorded)));
    let mut lacking = recorded;
    lacking.data.remove(FINISHED_JOBS_KEY);
    assert!(!is_current(engine.view(), FIRST, Some(&lacking)));
    lacking.data.insert(FINISHED_JOBS_KEY.to_owned(), format!("ConfigMap shop/a {}\n", "0".repeat(32)));
    assert!(!is_current(engine.view(), FIRST, Some(&lacking)), "it ended with another content");
}

// A rollback may bring what the newest revision does not name.
#[test]
fn an_inventory_is_not_current_that_lacks_the_kind_or_the_namespace_of_what_is_wanted() {
    let (mut engine, _) = having_one_too_many();
    engine.poll(Instant::now());
    let check = |change: &dyn Fn(&mut InventoryObject), expected: bool| {
        let mut inventory = to_write(&engine);
        change(&mut inventory);
        assert_eq!(is_current(engine.view(), SourceId::new(0), Some(&inventory)), expected, "{inventory:?}");
    };
    check(&|_| (), true);
    check(&|inventory| inventory.kinds.clear(), false);
    check(&|inventory| inventory.namespaces.retain(|name| name != "shop"), false);
    check(&|inventory| inventory.namespaces.retain(|name| name != "depot"), true);
}

#[test]
fn an_inventory_is_not_current_that_lacks_what_came_of_an_order() {
    use crate::engine::{Order, OrderReach, OrderVerb};
    let (mut engine, other) = having_one_too_many();
    engine.poll(Instant::now());
    let before = to_write(&engine);
    assert!(is_current(engine.view(), SourceId::new(0), Some(&before)));
    let verb = OrderVerb::Confirm(std::sync::Arc::new([Uid("gone".into())].into()));
    let order = Order { token: "1-a".into(), verb, object: other, by: "ann".into() };
    engine.handle_now(Input::Ordered { source: SourceId::new(0), orders: vec![order] });
    engine.poll_orders(OrderReach::Confirmations);
    assert!(!is_current(engine.view(), SourceId::new(0), Some(&before)));
    let tokens = to_write(&engine).acknowledgements().into_iter().map(|one| one.token.to_string());
    assert_eq!(tokens.collect::<Vec<_>>(), ["1-a"]);
}

#[test]
fn a_kind_that_cannot_be_listed_is_recorded_with_its_first_time_as_long_as_it_keeps_a_deletion() {
    use crate::engine::KindState;
    use crate::object::ErrorClass;
    let (mut engine, other) = having_one_too_many();
    let (first, secrets) = (SourceId::new(0), GroupKind::parse("Secret"));
    let inventory = engine.view().source(first).inventory.clone().unwrap();
    let kinds = [GroupKind::parse("ConfigMap"), secrets.clone()].into();
    set_inventory(&mut engine, Inventory { kinds, ..inventory });
    let state = KindState::Unobservable("it is denied".into(), ErrorClass::Forbidden);
    engine.handle_now(Input::InformerState { listing: (&secrets).into(), state });
    engine.poll(Instant::now());
    let why = engine.view().unlisted_reason(first).unwrap();
    let recording = |text: &str| InventoryObject {
        data: [(PRUNE_CLOSED_KEY.to_owned(), text.to_owned())].into(),
        ..InventoryObject::default()
    };
    let text = to_write(&engine).data[PRUNE_CLOSED_KEY].clone();
    assert!(text.starts_with("since 20") && text.ends_with(&format!(" UTC: {why}")), "{text}");
    let earlier = format!("since 1999-01-01 00:00:00 UTC: {why}");
    assert_eq!(unlisted_text(engine.view(), first, Some(&recording(&earlier))), Some(earlier));
    let another = recording("since 1999-01-01 00:00:00 UTC: the server is away");
    assert_ne!(
        unlisted_text(engine.view(), first, Some(&another)),
        another.unlisted_reason().map(str::to_owned)
    );
    engine.observe_absence(&other);
    engine.poll(Instant::now());
    assert_eq!(unlisted_text(engine.view(), first, None), None, "nothing is to go");
}

#[test]
fn one_kind_or_one_namespace_that_nobody_looks_for_keeps_the_location() {
    let (here, both) = ("/srv/new", "/srv/old and /srv/new");
    let check = |recorded: (&[&str], &[&str]), seen: (Option<&[&str]>, Option<&str>), expected: &str| {
        let inventory = InventoryObject {
            kinds: recorded.0.iter().map(|kind| GroupKind::parse(kind)).collect(),
            namespaces: recorded.1.iter().map(|name| (*name).to_owned()).collect(),
            annotations: [(annotations::SOURCE.to_owned(), "/srv/old".to_owned())].into(),
            ..InventoryObject::default()
        };
        let mut engine = watching(seen.0, seen.1);
        set_inventory(&mut engine, read(Some(&inventory), here, &HashCiphers::default()));
        let mode = InventoryWriteMode::Exact;
        let written =
            wanted_inventory(engine.view(), SourceId::new(0), here, Some(&inventory), mode).unwrap();
        assert_eq!(written.annotations[annotations::SOURCE], expected, "{recorded:?}");
    };
    check((&["Node"], &["one"]), (Some(&["one"]), None), here);
    check((&["Node"], &["one", "two"]), (Some(&["one"]), None), both);
    check((&["ConfigMap"], &[]), (None, Some("ConfigMap")), here);
    check((&["ConfigMap", "Secret"], &[]), (None, Some("ConfigMap")), both);
}

#[test]
fn a_location_that_an_inventory_names_already_is_not_added_to_it() {
    let known = InventoryObject {
        annotations: [(annotations::SOURCE.to_owned(), "/srv/old and /srv/new".to_owned())].into(),
        ..InventoryObject::default()
    };
    let (mut engine, _) = having_one_too_many();
    set_inventory(&mut engine, read(Some(&known), "/srv/new", &HashCiphers::default()));
    for mode in [InventoryWriteMode::Grow, InventoryWriteMode::Exact] {
        let wanted =
            wanted_inventory(engine.view(), SourceId::new(0), "/srv/new", Some(&known), mode).unwrap();
        assert_eq!(wanted.annotations[annotations::SOURCE], "/srv/old and /srv/new", "{mode:?}");
    }
}
