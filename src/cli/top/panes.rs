//! What stands in each pane.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::super::events;
use super::super::overview::{self, Cell, age};
use super::super::view::View;
use crate::object::Revision;
use crate::render::Style;
use crate::report::{Named, Notice, ObjectStatus, QueueStatus, RollStatus, SourceStatus};

/// Cells of a bar in a table.
const BAR: u32 = 8;

/// One part of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pane {
    Sources,
    Rollouts,
    Queue,
    Troubled,
    Events,
}

/// All of them, from the top down.
pub(super) const PANES: [Pane; 5] =
    [Pane::Sources, Pane::Rollouts, Pane::Queue, Pane::Troubled, Pane::Events];

/// What an item is about; by this it is found again when all is told anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Source(String),
    Object(Named),
    Notice(u64),
}

/// One item of a pane: a row, and notes below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) subject: Subject,
    /// Its source, where that is known.
    pub(super) source: Option<String>,
    pub(super) cells: Vec<Cell>,
    pub(super) notes: Vec<Cell>,
}

/// How the cells of a pane stand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    /// What stands above them, in a pane that is a table.
    pub(super) heads: &'static [&'static str],
    /// Those that are left out where there is no room, the first ones first.
    pub(super) needless: &'static [usize],
    /// The one with the name, which is cut before others are.
    pub(super) name: usize,
    /// Those with numbers.
    pub(super) numbers: &'static [usize],
}

impl Pane {
    /// What stands above it.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Sources => "Sources",
            Self::Rollouts => "Rollouts",
            Self::Queue => "Queue",
            Self::Troubled => "Not as it should be",
            Self::Events => "Events",
        }
    }

    /// The one after this, round and round.
    pub(super) fn next(self) -> Self {
        PANES[(self as usize + 1) % PANES.len()]
    }

    /// The one before this.
    pub(super) fn previous(self) -> Self {
        PANES[(self as usize + PANES.len() - 1) % PANES.len()]
    }

    pub(super) fn columns(self) -> Columns {
        let plain = Columns { heads: &[], needless: &[], name: 0, numbers: &[] };
        match self {
            Self::Sources => Columns {
                heads: &["SOURCE", "REVISION", "AGE", "OBJECTS", "STATE"],
                needless: &[3, 1],
                numbers: &[3],
                ..plain
            },
            Self::Rollouts => Columns { needless: &[3, 1], ..plain },
            Self::Queue => Columns { name: 1, numbers: &[0], ..plain },
            Self::Troubled => plain,
            Self::Events => Columns { name: 1, ..plain },
        }
    }
}

/// The items of a pane.
pub(super) fn items(pane: Pane, view: &View, notices: &[Notice]) -> Vec<Item> {
    match pane {
        Pane::Sources => view.sources.iter().map(|told| source(view, told)).collect(),
        Pane::Rollouts => view.rollout.rolling.iter().map(roll).collect(),
        Pane::Queue => {
            let known = view.known();
            queue(view).map(|queued| waiting(&known, queued)).collect()
        }
        Pane::Troubled => overview::troubled(view).into_iter().map(troubled).collect(),
        // The last first.
        Pane::Events => notices.iter().rev().map(|notice| event(view.at, notice)).collect(),
    }
}

/// What waits; what rolls already stands there.
fn queue(view: &View) -> impl Iterator<Item = &QueueStatus> {
    let rolling = &view.rollout.rolling;
    let rolls = |named: &Named| rolling.iter().any(|roll| roll.object == *named);
    view.rollout.queue.iter().filter(move |queued| !rolls(&queued.object))
}

fn source(view: &View, source: &SourceStatus) -> Item {
    let revision = source.revision.as_deref();
    let revision = revision.map_or_else(|| "-".to_owned(), |text| Revision::new(text).short().to_owned());
    let since = source.since.map(|since| age(view.at.duration_since(since).as_secs()));
    let (style, state) = overview::state(view, source);
    let count: usize = source.objects.values().sum();
    Item {
        subject: Subject::Source(source.name.clone()),
        source: Some(source.name.clone()),
        cells: vec![
            Cell::styled(Style::Strong, &*source.name),
            Cell::plain(revision),
            Cell::styled(Style::Faint, since.unwrap_or_else(|| "-".to_owned())),
            Cell::plain(count.to_string()),
            Cell::styled(style, state),
        ],
        notes: overview::notes(source).into_iter().map(|(style, note)| Cell::styled(style, note)).collect(),
    }
}

