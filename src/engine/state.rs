//! The engine: its parts, and the transitions that new facts cause in several of them.
//!
//! Facts come in by `Engine::handle`, in `calls.rs`. Each marks the keys of the objects that it is
//! about. `Engine::poll` gives these to the queue of the loop, and `Engine::take_dirty` gives the
//! keys that a decision has marked.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use serde_json::Value;

use crate::engine::decide::ownership::OwnerChange;
use crate::engine::decide::standing_blockers::StandingBlockers;
use crate::engine::deletion::handover::Handover;
use crate::engine::facts::config_hash::HashKey;
use crate::engine::facts::entry::{ObjectEntry, SourceId, WaitTopic};
use crate::engine::facts::kinds::{KindAvailability, KindFacts};
use crate::engine::facts::object_facts::ObjectFacts;
use crate::engine::facts::read_state::ReadState;
use crate::engine::facts::source_set::SourceSet;
use crate::engine::facts::sources::{Inventory, SourceReading, SourceState};
use crate::engine::facts::{authors, lookup_counts};
use crate::engine::orders::pauses::OrderState;
use crate::engine::restart::config_restart::ConfigDataState;
use crate::engine::rollout::rollouts::Rollouts;
use crate::engine::trace::TraceRecorder;
use crate::engine::{Budget, DesiredState, IncompleteCause, LiveObject, ReplacementContent};
use crate::object::{Gvk, ObjectId};

/// Indicates whether the objects that come first must be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum DecisionMode {
    /// They must be there.
    #[default]
    Live,
    /// They count as done, as in a plan.
    Plan,
}

/// All facts, and every transition. The folder that defines a part owns what is in it.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Engine {
    /// The sources, by their numbers.
    pub(super) sources: SourceSet,
    /// The objects: their entries, their live states, and their waits and marks.
    pub(super) objects: ObjectFacts,
    /// The kinds, and who lists them.
    pub(super) kinds: KindFacts,
    /// The budget, and the workloads that roll.
    pub(super) rollouts: Rollouts,
    /// The orders, pauses and holds of people.
    pub(super) orders: OrderState,
    /// The blockers that outlast a decision.
    pub(super) blockers: StandingBlockers,
    /// The data that pods use, as hashes.
    pub(super) configs: ConfigDataState,
    /// The statements of other sources, and the objects that move between sources.
    pub(super) handover: Handover,
    /// The trace of the calls, where they are recorded.
    pub(super) trace: Option<Box<TraceRecorder>>,
}

impl Engine {
    /// Returns an engine without sources.
    pub(crate) fn new(budget: Budget) -> Self {
        Self { rollouts: Rollouts::new(budget), ..Self::default() }
    }

    /// Makes it decide as if all prerequisites were met: for a plan, not for a write.
    #[must_use]
    pub(crate) fn assume_prerequisites(mut self) -> Self {
        self.blockers.mode = DecisionMode::Plan;
        self
    }

    /// Returns the answer to a question about facts that a trace leaves out: as it is found, or as
    /// it was recorded.
    pub(super) fn answer_for_trace(&self, question: impl FnOnce() -> Value, find: impl Fn() -> bool) -> bool {
        let answer = self.trace.as_ref().and_then(|trace| trace.answer(question, &find));
        answer.unwrap_or_else(find)
    }

    /// Makes a key answer for the trace, where there is one.
    pub(super) fn attach_key(&self, key: ReadState<HashKey>) -> ReadState<HashKey> {
        match (&self.trace, key) {
            (Some(trace), ReadState::Value(key)) => ReadState::Value(trace.attach(key)),
            (_, key) => key,
        }
    }

    /// Returns a source by its number.
    pub(super) fn source(&self, id: SourceId) -> &SourceState {
        &self.sources[id]
    }

    /// Returns the ids of all sources, in the order of [`sources`](Self::sources).
    pub(super) fn source_ids(
        &self,
    ) -> impl DoubleEndedIterator<Item = SourceId> + ExactSizeIterator + Clone + use<> {
        SourceId::first(self.sources.states().len())
    }

    /// Returns the source whose objects have an `ApplySet` id.
    pub(super) fn source_of_inventory_id(&self, inventory_id: &str) -> Option<SourceId> {
        self.source_ids().find(|source| *self.sources.inventory_ids()[*source] == *inventory_id)
    }

