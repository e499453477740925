//! Restarts for data that changed: inside the budget, after the configuration, once, and back
//! together.

use std::sync::Arc;

use serde_json::json;

use super::harness::Harness;
use super::world::{AuditEntry, FIRST, config, desired, reading, workload};
use crate::engine::*;
use crate::object::{ContentHash, ObjectId, Revision};

pub(super) fn data(id: &ObjectId, content: u32) -> ConfigData {
    ConfigData::of(id, &json!({"data": {"content": content.to_string()}}))
}

/// Returns a `ConfigMap` from git.
pub(super) fn env(content: u32) -> SharedDesiredObject {
    let mut env = (*desired(&config("env"), content, "env")).clone();
    env.config = Some(Box::new(ConfigRole::Data(data(&env.id, content))));
    Arc::new(env)
}

/// Returns a workload that uses the `ConfigMap` `env`, and `others`, which may be missing.
pub(super) fn web(content: u32, others: &[&str]) -> SharedDesiredObject {
    let mut web = (*desired(&workload("web"), content, "web")).clone();
    web.needs = [config("env")].into();
    let used: Vec<ObjectId> = ["env"].iter().chain(others).map(|name| config(name)).collect();
    web.config = Some(Box::new(ConfigRole::Uses(used.into())));
    Arc::new(web)
}

pub(super) fn key(secret: &[u8; 16]) -> ReadState<HashKey> {
    ReadState::Value(HashKey::of(secret).unwrap())
}

