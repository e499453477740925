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
    /// The mappings merged into it.
    merged: Vec<YamlNodeId>,
    /// The items of a list.
    items: Vec<YamlNodeId>,
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
            let Some((_, value)) = self.entry(node, part) else { break };
            node = value;
        }
        self.tree.mark(node)
    }

    /// Returns the place of the key at the end of a path.
    pub(super) fn key(&mut self, path: &[&str]) -> TextMark {
        let Some((key, parents)) = path.split_last() else { return self.start() };
        let mut node = self.object;
        for part in parents {
            let Some((_, value)) = self.entry(node, part) else { return self.tree.mark(node) };
            node = value;
        }
        let node = self.entry(node, key).map_or(node, |(key, _)| key);
        self.tree.mark(node)
    }

    /// Returns a part of a collection: the place of its key, the node of its value, and where that
    /// is.
    pub(super) fn part(
        &mut self,
        collection: YamlNodeId,
        part: &str,
    ) -> Option<(TextMark, YamlNodeId, TextMark)> {
        let (key, value) = self.entry(collection, part)?;
        Some((self.tree.mark(key), self.tree.target(value), self.tree.mark(value)))
    }

    /// Returns whether a node is a scalar without quotes, tag or block.
    pub(super) fn is_plain(&self, node: YamlNodeId) -> bool {
        self.tree.kind(node) == YamlNodeKind::Plain && self.tree.tag(node) == ScalarTag::None
    }

    /// Looks into merged mappings one level deep.
    fn entry(&mut self, mapping: YamlNodeId, key: &str) -> Option<(YamlNodeId, YamlNodeId)> {
        let mapping = self.tree.target(mapping);
        let index = self.index(mapping);
        if !index.items.is_empty() {
            return index.items.get(key.parse::<usize>().ok()?).map(|item| (*item, *item));
        }
        if let Some(entry) = index.entries.get(key) {
            return Some(*entry);
        }
        let merged = index.merged.clone();
        merged.into_iter().find_map(|from| self.index(from).entries.get(key).copied())
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
        let mut add = |mapping| {
            if !self.merged.contains(&mapping) && self.merged.len() < MAX_MERGED_MAPPINGS {
                self.merged.push(mapping);
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
