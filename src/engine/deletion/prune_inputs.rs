//! The inputs of the prune guard: the pending objects, what stops all pruning, and which object
//! references which.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::decide::decision::{DecisionInput, Observation};
use crate::engine::deletion::prune_guard::{PruneCandidate, PruneGuard, decide_prunes, decide_without_guard};
use crate::engine::facts::causes::prune_cause::{ChangeMilestone, PruneCause};
use crate::engine::facts::entry::SourceId;
use crate::engine::facts::kinds::KindState;
use crate::engine::facts::prune_decisions::PruneDecision;
use crate::engine::facts::prune_timing::PruneTiming;
use crate::engine::state::{DecisionMode, Engine};
use crate::engine::{LiveObject, PrunePolicy, Reason, SourceLifecycle};
use crate::graph::ConnectedUnits;
use crate::object::{GroupKind, ObjectId};

impl Engine {
    /// Returns the decision of the prune guard about an object that no source wants.
    pub(in crate::engine) fn prune_decision(
        &self,
        id: &ObjectId,
        input: &DecisionInput<'_>,
    ) -> Option<PruneDecision> {
        let Observation::Seen(live) = input.observation else { return None };
        if !input.entry.targets.is_empty() {
            return None;
        }
        self.prune_decision_of(self.source_of(live)?, id).cloned()
    }

    /// Returns the last prune decisions about the unwanted objects of one source.
    pub(in crate::engine) fn prune_decisions(
        &self,
        source: SourceId,
    ) -> impl Iterator<Item = (&ObjectId, &PruneDecision)> {
        self.sources[source].prunes.decisions().iter()
    }

    /// Returns the last prune decision about one unwanted object of a source.
    pub(in crate::engine) fn prune_decision_of(
        &self,
        source: SourceId,
        id: &ObjectId,
    ) -> Option<&PruneDecision> {
        self.sources[source].prunes.decisions().get(id)
    }

    /// Returns whether a source has objects that it no longer wants.
    pub(in crate::engine) fn has_unwanted(&self, source: SourceId) -> bool {
        self.unwanted_of(source).next().is_some()
    }

    /// Returns the objects that one source no longer wants.
    pub(in crate::engine) fn unwanted_of(&self, source: SourceId) -> impl Iterator<Item = &ObjectId> {
        let of_source = move |live: &LiveObject| self.source_of(live) == Some(source);
        self.objects
            .unwanted_objects()
            .iter()
            .filter(move |id| self.informer_object(id).is_some_and(of_source))
    }

    /// Returns the objects that define a custom kind, as sources bring them. Each source may name
    /// one of its own, and only one of them can be established.
    pub(in crate::engine) fn definitions_of(&self, kind: &GroupKind) -> impl Iterator<Item = &ObjectId> {
        self.objects.target_index.definitions_of(kind).into_iter().flatten()
    }

    /// Returns whether a source brings the definition of a custom kind.
    pub(in crate::engine) fn has_definition(&self, kind: &GroupKind) -> bool {
        self.objects.target_index.definitions_of(kind).is_some()
    }

    /// Judges all that one source no longer wants.
    #[cfg(test)]
    pub(in crate::engine) fn decide_prunes(&self, source: SourceId) -> BTreeMap<ObjectId, PruneDecision> {
        self.decide_prunes_by(source, self.prune_blocker(source))
    }

    /// Judges all that one source no longer wants, where it is known what closes its guard.
    pub(in crate::engine) fn decide_prunes_by(
        &self,
        source: SourceId,
        blocker: Option<PruneDecision>,
    ) -> BTreeMap<ObjectId, PruneDecision> {
        let state = &self.sources[source];
        let unwanted: Vec<&ObjectId> = self.unwanted_of(source).collect();
        if unwanted.is_empty() {
            return BTreeMap::new();
        }
        // Beside a source that goes, a kept object keeps what it uses.
        if let Some(blocker) =
            blocker.as_ref().filter(|_| state.declared.lifecycle == SourceLifecycle::Active)
        {
            let closed = |id: &ObjectId| Some((id.clone(), self.decide_closed_prune(source, id, blocker)?));
            return unwanted.into_iter().filter_map(closed).collect();
        }
        let pending = self.prune_candidates(source, &unwanted);
        let inventory = state.inventory.as_ref();
        let guard = PruneGuard {
            closed: blocker,
            other_location: inventory.and_then(|inventory| inventory.other_location.clone()),
            is_kept_complete: inventory.is_none_or(|inventory| !inventory.kept.is_truncated),
            radius: state.declared.radius,
            lifecycle: state.declared.lifecycle,
            confirmed: &self.confirmations(source),
            inventory: state.live_counts.by_kind(),
        };
        decide_prunes(&pending, &guard)
    }

