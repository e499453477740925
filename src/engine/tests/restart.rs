//! Restarts for data that changed: inside the budget, after the configuration, once, and back together.

use std::sync::Arc;

use serde_json::json;

use super::rig::Harness;
use super::world::{AuditEntry, config, desired, reading, workload};
use crate::engine::*;
use crate::object::{ContentHash, ObjectId, Revision};

pub(super) fn data(id: &ObjectId, content: u32) -> ConfigData {
    ConfigData::of(id, &json!({"data": {"content": content.to_string()}}))
}

/// Returns a `ConfigMap` from git.
pub(super) fn env(content: u32) -> SharedDesired {
    let mut env = (*desired(&config("env"), content, "env")).clone();
    env.config = Some(Box::new(ConfigRole::Data(data(&env.id, content))));
    Arc::new(env)
}

/// Returns a workload that uses the `ConfigMap` `env`, and `others`, which may be missing.
pub(super) fn web(content: u32, others: &[&str]) -> SharedDesired {
    let mut web = (*desired(&workload("web"), content, "web")).clone();
    web.needs = [config("env")].into();
    let used: Vec<ObjectId> = ["env"].iter().chain(others).map(|name| config(name)).collect();
    web.config = Some(Box::new(ConfigRole::Uses(used.into())));
    Arc::new(web)
}

pub(super) fn key(secret: &[u8; 16]) -> ReadState<HashKey> {
    ReadState::Value(HashKey::of(secret).unwrap())
}

