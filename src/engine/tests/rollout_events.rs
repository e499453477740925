//! The events of rollouts: each once, and only of our own.

use std::sync::Arc;
use std::time::Duration;

use super::harness::Harness;
use super::world::{FIRST, config, desired, reading, workload};
use crate::engine::rollout::rollouts::Rollout;
use crate::engine::*;
use crate::object::Revision;

fn files(content: u32) -> [(&'static str, Option<SharedDesiredObject>); 2] {
    [
        ("env", Some(desired(&config("env"), content, "env"))),
        ("web", Some(desired(&workload("web"), content, "web"))),
    ]
}

/// Returns the turns since the last time, a line each.
fn turns(harness: &mut Harness) -> Vec<String> {
    let contents = [1, 2, 3].map(|content| (desired(&workload("web"), content, "web").hash, content));
    let lines = harness.engine.take_rollout_events().into_iter().map(|turn| {
        assert_eq!((&turn.id, turn.source), (&workload("web"), FIRST));
        let content = contents.iter().find(|(hash, _)| *hash == turn.content).map(|(_, content)| *content);
        let course = match &turn.kind {
            RolloutEventKind::Started => "began",
            RolloutEventKind::Succeeded => "succeeded",
            RolloutEventKind::Failed(_) => "failed",
        };
        let back = if turn.rollback_cause.is_some() { ", a rollback" } else { "" };
        format!("{} {course}{back}", content.unwrap())
    });
    lines.collect()
}

/// Returns a cluster in which revision r1 is at rest, with its rollout reported.
fn at_rest() -> Harness {
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &files(1)));
    harness.settle();
    turns(&mut harness);
    harness
}

/// Returns the same after revision r2 has failed and r1 is back. Nothing of that is reported yet.
fn gone_back() -> Harness {
    let mut harness = at_rest();
    harness.world.bad.insert(desired(&workload("web"), 2, "web").hash);
    harness.read(reading("r2", &files(2)));
    harness.settle();
    harness
}

#[test]
fn each_turn_is_reported_once() {
    let mut harness = at_rest();
    harness.read(reading("r2", &files(2)));
    harness.settle();
    assert_eq!(turns(&mut harness), ["2 began", "2 succeeded"]);
    harness.engine.mark_all();
    harness.settle();
    assert_eq!(turns(&mut harness), [""; 0]);
}

#[test]
fn a_failure_and_the_rollback_are_reported() {
    let mut harness = gone_back();
    let expected = ["2 began", "2 failed", "1 began, a rollback", "1 succeeded, a rollback"];
    assert_eq!(turns(&mut harness), expected);
}

/// Returns a cluster in which `web` of revision r2 still rolls out, and is rejected already, as
/// when another object of its unit has failed.
fn rejected_in_flight() -> Harness {
    let mut harness = at_rest();
    harness.read(reading("r2", &files(2)));
    harness.step(&config("env"));
    harness.step(&workload("web"));
    harness.deliver(usize::MAX);
    harness.engine.propose_rejection(&workload("web"), &"another one failed".into());
    // The inventory records it, and the content of revision r1 is read.
    harness.keep_ledger();
    harness.keep_ledger();
    harness.engine.process_changes();
    assert!(harness.engine.has_rollback_target(&workload("web")));
    assert_eq!(turns(&mut harness), ["2 began"]);
    harness
}

#[test]
fn the_end_of_a_rejected_content_is_no_end_of_its_rollback() {
    let check = |bad: bool, end: &str| {
        let mut harness = rejected_in_flight();
        if bad {
            harness.world.bad.insert(desired(&workload("web"), 2, "web").hash);
        }
        harness.finish_rollouts();
        harness.deliver(usize::MAX);
        harness.engine.advance(harness.now);
        assert_eq!(turns(&mut harness), [end]);
        harness.settle();
        assert_eq!(turns(&mut harness), ["1 began, a rollback", "1 succeeded, a rollback"], "after {end}");
        assert!(!harness.world.rejections[0].cause.contains("going back failed"), "after {end}");
    };
    check(false, "2 succeeded");
    check(true, "2 failed");
}

