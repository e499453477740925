//! Plans, readings and findings as text, unified diff and JSON.
//!
//! Owns every form that a person or a machine reads on standard output, and the colours in it.
//!
//! **Invariant:** gives text and writes nowhere; decides nothing, and masks nothing (what it gets
//! is masked already).

mod diagnostics;
mod json;
mod order;
mod outline;
mod palette;
mod progress;
mod text;
mod unified;

pub use diagnostics::{diagnostics, tally};
pub use json::{SCHEMA, json, reading_json};
pub use palette::{Palette, TextStyle, harmless, harmless_line};
pub use progress::{ApplyOutcome, progress};
pub use text::{SummaryTense, held_back, names, summary, text};
pub use unified::unified;

#[cfg(test)]
mod tests;
