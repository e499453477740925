//! The calls of the engine: what the loop, a plan, a test or a replay may have it do.
//!
//! **Invariant:** each call goes through `trace_call`, so that a trace lacks none. No other file of
//! `engine` has a function that others may call and that changes an engine, but for the choice of a
//! plan, `Engine::assume_prerequisites`.

mod declaration;
mod forms;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

pub(super) use crate::engine::calls::declaration::{EngineDeclaration, TRACE_FORM};
pub(super) use crate::engine::calls::forms::StatementQuestion;
use crate::engine::calls::forms::{DecidedObject, MarkedObjects};
use crate::engine::decide::decision::Decision;
use crate::engine::effect::{Effects, OrderReach, QueueMode, WantedWatches};
use crate::engine::facts::informer_groups::InformerGroupId;
use crate::engine::facts::source_declaration::SourceDeclaration;
use crate::engine::input::Input;
use crate::engine::state::Engine;
use crate::engine::trace::{TraceCall, TraceChunk, TraceRecorder};
use crate::engine::{
    AnsweredOrder, Budget, HashCipherStatus, RolloutLedger, SourceId, SourceStatement, UndoRequest,
};
use crate::object::ObjectId;

/// Declarations and facts.
impl Engine {
    /// Returns an engine without sources, whose calls are recorded.
    pub(crate) fn new_traced(budget: Budget, recorder: TraceRecorder) -> Self {
        let declaration = EngineDeclaration::of(&budget);
        let mut engine = Self::new(budget);
        engine.trace = Some(Box::new(recorder));
        engine.trace_call(TraceCall::New, None, declaration, |_, _| ());
        engine
    }

    /// Adds an informer group, and returns its number; with the namespaces that it watches, or none for
    /// all of them.
    pub(crate) fn add_informer_group(&mut self, namespaces: Option<BTreeSet<Arc<str>>>) -> InformerGroupId {
        self.trace_call(TraceCall::AddInformerGroup, None, namespaces, Self::insert_informer_group)
    }

    /// Adds a source and returns its number.
    pub(crate) fn add_source(&mut self, declared: SourceDeclaration) -> SourceId {
        self.trace_call(TraceCall::AddSource, None, declared, |engine, declared| engine.sources.add(declared))
    }

    /// Takes a fact over.
    pub(crate) fn handle(&mut self, input: Input, now: Instant) {
        self.trace_call(TraceCall::Handle, Some(now), input, |engine, input| engine.take_fact(input, now));
    }
}

/// Effects and decisions.
impl Engine {
    /// Carries out what people have ordered, where that can be done now. Returns the undos whose
    /// target is to be looked up. To be called at the beginning of each turn.
    pub(crate) fn poll_orders(&mut self, reach: OrderReach) -> Vec<UndoRequest> {
        self.trace_call(TraceCall::PollOrders, None, reach, Self::due_undo_requests)
    }

    /// Lets time pass, and returns what follows. To be called once in each turn, after
    /// [`Engine::poll_orders`].
    pub(crate) fn poll(&mut self, now: Instant) -> Effects {
        self.trace_call(TraceCall::Poll, Some(now), (), |engine, ()| engine.effects(now))
    }

    /// Returns the rollout ledger that is to be written: with the claims as they should be, or else
    /// with the queue as it is. `sealing` is the state of the seals in the one that was read.
    pub(crate) fn poll_ledger(
        &mut self,
        mode: QueueMode,
        sealing: HashCipherStatus,
        now: Instant,
    ) -> Option<RolloutLedger> {
        self.trace_call(TraceCall::PollLedger, Some(now), (mode, sealing), |engine, (mode, sealing)| {
            engine.ledger_to_write(mode, sealing, now)
        })
    }

    /// Returns the watches that are to be open. To be called at the end of each turn.
    pub(crate) fn poll_watches(&mut self) -> WantedWatches {
        self.trace_call(TraceCall::PollWatches, None, (), |engine, ()| engine.wanted_watches())
    }