// So whoever has reported the failure knows the reason again in what is said of the rollback.
#[test]
fn the_cause_of_a_rollback_has_the_reason_of_the_failure_word_for_word() {
    let mut harness = gone_back();
    let events = harness.engine.take_rollout_events();
    let reasons = events.iter().filter_map(|event| match &event.kind {
        RolloutEventKind::Failed(why) => Some(why.to_string()),
        _ => None,
    });
    let reasons: Vec<String> = reasons.collect();
    let causes: Vec<Arc<str>> = events.iter().filter_map(|event| event.rollback_cause.clone()).collect();
    assert_eq!((reasons.len(), causes.len()), (1, 2), "{events:?}");
    for cause in causes {
        assert_eq!(*cause, *format!("revision r2 failed: Deployment shop/web: {}", reasons[0]));
    }
}

#[test]
fn what_a_newer_commit_replaces_neither_succeeds_nor_fails() {
    let mut harness = at_rest();
    harness.read(reading("r2", &files(2)));
    harness.step(&config("env"));
    harness.step(&workload("web"));
    assert_eq!(turns(&mut harness), ["2 began"]);
    harness.read(reading("r3", &files(3)));
    harness.deliver(usize::MAX);
    harness.step(&config("env"));
    harness.step(&workload("web"));
    assert_eq!(turns(&mut harness), ["3 began"]);
    harness.settle();
    assert_eq!(turns(&mut harness), ["3 succeeded"]);
}

#[test]
fn a_process_that_starts_in_the_middle_tells_the_end_alone() {
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &files(1)));
    harness.settle();
    harness.read(reading("r2", &files(2)));
    harness.step(&config("env"));
    harness.step(&workload("web"));
    let everything = files(2);
    harness.engine = harness.fresh(3);
    harness.read(reading("r2", &everything));
    harness.engine.mark_all();
    harness.settle();
    assert_eq!(turns(&mut harness), ["2 succeeded"]);
}

#[test]
fn who_made_a_revision_is_known_before_and_after_it_was_written_down() {
    let mut harness = Harness::new(3);
    let authored = Authorship::of("Ann", "Two replicas");
    let source_reading = SourceReading { authored: Some(authored.clone()), ..reading("r1", &files(1)) };
    harness.read(source_reading);
    let author =
        |harness: &Harness, revision| harness.engine.author(FIRST, &Revision::new(revision)).cloned();
    assert_eq!(author(&harness, "r1"), Some(authored.clone()));
    harness.settle();
    harness.read(reading("r2", &files(2)));
    harness.settle();
    assert!(harness.world.ledger.author(super::world::SET, &Revision::new("r1")).is_some());
    assert_eq!((author(&harness, "r1"), author(&harness, "r2")), (Some(authored), None));
}

#[test]
fn a_write_that_the_server_refuses_again_and_again_is_no_rollout() {
    let mut harness = at_rest();
    let web = workload("web");
    // Somebody has changed it, and the repair is refused.
    harness.world.drift(&web);
    let mut refused = 0;
    for _ in 0..40 {
        harness.deliver(usize::MAX);
        let decision = harness.decide(&web);
        if let action @ Action::Apply(_) = decision.action {
            harness.engine.note_dispatch(&web, &action);
            let why =
                WriteFailure::Refused("invalid".into(), RefusalRule::Other, Some(Duration::from_secs(10)));
            harness.engine.record_result(&web, &action, ActionResult::Failed(why), harness.now);
            refused += 1;
        } else {
            harness.act(&web, decision);
        }
        harness.keep_ledger();
        harness.pass_time(Duration::from_secs(5));
    }
    assert!(refused > 3, "{refused}");
    assert_eq!(turns(&mut harness), [""; 0]);
}

#[test]
fn of_the_events_that_nobody_takes_the_first_1024_wait() {
    let mut harness = at_rest();
    let claim = harness.engine.make_claim(FIRST, desired(&workload("web"), 1, "web").hash, 1);
    let rollout = Rollout::new(BudgetSlot::Taken, 1, Some(claim), None);
    for _ in 0..1025 {
        harness.engine.note_rollout_event(&workload("web"), &rollout, RolloutEventKind::Started);
    }
    assert_eq!(harness.engine.take_rollout_events().len(), 1024);
}
