//! Numbers and sets for the prune guard, kept as facts come in. Counted anew for each decision, ten
//! thousand objects would cost milliseconds each time.

use std::collections::BTreeSet;

use crate::engine::LiveObject;
use crate::engine::facts::entry::SourceId;
use crate::engine::state::Engine;
use crate::object::ObjectId;

impl Engine {
    /// Counts an object again whose live state has changed or gone.
    pub(in crate::engine) fn count_live(&mut self, id: &ObjectId, before: Option<&LiveObject>) {
        let now = self.objects.informer_objects.get(id);
        let brought =
            |live: Option<&LiveObject>| live?.shown_release().map(|release| release.revision.clone());
        let proven =
            |live: Option<&LiveObject>| live?.release.as_ref().map(|release| release.revision.clone());
        let now = now.map(|live| &**live);
        let (was, is) = (
            before.and_then(|live| self.inventory_source(live)),
            now.and_then(|live| self.inventory_source(live)),
        );
        let (from, to) = (brought(before), brought(now));
        let (old, new) = (proven(before), proven(now));
        for source in was.into_iter().chain(is).collect::<BTreeSet<SourceId>>() {
            match (was == Some(source), is == Some(source)) {
                (false, true) => self.sources[source].live_counts_mut().add(id),
                (true, false) => self.sources[source].live_counts_mut().remove(id),
                _ => {}
            }
        }
        if from != to {
            self.objects.live_objects_by_revision.exchange(from.as_ref(), to);
        }
        if old != new {
            self.objects.proven_objects_by_revision.exchange(old.as_ref(), new);
        }
        // An unproven object is not counted, and lives all the same.
        let (owned, owns) =
            (before.and_then(|live| self.source_of(live)), now.and_then(|live| self.source_of(live)));
        if was != is || owned != owns {
            self.note_owner_change(id, owned, owns);
        }
        self.track_unproven(id);
    }

    /// Keeps the set of objects with which a change of the newest revision is not done.
    pub(in crate::engine) fn track_move(&mut self, id: &ObjectId) {
        for source in self.source_ids() {
            let moving = self.is_change_unfinished(source, id);
            let state = &mut self.sources[source];
            if moving {
                state.unfinished.insert(id.clone());
            }
            let has_ended = !moving && state.unfinished.remove(id);
            if state.unfinished.is_empty() {
                // Memory that a first pass over a large source needed is given back.
                state.unfinished.shrink_to_fit();
            }
            // Deletions wait for what moves, and name it.
            if moving || has_ended {
                state.prunes.mark_stale();
            }
        }
    }

    /// Returns whether a change of the newest revision of a source is not done.
    pub(in crate::engine) fn has_unfinished_changes(&self, source: SourceId) -> bool {
        !self.sources[source].unfinished.is_empty()
    }

    /// Updates the moves of a source with a new revision. Only moving objects can have come to rest
    /// by it, and only objects that show this very revision can have begun to move.
    pub(in crate::engine) fn track_moves(&mut self, source: SourceId) {
        let state = &self.sources[source];
        let shown = state.head.as_ref().is_some_and(|head| self.objects.live_objects_by_revision.has(head));
        let ids: Vec<ObjectId> = if shown {
            state.manifests.ids().cloned().collect()
        } else {
            state.unfinished.iter().cloned().collect()
        };
        for id in &ids {
            self.track_move(id);
        }
    }

    /// Fails where a number is wrong, or a change that is not done would be taken for done.
    #[cfg(test)]
    pub(in crate::engine) fn assert_counts(&self) {
        for (number, source) in self.source_ids().zip(self.sources.states()) {
            let mut members = crate::engine::ObjectCounts::default();
            for (id, _) in self
                .objects
                .informer_objects
                .iter()
                .filter(|(_, live)| self.inventory_source(live) == Some(number))
            {
                members.add(id);
            }
            assert_eq!(members, source.live_counts);
            let mut kinds = crate::engine::ObjectCounts::default();
            let wants = |entry: &crate::engine::ObjectEntry| {
                entry.targets.iter().any(|(wanting, _)| *wanting == number)
            };
            let wanted = self.entries().filter(|(_, entry)| wants(entry));
            wanted.for_each(|(id, _)| kinds.add(id));
            assert_eq!(kinds, source.desired_counts);
            let mut object_counts = crate::engine::ObjectCounts::default();
            for id in source.manifests.ids() {
                object_counts.add(id);
            }
            assert!(object_counts.kinds().eq(source.manifests.object_counts().kinds()));
            assert!(object_counts.namespaces().eq(source.manifests.object_counts().namespaces()));
            for id in source.manifests.ids().filter(|id| self.unfinished_change(number, id).is_some()) {
                assert!(source.unfinished.contains(id), "{id} is moving");
            }
            for (id, entry) in self.entries().filter(|(id, _)| id.is("", "Namespace")) {
                let wanted = self.objects.target_index.wanted_namespace(id.name());
                assert_eq!(wanted == Some(id), !entry.targets.is_empty(), "{id} is wanted");
            }
            let may_differ = self.differing_candidates(number);
            for (id, _) in self.entries().filter(|(id, entry)| self.is_differing(number, id, entry)) {
                assert!(may_differ.contains(id), "{id} differs");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::tests::world::{FIRST, SET, World, WorldObject, config, desired, following, reading};
    use crate::engine::{
        AdoptPolicy, Engine, LiveObject, PruneCause, PruneDecision, RepositoryIdentity, SharedDesiredObject,
    };
    use crate::health::{Health, HealthStatus};
    use crate::object::GroupKind;

    fn engine() -> Engine {
        following(&[("own", SET, RepositoryIdentity::None)], AdoptPolicy::IfUnowned)
    }

    #[test]
    fn what_is_gone_is_none_of_all_objects_of_a_kind() {
        let names = ["a", "b", "c", "d"];
        let files = |is_there: bool| -> Vec<(&str, Option<SharedDesiredObject>)> {
            names.iter().map(|name| (*name, is_there.then(|| desired(&config(name), 1, name)))).collect()
        };
        let mut engine = engine();
        engine.set_reading(FIRST, reading("c1", &files(true)));
        for (number, name) in names.iter().enumerate() {
            let id = config(name);
            let thing = WorldObject::settled(desired(&id, 1, name).hash, "c1", number as u64 + 1);
            engine.observe_object(&id, World::live(&id, &thing));
        }
        engine.observe_absence(&config("d"));
        engine.set_reading(FIRST, reading("c2", &files(false)));
        engine.process_changes();
        let judged: Vec<PruneDecision> =
            engine.prune_decisions(FIRST).map(|(_, decision)| decision.clone()).collect();
        let all_three = PruneCause::AllOfKind(GroupKind::new("", "ConfigMap"), 3);
        assert_eq!(judged, vec![PruneDecision::Confirm(all_three); 3]);
    }

    #[test]
    fn an_object_that_is_not_healthy_is_a_change_of_the_newest_revision_where_it_shows_that_one() {
        let id = config("a");
        let mut engine = engine();
        engine.set_reading(FIRST, reading("c1", &[("a", Some(desired(&id, 1, "a")))]));
        let thing = WorldObject::settled(desired(&id, 1, "a").hash, "c2", 1);
        let health = Health::new(HealthStatus::InProgress, "it has just begun");
        engine.observe_object(&id, LiveObject { health, ..World::live(&id, &thing) });
        for (revision, expected) in [("c1", false), ("c2", true), ("c3", false)] {
            engine.set_reading(FIRST, reading(revision, &[]));
            assert_eq!(engine.has_unfinished_changes(FIRST), expected, "{revision}");
        }
    }
}
