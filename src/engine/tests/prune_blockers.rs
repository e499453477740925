//! The facts about a whole source that keep all that it no longer wants, each of them alone.

use std::sync::Arc;

use super::safety::{engine, judged};
use super::world::{FIRST, SET, World, WorldObject, config, desired, id, reading};
use crate::engine::*;
use crate::object::{GroupKind, ObjectId};

fn maps() -> GroupKind {
    GroupKind::new("", "ConfigMap")
}

/// Shows an object of the source, at the content of r1.
fn show(engine: &mut Engine, id: &ObjectId, uid: u64) {
    let thing = WorldObject::settled(desired(id, 1, id.name()).hash, "r1", uid);
    engine.observe_object(id, World::live(id, &thing));
}

/// Returns an engine whose source had a and b, and wants b alone.
fn dropped() -> (Engine, ObjectId) {
    let (a, b) = (config("a"), config("b"));
    let mut engine = engine(&[SET], &[maps()]);
    engine.set_reading(
        FIRST,
        reading("r1", &[("a", Some(desired(&a, 1, "a"))), ("b", Some(desired(&b, 1, "b")))]),
    );
    show(&mut engine, &a, 1);
    show(&mut engine, &b, 2);
    engine.set_reading(FIRST, reading("r2", &[("a", None)]));
    assert_eq!(judged(&mut engine, FIRST, &a), "delete");
    (engine, a)
}

fn inventory(engine: &Engine) -> Inventory {
    engine.source(FIRST).inventory.clone().unwrap()
}

#[test]
fn while_a_kind_cannot_be_listed_nothing_goes() {
    let (mut engine, a) = dropped();
    let secrets = GroupKind::new("", "Secret");
    // The inventory names it: an object of it may use what is to go.
    let kinds = [maps(), secrets.clone()].into();
    engine.set_inventory(FIRST, Inventory { kinds, ..inventory(&engine) });
    let why = "nothing is pruned while Secret cannot be listed";
    assert_eq!(judged(&mut engine, FIRST, &a), why);
    engine.list_started(&secrets);
    assert_eq!(judged(&mut engine, FIRST, &a), why);
    engine.list_complete(&secrets);
    assert_eq!(judged(&mut engine, FIRST, &a), "delete");
    // A kind that could be listed before.
    let forbidden = KindState::Unobservable("forbidden".into(), crate::object::ErrorClass::Forbidden);
    engine.set_informer_state(&secrets, forbidden);
    assert_eq!(judged(&mut engine, FIRST, &a), why);
}

// A server that has just started lists its kinds bit by bit. Charts leave out what they ask for.
#[test]
fn an_object_that_is_no_longer_rendered_stays_until_charts_are_rendered_with_its_kind() {
    let (mut engine, a) = dropped();
    let secrets = || GroupKind::new("", "Secret");
    let mut judge = |kinds: Option<&[GroupKind]>| {
        let rendered_kinds = kinds.map(|kinds| Arc::new(kinds.iter().cloned().collect()));
        engine.set_reading(FIRST, SourceReading { rendered_kinds, ..reading("r2", &[]) });
        judged(&mut engine, FIRST, &a)
    };
    let why = "nothing is pruned until charts are rendered with ConfigMap, which the server did not list";
    assert_eq!(judge(Some(&[secrets()])), why);
    assert_eq!(judge(Some(&[maps(), secrets()])), "delete");
    assert_eq!(judge(Some(&[])), why);
    assert_eq!(judge(None), "delete");
}

#[test]
fn what_came_from_another_location_goes_only_when_it_is_confirmed() {
    let (mut engine, a) = dropped();
    let other_location = Some("/srv/old".into());
    engine.set_inventory(FIRST, Inventory { other_location, ..inventory(&engine) });
    let why = "this inventory was made from /srv/old; nothing of it is pruned until it is confirmed";
    assert_eq!(judged(&mut engine, FIRST, &a), why);
    let confirmed = [Uid("1".into())].into();
    engine.set_inventory(FIRST, Inventory { confirmed, ..inventory(&engine) });
    assert_eq!(judged(&mut engine, FIRST, &a), "delete");
}

#[test]
fn what_another_folder_of_the_repository_has_come_to_name_stays() {
    let (mut engine, a) = dropped();
    engine.sources[FIRST].declared.moved = MovedObjects::Known([(a.clone(), "other/a.yaml".into())].into());
    engine.mark_prunes_stale();
    let why = "other/a.yaml of the same repository has it now: apply that first, and it moves";
    assert_eq!(judged(&mut engine, FIRST, &a), why);
}

