//! The intents of people for one object: annotations that the command line or kubectl writes. They
//! only reduce what is done to that object. Anything that makes rhumb act is an order, which is
//! elsewhere.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::object::truncate;

/// The longest token in bytes: that of the command line has some 20.
pub(in crate::engine) const MAX_ORDER_TOKEN_BYTES: usize = 64;

/// The longest reason in bytes that is shown: it is written by whoever may annotate an object.
const MAX_PAUSE_REASON_BYTES: usize = 256;

/// The longest outcome in bytes: the inventory says some hundred of them beside all else.
const MAX_OUTCOME_BYTES: usize = 512;

/// The maximum number of acknowledgements that are read: more than the present orders, pauses and
/// holds, and those before.
const MAX_ACKNOWLEDGED: usize = 300;

/// The intents of people for one object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectIntents {
    /// The beginning of an order that is on the object, and is not obeyed there.
    pub misplaced: Option<Arc<str>>,
    /// The pause: no new content is released.
    pub paused: Option<PauseIntent>,
    /// The hold: nothing is written for a time.
    pub hold: Option<HoldIntent>,
}

/// A pause: no new content is released.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseIntent {
    /// Its identity.
    pub token: Arc<str>,
    /// The reason; empty where nobody gave one.
    pub reason: Arc<str>,
}

/// A hold: nothing is written for a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldIntent {
    /// Its identity.
    pub token: Arc<str>,
    /// Its end; none where it cannot be read, and then it does not count.
    pub until: Option<Timestamp>,
    /// The reason; empty where nobody gave one.
    pub reason: Arc<str>,
}

impl ObjectIntents {
    /// Reads the three annotations; none where none of them says anything.
    pub fn parse(order: Option<&str>, paused: Option<&str>, hold: Option<&str>) -> Option<Box<Self>> {
        let intents = Self {
            misplaced: order
                .map(str::trim)
                .filter(|text| !text.is_empty())
                .map(|text| truncate(text, MAX_ORDER_TOKEN_BYTES).into()),
            paused: paused.and_then(PauseIntent::parse),
            hold: hold.and_then(HoldIntent::parse),
        };
        (intents != Self::default()).then(|| Box::new(intents))
    }
}

impl PauseIntent {
    /// Reads `<token> [reason]`.
    pub fn parse(text: &str) -> Option<Self> {
        let (token, reason) = first_word(text)?;
        Some(Self {
            token: truncate(token, MAX_ORDER_TOKEN_BYTES).into(),
            reason: truncate(reason, MAX_PAUSE_REASON_BYTES).into(),
        })
    }
}

impl HoldIntent {
    /// Reads `<token> until=<RFC 3339> <reason>`.
    pub fn parse(text: &str) -> Option<Self> {
        let (token, rest) = first_word(text)?;
        let (until, reason) = first_word(rest).unwrap_or_default();
        let until = until.strip_prefix("until=").and_then(|time| time.parse().ok());
        let token = truncate(token, MAX_ORDER_TOKEN_BYTES).into();
        Some(Self { token, until, reason: truncate(reason, MAX_PAUSE_REASON_BYTES).into() })
    }
}

/// Returns the first word of a text, and what follows it.
fn first_word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (!word.is_empty()).then(|| (word, rest.trim_start()))
}

/// The acknowledgement of an order or intent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Acknowledgement {
    /// The identity of the order or intent.
    pub token: Arc<str>,
    /// The outcome, as a sentence.
    pub outcome: Arc<str>,
}

impl Acknowledgement {
    /// Creates one of bounded length, without what its line would lose: blanks at its ends, and line
    /// breaks.
    pub(crate) fn new(token: &Arc<str>, outcome: &str) -> Self {
        let outcome = outcome.replace('\n', " ");
        let bounded = truncate(outcome.trim(), MAX_OUTCOME_BYTES).trim_end();
        Self { token: token.clone(), outcome: bounded.into() }
    }

    /// Returns whether it is of a pause or a hold, whose token is written by whoever may annotate
    /// an object.
    pub(crate) fn is_of_state(&self) -> bool {
        let words = ["paused: ", "held: ", "not held: ", "not in effect: "];
        words.iter().any(|word| self.outcome.starts_with(word)) || self.is_over()
    }

    /// Returns whether it is of a pause or a hold that has ended.
    pub(crate) fn is_over(&self) -> bool {
        ["resumed: ", "released: "].iter().any(|word| self.outcome.starts_with(word))
    }

