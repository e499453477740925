//! The trace of an engine: each call of it with its effects, a JSON line each.
//!
//! A trace has all that the engine was told. [`Replay`] builds the same engine from it, and says at
//! which line the effects differ. The driver of the engine writes the lines to a file.
//!
//! **Invariant:** no secret is in it. The engine knows no data of Secrets, only hashes of them. A
//! trace has keyed stand-ins of these ([`stand_ins`]). In place of the key that seals and hashes,
//! it has the answers of that (`restart/key_answers.rs`). Findings about manifests are left out.
//! So are the words of a root that does not render: the names that they rule out are answers as
//! well.

mod calls;
mod declaration;
mod forms;
mod recorder;
mod replay;
mod stand_ins;

pub(in crate::engine) use forms::{DecisionForm, EffectsForm, StatementQuestion, sorted};
pub(in crate::engine) use recorder::TraceCall;
pub(crate) use recorder::{MAX_TRACE_LINE_BYTES, TraceChunk, TraceRecorder};
pub(crate) use replay::{Replay, ReplayedCall};
