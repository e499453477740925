//! All sources of an engine, by their numbers.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

use crate::engine::facts::entry::SourceId;
use crate::engine::facts::source_declaration::SourceDeclaration;
use crate::engine::facts::sources::SourceState;
use crate::object::Revision;

/// The sources, and what numbers and names them.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct SourceSet {
    /// The sources, by their numbers.
    states: Vec<SourceState>,
    /// The id of the inventory of each source: the value of the label on its objects.
    inventory_ids: Vec<Arc<str>>,
    /// The newest revision of each source that was read; empty before the first.
    heads: Vec<Revision>,
    /// The last number that was given to a reading or an observation: it orders them.
    observation_counter: u64,
    /// The namespace of the inventories, for commands that people type.
    inventory_namespace: Arc<str>,
}

impl SourceSet {
    /// Adds a source that was not read yet, and returns its number.
    pub(in crate::engine) fn add(&mut self, declared: SourceDeclaration) -> SourceId {
        self.inventory_ids.push(declared.inventory_id.clone());
        self.heads.push(Revision::new(""));
        let id = SourceId::new(self.states.len());
        self.states.push(SourceState::new(declared));
        id
    }

    /// Returns all sources, by number.
    pub(in crate::engine) fn states(&self) -> &[SourceState] {
        &self.states
    }

    /// Does the same as [`SourceSet::states`], for changes.
    pub(in crate::engine) fn states_mut(&mut self) -> &mut [SourceState] {
        &mut self.states
    }

    /// Returns the ids of the inventories, by the numbers of their sources.
    pub(in crate::engine) fn inventory_ids(&self) -> &[Arc<str>] {
        &self.inventory_ids
    }

    /// Returns the newest revision of a source that was read; an empty one before the first.
    pub(in crate::engine) fn head(&self, source: SourceId) -> &Revision {
        &self.heads[source]
    }

    /// Takes over which revision of a source is the newest, as its state names it.
    pub(in crate::engine) fn note_head(&mut self, source: SourceId) {
        self.heads[source] = self.states[source].head.clone().unwrap_or_else(|| Revision::new(""));
    }

    /// Returns the last number that a reading or an observation got.
    pub(in crate::engine) fn last_observation_number(&self) -> u64 {
        self.observation_counter
    }

    /// Returns a number that no reading and no observation had before.
    pub(in crate::engine) fn next_observation_number(&mut self) -> u64 {
        self.observation_counter += 1;
        self.observation_counter
    }

    /// Returns the namespace of the inventories.
    pub(in crate::engine) fn inventory_namespace(&self) -> &str {
        &self.inventory_namespace
    }

    /// Names the namespace of the inventories.
    pub(in crate::engine) fn set_inventory_namespace(&mut self, namespace: &str) {
        self.inventory_namespace = namespace.into();
    }
}

impl Index<SourceId> for SourceSet {
    type Output = SourceState;

    fn index(&self, id: SourceId) -> &SourceState {
        &self.states[id]
    }
}

impl IndexMut<SourceId> for SourceSet {
    fn index_mut(&mut self, id: SourceId) -> &mut SourceState {
        &mut self.states[id]
    }
}
