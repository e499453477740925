//! Tests of rejections: which failure makes one, and how long it lasts.

use super::harness::Harness;
use super::world::{FIRST, SET, World, WorldObject, config, desired, reading, workload};
use crate::engine::rollout::rollback::rejection::bound_cause;
use crate::engine::*;
use crate::object::{ContentHash, ObjectId, Revision};

fn web(content: u32) -> SharedDesiredObject {
    desired(&workload("web"), content, "web")
}

/// Returns the rejection of a revision that asked for this content of the workload.
fn rejected(content: Option<ContentHash>) -> Rejection {
    let good = RollbackTarget::Content(ContentRef { hash: web(1).hash, revision: Revision::new("r1") });
    let member = UnitMember { content, rollback_target: good, restarted: None };
    let unit = ReleaseUnit {
        inventory_id: SET.into(),
        revision: Revision::new("r2"),
        members: [(workload("web"), member)].into(),
    };
    Rejection { unit, action: RejectionAction::RollBack, cause: "it failed".into() }
}

#[test]
fn a_rejection_lasts_as_long_as_the_newest_revision_asks_for_what_was_rejected() {
    let is_over = |rejected: &Rejection, newest: Option<SourceReading>, lifecycle| {
        let mut harness = Harness::new(3);
        harness.engine.sources[FIRST].declared.lifecycle = lifecycle;
        if let Some(newest) = newest {
            harness.engine.set_reading(FIRST, newest);
        }
        harness.engine.is_superseded(FIRST, rejected)
    };
    let newest = |content: u32| Some(reading("r3", &[("web", Some(web(content)))]));
    let without = || reading("r3", &[("other", Some(desired(&config("other"), 1, "other")))]);
    let active = SourceLifecycle::Active;
    let changed = rejected(Some(web(2).hash));
    assert!(!is_over(&changed, None, active), "nothing was read yet");
    assert!(!is_over(&changed, newest(2), active));
    assert!(is_over(&changed, newest(3), active));
    assert!(is_over(&changed, Some(without()), active), "it is not asked for any more");
    let unread = SourceReading { incomplete_reason: Some("web cannot be read".into()), ..without() };
    assert!(!is_over(&changed, Some(unread), active), "it may be asked for still");
    // A rejected removal.
    let removed = rejected(None);
    assert!(!is_over(&removed, Some(without()), active));
    assert!(is_over(&removed, newest(1), active));
    // With its source all goes.
    assert!(is_over(&removed, Some(without()), SourceLifecycle::Deleting));
    // A content that nobody can read is taken for the one that is asked for.
    let unreadable = rejected(Some(ContentHash::UNREADABLE));
    assert!(!is_over(&unreadable, newest(3), active));
}

// The workload runs on with its earlier content, which the data beside it belong to. Another source
// that takes it over reads what was rejected.
#[test]
fn a_rejection_lasts_until_an_object_that_was_dropped_is_gone_or_stays_for_good() {
    let check = |prune: PrunePolicy, timing: PruneTiming, owner: &str, expected: bool| {
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &[("web", Some(web(1)))]));
        harness.settle();
        harness.engine.sources[FIRST].declared.prune = prune;
        let mut live = World::live(&workload("web"), &harness.world.things[&workload("web")]);
        live.rv = ResourceVersion(live.rv.0 + 1);
        (live.prune_timing, live.owner) = (timing, ObjectOwner::Ours(owner.into()));
        harness.engine.observe_object(&workload("web"), live);
        harness.engine.set_reading(FIRST, reading("r3", &[("web", None)]));
        let rejected = rejected(Some(web(2).hash));
        assert_eq!(harness.engine.is_superseded(FIRST, &rejected), expected, "{prune:?} {timing:?} {owner}");
        harness.engine.observe_absence(&workload("web"));
        harness.engine.record_lookup(&workload("web"), DirectView::Absent);
        assert!(harness.engine.is_superseded(FIRST, &rejected), "it is gone");
    };
    check(PrunePolicy::On, PruneTiming::AfterUnit, SET, false);
    check(PrunePolicy::On, PruneTiming::OnConfirmation, SET, false);
    check(PrunePolicy::On, PruneTiming::Never, SET, true);
    check(PrunePolicy::Off, PruneTiming::AfterUnit, SET, true);
    check(PrunePolicy::On, PruneTiming::AfterUnit, "applyset-another-v1", true);
}

