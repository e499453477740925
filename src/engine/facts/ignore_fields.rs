//! Fields that an object leaves to others, and objects that are left alone, by annotations.

use crate::object::annotations;
use crate::object::annotations::{GENERATED, IGNORE_FIELDS};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::facts::tool_vocabulary::{MetadataMap, ToolRequests};
use crate::fields;
use crate::object::{Diagnostic, Object, annotation_text, text_at};

/// The treatment of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum ReconcilePolicy {
    /// It is created, changed, repaired and pruned.
    #[default]
    Enabled,
    /// It is left alone: neither created, nor changed, nor pruned.
    Disabled,
    /// It is created where it is missing, and then left alone.
    OnlyCreate,
}

/// Reads off a content what its labels and annotations ask for, in our words and those of other
/// tools.
pub(crate) fn tool_requests(content: &Value) -> ToolRequests {
    ToolRequests::of(labels_and_annotations(content))
}

/// Returns all labels and annotations of a content.
pub(in crate::engine) fn labels_and_annotations(
    content: &Value,
) -> impl Iterator<Item = (MetadataMap, &str, &str)> {
    let maps = [("labels", MetadataMap::Label), ("annotations", MetadataMap::Annotation)];
    maps.into_iter().flat_map(|(map, carrier)| {
        let marks = content.get("metadata").and_then(|metadata| metadata.get(map)?.as_object());
        let texts = marks.into_iter().flatten();
        texts.filter_map(move |(key, value)| Some((carrier, key.as_str(), value.as_str()?)))
    })
}

/// The fields that an object leaves to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IgnoredFields(Vec<Vec<IgnoredPathStep>>);

/// One step of a path as people write it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum IgnoredPathStep {
    /// Into a map by its key; in a JSON pointer also into a list by position.
    Key(String),
    /// Into a list by position.
    Index(usize),
    /// Into a list, to the items whose keys have these values.
    Item(Vec<(String, Value)>),
    /// Into a list, to each of its items.
    Each,
}

/// Removes from a content the fields that its own annotation leaves to others; what cannot be read
/// or must not be ignored removes nothing.
pub fn remove_ignored(content: Value) -> Value {
    IgnoredFields::of(&content).remove_from(content)
}

/// Gives a newer content the values of an older one in the fields that both leave to others.
/// Neither is as it is sent: what the path of a Secret leads to may be in `stringData`.
pub(crate) fn keep_ignored(old: &Value, new: Value) -> Value {
    let (before, mut both) = (IgnoredFields::of(old), IgnoredFields::of(&new));
    both.0.retain(|steps| before.0.contains(steps));
    if text_at(&new, &["kind"]) == "Secret" {
        let in_clear = |steps: &Vec<IgnoredPathStep>| {
            let (first, rest) = steps.split_first()?;
            let is_data = *first == IgnoredPathStep::Key("data".to_owned());
            let string_data = IgnoredPathStep::Key("stringData".to_owned());
            is_data.then(|| [&[string_data], rest].concat())
        };
        let in_clear: Vec<_> = both.0.iter().filter_map(in_clear).collect();
        both.0.extend(in_clear);
    }
    both.copy_live_values(new, old)
}

/// The ignored fields of an object that is there, as they are sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ResolvedIgnores {
    /// The content.
    pub content: Value,
    /// Indicates whether it has values in it that are true only of the version they were read from.
    pub binds: VersionBinding,
}

/// Indicates whether a write is good for one version only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionBinding {
    /// Any version of the object will do.
    AnyVersion,
    /// It repeats what one version showed.
    OneVersion,
}

/// Returns whether a path leads to where overlays write.
fn is_overlay_path(steps: &[IgnoredPathStep]) -> bool {
    let key = |nth: usize| match steps.get(nth) {
        Some(IgnoredPathStep::Key(key)) => key.as_str(),
        _ => "",
    };
    let laid = ["strategy", "updateStrategy", "minReadySeconds", "progressDeadlineSeconds"];
    key(0) == "spec" && laid.contains(&key(1))
}