    /// Returns all sources, by number.
    pub(super) fn sources(&self) -> &[SourceState] {
        self.sources.states()
    }

    /// Returns the facts about one object.
    pub(super) fn entry(&self, id: &ObjectId) -> Option<&ObjectEntry> {
        lookup_counts::count(1);
        self.objects.entries.get(id).map(|entry| &**entry)
    }

    /// Returns all entries, in no particular order.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&ObjectId, &ObjectEntry)> {
        lookup_counts::count(self.objects.entries.len());
        self.objects.entries.iter().map(|(id, entry)| (id, &**entry))
    }

    /// Returns the informers' view of one object.
    pub(super) fn informer_object(&self, id: &ObjectId) -> Option<&LiveObject> {
        lookup_counts::count(1);
        self.objects.informer_objects.get(id).map(|live| &**live)
    }

    /// Returns all that the informers show, in no particular order.
    pub(super) fn informer_objects(&self) -> impl Iterator<Item = (&ObjectId, &LiveObject)> {
        lookup_counts::count(self.objects.informer_objects.len());
        self.objects.informer_objects.iter().map(|(id, live)| (id, &**live))
    }

    /// Does the same as [`Engine::take_dirty`], as a part of that call or of another.
    pub(super) fn take_marked(&mut self) -> Vec<ObjectId> {
        self.requeue_config_consumers();
        if self.objects.wakes.has_dirty() {
            self.clear_memo();
        }
        self.objects.wakes.take_dirty()
    }

    /// Marks an object as changed.
    pub(super) fn mark_dirty(&mut self, id: &ObjectId) {
        self.objects.wakes.mark(id.clone());
    }

    /// Marks everything, as the periodic resync does.
    pub(super) fn mark_all(&mut self) {
        self.objects.wakes.mark_each(self.objects.entries.keys().cloned());
    }

    /// Wakes the objects that wait for a topic.
    pub(super) fn wake_topic(&mut self, topic: &WaitTopic) {
        self.objects.wakes.wake(topic);
    }

    /// Takes over a reading of a source.
    pub(super) fn set_reading(&mut self, source: SourceId, reading: SourceReading) {
        let state = &mut self.sources[source];
        let (first, mut changed) = (state.head.is_none(), BTreeSet::new());
        for (file, mut facts) in reading.files {
            if let Some(facts) = &mut facts {
                self.objects.share_ids(facts);
            }
            changed.extend(state.manifests.replace(&file, facts));
        }
        let unreadable =
            state.manifests.first_unreadable_file().cloned().map(IncompleteCause::UnreadableFile);
        let incomplete_reason = reading.incomplete_reason.map(IncompleteCause::Message).or(unreadable);
        let before = std::mem::replace(&mut state.incomplete_reason, incomplete_reason);
        (state.refused, state.warnings) = (reading.refused, reading.warnings);
        state.rendered_kinds = reading.rendered_kinds;
        let is_by_roots = !state.manifests.has_unreadable_plain_file();
        let unrendered = if is_by_roots { reading.unrendered } else { Arc::default() };
        let is_unrendered_new = std::mem::replace(&mut state.unrendered, unrendered) != state.unrendered;
        if is_unrendered_new || before.is_some() && state.incomplete_reason.is_none() {
            let unwanted = self.objects.entries.iter().filter(|(_, entry)| entry.targets.is_empty());
            self.objects.wakes.mark_each(unwanted.map(|(id, _)| id.clone()));
        }
        if reading.revision.is_some() && reading.revision != state.head {
            // The newest revision decides when an object is finished.
            self.objects.wakes.mark_each(state.waves.values().flatten().cloned());
            state.head = reading.revision;
            if let (Some(revision), Some(authored), false) =
                (&state.head, reading.authored, changed.is_empty())
            {
                authors::note(&mut state.authors, revision, authored);
            }
            self.sources.note_head(source);
            self.track_moves(source);
            self.begin_slowly();
        }
        for id in &changed {
            self.recompute_target(source, id);
        }
        if first {
            self.give_up_unwanted();
        }
        self.rollouts.units.forget(source);
        self.apply_rejections(source);
        self.find_cycles();
        let unwanted = |id| self.entry(id).is_none_or(|entry: &ObjectEntry| entry.targets.is_empty());
        if first || changed.iter().any(unwanted) {
            self.sources[source].last_removal = self.next_observation_number();
            self.sources[source].removed_at = self.rollouts.starts.current_time();
        }
        self.sources[source].prunes.mark_stale();
    }

    /// Returns the last observation number. A reading gets one where it
    /// removes an object from the desired state of its source, or is the first of its source.
    /// Another source may have the object in a revision that has not been read yet.
    pub(super) fn last_observation_number(&self) -> u64 {
        self.sources.last_observation_number()
    }

    /// Records that a source was checked after the reading with this observation number, and that
    /// the changes found were read.
    pub(super) fn record_check(&mut self, source: SourceId, reading: u64) {
        self.sources[source].checked_after = reading;
        self.complete_observation(source, reading);
        self.mark_prunes_stale();
    }

    /// Keeps what is in force; nothing is pruned while the source cannot be read.
    pub(super) fn set_unreadable(&mut self, source: SourceId, why: Arc<str>) {
        self.sources[source].incomplete_reason = Some(IncompleteCause::Message(why));
        self.sources[source].unrendered = Arc::default();
        self.sources[source].prunes.mark_stale();
    }

    /// Returns the target of one source for an object: what it wants, or its rollback target.
    fn target_of(&self, source: SourceId, id: &ObjectId) -> Option<DesiredState> {
        if self.allow_violation(source, id).is_some() {
            return None;
        }
        let state = self.sources[source].manifests.desired_state(id);
        if !self.sources[source].rejected_objects.contains(id) {
            return state;
        }
        match self.entry(id).and_then(|entry| Some(&entry.rejection.as_ref()?.replacement)) {
            Some(ReplacementContent::Read(content, _)) => Some(DesiredState::Object(content.clone())),
            Some(ReplacementContent::Delete) => None,
            _ => state,
        }
    }

    /// Sets the target of one source for an object anew. Marks the object where that changed.
    pub(super) fn recompute_target(&mut self, source: SourceId, id: &ObjectId) {
        let target = self.target_of(source, id);
        let newest = self.sources[source].head.clone();
        let entry = self.objects.entries.entry(id.clone()).or_default();
        let named = entry.targets.iter().any(|(other, _)| *other == source);
        match (named, &target) {
            (false, Some(_)) => self.sources[source].desired_counts_mut().add(id),
            (true, None) => self.sources[source].desired_counts_mut().remove(id),
            _ => {}
        }
        let before = entry.targets.clone();
        let was = entry.target_content().map(|(_, desired)| desired.clone());
        let mut left_wave = false;
        if let Some((_, DesiredState::Object(old))) = entry.targets.iter().find(|(other, _)| *other == source)
        {
            left_wave = self.sources[source].waves.entry(old.wave).or_default().remove(id);
            if let Some(defined) = &old.defines {
                self.objects.target_index.forget_definition(defined, id);
            }
        }
        entry.targets.retain(|(other, _)| *other != source);
        if let Some(target) = target {
            // Nearly always the only one.
            entry.targets.reserve_exact(1);
            entry.targets.push((source, target));
        }
        entry.targets.sort_by_key(|(source, _)| *source);
        self.sort_targets_by_owner(id);
        self.objects.index_target(id);
        let Some(entry) = self.objects.entries.get(id) else { return };
        if entry.targets != before {
            self.blockers.forget_denials(id);
            self.blockers.forget_refusal(id);
            self.prove_wanted(id);
            let Some(entry) = self.objects.entries.get_mut(id) else { return };
            if let (Some(live), None) = (self.objects.informer_objects.get(id), entry.min_resource_version) {
                entry.restore_accepted(live, newest.as_ref());
            }
            self.track_shown_end(id);
            self.track(id);
            self.track_rollout(id);
            self.objects.wakes.mark(id.clone());
            self.wake_topic(&WaitTopic::Object(id.clone()));
            self.track_uses(id, was.as_deref());
        }
        self.track_wave(id);
        self.track_move(id);
        if left_wave {
            self.wake_waves(source);
        }
    }

    /// Processes what a batch of facts changed: begins rollbacks, divides the budget, and judges
    /// prunes again. Marks the objects whose prune decision changed. To be called after each batch.
    pub(super) fn process_changes(&mut self) {
        self.clear_memo();
        self.complete_changes();
    }

    /// Begins the rollbacks that are ready, divides the budget, and judges prunes that are stale.
    pub(super) fn complete_changes(&mut self) {
        self.requeue_config_consumers();
        self.begin_rollbacks();
        self.requeue_config_consumers();
        self.divide_budget();
        self.decide_changed_prunes();
    }

    /// Keeps the set of objects whose accepted content has not been read, and of those that are
    /// ours and that no source wants.
    pub(super) fn track(&mut self, id: &ObjectId) {
        if self.sort_targets_by_owner(id) == OwnerChange::Changed {
            self.change_owner(id);
        }
        self.objects.track_accepted(id);
        let ours = self.objects.informer_objects.get(id).is_some_and(
            |live| matches!(&live.owner, crate::engine::ObjectOwner::Ours(set) if self.sources.inventory_ids().contains(set)),
        );
        if self.objects.entries.get(id).is_some_and(|entry| !entry.targets.is_empty()) {
            self.withdraw_confirmation(id);
            self.objects.forget_unwanted(id);
        } else if ours {
            self.objects.note_unwanted(id);
        } else {
            self.objects.forget_unwanted(id);
        }
        self.track_handover(id);
    }

    /// Takes over what the inventory says.
    pub(super) fn set_inventory(&mut self, source: SourceId, mut inventory: Inventory) {
        // A Job that has ended has ended, whatever becomes of the inventory.
        if let Some(known) = &self.sources[source].inventory {
            for (id, job) in known.finished.iter().filter(|(id, job)| self.is_target_hash(id, job.content)) {
                inventory.finished.insert(id.clone(), job.clone());
            }
        }
        let known = self.sources[source].inventory.as_ref();
        if known != Some(&inventory) {
            let has_same_rejections = known.is_some_and(|known| known.rejections == inventory.rejections);
            if known.is_some_and(|known| known.paused != inventory.paused) {
                self.mark_all();
                self.rollouts.units.forget(source);
            }
            let finished: Vec<ObjectId> = inventory.finished.keys().cloned().collect();
            self.sources[source].inventory = Some(inventory);
            for id in &finished {
                self.track_shown_end(id);
            }
            self.clear_memo();
            self.drop_recorded_confirmations(source);
            self.note_inventory_change(source);
            self.apply_rejections(source);
            if !has_same_rejections {
                self.find_cycles();
            }
            self.retry_forgotten_rejections(source);
            self.sources[source].prunes.mark_stale();
            self.wake_topic(&WaitTopic::Inventory(source));
        }
    }

    /// Takes over whether the server has a kind.
    pub(super) fn set_kind_availability(&mut self, gvk: Gvk, availability: KindAvailability) {
        if self.kinds.set_availability(gvk, availability) {
            self.wake_topic(&WaitTopic::Kinds);
        }
    }

    /// Takes over which objects autoscalers target.
    pub(super) fn set_autoscaled(&mut self, targets: HashSet<ObjectId>) {
        let changed: Vec<ObjectId> = match self.objects.replace_autoscaled(targets.clone()) {
            Some(before) => before.symmetric_difference(&targets).cloned().collect(),
            // Until now those whose count is not ours were taken for targets.
            None => self.objects.entries.keys().cloned().collect(),
        };
        for id in &changed {
            self.track_rollout(id);
        }
        self.objects.wakes.mark_each(changed);
    }

    /// Forgets an object of which nothing is known any more.
    pub(super) fn drop_entry(&mut self, id: &ObjectId) {
        if self.objects.entries.get(id).is_some_and(|entry| entry.targets.is_empty()) {
            self.clear_memo();
            self.objects.entries.remove(id);
            self.forget_blocker(id);
            self.blockers.forget_refusal(id);
            let is_shown = self.objects.informer_objects.contains_key(id);
            if !is_shown {
                self.track_rollout(id);
            }
            self.rollouts.interrupted.forget(id);
            if !is_shown {
                self.wake_topic(&WaitTopic::Object(id.clone()));
            } else if self.objects.unwanted_objects().contains(id) {
                // The event of its deletion never came, and it is shown: it is there again, in a
                // version that is older than the deletion. The facts about that are forgotten, and
                // it is judged anew.
                self.objects.entries.entry(id.clone()).or_default();
                self.note_object_change(id);
            }
        }
    }
}