#[test]
fn while_a_source_cannot_be_read_nothing_goes() {
    let (mut engine, a) = dropped();
    engine.set_unreadable(FIRST, "it is away".into());
    let why = "nothing is pruned, as the source was not read completely: it is away";
    assert_eq!(judged(&mut engine, FIRST, &a), why);
    engine.set_reading(FIRST, reading("r2", &[]));
    assert_eq!(judged(&mut engine, FIRST, &a), "delete");
}

// Beside a root that does not render some may go; beside a source that cannot be read nothing may.
#[test]
fn what_a_broken_root_rules_out_stays_once_the_whole_source_cannot_be_read() {
    let (mut engine, a) = dropped();
    let words = crate::object::NameWords::default().with_text(b"web").unwrap();
    let names = crate::object::PossibleNames::Words(words.into());
    let root = crate::object::UnrenderedRoot { path: "root/kustomization.yaml".into(), names };
    let incomplete = Some("root/kustomization.yaml: it does not render".into());
    let broken =
        SourceReading { incomplete_reason: incomplete, unrendered: [root].into(), ..reading("r3", &[]) };
    engine.set_reading(FIRST, broken);
    assert_eq!(judged(&mut engine, FIRST, &a), "delete");
    engine.set_unreadable(FIRST, "it is away".into());
    let why = "nothing is pruned, as the source was not read completely: it is away";
    assert_eq!(judged(&mut engine, FIRST, &a), why);
}

#[test]
fn before_the_inventory_was_read_nothing_goes() {
    let a = config("a");
    let mut engine = engine(&[SET], &[maps()]);
    engine.sources[FIRST].inventory = None;
    engine.set_reading(FIRST, reading("r1", &[("b", Some(desired(&config("b"), 1, "b")))]));
    show(&mut engine, &a, 1);
    let why = "nothing is pruned until the inventory is read";
    assert_eq!(judged(&mut engine, FIRST, &a), why);
}

// The name of a definition need not follow from its kind.
#[test]
fn a_definition_goes_after_the_objects_of_the_kind_that_its_manifest_defines() {
    let crd = id("apiextensions.k8s.io", "CustomResourceDefinition", "", "mice.example.com");
    let mouse = id("example.com", "Mouse", "shop", "jerry");
    let mut defining = (*desired(&crd, 1, "crd")).clone();
    defining.defines = Some(Box::new(mouse.group_kind()));
    let mut engine = engine(&[SET], &[crd.group_kind(), mouse.group_kind()]);
    let files = [("crd", Some(defining.into())), ("m", Some(desired(&mouse, 1, "m")))];
    engine.set_reading(FIRST, reading("r1", &files));
    show(&mut engine, &mouse, 2);
    let thing = WorldObject::settled(desired(&crd, 1, "crd").hash, "r1", 1);
    engine.observe_object(&crd, World::live(&crd, &thing));
    engine.set_reading(FIRST, reading("r2", &[("crd", None)]));
    let confirmed = [Uid("1".into())].into();
    engine.set_inventory(FIRST, Inventory { confirmed, ..inventory(&engine) });
    assert_eq!(judged(&mut engine, FIRST, &crd), "pruned after Mouse shop/jerry, which uses it");
    engine.observe_absence(&mouse);
    assert_eq!(judged(&mut engine, FIRST, &crd), "delete");
}

// Its former references are nowhere to be had, so it may use whatever is beside it.
#[test]
fn what_is_beside_a_change_under_way_whose_former_content_is_lost_waits_for_it() {
    let [old, elsewhere, user, new] =
        [config("old"), id("", "ConfigMap", "other", "old"), id("", "Secret", "shop", "user"), config("new")];
    let kinds = [maps(), user.group_kind()];
    let mut engine = engine(&[SET], &kinds);
    let mut needing = (*desired(&user, 2, "user")).clone();
    needing.needs = [new.clone()].into();
    let files = [("user", Some(needing.into())), ("new", Some(desired(&new, 1, "new")))];
    engine.set_reading(FIRST, reading("r2", &files));
    for (uid, one) in [(1, &old), (2, &elsewhere), (3, &user), (4, &new)] {
        show(&mut engine, one, uid);
    }
    for (revision, wanted) in engine.unread_contents() {
        for (id, hash) in wanted {
            engine.record_older_content(&id, &ContentRef { hash, revision: revision.clone() }, None);
        }
    }
    let waits = judged(&mut engine, FIRST, &old);
    assert!(waits.starts_with("pruned when Secret shop/user"), "{waits}");
    assert_eq!(judged(&mut engine, FIRST, &elsewhere), "delete", "it cannot be used from there");
    let thing = WorldObject::settled(desired(&user, 2, "user").hash, "r2", 3);
    engine.observe_object(&user, LiveObject { rv: ResourceVersion(9), ..World::live(&user, &thing) });
    assert_eq!(judged(&mut engine, FIRST, &old), "delete");
}

