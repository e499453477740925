//! Rollbacks that the API server refuses.

use std::sync::Arc;
use std::time::Duration;

use super::harness::Harness;
use super::world::{FIRST, SET, config, desired, reading, workload};
use crate::engine::facts::entry::ApiRefusal;
use crate::engine::*;
use crate::object::{ContentHash, ObjectId, Revision};

fn files(content: u32) -> Vec<(&'static str, Option<SharedDesiredObject>)> {
    let mut web = (*desired(&workload("web"), content, "web")).clone();
    web.needs = [config("env")].into();
    let env = desired(&config("env"), content, "env");
    vec![("env", Some(env)), ("web", Some(Arc::new(web)))]
}

fn hash(content: u32) -> ContentHash {
    desired(&workload("web"), content, "web").hash
}

/// Returns a state in which all but web's rollback is done, and its write is on its way.
fn going_back() -> (Harness, Action) {
    let web = workload("web");
    let mut harness = Harness::new(1);
    harness.read(reading("r1", &files(1)));
    harness.settle();
    harness.world.bad.insert(hash(2));
    harness.read(reading("r2", &files(2)));
    for _ in 0..200 {
        for id in harness.next_marked() {
            let decision = harness.decide(&id);
            match &decision.action {
                Action::Apply(apply) if id == web && !harness.world.rejections.is_empty() => {
                    assert_eq!(apply.desired.hash, hash(1));
                    return (harness, decision.action);
                }
                _ => drop(harness.act(&id, decision)),
            }
        }
    }
    panic!("it never goes back: {:#?}", harness.world.log);
}

/// Sends the rollback again as often as rhumb wants, refused each time, and says how often.
fn refuse(harness: &mut Harness, mut action: Action, refusal: &WriteFailure) -> u32 {
    let web = workload("web");
    for count in 1..20 {
        harness.engine.note_dispatch(&web, &action);
        harness.engine.record_result(&web, &action, ActionResult::Failed(refusal.clone()), harness.now);
        harness.keep_ledger();
        harness.pass_time(Duration::from_secs(2));
        harness.engine.advance(harness.now);
        match harness.decide(&web).action {
            next @ Action::Apply(_) => action = next,
            _ => return count,
        }
    }
    20
}

#[test]
fn a_rollback_that_is_refused_for_good_ends_in_a_hold() {
    let soon = Some(Duration::from_secs(1));
    for (rule, after, times) in [
        (RefusalRule::Immutable, None, 1),
        (RefusalRule::Other, None, 1),
        (RefusalRule::Other, soon, 5),
        (RefusalRule::Rights, soon, 5),
    ] {
        let (mut harness, action) = going_back();
        let count = refuse(&mut harness, action, &WriteFailure::Refused("no".into(), rule, after));
        assert_eq!(count, times, "{rule:?}, {after:?}");
        let rejection = &harness.world.rejections[0];
        assert_eq!(rejection.action, RejectionAction::Quarantine);
        assert!(rejection.cause.contains("; going back failed too: Deployment shop/web: refused: no"));
        harness.settle();
        assert!(harness.engine.workloads_in_flight().is_empty(), "it keeps its slot");
        assert!(harness.world.is_free());
        // Others go on.
        let other = desired(&workload("other"), 1, "other");
        harness.read(reading("r3", &[("other", Some(other))]));
        harness.settle();
        harness.read(reading("r4", &[("other", Some(desired(&workload("other"), 2, "other")))]));
        harness.settle();
        let shown = harness.world.things[&workload("other")].release.as_ref().map(|release| release.hash);
        assert_eq!(shown, Some(desired(&workload("other"), 2, "other").hash));
    }
}

#[test]
fn a_rollback_that_fails_for_now_is_tried_again() {
    let soon = Duration::from_secs(1);
    for failure in [
        WriteFailure::Refused("no answer".into(), RefusalRule::Webhook, Some(soon)),
        WriteFailure::Unknown("no answer".into(), soon),
    ] {
        let (mut harness, action) = going_back();
        assert_eq!(refuse(&mut harness, action, &failure), 20, "{failure}");
        assert_eq!(harness.world.rejections[0].action, RejectionAction::RollBack);
        harness.engine.mark_all();
        harness.settle();
        let shown = harness.world.things[&workload("web")].release.as_ref().map(|release| release.hash);
        assert_eq!(shown, Some(hash(1)), "{failure}");
        assert!(harness.world.is_free());
    }
}

/// Returns the rejection of an object's second content, which goes back to its first one.
fn rejected(id: &ObjectId) -> Rejection {
    let of = |content: u32| desired(id, content, id.name()).hash;
    let good = RollbackTarget::Content(ContentRef { hash: of(1), revision: Revision::new("r1") });
    let member = UnitMember { content: Some(of(2)), rollback_target: good, restarted: None };
    let unit = ReleaseUnit {
        inventory_id: SET.into(),
        revision: Revision::new("r2"),
        members: [(id.clone(), member)].into(),
    };
    Rejection { unit, action: RejectionAction::RollBack, cause: "it failed".into() }
}

