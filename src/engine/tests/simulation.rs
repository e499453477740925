//! Anything in any order, then quiet: the end is what the source asks for, and on the way nobody
//! was harmed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::harness::Harness;
use super::world::{AuditEntry, config, desired, reading, workload};
use crate::engine::{Action, Input, SourceReading};
use crate::object::ObjectId;

/// A possible event.
#[derive(Clone, Debug)]
enum SimulationEvent {
    /// A commit gives an object this content, or takes it away.
    Commit(usize, Option<u32>),
    /// The newest state cannot be read completely.
    Incomplete,
    /// The newest state was read completely again.
    Complete,
    /// Somebody changes an object.
    Drift(usize),
    /// Somebody deletes an object.
    Delete(usize),
    /// Somebody takes our label off.
    Strip(usize),
    /// Watch events arrive.
    Deliver(usize),
    /// The loop decides about an object.
    Step(usize),
    /// The process dies and starts again.
    Crash,
    /// A list shows all there is, and with it everything that the watch lost.
    Relist,
    /// Watch events are lost in silence.
    Lose,
    /// Rollouts end.
    Finish,
}

fn objects() -> Vec<ObjectId> {
    vec![config("a"), config("b"), config("c"), workload("w"), workload("x"), workload("y")]
}

fn happening() -> impl Strategy<Value = SimulationEvent> {
    let object = 0..objects().len();
    prop_oneof![
        3 => (object.clone(), prop::option::weighted(0.8, 1..4_u32)).prop_map(|(o, c)| SimulationEvent::Commit(o, c)),
        1 => Just(SimulationEvent::Incomplete),
        1 => Just(SimulationEvent::Complete),
        2 => object.clone().prop_map(SimulationEvent::Drift),
        1 => object.clone().prop_map(SimulationEvent::Delete),
        1 => object.clone().prop_map(SimulationEvent::Strip),
        4 => (1..4_usize).prop_map(SimulationEvent::Deliver),
        9 => object.prop_map(SimulationEvent::Step),
        1 => Just(SimulationEvent::Crash),
        1 => Just(SimulationEvent::Relist),
        1 => Just(SimulationEvent::Lose),
        2 => Just(SimulationEvent::Finish),
    ]
}

struct Simulation {
    harness: Harness,
    wanted: BTreeMap<ObjectId, u32>,
    revision: u32,
    complete: bool,
    /// The objects of the last complete reading, or any after it. Until the next complete one they
    /// stay defended.
    defended: BTreeSet<ObjectId>,
}

const MAX_WORKLOADS: u32 = 2;

impl Simulation {
    fn new() -> Self {
        Self {
            harness: Harness::new(MAX_WORKLOADS),
            wanted: BTreeMap::new(),
            revision: 0,
            complete: true,
            defended: BTreeSet::new(),
        }
    }

    fn file(id: &ObjectId) -> String {
        format!("{}.yaml", id.name())
    }

    fn read_all(&mut self) {
        if self.complete {
            self.defended.clear();
        }
        self.defended.extend(self.wanted.keys().cloned());
        let revision = format!("r{}", self.revision);
        let names: Vec<String> = objects().iter().map(Self::file).collect();
        let files: Vec<_> = objects()
            .iter()
            .zip(&names)
            .map(|(id, file)| (file.as_str(), self.wanted.get(id).map(|content| desired(id, *content, file))))
            .collect();
        let incomplete = (!self.complete).then(|| "a file is broken".into());
        self.harness.read(SourceReading { incomplete_reason: incomplete, ..reading(&revision, &files) });
    }

    fn happen(&mut self, happening: &SimulationEvent) {
        let all = objects();
        match happening {
            SimulationEvent::Commit(object, content) => {
                match content {
                    Some(content) => drop(self.wanted.insert(all[*object].clone(), *content)),
                    None => drop(self.wanted.remove(&all[*object])),
                }
                self.revision += 1;
                self.read_all();
            }
            SimulationEvent::Incomplete | SimulationEvent::Complete => {
                self.complete = matches!(happening, SimulationEvent::Complete);
                self.read_all();
            }
            SimulationEvent::Drift(object) => self.touch(&all[*object], |thing, rv| {
                (thing.drifted, thing.rv, thing.shape) = (true, rv, rv);
            }),
            SimulationEvent::Strip(object) => self.touch(&all[*object], |thing, rv| {
                (thing.drifted, thing.labelled, thing.rv, thing.shape) = (true, false, rv, rv);
            }),
            SimulationEvent::Delete(object) => {
                if self.harness.world.things.remove(&all[*object]).is_some() {
                    self.harness.world.tick();
                    self.harness.world.announce(&all[*object]);
                }
            }
            SimulationEvent::Deliver(count) => self.harness.deliver(*count),
            SimulationEvent::Step(object) => self.step(&all[*object]),
            SimulationEvent::Crash => {
                self.harness.world.events.clear();
                self.harness.engine = self.harness.fresh(MAX_WORKLOADS);
                self.read_all();
            }
            SimulationEvent::Lose => self.harness.world.events.clear(),
            SimulationEvent::Relist => self.relist(),
            SimulationEvent::Finish => self.harness.finish_rollouts(),
        }
        self.harness.pass_time(Duration::from_secs(15));
    }

