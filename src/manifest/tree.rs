//! The parsed document: an arena of small nodes with their places. No node owns another, so that
//! neither depth nor size of a hostile document costs stack.

use super::scalar::ScalarTag;
use super::{MAX_MAPPINGS, MAX_SCALAR_BYTES, MAX_YAML_NODES};

/// A place in a file; both count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TextMark {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// The fault of a document, with its place.
#[derive(Clone, Debug)]
pub(crate) struct DocumentFault {
    pub(crate) mark: TextMark,
    pub(super) code: &'static str,
    pub(crate) message: String,
    pub(super) hint: Option<&'static str>,
}

impl DocumentFault {
    pub(super) fn new(mark: TextMark, code: &'static str, message: impl Into<String>) -> Self {
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

/// Returns the fault of a text of more than [`MAX_SCALAR_BYTES`] bytes.
pub(super) fn too_long(mark: TextMark) -> DocumentFault {
    DocumentFault::new(mark, "too-long", format!("a text of more than {MAX_SCALAR_BYTES} bytes"))
        .hint("an API server takes objects of at most 3 MiB")
}

/// Values and mappings: what memory is needed for.
#[derive(Clone, Copy, Default)]
pub(super) struct TreeSize {
    nodes: usize,
    mappings: usize,
}

/// The index of a node in its tree.
pub(crate) type YamlNodeId = u32;

const NO_YAML_NODE: YamlNodeId = YamlNodeId::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum YamlNodeKind {
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

/// One node. `first` is the first child of a collection, the target of an alias, or the place of a
/// scalar's text. `length` is the length of that text in the source. Where it is [`NO_YAML_NODE`],
/// the text is one of the owned texts, or there is none.
#[derive(Clone, Copy, Debug)]
struct TreeNode {
    mark: TextMark,
    first: u32,
    length: u32,
    next: YamlNodeId,
    kind: YamlNodeKind,
    tag: ScalarTag,
    /// It, or a collection around it, has an anchor: it may be read more than once.
    shared: bool,
}

/// A document as its nodes.
pub(crate) struct DocumentTree<'a> {
    source: &'a str,
    owned: Vec<Box<str>>,
    nodes: Vec<TreeNode>,
    mappings: usize,
}

impl<'a> DocumentTree<'a> {
    pub(crate) const ROOT_YAML_NODE: YamlNodeId = 0;

    /// Returns an empty tree over the text that its borrowed scalars point into.
    pub(super) const fn over(source: &'a str) -> Self {
        Self { source, owned: Vec::new(), nodes: Vec::new(), mappings: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Checks that the document is within the limits of one that is read.
    pub(super) fn within_limits(&self) -> Result<(), DocumentFault> {
        self.total_size(TreeSize::default()).map(|_| ())
    }

    /// Returns the size of the documents before this one, and of this one. Fails where it is that
    /// of no sensible file.
    pub(super) fn total_size(&self, before: TreeSize) -> Result<TreeSize, DocumentFault> {
        let size =
            TreeSize { nodes: before.nodes + self.nodes.len(), mappings: before.mappings + self.mappings };
        let (most, unit) = match () {
            () if size.nodes > MAX_YAML_NODES => (MAX_YAML_NODES, "values"),
            () if size.mappings > MAX_MAPPINGS => (MAX_MAPPINGS, "mappings"),
            () => return Ok(size),
        };
        let mark = self.nodes.last().map_or(TextMark { line: 1, column: 1 }, |node| node.mark);
        Err(DocumentFault::new(mark, "too-many-values", format!("the file holds more than {most} {unit}"))
            .hint("split it: an API server takes objects of at most 3 MiB"))
    }

    /// Adds a collection.
    pub(super) fn push_collection(
        &mut self,
        kind: YamlNodeKind,
        tag: ScalarTag,
        mark: TextMark,
    ) -> YamlNodeId {
        self.mappings += usize::from(kind == YamlNodeKind::Mapping);
        self.push(TreeNode {
            mark,
            first: NO_YAML_NODE,
            length: NO_YAML_NODE,
            next: NO_YAML_NODE,
            kind,
            tag,
            shared: false,
        })
    }

    /// Adds an alias of a node.
    pub(super) fn push_alias(&mut self, target: YamlNodeId, mark: TextMark) -> YamlNodeId {
        self.push(TreeNode {
            mark,
            first: target,
            length: 0,
            next: NO_YAML_NODE,
            kind: YamlNodeKind::Alias,
            tag: ScalarTag::None,
            shared: false,
        })
    }

    /// Adds a scalar whose text is in the source.
    pub(super) fn push_borrowed(
        &mut self,
        kind: YamlNodeKind,
        tag: ScalarTag,
        mark: TextMark,
        start: usize,
        len: usize,
    ) -> YamlNodeId {
        self.push(TreeNode {
            mark,
            first: start as u32,
            length: len as u32,
            next: NO_YAML_NODE,
            kind,
            tag,
            shared: false,
        })
    }

    /// Adds a scalar with a text of its own.
    pub(super) fn push_owned(
        &mut self,
        kind: YamlNodeKind,
        tag: ScalarTag,
        mark: TextMark,
        text: Box<str>,
    ) -> YamlNodeId {
        let first = self.owned.len() as u32;
        self.owned.push(text);
        self.push(TreeNode {
            mark,
            first,
            length: NO_YAML_NODE,
            next: NO_YAML_NODE,
            kind,
            tag,
            shared: false,
        })
    }

    /// Returns where a text is in the source, if it is a part of it.
    pub(super) fn place_of(&self, text: &str) -> Option<usize> {
        let start = text.as_ptr().addr().checked_sub(self.source.as_ptr().addr())?;
        self.source.get(start..start.checked_add(text.len())?).map(|_| start)
    }

    fn push(&mut self, node: TreeNode) -> YamlNodeId {
        let id = self.nodes.len() as YamlNodeId;
        self.nodes.push(node);
        id
    }

    /// Notes that a node may be read more than once.
    pub(super) fn share(&mut self, id: YamlNodeId) {
        if let Some(node) = self.nodes.get_mut(id as usize) {
            node.shared = true;
        }
    }

    pub(super) fn is_shared(&self, id: YamlNodeId) -> bool {
        self.node(id).is_some_and(|node| node.shared)
    }

    /// Appends a node to a collection whose last child so far is `last`.
    pub(super) fn append(&mut self, collection: YamlNodeId, last: Option<YamlNodeId>, child: YamlNodeId) {
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

    fn node(&self, id: YamlNodeId) -> Option<&TreeNode> {
        self.nodes.get(id as usize)
    }

    pub(crate) fn kind(&self, id: YamlNodeId) -> YamlNodeKind {
        self.node(id).map_or(YamlNodeKind::Literal, |node| node.kind)
    }

    pub(crate) fn tag(&self, id: YamlNodeId) -> ScalarTag {
        self.node(id).map_or(ScalarTag::None, |node| node.tag)
    }

    pub(crate) fn mark(&self, id: YamlNodeId) -> TextMark {
        self.node(id).map_or(TextMark { line: 1, column: 1 }, |node| node.mark)
    }

    /// Returns the text of a scalar; empty for other nodes.
    pub(crate) fn text(&self, id: YamlNodeId) -> &str {
        let Some(node) = self.node(id) else { return "" };
        match node.kind {
            YamlNodeKind::Plain | YamlNodeKind::Quoted | YamlNodeKind::Literal
                if node.length == NO_YAML_NODE =>
            {
                self.owned.get(node.first as usize).map_or("", AsRef::as_ref)
            }
            YamlNodeKind::Plain | YamlNodeKind::Quoted | YamlNodeKind::Literal => {
                let start = node.first as usize;
                self.source.get(start..start + node.length as usize).unwrap_or_default()
            }
            YamlNodeKind::Sequence | YamlNodeKind::Mapping | YamlNodeKind::Alias => "",
        }
    }

    /// Moves the text of a scalar out; only for a node that is read once.
    pub(super) fn take_text(&mut self, id: YamlNodeId) -> String {
        let owned = match self.node(id) {
            Some(node) if node.length == NO_YAML_NODE => Some(node.first as usize),
            _ => None,
        };
        match owned.and_then(|index| self.owned.get_mut(index)) {
            Some(text) => std::mem::take(text).into_string(),
            None => self.text(id).to_owned(),
        }
    }

    /// Returns the node that an alias stands for, else the node itself. The target of an alias is
    /// never one.
    pub(crate) fn target(&self, id: YamlNodeId) -> YamlNodeId {
        match self.node(id) {
            Some(node) if node.kind == YamlNodeKind::Alias => node.first,
            _ => id,
        }
    }

    /// Returns the first child of a collection. The children of a mapping are key, value, key,
    /// value …
    pub(crate) fn first(&self, id: YamlNodeId) -> Option<YamlNodeId> {
        let node = self.node(id)?;
        let collection = matches!(node.kind, YamlNodeKind::Sequence | YamlNodeKind::Mapping);
        (collection && node.first != NO_YAML_NODE).then_some(node.first)
    }

    /// Returns the next child of the same collection.
    pub(crate) fn next(&self, id: YamlNodeId) -> Option<YamlNodeId> {
        self.node(id).map(|node| node.next).filter(|next| *next != NO_YAML_NODE)
    }

    /// Returns the children of a collection.
    pub(super) fn children(&self, id: YamlNodeId) -> impl Iterator<Item = YamlNodeId> + '_ {
        std::iter::successors(self.first(id), |child| self.next(*child))
    }

    /// Returns whether a key node asks for a merge.
    pub(crate) fn is_merge(&self, key: YamlNodeId) -> bool {
        let asks = match self.kind(key) {
            YamlNodeKind::Plain => {
                matches!(self.tag(key), ScalarTag::None | ScalarTag::NonSpecific | ScalarTag::Merge)
            }
            YamlNodeKind::Quoted => matches!(self.tag(key), ScalarTag::NonSpecific | ScalarTag::Merge),
            YamlNodeKind::Literal | YamlNodeKind::Sequence | YamlNodeKind::Mapping | YamlNodeKind::Alias => {
                false
            }
        };
        asks && self.text(key) == "<<"
    }
}

/// Mappings by their keys.
impl DocumentTree<'_> {
    /// Returns the key and the value node under a key of a mapping, the last one of several. Looks
    /// into merged mappings one level deep.
    pub(super) fn entry(&self, mapping: YamlNodeId, key: &str) -> Option<(YamlNodeId, YamlNodeId)> {
        let mapping = self.target(mapping);
        self.own_entry(mapping, key).or_else(|| {
            self.pairs(mapping)
                .filter(|(at, _)| self.is_merge(*at))
                .find_map(|(_, value)| self.own_entry(self.target(value), key))
        })
    }

    fn own_entry(&self, mapping: YamlNodeId, key: &str) -> Option<(YamlNodeId, YamlNodeId)> {
        self.pairs(mapping).filter(|(at, _)| self.text(self.target(*at)) == key).last()
    }

    /// Returns the keys and values of a mapping; none of another node.
    pub(crate) fn pairs(&self, mapping: YamlNodeId) -> impl Iterator<Item = (YamlNodeId, YamlNodeId)> + '_ {
        let mapping = if self.kind(mapping) == YamlNodeKind::Mapping { Some(mapping) } else { None };
        let mut next = mapping.and_then(|mapping| self.first(mapping));
        std::iter::from_fn(move || {
            let key = next?;
            let value = self.next(key)?;
            next = self.next(value);
            Some((key, value))
        })
    }
}
