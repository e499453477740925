//! The second of the two renders that are compared, at another time. A field that shows a time
//! differs then for certain, and not only where a second begins between the two.
//!
//! Templates ask for the time by the word `now`. It is replaced in the files that helm gets for
//! that render alone. Where helm prints the replacement itself, it was a text and no call.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use zeroize::Zeroizing;

use super::archive::{is_chart_archive, rewrite_archive};
use super::closure::{ChartClosure, ChartValues};

/// The call in the place of `now`: it is 39 years ago, and has no quotes, so it fits into any text.
/// The year, month, day, weekday, hour, minute, second and their parts are all other ones.
const SHIFTED_NOW: &str = "((now).Add -1234596690123456789)";
/// The function in the place of `ago`, which has the same argument and never the same answer.
const SHIFTED_AGO: &str = "htmlDate";
/// Bytes of all that comes out of the archives of one tree. Further ones stay as they are.
const MAX_UNPACKED_TREE_BYTES: u64 = 256 << 20;

/// Files of a render's tree that have another text for now.
pub(super) struct ShiftedTree(Vec<(PathBuf, Zeroizing<Vec<u8>>)>);

/// The parts of a text in which functions are called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextForm {
    /// A template: texts in quotes are none.
    Template,
    /// Values, which templates may render: an action is in quotes itself, and ends at its braces.
    Values,
}

impl ShiftedTree {
    /// Writes the templates and values of a tree for another time.
    ///
    /// # Errors
    /// Fails where they cannot be read or written.
    pub(super) fn write(tree: &Path, chart: &ChartClosure) -> io::Result<Self> {
        let (mut shifted, mut unpackable) = (Self(Vec::new()), MAX_UNPACKED_TREE_BYTES);
        for entry in walkdir::WalkDir::new(tree) {
            let entry = entry?;
            let path = entry.path();
            let Some(name) = path.strip_prefix(tree).ok().and_then(Path::to_str) else { continue };
            let is_archive = is_chart_archive(name);
            let form = text_form(name, chart);
            if !entry.file_type().is_file() || !is_archive && form.is_none() {
                continue;
            }
            let bytes = Zeroizing::new(fs::read(path)?);
            let other = if is_archive {
                // helm itself says what is wrong with one that cannot be read.
                let rewrite = |name: &str, bytes: &[u8]| shifted_file(bytes, text_form(name, chart)?);
                rewrite_archive(&bytes, &mut unpackable, rewrite).ok().flatten()
            } else {
                form.and_then(|form| shifted_file(&bytes, form)).map(String::into_bytes)
            };
            if let Some(other) = other.map(Zeroizing::new) {
                shifted.0.push((path.to_owned(), bytes));
                if let Err(error) = fs::write(path, &other) {
                    shifted.restore()?;
                    return Err(error);
                }
            }
        }
        Ok(shifted)
    }

    /// Returns whether no file has another text.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts the files back as they were.
    ///
    /// # Errors
    /// Fails where one cannot be written.
    pub(super) fn restore(self) -> io::Result<()> {
        self.0.iter().try_for_each(|(path, bytes)| fs::write(path, bytes))
    }
}

/// Returns a chart whose values in no file are those for another time; none where they are the
/// same.
pub(super) fn shifted_values(chart: &ChartClosure) -> Option<ChartClosure> {
    let mut is_other = false;
    let values = chart.values.iter().map(|values| match values {
        ChartValues::Inline(text) => match shift_times(text, TextForm::Values) {
            Some(text) => {
                is_other = true;
                ChartValues::Inline(text.into())
            }
            None => values.clone(),
        },
        ChartValues::File(_) => values.clone(),
    });
    let values: Vec<_> = values.collect();
    is_other.then(|| ChartClosure { values, ..chart.clone() })
}

/// Takes the other time out of texts that were not rendered.
pub(super) fn restore_texts(value: &mut Value) {
    match value {
        Value::String(text) if text.contains(SHIFTED_NOW) => *text = text.replace(SHIFTED_NOW, "now"),
        Value::Array(items) => items.iter_mut().for_each(restore_texts),
        Value::Object(members) => members.values_mut().for_each(restore_texts),
        _ => {}
    }
}

