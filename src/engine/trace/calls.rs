//! The engine's side of its trace: it begins and ends the line of each call.

use std::time::Instant;

use serde::Serialize;
use serde_json::Value;

use crate::engine::Budget;
use crate::engine::restart::config_hash::HashKey;
use crate::engine::restart::config_restart::ReadState;
use crate::engine::state::Engine;
use crate::engine::trace::declaration::EngineDeclaration;
use crate::engine::trace::recorder::{TraceCall, TraceChunk, TraceRecorder, TracedCall};

impl Engine {
    /// Returns an engine without sources, whose calls are recorded.
    pub(crate) fn traced(budget: Budget, recorder: TraceRecorder) -> Self {
        let declaration = EngineDeclaration::of(&budget);
        let mut engine = Self::new(budget);
        engine.trace = Some(Box::new(recorder));
        let call = engine.begin_call(TraceCall::New, None, &declaration);
        engine.end_call(call, || ());
        engine
    }

    /// Takes the lines that were recorded since they were last taken. None where nothing is
    /// recorded.
    pub(crate) fn take_trace(&mut self) -> Option<TraceChunk> {
        self.trace.as_mut().map(|trace| trace.take_chunk())
    }

    /// Records no more.
    pub(crate) fn end_trace(&mut self) {
        self.trace = None;
    }

    /// Begins the line of a call; none where nothing is recorded.
    pub(in crate::engine) fn begin_call<G: Serialize>(
        &mut self,
        call: TraceCall,
        at: Option<Instant>,
        given: &G,
    ) -> Option<TracedCall> {
        self.trace.as_mut()?.begin(call, at, given)
    }

    /// Ends the line of a call with its effects.
    pub(in crate::engine) fn end_call<E: Serialize>(
        &mut self,
        call: Option<TracedCall>,
        effects: impl FnOnce() -> E,
    ) {
        if let (Some(trace), Some(call)) = (&mut self.trace, call) {
            trace.end(call, &effects());
        }
    }

    /// Returns the answer to a question about facts that a trace leaves out: as it is found, or as
    /// it was recorded.
    pub(in crate::engine) fn answer_for_trace(
        &self,
        question: impl FnOnce() -> Value,
        find: impl Fn() -> bool,
    ) -> bool {
        let answer = self.trace.as_ref().and_then(|trace| trace.answer(question, &find));
        answer.unwrap_or_else(find)
    }

    /// Makes a key answer for the trace, where there is one.
    pub(in crate::engine) fn attach_key(&self, key: ReadState<HashKey>) -> ReadState<HashKey> {
        match (&self.trace, key) {
            (Some(trace), ReadState::Value(key)) => ReadState::Value(trace.attach(key)),
            (_, key) => key,
        }
    }
}
