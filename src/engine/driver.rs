//! The driver: the way from a decision about an object to what carries it out.
//!
//! The loop sends writes to the cluster, `rhumb diff` plans them, and tests have their own world.
//! Each is a [`DecisionExecutor`], and all are driven by [`process_object`]. That of the loop is in
//! `src/daemon/reconciler/turn_executor.rs`.
//!
//! **Invariant:** the engine knows of a write before it is sent, and so that it holds its slot of
//! the budget. It never hears of one that is only planned.

use std::time::Instant;

use crate::engine::state::Engine;
use crate::engine::{
    Action, ApplyRequest, ApplyVariant, Decision, DeletionReason, Input, Reason, ResourceVersion,
    SharedDesiredObject, Uid,
};
use crate::object::ObjectId;

/// A question on which the next decision about an object depends. The answer is handed over by
/// [`Engine::handle`].
#[derive(Debug)]
pub(crate) enum ObjectQuestion {
    /// Asks the API server whether it exists.
    Existence,
    /// Compares the content with what the informer showed last.
    CachedComparison(SharedDesiredObject, ApplyVariant),
    /// Compares the content with a live read.
    LiveComparison(SharedDesiredObject, ApplyVariant),
    /// Reads what was accepted before.
    OlderContent,
}

/// A write of an object, or the dry run of one.
#[derive(Clone, Debug)]
pub(crate) enum ObjectWrite {
    /// Asks the API server what a write would do to pods.
    DryRun(ApplyRequest),
    /// Applies a content.
    Apply(ApplyRequest),
    /// Deletes this incarnation in this version.
    Delete(Uid, ResourceVersion, DeletionReason),
}

impl From<ObjectWrite> for Action {
    fn from(write: ObjectWrite) -> Self {
        match write {
            ObjectWrite::DryRun(apply) => Self::DryRun(apply),
            ObjectWrite::Apply(apply) => Self::Apply(apply),
            ObjectWrite::Delete(uid, version, reason) => Self::Delete(uid, version, reason),
        }
    }
}

/// Indicates whether the writes that are decided are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteMode {
    /// They are sent.
    Sent,
    /// They are planned.
    Planned,
}

/// Indicates whether a decision is carried out now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is carried out now.
    Admitted,
    /// It is not carried out: the object is decided about again later.
    Deferred,
}

/// Carries the decisions about objects out.
pub(crate) trait DecisionExecutor {
    /// Indicates whether writes are sent.
    const WRITE_MODE: WriteMode;

    /// Returns the engine that decides.
    fn engine_mut(&mut self) -> &mut Engine;

    /// Takes note of a decision. Returns whether it is carried out now.
    fn admit(&mut self, id: &ObjectId, decision: &Decision, now: Instant) -> Admission;

    /// Asks a question about an object.
    fn ask(&mut self, id: ObjectId, question: ObjectQuestion);

    /// Sends or plans a write. A reason says why the object is not as the newest revision asks.
    fn write(&mut self, id: ObjectId, write: ObjectWrite, reason: Option<Reason>);

    /// Leaves an object as it is. A reason says why that is not its desired state.
    fn rest(&mut self, id: ObjectId, reason: Option<Reason>);
}

/// Decides about an object, and has that carried out.
pub(crate) fn process_object<E: DecisionExecutor>(executor: &mut E, id: ObjectId, now: Instant) {
    let decision = executor.engine_mut().decide(&id, now);
    carry_out(executor, id, decision, now);
}

/// Has a decision about an object carried out.
pub(in crate::engine) fn carry_out<E: DecisionExecutor>(
    executor: &mut E,
    id: ObjectId,
    decision: Decision,
    now: Instant,
) {
    if executor.admit(&id, &decision, now) == Admission::Deferred {
        return;
    }
    let Decision { action, reason, .. } = decision;
    let write = match action {
        Action::Nothing => return executor.rest(id, reason),
        Action::Forget => return forget(executor, id, now),
        Action::Lookup => return executor.ask(id, ObjectQuestion::Existence),
        Action::CompareCached(desired, variant) => {
            return executor.ask(id, ObjectQuestion::CachedComparison(desired, variant));
        }
        Action::CompareLive(desired, variant) => {
            return executor.ask(id, ObjectQuestion::LiveComparison(desired, variant));
        }
        Action::AwaitContent => return executor.ask(id, ObjectQuestion::OlderContent),
        Action::DryRun(apply) => return executor.write(id, ObjectWrite::DryRun(apply), reason),
        Action::Apply(apply) => ObjectWrite::Apply(apply),
        Action::Delete(uid, version, reason) => ObjectWrite::Delete(uid, version, reason),
    };
    if E::WRITE_MODE == WriteMode::Sent {
        let action = Action::from(write.clone());
        executor.engine_mut().handle(Input::Dispatched { id: id.clone(), action }, now);
    }
    executor.write(id, write, reason);
}

/// Forgets an object of which nothing is known any more. A plan says nothing of it.
fn forget<E: DecisionExecutor>(executor: &mut E, id: ObjectId, now: Instant) {
    if E::WRITE_MODE == WriteMode::Sent {
        executor.engine_mut().handle(Input::Forgotten(id.clone()), now);
        executor.rest(id, None);
    }
}
