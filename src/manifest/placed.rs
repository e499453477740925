//! Documents with the place of every value: for files that are no manifests but are written as
//! manifests are.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::findings::{FileFindings, ManifestFinding};
use super::node_positions::{EntryOrigin, YamlNodeLines, YamlNodePart};
use super::resolve::{self, MergeOrder};
use super::scalar::{self, Scalar, ScalarTag};
use super::split::{self, DocumentPart, DocumentSplitter};
use super::tree::{DocumentFault, DocumentTree, TextMark, TreeSize, YamlNodeId, YamlNodeKind};
use super::{MAX_DOCUMENTS, MAX_MANIFEST_BYTES, MAX_MANIFEST_LINES, text, yaml};
use crate::object::{Diagnostic, DiagnosticCode};

/// The levels of a document whose values have places: more than any file of settings has.
/// Deeper content is one value.
const MAX_PLACED_DEPTH: usize = 64;

/// A place in the text of a file; both count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextPosition {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

impl From<TextMark> for TextPosition {
    fn from(mark: TextMark) -> Self {
        Self { line: mark.line, column: mark.column }
    }
}

/// A value, its place, and the same of its parts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlacedValue {
    /// The place of its first token.
    pub position: TextPosition,
    /// The place of the value that an alias stands for; that of its first token where it is none.
    pub target: TextPosition,
    /// The style in which it is written.
    pub style: ScalarStyle,
    /// The value.
    pub node: PlacedNode,
}

/// The way in which a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScalarStyle {
    /// Without quotes, tag or block: its text decides what it is.
    Plain,
    /// In any other way, which decides what it is. Values that are no scalars too.
    Fixed,
}

/// A value of which the parts have places too.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PlacedNode {
    /// A text, number, truth value or null, or anything that is nested too deep to have places.
    Scalar(Value),
    /// A list.
    List(Vec<PlacedValue>),
    /// A mapping, ordered by key.
    Mapping(Vec<PlacedEntry>),
}

/// One key of a mapping with its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlacedEntry {
    /// The key.
    pub key: String,
    /// The place of the key.
    pub position: TextPosition,
    /// The way by which it comes into the mapping.
    pub origin: EntryOrigin,
    /// The value.
    pub value: PlacedValue,
}

impl PlacedValue {
    /// Returns the text, where it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.node {
            PlacedNode::Scalar(value) => value.as_str(),
            PlacedNode::List(_) | PlacedNode::Mapping(_) => None,
        }
    }

    /// Returns the items; none where it is no list.
    pub(crate) fn items(&self) -> &[PlacedValue] {
        match &self.node {
            PlacedNode::List(items) => items,
            PlacedNode::Scalar(_) | PlacedNode::Mapping(_) => &[],
        }
    }

    /// Returns the keys and values; none where it is no mapping.
    pub(crate) fn entries(&self) -> &[PlacedEntry] {
        match &self.node {
            PlacedNode::Mapping(entries) => entries,
            PlacedNode::Scalar(_) | PlacedNode::List(_) => &[],
        }
    }

    /// Returns the value without its places.
    pub(crate) fn to_value(&self) -> Value {
        match &self.node {
            PlacedNode::Scalar(value) => value.clone(),
            PlacedNode::List(items) => items.iter().map(Self::to_value).collect(),
            PlacedNode::Mapping(entries) => {
                entries.iter().map(|entry| (entry.key.clone(), entry.value.to_value())).collect()
            }
        }
    }

    /// Does the same as [`PlacedValue::to_value`], and copies no text.
    pub(crate) fn into_value(self) -> Value {
        match self.node {
            PlacedNode::Scalar(value) => value,
            PlacedNode::List(items) => items.into_iter().map(Self::into_value).collect(),
            PlacedNode::Mapping(entries) => {
                entries.into_iter().map(|entry| (entry.key, entry.value.into_value())).collect()
            }
        }
    }
}

