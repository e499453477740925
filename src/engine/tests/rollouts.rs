//! Units: released together, in order, and gone back together.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::harness::Harness;
use super::world::{AuditEntry, config, desired, reading, workload};
use crate::engine::*;
use crate::object::{ObjectId, Revision};

/// Returns `web`, which uses the `ConfigMap` env.
fn web(content: u32) -> SharedDesiredObject {
    with(desired(&workload("web"), content, "web"), |web| web.needs = [config("env")].into())
}

fn env(content: u32) -> SharedDesiredObject {
    desired(&config("env"), content, "env")
}

fn with(shared: SharedDesiredObject, change: impl FnOnce(&mut DesiredObject)) -> SharedDesiredObject {
    let mut changed = (*shared).clone();
    change(&mut changed);
    Arc::new(changed)
}

fn both(content: u32) -> [(&'static str, Option<SharedDesiredObject>); 2] {
    [("env", Some(env(content))), ("web", Some(web(content)))]
}

/// Returns a cluster in which revision r1 is at rest.
fn at_rest(most: u32) -> Harness {
    let mut harness = Harness::new(most);
    harness.read(reading("r1", &both(1)));
    harness.settle();
    harness.world.log.clear();
    harness
}

fn shown(harness: &Harness, id: &ObjectId) -> ContentRef {
    harness.world.things[id].release.clone().unwrap()
}

fn release(of: &SharedDesiredObject, revision: &str) -> ContentRef {
    ContentRef { hash: of.hash, revision: Revision::new(revision) }
}

fn reason(harness: &mut Harness, id: &ObjectId) -> String {
    harness.decide(id).reason.map(|reason| reason.to_string()).unwrap_or_default()
}

fn changed(id: ObjectId) -> AuditEntry {
    AuditEntry::Changed(id)
}

#[test]
fn a_configuration_never_lands_before_its_workload_may_roll() {
    let mut harness = Harness::new(1);
    let other = |content| desired(&workload("a"), content, "a");
    let files = |content: u32| [both(content).to_vec(), vec![("a", Some(other(content)))]].concat();
    harness.read(reading("r1", &files(1)));
    harness.settle();
    harness.world.log.clear();
    harness.read(reading("r2", &files(2)));
    // `a` takes the only slot; nothing of the other unit is touched meanwhile.
    for id in [workload("a"), config("env"), workload("web"), config("env")] {
        harness.step(&id);
    }
    assert_eq!(harness.world.log, [changed(workload("a"))]);
    assert_eq!(
        reason(&mut harness, &config("env")),
        "it is released together with Deployment shop/web, which has not started to roll out"
    );
    harness.settle();
    assert_eq!(harness.world.log[1..], [changed(config("env")), changed(workload("web"))]);
    assert!(harness.world.is_free());
}

#[test]
fn a_failed_unit_goes_back_together_and_is_not_tried_again_before_it_changes() {
    let mut harness = at_rest(3);
    harness.world.bad.insert(web(2).hash);
    harness.read(reading("r2", &both(2)));
    harness.settle();
    assert_eq!(shown(&harness, &workload("web")), release(&web(1), "r1"));
    assert_eq!(shown(&harness, &config("env")), release(&env(1), "r1"));
    let expected = format!(
        "revision r2 failed: Deployment shop/web: content {} made no progress; it is back at revision r1",
        web(2).hash
    );
    assert_eq!(reason(&mut harness, &workload("web")), expected);
    assert_eq!(reason(&mut harness, &config("env")), expected);
    let count = harness.world.log.len();
    assert_eq!(count, 4, "there and back: {:?}", harness.world.log);
    // The same contents in a later revision are as bad.
    harness.read(reading("r3", &[]));
    harness.engine.mark_all();
    harness.settle();
    assert_eq!(harness.world.log.len(), count);
    // A process that starts now knows it too.
    let everything = both(2);
    harness.engine = harness.fresh(3);
    harness.read(reading("r3", &everything));
    harness.engine.mark_all();
    harness.settle();
    assert_eq!(harness.world.log.len(), count, "{:?}", harness.world.log);
    assert_eq!(reason(&mut harness, &workload("web")), expected);
    // Another configuration may make the same template work: the unit is tried again.
    harness.world.bad.clear();
    harness.read(reading("r4", &[("env", Some(env(3)))]));
    harness.settle();
    assert_eq!(shown(&harness, &workload("web")), release(&web(2), "r4"));
    assert_eq!(shown(&harness, &config("env")), release(&env(3), "r4"));
    assert!(harness.world.rejections.is_empty());
}

#[test]
fn what_a_failed_revision_added_goes_and_what_it_would_have_removed_stays() {
    let mut harness = at_rest(3);
    let extra = desired(&config("extra"), 1, "extra");
    harness.read(reading("r1", &[("extra", Some(extra))]));
    let uses =
        |content, name: &str| with(web(content), |web| web.needs = [config("env"), config(name)].into());
    harness.read(reading("r2", &[("web", Some(uses(2, "extra")))]));
    harness.settle();
    let new = desired(&config("new"), 1, "new");
    harness.world.bad.insert(uses(3, "new").hash);
    harness.read(reading("r3", &[("web", Some(uses(3, "new"))), ("new", Some(new)), ("extra", None)]));
    harness.settle();
    assert_eq!(shown(&harness, &workload("web")), release(&uses(2, "extra"), "r2"));
    assert!(harness.world.things.contains_key(&config("extra")), "{:?}", harness.world.log);
    assert!(!harness.world.things.contains_key(&config("new")), "{:?}", harness.world.log);
}

#[test]
fn a_rollback_that_fails_too_ends_in_a_hold() {
    let mut harness = at_rest(3);
    harness.read(reading("r2", &both(2)));
    harness.world.bad.extend([web(1).hash, web(2).hash]);
    harness.settle();
    let count = harness.world.log.len();
    harness.engine.mark_all();
    harness.settle();
    assert_eq!(harness.world.log.len(), count, "it loops: {:?}", harness.world.log);
    assert_eq!(shown(&harness, &workload("web")), release(&web(1), "r1"));
    let why = reason(&mut harness, &workload("web"));
    assert!(why.contains("going back failed too"), "{why}");
    assert_eq!(harness.world.rejections[0].action, RejectionAction::Quarantine);
    assert!(harness.engine.workloads_in_flight().is_empty(), "it holds no slot for ever");
}

#[test]
fn by_policy_a_failed_unit_stays_as_it_is() {
    let mut harness = at_rest(3);
    harness.engine =
        harness.fresh_with(Budget { on_failure: OnFailure::Quarantine, ..super::world::budget(3) });
    harness.read(reading("r1", &both(1)));
    harness.settle();
    harness.world.bad.insert(web(2).hash);
    harness.read(reading("r2", &both(2)));
    harness.settle();
    assert_eq!(shown(&harness, &workload("web")), release(&web(2), "r2"));
    assert_eq!(
        reason(&mut harness, &workload("web")),
        format!("revision r2 failed: Deployment shop/web: content {} made no progress", web(2).hash)
    );
}

#[test]
fn a_content_that_cannot_be_read_any_more_is_not_gone_back_to() {
    let mut harness = at_rest(3);
    harness.history.clear();
    harness.world.bad.insert(web(2).hash);
    harness.read(reading("r2", &both(2)));
    harness.settle();
    assert_eq!(shown(&harness, &workload("web")), release(&web(2), "r2"));
    let why = reason(&mut harness, &workload("web"));
    let expected = "it cannot go back, as revision r1 of ConfigMap shop/env cannot be read any more";
    assert!(why.ends_with(expected), "{why}");
}

#[test]
fn a_newer_commit_replaces_a_rollout_from_where_it_is() {
    let mut harness = at_rest(3);
    harness.read(reading("r2", &both(2)));
    for id in [workload("web"), config("env"), workload("web")] {
        harness.deliver(usize::MAX);
        harness.step(&id);
    }
    assert_eq!(shown(&harness, &workload("web")), release(&web(2), "r2"));
    // It still rolls; the third is bad, and what was good is the first.
    harness.world.bad.insert(web(3).hash);
    harness.read(reading("r3", &both(3)));
    harness.settle();
    assert_eq!(shown(&harness, &workload("web")), release(&web(1), "r1"), "{:?}", harness.world.log);
    assert_eq!(shown(&harness, &config("env")), release(&env(1), "r1"));
}

#[test]
fn later_waves_do_not_begin_after_a_failure() {
    let mut harness = Harness::new(3);
    let canary = |content| desired(&workload("canary"), content, "canary");
    let rest = |content| with(desired(&workload("rest"), content, "rest"), |rest| rest.wave = 1);
    let files = |content| [("canary", Some(canary(content))), ("rest", Some(rest(content)))];
    harness.read(reading("r1", &files(1)));
    harness.settle();
    harness.world.bad.insert(canary(2).hash);
    harness.read(reading("r2", &files(2)));
    harness.settle();
    assert_eq!(shown(&harness, &workload("canary")), release(&canary(1), "r1"));
    assert_eq!(shown(&harness, &workload("rest")), release(&rest(1), "r1"));
    assert_eq!(reason(&mut harness, &workload("rest")), "wave 0 is not finished: Deployment shop/canary");
    harness.read(reading("r3", &[("canary", Some(canary(3)))]));
    harness.settle();
    assert_eq!(shown(&harness, &workload("rest")), release(&rest(2), "r3"));
}

/// Ends the process after any write of a rollout or of a rollback, and checks what comes after it.
#[test]
fn a_rollout_and_a_rollback_survive_the_end_of_the_process_at_every_point() {
    for bad in [false, true] {
        for point in 0..40 {
            let mut harness = at_rest(3);
            if bad {
                harness.world.bad.insert(web(2).hash);
            }
            harness.read(reading("r2", &both(2)));
            for _ in 0..point {
                harness.turn();
            }
            harness.engine = harness.fresh(3);
            harness.read(reading("r2", &both(2)));
            harness.engine.mark_all();
            harness.settle();
            let (expected, by) = if bad { (1, "r1") } else { (2, "r2") };
            assert_eq!(
                shown(&harness, &workload("web")),
                release(&web(expected), by),
                "{bad} {point} {:?}",
                harness.world.log
            );
            assert_eq!(
                shown(&harness, &config("env")),
                release(&env(expected), by),
                "{bad} {point} {:?}",
                harness.world.log
            );
            let mut times: BTreeMap<String, u32> = BTreeMap::new();
            for wrote in &harness.world.log {
                *times.entry(format!("{wrote:?}")).or_default() += 1;
            }
            assert!(times.values().all(|times| *times <= 2), "{point}: {times:?}");
        }
    }
}

/// Returns a rollout that waits, as another daemon has claimed all that may roll at once.
fn claimed_elsewhere() -> (Harness, ObjectId) {
    let mut harness = at_rest(1);
    let other = super::world::id("apps", "Deployment", "elsewhere", "api");
    let claim = RolloutClaim {
        inventory_id: "applyset-theirs-v1".into(),
        holder: "b".into(),
        rollout_key: web(9).hash,
        reserved: 1,
        holder_exited: false,
        recreates: false,
    };
    harness.world.ledger.claims.insert(other.clone(), claim);
    harness.engine.set_ledger(harness.world.ledger.clone());
    harness.read(reading("r2", &both(2)));
    harness.settle();
    (harness, other)
}

#[test]
fn claims_of_another_daemon_count_until_their_workload_has_rested() {
    let (mut harness, other) = claimed_elsewhere();
    assert!(harness.world.log.is_empty(), "{:?}", harness.world.log);
    let expected = "1 of 1 workloads are rolling out: Deployment elsewhere/api; Deployment elsewhere/api is claimed by another \
                source";
    assert_eq!(reason(&mut harness, &workload("web")), expected);
    assert_eq!(harness.engine.foreign_workloads(), std::slice::from_ref(&other));
    for rest in [0, ABANDONED_CLAIM_AGE.as_secs() - 1, ABANDONED_CLAIM_AGE.as_secs()] {
        assert!(harness.world.log.is_empty(), "it rests for less than {rest} s");
        harness.engine.observe_foreign_workload(
            &other,
            None,
            harness.now + std::time::Duration::from_secs(rest),
        );
        harness.settle();
    }
    assert_eq!(shown(&harness, &workload("web")), release(&web(2), "r2"));
    assert!(harness.world.ledger.claims.contains_key(&other), "it is not ours to take back");
}

/// Leaves the workload to nobody: the claiming process is gone, and its new pods never become
/// ready.
#[test]
fn claims_of_another_daemon_count_while_their_workload_gets_farther_and_for_the_deadline_after_that() {
    let (mut harness, other) = claimed_elsewhere();
    let mut live = harness.engine.live_object(&workload("web")).cloned().unwrap();
    let deadline = Budget::default().deadline.as_secs();
    // The number of updated pods, and the second.
    for (updated, second) in [
        (1, 0),
        (1, ABANDONED_CLAIM_AGE.as_secs()),
        (1, deadline - 1),
        (2, deadline),
        (2, 2 * deadline - 1),
        (2, 2 * deadline),
    ] {
        assert!(harness.world.log.is_empty(), "it has not failed after {second} s");
        let phase = WorkloadPhase::Replacing;
        live.replica_status = Some(ReplicaStatus { replicas: 3, updated, phase, ..ReplicaStatus::default() });
        harness.engine.observe_foreign_workload(
            &other,
            Some(&live),
            harness.now + std::time::Duration::from_secs(second),
        );
        harness.settle();
    }
    assert_eq!(shown(&harness, &workload("web")), release(&web(2), "r2"));
}

#[test]
fn what_another_daemon_has_claimed_and_may_not_be_looked_at_counts_and_is_reported() {
    let (mut harness, other) = claimed_elsewhere();
    assert!(harness.engine.insert_hidden_workload(&other, "you cannot list it".into()));
    assert!(
        !harness.engine.insert_hidden_workload(&other, "you cannot list it".into()),
        "it is reported once"
    );
    harness.engine.process_changes();
    assert_eq!(harness.engine.take_dirty(), [workload("web")], "it has something new to tell");
    harness.engine.mark_dirty(&workload("web"));
    harness.settle();
    let expected = "1 of 1 workloads are rolling out: Deployment elsewhere/api; it is not known whether Deployment \
                elsewhere/api is still rolling out: you cannot list it; Deployment elsewhere/api is claimed by another source";
    assert_eq!(reason(&mut harness, &workload("web")), expected);
    for rest in [0, ABANDONED_CLAIM_AGE.as_secs()] {
        assert!(harness.world.log.is_empty(), "it rests for less than {rest} s");
        harness.engine.observe_foreign_workload(
            &other,
            None,
            harness.now + std::time::Duration::from_secs(rest),
        );
        harness.settle();
    }
    assert_eq!(shown(&harness, &workload("web")), release(&web(2), "r2"));
}

#[test]
fn in_a_rollback_too_the_configuration_goes_first() {
    let mut harness = at_rest(3);
    harness.world.bad.insert(web(2).hash);
    harness.read(reading("r2", &both(2)));
    harness.settle();
    assert_eq!(harness.world.log[2..], [changed(config("env")), changed(workload("web"))]);
}

// A process that has just started does not know yet which workloads there are.
#[test]
fn a_configuration_waits_until_the_workloads_are_listed() {
    let mut harness = at_rest(1);
    harness.engine.set_informer_state(&workload("web").group_kind(), KindState::Syncing);
    harness.engine.observe_absence(&workload("web"));
    harness.read(reading("r2", &both(2)));
    harness.step(&config("env"));
    assert!(harness.world.log.is_empty(), "{:?}", harness.world.log);
    harness.world.announce(&workload("web"));
    harness.deliver(1);
    harness.engine.set_informer_state(&workload("web").group_kind(), KindState::Synced);
    harness.settle();
    assert_eq!(harness.world.log, [changed(config("env")), changed(workload("web"))]);
}

/// Returns `web`, which stays at its first step until a person promotes it.
fn stepped(content: u32) -> SharedDesiredObject {
    let words = serde_json::json!({"rhumb.dev/steps": "1", "rhumb.dev/step-promote": "manual"});
    let body = serde_json::json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"annotations": words}});
    with(web(content), |web| web.steps = Steps::of(&body).map(Box::new))
}

