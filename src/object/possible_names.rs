//! The names that objects may have of a root that is not rendered now.
//!
//! kustomize makes a name of texts that are in the files it reads. It puts parts before and behind,
//! or takes a part out of another text. So a name whose words are in none of these files is no name
//! of such an object. Any other name may be one.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ContentHash;
use super::serial::DIGEST_MARK;

/// The most words that are kept of one root, and the most bytes of them together.
const MAX_INDEXED_WORDS: usize = 100_000;
const MAX_INDEXED_BYTES: usize = 1 << 20;

/// Longer words are part of no name.
const MAX_WORD_BYTES: usize = 253;

/// The length of the hash that ends a generated name, and what is before it.
const HASH_SUFFIX_CHARS: usize = 10;

/// Texts by which a file may say a word that is not in it: escapes, encryption, bytes, and letters
/// at which another text is split.
const ENCODED_NAME_SIGNS: [&str; 6] = ["\\x", "\\u", "\\U", "ENC[", "!!binary", "delimiter"];

/// The names that objects of a root may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum PossibleNames {
    /// Nothing is known of them.
    #[default]
    Any,
    /// Each is made of these words.
    Words(Arc<NameWords>),
}

impl PossibleNames {
    /// Returns whether an object of the root may have this name.
    pub(crate) fn can_be_named(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Words(words) => words.can_form(name),
        }
    }
}

/// The form of any name in a trace.
const ANY_NAME_WORD: &str = "any";

/// A trace has a digest of the words. They may be of a Secret.
impl Serialize for PossibleNames {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Any => serializer.serialize_str(ANY_NAME_WORD),
            Self::Words(words) => serializer.serialize_str(&words.digest_text()),
        }
    }
}

/// Returns names that are known by their digest alone. Equal ones have equal digests.
impl<'de> Deserialize<'de> for PossibleNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == ANY_NAME_WORD {
            return Ok(Self::Any);
        }
        let bytes = text.len();
        let words = BTreeSet::from([text.into_boxed_str()]);
        Ok(Self::Words(Arc::new(NameWords { words, bytes })))
    }
}

/// The words of some files, in small letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NameWords {
    words: BTreeSet<Box<str>>,
    bytes: usize,
}

impl NameWords {
    /// Adds the words of a file. None where the file may say others, or where they are too many.
    #[must_use]
    pub(crate) fn with_text(mut self, bytes: &[u8]) -> Option<Self> {
        // Bytes that are no text end a word, as blanks do.
        let text = String::from_utf8_lossy(bytes);
        if ENCODED_NAME_SIGNS.iter().any(|hidden| text.contains(hidden)) {
            return None;
        }
        for word in words(&text.to_lowercase()) {
            if word.len() <= MAX_WORD_BYTES && !self.words.contains(word) {
                self.bytes += word.len();
                self.words.insert(word.into());
            }
        }
        (self.words.len() <= MAX_INDEXED_WORDS && self.bytes <= MAX_INDEXED_BYTES).then_some(self)
    }

    /// Returns the words, with a blank between two.
    pub(crate) fn to_text(&self) -> String {
        self.words.iter().map(|word| &**word).collect::<Vec<_>>().join(" ")
    }

    /// Returns the digest of the words, with its mark. No word has the mark, so that words out of a
    /// trace are known by it.
    fn digest_text(&self) -> String {
        match self.words.first().filter(|word| word.starts_with(DIGEST_MARK)) {
            Some(digest) => String::from(&**digest),
            None => format!("{DIGEST_MARK}{}", ContentHash::hash_bytes(self.to_text().as_bytes())),
        }
    }

    fn can_form(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        let generated = name.rsplit_once('-').filter(|(_, hash)| {
            hash.len() == HASH_SUFFIX_CHARS && hash.bytes().all(|letter| letter.is_ascii_alphanumeric())
        });
        [Some(name.as_str()), generated.map(|(name, _)| name)]
            .into_iter()
            .flatten()
            .any(|name| words(name).all(|word| self.can_join(word)))
    }