/// The documents of a file that is no manifest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlacedFile {
    /// The documents that have a content and could be read, in the order of the file.
    pub documents: Vec<PlacedValue>,
    /// The findings. None shows a line of the file, which may hold a secret.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads every document of a file.
pub(crate) fn read_documents(file: &Arc<str>, bytes: &[u8]) -> PlacedFile {
    read(file, bytes, read_stream)
}

/// Reads every document that a program printed. A key that is given twice has its last value, and
/// is a warning.
pub(crate) fn read_printed_documents(file: &Arc<str>, bytes: &[u8]) -> PlacedFile {
    read(file, bytes, |reader, text| {
        reader.findings.tolerate_duplicate_keys();
        read_stream(reader, text);
    })
}

fn read_stream(reader: &mut PlacedReader, text: &str) {
    for (part, number) in DocumentSplitter::new(text).zip(1..) {
        if reader.full {
            break;
        }
        if number > MAX_DOCUMENTS {
            return reader.refuse_length("too-many-documents", &format!("{MAX_DOCUMENTS} documents"));
        }
        match part {
            DocumentPart::Json(tree) => reader.tree(tree),
            DocumentPart::Yaml(chunk, _) if split::is_empty(chunk) => {}
            DocumentPart::Yaml(chunk, line) => {
                if let Some(mark) = reader.yaml(chunk, line) {
                    reader.refuse_unread(mark);
                }
            }
            DocumentPart::Fault(fault) => reader.fault(fault),
        }
    }
}

/// Reads the first document of a file, as programs do that take the whole file for one.
pub(crate) fn read_first_document(file: &Arc<str>, bytes: &[u8]) -> PlacedFile {
    read(file, bytes, |reader, text| {
        reader.yaml(text, 1);
    })
}

/// Does the same as [`read_first_document`], as newer readers merge. The keys that a mapping has
/// itself win over those that are merged into it, also where `<<` comes after them.
pub(crate) fn read_first_document_own_first(file: &Arc<str>, bytes: &[u8]) -> PlacedFile {
    read(file, bytes, |reader, text| {
        reader.order = MergeOrder::OwnFirst;
        reader.yaml(text, 1);
    })
}

fn read(file: &Arc<str>, bytes: &[u8], documents: impl FnOnce(&mut PlacedReader, &str)) -> PlacedFile {
    let text = match text::decode_text(bytes, MAX_MANIFEST_BYTES as usize) {
        Ok(text) => text,
        Err(length) => {
            let diagnostics = vec![super::too_large(file, length as u64)];
            return PlacedFile { documents: Vec::new(), diagnostics };
        }
    };
    let mut reader = PlacedReader {
        findings: FileFindings::of(file),
        documents: Vec::new(),
        order: MergeOrder::Written,
        size: TreeSize::default(),
        expanded: 0,
        full: false,
    };
    reader.findings.keep_file_secret();
    if ['\n', '\r'].iter().any(|end| text.match_indices(*end).nth(MAX_MANIFEST_LINES).is_some()) {
        reader.refuse_length("too-many-lines", &format!("{MAX_MANIFEST_LINES} lines"));
    } else {
        documents(&mut reader, &text);
    }
    PlacedFile { documents: reader.documents, diagnostics: reader.findings.into_diagnostics(&text) }
}

struct PlacedReader {
    findings: FileFindings,
    documents: Vec<PlacedValue>,
    order: MergeOrder,
    size: TreeSize,
    /// Bytes that aliases have expanded to.
    expanded: usize,
    full: bool,
}

impl PlacedReader {
    fn fault(&mut self, fault: DocumentFault) {
        self.findings.add(fault);
    }

    fn refuse_length(&mut self, code: DiagnosticCode, length: &str) {
        let mark = TextMark { line: 0, column: 0 };
        self.findings.add(ManifestFinding::error(mark, code, format!("the file holds more than {length}")));
    }

