//! Answers about a workload that cost a walk over all that it needs and uses.
//!
//! Each object that is released together with the workload asks the same. So an answer is kept,
//! and a unit of many objects costs one walk and not one for each of them.
//!
//! **Invariant:** an answer is never kept beyond a fact that may change it. All are forgotten when
//! an object is marked, with each batch of facts, and by the steps of a decision that mark nothing.

use std::collections::BTreeMap;
use std::fmt::Debug;

use crate::engine::Reason;
use crate::engine::facts::entry::{ObjectEntry, SourceId, WaitTopic};
#[cfg(test)]
use crate::engine::facts::lookup_counts;
use crate::engine::state::Engine;
use crate::object::ObjectId;

/// The kept answers to one question, by source and workload.
type MemoTable<T> = BTreeMap<(SourceId, ObjectId), T>;

/// The answers that were given since a fact changed.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct DecisionMemo {
    /// The blocker of the content that a source wants.
    blockers: MemoTable<Option<Reason>>,
    /// Indicates whether that content restarts pods.
    restarts: MemoTable<bool>,
    /// The first of the data that its pods use that is still being read.
    unread_data: MemoTable<Option<ObjectId>>,
}

impl Engine {
    /// Forgets all kept answers, as a fact may have changed.
    pub(in crate::engine) fn clear_memo(&mut self) {
        self.rollouts.memo = DecisionMemo::default();
    }

    /// Forgets all kept answers where an object comes to wait for one that it needs, or no longer
    /// waits: that one comes in its wave.
    pub(in crate::engine) fn note_waiter_change(&mut self, id: &ObjectId, topic: &WaitTopic) {
        let WaitTopic::Object(need) = topic else { return };
        let waiter = self.objects.entries.get(id).and_then(|entry| entry.target_content());
        if waiter.is_some_and(|(_, waiter)| waiter.has_need(need)) {
            self.clear_memo();
        }
    }

    /// Returns the blocker of the content that a source wants a workload to have.
    pub(in crate::engine) fn lead_workload_blocker(
        &mut self,
        source: SourceId,
        workload: &ObjectId,
    ) -> Option<Reason> {
        self.answer(
            source,
            workload,
            |memo| &mut memo.blockers,
            |engine| {
                let (_, desired) = engine.entry(workload).and_then(ObjectEntry::target_content)?;
                engine.dependency_blocker(source, desired)
            },
        )
    }

    /// Returns whether the content that a source wants a workload to have restarts pods.
    pub(in crate::engine) fn is_lead_workload_restarted(
        &mut self,
        source: SourceId,
        workload: &ObjectId,
    ) -> bool {
        self.answer(source, workload, |memo| &mut memo.restarts, |engine| engine.can_restart_pods(workload))
    }

    /// Returns the reason for which it is not known yet which workloads restart for a new content.
    pub(in crate::engine) fn config_consumers_blocker(
        &mut self,
        source: SourceId,
        id: &ObjectId,
    ) -> Option<Reason> {
        let users = self.config_consumers_of(id);
        let unread = users.iter().find_map(|user| {
            self.answer(
                source,
                user,
                |memo| &mut memo.unread_data,
                |engine| engine.unread_data_of(source, user),
            )
        });
        unread.map(Reason::Reading)
    }

    /// Returns a kept answer, or asks and keeps it.
    fn answer<T: Clone + PartialEq + Debug>(
        &mut self,
        source: SourceId,
        workload: &ObjectId,
        question: impl Fn(&mut DecisionMemo) -> &mut MemoTable<T>,
        ask: impl Fn(&Self) -> T,
    ) -> T {
        if self.objects.wakes.has_dirty() || !self.configs.woken.is_empty() {
            self.clear_memo();
        }
        let key = (source, workload.clone());
        if let Some(kept) = question(&mut self.rollouts.memo).get(&key).cloned() {
            #[cfg(test)]
            lookup_counts::run_uncounted(|| assert_eq!(kept, ask(self), "{workload}"));
            return kept;
        }
        let answer = ask(self);
        question(&mut self.rollouts.memo).insert(key, answer.clone());
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::world::{FIRST, SET, config, desired, following, reading, workload};
    use crate::engine::{AdoptPolicy, RepositoryIdentity};

    /// Returns an engine with nothing marked, whose object `web` needs `env`.
    fn engine() -> Engine {
        let mut engine = following(&[("test", SET, RepositoryIdentity::None)], AdoptPolicy::IfUnowned);
        let mut web = (*desired(&config("web"), 1, "web")).clone();
        web.needs = [config("env")].into();
        engine.read(FIRST, reading("r1", &[("web", Some(web.into()))]));
        engine.take_dirty();
        engine
    }

    /// Asks about a workload, where this is the answer now.
    fn ask(engine: &mut Engine, answer: bool) -> bool {
        engine.answer(FIRST, &workload("web"), |memo| &mut memo.restarts, |_| answer)
    }

    #[test]
    fn an_answer_is_asked_for_again_once_anything_is_marked_or_has_other_data() {
        let check = |change: &dyn Fn(&mut Engine)| {
            let mut engine = engine();
            assert!(ask(&mut engine, true));
            assert_eq!(engine.rollouts.memo.restarts.len(), 1);
            change(&mut engine);
            assert!(!ask(&mut engine, false));
        };
        check(&|engine| engine.objects.wakes.mark(config("other")));
        check(&|engine| engine.configs.woken.extend([workload("web")]));
        check(&Engine::clear_memo);
    }

    #[test]
    fn a_wait_for_what_the_waiter_needs_makes_all_answers_void() {
        for (topic, expected) in [
            (WaitTopic::Object(config("env")), 0),
            (WaitTopic::Object(config("other")), 1),
            (WaitTopic::Kinds, 1),
        ] {
            let mut engine = engine();
            ask(&mut engine, true);
            engine.note_waiter_change(&config("web"), &topic);
            assert_eq!(engine.rollouts.memo.restarts.len(), expected, "{topic:?}");
        }
    }
}
