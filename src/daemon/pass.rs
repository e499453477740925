//! What one pass came to.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::change::{Impact, ImpactKind};
use crate::cluster::Error;
use crate::engine::{Plan, Planned, Reason, Verdict};
use crate::object::{Diagnostic, Gvk, ObjectId, Origin};
use crate::report::{Left, Told};

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing is left that passes by itself.
    Settled,
    /// The time was over.
    TimedOut,
    /// It was told to stop.
    Stopped,
    /// It may not know which kinds the server has, without which nothing is read.
    Undiscovered,
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
    /// Workloads that a step of their rollout holds, and what each step waits for.
    pub held: BTreeMap<ObjectId, String>,
    /// What reading found, of all sources.
    pub diagnostics: Vec<Diagnostic>,
    /// Why a source was not read whole, by name.
    pub incomplete: Vec<(String, String)>,
    /// The revision that was applied; empty where none could be read.
    pub revision: String,
    /// Why nothing was read, where discovery has never answered.
    pub undiscovered: Option<Error>,
    /// Whether any source could be read at all.
    pub readable: bool,
    /// What is left of each source that ends, as far as that is known.
    pub left: BTreeMap<Arc<str>, Left>,
    /// What holds for a source as a whole, in words.
    pub notes: Vec<String>,
    /// Kinds and places of the objects.
    pub places: BTreeMap<ObjectId, (Gvk, Option<Origin>)>,
}

impl Pass {
    /// In the form of a plan that was carried out; what changed in each object is taken from the plan that
    /// was made before it, where there is one.
    pub fn plan(&self, source: &str, foreseen: Option<&Plan>) -> Plan {
        let foreseen: BTreeMap<&ObjectId, &Planned> =
            foreseen.iter().flat_map(|plan| &plan.objects).map(|planned| (&planned.id, planned)).collect();
        let objects = self.told.iter().filter_map(|(id, told)| {
            let (gvk, origin) = self.places.get(id)?.clone();
            let (verdict, reason) = match told {
                Told::Created => (Verdict::Create, None),
                Told::Configured => (Verdict::Configure, None),
                Told::Repaired(who) => (Verdict::Configure, Some(who.to_string())),
                Told::Unchanged | Told::Unhealthy(_) => (Verdict::Unchanged, None),
                Told::Pruned => (Verdict::Delete, None),
                Told::Recreating | Told::Recreated => (Verdict::Recreate, None),
                Told::Waiting(Reason::Kept(why)) if self.incomplete.is_empty() => {
                    (Verdict::Unchanged, Some(why.to_string()))
                }
                Told::Waiting(reason @ (Reason::LeftAlone(_) | Reason::OptedOut(_))) => {
                    (Verdict::Unchanged, Some(reason.to_string()))
                }
                Told::Waiting(reason) => (Verdict::Wait, Some(reason.to_string())),
                Told::Refused(reason) => (Verdict::Refuse, Some(reason.to_string())),
            };
            let held = || Some(format!("unfinished: {}", self.held.get(id)?));
            let reason = reason.or_else(held);
            let told = foreseen.get(id).filter(|planned| planned.verdict == verdict);
            Some(Planned {
                id: id.clone(),
                gvk,
                origin,
                wave: told.map_or(0, |planned| planned.wave),
                verdict,
                impact: told.map_or(Impact { kind: ImpactKind::None, pods: 0 }, |planned| planned.impact),
                fields: told.map(|planned| planned.fields.clone()).unwrap_or_default(),
                reason,
                before: None,
                after: None,
            })
        });
        Plan {
            source: source.to_owned(),
            revision: self.revision.clone(),
            complete: self.incomplete.is_empty(),
            guarded: self.told.values().any(Told::is_guarded),
            objects: objects.collect(),
            units: Vec::new(),
            diagnostics: self.diagnostics.clone(),
            notes: self.notes.clone(),
        }
    }
}
