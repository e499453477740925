//! The action of each key.

use super::details::{DetailPane, DetailSubject, ObjectDetail};
use super::model::{PaneCursor, TopMode, TopModel};
use super::panes::{ALL_PANES, ItemSubject};
use crate::report::ObjectRef;

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Ctrl(char),
    Enter,
    Esc,
    Tab,
    BackTab,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
}

/// An action for the owner of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScreenAction {
    Quit,
    /// To the background, as Ctrl-Z does elsewhere.
    Suspend,
    /// All of it, as something else has written there.
    Redraw,
}

/// A distance that a key moves.
#[derive(Clone, Copy)]
enum CursorMove {
    Lines(isize),
    Pages(isize),
    Top,
    Bottom,
}

impl CursorMove {
    fn of(key: Key) -> Option<Self> {
        Some(match key {
            Key::Up | Key::Char('k') => Self::Lines(-1),
            Key::Down | Key::Char('j') => Self::Lines(1),
            Key::PageUp | Key::Ctrl('b') => Self::Pages(-1),
            Key::PageDown | Key::Ctrl('f') | Key::Char(' ') => Self::Pages(1),
            Key::Home | Key::Char('g') => Self::Top,
            Key::End | Key::Char('G') => Self::Bottom,
            _ => return None,
        })
    }

    /// Returns the line that a move leads to from the line `here`. A page has `page` lines, and the
    /// last line is `last`.
    fn from(self, here: usize, page: usize, last: usize) -> usize {
        let steps = match self {
            Self::Lines(lines) => lines,
            Self::Pages(pages) => pages.saturating_mul(page.max(1).cast_signed()),
            Self::Top => return 0,
            Self::Bottom => return last,
        };
        here.saturating_add_signed(steps).min(last)
    }
}

impl TopModel {
    /// Takes a key.
    pub(super) fn handle_key(&mut self, key: Key) -> Option<ScreenAction> {
        match key {
            Key::Ctrl('c') => return Some(ScreenAction::Quit),
            Key::Ctrl('z') => return Some(ScreenAction::Suspend),
            Key::Ctrl('l') => return Some(ScreenAction::Redraw),
            Key::Char('q') if self.mode != TopMode::Typing => return Some(ScreenAction::Quit),
            _ => {}
        }
        match &self.mode {
            TopMode::Panes => return self.handle_pane_key(key),
            TopMode::Typing => self.handle_filter_key(key),
            TopMode::Help => self.mode = TopMode::Panes,
            TopMode::Opened(_) => self.handle_detail_key(key),
        }
        None
    }

    fn handle_pane_key(&mut self, key: Key) -> Option<ScreenAction> {
        if let Some(cursor_move) = CursorMove::of(key) {
            self.move_cursor(cursor_move);
            return None;
        }
        match key {
            Key::Tab | Key::Right | Key::Char('l') => self.focus = self.focus.next(),
            Key::BackTab | Key::Left | Key::Char('h') => self.focus = self.focus.previous_pane(),
            Key::Char(digit @ '1'..='5') => self.focus = ALL_PANES[digit as usize - '1' as usize],
            Key::Enter => self.open(),
            Key::Char('/') => self.mode = TopMode::Typing,
            Key::Char('s') => {
                let source = self.chosen_item().and_then(|item| item.source);
                self.only = if self.only.is_some() { None } else { source };
            }
            Key::Char('?') => self.mode = TopMode::Help,
            Key::Esc if !self.text.is_empty() => self.text.clear(),
            Key::Esc => return Some(ScreenAction::Quit),
            _ => {}
        }
        None
    }

    fn move_cursor(&mut self, cursor_move: CursorMove) {
        let view = self.shown_status();
        let items = ALL_PANES.map(|pane| self.pane_items_of(pane, &view));
        let (_, rows) = self.layout(&items).panes[self.focus as usize];
        let items = &items[self.focus as usize];
        let cursor = &mut self.cursors[self.focus as usize];
        let index = cursor_move.from(
            cursor.position_among(items),
            usize::from(rows).saturating_sub(2),
            items.len().saturating_sub(1),
        );
        *cursor = PaneCursor { subject: items.get(index).map(|item| item.subject.clone()), index };
    }

    fn open(&mut self) {
        let subject = match self.chosen_item().map(|item| item.subject) {
            None => return,
            Some(ItemSubject::Source(name)) => DetailSubject::Source(name),
            Some(ItemSubject::Object(named)) => self.object_subject(named),
            Some(ItemSubject::Note(text)) => DetailSubject::Note(text),
            Some(ItemSubject::Event(number)) => {
                let event = self.events.iter().find(|event| event.number == number);
                let Some(event) = event else { return };
                match event.object.clone() {
                    Some(named) => self.object_subject(named),
                    None => DetailSubject::Source(event.source.clone()),
                }
            }
        };
        self.mode = TopMode::Opened(DetailPane { subject, scroll: 0 });
    }

    /// Returns an object, with what is known of it before it is asked for.
    fn object_subject(&self, named: ObjectRef) -> DetailSubject {
        let known = self.view.objects.iter().find(|object| object.object == named);
        let status =
            known.map_or(ObjectDetail::Pending, |object| ObjectDetail::Found(Box::new(object.clone())));
        DetailSubject::Object { named, status }
    }

    fn handle_filter_key(&mut self, key: Key) {
        match key {
            Key::Char(c) => self.text.push(c),
            Key::Backspace => {
                self.text.pop();
            }
            Key::Ctrl('u') => self.text.clear(),
            Key::Esc => {
                self.text.clear();
                self.mode = TopMode::Panes;
            }
            Key::Enter | Key::Tab | Key::Up | Key::Down => self.mode = TopMode::Panes,
            _ => {}
        }
    }

    fn handle_detail_key(&mut self, key: Key) {
        if matches!(key, Key::Esc | Key::Enter | Key::Backspace | Key::Left | Key::Char('h')) {
            self.mode = TopMode::Panes;
            return;
        }
        let (last, page) = (self.max_scroll(), usize::from(super::layout::body(self.size.1).1));
        if let (Some(cursor_move), TopMode::Opened(opened)) = (CursorMove::of(key), &mut self.mode) {
            opened.scroll = cursor_move.from(opened.scroll, page.saturating_sub(2), last);
        }
    }
}
