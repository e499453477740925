//! Values of a kustomization and those of a file as one, as kustomize merges them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::times::written_time;
use crate::input::kustomize::{ValuesMerge, sanitize_text};
use crate::manifest::{
    EntryOrigin, PlacedEntry, PlacedNode, PlacedValue, ScalarStyle, TextPosition, plain_value,
    read_first_document_own_first,
};

/// The key of a directive in a mapping, and its words.
const PATCH_DIRECTIVE_KEY: &str = "$patch";

/// The reason for which values cannot become one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ValuesFault {
    /// The file is no YAML, or no mapping.
    #[error("the file of values is no mapping")]
    NoMapping,
    /// Two values under one key are of different forms.
    #[error("{0} is a mapping, a list or neither in one place, and another of them in the other")]
    Form(String),
    /// A directive has a word that there is not.
    #[error("{0}: the directive $patch must be delete, replace or merge")]
    Directive(String),
}

/// Returns the values of a kustomization and of a file as one.
///
/// # Errors
/// Fails where kustomize would not merge them.
pub(super) fn merge_values(inline: &Value, file: &[u8], merge: ValuesMerge) -> Result<Value, ValuesFault> {
    let mut inline = inline.clone();
    let merged = match merge {
        ValuesMerge::Replace => return Ok(inline),
        ValuesMerge::Override => {
            let file = file_values(file, &mut inline, merge)?;
            walk(Some(file), Some(&inline), &mut String::new())?
        }
        ValuesMerge::Merge => {
            let file = file_values(file, &mut inline, merge)?;
            walk(Some(inline), Some(&file), &mut String::new())?
        }
    };
    Ok(merged.unwrap_or_else(|| Value::Object(Map::new())))
}

/// Reads the values of a file as kustomize reads them for a merge. Old truth values, for example
/// `yes`, are texts to it, and dates without quotes are times.
///
/// An alias is the value of no key to it: the key is gone, also in the kustomization. So is `<<`
/// with an alias, while a list of aliases is merged. A key of the mapping itself wins over a merged
/// one.
fn file_values(bytes: &[u8], inline: &mut Value, merge: ValuesMerge) -> Result<Value, ValuesFault> {
    let file = read_first_document_own_first(&Arc::from(""), bytes);
    let text = String::from_utf8_lossy(bytes);
    let mut reading = ValuesFileReading { words: PlacedWords::of(&text), merge, at: String::new() };
    match file.documents.first() {
        Some(root) if matches!(root.node, PlacedNode::Mapping(_)) => {
            reading.mapping(root, inline.as_object_mut())
        }
        None if file.diagnostics.is_empty() => Ok(Value::Object(Map::new())),
        _ => Err(ValuesFault::NoMapping),
    }
}

/// The reading of a file for a merge.
struct ValuesFileReading<'a> {
    words: PlacedWords<'a>,
    merge: ValuesMerge,
    /// The path of the mapping that is read.
    at: String,
}

