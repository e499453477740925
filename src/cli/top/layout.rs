//! The division of the terminal's rows.

use super::panes::{ALL_PANES, Pane, PaneItem};

/// The minimum number of rows for all panes; with fewer, one alone is shown.
const MIN_ROWS_FOR_ALL_PANES: u16 = 14;

/// The rows of the screen from which on the header has two.
const MIN_ROWS_FOR_TALL_HEADER: u16 = 16;

/// The number of lines that each pane has below its title before one gets more.
const MIN_PANE_LINES: u16 = 3;

/// The first row and the height of each pane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScreenLayout {
    /// The first row and the height of each pane, with its title; no height where it is not shown.
    pub(super) panes: [(u16, u16); ALL_PANES.len()],
}

/// Returns the rows between header and footer: the first one, and how many.
pub(super) fn body(rows: u16) -> (u16, u16) {
    let head = header(rows);
    (head, rows.saturating_sub(head + 1))
}

/// Returns the rows of the header.
pub(super) fn header(rows: u16) -> u16 {
    if rows < MIN_ROWS_FOR_TALL_HEADER { 1 } else { 2 }
}

/// Returns the lines of a pane below its title, if there were room for all.
pub(super) fn wanted_lines(pane: Pane, items: &[PaneItem]) -> u16 {
    let lines: usize = items.iter().map(|item| 1 + item.notes.len()).sum();
    let above = usize::from(match pane {
        Pane::Sources => !items.is_empty(),
        // The budget.
        Pane::Rollouts => true,
        _ => false,
    });
    u16::try_from(lines + above).unwrap_or(u16::MAX)
}

impl ScreenLayout {
    /// Shares the lines out: each pane gets a few, then the one that the keys move in, then all
    /// others in turn.
    pub(super) fn of(rows: u16, wants: [u16; ALL_PANES.len()], focus: Pane) -> Self {
        let (first, rows) = body(rows);
        let mut lines = [0; ALL_PANES.len()];
        if rows < MIN_ROWS_FOR_ALL_PANES {
            lines[focus as usize] = rows;
        } else {
            let mut left = rows - ALL_PANES.len() as u16;
            for most in 1..=MIN_PANE_LINES {
                grant(&mut lines, &mut left, wants.map(|want| want.min(most)));
            }
            let chosen = focus as usize;
            let more = left.min(wants[chosen].saturating_sub(lines[chosen]));
            lines[chosen] += more;
            left -= more;
            while left > 0 && grant(&mut lines, &mut left, wants) > 0 {}
            lines = lines.map(|lines| lines + 1);
        }
        let mut next = first;
        let panes = lines.map(|lines| {
            let row_range = (next, lines);
            next += lines;
            row_range
        });
        Self { panes }
    }
}

/// Gives one line to each that has fewer than it wants; how many were given.
fn grant(lines: &mut [u16; ALL_PANES.len()], left: &mut u16, wants: [u16; ALL_PANES.len()]) -> u16 {
    let before = *left;
    for (lines, want) in lines.iter_mut().zip(wants) {
        if *lines < want && *left > 0 {
            *lines += 1;
            *left -= 1;
        }
    }
    before - *left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pane_starves_and_the_chosen_one_gets_more() {
        #[track_caller]
        fn check(rows: u16, wants: [u16; 5], focus: Pane, expected: [u16; 5]) {
            let ScreenLayout { panes } = ScreenLayout::of(rows, wants, focus);
            assert_eq!(panes.map(|(_, rows)| rows), expected);
            let sum: u16 = expected.iter().sum();
            assert!(sum <= body(rows).1, "{sum} rows of {}", body(rows).1);
        }
        check(24, [2, 1, 0, 0, 0], Pane::Sources, [3, 2, 1, 1, 1]);
        check(24, [90, 90, 90, 90, 90], Pane::Sources, [5, 4, 4, 4, 4]);
        check(24, [2, 1, 0, 90, 90], Pane::Sources, [3, 2, 1, 8, 7]);
        check(24, [2, 1, 0, 90, 90], Pane::Events, [3, 2, 1, 4, 11]);
        check(10, [2, 1, 0, 90, 90], Pane::Events, [0, 0, 0, 0, 8]);
        check(2, [2, 1, 0, 90, 90], Pane::Queue, [0, 0, 0, 0, 0]);
        check(0, [9; 5], Pane::Sources, [0; 5]);
    }
}
