//! The values behind an entry: a digest of them, and the paths at which two objects differ in them.
//!
//! A writer under our own name leaves our entry as it is, so only the values show it. Both sides
//! are brought into one normal form first. A difference in it is a doubt and no verdict: the server
//! has normal forms that are not known here.

use crate::object::annotations;
use std::collections::HashMap;
use std::fmt;

use serde_json::{Number, Value};
use sha2::{Digest as _, Sha256};

use super::cover::{MAX_VALUE_DEPTH, NodePairs, item_element};
use super::entry::{ChildKey, EntryNode, ManagedEntry};
use super::owned::owned_part;
use super::{FieldPath, PathElement, parse_quantity};
use crate::object::{GroupKind, canonical_json};

/// Maps whose values are quantities, in the kinds of Kubernetes itself.
const BUILTIN_QUANTITY_MAPS: [&str; 6] =
    ["allocatable", "capacity", "hard", "limits", "podFixed", "requests"];

/// Fields that are quantities, in the kinds of Kubernetes itself.
const QUANTITY_FIELDS: [&str; 4] = ["averageValue", "divisor", "sizeLimit", "storage"];

/// Texts that the server fills in where an atomic list or map leaves them out.
const DEFAULT_TEXTS: [(&str, &str); 6] = [
    ("apiGroup", "rbac.authorization.k8s.io"),
    ("apiVersion", "v1"),
    ("kind", "PersistentVolumeClaim"),
    ("protocol", "TCP"),
    ("scope", "*"),
    ("volumeMode", "Filesystem"),
];

/// The groups of the kinds of Kubernetes itself, whose normal forms are known.
const BUILT_IN: [&str; 16] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// The normal forms of values that are known of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueSchema {
    /// A kind of Kubernetes itself: quantities, zero values, a few defaults.
    BuiltIn,
    /// As those, and the data are base64, in which the server drops line breaks.
    Secret,
    /// Any other: nothing but nulls and the spelling of numbers.
    Custom,
}

impl ValueSchema {
    /// Returns the schema of a kind.
    pub fn of(kind: &GroupKind) -> Self {
        match &*kind.group {
            "" if &*kind.kind == "Secret" => Self::Secret,
            group if BUILT_IN.contains(&group) => Self::BuiltIn,
            _ => Self::Custom,
        }
    }
}

/// A digest of the values at all leaves of one entry. It may speak of a Secret, so no form of it is
/// ever shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ValueDigest([u8; 16]);

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

/// The position of a walk: by name and depth alone, on which normal forms depend.
#[derive(Clone, Copy)]
struct ValuePosition<'a> {
    /// The field of the object itself that it lies in.
    top: &'a str,
    parent: &'a str,
    field: &'a str,
    depth: usize,
}

impl<'a> ValuePosition<'a> {
    const ROOT: Self = Self { top: "", parent: "", field: "", depth: 0 };

    fn child(self, name: &'a str) -> Self {
        let top = if self.depth == 0 { name } else { self.top };
        Self { top, parent: self.field, field: name, depth: self.depth + 1 }
    }

