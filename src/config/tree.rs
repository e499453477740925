//! A YAML document as a tree in which every node knows its line and column.

use granit_parser::{Event, Options, Parser, ScalarStyle, Span};
use serde_yaml::Value;

/// The place of a node, and its number in the file, by which it can be found again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConfigNodeMark {
    number: usize,
    /// From 1.
    pub(super) line: u32,
    /// From 1.
    pub(super) column: u32,
}

/// One node.
#[derive(Debug)]
pub(super) struct ConfigNode {
    /// The place where it begins.
    pub(super) mark: ConfigNodeMark,
    /// The value.
    pub(super) data: ConfigNodeData,
}

/// The value of a [`ConfigNode`].
#[derive(Debug)]
pub(super) enum ConfigNodeData {
    /// A scalar without quotes, as YAML's core schema reads it: nothing, a boolean or a number.
    Plain(Value),
    /// Any other scalar.
    Text(String),
    /// A list.
    List(Vec<ConfigNode>),
    /// A mapping.
    Mapping(ConfigNodeMapping),
}

/// The entries of a mapping.
#[derive(Debug, Default)]
pub(super) struct ConfigNodeMapping {
    /// The entries, in the order of the file.
    pub(super) entries: Vec<MappingEntry>,
    /// Keys whose entries were taken out.
    taken: Vec<String>,
}

/// One key with its value.
#[derive(Debug)]
pub(super) struct MappingEntry {
    /// The key.
    pub(super) key: String,
    /// The place where the key begins.
    pub(super) mark: ConfigNodeMark,
    /// The value.
    pub(super) value: ConfigNode,
}

/// The reason for which a file is no tree.
#[derive(Debug)]
pub(super) struct SyntaxError {
    /// The place; the beginning for the whole file.
    pub(super) mark: ConfigNodeMark,
    /// The fault.
    pub(super) message: String,
}

impl ConfigNodeMapping {
    /// Returns whether this key was there and has been taken out.
    pub(super) fn is_taken_out(&self, key: &str) -> bool {
        self.taken.iter().any(|taken| taken == key)
    }
}

impl ConfigNode {
    /// Returns an entry of a list.
    pub(super) fn at(&self, number: usize) -> Option<&Self> {
        let ConfigNodeData::List(list) = &self.data else { return None };
        list.get(number)
    }

    /// Returns the value under a key of a mapping.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let ConfigNodeData::Mapping(mapping) = &self.data else { return None };
        mapping.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// Returns the place of a key of a mapping.
    pub(super) fn mark_of(&self, key: &str) -> Option<ConfigNodeMark> {
        let ConfigNodeData::Mapping(mapping) = &self.data else { return None };
        mapping.entries.iter().find(|entry| entry.key == key).map(|entry| entry.mark)
    }

    /// Returns its text, where it is one.
    pub(super) fn text(&self) -> Option<&str> {
        if let ConfigNodeData::Text(text) = &self.data { Some(text) } else { None }
    }

    /// Takes the entry out whose key or value has this mark; false when there is none.
    pub(super) fn try_remove_entry(&mut self, mark: ConfigNodeMark) -> bool {
        match &mut self.data {
            ConfigNodeData::Plain(_) | ConfigNodeData::Text(_) => false,
            ConfigNodeData::List(items) => {
                let before = items.len();
                items.retain(|item| item.mark != mark);
                items.len() < before || items.iter_mut().any(|item| item.try_remove_entry(mark))
            }
            ConfigNodeData::Mapping(mapping) => {
                let hit = |entry: &MappingEntry| entry.mark == mark || entry.value.mark == mark;
                if let Some(index) = mapping.entries.iter().position(hit) {
                    let entry = mapping.entries.remove(index);
                    mapping.taken.push(entry.key);
                    return true;
                }
                mapping.entries.iter_mut().any(|entry| entry.value.try_remove_entry(mark))
            }
        }
    }
}

