//! The last judgement of the prune guard for each source, and what makes it out of date.
//!
//! Any fact may change what the guard decides, so any makes it judge all candidates again. Two
//! kinds of facts come once for each candidate, and would cost the square of their number. They
//! have only those judged again that they can change:
//! - While the guard is closed for the whole source, a new candidate changes nothing for others.
//! - A candidate that is deleted as decided only lessens what the guard counts. The others are
//!   judged again when a share of the candidates is gone, or when no decided deletion is left.
//!
//! **Invariant:** a decision to delete is never kept beyond a fact that may forbid it.

use std::collections::BTreeSet;

use crate::engine::facts::entry::{AcceptedContent, SourceId};
use crate::engine::facts::lookup_counts;
use crate::engine::facts::prune_decisions::{CachedPruneDecisions, CandidateFacts, PruneDecision};
use crate::engine::state::Engine;
use crate::engine::{LiveObject, SourceLifecycle};
use crate::object::ObjectId;

/// The share of the candidates, one in so many, after whose deletion the others are judged again.
/// So all judgements of many deletions together cost as much as a few of all of them.
const MIN_DELETED_FRACTION: usize = 8;

impl CachedPruneDecisions {
    fn is_due(&self) -> bool {
        self.is_stale
            || (self.deleted > 0
                && (self.undone == 0 || self.deleted * MIN_DELETED_FRACTION >= self.decisions.len()))
    }

    /// Takes out a candidate that is gone. Returns whether that was decided.
    fn remove_deleted(&mut self, id: &ObjectId) -> bool {
        if self.decisions.get(id) != Some(&PruneDecision::Delete) {
            return false;
        }
        self.decisions.remove(id);
        self.facts.remove(id);
        self.deleted += 1;
        self.undone -= 1;
        true
    }
}

impl Engine {
    /// Marks the judgement of the prune guard as stale: any change may change its decisions.
    pub(in crate::engine) fn mark_prunes_stale(&mut self) {
        for source in self.sources.states_mut() {
            source.prunes.mark_stale();
        }
    }

    /// Records that the facts about one object may have changed, other than by its source coming or
    /// going.
    pub(in crate::engine) fn note_candidate_change(&mut self, id: &ObjectId) {
        let of = self.candidate_source(id);
        let is_deleted = self.is_deleted_here(id);
        for source in self.source_ids() {
            let facts = self.candidate_facts(id).filter(|_| of == Some(source));
            let prunes = &mut self.sources[source].prunes;
            if prunes.is_stale || prunes.facts.get(id) == facts.as_ref() {
                continue;
            }
            // The event is on its way.
            if is_deleted && prunes.decisions.get(id) == Some(&PruneDecision::Delete) {
                continue;
            }
            if prunes.blocker.is_some() {
                prunes.changed.insert(id.clone());
            } else {
                prunes.mark_stale();
            }
        }
    }

    /// Records that an object has come to a source, or is no longer its own. The guard counts
    /// these, and a Namespace waits for what lives in it.
    pub(in crate::engine) fn note_owner_change(
        &mut self,
        id: &ObjectId,
        was: Option<SourceId>,
        is: Option<SourceId>,
    ) {
        for source in self.source_ids() {
            let prunes = &mut self.sources[source].prunes;
            let is_gone = is.is_none() && was == Some(source);
            // While the guard is closed, numbers change nothing.
            if prunes.blocker.is_none() && !(is_gone && prunes.remove_deleted(id)) {
                prunes.mark_stale();
            }
        }
    }

    /// Judges what is out of date. Marks the objects whose decision has changed.
    pub(in crate::engine) fn decide_changed_prunes(&mut self) {
        for source in self.source_ids() {
            let prunes = &self.sources[source].prunes;
            // Without a candidate there is nothing to judge, whatever closes the guard. It stays out
            // of date until there is one: each decision about an object that is not healthy asks.
            if self.objects.unwanted_objects().is_empty() && prunes.decisions.is_empty() {
                continue;
            }
            if prunes.is_due() || !prunes.changed.is_empty() {
                let blocker = self.prune_blocker(source);
                let prunes = &self.sources[source].prunes;
                if !prunes.is_due() && prunes.blocker == blocker && blocker.is_some() {
                    self.decide_changed(source);
                } else {
                    self.judge_all(source, blocker);
                }
            }
            #[cfg(test)]
            lookup_counts::run_uncounted(|| self.assert_decided(source));
        }
    }