    /// Returns the place of an item of a list, which has the name of the list.
    fn item(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    fn is_release_annotation(self) -> bool {
        self.depth == 3
            && self.top == "metadata"
            && self.parent == "annotations"
            && self.field == annotations::RELEASE
    }

    fn is_datum(self) -> bool {
        self.depth == 2 && self.top == "data"
    }
}

struct ValueHasher {
    hasher: Sha256,
    leaf: Vec<u8>,
    schema: ValueSchema,
}

impl ValueHasher {
    fn node(&mut self, value: Option<&Value>, node: EntryNode<'_>, place: ValuePosition<'_>) {
        if node.is_leaf() && place.depth > 0 {
            self.leaf.clear();
            write_leaf(&mut self.leaf, value, place, self.schema);
            self.hasher.update(&self.leaf);
            return;
        }
        if place.depth >= MAX_VALUE_DEPTH {
            return;
        }
        let items = items_of(value, node);
        for child in node.children() {
            match child.child() {
                ChildKey::Itself | ChildKey::Foreign => {}
                ChildKey::Field(name) => {
                    let place = place.child(name);
                    if !place.is_release_annotation() {
                        self.node(value.and_then(|value| value.get(name)), child, place);
                    }
                }
                ChildKey::Index(index) => {
                    self.node(value.and_then(|value| value.get(index)), child, place.item());
                }
                ChildKey::Item(_) | ChildKey::Value(_) => {
                    self.node(items.get(&child.index()).copied(), child, place.item());
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
        place: ValuePosition<'_>,
    ) {
        if node.is_leaf() && place.depth > 0 {
            let form = |value| {
                let mut form = Vec::new();
                write_leaf(&mut form, value, place, self.schema);
                form
            };
            if form(one) != form(other) {
                self.found.push(self.path.clone());
            }
            return;
        }
        if place.depth >= MAX_VALUE_DEPTH {
            return;
        }
        let (ones, others) = (items_of(one, node), items_of(other, node));
        for child in node.children() {
            let (element, one, other, place) = match child.child() {
                ChildKey::Itself | ChildKey::Foreign => continue,
                ChildKey::Field(name) => (
                    PathElement::key(name),
                    one.and_then(|value| value.get(name)),
                    other.and_then(|value| value.get(name)),
                    place.child(name),
                ),
                ChildKey::Index(index) => (
                    PathElement::Index(index),
                    one.and_then(|value| value.get(index)),
                    other.and_then(|value| value.get(index)),
                    place.item(),
                ),
                ChildKey::Item(text) => (
                    item_element(text),
                    ones.get(&child.index()).copied(),
                    others.get(&child.index()).copied(),
                    place.item(),
                ),
                ChildKey::Value(text) => (
                    PathElement::Value(serde_json::from_str(text).unwrap_or_default()),
                    ones.get(&child.index()).copied(),
                    others.get(&child.index()).copied(),
                    place.item(),
                ),
            };
            if place.is_release_annotation() {
                continue;
            }
            self.path.push(element);
            self.node(one, other, child, place);
            self.path.pop();
        }
    }
}

/// Returns the item that each node of a list stands for, by the node's index.
fn items_of<'v>(value: Option<&'v Value>, node: EntryNode<'_>) -> HashMap<usize, &'v Value> {
    let items = value.and_then(Value::as_array);
    items.map(|items| NodePairs::of(items, node).items(items)).unwrap_or_default()
}

/// Writes the normal form of a value, which shows where it ends.
fn write_leaf(out: &mut Vec<u8>, value: Option<&Value>, place: ValuePosition<'_>, schema: ValueSchema) {
    match value {
        Some(Value::String(text)) if schema == ValueSchema::Secret && place.is_datum() => {
            write_text(out, &text.replace(['\n', '\r'], ""));
        }
        // The `managedFields` entry itself shows that it is there.
        Some(Value::Object(map)) if map.is_empty() && schema != ValueSchema::Custom => out.push(b'0'),
        Some(value) if !is_left_out(value, schema) => write_value(out, value, place, schema),
        _ => out.push(b'0'),
    }
}

fn write_value(out: &mut Vec<u8>, value: &Value, place: ValuePosition<'_>, schema: ValueSchema) {
    let is_quantity = schema != ValueSchema::Custom
        && (BUILTIN_QUANTITY_MAPS.contains(&place.parent) || QUANTITY_FIELDS.contains(&place.field));
    match value {
        Value::Null => out.push(b'0'),
        Value::Bool(value) => out.push(if *value { b't' } else { b'f' }),
        Value::Number(number) if is_quantity => write_amount(out, number.as_f64().unwrap_or_default()),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => match parse_quantity(text).filter(|_| is_quantity) {
            Some(amount) => write_amount(out, amount),
            None => write_text(out, text),
        },
        Value::Array(items) => {
            out.push(b'[');
            for item in items {
                write_value(out, item, place.item(), schema);
            }
            out.push(b']');
        }
        Value::Object(map) => {
            out.push(b'{');
            for (key, value) in map {
                if !is_left_out(value, schema) && !is_default(key, value, schema) {
                    write_text(out, key);
                    write_value(out, value, place.child(key), schema);
                }
            }
            out.push(b'}');
        }
    }
}

/// Writes a text with its length before it, so that no text looks like two.
fn write_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    out.extend_from_slice(&text.len().to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn write_number(out: &mut Vec<u8>, number: &Number) {
    out.push(b'#');
    // A whole number may be spelled as a float.
    out.extend_from_slice(canonical_json(&Value::Number(number.clone())).as_bytes());
    out.push(b';');
}

/// Writes an amount with twelve digits, as 300 × 1e-3 and 0.3 are different floats.
fn write_amount(out: &mut Vec<u8>, amount: f64) {
    out.extend_from_slice(format!("~{amount:.11e};").as_bytes());
}

/// Returns whether the server leaves this value out: zero values of its own kinds, and nulls of
/// any kind.
///
/// An empty map is none of them: `podSelector: {}` means all pods.
fn is_left_out(value: &Value, schema: ValueSchema) -> bool {
    match value {
        Value::Null => true,
        _ if schema == ValueSchema::Custom => false,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(_) => false,
    }
}

/// Returns whether the server writes this value into the items of an atomic list that leave it out.
fn is_default(key: &str, value: &Value, schema: ValueSchema) -> bool {
    schema != ValueSchema::Custom
        && match value {
            Value::String(text) => DEFAULT_TEXTS.contains(&(key, text)) || key == "divisor" && text == "0",
            Value::Number(number) => key == "expirationSeconds" && number.as_i64() == Some(3600),
            Value::Object(map) => {
                key == "status" && map.len() == 1 && map.get("phase").is_some_and(|phase| phase == "Pending")
            }
            _ => false,
        }
}
