//! The cost of a first pass grows with the number of objects, and not faster.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::harness::Harness;
use super::restart;
use super::world::{config, desired, reading, workload};
use crate::engine::facts::lookup_counts::counted;
use crate::engine::*;
use crate::object::ObjectId;

/// Writes in flight at once.
const CONCURRENCY: usize = 8;

/// Twice the objects may take so many times the lookups: twice, and what a larger tree costs.
const GROWTH: f64 = 2.2;

/// The first signal after a write.
#[derive(Clone, Copy, Debug)]
enum FirstSignal {
    Answer,
    Event,
}

/// The connections among a source's objects.
#[derive(Clone, Copy, Debug)]
enum SourceShape {
    /// Each workload needs a `ConfigMap` of its own.
    Pairs,
    /// As [`SourceShape::Pairs`], and each is restarted when its `ConfigMap` changes.
    Restarting,
    /// All `ConfigMaps` come a wave before all workloads.
    Waves,
    /// All `ConfigMaps` come a wave after all workloads, which are asked later.
    LateWaves,
    /// As [`SourceShape::Pairs`], and the ConfigMaps are of a wave after the workloads.
    LateNeeds,
}

fn files(shape: SourceShape, count: usize) -> Vec<(String, SharedDesiredObject)> {
    let pair = |number: usize| {
        let (data_id, web_id) = (config(&format!("app-{number:05}")), workload(&format!("app-{number:05}")));
        let mut data = (*desired(&data_id, 1, "")).clone();
        let mut web = (*desired(&web_id, 1, "")).clone();
        match shape {
            SourceShape::Pairs => web.needs = [data_id.clone()].into(),
            SourceShape::Restarting => {
                web.needs = [data_id.clone()].into();
                web.config = Some(Box::new(ConfigRole::Uses([data_id.clone()].into())));
                data.config = Some(Box::new(ConfigRole::Data(restart::data(&data_id, 1))));
            }
            SourceShape::Waves => web.wave = 1,
            SourceShape::LateWaves => data.wave = 1,
            SourceShape::LateNeeds => {
                web.needs = [data_id.clone()].into();
                data.wave = 1;
            }
        }
        [(data_id, data), (web_id, web)].map(|(id, wanted)| (id.to_string(), Arc::new(wanted)))
    };
    (0..count / 2).flat_map(pair).collect()
}

/// Makes all objects of a source as the loop does, and returns how many lookups that took.
fn first_pass(shape: SourceShape, first: FirstSignal, count: usize) -> usize {
    let mut harness = Harness::new(3);
    harness.engine.set_config_key(restart::key(&[1; 16]));
    let files = files(shape, count);
    let files: Vec<(&str, Option<SharedDesiredObject>)> =
        files.iter().map(|(file, wanted)| (&**file, Some(wanted.clone()))).collect();
    counted();
    harness.read(reading("r1", &files));
    let (mut queue, mut queued) = (VecDeque::new(), BTreeSet::new());
    let mut written: Vec<(ObjectId, Action, ActionResult)> = Vec::new();
    loop {
        for (id, action, outcome) in written.drain(..) {
            if matches!(first, FirstSignal::Event) {
                harness.deliver(1);
            }
            harness.engine.record_result(&id, &action, outcome, harness.now);
        }
        harness.deliver(usize::MAX);
        harness.engine.advance(harness.now);
        harness.keep_ledger();
        harness.engine.process_changes();
        let wake =
            |harness: &mut Harness, queue: &mut VecDeque<ObjectId>, queued: &mut BTreeSet<ObjectId>| {
                queue.extend(harness.engine.take_dirty().into_iter().filter(|id| queued.insert(id.clone())));
            };
        wake(&mut harness, &mut queue, &mut queued);
        while written.len() < CONCURRENCY {
            let Some(id) = queue.pop_front() else { break };
            queued.remove(&id);
            let decision = harness.engine.decide(&id, harness.now);
            match decision.action {
                action @ Action::Apply(_) => {
                    harness.engine.note_dispatch(&id, &action);
                    let outcome = harness.world.perform(&id, &action);
                    written.push((id, action, outcome));
                }
                _ => drop(harness.act(&id, decision)),
            }
            wake(&mut harness, &mut queue, &mut queued);
        }
        if written.is_empty() && queue.is_empty() && harness.world.events.is_empty() {
            break;
        }
    }
    let lookups = counted();
    assert_eq!(harness.world.things.len(), count, "{shape:?} {first:?}");
    lookups
}

#[test]
fn twice_the_objects_of_a_first_pass_take_twice_the_lookups() {
    for shape in [
        SourceShape::Pairs,
        SourceShape::Restarting,
        SourceShape::Waves,
        SourceShape::LateWaves,
        SourceShape::LateNeeds,
    ] {
        for first in [FirstSignal::Answer, FirstSignal::Event] {
            let (few, many) = (first_pass(shape, first, 500), first_pass(shape, first, 1000));
            let growth = many as f64 / few as f64;
            eprintln!("{shape:?}, {first:?} first: {few} lookups, then {many}");
            assert!(growth <= GROWTH, "{shape:?}, {first:?} first: {few} lookups, then {many}");
        }
    }
}
