//! Identities: which object, of which kind, in which version.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

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

/// A kind in one version. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Gvk(Arc<GvkParts>);

/// The parts of a kind in one version.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GvkParts {
    /// API group, empty for the core group.
    pub group: Arc<str>,
    /// Version, for example `v1`.
    pub version: Arc<str>,
    /// Kind, for example `Deployment`.
    pub kind: Arc<str>,
}

impl Deref for Gvk {
    type Target = GvkParts;

    fn deref(&self) -> &GvkParts {
        &self.0
    }
}

impl Gvk {
    /// Returns a kind by its three parts.
    pub fn new(group: &str, version: &str, kind: &str) -> Self {
        Self::of_shared(group.into(), version.into(), kind.into())
    }

    /// Does the same as [`Gvk::new`], with texts that many kinds share.
    pub fn of_shared(group: Arc<str>, version: Arc<str>, kind: Arc<str>) -> Self {
        Self(Arc::new(GvkParts { group, version, kind }))
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

/// A kind in one namespace, or in none. Thousands of objects share it. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamespacedKind(Arc<NamespacedKindParts>);

#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct NamespacedKindParts {
    group: Arc<str>,
    kind: Arc<str>,
    namespace: Arc<str>,
}

impl NamespacedKind {
    /// Returns a kind in a namespace; that is empty for a cluster-scoped one.
    pub fn new(kind: &GroupKind, namespace: Arc<str>) -> Self {
        Self(Arc::new(NamespacedKindParts { group: kind.group.clone(), kind: kind.kind.clone(), namespace }))
    }
}

impl fmt::Debug for NamespacedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NamespacedKindParts { group, kind, namespace } = &*self.0;
        write!(f, "{kind}.{group} in {namespace:?}")
    }
}

/// The parts of an identity. `hash` follows from the others, and stands first: parts of two
/// identities that differ nearly always differ in it.
#[derive(PartialEq, Eq)]
struct ObjectIdParts {
    hash: u64,
    kind: NamespacedKind,
    name: Box<str>,
}

/// The identity of an object: group, kind, namespace and name, without the version. Cheap to clone,
/// to hash and to compare.
#[derive(Clone, PartialEq, Eq)]
pub struct ObjectId(Arc<ObjectIdParts>);

impl Hash for ObjectId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

/// By group, kind, namespace and name.
impl Ord for ObjectId {
    fn cmp(&self, other: &Self) -> Ordering {
        let (one, other) = (&*self.0, &*other.0);
        // Nearly always one and the same copy.
        let is_same_kind = Arc::ptr_eq(&one.kind.0, &other.kind.0);
        let kinds = if is_same_kind { Ordering::Equal } else { one.kind.cmp(&other.kind) };
        kinds.then_with(|| one.name.cmp(&other.name))
    }
}

impl PartialOrd for ObjectId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl ObjectId {
    /// Returns an object of a kind; no namespace for a cluster-scoped one.
    pub fn new(kind: &GroupKind, namespace: Option<&str>, name: &str) -> Self {
        let namespace = match namespace {
            // The core group is the empty text too.
            None if kind.group.is_empty() => kind.group.clone(),
            namespace => namespace.unwrap_or_default().into(),
        };
        Self::with_shared_namespace(kind, namespace, name)
    }

    /// Does the same as [`ObjectId::new`], with a namespace text that many identities share; empty
    /// for cluster-scoped.
    pub fn with_shared_namespace(kind: &GroupKind, namespace: Arc<str>, name: &str) -> Self {
        Self::of(NamespacedKind::new(kind, namespace), name)
    }

    /// Returns an object of a kind in a namespace, which many identities share.
    pub fn of(kind: NamespacedKind, name: &str) -> Self {
        let NamespacedKindParts { group, kind: name_of_kind, namespace } = &*kind.0;
        let mut hasher = DefaultHasher::new();
        (&**group, &**name_of_kind, &**namespace, name).hash(&mut hasher);
        Self(Arc::new(ObjectIdParts { hash: hasher.finish(), kind, name: name.into() }))
    }

    /// Returns the namespace of a name.
    pub fn of_namespace(name: &str) -> Self {
        static NAMESPACE: LazyLock<NamespacedKind> =
            LazyLock::new(|| NamespacedKind::new(&GroupKind::new("", "Namespace"), Arc::default()));
        Self::of(NAMESPACE.clone(), name)
    }

    /// Returns the kind in its namespace.
    pub fn namespaced_kind(&self) -> &NamespacedKind {
        &self.0.kind
    }

    /// Returns the API group, empty for the core group.
    pub fn group(&self) -> &str {
        &self.0.kind.0.group
    }

    /// Returns the kind, for example `Deployment`.
    pub fn kind(&self) -> &str {
        &self.0.kind.0.kind
    }

    /// Returns the kind with its group.
    pub fn group_kind(&self) -> GroupKind {
        let NamespacedKindParts { group, kind, .. } = &*self.0.kind.0;
        GroupKind { group: group.clone(), kind: kind.clone() }
    }

    /// Returns the namespace, none for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        let namespace = &*self.0.kind.0.namespace;
        (!namespace.is_empty()).then_some(namespace)
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
