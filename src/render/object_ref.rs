//! The identity of an object in JSON.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::object::{GroupKind, ObjectId};

/// The identity of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObjectRef {
    /// Its API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; none for a cluster-scoped one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl ObjectRef {
    /// Returns the name of an object.
    pub(crate) fn of(id: &ObjectId) -> Self {
        Self {
            group: id.group().to_owned(),
            kind: id.kind().to_owned(),
            namespace: id.namespace().map(str::to_owned),
            name: id.name().to_owned(),
        }
    }

    /// Returns the object.
    pub(crate) fn id(&self) -> ObjectId {
        ObjectId::new(&GroupKind::new(&self.group, &self.kind), self.namespace.as_deref(), &self.name)
    }
}

/// `Deployment shop/web`, or `Namespace shop`.
impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}
