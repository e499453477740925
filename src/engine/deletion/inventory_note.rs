//! The notes about the inventory of a source, which a person should know. `render` has the sentence
//! of each.

use std::sync::Arc;

use crate::engine::WatchFault;
use crate::object::GroupKind;

/// A note about the inventory of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InventoryNote {
    /// A kind cannot be listed.
    Unlisted(UnlistedReason),
    /// Namespaces are not watched.
    Unwatched(UnwatchedNamespaces),
}

/// The reason for which a source prunes nothing: a kind of it cannot be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnlistedReason {
    /// The kind.
    pub kind: GroupKind,
    /// The cause.
    pub cause: UnlistedCause,
    /// The remedy.
    pub remedy: UnlistedRemedy,
}

/// The cause for which a kind cannot be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UnlistedCause {
    /// No server of the cluster has it.
    NoSuchKind,
    /// It cannot be watched.
    Unwatched(WatchFault),
}

/// The remedy for a kind that cannot be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UnlistedRemedy {
    /// The user is allowed to list and watch it.
    Allow,
    /// The server of its API group is repaired, or given up.
    RepairGroup,
    /// Its definition is installed, or its manifests are removed.
    InstallDefinition,
    /// Its definition is brought back, or the inventory names it no more.
    Forget(ForgottenKind),
}

/// A kind that an inventory is to name no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForgottenKind {
    /// The namespace of the inventory.
    pub namespace: Arc<str>,
    /// The name of the inventory, which is that of its source.
    pub source: Arc<str>,
    /// The other kinds of the inventory.
    pub others: Vec<GroupKind>,
}

/// The namespaces of an inventory that are not watched for its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnwatchedNamespaces {
    /// The name of the source.
    pub source: Arc<str>,
    /// The namespaces.
    pub namespaces: Vec<Arc<str>>,
}
