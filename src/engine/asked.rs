//! What people ask of one object, as annotations that the command line writes, or kubectl.

use std::sync::Arc;

use jiff::Timestamp;

use crate::object::Hash;

/// Annotation with the last order: `<token> <verb> [argument]`.
pub const ORDER: &str = "rhumb.dev/order";

/// Annotation under which no new content is released: `<token> [reason]`.
pub const PAUSED: &str = "rhumb.dev/paused";

/// Annotation under which nothing is written for a time: `<token> until=<RFC 3339> <reason>`.
pub const HOLD: &str = "rhumb.dev/hold";

/// What people ask of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// What is to be done once.
    pub order: Option<GivenOrder>,
    /// That no new content is released.
    pub paused: Option<Paused>,
    /// That nothing is written for a time.
    pub hold: Option<Hold>,
}

/// Something that is to be done once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenOrder {
    /// What it is known by.
    pub token: Arc<str>,
    /// What.
    pub verb: Verb,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Go back to what an older revision says, by default to that before the one that is in force.
    Undo(Option<Arc<str>>),
    /// Try what was rejected again.
    Retry,
    /// Go back to what was there before a rollout that goes on, or has not begun.
    Abort,
    /// Go on from this step of the rollout of this content.
    Promote(Hash, u32),
    /// Take all steps of the rollout of this content at once.
    PromoteFull(Hash),
    /// A word that means nothing here.
    Unknown(Arc<str>),
}

/// That no new content is released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paused {
    /// What it is known by.
    pub token: Arc<str>,
    /// Why; empty where nobody says so.
    pub reason: Arc<str>,
}

/// That nothing is written for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// What it is known by.
    pub token: Arc<str>,
    /// Its end; none where it cannot be read, and then it does not count.
    pub until: Option<Timestamp>,
    /// Why; empty where nobody says so.
    pub reason: Arc<str>,
}

impl Asked {
    /// Reads the three annotations; none where none of them says anything.
    pub fn parse(order: Option<&str>, paused: Option<&str>, hold: Option<&str>) -> Option<Box<Self>> {
        let asked = Self {
            order: order.and_then(GivenOrder::parse),
            paused: paused.and_then(Paused::parse),
            hold: hold.and_then(Hold::parse),
        };
        (asked != Self::default()).then(|| Box::new(asked))
    }
}

impl GivenOrder {
    /// Reads `<token> <verb> [argument]`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let (token, verb) = (words.next()?, words.next()?);
        let verb = match verb {
            "undo" => Verb::Undo(words.next().map(Arc::from)),
            "retry" => Verb::Retry,
            "abort" => Verb::Abort,
            "promote" | "promote-full" => {
                let content = words.next().and_then(Hash::parse);
                let step = words.next().and_then(|step| step.parse().ok());
                match (verb, content, step) {
                    ("promote", Some(content), Some(step)) => Verb::Promote(content, step),
                    ("promote-full", Some(content), _) => Verb::PromoteFull(content),
                    _ => Verb::Unknown(verb.into()),
                }
            }
            other => Verb::Unknown(other.into()),
        };
        Some(Self { token: token.into(), verb })
    }
}

impl Paused {
    /// Reads `<token> [reason]`.
    pub fn parse(text: &str) -> Option<Self> {
        let (token, reason) = first_word(text)?;
        Some(Self { token: token.into(), reason: reason.into() })
    }
}

impl Hold {
    /// Reads `<token> until=<RFC 3339> <reason>`.
    pub fn parse(text: &str) -> Option<Self> {
        let (token, rest) = first_word(text)?;
        let (until, reason) = first_word(rest).unwrap_or_default();
        let until = until.strip_prefix("until=").and_then(|time| time.parse().ok());
        Some(Self { token: token.into(), until, reason: reason.into() })
    }
}

/// The first word of a text, and what follows it.
fn first_word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (!word.is_empty()).then(|| (word, rest.trim_start()))
}

/// What became of something that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// What it is known by.
    pub token: Arc<str>,
    /// In words.
    pub outcome: Arc<str>,
}

impl Acknowledged {
    /// Reads lines of `<token> <outcome in words>`.
    pub fn parse_all(text: &str) -> Vec<Self> {
        let line = |line| {
            let (token, outcome) = first_word(line)?;
            Some(Self { token: token.into(), outcome: outcome.into() })
        };
        text.lines().filter_map(line).collect()
    }

    /// The text that [`Acknowledged::parse_all`] reads.
    pub fn text(all: &[Self]) -> String {
        let line = |one: &Self| format!("{} {}\n", one.token, one.outcome.replace('\n', " "));
        all.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_as_they_are_written() {
        fn check(text: &str, expected: Option<(&str, Verb)>) {
            let read = GivenOrder::parse(text);
            assert_eq!(
                read,
                expected.map(|(token, verb)| GivenOrder { token: token.into(), verb }),
                "{text}"
            );
        }
        check("17-a0 undo", Some(("17-a0", Verb::Undo(None))));
        check("17-a0  undo abc ", Some(("17-a0", Verb::Undo(Some("abc".into())))));
        check("17-a0 retry", Some(("17-a0", Verb::Retry)));
        check("17-a0 abort", Some(("17-a0", Verb::Abort)));
        let content = Hash::of_bytes(b"web");
        check(&format!("17-a0 promote {content} 2"), Some(("17-a0", Verb::Promote(content, 2))));
        check(&format!("17-a0 promote-full {content}"), Some(("17-a0", Verb::PromoteFull(content))));
        // Which step of which content is meant must be said: the order stands for as long as nobody takes it away.
        check("17-a0 promote", Some(("17-a0", Verb::Unknown("promote".into()))));
        check("17-a0 destroy all", Some(("17-a0", Verb::Unknown("destroy".into()))));
        check("17-a0", None);
        check(" ", None);
    }

    #[test]
    fn states_are_read_as_they_are_written() {
        let paused = |reason: &str| Paused { token: "17-a0".into(), reason: reason.into() };
        assert_eq!(Paused::parse("17-a0"), Some(paused("")));
        assert_eq!(Paused::parse("17-a0 a long  weekend"), Some(paused("a long  weekend")));
        assert_eq!(Paused::parse(""), None);
        let hold = |until: Option<i64>, reason: &str| Hold {
            token: "17-a0".into(),
            until: until.map(|second| Timestamp::from_second(second).unwrap()),
            reason: reason.into(),
        };
        let read = Hold::parse("17-a0 until=1970-01-01T00:02:00Z looking for a leak");
        assert_eq!(read, Some(hold(Some(120), "looking for a leak")));
        assert_eq!(Hold::parse("17-a0 until=tomorrow x"), Some(hold(None, "x")));
        assert_eq!(Hold::parse("17-a0"), Some(hold(None, "")));
        assert_eq!(Asked::parse(None, Some(" "), None), None);
        assert_eq!(Asked::parse(None, Some("17-a0"), None).unwrap().paused, Some(paused("")));
    }

    #[test]
    fn acknowledgements_are_lines() {
        let line = |token: &str, outcome: &str| Acknowledged { token: token.into(), outcome: outcome.into() };
        let all = [line("1-a", "undone: all of it"), line("2-b", "x")];
        assert_eq!(Acknowledged::parse_all(&Acknowledged::text(&all)), all);
        assert_eq!(Acknowledged::text(&[line("1-a", "two\nlines")]), "1-a two lines\n");
        assert_eq!(Acknowledged::parse_all("\n  \n"), []);
    }
}
