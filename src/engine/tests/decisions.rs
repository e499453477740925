use std::time::Duration;

use serde_json::json;

use super::harness::Harness;
use super::world::{AuditEntry, World, WorldObject, config, desired, reading, workload};
use crate::engine::facts::object_facts::RevisionCounts;
use crate::engine::*;
use crate::fields::{ValueSchema, value_digest};
use crate::object::{NameWords, PossibleNames, UnrenderedRoot};

const MINUTE: Duration = Duration::from_mins(1);

/// Returns a rig in which one object is applied.
fn settled(id: &crate::object::ObjectId) -> Harness {
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(desired(id, 1, "a")))]));
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Created(id.clone())]);
    harness.world.log.clear();
    harness
}

#[test]
fn a_second_observation_sends_nothing() {
    let mut harness = settled(&config("a"));
    harness.engine.mark_all();
    harness.settle();
    assert_eq!(harness.world.log, []);
}

#[test]
fn a_new_process_sends_nothing() {
    let mut harness = settled(&config("a"));
    harness.engine = harness.fresh(3);
    harness.read(reading("r1", &[("a", Some(desired(&config("a"), 1, "a")))]));
    harness.settle();
    assert_eq!(harness.world.log, []);
}

#[test]
fn the_same_content_in_a_newer_revision_sends_nothing() {
    let mut harness = settled(&config("a"));
    harness.read(reading("r2", &[("a", None), ("b", Some(desired(&config("a"), 1, "b")))]));
    harness.settle();
    assert_eq!(harness.world.log, []);
}

#[test]
fn drift_is_repaired_once_and_the_annotation_goes_on_naming_its_revision() {
    let a = config("a");
    let mut harness = settled(&a);
    harness.read(reading("r2", &[("other", Some(desired(&config("b"), 1, "other")))]));
    harness.settle();
    harness.world.log.clear();
    harness.world.drift(&a);
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Changed(a.clone())]);
    assert_eq!(harness.world.things[&a].release.as_ref().unwrap().revision.as_str(), "r1");
}

#[test]
fn a_deleted_object_is_made_again_and_a_stripped_label_put_back() {
    let a = config("a");
    let mut harness = settled(&a);
    harness.world.things.remove(&a);
    harness.world.announce(&a);
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Created(a.clone())]);
    harness.world.log.clear();
    let thing = harness.world.things.get_mut(&a).unwrap();
    (thing.labelled, thing.drifted) = (false, true);
    harness.world.announce(&a);
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Changed(a)]);
}

