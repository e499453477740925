//! Bytes to objects and diagnostics, the way Kubernetes reads YAML and JSON.
//!
//! Owns kubectl's dialect: go-yaml's table of scalars, merge keys, streams of documents and of JSON
//! values, byte order marks. Also owns the flattening of lists and the checks that need no cluster.
//! Across files it owns the normal form of namespaces and the search for duplicates.
//!
//! **Invariant:** pure. Knows no files (its callers hand it bytes), no git and no discovery (the
//! scope of a kind comes in a [`KindScopes`] table). Time, memory and stack are linear in the
//! input, whatever the input.

mod assemble;
mod check;
mod clean;
mod date;
mod decode;
mod document;
mod findings;
mod json;
mod list;
mod literal;
mod names;
mod node_positions;
mod number;
mod operator_secrets;
mod placed;
mod resolve;
mod scalar;
mod scopes;
mod split;
mod text;
mod tree;
mod yaml;

pub(crate) use assemble::{AssembledSource, InvalidObject, assemble, complete_dependencies};
pub(crate) use clean::clean;
pub(crate) use list::listed_objects;
pub(crate) use literal::{FLUX_SUBSTITUTE, has_substitution_disabled};
pub(crate) use node_positions::EntryOrigin;
pub(crate) use operator_secrets::is_for_operator;
pub(crate) use placed::{
    PlacedEntry, PlacedFile, PlacedNode, PlacedValue, ScalarStyle, TextPosition, plain_value, read_documents,
    read_first_document, read_first_document_own_first, read_printed_documents,
};
pub(crate) use scopes::{KindScope, KindScopes};

pub(crate) use date::is_timestamp;
pub(crate) use document::{PlacedDocument, json_document, yaml_documents};
pub(crate) use number::{float_text, json_number};
pub(crate) use resolve::scalar_of;
pub(crate) use scalar::{Scalar, ScalarTag, is_old_boolean, resolve as resolve_scalar};
pub(crate) use tree::{DocumentFault, DocumentTree, TextMark, YamlNodeId, YamlNodeKind};

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::object::{Diagnostic, Gvk, ManifestOrigin};

/// Bytes of the largest file that is read: a larger one is refused unread, by the caller, with
/// [`too_large`].
pub const MAX_MANIFEST_BYTES: u64 = 16 << 20;

/// Levels of nesting that a document may have. kubectl stops at 10 000; every consumer of a tree
/// that deep would need a stack to match.
const MAX_YAML_DEPTH: usize = 1024;

/// The maximum number of values, keys among them, in one file. No sensible object of 3 MiB, the
/// limit of an API server, has as many.
const MAX_YAML_NODES: usize = 500_000;

/// Mappings that one file may have. Each costs hundreds of bytes, however small.
const MAX_MAPPINGS: usize = 55_000;

/// Lines that one file may have.
const MAX_MANIFEST_LINES: usize = 1_000_000;

/// Documents that one file may have, those without content included.
const MAX_DOCUMENTS: usize = 100_000;

/// Bytes that one text may have: more than the 3 MiB of a whole object.
const MAX_SCALAR_BYTES: usize = 4 << 20;

/// Objects that one file may hold.
const MAX_MANIFEST_OBJECTS: usize = 20_000;

/// Bytes that the aliases of one file may expand to.
const MAX_ALIAS_EXPANSION_BYTES: usize = 8 << 20;

/// The contents of one file.
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestFile {
    /// Its objects, in the order kubectl gives them.
    pub items: Vec<ManifestItem>,
    /// The diagnostics, in the order of lines.
    pub diagnostics: Vec<Diagnostic>,
    /// Indicates whether every document was understood. If not, the source is Incomplete.
    pub understood: bool,
    /// The number of `items` before the first document that could not be parsed: kubectl stops
    /// there.
    pub before_error: usize,
}

impl ManifestFile {
    /// Returns the items that kubectl would show: it stops where a document does not parse, and
    /// leaves out what does not decode.
    pub fn readable_items(&self) -> impl Iterator<Item = &ManifestItem> {
        self.items.iter().take(self.before_error).filter(|item| item.decodes)
    }
}

/// One document, or one item of a list, as Kubernetes reads it.
#[derive(Clone, PartialEq)]
pub struct ManifestItem {
    /// Its kind and version.
    pub gvk: Gvk,
    /// The namespace as written.
    pub namespace: Option<String>,
    /// The name; empty where there is none, which makes it invalid.
    pub name: String,
    /// The tree exactly as read. [`clean()`] makes what is sent of it.
    pub body: Value,
    /// The place of its first token.
    pub origin: ManifestOrigin,
    /// False when a check found an error: it holds back only itself.
    pub valid: bool,
    /// False when the types of its metadata keep Kubernetes from decoding it.
    pub decodes: bool,
    /// Its position among the items of the file.
    pub index: u32,
}

/// Leaves the body out, because it may be a Secret.
impl fmt::Debug for ManifestItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Item({} {} at {})", self.gvk, self.name, self.origin)
    }
}

/// Reads one file. Never fails: what is wrong is a diagnostic.
pub fn read(file: &Arc<str>, bytes: &[u8]) -> ManifestFile {
    decode::read(file, bytes)
}

/// Returns the finding for a file of more than [`MAX_MANIFEST_BYTES`] bytes, which is not read.
pub(crate) fn too_large(file: &Arc<str>, size: u64) -> Diagnostic {
    let message = format!("the file has {size} bytes; manifests are read up to {MAX_MANIFEST_BYTES} bytes");
    Diagnostic::file_error(file.clone(), "file-too-large", message)
        .hint("split it, or list it in .rhumbignore if it is not meant for the cluster")
}

#[cfg(test)]
mod tests;
