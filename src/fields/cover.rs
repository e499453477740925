//! The coverage of a content by an entry: the rule that finds drift.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::entry::{ChildKey, EntryNode, ManagedEntry, item_keys};
use super::normal_form::ValueSchema;
use super::{FieldPath, PathElement};
use crate::object::canonical_json;

/// The depth beyond which values count as covered; the API server itself refuses objects nested
/// this deep.
pub(super) const MAX_VALUE_DEPTH: usize = 500;

/// The fields that name the object, and those that only the server sets: nobody ever owns them.
const UNOWNED_METADATA: [&str; 7] =
    ["name", "namespace", "uid", "resourceVersion", "generateName", "creationTimestamp", "managedFields"];

/// Indicates whether our entry covers a content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnershipCheck {
    /// Every leaf is ours: the content is in force.
    Complete,
    /// Only empty lists and maps lack a path. An associative list that is empty (`env: []`) leaves
    /// none in any entry. So this proves no drift: compare the live value instead of sending.
    OnlyEmpty(Vec<FieldPath>),
    /// Somebody took these paths.
    Lost(Vec<FieldPath>),
}

/// Returns the paths of a content that our FieldsV1 text does not cover. Of a subtree that is lost
/// completely, that is the topmost path with more than one value in it.
///
/// A null needs no cover; `{}` and `[]` do. A node covers its whole subtree only when it is exactly
/// `{}`, and a scalar only then. No server names items by their position: such a node covers
/// nothing. Without an entry, or with one that cannot be read, nothing is covered. `apiVersion`,
/// `kind` and the object's names count as covered.
pub fn uncovered_paths(content: &Value, entry: Option<&str>) -> Vec<FieldPath> {
    coverage_gaps(content, entry).into_iter().map(|gap| gap.path).collect()
}

/// Returns whether our FieldsV1 text covers a content, and what it lacks.
pub fn check_ownership(content: &Value, entry: Option<&str>) -> OwnershipCheck {
    let gaps = coverage_gaps(content, entry);
    let lost = gaps.iter().any(|gap| !gap.has_no_values);
    let paths: Vec<FieldPath> =
        gaps.into_iter().filter(|gap| gap.has_no_values != lost).map(|gap| gap.path).collect();
    match (lost, paths.is_empty()) {
        (_, true) => OwnershipCheck::Complete,
        (true, _) => OwnershipCheck::Lost(paths),
        (false, _) => OwnershipCheck::OnlyEmpty(paths),
    }
}

/// Returns whether an entry owns the field behind a chain of map keys, or something below it.
pub(crate) fn owns(entry: &str, path: &[&str]) -> bool {
    ManagedEntry::parse(entry).is_some_and(|entry| holds(entry.root(), FieldPath::of_keys(path).elements()))
}

/// Returns whether a tree owns this path, something below it, or all that it lies in.
pub(super) fn holds(root: EntryNode<'_>, path: &[PathElement]) -> bool {
    let mut node = root;
    for (depth, element) in path.iter().enumerate() {
        if depth > 0 && node.is_leaf() {
            return true;
        }
        let Some(next) = node.step(element) else { return false };
        node = next;
    }
    true
}

struct OwnershipGap {
    path: FieldPath,
    /// Nothing but empty lists, empty maps and nulls lies there.
    has_no_values: bool,
}

fn coverage_gaps(content: &Value, entry: Option<&str>) -> Vec<OwnershipGap> {
    let entry = entry.and_then(ManagedEntry::parse);
    let schema = ValueSchema::of_object(content);
    let mut walk = OwnershipWalk { path: FieldPath::default(), depth: 0, schema, found: Vec::new() };
    walk.root(content, entry.as_ref().map(ManagedEntry::root));
    walk.found
}

struct OwnershipWalk {
    path: FieldPath,
    depth: usize,
    schema: ValueSchema,
    found: Vec<OwnershipGap>,
}

