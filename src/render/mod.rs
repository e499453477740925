//! Plans, readings and findings as text, unified diff and JSON, and the sentences of reasons.
//!
//! Owns every form that a person or a machine reads on standard output, and the colours in it. The
//! sentence of a reason is its `Display`, and is the same wherever it is read.
//!
//! **Invariant:** gives text and writes nowhere; decides nothing, and masks nothing (what it gets
//! is masked already).

mod allow_sentences;
mod diagnostics;
mod failure_sentences;
mod inventory_sentences;
mod json;
mod manifest_sentences;
mod object_ref;
mod order_sentences;
mod outline;
mod palette;
mod progress;
mod prune_sentences;
mod reason_details;
mod reason_sentences;
mod refusal_sentences;
mod rejection_sentences;
mod release_order;
mod rollout_sentences;
mod text;
mod unified;

pub(crate) use allow_sentences::describe_violation;
pub(crate) use diagnostics::{diagnostics, tally};
pub(crate) use json::{manifests_json, plan_json};
pub(crate) use manifest_sentences::describe_contest;
pub(crate) use object_ref::ObjectRef;
pub(crate) use palette::{Palette, TextStyle, sanitize, sanitize_line};
pub(crate) use progress::{ApplyLine, progress_line};
pub(crate) use reason_details::CodedReason;
#[cfg(test)]
pub(crate) use reason_details::ReasonDetails;
pub(crate) use text::{SummaryTense, held_back_text, names, summary, text};
pub(crate) use unified::unified_diff;

#[cfg(test)]
mod tests;
