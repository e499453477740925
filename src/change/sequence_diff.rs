//! The difference of two sequences. Items become numbers first, so that the program has one copy of
//! the algorithm.

use similar::DiffOp;
use similar::algorithms::{Capture, Compact, Replace, myers};

/// Returns the steps that make the second sequence of the first, in order.
pub(super) fn diff_sequences(before: &[u32], after: &[u32]) -> Vec<DiffOp> {
    let mut steps = Compact::new(Replace::new(Capture::new()), before, after);
    let Ok(()) = myers::diff(&mut steps, before, 0..before.len(), after, 0..after.len());
    steps.into_inner().into_inner().into_ops()
}

/// Returns the share of characters that two words have in the same order, up to 1 for equal words.
pub(crate) fn word_similarity(first: &str, second: &str) -> f32 {
    let [first, second] = [first, second].map(|word| word.chars().map(u32::from).collect::<Vec<_>>());
    similar::diff_ratio(&diff_sequences(&first, &second), first.len(), second.len())
}