    fn touch(&mut self, id: &ObjectId, change: impl Fn(&mut super::world::WorldObject, u64)) {
        let rv = self.harness.world.tick();
        if let Some(thing) = self.harness.world.things.get_mut(id) {
            change(thing, rv);
            self.harness.world.announce(id);
        }
    }

    fn relist(&mut self) {
        self.harness.world.events.clear();
        let kinds: BTreeSet<_> = objects().iter().map(ObjectId::group_kind).collect();
        for kind in kinds {
            self.harness.engine.begin_list(&kind);
            for (id, thing) in &self.harness.world.things {
                if id.group_kind() == kind && thing.labelled {
                    self.harness.engine.observe_object(id, super::world::World::live(id, thing));
                }
            }
            self.harness.engine.end_list(&kind);
        }
    }

    /// Makes one decision, and checks what must hold of every write.
    fn step(&mut self, id: &ObjectId) {
        let existed = self.harness.world.things.contains_key(id);
        let rolling = self.rolling();
        let written = self.harness.world.log.len();
        if let Some(action) = self.harness.step(id) {
            let wrote = self.harness.world.log[written..].to_vec();
            match action {
                Action::Delete(..) => {
                    assert!(!self.wanted.contains_key(id), "{id} is wanted and was deleted");
                    assert!(self.complete, "{id} was deleted on doubt");
                }
                Action::Apply(apply) => {
                    assert!(self.complete || self.defended.contains(id) || existed, "{id} was made on doubt");
                    let begins = wrote.contains(&AuditEntry::Changed(id.clone())) && self.rolling() > rolling;
                    assert!(
                        !begins || self.rolling() <= MAX_WORKLOADS as usize,
                        "{apply:?} exceeds the budget"
                    );
                }
                _ => {}
            }
        }
    }

    fn rolling(&self) -> usize {
        let replacing = crate::engine::WorkloadPhase::Replacing;
        self.harness.world.things.values().filter(|thing| thing.phase == replacing).count()
    }

    /// Ends the faults, and checks after a fresh list and the minute of a fight that all is as the
    /// source asks.
    fn comes_to_rest(&mut self) {
        self.complete = true;
        self.read_all();
        self.relist();
        self.harness.pass_time(Duration::from_mins(2));
        self.harness.engine.handle_now(Input::Resynced);
        self.harness.settle();
        for (id, content) in &self.wanted {
            let thing = self.harness.world.things.get(id).unwrap_or_else(|| panic!("{id} is missing"));
            assert_eq!(thing.release.as_ref().unwrap().hash, desired(id, *content, "").hash, "{id}");
            assert!(thing.labelled && !thing.drifted, "{id} was not repaired");
        }
        for (id, thing) in &self.harness.world.things {
            let left_over = thing.labelled && !self.wanted.contains_key(id);
            assert!(!left_over, "{id} is still there");
        }
        let written = self.harness.world.log.len();
        self.harness.engine.handle_now(Input::Resynced);
        self.harness.settle();
        assert_eq!(self.harness.world.log.len(), written, "it is not quiet");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_it_converges_and_harms_nobody(happenings in prop::collection::vec(happening(), 0..60)) {
        let mut simulation = Simulation::new();
        for happening in &happenings {
            simulation.happen(happening);
            simulation.harness.engine.assert_counts();
        }
        simulation.comes_to_rest();
        let mut deleted = BTreeSet::new();
        for wrote in &simulation.harness.world.log {
            if let AuditEntry::Deleted(id, uid) = wrote {
                prop_assert!(deleted.insert((id.clone(), *uid)), "{id} was deleted twice");
            }
        }
    }
}

// An incomplete reading does not prove that an object is no longer wanted: the accepted content is
// created again.
#[test]
fn what_was_wanted_since_the_last_complete_reading_is_made_again_on_doubt() {
    use SimulationEvent::{Commit, Delete, Deliver, Incomplete, Step};
    check_doubt(&[
        Commit(0, Some(1)),
        Step(0),
        Step(0),
        Incomplete,
        Commit(0, None),
        Deliver(1),
        Delete(0),
        Deliver(1),
        Step(0),
        Step(0),
    ]);
    check_doubt(&[
        Incomplete,
        Commit(0, Some(1)),
        Step(0),
        Step(0),
        Commit(0, None),
        Delete(0),
        Deliver(2),
        Step(0),
        Step(0),
    ]);
}

fn check_doubt(happenings: &[SimulationEvent]) {
    let mut simulation = Simulation::new();
    for happening in happenings {
        simulation.happen(happening);
    }
    assert!(simulation.harness.world.things.contains_key(&config("a")), "{:?}", simulation.harness.world.log);
    simulation.comes_to_rest();
    assert!(!simulation.harness.world.things.contains_key(&config("a")));
}