impl ValuesFileReading<'_> {
    /// Reads a mapping that is in no list, with the values of the kustomization at the same place.
    fn mapping(
        &mut self,
        value: &PlacedValue,
        inline: Option<&mut Map<String, Value>>,
    ) -> Result<Value, ValuesFault> {
        let mut inline = inline.filter(|inline| !inline.contains_key(PATCH_DIRECTIVE_KEY));
        let mut out = Map::new();
        for entry in value.entries() {
            let key = key_text(entry, &self.words);
            match entry.origin {
                EntryOrigin::Own => {}
                EntryOrigin::MergedAlias => continue,
                EntryOrigin::MergedValue => {
                    if !self.has_own_key(inline.as_deref_mut(), &key) {
                        out.insert(key, to_plain_value(&entry.value, &self.words));
                    }
                    continue;
                }
            }
            let length = push_key(&mut self.at, &key);
            if self.words.at(entry.value.position).starts_with('*') {
                let own = inline.as_deref_mut().and_then(|inline| inline.remove(&key));
                if self.merge == ValuesMerge::Merge && own.is_some_and(|own| !own.is_null()) {
                    return Err(ValuesFault::Form(shown_path(&self.at)));
                }
            } else if self.has_value(&entry.value) {
                let read = if let PlacedNode::Mapping(_) = entry.value.node {
                    let own = inline.as_deref_mut().and_then(|inline| inline.get_mut(&key));
                    self.mapping(&entry.value, own.and_then(Value::as_object_mut))?
                } else {
                    to_plain_value(&entry.value, &self.words)
                };
                out.insert(key, read);
            }
            self.at.truncate(length);
        }
        Ok(Value::Object(out))
    }

    /// Returns whether a key of the kustomization hides one that is merged into a mapping of the
    /// file. It becomes one of the mapping itself. A null above the file only takes itself away.
    fn has_own_key(&self, inline: Option<&mut Map<String, Value>>, key: &str) -> bool {
        let Some(inline) = inline else { return false };
        if self.merge == ValuesMerge::Override && inline.get(key).is_some_and(Value::is_null) {
            inline.remove(key);
        }
        inline.contains_key(key)
    }

    /// Returns whether something is there. A null without a word is nothing where it is only below.
    fn has_value(&self, value: &PlacedValue) -> bool {
        self.merge == ValuesMerge::Merge
            || value.node != PlacedNode::Scalar(Value::Null)
            || matches!(self.words.at(value.target), "null" | "Null" | "NULL" | "~")
    }
}

fn to_plain_value(value: &PlacedValue, words: &PlacedWords<'_>) -> Value {
    match &value.node {
        PlacedNode::Scalar(Value::Bool(truth)) if value.style == ScalarStyle::Plain => {
            old_boolean(words.at(value.target)).map_or(Value::Bool(*truth), Value::from)
        }
        PlacedNode::Scalar(Value::String(text)) if value.style == ScalarStyle::Plain => {
            Value::String(written_time(text).unwrap_or_else(|| text.clone()))
        }
        PlacedNode::Scalar(scalar) => scalar.clone(),
        PlacedNode::List(items) => items.iter().map(|item| to_plain_value(item, words)).collect(),
        PlacedNode::Mapping(entries) => {
            let entry_of =
                |entry: &PlacedEntry| (key_text(entry, words), to_plain_value(&entry.value, words));
            entries.iter().map(entry_of).collect()
        }
    }
}

/// Returns a key as it is written: `y` and `0x10` are texts to kustomize where they are keys.
fn key_text(entry: &PlacedEntry, words: &PlacedWords<'_>) -> String {
    let word = words.at(entry.position);
    let word = word.split_once(':').map_or(word, |(word, _)| word);
    let resolved = match plain_value(word) {
        Some(Value::Bool(truth)) => truth.to_string(),
        Some(Value::Number(number)) => number.to_string(),
        _ => return entry.key.clone(),
    };
    // A key that was merged in may have the place of another one.
    if resolved == entry.key { word.to_owned() } else { entry.key.clone() }
}

/// The letters of a line after which its bytes are found anew.
const LINE_BLOCK_CHARS: usize = 64;

/// The words of a text by their places.
struct PlacedWords<'a> {
    lines: Vec<&'a str>,
    /// The bytes at which the blocks of long lines begin. One line may have all words, and they are
    /// asked for in any order.
    blocks: RefCell<HashMap<usize, Vec<usize>>>,
}

impl<'a> PlacedWords<'a> {
    fn of(text: &'a str) -> Self {
        Self { lines: text.lines().collect(), blocks: RefCell::default() }
    }

