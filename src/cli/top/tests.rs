//! Pictures, and what keys do.

mod panic;
mod samples;

use std::fmt::Write as _;

use insta::assert_snapshot;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr as _;

use super::details::{DetailPane, DetailSubject};
use super::draw::draw;
use super::keys::{Key, ScreenAction};
use super::model::{TopMode, TopModel};
use super::panes::ItemSubject;
use super::status_poller::{Refresh, StatusOrigin};
use crate::cli::overview;
use crate::render::Palette;
use crate::report::Phase;
use samples::{NOW, cluster, empty, event, failed, healthy, object, rolling};

/// The sizes that it is drawn at.
const SIZES: [(u16, u16); 3] = [(100, 30), (80, 24), (40, 10)];

fn model(refresh: Refresh) -> TopModel {
    TopModel::new(StatusOrigin::Daemon("/run/rhumb/rhumb.sock".to_owned()), Palette::Colour, None, refresh)
}

fn buffer(model: &mut TopModel, (columns, rows): (u16, u16)) -> Buffer {
    model.resize(columns, rows);
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(model, frame)).unwrap();
    terminal.backend().buffer().clone()
}

/// Returns the lines as a reader sees them.
fn picture(model: &mut TopModel, size: (u16, u16)) -> String {
    let drawn = buffer(model, size);
    let mut text = String::new();
    for row in drawn.content.chunks(size.0.into()) {
        let mut line = String::new();
        let mut column = 0;
        while let Some(cell) = row.get(column) {
            line.push_str(cell.symbol());
            // A cell below a wide character is not seen.
            column += cell.symbol().width().max(1);
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn keep(name: &str, text: String) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("tests");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| assert_snapshot!(name, text));
}

/// Reads `Tab j / web Enter`: keys by their names, all else letter by letter.
fn keys(words: &str) -> Vec<Key> {
    let key = |word: &str| match word {
        "Tab" => vec![Key::Tab],
        "BackTab" => vec![Key::BackTab],
        "Enter" => vec![Key::Enter],
        "Esc" => vec![Key::Esc],
        "Backspace" => vec![Key::Backspace],
        "Up" => vec![Key::Up],
        "Down" => vec![Key::Down],
        "PageDown" => vec![Key::PageDown],
        "PageUp" => vec![Key::PageUp],
        "End" => vec![Key::End],
        "Home" => vec![Key::Home],
        "^C" => vec![Key::Ctrl('c')],
        "^Z" => vec![Key::Ctrl('z')],
        "^L" => vec![Key::Ctrl('l')],
        "^U" => vec![Key::Ctrl('u')],
        letters => letters.chars().map(Key::Char).collect(),
    };
    words.split_whitespace().flat_map(key).collect()
}

fn press(model: &mut TopModel, words: &str) -> Option<ScreenAction> {
    keys(words).into_iter().map(|key| model.handle_key(key)).last().flatten()
}

#[test]
fn each_state_at_each_size() {
    let silent = || {
        let mut model = model(rolling());
        model.note_failure(
            "2030-01-02T03:04:07Z".parse().unwrap(),
            "no daemon answers on a.sock: refused".to_owned(),
        );
        model.note_failure(
            "2030-01-02T03:04:09Z".parse().unwrap(),
            "no daemon answers on a.sock: refused".to_owned(),
        );
        model
    };
    let alone = TopModel { origin: StatusOrigin::Cluster("kind-shop".to_owned()), ..model(cluster()) };
    let states = [
        ("healthy", model(healthy())),
        ("rolling", model(rolling())),
        ("failed", model(failed())),
        ("no-daemon", alone),
        ("silent", silent()),
        ("empty", model(empty())),
    ];
    for (name, mut model) in states {
        for (columns, rows) in SIZES {
            keep(&format!("{name}-{columns}x{rows}"), picture(&mut model, (columns, rows)));
        }
    }
}

#[test]
fn a_record_that_cannot_be_read_is_shown_with_the_command_that_mends_it() {
    let note = "ConfigMap rhumb-system/shop: 1 line of `rejected` cannot be read: nothing new of source shop is \
                released; `kubectl -n rhumb-system patch configmap shop` forgets it";
    let mut refresh = failed();
    refresh.view.notes.push(note.to_owned());
    let mut model = model(refresh);
    let drawn = picture(&mut model, (100, 30));
    let row = drawn.lines().find(|line| line.contains("rhumb-system/shop")).unwrap();
    assert!(row.contains("Note") && row.contains("1 line of `rejected` cannot be read"), "{row}");
    press(&mut model, "4 Home Enter");
    let opened = picture(&mut model, (40, 30));
    let words: Vec<&str> = opened.split_whitespace().collect();
    assert!(
        words.join(" ").contains("`kubectl -n rhumb-system patch configmap shop` forgets it"),
        "{opened}"
    );
}

#[test]
fn what_nobody_looks_after_is_counted_in_the_first_lines() {
    #[track_caller]
    fn check(phases: &[(Phase, usize)], expected: &str) {
        let mut refresh = failed();
        refresh.view.sources.truncate(1);
        refresh.view.sources[0].objects = phases.iter().copied().collect();
        let drawn = picture(&mut model(refresh), (100, 30));
        let line = drawn.lines().nth(1).unwrap();
        assert!(line.starts_with(&format!(" 0 of 1 sources healthy, {expected}; newest")), "{line}");
    }
    check(&[(Phase::Settled, 2), (Phase::Failed, 1), (Phase::Paused, 1)], "4 objects");
    check(
        &[(Phase::Settled, 1), (Phase::OptedOut, 1), (Phase::Held, 2), (Phase::LeftAlone, 1)],
        "5 objects, 4 left alone",
    );
}

#[test]
fn what_is_opened_at_each_size() {
    let states = [
        ("object", model(failed()), "444 Tab BackTab j Enter"),
        ("source", model(failed()), "Enter"),
        ("help", model(healthy()), "?"),
        ("typing", model(failed()), "/web"),
        ("one-source", model(failed()), "j s"),
        ("nothing-found", model(failed()), "/nowhere Enter"),
    ];
    for (name, mut model, typed) in states {
        press(&mut model, typed);
        for (columns, rows) in [(80, 24), (40, 10)] {
            keep(&format!("{name}-{columns}x{rows}"), picture(&mut model, (columns, rows)));
        }
    }
}

#[test]
fn no_size_is_too_small() {
    for typed in ["", "2", "3", "4", "5", "?", "Enter", "4 Enter", "/web"] {
        let mut model = model(failed());
        press(&mut model, typed);
        for columns in [0, 1, 2, 3, 4, 7, 12, 19, 30, 200] {
            for rows in [0, 1, 2, 3, 4, 5, 9, 15, 16, 17, 18, 100] {
                let drawn = buffer(&mut model, (columns, rows));
                assert_eq!((drawn.area.width, drawn.area.height), (columns, rows));
            }
        }
    }
}

#[test]
fn nothing_from_the_cluster_steers_the_terminal() {
    for typed in ["", "4 Enter", "5 Enter", "5 j j Enter"] {
        let mut model = model(failed());
        press(&mut model, typed);
        for size in [(300, 30), (80, 24)] {
            let drawn = buffer(&mut model, size);
            let text: String = drawn.content.iter().map(ratatui::buffer::Cell::symbol).collect();
            assert!(!text.contains(|c: char| c.is_control() || c == '\u{202e}'), "{typed}: {text:?}");
        }
    }
    let text = picture(&mut model(failed()), (300, 30));
    assert!(text.contains("found \u{fffd}[2J\u{fffd}"), "{text}");
}

#[test]
fn a_wide_character_is_complete_or_not_there() {
    let mut model = model(rolling());
    for columns in 20..60 {
        let text = picture(&mut model, (columns, 40));
        for line in text.lines() {
            assert!(line.width() <= columns.into(), "{columns}: {line}");
        }
    }
    let drawn = buffer(&mut model, (100, 30));
    let text: String = drawn.content.iter().map(ratatui::buffer::Cell::symbol).collect();
    assert!(text.contains("\u{65e5} \u{672c} \u{8a9e} "), "each takes two cells: {text}");
}

#[test]
fn without_colours_there_are_none() {
    let colours = |palette: Palette| {
        let mut model = TopModel { palette, ..model(failed()) };
        let mut found = 0;
        for typed in ["", "Enter", "Esc ?", "Esc /a"] {
            press(&mut model, typed);
            let drawn = buffer(&mut model, (100, 30));
            let is_coloured =
                |cell: &&ratatui::buffer::Cell| cell.fg != Color::Reset || cell.bg != Color::Reset;
            found += drawn.content.iter().filter(is_coloured).count();
        }
        found
    };
    assert_eq!(colours(Palette::Plain), 0);
    assert!(colours(Palette::Colour) > 0);
}

#[test]
fn the_name_of_the_chosen_row_alone_is_reversed() {
    for (typed, name) in [("", "shop"), ("2", "shop/deployment.apps/web"), ("5", "RolloutStarted")] {
        let mut model = model(rolling());
        press(&mut model, typed);
        let drawn = buffer(&mut model, (100, 30));
        let is_reversed = |cell: &&ratatui::buffer::Cell| cell.modifier.contains(Modifier::REVERSED);
        let text: String =
            drawn.content.iter().filter(is_reversed).map(ratatui::buffer::Cell::symbol).collect();
        assert_eq!(text.trim_end(), name);
    }
}

/// Returns where somebody is: the pane and its chosen item, or what is looked at alone, and what is
/// left out.
fn screen_state(model: &TopModel) -> String {
    let named = |subject: &ItemSubject| match subject {
        ItemSubject::Source(name) => name.clone(),
        ItemSubject::Object(named) => named.name.clone(),
        ItemSubject::Event(number) => format!("#{number}"),
        ItemSubject::Note(text) => text.clone(),
    };
    let mut text = match &model.mode {
        TopMode::Panes | TopMode::Typing => {
            let chosen = model.chosen_item().map_or_else(|| "-".to_owned(), |item| named(&item.subject));
            format!("{:?} {chosen}", model.focus)
        }
        TopMode::Help => "help".to_owned(),
        TopMode::Opened(DetailPane { subject: DetailSubject::Source(name), scroll }) => {
            format!("of {name} +{scroll}")
        }
        TopMode::Opened(DetailPane { subject: DetailSubject::Object { named, .. }, scroll }) => {
            format!("of {} +{scroll}", overview::name(named))
        }
        TopMode::Opened(DetailPane { subject: DetailSubject::Note(_), scroll }) => {
            format!("of a note +{scroll}")
        }
    };
    if model.mode == TopMode::Typing {
        text += " typing";
    }
    if let Some(only) = &model.only {
        let _ = write!(text, " only {only}");
    }
    if !model.text.is_empty() {
        let _ = write!(text, " with {}", model.text);
    }
    text
}

#[test]
fn keys_move_open_and_filter() {
    #[track_caller]
    fn check(typed: &str, expected: &str) {
        let mut model = model(failed());
        assert_eq!(press(&mut model, typed), None);
        assert_eq!(screen_state(&model), expected, "after {typed}");
    }
    check("", "Sources shop");
    // Rows.
    check("j", "Sources ops");
    check("Down Up", "Sources shop");
    check("j j j", "Sources ops");
    check("G", "Sources ops");
    check("G g", "Sources shop");
    check("PageDown", "Sources ops");
    check("PageDown PageUp", "Sources shop");
    // Panes.
    check("Tab", "Rollouts -");
    check("Tab Tab Tab", "NeedsAttention env");
    check("Tab Tab Tab Tab Tab", "Sources shop");
    check("BackTab", "Events #5");
    check("5 j", "Events #4");
    check("4 End", "NeedsAttention data");
    check("2 j k G", "Rollouts -");
    check("j 4 j 1", "Sources ops");
    // Alone.
    check("Enter", "of shop +0");
    check("Enter Esc", "Sources shop");
    check("4 j Enter", "of shop/deployment.apps/web +0");
    check("4 j Enter Enter", "NeedsAttention web");
    check("5 Enter", "of shop/deployment.apps/web +0");
    check("5 End Enter", "of shop +0");
    check("2 Enter", "Rollouts -");
    check("Enter End Home", "of shop +0");
    check("Enter k", "of shop +0");
    // The text that is searched for.
    check("/", "Sources shop typing");
    check("/web", "Sources - typing with web");
    check("/apps/web Enter 4", "NeedsAttention web with apps/web");
    check("/APPS Enter 4 j", "NeedsAttention held with APPS");
    check("/webx Backspace Enter", "Sources - with web");
    check("/web ^U ops", "Sources ops typing with ops");
    check("/q? Esc", "Sources shop");
    check("/ops Enter Esc", "Sources shop");
    check("/ops Enter Enter", "of ops +0 with ops");
    check("j s", "Sources ops only ops");
    check("j s 5", "Events - only ops");
    check("j s s", "Sources ops");
    check("4 s 1", "Sources shop only shop");
    check("2 s", "Rollouts -");
    // The keys.
    check("?", "help");
    check("? Esc", "Sources shop");
    check("? x", "Sources shop");
}

#[test]
fn keys_end_it() {
    #[track_caller]
    fn check(typed: &str, expected: Option<ScreenAction>) {
        assert_eq!(press(&mut model(failed()), typed), expected, "{typed}");
    }
    check("q", Some(ScreenAction::Quit));
    check("Esc", Some(ScreenAction::Quit));
    check("^C", Some(ScreenAction::Quit));
    check("/ ^C", Some(ScreenAction::Quit));
    check("/q", None);
    check("/web Esc Esc", Some(ScreenAction::Quit));
    check("/web Enter Esc", None);
    check("Enter q", Some(ScreenAction::Quit));
    check("Enter Esc", None);
    check("? q", Some(ScreenAction::Quit));
    check("^Z", Some(ScreenAction::Suspend));
    check("Enter ^L", Some(ScreenAction::Redraw));
}

#[test]
fn what_is_chosen_stays_chosen_when_all_is_reported_anew() {
    let mut model = model(failed());
    press(&mut model, "4 j");
    assert_eq!(screen_state(&model), "NeedsAttention web");
    let graver = object("ConfigMap", "aaa", Phase::Failed, "no");
    let mut next = failed();
    next.events.clear();
    next.view.objects.insert(0, graver);
    model.refresh(next.clone());
    assert_eq!(screen_state(&model), "NeedsAttention web", "something came before it");
    next.view.objects.retain(|object| object.object.name != "web");
    model.refresh(next.clone());
    assert_eq!(screen_state(&model), "NeedsAttention held", "what has come to its place");
    next.view.objects.clear();
    model.refresh(next);
    assert_eq!(screen_state(&model), "NeedsAttention -");
}

#[test]
fn the_newest_event_is_chosen_until_somebody_chooses() {
    let mut model = model(failed());
    let mut next = failed();
    let news = |number| vec![event(number, NOW, "DriftRepaired", Some("web"), "label a")];
    press(&mut model, "5");
    next.events = news(6);
    model.refresh(next.clone());
    assert_eq!(screen_state(&model), "Events #6");
    press(&mut model, "j");
    next.events = news(7);
    model.refresh(next.clone());
    assert_eq!(screen_state(&model), "Events #5");
    next.events = (8..600).flat_map(news).collect();
    model.refresh(next);
    assert_eq!(model.events.len(), 512);
    assert_eq!((model.events[0].number, model.events[511].number), (88, 599));
}

#[test]
fn what_is_looked_at_alone_is_asked_for() {
    let mut model = model(failed());
    assert_eq!(model.requested_object(), None);
    press(&mut model, "5 Enter");
    let web = object("Deployment", "web", Phase::Settled, "");
    assert_eq!(model.requested_object(), Some(&web.object));
    let mut detail_of = |object: Option<crate::report::ObjectStatus>| {
        model.refresh(Refresh { object: Some((web.object.clone(), object)), events: Vec::new(), ..failed() });
        picture(&mut model, (80, 24))
    };
    assert!(detail_of(Some(web.clone())).contains(" phase     Settled\n"));
    assert!(detail_of(None).contains(" phase     no source has it\n"));
    // An answer that was on its way when something else was opened.
    let other = object("Deployment", "other", Phase::Failed, "");
    model.refresh(Refresh {
        object: Some((other.object.clone(), Some(other))),
        events: Vec::new(),
        ..failed()
    });
    assert!(picture(&mut model, (80, 24)).contains(" phase     no source has it\n"));
}

#[test]
fn a_long_text_is_read_to_its_end_and_no_further() {
    let mut model = model(failed());
    model.resize(40, 10);
    press(&mut model, "4 j Enter End");
    let last = picture(&mut model, (40, 10));
    let TopMode::Opened(DetailPane { scroll, .. }) = model.mode else { panic!("nothing is open") };
    assert!(scroll > 0);
    press(&mut model, "PageDown j");
    assert_eq!(picture(&mut model, (40, 10)), last);
    press(&mut model, "k");
    assert_ne!(picture(&mut model, (40, 10)), last);
    // On a tall terminal all of it fits.
    assert!(picture(&mut model, (80, 60)).contains(" source    shop\n"));
}

#[test]
fn silence_is_reported_from_its_begin_on_and_ends_with_an_answer() {
    let mut model = model(rolling());
    for second in [7, 8, 9] {
        model.note_failure(format!("2030-01-02T03:04:0{second}Z").parse().unwrap(), "it is down".to_owned());
    }
    let text = picture(&mut model, (80, 24));
    assert!(text.contains("no answer since 03:04:07 UTC\n it is down\n"), "{text}");
    assert!(text.contains("shop/deployment.apps/web"), "what was reported last stays: {text}");
    model.refresh(Refresh { events: Vec::new(), ..rolling() });
    assert!(!picture(&mut model, (80, 24)).contains("no answer"));
}