/// Returns how functions are called in a file; none where it is no text that helm renders.
fn text_form(name: &str, chart: &ChartClosure) -> Option<TextForm> {
    let is_given = |values: &ChartValues| matches!(values, ChartValues::File(path) if **path == *name);
    if name.contains("templates/") {
        Some(TextForm::Template)
    } else if name.ends_with("values.yaml") || chart.values.iter().any(is_given) {
        Some(TextForm::Values)
    } else {
        None
    }
}

fn shifted_file(bytes: &[u8], form: TextForm) -> Option<String> {
    shift_times(std::str::from_utf8(bytes).ok()?, form)
}

/// Returns a text with other times in its actions; none where it asks for none.
fn shift_times(text: &str, form: TextForm) -> Option<String> {
    let out = String::with_capacity(text.len());
    let mut copy = ActionCopy { out, form, is_other: false, endless: BTreeMap::new() };
    let mut rest = text;
    while let Some((before, action)) = rest.split_once("{{") {
        copy.out.push_str(before);
        copy.out.push_str("{{");
        rest = copy.copy(action);
    }
    copy.out.push_str(rest);
    copy.is_other.then_some(copy.out)
}

/// The copy of a text, action by action.
struct ActionCopy {
    out: String,
    form: TextForm,
    is_other: bool,
    /// The bytes that were left of the text where the search for the end of a quote ended in vain,
    /// by the quote.
    endless: BTreeMap<char, usize>,
}

impl ActionCopy {
    /// Copies an action up to its end, and returns what follows.
    fn copy<'t>(&mut self, action: &'t str) -> &'t str {
        let mut rest = action;
        if action.trim_start_matches(['-', ' ', '\t', '\n']).starts_with("/*") {
            let end = action.find("*/").unwrap_or(action.len());
            return self.push(action, end);
        }
        while let Some(letter) = rest.chars().next() {
            if rest.starts_with("}}") {
                break;
            }
            rest = match letter {
                '"' | '`' | '\'' if self.form == TextForm::Template => {
                    let end = self.quoted_length(rest, letter).unwrap_or(1);
                    self.push(rest, end)
                }
                _ if is_part(letter) => self.word(rest),
                _ => self.push(rest, letter.len_utf8()),
            };
        }
        rest
    }

    /// Returns the length of a text in quotes; none where they do not end.
    ///
    /// A quote within what was searched in vain is behind a backslash there. From it on the search
    /// would see the same, so it is not made again: a long line may have a million of them.
    fn quoted_length(&mut self, text: &str, quote: char) -> Option<usize> {
        if self.endless.get(&quote).is_some_and(|left| text.len() > *left) {
            return None;
        }
        match quoted_length(text, quote) {
            Ok(length) => Some(length),
            Err(searched) => {
                self.endless.insert(quote, text.len().saturating_sub(searched));
                None
            }
        }
    }

    fn push<'t>(&mut self, text: &'t str, length: usize) -> &'t str {
        let (copied, rest) = text.split_at_checked(length).unwrap_or((text, ""));
        self.out.push_str(copied);
        rest
    }

    /// Copies a name: that of a function has no sign before it, and a method behind it.
    fn word<'t>(&mut self, text: &'t str) -> &'t str {
        let end = text.find(|letter| !is_part(letter)).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let (name, method) = word.split_at(word.find('.').unwrap_or(word.len()));
        let other = match name {
            "now" => SHIFTED_NOW,
            "ago" if self.form == TextForm::Template && method.is_empty() => SHIFTED_AGO,
            _ => name,
        };
        self.is_other |= other != name;
        self.out.push_str(other);
        self.out.push_str(method);
        rest
    }
}

fn is_part(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '.' | '$')
}

