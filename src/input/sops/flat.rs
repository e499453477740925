//! Files of dotenv: lines of `KEY=value`, the metadata among them in keys that begin with `sops_`.

use serde_json::{Map, Value};
use zeroize::Zeroizing;

use crate::manifest::TextMark;

use super::age::{AgeIdentities, AttemptBudget};
use super::document::{data_key, verify_mac};
use super::error::{MetadataFault, SopsError};
use super::leaves::{MAX_MATCHED_CHARS, NamedFile};
use super::metadata::SopsMetadata;
use super::opening::{OpeningState, path_excerpt};
use super::value::{DecryptedValue, ENCRYPTED_PREFIX, EncryptedValue, EncryptedValueFault};
use super::{FileKey, OpenedContent, OpenedFile, comments};

const SOPS_PREFIX: &str = "sops_";
/// The signs by which keys of the metadata name a member of a mapping, and an item of a list.
const MEMBER_INFIX: &str = "__map_";
const ITEM_INFIX: &str = "__list_";
/// Items of a list of the metadata, and its levels.
const MAX_LIST_ITEMS: usize = 1024;
const MAX_LEVELS: usize = 6;
/// Members and items of all mappings and lists of the metadata, gaps in lists among them. The
/// longest metadata that is read, for 256 recipients, has some 1,000.
const MAX_METADATA_FIELDS: usize = 16_384;

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
        pair.is_some_and(|(key, value)| {
            key.trim() == "mac" && value.trim_start().starts_with(ENCRYPTED_PREFIX)
        })
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
    let key = data_key(file, 0, &metadata, identities, &mut AttemptBudget::new())?;
    let (mut state, mut matched) = (OpeningState::new(), 0);
    state.begin_mac(&metadata);
    // It never grows again, which would leave copies behind.
    let mut out = Zeroizing::new(Vec::with_capacity(text.len() * 2 + 1));
    let mut values = Vec::new();
    for line in &lines {
        match line {
            DotenvLine::Comment(comment) => {
                let opened = comment
                    .starts_with(ENCRYPTED_PREFIX)
                    .then(|| key.open(&EncryptedValue::parse(comment)?, comments::ROOT_KEY_PATH));
                if let Some(Ok(DecryptedValue::Comment(opened))) = opened {
                    out.extend_from_slice(comments::write_comment(&opened).as_bytes());
                } else {
                    out.push(b'#');
                    out.extend_from_slice(comment.as_bytes());
                }
            }
            DotenvLine::Entry { key: name, .. } if name.starts_with(SOPS_PREFIX) => continue,
            DotenvLine::Entry { key: name, value, number } => {
                matched += if metadata.rule.is_pattern() { name.len() } else { 0 };
                if matched > MAX_MATCHED_CHARS {
                    return Err(file.too_many_keys(TextMark { line: *number, column: 1 }));
                }
                let path = format!("{name}:");
                let clear = value.replace("\\n", "\n");
                let rule = &metadata.rule;
                let value_state = if rule.is_met_by(name) { rule.met_state() } else { rule.unmet_state() };
                let fault =
                    |fault| SopsError::Value { at: file.line(*number), path: path_excerpt(&path), fault };
                out.extend_from_slice(name.as_bytes());
                out.push(b'=');
                match state.value(Some(&clear), value_state, &path, &key).map_err(fault)? {
                    Some(DecryptedValue::Comment(_)) => return Err(fault(EncryptedValueFault::Type)),
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
    verify_mac(file, 0, &metadata, &key, state.take_mac())?;
    let content = OpenedContent::Bytes { bytes: out, values };
    Ok(OpenedFile { keys: vec![FileKey { key, entries: metadata.entries }], content })
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
    let mut left = MAX_METADATA_FIELDS;
    for line in lines {
        let DotenvLine::Entry { key, value, .. } = line else { continue };
        let Some(path) = key.strip_prefix(SOPS_PREFIX) else { continue };
        let mut node = &mut root;
        let mut rest = path;
        let mut is_item = false;
        for level in 0.. {
            let end = [MEMBER_INFIX, ITEM_INFIX].iter().filter_map(|mark| rest.find(mark)).min();
            let step = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
            if level >= MAX_LEVELS {
                return Err(MetadataFault::Shape);
            }
            node = member(node, step, is_item, &mut left)?;
            let Some(end) = end else { break };
            rest = rest.get(end..).unwrap_or_default();
            is_item = rest.starts_with(ITEM_INFIX);
            rest = rest.strip_prefix(if is_item { ITEM_INFIX } else { MEMBER_INFIX }).unwrap_or_default();
        }
        if !node.is_null() {
            return Err(MetadataFault::Twice);
        }
        *node = Value::String(value.replace("\\n", "\n"));
    }
    match root.as_object() {
        Some(found) if found.is_empty() => Err(MetadataFault::Missing),
        _ => Ok(root),
    }
}

/// Returns the place of a member or item, which is made if need be, as long as `left` allows it.
fn member<'v>(
    node: &'v mut Value,
    step: &str,
    is_item: bool,
    left: &mut usize,
) -> Result<&'v mut Value, MetadataFault> {
    let mut make = |count: usize| {
        *left = left.checked_sub(count).ok_or(MetadataFault::TooManyPlaces)?;
        Ok(())
    };
    if node.is_null() {
        *node = if is_item { Value::Array(Vec::new()) } else { Value::Object(Map::new()) };
    }
    match node {
        Value::Object(members) if !is_item => {
            if !members.contains_key(step) {
                make(1)?;
            }
            Ok(members.entry(step).or_insert(Value::Null))
        }
        Value::Array(list) if is_item => {
            let number = step.parse().ok().filter(|number| *number < MAX_LIST_ITEMS);
            let number = number.ok_or(MetadataFault::Shape)?;
            if list.len() <= number {
                make(number + 1 - list.len())?;
                list.resize(number + 1, Value::Null);
            }
            list.get_mut(number).ok_or(MetadataFault::Shape)
        }
        _ => Err(MetadataFault::Shape),
    }
}
