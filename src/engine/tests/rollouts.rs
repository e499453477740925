//! Units: released together, in order, and gone back together.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::rig::Harness;
use super::world::{AuditEntry, config, desired, reading, workload};
use crate::engine::*;
use crate::object::{ObjectId, Revision};

/// `web`, which uses the `ConfigMap` env.
fn web(content: u32) -> SharedDesired {
    with(desired(&workload("web"), content, "web"), |web| web.needs = [config("env")].into())
}

fn env(content: u32) -> SharedDesired {
    desired(&config("env"), content, "env")
}

fn with(shared: SharedDesired, change: impl FnOnce(&mut DesiredObject)) -> SharedDesired {
    let mut changed = (*shared).clone();
    change(&mut changed);
    Arc::new(changed)
}

fn both(content: u32) -> [(&'static str, Option<SharedDesired>); 2] {
    [("env", Some(env(content))), ("web", Some(web(content)))]
}

/// Returns a cluster in which revision r1 is at rest.
fn at_rest(most: u32) -> Harness {
    let mut rig = Harness::new(most);
    rig.read(reading("r1", &both(1)));
    rig.settle();
    rig.world.log.clear();
    rig
}

fn shown(rig: &Harness, id: &ObjectId) -> Release {
    rig.world.things[id].release.clone().unwrap()
}

fn release(of: &SharedDesired, revision: &str) -> Release {
    Release { hash: of.hash, revision: Revision::new(revision) }
}

fn reason(rig: &mut Harness, id: &ObjectId) -> String {
    rig.decide(id).reason.map(|reason| reason.to_string()).unwrap_or_default()
}

fn changed(id: ObjectId) -> AuditEntry {
    AuditEntry::Changed(id)
}

#[test]
fn a_configuration_never_lands_before_its_workload_may_roll() {
    let mut rig = Harness::new(1);
    let other = |content| desired(&workload("a"), content, "a");
    let files = |content: u32| [both(content).to_vec(), vec![("a", Some(other(content)))]].concat();
    rig.read(reading("r1", &files(1)));
    rig.settle();
    rig.world.log.clear();
    rig.read(reading("r2", &files(2)));
    // `a` takes the only token; nothing of the other unit is touched meanwhile.
    for id in [workload("a"), config("env"), workload("web"), config("env")] {
        rig.step(&id);
    }
    assert_eq!(rig.world.log, [changed(workload("a"))]);
    assert_eq!(
        reason(&mut rig, &config("env")),
        "it is released together with Deployment shop/web, which has not begun to roll"
    );
    rig.settle();
    assert_eq!(rig.world.log[1..], [changed(config("env")), changed(workload("web"))]);
    assert!(rig.world.is_free());
}

#[test]
fn a_failed_unit_goes_back_together_and_is_not_tried_again_before_it_changes() {
    let mut rig = at_rest(3);
    rig.world.bad.insert(web(2).hash);
    rig.read(reading("r2", &both(2)));
    rig.settle();
    assert_eq!(shown(&rig, &workload("web")), release(&web(1), "r1"));
    assert_eq!(shown(&rig, &config("env")), release(&env(1), "r1"));
    let told = format!(
        "revision r2 failed: Deployment shop/web: content {} made no progress; it is back at revision r1",
        web(2).hash
    );
    assert_eq!(reason(&mut rig, &workload("web")), told);
    assert_eq!(reason(&mut rig, &config("env")), told);
    let count = rig.world.log.len();
    assert_eq!(count, 4, "there and back: {:?}", rig.world.log);
    // The same contents in a later revision are as bad.
    rig.read(reading("r3", &[]));
    rig.engine.mark_all();
    rig.settle();
    assert_eq!(rig.world.log.len(), count);
    // A process that starts now knows it too.
    let everything = both(2);
    rig.engine = rig.fresh(3);
    rig.read(reading("r3", &everything));
    rig.engine.mark_all();
    rig.settle();
    assert_eq!(rig.world.log.len(), count, "{:?}", rig.world.log);
    assert_eq!(reason(&mut rig, &workload("web")), told);
    // Another configuration may make the same template work: the unit is tried again.
    rig.world.bad.clear();
    rig.read(reading("r4", &[("env", Some(env(3)))]));
    rig.settle();
    assert_eq!(shown(&rig, &workload("web")), release(&web(2), "r4"));
    assert_eq!(shown(&rig, &config("env")), release(&env(3), "r4"));
    assert!(rig.world.rejections.is_empty());
}

#[test]
fn what_a_failed_revision_added_goes_and_what_it_would_have_removed_stays() {
    let mut rig = at_rest(3);
    let extra = desired(&config("extra"), 1, "extra");
    rig.read(reading("r1", &[("extra", Some(extra))]));
    let uses =
        |content, name: &str| with(web(content), |web| web.needs = [config("env"), config(name)].into());
    rig.read(reading("r2", &[("web", Some(uses(2, "extra")))]));
    rig.settle();
    let new = desired(&config("new"), 1, "new");
    rig.world.bad.insert(uses(3, "new").hash);
    rig.read(reading("r3", &[("web", Some(uses(3, "new"))), ("new", Some(new)), ("extra", None)]));
    rig.settle();
    assert_eq!(shown(&rig, &workload("web")), release(&uses(2, "extra"), "r2"));
    assert!(rig.world.things.contains_key(&config("extra")), "{:?}", rig.world.log);
    assert!(!rig.world.things.contains_key(&config("new")), "{:?}", rig.world.log);
}

#[test]
fn a_way_back_that_fails_too_ends_in_a_hold() {
    let mut rig = at_rest(3);
    rig.read(reading("r2", &both(2)));
    rig.world.bad.extend([web(1).hash, web(2).hash]);
    rig.settle();
    let count = rig.world.log.len();
    rig.engine.mark_all();
    rig.settle();
    assert_eq!(rig.world.log.len(), count, "it loops: {:?}", rig.world.log);
    assert_eq!(shown(&rig, &workload("web")), release(&web(1), "r1"));
    let why = reason(&mut rig, &workload("web"));
    assert!(why.contains("going back failed too"), "{why}");
    assert_eq!(rig.world.rejections[0].way, RejectionAction::Hold);
    assert!(rig.engine.in_flight().is_empty(), "it holds no token for ever");
}

#[test]
fn by_policy_a_failed_unit_stays_as_it_is() {
    let mut rig = at_rest(3);
    rig.engine = rig.fresh_with(Budget { on_failure: OnFailure::Hold, ..super::world::budget(3) });
    rig.read(reading("r1", &both(1)));
    rig.settle();
    rig.world.bad.insert(web(2).hash);
    rig.read(reading("r2", &both(2)));
    rig.settle();
    assert_eq!(shown(&rig, &workload("web")), release(&web(2), "r2"));
    assert_eq!(
        reason(&mut rig, &workload("web")),
        format!("revision r2 failed: Deployment shop/web: content {} made no progress", web(2).hash)
    );
}

#[test]
fn a_content_that_cannot_be_read_any_more_is_not_gone_back_to() {
    let mut rig = at_rest(3);
    rig.history.clear();
    rig.world.bad.insert(web(2).hash);
    rig.read(reading("r2", &both(2)));
    rig.settle();
    assert_eq!(shown(&rig, &workload("web")), release(&web(2), "r2"));
    let why = reason(&mut rig, &workload("web"));
    let told = "it cannot go back, as revision r1 of ConfigMap shop/env cannot be read any more";
    assert!(why.ends_with(told), "{why}");
}

#[test]
fn a_newer_commit_replaces_a_rollout_from_where_it_is() {
    let mut rig = at_rest(3);
    rig.read(reading("r2", &both(2)));
    for id in [workload("web"), config("env"), workload("web")] {
        rig.deliver(usize::MAX);
        rig.step(&id);
    }
    assert_eq!(shown(&rig, &workload("web")), release(&web(2), "r2"));
    // It still rolls; the third is bad, and what was good is the first.
    rig.world.bad.insert(web(3).hash);
    rig.read(reading("r3", &both(3)));
    rig.settle();
    assert_eq!(shown(&rig, &workload("web")), release(&web(1), "r1"), "{:?}", rig.world.log);
    assert_eq!(shown(&rig, &config("env")), release(&env(1), "r1"));
}

#[test]
fn later_waves_do_not_begin_after_a_failure() {
    let mut rig = Harness::new(3);
    let canary = |content| desired(&workload("canary"), content, "canary");
    let rest = |content| with(desired(&workload("rest"), content, "rest"), |rest| rest.wave = 1);
    let files = |content| [("canary", Some(canary(content))), ("rest", Some(rest(content)))];
    rig.read(reading("r1", &files(1)));
    rig.settle();
    rig.world.bad.insert(canary(2).hash);
    rig.read(reading("r2", &files(2)));
    rig.settle();
    assert_eq!(shown(&rig, &workload("canary")), release(&canary(1), "r1"));
    assert_eq!(shown(&rig, &workload("rest")), release(&rest(1), "r1"));
    assert_eq!(reason(&mut rig, &workload("rest")), "wave 0 is not finished: Deployment shop/canary");
    rig.read(reading("r3", &[("canary", Some(canary(3)))]));
    rig.settle();
    assert_eq!(shown(&rig, &workload("rest")), release(&rest(2), "r3"));
}

/// A process that dies after any write of a rollout, or of a rollback, and what comes after it.
#[test]
fn a_rollout_and_a_rollback_survive_the_end_of_the_process_at_every_point() {
    for bad in [false, true] {
        for point in 0..40 {
            let mut rig = at_rest(3);
            if bad {
                rig.world.bad.insert(web(2).hash);
            }
            rig.read(reading("r2", &both(2)));
            for _ in 0..point {
                rig.turn();
            }
            rig.engine = rig.fresh(3);
            rig.read(reading("r2", &both(2)));
            rig.engine.mark_all();
            rig.settle();
            let (expected, by) = if bad { (1, "r1") } else { (2, "r2") };
            assert_eq!(
                shown(&rig, &workload("web")),
                release(&web(expected), by),
                "{bad} {point} {:?}",
                rig.world.log
            );
            assert_eq!(
                shown(&rig, &config("env")),
                release(&env(expected), by),
                "{bad} {point} {:?}",
                rig.world.log
            );
            let mut times: BTreeMap<String, u32> = BTreeMap::new();
            for wrote in &rig.world.log {
                *times.entry(format!("{wrote:?}")).or_default() += 1;
            }
            assert!(times.values().all(|times| *times <= 2), "{point}: {times:?}");
        }
    }
}

/// A rollout waits, as another daemon has claimed all that may roll at once.
fn claimed_elsewhere() -> (Harness, ObjectId) {
    let mut rig = at_rest(1);
    let other = super::world::id("apps", "Deployment", "elsewhere", "api");
    let claim = RolloutClaim {
        applyset: "applyset-theirs-v1".into(),
        holder: "b".into(),
        content: web(9).hash,
        pods: 1,
        left: false,
    };
    rig.world.book.claims.insert(other.clone(), claim);
    rig.engine.book(rig.world.book.clone());
    rig.read(reading("r2", &both(2)));
    rig.settle();
    (rig, other)
}

#[test]
fn claims_of_another_daemon_count_until_their_workload_has_rested() {
    let (mut rig, other) = claimed_elsewhere();
    assert!(rig.world.log.is_empty(), "{:?}", rig.world.log);
    let told = "1 of 1 workloads are rolling: Deployment elsewhere/api; Deployment elsewhere/api is claimed by another \
                source";
    assert_eq!(reason(&mut rig, &workload("web")), told);
    assert_eq!(rig.engine.others(), std::slice::from_ref(&other));
    for rest in [0, SPENT.as_secs() - 1, SPENT.as_secs()] {
        assert!(rig.world.log.is_empty(), "it rests for less than {rest} s");
        rig.engine.other_seen(&other, None, rig.now + std::time::Duration::from_secs(rest));
        rig.settle();
    }
    assert_eq!(shown(&rig, &workload("web")), release(&web(2), "r2"));
    assert!(rig.world.book.claims.contains_key(&other), "it is not ours to take back");
}

/// The claiming process is gone, and its new pods never become ready: nobody brings the workload
/// back.
#[test]
fn claims_of_another_daemon_count_while_their_workload_gets_farther_and_for_the_deadline_after_that() {
    let (mut rig, other) = claimed_elsewhere();
    let mut live = rig.engine.shown(&workload("web")).cloned().unwrap();
    let deadline = Budget::default().deadline.as_secs();
    // The number of updated pods, and the second.
    for (updated, second) in [
        (1, 0),
        (1, SPENT.as_secs()),
        (1, deadline - 1),
        (2, deadline),
        (2, 2 * deadline - 1),
        (2, 2 * deadline),
    ] {
        assert!(rig.world.log.is_empty(), "it has not failed after {second} s");
        let phase = RolloutPhase::Replacing;
        live.rolling = Some(RolloutNumbers { replicas: 3, updated, phase, ..RolloutNumbers::default() });
        rig.engine.other_seen(&other, Some(&live), rig.now + std::time::Duration::from_secs(second));
        rig.settle();
    }
    assert_eq!(shown(&rig, &workload("web")), release(&web(2), "r2"));
}

#[test]
fn what_another_daemon_has_claimed_and_may_not_be_looked_at_counts_and_is_told() {
    let (mut rig, other) = claimed_elsewhere();
    assert!(rig.engine.other_hidden(&other, "you cannot list it".into()));
    assert!(!rig.engine.other_hidden(&other, "you cannot list it".into()), "it is told once");
    rig.engine.settle();
    assert_eq!(rig.engine.take_dirty(), [workload("web")], "it has something new to tell");
    rig.engine.mark(&workload("web"));
    rig.settle();
    let told = "1 of 1 workloads are rolling: Deployment elsewhere/api; whether Deployment elsewhere/api still rolls is \
                not known: you cannot list it; Deployment elsewhere/api is claimed by another source";
    assert_eq!(reason(&mut rig, &workload("web")), told);
    for rest in [0, SPENT.as_secs()] {
        assert!(rig.world.log.is_empty(), "it rests for less than {rest} s");
        rig.engine.other_seen(&other, None, rig.now + std::time::Duration::from_secs(rest));
        rig.settle();
    }
    assert_eq!(shown(&rig, &workload("web")), release(&web(2), "r2"));
}

#[test]
fn on_the_way_back_too_the_configuration_goes_first() {
    let mut rig = at_rest(3);
    rig.world.bad.insert(web(2).hash);
    rig.read(reading("r2", &both(2)));
    rig.settle();
    assert_eq!(rig.world.log[2..], [changed(config("env")), changed(workload("web"))]);
}

/// A process that has just started does not know yet which workloads there are.
#[test]
fn a_configuration_waits_until_the_workloads_are_listed() {
    let mut rig = at_rest(1);
    rig.engine.informer(&workload("web").group_kind(), KindState::Syncing);
    rig.engine.gone(&workload("web"));
    rig.read(reading("r2", &both(2)));
    rig.step(&config("env"));
    assert!(rig.world.log.is_empty(), "{:?}", rig.world.log);
    rig.world.announce(&workload("web"));
    rig.deliver(1);
    rig.engine.informer(&workload("web").group_kind(), KindState::Synced);
    rig.settle();
    assert_eq!(rig.world.log, [changed(config("env")), changed(workload("web"))]);
}

/// The template is the same, but what held most of the old pods is gone.
#[test]
fn what_takes_the_steps_away_in_the_middle_asks_for_the_rest() {
    let stepped = |content| {
        let words = serde_json::json!({"rhumb.dev/steps": "1", "rhumb.dev/step-promote": "manual"});
        let body = serde_json::json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"annotations": words}});
        with(web(content), |web| web.steps = Steps::of(&body).map(Box::new))
    };
    let mut rig = at_rest(1);
    rig.read(reading("r2", &[("web", Some(stepped(2)))]));
    rig.settle();
    assert_eq!(
        rig.world.things[&workload("web")].shown,
        OverlayState::Under(Overlay::Surge { pods: 1, step: 1 })
    );
    let plain = with(web(3), |web| web.template = stepped(2).template);
    rig.read(reading("r3", &[("web", Some(plain))]));
    rig.deliver(usize::MAX);
    let decision = rig.decide(&workload("web"));
    let Action::Apply(apply) = &decision.action else { panic!("{decision:?}") };
    assert_eq!((apply.form.overlay, apply.restarts), (None, RestartRisk::Maybe));
    assert!(rig.world.book.claims.contains_key(&workload("web")), "{:?}", rig.world.book);
}

