//! FieldsV1 text → a flat tree, without recursion and mostly without copying.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::PathElement;

/// One entry of managedFields: which paths one manager owns.
///
/// Nodes lie in the order of the text, and each knows where its descendants end.
pub(super) struct ManagedEntry<'a> {
    nodes: Vec<RawNode<'a>>,
    /// Indicates whether the field names in each node are in byte order, as every API server
    /// writes them.
    sorted: bool,
}

struct RawNode<'a> {
    key: Cow<'a, str>,
    end: usize,
}

/// A node of an [`ManagedEntry`].
#[derive(Clone, Copy)]
pub(super) struct EntryNode<'e> {
    entry: &'e ManagedEntry<'e>,
    index: usize,
}

/// The meaning of a node's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildKey<'e> {
    /// `f:name`.
    Field(&'e str),
    /// `k:{"name":"web"}`, as JSON text.
    Item(&'e str),
    /// `v:"x"`, as JSON text.
    Value(&'e str),
    /// `i:0`.
    Index(usize),
    /// `.`: the parent itself, beside what is below it.
    SelfMarker,
    /// Nothing that FieldsV1 knows.
    Unknown,
}

struct OpenEntryNode {
    node: usize,
    last_child: Option<usize>,
}

impl<'a> ManagedEntry<'a> {
    /// Reads FieldsV1; none when the text is not a tree of nothing but JSON objects.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let mut scan = EntryScanner { text, at: 0 };
        let mut nodes = vec![RawNode { key: Cow::Borrowed(""), end: 0 }];
        let mut open = vec![OpenEntryNode { node: 0, last_child: None }];
        let mut sorted = true;
        scan.expect(b'{')?;
        while let Some(parent) = open.last_mut() {
            if scan.peek()? == b'}' {
                scan.at += 1;
                let end = nodes.len();
                nodes.get_mut(parent.node)?.end = end;
                open.pop();
                continue;
            }
            if parent.last_child.is_some() {
                scan.expect(b',')?;
            }
            let key = scan.string()?;
            scan.expect(b':')?;
            scan.expect(b'{')?;
            if let Some(before) = parent.last_child.and_then(|child| nodes.get(child)) {
                sorted &= !(before.key.starts_with("f:") && key.starts_with("f:") && before.key >= key);
            }
            let node = nodes.len();
            parent.last_child = Some(node);
            nodes.push(RawNode { key, end: 0 });
            open.push(OpenEntryNode { node, last_child: None });
        }
        scan.is_at_end().then_some(Self { nodes, sorted })
    }

    /// Returns the root.
    pub(super) fn root<'e>(&'e self) -> EntryNode<'e>
    where
        'a: 'e,
    {
        EntryNode { entry: self, index: 0 }
    }
}

impl<'e> EntryNode<'e> {
    fn key(self) -> &'e str {
        self.entry.nodes.get(self.index).map_or("", |raw| &raw.key)
    }

    fn end(self) -> usize {
        self.entry.nodes.get(self.index).map_or(0, |raw| raw.end)
    }

    /// Returns its place in the text's order, unique in its entry.
    pub(super) fn index(self) -> usize {
        self.index
    }

    /// Returns whether it is exactly `{}`, and owns all that lies below it.
    pub(super) fn is_leaf(self) -> bool {
        self.end() == self.index + 1
    }

    /// Returns its children, in the order of the text.
    pub(super) fn children(self) -> impl Iterator<Item = EntryNode<'e>> {
        let (entry, end) = (self.entry, self.end());
        let first = Some(self.index + 1).filter(|first| *first < end);
        std::iter::successors(first, move |child| {
            entry.nodes.get(*child).map(|raw| raw.end).filter(|next| *next < end)
        })
        .map(move |index| EntryNode { entry, index })
    }

    /// Returns the meaning of its key.
    pub(super) fn child(self) -> ChildKey<'e> {
        let key = self.key();
        match key.split_once(':') {
            Some(("f", name)) => ChildKey::Field(name),
            Some(("k", keys)) => ChildKey::Item(keys),
            Some(("v", value)) => ChildKey::Value(value),
            Some(("i", index)) => index.parse().map_or(ChildKey::Unknown, ChildKey::Index),
            _ if key == "." => ChildKey::SelfMarker,
            _ => ChildKey::Unknown,
        }
    }

    /// Looks many field names up, quickest in byte order.
    pub(super) fn fields<'n>(self) -> FieldCursor<'e, 'n> {
        FieldCursor { node: self, at: self.index + 1, last: "" }
    }

    /// Returns the child behind one step of a path.
    pub(super) fn step(self, element: &PathElement) -> Option<EntryNode<'e>> {
        self.children().find(|child| match (child.child(), element) {
            (ChildKey::Field(name), PathElement::Key(key)) => name == &**key,
            (ChildKey::Item(text), PathElement::Item(keys)) => {
                item_keys(text).is_some_and(|own| keys.iter().all(|(k, v)| own.get(&**k) == Some(v)))
            }
            (ChildKey::Value(text), PathElement::Value(value)) => {
                serde_json::from_str::<Value>(text).is_ok_and(|own| own == *value)
            }
            (ChildKey::Index(own), PathElement::Index(index)) => own == *index,
            _ => false,
        })
    }
}

/// Returns the keys of a `k:` node.
pub(super) fn item_keys(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
}

/// A place among a node's fields, from which look-ups in byte order are one pass over them.
pub(super) struct FieldCursor<'e, 'n> {
    node: EntryNode<'e>,
    at: usize,
    last: &'n str,
}

impl<'e, 'n> FieldCursor<'e, 'n> {
    /// Returns the child of this field.
    pub(super) fn get(&mut self, name: &'n str) -> Option<EntryNode<'e>> {
        let (entry, end) = (self.node.entry, self.node.end());
        if !entry.sorted {
            return self.node.children().find(|child| child.child() == ChildKey::Field(name));
        }
        if name < self.last {
            self.at = self.node.index + 1;
        }
        self.last = name;
        while self.at < end {
            let child = EntryNode { entry, index: self.at };
            if let ChildKey::Field(own) = child.child() {
                match own.cmp(name) {
                    Ordering::Less => {}
                    Ordering::Equal => return Some(child),
                    Ordering::Greater => return None,
                }
            }
            self.at = child.end();
        }
        None
    }
}

struct EntryScanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> EntryScanner<'a> {
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at)?.is_ascii_whitespace() {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn string(&mut self) -> Option<Cow<'a, str>> {
        self.expect(b'"')?;
        let start = self.at;
        let mut escaped = false;
        loop {
            match self.text.as_bytes().get(self.at)? {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    self.at += 2;
                }
                _ => self.at += 1,
            }
        }
        let end = self.at;
        self.at += 1;
        if escaped {
            serde_json::from_str::<String>(self.text.get(start - 1..=end)?).ok().map(Cow::Owned)
        } else {
            self.text.get(start..end).map(Cow::Borrowed)
        }
    }

    fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }
}
