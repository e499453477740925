//! What a key does.

use super::details::{Known, Opened, OpenedSubject};
use super::model::{Cursor, Mode, Model};
use super::panes::{PANES, Subject};
use crate::report::Named;

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

/// What a key asks of whoever owns the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Quit,
    /// To the background, as Ctrl-Z does elsewhere.
    Stop,
    /// All of it, as something else has written there.
    Redraw,
}

/// How far a key moves.
#[derive(Clone, Copy)]
enum Way {
    Lines(isize),
    Pages(isize),
    Top,
    Bottom,
}

impl Way {
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

    /// From here, where a page has so many lines and this is the last one.
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

impl Model {
    /// Takes a key.
    pub(super) fn press(&mut self, key: Key) -> Option<Wish> {
        match key {
            Key::Ctrl('c') => return Some(Wish::Quit),
            Key::Ctrl('z') => return Some(Wish::Stop),
            Key::Ctrl('l') => return Some(Wish::Redraw),
            Key::Char('q') if self.mode != Mode::Typing => return Some(Wish::Quit),
            _ => {}
        }
        match &self.mode {
            Mode::Panes => return self.press_in_panes(key),
            Mode::Typing => self.type_in(key),
            Mode::Help => self.mode = Mode::Panes,
            Mode::Opened(_) => self.press_in_details(key),
        }
        None
    }

    fn press_in_panes(&mut self, key: Key) -> Option<Wish> {
        if let Some(way) = Way::of(key) {
            self.go(way);
            return None;
        }
        match key {
            Key::Tab | Key::Right | Key::Char('l') => self.focus = self.focus.next(),
            Key::BackTab | Key::Left | Key::Char('h') => self.focus = self.focus.previous(),
            Key::Char(digit @ '1'..='5') => self.focus = PANES[digit as usize - '1' as usize],
            Key::Enter => self.open(),
            Key::Char('/') => self.mode = Mode::Typing,
            Key::Char('s') => {
                let source = self.chosen().and_then(|item| item.source);
                self.only = if self.only.is_some() { None } else { source };
            }
            Key::Char('?') => self.mode = Mode::Help,
            Key::Esc if !self.text.is_empty() => self.text.clear(),
            Key::Esc => return Some(Wish::Quit),
            _ => {}
        }
        None
    }

    fn go(&mut self, way: Way) {
        let view = self.shown();
        let items = PANES.map(|pane| self.items_of(pane, &view));
        let (_, rows) = self.layout(&items).panes[self.focus as usize];
        let items = &items[self.focus as usize];
        let cursor = &mut self.cursors[self.focus as usize];
        let index =
            way.from(cursor.among(items), usize::from(rows).saturating_sub(2), items.len().saturating_sub(1));
        *cursor = Cursor { subject: items.get(index).map(|item| item.subject.clone()), index };
    }

    fn open(&mut self) {
        let subject = match self.chosen().map(|item| item.subject) {
            None => return,
            Some(Subject::Source(name)) => OpenedSubject::Source(name),
            Some(Subject::Object(named)) => self.asked(named),
            Some(Subject::Notice(number)) => {
                let notice = self.notices.iter().find(|notice| notice.number == number);
                let Some(notice) = notice else { return };
                match notice.object.clone() {
                    Some(named) => self.asked(named),
                    None => OpenedSubject::Source(notice.source.clone()),
                }
            }
        };
        self.mode = Mode::Opened(Opened { subject, scroll: 0 });
    }

    /// An object, with what is known of it before it is asked for.
    fn asked(&self, named: Named) -> OpenedSubject {
        let known = self.view.objects.iter().find(|object| object.object == named);
        let status = known.map_or(Known::Asked, |object| Known::Told(Box::new(object.clone())));
        OpenedSubject::Object { named, status }
    }

    fn type_in(&mut self, key: Key) {
        match key {
            Key::Char(c) => self.text.push(c),
            Key::Backspace => {
                self.text.pop();
            }
            Key::Ctrl('u') => self.text.clear(),
            Key::Esc => {
                self.text.clear();
                self.mode = Mode::Panes;
            }
            Key::Enter | Key::Tab | Key::Up | Key::Down => self.mode = Mode::Panes,
            _ => {}
        }
    }

    fn press_in_details(&mut self, key: Key) {
        if matches!(key, Key::Esc | Key::Enter | Key::Backspace | Key::Left | Key::Char('h')) {
            self.mode = Mode::Panes;
            return;
        }
        let (last, page) = (self.deepest(), usize::from(super::layout::body(self.size.1).1));
        if let (Some(way), Mode::Opened(opened)) = (Way::of(key), &mut self.mode) {
            opened.scroll = way.from(opened.scroll, page.saturating_sub(2), last);
        }
    }
}
