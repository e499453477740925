//! The sentences of comments and of documents.

/// The most words of a sentence: more cannot be read aloud in one breath.
pub(crate) const MOST_WORDS_OF_A_SENTENCE: usize = 25;

/// A sentence, with the line that its paragraph begins in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sentence {
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// Returns the sentences of a text outside of headings and code, cells of tables included.
pub(crate) fn sentences(text: &str) -> Vec<Sentence> {
    let mut found = Vec::new();
    let mut open = String::new();
    let mut first = 1;
    let mut is_code = false;
    // The line behind the last one ends the last paragraph.
    for (number, line) in text.lines().chain([""]).enumerate() {
        let line = line.trim();
        is_code ^= line.starts_with("```");
        let is_prose =
            !is_code && !line.is_empty() && !["```", "|", "#"].iter().any(|mark| line.starts_with(mark));
        let item = item(line);
        if !is_prose || item.is_some() {
            split(&std::mem::take(&mut open), first, &mut found);
        }
        if is_prose {
            if open.is_empty() {
                first = number + 1;
            }
            open.push_str(item.unwrap_or(line));
            open.push(' ');
        } else if !is_code && line.starts_with('|') {
            line.trim_matches('|').split(" | ").for_each(|cell| split(cell, number + 1, &mut found));
        }
    }
    found
}

/// Returns the text of an item of a list, without its mark; none of any other line.
fn item(line: &str) -> Option<&str> {
    let numbered = || line.split_once(". ").filter(|(number, _)| number.parse::<u8>().is_ok());
    line.strip_prefix("- ").or_else(|| numbered().map(|(_, rest)| rest))
}

/// Splits a paragraph into its sentences. A colon or a semicolon ends none: the reader still waits.
fn split(paragraph: &str, line: usize, found: &mut Vec<Sentence>) {
    let mut text = String::new();
    let mut is_code = false;
    for word in paragraph.split_whitespace() {
        text.push_str(word);
        text.push(' ');
        is_code ^= word.matches('`').count() % 2 == 1;
        if !is_code && word.trim_end_matches(['*', ')', '"']).ends_with(['.', '?', '!']) {
            found.push(Sentence { line, text: std::mem::take(&mut text) });
        }
    }
    if !text.is_empty() {
        found.push(Sentence { line, text });
    }
}

/// Returns the number of words of a sentence; a piece of code is one.
pub(crate) fn words(sentence: &str) -> usize {
    let prose = sentence.split('`').step_by(2).collect::<Vec<_>>().join("x");
    prose.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

#[test]
fn sentences_are_distinguished() {
    fn check(text: &str, expected: &[(usize, &str)]) {
        let expected: Vec<Sentence> =
            expected.iter().map(|(line, text)| Sentence { line: *line, text: (*text).to_owned() }).collect();
        assert_eq!(sentences(text), expected, "{text}");
    }
    check("One, and\non. Two\n", &[(1, "One, and on. "), (1, "Two ")]);
    check("One: `a. b`. Two; three\n", &[(1, "One: `a. b`. "), (1, "Two; three ")]);
    check(
        "One `a!` is. (Two.) **Three.** Four\n",
        &[(1, "One `a!` is. "), (1, "(Two.) "), (1, "**Three.** "), (1, "Four ")],
    );
    check("- One\n- Two.\n\nThree\n", &[(1, "One "), (2, "Two. "), (4, "Three ")]);
    check("1. One\n   on\n2. Two\n", &[(1, "One on "), (3, "Two ")]);
    check("# Errors\n```\ncode\n```\nFails.\n", &[(5, "Fails. ")]);
    check("`a` is. One\n", &[(1, "`a` is. "), (1, "One ")]);
    check("a\n| One. Two | `a | b` |\n", &[(1, "a "), (2, "One. "), (2, "Two "), (2, "`a "), (2, "b` ")]);
    assert_eq!(words("Returns `a b c` of [`D`], or - none."), 6);
}
