//! Finds the nodes of an object again by the path of a value, to say where it is. A part of a path
//! is a key, or the number of an item of a list.

use std::borrow::Cow;
use std::collections::HashMap;

use super::resolve;
use super::scalar::ScalarTag;
use super::tree::{DocumentTree, TextMark, YamlNodeId, YamlNodeKind};

/// The nodes of one object. A mapping or list is indexed when it is first looked into, because any
/// number of its parts may be asked for.
pub(super) struct YamlNodeLines<'t, 'a> {
    tree: &'t DocumentTree<'a>,
    object: YamlNodeId,
    indexes: HashMap<YamlNodeId, YamlNodeIndex<'t>>,
}

struct YamlNodeIndex<'t> {
    /// The key and the value node under each key, the last one of several.
    entries: HashMap<Cow<'t, str>, (YamlNodeId, YamlNodeId)>,
    /// The mappings merged into it, and how.
    merged: Vec<(YamlNodeId, EntryOrigin)>,
    /// The items of a list.
    items: Vec<YamlNodeId>,
}

/// The way by which an entry comes into a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryOrigin {
    /// It is written there.
    Own,
    /// The value of `<<` is an alias.
    MergedAlias,
    /// The value of `<<` is a list, or a mapping that is written there.
    MergedValue,
}

/// A part of a collection.
pub(super) struct YamlNodePart {
    /// The place of its key.
    pub(super) key: TextMark,
    /// The node of its value: of an alias, what it stands for.
    pub(super) node: YamlNodeId,
    /// The place of its value: of an alias, its own.
    pub(super) mark: TextMark,
    pub(super) origin: EntryOrigin,
}

/// The nodes of a key and of its value.
struct YamlNodeEntry {
    key: YamlNodeId,
    value: YamlNodeId,
    origin: EntryOrigin,
}

impl<'t, 'a> YamlNodeLines<'t, 'a> {
    pub(super) fn of(tree: &'t DocumentTree<'a>, object: YamlNodeId) -> Self {
        Self { tree, object, indexes: HashMap::new() }
    }

    /// Returns where the object begins.
    pub(super) fn start(&self) -> TextMark {
        self.tree.mark(self.object)
    }

    /// Returns the place of the value under a path: of the deepest part that is there.
    pub(super) fn value(&mut self, path: &[&str]) -> TextMark {
        let mut node = self.object;
        for part in path {
            let Some(entry) = self.entry(node, part) else { break };
            node = entry.value;
        }
        self.tree.mark(node)
    }

    /// Returns the place of the key at the end of a path.
    pub(super) fn key(&mut self, path: &[&str]) -> TextMark {
        let Some((key, parents)) = path.split_last() else { return self.start() };
        let mut node = self.object;
        for part in parents {
            let Some(entry) = self.entry(node, part) else { return self.tree.mark(node) };
            node = entry.value;
        }
        let node = self.entry(node, key).map_or(node, |entry| entry.key);
        self.tree.mark(node)
    }

    /// Returns a part of a collection.
    pub(super) fn part(&mut self, collection: YamlNodeId, part: &str) -> Option<YamlNodePart> {
        let YamlNodeEntry { key, value, origin } = self.entry(collection, part)?;
        let (key, mark) = (self.tree.mark(key), self.tree.mark(value));
        Some(YamlNodePart { key, node: self.tree.target(value), mark, origin })
    }

    /// Returns where a node begins.
    pub(super) fn mark(&self, node: YamlNodeId) -> TextMark {
        self.tree.mark(node)
    }

    /// Returns whether a node is a scalar without quotes, tag or block.
    pub(super) fn is_plain(&self, node: YamlNodeId) -> bool {
        self.tree.kind(node) == YamlNodeKind::Plain && self.tree.tag(node) == ScalarTag::None
    }

    /// Looks into merged mappings too, and into those that are merged into them.
    fn entry(&mut self, mapping: YamlNodeId, part: &str) -> Option<YamlNodeEntry> {
        let mapping = self.tree.target(mapping);
        let index = self.index(mapping);
        if !index.items.is_empty() {
            let item = *index.items.get(part.parse::<usize>().ok()?)?;
            return Some(YamlNodeEntry { key: item, value: item, origin: EntryOrigin::Own });
        }
        if let Some(&(key, value)) = index.entries.get(part) {
            return Some(YamlNodeEntry { key, value, origin: EntryOrigin::Own });
        }
        let mut open: Vec<(YamlNodeId, EntryOrigin)> = index.merged.iter().rev().copied().collect();
        for _ in 0..MAX_MERGED_MAPPINGS {
            let (merged, origin) = open.pop()?;
            let index = self.index(merged);
            if let Some(&(key, value)) = index.entries.get(part) {
                return Some(YamlNodeEntry { key, value, origin });
            }
            // They come as the mapping does that they are merged into.
            open.extend(index.merged.iter().rev().map(|(inner, _)| (*inner, origin)));
        }
        None
    }

    fn index(&mut self, mapping: YamlNodeId) -> &YamlNodeIndex<'t> {
        let tree = self.tree;
        self.indexes.entry(mapping).or_insert_with(|| {
            // Grown step by step, a large one would need half as much again.
            let entries = HashMap::with_capacity(tree.pairs(mapping).count());
            let items = if tree.kind(mapping) == YamlNodeKind::Sequence {
                tree.children(mapping).collect()
            } else {
                Vec::new()
            };
            let mut index = YamlNodeIndex { entries, merged: Vec::new(), items };
            for (key, value) in tree.pairs(mapping) {
                if tree.is_merge(key) {
                    index.add_merged(tree, value);
                } else if let Some(text) = resolve::key_of(tree, key) {
                    index.entries.insert(text, (key, value));
                }
            }
            index
        })
    }
}

impl YamlNodeIndex<'_> {
    fn add_merged(&mut self, tree: &DocumentTree<'_>, value: YamlNodeId) {
        let target = tree.target(value);
        let origin = if target == value { EntryOrigin::MergedValue } else { EntryOrigin::MergedAlias };
        let mut add = |mapping| {
            let is_known = self.merged.iter().any(|(known, _)| *known == mapping);
            if !is_known && self.merged.len() < MAX_MERGED_MAPPINGS {
                self.merged.push((mapping, origin));
            }
        };
        match tree.kind(target) {
            YamlNodeKind::Sequence => tree.children(target).for_each(|child| add(tree.target(child))),
            _ => add(target),
        }
    }
}

/// Mappings that are looked into, of those merged into one: places are worth no more.
const MAX_MERGED_MAPPINGS: usize = 20;