/// A process that served the source looks after its claim, also where nothing waits for the budget.
#[test]
fn claims_of_a_source_that_is_gone_are_taken_back_when_their_workload_has_rested() {
    let mut rig = at_rest(1);
    let gone = super::world::id("apps", "Deployment", "elsewhere", "api");
    let claim = |applyset: &str| RolloutClaim {
        applyset: applyset.into(),
        holder: "b".into(),
        content: web(9).hash,
        pods: 1,
        left: false,
    };
    rig.world.book.claims.insert(gone.clone(), claim("gone-v1"));
    rig.world.book.claims.insert(workload("other"), claim("applyset-theirs-v1"));
    rig.engine.book(rig.world.book.clone());
    rig.engine.retire("gone-v1".into());
    rig.settle();
    assert_eq!(rig.engine.others(), std::slice::from_ref(&gone));
    for rest in [0, SPENT.as_secs() - 1] {
        rig.engine.other_seen(&gone, None, rig.now + std::time::Duration::from_secs(rest));
        rig.settle();
        assert!(rig.world.book.claims.contains_key(&gone), "{rest}");
    }
    rig.engine.other_seen(&gone, None, rig.now + SPENT);
    rig.settle();
    assert_eq!(rig.world.book.claims.keys().collect::<Vec<_>>(), [&workload("other")]);
}

