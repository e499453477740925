//! The values of a document in the order that SOPS walks them, each with its key path. A value that
//! is not encrypted has its contribution to the file's MAC.

use std::sync::Arc;

use crate::manifest::{
    DocumentFault, DocumentTree, Scalar, ScalarTag, TextMark, YamlNodeId, YamlNodeKind, is_old_boolean,
    is_timestamp, scalar_of,
};
use crate::object::ManifestOrigin;

use super::error::SopsError;
use super::rules::EncryptionRule;
use super::value::go_float;

/// The key under which SOPS keeps its metadata, which is no part of an object.
pub(crate) const SOPS_KEY: &str = "sops";

/// Bytes of keys that are held against the regular expression of a file: the two multiply.
pub(super) const MAX_MATCHED_CHARS: usize = 1 << 20;

/// A file by its name.
#[derive(Clone, Copy)]
pub(super) struct NamedFile<'f>(pub(super) &'f Arc<str>);

impl NamedFile<'_> {
    /// Returns the place of a line; 0 is the whole file.
    pub(super) fn line(self, line: u32) -> ManifestOrigin {
        ManifestOrigin::new(self.0.clone(), line, u32::from(line > 0))
    }

    pub(super) fn at(self, mark: TextMark) -> ManifestOrigin {
        ManifestOrigin::new(self.0.clone(), mark.line, mark.column)
    }

    pub(super) fn form(self, mark: TextMark, form: &'static str) -> SopsError {
        SopsError::Form { at: self.at(mark), form }
    }

    pub(super) fn too_many_keys(self, mark: TextMark) -> SopsError {
        SopsError::TooLarge {
            at: self.at(mark),
            limit: MAX_MATCHED_CHARS,
            unit: "bytes of keys for a regular expression",
        }
    }

    pub(super) fn syntax(self, fault: DocumentFault) -> SopsError {
        SopsError::Syntax { at: self.at(fault.mark), message: fault.message }
    }
}

/// A value of a document.
pub(super) struct Leaf<'w> {
    pub(super) node: YamlNodeId,
    /// The keys on the way to it, each with a colon behind it. Lists add nothing.
    pub(super) path: &'w str,
    /// Indicates whether one of them meets the rule.
    pub(super) met: bool,
    /// The collection that it is in.
    pub(super) parent: YamlNodeId,
}

struct LeafFrame {
    collection: YamlNodeId,
    next: Option<YamlNodeId>,
    path: usize,
    met: bool,
}

/// The treatment of the values of a document.
pub(super) trait LeafVisitor {
    /// Comes to a collection, before all that is in it.
    fn enter(&mut self, _collection: YamlNodeId, _path: &str) {}

    /// Comes to a value.
    fn leaf(&mut self, leaf: Leaf<'_>) -> Result<(), SopsError>;
}

/// Visits the values of a document, and empty collections, but not the metadata.
pub(super) fn walk(
    file: NamedFile<'_>,
    tree: &DocumentTree<'_>,
    rule: &EncryptionRule,
    visitor: &mut impl LeafVisitor,
) -> Result<(), SopsError> {
    let root = DocumentTree::ROOT_YAML_NODE;
    if tree.kind(root) != YamlNodeKind::Mapping {
        let is_null = PlaintextValue::of(file, tree, root)? == PlaintextValue::Null;
        return if is_null {
            Ok(())
        } else {
            Err(file.form(tree.mark(root), "a document that is no mapping"))
        };
    }
    let (mut path, mut matched) = (String::new(), 0);
    visitor.enter(root, &path);
    let mut stack = vec![LeafFrame { collection: root, next: tree.first(root), path: 0, met: false }];
    while let Some(frame) = stack.last_mut() {
        let Some(mut node) = frame.next else {
            stack.pop();
            continue;
        };
        path.truncate(frame.path);
        let (parent, mut met) = (frame.collection, frame.met);
        if tree.kind(parent) == YamlNodeKind::Mapping {
            let key = key(file, tree, node)?;
            let Some(value) = tree.next(node) else { continue };
            (node, frame.next) = (value, tree.next(value));
            if parent == root && key == SOPS_KEY {
                continue;
            }
            matched += if rule.is_pattern() { key.len() } else { 0 };
            if matched > MAX_MATCHED_CHARS {
                return Err(file.too_many_keys(tree.mark(parent)));
            }
            met = met || rule.is_met_by(key);
            path.push_str(key);
            path.push(':');
        } else {
            frame.next = tree.next(node);
        }
        match (tree.kind(node), tree.first(node)) {
            (YamlNodeKind::Alias, _) => return Err(file.form(tree.mark(node), "an alias")),
            (YamlNodeKind::Mapping | YamlNodeKind::Sequence, Some(first)) => {
                visitor.enter(node, &path);
                stack.push(LeafFrame { collection: node, next: Some(first), path: path.len(), met });
            }
            _ => {
                visitor.leaf(Leaf { node, path: &path, met, parent })?;
            }
        }
    }
    Ok(())
}

fn key<'t>(file: NamedFile<'_>, tree: &'t DocumentTree<'_>, key: YamlNodeId) -> Result<&'t str, SopsError> {
    let fault = |form| Err(file.form(tree.mark(key), form));
    match tree.kind(key) {
        YamlNodeKind::Alias => fault("an alias"),
        YamlNodeKind::Sequence | YamlNodeKind::Mapping => fault("a key that is no text"),
        _ if tree.is_merge(key) => fault("a merge key"),
        _ => match PlaintextValue::of(file, tree, key)? {
            PlaintextValue::Text(_) => Ok(tree.text(key)),
            _ => fault("a key that is no text"),
        },
    }
}

/// A value that is not encrypted, as SOPS takes it, which is by other rules than Kubernetes.
#[derive(Debug, PartialEq)]
pub(super) enum PlaintextValue {
    Null,
    Text(Vec<u8>),
    /// A number, boolean or time, in the form that the MAC is computed over.
    Other(Vec<u8>),
    /// A collection without content.
    Empty(YamlNodeKind),
}

impl PlaintextValue {
    pub(super) fn of(
        file: NamedFile<'_>,
        tree: &DocumentTree<'_>,
        node: YamlNodeId,
    ) -> Result<Self, SopsError> {
        let (kind, text) = (tree.kind(node), tree.text(node));
        if matches!(kind, YamlNodeKind::Mapping | YamlNodeKind::Sequence) {
            return Ok(Self::Empty(kind));
        }
        let plain = kind == YamlNodeKind::Plain && tree.tag(node) == ScalarTag::None;
        if plain && is_old_boolean(text) {
            return Ok(Self::Text(text.into()));
        }
        if plain && is_timestamp(text) {
            return Ok(Self::Other(text.into()));
        }
        Ok(match scalar_of(tree, node).map_err(|fault| file.syntax(fault))? {
            Scalar::Null => Self::Null,
            Scalar::Text => Self::Text(text.into()),
            Scalar::Bytes(bytes) => Self::Text(bytes),
            Scalar::Bool(truth) => Self::Other(if truth { b"True".to_vec() } else { b"False".to_vec() }),
            Scalar::Int(int) => Self::Other(int.to_string().into()),
            Scalar::Uint(int) => Self::Other(int.to_string().into()),
            Scalar::Float(float) => Self::Other(go_float(float).into()),
        })
    }

    /// Returns the bytes that the MAC is computed over.
    pub(super) fn mac_bytes(&self) -> &[u8] {
        match self {
            Self::Null | Self::Empty(_) => b"",
            Self::Text(bytes) | Self::Other(bytes) => bytes,
        }
    }
}
