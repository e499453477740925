//! Names that say nothing outside of the program. The field has a word for each of these, or a
//! longer name says what is meant: see `docs/glossary.md`.

use crate::tree::{FOLDERS, Source, sources};
use crate::{none, rust};

/// Types that once spoke a language of their own.
const TYPES: [&str; 99] = [
    "Asked",
    "AskedAt",
    "AskedChart",
    "Bag",
    "Bare",
    "Bed",
    "Beside",
    "Book",
    "BudgetObject",
    "BudgetOverride",
    "Carrier",
    "Catalog",
    "Census",
    "Changed",
    "Chronicle",
    "Course",
    "Deed",
    "Desk",
    "Doors",
    "Double",
    "Ended",
    "Estate",
    "FetchTurn",
    "FileLook",
    "Fleet",
    "Followed",
    "Foreseen",
    "Form",
    "Found",
    "Good",
    "Guard",
    "GuardedBody",
    "GuardedMetadata",
    "Hands",
    "Happening",
    "Held",
    "Inner",
    "Instead",
    "JudgedEntry",
    "KeepPolicy",
    "Keeper",
    "Keepers",
    "Kid",
    "Known",
    "Lane",
    "LastGood",
    "LastLook",
    "Lens",
    "Letter",
    "Line",
    "LookRequest",
    "LookRequests",
    "Looked",
    "Meanwhile",
    "MemoryPlace",
    "Most",
    "MoveDoubt",
    "Narrowing",
    "Of",
    "Over",
    "Overlay",
    "Owners",
    "Place",
    "Post",
    "Prerequisites",
    "Printed",
    "Pulse",
    "Release",
    "ReleaseClaim",
    "RenderPlace",
    "Rewriting",
    "Rig",
    "Roll",
    "RolloutProgress",
    "RootDoubt",
    "Said",
    "Seen",
    "Sharing",
    "Shelf",
    "Shown",
    "Sides",
    "Sight",
    "SourceDoubt",
    "SourceFeed",
    "Stand",
    "Started",
    "Streaming",
    "TakenValues",
    "Tale",
    "Thing",
    "TokenState",
    "Told",
    "ToldSnapshot",
    "Traced",
    "Turn",
    "Unit",
    "Way",
    "What",
    "Within",
];

/// Functions that are no verb, no noun and no predicate.
const FUNCTIONS: [&str; 166] = [
    "absorb",
    "add_failure_events",
    "addressed",
    "allowed",
    "ask_for_impact",
    "asked",
    "asked_rest",
    "await_looks",
    "awaited",
    "awaiting",
    "barred",
    "because",
    "begin_returns",
    "behind",
    "beside",
    "beyond",
    "blind",
    "blur",
    "bring",
    "brings",
    "brought_by",
    "budgeted",
    "candidate",
    "carried",
    "carry_over",
    "complain",
    "complete_looks",
    "descends",
    "doubt",
    "dropped",
    "failed",
    "folded",
    "foreseeing",
    "foreseen",
    "foresees",
    "frozen",
    "gated",
    "gave_up",
    "give_up",
    "given_up",
    "glimpse",
    "glimpsed",
    "goes_back",
    "half",
    "has_left",
    "has_not_left",
    "held",
    "hidden",
    "hinted",
    "hired",
    "in_progress",
    "inserted",
    "inside",
    "instead",
    "is_back",
    "is_failed_for_good",
    "is_found",
    "is_needed",
    "is_of_a_pod",
    "is_only_record",
    "is_out",
    "is_over_with",
    "is_rolling_back",
    "is_stamped",
    "is_switched_to",
    "is_under_way",
    "is_void",
    "is_whole",
    "joined",
    "judge_again",
    "judge_anew",
    "judgement",
    "keep_budget",
    "keeps",
    "kept",
    "keyless",
    "lasts",
    "late_words",
    "lay",
    "living",
    "location_identity",
    "look_at",
    "look_back",
    "look_request",
    "looked",
    "looked_up",
    "mend_ledger",
    "merged",
    "minding_others",
    "misplaced",
    "named",
    "nameless",
    "namesakes",
    "narrowed",
    "narrowings",
    "nearest",
    "needed",
    "never_run",
    "none_found",
    "not_one",
    "nowhere",
    "objection",
    "observed",
    "occasion",
    "offered",
    "one_blank",
    "overlaid",
    "padded",
    "pinned",
    "precious",
    "printable",
    "quarter",
    "read_budget",
    "recalled",
    "recompute_wanted",
    "record_budget_answer",
    "reevaluate_prunes",
    "rejected_before",
    "released_since",
    "repaired_by",
    "request_looks",
    "reread_opened_ledger",
    "rescaled",
    "restored",
    "revisions_of_claims",
    "save_budget",
    "says_all",
    "sealed",
    "seen_from",
    "settling",
    "show_inventory",
    "show_rollout",
    "shown",
    "shown_by",
    "simplified",
    "source_without_look",
    "stand",
    "strike",
    "struck",
    "suspended",
    "take_due_looks",
    "take_note",
    "takeback_decided",
    "takes_without",
    "tell",
    "tell_failures",
    "terminating",
    "tighter",
    "told",
    "told_of",
    "traced",
    "track_claim",
    "troubled",
    "unacknowledged",
    "unanswered_look",
    "unclosed",
    "uncommitted",
    "unlocked",
    "unopened",
    "unpoisoned",
    "unread",
    "unseen",
    "wanted_unit",
    "wants_more",
    "whole_cluster",
    "within_allowed",
];

