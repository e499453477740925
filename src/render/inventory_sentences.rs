//! The sentences of what a person should know of the inventory of a source.

use std::fmt;

use crate::engine::{
    ForgottenKind, InventoryNote, UnlistedCause, UnlistedReason, UnlistedRemedy, UnwatchedNamespaces,
};
use crate::object::GroupKind;

impl fmt::Display for InventoryNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlisted(reason) => write!(f, "{reason}"),
            Self::Unwatched(namespaces) => write!(f, "{namespaces}"),
        }
    }
}

impl fmt::Display for UnlistedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, cause, remedy } = self;
        write!(f, "nothing is pruned while {kind} cannot be listed: {cause}; {remedy}")
    }
}

impl fmt::Display for UnlistedCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchKind => f.write_str("the server has no such kind"),
            Self::Unwatched(fault) => write!(f, "{fault}"),
        }
    }
}

/// As a request: "let the user list and watch it".
impl fmt::Display for UnlistedRemedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow => f.write_str("let the user list and watch it"),
            Self::RepairGroup => {
                f.write_str("repair it, or delete its APIService if it is gone for good")
            }
            Self::InstallDefinition => f.write_str(
                "install its definition, or remove its manifests; `kubectl get crds,apiservices` shows what defines \
                 kinds",
            ),
            Self::Forget(forgotten) => write!(f, "{forgotten}"),
        }
    }
}

impl fmt::Display for ForgottenKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, source, others } = self;
        let others: Vec<String> = others.iter().map(GroupKind::to_string).collect();
        write!(
            f,
            "`kubectl get crds,apiservices` shows what defines kinds: bring its definition back, or, if none of its \
             objects is left, take it out of the inventory: `kubectl -n {namespace} annotate --overwrite configmap \
             {source} applyset.kubernetes.io/contains-group-kinds={}`",
            others.join(",")
        )
    }
}

impl fmt::Display for UnwatchedNamespaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let which = match &self.namespaces[..] {
            [one] => format!("namespace {one}"),
            all => format!("namespaces {}", all.join(", ")),
        };
        write!(
            f,
            "any objects of it in {which} are neither watched, repaired nor deleted, as `allow.namespaces` does not name \
             that; once nothing of it is left there, take that out of the annotation \
             applyset.kubernetes.io/additional-namespaces of the source's ConfigMap {}",
            self.source
        )
    }
}
