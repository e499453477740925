//! Restarts for data that changed: what fails, what comes in between, and what people hold.

use crate::object::annotations::{CONFIG_HASH, RELEASE};
use std::sync::Arc;

use super::harness::Harness;
use super::restart::{
    at_rest, begin_anew, both, carried, data, env, foreseen, key, show_data, spoil, web, wrote,
};
use super::world::{FIRST, SET, World, config, desired, reading, workload};
use crate::engine::*;
use crate::object::{ObjectId, Revision};

#[test]
fn a_bad_configuration_is_gone_back_from_wherever_the_process_ends() {
    for turns in 0..60 {
        let mut harness = at_rest(3);
        let bad = foreseen(&harness, &[("env", Some(env(2)))], 1);
        spoil(&mut harness, &web(1, &["tls"]), bad);
        harness.read(reading("r2", &[("env", Some(env(2)))]));
        for _ in 0..turns {
            harness.turn();
        }
        harness.world.events.clear();
        begin_anew(&mut harness, "r2", env(2), 1);
        harness.engine.mark_all();
        harness.settle();
        let there_and_back = [config("env"), workload("web"), config("env"), workload("web")];
        assert_eq!(harness.world.log, wrote(&there_and_back), "after {turns} turns");
        assert_eq!(carried(&harness), None, "after {turns} turns");
        assert!(harness.world.is_free(), "after {turns} turns");
        assert!(harness.engine.workloads_in_flight().is_empty());
    }
}

/// Returns three workloads that use the same, one after the other.
fn three(content: u32) -> Vec<(&'static str, Option<SharedDesiredObject>)> {
    let like = |name| {
        let mut like = (*web(1, &["tls"])).clone();
        let own = desired(&workload(name), 1, name);
        (like.id, like.hash, like.template) = (own.id.clone(), own.hash, own.template);
        like.origin = own.origin.clone();
        Some(Arc::new(like))
    };
    vec![("env", Some(env(content))), ("a", like("a")), ("b", like("b")), ("web", like("web"))]
}

#[test]
fn all_that_use_it_restart_one_after_the_other_and_go_back_together() {
    let mut harness = Harness::new(1);
    harness.read(reading("r1", &three(1)));
    show_data(&mut harness, 1);
    harness.engine.set_config_key(key(&[1; 16]));
    harness.settle();
    harness.world.log.clear();
    let mut most = 0;
    harness.read(reading("r2", &three(2)));
    for _ in 0..100 {
        harness.turn();
        most = most.max(harness.engine.workloads_in_flight().len());
    }
    harness.settle();
    let all = [config("env"), workload("a"), workload("b"), workload("web")];
    assert_eq!((harness.world.log.clone(), most), (wrote(&all), 1));
    // The last of them does not come up.
    harness.world.log.clear();
    let mut other = harness.clone();
    other.read(reading("elsewhere", &three(3)));
    other.settle();
    let bad = other.world.things[&workload("web")].runs().unwrap();
    harness.world.bad.insert(bad);
    harness.read(reading("r3", &three(3)));
    harness.settle();
    assert_eq!(harness.world.log.len(), 8, "{:?}", harness.world.log);
    let stamped_data =
        |harness: &Harness, name| harness.world.things[&workload(name)].config_stamp.unwrap().data;
    for name in ["a", "b", "web"] {
        assert_ne!(stamped_data(&harness, name), stamped_data(&other, name), "{name}");
    }
    assert_eq!(harness.world.things[&config("env")].release.clone().unwrap().hash, env(2).hash);
    assert!(harness.world.is_free());
}

// The unit of the data does not name the workload, as its newest content is rejected already.
#[test]
fn data_that_break_a_workload_which_has_gone_back_before_go_back_too() {
    let mut harness = at_rest(3);
    harness.world.bad.insert(web(2, &["tls"]).hash);
    harness.read(reading("r2", &[("web", Some(web(2, &["tls"])))]));
    harness.settle();
    let shown = |harness: &Harness, id: ObjectId| harness.world.things[&id].release.clone().unwrap().hash;
    assert_eq!(shown(&harness, workload("web")), web(1, &["tls"]).hash);
    let before = carried(&harness);
    let bad = foreseen(&harness, &[("env", Some(env(3)))], 1);
    spoil(&mut harness, &web(1, &["tls"]), bad);
    harness.world.log.clear();
    harness.read(reading("r3", &[("env", Some(env(3)))]));
    harness.settle();
    let there_and_back = [config("env"), workload("web"), config("env"), workload("web")];
    assert_eq!(harness.world.log, wrote(&there_and_back));
    assert_eq!(shown(&harness, config("env")), env(1).hash);
    assert_eq!(carried(&harness), before);
    let rejections = &harness.world.rejections;
    assert!(rejections.iter().all(|one| one.action == RejectionAction::RollBack), "{rejections:?}");
    let causes: Vec<&str> = rejections.iter().map(|one| &*one.cause).collect();
    let named = "revision r3 failed: Deployment shop/web, restarted as the data of ConfigMap env changed: ";
    assert!(causes.iter().any(|cause| cause.starts_with(named)), "{causes:?}");
    assert!(harness.world.is_free());
    // Other data are tried.
    harness.read(reading("r4", &[("env", Some(env(4)))]));
    harness.settle();
    assert_eq!(harness.world.log[4..], wrote(&[config("env"), workload("web")]));
}

