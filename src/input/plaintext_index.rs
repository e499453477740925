//! The values that were opened for a render, and where a text has one of them.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::plaintext_layout::{distinctive_lines, go_number, plain_readings};

/// The bytes of the shortest value that is looked for. Shorter ones are guessed at once, and are in
/// every text by chance.
const MIN_VALUE: usize = 4;
/// A value of fewer bytes counts only as a word by itself. It is part of longer words by chance,
/// for example of the hash at the end of a generated name.
const MIN_PART: usize = 8;
/// The bytes in base64 that are looked for within a longer text in base64.
const MIN_BASE64_PART: usize = 9;
/// The start of a value that is searched for. The rest is compared where it is found, so that large
/// values need little memory.
const SEARCHED_BYTES: usize = 128;
/// The start of a value that is looked for in base64, which needs memory for each of its forms.
const MAX_ENCODED_BYTES: usize = 1536;
/// Forms with one start, of which a value has up to two: each is compared wherever that start is.
const MAX_VALUES_PER_START: usize = 64;
/// Values of one root. The search needs memory for each.
const MAX_VALUES: usize = 1 << 16;
/// Lines of long values of one root. Further ones are not looked for.
const MAX_INDEXED_LINES: usize = 1 << 14;

/// Bytes of values that are compared with texts, over all texts of one root: about a second. A text
/// that has only the start of a long value everywhere would take hours.
const MAX_COMPARED_BYTES: u64 = 4 << 30;

/// The values of one root are too many to be looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooManyValues;

/// The values that were opened, as texts show them.
pub(super) struct PlaintextIndex {
    search: AhoCorasick,
    forms: Vec<ValueForm>,
    /// The file of each value.
    files: Vec<Arc<str>>,
    /// Indicates for each value whether it is in the clear beside the encrypted files.
    known: Vec<bool>,
    /// The shorter values that look as if they had variables.
    short: HashSet<[u8; MIN_VALUE]>,
    /// The bytes that may still be compared.
    left: AtomicU64,
}

/// One way in which a text has a value.
struct ValueForm {
    value: usize,
    bytes: Zeroizing<Vec<u8>>,
    boundary: MatchBoundary,
}

impl ValueForm {
    /// Returns the part that is searched for.
    fn start(&self) -> &[u8] {
        self.bytes.get(..SEARCHED_BYTES).unwrap_or(&self.bytes)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchBoundary {
    /// Between other signs than letters and digits.
    Word,
    Anywhere,
}

/// Leaves the values out.
impl fmt::Debug for PlaintextIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlaintextIndex({} values)", self.files.len())
    }
}

impl PlaintextIndex {
    /// Returns the index of values, each with the file that it was encrypted in.
    ///
    /// # Errors
    /// Fails where there are too many.
    pub(super) fn new(values: &[(Arc<str>, Zeroizing<Vec<u8>>)]) -> Result<Self, TooManyValues> {
        let mut index = Self {
            search: empty_search()?,
            forms: Vec::new(),
            files: Vec::new(),
            known: Vec::new(),
            short: HashSet::new(),
            left: MAX_COMPARED_BYTES.into(),
        };
        let mut seen: HashSet<&[u8]> = HashSet::new();
        for (file, value) in values {
            let lines = value.split(|byte| *byte == b'\n').filter_map(variable);
            let lines = lines.filter(|_| value.contains(&b'\n'));
            for text in std::iter::once(value.as_slice()).chain(lines).map(<[u8]>::trim_ascii) {
                if text.len() >= MIN_VALUE && seen.insert(text) {
                    index.add(file, text)?;
                }
                index.short.extend(short_value(text).filter(|_| text.contains(&b'$')));
            }
        }
        index.add_lines(values, &seen);
        let mut alike: HashMap<&[u8], usize> = HashMap::new();
        for start in index.forms.iter().map(ValueForm::start) {
            let count = alike.entry(start).or_default();
            *count += 1;
            if *count > MAX_VALUES_PER_START {
                return Err(TooManyValues);
            }
        }
        let starts = index.forms.iter().map(ValueForm::start);
        index.search = AhoCorasick::new(starts).map_err(|_| TooManyValues)?;
        Ok(index)
    }

    fn add(&mut self, file: &Arc<str>, value: &[u8]) -> Result<(), TooManyValues> {
        if self.files.len() >= MAX_VALUES {
            return Err(TooManyValues);
        }
        let number = self.add_file(file);
        let forms = value_forms(value);
        self.forms.extend(forms.map(|(bytes, boundary)| ValueForm { value: number, bytes, boundary }));
        Ok(())
    }

