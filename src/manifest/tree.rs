//! The parsed document: an arena of small nodes with their places. No node owns another, so that neither
//! depth nor size of a hostile document costs stack.

use super::scalar::Tag;
use super::{MAX_MAPPINGS, MAX_NODES, MAX_TEXT};

/// A place in a file; both count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Mark {
    pub(super) line: u32,
    pub(super) column: u32,
}

/// Why a document cannot be read, with its place.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) mark: Mark,
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) hint: Option<&'static str>,
}

impl Fault {
    pub(super) fn new(mark: Mark, code: &'static str, message: impl Into<String>) -> Self {
        Self { mark, code, message: message.into(), hint: None }
    }

    /// Continues the message.
    pub(super) fn more(mut self, more: &str) -> Self {
        self.message.push_str(more);
        self
    }

    pub(super) fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }
}

/// The fault of a text of more than [`MAX_TEXT`] bytes.
pub(super) fn too_long(mark: Mark) -> Fault {
    Fault::new(mark, "too-long", format!("a text of more than {MAX_TEXT} bytes"))
        .hint("an API server takes objects of at most 3 MiB")
}

/// Values and mappings: what memory is needed for.
#[derive(Clone, Copy, Default)]
pub(super) struct Size {
    nodes: usize,
    mappings: usize,
}

/// The index of a node in its tree.
pub(super) type NodeId = u32;

const NONE: NodeId = NodeId::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An unquoted scalar of YAML.
    Plain,
    /// A scalar that is text unless its tag says otherwise; also a string of JSON.
    Quoted,
    /// A number, `true`, `false` or `null` of JSON.
    Literal,
    Sequence,
    Mapping,
    Alias,
}

/// One node. `first` and `extent` are the first child (collections), the target (aliases) or the place of
/// the text (scalars: in the source, or in the owned texts when `extent` is [`NONE`]).
#[derive(Clone, Copy, Debug)]
struct Node {
    mark: Mark,
    first: u32,
    extent: u32,
    next: NodeId,
    kind: Kind,
    tag: Tag,
    /// It, or a collection around it, has an anchor: it may be read more than once.
    shared: bool,
}

/// A document as its nodes.
pub(super) struct Tree<'a> {
    source: &'a str,
    owned: Vec<Box<str>>,
    nodes: Vec<Node>,
    mappings: usize,
}

impl<'a> Tree<'a> {
    pub(super) const ROOT: NodeId = 0;

    /// An empty tree over the text that its borrowed scalars point into.
    pub(super) const fn over(source: &'a str) -> Self {
        Self { source, owned: Vec::new(), nodes: Vec::new(), mappings: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether the document is still one that is worth reading.
    pub(super) fn within_limits(&self) -> Result<(), Fault> {
        self.added_to(Size::default()).map(|_| ())
    }

    /// The size of the documents before this one, and of this one. Fails where it is that of no sensible file.
    pub(super) fn added_to(&self, before: Size) -> Result<Size, Fault> {
        let size = Size { nodes: before.nodes + self.nodes.len(), mappings: before.mappings + self.mappings };
        let (most, what) = match () {
            () if size.nodes > MAX_NODES => (MAX_NODES, "values"),
            () if size.mappings > MAX_MAPPINGS => (MAX_MAPPINGS, "mappings"),
            () => return Ok(size),
        };
        let mark = self.nodes.last().map_or(Mark { line: 1, column: 1 }, |node| node.mark);
        Err(Fault::new(mark, "too-many-values", format!("the file holds more than {most} {what}"))
            .hint("split it: an API server takes objects of at most 3 MiB"))
    }

    /// Adds a collection.
    pub(super) fn push_collection(&mut self, kind: Kind, tag: Tag, mark: Mark) -> NodeId {
        self.mappings += usize::from(kind == Kind::Mapping);
        self.push(Node { mark, first: NONE, extent: NONE, next: NONE, kind, tag, shared: false })
    }

    /// Adds an alias of a node.
    pub(super) fn push_alias(&mut self, target: NodeId, mark: Mark) -> NodeId {
        self.push(Node {
            mark,
            first: target,
            extent: 0,
            next: NONE,
            kind: Kind::Alias,
            tag: Tag::None,
            shared: false,
        })
    }

    /// Adds a scalar whose text stands in the source.
    pub(super) fn push_borrowed(
        &mut self,
        kind: Kind,
        tag: Tag,
        mark: Mark,
        start: usize,
        len: usize,
    ) -> NodeId {
        self.push(Node {
            mark,
            first: start as u32,
            extent: len as u32,
            next: NONE,
            kind,
            tag,
            shared: false,
        })
    }

    /// Adds a scalar with a text of its own.
    pub(super) fn push_owned(&mut self, kind: Kind, tag: Tag, mark: Mark, text: Box<str>) -> NodeId {
        let first = self.owned.len() as u32;
        self.owned.push(text);
        self.push(Node { mark, first, extent: NONE, next: NONE, kind, tag, shared: false })
    }

    /// Where a text stands in the source, if it is a part of it.
    pub(super) fn place_of(&self, text: &str) -> Option<usize> {
        let start = text.as_ptr().addr().checked_sub(self.source.as_ptr().addr())?;
        self.source.get(start..start.checked_add(text.len())?).map(|_| start)
    }

    fn push(&mut self, node: Node) -> NodeId {
        let id = self.nodes.len() as NodeId;
        self.nodes.push(node);
        id
    }

    /// Notes that a node may be read more than once.
    pub(super) fn share(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(id as usize) {
            node.shared = true;
        }
    }

    pub(super) fn is_shared(&self, id: NodeId) -> bool {
        self.node(id).is_some_and(|node| node.shared)
    }

    /// Appends a node to a collection whose last child so far is `last`.
    pub(super) fn append(&mut self, collection: NodeId, last: Option<NodeId>, child: NodeId) {
        match last {
            Some(last) => {
                if let Some(node) = self.nodes.get_mut(last as usize) {
                    node.next = child;
                }
            }
            None => {
                if let Some(node) = self.nodes.get_mut(collection as usize) {
                    node.first = child;
                }
            }
        }
    }

    fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id as usize)
    }

