//! What one pass would do, or did, as a value: the one form that text, diff and JSON are made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::change::{FieldChange, Impact, ImpactKind};
use crate::object::{Diagnostic, Gvk, ObjectId, Origin};

/// What is decided for one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It does not exist and is created.
    Create,
    /// It exists and is changed.
    Configure,
    /// It is as wanted.
    Unchanged,
    /// It is not wanted any more and is deleted.
    Delete,
    /// It cannot be changed in place and is deleted and created.
    Recreate,
    /// It is held back by something that can pass.
    Wait,
    /// It is refused, by us or by the server.
    Refuse,
}

impl Verdict {
    /// All, in the order of summaries.
    pub const ALL: [Self; 7] = [
        Self::Create,
        Self::Configure,
        Self::Unchanged,
        Self::Delete,
        Self::Recreate,
        Self::Wait,
        Self::Refuse,
    ];

    /// The word of the JSON form.
    pub const fn word(self) -> &'static str {
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
pub struct Planned {
    /// Who.
    pub id: ObjectId,
    /// Its kind with the version used.
    pub gvk: Gvk,
    /// Where the manifest is; none for an object that is only in the cluster.
    pub origin: Option<Origin>,
    /// Order of release, lower first.
    pub wave: i32,
    /// What is decided.
    pub verdict: Verdict,
    /// What that does to pods.
    pub impact: Impact,
    /// What differs, masked.
    pub fields: Vec<FieldChange>,
    /// Why it waits, is refused, is deleted or is taken over; none where there is nothing to say.
    pub reason: Option<String>,
    /// The whole object before, masked and without what only the server sets; none when it did not exist.
    pub before: Option<Arc<Value>>,
    /// The whole object after, likewise; none when it goes away.
    pub after: Option<Arc<Value>>,
}

impl Planned {
    /// Pods that are replaced, one after the other or all at once.
    pub fn restarts(&self) -> u32 {
        match self.impact.kind {
            ImpactKind::Restart | ImpactKind::Recreate => self.impact.pods,
            ImpactKind::None | ImpactKind::InPlace | ImpactKind::Scale => 0,
        }
    }
}

/// Objects that are released together, and that restart pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedUnit {
    /// The wave in which its first workload is restarted.
    pub wave: i32,
    /// Its objects, in order of release.
    pub members: Vec<ObjectId>,
}

/// Of these connected parts those that restart pods, in the order in which the budget releases them.
pub fn units(objects: &[Planned], parts: &[Vec<ObjectId>]) -> Vec<PlannedUnit> {
    let numbers: BTreeMap<&ObjectId, usize> =
        parts.iter().enumerate().flat_map(|(number, part)| part.iter().map(move |id| (id, number))).collect();
    let mut found: BTreeMap<usize, Vec<&Planned>> = BTreeMap::new();
    for planned in objects {
        if let Some(number) = numbers.get(&planned.id) {
            found.entry(*number).or_default().push(planned);
        }
    }
    let first = |members: &[&Planned]| {
        let restarting = members.iter().filter(|planned| planned.restarts() > 0);
        restarting.map(|planned| (planned.wave, planned.id.clone())).min()
    };
    let mut all: Vec<_> =
        found.into_values().filter_map(|members| Some((first(&members)?, members))).collect();
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    let unit = |members: Vec<&Planned>| members.into_iter().map(|planned| planned.id.clone()).collect();
    all.into_iter().map(|((wave, _), members)| PlannedUnit { wave, members: unit(members) }).collect()
}

/// What one pass would do, or did.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Plan {
    /// Name of the source.
    pub source: String,
    /// The revision that was read; empty where there is none.
    pub revision: String,
    /// Whether every byte was read and every document understood.
    pub complete: bool,
    /// Whether deletions wait until a person confirms them.
    pub guarded: bool,
    /// In order of release.
    pub objects: Vec<Planned>,
    /// The units that restart pods, in order of release.
    pub units: Vec<PlannedUnit>,
    /// What reading found.
    pub diagnostics: Vec<Diagnostic>,
    /// What holds for the source as a whole, in words.
    pub notes: Vec<String>,
}