    /// Returns the word at a place.
    fn at(&self, position: TextPosition) -> &'a str {
        let (line, column) = (position.line as usize, position.column as usize);
        let place = line.checked_sub(1).zip(column.checked_sub(1));
        let text = place.and_then(|(line, column)| self.text_from(line, column)).unwrap_or_default();
        text.split([' ', '\t', ',', '}', ']', '#']).next().unwrap_or_default()
    }

    /// Returns a line from a column on; both count from 0.
    fn text_from(&self, line: usize, column: usize) -> Option<&'a str> {
        let text = *self.lines.get(line)?;
        let text = if column < LINE_BLOCK_CHARS {
            text
        } else {
            let mut blocks = self.blocks.borrow_mut();
            let starts = blocks.entry(line).or_insert_with(|| {
                text.char_indices().step_by(LINE_BLOCK_CHARS).map(|(start, _)| start).collect()
            });
            text.get(*starts.get(column / LINE_BLOCK_CHARS)?..)?
        };
        let (start, _) = text.char_indices().nth(column % LINE_BLOCK_CHARS)?;
        text.get(start..)
    }
}

fn old_boolean(word: &str) -> Option<&str> {
    let is_known = matches!(word, "true" | "True" | "TRUE" | "false" | "False" | "FALSE");
    let is_word = !word.is_empty() && word.chars().all(|letter| letter.is_ascii_alphabetic());
    (is_word && !is_known).then_some(word)
}

/// Returns a value with the changes of another one; none where nothing is left of it.
fn walk(below: Option<Value>, above: Option<&Value>, at: &mut String) -> Result<Option<Value>, ValuesFault> {
    let form = |value: &Value| match value {
        Value::Object(_) => 0,
        Value::Array(_) => 1,
        _ => 2,
    };
    match (below, above) {
        (below, None) => Ok(below),
        // A null takes away what is there, and adds nothing where nothing is.
        (_, Some(Value::Null)) => Ok(None),
        (None | Some(Value::Null), Some(above)) => remove_directives(above, at),
        (Some(below), Some(above)) if form(&below) != form(above) => Err(ValuesFault::Form(shown_path(at))),
        (Some(Value::Object(below)), Some(Value::Object(above))) => match directive(above, at)? {
            Directive::Delete => Ok(None),
            Directive::Replace => remove_entry_directives(above, at).map(Some),
            Directive::Merge => {
                let mut out = Map::new();
                let added =
                    above.iter().filter(|(key, _)| !below.contains_key(*key) && *key != PATCH_DIRECTIVE_KEY);
                let added: Vec<_> = added.map(|(key, value)| (key.clone(), None, Some(value))).collect();
                let kept = below.into_iter().map(|(key, value)| {
                    let other = above.get(&key).filter(|_| key != PATCH_DIRECTIVE_KEY);
                    (key, Some(value), other)
                });
                for (key, below, other) in kept.chain(added) {
                    let length = push_key(at, &key);
                    if let Some(value) = walk(below, other, at)? {
                        out.insert(key, value);
                    }
                    at.truncate(length);
                }
                Ok(Some(Value::Object(out)))
            }
        },
        (Some(_), Some(above)) => Ok(Some(above.clone())),
    }
}

/// Returns a value as it is where nothing was: without nulls, and without directives.
fn remove_directives(value: &Value, at: &mut String) -> Result<Option<Value>, ValuesFault> {
    match value {
        Value::Null => Ok(None),
        Value::Object(entries) => match directive(entries, at)? {
            Directive::Delete => Ok(None),
            Directive::Merge | Directive::Replace => remove_entry_directives(entries, at).map(Some),
        },
        value => Ok(Some(value.clone())),
    }
}

fn remove_entry_directives(entries: &Map<String, Value>, at: &mut String) -> Result<Value, ValuesFault> {
    let mut out = Map::new();
    for (key, value) in entries.iter().filter(|(key, _)| *key != PATCH_DIRECTIVE_KEY) {
        let length = push_key(at, key);
        if let Some(value) = remove_directives(value, at)? {
            out.insert(key.clone(), value);
        }
        at.truncate(length);
    }
    Ok(Value::Object(out))
}

enum Directive {
    Merge,
    Replace,
    Delete,
}