    /// Returns the decision about one unwanted object while the guard of its source is closed.
    pub(in crate::engine) fn decide_closed_prune(
        &self,
        source: SourceId,
        id: &ObjectId,
        blocker: &PruneDecision,
    ) -> Option<PruneDecision> {
        let live = self.live_object(id)?;
        let not_allowed = self.disallowed_reason(source, id);
        let closed = decide_without_guard(not_allowed.as_ref(), self.prune_timing(id, live));
        Some(closed.unwrap_or_else(|| blocker.clone()))
    }

    /// Returns when an unwanted object may go. An annotation taken off the object is still in the
    /// manifest that was in force last, and in the inventory.
    pub(in crate::engine) fn prune_timing(&self, id: &ObjectId, live: &LiveObject) -> PruneTiming {
        live.prune_timing.strictest(self.proven_prune_timing(id, live))
    }

    /// Does the same as [`Engine::prune_timing`], by the manifest that was in force last and the
    /// inventory alone.
    fn proven_prune_timing(&self, id: &ObjectId, live: &LiveObject) -> PruneTiming {
        let accepted = self.objects.entries.get(id).and_then(|entry| entry.accepted.content());
        let requested = accepted.map_or(PruneTiming::AfterUnit, |accepted| accepted.traits.prune_timing);
        requested.strictest(self.recorded_timing(id, live))
    }

    /// Returns whether only what stands on an object of a source keeps it: a word, or a seal that
    /// somebody broke. A copy that somebody made is no object of the source.
    fn is_kept_by_claim(&self, id: &ObjectId, live: &LiveObject) -> bool {
        let entry = self.objects.entries.get(id);
        let is_claimed = if live.is_unproven() {
            entry.is_some_and(|entry| entry.is_remembered(live))
        } else {
            live.prune_timing == PruneTiming::Never
        };
        is_claimed && self.proven_prune_timing(id, live) != PruneTiming::Never
    }

    /// Returns whether an unwanted object is not deleted, whatever a person confirms.
    pub(in crate::engine) fn is_kept(&self, source: SourceId, id: &ObjectId) -> bool {
        let is_kept_by_itself =
            |live: &LiveObject| live.is_unproven() || self.prune_timing(id, live) == PruneTiming::Never;
        self.disallowed_reason(source, id).is_some() || self.live_object(id).is_some_and(is_kept_by_itself)
    }

    /// Returns facts about what is no longer wanted. None of it waits for other changes where all
    /// that must come first is taken for done.
    pub(in crate::engine) fn prune_candidates(
        &self,
        source: SourceId,
        unwanted: &[&ObjectId],
    ) -> Vec<PruneCandidate> {
        let (moving, units) = self.prune_units(source, unwanted);
        let users = self.unwanted_users(unwanted);
        let unfinished = |id: &ObjectId| {
            let (change, milestone) = moving.iter().find(|(other, _)| units.is_same_unit(id, other))?;
            Some((change.clone(), milestone.clone()))
        };
        let facts = |id: &&ObjectId| {
            // As it is deleted: the answer to our own write may show more than the informer yet.
            let live = self.live_object(id)?;
            let not_allowed = self.disallowed_reason(source, id);
            let alone = PruneCandidate {
                id: (*id).clone(),
                uid: live.uid.clone(),
                prune_timing: self.prune_timing(id, live),
                is_kept_by_claim: not_allowed.is_none() && self.is_kept_by_claim(id, live),
                not_allowed,
                unrendered: self.unrendered_root_reason(source, id),
                is_unproven: live.is_unproven(),
                unfinished: None,
                needed_by: None,
                withheld: self.withheld_deletion(source, id),
            };
            Some(match self.blockers.mode {
                DecisionMode::Plan => alone,
                DecisionMode::Live => PruneCandidate {
                    unfinished: unfinished(id),
                    needed_by: users.get(*id).copied().or_else(|| self.dependent_object(id)).cloned(),
                    ..alone
                },
            })
        };
        unwanted.iter().filter_map(facts).collect()
    }