pub(super) fn both(
    env: SharedDesiredObject,
    web: SharedDesiredObject,
) -> [(&'static str, Option<SharedDesiredObject>); 2] {
    [("env", Some(env)), ("web", Some(web))]
}

/// Returns a cluster at rest, in which `web` uses `env` of git and `tls`, which is somebody else's.
pub(super) fn at_rest(most: u32) -> Harness {
    let mut harness = Harness::new(most);
    harness.read(reading("r1", &both(env(1), web(1, &["tls"]))));
    show_data(&mut harness, 1);
    harness.engine.set_config_key(key(&[1; 16]));
    harness.settle();
    harness.world.log.clear();
    harness
}

/// Shows the data of `tls` to the engine, as the cluster has them.
pub(super) fn show_data(harness: &mut Harness, content: u32) {
    let tls = config("tls");
    assert!(harness.engine.data_to_watch().contains(&tls));
    harness.engine.set_config_data(&tls, ReadState::Value(Some(data(&tls, content))));
}

fn started(harness: &Harness) -> ConfigStamp {
    harness.world.things[&workload("web")].config_stamp.unwrap()
}

/// Returns the hash in the pod template.
pub(super) fn carried(harness: &Harness) -> Option<ContentHash> {
    started(harness).template_hash()
}

fn reason(harness: &mut Harness, name: &ObjectId) -> String {
    harness.decide(name).reason.map(|reason| reason.to_string()).unwrap_or_default()
}

/// Starts a new process, which has read this revision and the data.
pub(super) fn begin_anew(harness: &mut Harness, revision: &str, env: SharedDesiredObject, tls: u32) {
    harness.engine = harness.fresh(3);
    harness.read(reading(revision, &both(env, web(1, &["tls"]))));
    show_data(harness, tls);
    harness.engine.set_config_key(key(&[1; 16]));
}

pub(super) fn wrote(names: &[ObjectId]) -> Vec<AuditEntry> {
    names.iter().cloned().map(AuditEntry::Changed).collect()
}

/// Keeps the pods of `web` from coming up with these data.
pub(super) fn spoil(harness: &mut Harness, web: &SharedDesiredObject, started: ConfigStamp) {
    harness.world.bad.insert(ContentHash::hash_bytes(format!("{} {}", web.hash, started.data).as_bytes()));
}

/// Returns the stamp that `web` starts with once these are in force.
pub(super) fn foreseen(
    harness: &Harness,
    files: &[(&str, Option<SharedDesiredObject>)],
    tls: u32,
) -> ConfigStamp {
    let mut other = harness.clone();
    other.read(reading("elsewhere", files));
    show_data(&mut other, tls);
    other.settle();
    started(&other)
}

#[test]
fn a_configuration_from_git_restarts_its_workload_once_and_after_it() {
    let mut harness = at_rest(3);
    assert_eq!(carried(&harness), None, "nothing is restarted for asking");
    harness.read(reading("r2", &[("env", Some(env(2)))]));
    harness.settle();
    assert_eq!(harness.world.log, wrote(&[config("env"), workload("web")]));
    assert!(carried(&harness).is_some());
    assert!(harness.world.is_free());
    let web = harness.world.things[&workload("web")].release.clone().unwrap();
    assert_eq!(web.revision, Revision::new("r1"), "its content came with that");
    // Back to what was there before, in the template too.
    harness.world.log.clear();
    harness.read(reading("r3", &[("env", Some(env(1)))]));
    harness.settle();
    assert_eq!(harness.world.log, wrote(&[config("env"), workload("web")]));
    assert_eq!(carried(&harness), None);
    harness.world.log.clear();
    harness.engine.mark_all();
    harness.settle();
    assert_eq!(harness.world.log, []);
}

#[test]
fn what_is_not_data_restarts_nothing() {
    let mut harness = at_rest(3);
    let mut labelled = (*env(2)).clone();
    labelled.config = env(1).config.clone();
    harness.read(reading("r2", &[("env", Some(Arc::new(labelled)))]));
    harness.settle();
    assert_eq!(harness.world.log, wrote(&[config("env")]));
}

#[test]
fn a_configuration_does_not_land_before_its_workload_may_restart() {
    let mut harness = at_rest(1);
    let other = |content| ("a", Some(desired(&workload("a"), content, "a")));
    harness.read(reading("r2", &[other(1)]));
    harness.settle();
    harness.world.log.clear();
    harness.read(reading("r3", &[other(2), ("env", Some(env(2)))]));
    for id in [workload("a"), config("env"), workload("web"), config("env")] {
        harness.step(&id);
    }
    assert_eq!(harness.world.log, wrote(&[workload("a")]));
    assert_eq!(
        reason(&mut harness, &config("env")),
        "it is released together with Deployment shop/web, which has not started to roll out"
    );
    harness.settle();
    assert_eq!(harness.world.log[1..], wrote(&[config("env"), workload("web")]));
}

#[test]
fn both_in_one_commit_are_one_rollout() {
    let mut harness = at_rest(3);
    harness.read(reading("r2", &both(env(2), web(2, &["tls"]))));
    harness.settle();
    assert_eq!(harness.world.log, wrote(&[config("env"), workload("web")]));
}

#[test]
fn data_of_somebody_else_restart_within_the_budget() {
    let mut harness = at_rest(1);
    let other = |content| ("a", Some(desired(&workload("a"), content, "a")));
    harness.read(reading("r2", &[other(1)]));
    harness.settle();
    harness.world.log.clear();
    harness.read(reading("r3", &[other(2)]));
    harness.step(&workload("a"));
    show_data(&mut harness, 2);
    harness.step(&workload("web"));
    assert_eq!(harness.world.log, wrote(&[workload("a")]));
    assert!(matches!(harness.decide(&workload("web")).reason, Some(Reason::Budget(_))));
    harness.settle();
    assert_eq!(harness.world.log[1..], wrote(&[workload("web")]));
    let changed = harness.engine.changed_data(&workload("web"), started(&harness));
    assert_eq!(changed.to_string(), "ConfigMap tls");
    assert!(harness.world.is_free());
}

// The writer of the data may change them again and again.
#[test]
fn new_content_goes_before_a_restart_for_data_of_somebody_else() {
    let mut harness = at_rest(1);
    let [a, web, z] = ["a", "web", "z"].map(workload);
    let files = |content| [("a", Some(desired(&a, content, "a"))), ("z", Some(desired(&z, content, "z")))];
    harness.read(reading("r2", &files(1)));
    harness.settle();
    harness.world.log.clear();
    harness.read(reading("r3", &files(2)));
    harness.step(&a);
    show_data(&mut harness, 2);
    for id in [&web, &z] {
        harness.step(id);
        assert!(matches!(harness.decide(id).reason, Some(Reason::Budget(_))), "{id}");
    }
    assert_eq!(harness.world.log, wrote(std::slice::from_ref(&a)));
    harness.settle();
    assert_eq!(harness.world.log[1..], wrote(&[z, web]));
}

#[test]
fn a_configuration_that_breaks_pods_goes_back_with_its_workload() {
    let mut harness = at_rest(3);
    let before = harness.world.things[&workload("web")].clone();
    let bad = foreseen(&harness, &[("env", Some(env(2)))], 1);
    spoil(&mut harness, &web(1, &["tls"]), bad);
    harness.read(reading("r2", &[("env", Some(env(2)))]));
    harness.settle();
    let there_and_back = wrote(&[config("env"), workload("web"), config("env"), workload("web")]);
    assert_eq!(harness.world.log, there_and_back);
    assert_eq!(carried(&harness), before.config_stamp.unwrap().template_hash());
    let why = reason(&mut harness, &config("env"));
    let named = "revision r2 failed: Deployment shop/web, restarted as the data of ConfigMap env changed: ";
    assert!(why.starts_with(named) && why.ends_with("it is back at revision r1"), "{why}");
    // It is not tried again, by whatever process.
    harness.engine.mark_all();
    harness.settle();
    begin_anew(&mut harness, "r2", env(2), 1);
    harness.settle();
    assert_eq!(harness.world.log, there_and_back);
    // Another one is.
    harness.read(reading("r3", &[("env", Some(env(3)))]));
    harness.settle();
    assert_eq!(harness.world.log[4..], wrote(&[config("env"), workload("web")]));
    assert!(harness.world.rejections.is_empty());
}

#[test]
fn a_rollback_that_fails_too_is_held() {
    let mut harness = at_rest(3);
    let bad = foreseen(&harness, &[("env", Some(env(2)))], 1);
    for bad in [bad, started(&harness)] {
        spoil(&mut harness, &web(1, &["tls"]), bad);
    }
    harness.read(reading("r2", &[("env", Some(env(2)))]));
    harness.settle();
    assert_eq!(harness.world.log.len(), 4, "{:?}", harness.world.log);
    let why = reason(&mut harness, &workload("web"));
    assert!(why.contains("going back failed too"), "{why}");
    assert!(harness.engine.workloads_in_flight().is_empty());
}

#[test]
fn bad_data_of_somebody_else_are_reported_and_held_until_they_change() {
    let mut harness = at_rest(3);
    let bad = foreseen(&harness, &[], 2);
    spoil(&mut harness, &web(1, &["tls"]), bad);
    show_data(&mut harness, 2);
    harness.settle();
    assert_eq!(harness.world.log, wrote(&[workload("web")]));
    let why = reason(&mut harness, &workload("web"));
    let named = "Deployment shop/web, restarted as the data of ConfigMap tls changed, failed: ";
    assert!(why.starts_with(named), "{why}");
    assert!(harness.engine.workloads_in_flight().is_empty());
    harness.engine.mark_all();
    harness.settle();
    // A process that starts now knows it too.
    begin_anew(&mut harness, "r1", env(1), 2);
    harness.settle();
    assert_eq!(harness.world.log.len(), 1, "{:?}", harness.world.log);
    assert_eq!(harness.world.rejections.len(), 1);
    show_data(&mut harness, 3);
    harness.settle();
    assert_eq!(harness.world.log[1..], wrote(&[workload("web")]));
    assert_eq!(reason(&mut harness, &workload("web")), "");
    assert!(harness.world.rejections.is_empty());
}

#[test]
fn what_is_not_known_restarts_nothing_and_strips_nothing() {
    let mut harness = at_rest(3);
    show_data(&mut harness, 2);
    harness.settle();
    let hashed = carried(&harness);
    assert!(hashed.is_some());
    harness.world.log.clear();
    let files = || both(env(1), web(1, &["tls"]));
    // Nothing is known of the data, then that they cannot be read, then of the key.
    for case in 0..4 {
        harness.engine = harness.fresh(3);
        harness.read(reading("r1", &files()));
        match case {
            0 => {}
            1 => harness.engine.set_config_key(key(&[1; 16])),
            2 => {
                harness.engine.set_config_key(key(&[1; 16]));
                harness.engine.set_config_data(&config("tls"), ReadState::Unreadable("forbidden".into()));
            }
            _ => {
                show_data(&mut harness, 3);
                harness.engine.set_config_key(ReadState::Unreadable("forbidden".into()));
            }
        }
        harness.engine.mark_all();
        harness.settle();
        assert_eq!((harness.world.log.len(), carried(&harness)), (0, hashed), "case {case}");
    }
    // A commit goes on where nothing can be known, and waits where that is only a matter of time.
    harness.read(reading("r2", &[("env", Some(env(2)))]));
    harness.settle();
    assert_eq!(harness.world.log, wrote(&[config("env")]));
    harness.engine = harness.fresh(3);
    harness.read(reading("r3", &both(env(3), web(1, &["tls"]))));
    harness.engine.set_config_key(key(&[1; 16]));
    harness.settle();
    assert_eq!(reason(&mut harness, &config("env")), "reading ConfigMap shop/tls, whose data its pods use");
    show_data(&mut harness, 2);
    harness.settle();
    assert_eq!(harness.world.log[1..], wrote(&[config("env"), workload("web")]));
}

#[test]
fn another_key_restarts_nothing() {
    let mut harness = at_rest(3);
    show_data(&mut harness, 2);
    harness.settle();
    let hashed = carried(&harness);
    harness.world.log.clear();
    harness.engine.set_config_key(key(&[2; 16]));
    harness.settle();
    // The annotation on the workload itself is written anew.
    assert_eq!((harness.world.log.len(), carried(&harness)), (1, hashed));
    assert_eq!(harness.world.things[&workload("web")].phase, WorkloadPhase::Settled);
    show_data(&mut harness, 3);
    harness.settle();
    assert_eq!(harness.world.log.len(), 2);
    assert!(carried(&harness).is_some() && carried(&harness) != hashed);
}

#[test]
fn what_may_be_missing_counts_as_missing_and_what_may_not_restarts_nothing_when_it_goes() {
    let mut harness = at_rest(3);
    harness.engine.set_config_data(&config("tls"), ReadState::Value(None));
    harness.settle();
    assert_eq!(harness.world.log, wrote(&[workload("web")]));
    // A required one of somebody else's.
    let mut harness = Harness::new(3);
    let mut strict = (*web(1, &["tls"])).clone();
    strict.needs = [config("env"), config("tls")].into();
    harness.read(reading("r1", &both(env(1), Arc::new(strict))));
    show_data(&mut harness, 1);
    harness.engine.set_config_key(key(&[1; 16]));
    harness.settle();
    harness.world.log.clear();
    harness.engine.set_config_data(&config("tls"), ReadState::Value(None));
    harness.settle();
    assert_eq!(harness.world.log, []);
    show_data(&mut harness, 1);
    harness.settle();
    assert_eq!(harness.world.log, []);
    show_data(&mut harness, 2);
    harness.settle();
    assert_eq!(harness.world.log, wrote(&[workload("web")]));
}

#[test]
fn asking_for_restarts_and_no_longer_asking_restart_nothing() {
    let mut harness = Harness::new(3);
    let plain = || {
        let mut plain = (*web(1, &["tls"])).clone();
        (plain.config, plain.hash) = (None, ContentHash::hash_bytes(b"plain"));
        Arc::new(plain)
    };
    harness.read(reading("r1", &both(env(1), plain())));
    harness.settle();
    assert!(!harness.engine.is_key_needed());
    harness.world.log.clear();
    let rolled = |harness: &Harness| harness.engine.workloads_in_flight().len();
    let asking = || {
        let mut asking = (*web(1, &["tls"])).clone();
        asking.template = plain().template;
        Some(Arc::new(asking))
    };
    harness.read(reading("r2", &[("web", asking())]));
    show_data(&mut harness, 1);
    harness.engine.set_config_key(key(&[1; 16]));
    assert!(harness.engine.is_key_needed());
    harness.settle();
    assert_eq!((carried(&harness), rolled(&harness)), (None, 0));
    show_data(&mut harness, 2);
    harness.settle();
    let hashed = carried(&harness);
    assert!(hashed.is_some());
    harness.read(reading("r3", &[("web", Some(plain()))]));
    harness.settle();
    assert_eq!((carried(&harness), harness.engine.is_key_needed()), (hashed, false));
}

#[test]
fn a_pause_and_a_hold_on_the_configuration_keep_pods_as_they_are() {
    let mut harness = at_rest(3);
    harness.world.paused = Some(PauseIntent { token: "t".into(), reason: "fair".into() });
    let inventory = harness.engine.source(FIRST).inventory.clone().unwrap();
    harness
        .engine
        .set_inventory(FIRST, Inventory { paused: harness.world.paused.clone(), ..inventory.clone() });
    show_data(&mut harness, 2);
    harness.settle();
    assert_eq!(harness.world.log, []);
    assert_eq!(reason(&mut harness, &workload("web")), "source test is paused: fair");
    harness.world.paused = None;
    let resumed = harness.engine.source(FIRST).inventory.clone().unwrap();
    harness.engine.set_inventory(FIRST, Inventory { paused: None, ..resumed });
    harness.settle();
    assert_eq!(harness.world.log, wrote(&[workload("web")]));
}

#[test]
fn a_process_that_ends_anywhere_restarts_once() {
    for turns in 0..40 {
        let mut harness = at_rest(3);
        harness.read(reading("r2", &[("env", Some(env(2)))]));
        for _ in 0..turns {
            harness.turn();
        }
        harness.world.events.clear();
        begin_anew(&mut harness, "r2", env(2), 1);
        harness.engine.mark_all();
        harness.settle();
        assert_eq!(harness.world.log, wrote(&[config("env"), workload("web")]), "after {turns} turns");
        assert!(harness.world.is_free());
    }
}

#[test]
fn steps_hold_a_restart_as_any_rollout() {
    let mut harness = Harness::new(3);
    let mut stepped = (*web(1, &["tls"])).clone();
    let manifest = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"annotations": {"rhumb.dev/steps": "1"}},
        "spec": {"replicas": 3}});
    stepped.steps = Steps::of(&manifest).map(Box::new);
    assert!(stepped.steps.is_some());
    harness.read(reading("r1", &both(env(1), Arc::new(stepped))));
    show_data(&mut harness, 1);
    harness.engine.set_config_key(key(&[1; 16]));
    harness.settle();
    show_data(&mut harness, 2);
    let Action::Apply(apply) = harness.decide(&workload("web")).action else {
        panic!("it is to be restarted")
    };
    assert_eq!(apply.variant.overlay, Some(RolloutOverlay::Surge { pods: 1, step: 1 }));
    assert_eq!((apply.purpose, apply.restarts), (ApplyPurpose::Restart, RestartRisk::Possible));
    harness.step(&workload("web"));
    harness.deliver(usize::MAX);
    for _ in 0..3 {
        harness.step(&workload("web"));
    }
    let step_overlay = RolloutOverlayState::Overlaid(RolloutOverlay::Surge { pods: 1, step: 1 });
    assert_eq!(harness.world.things[&workload("web")].shown, step_overlay);
    // The data are as they were: most pods have them still, and no step is in the way.
    show_data(&mut harness, 1);
    harness.step(&workload("web"));
    let thing = &harness.world.things[&workload("web")];
    assert_eq!((thing.shown, carried(&harness)), (RolloutOverlayState::Plain, None));
}

#[test]
fn a_configuration_of_an_earlier_wave_does_not_wait_for_a_workload_that_waits_for_it() {
    let later = |content| {
        let mut later = (*web(content, &["tls"])).clone();
        later.wave = 1;
        Arc::new(later)
    };
    for content in [1, 2] {
        let mut harness = Harness::new(3);
        harness.read(reading("r1", &both(env(1), later(1))));
        show_data(&mut harness, 1);
        harness.engine.set_config_key(key(&[1; 16]));
        harness.settle();
        harness.world.log.clear();
        harness.read(reading("r2", &both(env(2), later(content))));
        harness.settle();
        assert_eq!(harness.world.log, wrote(&[config("env"), workload("web")]), "content {content}");
    }
}