    pub(super) fn kind(&self, id: NodeId) -> Kind {
        self.node(id).map_or(Kind::Literal, |node| node.kind)
    }

    pub(super) fn tag(&self, id: NodeId) -> Tag {
        self.node(id).map_or(Tag::None, |node| node.tag)
    }

    pub(super) fn mark(&self, id: NodeId) -> Mark {
        self.node(id).map_or(Mark { line: 1, column: 1 }, |node| node.mark)
    }

    /// The text of a scalar; empty for other nodes.
    pub(super) fn text(&self, id: NodeId) -> &str {
        let Some(node) = self.node(id) else { return "" };
        match node.kind {
            Kind::Plain | Kind::Quoted | Kind::Literal if node.extent == NONE => {
                self.owned.get(node.first as usize).map_or("", AsRef::as_ref)
            }
            Kind::Plain | Kind::Quoted | Kind::Literal => {
                let start = node.first as usize;
                self.source.get(start..start + node.extent as usize).unwrap_or_default()
            }
            Kind::Sequence | Kind::Mapping | Kind::Alias => "",
        }
    }

    /// Moves the text of a scalar out; only for a node that is read once.
    pub(super) fn take_text(&mut self, id: NodeId) -> String {
        let owned = match self.node(id) {
            Some(node) if node.extent == NONE => Some(node.first as usize),
            _ => None,
        };
        match owned.and_then(|index| self.owned.get_mut(index)) {
            Some(text) => std::mem::take(text).into_string(),
            None => self.text(id).to_owned(),
        }
    }

    /// The node that an alias stands for, else the node itself. The target of an alias is never one.
    pub(super) fn target(&self, id: NodeId) -> NodeId {
        match self.node(id) {
            Some(node) if node.kind == Kind::Alias => node.first,
            _ => id,
        }
    }

    /// The first child of a collection. The children of a mapping are key, value, key, value …
    pub(super) fn first(&self, id: NodeId) -> Option<NodeId> {
        let node = self.node(id)?;
        let collection = matches!(node.kind, Kind::Sequence | Kind::Mapping);
        (collection && node.first != NONE).then_some(node.first)
    }

    /// The next child of the same collection.
    pub(super) fn next(&self, id: NodeId) -> Option<NodeId> {
        self.node(id).map(|node| node.next).filter(|next| *next != NONE)
    }

    /// The children of a collection.
    pub(super) fn children(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(self.first(id), |child| self.next(*child))
    }

    /// Whether a key node asks for a merge.
    pub(super) fn is_merge(&self, key: NodeId) -> bool {
        let asks = match self.kind(key) {
            Kind::Plain => matches!(self.tag(key), Tag::None | Tag::NonSpecific | Tag::Merge),
            Kind::Quoted => matches!(self.tag(key), Tag::NonSpecific | Tag::Merge),
            Kind::Literal | Kind::Sequence | Kind::Mapping | Kind::Alias => false,
        };
        asks && self.text(key) == "<<"
    }
}

/// Mappings by their keys.
impl Tree<'_> {
    /// The key and the value node under a key of a mapping, the last one of several. Looks into merged
    /// mappings one level deep.
    pub(super) fn entry(&self, mapping: NodeId, key: &str) -> Option<(NodeId, NodeId)> {
        let mapping = self.target(mapping);
        self.own_entry(mapping, key).or_else(|| {
            self.pairs(mapping)
                .filter(|(at, _)| self.is_merge(*at))
                .find_map(|(_, value)| self.own_entry(self.target(value), key))
        })
    }

    fn own_entry(&self, mapping: NodeId, key: &str) -> Option<(NodeId, NodeId)> {
        self.pairs(mapping).filter(|(at, _)| self.text(self.target(*at)) == key).last()
    }

    /// The keys and values of a mapping; none of another node.
    pub(super) fn pairs(&self, mapping: NodeId) -> impl Iterator<Item = (NodeId, NodeId)> + '_ {
        let mapping = if self.kind(mapping) == Kind::Mapping { Some(mapping) } else { None };
        let mut next = mapping.and_then(|mapping| self.first(mapping));
        std::iter::from_fn(move || {
            let key = next?;
            let value = self.next(key)?;
            next = self.next(value);
            Some((key, value))
        })
    }
}