#[test]
fn what_changes_in_the_middle_of_a_restart_replaces_it() {
    let mut harness = at_rest(1);
    show_data(&mut harness, 2);
    harness.step(&workload("web"));
    assert_eq!(harness.world.log, wrote(&[workload("web")]));
    // Other data, and then another template.
    show_data(&mut harness, 3);
    harness.deliver(usize::MAX);
    harness.step(&workload("web"));
    assert_eq!(harness.world.log, wrote(&[workload("web"), workload("web")]));
    harness.read(reading("r2", &both(env(2), web(2, &["tls"]))));
    harness.settle();
    assert_eq!(harness.world.log[2..], wrote(&[config("env"), workload("web")]));
    assert_eq!(harness.world.things[&workload("web")].release.clone().unwrap().hash, web(2, &[]).hash);
    assert!(harness.world.is_free());
}

#[test]
fn what_somebody_takes_off_is_put_back_under_the_budget() {
    let mut harness = at_rest(3);
    show_data(&mut harness, 2);
    harness.settle();
    let hashed = carried(&harness);
    // The annotation of the workload: what the template carries is not known then, and may change.
    let rv = harness.world.tick();
    let thing = harness.world.things.get_mut(&workload("web")).unwrap();
    (thing.config_stamp, thing.rv) = (None, rv);
    let mut live = World::live(&workload("web"), thing);
    live.our_fields = Some(format!("{rv} {RELEASE} {CONFIG_HASH}").into());
    harness.engine.observe_object(&workload("web"), live);
    let Action::Apply(apply) = harness.decide(&workload("web")).action else {
        panic!("it is to be repaired")
    };
    assert_eq!((apply.purpose, apply.restarts), (ApplyPurpose::Repair, RestartRisk::Possible));
    assert_eq!(apply.variant.config_stamp.unwrap().template_hash(), hashed);
    // Nobody knows what it should be.
    harness.engine.forget_config(&config("tls"));
    let waits = harness.decide(&workload("web"));
    assert_eq!(waits.action, Action::Nothing, "{waits:?}");
}

#[test]
fn what_no_rollback_mends_holds_no_slot() {
    // A commit that changes nothing that pods read comes together with bad data of somebody else.
    let mut labelled = (*env(2)).clone();
    labelled.config = env(1).config.clone();
    let mut harness = at_rest(1);
    let bad = foreseen(&harness, &[], 2);
    spoil(&mut harness, &web(1, &["tls"]), bad);
    harness.engine.set_config_data(&config("tls"), ReadState::Value(Some(data(&config("tls"), 2))));
    harness.read(reading("r2", &[("env", Some(Arc::new(labelled)))]));
    harness.settle();
    assert_eq!(harness.world.ledger.claims.len(), 0, "{:?}", harness.world.log);
    assert!(harness.engine.workloads_in_flight().is_empty());
    let reason_of = |harness: &mut Harness, id| {
        harness.decide(&id).reason.map(|reason| reason.to_string()).unwrap_or_default()
    };
    let named = "revision r2 failed: Deployment shop/web, restarted as the data of ConfigMap tls changed: ";
    let ends = "; rhumb cannot bring back what is not in git; its content stays that of revision r1";
    let web = reason_of(&mut harness, workload("web"));
    assert!(web.starts_with(named) && web.ends_with(ends), "{web}");
    let env = reason_of(&mut harness, config("env"));
    assert!(env.ends_with("; it is back at revision r1"), "{env}");
    // Others go on.
    harness.read(reading("r3", &[("a", Some(desired(&workload("a"), 1, "a")))]));
    harness.settle();
    harness.read(reading("r4", &[("a", Some(desired(&workload("a"), 2, "a")))]));
    harness.settle();
    let a = desired(&workload("a"), 2, "a");
    assert_eq!(harness.world.things[&workload("a")].release.clone().unwrap().hash, a.hash);
    show_data(&mut harness, 3);
    harness.settle();
    assert_eq!(harness.world.things[&workload("web")].phase, WorkloadPhase::Settled);
}