// Were its earlier content still wanted, it would never be pruned, and the rejection never end.
#[test]
fn an_object_that_the_newest_revision_drops_goes_back_to_nothing() {
    let (a, web_id) = (config("a"), workload("web"));
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("web", Some(web(1))), ("a", Some(desired(&a, 1, "a")))]));
    harness.settle();
    let mut both = rejected(Some(web(2).hash));
    let target =
        RollbackTarget::Content(ContentRef { hash: desired(&a, 1, "a").hash, revision: Revision::new("r1") });
    let member =
        UnitMember { content: Some(desired(&a, 2, "a").hash), rollback_target: target, restarted: None };
    both.unit.members.insert(a.clone(), member);
    let rejected = |harness: &Harness| {
        [&web_id, &a].map(|id| harness.engine.entry(id).is_some_and(|entry| entry.rejection.is_some()))
    };
    let newest = [("web", Some(web(2))), ("a", Some(desired(&a, 2, "a")))];
    harness.engine.set_reading(FIRST, reading("r2", &newest));
    let inventory = harness.engine.source(FIRST).inventory.clone().unwrap();
    harness.engine.set_inventory(FIRST, Inventory { rejections: vec![both], ..inventory });
    assert_eq!(rejected(&harness), [true, true]);
    harness.engine.set_reading(FIRST, reading("r3", &[("web", None)]));
    assert_eq!(rejected(&harness), [false, true]);
    assert!(harness.engine.objects.unwanted_objects().contains(&web_id));
}

// Something newer replaced the failed content meanwhile, and has a claim of its own.
#[test]
fn the_failure_of_a_content_that_is_no_longer_shown_rejects_nothing() {
    for (shown, expected) in [(2, 1), (3, 0)] {
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &[("web", Some(web(1)))]));
        harness.settle();
        harness.read(reading("r2", &[("web", Some(web(2)))]));
        while !matches!(harness.step(&workload("web")), Some(Action::Apply(_))) {}
        harness.deliver(usize::MAX);
        let mut thing = harness.world.things[&workload("web")].clone();
        thing = WorldObject { rv: thing.rv + 1, ..thing };
        thing.release = Some(ContentRef { hash: web(shown).hash, revision: Revision::new("r9") });
        harness.engine.observe_object(&workload("web"), World::live(&workload("web"), &thing));
        harness.engine.propose_rejection(&workload("web"), &"it crashes".into());
        assert_eq!(harness.engine.sources[FIRST].pending_rejections.len(), expected, "{shown}");
    }
}

#[test]
fn a_rollback_fails_only_where_its_target_is_shown() {
    let check = |shown: u32, expected: &[&str]| {
        let mut harness = Harness::new(3);
        harness.read(reading("r2", &[("web", Some(web(2)))]));
        let thing = WorldObject::settled(web(shown).hash, "r1", 1);
        harness.engine.observe_object(&workload("web"), World::live(&workload("web"), &thing));
        let inventory = harness.engine.source(FIRST).inventory.clone().unwrap();
        let rejections = vec![rejected(Some(web(2).hash))];
        harness.engine.set_inventory(FIRST, Inventory { rejections, ..inventory });
        harness.engine.propose_rejection(&workload("web"), &"it crashes".into());
        let pending = harness.engine.sources[FIRST].pending_rejections.iter();
        let causes: Vec<String> = pending.map(|rejection| rejection.cause.to_string()).collect();
        assert_eq!(causes, expected, "{shown}");
    };
    check(1, &["it failed; going back failed too: Deployment shop/web: it crashes"]);
    // The failed content is still there, or some other one.
    check(2, &[]);
    check(3, &[]);
}