#[test]
fn other_values_behind_the_same_entry_are_looked_at_and_put_back() {
    let a = config("a");
    let mut harness = settled(&a);
    let known = harness.engine.live_object(&a).cloned().unwrap();
    let theirs = Some(value_digest(&json!({"x": "theirs"}), r#"{"f:x":{}}"#, ValueSchema::Custom));
    assert_eq!(harness.engine.decide(&a, harness.now).action, Action::Nothing);
    harness.engine.observe_object(
        &a,
        LiveObject { rv: ResourceVersion(known.rv.0 + 1), value_digest: theirs, ..known.clone() },
    );
    let Action::CompareCached(desired, variant) = harness.engine.decide(&a, harness.now).action else {
        panic!("not compared")
    };
    let verdict = |value_digest, cover| {
        let (content, overlay, config_stamp) =
            (variant.hash(&desired), variant.overlay, variant.config_stamp.map(Box::new));
        VerifiedOwnership {
            content,
            overlay,
            config_stamp,
            managed_fields: known.our_fields.clone(),
            value_digest,
            cover,
        }
    };
    // A verdict on other values says nothing about these.
    harness.engine.record_coverage(&a, verdict(None, FieldOwnership::Complete));
    assert_eq!(
        harness.engine.decide(&a, harness.now).action,
        Action::CompareCached(desired.clone(), variant)
    );
    harness.engine.record_coverage(&a, verdict(theirs, FieldOwnership::Unequal));
    assert_eq!(harness.engine.decide(&a, harness.now).action, Action::CompareLive(desired.clone(), variant));
    // The server spells them so.
    harness.engine.record_coverage(&a, verdict(theirs, FieldOwnership::Complete));
    assert_eq!(harness.engine.decide(&a, harness.now).action, Action::Nothing);
    harness.engine.record_coverage(&a, verdict(theirs, FieldOwnership::Lost(RepairImpact::InPlace)));
    let action = harness.engine.decide(&a, harness.now).action;
    assert!(matches!(&action, Action::Apply(apply) if apply.purpose == ApplyPurpose::Repair), "{action:?}");
}

#[test]
fn an_object_that_is_deleted_each_time_it_is_made_waits_with_that_reason() {
    let a = config("a");
    let mut harness = settled(&a);
    for _ in 0..50 {
        if harness.world.things.remove(&a).is_some() {
            harness.world.announce(&a);
        }
        harness.settle();
        harness.pass_time(Duration::from_millis(100));
    }
    assert_eq!(harness.world.log.len(), MAX_REPAIRS_PER_FIGHT);
    let decision = harness.engine.decide(&a, harness.now);
    assert!(matches!(decision.reason, Some(Reason::Fight(FightCause::Deletions, _))), "{decision:?}");
}

#[test]
fn a_fight_begins_with_five_repairs_and_is_answered_every_ten_seconds() {
    let a = config("a");
    let mut harness = settled(&a);
    for _ in 0..50 {
        harness.world.drift(&a);
        harness.settle();
        harness.pass_time(Duration::from_millis(100));
    }
    assert_eq!(harness.world.log.len(), MAX_REPAIRS_PER_FIGHT);
    let decision = harness.engine.decide(&a, harness.now);
    assert!(matches!(decision.reason, Some(Reason::Fight(..))), "{decision:?}");
    for answers in 1..=3 {
        harness.pass_time(FIGHT_PAUSE);
        harness.world.drift(&a);
        harness.settle();
        assert_eq!(
            harness.world.log.len(),
            MAX_REPAIRS_PER_FIGHT + answers,
            "what somebody writes stays for no longer"
        );
    }
    harness.pass_time(MINUTE);
    harness.world.drift(&a);
    harness.settle();
    assert_eq!(harness.world.log.len(), MAX_REPAIRS_PER_FIGHT + 4, "and goes on when it has calmed down");
}

#[test]
fn what_is_not_wanted_any_more_goes_only_after_a_complete_reading() {
    let mut harness = Harness::new(3);
    let files = ["a", "b", "c", "d"].map(|name| (name, Some(desired(&config(name), 1, name))));
    harness.read(reading("r1", &files));
    harness.settle();
    harness.world.log.clear();
    harness.read(SourceReading { incomplete_reason: Some("x".into()), ..reading("r2", &[("a", None)]) });
    harness.settle();
    assert_eq!(harness.world.log, []);
    // An object in doubt is still defended.
    harness.world.drift(&config("a"));
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Changed(config("a"))]);
    harness.world.log.clear();
    harness.read(reading("r3", &[]));
    harness.settle();
    assert!(
        matches!(&harness.world.log[..], [AuditEntry::Deleted(id, _)] if *id == config("a")),
        "{:?}",
        harness.world.log
    );
}