#[test]
fn data_of_somebody_else_are_blamed_where_a_commit_restarts_nothing() {
    let mut labelled = (*web(2, &["tls"])).clone();
    labelled.template = web(1, &["tls"]).template;
    let labelled = Arc::new(labelled);
    let mut harness = at_rest(1);
    let bad = foreseen(&harness, &[("web", Some(labelled.clone()))], 2);
    spoil(&mut harness, &labelled, bad);
    harness.engine.set_config_data(&config("tls"), ReadState::Value(Some(data(&config("tls"), 2))));
    harness.read(reading("r2", &[("web", Some(labelled))]));
    harness.settle();
    let why = harness.world.rejections.iter().map(|rejection| &*rejection.cause).collect::<Vec<_>>().concat();
    let named = "revision r2 failed: Deployment shop/web, restarted as the data of ConfigMap tls changed: ";
    assert!(why.starts_with(named), "{why}");
    assert!(why.contains("rhumb cannot bring back what is not in git"), "{why}");
}

#[test]
fn a_hold_on_the_configuration_does_not_hold_up_its_workload() {
    let mut harness = at_rest(3);
    let until = "2999-01-01T00:00:00Z";
    let rv = harness.world.tick();
    let thing = harness.world.things.get_mut(&config("env")).unwrap();
    thing.objects_with_intents = ObjectIntents::parse(None, None, Some(&format!("t until={until} busy")));
    thing.rv = rv;
    assert!(thing.objects_with_intents.is_some());
    harness.world.announce(&config("env"));
    harness.settle();
    harness.read(reading("r2", &[("env", Some(env(2)))]));
    show_data(&mut harness, 2);
    harness.settle();
    assert_eq!(harness.world.log, wrote(&[workload("web")]), "for the Secret alone");
    let rv = harness.world.tick();
    let thing = harness.world.things.get_mut(&config("env")).unwrap();
    (thing.objects_with_intents, thing.rv) = (None, rv);
    harness.world.announce(&config("env"));
    harness.settle();
    assert_eq!(harness.world.log[1..], wrote(&[config("env"), workload("web")]));
}

/// Returns a member of a unit that restarts `web` for the data as they are now.
fn restarted_member(harness: &Harness) -> UnitMember {
    let restarted = harness.engine.config_restart_of(FIRST, &workload("web"));
    assert!(restarted.is_some());
    let content = Some(web(1, &["tls"]).hash);
    UnitMember { content, rollback_target: RollbackTarget::Unknown, restarted }
}

// Hashes under different keys say nothing of each other.
#[test]
fn changed_data_end_a_quarantine_and_another_key_does_not() {
    let check = |is_key_known: bool, secret: u8, tls: u32, expected: bool| {
        let mut harness = at_rest(3);
        let mut member = restarted_member(&harness);
        if let Some(restarted) = member.restarted.as_mut().filter(|_| !is_key_known) {
            restarted.key = None;
        }
        let unit = ReleaseUnit {
            inventory_id: SET.into(),
            revision: Revision::new("r1"),
            members: [(workload("web"), member)].into(),
        };
        let rejection = Rejection { unit, action: RejectionAction::Quarantine, cause: "it failed".into() };
        harness.engine.set_config_key(key(&[secret; 16]));
        show_data(&mut harness, tls);
        let is_over = harness.engine.is_superseded(FIRST, &rejection);
        assert_eq!(is_over, expected, "{is_key_known} {secret} {tls}");
    };
    check(true, 1, 1, false);
    check(true, 1, 2, true);
    check(true, 2, 1, false);
    check(true, 2, 2, false);
    check(false, 1, 2, false);
    check(false, 2, 1, false);
}

#[test]
fn data_that_pods_are_started_with_are_shown_under_another_key_too() {
    let mut harness = at_rest(3);
    let member = restarted_member(&harness);
    let is_shown = |harness: &Harness| harness.engine.is_member_shown(&workload("web"), &member);
    assert!(is_shown(&harness));
    let mut other = harness.clone();
    harness.engine.set_config_key(key(&[2; 16]));
    harness.settle();
    let written = harness.world.things[&workload("web")].config_stamp.unwrap();
    assert_ne!(Some(written.data), member.restarted.map(|restarted| restarted.data));
    assert!(is_shown(&harness));
    show_data(&mut other, 2);
    other.settle();
    assert!(!is_shown(&other));
}