    fn add_file(&mut self, file: &Arc<str>) -> usize {
        self.files.push(file.clone());
        self.known.push(false);
        self.files.len() - 1
    }

    /// Adds the lines of long values: one that is indented or taken apart is another text, and its
    /// lines are the same.
    fn add_lines(&mut self, values: &[(Arc<str>, Zeroizing<Vec<u8>>)], seen: &HashSet<&[u8]>) {
        let (mut lines, mut starts) = (HashSet::new(), HashSet::new());
        for (file, value) in values {
            for line in distinctive_lines(value).filter(|line| !seen.contains(line)) {
                if lines.len() >= MAX_INDEXED_LINES || !lines.insert(line) {
                    continue;
                }
                let number = self.add_file(file);
                for (mut bytes, boundary) in value_forms(line) {
                    bytes.truncate(SEARCHED_BYTES);
                    if starts.insert(Sha256::digest(&bytes)) {
                        self.forms.push(ValueForm { value: number, bytes, boundary });
                    }
                }
            }
        }
    }

    /// Notes a text that is in the clear in the repository: what it has is no secret.
    pub(super) fn add_clear(&mut self, text: &[u8]) {
        let mut known = std::mem::take(&mut self.known);
        self.mark(text, &mut known);
        // A file of other bytes, for example an archive, has no escapes.
        if std::str::from_utf8(text).is_ok() {
            for reading in plain_readings(text) {
                self.mark(&reading, &mut known);
            }
        }
        self.known = known;
    }

    fn mark(&self, text: &[u8], known: &mut [bool]) {
        for form in self.matches(text) {
            if let Some(known) = known.get_mut(form.value) {
                *known = true;
            }
        }
    }

    /// Returns whether texts were compared with values for too long. Then nothing that was not
    /// found is known not to be there.
    pub(super) fn is_exhausted(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    /// Takes the bytes of one comparison, and returns whether it may be made.
    fn take(&self, bytes: usize) -> bool {
        let taken = |left: u64| Some(left.saturating_sub(bytes as u64));
        let before = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken);
        before.is_ok_and(|before| before > bytes as u64)
    }

    /// Returns the file of a value that a text has; none where it has none, but such as are in the
    /// clear anyway. The caller asks too whether the index is exhausted.
    pub(super) fn find(&self, text: &[u8]) -> Option<&Arc<str>> {
        let hidden = |text: &[u8]| {
            let mut values = self.matches(text).map(|form| form.value);
            values.find(|value| self.known.get(*value) == Some(&false))
        };
        let found = hidden(text).or_else(|| plain_readings(text).iter().find_map(|text| hidden(text)));
        self.files.get(found?)
    }

    /// Returns whether a text is one of the shorter values that look as if they had variables.
    pub(super) fn is_short_value(&self, text: &[u8]) -> bool {
        short_value(text.trim_ascii()).is_some_and(|value| self.short.contains(&value))
    }

    /// Returns whether a text has such a value, or may have one.
    pub(super) fn can_contain(&self, text: &[u8]) -> bool {
        self.find(text).is_some() || self.is_exhausted()
    }

    fn matches<'i>(&'i self, text: &'i [u8]) -> impl Iterator<Item = &'i ValueForm> {
        let found = self.search.find_overlapping_iter(text).map(|found| {
            let form = self.forms.get(found.pattern().as_usize());
            (found, form.filter(|form| self.take(form.bytes.len())))
        });
        found.take_while(|_| !self.is_exhausted()).filter_map(|(found, form)| {
            let form = form?;
            let rest = text.get(found.start()..)?;
            let after = rest.strip_prefix(form.bytes.as_slice())?;
            let before = text.get(..found.start())?;
            let is_inside = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
            let is_word = !is_inside(before.last()) && !is_inside(after.first());
            (form.boundary == MatchBoundary::Anywhere || is_word).then_some(form)
        })
    }
}

/// Returns a value that is too short to be looked for, with its length in front.
fn short_value(value: &[u8]) -> Option<[u8; MIN_VALUE]> {
    let mut short = [0; MIN_VALUE];
    let (length, bytes) = short.split_first_mut()?;
    bytes.get_mut(..value.len())?.copy_from_slice(value);
    *length = u8::try_from(value.len()).ok()?;
    Some(short)
}

