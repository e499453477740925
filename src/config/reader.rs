//! Typed values out of the located tree, with every fault at once.
//!
//! serde stops at its first complaint. So the entry that it complains of is noted, taken out, and
//! the document is read again, until nothing is left to complain of. The types alone say what is
//! right.

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer as _, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_yaml::Value;

use super::fault::ConfigFault;
use super::tree::{ConfigNode, ConfigNodeData, MappingEntry};

/// A file with more faults than this is of another kind altogether.
const MAX_FAULTS: usize = 100;

/// Reads a document, or notes all that is wrong with it.
pub(super) fn read<T>(document: &mut ConfigNode, faults: &mut Vec<ConfigFault>) -> Option<T>
where
    T: for<'de> Deserialize<'de>,
{
    let before = faults.len();
    loop {
        let fault = match T::deserialize(&*document) {
            Ok(value) => return (faults.len() == before).then_some(value),
            Err(fault) => fault.with_mark(document.mark),
        };
        let mark = fault.mark.unwrap_or(document.mark);
        if !is_consequential(document, &fault) {
            faults.push(fault);
        }
        if faults.len() >= MAX_FAULTS || !document.try_remove_entry(mark) {
            return None;
        }
    }
}

/// Returns whether a key is only missing because it was taken out for its own fault.
fn is_consequential(document: &ConfigNode, fault: &ConfigFault) -> bool {
    let (Some(key), Some(mark)) = (fault.missing, fault.mark) else { return false };
    let mut open = vec![document];
    while let Some(node) = open.pop() {
        match &node.data {
            ConfigNodeData::Mapping(mapping) if node.mark == mark => return mapping.is_taken_out(key),
            ConfigNodeData::Mapping(mapping) => open.extend(mapping.entries.iter().map(|entry| &entry.value)),
            ConfigNodeData::List(items) => open.extend(items),
            ConfigNodeData::Plain(_) | ConfigNodeData::Text(_) => {}
        }
    }
    false
}

impl<'de> Deserializer<'de> for &'de ConfigNode {
    type Error = ConfigFault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigFault> {
        let read = match &self.data {
            ConfigNodeData::Plain(Value::Bool(value)) => visitor.visit_bool(*value),
            ConfigNodeData::Plain(Value::Number(number)) => {
                match (number.as_u64(), number.as_i64(), number.as_f64()) {
                    (Some(number), _, _) => visitor.visit_u64(number),
                    (_, Some(number), _) => visitor.visit_i64(number),
                    (_, _, number) => visitor.visit_f64(number.unwrap_or(f64::NAN)),
                }
            }
            ConfigNodeData::Plain(_) => visitor.visit_unit(),
            ConfigNodeData::Text(text) => visitor.visit_borrowed_str(text),
            ConfigNodeData::List(items) => visitor.visit_seq(ConfigNodeItems(items.iter())),
            ConfigNodeData::Mapping(mapping) => {
                visitor.visit_map(ConfigNodeEntries { rest: mapping.entries.iter(), value: None })
            }
        };
        read.map_err(|fault: ConfigFault| fault.with_mark(self.mark))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigFault> {
        match self.data {
            ConfigNodeData::Plain(Value::Null) => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ConfigFault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConfigFault> {
        match self.text() {
            Some(text) => {
                let text: StrDeserializer<'_, ConfigFault> = text.into_deserializer();
                visitor.visit_enum(text).map_err(|fault| fault.with_mark(self.mark))
            }
            None => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct ConfigNodeItems<'de>(std::slice::Iter<'de, ConfigNode>);

impl<'de> SeqAccess<'de> for ConfigNodeItems<'de> {
    type Error = ConfigFault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ConfigFault> {
        self.0.next().map(|item| seed.deserialize(item)).transpose()
    }
}

struct ConfigNodeEntries<'de> {
    rest: std::slice::Iter<'de, MappingEntry>,
    value: Option<&'de ConfigNode>,
}

impl<'de> MapAccess<'de> for ConfigNodeEntries<'de> {
    type Error = ConfigFault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ConfigFault> {
        let Some(entry) = self.rest.next() else { return Ok(None) };
        self.value = Some(&entry.value);
        let key: StrDeserializer<'de, ConfigFault> = entry.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|fault| fault.with_mark(entry.mark))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ConfigFault> {
        match self.value.take() {
            Some(value) => seed.deserialize(value).map_err(|fault| fault.with_mark(value.mark)),
            None => Err(ConfigFault::new("config-value", "a value without a key")),
        }
    }
}
