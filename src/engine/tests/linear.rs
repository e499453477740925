//! The cost of a first pass grows with the number of objects, and not faster: where all is made,
//! and where all is there. So do the costs of many deletions, and of a large unit.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::harness::{Harness, source};
use super::restart;
use super::world::{AuditEntry, FIRST, config, desired, reading, workload};
use crate::engine::facts::lookup_counts::take_count;
use crate::engine::*;
use crate::object::ObjectId;

/// Writes in flight at once.
const CONCURRENCY: usize = 8;

/// More objects may take so many times more lookups than there are more of them, as a larger tree
/// costs more.
const SLACK: f64 = 1.1;

/// The inventory of a source that has no object.
const OTHER: &str = "applyset-other-v1";

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

/// A file, with the object in it; none where the file is gone.
type SourceFile = (String, Option<SharedDesiredObject>);

/// The change of a unit: one workload that needs many `ConfigMaps`, and is restarted when they
/// change.
#[derive(Clone, Copy, Debug)]
enum UnitChange {
    /// The workload changes too.
    All,
    /// The workload is restarted as it is.
    DataOnly,
}

fn files(shape: SourceShape, count: usize) -> Vec<SourceFile> {
    let pair = |number: usize| {
        let (data_id, web_id) = (config(&format!("app-{number:05}")), workload(&format!("app-{number:05}")));
        let mut data = (*desired(&data_id, 1, &data_id.to_string())).clone();
        let mut web = (*desired(&web_id, 1, &web_id.to_string())).clone();
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
        [(data_id, data), (web_id, web)].map(|(id, wanted)| (id.to_string(), Some(Arc::new(wanted))))
    };
    (0..count / 2).flat_map(pair).collect()
}

/// Returns a workload with these contents, and so many `ConfigMaps` that it needs and restarts on.
fn unit_files(configs: usize, data: u32, content: u32) -> Vec<SourceFile> {
    let ids: Vec<ObjectId> = (0..configs).map(|number| config(&format!("app-{number:05}"))).collect();
    let web_id = workload("web");
    let mut web = (*desired(&web_id, content, &web_id.to_string())).clone();
    web.needs = ids.clone().into();
    web.config = Some(Box::new(ConfigRole::Uses(ids.clone().into())));
    let configs = ids.into_iter().map(|id| {
        let mut wanted = (*desired(&id, data, &id.to_string())).clone();
        wanted.config = Some(Box::new(ConfigRole::Data(restart::data(&id, data))));
        (id.to_string(), Some(Arc::new(wanted)))
    });
    configs.chain([(web_id.to_string(), Some(Arc::new(web)))]).collect()
}

/// The lookups of two processes.
#[derive(Clone, Copy, Debug)]
struct LookupCounts {
    /// The first one makes all objects.
    made: usize,
    /// The next one finds all as it is asked for.
    found: usize,
}

/// Makes all objects of a source as the loop does, and has a new process observe them.
fn count_lookups(shape: SourceShape, first: FirstSignal, count: usize) -> LookupCounts {
    let mut harness = Harness::new(3);
    harness.engine.set_config_key(restart::key(&[1; 16]));
    let files = files(shape, count);
    let made = run_pass(&mut harness, "r1", &files, first);
    assert_eq!(harness.world.things.len(), count, "{shape:?} {first:?}");
    harness.world.log.clear();
    harness.engine = harness.fresh(3);
    harness.engine.set_config_key(restart::key(&[1; 16]));
    let found = run_pass(&mut harness, "r1", &files, first);
    assert_eq!(harness.world.log.len(), 0, "{shape:?} {first:?}");
    LookupCounts { made, found }
}

/// Deletes all objects of a source but two as the loop does, and returns how many lookups that
/// took.
fn delete_nearly_all(shape: SourceShape, first: FirstSignal, count: usize) -> usize {
    let mut harness = Harness::new(3);
    harness.engine.sources[FIRST].declared.radius = BlastRadius { count: u32::MAX, percent: 100 };
    let files = files(shape, count);
    run_pass(&mut harness, "r1", &files, first);
    let dropped: Vec<_> = files[2..].iter().map(|(file, _)| (file.clone(), None)).collect();
    let lookups = run_pass(&mut harness, "r2", &dropped, first);
    assert_eq!(harness.world.things.len(), 2, "{shape:?} {first:?}");
    lookups
}

/// Changes all of a unit as the loop does, and returns how many lookups that took.
fn change_unit(change: UnitChange, first: FirstSignal, configs: usize) -> usize {
    let mut harness = Harness::new(3);
    harness.engine.set_config_key(restart::key(&[1; 16]));
    run_pass(&mut harness, "r1", &unit_files(configs, 1, 1), first);
    harness.world.log.clear();
    // A person has paused another source, which concerns nothing of this one.
    let other = harness.engine.add_source(source("other", OTHER));
    let paused = PauseIntent::parse("1-a");
    harness.engine.set_inventory(other, Inventory { paused, ..Inventory::default() });
    harness.engine.set_reading(other, reading("r1", &[]));
    let content = match change {
        UnitChange::All => 2,
        UnitChange::DataOnly => 1,
    };
    let lookups = run_pass(&mut harness, "r2", &unit_files(configs, 2, content), first);
    assert_eq!(harness.world.log.len(), configs + 1, "{change:?} {first:?}");
    assert_eq!(harness.world.log.last(), Some(&AuditEntry::Changed(workload("web"))), "it comes last");
    lookups
}