pub(super) fn both(env: SharedDesired, web: SharedDesired) -> [(&'static str, Option<SharedDesired>); 2] {
    [("env", Some(env)), ("web", Some(web))]
}

/// Returns a cluster at rest, in which `web` uses `env` of git and `tls`, which is somebody else's.
pub(super) fn at_rest(most: u32) -> Harness {
    let mut rig = Harness::new(most);
    rig.read(reading("r1", &both(env(1), web(1, &["tls"]))));
    tell(&mut rig, 1);
    rig.engine.config_key(key(&[1; 16]));
    rig.settle();
    rig.world.log.clear();
    rig
}

/// The data of `tls` as the cluster shows them.
pub(super) fn tell(rig: &mut Harness, content: u32) {
    let tls = config("tls");
    assert!(rig.engine.data_to_follow().contains(&tls));
    rig.engine.config_data(&tls, ReadState::Value(Some(data(&tls, content))));
}

fn started(rig: &Harness) -> ConfigStamp {
    rig.world.things[&workload("web")].started.unwrap()
}

/// Returns the hash in the pod template.
pub(super) fn carried(rig: &Harness) -> Option<ContentHash> {
    started(rig).template()
}

fn reason(rig: &mut Harness, name: &ObjectId) -> String {
    rig.decide(name).reason.map(|reason| reason.to_string()).unwrap_or_default()
}

/// A new process takes over, and has read this revision and the data.
pub(super) fn begin_anew(rig: &mut Harness, revision: &str, env: SharedDesired, tls: u32) {
    rig.engine = rig.fresh(3);
    rig.read(reading(revision, &both(env, web(1, &["tls"]))));
    tell(rig, tls);
    rig.engine.config_key(key(&[1; 16]));
}

pub(super) fn wrote(names: &[ObjectId]) -> Vec<AuditEntry> {
    names.iter().cloned().map(AuditEntry::Changed).collect()
}

/// The pods of `web` do not come up with these data.
pub(super) fn spoil(rig: &mut Harness, web: &SharedDesired, started: ConfigStamp) {
    rig.world.bad.insert(ContentHash::of_bytes(format!("{} {}", web.hash, started.data).as_bytes()));
}

/// Returns the stamp that `web` starts with once these are in force.
pub(super) fn foreseen(rig: &Harness, files: &[(&str, Option<SharedDesired>)], tls: u32) -> ConfigStamp {
    let mut other = rig.clone();
    other.read(reading("elsewhere", files));
    tell(&mut other, tls);
    other.settle();
    started(&other)
}

#[test]
fn a_configuration_from_git_restarts_its_workload_once_and_after_it() {
    let mut rig = at_rest(3);
    assert_eq!(carried(&rig), None, "nothing is restarted for asking");
    rig.read(reading("r2", &[("env", Some(env(2)))]));
    rig.settle();
    assert_eq!(rig.world.log, wrote(&[config("env"), workload("web")]));
    assert!(carried(&rig).is_some());
    assert!(rig.world.is_free());
    let web = rig.world.things[&workload("web")].release.clone().unwrap();
    assert_eq!(web.revision, Revision::new("r1"), "its content came with that");
    // Back to what was there before, in the template too.
    rig.world.log.clear();
    rig.read(reading("r3", &[("env", Some(env(1)))]));
    rig.settle();
    assert_eq!(rig.world.log, wrote(&[config("env"), workload("web")]));
    assert_eq!(carried(&rig), None);
    rig.world.log.clear();
    rig.engine.mark_all();
    rig.settle();
    assert_eq!(rig.world.log, []);
}

#[test]
fn what_is_not_data_restarts_nothing() {
    let mut rig = at_rest(3);
    let mut labelled = (*env(2)).clone();
    labelled.config = env(1).config.clone();
    rig.read(reading("r2", &[("env", Some(Arc::new(labelled)))]));
    rig.settle();
    assert_eq!(rig.world.log, wrote(&[config("env")]));
}

#[test]
fn a_configuration_does_not_land_before_its_workload_may_restart() {
    let mut rig = at_rest(1);
    let other = |content| ("a", Some(desired(&workload("a"), content, "a")));
    rig.read(reading("r2", &[other(1)]));
    rig.settle();
    rig.world.log.clear();
    rig.read(reading("r3", &[other(2), ("env", Some(env(2)))]));
    for id in [workload("a"), config("env"), workload("web"), config("env")] {
        rig.step(&id);
    }
    assert_eq!(rig.world.log, wrote(&[workload("a")]));
    assert_eq!(
        reason(&mut rig, &config("env")),
        "it is released together with Deployment shop/web, which has not begun to roll"
    );
    rig.settle();
    assert_eq!(rig.world.log[1..], wrote(&[config("env"), workload("web")]));
}

#[test]
fn both_in_one_commit_are_one_rollout() {
    let mut rig = at_rest(3);
    rig.read(reading("r2", &both(env(2), web(2, &["tls"]))));
    rig.settle();
    assert_eq!(rig.world.log, wrote(&[config("env"), workload("web")]));
}

#[test]
fn data_of_somebody_else_restart_within_the_budget() {
    let mut rig = at_rest(1);
    let other = |content| ("a", Some(desired(&workload("a"), content, "a")));
    rig.read(reading("r2", &[other(1)]));
    rig.settle();
    rig.world.log.clear();
    rig.read(reading("r3", &[other(2)]));
    rig.step(&workload("a"));
    tell(&mut rig, 2);
    rig.step(&workload("web"));
    assert_eq!(rig.world.log, wrote(&[workload("a")]));
    assert!(matches!(rig.decide(&workload("web")).reason, Some(Reason::Budget(_))));
    rig.settle();
    assert_eq!(rig.world.log[1..], wrote(&[workload("web")]));
    assert_eq!(rig.engine.changed_words(&workload("web"), started(&rig)), "ConfigMap tls");
    assert!(rig.world.is_free());
}

#[test]
fn a_configuration_that_breaks_pods_goes_back_with_its_workload() {
    let mut rig = at_rest(3);
    let before = rig.world.things[&workload("web")].clone();
    let bad = foreseen(&rig, &[("env", Some(env(2)))], 1);
    spoil(&mut rig, &web(1, &["tls"]), bad);
    rig.read(reading("r2", &[("env", Some(env(2)))]));
    rig.settle();
    let there_and_back = wrote(&[config("env"), workload("web"), config("env"), workload("web")]);
    assert_eq!(rig.world.log, there_and_back);
    assert_eq!(carried(&rig), before.started.unwrap().template());
    let told = reason(&mut rig, &config("env"));
    let named = "revision r2 failed: Deployment shop/web, restarted as the data of ConfigMap env changed: ";
    assert!(told.starts_with(named) && told.ends_with("it is back at revision r1"), "{told}");
    // It is not tried again, by whatever process.
    rig.engine.mark_all();
    rig.settle();
    begin_anew(&mut rig, "r2", env(2), 1);
    rig.settle();
    assert_eq!(rig.world.log, there_and_back);
    // Another one is.
    rig.read(reading("r3", &[("env", Some(env(3)))]));
    rig.settle();
    assert_eq!(rig.world.log[4..], wrote(&[config("env"), workload("web")]));
    assert!(rig.world.rejections.is_empty());
}

#[test]
fn a_way_back_that_fails_too_is_held() {
    let mut rig = at_rest(3);
    let bad = foreseen(&rig, &[("env", Some(env(2)))], 1);
    for bad in [bad, started(&rig)] {
        spoil(&mut rig, &web(1, &["tls"]), bad);
    }
    rig.read(reading("r2", &[("env", Some(env(2)))]));
    rig.settle();
    assert_eq!(rig.world.log.len(), 4, "{:?}", rig.world.log);
    let told = reason(&mut rig, &workload("web"));
    assert!(told.contains("going back failed too"), "{told}");
    assert!(rig.engine.in_flight().is_empty());
}

#[test]
fn bad_data_of_somebody_else_are_told_and_held_until_they_change() {
    let mut rig = at_rest(3);
    let bad = foreseen(&rig, &[], 2);
    spoil(&mut rig, &web(1, &["tls"]), bad);
    tell(&mut rig, 2);
    rig.settle();
    assert_eq!(rig.world.log, wrote(&[workload("web")]));
    let told = reason(&mut rig, &workload("web"));
    let named = "Deployment shop/web, restarted as the data of ConfigMap tls changed, failed: ";
    assert!(told.starts_with(named), "{told}");
    assert!(rig.engine.in_flight().is_empty());
    rig.engine.mark_all();
    rig.settle();
    // A process that starts now knows it too.
    begin_anew(&mut rig, "r1", env(1), 2);
    rig.settle();
    assert_eq!(rig.world.log.len(), 1, "{:?}", rig.world.log);
    assert_eq!(rig.world.rejections.len(), 1);
    tell(&mut rig, 3);
    rig.settle();
    assert_eq!(rig.world.log[1..], wrote(&[workload("web")]));
    assert_eq!(reason(&mut rig, &workload("web")), "");
    assert!(rig.world.rejections.is_empty());
}

#[test]
fn what_is_not_known_restarts_nothing_and_strips_nothing() {
    let mut rig = at_rest(3);
    tell(&mut rig, 2);
    rig.settle();
    let hashed = carried(&rig);
    assert!(hashed.is_some());
    rig.world.log.clear();
    let files = || both(env(1), web(1, &["tls"]));
    // Nothing is known of the data, then that they cannot be read, then of the key.
    for case in 0..4 {
        rig.engine = rig.fresh(3);
        rig.read(reading("r1", &files()));
        match case {
            0 => {}
            1 => rig.engine.config_key(key(&[1; 16])),
            2 => {
                rig.engine.config_key(key(&[1; 16]));
                rig.engine.config_data(&config("tls"), ReadState::Unreadable("forbidden".into()));
            }
            _ => {
                tell(&mut rig, 3);
                rig.engine.config_key(ReadState::Unreadable("forbidden".into()));
            }
        }
        rig.engine.mark_all();
        rig.settle();
        assert_eq!((rig.world.log.len(), carried(&rig)), (0, hashed), "case {case}");
    }
    // A commit goes on where nothing can be known, and waits where that is only a matter of time.
    rig.read(reading("r2", &[("env", Some(env(2)))]));
    rig.settle();
    assert_eq!(rig.world.log, wrote(&[config("env")]));
    rig.engine = rig.fresh(3);
    rig.read(reading("r3", &both(env(3), web(1, &["tls"]))));
    rig.engine.config_key(key(&[1; 16]));
    rig.settle();
    assert_eq!(reason(&mut rig, &config("env")), "what is in ConfigMap shop/tls is being read");
    tell(&mut rig, 2);
    rig.settle();
    assert_eq!(rig.world.log[1..], wrote(&[config("env"), workload("web")]));
}

#[test]
fn another_key_restarts_nothing() {
    let mut rig = at_rest(3);
    tell(&mut rig, 2);
    rig.settle();
    let hashed = carried(&rig);
    rig.world.log.clear();
    rig.engine.config_key(key(&[2; 16]));
    rig.settle();
    // The annotation on the workload itself is written anew.
    assert_eq!((rig.world.log.len(), carried(&rig)), (1, hashed));
    assert_eq!(rig.world.things[&workload("web")].phase, RolloutPhase::Settled);
    tell(&mut rig, 3);
    rig.settle();
    assert_eq!(rig.world.log.len(), 2);
    assert!(carried(&rig).is_some() && carried(&rig) != hashed);
}

#[test]
fn what_may_be_missing_counts_as_missing_and_what_may_not_restarts_nothing_when_it_goes() {
    let mut rig = at_rest(3);
    rig.engine.config_data(&config("tls"), ReadState::Value(None));
    rig.settle();
    assert_eq!(rig.world.log, wrote(&[workload("web")]));
    // A required one of somebody else's.
    let mut rig = Harness::new(3);
    let mut strict = (*web(1, &["tls"])).clone();
    strict.needs = [config("env"), config("tls")].into();
    rig.read(reading("r1", &both(env(1), Arc::new(strict))));
    tell(&mut rig, 1);
    rig.engine.config_key(key(&[1; 16]));
    rig.settle();
    rig.world.log.clear();
    rig.engine.config_data(&config("tls"), ReadState::Value(None));
    rig.settle();
    assert_eq!(rig.world.log, []);
    tell(&mut rig, 1);
    rig.settle();
    assert_eq!(rig.world.log, []);
    tell(&mut rig, 2);
    rig.settle();
    assert_eq!(rig.world.log, wrote(&[workload("web")]));
}

#[test]
fn asking_for_restarts_and_no_longer_asking_restart_nothing() {
    let mut rig = Harness::new(3);
    let plain = || {
        let mut plain = (*web(1, &["tls"])).clone();
        (plain.config, plain.hash) = (None, ContentHash::of_bytes(b"plain"));
        Arc::new(plain)
    };
    rig.read(reading("r1", &both(env(1), plain())));
    rig.settle();
    assert!(!rig.engine.needs_key());
    rig.world.log.clear();
    let rolled = |rig: &Harness| rig.engine.in_flight().len();
    let asking = || {
        let mut asking = (*web(1, &["tls"])).clone();
        asking.template = plain().template;
        Some(Arc::new(asking))
    };
    rig.read(reading("r2", &[("web", asking())]));
    tell(&mut rig, 1);
    rig.engine.config_key(key(&[1; 16]));
    assert!(rig.engine.needs_key());
    rig.settle();
    assert_eq!((carried(&rig), rolled(&rig)), (None, 0));
    tell(&mut rig, 2);
    rig.settle();
    let hashed = carried(&rig);
    assert!(hashed.is_some());
    rig.read(reading("r3", &[("web", Some(plain()))]));
    rig.settle();
    assert_eq!((carried(&rig), rig.engine.needs_key()), (hashed, false));
}

#[test]
fn a_pause_and_a_hold_on_the_configuration_keep_pods_as_they_are() {
    let mut rig = at_rest(3);
    rig.world.paused = Some(PauseIntent { token: "t".into(), reason: "fair".into() });
    let inventory = rig.engine.source(0).inventory.clone().unwrap();
    rig.engine.inventory(0, Inventory { paused: rig.world.paused.clone(), ..inventory.clone() });
    tell(&mut rig, 2);
    rig.settle();
    assert_eq!(rig.world.log, []);
    assert_eq!(reason(&mut rig, &workload("web")), "source test is paused: fair");
    rig.world.paused = None;
    let resumed = rig.engine.source(0).inventory.clone().unwrap();
    rig.engine.inventory(0, Inventory { paused: None, ..resumed });
    rig.settle();
    assert_eq!(rig.world.log, wrote(&[workload("web")]));
}

#[test]
fn a_process_that_ends_anywhere_restarts_once() {
    for turns in 0..40 {
        let mut rig = at_rest(3);
        rig.read(reading("r2", &[("env", Some(env(2)))]));
        for _ in 0..turns {
            rig.turn();
        }
        rig.world.events.clear();
        begin_anew(&mut rig, "r2", env(2), 1);
        rig.engine.mark_all();
        rig.settle();
        assert_eq!(rig.world.log, wrote(&[config("env"), workload("web")]), "after {turns} turns");
        assert!(rig.world.is_free());
    }
}

#[test]
fn steps_hold_a_restart_as_any_rollout() {
    let mut rig = Harness::new(3);
    let mut stepped = (*web(1, &["tls"])).clone();
    let manifest = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"annotations": {"rhumb.dev/steps": "1"}},
        "spec": {"replicas": 3}});
    stepped.steps = Steps::of(&manifest).map(Box::new);
    assert!(stepped.steps.is_some());
    rig.read(reading("r1", &both(env(1), Arc::new(stepped))));
    tell(&mut rig, 1);
    rig.engine.config_key(key(&[1; 16]));
    rig.settle();
    tell(&mut rig, 2);
    let Action::Apply(apply) = rig.decide(&workload("web")).action else { panic!("it is to be restarted") };
    assert_eq!(apply.form.overlay, Some(Overlay::Surge { pods: 1, step: 1 }));
    assert_eq!((apply.purpose, apply.restarts), (ApplyPurpose::Restart, RestartRisk::Maybe));
    rig.step(&workload("web"));
    rig.deliver(usize::MAX);
    for _ in 0..3 {
        rig.step(&workload("web"));
    }
    let held = OverlayState::Under(Overlay::Surge { pods: 1, step: 1 });
    assert_eq!(rig.world.things[&workload("web")].shown, held);
    // The data are as they were: most pods have them still, and no step is in the way.
    tell(&mut rig, 1);
    rig.step(&workload("web"));
    let thing = &rig.world.things[&workload("web")];
    assert_eq!((thing.shown, carried(&rig)), (OverlayState::Plain, None));
}

#[test]
fn a_configuration_of_an_earlier_wave_does_not_wait_for_a_workload_that_waits_for_it() {
    let later = |content| {
        let mut later = (*web(content, &["tls"])).clone();
        later.wave = 1;
        Arc::new(later)
    };
    for content in [1, 2] {
        let mut rig = Harness::new(3);
        rig.read(reading("r1", &both(env(1), later(1))));
        tell(&mut rig, 1);
        rig.engine.config_key(key(&[1; 16]));
        rig.settle();
        rig.world.log.clear();
        rig.read(reading("r2", &both(env(2), later(content))));
        rig.settle();
        assert_eq!(rig.world.log, wrote(&[config("env"), workload("web")]), "content {content}");
    }
}