/// Returns the ways in which a text has a value: as it is, as a number, and in base64.
fn value_forms(value: &[u8]) -> impl Iterator<Item = (Zeroizing<Vec<u8>>, MatchBoundary)> {
    let boundary = if value.len() < MIN_PART { MatchBoundary::Word } else { MatchBoundary::Anywhere };
    let mut forms = vec![(value.to_vec(), boundary)];
    if let Some(number) = go_number(value) {
        forms.push((number.into_bytes(), MatchBoundary::Word));
    }
    if value.len() <= MAX_ENCODED_BYTES {
        let encoded = STANDARD.encode(value);
        forms.push((encoded.trim_end_matches('=').as_bytes().to_vec(), MatchBoundary::Word));
    }
    // Three bytes give four signs, so within a longer text the value begins at one of three places
    // of such a group.
    for skipped in 0..3 {
        let rest = value.get(skipped..value.len().min(MAX_ENCODED_BYTES)).unwrap_or_default();
        let groups = rest.get(..rest.len() / 3 * 3).unwrap_or_default();
        if groups.len() >= MIN_BASE64_PART {
            forms.push((STANDARD.encode(groups).into_bytes(), MatchBoundary::Anywhere));
        }
    }
    forms.into_iter().map(|(bytes, boundary)| (Zeroizing::new(bytes), boundary))
}

fn empty_search() -> Result<AhoCorasick, TooManyValues> {
    AhoCorasick::new([""; 0]).map_err(|_| TooManyValues)
}

