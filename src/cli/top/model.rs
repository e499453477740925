//! The state of the screen, before it is drawn.

use std::borrow::Cow;

use jiff::Timestamp;
use ratatui::text::Line;

use super::super::overview::Cell;
use super::super::status_view::StatusView;
use super::details::{DetailPane, DetailSubject, ObjectDetail};
use super::layout::{self, ScreenLayout};
use super::panes::{self, ALL_PANES, ItemSubject, Pane, PaneItem};
use super::status_poller::{Refresh, StatusOrigin};
use crate::render::Palette;
use crate::report::{EventRecord, ObjectRef};

/// The maximum number of events kept, the same as in the daemon.
const MAX_EVENTS: usize = 512;

/// A time without answers: since when, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outage {
    pub(super) since: Timestamp,
    pub(super) why: String,
}

/// All that is shown follows from this.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TopModel {
    pub(super) origin: StatusOrigin,
    pub(super) palette: Palette,
    pub(super) view: StatusView,
    pub(super) events: Vec<EventRecord>,
    pub(super) outage: Option<Outage>,
    /// The only source shown, where one was asked for.
    pub(super) only: Option<String>,
    /// Rows with this text alone are shown.
    pub(super) text: String,
    pub(super) mode: TopMode,
    pub(super) focus: Pane,
    pub(super) cursors: [PaneCursor; ALL_PANES.len()],
    /// Columns and rows of the terminal.
    pub(super) size: (u16, u16),
}

/// The meaning of the keys.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TopMode {
    /// The panes.
    Panes,
    /// The panes, while a text is typed that rows must have.
    Typing,
    /// The keys.
    Help,
    /// All that is known of one thing.
    Opened(DetailPane),
}

/// The chosen item of a pane: the one with this subject, or the one that has taken its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PaneCursor {
    pub(super) subject: Option<ItemSubject>,
    pub(super) index: usize,
}

impl PaneCursor {
    /// Returns its index among these.
    pub(super) fn position_among(&self, items: &[PaneItem]) -> usize {
        let same = |item: &PaneItem| self.subject.as_ref() == Some(&item.subject);
        items.iter().position(same).unwrap_or_else(|| self.index.min(items.len().saturating_sub(1)))
    }
}

impl TopModel {
    /// Returns the first screen.
    pub(super) fn new(
        status_origin: StatusOrigin,
        palette: Palette,
        only: Option<String>,
        refresh: Refresh,
    ) -> Self {
        let mut model = Self {
            origin: status_origin,
            palette,
            view: refresh.view,
            events: Vec::new(),
            outage: None,
            only,
            text: String::new(),
            mode: TopMode::Panes,
            focus: Pane::Sources,
            cursors: Default::default(),
            size: (80, 24),
        };
        model.note(refresh.events);
        model
    }

    /// Takes a poll's answers over.
    pub(super) fn refresh(&mut self, refresh: Refresh) {
        self.view = refresh.view;
        self.outage = None;
        self.note(refresh.events);
        if let TopMode::Opened(DetailPane { subject: DetailSubject::Object { named, status }, .. }) =
            &mut self.mode
            && let Some((requested, status_now)) = refresh.object
            && requested == *named
        {
            *status =
                status_now.map_or(ObjectDetail::Gone, |status_now| ObjectDetail::Found(Box::new(status_now)));
        }
        let view = self.shown_status();
        let indices = ALL_PANES
            .map(|pane| self.cursors[pane as usize].position_among(&self.pane_items_of(pane, &view)));
        for (cursor, index) in self.cursors.iter_mut().zip(indices) {
            cursor.index = index;
        }
        self.scroll_back();
    }

    /// Records that the status cannot be read; the last answer stays.
    pub(super) fn note_failure(&mut self, now: Timestamp, why: String) {
        let since = self.outage.as_ref().map_or(now, |silence| silence.since);
        self.outage = Some(Outage { since, why });
    }

    /// Takes a new size of the terminal.
    pub(super) fn resize(&mut self, columns: u16, rows: u16) {
        self.size = (columns, rows);
        self.scroll_back();
    }

    fn note(&mut self, events: Vec<EventRecord>) {
        self.events.extend(events);
        self.events.drain(..self.events.len().saturating_sub(MAX_EVENTS));
    }

    /// Returns the object whose status is asked for.
    pub(super) fn requested_object(&self) -> Option<&ObjectRef> {
        match &self.mode {
            TopMode::Opened(DetailPane { subject: DetailSubject::Object { named, .. }, .. }) => Some(named),
            _ => None,
        }
    }

    /// Returns the status to show: all of it, or one source.
    pub(super) fn shown_status(&self) -> Cow<'_, StatusView> {
        let Some(name) = &self.only else { return Cow::Borrowed(&self.view) };
        let nothing = || {
            let mut view = self.view.clone();
            view.sources.clear();
            view.objects.clear();
            view.rollout.rolling.clear();
            view.rollout.queue.clear();
            view
        };
        Cow::Owned(self.view.clone().of_source(name).unwrap_or_else(nothing))
    }

    /// Returns the items of a pane, those alone that are asked for.
    pub(super) fn pane_items(&self, pane: Pane) -> Vec<PaneItem> {
        self.pane_items_of(pane, &self.shown_status())
    }

    /// Does the same as [`Self::pane_items`], of a view that is at hand.
    pub(super) fn pane_items_of(&self, pane: Pane, view: &StatusView) -> Vec<PaneItem> {
        let text = self.text.to_lowercase();
        let mut items = panes::pane_items(pane, view, &self.events);
        items.retain(|item| {
            let of_it = self.only.is_none() || pane != Pane::Events || item.source == self.only;
            let has = |cell: &Cell| cell.text.to_lowercase().contains(&text);
            of_it && (text.is_empty() || item.cells.iter().chain(&item.notes).any(has))
        });
        items
    }

    /// Returns where everything is on the screen.
    pub(super) fn layout(&self, items: &[Vec<PaneItem>; ALL_PANES.len()]) -> ScreenLayout {
        let wants = ALL_PANES.map(|pane| layout::wanted_lines(pane, &items[pane as usize]));
        ScreenLayout::of(self.size.1, wants, self.focus)
    }

    /// Returns the item that is chosen in the pane that the keys move in.
    pub(super) fn chosen_item(&self) -> Option<PaneItem> {
        let mut items = self.pane_items(self.focus);
        let index = self.cursors[self.focus as usize].position_among(&items);
        (index < items.len()).then(|| items.swap_remove(index))
    }

    /// Returns the detail view, in lines of a width.
    pub(super) fn detail_lines(&self, columns: usize) -> Vec<Line<'static>> {
        match &self.mode {
            TopMode::Opened(opened) => opened.lines(&self.view, &self.events, self.palette, columns),
            _ => Vec::new(),
        }
    }

    /// Returns the greatest scroll position of the detail view.
    pub(super) fn max_scroll(&self) -> usize {
        let (columns, rows) = self.size;
        let body = usize::from(layout::body(rows).1).saturating_sub(1);
        self.detail_lines(columns.into()).len().saturating_sub(body)
    }

    /// Scrolls back where the detail view has become shorter or the terminal taller.
    fn scroll_back(&mut self) {
        let deepest = self.max_scroll();
        if let TopMode::Opened(opened) = &mut self.mode {
            opened.scroll = opened.scroll.min(deepest);
        }
    }
}