#[test]
fn beside_a_root_that_does_not_render_only_what_it_cannot_want_goes() {
    let mut harness = Harness::new(3);
    let files = ["a", "b", "c", "d"].map(|name| (name, Some(desired(&config(name), 1, name))));
    harness.read(reading("r1", &files));
    harness.settle();
    harness.world.log.clear();
    let broken = |revision: &str, words: Option<&str>, gone: &[(&str, Option<SharedDesiredObject>)]| {
        let words = words.and_then(|words| NameWords::default().with_text(words.as_bytes()));
        let names = words.map_or(PossibleNames::Any, |words| PossibleNames::Words(words.into()));
        let root = UnrenderedRoot { path: "root/kustomization.yaml".into(), names };
        SourceReading {
            incomplete_reason: Some("root/kustomization.yaml: it does not render".into()),
            unrendered: [root].into(),
            ..reading(revision, gone)
        }
    };
    let deleted = |harness: &mut Harness| {
        harness.settle();
        let log = std::mem::take(&mut harness.world.log);
        log.iter()
            .map(|entry| match entry {
                AuditEntry::Deleted(id, _) => id.name().to_owned(),
                other => format!("{other:?}"),
            })
            .collect::<Vec<_>>()
    };
    harness.read(broken("r2", None, &[("a", None)]));
    assert_eq!(deleted(&mut harness), [""; 0]);
    harness.read(broken("r3", Some("a"), &[]));
    assert_eq!(deleted(&mut harness), [""; 0]);
    // An object that may be wanted is defended, and one that may not goes.
    harness.read(broken("r4", Some("a"), &[("b", None)]));
    assert_eq!(deleted(&mut harness), ["b"]);
    harness.world.things.remove(&config("a"));
    harness.world.announce(&config("a"));
    assert_eq!(deleted(&mut harness), [format!("{:?}", AuditEntry::Created(config("a")))]);
    harness.read(broken("r5", Some("x"), &[]));
    assert_eq!(deleted(&mut harness), ["a"]);
    // A file that is not understood may hold anything.
    let facts = FileFacts { completeness: FileCompleteness::Partial, ..FileFacts::default() };
    let mut both = broken("r6", Some("x"), &[("c", None)]);
    both.files.push(("e".into(), Some(facts)));
    harness.read(both);
    assert_eq!(deleted(&mut harness), [""; 0]);
}

#[test]
fn what_a_file_held_before_it_broke_is_made_again_until_it_can_be_read() {
    let (a, b) = (config("a"), config("b"));
    let mut harness = settled(&a);
    let broken = || {
        let facts = FileFacts { completeness: FileCompleteness::Partial, ..FileFacts::default() };
        let revision = Some(crate::object::Revision::new("r2"));
        SourceReading { revision, files: vec![("a".into(), Some(facts))], ..SourceReading::default() }
    };
    // Twice, as a second broken version must not make the first forgotten.
    for _ in 0..2 {
        harness.read(broken());
        harness.settle();
        assert_eq!(harness.world.log, []);
        harness.world.things.remove(&a);
        harness.world.announce(&a);
        harness.settle();
        assert_eq!(harness.world.log, [AuditEntry::Created(a.clone())]);
        harness.world.log.clear();
    }
    // Another file may take it over; that is not the same object twice.
    harness.read(reading("r3", &[("other", Some(desired(&a, 2, "other")))]));
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Changed(a.clone())]);
    harness.world.log.clear();
    harness.read(reading("r4", &[("other", None), ("a", Some(desired(&b, 1, "a")))]));
    harness.settle();
    assert_eq!(
        harness.world.things.keys().collect::<Vec<_>>(),
        [&b],
        "what the readable file drops is pruned"
    );
}

#[test]
fn an_object_of_another_owner_is_not_touched() {
    let a = config("a");
    let mut harness = settled(&a);
    let thing = harness.world.things.get_mut(&a).unwrap();
    (thing.foreign, thing.release, thing.drifted) = (true, None, true);
    harness.world.announce(&a);
    harness.settle();
    harness.read(reading("r2", &[("a", Some(desired(&a, 2, "a")))]));
    harness.settle();
    harness.read(reading("r3", &[("a", None)]));
    harness.settle();
    assert_eq!(harness.world.log, []);
}

#[test]
fn no_more_workloads_roll_than_the_budget_allows() {
    let names = ["a", "b", "c", "d", "e"];
    let mut harness = Harness::new(2);
    let files = |content| names.map(|name| (name, Some(desired(&workload(name), content, name))));
    harness.read(reading("r1", &files(1)));
    harness.settle();
    assert_eq!(harness.world.log.len(), 5, "creation takes no slot");
    harness.read(reading("r2", &files(2)));
    for id in names.map(workload) {
        harness.step(&id);
        harness.step(&id);
    }
    assert_eq!(harness.engine.workloads_in_flight().len(), 1, "it begins slowly");
    let decision = harness.engine.decide(&workload("e"), harness.now);
    assert!(matches!(decision.reason, Some(Reason::Budget(BudgetShortage::SlowStart(1, _)))), "{decision:?}");
    harness.settle();
    assert_eq!(harness.world.log.len(), 10);
}

