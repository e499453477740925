//! The form of comments: short sentences that open with what they are about.

use crate::none;
use crate::tree::{FOLDERS, sources};

/// The most words of a sentence.
const MOST_WORDS_OF_A_SENTENCE: usize = 25;

/// Openings that keep the reader waiting for the subject, or leave it to be guessed.
const RELATIVE_OPENINGS: [&str; 6] = ["So many ", "Those ", "What ", "Whatever ", "Whether ", "Whoever "];

/// A sentence of a comment, with the line that its paragraph begins in.
#[derive(Debug, PartialEq, Eq)]
struct CommentSentence {
    line: usize,
    text: String,
}

/// Returns the text of a comment's line; none where the line is no comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.strip_prefix(['/', '!']).unwrap_or(text).trim())
}

/// Returns the sentences of the comments of a file, outside of tables, headings and code.
fn sentences(text: &str) -> Vec<CommentSentence> {
    let mut found = Vec::new();
    let mut open = String::new();
    let mut first = 1;
    let mut is_code = false;
    // The line behind the last one ends the last paragraph.
    for (number, line) in text.lines().chain([""]).enumerate() {
        let text = comment(line).unwrap_or_default();
        is_code ^= text.starts_with("```");
        let is_item = text.starts_with("- ");
        let is_prose = !is_code && !text.is_empty() && !text.starts_with(['`', '|', '#']);
        if !is_prose || is_item {
            split(&std::mem::take(&mut open), first, &mut found);
        }
        if is_prose {
            if open.is_empty() {
                first = number + 1;
            }
            open.push_str(text.trim_start_matches("- "));
            open.push(' ');
        }
    }
    found
}

/// Splits a paragraph into its sentences.
fn split(paragraph: &str, line: usize, found: &mut Vec<CommentSentence>) {
    let mut text = String::new();
    let mut is_code = false;
    for word in paragraph.split_whitespace() {
        text.push_str(word);
        text.push(' ');
        is_code ^= word.matches('`').count() % 2 == 1;
        if !is_code && word.trim_end_matches(['*', ')', '`', '"']).ends_with(['.', ':', ';', '?', '!']) {
            found.push(CommentSentence { line, text: std::mem::take(&mut text) });
        }
    }
    if !text.is_empty() {
        found.push(CommentSentence { line, text });
    }
}

/// Returns the number of words of a sentence; a piece of code is one.
fn words(sentence: &str) -> usize {
    let prose = sentence.split('`').step_by(2).collect::<Vec<_>>().join("x");
    prose.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

#[test]
fn sentences_of_comments_are_short() {
    let mut broken = Vec::new();
    for file in sources(&FOLDERS) {
        let long =
            sentences(&file.text).into_iter().filter(|one| words(&one.text) > MOST_WORDS_OF_A_SENTENCE);
        broken.extend(long.map(|one| format!("{}:{}: {}", file.path, one.line, one.text)));
    }
    none("a sentence of a comment has at most 25 words", broken);
}

#[test]
fn no_sentence_of_a_comment_opens_with_a_relative_clause() {
    let mut broken = Vec::new();
    for file in sources(&FOLDERS) {
        let relative = |one: &CommentSentence| {
            let is_question = one.text.trim_end().ends_with('?');
            !is_question && RELATIVE_OPENINGS.iter().any(|opening| one.text.starts_with(opening))
        };
        let found = sentences(&file.text).into_iter().filter(relative);
        broken.extend(found.map(|one| format!("{}:{}: {}", file.path, one.line, one.text)));
    }
    none("a sentence names its subject first", broken);
}

#[test]
fn sentences_are_told_apart() {
    fn check(text: &str, expected: &[(usize, &str)]) {
        let expected: Vec<CommentSentence> = expected
            .iter()
            .map(|(line, text)| CommentSentence { line: *line, text: (*text).to_owned() })
            .collect();
        assert_eq!(sentences(text), expected, "{text}");
    }
    check("fn a() {} // no\n", &[]);
    check("/// One, and\n/// on. Two\nfn a() {}\n", &[(1, "One, and on. "), (1, "Two ")]);
    check("fn a() {\n    // One: `a. b`.\n}\n", &[(2, "One: "), (2, "`a. b`. ")]);
    check("//! - One\n//! - Two.\n//!\n//! Three\n", &[(1, "One "), (2, "Two. "), (4, "Three ")]);
    check("/// | a | b |\n/// ```\n/// code\n/// ```\n/// # Errors\n/// Fails.\n", &[(6, "Fails. ")]);
    assert_eq!(words("Returns `a b c` of [`D`], or - none."), 6);
}
