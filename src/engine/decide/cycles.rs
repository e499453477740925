//! Objects that could never be released, as each waits for the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::facts::desired::wave;
use crate::engine::{DesiredObject, Engine, ManifestFault, SourceId};
use crate::graph::{self, WaitEdges};
use crate::object::{Diagnostic, Object, ObjectId};

/// The number of objects of a cycle that are named: each of them has the names, which would
/// otherwise grow with their square.
const MAX_NAMED_IN_CYCLE: usize = 8;

impl Engine {
    /// Finds the objects that wait for themselves. The objects found before are decided on again.
    pub(in crate::engine) fn find_cycles(&mut self) {
        let found = if self.objects.target_index.dependents().is_empty() {
            BTreeMap::new()
        } else {
            self.cycles_of_wants()
        };
        let before = std::mem::replace(&mut self.blockers.cycles, found);
        let changed = before.iter().filter(|(id, fault)| self.blockers.cycles.get(*id) != Some(*fault));
        let ids: Vec<ObjectId> =
            changed.map(|(id, _)| id).chain(self.blockers.cycles.keys()).cloned().collect();
        for id in ids {
            self.mark_dirty(&id);
        }
    }

    fn cycles_of_wants(&self) -> BTreeMap<ObjectId, ManifestFault> {
        let mut edges = WaitEdges::new();
        let mut found = BTreeMap::new();
        let mut left: Vec<ObjectId> = self.objects.target_index.dependents().iter().cloned().collect();
        while let Some(id) = left.pop() {
            let Some((source, desired)) = self.desired_state(&id) else { continue };
            if edges.contains_key(&id) {
                continue;
            }
            // A rollback waits for nothing that is left behind.
            let is_awaited = |other: &&ObjectId| !self.is_left_behind(&id, other);
            let needs = desired.needs.iter().filter(|need| self.is_of_own_account(source, need));
            let next = needs.chain(&desired.depends_on).filter(is_awaited).cloned();
            left.extend(next.clone());
            edges.insert(id.clone(), next.collect());
            let later = desired.depends_on.iter().filter(is_awaited).find_map(|after| {
                let (other, later) = self.desired_state(after)?;
                (other == source && later.wave > desired.wave).then(|| ManifestFault::LaterWave {
                    after: after.clone(),
                    theirs: later.wave,
                    ours: desired.wave,
                })
            });
            found.extend(later.map(|fault| (id, fault)));
        }
        found.extend(cycle_faults(graph::find_cycles(&edges)));
        found
    }

    /// Returns the desired content of an object, and the source that wants it.
    pub(super) fn desired_state(&self, id: &ObjectId) -> Option<(SourceId, &DesiredObject)> {
        self.objects.entries.get(id)?.target_content().map(|(source, desired)| (source, &**desired))
    }
}

fn cycle_faults(cycles: Vec<Vec<ObjectId>>) -> impl Iterator<Item = (ObjectId, ManifestFault)> {
    cycles.into_iter().flat_map(|cycle| {
        let fault = cycle_fault(&cycle);
        cycle.into_iter().map(move |id| (id, fault.clone()))
    })
}

fn cycle_fault(cycle: &[ObjectId]) -> ManifestFault {
    let first: Arc<[ObjectId]> = cycle.iter().take(MAX_NAMED_IN_CYCLE).cloned().collect();
    let others = (cycle.len() - first.len()) as u32;
    ManifestFault::Cycle { first, others }
}

/// Says which of these objects could never be released together, as each waits for the others.
pub(crate) fn find_dependency_cycles(objects: &[Object]) -> Vec<Diagnostic> {
    let mut edges = WaitEdges::new();
    let mut by_id: BTreeMap<&ObjectId, &Object> = BTreeMap::new();
    for object in objects {
        let after = graph::annotated_dependencies(&object.id, &object.body);
        edges.insert(
            object.id.clone(),
            graph::references(&object.id, &object.body).union(&after).cloned().collect(),
        );
        by_id.insert(&object.id, object);
    }
    let late = objects.iter().filter_map(|object| {
        let ours = wave(&object.body);
        let after = graph::annotated_dependencies(&object.id, &object.body);
        let later = after.iter().filter_map(|id| Some((id, wave(&by_id.get(id)?.body))));
        let (id, theirs) = later.filter(|(_, theirs)| *theirs > ours).min_by_key(|(_, theirs)| *theirs)?;
        Some((object, ManifestFault::LaterWave { after: id.clone(), theirs, ours }))
    });
    let stuck =
        cycle_faults(graph::find_cycles(&edges)).filter_map(|(id, fault)| Some((*by_id.get(&id)?, fault)));
    let finding = |(object, fault): (&Object, ManifestFault)| {
        Diagnostic::error(object.origin.clone(), "cycle", format!("{}: {fault}", object.id))
            .hint("take one of the depends-on annotations away, or put both in one wave")
    };
    let mut found: Vec<Diagnostic> = late.chain(stuck).map(finding).collect();
    found.sort();
    found
}
