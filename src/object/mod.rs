//! A Kubernetes object as rhumb knows it: an identity, a kind with its version, a JSON tree and the
//! place it was read from.
//!
//! Owns [`ObjectId`] (no version: the same object in `v1` and `v1beta1` is one), [`Gvk`],
//! [`ContentHash`], [`ManifestOrigin`], [`Diagnostic`] and the [`ErrorClass`] that every module
//! shares.
//!
//! **Invariant:** knows no YAML, no cluster, no file system and no time.

pub mod annotations;
mod article;
mod class;
mod count;
mod diagnostic;
mod duration;
mod hash;
mod hex;
mod id;
mod possible_names;
pub(crate) mod serial;
mod short_list;
mod tree;
mod truncate;

pub(crate) use article::with_article;
pub use class::ErrorClass;
pub(crate) use count::{count_text, verb_to_be};
pub use diagnostic::Diagnostic;
pub(crate) use diagnostic::{DiagnosticCode, Severity, truncate_message};
pub(crate) use duration::{duration_text, parse_duration};
pub(crate) use hash::ContentHash;
pub(crate) use hex::{hex_bytes, hex_text};
pub(crate) use id::NamespacedKind;
pub use id::{GroupKind, Gvk, ObjectId};
pub(crate) use possible_names::{NameWords, PossibleNames, UnrenderedRoot, root_folder};
pub(crate) use short_list::ShortList;
pub(crate) use tree::{annotation_text, pretty_json};
pub use tree::{canonical_json, text_at, value_at};
pub(crate) use truncate::{shorten, truncate};

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Label of a member of an inventory (KEP-3659); its value is the id of the inventory.
pub const PART_OF: &str = "applyset.kubernetes.io/part-of";

/// Fields of `metadata` that only the server sets.
pub(crate) const SERVER_SET_METADATA: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The bytes that are shown of each path, and of the words on a renderer: both come from the
/// repository, and git bounds neither.
const MAX_SHOWN_PATH_BYTES: usize = 300;
const MAX_SHOWN_RENDERER_BYTES: usize = 200;

/// The maximum number of places that are shown of one rendered object: more help nobody.
const MAX_SHOWN_PLACES: usize = 8;

/// The place in a source that an object was read from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ManifestOrigin {
    /// Path inside the source, with `/` between its parts. Of a rendered object, the path of its root
    /// and its name there.
    pub file: Arc<str>,
    /// Line of the object's first token, from 1.
    pub line: u32,
    /// Column of the object's first token, from 1.
    pub column: u32,
    /// The render that made the object; none where the file is read as it is.
    pub render: Option<Arc<RenderOrigin>>,
}

/// The render that an object comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RenderOrigin {
    /// The rendered folder, as people write it; `.` for the source's own.
    pub root: Arc<str>,
    /// The program that rendered it, and what else decides its form: a chart's name and version.
    pub renderer: Arc<str>,
    /// The places that the object was made of: first its own, then those that change it.
    pub places: ShortList<ManifestOrigin>,
}

impl ManifestOrigin {
    /// Returns a place in a file that is read as it is.
    pub fn new(file: Arc<str>, line: u32, column: u32) -> Self {
        Self { file, line, column, render: None }
    }

    /// Returns a whole file that is read as it is.
    pub fn of_file(file: impl Into<Arc<str>>) -> Self {
        Self::new(file.into(), 0, 0)
    }

    /// Returns the place in a file that a person edits: of a rendered object, the first that it was
    /// made of.
    pub(crate) fn edited_origin(&self) -> &Self {
        let render = self.render.as_deref();
        render.and_then(|render| render.places.first()).unwrap_or(self)
    }
}

/// `base/web.yaml:3`, or `overlays/prod (kustomize) ← base/web.yaml:3, overlays/prod/patch.yaml:1`.
impl fmt::Display for ManifestOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(render) = &self.render {
            return render.fmt(f);
        }
        f.write_str(&path_text(&self.file))?;
        if self.line == 0 { Ok(()) } else { write!(f, ":{}", self.line) }
    }
}

/// Returns a path as it is shown: of a long one the end, which says more.
fn path_text(path: &str) -> Cow<'_, str> {
    if path.len() <= MAX_SHOWN_PATH_BYTES {
        return path.into();
    }
    let end = path.get(path.ceil_char_boundary(path.len() - MAX_SHOWN_PATH_BYTES)..).unwrap_or_default();
    format!("…{end}").into()
}

impl RenderOrigin {
    /// Returns that of an object that is in a plain file, into which variables were put.
    pub(crate) fn of_origin(origin: ManifestOrigin) -> Self {
        Self { root: "".into(), renderer: "".into(), places: [origin].into() }
    }
}

impl fmt::Display for RenderOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = self.renderer.is_empty();
        if !is_plain {
            let renderer = truncate(&self.renderer, MAX_SHOWN_RENDERER_BYTES);
            let cut = if renderer.len() < self.renderer.len() { "…" } else { "" };
            write!(f, "{} ({renderer}{cut})", path_text(&self.root))?;
        }
        for (origin, number) in self.places.iter().take(MAX_SHOWN_PLACES).zip(0..) {
            let sign = if is_plain { "" } else { " ← " };
            write!(f, "{}{origin}", if number == 0 { sign } else { ", " })?;
        }
        match self.places.len().saturating_sub(MAX_SHOWN_PLACES) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// One decoded object of the desired state.
///
/// Its `Debug` form leaves the body out, because the body may be a Secret.
#[derive(Clone, PartialEq)]
pub(crate) struct Object {
    /// The identity.
    pub id: ObjectId,
    /// Its kind in the version that the manifest asks for.
    pub gvk: Gvk,
    /// The whole tree, `apiVersion`, `kind` and `metadata` included.
    pub body: Arc<Value>,
    /// The place where it was read.
    pub origin: ManifestOrigin,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({} at {})", self.id, self.origin)
    }
}

/// The most bytes of a revision's name. Git needs at most 64; what an annotation of an object gives
/// as one may be any text.
const MAX_REVISION_BYTES: usize = 128;

/// The name of a frozen state of a source: 40 hex digits of a git commit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, std::hash::Hash, Serialize, Deserialize)]
pub struct Revision(Arc<str>);

impl Revision {
    /// Takes the 40 hex digits as they are, without what is too long. The reader of a source has
    /// checked them.
    pub fn new(text: &str) -> Self {
        Self(truncate(text, MAX_REVISION_BYTES).into())
    }

    /// Returns all 40 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether it is a whole id. Of a source that wants nothing any more it is a word.
    pub(crate) fn is_id(&self) -> bool {
        self.0.len() == 40 && self.0.bytes().all(|byte| byte.is_ascii_hexdigit())
    }

    /// Returns the first twelve digits, as people write them.
    pub fn short_name(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