    /// Returns whether a word is some of these, one behind the other.
    fn can_join(&self, word: &str) -> bool {
        let mut ends = vec![true];
        ends.resize(word.len() + 1, false);
        for (start, _) in word.char_indices() {
            if !ends.get(start).is_some_and(|reached| *reached) {
                continue;
            }
            let rest = word.get(start..).unwrap_or_default();
            let behind = rest.char_indices().skip(1).map(|(length, _)| length).chain([rest.len()]);
            for length in behind {
                if rest.get(..length).is_some_and(|part| self.words.contains(part))
                    && let Some(end) = ends.get_mut(start + length)
                {
                    *end = true;
                }
            }
        }
        ends.last().is_some_and(|reached| *reached)
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// A root that is not rendered now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnrenderedRoot {
    /// The path inside the source of the file that makes its folder a root. The paths of its
    /// objects begin with it.
    pub path: Arc<str>,
    /// The names that its objects may have.
    pub names: PossibleNames,
}

/// Returns the folder of a root as it is shown, by the path of the file that makes it one.
pub(crate) fn root_folder(path: &str) -> &str {
    path.rsplit_once('/').map_or(".", |(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(texts: &[&str]) -> PossibleNames {
        let read =
            texts.iter().try_fold(NameWords::default(), |words, text| words.with_text(text.as_bytes()));
        read.map(Arc::new).map_or(PossibleNames::Any, PossibleNames::Words)
    }

    #[test]
    fn a_name_is_possible_where_its_words_are_in_the_files() {
        let check = |texts: &[&str], name: &str, expected: bool| {
            assert_eq!(names(texts).can_be_named(name), expected, "{texts:?}: {name}");
        };
        check(&["name: web"], "web", true);
        check(&["name: web"], "api", false);
        check(&["name: web"], "web-api", false);
        check(&["name: web-api"], "web", true);
        check(&["name: Web"], "web", true);
        check(&["name: web"], "WEB", true);
        // A prefix and a suffix, of several files too.
        check(&["namePrefix: prod-", "name: web", "nameSuffix: -2"], "prod-web-2", true);
        check(&["namePrefix: prod", "name: web"], "prodweb", true);
        check(&["namePrefix: prod", "name: web"], "prodwe", false);
        check(&["a aa", "b"], "aaab", true);
        check(&["a aa", "b"], "aaac", false);
        // A generated name ends with a hash, and a plain one may look so.
        check(&["name: settings"], "settings-5g88h79647", true);
        check(&["name: settings"], "settings-5g88h7964", false);
        check(&["name: settings-5g88h79647"], "settings-5g88h79647", true);
        check(&["name: other"], "settings-5g88h79647", false);
        // Names of roles have other letters.
        check(&["name: system:web"], "system:web", true);
        check(&["name: système"], "système", true);
        check(&["name: web"], "système", false);
        // The empty name has no word that could be missing.
        check(&[], "", true);
        check(&[], "web", false);
    }

    #[test]
    fn a_file_that_may_hide_a_name_makes_every_name_possible() {
        let check = |text: &str, expected: bool| {
            assert_eq!(names(&["name: web", text]).can_be_named("api"), expected, "{text}");
        };
        check("name: \"\\x61pi\"", true);
        check("name: \"\\u0061pi\"", true);
        check("name: ENC[AES256_GCM,data:x]", true);
        check("name: !!binary YXBp", true);
        check("options: {delimiter: x, index: 1}", true);
        check("command: \"a\\n\"", false);
        // Of a line that goes on in the next one, both parts are words.
        check("name: \"a\\\n  pi\"", true);
        // Where letters have two bytes, each is a word of its own.
        check("n\0a\0m\0e\0:\0 \0a\0p\0i\0", true);
        let many: Vec<String> = (0..=MAX_INDEXED_WORDS).map(|number| number.to_string()).collect();
        check(&many.join(" "), true);
    }

    proptest! {
        /// Checks that all that kustomize can make of the words is possible, and stays so when it
        /// is read again.
        #[test]
        fn what_is_made_of_the_words_is_possible(
            parts in prop::collection::vec("[a-z0-9]{1,4}", 1..6),
            others in prop::collection::vec("[a-z0-9]{1,6}", 0..6),
            joints in prop::collection::vec("[-.]?", 6),
            hash in "(-[a-z0-9]{10})?",
        ) {
            let name: String = parts.iter().zip(&joints).flat_map(|(part, joint)| [&**part, &**joint]).collect();
            let text = format!("{}: {}", others.join("\n"), parts.join("\n- "));
            let made = names(&[&text]);
            prop_assert!(made.can_be_named(&format!("{name}{hash}")), "{text}: {name}{hash}");
            let PossibleNames::Words(words) = &made else { return Err(TestCaseError::fail("none")) };
            prop_assert_eq!(names(&[&words.to_text()]), made);
        }
    }
}
