//! A fault at one place of a document: serde's own findings, put into words for people.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

use super::tree::ConfigNodeMark;
use crate::change::word_similarity;
use crate::object::DiagnosticCode;

/// The least similarity of a word to one that it may have been meant to be.
const MIN_SIMILARITY: f32 = 0.6;

/// One finding.
#[derive(Debug)]
pub(super) struct ConfigFault {
    /// The key or value at fault; none until the reader that noticed it adds it.
    pub(super) mark: Option<ConfigNodeMark>,
    /// Stable name.
    pub(super) code: DiagnosticCode,
    /// The fault.
    pub(super) message: String,
    /// The remedy.
    pub(super) hint: Option<String>,
    /// The key that is missing, if that is the fault.
    pub(super) missing: Option<&'static str>,
}

impl ConfigFault {
    /// Returns a finding without a place.
    pub(super) fn new(code: DiagnosticCode, message: impl Into<String>) -> Self {
        Self { mark: None, code, message: message.into(), hint: None, missing: None }
    }

    /// Adds the place, unless it is known more precisely already.
    #[must_use]
    pub(super) fn with_mark(mut self, mark: ConfigNodeMark) -> Self {
        self.mark.get_or_insert(mark);
        self
    }

    /// Adds what to do.
    #[must_use]
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Returns "did you mean …?", or the whole choice when nothing is near.
pub(super) fn suggestion(word: &str, known: &[&str]) -> String {
    match nearest_word(word, known) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("known here: {}", known.join(", ")),
    }
}

/// Returns the known word that is most similar to another, if one is near. Of equally similar words
/// it is the first in the alphabet.
fn nearest_word<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (word_similarity(word, candidate), *candidate))
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .max_by(|(one, first), (other, second)| one.total_cmp(other).then_with(|| second.cmp(first)))
        .map(|(_, candidate)| candidate)
}

/// Returns the value that was found, in YAML's words.
fn found_words(unexpected: Unexpected<'_>) -> String {
    match unexpected {
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(number) => number.to_string(),
        Unexpected::Signed(number) => number.to_string(),
        Unexpected::Float(number) => number.to_string(),
        Unexpected::Str(text) => format!("the text `{text}`"),
        Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a mapping".to_owned(),
        other => other.to_string(),
    }
}

/// Returns the expected type; serde names the integers by their Rust types.
fn expected_words(expected: &dyn Expected) -> String {
    match expected.to_string().as_str() {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0".to_owned(),
        "a string" | "path string" => "text".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a map" => "a mapping".to_owned(),
        other => other.to_owned(),
    }
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigFault {}

impl de::Error for ConfigFault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new("config-value", message.to_string())
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let wanted = expected_words(expected);
        let fault = Self::new("config-type", format!("expected {wanted}, found {}", found_words(unexpected)));
        match unexpected {
            Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) | Unexpected::Bool(_)
                if wanted == "text" =>
            {
                fault.hint(format!("write it in quotes: \"{}\"", found_words(unexpected)))
            }
            _ => fault,
        }
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(
            "config-value",
            format!("expected {}, found {}", expected_words(expected), found_words(unexpected)),
        )
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let message = format!("`{variant}` is none of {}", expected.join(", "));
        let fault = Self::new("config-value", message);
        match nearest_word(variant, expected) {
            Some(nearest) => fault.hint(format!("did you mean `{nearest}`?")),
            None => fault,
        }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new("config-unknown-key", format!("unknown key `{field}`")).hint(suggestion(field, expected))
    }

    fn missing_field(field: &'static str) -> Self {
        Self {
            missing: Some(field),
            ..Self::new("config-missing-key", format!("the key `{field}` is missing"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found() {
        fn check(word: &str, known: &[&str], expected: Option<&str>) {
            assert_eq!(nearest_word(word, known), expected, "{word}");
        }
        check("appel", &["ape", "apple", "peach", "puppy"], Some("apple"));
        check("appel", &["peach", "puppy", "ape"], Some("ape"));
        check("apple", &["applet", "apple", "apples"], Some("apple"));
        check("abx", &["abz", "aby"], Some("aby"));
        check("ab", &["bc"], None);
        check("", &["a"], None);
        check("a", &[], None);
    }
}
