//! When one pass is over, and what it came to.

use std::collections::BTreeMap;

use super::reconciler::Reconciler;
use crate::engine::{Judgement, Reason, Verdict};
use crate::health::Status;
use crate::object::{Diagnostic, ObjectId};
use crate::report::Told;

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing is left that passes by itself.
    Settled,
    /// The time was over.
    TimedOut,
    /// It was told to stop.
    Stopped,
}

/// What a pass came to.
#[derive(Debug)]
pub struct Pass {
    /// How it ended.
    pub ending: Ending,
    /// The last word on each object.
    pub told: BTreeMap<ObjectId, Told>,
    /// Objects that are as wanted but not healthy, with their health.
    pub unhealthy: BTreeMap<ObjectId, String>,
    /// What reading found, of all sources.
    pub diagnostics: Vec<Diagnostic>,
    /// Why a source was not read whole, by name.
    pub incomplete: Vec<(String, String)>,
    /// The revision that was applied; empty where none could be read.
    pub revision: String,
    /// Whether any source could be read at all.
    pub readable: bool,
}

impl Pass {
    /// The verdict for summaries.
    pub fn verdict(told: &Told) -> Verdict {
        match told {
            Told::Created => Verdict::Create,
            Told::Configured => Verdict::Configure,
            Told::Unchanged => Verdict::Unchanged,
            Told::Pruned => Verdict::Delete,
            Told::Recreating => Verdict::Recreate,
            Told::Waiting(_) => Verdict::Wait,
            Told::Refused(_) => Verdict::Refuse,
        }
    }
}

impl Reconciler {
    /// Whether something is left that passes by itself.
    pub(super) fn is_moving(&self) -> bool {
        self.open.iter().any(|(id, reason)| self.moves(id, reason, 8))
    }

    /// Whether a reason passes by itself soon; `depth` bounds chains of objects that wait for each other.
    fn moves(&self, id: &ObjectId, reason: &Reason, depth: u8) -> bool {
        let works = |id: &ObjectId| self.works(id, depth);
        match reason {
            Reason::Syncing(_)
            | Reason::Inventory(_)
            | Reason::OwnWrite
            | Reason::Resolving(_)
            | Reason::Terminating => true,
            Reason::Retrying(..) => self.queue.failures(id) <= PATIENCE,
            Reason::Needs(need, _) | Reason::Wave(_, need) => works(need),
            Reason::Budget(rolling, _) => rolling.iter().any(works),
            Reason::Unserved(gvk, _) => self.engine.definition_of(&gvk.group_kind()).is_some_and(works),
            Reason::Prune(_) => self.prune_moves(id),
            Reason::UnknownKind(_)
            | Reason::Blind(..)
            | Reason::Refused(..)
            | Reason::Owned(_)
            | Reason::NotAdopted
            | Reason::Held(_)
            | Reason::Fight(..)
            | Reason::Incomplete(_)
            | Reason::Observed => false,
        }
    }

    /// Whether an object is on its way to what is wanted.
    fn works(&self, id: &ObjectId, depth: u8) -> bool {
        if let Some(reason) = self.open.get(id) {
            return depth > 0 && self.moves(id, reason, depth - 1);
        }
        match self.engine.live(id) {
            Some(live) => matches!(live.health.status, Status::InProgress | Status::Unknown),
            None => self.engine.entry(id).is_some(),
        }
    }

    fn prune_moves(&self, id: &ObjectId) -> bool {
        let source = self.engine.live(id).and_then(|live| self.engine.source_of(live));
        let judged = source.and_then(|source| self.engine.judgements(source).find(|(other, _)| *other == id));
        let judged = judged.map(|(_, judgement)| judgement);
        let progress = || self.engine.all_live().any(|(_, live)| live.health.status == Status::InProgress);
        matches!(judged, Some(Judgement::Delete))
            || (matches!(judged, Some(Judgement::Later(_))) && progress())
    }

    /// Sums up.
    pub(super) fn sum_up(&self, ending: Ending) -> Pass {
        let mut told = self.told.clone();
        for (id, reason) in &self.open {
            let word = if reason.is_refusal() {
                Told::Refused(reason.clone())
            } else {
                Told::Waiting(reason.clone())
            };
            told.insert(id.clone(), word);
        }
        let sources = self.engine.sources();
        let incomplete = sources
            .iter()
            .filter_map(|source| Some((source.name.to_string(), source.incomplete.as_ref()?.to_string())));
        Pass {
            ending,
            told,
            unhealthy: self.unhealthy(),
            diagnostics: sources.iter().flat_map(|source| source.catalog.diagnostics()).collect(),
            incomplete: incomplete.collect(),
            revision: sources
                .first()
                .and_then(|s| s.head.as_ref())
                .map(ToString::to_string)
                .unwrap_or_default(),
            readable: sources.iter().any(|source| source.head.is_some()),
        }
    }

    /// Wanted objects that are not healthy.
    pub(super) fn unhealthy(&self) -> BTreeMap<ObjectId, String> {
        let wanted = self.engine.entries().filter(|(_, entry)| entry.want().is_some());
        let sick = wanted.filter_map(|(id, _)| {
            let live = self.engine.live(id)?;
            let words = || match &*live.health.message {
                "" => live.health.status.to_string(),
                message => format!("{}: {message}", live.health.status),
            };
            (!live.health.is_current()).then(|| (id.clone(), words()))
        });
        sick.collect()
    }
}

/// After so many failures in a row a pass no longer waits for an object.
const PATIENCE: u32 = 5;