#[test]
fn a_refusal_holds_up_only_itself_and_its_dependents() {
    let mut harness = Harness::new(3);
    let (env, web, other) = (config("env"), workload("web"), config("other"));
    let mut needing = (*desired(&web, 1, "web")).clone();
    needing.needs = [env.clone()].into();
    harness.read(reading(
        "r1",
        &[
            ("env", Some(desired(&env, 1, "env"))),
            ("web", Some(needing.into())),
            ("other", Some(desired(&other, 1, "other"))),
        ],
    ));
    let refused = loop {
        let action = harness.engine.decide(&env, harness.now).action;
        match action {
            Action::Apply(_) => break action,
            _ => drop(harness.step(&env)),
        }
    };
    let why = WriteFailure::Refused("no room".into(), RefusalRule::Other, Some(MINUTE));
    harness.engine.record_result(&env, &refused, ActionResult::Failed(why), harness.now);
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Created(other)]);
    let waiting = harness.engine.decide(&web, harness.now).reason.map(|reason| reason.to_string());
    assert_eq!(waiting.as_deref(), Some("needs ConfigMap shop/env, which is not there yet"));
    harness.pass_time(MINUTE);
    harness.engine.mark_dirty(&env);
    harness.settle();
    assert_eq!(harness.world.things.len(), 3, "it is tried again, and what needs it follows");
}

fn after(id: &crate::object::ObjectId, before: &crate::object::ObjectId, file: &str) -> SharedDesiredObject {
    let mut one = (*desired(id, 1, file)).clone();
    one.depends_on = [before.clone()].into();
    one.into()
}

fn reason(harness: &mut Harness, id: &crate::object::ObjectId) -> String {
    let decision = harness.engine.decide(id, harness.now);
    decision.reason.map(|reason| reason.to_string()).unwrap_or_default()
}

#[test]
fn what_no_source_names_is_waited_for_and_foreseen() {
    let (a, elsewhere) = (config("a"), config("elsewhere"));
    let files = [("a", Some(after(&a, &elsewhere, "a")))];
    for foreseeing in [false, true] {
        let mut harness = Harness::new(3);
        if foreseeing {
            harness.engine = std::mem::take(&mut harness.engine).assume_prerequisites();
        }
        harness.read(reading("r1", &files));
        harness.settle();
        assert_eq!(harness.world.log, []);
        assert_eq!(reason(&mut harness, &a), "needs ConfigMap shop/elsewhere, which no source names");
    }
}

#[test]
fn objects_that_wait_for_themselves_are_refused_until_the_cycle_is_broken() {
    let (a, b, c) = (config("a"), config("b"), config("c"));
    let mut harness = Harness::new(3);
    let files =
        [("a", Some(after(&a, &b, "a"))), ("b", Some(after(&b, &a, "b"))), ("c", Some(after(&c, &a, "c")))];
    harness.read(reading("r1", &files));
    harness.settle();
    assert_eq!(harness.world.log, []);
    let cycle = "dependency cycle: ConfigMap shop/a → ConfigMap shop/b → ConfigMap shop/a";
    assert_eq!(reason(&mut harness, &a), cycle);
    assert_eq!(reason(&mut harness, &b), cycle);
    assert_eq!(reason(&mut harness, &c), "needs ConfigMap shop/a, which is not there yet");
    harness.read(reading("r2", &[("b", Some(desired(&b, 1, "b")))]));
    harness.settle();
    assert_eq!(harness.world.log, [AuditEntry::Created(b), AuditEntry::Created(a), AuditEntry::Created(c)]);
}

#[test]
fn what_an_earlier_wave_waits_for_cannot_be_in_a_later_one() {
    let (a, b) = (config("a"), config("b"));
    let mut later = (*desired(&b, 1, "b")).clone();
    later.wave = 1;
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(after(&a, &b, "a"))), ("b", Some(later.into()))]));
    harness.settle();
    assert_eq!(harness.world.log, []);
    let why = "it depends on ConfigMap shop/b, which is in the later wave 1 (its own is 0)";
    assert_eq!(reason(&mut harness, &a), why);
}