/// Leaves the ignored fields of a content to others. A field that our entry owns alone is sent as
/// the cluster shows it: without its only owner it would go back to its default. The rest is not
/// sent. For live objects only: a created object gets the fields as its manifest has them.
pub(crate) fn resolve_ignores(
    content: Value,
    live: &Value,
    ours: Option<&str>,
    others: &[&str],
) -> ResolvedIgnores {
    let mut ignored = IgnoredFields::of(&content);
    if !annotation_text(live, annotations::OVERLAY).is_empty() {
        // Fields of an overlay are never left to others.
        ignored.0.retain(|steps| !is_overlay_path(steps));
    }
    if ignored.is_empty() {
        return ResolvedIgnores { content, binds: VersionBinding::AnyVersion };
    }
    let bare = ignored.remove_from(content.clone());
    let alone = ours.map(|ours| fields::solely_owned_part(live, ours, others)).unwrap_or_default();
    let content = ignored.copy_live_values(content, &alone);
    let binds = if content == bare { VersionBinding::AnyVersion } else { VersionBinding::OneVersion };
    ResolvedIgnores { content, binds }
}

impl IgnoredFields {
    /// Reads the annotation of a content; what is wrong in it is left out.
    pub fn of(content: &Value) -> Self {
        let parts = split_paths(annotation_text(content, IGNORE_FIELDS));
        let mut paths: Vec<_> = parts.iter().filter_map(|part| parse_allowed_path(part).ok()).collect();
        if text_at(content, &["apiVersion"]) == "v1" && text_at(content, &["kind"]) == "Secret" {
            for steps in &mut paths {
                follow_string_data(steps);
            }
        }
        Self(paths)
    }

    /// Returns whether nothing is left to others.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes these fields from a content, and the maps that have nothing left.
    pub fn remove_from(&self, mut content: Value) -> Value {
        for steps in &self.0 {
            remove(&mut content, steps);
        }
        content
    }

    /// Puts the cluster's values into these fields, and removes those that it does not show. A
    /// content is sent so as long as nobody else owns them: a field would go back to its default
    /// without its only owner.
    pub fn copy_live_values(&self, mut content: Value, live: &Value) -> Value {
        for steps in &self.0 {
            put_live_value(&mut content, Some(live), steps);
        }
        content
    }
}

impl IgnoredPathStep {
    /// Returns whether it leads to this item of a list.
    fn is_step_to(&self, position: usize, item: &Value) -> bool {
        match self {
            Self::Key(key) => key.parse() == Ok(position),
            Self::Index(wanted) => *wanted == position,
            Self::Each => true,
            Self::Item(keys) => {
                keys.iter().all(|(key, value)| item.get(key).is_some_and(|own| is_value(own, value)))
            }
        }
    }
}

/// Leads a path to where the API server keeps what a Secret has in `stringData`.
fn follow_string_data(steps: &mut [IgnoredPathStep]) {
    if let Some(IgnoredPathStep::Key(key)) = steps.first_mut()
        && key == "stringData"
    {
        "data".clone_into(key);
    }
}

/// Returns whether two values are equal, also where one is a number or a boolean and the other its
/// text.
fn is_value(own: &Value, wanted: &Value) -> bool {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text(own) == text(wanted)
}

