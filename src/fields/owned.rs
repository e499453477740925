//! From an object's JSON text to a tree of what one entry owns, without a tree of the rest.

use std::fmt;

use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::entry::{ChildKey, EntryNode, ManagedEntry};

/// Reads the part of an object that lies below the fields of an entry; none where either is no
/// JSON.
///
/// Items of lists are read completely, as their keys say which of them an entry means.
pub(super) fn owned_part(text: &str, entry: &ManagedEntry<'_>) -> Option<Value> {
    let mut reader = serde_json::Deserializer::from_str(text);
    OwnedPart { node: entry.root(), is_root: true }.deserialize(&mut reader).ok()
}

/// A reader of what lies below one node.
struct OwnedPart<'e> {
    node: EntryNode<'e>,
    /// An entry that owns nothing at all looks like a leaf, and owns nothing.
    is_root: bool,
}

impl<'de> DeserializeSeed<'de> for OwnedPart<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.node.is_leaf() && !self.is_root {
            Value::deserialize(deserializer)
        } else {
            deserializer.deserialize_any(self)
        }
    }
}

impl<'de> Visitor<'de> for OwnedPart<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields: Vec<(&str, EntryNode<'_>)> = self
            .node
            .children()
            .filter_map(|child| match child.child() {
                ChildKey::Field(name) => Some((name, child)),
                _ => None,
            })
            .collect();
        fields.sort_unstable_by_key(|(name, _)| *name);
        let mut kept = Map::new();
        while let Some(found) = map.next_key_seed(FieldLookup(&fields))? {
            match found {
                Some((name, node)) => {
                    let value = map.next_value_seed(OwnedPart { node, is_root: false })?;
                    kept.insert(name.to_owned(), value);
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Value::Object(kept))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

/// A lookup of keys among the fields of a node, which are in byte order.
struct FieldLookup<'f, 'e>(&'f [(&'e str, EntryNode<'e>)]);

impl<'de, 'e> DeserializeSeed<'de> for FieldLookup<'_, 'e> {
    type Value = Option<(&'e str, EntryNode<'e>)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'e> Visitor<'_> for FieldLookup<'_, 'e> {
    type Value = Option<(&'e str, EntryNode<'e>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        let found = self.0.binary_search_by_key(&key, |(name, _)| name).ok();
        Ok(found.and_then(|nth| self.0.get(nth)).copied())
    }
}