fn roll(roll: &RollStatus) -> Item {
    let RollStatus { replicas, updated, available, .. } = *roll;
    let whole = if available < replicas { Style::Warning } else { Style::Added };
    let mut more = vec![roll.step.clone().unwrap_or_default()];
    let other = || roll.source.is_none().then(|| "another daemon's".to_owned());
    more.extend(roll.holder.as_ref().map(|holder| format!("claimed by {holder}")).or_else(other));
    more.retain(|text| !text.is_empty());
    Item {
        subject: Subject::Object(roll.object.clone()),
        source: roll.source.clone(),
        cells: vec![
            Cell::plain(overview::name(&roll.object)),
            Cell::styled(Style::Changed, bar(updated, replicas, BAR)),
            Cell::plain(format!("{updated}/{replicas} new")),
            Cell::styled(whole, bar(available, replicas, BAR)),
            Cell::plain(format!("{available} up")),
            Cell::styled(Style::Waiting, more.join("; ")),
        ],
        notes: Vec::new(),
    }
}

fn waiting(known: &BTreeMap<&Named, &ObjectStatus>, queued: &QueueStatus) -> Item {
    let known = known.get(&queued.object);
    let place = queued.place.map_or_else(|| "-".to_owned(), |place| place.to_string());
    Item {
        subject: Subject::Object(queued.object.clone()),
        source: known.map(|object| object.source.clone()),
        cells: vec![
            Cell::styled(Style::Waiting, place),
            Cell::plain(overview::name(&queued.object)),
            Cell::plain(&*queued.reason),
        ],
        notes: Vec::new(),
    }
}

fn troubled(object: &ObjectStatus) -> Item {
    Item {
        subject: Subject::Object(object.object.clone()),
        source: Some(object.source.clone()),
        cells: vec![
            Cell::plain(overview::name(&object.object)),
            Cell::styled(overview::style(object.phase), object.phase.to_string()),
            Cell::plain(object.reason.as_deref().unwrap_or_default()),
        ],
        notes: Vec::new(),
    }
}

fn event(now: Timestamp, notice: &Notice) -> Item {
    let style = if notice.reason.is_warning() { Style::Error } else { Style::Strong };
    let by = events::by(notice).map(|by| format!(" {by}")).unwrap_or_default();
    Item {
        subject: Subject::Notice(notice.number),
        source: Some(notice.source.clone()),
        cells: vec![
            Cell::styled(Style::Faint, clock(now, notice.at)),
            Cell::styled(style, notice.reason.to_string()),
            Cell::plain(format!("{}{by}", events::what(notice))),
        ],
        notes: Vec::new(),
    }
}

/// The time of day, behind the day where that is another one.
pub(super) fn clock(now: Timestamp, at: Timestamp) -> String {
    let day = |time: Timestamp| time.strftime("%Y-%m-%d").to_string();
    at.strftime(if day(at) == day(now) { "%H:%M:%S" } else { "%m-%d %H:%M" }).to_string()
}

/// As `███░░░░░`. What is begun shows, and what is not whole shows too.
pub(super) fn bar(part: u32, whole: u32, cells: u32) -> String {
    let share = u64::from(part) * u64::from(cells) / u64::from(whole.max(1));
    let filled = match share as u32 {
        _ if part >= whole => cells,
        0 if part > 0 => 1,
        filled => filled,
    };
    "\u{2588}".repeat(filled as usize) + &"\u{2591}".repeat((cells - filled) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_what_is_begun_and_what_is_not_whole() {
        fn check(part: u32, whole: u32, expected: &str) {
            assert_eq!(bar(part, whole, 4), expected, "{part} of {whole}");
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
            assert_eq!(clock(now, at.parse().unwrap()), expected);
        }
        check("2030-01-02T00:00:00Z", "00:00:00");
        check("2030-01-01T23:59:59Z", "01-01 23:59");
    }
}
