//! The form of comments: short sentences that open with what they are about.

use std::path::Path;

use crate::prose::{MOST_WORDS_OF_A_SENTENCE, Sentence, sentences, words};
use crate::tree::{FOLDERS, Source, files, read, sources};
use crate::{none, rust};

/// Openings that keep the reader waiting for the subject, or leave it to be guessed.
const RELATIVE_OPENINGS: [&str; 8] =
    ["So many ", "Those ", "What ", "Whatever ", "Whether ", "Which ", "Who ", "Whoever "];

/// Files and folders whose comments begin with `#`: units, manifests, settings and scripts.
const PLACES_OF_HASH_COMMENTS: [&str; 8] =
    [".cargo", ".ci", "Cargo.toml", "deny.toml", "dist/deb", "examples", "justfile", "systemd"];

/// Sources whose strings are texts for people: descriptions of keys, and parts of man pages.
const FILES_WITH_TEXTS: [&str; 2] = ["src/cli/generate/manual.rs", "src/config/schema.rs"];

/// First words that end as a verb in the third person does, and are none.
const NO_VERBS: [&str; 48] = [
    "Always",
    "Anchors",
    "As",
    "Attacks",
    "Budgets",
    "Bytes",
    "Cells",
    "Characters",
    "Comments",
    "Contents",
    "Decisions",
    "Deletions",
    "Events",
    "Facts",
    "Faults",
    "Files",
    "Findings",
    "Flags",
    "Images",
    "Is",
    "Items",
    "Its",
    "Jobs",
    "Kubernetes",
    "Labels",
    "Letters",
    "Levels",
    "Lines",
    "Manifests",
    "Milliseconds",
    "Nodes",
    "Nulls",
    "Objects",
    "Pods",
    "Positions",
    "Rights",
    "Roots",
    "Rules",
    "Seconds",
    "Secrets",
    "Sources",
    "Texts",
    "This",
    "Thousands",
    "Trees",
    "Values",
    "Versions",
    "Workloads",
];

/// Verbs that a noun follows by `of`. Any other word before it is taken for a noun.
const VERBS_BEFORE_OF: [&str; 4] = ["Asks", "Notifies", "Says", "Warns"];

/// Returns the text of a comment's line; none where the line is no comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.strip_prefix(['/', '!']).unwrap_or(text).trim())
}

/// Returns the sentences of the comments of a file.
fn comment_sentences(text: &str) -> Vec<Sentence> {
    let comments: Vec<&str> = text.lines().map(|line| comment(line).unwrap_or_default()).collect();
    sentences(&comments.join("\n"))
}

/// Returns the text of a comment's line that begins with `#`; none of code that is shown in it.
fn hash_comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix('#')?;
    let is_code = text.starts_with(['!', '#', '[']) || text.starts_with("  ");
    (!is_code).then(|| text.trim())
}

/// Returns the text of a line of YAML or JSON that describes something to people.
fn description(line: &str) -> Option<&str> {
    let (key, text) = line.split_once(": ")?;
    let is_text = ["description", "summary"].contains(&key.trim_matches([' ', '"', '-']));
    is_text.then(|| text.trim_matches([' ', '"', '\'', ',']))
}

/// Returns the sentences of the comments and descriptions of a unit, a manifest or a script.
fn hash_comment_sentences(text: &str) -> Vec<Sentence> {
    let comments: Vec<&str> = text.lines().map(|line| hash_comment(line).unwrap_or_default()).collect();
    let mut found = sentences(&comments.join("\n"));
    for (number, line) in text.lines().enumerate() {
        let described = sentences(description(line).unwrap_or_default()).into_iter();
        found.extend(described.map(|one| Sentence { line: number + 1, ..one }));
    }
    found
}

/// Returns every sentence that explains code or settings, with its file.
fn explanations() -> Vec<(String, Sentence)> {
    let mut found = Vec::new();
    for file in sources(&FOLDERS) {
        found.extend(comment_sentences(&file.text).into_iter().map(|one| (file.path.clone(), one)));
    }
    let has_hashes = |file: &Source| {
        let extension = Path::new(&file.path).extension().and_then(|extension| extension.to_str());
        !matches!(extension, Some("rs" | "md"))
    };
    for file in files(&PLACES_OF_HASH_COMMENTS).into_iter().filter(has_hashes) {
        found.extend(hash_comment_sentences(&file.text).into_iter().map(|one| (file.path.clone(), one)));
    }
    found
}

/// Returns whether a sentence keeps the reader waiting for its subject; a question may.
fn is_relative(sentence: &str) -> bool {
    let is_question = sentence.trim_end().ends_with('?');
    !is_question && RELATIVE_OPENINGS.iter().any(|opening| sentence.starts_with(opening))
}

#[test]
fn sentences_of_comments_are_short() {
    let long = explanations().into_iter().filter(|(_, one)| words(&one.text) > MOST_WORDS_OF_A_SENTENCE);
    let broken = long.map(|(path, one)| format!("{path}:{}: {}", one.line, one.text)).collect();
    none("a sentence of a comment has at most 25 words", broken);
}

#[test]
fn no_sentence_of_a_comment_opens_with_a_relative_clause() {
    let relative = explanations().into_iter().filter(|(_, one)| is_relative(&one.text));
    let broken = relative.map(|(path, one)| format!("{path}:{}: {}", one.line, one.text)).collect();
    none("a sentence names its subject first", broken);
}

