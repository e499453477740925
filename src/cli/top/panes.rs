//! The contents of each pane.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::super::events;
use super::super::overview::{self, Cell, age_text};
use super::super::status_view::StatusView;
use crate::object::Revision;
use crate::render::TextStyle;
use crate::report::{
    EventRecord, ObjectRef, ObjectStatus, QueuedWorkloadStatus, SourceStatus, WorkloadRolloutStatus,
};

/// Cells of a bar in a table.
const TABLE_BAR_WIDTH: u32 = 8;

/// One part of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pane {
    Sources,
    Rollouts,
    Queue,
    NeedsAttention,
    Events,
}

/// All of them, from the top down.
pub(super) const ALL_PANES: [Pane; 5] =
    [Pane::Sources, Pane::Rollouts, Pane::Queue, Pane::NeedsAttention, Pane::Events];

/// The subject of an item, by which it is found again after a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ItemSubject {
    Source(String),
    Object(ObjectRef),
    Event(u64),
    /// A note about the whole status, as one of a record that cannot be read.
    Note(String),
}

/// One item of a pane: a row, and notes below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PaneItem {
    pub(super) subject: ItemSubject,
    /// Its source, where that is known.
    pub(super) source: Option<String>,
    pub(super) cells: Vec<Cell>,
    pub(super) notes: Vec<Cell>,
}

/// The layout of a pane's cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnSet {
    /// The headings, in a pane that is a table.
    pub(super) heads: &'static [&'static str],
    /// Columns that are left out in little room, the first ones first.
    pub(super) needless: &'static [usize],
    /// The one with the name, which is cut before others are.
    pub(super) name: usize,
    /// Columns with numbers.
    pub(super) numbers: &'static [usize],
}

impl Pane {
    /// Returns the title.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Sources => "Sources",
            Self::Rollouts => "Rollouts",
            Self::Queue => "Queue",
            Self::NeedsAttention => "Needs attention",
            Self::Events => "Events",
        }
    }

    /// Returns the one after this, round and round.
    pub(super) fn next(self) -> Self {
        ALL_PANES[(self as usize + 1) % ALL_PANES.len()]
    }

    /// Returns the one before this.
    pub(super) fn previous_pane(self) -> Self {
        ALL_PANES[(self as usize + ALL_PANES.len() - 1) % ALL_PANES.len()]
    }

    pub(super) fn column_set(self) -> ColumnSet {
        let plain = ColumnSet { heads: &[], needless: &[], name: 0, numbers: &[] };
        match self {
            Self::Sources => ColumnSet {
                heads: &["SOURCE", "REVISION", "AGE", "OBJECTS", "STATE"],
                needless: &[3, 1],
                numbers: &[3],
                ..plain
            },
            Self::Rollouts => ColumnSet { needless: &[3, 1], ..plain },
            Self::Queue => ColumnSet { name: 1, numbers: &[0], ..plain },
            Self::NeedsAttention => plain,
            Self::Events => ColumnSet { name: 1, ..plain },
        }
    }
}

/// Returns the items of a pane.
pub(super) fn pane_items(pane: Pane, view: &StatusView, events: &[EventRecord]) -> Vec<PaneItem> {
    match pane {
        Pane::Sources => view.sources.iter().map(|status| source(view, status)).collect(),
        Pane::Rollouts => view.rollout.rolling.iter().map(rollout_item).collect(),
        Pane::Queue => {
            let known = view.objects_by_name();
            queued_workloads(view).map(|queued| waiting_item(&known, queued)).collect()
        }
        Pane::NeedsAttention => {
            let notes = view.notes.iter().map(|note| note_item(note));
            notes.chain(overview::objects_needing_attention(view).into_iter().map(attention_item)).collect()
        }
        // The last first.
        Pane::Events => events.iter().rev().map(|event| event_item(view.at, event)).collect(),
    }
}

/// Returns the waiting workloads; those that roll out are elsewhere.
fn queued_workloads(view: &StatusView) -> impl Iterator<Item = &QueuedWorkloadStatus> {
    let rolling = &view.rollout.rolling;
    let rolls = |named: &ObjectRef| rolling.iter().any(|roll| roll.object == *named);
    view.rollout.queue.iter().filter(move |queued| !rolls(&queued.object))
}

fn source(view: &StatusView, source: &SourceStatus) -> PaneItem {
    let revision = source.revision.as_deref();
    let revision =
        revision.map_or_else(|| "-".to_owned(), |text| Revision::new(text).short_name().to_owned());
    let since = source.since.map(|since| age_text(view.at.duration_since(since).as_secs()));
    let (style, state) = overview::state(view, source);
    let count: usize = source.objects.values().sum();
    PaneItem {
        subject: ItemSubject::Source(source.name.clone()),
        source: Some(source.name.clone()),
        cells: vec![
            Cell::styled_cell(TextStyle::Strong, &*source.name),
            Cell::plain_cell(revision),
            Cell::styled_cell(TextStyle::Faint, since.unwrap_or_else(|| "-".to_owned())),
            Cell::plain_cell(count.to_string()),
            Cell::styled_cell(style, state),
        ],
        notes: overview::source_notes(source)
            .into_iter()
            .map(|(style, note)| Cell::styled_cell(style, note))
            .collect(),
    }
}

