//! The plan or the result of one pass, as a value: the one form that text, diff and JSON are made
//! of.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::change::{FieldChange, Impact, ImpactKind};
use crate::engine::Reason;
use crate::object::{Diagnostic, Gvk, ManifestOrigin, ObjectId};

/// The planned action on one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PlannedAction {
    /// It does not exist and is created.
    Create,
    /// It exists and is changed.
    Configure,
    /// It is applied.
    Unchanged,
    /// It is no longer wanted and is deleted.
    Delete,
    /// It cannot be changed in place and is deleted and created.
    Recreate,
    /// It is held back by something that can pass.
    Wait,
    /// It is refused, by us or by the server.
    Refuse,
}

impl PlannedAction {
    /// Returns the word of the JSON form.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Configure => "configure",
            Self::Unchanged => "unchanged",
            Self::Delete => "delete",
            Self::Recreate => "recreate",
            Self::Wait => "wait",
            Self::Refuse => "refuse",
        }
    }
}

/// One object of a plan.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlannedObject {
    /// The object.
    pub id: ObjectId,
    /// Its kind with the version used.
    pub gvk: Gvk,
    /// The place of the manifest; none for an object that is only in the cluster.
    pub origin: Option<ManifestOrigin>,
    /// Order of release, lower first.
    pub wave: i32,
    /// The action.
    pub verdict: PlannedAction,
    /// Its impact on pods.
    pub impact: Impact,
    /// The differing fields, masked.
    pub fields: Vec<FieldChange>,
    /// The reason for a wait, a refusal, a deletion or a takeover; none where there is nothing to
    /// say.
    pub reason: Option<String>,
    /// The reason for machines, where the engine had one.
    pub cause: Option<Reason>,
    /// The whole object before, masked and without what only the server sets; none when it did not
    /// exist.
    pub before: Option<Arc<Value>>,
    /// The whole object after, likewise; none when it goes away.
    pub after: Option<Arc<Value>>,
}

impl PlannedObject {
    /// Returns an object of which nothing but the action is said.
    pub(crate) fn new(id: ObjectId, gvk: Gvk, verdict: PlannedAction) -> Self {
        Self {
            id,
            gvk,
            origin: None,
            wave: 0,
            verdict,
            impact: Impact { kind: ImpactKind::None, pods: 0 },
            fields: Vec::new(),
            reason: None,
            cause: None,
            before: None,
            after: None,
        }
    }

    /// Returns the number of pods that are replaced, one after the other or all at once.
    pub(crate) fn restarted_pods(&self) -> u32 {
        match self.impact.kind {
            ImpactKind::Restart | ImpactKind::Recreate => self.impact.pods,
            ImpactKind::None | ImpactKind::InPlace | ImpactKind::Scale => 0,
        }
    }
}

/// Objects that are released together, and that restart pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedUnit {
    /// The wave in which its first workload is restarted.
    pub wave: i32,
    /// Its objects, in order of release.
    pub members: Vec<ObjectId>,
}

/// Returns the connected parts that restart pods, in the order in which the budget releases them.
pub(crate) fn units(objects: &[PlannedObject], parts: &[Vec<ObjectId>]) -> Vec<PlannedUnit> {
    let numbers: BTreeMap<&ObjectId, usize> =
        parts.iter().enumerate().flat_map(|(number, part)| part.iter().map(move |id| (id, number))).collect();
    let mut found: BTreeMap<usize, Vec<&PlannedObject>> = BTreeMap::new();
    for planned in objects {
        if let Some(number) = numbers.get(&planned.id) {
            found.entry(*number).or_default().push(planned);
        }
    }
    let first = |members: &[&PlannedObject]| {
        let restarting = members.iter().filter(|planned| planned.restarted_pods() > 0);
        restarting.map(|planned| (planned.wave, planned.id.clone())).min()
    };
    let mut all: Vec<_> =
        found.into_values().filter_map(|members| Some((first(&members)?, members))).collect();
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    let unit = |members: Vec<&PlannedObject>| members.into_iter().map(|planned| planned.id.clone()).collect();
    all.into_iter().map(|((wave, _), members)| PlannedUnit { wave, members: unit(members) }).collect()
}

/// The thing that a plan starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum PlanBasis {
    /// The cluster as it is.
    #[default]
    Cluster,
    /// An older revision of the source: nothing was asked of a cluster.
    Revision,
}

/// The plan or the result of one pass.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct Plan {
    /// The thing that it starts from.
    pub basis: PlanBasis,
    /// Name of the source.
    pub source: String,
    /// The revision that was read; empty where there is none.
    pub revision: String,
    /// Indicates whether every byte was read and every document understood.
    pub complete: bool,
    /// Indicates whether deletions wait until a person confirms them.
    pub guarded: bool,
    /// The objects, in order of release.
    pub objects: Vec<PlannedObject>,
    /// The units that restart pods, in order of release.
    pub units: Vec<PlannedUnit>,
    /// The diagnostics.
    pub diagnostics: Vec<Diagnostic>,
    /// The notes about the source as a whole.
    pub notes: Vec<String>,
}
