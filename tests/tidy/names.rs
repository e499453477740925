//! Names that say nothing outside of the program. The field has a word for each of these, or a
//! longer name says what is meant: see `docs/glossary.md`.

use crate::tree::{FOLDERS, Source, sources};
use crate::{none, rust};

/// Types that once spoke a language of their own.
const TYPES: [&str; 52] = [
    "Asked",
    "Bag",
    "Bed",
    "Beside",
    "Book",
    "Carrier",
    "Census",
    "Chronicle",
    "Course",
    "Deed",
    "Desk",
    "Doors",
    "Double",
    "Estate",
    "Fleet",
    "Foreseen",
    "Form",
    "Good",
    "Hands",
    "Happening",
    "Held",
    "Instead",
    "Keeper",
    "Kid",
    "Known",
    "Lane",
    "Lens",
    "Letter",
    "Line",
    "Looked",
    "Meanwhile",
    "Most",
    "Over",
    "Place",
    "Post",
    "Pulse",
    "Rig",
    "Roll",
    "Said",
    "Seen",
    "Shelf",
    "Shown",
    "Sight",
    "Stand",
    "Started",
    "Tale",
    "Thing",
    "Told",
    "Turn",
    "Way",
    "What",
    "Within",
];

/// Functions that are no verb, no noun and no predicate.
const FUNCTIONS: [&str; 50] = [
    "awaited",
    "awaiting",
    "barred",
    "behind",
    "beyond",
    "blind",
    "brings",
    "brought_by",
    "budgeted",
    "carried",
    "doubt",
    "dropped",
    "foreseen",
    "foreseeing",
    "foresees",
    "gated",
    "gave_up",
    "given_up",
    "glimpsed",
    "goes_back",
    "held",
    "hired",
    "instead",
    "joined",
    "judgement",
    "keeps",
    "lasts",
    "living",
    "looked",
    "looked_up",
    "minding_others",
    "named",
    "narrowed",
    "observed",
    "offered",
    "overlaid",
    "precious",
    "recalled",
    "rescaled",
    "sealed",
    "settling",
    "shown",
    "shown_by",
    "struck",
    "suspended",
    "takeback_decided",
    "tighter",
    "told",
    "troubled",
    "within_allowed",
];

/// Constants that name no purpose.
const CONSTANTS: [&str; 36] = [
    "AGAIN", "ANSWER", "BACKLOG", "BEAT", "CALM", "DEED", "ECHO", "EVERY", "FULL", "KEPT", "LARGEST", "LAST",
    "LASTS", "LEAVING", "LONG", "LONGEST", "LOOK", "LOOKS", "MOST", "NAMED", "OTHERS", "OUTAGE", "OWN",
    "PASSING", "PATIENCE", "PERSON", "QUIET", "REST", "SETTLES", "SHORTEST", "SOON", "SPENT", "TERM", "TOLD",
    "TRIES", "YOUNG",
];

/// The names that a file declares with these keywords.
fn declared<'a>(code: &'a str, keywords: &'a [&str]) -> impl Iterator<Item = &'a str> {
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let pairs = words.clone().zip(words.skip(1));
    pairs.filter(move |(keyword, _)| keywords.contains(keyword)).map(|(_, name)| name)
}

fn violations(file: &Source) -> Vec<String> {
    let code = rust::code(&file.text);
    // A test may shorten the function that it checks with.
    let functions: &[&str] = if file.is_test() { &[] } else { &FUNCTIONS };
    let groups: [(&[&str], &[&str]); 3] = [
        (&["struct", "enum", "trait", "type"], &TYPES),
        (&["fn"], functions),
        (&["const", "static"], &CONSTANTS),
    ];
    let mut found = Vec::new();
    for (keywords, forbidden) in groups {
        let names = declared(&code, keywords).filter(|name| forbidden.contains(name));
        found.extend(names.map(|name| format!("{}: {name}", file.path)));
    }
    found
}

#[test]
fn declarations_use_the_words_of_the_field() {
    let broken = sources(&FOLDERS).iter().flat_map(violations).collect();
    none("a name says what it is (docs/glossary.md)", broken);
}

#[test]
fn forbidden_names_are_found() {
    fn check(text: &str, expected: &[&str]) {
        let file = Source { path: "src/a.rs".to_owned(), text: text.to_owned() };
        let expected: Vec<String> = expected.iter().map(|name| format!("src/a.rs: {name}")).collect();
        assert_eq!(violations(&file), expected, "{text}");
    }
    check("pub(super) struct Told<'a>(&'a str);", &["Told"]);
    check("impl A { fn blind(&self) {} }", &["blind"]);
    check("const LOOK: u32 = 1; static LONGEST: u32 = 2;", &["LOOK", "LONGEST"]);
    check("// struct Told\nstruct TollBooth { told: u32 }", &[]);
    check("let shown = shown();", &[]);
}
