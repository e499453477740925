//! The events of rollouts: each once, and only of our own.

use super::rig::Harness;
use super::world::{config, desired, reading, workload};
use crate::engine::*;
use crate::object::Revision;

fn files(content: u32) -> [(&'static str, Option<SharedDesired>); 2] {
    [
        ("env", Some(desired(&config("env"), content, "env"))),
        ("web", Some(desired(&workload("web"), content, "web"))),
    ]
}

/// Returns the turns since the last time, a line each.
fn turns(rig: &mut Harness) -> Vec<String> {
    let contents = [1, 2, 3].map(|content| (desired(&workload("web"), content, "web").hash, content));
    let told = rig.engine.take_turns().into_iter().map(|turn| {
        assert_eq!((&turn.id, turn.source), (&workload("web"), 0));
        let content = contents.iter().find(|(hash, _)| *hash == turn.content).map(|(_, content)| *content);
        let course = match &turn.course {
            RolloutProgress::Started => "began",
            RolloutProgress::Succeeded => "succeeded",
            RolloutProgress::Failed(_) => "failed",
        };
        let back = if turn.back.is_some() { ", a way back" } else { "" };
        format!("{} {course}{back}", content.unwrap())
    });
    told.collect()
}

#[test]
fn each_turn_is_told_once() {
    let mut rig = Harness::new(3);
    rig.read(reading("r1", &files(1)));
    rig.settle();
    turns(&mut rig);
    rig.read(reading("r2", &files(2)));
    rig.settle();
    assert_eq!(turns(&mut rig), ["2 began", "2 succeeded"]);
    rig.engine.mark_all();
    rig.settle();
    assert_eq!(turns(&mut rig), [""; 0]);
}

#[test]
fn a_failure_and_the_way_back_are_told() {
    let mut rig = Harness::new(3);
    rig.read(reading("r1", &files(1)));
    rig.settle();
    turns(&mut rig);
    rig.world.bad.insert(desired(&workload("web"), 2, "web").hash);
    rig.read(reading("r2", &files(2)));
    rig.settle();
    let expected = ["2 began", "2 failed", "1 began, a way back", "1 succeeded, a way back"];
    assert_eq!(turns(&mut rig), expected);
}

#[test]
fn what_a_newer_commit_replaces_neither_succeeds_nor_fails() {
    let mut rig = Harness::new(3);
    rig.read(reading("r1", &files(1)));
    rig.settle();
    turns(&mut rig);
    rig.read(reading("r2", &files(2)));
    rig.step(&config("env"));
    rig.step(&workload("web"));
    assert_eq!(turns(&mut rig), ["2 began"]);
    rig.read(reading("r3", &files(3)));
    rig.deliver(usize::MAX);
    rig.step(&config("env"));
    rig.step(&workload("web"));
    assert_eq!(turns(&mut rig), ["3 began"]);
    rig.settle();
    assert_eq!(turns(&mut rig), ["3 succeeded"]);
}

#[test]
fn a_process_that_starts_in_the_middle_tells_the_end_alone() {
    let mut rig = Harness::new(3);
    rig.read(reading("r1", &files(1)));
    rig.settle();
    rig.read(reading("r2", &files(2)));
    rig.step(&config("env"));
    rig.step(&workload("web"));
    let everything = files(2);
    rig.engine = rig.fresh(3);
    rig.read(reading("r2", &everything));
    rig.engine.mark_all();
    rig.settle();
    assert_eq!(turns(&mut rig), ["2 succeeded"]);
}

#[test]
fn who_made_a_revision_is_known_before_and_after_it_was_written_down() {
    let mut rig = Harness::new(3);
    let authored = Authorship::of("Ann", "Two replicas");
    let told = SourceReading { authored: Some(authored.clone()), ..reading("r1", &files(1)) };
    rig.read(told);
    let author = |rig: &Harness, revision| rig.engine.author(0, &Revision::new(revision)).cloned();
    assert_eq!(author(&rig, "r1"), Some(authored.clone()));
    rig.settle();
    rig.read(reading("r2", &files(2)));
    rig.settle();
    assert!(rig.world.book.author(super::world::SET, &Revision::new("r1")).is_some());
    assert_eq!((author(&rig, "r1"), author(&rig, "r2")), (Some(authored), None));
}
