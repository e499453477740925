//! What an entry covers of a content: the rule that tells drift.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::entry::{Entry, Kid, Node, item_keys};
use super::{Element, Path};
use crate::object::canonical_json;

/// What lies deeper is taken as covered; the API server itself refuses objects nested this deep.
pub(super) const MAX_DEPTH: usize = 500;

/// What names the object, and what only the server sets: never owned by anybody.
const UNOWNED_METADATA: [&str; 7] =
    ["name", "namespace", "uid", "resourceVersion", "generateName", "creationTimestamp", "managedFields"];

/// Whether our entry covers a content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// Every leaf is ours: the content is in force.
    Whole,
    /// Only empty lists and maps lack a path. An associative list that is empty (`env: []`) leaves none in
    /// any entry, so this tells nothing: look at the live value instead of sending.
    OnlyEmpty(Vec<Path>),
    /// Somebody took these paths.
    Lost(Vec<Path>),
}

/// Lists the paths of a content that our FieldsV1 text does not cover: of what is lost as a whole, the topmost
/// with more than one value in it.
///
/// A null needs no cover; `{}` and `[]` do. A node covers all that lies below it only when it is exactly
/// `{}`. Without an entry, or with one that cannot be read, nothing is covered. `apiVersion`, `kind` and what
/// only names the object count as covered.
pub fn uncovered(content: &Value, entry: Option<&str>) -> Vec<Path> {
    gaps(content, entry).into_iter().map(|gap| gap.path).collect()
}

/// Tells whether our FieldsV1 text covers a content, and what to do when it does not.
pub fn coverage(content: &Value, entry: Option<&str>) -> Coverage {
    let gaps = gaps(content, entry);
    let lost = gaps.iter().any(|gap| !gap.hollow);
    let paths: Vec<Path> = gaps.into_iter().filter(|gap| gap.hollow != lost).map(|gap| gap.path).collect();
    match (lost, paths.is_empty()) {
        (_, true) => Coverage::Whole,
        (true, _) => Coverage::Lost(paths),
        (false, _) => Coverage::OnlyEmpty(paths),
    }
}

/// Lists the topmost paths that our entry owns and the content does not have (any more): the next apply
/// gives them up, which deletes what nobody else owns.
pub fn surplus(content: &Value, entry: &str) -> Vec<Path> {
    let Some(entry) = Entry::parse(entry) else { return Vec::new() };
    let mut walk = Surplus { path: Path::default(), depth: 0, found: Vec::new() };
    walk.node(content, entry.root());
    walk.found
}

/// Whether an entry owns the field behind a chain of map keys, or something below it.
pub fn owns(entry: &str, path: &[&str]) -> bool {
    Entry::parse(entry).is_some_and(|entry| holds(entry.root(), Path::of_keys(path).elements()))
}

/// Whether a tree owns this path, something below it, or all that it lies in.
pub(super) fn holds(root: Node<'_>, path: &[Element]) -> bool {
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

struct Gap {
    path: Path,
    /// Nothing but empty lists, empty maps and nulls lies there.
    hollow: bool,
}

fn gaps(content: &Value, entry: Option<&str>) -> Vec<Gap> {
    let entry = entry.and_then(Entry::parse);
    let mut walk = Cover { path: Path::default(), depth: 0, found: Vec::new() };
    walk.root(content, entry.as_ref().map(Entry::root));
    walk.found
}

struct Cover {
    path: Path,
    depth: usize,
    found: Vec<Gap>,
}

impl Cover {
    fn root(&mut self, content: &Value, root: Option<Node<'_>>) {
        let Some(content) = content.as_object() else { return };
        let mut fields = root.map(Node::fields);
        for (key, value) in content {
            let node = fields.as_mut().and_then(|fields| fields.get(key));
            match (key.as_str(), value) {
                ("apiVersion" | "kind", _) => {}
                ("metadata", Value::Object(metadata)) => {
                    self.path.push(Element::key(key));
                    self.metadata(metadata, node);
                    self.path.pop();
                }
                _ => self.child(Element::key(key), value, node),
            }
        }
    }

    fn metadata(&mut self, metadata: &Map<String, Value>, node: Option<Node<'_>>) {
        let mut fields = node.map(Node::fields);
        for (key, value) in metadata.iter().filter(|(key, _)| !UNOWNED_METADATA.contains(&key.as_str())) {
            let node = fields.as_mut().and_then(|fields| fields.get(key));
            self.child(Element::key(key), value, node);
        }
    }

    /// One value, with the node that stands for it; none means that it is nobody's.
    fn child(&mut self, element: Element, value: &Value, node: Option<Node<'_>>) {
        match node {
            _ if value.is_null() => {}
            Some(node) if node.is_leaf() => {}
            Some(node) => {
                self.path.push(element);
                self.depth += 1;
                if self.depth < MAX_DEPTH {
                    self.below(value, node);
                }
                self.depth -= 1;
                self.path.pop();
            }
            None => {
                self.path.push(element);
                self.found.push(Gap { path: narrowed(&self.path, value), hollow: is_hollow(value, 0) });
                self.path.pop();
            }
        }
    }

    fn below(&mut self, value: &Value, node: Node<'_>) {
        match value {
            Value::Object(map) => {
                let mut fields = node.fields();
                for (key, value) in map {
                    self.child(Element::key(key), value, fields.get(key));
                }
            }
            Value::Array(items) => {
                let pairs = Pairs::of(items, node);
                for (nth, (item, kid)) in items.iter().zip(&pairs.kids).enumerate() {
                    self.child(pairs.element(nth, item), item, *kid);
                }
            }
            // An entry that goes deeper than a scalar stands for another content than this one; the hash of
            // the content tells that already.
            _ => {}
        }
    }
}

/// Goes on while there is only one value below: the server drops parents that own nothing any more, so the
/// loss of one deep field shows as that of its parents.
fn narrowed(path: &Path, value: &Value) -> Path {
    let (mut path, mut value) = (path.clone(), value);
    while let Value::Object(map) = value {
        let mut kept = map.iter().filter(|(_, value)| !value.is_null());
        let (Some((key, only)), None) = (kept.next(), kept.next()) else { break };
        path.push(Element::key(key));
        value = only;
    }
    path
}

/// Whether nothing but empty lists, empty maps and nulls lies here.
fn is_hollow(value: &Value, depth: usize) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => depth < MAX_DEPTH && map.values().all(|value| is_hollow(value, depth + 1)),
        _ => false,
    }
}

