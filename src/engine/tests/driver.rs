//! The driver: how each decision reaches what carries it out, and what the engine hears of it.

use std::time::Instant;

use super::harness::Harness;
use super::world::{config, desired, reading};
use crate::engine::driver::carry_out;
use crate::engine::*;
use crate::object::ObjectId;

/// Notes what it is to carry out, and carries nothing out.
struct NotedExecutor<const IS_PLAN: bool> {
    engine: Engine,
    admission: Admission,
    notes: Vec<String>,
}

impl<const IS_PLAN: bool> DecisionExecutor for NotedExecutor<IS_PLAN> {
    const WRITE_MODE: WriteMode = if IS_PLAN { WriteMode::Planned } else { WriteMode::Sent };

    fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    fn admit(&mut self, _: &ObjectId, _: &Decision, _: Instant) -> Admission {
        self.admission
    }

    fn ask(&mut self, _: ObjectId, question: ObjectQuestion) {
        let words = match question {
            ObjectQuestion::Existence => "ask whether it exists",
            ObjectQuestion::CachedComparison(..) => "compare it as it was shown",
            ObjectQuestion::LiveComparison(..) => "compare it as it is",
            ObjectQuestion::OlderContent => "read its older content",
        };
        self.notes.push(words.to_owned());
    }

    fn write(&mut self, id: ObjectId, write: ObjectWrite, reason: Option<Reason>) {
        let words = match write {
            ObjectWrite::DryRun(_) => "dry run",
            ObjectWrite::Apply(_) => "apply",
            ObjectWrite::Delete(..) => "delete",
        };
        let is_in_flight = self.engine.rollouts.writes_in_flight.contains(&id);
        let state = if is_in_flight { "in flight" } else { "not in flight" };
        assert_eq!(reason, Some(Reason::NotAdopted));
        self.notes.push(format!("{words}, {state}"));
    }

    fn rest(&mut self, id: ObjectId, reason: Option<Reason>) {
        let state = if self.engine.entry(&id).is_some() { "known" } else { "forgotten" };
        let words = if reason.is_some() { "with a reason" } else { "without a reason" };
        self.notes.push(format!("rest {words}, {state}"));
    }
}

/// Returns the notes about an action on an object that no source wants.
fn notes_of<const IS_PLAN: bool>(action: Action, admission: Admission) -> Vec<String> {
    let mut engine = Harness::new(3).engine;
    let id = config("b");
    engine.objects.entries.entry(id.clone()).or_default();
    let now = Instant::now();
    let mut executor = NotedExecutor::<IS_PLAN> { engine, admission, notes: Vec::new() };
    let decision = Decision { action, reason: Some(Reason::NotAdopted), requeue_after: None };
    carry_out(&mut executor, id, decision, now);
    executor.notes
}

/// Returns the apply that creates an object.
fn creation() -> ApplyRequest {
    let a = config("a");
    let mut harness = Harness::new(3);
    harness.read(reading("r1", &[("a", Some(desired(&a, 1, "a")))]));
    for _ in 0..10 {
        let decision = harness.decide(&a);
        if let Action::Apply(apply) = &decision.action {
            return apply.clone();
        }
        harness.act(&a, decision);
    }
    panic!("it is never created");
}

#[test]
fn each_decision_reaches_its_executor_and_only_a_write_that_is_sent_is_in_flight() {
    fn check(action: Action, sent: &[&str], planned: &[&str]) {
        assert_eq!(notes_of::<false>(action.clone(), Admission::Admitted), sent, "{action:?}");
        assert_eq!(notes_of::<true>(action.clone(), Admission::Admitted), planned, "{action:?}");
        assert!(notes_of::<false>(action.clone(), Admission::Deferred).is_empty(), "{action:?}");
    }
    let (content, variant) = (desired(&config("b"), 1, "b"), ApplyVariant::PLAIN);
    let question = ["ask whether it exists"];
    check(Action::Lookup, &question, &question);
    let question = ["compare it as it was shown"];
    check(Action::CompareCached(content.clone(), variant), &question, &question);
    let question = ["compare it as it is"];
    check(Action::CompareLive(content, variant), &question, &question);
    let question = ["read its older content"];
    check(Action::AwaitContent, &question, &question);
    let question = ["dry run, not in flight"];
    check(Action::DryRun(creation()), &question, &question);
    check(Action::Apply(creation()), &["apply, in flight"], &["apply, not in flight"]);
    let deletion = Action::Delete(Uid("u".into()), ResourceVersion(1), DeletionReason::Prune);
    check(deletion, &["delete, in flight"], &["delete, not in flight"]);
    let rest = ["rest with a reason, known"];
    check(Action::Nothing, &rest, &rest);
    check(Action::Forget, &["rest without a reason, forgotten"], &[]);
}