/// Reads a revision and makes the cluster match, and returns how many lookups that took.
fn run_pass(harness: &mut Harness, revision: &str, files: &[SourceFile], first: FirstSignal) -> usize {
    let files: Vec<(&str, Option<SharedDesiredObject>)> =
        files.iter().map(|(file, wanted)| (&**file, wanted.clone())).collect();
    take_count();
    harness.read(reading(revision, &files));
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
        wake(harness, &mut queue, &mut queued);
        while written.len() < CONCURRENCY {
            let Some(id) = queue.pop_front() else { break };
            queued.remove(&id);
            let decision = harness.engine.decide(&id, harness.now);
            match decision.action {
                action @ (Action::Apply(_) | Action::Delete(..)) => {
                    harness.engine.note_dispatch(&id, &action);
                    let outcome = harness.world.perform(&id, &action);
                    written.push((id, action, outcome));
                }
                _ => drop(harness.act(&id, decision)),
            }
            wake(harness, &mut queue, &mut queued);
        }
        if written.is_empty() && queue.is_empty() && harness.world.events.is_empty() {
            // A claim that was asked for last.
            let before = harness.world.ledger.clone();
            harness.keep_ledger();
            if harness.world.ledger == before {
                return take_count();
            }
        }
    }
}

#[track_caller]
fn check_growth(what: &str, few: usize, many: usize, most: f64) {
    eprintln!("{what}: {few} lookups, then {many}");
    assert!(few > 0 && many as f64 / few as f64 <= most, "{what}: {few} lookups, then {many}");
}

#[track_caller]
fn check_first_passes(what: &str, few: LookupCounts, many: LookupCounts, most: f64) {
    check_growth(&format!("{what}, all made"), few.made, many.made, most);
    check_growth(&format!("{what}, all found"), few.found, many.found, most);
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
            let [few, many] = [250, 500].map(|count| count_lookups(shape, first, count));
            check_first_passes(&format!("{shape:?}, {first:?} first"), few, many, 2.0 * SLACK);
        }
    }
}

#[test]
fn ten_times_the_objects_of_a_first_pass_take_ten_times_the_lookups() {
    let [few, many] =
        [500, 5_000].map(|count| count_lookups(SourceShape::Restarting, FirstSignal::Event, count));
    check_first_passes("5,000 objects", few, many, 10.0 * SLACK);
}

#[test]
fn twice_the_deletions_take_twice_the_lookups() {
    for (shape, first) in [
        (SourceShape::Pairs, FirstSignal::Answer),
        (SourceShape::Pairs, FirstSignal::Event),
        (SourceShape::Waves, FirstSignal::Answer),
    ] {
        let [few, many] = [120, 240].map(|count| delete_nearly_all(shape, first, count));
        check_growth(&format!("{shape:?}, {first:?} first"), few, many, 2.0 * SLACK);
    }
}

#[test]
fn a_unit_of_twice_the_objects_takes_twice_the_lookups() {
    for change in [UnitChange::All, UnitChange::DataOnly] {
        for first in [FirstSignal::Answer, FirstSignal::Event] {
            let [few, many] = [120, 240].map(|configs| change_unit(change, first, configs));
            check_growth(&format!("{change:?} of a unit, {first:?} first"), few, many, 2.0 * SLACK);
        }
    }
}

#[test]
fn an_event_about_another_object_judges_no_deletion_again() {
    let mut harness = Harness::new(3);
    harness.engine.sources[FIRST].declared.radius = BlastRadius { count: 1, percent: 1 };
    let files = files(SourceShape::Pairs, 100);
    run_pass(&mut harness, "r1", &files, FirstSignal::Answer);
    let dropped: Vec<_> = files[4..].iter().map(|(file, _)| (file.clone(), None)).collect();
    run_pass(&mut harness, "r2", &dropped, FirstSignal::Answer);
    assert_eq!(harness.engine.prune_decisions(FIRST).count(), 96);
    assert_eq!(harness.world.things.len(), 100, "they wait for a person");
    let event = |harness: &mut Harness, id: &ObjectId| {
        let mut live = harness.engine.informer_object(id).unwrap().clone();
        live.rv = ResourceVersion(live.rv.0 + 1);
        take_count();
        harness.engine.observe_object(id, live);
        harness.engine.process_changes();
        take_count()
    };
    for name in ["app-00000", "app-00010"] {
        let lookups = event(&mut harness, &workload(name));
        assert!(lookups < 96, "{name}: {lookups}");
    }
}