// Nothing of it takes a slot, so no record says that they belong together.
#[test]
fn what_the_content_before_used_or_depended_on_waits_until_the_new_one_is_healthy() {
    let ways: [fn(&mut DesiredObject, &ObjectId); 2] =
        [|user, old| user.needs = [old.clone()].into(), |user, old| user.depends_on = [old.clone()].into()];
    for refer in ways {
        let [old, user] = [config("old"), id("", "Secret", "shop", "user")];
        let mut engine = engine(&[SET], &[maps(), user.group_kind()]);
        let mut needing = (*desired(&user, 1, "user")).clone();
        refer(&mut needing, &old);
        let b = config("b");
        let files = [
            ("user", Some(needing.into())),
            ("old", Some(desired(&old, 1, "old"))),
            ("b", Some(desired(&b, 1, "b"))),
        ];
        engine.set_reading(FIRST, reading("r1", &files));
        for (uid, one) in [(1, &old), (2, &user), (3, &b)] {
            show(&mut engine, one, uid);
        }
        let newer = [("user", Some(desired(&user, 2, "user"))), ("old", None)];
        engine.set_reading(FIRST, reading("r2", &newer));
        let now = std::time::Instant::now();
        let action = engine.decide(&user, now).action;
        assert!(matches!(action, Action::Apply(_)), "{action:?}");
        let thing = WorldObject { uid: 2, ..WorldObject::settled(desired(&user, 2, "user").hash, "r2", 9) };
        let health = crate::health::Health::new(crate::health::HealthStatus::InProgress, "on its way");
        let live = LiveObject { health, ..World::live(&user, &thing) };
        engine.record_result(&user, &action, ActionResult::Applied(WriteResult { live: live.clone() }), now);
        engine.observe_object(&user, live);
        let waits = judged(&mut engine, FIRST, &old);
        assert!(waits.starts_with("pruned when Secret shop/user"), "{waits}");
        engine.observe_object(&user, LiveObject { rv: ResourceVersion(10), ..World::live(&user, &thing) });
        assert_eq!(judged(&mut engine, FIRST, &old), "delete");
    }
}

// The deletion is decided, and has not been sent.
#[test]
fn a_fact_that_comes_after_the_decision_to_delete_an_object_keeps_it() {
    let kept = "no longer wanted, and kept, as an annotation of it asks";
    let (mut engine, a) = dropped();
    let shown = engine.informer_object(&a).cloned().unwrap();
    let rv = ResourceVersion(shown.rv.0 + 1);
    engine.observe_object(&a, LiveObject { prune_timing: PruneTiming::Never, rv, ..shown });
    assert_eq!(judged(&mut engine, FIRST, &a), kept);
}

// Its pods are started with the data, also where they may be missing.
#[test]
fn data_that_a_workload_restarts_for_go_after_it() {
    let (env, web) = (config("env"), id("apps", "Deployment", "shop", "web"));
    let mut user = (*desired(&web, 1, "web")).clone();
    user.config = Some(Box::new(ConfigRole::Uses([env.clone()].into())));
    let kept = config("kept");
    let files = [
        ("web", Some(user.into())),
        ("env", Some(desired(&env, 1, "env"))),
        ("kept", Some(desired(&kept, 1, "kept"))),
    ];
    let mut engine = engine(&[SET], &[maps(), web.group_kind()]);
    engine.set_reading(FIRST, reading("r1", &files));
    for (uid, one) in [(1, &env), (2, &web), (3, &kept)] {
        show(&mut engine, one, uid);
    }
    engine.set_reading(FIRST, reading("r2", &[("web", None), ("env", None)]));
    assert_eq!(judged(&mut engine, FIRST, &env), "pruned after Deployment shop/web, which uses it");
    assert_eq!(judged(&mut engine, FIRST, &web), "delete");
    engine.observe_absence(&web);
    assert_eq!(judged(&mut engine, FIRST, &env), "delete");
}

