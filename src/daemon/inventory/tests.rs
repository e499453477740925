use super::*;

#[test]
fn a_place_is_found_among_others_as_a_whole() {
    let check = |location: &str, made_from: &str, expected: bool| {
        assert_eq!(is_among(location, made_from), expected, "{location} among {made_from}");
    };
    check("/srv/a", "/srv/a", true);
    check("/srv/a", "/srv/a and /srv/b", true);
    check("/srv/b", "/srv/a and /srv/b", true);
    check("/srv/b", "/srv/a and /srv/b and /srv/c", true);
    check("/srv", "/srv/a and /srv/b", false);
    check("/srv/a", "/srv/ab and /srv/b", false);
    check("b", "a/b and c", false);
    // A folder of an odd name.
    check("this and that", "/srv/a and this and that", true);
    check("/srv/a", "this and that", false);
}

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
    let inventory = InventoryObject {
        data: BTreeMap::from([(ACKNOWLEDGED_KEY.to_owned(), text)]),
        ..InventoryObject::default()
    };
    assert!(is_overlong(Some(&inventory)));
    let all = acknowledgements(&inventory);
    let text = Acknowledgement::text(&all);
    assert_eq!(all.len(), 4);
    assert!(text.len() < 4 * 600, "{}", text.len());
    let many = Acknowledgement::text(&vec![all[0].clone(); 5000]);
    assert!(Acknowledgement::text(&Acknowledgement::parse_all(&many)).len() < ACKNOWLEDGED_MOST);
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
    let line = pending(0).to_string().len() + 1;
    check(3, PENDING_BYTES, 3);
    check(5000, PENDING_BYTES, PENDING_MOST);
    check(5000, line * 7 + line / 2, 7);
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
        let data = [(PENDING_PRUNES_KEY.to_owned(), format!("{pending}\n{pending}\n"))].into();
        let inventory = InventoryObject { data, ..InventoryObject::default() };
        assert_eq!(pending_prunes(&inventory), [pending.clone(), pending], "{name:?}");
    }
}

/// Returns a source that has nothing, wants nothing, and looks into these namespaces for these
/// kinds.
fn watching(namespaces: Option<&[&str]>, kinds: Option<&str>) -> Engine {
    use crate::engine::{AdoptPolicy, AllowList, BlastRadius, Budget, PrunePolicy, SourceState};
    let mut engine = Engine::new(Budget::default());
    let namespaces: Option<BTreeSet<_>> =
        namespaces.map(|names| names.iter().map(|name| (*name).into()).collect());
    let radius = BlastRadius { count: 10, percent: 10 };
    let mut source =
        SourceState::new("shop", "applyset-shop", AdoptPolicy::IfUnowned, PrunePolicy::On, radius);
    source.watcher = engine.add_watcher(namespaces.clone());
    let kinds = kinds.map(|kind| [kind.parse().unwrap()].into());
    source.allow = AllowList { namespaces, kinds, ..AllowList::default() }.into();
    engine.add_source(source);
    engine.set_scopes(crate::manifest::KindScopes::builtin());
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
        engine.set_inventory(SourceId::new(0), read(Some(&inventory), here, &HashSeals::default()));
        let tidied =
            wanted_inventory(&engine, SourceId::new(0), here, Some(&inventory), InventoryWriteMode::Exact)
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
    let text =
        parse_finished(&format!("Job.batch one/migrate {0}\nJob.batch two/migrate {0}\n", "0".repeat(32)));
    assert_eq!(text.len(), 2);
    let mut engine = watching(Some(&["one"]), None);
    let revision = Some(Revision::new("r1"));
    engine.read(
        SourceId::new(0),
        crate::engine::SourceReading { revision, ..crate::engine::SourceReading::default() },
    );
    assert!(engine.source(SourceId::new(0)).is_complete());
    let kept: Vec<ObjectId> = ended_jobs(&engine, SourceId::new(0), text).into_keys().collect();
    assert_eq!(kept, [ObjectId::new(&GroupKind::new("batch", "Job"), Some("two"), "migrate")]);
}