impl OwnershipWalk {
    fn root(&mut self, content: &Value, root: Option<EntryNode<'_>>) {
        let Some(content) = content.as_object() else { return };
        let mut fields = root.map(EntryNode::fields);
        for (key, value) in content {
            let node = fields.as_mut().and_then(|fields| fields.get(key));
            match (key.as_str(), value) {
                ("apiVersion" | "kind", _) => {}
                ("metadata", Value::Object(metadata)) => {
                    self.path.push(PathElement::key(key));
                    self.metadata(metadata, node);
                    self.path.pop();
                }
                _ => self.child(PathElement::key(key), value, node),
            }
        }
    }

    fn metadata(&mut self, metadata: &Map<String, Value>, node: Option<EntryNode<'_>>) {
        let mut fields = node.map(EntryNode::fields);
        for (key, value) in metadata.iter().filter(|(key, _)| !UNOWNED_METADATA.contains(&key.as_str())) {
            let node = fields.as_mut().and_then(|fields| fields.get(key));
            self.child(PathElement::key(key), value, node);
        }
    }

    /// Compares one value with its node; none means that the entry does not own it.
    fn child(&mut self, element: PathElement, value: &Value, node: Option<EntryNode<'_>>) {
        match node {
            _ if value.is_null() => {}
            Some(node) if node.is_leaf() => {}
            Some(node) => {
                self.path.push(element);
                self.depth += 1;
                if self.depth < MAX_VALUE_DEPTH {
                    self.visit_children(value, node);
                }
                self.depth -= 1;
                self.path.pop();
            }
            None => {
                self.path.push(element);
                self.found.push(OwnershipGap {
                    path: narrow_to_parent(&self.path, value),
                    has_no_values: has_no_values(value, 0),
                });
                self.path.pop();
            }
        }
    }

    fn visit_children(&mut self, value: &Value, node: EntryNode<'_>) {
        match value {
            Value::Object(map) => {
                let mut fields = node.fields();
                for (key, value) in map {
                    self.child(PathElement::key(key), value, fields.get(key));
                }
            }
            Value::Array(items) => {
                let pairs = EntryNodePairs::of(items, node, self.schema);
                for (nth, (item, child)) in items.iter().zip(&pairs.children).enumerate() {
                    self.child(pairs.element(nth, item), item, *child);
                }
            }
            // Somebody wrote into our entry that it owns what lies below a scalar. The scalar is
            // anybody's then: the server takes no path away from us that we do not have.
            _ => self.found.push(OwnershipGap { path: self.path.clone(), has_no_values: false }),
        }
    }
}

/// Returns the topmost path with only one value below. The server drops parents that own nothing
/// any more, so the loss of one deep field shows as that of its parents.
fn narrow_to_parent(path: &FieldPath, value: &Value) -> FieldPath {
    let (mut path, mut value) = (path.clone(), value);
    while let Value::Object(map) = value {
        let mut kept = map.iter().filter(|(_, value)| !value.is_null());
        let (Some((key, only)), None) = (kept.next(), kept.next()) else { break };
        path.push(PathElement::key(key));
        value = only;
    }
    path
}

/// Returns whether nothing but empty lists, empty maps and nulls lies here.
fn has_no_values(value: &Value, depth: usize) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => {
            depth < MAX_VALUE_DEPTH && map.values().all(|value| has_no_values(value, depth + 1))
        }
        _ => false,
    }
}

/// Returns the step that a `k:` node stands for.
pub(super) fn item_element(text: &str) -> PathElement {
    PathElement::Item(item_keys(text).unwrap_or_default().into_iter().map(|(k, v)| (k.into(), v)).collect())
}

/// The nodes of a list's items.
pub(super) struct EntryNodePairs<'e> {
    /// The names of the keys; empty when the list is not associative.
    names: Vec<String>,
    is_set: bool,
    children: Vec<Option<EntryNode<'e>>>,
}