// Others may have written it, and they may decide about that object alone.
#[test]
fn what_stands_on_one_object_takes_no_guard_off_the_others_of_its_kind() {
    let [a, b, c] = ["a", "b", "c"].map(config);
    let check = |requested: PruneTiming, alter: &dyn Fn(&mut LiveObject), expected: [&str; 2]| {
        let mut engine = engine(&[SET], &[maps()]);
        let mut wanted = (*desired(&b, 1, "b")).clone();
        wanted.traits.prune_timing = requested;
        let files = [
            ("a", Some(desired(&a, 1, "a"))),
            ("b", Some(Arc::new(wanted))),
            ("c", Some(desired(&c, 1, "c"))),
        ];
        engine.set_reading(FIRST, reading("r1", &files));
        for (uid, one) in [(1, &a), (2, &b), (3, &c)] {
            show(&mut engine, one, uid);
        }
        engine.set_reading(FIRST, reading("r2", &files.map(|(file, _)| (file, None))));
        let mut live = engine.informer_object(&b).cloned().unwrap();
        alter(&mut live);
        live.rv = ResourceVersion(live.rv.0 + 1);
        engine.observe_object(&b, live);
        assert_eq!([&a, &b].map(|id| judged(&mut engine, FIRST, id)), expected, "{requested:?}");
    };
    let would_go = "all 3 objects of kind ConfigMap would be pruned";
    let annotated = "no longer wanted, and kept, as an annotation of it asks";
    let unproven = "no longer wanted; kept, as its annotation rhumb.dev/release has no valid seal, so rhumb \
                    cannot tell that it made it: delete it by kubectl if nobody needs it";
    let break_seal = |live: &mut LiveObject| {
        let release = live.release.take().unwrap();
        live.unproven_release = Some(Box::new(ReleaseAnnotation { release, seal: None }));
    };
    let keep = |live: &mut LiveObject| live.prune_timing = PruneTiming::Never;
    check(PruneTiming::AfterUnit, &|_| (), [would_go, would_go]);
    check(PruneTiming::AfterUnit, &keep, [would_go, annotated]);
    check(PruneTiming::AfterUnit, &break_seal, [would_go, unproven]);
    // The manifest is the source's own word, so not all of the kind would go.
    check(PruneTiming::Never, &|_| (), ["delete", annotated]);
    check(PruneTiming::Never, &keep, ["delete", annotated]);
}

#[test]
fn what_changes_on_an_object_counts_also_while_its_guard_is_closed() {
    let (mut engine, a) = dropped();
    engine.set_unreadable(FIRST, "it is away".into());
    let closed = "nothing is pruned, as the source was not read completely: it is away";
    let kept = "no longer wanted, and kept, as an annotation of it asks";
    assert_eq!(judged(&mut engine, FIRST, &a), closed);
    let shown = engine.informer_object(&a).cloned().unwrap();
    for (rv, prune_timing, expected) in
        [(8, PruneTiming::Never, kept), (9, PruneTiming::AfterUnit, closed), (10, PruneTiming::Never, kept)]
    {
        let live = LiveObject { prune_timing, rv: ResourceVersion(rv), ..shown.clone() };
        engine.observe_object(&a, live);
        assert_eq!(judged(&mut engine, FIRST, &a), expected, "{prune_timing:?}");
    }
    engine.observe_absence(&a);
    assert_eq!(judged(&mut engine, FIRST, &a), "wanted");
}

// Nothing that can be read connects them.
#[test]
fn what_is_recorded_as_released_together_with_a_change_under_way_waits_for_it() {
    let [old, user] = [config("old"), id("", "Secret", "shop", "user")];
    for (of, expected) in [(SET, "pruned when Secret shop/user"), ("applyset-theirs-v1", "delete")] {
        let mut engine = engine(&[SET], &[maps(), user.group_kind()]);
        let file = |id: &ObjectId, content| Some(desired(id, content, id.name()));
        let files = [("user", file(&user, 1)), ("old", file(&old, 1)), ("b", file(&config("b"), 1))];
        engine.set_reading(FIRST, reading("r1", &files));
        for (uid, one) in [(1, &old), (2, &user), (3, &config("b"))] {
            show(&mut engine, one, uid);
        }
        let member = UnitMember { content: None, rollback_target: RollbackTarget::Unknown, restarted: None };
        let unit = ReleaseUnit {
            inventory_id: of.into(),
            revision: crate::object::Revision::new("r1"),
            members: [&old, &user].map(|id| (id.clone(), member.clone())).into(),
        };
        engine.set_ledger(RolloutLedger { units: vec![unit], ..RolloutLedger::default() });
        engine.set_reading(FIRST, reading("r2", &[("user", file(&user, 2)), ("old", None)]));
        let judgement = judged(&mut engine, FIRST, &old);
        assert!(judgement.starts_with(expected), "{of}: {judgement}");
    }
}