    /// Reads lines of `<token> <outcome in words>`: the newest, which are the last, and of each its
    /// beginning.
    pub(crate) fn parse_all(text: &str) -> Vec<Self> {
        let line = |line| {
            let (token, outcome) = first_word(line)?;
            Some(Self::new(&truncate(token, MAX_ORDER_TOKEN_BYTES).into(), outcome))
        };
        let mut all: Vec<Self> = text.lines().rev().filter_map(line).take(MAX_ACKNOWLEDGED).collect();
        all.reverse();
        all
    }

    /// Returns the text that [`Acknowledgement::parse_all`] reads.
    pub(crate) fn text(all: &[Self]) -> String {
        let line = |one: &Self| format!("{} {}\n", one.token, one.outcome.replace('\n', " "));
        all.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_as_they_are_written() {
        let paused = |reason: &str| PauseIntent { token: "17-a0".into(), reason: reason.into() };
        assert_eq!(PauseIntent::parse("17-a0"), Some(paused("")));
        assert_eq!(PauseIntent::parse("17-a0 a long  weekend"), Some(paused("a long  weekend")));
        assert_eq!(PauseIntent::parse(""), None);
        let hold = |until: Option<i64>, reason: &str| HoldIntent {
            token: "17-a0".into(),
            until: until.map(|second| Timestamp::from_second(second).unwrap()),
            reason: reason.into(),
        };
        let read = HoldIntent::parse("17-a0 until=1970-01-01T00:02:00Z looking for a leak");
        assert_eq!(read, Some(hold(Some(120), "looking for a leak")));
        assert_eq!(HoldIntent::parse("17-a0 until=tomorrow x"), Some(hold(None, "x")));
        assert_eq!(HoldIntent::parse("17-a0"), Some(hold(None, "")));
        assert_eq!(ObjectIntents::parse(None, Some(" "), None), None);
        assert_eq!(ObjectIntents::parse(None, Some("17-a0"), None).unwrap().paused, Some(paused("")));
    }

    #[test]
    fn what_is_written_on_an_object_is_kept_to_a_bound() {
        let long = "x".repeat(240_000);
        let intents = ObjectIntents::parse(
            Some(&format!("{long} undo")),
            Some(&format!("{long} {long}")),
            Some(&format!("{long} until=1970-01-01T00:02:00Z {long}")),
        );
        let intents = intents.unwrap();
        let (paused, hold) = (intents.paused.unwrap(), intents.hold.unwrap());
        assert_eq!(intents.misplaced.unwrap().len(), 64);
        assert_eq!((paused.token.len(), paused.reason.len()), (64, 256));
        assert_eq!((hold.token.len(), hold.reason.len(), hold.until.is_some()), (64, 256, true));
        assert_eq!(Acknowledgement::new(&"1-a".into(), &long).outcome.len(), 512);
    }

    #[test]
    fn an_acknowledgement_is_of_an_order_or_of_a_pause_or_hold_that_lasts_or_has_ended() {
        let check = |outcome: &str, is_of_state: bool, is_over: bool| {
            let one = Acknowledgement::new(&"1-a".into(), outcome);
            assert_eq!((one.is_of_state(), one.is_over()), (is_of_state, is_over), "{outcome}");
        };
        check("paused: ConfigMap shop/env", true, false);
        check("held: ConfigMap shop/env until tomorrow", true, false);
        check("not held: ConfigMap shop/env: until when cannot be read", true, false);
        check("not in effect: ConfigMap shop/env", true, false);
        check("resumed: ConfigMap shop/env", true, true);
        check("released: ConfigMap shop/env", true, true);
        check("undone: revision r2", false, false);
        check("", false, false);
    }

    #[test]
    fn acknowledgements_are_lines() {
        let line =
            |token: &str, outcome: &str| Acknowledgement { token: token.into(), outcome: outcome.into() };
        let all = [line("1-a", "undone: all of it"), line("2-b", "x")];
        assert_eq!(Acknowledgement::parse_all(&Acknowledgement::text(&all)), all);
        assert_eq!(Acknowledgement::text(&[line("1-a", "two\nlines")]), "1-a two lines\n");
        assert_eq!(Acknowledgement::parse_all("\n  \n"), []);
        // It reads back the same, wherever its words are cut.
        for outcome in [&*"a ".repeat(400), "two\nlines\r", " held: x\n", ""] {
            let made = Acknowledgement::new(&"1-a".into(), outcome);
            assert_eq!(
                Acknowledgement::parse_all(&Acknowledgement::text(std::slice::from_ref(&made))),
                [made]
            );
        }
    }
}