/// Constants that name no purpose.
const CONSTANTS: [&str; 61] = [
    "AGAIN",
    "ANSWER",
    "ANY",
    "BACKLOG",
    "BEAT",
    "BEGINS",
    "CALM",
    "DEED",
    "ECHO",
    "EVERY",
    "FLOOR",
    "FORM",
    "FULL",
    "HOLDERS",
    "ITS_OWN",
    "KEPT",
    "LARGEST",
    "LAST",
    "LASTS",
    "LEAVING",
    "LEFT_OUT",
    "LONG",
    "LONGEST",
    "LOOK",
    "LOOKS",
    "MOST",
    "NAMED",
    "NEWEST",
    "NEXT",
    "NOBODY",
    "OF_NUMBERS",
    "OF_REPLICA",
    "OF_SOURCE",
    "OF_THE_SERVICE",
    "OLDER",
    "OTHERS",
    "OUTAGE",
    "OWN",
    "PASSING",
    "PATIENCE",
    "PERSON",
    "PRETENDED",
    "PRIVATE",
    "QUIET",
    "READING",
    "REST",
    "SEALING",
    "SETTLES",
    "SHORTEST",
    "SOON",
    "SPENT",
    "STACK",
    "STORES",
    "TAG",
    "TAKEN",
    "TERM",
    "TOLD",
    "TRIES",
    "WEIGHT",
    "WRAPPED",
    "YOUNG",
];

/// Words for a report, a status, a read and completeness that are no names.
const VARIABLES: [&str; 9] =
    ["foretold", "glimpse", "look", "looks", "stand", "stands", "teller", "told", "whole"];

/// Fields that do not say what they hold.
const FIELDS: [&str; 37] = [
    "anew",
    "astray",
    "blamed",
    "brings",
    "catalog",
    "ceded",
    "complaint",
    "doubt",
    "dropped_at",
    "due_looks",
    "entitled",
    "foreseen",
    "foresight",
    "furthest",
    "gated",
    "glimpses",
    "goes_back",
    "hollow",
    "instead",
    "last_drop",
    "look_request",
    "look_requests",
    "looks_taken",
    "may_lose",
    "minds",
    "parked",
    "rejecting",
    "requests_look",
    "rolls",
    "sick",
    "surroundings",
    "suspect",
    "to_judge",
    "to_tell",
    "trouble",
    "underway",
    "untold",
];

