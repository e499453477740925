//! All that is known of one source or object, in lines.

use jiff::Timestamp;
use ratatui::text::Line;

use super::super::events;
use super::super::overview::{self, Cell};
use super::super::status_view::StatusView;
use super::panes::clock;
use super::styled_text::{span, wrapped};
use crate::object::Revision;
use crate::render::{Palette, TextStyle};
use crate::report::{EventRecord, ObjectRef, ObjectStatus, SourceStatus};

/// The maximum number of events shown.
const EVENTS: usize = 20;

/// The column in which values begin.
const VALUES: usize = 11;

/// The source or object in the detail view.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DetailPane {
    pub(super) subject: DetailSubject,
    /// The number of lines above the screen.
    pub(super) scroll: usize,
}

/// A source or an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum DetailSubject {
    Source(String),
    Object { named: ObjectRef, status: ObjectDetail },
}

/// The status of the object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ObjectDetail {
    /// It was not told yet.
    Pending,
    /// No source has it.
    Gone,
    Found(Box<ObjectStatus>),
}

impl DetailSubject {
    /// Returns the title.
    pub(super) fn title(&self) -> String {
        match self {
            Self::Source(name) => format!("source {}", overview::clean(name)),
            Self::Object { named, .. } => overview::name(named),
        }
    }

    /// Returns whether this happened to it.
    fn is_meant(&self, notice: &EventRecord) -> bool {
        match self {
            Self::Source(name) => notice.source == *name,
            Self::Object { named, .. } => notice.object.as_ref() == Some(named),
        }
    }
}

impl DetailPane {
    /// Returns the lines, of a width.
    pub(super) fn lines(
        &self,
        view: &StatusView,
        notices: &[EventRecord],
        palette: Palette,
        columns: usize,
    ) -> Vec<Line<'static>> {
        let mut page = DetailPage { palette, columns, lines: Vec::new() };
        match &self.subject {
            DetailSubject::Source(name) => match view.sources.iter().find(|source| source.name == *name) {
                Some(source) => of_source(&mut page, view, source),
                None => page.add_value("state", &Cell::plain("there is no such source any more")),
            },
            DetailSubject::Object { status, .. } => match status {
                ObjectDetail::Pending => page.add_value("phase", &Cell::plain("is asked for")),
                ObjectDetail::Gone => page.add_value("phase", &Cell::plain("no source has it")),
                ObjectDetail::Found(status) => {
                    for (key, cell) in overview::facts(status, &view.rollout) {
                        page.add_value(key, &cell);
                    }
                }
            },
        }
        page.events(view.at, notices.iter().filter(|notice| self.subject.is_meant(notice)));
        page.lines
    }
}

fn of_source(page: &mut DetailPage, view: &StatusView, source: &SourceStatus) {
    let (style, state) = overview::state(view, source);
    page.add_value("state", &Cell::styled(style, state));
    for (style, note) in overview::notes(source) {
        page.add_value("", &Cell::styled(style, note));
    }
    let when = |at: Option<Timestamp>| at.map(|at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
    let repaired = source.drift_repaired;
    let facts = [
        ("place", Some(source.place.clone())),
        ("revision", source.revision.clone()),
        ("author", source.author.clone()),
        ("subject", source.subject.clone()),
        ("since", when(source.since)),
        ("looked at", when(source.looked)),
        ("repaired", (repaired > 0).then(|| format!("{repaired} changes of others"))),
    ];
    for (key, value) in facts {
        page.add_value(key, &Cell::plain(value.unwrap_or_default()));
    }
    let phases: Vec<String> =
        source.objects.iter().map(|(phase, count)| format!("{count} {phase}")).collect();
    page.add_value("objects", &Cell::plain(phases.join(", ")));
    if !source.changes.is_empty() {
        page.head("the newest commits that changed its manifests");
        for commit in &source.changes {
            let revision = Revision::new(&commit.revision).short().to_owned();
            page.row(
                &Cell::styled(TextStyle::Faint, revision),
                &format!("{}: {}", commit.author, commit.subject),
            );
        }
    }
}

/// Lines of a width.
struct DetailPage {
    palette: Palette,
    columns: usize,
    lines: Vec<Line<'static>>,
}

impl DetailPage {
    /// A value behind its key, over as many lines as it takes. Nothing is told of what is empty.
    fn add_value(&mut self, key: &str, cell: &Cell) {
        if cell.text.is_empty() {
            return;
        }
        let width = self.columns.saturating_sub(VALUES);
        for (number, text) in wrapped(&cell.text, width).into_iter().enumerate() {
            let key = if number == 0 { key } else { "" };
            let key = span(self.palette, Some(TextStyle::Faint), format!(" {key:<9} "));
            self.lines.push(Line::from(vec![key, span(self.palette, cell.style, text)]));
        }
    }

    fn head(&mut self, text: &str) {
        self.lines.push(Line::default());
        self.lines.push(Line::from(span(self.palette, Some(TextStyle::Strong), format!(" {text}"))));
    }

    /// A text behind what it is told under.
    fn row(&mut self, first: &Cell, text: &str) {
        let text = overview::clean(text);
        for (number, line) in wrapped(&text, self.columns.saturating_sub(3)).into_iter().enumerate() {
            if number == 0 {
                self.lines.push(Line::from(vec![
                    span(self.palette, None, " "),
                    span(self.palette, first.style, first.text.clone()),
                ]));
            }
            self.lines.push(Line::from(span(self.palette, None, format!("   {line}"))));
        }
    }

    fn events<'a>(&mut self, now: Timestamp, notices: impl DoubleEndedIterator<Item = &'a EventRecord>) {
        let meant: Vec<&EventRecord> = notices.rev().take(EVENTS).collect();
        if meant.is_empty() {
            return;
        }
        self.head("what happened last");
        for notice in meant {
            let style = if notice.reason.is_warning() { TextStyle::Error } else { TextStyle::Strong };
            let first = format!("{} {}", clock(now, notice.at), notice.reason);
            let by = events::by(notice).unwrap_or_default();
            self.row(&Cell::styled(style, first), &format!("{} {by}", notice.message));
        }
    }
}
