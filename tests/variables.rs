//! Expressions with variables, compared with the library of Flux that puts them in.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, also in its own functions")]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use controlplane::Expanders;
use rhumb::testing::input::variables::{VariableTable, expand};
use serde_json::{Value, json};

/// The variables of all cases. None of the others is set.
const VARIABLES: [(&str, &str); 9] = [
    ("NAME", "shop"),
    ("PATH_", "/base/bozo/ideas/thoughts.for.today"),
    ("MIXED", "abcABC123ABCabc"),
    ("EMPTY", ""),
    ("NUMBER", "3"),
    ("DOTS", "bash.string.txt"),
    ("QUOTE", "\"a\" $b ${NAME} 'c'"),
    ("CLASS", "a]b[c*d?e\\f"),
    ("_u1", "under"),
];

/// The outcome of a text.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Text(String),
    Unset,
    Refused,
}

fn ours(text: &str) -> Outcome {
    match expand(text, &VariableTable::open(VARIABLES)) {
        Err(_) => Outcome::Refused,
        Ok((_, unset)) if !unset.is_empty() => Outcome::Unset,
        Ok((text, _)) => Outcome::Text(text),
    }
}

/// Expands each text by the library of Flux in strict mode, its panics among its refusals.
fn theirs(texts: &[String]) -> Vec<Outcome> {
    let variables: BTreeMap<&str, &str> = VARIABLES.into();
    let cases: Value = texts.iter().map(|text| json!({ "text": text, "variables": variables })).collect();
    let mut child = Command::new(Expanders::find().unwrap().envsubst)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(cases.to_string().as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    let outcomes: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(outcomes.len(), texts.len());
    let read = |outcome: &Value| match outcome["error"].as_str().unwrap() {
        "" => Outcome::Text(outcome["text"].as_str().unwrap().to_owned()),
        error if error.contains("variable not set") => Outcome::Unset,
        _ => Outcome::Refused,
    };
    outcomes.iter().map(read).collect()
}

/// A line for each expression that both read the same way.
const EXPRESSIONS: &str = include_str!("variables/expressions.txt");

#[test]
fn expressions_give_what_flux_makes_of_them() {
    let texts: Vec<String> = EXPRESSIONS.lines().map(|line| line.replace("\\n", "\n")).collect();
    assert!(texts.len() >= 60, "{}", texts.len());
    let mut kinds = [0; 3];
    for (text, expected) in texts.iter().zip(theirs(&texts)) {
        kinds[match expected {
            Outcome::Text(_) => 0,
            Outcome::Unset => 1,
            Outcome::Refused => 2,
        }] += 1;
        assert_eq!(ours(text), expected, "{text}");
    }
    assert!(kinds.iter().all(|count| *count >= 10), "{kinds:?}");
}

/// Reads every difference that the module's documentation names, with both readings.
#[test]
fn each_difference_from_flux_is_a_known_one() {
    let text = |text: &str| Outcome::Text(text.to_owned());
    let cases = [
        // Flux takes both for `:-`.
        ("${UNSET:?say so}", Outcome::Refused, text("say so")),
        ("${UNSET:+other}", Outcome::Refused, text("other")),
        ("${NAME:+other}", Outcome::Refused, text("shop")),
        // Flux ignores it.
        ("${NAME,^}", Outcome::Refused, text("shop")),
        ("${NAME^,}", Outcome::Refused, text("shop")),
        // A default that is not needed is not evaluated.
        ("${NAME:=${UNSET}}", text("shop"), Outcome::Unset),
        // A number that overflows.
        ("${NAME:1:9223372036854775807}", text("hop"), Outcome::Refused),
    ];
    let texts: Vec<String> = cases.iter().map(|(text, ..)| (*text).to_owned()).collect();
    for ((text, expected, of_flux), theirs) in cases.into_iter().zip(theirs(&texts)) {
        assert_ne!(expected, of_flux, "{text}");
        assert_eq!(theirs, of_flux, "{text}");
        assert_eq!(ours(text), expected, "{text}");
    }
}

/// Reads texts of the characters that mean something, in any order.
#[test]
fn any_text_is_read_as_flux_reads_it() {
    const PARTS: [&str; 32] = [
        "${", "${", "${NAME", "${MIXED", "${EMPTY", "${UNSET", "${DOTS", "${CLASS", "${#", "}", "}", "}",
        ":", "=", ":=", ":-", "-", "#", "%", "/", "/", "^", ",", "*", "?", "[", "]", "\\", "$", "a", "1",
        ".",
    ];
    // A generator of Lehmer's: the same texts in each run.
    let mut state: u64 = 20_260_101;
    let mut next = |below: usize| {
        state = state * 48_271 % 0x7fff_ffff;
        usize::try_from(state).unwrap() % below
    };
    let texts: Vec<String> = (0..20_000)
        .map(|_| {
            let count = 1 + next(7);
            let parts: String = (0..count).map(|_| PARTS[next(PARTS.len())]).collect();
            let opened = ["", "${NAME", "${MIXED", "${DOTS", "${CLASS"][next(5)];
            format!("{opened}{parts}}}")
        })
        .collect();
    let mut expanded = 0;
    for (text, of_flux) in texts.iter().zip(theirs(&texts)) {
        let ours = ours(text);
        // The known differences; each has its case above.
        if [":?", ":+", ",^", "^,"].iter().any(|operator| text.contains(operator)) {
            continue;
        }
        if of_flux == Outcome::Unset && text.matches("${").count() > 1 && matches!(ours, Outcome::Text(_)) {
            continue;
        }
        expanded += usize::from(matches!(&ours, Outcome::Text(out) if out != text));
        assert_eq!(ours, of_flux, "{text}");
    }
    assert!(expanded > 1000, "{expanded}");
}