/// Two processes that serve the same source share one budget as any two do.
#[test]
fn a_claim_of_a_twin_counts_and_is_not_taken_back_for_it() {
    let mut rig = Harness::new(1);
    let other = |content| desired(&workload("a"), content, "a");
    let files = |content: u32| [both(content).to_vec(), vec![("a", Some(other(content)))]].concat();
    rig.read(reading("r1", &files(1)));
    rig.settle();
    rig.world.log.clear();
    rig.engine.claim_as("one");
    let claim = RolloutClaim {
        applyset: super::world::SET.into(),
        holder: "two".into(),
        content: web(2).hash,
        pods: 0,
        left: false,
    };
    rig.world.book.claims.insert(workload("web"), claim);
    rig.engine.book(rig.world.book.clone());
    rig.read(reading("r2", &[("a", Some(other(2)))]));
    rig.settle();
    assert!(rig.world.log.is_empty(), "{:?}", rig.world.log);
    assert!(rig.world.book.claims.contains_key(&workload("web")));
    // The other one is gone for good: nothing came of its claim.
    let live = rig.engine.live(&workload("web")).cloned();
    for rest in [0, SPENT.as_secs()] {
        let now = rig.now + std::time::Duration::from_secs(rest);
        rig.engine.other_seen(&workload("web"), live.as_ref(), now);
    }
    rig.settle();
    assert_eq!(rig.world.log, [changed(workload("a"))]);
    assert!(rig.world.is_free());
}

