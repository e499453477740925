//! All that is known of one source, object or note, in lines.

use jiff::Timestamp;
use ratatui::text::Line;

use super::super::events;
use super::super::overview::{self, Cell};
use super::super::status_view::StatusView;
use super::panes::clock_text;
use super::styled_text::{styled_span, wrap_text};
use crate::object::{Revision, count_text};
use crate::render::{Palette, TextStyle};
use crate::report::{EventRecord, ObjectRef, ObjectStatus, SourceStatus};

/// The maximum number of events shown.
const MAX_SHOWN_EVENTS: usize = 20;

/// The column in which values begin.
const VALUE_COLUMN: usize = 11;

/// The source, object or note in the detail view.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DetailPane {
    pub(super) subject: DetailSubject,
    /// The number of lines above the screen.
    pub(super) scroll: usize,
}

/// A source, an object, or the text of a note.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum DetailSubject {
    Source(String),
    Object { named: ObjectRef, status: ObjectDetail },
    Note(String),
}

/// The status of the object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ObjectDetail {
    /// It was not reported yet.
    Pending,
    /// No source has it.
    Gone,
    Found(Box<ObjectStatus>),
}

impl DetailSubject {
    /// Returns the title.
    pub(super) fn title(&self) -> String {
        match self {
            Self::Source(name) => format!("source {}", overview::clean_text(name)),
            Self::Object { named, .. } => overview::name(named),
            Self::Note(_) => "note".to_owned(),
        }
    }

    /// Returns whether this happened to it.
    fn is_meant(&self, event: &EventRecord) -> bool {
        match self {
            Self::Source(name) => event.source == *name,
            Self::Object { named, .. } => event.object.as_ref() == Some(named),
            Self::Note(_) => false,
        }
    }
}

impl DetailPane {
    /// Returns the lines, of a width.
    pub(super) fn lines(
        &self,
        view: &StatusView,
        events: &[EventRecord],
        palette: Palette,
        columns: usize,
    ) -> Vec<Line<'static>> {
        let mut page = DetailPage { palette, columns, lines: Vec::new() };
        match &self.subject {
            DetailSubject::Source(name) => match view.sources.iter().find(|source| source.name == *name) {
                Some(source) => add_source(&mut page, view, source),
                None => page.add_value("state", &Cell::plain_cell("the source is gone")),
            },
            DetailSubject::Note(text) => {
                page.add_value("note", &Cell::plain_cell(overview::clean_text(text)));
            }
            DetailSubject::Object { status, .. } => match status {
                ObjectDetail::Pending => page.add_value("phase", &Cell::plain_cell("loading")),
                ObjectDetail::Gone => page.add_value("phase", &Cell::plain_cell("no source has it")),
                ObjectDetail::Found(status) => {
                    for (key, cell) in overview::object_facts(status, &view.rollout) {
                        page.add_value(key, &cell);
                    }
                }
            },
        }
        page.add_events(view.at, events.iter().filter(|event| self.subject.is_meant(event)));
        page.lines
    }
}

fn add_source(page: &mut DetailPage, view: &StatusView, source: &SourceStatus) {
    let (style, state) = overview::state(view, source);
    page.add_value("state", &Cell::styled_cell(style, state));
    for (style, note) in overview::source_notes(source) {
        page.add_value("", &Cell::styled_cell(style, note));
    }
    let when = |at: Option<Timestamp>| at.map(|at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
    let repaired = source.drift_repaired;
    let facts = [
        ("location", Some(source.location.clone())),
        ("revision", source.revision.clone()),
        ("author", source.author.clone()),
        ("subject", source.subject.clone()),
        ("since", when(source.since)),
        ("checked", when(source.looked)),
        ("repaired", (repaired > 0).then(|| count_text(repaired, "drifted object"))),
    ];
    for (key, value) in facts {
        page.add_value(key, &Cell::plain_cell(value.unwrap_or_default()));
    }
    let phases: Vec<String> =
        source.objects.iter().map(|(phase, count)| format!("{count} {phase}")).collect();
    page.add_value("objects", &Cell::plain_cell(phases.join(", ")));
    if !source.changes.is_empty() {
        page.add_heading("recent commits");
        for commit in &source.changes {
            let revision = Revision::new(&commit.revision).short_name().to_owned();
            page.add_row(
                &Cell::styled_cell(TextStyle::Faint, revision),
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
    /// Adds a value behind its key, over as many lines as it takes. Adds nothing where the value is
    /// empty.
    fn add_value(&mut self, key: &str, cell: &Cell) {
        if cell.text.is_empty() {
            return;
        }
        let width = self.columns.saturating_sub(VALUE_COLUMN);
        for (number, text) in wrap_text(&cell.text, width).into_iter().enumerate() {
            let key = if number == 0 { key } else { "" };
            let key = styled_span(self.palette, Some(TextStyle::Faint), format!(" {key:<9} "));
            self.lines.push(Line::from(vec![key, styled_span(self.palette, cell.style, text)]));
        }
    }

    fn add_heading(&mut self, text: &str) {
        self.lines.push(Line::default());
        self.lines.push(Line::from(styled_span(self.palette, Some(TextStyle::Strong), format!(" {text}"))));
    }

    /// Adds a text behind its label.
    fn add_row(&mut self, first: &Cell, text: &str) {
        let text = overview::clean_text(text);
        for (number, line) in wrap_text(&text, self.columns.saturating_sub(3)).into_iter().enumerate() {
            if number == 0 {
                self.lines.push(Line::from(vec![
                    styled_span(self.palette, None, " "),
                    styled_span(self.palette, first.style, first.text.clone()),
                ]));
            }
            self.lines.push(Line::from(styled_span(self.palette, None, format!("   {line}"))));
        }
    }

    fn add_events<'a>(&mut self, now: Timestamp, events: impl DoubleEndedIterator<Item = &'a EventRecord>) {
        let selected: Vec<&EventRecord> = events.rev().take(MAX_SHOWN_EVENTS).collect();
        if selected.is_empty() {
            return;
        }
        self.add_heading("events");
        for event in selected {
            let style = if event.reason.is_warning() { TextStyle::Error } else { TextStyle::Strong };
            let first = format!("{} {}", clock_text(now, event.at), event.reason);
            let by = events::author_text(event).unwrap_or_default();
            self.add_row(&Cell::styled_cell(style, first), &format!("{} {by}", event.message));
        }
    }
}
