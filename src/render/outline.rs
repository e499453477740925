//! The changed lines of a YAML document, each under the keys that lead to it, and nothing else.

use serde_json::Value;

use crate::change::{DiffSide, diff_lines, write_yaml};

/// One line of an outline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutlineLine {
    /// The side.
    pub(super) side: DiffSide,
    /// The line, without its end.
    pub(super) text: String,
}

/// Returns the lines that differ, with the keys above them and the names of the list items they are
/// in.
pub(super) fn outline_lines(before: &Value, after: &Value) -> Vec<OutlineLine> {
    let (before, after) = (write_yaml(before), write_yaml(after));
    let diff = diff_lines(&before, &after);
    let lines: Vec<OutlineLine> = diff
        .lines()
        .map(|line| OutlineLine { side: line.side, text: line.text.trim_end_matches('\n').to_owned() })
        .collect();
    let shown = mark_shown(&lines);
    lines.into_iter().zip(shown).filter_map(|(line, shown)| shown.then_some(line)).collect()
}

/// Marks the changed lines and what leads to them.
fn mark_shown(lines: &[OutlineLine]) -> Vec<bool> {
    let mut shown = vec![false; lines.len()];
    for side in [DiffSide::Before, DiffSide::After] {
        let mut above: Vec<(usize, usize)> = Vec::new();
        let on_side =
            lines.iter().enumerate().filter(|(_, line)| line.side == side || line.side == DiffSide::Both);
        for (number, line) in on_side {
            let depth = line_depth(&line.text);
            above.truncate(above.partition_point(|(other, _)| *other < depth));
            above.push((depth, number));
            if line.side != DiffSide::Both {
                for (_, number) in &above {
                    shown[*number] = true;
                }
            }
        }
    }
    for number in 0..lines.len() {
        let leads = shown[number] && lines[number].side == DiffSide::Both;
        if let Some(name) = leads.then(|| name_of_item(lines, number)).flatten() {
            shown[name] = true;
        }
    }
    shown
}

/// Returns how deep a line is. A list item is between its key, which has the same indentation, and
/// its own keys.
fn line_depth(line: &str) -> usize {
    let rest = line.trim_start_matches(' ');
    let indentation = line.len() - rest.len();
    if rest.starts_with("- ") { indentation + 1 } else { indentation }
}

/// Returns the line with the name of the list item that begins here, if it is another one.
fn name_of_item(lines: &[OutlineLine], item: usize) -> Option<usize> {
    let depth = line_depth(&lines[item].text);
    let own = lines[item].text.trim_start();
    if !own.starts_with("- ") || own.starts_with("- name: ") {
        return None;
    }
    let below = lines.iter().enumerate().skip(item + 1);
    let mut inside = below.take_while(|(_, line)| self::line_depth(&line.text) > depth);
    inside
        .find(|(_, line)| {
            self::line_depth(&line.text) == depth + 1 && line.text.trim_start().starts_with("name: ")
        })
        .map(|(number, _)| number)
}
