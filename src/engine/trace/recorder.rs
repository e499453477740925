//! The recorder of an engine's calls: it makes lines, and keeps them until they are taken.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::facts::config_hash::HashKey;
use crate::engine::facts::key_answers::KeyAnswers;
use crate::engine::trace::stand_ins::StandIns;
use crate::object::serial::{count_instants_from, optional_instant_form};

/// The longest line, in bytes: a source's first reading is one line, of about 1 kB an object.
pub(crate) const MAX_TRACE_LINE_BYTES: usize = 256 << 20;

/// The maximum size of lines that wait to be taken, in bytes.
const MAX_PENDING_BYTES: usize = 512 << 20;

/// The calls of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::engine) enum TraceCall {
    /// The engine is made.
    New,
    /// An informer group is declared.
    AddInformerGroup,
    /// A source is declared.
    AddSource,
    /// A fact is taken over.
    Handle,
    /// Orders are carried out.
    PollOrders,
    /// Time passes.
    Poll,
    /// The next rollout ledger is asked for.
    PollLedger,
    /// The wanted watches are asked for.
    PollWatches,
    /// An object is decided about.
    Decide,
    /// The marked objects are taken.
    TakeDirty,
    /// The sources behind others are taken.
    TakeSourcesBehind,
    /// The claims that cannot be seen any more are taken.
    TakeNewlyHidden,
    /// The orders that were carried out are taken.
    TakeDoneOrders,
    /// The orders in wrong places are taken.
    TakeMisplacedOrders,
    /// The observations that are due are taken.
    TakeDueObservations,
    /// A statement is tidied.
    TidyStatement,
    /// A question was answered by a key or by facts that are left out, in the call after this line.
    KeyAnswer,
}

/// One line.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::engine) struct TraceLine {
    /// The time.
    #[serde(default, with = "optional_instant_form", skip_serializing_if = "Option::is_none")]
    pub at: Option<Instant>,
    /// The call.
    pub call: TraceCall,
    /// The values that it was given.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub given: Value,
    /// The effects that it gave.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub effects: Value,
}

/// A call that goes on.
#[derive(Debug)]
#[must_use]
pub(in crate::engine) struct TracedCall {
    line: TraceLine,
}

/// Lines that were taken.
#[derive(Debug, Default)]
pub(crate) struct TraceChunk {
    /// The lines.
    pub lines: Vec<u8>,
    /// The reason for which there are no more, in words.
    pub end_reason: Option<String>,
}

/// Makes the lines of one engine.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct TraceRecorder {
    stand_ins: StandIns,
    answers: KeyAnswers,
    lines: Vec<u8>,
    /// Nothing more is recorded, and why: a replay needs each line.
    end_reason: Option<String>,
    max_line_bytes: usize,
}

impl TraceRecorder {
    /// Begins a trace. `key` is for this trace alone, and made of random bytes.
    pub(crate) fn new(start: Instant, key: HashKey) -> Self {
        count_instants_from(start);
        Self::with(StandIns::of(key), KeyAnswers::new())
    }

    /// Records a replay with the answers of its trace.
    pub(in crate::engine) fn of_replay(answers: KeyAnswers) -> Self {
        Self::with(StandIns::of_trace(), answers)
    }

    fn with(stand_ins: StandIns, answers: KeyAnswers) -> Self {
        let max_line_bytes = MAX_TRACE_LINE_BYTES;
        Self { stand_ins, answers, lines: Vec::new(), end_reason: None, max_line_bytes }
    }

    /// Returns a recorder that ends the trace at a longer line.
    #[cfg(test)]
    pub(in crate::engine) fn with_max_line_bytes(mut self, most: usize) -> Self {
        self.max_line_bytes = most;
        self
    }

    /// Makes a key answer for this trace.
    pub(in crate::engine) fn attach(&self, key: HashKey) -> HashKey {
        key.with_answers(self.answers.clone())
    }

    /// Returns the answer to a question about facts that no line has; none where a trace lacks it.
    pub(in crate::engine) fn answer(
        &self,
        question: impl FnOnce() -> Value,
        find: impl FnOnce() -> bool,
    ) -> Option<bool> {
        self.answers.answer(question, || Some(find()))
    }

    /// Takes the lines that were made.
    pub(in crate::engine) fn take_chunk(&mut self) -> TraceChunk {
        TraceChunk { lines: std::mem::take(&mut self.lines), end_reason: self.end_reason.clone() }
    }

    /// Begins the line of a call.
    pub(in crate::engine) fn begin<G: Serialize>(
        &mut self,
        call: TraceCall,
        at: Option<Instant>,
        given: &G,
    ) -> Option<TracedCall> {
        if self.end_reason.is_some() {
            return None;
        }
        let given = self.value_of(given)?;
        Some(TracedCall { line: TraceLine { at, call, given, effects: Value::Null } })
    }

    /// Ends the line of a call, after those of the key's new answers.
    pub(in crate::engine) fn end<E: Serialize>(&mut self, call: TracedCall, effects: &E) {
        for answer in self.answers.take_new() {
            let Some(given) = self.value_of(&answer) else { return };
            self.write(&TraceLine { at: None, call: TraceCall::KeyAnswer, given, effects: Value::Null });
        }
        let Some(effects) = self.value_of(effects) else { return };
        self.write(&TraceLine { effects, ..call.line });
    }

    fn value_of<T: Serialize>(&mut self, value: &T) -> Option<Value> {
        match serde_json::to_value(value) {
            Ok(mut value) => {
                self.stand_ins.put_into(&mut value);
                Some(value)
            }
            Err(error) => {
                self.end_reason = Some(format!("a call cannot be written as JSON: {error}"));
                None
            }
        }
    }

    fn write(&mut self, line: &TraceLine) {
        if self.end_reason.is_some() {
            return;
        }
        let begin = self.lines.len();
        let written = serde_json::to_writer(&mut self.lines, line);
        let bytes = self.lines.len() - begin;
        let reason = match written {
            Err(error) => Some(format!("a call cannot be written as JSON: {error}")),
            Ok(()) if bytes > self.max_line_bytes => {
                Some(format!("a line of {bytes} bytes is longer than {}", self.max_line_bytes))
            }
            Ok(()) if self.lines.len() > MAX_PENDING_BYTES => {
                Some(format!("more than {MAX_PENDING_BYTES} bytes wait to be written"))
            }
            Ok(()) => None,
        };
        match reason {
            Some(_) => self.lines.truncate(begin),
            None => self.lines.push(b'\n'),
        }
        self.end_reason = reason;
    }
}