/// Returns the value of a line of variables: a file that was encrypted as a whole may hold such.
fn variable(line: &[u8]) -> Option<&[u8]> {
    let at = line.iter().position(|byte| *byte == b'=')?;
    let (name, value) = line.split_at_checked(at)?;
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-".contains(byte);
    (!name.is_empty() && name.iter().all(is_name)).then(|| value.get(1..)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(values: &[&str]) -> PlaintextIndex {
        let values: Vec<_> = values
            .iter()
            .map(|value| (Arc::from("a.env"), Zeroizing::new(value.as_bytes().to_vec())))
            .collect();
        PlaintextIndex::new(&values).unwrap()
    }

    #[test]
    fn a_value_is_found_as_it_is_and_in_base64() {
        #[track_caller]
        fn check(value: &str, text: &str, expected: bool) {
            assert_eq!(index(&[value]).find(text.as_bytes()).is_some(), expected, "{value} in {text}");
        }
        check("hunter-and-more", "postgres://a:hunter-and-more@db/x", true);
        check("hunter-and-more\n", "xhunter-and-morex", true);
        check("hunter-and-more", "hunter-and-mor", false);
        check("hunter", "postgres://a:hunter@db/x", true);
        check("hunter", "web-config-xhunterx9k", false);
        check("5432", "5432", true);
        check("5432", "15432", false);
        check("543", "543", false);
        check("", "anything", false);
        check("MODE=x\nPASSWORD=hunter-and-more\n", "a hunter-and-more", true);
        check("a b=hunter-and-more\nc", "hunter-and-more", false);
        for before in ["", "a", "ab", "user:"] {
            let encoded = STANDARD.encode(format!("{before}hunter-and-more@host"));
            check("hunter-and-more", &format!("x {encoded} x"), true);
        }
        check("hunter", &STANDARD.encode("hunter"), true);
        check("hunters", &STANDARD.encode("hunters"), true);
        let long = "0123456789".repeat(20);
        check(&long, &format!("a{long}"), true);
        check(&long, &long[..199], false);
    }

    #[test]
    fn a_short_value_that_looks_like_a_variable_is_known_by_itself_alone() {
        let found = index(&["$$", "${a", " $ \n", "a$b=\nMODE=$1\n", "abc", "${abc}"]);
        for (text, expected) in [
            ("$$", true),
            ("$$\n", true),
            ("${a", true),
            ("$", true),
            ("$1", true),
            ("$2", false),
            ("$$$", false),
            ("x $$ y", false),
            ("abc", false),
            ("${abc}", false),
            ("", false),
        ] {
            assert_eq!(found.is_short_value(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn a_value_is_found_in_another_layout() {
        #[track_caller]
        fn check(value: &str, text: &str, expected: bool) {
            assert_eq!(index(&[value]).find(text.as_bytes()).is_some(), expected, "{value} in {text}");
        }
        let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\naGk0ejYhunterandmore\n\
                   -----END PRIVATE KEY-----\n";
        for text in [
            key.replace('\n', "\n    "),
            key.replace('\n', ""),
            key.replace('\n', "\\n"),
            format!("{{\"a\":{}}}", serde_json::to_string(&key).unwrap()),
            "aGk0ejYhunterandmore".to_owned(),
            STANDARD.encode(key.replace('\n', "\n    ")),
        ] {
            check(key, &text, true);
        }
        check(key, "-----BEGIN PRIVATE KEY-----\nothers\n-----END PRIVATE KEY-----\n", false);
        let signs = "a\"b\\c<d>&e f/g=h'";
        for text in [
            r#"x "a\"b\\c<d>&e f/g=h'""#,
            r#"x "a\"b\\c\u003cd\u003e\u0026e f/g=h'""#,
            r#"x "{\"v\":\"a\\\"b\\\\c\\u003cd\\u003e\\u0026e f/g=h'\"}""#,
            "u:a%22b%5Cc%3Cd%3E%26e+f%2Fg%3Dh%27@h",
            "u:a%22b%5Cc%3Cd%3E%26e%20f%2Fg%3Dh%27@h",
            "<b>a&#34;b\\c&lt;d&gt;&amp;e f/g=h&#39;</b>",
            "'a\"b\\c<d>&e f/g=h'''",
            "a\"b\\c<d>&e\n   f/g=h'",
        ] {
            check(signs, text, true);
        }
        check("987000000000", "n: \"9.87e+11\"", true);
        check("987000000000", "n: \"9.87e+110\"", false);
    }

    #[test]
    fn texts_are_compared_with_long_values_up_to_a_bound() {
        let value = "a".repeat(1 << 20) + "b";
        let mut found = index(&[&value, "hunter-and-more"]);
        assert!(found.find(b"x hunter-and-more").is_some() && !found.is_exhausted());
        let text = "a".repeat(1 << 20);
        assert!(found.find(text.as_bytes()).is_none() && found.is_exhausted());
        found.add_clear(b"hunter-and-more");
        assert!(!found.known.contains(&true));
    }

    #[test]
    fn a_line_in_the_clear_is_no_secret() {
        let mut found = index(&["password: hunter-2\nlevel: very-chatty\n"]);
        found.add_clear(b"a: \"level: very\\u002dchatty\"\n");
        assert!(found.find(b"  level: very-chatty\n  mode: a").is_none());
        assert!(found.find(b"  password: hunter-2\n  mode: a").is_some());
    }

    #[test]
    fn what_is_in_the_clear_is_no_secret() {
        let mut found = index(&["production", "hunter-and-more"]);
        found.add_clear(b"namespace: production\n");
        assert!(found.find(b"production").is_none());
        assert_eq!(found.find(b"production hunter-and-more").map(|file| &**file), Some("a.env"));
        assert_eq!(format!("{found:?}"), "PlaintextIndex(2 values)");
    }

    #[test]
    fn more_values_than_can_be_looked_for_are_refused() {
        let values = |count: usize, start: &str| -> Vec<_> {
            let value = |number| Zeroizing::new(format!("{start}{number:06}").into_bytes());
            (0..count).map(|number| (Arc::from("a"), value(number))).collect()
        };
        let parts: Vec<String> = (0..SEARCHED_BYTES).map(|number| number.to_string()).collect();
        let start = parts.concat();
        assert!(PlaintextIndex::new(&values(MAX_VALUES + 1, "")).is_err());
        assert!(PlaintextIndex::new(&values(MAX_VALUES_PER_START + 1, &start)).is_err());
        let found = PlaintextIndex::new(&values(MAX_VALUES_PER_START / 2, &start)).unwrap();
        assert!(found.find(format!("{start}000031").as_bytes()).is_some());
        assert!(found.find(format!("{start}000032").as_bytes()).is_none());
        // Lines that begin alike are cut, and refuse nothing.
        let lines: Vec<String> = (0..2000).map(|number| format!("{start}{number:06}")).collect();
        let text = (Arc::from("a"), Zeroizing::new(lines.join("\n").into_bytes()));
        assert!(PlaintextIndex::new(&[text]).is_ok());
        // Copies of one value count once.
        let copies: Vec<_> = (0..=MAX_VALUES).map(|_| values(1, &start).remove(0)).collect();
        assert!(PlaintextIndex::new(&copies).is_ok());
    }
}
