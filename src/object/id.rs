//! Identities: which object, of which kind, in which version.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A kind without its version. The core group is the empty string.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKind {
    /// API group, empty for the core group.
    pub group: Arc<str>,
    /// Kind, for example `Deployment`.
    pub kind: Arc<str>,
}

impl GroupKind {
    /// Returns a kind by its two parts.
    pub fn new(group: &str, kind: &str) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }

    /// Returns whether it is this kind.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        &*self.group == group && &*self.kind == kind
    }

    /// Reads `Kind.group` or `Kind`, as KEP-3659 writes it.
    pub fn parse(text: &str) -> Self {
        let (kind, group) = text.split_once('.').unwrap_or((text, ""));
        Self::new(group, kind)
    }
}

/// `Kind.group`, or `Kind` for the core group (KEP-3659's form).
impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

impl fmt::Debug for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A kind in one version.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Gvk {
    /// API group, empty for the core group.
    pub group: Arc<str>,
    /// Version, for example `v1`.
    pub version: Arc<str>,
    /// Kind, for example `Deployment`.
    pub kind: Arc<str>,
}

impl Gvk {
    /// Returns a kind by its three parts.
    pub fn new(group: &str, version: &str, kind: &str) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// Takes `apiVersion` apart: `apps/v1` or `v1`.
    pub fn from_api_version(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self::new(group, version, kind)
    }

    /// Returns the form that is in a manifest: `apps/v1` or `v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns the kind without its version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.group.clone(), kind: self.kind.clone() }
    }
}

/// `apps/v1 Deployment`.
impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.api_version(), self.kind)
    }
}

impl fmt::Debug for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct ObjectIdParts {
    group: Arc<str>,
    kind: Arc<str>,
    namespace: Arc<str>,
    name: Box<str>,
}

/// The identity of an object: group, kind, namespace and name, without the version. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(Arc<ObjectIdParts>);

impl ObjectId {
    /// Returns an object of a kind; no namespace for a cluster-scoped one.
    pub fn new(kind: &GroupKind, namespace: Option<&str>, name: &str) -> Self {
        Self::with_shared_namespace(kind, namespace.unwrap_or_default().into(), name)
    }

    /// Does the same as [`ObjectId::new`], with a namespace text that many identities share; empty
    /// for cluster-scoped.
    pub fn with_shared_namespace(kind: &GroupKind, namespace: Arc<str>, name: &str) -> Self {
        Self(Arc::new(ObjectIdParts {
            group: kind.group.clone(),
            kind: kind.kind.clone(),
            namespace,
            name: name.into(),
        }))
    }

    /// Returns the API group, empty for the core group.
    pub fn group(&self) -> &str {
        &self.0.group
    }

    /// Returns the kind, for example `Deployment`.
    pub fn kind(&self) -> &str {
        &self.0.kind
    }

    /// Returns the kind with its group.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.0.group.clone(), kind: self.0.kind.clone() }
    }

    /// Returns the namespace, none for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        (!self.0.namespace.is_empty()).then_some(&*self.0.namespace)
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns whether it is of this kind.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        self.group() == group && self.kind() == kind
    }

    /// Returns the form that kubectl's `-o name` prints: `deployment.apps/web`.
    pub fn resource_name(&self) -> String {
        let kind = self.kind().to_ascii_lowercase();
        match self.group() {
            "" => format!("{kind}/{}", self.name()),
            group => format!("{kind}.{group}/{}", self.name()),
        }
    }
}

/// `Deployment shop/web`, or `Namespace shop` for a cluster-scoped object.
impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace() {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind(), self.name()),
            None => write!(f, "{} {}", self.kind(), self.name()),
        }
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
