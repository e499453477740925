//! Notes the decisions of a plan, where the loop would carry them out.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::engine::{
    Action, Admission, Decision, DecisionExecutor, Engine, ObjectQuestion, ObjectWrite, Reason, WriteMode,
};
use crate::object::ObjectId;

/// The decisions of a plan. The dry run of each write follows once all is decided.
pub(super) struct PlanExecutor<'a> {
    pub(super) engine: &'a mut Engine,
    pub(super) decisions: &'a mut BTreeMap<ObjectId, Decision>,
    /// The question that the last decision asks.
    pub(super) question: Option<ObjectQuestion>,
}

impl PlanExecutor<'_> {
    fn note(&mut self, id: ObjectId, action: Action, reason: Option<Reason>) {
        self.decisions.insert(id, Decision { action, reason, requeue_after: None });
    }
}

impl DecisionExecutor for PlanExecutor<'_> {
    const WRITE_MODE: WriteMode = WriteMode::Planned;

    fn engine_mut(&mut self) -> &mut Engine {
        self.engine
    }

    fn admit(&mut self, _: &ObjectId, _: &Decision, _: Instant) -> Admission {
        Admission::Admitted
    }

    fn ask(&mut self, _: ObjectId, question: ObjectQuestion) {
        self.question = Some(question);
    }

    fn write(&mut self, id: ObjectId, write: ObjectWrite, reason: Option<Reason>) {
        self.note(id, write.into(), reason);
    }

    fn rest(&mut self, id: ObjectId, reason: Option<Reason>) {
        self.note(id, Action::Nothing, reason);
    }
}
