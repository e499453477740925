//! The form of comments: short sentences that open with what they are about.

use crate::none;
use crate::prose::{MOST_WORDS_OF_A_SENTENCE, Sentence, sentences, words};
use crate::tree::{FOLDERS, sources};

/// Openings that keep the reader waiting for the subject, or leave it to be guessed.
const RELATIVE_OPENINGS: [&str; 6] = ["So many ", "Those ", "What ", "Whatever ", "Whether ", "Whoever "];

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

#[test]
fn sentences_of_comments_are_short() {
    let mut broken = Vec::new();
    for file in sources(&FOLDERS) {
        let long = comment_sentences(&file.text)
            .into_iter()
            .filter(|one| words(&one.text) > MOST_WORDS_OF_A_SENTENCE);
        broken.extend(long.map(|one| format!("{}:{}: {}", file.path, one.line, one.text)));
    }
    none("a sentence of a comment has at most 25 words", broken);
}

#[test]
fn no_sentence_of_a_comment_opens_with_a_relative_clause() {
    let mut broken = Vec::new();
    for file in sources(&FOLDERS) {
        let relative = |one: &Sentence| {
            let is_question = one.text.trim_end().ends_with('?');
            !is_question && RELATIVE_OPENINGS.iter().any(|opening| one.text.starts_with(opening))
        };
        let found = comment_sentences(&file.text).into_iter().filter(relative);
        broken.extend(found.map(|one| format!("{}:{}: {}", file.path, one.line, one.text)));
    }
    none("a sentence names its subject first", broken);
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