#[test]
fn it_is_said_what_a_person_can_do_about_a_kind_that_cannot_be_listed() {
    use crate::object::ErrorClass;

    let secrets = GroupKind::new("", "Secret");
    let blind = || {
        let (mut engine, _) = dropped();
        engine.set_inventory_namespace("rhumb-system");
        let kinds = [maps(), secrets.clone()].into();
        engine.set_inventory(FIRST, Inventory { kinds, ..inventory(&engine) });
        engine
    };
    let begin = "nothing is pruned while Secret cannot be listed: ";
    let check = |fault: WatchFault, class: ErrorClass, expected: Option<&str>| {
        let mut engine = blind();
        engine.set_informer_state(&secrets, KindState::Unobservable(fault, class));
        let said = engine.unlisted_reason(FIRST).map(|why| why.to_string());
        let rest = said.as_deref().map(|said| said.strip_prefix(begin).unwrap_or(said));
        let is_so = |rest: &str| expected.is_some_and(|expected| rest.starts_with(expected));
        assert_eq!(rest.is_some_and(is_so), expected.is_some(), "{class:?}: {rest:?}");
        assert_eq!(rest.is_some(), expected.is_some(), "{class:?}: {rest:?}");
        engine.sources[FIRST].declared.prune = PrunePolicy::Off;
        assert_eq!(engine.unlisted_reason(FIRST), None, "nothing would be pruned");
    };
    check("it is denied".into(), ErrorClass::Forbidden, Some("it is denied; let the user list and watch it"));
    check(
        WatchFault::GroupUnavailable,
        ErrorClass::Transient,
        Some("the server of its API group does not answer; repair it, or delete its APIService"),
    );
    check("it is slow".into(), ErrorClass::Transient, None);
    check("it is odd".into(), ErrorClass::Invalid, Some("it is odd; `kubectl get crds,apiservices`"));
    // The server has no such kind, or has it in another version.
    for (others, expected) in [(vec![], true), (vec!["v2".to_owned()], false)] {
        let mut engine = blind();
        let gvk = crate::object::Gvk::new("", "v1", "Secret");
        engine.set_kind_availability(gvk, KindAvailability::Unserved(others.into()));
        assert_eq!(engine.is_unserved(&secrets), expected);
        assert!(!engine.is_unserved(&maps()));
        let said = engine.unlisted_reason(FIRST).map(|why| why.to_string());
        assert_eq!(said.is_some(), expected, "{said:?}");
        let command = "`kubectl -n rhumb-system annotate --overwrite configmap applyset-ours-v1 \
                       applyset.kubernetes.io/contains-group-kinds=ConfigMap`";
        assert!(said.is_none_or(|said| said.ends_with(command)));
    }
}

#[test]
fn nobody_is_asked_to_install_the_definition_of_a_kind_that_a_source_brings() {
    let widgets = GroupKind::new("example.com", "Widget");
    let name = id("apiextensions.k8s.io", "CustomResourceDefinition", "", "widgets.example.com");
    let mut definition = (*desired(&name, 1, "crd")).clone();
    definition.defines = Some(Box::new(widgets.clone()));
    let (mut engine, _) = dropped();
    assert!(!engine.has_definition(&widgets));
    engine.set_reading(FIRST, reading("r3", &[("crd", Some(Arc::new(definition)))]));
    assert!(engine.has_definition(&widgets));
    assert!(!engine.has_definition(&maps()));
    engine.set_reading(FIRST, reading("r4", &[("crd", None)]));
    assert!(!engine.has_definition(&widgets));
}

// The deletion was decided on another view of it.
#[test]
fn what_turns_out_to_be_unproven_is_not_deleted_though_that_is_decided() {
    let (mut engine, a) = dropped();
    let now = std::time::Instant::now();
    let action = engine.decide(&a, now).action;
    assert!(matches!(action, Action::Delete(..)), "{action:?}");
    let mut live = engine.informer_object(&a).cloned().unwrap();
    let release = live.release.take().unwrap();
    live.unproven_release = Some(Box::new(ReleaseAnnotation { release, seal: None }));
    live.rv = ResourceVersion(live.rv.0 + 1);
    engine.observe_object(&a, live);
    let action = engine.decide(&a, now).action;
    assert!(!matches!(action, Action::Delete(..)), "{action:?}");
}