// Another unit may be in quarantine, and a newer revision may have replaced what was rejected.
#[test]
fn a_failure_rejects_its_own_unit_whatever_other_contents_are_rejected() {
    let of = |content: Option<ContentHash>, name: &str| {
        let mut one = rejected(content);
        let member = one.unit.members.pop_first().unwrap().1;
        one.unit.members = [(workload(name), member)].into();
        one
    };
    let check = |recorded: &Rejection| {
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &[("web", Some(web(1)))]));
        harness.settle();
        harness.read(reading("r2", &[("web", Some(web(2)))]));
        while !matches!(harness.step(&workload("web")), Some(Action::Apply(_))) {}
        harness.deliver(usize::MAX);
        let inventory = harness.engine.source(FIRST).inventory.clone().unwrap();
        let rejections = vec![recorded.clone()];
        harness.engine.set_inventory(FIRST, Inventory { rejections, ..inventory });
        // One about the same objects gives way.
        let pending = ["api", "web"].map(|name| of(Some(web(2).hash), name));
        harness.engine.sources[FIRST].pending_rejections.extend(pending);
        harness.engine.propose_rejection(&workload("web"), &"it crashes".into());
        let pending = &harness.engine.sources[FIRST].pending_rejections;
        let units: Vec<&ObjectId> = pending.iter().flat_map(|one| one.unit.members.keys()).collect();
        assert_eq!(units, [&workload("api"), &workload("web")], "{recorded:?}");
        assert!(pending[1].cause.contains("it crashes"), "{recorded:?}: {pending:?}");
    };
    // A removal that is still asked for.
    check(&of(None, "other"));
    check(&of(Some(web(9).hash), "web"));
}

// The same content may have another hash in the manifests of another source.
#[test]
fn a_rollback_target_is_shown_by_its_recorded_hash_and_by_that_of_what_was_read() {
    let release = || ContentRef { hash: web(1).hash, revision: Revision::new("r1") };
    let check = |shown: u32, replacement: ReplacementContent, expected: bool| {
        let mut harness = Harness::new(3);
        harness.read(reading("r2", &[("web", Some(web(2)))]));
        let thing = WorldObject::settled(web(shown).hash, "r1", 1);
        harness.engine.observe_object(&workload("web"), World::live(&workload("web"), &thing));
        let rejection = ObjectRejection { replacement, cause: "it failed".into(), is_newest_content: false };
        let entry = harness.engine.objects.entries.get_mut(&workload("web")).unwrap();
        entry.rejection = Some(Box::new(rejection.clone()));
        let unit = rejected(Some(web(2).hash)).unit;
        let found =
            harness.engine.is_showing_rollback_target(&workload("web"), &unit.members[&workload("web")]);
        assert_eq!(found, expected, "{shown} {rejection:?}");
    };
    check(1, ReplacementContent::Unread(release()), true);
    check(1, ReplacementContent::Read(web(3), release()), true);
    check(3, ReplacementContent::Read(web(3), release()), true);
    check(3, ReplacementContent::Unread(release()), false);
    check(3, ReplacementContent::Read(web(1), release()), false);
    check(2, ReplacementContent::Read(web(3), release()), false);
}

#[test]
fn what_was_read_for_a_rejection_is_kept_until_the_rejection_is_another_one() {
    let release = ContentRef { hash: web(1).hash, revision: Revision::new("r1") };
    let mut harness = Harness::new(3);
    harness.read(reading("r2", &[("web", Some(web(2)))]));
    let inventory = harness.engine.source(FIRST).inventory.clone().unwrap();
    let with = |rejections: Vec<Rejection>| Inventory { rejections, ..inventory.clone() };
    let replacement = |harness: &Harness| {
        let rejection = harness.engine.entry(&workload("web")).and_then(|entry| entry.rejection.as_deref());
        rejection.map(|rejection| rejection.replacement.clone())
    };
    let first = rejected(Some(web(2).hash));
    harness.engine.set_inventory(FIRST, with(vec![first.clone()]));
    let unread = Some(ReplacementContent::Unread(release.clone()));
    assert_eq!(replacement(&harness), unread);
    harness.engine.record_rollback_content(&workload("web"), &release, Some(&web(1)));
    let read = ReplacementContent::Read(web(1), release);
    let awaited = Some(ReplacementContent::AwaitingUnit(Box::new(read)));
    assert_eq!(replacement(&harness), awaited);
    harness.engine.apply_rejections(FIRST);
    assert_eq!(replacement(&harness), awaited, "the inventory says the same");
    harness.engine.set_inventory(FIRST, with(vec![Rejection { cause: "it crashed".into(), ..first }]));
    assert_eq!(replacement(&harness), unread);
    harness.engine.set_inventory(FIRST, with(vec![]));
    assert_eq!(replacement(&harness), None);
}

