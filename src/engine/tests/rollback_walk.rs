//! A failed rollout's way back: each effect that a loop carries out, and each input that answers
//! it, in their order.

use std::collections::BTreeSet;

use super::harness::Harness;
use super::world::{FIRST, desired, reading, workload};
use crate::engine::*;
use crate::object::{ContentHash, ObjectId};

/// More turns than the walk takes.
const TURNS: usize = 30;

/// A loop over one workload that notes what it carries out, and what it hands over.
struct NotedLoop {
    harness: Harness,
    notes: Vec<String>,
}

/// Returns the workload with this content.
fn web(content: u32) -> SharedDesiredObject {
    desired(&workload("web"), content, "web")
}

/// Returns the number of a content.
fn number_of(hash: ContentHash) -> u32 {
    [1, 2].into_iter().find(|content| web(*content).hash == hash).unwrap()
}

impl NotedLoop {
    fn note(&mut self, words: &str) {
        self.notes.push(words.to_owned());
    }

    fn hand_over(&mut self, words: &str, input: Input) {
        self.note(words);
        self.harness.engine.handle(input, self.harness.now);
    }

    fn turn(&mut self) {
        let effects = self.harness.engine.poll(self.harness.now);
        for RolloutReport { event, .. } in effects.rollout_events {
            let end = match event.kind {
                RolloutEventKind::Started => "began",
                RolloutEventKind::Succeeded => "succeeded",
                RolloutEventKind::Failed(_) => "failed",
            };
            self.note(&format!("effect: report that {} {end}", number_of(event.content)));
        }
        for ActingEffect { source, effect: FailedRollout { id, .. } } in effects.failures {
            assert_eq!(source, Some(FIRST));
            self.note("effect: read the Events");
            let events = vec!["Back-off pulling image".to_owned()];
            self.hand_over("input: the Events", Input::FailureEvents { id, events });
        }
        self.read_contents();
        for id in effects.keys.into_iter().collect::<BTreeSet<ObjectId>>() {
            let decision = self.harness.engine.decide(&id, self.harness.now);
            let content = match &decision.action {
                Action::Apply(apply) => Some(number_of(apply.desired.hash)),
                _ => None,
            };
            if let Some(content) = content {
                self.note(&format!("effect: apply {content}"));
            }
            self.harness.act(&id, decision);
        }
        self.write_records();
        self.harness.deliver_all();
    }

    fn read_contents(&mut self) {
        for (revision, wanted) in self.harness.engine.unread_contents() {
            for (id, hash) in wanted {
                self.note(&format!("effect: read {} of {revision}", number_of(hash)));
                let release = ContentRef { hash, revision: revision.clone() };
                let content = self.harness.history.get(&hash).cloned();
                let input = Input::OlderContent { id, release, content };
                self.hand_over("input: the older content", input);
            }
        }
    }

    /// Writes the rollout ledger, and the inventory where that lacks a rejection.
    fn write_records(&mut self) {
        self.harness.keep_claims();
        if self.harness.engine.next_rejections(FIRST).is_some() {
            self.note("effect: write the rejection to the inventory");
            self.harness.sync_inventories();
            self.note("input: the inventory");
        }
    }
}

#[test]
fn a_failed_rollout_goes_back_by_these_effects_and_inputs_in_this_order() {
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("web", Some(web(1)))]));
    harness.settle();
    harness.engine.poll(harness.now);
    harness.world.bad.insert(web(2).hash);
    harness.read(reading("r2", &[("web", Some(web(2)))]));
    let mut noted = NotedLoop { harness, notes: Vec::new() };
    for _ in 0..TURNS {
        noted.turn();
    }
    let expected = [
        "effect: apply 2",
        "effect: report that 2 began",
        "effect: report that 2 failed",
        "effect: read the Events",
        "input: the Events",
        "effect: write the rejection to the inventory",
        "input: the inventory",
        "effect: read 1 of r1",
        "input: the older content",
        "effect: apply 1",
        "effect: report that 1 began",
        "effect: report that 1 succeeded",
    ];
    assert_eq!(noted.notes, expected);
    let released = noted.harness.world.things[&workload("web")].release.as_ref();
    assert_eq!(released.map(|release| release.hash), Some(web(1).hash));
}
