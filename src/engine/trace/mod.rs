//! The lines of an engine's trace: a call with what it was given and its effects, in JSON each.
//!
//! A trace has all that the engine was told. [`Replay`](crate::engine::Replay) builds the same
//! engine from it, and says at which line the effects differ. `calls.rs` has the calls. The driver
//! of the engine writes the lines to a file.
//!
//! **Invariant:** no secret is in it. The engine knows no data of Secrets, only hashes of them. A
//! trace has keyed stand-ins of these ([`stand_ins`]). In place of the key that seals and hashes,
//! it has the answers of that (`facts/key_answers.rs`). Findings about manifests are left out.
//! So are the words of a root that does not render: the names that they rule out are answers as
//! well.

mod recorder;
mod stand_ins;

pub(crate) use recorder::{MAX_TRACE_LINE_BYTES, TraceChunk, TraceRecorder};
pub(in crate::engine) use recorder::{TraceCall, TraceLine};