#[test]
fn no_text_for_people_opens_with_a_relative_clause() {
    let mut broken = Vec::new();
    for path in FILES_WITH_TEXTS {
        let texts = rust::strings(&read(path));
        let relative = texts.iter().flat_map(|text| sentences(text)).filter(|one| is_relative(&one.text));
        broken.extend(relative.map(|one| format!("{path}: {}", one.text)));
    }
    none("a text names its subject first", broken);
}

/// Returns the first lines of the docs of functions, each with its number.
fn function_summaries(text: &str) -> Vec<(usize, &str)> {
    let (mut found, mut summary, mut is_attribute) = (Vec::new(), None, false);
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(doc) = line.strip_prefix("///") {
            summary = summary.or(Some((number + 1, doc.trim())));
        } else if is_attribute || line.starts_with("#[") {
            is_attribute = !line.ends_with(']');
        } else if !line.starts_with("//") {
            found.extend(summary.take().filter(|_| rust::is_function(line)));
        }
    }
    found
}

/// Returns whether a summary opens with a verb in the third person, as its form shows.
fn opens_with_a_verb(summary: &str) -> bool {
    let mut words = summary.split(' ');
    let first = words.next().unwrap_or_default().trim_end_matches(['.', ',', ':', ';']);
    let is_noun = words.next() == Some("of") && !VERBS_BEFORE_OF.contains(&first);
    let is_capital = first.starts_with(|c: char| c.is_ascii_uppercase());
    is_capital && first.ends_with('s') && !first.ends_with("ss") && !is_noun && !NO_VERBS.contains(&first)
}

#[test]
fn docs_of_functions_open_with_a_verb() {
    let mut broken = Vec::new();
    for file in sources(&FOLDERS) {
        let summaries = function_summaries(&file.text).into_iter();
        let nouns = summaries.filter(|(_, summary)| !opens_with_a_verb(summary));
        broken.extend(nouns.map(|(line, summary)| format!("{}:{line}: {summary}", file.path)));
    }
    none("a function's docs say first what it does: \"Returns the pods\"", broken);
}

#[test]
fn verbs_are_distinguished_from_nouns() {
    fn check(text: &str, expected: &[(usize, &str)]) {
        let mut found = function_summaries(text);
        found.retain(|(_, summary)| !opens_with_a_verb(summary));
        assert_eq!(found, expected, "{text}");
    }
    check("/// Returns the pods.\n/// The others stay.\nfn pods() {}\n", &[]);
    check("/// Reads, and waits.\n///\n/// # Errors\n    pub(in crate::a) const fn read() {}\n", &[]);
    check("/// Warns of a pod.\nasync fn warn() {}\n", &[]);
    check("/// The pods.\npub(crate) async fn pods() {}\n", &[(1, "The pods.")]);
    check("/// Names of pods.\n#[test]\n// All.\nfn names() {}\n", &[(1, "Names of pods.")]);
    check("/// Pods, by name.\n#[allow(\n    a\n)]\npub fn pods() {}\n", &[(1, "Pods, by name.")]);
    check("/// Addresses a pod.\nfn a() {}\n/// Process of a pod.\nfn b() {}\n", &[(3, "Process of a pod.")]);
    check("/// A pod.\nstruct Pod;\n/// The name.\nname: fn(),\n/// One.\nconst ONE: u8 = 1;\n", &[]);
    check("fn a() {\n    // A comment.\n}\n", &[]);
}

#[test]
fn comments_are_distinguished_from_code() {
    fn check(text: &str, expected: &[(usize, &str)]) {
        let expected: Vec<Sentence> =
            expected.iter().map(|(line, text)| Sentence { line: *line, text: (*text).to_owned() }).collect();
        assert_eq!(comment_sentences(text), expected, "{text}");
    }
    check("fn a() {} // no\n", &[]);
    check("/// One, and\n/// on. Two\nfn a() {}\n", &[(1, "One, and on. "), (1, "Two ")]);
    check("fn a() {\n    // One.\n}\n", &[(2, "One. ")]);
    check("//! One\n//!\n//! Two\n", &[(1, "One "), (3, "Two ")]);
}

#[test]
fn comments_with_hashes_are_distinguished_from_settings() {
    fn check(text: &str, expected: &[(usize, &str)]) {
        let expected: Vec<Sentence> =
            expected.iter().map(|(line, text)| Sentence { line: *line, text: (*text).to_owned() }).collect();
        assert_eq!(hash_comment_sentences(text), expected, "{text}");
    }
    check("#!/bin/sh\n# One, and\n# on. Two\nrun # no\n", &[(2, "One, and on. "), (2, "Two ")]);
    check("a: 1\n  # One:\n#   run it\n# Two.\n", &[(2, "One: "), (4, "Two. ")]);
    check("description: 'One. Two'\n", &[(1, "One. "), (1, "Two ")]);
    check("a: {\n  \"description\": \"One.\",\n", &[(2, "One. ")]);
    check("- summary: One\n  description: Two\n", &[(1, "One "), (2, "Two ")]);
    check("a: What is no description\n", &[]);
    assert!(is_relative("What is shown. ") && is_relative("Which are shown "));
    assert!(!is_relative("What is shown? ") && !is_relative("Shows what is there. "));
}