/// Returns the names that a file declares with these keywords.
fn declared<'a>(code: &'a str, keywords: &'a [&str]) -> impl Iterator<Item = &'a str> {
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let pairs = words.clone().zip(words.skip(1));
    pairs.filter(move |(keyword, _)| keywords.contains(keyword)).map(|(_, name)| name)
}

/// Returns the fields that a file declares in its structs.
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

/// Returns the variables, parameters and fields that a file declares or sets.
fn variables(code: &str) -> Vec<&str> {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let (mut found, mut rest, mut before) = (Vec::new(), code, "");
    while let Some(start) = rest.find(is_letter) {
        let word = &rest[start..];
        let (word, after) = word.split_at(word.find(|c| !is_letter(c)).unwrap_or(word.len()));
        let is_typed = after.starts_with(':') && !after.starts_with("::");
        if is_typed || ["let", "mut"].contains(&before) {
            found.push(word);
        }
        (before, rest) = (word, after);
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
    let names = variables(&code).into_iter().chain(declared(&code, &["fn"]));
    let names = names.filter(|name| VARIABLES.contains(name));
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
    check("// struct Told\nstruct TollBooth { toll: u32 }", &[]);
    check("let shown = shown();", &[]);
    check("pub(super) struct A<'a> {\n    pub(in crate::engine) sick: &'a u8,\n}", &["sick"]);
    check("struct A {\n    healthy: u8,\n}\nlet a = A {\n    sick: 1,\n};", &[]);
    check("fn a(told: &str) {}", &["told"]);
    check("let look = |whole: u32| whole::new(told, whole);", &["look", "whole"]);
    check("let mut stands = 1;", &["stands"]);
    check("fn look() {}", &["look"]);
}

/// Predicates that their argument completes, as those of std are: `list.contains(item)`.
const VERB_PREDICATES: [&str; 10] = [
    "contains",
    "covers",
    "covers_text",
    "exists",
    "fits",
    "holds",
    "matches",
    "owns",
    "selects",
    "supersedes",
];

/// Returns the predicates that open with a verb in the third person other than `is` and `has`.
fn verb_predicates(text: &str) -> Vec<&str> {
    let (mut found, mut open) = (Vec::new(), None);
    for line in text.lines().map(str::trim) {
        if rust::is_function(line) {
            open = line.split("fn ").nth(1).and_then(|rest| rest.split(['(', '<']).next());
        }
        let is_predicate = line.ends_with(") -> bool {") || line.ends_with(") -> bool;");
        let is_verb = |name: &&str| {
            let first = name.split('_').next().unwrap_or_default();
            first.ends_with('s') && !first.ends_with("ss") && !["is", "has"].contains(&first)
        };
        found.extend(open.filter(|_| is_predicate).filter(is_verb));
        if line.ends_with(['{', ';', '}']) {
            open = None;
        }
    }
    found
}

#[test]
fn no_predicate_opens_with_another_verb_than_is_or_has() {
    let mut broken = Vec::new();
    for file in sources(&["src"]).iter().filter(|file| !file.is_test()) {
        let others = verb_predicates(&file.text).into_iter().filter(|name| !VERB_PREDICATES.contains(name));
        broken.extend(others.map(|name| format!("{}: {name}", file.path)));
    }
    none("a predicate is called is_, has_ or can_", broken);
}

#[test]
fn verbs_in_place_of_predicates_are_found() {
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(verb_predicates(text), expected, "{text}");
    }
    check("pub(super) fn allows(&self) -> bool {\n}", &["allows"]);
    check("fn needs_key<T>(\n    one: T,\n) -> bool {\n}", &["needs_key"]);
    check("fn wants(&self) -> bool;", &["wants"]);
    check("fn is_there(&self) -> bool {\n}\nfn has(&self) -> bool {\n}", &[]);
    check("fn names(by: impl Fn(&str) -> bool) -> Vec<u8> {\n}", &[]);
    check("fn names() -> u8 {\n    let a = || -> bool {\n", &[]);
    check("fn pass(&self) -> bool {\n}\nfn try_add(&self) -> bool {\n}", &[]);
}
