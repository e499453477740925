//! Items as lines of a width.

use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use super::super::overview::Cell;
use super::panes::{ColumnSet, PaneItem};
use super::styled_text::{Alignment, pad, style_of, styled_span, truncate_end, truncate_start};
use crate::render::{Palette, TextStyle};

/// The mark of the chosen item.
const CURSOR_MARK: &str = "\u{25b8}";

/// Columns that the mark takes, and that are between two cells.
const CURSOR_COLUMNS: usize = 2;
const CELL_GAP: usize = 2;

/// The columns that the last cell gets before anything else is cut.
const MIN_LAST_CELL_COLUMNS: usize = 20;

/// The columns to which the name is cut before anything is left out, and after that.
const NAME_COLUMNS: [usize; 2] = [28, 12];

/// The lines of a table.
pub(super) struct Table {
    /// The heads, where it has some.
    pub(super) head: Option<Line<'static>>,
    /// The lines of each item.
    pub(super) rows: Vec<Vec<Line<'static>>>,
}

/// The width of each column; none for one that is left out.
struct Widths {
    columns: Vec<Option<usize>>,
    shape: ColumnSet,
    palette: Palette,
}

impl Table {
    /// Returns the items on so many columns, one of them chosen.
    pub(super) fn of(
        items: &[PaneItem],
        chosen: Option<usize>,
        shape: ColumnSet,
        columns: usize,
        palette: Palette,
    ) -> Self {
        let widths = Widths::of(items, shape, columns, palette);
        let heads: Vec<Cell> =
            shape.heads.iter().map(|head| Cell::styled_cell(TextStyle::Faint, *head)).collect();
        let head =
            (!heads.is_empty() && !items.is_empty()).then(|| widths.line(" ", &heads, Modifier::empty()));
        let row = |(number, item): (usize, &PaneItem)| {
            let first = if chosen == Some(number) {
                widths.line(CURSOR_MARK, &item.cells, Modifier::REVERSED)
            } else {
                widths.line(" ", &item.cells, Modifier::empty())
            };
            let notes = item.notes.iter().map(|note| widths.note(note, columns));
            std::iter::once(first).chain(notes).collect()
        };
        Self { head, rows: items.iter().enumerate().map(row).collect() }
    }
}

impl Widths {
    fn of(items: &[PaneItem], shape: ColumnSet, columns: usize, palette: Palette) -> Self {
        let count = items.iter().map(|item| item.cells.len()).max().unwrap_or(0);
        let natural = |column: usize| {
            let cells =
                items.iter().filter_map(|item| item.cells.get(column)).map(|cell| cell.text.width()).max();
            cells.unwrap_or(0).max(shape.heads.get(column).map_or(0, |head| head.width()))
        };
        let mut widths: Vec<Option<usize>> = (0..count).map(|column| Some(natural(column))).collect();
        let free_columns = columns.saturating_sub(CURSOR_COLUMNS);
        let taken = |widths: &[Option<usize>]| {
            let shown: Vec<usize> = widths.iter().copied().flatten().collect();
            shown.iter().sum::<usize>() + CELL_GAP * shown.len().saturating_sub(1)
        };
        let Some(last) = count.checked_sub(1) else { return Self { columns: widths, shape, palette } };
        let full_width = widths[last].unwrap_or(0);
        // As if no more were needed of the last one.
        widths[last] = Some(full_width.min(MIN_LAST_CELL_COLUMNS));
        let cut_name = |widths: &mut [Option<usize>], least: usize| {
            let over = taken(widths).saturating_sub(free_columns);
            let name = widths[shape.name].unwrap_or(0);
            if shape.name < last {
                widths[shape.name] = Some(name.saturating_sub(over).max(least.min(name)));
            }
        };
        cut_name(&mut widths, NAME_COLUMNS[0]);
        for column in shape.needless {
            if taken(&widths) > free_columns {
                widths[*column] = None;
            }
        }
        cut_name(&mut widths, NAME_COLUMNS[1]);
        widths[last] = Some(0);
        let left = free_columns.saturating_sub(taken(&widths));
        widths[last] = Some(left.min(full_width));
        Self { columns: widths, shape, palette }
    }

    /// Returns one row. Only the name of a chosen row is highlighted, as a reversed bar would be
    /// misread.
    fn line(&self, mark: &str, cells: &[Cell], name: Modifier) -> Line<'static> {
        let mut spans: Vec<Span<'static>> = vec![Span::raw(format!("{mark} "))];
        let shown = cells.iter().enumerate().filter_map(|(column, cell)| {
            let width = self.columns.get(column).copied().flatten()?;
            Some((column, cell, width))
        });
        for (number, (column, cell, width)) in shown.enumerate() {
            let (text, modifier) = if column == self.shape.name {
                (truncate_start(&cell.text, width), name)
            } else {
                (truncate_end(&cell.text, width), Modifier::empty())
            };
            let side = if self.shape.numbers.contains(&column) { Alignment::Right } else { Alignment::Left };
            if number > 0 {
                spans.push(Span::raw(" ".repeat(CELL_GAP)));
            }
            spans.push(styled_span(self.palette, cell.style, pad(&text, width, side)).patch_style(modifier));
        }
        Line::from(spans)
    }

    /// Returns the line of a note, below the last cell, where there is room enough for it.
    fn note(&self, note: &Cell, columns: usize) -> Line<'static> {
        let before: Vec<usize> = self
            .columns
            .split_last()
            .map_or(&[][..], |(_, before)| before)
            .iter()
            .copied()
            .flatten()
            .collect();
        let column = CURSOR_COLUMNS + before.iter().sum::<usize>() + CELL_GAP * before.len();
        let left = columns.saturating_sub(column);
        let indent = if left >= note.text.width() { column } else { CURSOR_COLUMNS + CELL_GAP };
        let text = truncate_end(&note.text, columns.saturating_sub(indent));
        let style = note.style.map_or_else(ratatui::style::Style::new, |style| style_of(self.palette, style));
        Line::from(vec![Span::raw(" ".repeat(indent)), Span::styled(text, style)])
    }
}