#[test]
fn a_workload_is_at_its_step_as_soon_as_that_is_written() {
    let at_steps = |harness: &Harness| -> Vec<ObjectId> {
        harness.engine.stepped_workloads().into_iter().map(|stepped| stepped.id).collect()
    };
    let is_written = |harness: &Harness| {
        harness.world.things[&workload("web")].shown
            == RolloutOverlayState::Overlaid(RolloutOverlay::Surge { pods: 1, step: 1 })
    };
    let mut harness = at_rest(1);
    harness.read(reading("r2", &[("web", Some(stepped(2)))]));
    for _ in 0..100 {
        if !is_written(&harness) {
            assert!(at_steps(&harness).is_empty());
            harness.turn();
        }
    }
    let is_unseen = harness.world.events.iter().any(|(id, _)| *id == workload("web"));
    assert!(is_written(&harness) && is_unseen, "{:?}", harness.world.log);
    assert_eq!(at_steps(&harness), [workload("web")]);
}

/// Keeps the template, but loses what held most of the old pods.
#[test]
fn what_takes_the_steps_away_in_the_middle_asks_for_the_rest() {
    let mut harness = at_rest(1);
    harness.read(reading("r2", &[("web", Some(stepped(2)))]));
    harness.settle();
    assert_eq!(
        harness.world.things[&workload("web")].shown,
        RolloutOverlayState::Overlaid(RolloutOverlay::Surge { pods: 1, step: 1 })
    );
    let plain = with(web(3), |web| web.template = stepped(2).template);
    harness.read(reading("r3", &[("web", Some(plain))]));
    harness.deliver(usize::MAX);
    let decision = harness.decide(&workload("web"));
    let Action::Apply(apply) = &decision.action else { panic!("{decision:?}") };
    assert_eq!((apply.variant.overlay, apply.restarts), (None, RestartRisk::Possible));
    assert!(harness.world.ledger.claims.contains_key(&workload("web")), "{:?}", harness.world.ledger);
}

