//! Rollbacks: all that one waits for, and that it goes back without. Another one beside an object
//! that is back already.

use std::time::Duration;

use super::harness::Harness;
use super::liveness::fail;
use super::restart;
use super::world::{FIRST, config, desired, reading, workload};
use crate::engine::facts::lookup_counts::take_count;
use crate::engine::*;
use crate::object::ObjectId;

/// The files of a revision, with contents of this number.
type FilePair = fn(u32) -> [(&'static str, Option<SharedDesiredObject>); 2];

/// Returns data, and a workload that needs them.
fn files(content: u32) -> [(&'static str, Option<SharedDesiredObject>); 2] {
    let mut web = (*desired(&workload("web"), content, "web")).clone();
    web.needs = [config("env")].into();
    [("env", Some(desired(&config("env"), content, "env"))), ("web", Some(web.into()))]
}

/// Returns the same, with data that nothing but a restart waits for.
fn optional_files(content: u32) -> [(&'static str, Option<SharedDesiredObject>); 2] {
    let mut web = (*restart::web(content, &["tls"])).clone();
    web.needs = Box::default();
    restart::both(restart::env(content), web.into())
}

/// Sends a write, which the server refuses for now.
fn refuse_for_now(harness: &mut Harness, id: &ObjectId, action: &Action) {
    let soon = Some(Duration::from_secs(1));
    let why = WriteFailure::Refused("no answer".into(), RefusalRule::Webhook, soon);
    harness.engine.note_dispatch(id, action);
    harness.engine.record_result(id, action, ActionResult::Failed(why), harness.now);
}

/// Lets the second content of a workload fail. Returns the writes from then on, where the server
/// refuses the earlier content of the data so many times for now.
fn go_back_refusing(files: FilePair, times: u32) -> Vec<ObjectId> {
    let (env, web) = (config("env"), workload("web"));
    let mut harness = Harness::new(1);
    harness.read(reading("r1", &files(1)));
    if harness.engine.data_to_watch().contains(&config("tls")) {
        restart::show_data(&mut harness, 1);
        harness.engine.set_config_key(restart::key(&[1; 16]));
    }
    harness.settle();
    harness.world.bad.insert(desired(&web, 2, "web").hash);
    harness.read(reading("r2", &files(2)));
    fail(&mut harness, &web);
    let (mut refused, mut written) = (0, Vec::new());
    for _ in 0..100 {
        harness.pass_time(Duration::from_secs(2));
        harness.handle(Input::Marked(env.clone()));
        for id in harness.next_marked() {
            let decision = harness.decide(&id);
            if id == env && matches!(decision.action, Action::Apply(_)) && refused < times {
                refused += 1;
                refuse_for_now(&mut harness, &id, &decision.action);
            } else if harness.act(&id, decision).is_some() {
                written.push(id);
            }
        }
    }
    assert_eq!(refused, times);
    written
}

// The server may accept them at the next try, and the pods would be started with what failed.
#[test]
fn a_rollback_waits_for_data_that_the_server_refuses_for_now_but_not_for_a_fifth_refusal() {
    let (env, web) = (config("env"), workload("web"));
    let all: [FilePair; 2] = [files, optional_files];
    for files in all {
        for times in [0, 1, 4] {
            assert_eq!(go_back_refusing(files, times), [env.clone(), web.clone()], "{times}");
        }
    }
    assert_eq!(go_back_refusing(files, 20), [web, env]);
}

#[test]
fn a_workload_keeps_its_slot_for_as_long_as_it_waits_for_data_that_are_refused_for_now() {
    let env = config("env");
    let mut harness = restart::at_rest(1);
    let bad = restart::foreseen(&harness, &[("env", Some(restart::env(2)))], 1);
    restart::spoil(&mut harness, &restart::web(1, &["tls"]), bad);
    harness.read(reading("r2", &[("env", Some(restart::env(2)))]));
    let good = restart::env(1).hash;
    let mut slots = Vec::new();
    for _ in 0..60 {
        harness.pass_time(Duration::from_secs(2));
        harness.handle(Input::Marked(env.clone()));
        for id in harness.next_marked() {
            let decision = harness.decide(&id);
            if matches!(&decision.action, Action::Apply(apply) if apply.desired.hash == good) {
                refuse_for_now(&mut harness, &id, &decision.action);
                harness.engine.advance(harness.now);
                slots.push(harness.engine.workloads_in_flight().len());
            } else {
                drop(harness.act(&id, decision));
            }
        }
    }
    assert_eq!(slots[..6], [1, 1, 1, 1, 0, 0], "{slots:?}");
}

// They wait for a workload that waits for the slot.
#[test]
fn a_rollback_waits_for_no_newer_content_of_data_that_restart_the_workload() {
    let (api, env, web) = (workload("api"), config("env"), workload("web"));
    let data = |content: u32, before: &[ObjectId]| {
        let mut data = (*restart::env(content)).clone();
        data.depends_on = before.to_vec().into();
        Some(SharedDesiredObject::from(data))
    };
    let api_file = |content: u32| ("api", Some(desired(&api, content, "api")));
    let web_file = |content: u32| ("web", Some(restart::web(content, &["tls"])));
    let mut harness = Harness::new(1);
    harness.read(reading("r1", &[api_file(1), ("env", data(1, &[])), web_file(1)]));
    restart::show_data(&mut harness, 1);
    harness.engine.set_config_key(restart::key(&[1; 16]));
    harness.settle();
    harness.world.bad.insert(restart::web(2, &["tls"]).hash);
    harness.read(reading("r2", &[web_file(2)]));
    fail(&mut harness, &web);
    harness.world.log.clear();
    let after = std::slice::from_ref(&api);
    harness.read(reading("r3", &[api_file(3), ("env", data(3, after))]));
    harness.settle();
    let shown = |id: &ObjectId| harness.world.things[id].release.as_ref().map(|release| release.hash);
    let expected = [(&api, 3), (&env, 3), (&web, 1)];
    for (id, content) in expected {
        assert_eq!(shown(id), Some(desired(id, content, "").hash), "{id} {:#?}", harness.world.log);
    }
    assert_eq!(harness.engine.restart_stamp(&web), None, "its pods have other data");
    assert!(harness.world.is_free());
}

// The earlier rejection would end the record of the newer unit, and nothing of that would go back.
#[test]
fn what_fails_beside_a_workload_that_is_back_and_uses_the_same_data_goes_back_too() {
    let (api, env, web) = (workload("api"), config("env"), workload("web"));
    let api_file = |content: u32| {
        let mut user = (*desired(&api, content, "api")).clone();
        user.needs = [config("env")].into();
        ("api", Some(SharedDesiredObject::from(user)))
    };
    let env_file = |content: u32| ("env", Some(restart::env(content)));
    let web_file = |content: u32| ("web", Some(restart::web(content, &["tls"])));
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[api_file(1), env_file(1), web_file(1)]));
    restart::show_data(&mut harness, 1);
    harness.engine.set_config_key(restart::key(&[1; 16]));
    harness.settle();
    harness.world.bad.extend([desired(&web, 2, "").hash, desired(&api, 3, "").hash]);
    harness.read(reading("r2", &[web_file(2)]));
    harness.settle();
    assert_eq!(harness.world.rejections.len(), 1, "{:?}", harness.world.rejections);
    harness.world.log.clear();
    harness.read(reading("r3", &[api_file(3), env_file(3)]));
    harness.settle();
    assert_eq!(harness.world.rejections.len(), 2, "{:?}", harness.world.rejections);
    for id in [&api, &env, &web] {
        let shown = harness.world.things[id].release.as_ref().map(|release| release.hash);
        assert_eq!(shown, Some(desired(id, 1, "").hash), "{id} {:#?}", harness.world.log);
    }
    assert!(harness.world.is_free());
}

// The two would be a cycle, and the workload would keep its slot for ever.
#[test]
fn a_rollback_is_no_part_of_a_dependency_cycle_with_what_is_newer() {
    let (pre, web) = (config("pre"), workload("web"));
    let after = |id: &ObjectId, content: u32, before: &[ObjectId]| {
        let mut wanted = (*desired(id, content, id.name())).clone();
        wanted.depends_on = before.to_vec().into();
        Some(SharedDesiredObject::from(wanted))
    };
    let mut harness = Harness::new(1);
    let first = [("pre", after(&pre, 1, &[])), ("web", after(&web, 1, std::slice::from_ref(&pre)))];
    harness.read(reading("r1", &first));
    harness.settle();
    harness.world.bad.insert(desired(&web, 2, "").hash);
    harness.read(reading("r2", &[("web", after(&web, 2, &[]))]));
    fail(&mut harness, &web);
    harness.read(reading("r3", &[("pre", after(&pre, 3, std::slice::from_ref(&web)))]));
    harness.settle();
    for (id, content) in [(&pre, 3), (&web, 1)] {
        let shown = harness.world.things[id].release.as_ref().map(|release| release.hash);
        assert_eq!(shown, Some(desired(id, content, "").hash), "{id} {:#?}", harness.world.log);
    }
    assert!(harness.world.is_free());
}

/// Returns a workload of the second wave.
fn later_web(content: u32) -> SharedDesiredObject {
    let mut web = (*desired(&workload("web"), content, "web")).clone();
    web.wave = 1;
    web.into()
}

// The hold may last for as long as a person wants.
#[test]
fn a_failed_workload_that_waits_for_an_earlier_wave_that_a_person_holds_keeps_no_slot() {
    let (pre, web) = (config("pre"), workload("web"));
    let files = |content: u32| {
        // Nothing but this connects the two.
        let mut both = (*desired(&config("both"), content, "both")).clone();
        (both.wave, both.needs) = (2, [pre.clone(), web.clone()].into());
        let pre = Some(desired(&pre, content, "pre"));
        [("pre", pre), ("web", Some(later_web(content))), ("both", Some(both.into()))]
    };
    let mut harness = Harness::new(1);
    harness.read(reading("r1", &files(1)));
    harness.settle();
    harness.world.bad.insert(later_web(2).hash);
    harness.read(reading("r2", &files(2)));
    fail(&mut harness, &web);
    super::orders::asks(&mut harness, &pre, None, Some("t until=2999-01-01T00:00:00Z busy"));
    harness.settle();
    assert_eq!(harness.decide(&web).reason, Some(Reason::Wave(0, pre)));
    assert!(harness.engine.workloads_in_flight().is_empty());
}

#[test]
fn a_failed_workload_whose_need_waits_for_what_a_person_holds_keeps_no_slot() {
    let (pre, env, web) = (config("pre"), config("env"), workload("web"));
    let files = |content: u32| {
        let with_need = |id: &ObjectId, name: &'static str, need: &ObjectId| {
            let mut user = (*desired(id, content, name)).clone();
            user.needs = [need.clone()].into();
            (name, Some(SharedDesiredObject::from(user)))
        };
        let first = ("pre", Some(desired(&pre, content, "pre")));
        [first, with_need(&env, "env", &pre), with_need(&web, "web", &env)]
    };
    let mut harness = Harness::new(1);
    harness.read(reading("r1", &files(1)));
    harness.settle();
    harness.world.bad.insert(desired(&web, 2, "web").hash);
    harness.read(reading("r2", &files(2)));
    fail(&mut harness, &web);
    for _ in 0..5 {
        harness.keep_ledger();
        harness.engine.process_changes();
    }
    let check_waits = |harness: &mut Harness| {
        for (id, expected) in [(&env, &pre), (&web, &env)] {
            let reason = harness.decide(id).reason;
            assert!(matches!(&reason, Some(Reason::Needs(need, _)) if need == expected), "{id}: {reason:?}");
        }
    };
    check_waits(&mut harness);
    assert_eq!(harness.engine.workloads_in_flight(), [web.clone()].into());
    drop(harness.engine.take_dirty());
    super::orders::asks(&mut harness, &pre, None, Some("t until=2999-01-01T00:00:00Z busy"));
    harness.settle();
    assert!(harness.engine.workloads_in_flight().is_empty());
    check_waits(&mut harness);
}

#[test]
fn a_rollback_asks_for_no_more_facts_where_more_is_unfinished_before_it() {
    let web = workload("web");
    let count_lookups = |unfinished: u32| {
        let mut harness = Harness::new(1);
        harness.read(reading("r1", &[("web", Some(later_web(1)))]));
        harness.settle();
        harness.world.bad.insert(later_web(2).hash);
        harness.read(reading("r2", &[("web", Some(later_web(2)))]));
        fail(&mut harness, &web);
        for _ in 0..5 {
            harness.keep_ledger();
            harness.engine.process_changes();
        }
        assert!(harness.engine.has_rollback_target(&web));
        let names: Vec<String> = (0..unfinished).map(|number| format!("new-{number}")).collect();
        let files: Vec<(&str, Option<SharedDesiredObject>)> =
            names.iter().map(|name| (name.as_str(), Some(desired(&config(name), 3, name)))).collect();
        harness.read(reading("r3", &files));
        take_count();
        assert_eq!(harness.engine.dependency_blocker(FIRST, &later_web(1)), None);
        take_count()
    };
    assert_eq!(count_lookups(100), count_lookups(1));
}
