//! The result of one pass.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cluster::ClusterError;
use crate::engine::{Plan, PlanBasis, PlannedAction, PlannedObject, Reason, SteppedWorkload};
use crate::object::{Diagnostic, Gvk, ManifestOrigin, ObjectId};
use crate::report::{Outcome, RemainingObjects};

/// The end of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassEnding {
    /// Nothing is left that passes by itself.
    Settled,
    /// The time was over.
    TimedOut,
    /// It was asked to stop.
    Stopped,
    /// It may not know which kinds the server has, without which nothing is read.
    DiscoveryFailed,
}

/// The result of a pass.
#[derive(Debug)]
pub(crate) struct PassResult {
    /// The end of the pass.
    pub ending: PassEnding,
    /// The last word on each object.
    pub outcomes: BTreeMap<ObjectId, Outcome>,
    /// Objects that are applied but not healthy, with their health.
    pub unhealthy: BTreeMap<ObjectId, String>,
    /// Workloads that a step of their rollout holds, and what each step waits for.
    pub held: BTreeMap<ObjectId, String>,
    /// Workloads that show a step, whatever it waits for.
    pub stepped: Vec<SteppedWorkload>,
    /// The findings of reading, of all sources.
    pub diagnostics: Vec<Diagnostic>,
    /// The reason for which a source was not read completely, by name.
    pub incomplete: Vec<(String, String)>,
    /// The revision that was applied; empty where none could be read.
    pub revision: String,
    /// The reason for which nothing was read, where discovery has never answered.
    pub undiscovered: Option<ClusterError>,
    /// Indicates whether any source could be read at all.
    pub readable: bool,
    /// The remaining objects of each source that ends, as far as they are known.
    pub left: BTreeMap<Arc<str>, RemainingObjects>,
    /// The notes about a source as a whole.
    pub notes: Vec<String>,
    /// Kinds and places of the objects.
    pub origins: BTreeMap<ObjectId, (Gvk, Option<ManifestOrigin>)>,
}

impl PassResult {
    /// Returns the result in the form of a plan that was carried out. The changes of each object
    /// are taken from the plan that was made before it, where there is one.
    pub(crate) fn plan(&self, source: &str, foreseen: Option<&Plan>) -> Plan {
        let foreseen: BTreeMap<&ObjectId, &PlannedObject> =
            foreseen.iter().flat_map(|plan| &plan.objects).map(|planned| (&planned.id, planned)).collect();
        let objects = self.outcomes.iter().filter_map(|(id, outcome)| {
            let (gvk, origin) = self.origins.get(id)?.clone();
            let (verdict, reason) = match outcome {
                Outcome::Created => (PlannedAction::Create, None),
                Outcome::Configured => (PlannedAction::Configure, None),
                Outcome::Adopted(owner) => {
                    (PlannedAction::Configure, Some(format!("it is adopted from {owner}")))
                }
                Outcome::Repaired(who) => (PlannedAction::Configure, Some(who.to_string())),
                Outcome::Unchanged | Outcome::Unhealthy(_) => (PlannedAction::Unchanged, None),
                Outcome::Pruned => (PlannedAction::Delete, None),
                Outcome::Recreating | Outcome::Recreated => (PlannedAction::Recreate, None),
                Outcome::Waiting(reason @ Reason::Kept(_)) if self.incomplete.is_empty() => {
                    (PlannedAction::Unchanged, Some(reason.to_string()))
                }
                Outcome::Waiting(reason @ (Reason::LeftAlone(_) | Reason::OptedOut(_))) => {
                    (PlannedAction::Unchanged, Some(reason.to_string()))
                }
                Outcome::Waiting(reason) => (PlannedAction::Wait, Some(reason.to_string())),
                Outcome::Refused(reason) => (PlannedAction::Refuse, Some(reason.to_string())),
            };
            let held = || Some(format!("unfinished: {}", self.held.get(id)?));
            let reason = reason.or_else(held);
            let planned = foreseen.get(id).filter(|planned| planned.verdict == verdict);
            let cause = outcome.reason().cloned();
            let base =
                PlannedObject { origin, reason, cause, ..PlannedObject::new(id.clone(), gvk, verdict) };
            Some(match planned {
                Some(PlannedObject { wave, impact, fields, .. }) => {
                    PlannedObject { wave: *wave, impact: *impact, fields: fields.clone(), ..base }
                }
                None => base,
            })
        });
        Plan {
            basis: PlanBasis::Cluster,
            source: source.to_owned(),
            revision: self.revision.clone(),
            complete: self.incomplete.is_empty(),
            guarded: self.outcomes.values().any(Outcome::is_guarded),
            objects: objects.collect(),
            units: Vec::new(),
            diagnostics: self.diagnostics.clone(),
            notes: self.notes.clone(),
        }
    }
}
