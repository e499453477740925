//! The values behind an entry: a digest of them, and the paths at which two objects differ in them.
//!
//! A writer under our own name leaves our entry as it is, so only the values show it. Both sides
//! are brought into one [normal form](super::ValueSchema) first. A difference in it is a doubt and
//! no verdict: the server has normal forms that are not known here.
//!
//! An entry is text that anybody may write who may write the object. So a node is never believed
//! about the shape of a value: where the two disagree, the value itself counts.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::cover::{EntryNodePairs, MAX_VALUE_DEPTH, item_element};
use super::entry::{ChildKey, EntryNode, ManagedEntry};
use super::normal_form::{ValuePosition, ValueSchema, write_leaf, write_shape};
use super::owned::owned_part;
use super::{FieldPath, PathElement};

/// A digest of the values at all leaves of one entry. It may speak of a Secret, so no form of it is
/// ever shown.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueDigest(#[serde(with = "crate::object::serial::digest_form")] [u8; 16]);

impl fmt::Debug for ValueDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ValueDigest(..)")
    }
}

/// Returns the digest of an object's values at the leaves of an entry. The release annotation is
/// none of them: it names the revision too, which is no part of a content.
///
/// Two objects are compared under one and the same entry, so its paths need not be hashed.
pub fn value_digest(object: &Value, entry: &str, schema: ValueSchema) -> ValueDigest {
    let mut sum = ValueHasher { hasher: Sha256::new(), leaf: Vec::new(), schema };
    if let Some(entry) = ManagedEntry::parse(entry) {
        sum.node(Some(object), entry.root(), ValuePosition::ROOT);
    }
    sum.end()
}

/// Returns the same of an object's JSON text, of which nothing else is made a tree; none where it
/// cannot be read.
pub(crate) fn value_digest_of_text(text: &str, entry: &str, schema: ValueSchema) -> Option<ValueDigest> {
    let entry = ManagedEntry::parse(entry)?;
    let object = owned_part(text, &entry)?;
    let mut sum = ValueHasher { hasher: Sha256::new(), leaf: Vec::new(), schema };
    sum.node(Some(&object), entry.root(), ValuePosition::ROOT);
    Some(sum.end())
}

/// Lists the leaves of an entry at which the values of two objects differ in their normal form.
pub fn differing_values(one: &Value, other: &Value, entry: &str, schema: ValueSchema) -> Vec<FieldPath> {
    let Some(entry) = ManagedEntry::parse(entry) else { return Vec::new() };
    let mut walk = ValueDiff { path: FieldPath::default(), schema, found: Vec::new() };
    walk.node(Some(one), Some(other), entry.root(), ValuePosition::ROOT);
    walk.found
}

/// Lists the leaves that one of two entries has and the other lacks.
///
/// An entry that somebody wrote by hand may say anything. The answer to a dry run has the one that
/// our own apply leaves.
pub(crate) fn unequal_leaves(one: &str, other: &str) -> Vec<FieldPath> {
    let (ones, mut others) = (leaves_of(one), leaves_of(other));
    let mut unequal: BTreeMap<String, FieldPath> = ones;
    unequal.retain(|text, _| others.remove(text).is_none());
    unequal.append(&mut others);
    unequal.into_values().collect()
}

/// Returns the leaves of an entry, by the text of their paths.
fn leaves_of(entry: &str) -> BTreeMap<String, FieldPath> {
    let mut leaves = BTreeMap::new();
    if let Some(entry) = ManagedEntry::parse(entry) {
        add_leaves(&mut leaves, entry.root(), &mut FieldPath::default(), 0);
    }
    leaves
}

fn add_leaves(
    leaves: &mut BTreeMap<String, FieldPath>,
    node: EntryNode<'_>,
    path: &mut FieldPath,
    depth: usize,
) {
    if node.is_leaf() || depth >= MAX_VALUE_DEPTH {
        leaves.insert(path.to_string(), path.clone());
        return;
    }
    for child in node.children() {
        path.push(match child.child() {
            ChildKey::Field(name) => PathElement::key(name),
            ChildKey::Index(index) => PathElement::Index(index),
            ChildKey::Item(text) => item_element(text),
            ChildKey::Value(text) => PathElement::Value(serde_json::from_str(text).unwrap_or_default()),
            ChildKey::SelfMarker | ChildKey::Unknown => continue,
        });
        add_leaves(leaves, child, path, depth + 1);
        path.pop();
    }
}

struct ValueHasher {
    hasher: Sha256,
    leaf: Vec<u8>,
    schema: ValueSchema,
}