fn rollout_item(roll: &WorkloadRolloutStatus) -> PaneItem {
    let WorkloadRolloutStatus { replicas, updated, available, .. } = *roll;
    let style = if available < replicas { TextStyle::Warning } else { TextStyle::Added };
    let counted = |text: String| if roll.has_numbers() { text } else { "-".to_owned() };
    let mut more = vec![roll.step.clone().unwrap_or_default()];
    let other = || roll.source.is_none().then(|| "another daemon's".to_owned());
    more.extend(roll.holder.as_ref().map(|holder| format!("claimed by {holder}")).or_else(other));
    more.retain(|text| !text.is_empty());
    PaneItem {
        subject: ItemSubject::Object(roll.object.clone()),
        source: roll.source.clone(),
        cells: vec![
            Cell::plain_cell(overview::name(&roll.object)),
            Cell::styled_cell(TextStyle::Changed, bar_text(updated, replicas, TABLE_BAR_WIDTH)),
            Cell::plain_cell(counted(format!("{updated}/{replicas} new"))),
            Cell::styled_cell(style, bar_text(available, replicas, TABLE_BAR_WIDTH)),
            Cell::plain_cell(counted(format!("{available} up"))),
            Cell::styled_cell(TextStyle::Waiting, more.join("; ")),
        ],
        notes: Vec::new(),
    }
}

fn waiting_item(known: &BTreeMap<&ObjectRef, &ObjectStatus>, queued: &QueuedWorkloadStatus) -> PaneItem {
    let known = known.get(&queued.object);
    let position = queued.position.map_or_else(|| "-".to_owned(), |position| position.to_string());
    PaneItem {
        subject: ItemSubject::Object(queued.object.clone()),
        source: known.map(|object| object.source.clone()),
        cells: vec![
            Cell::styled_cell(TextStyle::Waiting, position),
            Cell::plain_cell(overview::name(&queued.object)),
            Cell::plain_cell(&*queued.reason),
        ],
        notes: Vec::new(),
    }
}

fn attention_item(object: &ObjectStatus) -> PaneItem {
    PaneItem {
        subject: ItemSubject::Object(object.object.clone()),
        source: Some(object.source.clone()),
        cells: vec![
            Cell::plain_cell(overview::name(&object.object)),
            Cell::styled_cell(overview::phase_style(object.phase), object.phase.to_string()),
            Cell::plain_cell(object.reason.as_deref().unwrap_or_default()),
        ],
        notes: Vec::new(),
    }
}

/// Returns the row of a note. Its object comes first, where it is about one.
fn note_item(note: &str) -> PaneItem {
    let text = overview::clean_text(note);
    let (name, reason) = text.split_once(": ").unwrap_or(("status", &text));
    PaneItem {
        subject: ItemSubject::Note(note.to_owned()),
        source: None,
        cells: vec![
            Cell::plain_cell(name),
            Cell::styled_cell(TextStyle::Error, "Note"),
            Cell::plain_cell(reason),
        ],
        notes: Vec::new(),
    }
}

fn event_item(now: Timestamp, event: &EventRecord) -> PaneItem {
    let style = if event.reason.is_warning() { TextStyle::Error } else { TextStyle::Strong };
    let by = events::author_text(event).map(|by| format!(" {by}")).unwrap_or_default();
    PaneItem {
        subject: ItemSubject::Event(event.number),
        source: Some(event.source.clone()),
        cells: vec![
            Cell::styled_cell(TextStyle::Faint, clock_text(now, event.at)),
            Cell::styled_cell(style, event.reason.to_string()),
            Cell::plain_cell(format!("{}{by}", events::describe(event))),
        ],
        notes: Vec::new(),
    }
}

/// Returns the time of day, behind the day where that is another one.
pub(super) fn clock_text(now: Timestamp, at: Timestamp) -> String {
    let day = |time: Timestamp| time.strftime("%Y-%m-%d").to_string();
    at.strftime(if day(at) == day(now) { "%H:%M:%S" } else { "%m-%d %H:%M" }).to_string()
}

/// Returns a bar, for example `███░░░░░`. A part above nothing shows, and so does a part below the
/// completely.
pub(super) fn bar_text(part: u32, total: u32, cells: u32) -> String {
    let share = u64::from(part) * u64::from(cells) / u64::from(total.max(1));
    let filled = match share as u32 {
        _ if part >= total => cells,
        0 if part > 0 => 1,
        filled => filled,
    };
    "\u{2588}".repeat(filled as usize) + &"\u{2591}".repeat((cells - filled) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_what_is_begun_and_what_is_not_complete() {
        fn check(part: u32, total: u32, expected: &str) {
            assert_eq!(bar_text(part, total, 4), expected, "{part} of {total}");
        }
        check(0, 5, "\u{2591}\u{2591}\u{2591}\u{2591}");
        check(1, 500, "\u{2588}\u{2591}\u{2591}\u{2591}");
        check(499, 500, "\u{2588}\u{2588}\u{2588}\u{2591}");
        check(500, 500, "\u{2588}\u{2588}\u{2588}\u{2588}");
        check(7, 5, "\u{2588}\u{2588}\u{2588}\u{2588}");
        check(0, 0, "\u{2588}\u{2588}\u{2588}\u{2588}");
        check(u32::MAX, u32::MAX, "\u{2588}\u{2588}\u{2588}\u{2588}");
    }

    #[test]
    fn a_time_has_its_day_where_that_is_another() {
        fn check(at: &str, expected: &str) {
            let now = "2030-01-02T03:04:05Z".parse().unwrap();
            assert_eq!(clock_text(now, at.parse().unwrap()), expected);
        }
        check("2030-01-02T00:00:00Z", "00:00:00");
        check("2030-01-01T23:59:59Z", "01-01 23:59");
    }
}
