//! Typed values out of the located tree, with every fault at once.
//!
//! serde stops at its first complaint. So the entry that it complains of is noted, taken out, and the
//! document is read again, until nothing is left to complain of. The types alone say what is right.

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer as _, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_yaml::Value;

use super::fault::Fault;
use super::tree::{Data, Entry, Node};

/// A file with more faults than this is of another kind altogether.
const MOST_FAULTS: usize = 100;

/// Reads a document, or notes all that is wrong with it.
pub(super) fn read<T>(document: &mut Node, faults: &mut Vec<Fault>) -> Option<T>
where
    T: for<'de> Deserialize<'de>,
{
    let before = faults.len();
    loop {
        let fault = match T::deserialize(&*document) {
            Ok(value) => return (faults.len() == before).then_some(value),
            Err(fault) => fault.at(document.mark),
        };
        let mark = fault.mark.unwrap_or(document.mark);
        if !follows_from_another(document, &fault) {
            faults.push(fault);
        }
        if faults.len() >= MOST_FAULTS || !document.take_out(mark) {
            return None;
        }
    }
}

/// Whether a key is only missing because it was taken out for its own fault.
fn follows_from_another(document: &Node, fault: &Fault) -> bool {
    let (Some(key), Some(mark)) = (fault.missing, fault.mark) else { return false };
    let mut open = vec![document];
    while let Some(node) = open.pop() {
        if let Data::Mapping(mapping) = &node.data {
            if node.mark == mark {
                return mapping.lost(key);
            }
            open.extend(mapping.entries.iter().map(|entry| &entry.value));
        }
    }
    false
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let read = match &self.data {
            Data::Plain(Value::Bool(value)) => visitor.visit_bool(*value),
            Data::Plain(Value::Number(number)) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), _, _) => visitor.visit_u64(number),
                (_, Some(number), _) => visitor.visit_i64(number),
                (_, _, number) => visitor.visit_f64(number.unwrap_or(f64::NAN)),
            },
            Data::Plain(_) => visitor.visit_unit(),
            Data::Text(text) => visitor.visit_borrowed_str(text),
            Data::List(items) => visitor.visit_seq(Items(items.iter())),
            Data::Mapping(mapping) => {
                visitor.visit_map(Entries { rest: mapping.entries.iter(), value: None })
            }
        };
        read.map_err(|fault: Fault| fault.at(self.mark))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.data {
            Data::Plain(Value::Null) => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.text() {
            Some(text) => {
                let text: StrDeserializer<'_, Fault> = text.into_deserializer();
                visitor.visit_enum(text).map_err(|fault| fault.at(self.mark))
            }
            None => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Items<'de>(std::slice::Iter<'de, Node>);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        self.0.next().map(|item| seed.deserialize(item)).transpose()
    }
}

struct Entries<'de> {
    rest: std::slice::Iter<'de, Entry>,
    value: Option<&'de Node>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some(entry) = self.rest.next() else { return Ok(None) };
        self.value = Some(&entry.value);
        let key: StrDeserializer<'de, Fault> = entry.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|fault| fault.at(entry.mark))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        match self.value.take() {
            Some(value) => seed.deserialize(value).map_err(|fault| fault.at(value.mark)),
            None => Err(Fault::new("config-value", "a value without a key")),
        }
    }
}
