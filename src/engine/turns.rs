//! The turns of rollouts: that one began, succeeded or failed, for whoever tells of them.
//!
//! **Invariant:** what is told here changes no decision.

use std::sync::Arc;

use super::entry::SourceId;
use super::rolls::Roll;
use super::state::Engine;
use super::{Authored, Substitute};
use crate::object::{Hash, ObjectId, Revision};

/// So many turns wait to be taken: more are only told where nobody takes them, as in one pass.
const UNTAKEN: usize = 1024;

/// A turn of one rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The workload.
    pub id: ObjectId,
    /// Its source.
    pub source: SourceId,
    /// What is rolled out: a content, with the data that its pods were started with where they count.
    pub content: Hash,
    /// The turn.
    pub course: Course,
    /// Why it is a way back, in words; none for what the newest revision asks for.
    pub back: Option<Arc<str>>,
}

/// What became of a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Course {
    /// It was written, and its pods are being replaced.
    Began,
    /// It has been whole for as long as it must be.
    Succeeded,
    /// It failed, for this reason.
    Failed(Arc<str>),
}

impl Engine {
    /// Takes the turns since the last time, in their order.
    pub fn take_turns(&mut self) -> Vec<Turn> {
        std::mem::take(&mut self.rollouts.turns)
    }

    /// Notes a turn of a rollout that was claimed for a source of ours: what others began is theirs to tell.
    pub(super) fn note_turn(&mut self, id: &ObjectId, roll: &Roll, course: Course) {
        let Some(claim) = &roll.claim else { return };
        let Some(source) = self.applysets.iter().position(|applyset| *applyset == claim.applyset) else {
            return;
        };
        let content = claim.content;
        let back = self.entry(id).and_then(|entry| entry.instead.as_deref()).and_then(|instead| {
            let returns = matches!(instead.content, Substitute::Known(..)) && !instead.kept;
            returns.then(|| instead.cause.clone())
        });
        let turn = Turn { id: id.clone(), source, content, course, back };
        if self.rollouts.turns.len() < UNTAKEN {
            self.rollouts.turns.push(turn);
        }
    }

    /// Who made a revision of a source, as far as that is known.
    pub fn author(&self, source: SourceId, revision: &Revision) -> Option<&Authored> {
        let untold = self.sources[source].authors.iter().find(|(known, _)| known == revision);
        let told = || self.rollouts.book.as_ref()?.author(&self.applysets[source], revision);
        untold.map(|(_, authored)| authored).or_else(told)
    }
}
