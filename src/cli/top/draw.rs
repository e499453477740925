//! The picture of a model. Pure: the same model is always the same picture.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use super::bars;
use super::details::DetailPane;
use super::layout;
use super::model::{TopMode, TopModel};
use super::panes::{ALL_PANES, Pane, PaneItem};
use super::status_poller::StatusOrigin;
use super::styled_text::{styled_span, truncate_end};
use super::table::Table;
use crate::render::TextStyle;

/// The keys and their actions.
const KEY_HELP: [(&str, &str); 12] = [
    ("Tab, Right, l", "next pane; Shift-Tab, Left or h: previous pane"),
    ("1 to 5", "pane by number"),
    ("Up, Down, k, j", "previous or next row"),
    ("PageUp, PageDown", "previous or next page; also Ctrl-B, Ctrl-F, Space"),
    ("Home, End, g, G", "first or last row"),
    ("Enter", "details and events of the row"),
    ("Esc", "go back; clear the filter; else quit"),
    ("/", "filter rows by a text: Enter keeps it, Esc clears it"),
    ("s", "show only the source of this row; again: all"),
    ("Ctrl-L", "redraw"),
    ("Ctrl-Z", "suspend, until `fg`"),
    ("q, Ctrl-C", "quit"),
];

/// Draws all of it.
pub(super) fn draw(model: &TopModel, frame: &mut Frame<'_>) {
    let area = frame.area();
    let rows = bars::header(model, area.width.into(), layout::header(area.height).into());
    draw_lines(frame, area, 0, rows);
    let (first, height) = layout::body(area.height);
    match &model.mode {
        TopMode::Help => draw_help(model, frame, first),
        TopMode::Opened(opened) => draw_details(model, opened, frame, first, height),
        TopMode::Panes | TopMode::Typing => draw_panes(model, frame),
    }
    if area.height > 1 {
        draw_lines(frame, area, area.height - 1, vec![bars::footer_line(model, area.width.into())]);
    }
}

/// Draws lines from a row on, as far as there is room.
fn draw_lines(frame: &mut Frame<'_>, area: Rect, row: u16, lines: Vec<Line<'static>>) {
    for (line, row) in lines.into_iter().zip(row..area.height) {
        frame.render_widget(line, Rect { y: row, height: 1, ..area });
    }
}

fn draw_panes(model: &TopModel, frame: &mut Frame<'_>) {
    let area = frame.area();
    let view = model.shown_status();
    let items = ALL_PANES.map(|pane| model.pane_items_of(pane, &view));
    let layout = model.layout(&items);
    let columns = usize::from(area.width);
    for pane in ALL_PANES {
        let (first, rows) = layout.panes[pane as usize];
        let Some(rows) = usize::from(rows).checked_sub(1) else { continue };
        let items = &items[pane as usize];
        let cursor = model.cursors[pane as usize].position_among(items);
        let is_focused = model.focus == pane;
        let table = Table::of(items, is_focused.then_some(cursor), pane.column_set(), columns, model.palette);
        let mut lines = Vec::new();
        if pane == Pane::Rollouts {
            lines.push(bars::budget_line(&view.rollout, columns, model.palette));
        }
        lines.extend(table.head);
        let left = rows.saturating_sub(lines.len());
        let above: usize = table.rows.iter().take(cursor).map(Vec::len).sum();
        let own = table.rows.get(cursor).map_or(0, Vec::len);
        let all: Vec<Line<'static>> = table.rows.into_iter().flatten().collect();
        let hidden = all.len().saturating_sub(left);
        let skipped = scroll_offset(above, own, left, all.len());
        lines.extend(all.into_iter().skip(skipped));
        lines.truncate(rows);
        let is_alone = layout.panes.iter().filter(|(_, rows)| *rows > 0).count() == 1;
        let position = PanePosition { cursor, is_cut_off: hidden > 0, is_alone };
        let title = title(model, pane, items, position, columns);
        lines.insert(0, title);
        draw_lines(frame, area, first, lines);
    }
}