struct Surplus {
    path: Path,
    depth: usize,
    found: Vec<Path>,
}

impl Surplus {
    fn node(&mut self, content: &Value, node: Node<'_>) {
        if self.depth >= MAX_DEPTH {
            return;
        }
        self.depth += 1;
        let items = content.as_array().map(|items| Pairs::of(items, node).items(items)).unwrap_or_default();
        for kid in node.kids() {
            let item = items.get(&kid.index()).copied();
            let (element, value) = match kid.kid() {
                Kid::Itself | Kid::Foreign => continue,
                Kid::Field(name) => (Element::key(name), content.get(name)),
                Kid::Index(index) => (Element::Index(index), content.get(index)),
                Kid::Item(text) => (item_element(text), item),
                Kid::Value(text) => (Element::Value(serde_json::from_str(text).unwrap_or_default()), item),
            };
            self.path.push(element);
            match value.filter(|value| !value.is_null()) {
                Some(value) if !kid.is_leaf() => self.node(value, kid),
                Some(_) => {}
                None => self.found.push(self.path.clone()),
            }
            self.path.pop();
        }
        self.depth -= 1;
    }
}

/// The step that a `k:` node stands for.
pub(super) fn item_element(text: &str) -> Element {
    Element::Item(item_keys(text).unwrap_or_default().into_iter().map(|(k, v)| (k.into(), v)).collect())
}

/// Which node stands for which item of a list.
pub(super) struct Pairs<'e> {
    /// The names of the keys; empty when the list is not associative.
    names: Vec<String>,
    is_set: bool,
    kids: Vec<Option<Node<'e>>>,
}

impl<'e> Pairs<'e> {
    /// Finds them for a list and the node that stands for it.
    pub(super) fn of(items: &[Value], node: Node<'e>) -> Self {
        let mut by_text: HashMap<&str, Node<'e>> = HashMap::new();
        let mut names = Vec::new();
        let mut is_set = false;
        for kid in node.kids() {
            match kid.kid() {
                Kid::Item(text) => {
                    if by_text.is_empty() {
                        names =
                            item_keys(text).unwrap_or_default().into_iter().map(|(name, _)| name).collect();
                    }
                    by_text.insert(text, kid);
                }
                Kid::Value(text) => {
                    is_set = true;
                    by_text.insert(text, kid);
                }
                _ => {}
            }
        }
        let kids = items.iter().map(|item| exact(item, &names, is_set, &by_text)).collect();
        let mut pairs = Self { names, is_set, kids };
        if by_text.is_empty() {
            pairs.by_index(node);
        } else if pairs.kids.iter().any(Option::is_none) {
            pairs.by_meaning(items, node);
        }
        pairs
    }

    fn by_index(&mut self, node: Node<'e>) {
        for kid in node.kids() {
            if let Kid::Index(index) = kid.kid()
                && let Some(slot) = self.kids.get_mut(index)
            {
                *slot = Some(kid);
            }
        }
    }

    /// Finds the nodes of items that leave a key out (it has its default, as `protocol`) or whose text is
    /// spelled differently (`\u003c`): any node that the item does not contradict and that no other item
    /// has.
    fn by_meaning(&mut self, items: &[Value], node: Node<'e>) {
        let taken: HashSet<usize> = self.kids.iter().flatten().map(|kid| kid.index()).collect();
        let mut free: Vec<(Node<'e>, Value)> = node
            .kids()
            .filter(|kid| !taken.contains(&kid.index()))
            .filter_map(|kid| match kid.kid() {
                Kid::Item(text) | Kid::Value(text) => Some((kid, serde_json::from_str(text).ok()?)),
                _ => None,
            })
            .collect();
        for (item, slot) in items.iter().zip(&mut self.kids).filter(|(_, slot)| slot.is_none()) {
            let found = free.iter().position(|(_, keys)| match keys {
                Value::Object(keys) if !self.is_set => {
                    item.is_object() && keys.iter().all(|(k, v)| item.get(k).is_none_or(|own| own == v))
                }
                value => value == item,
            });
            if let Some(found) = found {
                *slot = Some(free.remove(found).0);
            }
        }
    }

    fn element(&self, nth: usize, item: &Value) -> Element {
        if self.is_set {
            return Element::Value(item.clone());
        }
        let keys: Vec<_> = self
            .names
            .iter()
            .filter_map(|name| Some((name.as_str().into(), item.get(name)?.clone())))
            .collect();
        if keys.is_empty() { Element::Index(nth) } else { Element::Item(keys) }
    }

    /// The item that each node stands for, by the node's index.
    pub(super) fn items<'v>(&self, items: &'v [Value]) -> HashMap<usize, &'v Value> {
        self.kids.iter().zip(items).filter_map(|(kid, item)| Some((kid.as_ref()?.index(), item))).collect()
    }
}

/// The node whose key has exactly this item's text.
fn exact<'e>(
    item: &Value,
    names: &[String],
    is_set: bool,
    by_text: &HashMap<&str, Node<'e>>,
) -> Option<Node<'e>> {
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
