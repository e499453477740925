//! The kinds: who lists them, whether the server has them, and where their objects live.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine::facts::informer_groups::InformerGroupSet;
use crate::engine::facts::watch_fault::WatchFault;
use crate::manifest::{KindScope, KindScopes};
use crate::object::{ErrorClass, GroupKind, Gvk};

/// The state of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum KindState {
    /// Its informer has not listed all yet.
    Syncing,
    /// Its informer shows all there is.
    Synced,
    /// Its informer does not get through, and the class of why.
    Unobservable(WatchFault, ErrorClass),
    /// The server certainly does not have it, so there is nothing to show.
    Absent,
}

/// Indicates whether the server has a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum KindAvailability {
    /// The server has the kind in this version.
    Served,
    /// The server does not have it; these versions of the kind it has.
    Unserved(Arc<[String]>),
    /// Its group did not answer.
    Unknown,
}

/// The facts about kinds.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct KindFacts {
    /// The informer groups, each with the kinds that it lists.
    pub(in crate::engine) informer_groups: InformerGroupSet,
    /// Indicates for each kind and version whether the server has it.
    availability: HashMap<Gvk, KindAvailability>,
    /// The scopes of kinds, as far as they are known.
    scopes: KindScopes,
}

impl KindFacts {
    /// Takes over whether the server has a kind. Returns whether that is news.
    pub(in crate::engine) fn set_availability(&mut self, gvk: Gvk, availability: KindAvailability) -> bool {
        if self.availability.get(&gvk) == Some(&availability) {
            return false;
        }
        self.availability.insert(gvk, availability);
        true
    }

    /// Returns whether the server has a kind in a version; none before it was asked.
    pub(in crate::engine) fn availability_of(&self, gvk: &Gvk) -> Option<&KindAvailability> {
        self.availability.get(gvk)
    }

    /// Returns whether the server was asked for a kind, and has it in no version.
    pub(in crate::engine) fn is_in_no_version(&self, kind: &GroupKind) -> bool {
        let is_it = |(gvk, availability): (&Gvk, &KindAvailability)| match availability {
            KindAvailability::Unserved(others) => others.is_empty() && gvk.group_kind() == *kind,
            KindAvailability::Served | KindAvailability::Unknown => false,
        };
        self.availability.iter().any(is_it)
    }

    /// Takes over where the objects of each kind live.
    pub(in crate::engine) fn set_scopes(&mut self, scopes: KindScopes) {
        self.scopes = scopes;
    }

    /// Returns where the objects of a kind live, if that is known.
    pub(in crate::engine) fn scope_of(&self, kind: &GroupKind) -> Option<KindScope> {
        self.scopes.get(kind)
    }
}