// A process that served the source looks after its claim, also where nothing waits for the budget.
#[test]
fn claims_of_a_source_that_is_gone_are_taken_back_when_their_workload_has_rested() {
    let mut harness = at_rest(1);
    let gone = super::world::id("apps", "Deployment", "elsewhere", "api");
    let claim = |inventory_id: &str| RolloutClaim {
        inventory_id: inventory_id.into(),
        holder: "b".into(),
        rollout_key: web(9).hash,
        reserved: 1,
        holder_exited: false,
        recreates: false,
    };
    harness.world.ledger.claims.insert(gone.clone(), claim("gone-v1"));
    harness.world.ledger.claims.insert(workload("other"), claim("applyset-theirs-v1"));
    harness.engine.set_ledger(harness.world.ledger.clone());
    harness.engine.retire("gone-v1".into());
    harness.settle();
    assert_eq!(harness.engine.foreign_workloads(), std::slice::from_ref(&gone));
    for rest in [0, ABANDONED_CLAIM_AGE.as_secs() - 1] {
        harness.engine.observe_foreign_workload(
            &gone,
            None,
            harness.now + std::time::Duration::from_secs(rest),
        );
        harness.settle();
        assert!(harness.world.ledger.claims.contains_key(&gone), "{rest}");
    }
    harness.engine.observe_foreign_workload(&gone, None, harness.now + ABANDONED_CLAIM_AGE);
    harness.settle();
    assert_eq!(harness.world.ledger.claims.keys().collect::<Vec<_>>(), [&workload("other")]);
}