/// Reads all documents of a file; empty ones are left out.
pub(super) fn documents(text: &str) -> Result<Vec<ConfigNode>, SyntaxError> {
    let mut options = Options::default();
    options.emit_comments = false;
    let parser = Parser::new_from_str_with_options(text, options);
    let mut builder = TreeBuilder::default();
    for (number, event) in parser.enumerate() {
        let (event, span) = event.map_err(|error| SyntaxError {
            mark: mark(number, error.marker().line(), error.marker().col()),
            message: error.info().clone(),
        })?;
        builder.take(event, place(number, &span))?;
    }
    Ok(builder.documents)
}

fn place(number: usize, span: &Span) -> ConfigNodeMark {
    let start = span.tag_span().map_or(span.start, |tag| tag.start);
    mark(number, start.line(), start.col())
}

fn mark(number: usize, line: usize, column: usize) -> ConfigNodeMark {
    let narrow = |number| u32::try_from(number).unwrap_or(u32::MAX);
    ConfigNodeMark { number, line: narrow(line), column: narrow(column).saturating_add(1) }
}

/// A builder of a tree from events. Its stack holds the open collections, each with the key that
/// waits for a value.
#[derive(Default)]
struct TreeBuilder {
    open: Vec<(ConfigNode, Option<(String, ConfigNodeMark)>)>,
    documents: Vec<ConfigNode>,
}

impl TreeBuilder {
    fn take(&mut self, event: Event<'_>, mark: ConfigNodeMark) -> Result<(), SyntaxError> {
        let refuse = |message: &str| Err(SyntaxError { mark, message: message.to_owned() });
        match event {
            Event::Alias(_) | Event::UnresolvedAlias(_) => refuse("aliases have no place in a configuration"),
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, _, Some(_))
            | Event::MappingStart(_, _, Some(_)) => refuse("tags have no place in a configuration"),
            Event::Scalar(text, style, ..) => self.place(ConfigNode { mark, data: scalar(&text, style) }),
            Event::SequenceStart(..) => {
                self.open.push((ConfigNode { mark, data: ConfigNodeData::List(Vec::new()) }, None));
                Ok(())
            }
            Event::MappingStart(..) => {
                self.open.push((
                    ConfigNode { mark, data: ConfigNodeData::Mapping(ConfigNodeMapping::default()) },
                    None,
                ));
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some((node, _)) => self.place(node),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn place(&mut self, node: ConfigNode) -> Result<(), SyntaxError> {
        let Some((parent, waiting)) = self.open.last_mut() else {
            if !matches!(node.data, ConfigNodeData::Plain(Value::Null)) {
                self.documents.push(node);
            }
            return Ok(());
        };
        match (&mut parent.data, waiting.take()) {
            (ConfigNodeData::Mapping(mapping), Some((key, mark))) => {
                if let Some(first) = mapping.entries.iter().find(|entry| entry.key == key) {
                    let message =
                        format!("the key `{key}` is given twice, first on line {}", first.mark.line);
                    return Err(SyntaxError { mark, message });
                }
                mapping.entries.push(MappingEntry { key, mark, value: node });
            }
            (ConfigNodeData::Mapping(_), None) => {
                let ConfigNodeData::Text(key) = node.data else {
                    return Err(SyntaxError { mark: node.mark, message: "a key must be text".to_owned() });
                };
                *waiting = Some((key, node.mark));
            }
            (ConfigNodeData::List(items), _) => items.push(node),
            (ConfigNodeData::Plain(_) | ConfigNodeData::Text(_), _) => {}
        }
        Ok(())
    }
}

fn scalar(text: &str, style: ScalarStyle) -> ConfigNodeData {
    let text = text.to_owned();
    if style != ScalarStyle::Plain {
        return ConfigNodeData::Text(text);
    }
    match serde_yaml::from_str(&text) {
        Ok(value @ (Value::Null | Value::Bool(_) | Value::Number(_))) => ConfigNodeData::Plain(value),
        _ => ConfigNodeData::Text(text),
    }
}