/// Removes what a path leads to; maps that become empty by it go too, since an empty map would be
/// ours.
fn remove(value: &mut Value, steps: &[IgnoredPathStep]) {
    let Some((step, rest)) = steps.split_first() else { return };
    match value {
        Value::Object(map) => {
            let IgnoredPathStep::Key(key) = step else { return };
            let Some(inner) = map.get_mut(key) else { return };
            let was_empty = is_empty(inner);
            remove(inner, rest);
            if rest.is_empty() || is_empty(inner) && !was_empty {
                map.remove(key);
            }
        }
        Value::Array(items) => {
            if rest.is_empty() {
                let mut position = 0..;
                items.retain(|item| !position.next().is_some_and(|nth| step.is_step_to(nth, item)));
            } else {
                let found = items.iter_mut().enumerate().filter(|(nth, item)| step.is_step_to(*nth, item));
                found.for_each(|(_, item)| remove(item, rest));
            }
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

/// Puts what the cluster shows in the place of what a path leads to.
fn put_live_value(value: &mut Value, live: Option<&Value>, steps: &[IgnoredPathStep]) {
    let Some((step, rest)) = steps.split_first() else { return };
    match value {
        Value::Object(map) => {
            let IgnoredPathStep::Key(key) = step else { return };
            let shown = live.and_then(|live| live.get(key));
            match (map.get_mut(key), shown) {
                (Some(inner), Some(shown)) if rest.is_empty() => *inner = shown.clone(),
                (Some(inner), _) if !rest.is_empty() && shown.is_some() => put_live_value(inner, shown, rest),
                (Some(_), None) => remove(value, steps),
                // The manifest may have given it up in the same commit that ignores it.
                (None, Some(shown)) if rest.is_empty() => {
                    map.insert(key.clone(), shown.clone());
                }
                (None, Some(Value::Object(shown))) if matches!(rest, [IgnoredPathStep::Key(_), ..]) => {
                    let mut inner = Value::Object(serde_json::Map::new());
                    put_live_value(&mut inner, Some(&Value::Object(shown.clone())), rest);
                    if !is_empty(&inner) {
                        map.insert(key.clone(), inner);
                    }
                }
                _ => {}
            }
        }
        Value::Array(items) => {
            let others = live.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let mut gone = Vec::new();
            for (nth, item) in items.iter_mut().enumerate().filter(|(nth, item)| step.is_step_to(*nth, item))
            {
                match (counterpart(step, nth, item, others), rest.is_empty()) {
                    (Some(shown), true) => *item = shown.clone(),
                    (Some(shown), false) => put_live_value(item, Some(shown), rest),
                    (None, true) => gone.push(nth),
                    (None, false) => remove(item, rest),
                }
            }
            let mut position = 0..;
            items.retain(|_| !position.next().is_some_and(|nth| gone.contains(&nth)));
        }
        _ => {}
    }
}

/// Returns the item of another list that is this one: by its keys or its name, else by position.
fn counterpart<'a>(
    step: &IgnoredPathStep,
    nth: usize,
    item: &Value,
    others: &'a [Value],
) -> Option<&'a Value> {
    let found = match (step, item.get("name")) {
        (IgnoredPathStep::Item(_), _) => others.iter().find(|other| step.is_step_to(nth, other)),
        (_, Some(name)) => others.iter().find(|other| other.get("name") == Some(name)),
        _ => others.get(nth),
    };
    found.filter(|found| !found.is_null())
}

/// Says what is wrong with the fields that an object leaves to others.
pub(in crate::engine) fn check_ignore_fields(object: &Object) -> Vec<Diagnostic> {
    let text = annotation_text(&object.body, IGNORE_FIELDS);
    let mut found = Vec::new();
    for part in split_paths(text) {
        let Err(why) = parse_allowed_path(part) else { continue };
        let message = format!("{IGNORE_FIELDS} names {part:?}, which {why}");
        found.push(Diagnostic::error(object.origin.clone(), "annotation", message).hint(
            "write paths as .spec.replicas, .spec.template.spec.containers[name=web].image or /spec/replicas, \
             separated by commas",
        ));
    }
    found
}

/// Returns the parts of the annotation, which are separated by commas.
fn split_paths(text: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    let parts = split(text, |letter| {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    });
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// Splits a text at the letters that `ends` accepts, which does not see those in quotes.
fn split(text: &str, mut ends: impl FnMut(char) -> bool) -> Vec<&str> {
    let (mut found, mut begin, mut quote, mut is_escaped) = (Vec::new(), 0, None, false);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some('"'), '\\') => is_escaped = true,
            (Some(open), letter) if letter == open => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, letter) if ends(letter) => {
                found.push(&text[begin..at]);
                begin = at + letter.len_utf8();
            }
            _ => {}
        }
    }
    found.push(&text[begin..]);
    found
}