    /// Decides about one object, asks the budget, and remembers what it waits for.
    pub(crate) fn decide(&mut self, id: &ObjectId, now: Instant) -> Decision {
        let decided = self.trace_call(TraceCall::Decide, Some(now), id, |engine, id| DecidedObject {
            id,
            decision: engine.decide_now(id, now),
        });
        decided.decision
    }

    /// Takes the keys of all objects about which something changed.
    pub(crate) fn take_dirty(&mut self) -> Vec<ObjectId> {
        let marked =
            self.trace_call(TraceCall::TakeDirty, None, (), |engine, ()| MarkedObjects(engine.take_marked()));
        marked.0
    }

    /// Takes the sources that may be behind another one, as the statements of others show that were
    /// read last. They are to look for a newer revision.
    pub(crate) fn take_sources_behind(&mut self) -> Vec<SourceId> {
        self.trace_call(TraceCall::TakeSourcesBehind, None, (), |engine, ()| {
            std::mem::take(&mut engine.handover.sources_behind)
        })
    }

    /// Takes the workloads of other daemons' claims of which it is new that they may not be read.
    pub(crate) fn take_newly_hidden(&mut self) -> Vec<ObjectId> {
        self.trace_call(TraceCall::TakeNewlyHidden, None, (), |engine, ()| {
            engine.rollouts.foreign_claims.take_newly_hidden()
        })
    }

    /// Returns the orders carried out since the last call, each with its outcome. An order takes
    /// effect once its acknowledgement is written, so none counts before.
    pub(crate) fn take_done_orders(&mut self) -> Vec<(SourceId, ObjectId, AnsweredOrder)> {
        self.trace_call(TraceCall::TakeDoneOrders, None, (), |engine, ()| engine.drain_done_orders())
    }

    /// Returns the objects with an order on them that is not obeyed there, each once.
    pub(crate) fn take_misplaced_orders(&mut self) -> Vec<(SourceId, ObjectId)> {
        self.trace_call(TraceCall::TakeMisplacedOrders, None, (), |engine, ()| {
            engine.drain_misplaced_orders()
        })
    }

    /// Does the same as [`Engine::statement`], with nothing left in it that no longer holds.
    pub(crate) fn tidy_statement(
        &mut self,
        source: SourceId,
        recorded: Option<&SourceStatement>,
    ) -> Option<SourceStatement> {
        let question = StatementQuestion::of(source, recorded);
        self.trace_call(TraceCall::TidyStatement, None, question, |engine, question| {
            engine.tidied_statement(question.source, question.recorded.as_deref())
        })
    }

    /// Returns the sources of this process that are to be observed, each after a number.
    pub(crate) fn take_due_observations(&mut self) -> Vec<(SourceId, u64)> {
        self.trace_call(TraceCall::TakeDueObservations, None, (), |engine, ()| {
            engine.drain_due_observations()
        })
    }
}

/// The trace.
impl Engine {
    /// Takes the lines that were recorded since they were last taken. None where nothing is
    /// recorded.
    pub(crate) fn take_trace(&mut self) -> Option<TraceChunk> {
        self.trace.as_mut().map(|trace| trace.take_chunk())
    }

    /// Records no more.
    pub(crate) fn end_trace(&mut self) {
        self.trace = None;
    }

    /// Makes a call of what it is given, and records both and the effects, where there is a trace.
    fn trace_call<G: Serialize, E: Serialize>(
        &mut self,
        call: TraceCall,
        at: Option<Instant>,
        given: G,
        run: impl FnOnce(&mut Self, G) -> E,
    ) -> E {
        let begun = self.trace.as_mut().and_then(|trace| trace.begin(call, at, &given));
        let effects = run(self, given);
        if let (Some(trace), Some(begun)) = (&mut self.trace, begun) {
            trace.end(begun, &effects);
        }
        effects
    }
}