// Two processes that serve the same source share one budget as any two do.
#[test]
fn a_claim_of_a_twin_counts_and_is_not_taken_back_for_it() {
    let mut harness = Harness::new(1);
    let other = |content| desired(&workload("a"), content, "a");
    let files = |content: u32| [both(content).to_vec(), vec![("a", Some(other(content)))]].concat();
    harness.read(reading("r1", &files(1)));
    harness.settle();
    harness.world.log.clear();
    harness.engine.set_holder("one");
    let claim = RolloutClaim {
        inventory_id: super::world::SET.into(),
        holder: "two".into(),
        rollout_key: web(2).hash,
        reserved: 0,
        holder_exited: false,
        recreates: false,
    };
    harness.world.ledger.claims.insert(workload("web"), claim);
    harness.engine.set_ledger(harness.world.ledger.clone());
    harness.read(reading("r2", &[("a", Some(other(2)))]));
    harness.settle();
    assert!(harness.world.log.is_empty(), "{:?}", harness.world.log);
    assert!(harness.world.ledger.claims.contains_key(&workload("web")));
    // The other one is gone for good: nothing came of its claim.
    let live = harness.engine.informer_object(&workload("web")).cloned();
    for rest in [0, ABANDONED_CLAIM_AGE.as_secs()] {
        let now = harness.now + std::time::Duration::from_secs(rest);
        harness.engine.observe_foreign_workload(&workload("web"), live.as_ref(), now);
    }
    harness.settle();
    assert_eq!(harness.world.log, [changed(workload("a"))]);
    assert!(harness.world.is_free());
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
                ("web", Some(with(web(content), |web| web.depends_on = [workload("migrate")].into()))),
            ],
        };
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &files(1)));
        harness.settle();
        harness.world.log.clear();
        harness.read(reading("r2", &files(2)));
        harness.settle();
        assert_eq!(harness.world.log.len(), files(2).len(), "case {case}: {:?}", harness.world.log);
        assert_eq!(harness.world.log[0], changed(config("env")));
        assert_eq!(harness.world.log.last(), Some(&changed(workload("web"))));
        assert!(harness.world.is_free());
        // It goes back together all the same.
        harness.world.bad.insert(web(3).hash);
        harness.read(reading("r3", &files(3)));
        harness.settle();
        assert_eq!(shown(&harness, &config("env")).hash, env(2, 0).hash, "case {case}");
        assert_eq!(shown(&harness, &workload("web")).hash, web(2).hash, "case {case}");
        assert!(harness.world.is_free(), "case {case}");
    }
}

