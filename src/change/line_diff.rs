//! The difference of two texts, line by line.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use similar::{DiffOp, DiffTag, group_diff_ops};

use super::sequence_diff::diff_sequences;

/// Lines around each change of a unified diff.
const CONTEXT_LINES: usize = 3;

/// The side of a difference that a line is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiffSide {
    /// On both.
    Both,
    /// Only before.
    Before,
    /// Only after.
    After,
}

impl DiffSide {
    /// Returns the sign before a line of a unified diff.
    fn sign(self) -> char {
        match self {
            Self::Both => ' ',
            Self::Before => '-',
            Self::After => '+',
        }
    }
}

/// One line of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DiffLine<'a> {
    /// The side.
    pub(crate) side: DiffSide,
    /// The line, with its end.
    pub(crate) text: &'a str,
}

/// The difference of two texts.
pub(crate) struct LineDiff<'a> {
    /// The lines of the first text, with their ends.
    before: Vec<&'a str>,
    /// The lines of the second text, with their ends.
    after: Vec<&'a str>,
    /// The steps from the first text to the second.
    steps: Vec<DiffOp>,
}

/// Compares two texts line by line.
pub(crate) fn diff_lines<'a>(before: &'a str, after: &'a str) -> LineDiff<'a> {
    let [before, after] = [before, after].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let mut numbers: HashMap<&'a str, u32> = HashMap::new();
    let mut number_lines = |lines: &[&'a str]| -> Vec<u32> {
        let number = |line: &&'a str| {
            let next = numbers.len() as u32;
            *numbers.entry(*line).or_insert(next)
        };
        lines.iter().map(number).collect()
    };
    let (old, new) = (number_lines(&before), number_lines(&after));
    let steps = diff_sequences(&old, &new);
    LineDiff { before, after, steps }
}

impl<'a> LineDiff<'a> {
    /// Returns all lines, in order. Within a change, what is before comes first.
    pub(crate) fn lines(&self) -> impl Iterator<Item = DiffLine<'a>> {
        self.steps.iter().flat_map(move |step| self.step_lines(step))
    }

    /// Returns a unified diff without file names; nothing when the texts are equal.
    pub(crate) fn to_unified(&self) -> String {
        let mut out = String::new();
        for hunk in group_diff_ops(self.steps.clone(), CONTEXT_LINES) {
            let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
            let old = hunk_range(first.old_range().start..last.old_range().end);
            let new = hunk_range(first.new_range().start..last.new_range().end);
            let _ = writeln!(out, "@@ -{old} +{new} @@");
            for line in hunk.iter().flat_map(|step| self.step_lines(step)) {
                out.push(line.side.sign());
                out.push_str(line.text);
                if !line.text.ends_with('\n') {
                    out.push_str("\n\\ No newline at end of file\n");
                }
            }
        }
        out
    }

    /// Returns the lines of one step.
    fn step_lines(&self, step: &DiffOp) -> impl Iterator<Item = DiffLine<'a>> {
        let (tag, old, new) = step.as_tag_tuple();
        let (side, added) =
            if tag == DiffTag::Equal { (DiffSide::Both, 0..0) } else { (DiffSide::Before, new) };
        let of_old = self.before[old].iter().map(move |&text| DiffLine { side, text });
        let of_new = self.after[added].iter().map(|&text| DiffLine { side: DiffSide::After, text });
        of_old.chain(of_new)
    }
}

/// Returns the lines of one side as a hunk's header has them, which counts from one. An empty range
/// is behind the line that it names.
fn hunk_range(lines: Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => (lines.start + 1).to_string(),
        length => format!("{},{length}", lines.start + 1),
    }
}
