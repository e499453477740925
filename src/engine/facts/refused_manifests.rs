//! The manifests that are refused to their source, so that no entry tells of them under its name.

use std::collections::BTreeMap;

use crate::engine::state::Engine;
use crate::engine::{ManifestFault, SourceId};
use crate::object::{ManifestOrigin, ObjectId};

/// A manifest that is refused to its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusedManifest {
    /// The place of the manifest.
    pub origin: ManifestOrigin,
    /// The reason.
    pub reason: ManifestFault,
}

impl Engine {
    /// Returns the objects that a source names and does not get: its allow-list leaves them out, or
    /// another account has them.
    pub(in crate::engine) fn refused_manifests(
        &self,
        source: SourceId,
    ) -> BTreeMap<&ObjectId, RefusedManifest> {
        let disallowed = self.sources[source].manifests.disallowed_objects().map(|object| {
            let (origin, reason) = (object.origin.clone(), object.reason.clone());
            (&object.id, RefusedManifest { origin, reason })
        });
        disallowed.chain(self.contested_manifests(source)).collect()
    }
}