// A dry run reads the newest revision alone.
#[test]
fn a_content_that_a_dry_run_does_not_read_is_not_called_lost() {
    let release = ContentRef { hash: web(1).hash, revision: Revision::new("r1") };
    let rejection_of = |is_dry_run: bool, shown: u32| {
        let mut harness = Harness::new(3);
        if is_dry_run {
            harness.engine = harness.fresh(3).assume_prerequisites();
        }
        harness.read(reading("r2", &[("web", Some(web(2)))]));
        let thing = WorldObject::settled(web(shown).hash, "r1", 1);
        harness.engine.observe_object(&workload("web"), World::live(&workload("web"), &thing));
        let inventory = harness.engine.source(FIRST).inventory.clone().unwrap();
        let rejections = vec![rejected(Some(web(2).hash))];
        harness.engine.set_inventory(FIRST, Inventory { rejections, ..inventory });
        harness.engine.record_rollback_content(&workload("web"), &release, None);
        let entry = harness.engine.entry(&workload("web")).unwrap();
        entry.rejection.as_deref().unwrap().clone()
    };
    let check = |is_dry_run: bool, shown: u32, replacement: ReplacementContent, cause: &str| {
        let expected = ObjectRejection { replacement, cause: cause.into(), is_newest_content: false };
        assert_eq!(rejection_of(is_dry_run, shown), expected, "{is_dry_run} {shown}");
    };
    let quarantined = || ReplacementContent::Quarantined;
    let back = "it failed; it is back at revision r1, which a dry run does not read";
    check(true, 1, quarantined(), back);
    let returning = "it failed; it goes back to revision r1, which a dry run does not read";
    check(true, 2, quarantined(), returning);
    let lost = ReplacementContent::Unreadable(release.clone());
    check(false, 2, ReplacementContent::AwaitingUnit(Box::new(lost)), "it failed");
}

#[test]
fn a_quarantine_takes_the_place_of_what_is_to_be_recorded_about_the_same_objects_alone() {
    let of = |name: &str| {
        let mut one = rejected(Some(web(2).hash));
        let member = one.unit.members.pop_first().unwrap().1;
        one.unit.members = [(workload(name), member)].into();
        one
    };
    let mut harness = Harness::new(3);
    for name in ["web", "api"] {
        harness.engine.sources[FIRST].pending_rejections.push(of(name));
    }
    let obstacle = RollbackObstacle::UnknownContent(workload("web"));
    harness.engine.quarantine_failed_unit(FIRST, of("web"), &obstacle);
    let cause = format!("{}; {obstacle}", of("web").cause).into();
    let quarantined = Rejection { action: RejectionAction::Quarantine, cause, ..of("web") };
    assert_eq!(harness.engine.sources[FIRST].pending_rejections, [of("api"), quarantined]);
}

#[test]
fn a_cause_is_kept_up_to_its_bound() {
    let x = |count: usize| "x".repeat(count);
    let check = |cause: String, expected: &str| assert_eq!(*bound_cause(cause), *expected);
    check(x(2000), &x(2000));
    check(x(2001), &format!("{}…", x(2000)));
    // Never a part of a character.
    check(format!("{}\u{e9}", x(1999)), &format!("{}…", x(1999)));
}

#[test]
fn each_replacement_has_its_reason_and_keeps_the_newest_content_back_or_not() {
    let release = ContentRef { hash: web(1).hash, revision: Revision::new("r1") };
    let live =
        |content: u32| World::live(&workload("web"), &WorldObject::settled(web(content).hash, "r1", 1));
    let check = |replacement: ReplacementContent, blocker: Option<Reason>, reason: [Option<Reason>; 2]| {
        for (is_newest_content, reason) in [false, true].into_iter().zip(reason) {
            let rejection = ObjectRejection {
                replacement: replacement.clone(),
                cause: "it failed".into(),
                is_newest_content,
            };
            assert_eq!(rejection.release_blocker(Some(&live(1))), blocker, "{replacement:?}");
            assert_eq!(rejection.reason(Some(&live(1))), reason, "{replacement:?} {is_newest_content}");
        }
    };
    let rejected = |outcome: RejectionOutcome| {
        Some(Reason::Rejected(RejectedContent { cause: "it failed".into(), outcome }))
    };
    let reading = |revision: &str| Some(Reason::ReadingRevision(revision.into()));
    let later = |replacement: ReplacementContent| ReplacementContent::AwaitingUnit(Box::new(replacement));
    let same = |reason: Option<Reason>| (reason.clone(), [reason.clone(), reason]);
    let (blocker, reasons) = same(rejected(RejectionOutcome::Quarantined));
    check(ReplacementContent::Quarantined, blocker, reasons);
    let (blocker, reasons) = same(None);
    check(ReplacementContent::Delete, blocker, reasons);
    let (blocker, reasons) = same(reading("r1"));
    check(ReplacementContent::Unread(release.clone()), blocker, reasons);
    let (blocker, reasons) = same(reading("r1"));
    check(later(ReplacementContent::Unreadable(release.clone())), blocker, reasons);
    let (blocker, reasons) = same(reading(""));
    check(later(ReplacementContent::Delete), blocker, reasons);
    let (blocker, reasons) = same(rejected(RejectionOutcome::Unreadable("r1".into())));
    check(ReplacementContent::Unreadable(release.clone()), blocker, reasons);
    // It is gone, or shows another content.
    let replacement = ReplacementContent::Unreadable(release.clone());
    let elsewhere = ObjectRejection { replacement, cause: "it failed".into(), is_newest_content: false };
    for shown in [None, Some(live(2))] {
        assert_eq!(elsewhere.reason(shown.as_ref()), rejected(RejectionOutcome::Quarantined));
    }
    let back = [RejectionOutcome::RolledBack("r1".into()), RejectionOutcome::Unaffected("r1".into())];
    check(ReplacementContent::Read(web(1), release), None, back.map(rejected));
}

