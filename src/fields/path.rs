//! Paths of fields, as people and the API server write them.

use std::fmt;

use serde_json::Value;

use crate::object::canonical_json;

/// One step of a [`FieldPath`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathElement {
    /// Into a map, by key.
    Key(Box<str>),
    /// Into an associative list, by the keys that distinguish its items.
    Item(Vec<(Box<str>, Value)>),
    /// Into a set, by value.
    Value(Value),
    /// Into any list, by position from 0.
    Index(usize),
}

impl PathElement {
    /// Returns a step into a map.
    pub fn key(name: &str) -> Self {
        Self::Key(name.into())
    }
}

/// A place in an object: `.spec.template.spec.containers[name="web"].image`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FieldPath(Vec<PathElement>);

impl FieldPath {
    /// Returns a path through maps only.
    pub fn of_keys(keys: &[&str]) -> Self {
        Self(keys.iter().map(|key| PathElement::key(key)).collect())
    }

    /// Returns its steps, from the root.
    pub fn elements(&self) -> &[PathElement] {
        &self.0
    }

    /// Returns whether it begins with these map keys, or ends before the last of them while
    /// agreeing so far. Then the two paths contain one another.
    pub fn is_prefix_related(&self, keys: &[&str]) -> bool {
        self.0
            .iter()
            .zip(keys)
            .all(|(element, key)| matches!(element, PathElement::Key(name) if &**name == *key))
    }

    /// Returns the value that it names in an object; an item that leaves a key out has that key's
    /// default.
    pub fn find<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(object, |value, element| match element {
            PathElement::Key(key) => value.get(&**key),
            PathElement::Index(position) => value.get(*position),
            PathElement::Value(wanted) => value.as_array()?.iter().find(|item| *item == wanted),
            PathElement::Item(keys) => value.as_array()?.iter().find(|item| {
                keys.iter().all(|(key, wanted)| item.get(&**key).is_none_or(|found| found == wanted))
            }),
        })
    }

    /// Returns its JSON pointer (RFC 6901) into an object; none where the object ends before its
    /// last step.
    pub(crate) fn pointer(&self, object: &Value) -> Option<String> {
        let (mut pointer, mut path) = (String::new(), Self::default());
        for element in &self.0 {
            let parent = path.find(object)?;
            path.push(element.clone());
            pointer.push('/');
            if let PathElement::Key(key) = element {
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
            } else {
                let found = path.find(object)?;
                let nth = parent.as_array()?.iter().position(|item| std::ptr::eq(item, found))?;
                pointer.push_str(&nth.to_string());
            }
        }
        Some(pointer)
    }

    /// Returns its steps as the keys of a FieldsV1 tree.
    pub(crate) fn field_keys(&self) -> Vec<String> {
        let key = |element: &PathElement| match element {
            PathElement::Key(name) => format!("f:{name}"),
            PathElement::Index(index) => format!("i:{index}"),
            PathElement::Value(value) => format!("v:{}", canonical_json(value)),
            PathElement::Item(keys) => {
                let keys = keys.iter().map(|(key, value)| (key.to_string(), value.clone())).collect();
                format!("k:{}", canonical_json(&Value::Object(keys)))
            }
        };
        self.0.iter().map(key).collect()
    }

    /// Adds a step; for walks that go down.
    pub fn push(&mut self, element: PathElement) {
        self.0.push(element);
    }

    /// Takes the last step off; for walks that come up.
    pub fn pop(&mut self) {
        self.0.pop();
    }
}

impl From<Vec<PathElement>> for FieldPath {
    fn from(elements: Vec<PathElement>) -> Self {
        Self(elements)
    }
}

/// The server's own form, but a key that is not a plain word is quoted, so that no two paths look
/// alike: `.metadata.labels["app.kubernetes.io/name"]`.
impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(".");
        }
        self.0.iter().try_for_each(|element| write!(f, "{element}"))
    }
}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) if is_plain(key) => write!(f, ".{key}"),
            Self::Key(key) => write!(f, "[{}]", quote_key(key)),
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

fn quote_key(key: &str) -> String {
    canonical_json(&Value::from(key))
}
