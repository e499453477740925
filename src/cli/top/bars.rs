//! The lines above and below the panes, and that of the budget.

use jiff::Timestamp;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use super::super::overview::{self, age_text, clean_text};
use super::model::{Outage, TopMode, TopModel};
use super::panes::bar_text;
use super::status_poller::StatusOrigin;
use super::styled_text::{styled_span, truncate_end};
use crate::object::count_text;
use crate::render::{Palette, TextStyle};
use crate::report::{BoundUsage, RolloutStatus, left_alone_count, silence_text};

/// Cells of a bar of the budget, the widest first; none where there is no room.
const BAR_WIDTHS: [u32; 3] = [12, 6, 0];

/// Returns who answers, from when that is, and what follows from it.
pub(super) fn header(model: &TopModel, columns: usize, rows: usize) -> Vec<Line<'static>> {
    let palette = model.palette;
    let (style, right) = match &model.outage {
        None => (TextStyle::Added, format!("{} UTC", model.view.at.strftime("%H:%M:%S"))),
        Some(Outage { since, .. }) => {
            (TextStyle::Error, format!("no answer since {}", since.strftime("%H:%M:%S UTC")))
        }
    };
    let version = model.view.process.as_ref().map(|process| process.version.as_str());
    let name = format!(" rhumb {}", clean_text(version.unwrap_or(env!("CARGO_PKG_VERSION"))));
    let free_columns = columns.saturating_sub(right.width() + 2);
    let name = truncate_end(&name, free_columns);
    let origin_text = truncate_end(&origin_text(model), free_columns.saturating_sub(name.width()));
    let space = " ".repeat(free_columns.saturating_sub(name.width() + origin_text.width()) + 1);
    let first = Line::from(vec![
        styled_span(palette, Some(TextStyle::Strong), name),
        styled_span(palette, None, origin_text),
        Span::raw(space),
        styled_span(palette, Some(style), right),
    ]);
    let second = match &model.outage {
        Some(silence) => styled_span(
            palette,
            Some(TextStyle::Error),
            truncate_end(&format!(" {}", clean_text(&silence.why)), columns),
        ),
        None => styled_span(
            palette,
            Some(TextStyle::Faint),
            truncate_end(&format!(" {}", summary(model)), columns),
        ),
    };
    [first, Line::from(second)].into_iter().take(rows).collect()
}

fn origin_text(model: &TopModel) -> String {
    match &model.origin {
        StatusOrigin::Daemon(path) => format!(": the daemon on {}, each second", clean_text(path)),
        StatusOrigin::Cluster(context) => format!(": the cluster of {} alone, each 5 s", clean_text(context)),
    }
}

/// Returns the status of all sources in one line.
fn summary(model: &TopModel) -> String {
    let view = &model.view;
    let ago = |since: Timestamp| age_text(view.at.duration_since(since).as_secs());
    let healthy = view.sources.iter().filter(|source| source.healthy).count();
    let objects: usize = view.sources.iter().flat_map(|source| source.objects.values()).sum();
    let newest = view.sources.iter().filter_map(|source| source.since).max();
    let objects = count_text(objects, "object");
    let left = match left_alone_count(&view.sources) {
        0 => String::new(),
        left => format!(", {left} left alone"),
    };
    let mut parts = vec![format!("{healthy} of {} sources healthy, {objects}{left}", view.sources.len())];
    let silence = view.process.as_ref().and_then(|process| process.server_silent_since);
    parts.extend(silence.map(silence_text));
    parts.extend(newest.map(|since| format!("newest revision {} ago", ago(since))));
    parts.extend(view.process.iter().map(|process| {
        let next = process.next_resync.strftime("%H:%M:%S");
        format!("next resync {next}, up {}", ago(process.since))
    }));
    parts.join("; ")
}

/// Returns the filter in force and the keys.
pub(super) fn footer_line(model: &TopModel, columns: usize) -> Line<'static> {
    let palette = model.palette;
    if model.mode == TopMode::Typing {
        let text = clean_text(&model.text);
        return Line::from(vec![
            styled_span(palette, Some(TextStyle::Strong), format!(" /{text}")),
            Span::styled(" ", Modifier::REVERSED),
        ]);
    }
    let mut left_out = Vec::new();
    left_out.extend(model.only.as_ref().map(|name| format!("source {} (s: all)", clean_text(name))));
    if !model.text.is_empty() {
        left_out.push(format!("with \"{}\" (Esc: all)", clean_text(&model.text)));
    }
    let left_out =
        if left_out.is_empty() { String::new() } else { format!(" only {} ", left_out.join(", ")) };
    let keys = match &model.mode {
        TopMode::Opened(_) => " Esc back  \u{2191}\u{2193} scroll  q quit",
        TopMode::Help => " Esc back  q quit",
        TopMode::Panes | TopMode::Typing => {
            " q quit  ? help  Tab pane  \u{2191}\u{2193} row  Enter open  / find  s its source"
        }
    };
    let left_out = truncate_end(&left_out, columns);
    let keys = truncate_end(keys, columns.saturating_sub(left_out.width()));
    Line::from(vec![
        styled_span(palette, Some(TextStyle::Waiting), left_out),
        styled_span(palette, Some(TextStyle::Faint), keys),
    ])
}

/// Returns how much of the budget is in use: with bars, where they fit.
pub(super) fn budget_line(rollout: &RolloutStatus, columns: usize, palette: Palette) -> Line<'static> {
    let BoundUsage { of, .. } = rollout.workloads;
    if !rollout.known || of == 0 {
        let words = overview::budget_text(rollout);
        return Line::from(styled_span(
            palette,
            Some(TextStyle::Faint),
            truncate_end(&format!("  {words}"), columns),
        ));
    }
    let window = rollout.window;
    let now = if (1..of).contains(&window) { format!(" (max {window} now)") } else { String::new() };
    let gauges = [
        ("workloads", rollout.workloads, now.as_str()),
        ("unavailable", rollout.unavailable, ""),
        ("starts a minute", rollout.starts, ""),
    ];
    let all = gauges.len();
    let attempts = BAR_WIDTHS.into_iter().flat_map(|bar| [all, all - 1].map(|count| (bar, count)));
    let lines = attempts.map(|(bar, count)| gauge_line(&gauges[..count], bar, palette));
    let mut last = Line::default();
    for line in lines {
        if line.width() <= columns {
            return line;
        }
        last = line;
    }
    last
}

fn gauge_line(gauges: &[(&str, BoundUsage, &str)], cells: u32, palette: Palette) -> Line<'static> {
    let mut spans = Vec::new();
    for (name, BoundUsage { used, of }, more) in gauges {
        let style = if used >= of { TextStyle::Changed } else { TextStyle::Added };
        spans.push(styled_span(palette, Some(TextStyle::Faint), format!("  {name} ")));
        if cells > 0 {
            let text = if *of == 0 { bar_text(0, 1, cells) } else { bar_text(*used, *of, cells) };
            spans.push(styled_span(palette, Some(style), format!("{text} ")));
        }
        let words = if used > of { format!("{used} (at most {of})") } else { format!("{used} of {of}") };
        spans.push(styled_span(palette, None, format!("{words}{more}")));
    }
    Line::from(spans)
}
