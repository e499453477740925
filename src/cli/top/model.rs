//! What is on the screen, before it is drawn.

use std::borrow::Cow;

use jiff::Timestamp;
use ratatui::text::Line;

use super::super::overview::Cell;
use super::super::view::View;
use super::details::{Known, Opened, OpenedSubject};
use super::feed::{Look, Place};
use super::layout::{self, Layout};
use super::panes::{self, Item, PANES, Pane, Subject};
use crate::render::Palette;
use crate::report::{Named, Notice};

/// So many notices are kept, as many as the daemon does.
const KEPT: usize = 512;

/// Since when nobody answers, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Silence {
    pub(super) since: Timestamp,
    pub(super) why: String,
}

/// All that is shown follows from this.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Model {
    pub(super) place: Place,
    pub(super) palette: Palette,
    pub(super) view: View,
    pub(super) notices: Vec<Notice>,
    pub(super) silence: Option<Silence>,
    /// What is of this source alone is shown.
    pub(super) only: Option<String>,
    /// Rows with this text alone are shown.
    pub(super) text: String,
    pub(super) mode: Mode,
    pub(super) focus: Pane,
    pub(super) cursors: [Cursor; PANES.len()],
    /// Columns and rows of the terminal.
    pub(super) size: (u16, u16),
}

/// What the keys mean.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Mode {
    /// The panes.
    Panes,
    /// The panes, while a text is typed that rows must have.
    Typing,
    /// The keys.
    Help,
    /// All that is known of one thing.
    Opened(Opened),
}

/// Which item of a pane is chosen: the one with this subject, or what has come to its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) subject: Option<Subject>,
    pub(super) index: usize,
}

impl Cursor {
    /// Where it stands among these.
    pub(super) fn among(&self, items: &[Item]) -> usize {
        let same = |item: &Item| self.subject.as_ref() == Some(&item.subject);
        items.iter().position(same).unwrap_or_else(|| self.index.min(items.len().saturating_sub(1)))
    }
}

impl Model {
    /// What is shown first.
    pub(super) fn new(place: Place, palette: Palette, only: Option<String>, look: Look) -> Self {
        let mut model = Self {
            place,
            palette,
            view: look.view,
            notices: Vec::new(),
            silence: None,
            only,
            text: String::new(),
            mode: Mode::Panes,
            focus: Pane::Sources,
            cursors: Default::default(),
            size: (80, 24),
        };
        model.note(look.notices);
        model
    }

    /// What is told now.
    pub(super) fn hear(&mut self, look: Look) {
        self.view = look.view;
        self.silence = None;
        self.note(look.notices);
        if let Mode::Opened(Opened { subject: OpenedSubject::Object { named, status }, .. }) = &mut self.mode
            && let Some((asked, told)) = look.object
            && asked == *named
        {
            *status = told.map_or(Known::Gone, |told| Known::Told(Box::new(told)));
        }
        let view = self.shown();
        let indices = PANES.map(|pane| self.cursors[pane as usize].among(&self.items_of(pane, &view)));
        for (cursor, index) in self.cursors.iter_mut().zip(indices) {
            cursor.index = index;
        }
        self.scroll_back();
    }

    /// Nobody answers; what was told last stays.
    pub(super) fn miss(&mut self, now: Timestamp, why: String) {
        let since = self.silence.as_ref().map_or(now, |silence| silence.since);
        self.silence = Some(Silence { since, why });
    }

    /// The terminal has another size.
    pub(super) fn resize(&mut self, columns: u16, rows: u16) {
        self.size = (columns, rows);
        self.scroll_back();
    }

    fn note(&mut self, notices: Vec<Notice>) {
        self.notices.extend(notices);
        self.notices.drain(..self.notices.len().saturating_sub(KEPT));
    }

    /// The object whose status is asked for.
    pub(super) fn wanted(&self) -> Option<&Named> {
        match &self.mode {
            Mode::Opened(Opened { subject: OpenedSubject::Object { named, .. }, .. }) => Some(named),
            _ => None,
        }
    }

    /// What is shown of where things stand: all, or one source.
    pub(super) fn shown(&self) -> Cow<'_, View> {
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

    /// The items of a pane, those alone that are asked for.
    pub(super) fn items(&self, pane: Pane) -> Vec<Item> {
        self.items_of(pane, &self.shown())
    }

    /// As [`Self::items`], of a view that is at hand.
    pub(super) fn items_of(&self, pane: Pane, view: &View) -> Vec<Item> {
        let text = self.text.to_lowercase();
        let mut items = panes::items(pane, view, &self.notices);
        items.retain(|item| {
            let of_it = self.only.is_none() || pane != Pane::Events || item.source == self.only;
            let has = |cell: &Cell| cell.text.to_lowercase().contains(&text);
            of_it && (text.is_empty() || item.cells.iter().chain(&item.notes).any(has))
        });
        items
    }

    /// Where everything stands on the screen.
    pub(super) fn layout(&self, items: &[Vec<Item>; PANES.len()]) -> Layout {
        let wants = PANES.map(|pane| layout::want(pane, &items[pane as usize]));
        Layout::of(self.size, wants, self.focus)
    }

    /// The item that is chosen in the pane that the keys move in.
    pub(super) fn chosen(&self) -> Option<Item> {
        let mut items = self.items(self.focus);
        let index = self.cursors[self.focus as usize].among(&items);
        (index < items.len()).then(|| items.swap_remove(index))
    }

    /// What is looked at alone, in lines of a width.
    pub(super) fn details(&self, columns: usize) -> Vec<Line<'static>> {
        match &self.mode {
            Mode::Opened(opened) => opened.lines(&self.view, &self.notices, (self.palette, columns)),
            _ => Vec::new(),
        }
    }

    /// So many lines can be above the screen, where something is looked at alone.
    pub(super) fn deepest(&self) -> usize {
        let (columns, rows) = self.size;
        let body = usize::from(layout::body(rows).1).saturating_sub(1);
        self.details(columns.into()).len().saturating_sub(body)
    }

    /// What is looked at may have become shorter, or the terminal taller.
    fn scroll_back(&mut self) {
        let deepest = self.deepest();
        if let Mode::Opened(opened) = &mut self.mode {
            opened.scroll = opened.scroll.min(deepest);
        }
    }
}
