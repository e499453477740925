//! The statements of the cluster's other sources: the revision that each has read, its takeover
//! requests, and the objects that it releases.
//!
//! Each source makes its statement on its inventory, in rhumb's own namespace. A long list becomes
//! "anything", and an unreadable one is unknown: both only ever keep others from deleting.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine::deletion::observation_requests::ObservationRequest;
use crate::engine::facts::causes::prune_cause::PeerInterest;
use crate::engine::facts::records::kept_objects::KeptObjects;
use crate::engine::facts::records::rejection::Rejection;
use crate::object::{ContentHash, ObjectId, Revision};

/// The maximum number of objects in a list: with 35 bytes each it stays far below the limit of a
/// `ConfigMap`.
pub(crate) const MAX_REQUESTED_OBJECTS: usize = 500;

/// The repository of a source, and the revision that it has read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SourceProgress {
    /// A folder, or nothing any more: no revision shows how far it is.
    #[default]
    Unversioned,
    /// A repository.
    Revision {
        /// The place of the repository, without credentials, and the reference in it.
        repository: Arc<str>,
        /// The newest revision that was read completely.
        read: Option<Revision>,
    },
}

/// The objects that a source wants and does not have yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TakeoverRequests {
    /// These objects, by the hash of their names.
    Listed(BTreeSet<ContentHash>),
    /// More than can be named.
    Unlisted,
}

impl Default for TakeoverRequests {
    fn default() -> Self {
        Self::Listed(BTreeSet::new())
    }
}

/// Indicates whether the newest state of a source was read completely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SourceCompleteness {
    /// All that it wants is known.
    #[default]
    Complete,
    /// A file, a folder or the whole of it was not read: it may want anything.
    Partial,
}

/// Indicates whether a daemon serves a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SourceService {
    /// Nobody observes it before the next pass.
    #[default]
    OneShot,
    /// A daemon observes it when another source asks for that.
    Daemon,
}

/// The statement of one source to the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SourceStatement {
    /// The revision that it has read.
    pub progress: SourceProgress,
    /// The objects that it wants, and does not have yet.
    pub takeover_requests: TakeoverRequests,
    /// The objects that it has, and no longer wants.
    pub released: BTreeSet<ContentHash>,
    /// The time since which it releases all of them, in seconds of the Unix epoch.
    pub released_since: Option<i64>,
    /// Indicates whether its newest state was read completely.
    pub completeness: SourceCompleteness,
    /// Indicates whether a daemon serves it.
    pub service: SourceService,
    /// The observation that it waits for: it deletes when the others have read their repositories.
    pub observation_request: Option<ObservationRequest>,
    /// The requests of others that it has answered, by the ids of their inventories.
    pub answered_requests: BTreeMap<Arc<str>, ObservationRequest>,
}

/// Another source of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PeerSource {
    /// Its name.
    pub name: Arc<str>,
    /// The id of its inventory.
    pub inventory_id: Arc<str>,
    /// The statement, or the reason for which it is not known.
    pub statement: Result<SourceStatement, UnknownStatement>,
    /// The objects that its inventory records as kept.
    pub kept: KeptObjects,
    /// The contents that failed or were undone, as far as its inventory shows them.
    pub rejections: Vec<Rejection>,
}

/// The reason for which the statement of a source is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub(crate) enum UnknownStatement {
    /// It has made none.
    #[error("it has not published its takeover requests yet")]
    Unpublished,
    /// Nobody can read it.
    #[error("{0}")]
    Unreadable(Arc<str>),
}

/// The consent of another source to a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) enum DeletionConsent {
    /// It does not want the object.
    Given,
    /// It does not want the object now, and may have more to read.
    AfterDelay,
    /// It wants the object, or may want it.
    Withheld(PeerInterest),
}

/// Returns the mark of an object's name.
pub(crate) fn object_hash(id: &ObjectId) -> ContentHash {
    let namespace = id.namespace().unwrap_or_default();
    ContentHash::hash_bytes(format!("{}/{}/{namespace}/{}", id.group(), id.kind(), id.name()).as_bytes())
}

impl TakeoverRequests {
    /// Returns whether all that another one names is among them.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unlisted, _) => true,
            (Self::Listed(_), Self::Unlisted) => false,
            (Self::Listed(all), Self::Listed(some)) => some.is_subset(all),
        }
    }
}

impl PeerSource {
    /// Returns whether it requests an object by name.
    pub(crate) fn is_requesting(&self, id: &ObjectId) -> bool {
        self.has_takeover_request(object_hash(id))
    }

    /// Returns whether it gives an object up.
    pub(in crate::engine) fn is_releasing(&self, id: &ObjectId) -> bool {
        self.statement.as_ref().is_ok_and(|statement| statement.released.contains(&object_hash(id)))
    }

    /// Returns whether it requests the object of a mark by name.
    pub(in crate::engine) fn has_takeover_request(&self, mark: ContentHash) -> bool {
        matches!(&self.statement, Ok(SourceStatement { takeover_requests: TakeoverRequests::Listed(these), .. }) if these.contains(&mark))
    }

    /// Returns its consent to the deletion of an object by a source with this progress.
    ///
    /// Sources of one repository are ordered by its revisions. Once all have read the same one,
    /// each object that they want is theirs or is requested. Sources of different ones get time to
    /// request it. One that was not read completely may want anything.
    pub(in crate::engine) fn deletion_consent(
        &self,
        mark: ContentHash,
        own: &SourceProgress,
    ) -> DeletionConsent {
        let statement = match &self.statement {
            Ok(statement) => statement,
            Err(why) => {
                return DeletionConsent::Withheld(PeerInterest::Unreadable(why.to_string().into()));
            }
        };
        match &statement.takeover_requests {
            TakeoverRequests::Unlisted => {
                return DeletionConsent::Withheld(PeerInterest::Unlisted);
            }
            TakeoverRequests::Listed(these) if these.contains(&mark) => {
                return DeletionConsent::Withheld(PeerInterest::Requested);
            }
            TakeoverRequests::Listed(_) => {}
        }
        let same = match (&statement.progress, own) {
            (
                SourceProgress::Revision { repository, read },
                SourceProgress::Revision { repository: ours, read: newest },
            ) if repository == ours => Some((read, newest)),
            _ => None,
        };
        match (same, statement.completeness) {
            (None, SourceCompleteness::Complete) => DeletionConsent::AfterDelay,
            (None, SourceCompleteness::Partial) => DeletionConsent::Withheld(PeerInterest::Incomplete),
            (Some((Some(read), newest)), _) if Some(read) != newest.as_ref() => {
                DeletionConsent::Withheld(PeerInterest::Elsewhere(read.short_name().into()))
            }
            (Some((Some(_), _)), SourceCompleteness::Complete) => DeletionConsent::Given,
            (Some(_), _) => DeletionConsent::Withheld(PeerInterest::IncompleteOfSame),
        }
    }
}
