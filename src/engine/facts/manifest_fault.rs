//! The faults of manifests that cannot be used, with the values that each is about. `render` has
//! the sentence of each.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::engine::RefusalCause;
use crate::engine::facts::causes::reason_code::CauseCode;
use crate::object::{ManifestOrigin, ObjectId};

/// The fault for which a manifest is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ManifestFault {
    /// The finding about it, in words.
    Finding(Arc<str>),
    /// This file, which had it before, is not understood.
    UnreadableFile(Arc<str>),
    /// The folder that it comes from is not rendered.
    UnrenderedFolder,
    /// Its source defines the object several times.
    Repeated(ManifestOrigins),
    /// Several sources want the object, and none of them has it. The server may have refused it to
    /// an account.
    Contested(ManifestOrigins, Option<RefusalCause>),
    /// Several sources want the object, and the first of them has it.
    Outranked(ManifestOrigins),
    /// A source of another account has the object.
    HadByOther {
        /// The object.
        object: ObjectId,
        /// The name of that source.
        owner: Arc<str>,
    },
    /// Each of several objects waits for the next one, and the last for the first.
    Cycle {
        /// The first of the objects.
        first: Arc<[ObjectId]>,
        /// The number of the others.
        others: u32,
    },
    /// It depends on an object of a later wave of its source.
    LaterWave {
        /// The other object.
        after: ObjectId,
        /// The wave of that.
        theirs: i32,
        /// Its own wave.
        ours: i32,
    },
}

impl ManifestFault {
    /// Returns its code; none for a finding.
    pub(crate) const fn code(&self) -> Option<CauseCode> {
        Some(match self {
            Self::Finding(_) => return None,
            Self::UnreadableFile(_) => CauseCode::FileUnreadable,
            Self::UnrenderedFolder => CauseCode::FolderNotRendered,
            Self::Repeated(_) => CauseCode::DefinedTwice,
            Self::Contested(..) => CauseCode::WantedBySeveral,
            Self::Outranked(_) => CauseCode::HadByFirst,
            Self::HadByOther { .. } => CauseCode::OwnedBySource,
            Self::Cycle { .. } => CauseCode::DependencyCycle,
            Self::LaterWave { .. } => CauseCode::DependencyInLaterWave,
        })
    }
}

/// A finding in words.
impl From<&str> for ManifestFault {
    fn from(message: &str) -> Self {
        Self::Finding(message.into())
    }
}

/// In a trace it is its sentence.
impl Serialize for ManifestFault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// It is read as a finding, as a trace has no other faults.
impl<'de> Deserialize<'de> for ManifestFault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Arc::<str>::deserialize(deserializer).map(Self::Finding)
    }
}

/// The places of several manifests of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ManifestOrigins {
    /// The first of them.
    pub first: Vec<ManifestOrigin>,
    /// The number of all.
    pub count: usize,
}