    /// Returns why a source prunes nothing at all now.
    pub(in crate::engine) fn prune_blocker(&self, source: SourceId) -> Option<PruneDecision> {
        self.unready_blocker(source).or_else(|| self.search_blocker(source))
    }

    /// Does the same as [`Engine::prune_blocker`], but for what other folders may name.
    pub(in crate::engine) fn unready_blocker(&self, source: SourceId) -> Option<PruneDecision> {
        let state = &self.sources[source];
        match state.declared.prune {
            PrunePolicy::On => {}
            PrunePolicy::Off => {
                return Some(PruneDecision::Keep(PruneCause::PolicyOff));
            }
            PrunePolicy::Partial => {
                return Some(PruneDecision::Keep(PruneCause::NotInFiles));
            }
        }
        match self.release_key_blocker() {
            None => {}
            // It waits: what ends must not be taken for done as long as nobody knows what is its
            // own.
            Some(Reason::KeyUnavailable(why)) => {
                return Some(PruneDecision::Defer(PruneCause::UncheckedSeals(why)));
            }
            Some(_) => {
                return Some(PruneDecision::Defer(PruneCause::UnreadKey));
            }
        }
        // For long, each object is withheld by itself, so that a person may confirm it.
        if let Some(name) = self.unchecked_source(source).filter(|_| !self.has_removed_long_ago(source)) {
            return Some(PruneDecision::Defer(PruneCause::UnobservedSource(name.clone())));
        }
        if let Some((file, kind)) = self.unscoped_file(source) {
            return Some(PruneDecision::Defer(PruneCause::UnscopedFile(file.clone(), kind.clone())));
        }
        if let Some(why) = state.incomplete_reason.as_ref().filter(|_| !state.is_lacking_roots_alone()) {
            return Some(PruneDecision::Keep(PruneCause::Incomplete(why.clone())));
        }
        if state.inventory.is_none() {
            return Some(PruneDecision::Defer(PruneCause::UnreadInventory));
        }
        if let Some(revision) = state.unrecorded_revision() {
            let cause = PruneCause::UnrecordedRevision(revision.short_name().into());
            return Some(PruneDecision::Defer(cause));
        }
        let later = |kind| PruneDecision::Defer(PruneCause::UnlistedKind(kind));
        let unrendered = |kind| PruneDecision::Defer(PruneCause::UnrenderedKind(kind));
        self.unlisted_kind(source)
            .map(later)
            .or_else(|| self.unrendered_kind(source).map(unrendered))
            .or_else(|| self.reread_last_contents(source))
    }

    /// Returns a file with objects of a kind of which it is not known where they live, and that
    /// kind.
    pub(in crate::engine) fn unscoped_file(&self, source: SourceId) -> Option<(&Arc<str>, &GroupKind)> {
        // Wherever its objects would live, none of them is there.
        let absent = |kind: &GroupKind| self.kind_state(source, kind) == Some(&KindState::Absent);
        self.sources[source].manifests.unscoped_files().find(|(_, kind)| !absent(kind))
    }