impl<'e> EntryNodePairs<'e> {
    /// Pairs the items of a list with the children of its node.
    pub(super) fn of(items: &[Value], node: EntryNode<'e>, schema: ValueSchema) -> Self {
        let mut by_text: HashMap<&str, EntryNode<'e>> = HashMap::new();
        let mut names = Vec::new();
        let mut is_set = false;
        for child in node.children() {
            match child.child() {
                ChildKey::Item(text) => {
                    if by_text.is_empty() {
                        names =
                            item_keys(text).unwrap_or_default().into_iter().map(|(name, _)| name).collect();
                    }
                    by_text.insert(text, child);
                }
                ChildKey::Value(text) => {
                    is_set = true;
                    by_text.insert(text, child);
                }
                _ => {}
            }
        }
        let children = items.iter().map(|item| find_exact_child(item, &names, is_set, &by_text)).collect();
        let mut pairs = Self { names, is_set, children };
        if !by_text.is_empty() && pairs.children.iter().any(Option::is_none) {
            pairs.pair_by_meaning(items, node, schema);
        }
        pairs
    }

    /// Pairs the nodes of items that leave a key out or spell it differently (`\u003c`). A key that
    /// is left out has its default. In a kind of Kubernetes itself that is a port's protocol. In
    /// any other kind nobody knows it. One key at least is there.
    ///
    /// A node with another key is of no item that there is: somebody has made it up.
    fn pair_by_meaning(&mut self, items: &[Value], node: EntryNode<'e>, schema: ValueSchema) {
        let taken: HashSet<usize> = self.children.iter().flatten().map(|child| child.index()).collect();
        let mut free: Vec<(EntryNode<'e>, Value)> = node
            .children()
            .filter(|child| !taken.contains(&child.index()))
            .filter_map(|child| match child.child() {
                ChildKey::Item(text) | ChildKey::Value(text) => {
                    Some((child, serde_json::from_str(text).ok()?))
                }
                _ => None,
            })
            .collect();
        for (item, slot) in items.iter().zip(&mut self.children).filter(|(_, slot)| slot.is_none()) {
            let found = free.iter().position(|(_, keys)| match keys {
                Value::Object(keys) if !self.is_set => has_keys(item, keys, schema),
                value => value == item,
            });
            if let Some(found) = found {
                *slot = Some(free.remove(found).0);
            }
        }
    }

    fn element(&self, nth: usize, item: &Value) -> PathElement {
        if self.is_set {
            return PathElement::Value(item.clone());
        }
        let keys: Vec<_> = self
            .names
            .iter()
            .filter_map(|name| Some((name.as_str().into(), item.get(name)?.clone())))
            .collect();
        if keys.is_empty() { PathElement::Index(nth) } else { PathElement::Item(keys) }
    }

    /// Returns the nodes of an associative list, in the order of its items; none of a set, whose
    /// order says nothing.
    pub(super) fn order(&self) -> impl Iterator<Item = usize> {
        let children = if self.is_set { &[][..] } else { &self.children };
        children.iter().flatten().map(|child| child.index())
    }

    /// Returns the item that each node stands for, by the node's index.
    pub(super) fn items<'v>(&self, items: &'v [Value]) -> HashMap<usize, &'v Value> {
        self.children
            .iter()
            .zip(items)
            .filter_map(|(child, item)| Some((child.as_ref()?.index(), item)))
            .collect()
    }
}

/// Returns whether an item of an associative list has these keys, as far as it names them. See
/// [`EntryNodePairs::pair_by_meaning`] for those that it leaves out.
pub(super) fn has_keys(item: &Value, keys: &Map<String, Value>, schema: ValueSchema) -> bool {
    let is_default =
        |key: &str, value: &Value| schema == ValueSchema::Custom || key == "protocol" && value == "TCP";
    let agrees = |(key, value): (&String, &Value)| match item.get(key) {
        Some(own) => own == value,
        None => is_default(key, value),
    };
    keys.keys().any(|key| item.get(key).is_some()) && keys.iter().all(agrees)
}

/// Returns the node whose key has exactly this item's text.
fn find_exact_child<'e>(
    item: &Value,
    names: &[String],
    is_set: bool,
    by_text: &HashMap<&str, EntryNode<'e>>,
) -> Option<EntryNode<'e>> {
    if is_set {
        return by_text.get(canonical_json(item).as_str()).copied();
    }
    if names.is_empty() {
        return None;
    }
    let keys: Option<Map<String, Value>> =
        names.iter().map(|name| Some((name.clone(), item.get(name)?.clone()))).collect();
    by_text.get(canonical_json(&Value::Object(keys?)).as_str()).copied()
}
