//! Secrets that are easily found again: each has its own text, so that one that is found shows how
//! it came out.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

/// A secret, and where it is put.
#[derive(Clone, Debug)]
pub(crate) struct Canary {
    /// The place.
    pub(crate) name: &'static str,
    /// The text that is in it and nowhere else, whatever is put before and behind it.
    core: String,
}

impl Canary {
    /// Makes the canary of a place.
    pub(crate) fn of(name: &'static str) -> Self {
        let digest = Sha256::digest(format!("canary of {name}"));
        Self { name, core: hex(&digest)[..20].to_owned() }
    }

    /// Takes a secret that others have made for a canary.
    pub(crate) fn that_is(name: &'static str, text: &str) -> Self {
        assert!(text.len() >= 16, "{text} is no secret that could be distinguished from other texts");
        Self { name, core: text.to_owned() }
    }

    /// Returns the secret: a single word, of which percent signs, JSON as Go writes it and HTML all
    /// make something else.
    pub(crate) fn text(&self) -> String {
        format!("canary+{}&{}", self.slug(), self.core)
    }

    /// Does as [`Self::text`], for where only letters and digits may be.
    pub(crate) fn plain(&self) -> String {
        format!("canary-{}-{}", self.slug(), self.core)
    }

    fn slug(&self) -> String {
        self.name
            .split(|c: char| !c.is_ascii_alphanumeric())
            .collect::<Vec<_>>()
            .join("-")
            .to_ascii_lowercase()
    }

    /// Returns the secret as it is in `data` of a Secret.
    pub(crate) fn base64(&self) -> String {
        STANDARD.encode(self.text())
    }

    /// Returns all that a text must not have in it, by how it came to be.
    fn forms(&self) -> Vec<(&'static str, String)> {
        // The core is in each text in which the secret is as it is, JSON-escaped, in HTML or
        // url-encoded.
        let mut forms =
            vec![("as it is", self.core.clone()), ("in hexadecimal digits", hex(self.core.as_bytes()))];
        let percent = self.core.bytes().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "%{byte:02x}");
            text
        });
        forms.push(("with each byte url-encoded", percent));
        let escaped = self.core.bytes().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "\\u{byte:04x}");
            text
        });
        forms.push(("with each character escaped", escaped));
        for (name, before) in
            [("in base64", 0), ("in base64, shifted by one", 1), ("in base64, shifted by two", 2)]
        {
            forms.push((name, middle(&self.core, before)));
        }
        for text in [self.text(), self.plain()] {
            let digest = Sha256::digest(&text);
            forms.push(("as its SHA-256", hex(&digest)));
            for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
                forms.push(("as its SHA-256 in base64", engine.encode(digest)));
            }
        }
        forms
    }

    /// Returns the first form in which it is in a text.
    fn shown_in(&self, text: &str) -> Option<&'static str> {
        let lower = text.to_ascii_lowercase();
        let is_in_text = |form: &str| text.contains(form) || lower.contains(form);
        self.forms().into_iter().find(|(_, form)| is_in_text(form)).map(|(name, _)| name)
    }
}

/// Returns the base64 of a text behind so many other bytes, whatever those and the following ones
/// are. The core has hexadecimal digits alone, of which both alphabets make the same.
fn middle(text: &str, before: usize) -> String {
    let encoded = STANDARD.encode([&vec![b' '; before], text.as_bytes()].concat());
    let begin = (before * 8).div_ceil(6);
    let end = (before + text.len()) * 8 / 6;
    encoded[begin..end].to_owned()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The texts of all places that people and programs can look at.
#[derive(Default)]
pub(crate) struct SearchedTexts(Vec<(String, String)>);

impl SearchedTexts {
    /// Adds one.
    pub(crate) fn add(&mut self, place: impl Into<String>, text: impl Into<String>) {
        self.0.push((place.into(), text.into()));
    }

    /// Returns all texts of a place. Several may have one name, as notifications do, which come in
    /// any order.
    #[track_caller]
    pub(crate) fn text(&self, place: &str) -> String {
        let found = self.0.iter().filter(|(name, _)| name == place).map(|(_, text)| text.as_str());
        let found: Vec<&str> = found.collect();
        assert!(!found.is_empty(), "nobody has looked at {place}");
        found.join("\n")
    }

    /// Returns the places of canaries, each with its form.
    pub(crate) fn leaks(&self, canaries: &[Canary]) -> Vec<String> {
        let mut leaks = Vec::new();
        for (place, text) in &self.0 {
            for canary in canaries {
                if let Some(form) = canary.shown_in(text) {
                    let line = text.lines().find(|line| canary.shown_in(line).is_some()).unwrap_or_default();
                    leaks.push(format!("{} shows {} {form}: {line}", place, canary.name));
                }
            }
        }
        leaks
    }

    /// Fails where any place shows a canary.
    #[track_caller]
    pub(crate) fn show_none_of(&self, canaries: &[Canary]) {
        let leaks = self.leaks(canaries);
        assert!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n"));
    }
}

// Without this the search could be blind, and everything would look clean.
#[test]
fn the_search_finds_each_form() {
    let canary = Canary::of("itself");
    let (text, other) = (canary.text(), Canary::of("another"));
    let digest = Sha256::digest(&text);
    let json = serde_json::to_string(&text).unwrap();
    let encoded = |engine: &dyn Fn(&str) -> String| {
        ["", "x", "xx"].map(|before| engine(&format!("{before}{text}tail")))
    };
    let mut shown = vec![
        format!("before {text} after"),
        text.to_uppercase().replace("CANARY", "canary"),
        json.replace('&', "\\u0026"),
        text.replace('&', "&amp;"),
        text.replace('+', "%2B").replace('&', "%26"),
        text.bytes().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat(),
        text.chars().map(|letter| format!("\\u{:04X}", u32::from(letter))).collect::<Vec<_>>().concat(),
        hex(text.as_bytes()),
        hex(text.as_bytes()).to_uppercase(),
        hex(&digest),
        STANDARD.encode(digest),
        URL_SAFE.encode(digest),
        String::from_utf8_lossy(&[&[0xff, 0], text.as_bytes(), &[0xfe]].concat()).into_owned(),
        format!("{:?}", canary.plain()),
    ];
    shown.extend(encoded(&|text| STANDARD.encode(text)));
    shown.extend(encoded(&|text| URL_SAFE_NO_PAD.encode(text)));
    for text in shown {
        let mut places = SearchedTexts::default();
        places.add("a place", format!("{{\"message\": \"{text}\"}}\n"));
        let leaks = places.leaks(&[other.clone(), canary.clone()]);
        assert!(leaks.len() == 1 && leaks[0].starts_with("a place shows itself "), "{text}: {leaks:?}");
    }
    let mut clean = SearchedTexts::default();
    clean.add("a place", format!("<masked> {} canary", other.text()));
    assert_eq!(clean.leaks(&[canary]), [""; 0]);
}

/// Searches texts in any order as a whole.
#[test]
fn a_place_is_all_texts_of_its_name() {
    let mut places = SearchedTexts::default();
    for (place, text) in [("a letter", "one"), ("another place", "two"), ("a letter", "three")] {
        places.add(place, text);
    }
    assert_eq!(places.text("a letter"), "one\nthree");
}
