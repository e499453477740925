//! The replay of a trace: each recorded call again, on an engine that the trace alone makes.

use std::time::Instant;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::engine::HashCipherStatus;
use crate::engine::calls::{EngineDeclaration, StatementQuestion, TRACE_FORM};
use crate::engine::effect::{OrderReach, QueueMode};
use crate::engine::facts::key_answers::KeyAnswers;
use crate::engine::input::Input;
use crate::engine::state::Engine;
use crate::engine::trace::{TraceCall, TraceLine, TraceRecorder};
use crate::object::ObjectId;
use crate::object::serial::count_instants_from;

/// The reason for which a line cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReplayError {
    /// The line is no JSON of a call, or of a fact of this version.
    #[error("not a line of a trace: {0}")]
    Json(#[from] serde_json::Error),
    /// The line comes before an engine is made.
    #[error("not the beginning of a trace: its first line makes an engine")]
    NoEngine,
    /// Another version has written the trace.
    #[error("version {version} of rhumb has written it in form {form}, and this one reads form {TRACE_FORM}")]
    OtherForm {
        /// The version.
        version: String,
        /// The form.
        form: u32,
    },
    /// The line has no time, and needs one.
    #[error("the time is missing")]
    NoTime,
    /// The line names a source or an informer group that was not declared.
    #[error("{field} {number} was not declared before")]
    Undeclared {
        /// The field.
        field: &'static str,
        /// The number.
        number: u64,
    },
}

/// A call that was replayed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReplayedCall {
    /// The call by its name.
    pub call: String,
    /// The effects of the recorded one; null where it has none.
    pub recorded: Value,
    /// The effects now.
    pub replayed: Value,
}

impl ReplayedCall {
    /// Returns whether the effects are the same, byte for byte.
    pub(crate) fn is_same(&self) -> bool {
        let [recorded, replayed] = [&self.recorded, &self.replayed].map(Value::to_string);
        recorded == replayed
    }
}

/// Replays the lines of a trace, one after the other.
#[derive(Debug)]
pub(crate) struct Replay {
    engine: Option<Engine>,
    answers: KeyAnswers,
    sources: u64,
    informer_groups: u64,
}

impl Replay {
    /// Begins a replay: the time of the trace's start is this one.
    pub(crate) fn new(start: Instant) -> Self {
        count_instants_from(start);
        Self { engine: None, answers: KeyAnswers::of_trace(), sources: 0, informer_groups: 1 }
    }

    /// Replays one line. None where it is no call.
    ///
    /// # Errors
    ///
    /// The line must be one of a trace, and follow those before it.
    pub(crate) fn replay_line(&mut self, text: &[u8]) -> Result<Option<ReplayedCall>, ReplayError> {
        let TraceLine { at, call, given, effects } = serde_json::from_slice(text)?;
        if call == TraceCall::KeyAnswer {
            self.answers.add(serde_json::from_value(given)?);
            return Ok(None);
        }
        if call == TraceCall::New {
            self.begin_engine(given)?;
        } else {
            self.check_numbers(&given)?;
            let now = at.ok_or(ReplayError::NoTime);
            self.call(call, now, given)?;
        }
        let name = serde_json::to_value(call)?.as_str().unwrap_or_default().to_owned();
        let chunk = self.engine.as_mut().and_then(Engine::take_trace).unwrap_or_default();
        let replayed: TraceLine = serde_json::from_slice(&chunk.lines)?;
        Ok(Some(ReplayedCall { call: name, recorded: effects, replayed: replayed.effects }))
    }

    fn begin_engine(&mut self, given: Value) -> Result<(), ReplayError> {
        let EngineDeclaration { form, version, budget } = serde_json::from_value(given)?;
        if form != TRACE_FORM {
            return Err(ReplayError::OtherForm { version: version.into_owned(), form });
        }
        (self.sources, self.informer_groups) = (0, 1);
        self.engine = Some(Engine::new_traced(budget, TraceRecorder::of_replay(self.answers.clone())));
        Ok(())
    }

    /// Makes a call again. The engine records its effects.
    fn call(
        &mut self,
        call: TraceCall,
        now: Result<Instant, ReplayError>,
        given: Value,
    ) -> Result<(), ReplayError> {
        let engine = self.engine.as_mut().ok_or(ReplayError::NoEngine)?;
        match call {
            TraceCall::New | TraceCall::KeyAnswer => {}
            TraceCall::AddInformerGroup => {
                engine.add_informer_group(read(given)?);
                self.informer_groups += 1;
            }
            TraceCall::AddSource => {
                engine.add_source(read(given)?);
                self.sources += 1;
            }
            TraceCall::Handle => engine.handle(read::<Input>(given)?, now?),
            TraceCall::PollOrders => drop(engine.poll_orders(read::<OrderReach>(given)?)),
            TraceCall::Poll => drop(engine.poll(now?)),
            TraceCall::PollLedger => {
                let (mode, sealing) = read::<(QueueMode, HashCipherStatus)>(given)?;
                drop(engine.poll_ledger(mode, sealing, now?));
            }
            TraceCall::PollWatches => drop(engine.poll_watches()),
            TraceCall::Decide => drop(engine.decide(&read::<ObjectId>(given)?, now?)),
            TraceCall::TakeDirty => drop(engine.take_dirty()),
            TraceCall::TakeSourcesBehind => drop(engine.take_sources_behind()),
            TraceCall::TakeNewlyHidden => drop(engine.take_newly_hidden()),
            TraceCall::TakeDoneOrders => drop(engine.take_done_orders()),
            TraceCall::TakeMisplacedOrders => drop(engine.take_misplaced_orders()),
            TraceCall::TidyStatement => {
                let StatementQuestion { source, recorded } = read(given)?;
                drop(engine.tidy_statement(source, recorded.as_deref()));
            }
            TraceCall::TakeDueObservations => drop(engine.take_due_observations()),
        }
        Ok(())
    }

    /// Checks that each source and informer group was declared.
    fn check_numbers(&self, given: &Value) -> Result<(), ReplayError> {
        match given {
            Value::Array(items) => items.iter().try_for_each(|item| self.check_numbers(item)),
            Value::Object(fields) => fields.iter().try_for_each(|(name, value)| {
                let known = [("source", self.sources), ("informer_group", self.informer_groups)];
                for (field, count) in known {
                    if let Some(number) = value.as_u64().filter(|number| name == field && *number >= count) {
                        return Err(ReplayError::Undeclared { field, number });
                    }
                }
                self.check_numbers(value)
            }),
            _ => Ok(()),
        }
    }
}

fn read<T: DeserializeOwned>(given: Value) -> Result<T, ReplayError> {
    Ok(serde_json::from_value(given)?)
}