// Nothing happens to the object after that, so no later event would tell.
#[test]
fn a_claim_ends_where_the_watch_shows_the_end_of_a_rollout_before_the_answer_to_its_write() {
    let mut harness = Harness::new(1);
    let id = workload("web");
    let files = |content: u32| [("web", Some(desired(&id, content, "web")))];
    harness.read(reading("r1", &files(1)));
    harness.settle();
    harness.read(reading("r2", &files(2)));
    harness.engine.process_changes();
    let action = harness.decide(&id).action;
    assert!(matches!(action, Action::Apply(_)), "{action:?}");
    harness.engine.note_dispatch(&id, &action);
    let answer = harness.world.perform(&id, &action);
    harness.finish_rollouts();
    harness.deliver(usize::MAX);
    harness.engine.record_result(&id, &action, answer, harness.now);
    harness.engine.advance(harness.now);
    harness.keep_ledger();
    assert!(harness.world.is_free(), "{:?}", harness.world.ledger);
}

#[test]
fn each_pod_more_is_progress_and_pods_that_come_and_go_are_none() {
    let deadline = super::world::budget(1).deadline;
    // The new pods and the available ones, at two thirds of the deadline each.
    let check = |states: [(u32, u32); 3], expected: bool| {
        let mut harness = at_rest(1);
        harness.read(reading("r2", &both(2)));
        while !matches!(harness.step(&workload("web")), Some(Action::Apply(_))) {
            harness.step(&config("env"));
            harness.deliver(usize::MAX);
        }
        for (updated, available) in states {
            harness.pass_time(deadline * 2 / 3);
            let rv = harness.world.tick();
            let thing = harness.world.things.get_mut(&workload("web")).unwrap();
            let numbers = ReplicaStatus { updated, available, ready: available, ..super::world::all_ready() };
            (thing.rv, thing.numbers) = (rv, Some(numbers));
            harness.world.announce(&workload("web"));
            harness.deliver(usize::MAX);
            harness.engine.advance(harness.now);
        }
        assert_eq!(harness.engine.take_failed().is_empty(), expected, "{states:?}");
    };
    check([(1, 3), (2, 3), (2, 3)], true);
    check([(1, 2), (1, 3), (1, 3)], true);
    check([(1, 3), (1, 3), (1, 3)], false);
    check([(1, 3), (1, 2), (1, 3)], false);
    check([(2, 3), (1, 3), (1, 3)], false);
}