    fn judge_all(&mut self, source: SourceId, blocker: Option<PruneDecision>) {
        let decisions = self.decide_prunes_by(source, blocker.clone());
        lookup_counts::count(decisions.len());
        let known = |id: &ObjectId| Some((id.clone(), self.candidate_facts(id)?));
        let facts = decisions.keys().filter_map(known).collect();
        let undone = decisions.values().filter(|decision| **decision == PruneDecision::Delete).count();
        let is_active = self.sources[source].declared.lifecycle == SourceLifecycle::Active;
        let now = CachedPruneDecisions {
            decisions,
            facts,
            blocker: blocker.filter(|_| is_active),
            undone,
            is_stale: false,
            changed: BTreeSet::new(),
            deleted: 0,
        };
        let before = std::mem::replace(&mut self.sources[source].prunes, now);
        let now = &self.sources[source].prunes.decisions;
        let differs = |(id, decision): &(&ObjectId, &PruneDecision)| {
            before.decisions.get(*id).is_none_or(|former| former != *decision)
        };
        self.objects.wakes.mark_each(now.iter().filter(differs).map(|(id, _)| id.clone()));
    }

    /// Judges the objects whose own facts have changed while the guard is closed for all.
    fn decide_changed(&mut self, source: SourceId) {
        let prunes = &mut self.sources[source].prunes;
        let (changed, blocker) = (std::mem::take(&mut prunes.changed), prunes.blocker.clone());
        for id in changed {
            let facts = self.candidate_facts(&id).filter(|_| self.candidate_source(&id) == Some(source));
            let decision = facts.as_ref().zip(blocker.as_ref());
            let decision = decision.and_then(|(_, blocker)| self.decide_closed_prune(source, &id, blocker));
            let prunes = &mut self.sources[source].prunes;
            if let (Some(decision), Some(facts)) = (decision, facts) {
                let former = prunes.decisions.insert(id.clone(), decision);
                prunes.facts.insert(id.clone(), facts);
                if former.as_ref() != prunes.decisions.get(&id) {
                    self.objects.wakes.mark(id);
                }
            } else {
                prunes.decisions.remove(&id);
                prunes.facts.remove(&id);
            }
        }
    }

    /// Returns the source of whose objects an unwanted one is.
    fn candidate_source(&self, id: &ObjectId) -> Option<SourceId> {
        let live = self.informer_object(id).filter(|_| self.objects.unwanted_objects().contains(id))?;
        self.source_of(live)
    }

    /// Returns whether the server has answered our deletion of an object that is still shown.
    fn is_deleted_here(&self, id: &ObjectId) -> bool {
        self.objects.entries.get(id).is_some_and(|entry| {
            entry.min_resource_version.is_some() && matches!(entry.accepted, AcceptedContent::Nothing)
        })
    }

    fn candidate_facts(&self, id: &ObjectId) -> Option<CandidateFacts> {
        let live: &LiveObject = self.live_object(id)?;
        let accepted = self.objects.entries.get(id).map(|entry| &entry.accepted);
        Some(CandidateFacts {
            uid: live.uid.clone(),
            prune_timing: live.prune_timing,
            is_unproven: live.is_unproven(),
            accepted: accepted.and_then(AcceptedContent::content).map(|content| content.hash),
            is_unread: matches!(accepted, Some(AcceptedContent::Unread(_))),
        })
    }