#[test]
fn only_what_is_being_read_is_awaited() {
    let release = || ContentRef { hash: web(1).hash, revision: Revision::new("r1") };
    let later = |replacement: ReplacementContent| ReplacementContent::AwaitingUnit(Box::new(replacement));
    for (replacement, expected) in [
        (ReplacementContent::Quarantined, false),
        (ReplacementContent::Delete, false),
        (ReplacementContent::Unread(release()), true),
        (ReplacementContent::Read(web(1), release()), false),
        (ReplacementContent::Unreadable(release()), false),
        (later(ReplacementContent::Delete), true),
    ] {
        assert_eq!(replacement.is_awaited(), expected, "{replacement:?}");
    }
}

#[test]
fn a_failed_rollout_goes_back_where_its_content_is_shown_and_an_earlier_one_is_known() {
    let good = || RollbackTarget::Content(ContentRef { hash: web(1).hash, revision: Revision::new("r1") });
    let check =
        |shown: u32, unit: Option<RollbackTarget>, rejected: Option<Rejection>, expected: [bool; 2]| {
            let due = [OnFailure::Rollback, OnFailure::Quarantine].map(|on_failure| {
                let mut harness = Harness::new(3);
                harness.engine = harness.fresh_with(Budget { on_failure, ..super::world::budget(3) });
                harness.read(reading("r2", &[("web", Some(web(2)))]));
                let thing = WorldObject::settled(web(shown).hash, "r1", 1);
                harness.engine.observe_object(&workload("web"), World::live(&workload("web"), &thing));
                let of_target = |rollback_target: RollbackTarget| {
                    let mut unit = self::rejected(Some(web(2).hash)).unit;
                    let mut member = unit.members.pop_first().unwrap().1;
                    member.rollback_target = rollback_target;
                    unit.members = [(workload("web"), member)].into();
                    unit
                };
                let units = unit.clone().map(of_target).into_iter().collect();
                harness.engine.set_ledger(RolloutLedger { units, ..RolloutLedger::default() });
                let known = harness.engine.source(FIRST).inventory.clone().unwrap();
                let rejections = rejected.clone().into_iter().collect();
                harness.engine.set_inventory(FIRST, Inventory { rejections, ..known });
                harness.engine.is_rollback_due(&workload("web"))
            });
            assert_eq!(due, expected, "{shown} {unit:?} {rejected:?}");
        };
    check(2, Some(good()), None, [true, false]);
    check(2, Some(RollbackTarget::Unknown), None, [false, false]);
    check(2, Some(RollbackTarget::Absent), None, [false, false]);
    // Something newer is there already.
    check(1, Some(good()), None, [true, true]);
    check(1, Some(RollbackTarget::Unknown), None, [true, true]);
    // Nobody knows what it was released with.
    check(2, None, None, [false, false]);
    // Its recorded failure counts, and not what would follow one now.
    let recorded = |action: RejectionAction| Some(Rejection { action, ..self::rejected(Some(web(2).hash)) });
    check(2, Some(good()), recorded(RejectionAction::RollBack), [true, true]);
    check(2, Some(good()), recorded(RejectionAction::Quarantine), [false, false]);
    check(1, Some(good()), recorded(RejectionAction::RollBack), [false, false]);
}