impl ValueHasher {
    fn node(&mut self, value: Option<&Value>, node: EntryNode<'_>, position: ValuePosition<'_>) {
        if node.is_leaf() && position.depth > 0 {
            self.leaf.clear();
            write_leaf(&mut self.leaf, value, position, self.schema);
            self.hasher.update(&self.leaf);
            return;
        }
        if position.depth >= MAX_VALUE_DEPTH {
            return;
        }
        self.leaf.clear();
        let pairs = pairs_of(value, node, self.schema);
        write_shape(&mut self.leaf, value, node, self.schema);
        write_order(&mut self.leaf, pairs.as_ref());
        self.hasher.update(&self.leaf);
        let items = items_of(value, pairs.as_ref());
        for child in node.children() {
            match child.child() {
                ChildKey::SelfMarker | ChildKey::Unknown => {}
                ChildKey::Field(name) => {
                    let position = position.child(name);
                    if !position.is_release_annotation() {
                        self.node(value.and_then(|value| value.get(name)), child, position);
                    }
                }
                ChildKey::Index(index) => {
                    self.node(value.and_then(|value| value.get(index)), child, position.item());
                }
                ChildKey::Item(_) | ChildKey::Value(_) => {
                    self.node(items.get(&child.index()).copied(), child, position.item());
                }
            }
        }
    }

    fn end(self) -> ValueDigest {
        let digest = self.hasher.finalize();
        let mut short = [0; 16];
        short.iter_mut().zip(digest.iter()).for_each(|(to, from)| *to = *from);
        ValueDigest(short)
    }
}

struct ValueDiff {
    path: FieldPath,
    schema: ValueSchema,
    found: Vec<FieldPath>,
}

impl ValueDiff {
    fn node(
        &mut self,
        one: Option<&Value>,
        other: Option<&Value>,
        node: EntryNode<'_>,
        position: ValuePosition<'_>,
    ) {
        if node.is_leaf() && position.depth > 0 {
            let form = |value| {
                let mut form = Vec::new();
                write_leaf(&mut form, value, position, self.schema);
                form
            };
            if form(one) != form(other) {
                self.found.push(self.path.clone());
            }
            return;
        }
        if position.depth >= MAX_VALUE_DEPTH {
            return;
        }
        let found = self.found.len();
        self.compare_children(one, other, node, position);
        let shape = |value| {
            let mut shape = Vec::new();
            write_shape(&mut shape, value, node, self.schema);
            write_order(&mut shape, pairs_of(value, node, self.schema).as_ref());
            shape
        };
        if self.found.len() == found && shape(one) != shape(other) {
            self.found.push(self.path.clone());
        }
    }

    fn compare_children(
        &mut self,
        one: Option<&Value>,
        other: Option<&Value>,
        node: EntryNode<'_>,
        position: ValuePosition<'_>,
    ) {
        let [ones, others] =
            [one, other].map(|value| items_of(value, pairs_of(value, node, self.schema).as_ref()));
        for child in node.children() {
            let (element, one, other, position) = match child.child() {
                ChildKey::SelfMarker | ChildKey::Unknown => continue,
                ChildKey::Field(name) => (
                    PathElement::key(name),
                    one.and_then(|value| value.get(name)),
                    other.and_then(|value| value.get(name)),
                    position.child(name),
                ),
                ChildKey::Index(index) => (
                    PathElement::Index(index),
                    one.and_then(|value| value.get(index)),
                    other.and_then(|value| value.get(index)),
                    position.item(),
                ),
                ChildKey::Item(text) => (
                    item_element(text),
                    ones.get(&child.index()).copied(),
                    others.get(&child.index()).copied(),
                    position.item(),
                ),
                ChildKey::Value(text) => (
                    PathElement::Value(serde_json::from_str(text).unwrap_or_default()),
                    ones.get(&child.index()).copied(),
                    others.get(&child.index()).copied(),
                    position.item(),
                ),
            };
            if position.is_release_annotation() {
                continue;
            }
            self.path.push(element);
            self.node(one, other, child, position);
            self.path.pop();
        }
    }
}

/// Returns the nodes of the items of a list; none of any other value.
fn pairs_of<'e>(
    value: Option<&Value>,
    node: EntryNode<'e>,
    schema: ValueSchema,
) -> Option<EntryNodePairs<'e>> {
    value.and_then(Value::as_array).map(|items| EntryNodePairs::of(items, node, schema))
}

/// Returns the item that each node of a list stands for, by the node's index.
fn items_of<'v>(value: Option<&'v Value>, pairs: Option<&EntryNodePairs<'_>>) -> HashMap<usize, &'v Value> {
    let items = value.and_then(Value::as_array);
    items.zip(pairs).map(|(items, pairs)| pairs.items(items)).unwrap_or_default()
}

/// Writes the order of the items of an associative list that are ours. The order of init
/// containers, and of variables that name others, has a meaning. Items of others may be between
/// them.
fn write_order(out: &mut Vec<u8>, pairs: Option<&EntryNodePairs<'_>>) {
    for index in pairs.into_iter().flat_map(EntryNodePairs::order) {
        out.extend_from_slice(&index.to_be_bytes());
    }
    out.push(b';');
}