    /// Fails where something is taken for decided that would be decided otherwise now.
    #[cfg(test)]
    fn assert_decided(&self, source: SourceId) {
        let prunes = &self.sources[source].prunes;
        if prunes.decisions.is_empty() && self.objects.unwanted_objects().is_empty() {
            return;
        }
        let now = self.decide_prunes(source);
        assert!(prunes.decisions.keys().eq(now.keys()), "{source:?}");
        let is_deleted = prunes.decisions.keys().any(|id| self.is_deleted_here(id));
        for (id, decision) in prunes.decisions.iter().filter(|(id, _)| !self.is_deleted_here(id)) {
            if *decision == PruneDecision::Delete || (prunes.deleted == 0 && !is_deleted) {
                assert_eq!(now[id], *decision, "{id}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::engine::tests::world::{
        FIRST, SECOND, SET, World, WorldObject, desired, following, reading, start_time,
    };
    use crate::engine::{
        Action, ActionResult, AdoptPolicy, AllowList, ObjectEntry, PruneCause, PrunePolicy, PruneTiming,
        RepositoryIdentity, ResourceVersion, Uid,
    };
    use crate::object::GroupKind;

    fn config(number: usize) -> ObjectId {
        ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), &number.to_string())
    }

    /// Returns the decisions about so many candidates, the first of which go.
    fn decided(going: usize, staying: usize) -> CachedPruneDecisions {
        let decision = |number: usize| {
            if number < going { PruneDecision::Delete } else { PruneDecision::Keep(PruneCause::Annotated) }
        };
        CachedPruneDecisions {
            decisions: (0..going + staying).map(|number| (config(number), decision(number))).collect(),
            undone: going,
            is_stale: false,
            ..CachedPruneDecisions::default()
        }
    }

    #[test]
    fn the_others_are_judged_again_when_an_eighth_of_them_is_gone_or_the_last_that_was_to_go() {
        let check = |going: usize, staying: usize, gone: usize, expected: bool| {
            let mut cached = decided(going, staying);
            for number in 0..gone {
                assert!(cached.remove_deleted(&config(number)), "{number}");
            }
            assert_eq!(cached.is_due(), expected, "{going} {staying} {gone}");
        };
        check(0, 1, 0, false);
        check(1, 100, 0, false);
        check(1, 100, 1, true);
        check(2, 8, 1, false);
        check(2, 7, 1, true);
        check(4, 15, 2, false);
        check(4, 14, 2, true);
        assert!(CachedPruneDecisions::default().is_due(), "nothing was judged yet");
        let mut stale = decided(1, 100);
        stale.mark_stale();
        assert!(stale.is_due());
    }

    #[test]
    fn only_a_candidate_that_was_to_go_is_gone_as_decided() {
        let mut cached = decided(1, 1);
        let facts = CandidateFacts {
            uid: Uid("1".into()),
            prune_timing: PruneTiming::AfterUnit,
            is_unproven: false,
            accepted: None,
            is_unread: false,
        };
        cached.facts = [(config(0), facts.clone()), (config(1), facts)].into();
        assert!(!cached.remove_deleted(&config(1)), "it was to stay");
        assert!(!cached.remove_deleted(&config(2)), "nobody has decided about it");
        assert_eq!((cached.decisions.len(), cached.deleted, cached.undone), (2, 0, 1));
        assert!(cached.remove_deleted(&config(0)));
        assert!(!cached.remove_deleted(&config(0)), "it is gone already");
        assert_eq!((cached.deleted, cached.undone), (1, 0));
        assert!(cached.decisions.keys().eq([&config(1)]) && cached.facts.keys().eq([&config(1)]));
    }

    /// Returns an engine with a source that has no object.
    fn engine() -> Engine {
        following(&[("own", SET, RepositoryIdentity::None)], AdoptPolicy::IfUnowned)
    }

    /// Returns what a watch shows of an object of the source, as it came with revision c1.
    fn live(id: &ObjectId, rv: u64) -> LiveObject {
        World::live(id, &WorldObject::settled(desired(id, 1, "a").hash, "c1", rv))
    }

    #[test]
    fn what_comes_or_goes_has_all_judged_again_but_what_is_gone_as_decided() {
        let check =
            |blocker: Option<PruneDecision>, was: Option<SourceId>, is: Option<SourceId>, expected: bool| {
                let mut engine = engine();
                engine.sources[FIRST].prunes =
                    CachedPruneDecisions { blocker: blocker.clone(), ..decided(1, 1) };
                engine.note_owner_change(&config(0), was, is);
                assert_eq!(engine.sources[FIRST].prunes.is_stale, expected, "{blocker:?} {was:?} {is:?}");
            };
        check(None, Some(FIRST), None, false);
        check(None, None, Some(FIRST), true);
        check(None, Some(FIRST), Some(FIRST), true);
        check(None, Some(FIRST), Some(SECOND), true);
        check(None, Some(SECOND), None, true);
        // While the guard is closed, numbers change nothing.
        let closed = || Some(PruneDecision::Keep(PruneCause::PolicyOff));
        check(closed(), Some(FIRST), None, false);
        check(closed(), None, Some(FIRST), false);
    }

    #[test]
    fn an_object_that_changes_its_source_or_its_proof_has_all_judged_again() {
        let id = config(0);
        let proven = live(&id, 1);
        let unproven = LiveObject { release: None, ..proven.clone() };
        let check = |before: Option<&LiveObject>, now: Option<&LiveObject>, expected: bool| {
            let mut engine = engine();
            if let Some(before) = before {
                engine.objects.informer_objects.insert(id.clone(), Box::new(before.clone()));
            }
            engine.count_live(&id, None);
            engine.sources[FIRST].prunes = decided(0, 1);
            match now {
                Some(now) => {
                    drop(engine.objects.informer_objects.insert(id.clone(), Box::new(now.clone())));
                }
                None => drop(engine.objects.informer_objects.remove(&id)),
            }
            engine.count_live(&id, before);
            let case = [before, now].map(|live| live.map(LiveObject::is_unproven));
            assert_eq!(engine.sources[FIRST].prunes.is_stale, expected, "{case:?}");
        };
        check(None, Some(&proven), true);
        check(None, Some(&unproven), true);
        check(Some(&proven), None, true);
        check(Some(&unproven), None, true);
        check(Some(&proven), Some(&unproven), true);
        check(Some(&unproven), Some(&proven), true);
        check(Some(&proven), Some(&proven), false);
        check(Some(&unproven), Some(&unproven), false);
    }

    #[test]
    fn an_object_is_deleted_here_once_the_server_has_said_so_and_the_watch_owes_the_event() {
        let check = |awaited: Option<u64>, accepted: &AcceptedContent, expected: bool| {
            let mut engine = engine();
            let min_resource_version = awaited.map(|rv| (ResourceVersion(rv), start_time()));
            let accepted = accepted.clone();
            let entry = ObjectEntry { accepted, min_resource_version, ..ObjectEntry::default() };
            engine.objects.entries.insert(config(0), Box::new(entry));
            assert_eq!(engine.is_deleted_here(&config(0)), expected, "{awaited:?}");
        };
        let known = AcceptedContent::Known(desired(&config(0), 1, "a"));
        check(Some(2), &AcceptedContent::Nothing, true);
        check(None, &AcceptedContent::Nothing, false);
        check(Some(2), &known, false);
        check(None, &known, false);
        assert!(!engine().is_deleted_here(&config(0)), "nobody knows it");
    }

    #[test]
    fn the_answer_to_a_decided_deletion_has_nothing_judged_again() {
        let (mut engine, id, now) = (engine(), config(0), start_time());
        engine.set_reading(FIRST, reading("c1", &[("a", Some(desired(&id, 1, "a")))]));
        engine.observe_object(&id, live(&id, 1));
        engine.set_reading(FIRST, reading("c2", &[("a", None)]));
        let action = engine.decide(&id, now).action;
        assert!(matches!(action, Action::Delete(..)), "{action:?}");
        engine.record_result(&id, &action, ActionResult::Deleted, now);
        assert!(!engine.sources[FIRST].prunes.is_stale);
    }

    /// Returns an engine whose source prunes nothing, and has so many objects that it does not
    /// want.
    fn closed(count: usize) -> Engine {
        let mut engine = engine();
        engine.sources[FIRST].declared.prune = PrunePolicy::Off;
        engine.set_reading(FIRST, reading("c1", &[]));
        for number in 0..count {
            engine.observe_object(&config(number), live(&config(number), number as u64 + 1));
        }
        engine.process_changes();
        assert_eq!(engine.sources[FIRST].prunes.decisions().len(), count);
        engine.take_dirty();
        engine
    }

    #[test]
    fn while_the_guard_is_closed_a_fact_about_the_source_has_all_judged_again() {
        let mut engine = closed(2);
        engine.sources[FIRST].declared.allow =
            Arc::new(AllowList { namespaces: Some(["elsewhere".into()].into()), ..AllowList::default() });
        engine.mark_prunes_stale();
        engine.decide_changed_prunes();
        let decisions = engine.sources[FIRST].prunes.decisions();
        assert!(
            decisions.values().all(|decision| matches!(decision, PruneDecision::Ignore(_))),
            "{decisions:?}"
        );
        assert!(!engine.sources[FIRST].prunes.is_stale);
    }

    #[test]
    fn while_the_guard_is_closed_an_object_whose_own_facts_change_is_judged_alone_and_woken() {
        let (mut engine, id) = (closed(100), config(3));
        let mut changed = engine.informer_object(&id).unwrap().clone();
        (changed.rv, changed.prune_timing) = (ResourceVersion(200), PruneTiming::Never);
        engine.observe_object(&id, changed);
        engine.take_dirty();
        lookup_counts::take_count();
        engine.decide_changed_prunes();
        let lookups = lookup_counts::take_count();
        assert!(lookups < 100, "{lookups}");
        let decision = &engine.sources[FIRST].prunes.decisions()[&id];
        assert_eq!(*decision, PruneDecision::Keep(PruneCause::Annotated));
        assert_eq!(engine.take_dirty(), [id]);
    }
}