/// Returns a state in which two workloads and a configuration go back, each by itself, and the
/// content of each has been read.
fn all_go_back() -> Harness {
    let ids = [workload("api"), workload("web"), config("env")];
    let of_content = |content: u32| {
        let [api, web, env] = &ids;
        [("api", api), ("web", web), ("env", env)].map(|(file, id)| (file, Some(desired(id, content, file))))
    };
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &of_content(1)));
    harness.settle();
    harness.read(reading("r2", &of_content(2)));
    let inventory = harness.engine.source(FIRST).inventory.clone().unwrap();
    let rejections = ids.iter().map(rejected).collect();
    harness.engine.set_inventory(FIRST, Inventory { rejections, ..inventory });
    harness.read_contents();
    harness.engine.begin_rollbacks();
    harness
}

/// Lets the object that goes back be deleted and created again.
fn allow_recreation(harness: &mut Harness, id: &ObjectId) {
    let rejection = harness.engine.objects.entries.get_mut(id).unwrap().rejection.as_mut().unwrap();
    let ReplacementContent::Read(good, _) = &mut rejection.replacement else { panic!("it stays") };
    Arc::make_mut(good).traits.recreate = RecreatePolicy::Allowed;
}

// Other units go back as before, and nobody waits for what is not there.
#[test]
fn a_refusal_for_good_ends_the_rollback_of_a_workload_that_is_there_and_no_other_one() {
    type ObjectChange = fn(&mut Harness, &ObjectId);

    let check = |id: &ObjectId, rule: RefusalRule, change: ObjectChange, expected: bool| {
        let mut harness = all_go_back();
        change(&mut harness, id);
        let refusal = ApiRefusal {
            source: FIRST,
            content: desired(id, 1, id.name()).hash,
            cause: RefusalCause::Message("no".into()),
            retry: None,
            rule,
            times: 1,
        };
        harness.engine.objects.entries.get_mut(id).unwrap().api_refusal = Some(Box::new(refusal));
        harness.engine.quarantine_refused_rollback(id);
        let cause = format!("it failed; going back failed too: {id}: refused: no").into();
        let quarantined = Rejection { action: RejectionAction::Quarantine, cause, ..rejected(id) };
        let pending = &harness.engine.sources[FIRST].pending_rejections;
        assert_eq!(pending.contains(&quarantined), expected, "{id} {rule:?}: {pending:?}");
        assert_eq!(pending.len(), usize::from(expected), "{id} {rule:?}: {pending:?}");
    };
    let (web, env) = (workload("web"), config("env"));
    check(&web, RefusalRule::Other, |_, _| {}, true);
    check(&env, RefusalRule::Other, |_, _| {}, false);
    check(&web, RefusalRule::Other, |harness, id| harness.engine.observe_absence(id), false);
    // The server's refusal of a change is none of a creation.
    check(&web, RefusalRule::Immutable, |_, _| {}, true);
    check(&web, RefusalRule::Immutable, allow_recreation, false);
    check(&web, RefusalRule::Other, allow_recreation, true);
    // All of the source goes.
    let delete_source: ObjectChange =
        |harness, _| harness.engine.sources[FIRST].declared.lifecycle = SourceLifecycle::Deleting;
    check(&web, RefusalRule::Other, delete_source, false);
}

/// Returns a state in which a configuration goes back, by manifests with this policy.
fn goes_back_under(recreate: RecreatePolicy) -> Harness {
    let env = config("env");
    let files = |content: u32| {
        let mut wanted = (*desired(&env, content, "env")).clone();
        wanted.traits.recreate = recreate;
        [("env", Some(Arc::new(wanted)))]
    };
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &files(1)));
    harness.settle();
    harness.read(reading("r2", &files(2)));
    let inventory = harness.engine.source(FIRST).inventory.clone().unwrap();
    harness.engine.set_inventory(FIRST, Inventory { rejections: vec![rejected(&env)], ..inventory });
    harness.read_contents();
    harness.engine.begin_rollbacks();
    harness
}

// The pods of its users would be started with the data that failed.
#[test]
fn a_rollback_waits_for_what_is_to_be_created_again_and_for_nothing_that_stays_refused() {
    let env = config("env");
    let check = |recreate: RecreatePolicy, rule: RefusalRule, times: u32, prune: PruneTiming, expected| {
        let mut harness = goes_back_under(recreate);
        let mut live = harness.engine.live_object(&env).cloned().unwrap();
        (live.rv, live.prune_timing) = (ResourceVersion(live.rv.0 + 1), prune);
        harness.engine.observe_object(&env, live);
        let (content, cause) = (desired(&env, 1, "env").hash, RefusalCause::Message("no".into()));
        let refusal = ApiRefusal { source: FIRST, content, cause, retry: None, rule, times };
        harness.engine.objects.entries.get_mut(&env).unwrap().api_refusal = Some(Box::new(refusal));
        let entry = harness.engine.entry(&env).unwrap();
        let found = harness.engine.is_return_refused(&env, entry);
        assert_eq!(found, expected, "{recreate:?} {rule:?} {times} {prune:?}");
    };
    let (allowed, never) = (RecreatePolicy::Allowed, RecreatePolicy::Never);
    check(never, RefusalRule::Immutable, 1, PruneTiming::AfterUnit, true);
    check(allowed, RefusalRule::Immutable, 1, PruneTiming::AfterUnit, false);
    check(allowed, RefusalRule::Immutable, 5, PruneTiming::AfterUnit, true);
    check(allowed, RefusalRule::Other, 1, PruneTiming::AfterUnit, true);
    // It is kept, so it is not created again.
    check(allowed, RefusalRule::Immutable, 1, PruneTiming::Never, true);
}