/// Returns the length of a text in quotes.
///
/// # Errors
/// Fails with the length that was searched, where they do not end.
fn quoted_length(text: &str, quote: char) -> Result<usize, usize> {
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' if quote != '`' => {
                letters.next();
            }
            '\n' if quote != '`' => return Err(at),
            _ if letter == quote => return Ok(at + letter.len_utf8()),
            _ => {}
        }
    }
    Err(text.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::input::helm::archive::write_archive;

    #[test]
    fn a_time_is_another_one_where_it_is_asked_for() {
        #[track_caller]
        fn check(form: TextForm, text: &str, expected: Option<&str>) {
            let expected = expected.map(|expected| expected.replace("NOW", SHIFTED_NOW));
            assert_eq!(shift_times(text, form), expected, "{text}");
        }
        use TextForm::{Template, Values};
        check(Template, "a: {{ now | date \"now\" }} now", Some("a: {{ NOW | date \"now\" }} now"));
        check(Template, "{{now}}{{- now -}}", Some("{{NOW}}{{- NOW -}}"));
        check(Template, "{{ now.Unix }}{{ (now).Year }}", Some("{{ NOW.Unix }}{{ (NOW).Year }}"));
        check(Template, "{{ .x | ago }}", Some("{{ .x | htmlDate }}"));
        check(Template, "{{ f \"}} \\\"\" now }}", Some("{{ f \"}} \\\"\" NOW }}"));
        check(Template, "{{ it's now }}", Some("{{ it's NOW }}"));
        for text in [
            "now",
            "{{ .now }}{{ $now }}{{ .Values.now }}{{ now1 }}{{ known }}",
            "{{/* now */}}{{- /* now */ -}}",
            "{{`{{ now }}`}}",
            "{{ include \"now\" . }}",
            "{{",
            "{{ \"",
        ] {
            check(Template, text, None);
        }
        check(
            Values,
            "a: \"{{ now | date \\\"06\\\" }}\" # now",
            Some("a: \"{{ NOW | date \\\"06\\\" }}\" # now"),
        );
        check(Values, "a: '{{ ago .x }}'", None);
    }

    // A search at each quote for its end would take hours.
    #[test]
    fn quotes_that_do_not_end_are_searched_once() {
        let check = |text: &str| {
            let expected = text.replace("now", SHIFTED_NOW);
            assert!(shift_times(text, TextForm::Template) == Some(expected), "{} bytes", text.len());
        };
        let escaped = "\\\"".repeat(500_000);
        check(&format!("{{{{ \"{escaped} now }}}}"));
        check(&format!("{}{{{{ now }}}}", "{{\\\"}}".repeat(200_000)));
        // One on another line is searched again.
        check("{{ \"\\\"\n }}{{ f \"}}\" now }}");
    }

    #[test]
    fn an_archive_is_unpacked_where_helm_takes_it_for_a_chart() {
        let folder = tempfile::tempdir().unwrap();
        let template = ("b/templates/a.yaml".to_owned(), b"a: {{ now }}\n".as_slice());
        let archive = write_archive([template].into_iter()).unwrap();
        let check = |path: &str, expected: bool| {
            let file = folder.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &archive).unwrap();
            let shifted = ShiftedTree::write(folder.path(), &ChartClosure::default()).unwrap();
            assert_eq!(!shifted.is_empty(), expected, "{path}");
            fs::remove_file(&file).unwrap();
        };
        check("charts/b-1.0.0.tgz", true);
        check("web/charts/c/charts/b.tgz", true);
        check("b-1.0.0.tgz", false);
        check("web/charts/_b-1.0.0.tgz", false);
        check("web/charts/.b-1.0.0.tgz", false);
        check("web/files/b-1.0.0.tgz", false);
    }

    #[test]
    fn a_tree_is_put_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let text = "a: {{ now }}\n";
        for path in ["web/templates/a.yaml", "web/values.yaml", "prod.yaml", "web/files/a.yaml", "web/a.tgz"]
        {
            put(path, text);
        }
        let chart =
            ChartClosure { values: vec![ChartValues::File("prod.yaml".into())], ..ChartClosure::default() };
        let shifted = ShiftedTree::write(folder.path(), &chart).unwrap();
        let read = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap();
        let other = text.replace("now", SHIFTED_NOW);
        assert_eq!(["web/templates/a.yaml", "web/values.yaml", "prod.yaml"].map(read), [&*other; 3]);
        assert_eq!(["web/files/a.yaml", "web/a.tgz"].map(read), [text; 2]);
        assert!(!shifted.is_empty());
        shifted.restore().unwrap();
        assert_eq!(["web/templates/a.yaml", "web/values.yaml", "prod.yaml"].map(read), [text; 3]);
        let mut value = json!({"a": [format!("x {{{{ {SHIFTED_NOW} }}}}")]});
        restore_texts(&mut value);
        assert_eq!(value, json!({"a": ["x {{ now }}"]}));
    }
}