/// Reads a path that may be ignored, or says why it is none.
fn parse_allowed_path(part: &str) -> Result<Vec<IgnoredPathStep>, &'static str> {
    let steps = parse(part).ok_or("is no path")?;
    let key = |nth: usize| match steps.get(nth) {
        Some(IgnoredPathStep::Key(key)) => Some(key.as_str()),
        _ => None,
    };
    match (key(0), key(1), key(2)) {
        (Some("apiVersion" | "kind"), ..) => Err("tells what the object is"),
        (Some("status"), ..) => Err("is never sent"),
        (Some("metadata"), Some("labels"), Some(label)) if label == crate::object::PART_OF => {
            Err("tells whose the object is")
        }
        // As the values that it stands for, it is left as it was made.
        (Some("metadata"), Some("annotations"), Some(GENERATED)) => Ok(steps),
        (Some("metadata"), Some("annotations"), Some(name)) if name.starts_with("rhumb.dev/") => {
            Err("is rhumb's own")
        }
        (Some("metadata"), Some("labels" | "annotations"), Some(_)) => Ok(steps),
        (Some("metadata"), Some("labels" | "annotations"), None) => {
            Err("holds what is rhumb's own: name single ones")
        }
        (Some("metadata"), ..) => Err("tells which object it is"),
        (Some(_), ..) => Ok(steps),
        (None, ..) => Err("does not begin at a field of the object"),
    }
}

fn parse(part: &str) -> Option<Vec<IgnoredPathStep>> {
    let steps = match part.strip_prefix('/') {
        Some(pointer) => pointer
            .split('/')
            .map(|step| unescape(step).map(IgnoredPathStep::Key))
            .collect::<Option<Vec<_>>>()?,
        None => parse_dotted(part)?,
    };
    (!steps.is_empty()).then_some(steps)
}

/// Returns a step of a JSON pointer (RFC 6901).
fn unescape(step: &str) -> Option<String> {
    let plain = step.replace("~1", "/").replace("~0", "~");
    let escapes = step.matches('~').count();
    let known = step.matches("~0").count() + step.matches("~1").count();
    (!step.is_empty() && escapes == known).then_some(plain)
}

/// Parses a path such as `.spec.list[name="a"].field`, also without the first dot and without
/// quotes.
fn parse_dotted(part: &str) -> Option<Vec<IgnoredPathStep>> {
    let mut rest = part;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let inside =
                *split(inner, |letter| letter == ']').first().filter(|inside| inside.len() < inner.len())?;
            steps.push(parse_bracket(inside.trim())?);
            rest = &inner[inside.len() + 1..];
            continue;
        }
        let name = match rest.strip_prefix('.') {
            Some(name) => name,
            None if steps.is_empty() => rest,
            None => return None,
        };
        let end = name.find(['.', '[']).unwrap_or(name.len());
        let (key, after) = name.split_at(end);
        if key.is_empty()
            || key.contains(|c: char| c.is_whitespace() || matches!(c, ']' | '"' | '\'' | '/' | '='))
        {
            return None;
        }
        steps.push(IgnoredPathStep::Key(key.to_owned()));
        rest = after;
    }
    Some(steps)
}

/// Parses the text in brackets: a quoted key, a position, `*`, or the keys of an item.
fn parse_bracket(text: &str) -> Option<IgnoredPathStep> {
    if text == "*" {
        return Some(IgnoredPathStep::Each);
    }
    if let Ok(position) = text.parse() {
        return Some(IgnoredPathStep::Index(position));
    }
    if text.starts_with(['"', '\'']) {
        return parse_literal(text)?.as_str().map(|key| IgnoredPathStep::Key(key.to_owned()));
    }
    let keys = split(text, |letter| letter == ',').into_iter().map(|pair| {
        let (key, value) = pair.split_once('=')?;
        let (key, value) = (key.trim(), parse_literal(value.trim())?);
        (!key.is_empty()).then(|| (key.to_owned(), value))
    });
    keys.collect::<Option<Vec<_>>>().map(IgnoredPathStep::Item)
}

/// Returns a value as JSON, in single quotes, or as it is.
fn parse_literal(text: &str) -> Option<Value> {
    if let Some(inner) = text.strip_prefix('\'') {
        return inner.strip_suffix('\'').map(Value::from);
    }
    if text.starts_with('"') {
        return serde_json::from_str(text).ok().filter(Value::is_string);
    }
    (!text.is_empty()).then(|| Value::from(text))
}