    /// Returns changes under way, and what belongs together with them or with what is to go.
    pub(in crate::engine) fn prune_units(
        &self,
        source: SourceId,
        unwanted: &[&ObjectId],
    ) -> (BTreeMap<ObjectId, ChangeMilestone>, ConnectedUnits) {
        let mut moving = BTreeMap::new();
        let mut units = ConnectedUnits::default();
        for id in &self.sources[source].unfinished {
            if let Some(milestone) = self.unfinished_change(source, id) {
                moving.insert(id.clone(), milestone);
            }
        }
        if moving.is_empty() {
            return (moving, units);
        }
        let nodes: Vec<&ObjectId> = moving.keys().chain(unwanted.iter().copied()).collect();
        units = self.join_units(&nodes);
        let ledger = self.rollouts.ledger.latest().into_iter().flat_map(|ledger| &ledger.units);
        for unit in ledger.filter(|unit| unit.inventory_id == self.sources.inventory_ids()[source]) {
            // Objects released together stay together until the last of them is healthy.
            let mut members = unit.members.keys().filter(|id| units.has(id));
            if let Some(first) = members.next() {
                members.collect::<Vec<_>>().into_iter().for_each(|id| units.join(first, id));
            }
        }
        for id in moving.keys().chain(unwanted.iter().copied()) {
            units.add(id);
            let Some(entry) = self.objects.entries.get(id) else { continue };
            // Its former references are not known: it may use anything.
            let unknown =
                entry.previous_content.is_none() && self.live_object(id).is_some() && moving.contains_key(id);
            if unknown && (entry.unreleased_content().is_none() || entry.accepted.content().is_none()) {
                let beside = unwanted.iter().filter(|other| other.namespace() == id.namespace());
                beside.for_each(|other| units.join(id, other));
            }
            let wanted = entry.target_content().map(|(_, desired)| desired);
            for desired in wanted.into_iter().chain(entry.accepted.content()).chain(&entry.previous_content) {
                let used = desired.restart_references().unwrap_or_default();
                for need in desired.needs.iter().chain(&desired.depends_on).chain(used) {
                    units.join(id, need);
                }
            }
        }
        (moving, units)
    }

    /// Returns an object of ours that would go with another one though nobody says so: one in a
    /// namespace, one of a custom kind.
    pub(in crate::engine) fn dependent_object(&self, id: &ObjectId) -> Option<&ObjectId> {
        let crd = id.is("apiextensions.k8s.io", "CustomResourceDefinition");
        if !crd && !id.is("", "Namespace") {
            return None;
        }
        let defined =
            self.objects.entries.get(id).and_then(|entry| entry.accepted.content()?.defines.as_deref());
        let lives_by = |other: &ObjectId| match (crd, defined) {
            (false, _) => other.namespace() == Some(id.name()),
            (true, Some(kind)) => other.group_kind() == *kind,
            (true, None) => is_named_after(id.name(), &other.group_kind()),
        };
        let ours = self.objects.informer_objects.iter().filter(|(_, live)| self.source_of(live).is_some());
        ours.map(|(other, _)| other).filter(|other| lives_by(other)).min()
    }

    /// Returns the unwanted objects that another unwanted one uses, with one user each.
    pub(in crate::engine) fn unwanted_users<'a>(
        &'a self,
        unwanted: &[&'a ObjectId],
    ) -> BTreeMap<&'a ObjectId, &'a ObjectId> {
        let mut users = BTreeMap::new();
        for user in unwanted {
            if let Some(accepted) = self.objects.entries.get(*user).and_then(|entry| entry.accepted.content())
            {
                let optional = accepted.restart_references().unwrap_or_default();
                users.extend(accepted.needs.iter().chain(optional).map(|used| (used, *user)));
            }
        }
        users
    }
}

/// Returns whether a definition's name, `<plural>.<group>`, is that of a kind, as far as English
/// goes.
fn is_named_after(definition: &str, kind: &GroupKind) -> bool {
    let singular = kind.kind.to_ascii_lowercase();
    let stem = singular.get(..singular.len().saturating_sub(1)).unwrap_or_default();
    definition
        .split_once('.')
        .is_some_and(|(plural, group)| group == &*kind.group && plural.starts_with(stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_named_after_its_kind_as_english_goes() {
        let check = |definition: &str, group: &str, kind: &str, expected: bool| {
            let found = is_named_after(definition, &GroupKind::new(group, kind));
            assert_eq!(found, expected, "{definition} {group} {kind}");
        };
        check("widgets.example.com", "example.com", "Widget", true);
        check("policies.example.com", "example.com", "Policy", true);
        check("gateways.example.com", "example.com", "Gateway", true);
        check("widgets.example.com", "example.org", "Widget", false);
        check("widgets.example.com", "com", "Widget", false);
        check("gadgets.example.com", "example.com", "Widget", false);
        check("widgets", "", "Widget", false);
    }
}
