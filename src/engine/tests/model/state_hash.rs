//! The hashes that distinguish the states of the model.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::hash::Hasher as _;

use super::ExhaustiveModel;
use crate::engine::tests::world::{FIRST, WorldObject};
use crate::engine::*;
use crate::object::ObjectId;

impl ExhaustiveModel<'_> {
    /// Returns a print that differs between states, whatever the versions are.
    pub(super) fn print(&self) -> u64 {
        let mut print = self.print_world();
        let engine = &self.harness.engine;
        for (id, thing) in &self.harness.world.things {
            let live = engine.informer_object(id);
            let _ = write!(
                print,
                "{:?}{}{:?}",
                live.map(|live| (&live.release, live.replica_status, &live.health.message)),
                live.is_some_and(|live| live.rv.0 == thing.rv),
                engine.entry(id).map(|entry| entry_print(entry, live)),
            );
            print.write_str(&engine.rollout_words(id)).unwrap();
        }
        let mut events: Vec<&(ObjectId, Option<WorldObject>)> = self.harness.world.events.iter().collect();
        events.sort_by_key(|(id, _)| id);
        for (id, thing) in events {
            let facts =
                thing.as_ref().map(|thing| (&thing.release, thing.phase, thing.numbers, thing.failed));
            let _ = write!(print, "{}{facts:?};", id.name());
        }
        let dirty: BTreeSet<&ObjectId> = engine.objects.wakes.dirty().iter().collect();
        let waits: BTreeMap<&ObjectId, &WaitTopic> = engine.objects.wakes.topics().iter().collect();
        let source = engine.source(FIRST);
        let _ = write!(
            print,
            "{dirty:?}{waits:?}{:?}{:?}{}",
            source.pending_rejections,
            engine.rollouts.units.units_to_record(),
            engine.rollouts.slot_requests.slow_start_limit()
        );
        print.0.finish()
    }

    /// Returns a hash of all that is left when the process ends.
    pub(super) fn world_hash(&self) -> u64 {
        self.print_world().0.finish()
    }

    /// Returns the same of the cluster and the source alone: all that is left when the process
    /// ends.
    pub(super) fn print_world(&self) -> StateHash {
        let (mut print, world) = (StateHash::default(), &self.harness.world);
        for thing in world.things.values() {
            let _ =
                write!(print, "{:?}{:?}{:?}{:?}", thing.release, thing.phase, thing.numbers, thing.failed);
        }
        // Past units decide nothing.
        let ledger = (&world.ledger.claims, &world.ledger.units);
        let pods = self.pods.map(|pods| pods.map(|pod| (pod.0, pod.1)));
        let _ = write!(print, "{ledger:?}{:?}{pods:?}{} {}", world.rejections, self.commit, self.crashes);
        print
    }
}

/// Returns a print that differs between entries.
fn entry_print(entry: &ObjectEntry, live: Option<&LiveObject>) -> impl std::fmt::Debug {
    (
        entry.accepted.content().map(|accepted| accepted.hash),
        std::mem::discriminant(&entry.accepted),
        entry.unreleased_content().map(|desired| desired.hash),
        entry.rejection.as_ref().map(|rejection| std::mem::discriminant(&rejection.replacement)),
        entry.min_resource_version.map(|(rv, _)| live.map(|live| live.rv >= rv)),
        entry.direct_view.is_some(),
        entry.previous_content.as_ref().map(|before| before.hash),
        entry.verified.as_ref().map(|verified| verified.content),
        entry.dry_run.as_ref().map(|foreseen| {
            let holds = live.is_some_and(|live| live.generation == foreseen.generation);
            (foreseen.content, foreseen.impact, holds)
        }),
    )
}

/// A hash of what is written.
#[derive(Default)]
pub(super) struct StateHash(DefaultHasher);

impl std::fmt::Write for StateHash {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}