    /// Refuses text that no reader takes: an object in it would seem to be gone.
    fn refuse_unread(&mut self, mark: TextMark) {
        let message = "nothing reads this: the document ended before, and no `---` begins another";
        self.findings.add(
            ManifestFinding::error(mark, "unread", message)
                .hint("separate documents by a line of `---`, or remove the text"),
        );
    }

    /// Reads one document, and returns the place of what follows its end.
    fn yaml(&mut self, chunk: &str, line: u32) -> Option<TextMark> {
        let text =
            if chunk.ends_with('\n') { Cow::Borrowed(chunk) } else { Cow::Owned(format!("{chunk}\n")) };
        match yaml::read(&text, line) {
            Ok((tree, follows)) => {
                self.tree(tree);
                follows
            }
            Err(fault) => {
                self.fault(fault);
                None
            }
        }
    }

    fn tree(&mut self, mut tree: DocumentTree<'_>) {
        match tree.total_size(self.size) {
            Ok(size) => self.size = size,
            Err(fault) => {
                self.full = true;
                return self.fault(fault);
            }
        }
        match resolve::resolve_in(self.order, &mut tree, &mut self.expanded, &mut self.findings) {
            Ok(resolved) if resolved.value.is_null() => {}
            Ok(resolved) => {
                let mut positions = YamlNodeLines::of(&tree, DocumentTree::ROOT_YAML_NODE);
                let root = tree.target(DocumentTree::ROOT_YAML_NODE);
                let mark = tree.mark(root);
                self.documents.push(place_value(&mut positions, root, mark, resolved.value, 0));
            }
            Err(fault) => self.fault(fault),
        }
    }
}

/// Gives a value the places of its nodes. Its depth is bounded, so that its stack is.
fn place_value(
    positions: &mut YamlNodeLines<'_, '_>,
    node: YamlNodeId,
    mark: TextMark,
    value: Value,
    depth: usize,
) -> PlacedValue {
    let style = if positions.is_plain(node) { ScalarStyle::Plain } else { ScalarStyle::Fixed };
    let target = positions.mark(node).into();
    let mut part = |part: &str, value: Value| {
        let unknown = || YamlNodePart { key: mark, node, mark, origin: EntryOrigin::Own };
        let part = positions.part(node, part).unwrap_or_else(unknown);
        (part.key, part.origin, place_value(positions, part.node, part.mark, value, depth + 1))
    };
    let node = match value {
        _ if depth >= MAX_PLACED_DEPTH => PlacedNode::Scalar(value),
        Value::Array(items) => {
            let items = items.into_iter().zip(0..);
            PlacedNode::List(items.map(|(item, at): (_, u32)| part(&at.to_string(), item).2).collect())
        }
        Value::Object(entries) => PlacedNode::Mapping(
            entries
                .into_iter()
                .map(|(key, value)| {
                    let (position, origin, value) = part(&key, value);
                    PlacedEntry { key, position: position.into(), origin, value }
                })
                .collect(),
        ),
        scalar => PlacedNode::Scalar(scalar),
    };
    PlacedValue { position: mark.into(), target, style, node }
}

/// Returns what a text is as a whole scalar without quotes, or with the quotes that it has itself.
/// Keeps as text what YAML would take for more than a scalar is text. None for infinity and NaN.
pub(crate) fn plain_value(text: &str) -> Option<Value> {
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    if text.starts_with(['"', '\''])
        && let Ok((tree, None)) = yaml::read(&format!("{text}\n"), 1)
        && tree.len() == 1
        && tree.kind(DocumentTree::ROOT_YAML_NODE) == YamlNodeKind::Quoted
    {
        return Some(Value::String(tree.text(DocumentTree::ROOT_YAML_NODE).to_owned()));
    }
    match scalar::resolve(ScalarTag::None, text) {
        Ok(Scalar::Text) | Err(_) => Some(Value::String(text.to_owned())),
        Ok(scalar) => resolve::json_value(&scalar),
    }
}