/// Returns the number of lines above the first one shown: the chosen item is in the middle,
/// where not all fit.
fn scroll_offset(above: usize, own: usize, rows: usize, all: usize) -> usize {
    let middle = (above + own / 2).saturating_sub(rows / 2);
    middle.min(above).min(all.saturating_sub(rows))
}

/// The part of a pane that its title names.
#[derive(Clone, Copy)]
struct PanePosition {
    /// The index of the chosen item.
    cursor: usize,
    /// Not all of its lines fit.
    is_cut_off: bool,
    /// No other pane is shown.
    is_alone: bool,
}

fn title(
    model: &TopModel,
    pane: Pane,
    items: &[PaneItem],
    position: PanePosition,
    columns: usize,
) -> Line<'static> {
    let is_focused = model.focus == pane;
    let is_filtered = !model.text.is_empty() || model.only.is_some();
    let nothing = match pane {
        Pane::Events if matches!(model.origin, StatusOrigin::Cluster(_)) => ": only the daemon shows them",
        _ if is_filtered => ": no match",
        Pane::Sources | Pane::Rollouts | Pane::Queue | Pane::NeedsAttention => ": none",
        Pane::Events => ": none yet",
    };
    let count = match items.len() {
        0 => nothing.to_owned(),
        count if is_focused && position.is_cut_off => format!(": {} of {count}", position.cursor + 1),
        count => format!(": {count}"),
    };
    // The others are not to be seen.
    let count = if position.is_alone { format!("{count}; Tab: {}", pane.next().title()) } else { count };
    let (title, count) =
        (pane.title(), truncate_end(&count, columns.saturating_sub(pane.title().width() + 3)));
    let rest = columns.saturating_sub(title.width() + count.width() + 3);
    let line = |count: usize| "\u{2500}".repeat(count);
    let (strong, faint) = (is_focused.then_some(TextStyle::Strong), Some(TextStyle::Faint));
    let style = if is_focused { None } else { faint };
    Line::from(vec![
        styled_span(model.palette, style, format!("{} ", line(1))),
        styled_span(model.palette, strong, title),
        styled_span(model.palette, faint, format!("{count} ")),
        styled_span(model.palette, style, line(rest)),
    ])
}

fn draw_details(model: &TopModel, opened: &DetailPane, frame: &mut Frame<'_>, first: u16, rows: u16) {
    let area = frame.area();
    let all = model.detail_lines(area.width.into());
    let (count, left) = (all.len(), usize::from(rows).saturating_sub(1));
    let skipped = opened.scroll.min(count.saturating_sub(left));
    let more = if count > left {
        format!(": lines {} to {} of {count}", skipped + 1, (skipped + left).min(count))
    } else {
        String::new()
    };
    let mut lines = vec![detail_heading(model, &opened.subject.title(), &more, area.width.into())];
    lines.extend(all.into_iter().skip(skipped).take(left));
    draw_lines(frame, area, first, lines);
}

fn draw_help(model: &TopModel, frame: &mut Frame<'_>, first: u16) {
    let area = frame.area();
    let mut lines = vec![detail_heading(model, "Keys", "", area.width.into())];
    for (keys, description) in KEY_HELP {
        lines.push(Line::from(vec![
            styled_span(model.palette, Some(TextStyle::Strong), format!(" {keys:<17} ")),
            Span::raw(description),
        ]));
    }
    let mut area = area;
    area.height = area.height.saturating_sub(1);
    draw_lines(frame, area, first, lines);
}

/// Returns the heading of the detail view.
fn detail_heading(model: &TopModel, title: &str, more: &str, columns: usize) -> Line<'static> {
    let title = truncate_end(title, columns.saturating_sub(more.width() + 4));
    let rest = columns.saturating_sub(title.width() + more.width() + 3);
    Line::from(vec![
        Span::raw("\u{2500} "),
        styled_span(model.palette, Some(TextStyle::Strong), title),
        styled_span(model.palette, Some(TextStyle::Faint), more),
        Span::raw(format!(" {}", "\u{2500}".repeat(rest))),
    ])
}
