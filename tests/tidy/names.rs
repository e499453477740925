//! Names that say nothing outside of the program. The field has a word for each of these, or a
//! longer name says what is meant: see `docs/glossary.md`.

use crate::tree::{FOLDERS, Source, sources};
use crate::{none, rust};

/// Types that once spoke a language of their own.
const TYPES: [&str; 59] = [
    "Asked",
    "Bag",
    "Bed",
    "Beside",
    "Book",
    "BudgetObject",
    "BudgetOverride",
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
    "KeepPolicy",
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
    "Narrowing",
    "Over",
    "Place",
    "Post",
    "Prerequisites",
    "Pulse",
    "ReleaseClaim",
    "Rig",
    "Roll",
    "RolloutProgress",
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
const FUNCTIONS: [&str; 87] = [
    "absorb",
    "add_failure_events",
    "ask_for_impact",
    "awaited",
    "awaiting",
    "barred",
    "begin_returns",
    "behind",
    "beyond",
    "blind",
    "brings",
    "brought_by",
    "budgeted",
    "candidate",
    "carried",
    "carry_over",
    "doubt",
    "dropped",
    "foreseeing",
    "foreseen",
    "foresees",
    "gated",
    "gave_up",
    "give_up",
    "given_up",
    "glimpsed",
    "goes_back",
    "has_left",
    "has_not_left",
    "held",
    "hired",
    "instead",
    "is_back",
    "is_failed_for_good",
    "is_found",
    "is_needed",
    "is_of_a_pod",
    "is_out",
    "is_over_with",
    "is_rolling_back",
    "is_stamped",
    "is_switched_to",
    "is_under_way",
    "is_void",
    "joined",
    "judge_again",
    "judge_anew",
    "judgement",
    "keep_budget",
    "keeps",
    "lasts",
    "living",
    "location_identity",
    "looked",
    "looked_up",
    "mend_ledger",
    "minding_others",
    "named",
    "narrowed",
    "narrowings",
    "observed",
    "offered",
    "overlaid",
    "precious",
    "read_budget",
    "recalled",
    "recompute_wanted",
    "record_budget_answer",
    "reevaluate_prunes",
    "reread_opened_ledger",
    "rescaled",
    "revisions_of_claims",
    "save_budget",
    "sealed",
    "settling",
    "shown",
    "shown_by",
    "struck",
    "suspended",
    "take_note",
    "takeback_decided",
    "tighter",
    "told",
    "track_claim",
    "troubled",
    "wanted_unit",
    "within_allowed",
];

/// Constants that name no purpose.
const CONSTANTS: [&str; 36] = [
    "AGAIN", "ANSWER", "BACKLOG", "BEAT", "CALM", "DEED", "ECHO", "EVERY", "FULL", "KEPT", "LARGEST", "LAST",
    "LASTS", "LEAVING", "LONG", "LONGEST", "LOOK", "LOOKS", "MOST", "NAMED", "OTHERS", "OUTAGE", "OWN",
    "PASSING", "PATIENCE", "PERSON", "QUIET", "REST", "SETTLES", "SHORTEST", "SOON", "SPENT", "TERM", "TOLD",
    "TRIES", "YOUNG",
];

/// Fields that do not tell what they hold.
const FIELDS: [&str; 23] = [
    "anew",
    "astray",
    "blamed",
    "brings",
    "ceded",
    "doubt",
    "entitled",
    "foreseen",
    "foresight",
    "gated",
    "glimpses",
    "goes_back",
    "instead",
    "may_lose",
    "minds",
    "parked",
    "rejecting",
    "rolls",
    "sick",
    "to_judge",
    "to_tell",
    "underway",
    "untold",
];

/// The names that a file declares with these keywords.
fn declared<'a>(code: &'a str, keywords: &'a [&str]) -> impl Iterator<Item = &'a str> {
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let pairs = words.clone().zip(words.skip(1));
    pairs.filter(move |(keyword, _)| keywords.contains(keyword)).map(|(_, name)| name)
}

/// The fields that a file declares in its structs.
fn fields(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut is_in_struct = false;
    for line in code.lines() {
        let line = line.trim();
        is_in_struct = match line {
            "}" => false,
            _ if line.ends_with('{') => line.split(' ').any(|word| word == "struct"),
            _ => is_in_struct,
        };
        if let (true, Some((head, _))) = (is_in_struct, line.split_once(": ")) {
            found.extend(head.rsplit(' ').next());
        }
    }
    found
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
    let names = fields(&code).into_iter().filter(|name| FIELDS.contains(name));
    found.extend(names.map(|name| format!("{}: {name}", file.path)));
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
    check("pub(super) struct A<'a> {\n    pub(in crate::engine) sick: &'a u8,\n}", &["sick"]);
    check("struct A {\n    healthy: u8,\n}\nlet a = A {\n    sick: 1,\n};", &[]);
}
