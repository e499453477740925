//! The objects that went from the folder of a source to another one of its repository.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine::facts::causes::prune_cause::PossibleMove;
use crate::object::ObjectId;

/// The objects that went from the folder of a source to another one, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum MovedObjects {
    /// They are searched for once the source has dropped something.
    Unsearched,
    /// These, each with the file that names it now.
    Known(BTreeMap<ObjectId, Arc<str>>),
    /// They cannot be known, and why.
    Unreadable(Arc<str>),
}

impl Default for MovedObjects {
    fn default() -> Self {
        Self::Known(BTreeMap::new())
    }
}

impl MovedObjects {
    /// Returns why a person has to say that an object is to be deleted.
    pub(in crate::engine) fn possible_move(&self, id: &ObjectId) -> Option<PossibleMove> {
        match self {
            Self::Unsearched => None,
            Self::Known(files) => files.get(id).cloned().map(PossibleMove::Named),
            Self::Unreadable(why) => Some(PossibleMove::Unreadable(why.clone())),
        }
    }
}