#[test]
fn what_a_workload_waits_for_does_not_wait_for_the_workload() {
    let env = |content, wave| with(env(content), |env| env.wave = wave);
    let migrate = |content| {
        with(desired(&workload("migrate"), content, "migrate"), |one| one.needs = [config("env")].into())
    };
    // Of an earlier wave; needed by what has to be healthy first.
    for case in 0..2 {
        let files = |content| match case {
            0 => vec![("env", Some(env(content, 0))), ("web", Some(with(web(content), |web| web.wave = 1)))],
            _ => vec![
                ("env", Some(env(content, 0))),
                ("migrate", Some(migrate(content))),
                ("web", Some(with(web(content), |web| web.after = [workload("migrate")].into()))),
            ],
        };
        let mut rig = Harness::new(3);
        rig.read(reading("r1", &files(1)));
        rig.settle();
        rig.world.log.clear();
        rig.read(reading("r2", &files(2)));
        rig.settle();
        assert_eq!(rig.world.log.len(), files(2).len(), "case {case}: {:?}", rig.world.log);
        assert_eq!(rig.world.log[0], changed(config("env")));
        assert_eq!(rig.world.log.last(), Some(&changed(workload("web"))));
        assert!(rig.world.is_free());
        // It goes back together all the same.
        rig.world.bad.insert(web(3).hash);
        rig.read(reading("r3", &files(3)));
        rig.settle();
        assert_eq!(shown(&rig, &config("env")).hash, env(2, 0).hash, "case {case}");
    }
}