fn directive(entries: &Map<String, Value>, at: &str) -> Result<Directive, ValuesFault> {
    match entries.get(PATCH_DIRECTIVE_KEY).map(Value::as_str) {
        None | Some(Some("merge")) => Ok(Directive::Merge),
        Some(Some("replace")) => Ok(Directive::Replace),
        Some(Some("delete")) => Ok(Directive::Delete),
        Some(_) => Err(ValuesFault::Directive(shown_path(at))),
    }
}

/// Adds a key to a path, and returns the length of the path before.
fn push_key(at: &mut String, key: &str) -> usize {
    let length = at.len();
    at.push('/');
    at.push_str(key);
    length
}

fn shown_path(at: &str) -> String {
    if at.is_empty() { "it".to_owned() } else { sanitize_text(at) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(inline: Value, file: &str, merge: ValuesMerge, expected: Value) {
        assert_eq!(
            merge_values(&inline, file.as_bytes(), merge).unwrap(),
            expected,
            "{inline} {file} {merge:?}"
        );
    }

    #[test]
    fn values_of_the_kustomization_win_or_those_of_the_file_or_the_file_does_not_count() {
        let (inline, file) = (json!({"a": {"b": 1, "c": [1]}, "d": 2}), "a: {b: 3, c: [2, 3], e: 4}\nf: 5\n");
        check(
            inline.clone(),
            file,
            ValuesMerge::Override,
            json!({"a": {"b": 1, "c": [1], "e": 4}, "d": 2, "f": 5}),
        );
        check(
            inline.clone(),
            file,
            ValuesMerge::Merge,
            json!({"a": {"b": 3, "c": [2, 3], "e": 4}, "d": 2, "f": 5}),
        );
        check(inline.clone(), file, ValuesMerge::Replace, inline);
        check(json!({"a": 1}), "# nothing\n", ValuesMerge::Override, json!({"a": 1}));
    }

    #[test]
    fn a_null_takes_away() {
        check(
            json!({"a": null, "b": {"c": null}}),
            "a: {x: 1}\nd: 1\n",
            ValuesMerge::Override,
            json!({"b": {}, "d": 1}),
        );
        check(json!({"a": null}), "a: [1]\n", ValuesMerge::Override, json!({}));
        check(
            json!({"a": 1}),
            "b: null\nc: ~\nd:\n",
            ValuesMerge::Override,
            json!({"a": 1, "b": null, "c": null}),
        );
        check(json!({"a": 1, "e": [null]}), "a:\nf: 1\n", ValuesMerge::Merge, json!({"e": [null], "f": 1}));
        check(json!({"a": {"b": 1}}), "a: null\n", ValuesMerge::Override, json!({"a": {"b": 1}}));
    }

    #[test]
    fn a_directive_replaces_or_deletes() {
        check(
            json!({"a": {"$patch": "replace", "b": 1}}),
            "a: {c: 2}\n",
            ValuesMerge::Override,
            json!({"a": {"b": 1}}),
        );
        check(
            json!({"a": {"$patch": "delete"}}),
            "a: {c: 2}\nd: 1\n",
            ValuesMerge::Override,
            json!({"d": 1}),
        );
        check(
            json!({"a": {"$patch": "merge", "b": 1}}),
            "a: {c: 2}\n",
            ValuesMerge::Override,
            json!({"a": {"b": 1, "c": 2}}),
        );
        let fault = merge_values(&json!({"a": {"$patch": "x"}}), b"a: {b: 1}", ValuesMerge::Override);
        assert_eq!(fault, Err(ValuesFault::Directive("/a".to_owned())));
    }

    #[test]
    fn truth_values_of_old_are_texts_in_a_file() {
        check(
            json!({"x": 1}),
            "a: yes\nb: 'yes'\nc: true\nd: [off, False]\ne: {f: on, g: no}\n",
            ValuesMerge::Override,
            json!({"a": "yes", "b": "yes", "c": true, "d": ["off", false], "e": {"f": "on", "g": "no"}, "x": 1}),
        );
    }

    #[test]
    fn an_alias_in_a_file_takes_its_key_away_but_in_a_list() {
        let file = "a: &a {b: 1}\nc: *a\nd: [*a]\ne:\n  <<: *a\n  f: 2\ng: {h: *a}\n";
        let left = json!({"a": {"b": 1}, "d": [{"b": 1}], "e": {"f": 2}, "g": {}, "x": 1});
        check(json!({"x": 1}), file, ValuesMerge::Override, left.clone());
        check(json!({"x": 1}), file, ValuesMerge::Merge, left.clone());
        check(json!({"x": 1, "c": {"b": 2}, "g": {"h": 3}}), file, ValuesMerge::Override, left.clone());
        check(json!({"x": 1, "c": null}), file, ValuesMerge::Merge, left);
        let fault = merge_values(&json!({"g": {"h": 3}}), file.as_bytes(), ValuesMerge::Merge);
        assert_eq!(fault, Err(ValuesFault::Form("/g/h".to_owned())));
        check(json!({"c": 1}), file, ValuesMerge::Replace, json!({"c": 1}));
        let nested = "a: &a {b: 1}\nc: &c\n  <<: *a\n  d: 2\ne:\n  <<: *c\n  f: 3\n";
        let left = json!({"a": {"b": 1}, "c": {"d": 2}, "e": {"f": 3}, "x": 1});
        check(json!({"x": 1}), nested, ValuesMerge::Override, left);
    }

    #[test]
    fn an_alias_in_a_list_is_read_as_what_it_stands_for() {
        check(
            json!({"x": 1}),
            "a: &a yes\nb: [*a, &b 2024-01-02, *b]\nc: [{d: *a}]\n",
            ValuesMerge::Override,
            json!({
                "a": "yes",
                "b": ["yes", "2024-01-02T00:00:00Z", "2024-01-02T00:00:00Z"],
                "c": [{"d": "yes"}],
                "x": 1,
            }),
        );
    }

    #[test]
    fn a_list_of_aliases_is_merged_in_a_file_and_a_single_alias_is_not() {
        let check = |inline: Value, file: &str, expected: Value| {
            for merge in [ValuesMerge::Override, ValuesMerge::Merge] {
                check(inline.clone(), file, merge, expected.clone());
            }
        };
        let nested = "a: &a {b: yes}\nc: &c\n  <<: [*a]\n  d: 2\ne:\n  <<: [*c]\n  f: 3\n";
        let (a, c) = (json!({"b": "yes"}), json!({"b": "yes", "d": 2}));
        check(json!({"x": 1}), nested, json!({"a": a, "c": c, "e": {"b": "yes", "d": 2, "f": 3}, "x": 1}));
        let both = "a: &a {b: 1}\nc:\n  <<: [*a]\n  d: 2\ne:\n  <<: *a\n  f: 3\ng: {<<: *a, h: 4}\n";
        let left = json!({"a": {"b": 1}, "c": {"b": 1, "d": 2}, "e": {"f": 3}, "g": {"h": 4}, "x": 1});
        check(json!({"x": 1}), both, left);
        let late = "a: &a {b: 1, c: 2}\nd:\n  b: 3\n  <<: [*a]\ne:\n  b: 3\n  <<: *a\n";
        check(
            json!({"x": 1}),
            late,
            json!({"a": {"b": 1, "c": 2}, "d": {"b": 3, "c": 2}, "e": {"b": 3}, "x": 1}),
        );
        // So does a key of a mapping that is merged in turn.
        let twice = "a: &a {b: 1, c: 2}\nd: &d\n  b: 3\n  <<: [*a]\ne:\n  <<: [*d]\n";
        let d = json!({"b": 3, "c": 2});
        check(json!({"x": 1}), twice, json!({"a": {"b": 1, "c": 2}, "d": d, "e": d, "x": 1}));
        // A key of the kustomization is one of the mapping itself, whoever wins.
        let merged = "a: &a {b: 1, c: 2}\nd:\n  <<: [*a]\n  e: 3\n";
        let left = json!({"a": {"b": 1, "c": 2}, "d": {"b": 5, "c": 2, "e": 3}});
        check(json!({"d": {"b": 5}}), merged, left);
    }

    #[test]
    fn a_date_without_quotes_is_a_time_in_a_file_and_a_text_in_the_kustomization() {
        let file = "a: 2024-01-01\nb: '2024-01-02'\nc: !!str 2024-01-03\nd:\n- e: 2024-01-04 10:00:00\n\
                    2024-01-05: f\n";
        let from_file = json!({
            "a": "2024-01-01T00:00:00Z",
            "b": "2024-01-02",
            "c": "2024-01-03",
            "d": [{"e": "2024-01-04T10:00:00Z"}],
            "2024-01-05": "f",
        });
        let inline = json!({"a": "2025-01-01", "x": "2025-01-01"});
        let mut both = from_file;
        both["x"] = json!("2025-01-01");
        check(inline.clone(), file, ValuesMerge::Merge, both.clone());
        both["a"] = json!("2025-01-01");
        check(inline.clone(), file, ValuesMerge::Override, both);
        check(inline.clone(), file, ValuesMerge::Replace, inline);
    }

    // A count of the letters before each of them would take minutes.
    #[test]
    fn truth_values_in_one_line_are_read_at_once() {
        let file = format!("a: [é, {}no]\nb: [on, é, off]\n", "yes, ".repeat(100_000));
        let read = merge_values(&json!({"x": 1}), file.as_bytes(), ValuesMerge::Override).unwrap();
        let all = read["a"].as_array().unwrap();
        assert_eq!(
            (all.len(), &all[1], &all[100_000], &all[100_001]),
            (100_002, &json!("yes"), &json!("yes"), &json!("no"))
        );
        assert_eq!(read["b"], json!(["on", "é", "off"]));
        // In the order of their names, the first key is the last one of the line.
        let keys: Vec<String> = (0..100_000).rev().map(|number| format!("é{number:06}: yes")).collect();
        let file = format!("{{{}}}\n", keys.join(", "));
        let read = merge_values(&json!({"x": 1}), file.as_bytes(), ValuesMerge::Override).unwrap();
        let (first, middle) = (&read["é000000"], &read["é050000"]);
        assert_eq!((read.as_object().unwrap().len(), first, middle), (100_001, &json!("yes"), &json!("yes")));
    }

    #[test]
    fn keys_of_a_file_are_texts() {
        check(
            json!({"at": {"w": 2}}),
            "at: {x: 0, y: 1}\nno: {on: [{n: 1}]}\n\"y\": 2\n8080: a\n0x10: b\n",
            ValuesMerge::Override,
            json!({
                "at": {"w": 2, "x": 0, "y": 1}, "no": {"on": [{"n": 1}]}, "y": 2, "8080": "a", "0x10": "b",
            }),
        );
        check(
            json!({"a": 1}),
            "b:\n  y: 1\n  x: 2\n",
            ValuesMerge::Merge,
            json!({"a": 1, "b": {"x": 2, "y": 1}}),
        );
        // A key that is a truth value to kustomize too.
        check(
            json!({"true": 1}),
            "true: 2\n'false': 3\n",
            ValuesMerge::Override,
            json!({"true": 1, "false": 3}),
        );
    }

    #[test]
    fn forms_that_do_not_fit_are_refused() {
        let check = |inline: Value, file: &str, expected: ValuesFault| {
            assert_eq!(
                merge_values(&inline, file.as_bytes(), ValuesMerge::Override),
                Err(expected),
                "{file}"
            );
        };
        check(json!({"a": {"b": 1}}), "a: 1\n", ValuesFault::Form("/a".to_owned()));
        check(json!({"a": {"b": [1]}}), "a: {b: {}}\n", ValuesFault::Form("/a/b".to_owned()));
        check(json!({"a": 1}), "[1]\n", ValuesFault::NoMapping);
        check(json!({"a": 1}), "a: [\n", ValuesFault::NoMapping);
    }
}