#[test]
fn what_is_no_longer_wanted_and_has_another_owner_by_now_is_forgotten() {
    let a = config("a");
    let mut harness = settled(&a);
    harness.read(reading("r2", &[("a", None)]));
    let shown = harness.engine.live_object(&a).cloned().unwrap();
    let owner = ObjectOwner::Foreign("Flux Kustomization a/b".into());
    harness.engine.observe_object(&a, LiveObject { owner, rv: ResourceVersion(shown.rv.0 + 1), ..shown });
    assert_eq!(harness.engine.decide(&a, harness.now).action, Action::Forget);
}

#[test]
fn the_manifest_gives_the_replicas_where_no_autoscaler_does() {
    let web = workload("web");
    let wanted = |content: u32| {
        let mut one = (*desired(&web, content, "web")).clone();
        let without = crate::object::ContentHash::hash_bytes(format!("without {content}").as_bytes());
        (one.hash_without_replicas, one.replicas) = (Some(without), Some(3));
        SharedDesiredObject::from(one)
    };
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("web", Some(wanted(1)))]));
    harness.settle();
    harness.read(reading("r2", &[("web", Some(wanted(2)))]));
    let Action::Apply(apply) = harness.decide(&web).action else { panic!("it is not changed") };
    assert_eq!(apply.variant.replicas, ReplicaMode::FromManifest);
}

#[test]
fn a_workload_serves_once_it_has_started_and_has_pods() {
    let check = |id: &crate::object::ObjectId, status: Option<(WorkloadPhase, u32)>, expected: bool| {
        let thing = WorldObject::settled(desired(id, 1, "a").hash, "r1", 1);
        let of = |(phase, replicas)| ReplicaStatus { replicas, phase, ..ReplicaStatus::default() };
        let live = LiveObject { replica_status: status.map(of), ..World::live(id, &thing) };
        assert_eq!(crate::engine::decide::decide::is_serving(id, &live), expected, "{id} {status:?}");
    };
    let web = workload("web");
    check(&web, None, true);
    check(&web, Some((WorkloadPhase::Settled, 3)), true);
    check(&web, Some((WorkloadPhase::Settled, 0)), false);
    check(&web, Some((WorkloadPhase::FirstStart, 3)), false);
    check(&web, Some((WorkloadPhase::FirstStart, 0)), false);
    check(&config("a"), None, false);
}

#[test]
fn only_revisions_that_an_object_shows_are_counted() {
    let a = config("a");
    let mut harness = settled(&a);
    let of = |harness: &Harness| {
        let counts = [
            &harness.engine.objects.live_objects_by_revision,
            &harness.engine.objects.proven_objects_by_revision,
        ];
        counts.map(RevisionCounts::words)
    };
    assert_eq!(of(&harness), [["r1 1"], ["r1 1"]]);
    harness
        .read(reading("r2", &[("a", Some(desired(&a, 2, "a"))), ("b", Some(desired(&config("b"), 1, "b")))]));
    assert!(harness.engine.has_unfinished_changes(super::world::FIRST));
    harness.settle();
    assert!(!harness.engine.has_unfinished_changes(super::world::FIRST));
    assert_eq!(of(&harness), [["r2 2"], ["r2 2"]]);
    harness.world.things.remove(&a);
    harness.world.announce(&a);
    harness.deliver(usize::MAX);
    assert_eq!(of(&harness), [["r2 1"], ["r2 1"]]);
}

#[test]
fn whoever_waits_for_the_clock_is_decided_about_again() {
    let check = |reason: Reason, expected: Option<u64>| {
        let expected = expected.map(Duration::from_secs);
        assert_eq!(Decision::wait(reason.clone()).requeue_after, expected, "{reason}");
    };
    let five = Duration::from_secs(5);
    check(Reason::Refused(RefusalCause::AnnotationStripped, Some(five)), Some(5));
    check(Reason::Refused(RefusalCause::AnnotationStripped, None), None);
    check(Reason::Retrying(RetryCause::Conflict, five), Some(5));
    check(Reason::Fight(FightCause::Deletions, five), Some(5));
    check(Reason::OwnWrite, Some(WRITE_ECHO_TIMEOUT.as_secs()));
    check(Reason::Terminating, None);
}
