//! Files of dotenv: lines of `KEY=value`, the metadata among them in keys that begin with `sops_`.

use serde_json::{Map, Value};
use zeroize::Zeroizing;

use crate::manifest::TextMark;

use super::age::AgeIdentities;
use super::document::{data_key, verify_mac};
use super::error::{MetadataFault, SopsError};
use super::leaves::{MAX_MATCHED, NamedFile};
use super::metadata::SopsMetadata;
use super::opening::{OpeningState, path_excerpt};
use super::value::{OpenedValue, PREFIX, SealedValue, SealedValueFault};
use super::{OpenedContent, OpenedFile, comments};

const SOPS: &str = "sops_";
/// The signs by which keys of the metadata name a member of a mapping, and an item of a list.
const MEMBER: &str = "__map_";
const ITEM: &str = "__list_";
/// Items of a list of the metadata, and its levels.
const MAX_ITEMS: usize = 1024;
const MAX_LEVELS: usize = 6;

/// A line of a file.
enum DotenvLine<'t> {
    Comment(&'t str),
    Entry { key: &'t str, value: &'t str, number: u32 },
}

/// Returns the lines of a file that have content, or the number of one that is none.
fn lines(text: &str) -> Result<Vec<DotenvLine<'_>>, u32> {
    // A file that was checked out with the line ends of another system.
    let crlf = text.contains('\n') && text.matches('\n').count() == text.matches("\r\n").count();
    let lines = text.split('\n').map(|line| line.strip_suffix('\r').filter(|_| crlf).unwrap_or(line));
    lines
        .zip(1..)
        .filter(|(line, _)| !line.is_empty())
        .map(|(line, number)| {
            if let Some(comment) = line.strip_prefix('#') {
                return Ok(DotenvLine::Comment(comment));
            }
            let (key, value) = line.split_once('=').ok_or(number)?;
            Ok(DotenvLine::Entry { key, value, number })
        })
        .collect()
}

/// Returns whether a file has the metadata of SOPS.
pub(super) fn is_encrypted(text: &str) -> bool {
    let words = ["sops_mac=", "sops_lastmodified=", "sops_version="];
    text.lines().any(|line| words.iter().any(|word| line.starts_with(word)))
}

/// Returns whether a file of INI has the metadata of SOPS.
pub(super) fn is_encrypted_ini(text: &str) -> bool {
    let is_code = |line: &str| {
        let pair = line.split_once('=');
        pair.is_some_and(|(key, value)| key.trim() == "mac" && value.trim_start().starts_with(PREFIX))
    };
    let mut lines = text.lines().map(str::trim).skip_while(|line| *line != "[sops]");
    lines.any(is_code)
}

/// Opens a file.
pub(super) fn open<'f>(
    file: NamedFile<'f>,
    text: &'f str,
    identities: &AgeIdentities,
) -> Result<OpenedFile<'f>, SopsError> {
    let lines = lines(text).map_err(|number| SopsError::Syntax {
        at: file.line(number),
        message: "this is not dotenv: the line has no `=`".to_owned(),
    })?;
    let fault = |fault| SopsError::Metadata { at: file.line(0), fault };
    let metadata = metadata(&lines).and_then(|sops| SopsMetadata::read(&sops)).map_err(fault)?;
    let key = data_key(file, 0, &metadata, identities)?;
    let (mut state, mut matched) = (OpeningState::new(&metadata), 0);
    // It never grows again, which would leave copies behind.
    let mut out = Zeroizing::new(Vec::with_capacity(text.len() * 2 + 1));
    let mut values = Vec::new();
    for line in &lines {
        match line {
            DotenvLine::Comment(comment) => {
                let opened = comment
                    .starts_with(PREFIX)
                    .then(|| key.open(&SealedValue::parse(comment)?, comments::NO_KEYS));
                if let Some(Ok(OpenedValue::Comment(opened))) = opened {
                    out.extend_from_slice(comments::write_comment(&opened).as_bytes());
                } else {
                    out.push(b'#');
                    out.extend_from_slice(comment.as_bytes());
                }
            }
            DotenvLine::Entry { key: name, .. } if name.starts_with(SOPS) => continue,
            DotenvLine::Entry { key: name, value, number } => {
                matched += if metadata.rule.is_pattern() { name.len() } else { 0 };
                if matched > MAX_MATCHED {
                    return Err(file.too_many_keys(TextMark { line: *number, column: 1 }));
                }
                let path = format!("{name}:");
                let clear = value.replace("\\n", "\n");
                let rule = metadata.rule.state(metadata.rule.is_met_by(name));
                let fault =
                    |fault| SopsError::Value { at: file.line(*number), path: path_excerpt(&path), fault };
                out.extend_from_slice(name.as_bytes());
                out.push(b'=');
                match state.value(Some(&clear), rule, &path, &key).map_err(fault)? {
                    Some(OpenedValue::Comment(_)) => return Err(fault(SealedValueFault::Type)),
                    Some(opened) => {
                        escape_breaks(&opened.mac_bytes(), &mut out);
                        values.extend(opened.shown_bytes());
                    }
                    None => {
                        state.add_clear(clear.as_bytes());
                        escape_breaks(clear.as_bytes(), &mut out);
                    }
                }
            }
        }
        out.push(b'\n');
    }
    verify_mac(file, 0, &metadata, &key, state.finish().0)?;
    let content = OpenedContent::Bytes { bytes: out, values };
    Ok(OpenedFile { key, entries: metadata.entries, content })
}

fn escape_breaks(value: &[u8], out: &mut Vec<u8>) {
    for byte in value {
        match byte {
            b'\n' => out.extend_from_slice(b"\\n"),
            _ => out.push(*byte),
        }
    }
}

/// Returns the metadata as a tree, which its keys name the places of.
fn metadata(lines: &[DotenvLine<'_>]) -> Result<Value, MetadataFault> {
    let mut root = Value::Object(Map::new());
    for line in lines {
        let DotenvLine::Entry { key, value, .. } = line else { continue };
        let Some(path) = key.strip_prefix(SOPS) else { continue };
        let mut place = &mut root;
        let mut rest = path;
        let mut is_item = false;
        for level in 0.. {
            let end = [MEMBER, ITEM].iter().filter_map(|mark| rest.find(mark)).min();
            let step = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
            place =
                member(place, step, is_item).filter(|_| level < MAX_LEVELS).ok_or(MetadataFault::Shape)?;
            let Some(end) = end else { break };
            rest = rest.get(end..).unwrap_or_default();
            is_item = rest.starts_with(ITEM);
            rest = rest.strip_prefix(if is_item { ITEM } else { MEMBER }).unwrap_or_default();
        }
        if !place.is_null() {
            return Err(MetadataFault::Twice);
        }
        *place = Value::String(value.replace("\\n", "\n"));
    }
    match root.as_object() {
        Some(found) if found.is_empty() => Err(MetadataFault::Missing),
        _ => Ok(root),
    }
}

/// Returns the place of a member or item, which is made if need be.
fn member<'v>(place: &'v mut Value, step: &str, is_item: bool) -> Option<&'v mut Value> {
    if !is_item {
        if place.is_null() {
            *place = Value::Object(Map::new());
        }
        return Some(place.as_object_mut()?.entry(step).or_insert(Value::Null));
    }
    if place.is_null() {
        *place = Value::Array(Vec::new());
    }
    let list = place.as_array_mut()?;
    let number = step.parse().ok().filter(|number| *number < MAX_ITEMS)?;
    if list.len() <= number {
        list.resize(number + 1, Value::Null);
    }
    list.get_mut(number)
}
