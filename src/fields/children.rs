//! The children of a node, to be looked up many times: the largest objects have thousands of fields
//! and items.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::PathElement;
use super::entry::{ChildKey, EntryNode, item_keys};
use crate::object::canonical_json;

/// The children of one node by what their keys say.
#[derive(Default)]
pub(super) struct ChildIndex<'e> {
    fields: HashMap<&'e str, EntryNode<'e>>,
    indices: HashMap<usize, EntryNode<'e>>,
    values: HashMap<String, EntryNode<'e>>,
    items: Vec<(Map<String, Value>, EntryNode<'e>)>,
    /// The items with a key, by its value.
    by_key: HashMap<String, Vec<usize>>,
}

impl<'e> ChildIndex<'e> {
    /// Indexes the children of a node; what is no JSON is none of them.
    pub(super) fn of(node: EntryNode<'e>) -> Self {
        let mut children = Self::default();
        for child in node.children() {
            match child.child() {
                ChildKey::Field(name) => drop(children.fields.entry(name).or_insert(child)),
                ChildKey::Index(index) => drop(children.indices.entry(index).or_insert(child)),
                ChildKey::Value(text) => {
                    if let Some(value) = canonical(text) {
                        children.values.entry(value).or_insert(child);
                    }
                }
                ChildKey::Item(text) => children.add_item(text, child),
                ChildKey::SelfMarker | ChildKey::Unknown => {}
            }
        }
        children
    }

    fn add_item(&mut self, text: &str, child: EntryNode<'e>) {
        let Some(keys) = item_keys(text) else { return };
        for (key, value) in &keys {
            self.by_key.entry(pair(key, value)).or_default().push(self.items.len());
        }
        self.items.push((keys, child));
    }

    /// Returns the child behind one step of a path, which may leave keys of an item out.
    pub(super) fn step(&self, element: &PathElement) -> Option<EntryNode<'e>> {
        match element {
            PathElement::Key(key) => self.fields.get(&**key).copied(),
            PathElement::Index(index) => self.indices.get(index).copied(),
            PathElement::Value(value) => self.values.get(&canonical_json(value)).copied(),
            PathElement::Item(keys) => self.item(keys.iter().map(|(key, value)| (&**key, value)), |_| true),
        }
    }

    /// Returns the child that speaks of the same as a child of another entry.
    pub(super) fn counterpart(&self, child: EntryNode<'_>) -> Option<EntryNode<'e>> {
        match child.child() {
            ChildKey::Field(name) => self.fields.get(name).copied(),
            ChildKey::Index(index) => self.indices.get(&index).copied(),
            ChildKey::Value(text) => self.values.get(&canonical(text)?).copied(),
            ChildKey::Item(text) => {
                let keys = item_keys(text)?;
                let pairs = keys.iter().map(|(key, value)| (key.as_str(), value));
                self.item(pairs, |own| own.len() == keys.len())
            }
            ChildKey::SelfMarker | ChildKey::Unknown => None,
        }
    }

    /// Finds the first item that has these keys, among those that have the rarest of them.
    fn item<'k>(
        &self,
        keys: impl Iterator<Item = (&'k str, &'k Value)> + Clone,
        fits: impl Fn(&Map<String, Value>) -> bool,
    ) -> Option<EntryNode<'e>> {
        let mut rarest: Option<&Vec<usize>> = None;
        for (key, value) in keys.clone() {
            let having = self.by_key.get(&pair(key, value))?;
            rarest = rarest.filter(|rarest| rarest.len() <= having.len()).or(Some(having));
        }
        let mut having = rarest?.iter().filter_map(|nth| self.items.get(*nth));
        let has = |own: &Map<String, Value>| keys.clone().all(|(key, value)| own.get(key) == Some(value));
        having.find(|(own, _)| has(own) && fits(own)).map(|(_, child)| *child)
    }
}

fn pair(key: &str, value: &Value) -> String {
    format!("{key}={}", canonical_json(value))
}

fn canonical(text: &str) -> Option<String> {
    serde_json::from_str::<Value>(text).ok().map(|value| canonical_json(&value))
}
