//! Paths of fields, as people and the API server write them.

use std::fmt;

use serde_json::Value;

use crate::object::canonical_json;

/// One step of a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element {
    /// Into a map, by key.
    Key(Box<str>),
    /// Into an associative list, by the keys that tell its items apart.
    Item(Vec<(Box<str>, Value)>),
    /// Into a set, by value.
    Value(Value),
    /// Into any list, by position from 0.
    Index(usize),
}

impl Element {
    /// A step into a map.
    pub fn key(name: &str) -> Self {
        Self::Key(name.into())
    }
}

/// A place in an object: `.spec.template.spec.containers[name="web"].image`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Path(Vec<Element>);

impl Path {
    /// A path through maps only.
    pub fn of_keys(keys: &[&str]) -> Self {
        Self(keys.iter().map(|key| Element::key(key)).collect())
    }

    /// Its steps, from the root.
    pub fn elements(&self) -> &[Element] {
        &self.0
    }

    /// Whether it begins with these map keys, or ends before the last of them while agreeing so far: then
    /// what it names contains, or lies in, what the keys name.
    pub fn meets(&self, keys: &[&str]) -> bool {
        self.0.iter().zip(keys).all(|(element, key)| matches!(element, Element::Key(name) if &**name == *key))
    }

    /// Adds a step; for walks that go down.
    pub fn push(&mut self, element: Element) {
        self.0.push(element);
    }

    /// Takes the last step off; for walks that come up.
    pub fn pop(&mut self) {
        self.0.pop();
    }
}

impl From<Vec<Element>> for Path {
    fn from(elements: Vec<Element>) -> Self {
        Self(elements)
    }
}

/// The server's own form, but a key that is not a plain word is quoted, so that no two paths look alike:
/// `.metadata.labels["app.kubernetes.io/name"]`.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(".");
        }
        self.0.iter().try_for_each(|element| write!(f, "{element}"))
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) if is_plain(key) => write!(f, ".{key}"),
            Self::Key(key) => write!(f, "[{}]", quoted(key)),
            Self::Item(keys) => {
                f.write_str("[")?;
                for (nth, (key, value)) in keys.iter().enumerate() {
                    let comma = if nth == 0 { "" } else { "," };
                    write!(f, "{comma}{key}={}", canonical_json(value))?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={}]", canonical_json(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'$'))
}

fn quoted(key: &str) -> String {
    canonical_json(&Value::from(key))
}
