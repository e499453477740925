//! The statements of the cluster's other sources: the revision that each has read, its takeover
//! requests, and the objects that it releases.
//!
//! Each source makes its statement on its inventory, in rhumb's own namespace. A long list becomes
//! "anything", and an unreadable one is unknown: both only ever keep others from deleting.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::engine::deletion::kept_objects::KeptObjects;
use crate::engine::deletion::observation_requests::ObservationRequest;
use crate::engine::deletion::prune_cause::PeerInterest;
use crate::engine::rollout::rollback::rejection::Rejection;
use crate::object::{ContentHash, ObjectId, Revision};

/// The maximum number of objects in a list: with 33 bytes each it stays far below the limit of a
/// `ConfigMap`.
pub(crate) const MAX_REQUESTED_OBJECTS: usize = 500;

/// A longer text is not read: no statement of ours is nearly as long.
const MAX_STATEMENT_BYTES: usize = 256 << 10;

/// Stands for more objects than are named.
const ANY_OBJECT_WORD: &str = "*";

/// Stands for a repository that a source does not follow, and for a revision that it has not read.
const NO_VALUE_WORD: &str = "-";

/// Stands for a source that was read completely, for one that was not, and for one of a daemon.
const COMPLETE_WORD: &str = "complete";
const PARTIAL_WORD: &str = "partial";
const DAEMON_WORD: &str = "daemon";

/// The repository that a source follows, as others may follow it too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RepositoryIdentity {
    /// It was not observed yet.
    #[default]
    Unknown,
    /// It follows none: its revisions are its own.
    None,
    /// Its place without credentials, and the reference in it.
    Repository(Arc<str>),
}

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

impl SourceStatement {
    /// Writes it as text: a line for each fact.
    pub(crate) fn text(&self) -> String {
        let words = |mark: &ContentHash| [" ".to_owned(), mark.to_string()];
        let marks = |marks: &BTreeSet<ContentHash>| marks.iter().flat_map(words).collect::<String>();
        let progress = match &self.progress {
            SourceProgress::Unversioned => NO_VALUE_WORD.to_owned(),
            SourceProgress::Revision { repository, read } => {
                let read = read.as_ref().map_or_else(|| NO_VALUE_WORD.to_owned(), ToString::to_string);
                format!("{read} {repository}")
            }
        };
        let requests = match &self.takeover_requests {
            TakeoverRequests::Unlisted => format!(" {ANY_OBJECT_WORD}"),
            TakeoverRequests::Listed(these) => marks(these),
        };
        let completeness = match self.completeness {
            SourceCompleteness::Complete => COMPLETE_WORD,
            SourceCompleteness::Partial => PARTIAL_WORD,
        };
        let service = match self.service {
            SourceService::OneShot => NO_VALUE_WORD,
            SourceService::Daemon => DAEMON_WORD,
        };
        let or_none = |text: Option<String>| text.unwrap_or_else(|| NO_VALUE_WORD.to_owned());
        let since = or_none(self.released_since.map(|since| since.to_string()));
        let request = or_none(self.observation_request.as_ref().map(ToString::to_string));
        let taken = self.answered_requests.iter();
        let answered =
            taken.flat_map(|(set, request)| [" ".to_owned(), format!("{set}={request}")]).collect::<String>();
        format!(
            "read {progress}\nclaims{requests}\nreleased{}\nsince {since}\n\
             state {completeness} {service}\nasks {request}\nlooked{answered}\n",
            marks(&self.released)
        )
    }

    /// Reads it from text.
    ///
    /// Fails, in words, where any of it is not understood: half a statement could hide a request.
    pub(crate) fn parse(text: &str) -> Result<Self, Arc<str>> {
        if text.len() > MAX_STATEMENT_BYTES {
            return Err(format!(
                "it is {} bytes long, and at most {MAX_STATEMENT_BYTES} are read",
                text.len()
            )
            .into());
        }
        let garbled = || Arc::<str>::from("it is garbled");
        let mut lines = text.lines();
        let mut line = |word: &str| {
            let rest = lines.next().and_then(|line| line.strip_prefix(word)).ok_or_else(garbled)?;
            if rest.is_empty() { Ok(rest) } else { rest.strip_prefix(' ').ok_or_else(garbled) }
        };
        let marks = |text: &str| {
            let each = text.split(' ').filter(|word| !word.is_empty());
            let all = each.map(|word| ContentHash::parse(word).ok_or_else(garbled));
            all.collect::<Result<BTreeSet<ContentHash>, Arc<str>>>()
        };
        let progress = match line("read")? {
            NO_VALUE_WORD => SourceProgress::Unversioned,
            text => {
                let (read, repository) = text.split_once(' ').ok_or_else(garbled)?;
                let read = (read != NO_VALUE_WORD).then(|| Revision::new(read));
                SourceProgress::Revision { repository: repository.into(), read }
            }
        };
        let requests = match line("claims")? {
            ANY_OBJECT_WORD => TakeoverRequests::Unlisted,
            text => TakeoverRequests::Listed(marks(text)?),
        };
        let released = marks(line("released")?)?;
        let statement = Self { progress, takeover_requests: requests, released, ..Self::default() };
        let rest: Vec<&str> = lines.collect();
        match rest[..] {
            // A daemon of an earlier version says no more.
            [] => Ok(statement),
            [since, state, request, answered] => {
                statement.with_last_lines(since, state, request, answered).ok_or_else(garbled)
            }
            _ => Err(garbled()),
        }
    }

    /// Adds the contents of the last four lines.
    fn with_last_lines(self, since: &str, state: &str, request: &str, answered: &str) -> Option<Self> {
        let released_since = match since.strip_prefix("since ")? {
            NO_VALUE_WORD => None,
            seconds => Some(seconds.parse().ok()?),
        };
        let (completeness, service) = state.strip_prefix("state ")?.split_once(' ')?;
        let completeness = match completeness {
            COMPLETE_WORD => SourceCompleteness::Complete,
            PARTIAL_WORD => SourceCompleteness::Partial,
            _ => return None,
        };
        let service = match service {
            NO_VALUE_WORD => SourceService::OneShot,
            DAEMON_WORD => SourceService::Daemon,
            _ => return None,
        };
        let observation_request = match request.strip_prefix("asks ")? {
            NO_VALUE_WORD => None,
            text => Some(ObservationRequest::parse(text)?),
        };
        let each = answered.strip_prefix("looked")?.split(' ').filter(|word| !word.is_empty());
        let answered_requests = each.map(|word| {
            let (set, request) = word.split_once('=')?;
            Some((Arc::from(set), ObservationRequest::parse(request)?))
        });
        let answered_requests = answered_requests.collect::<Option<_>>()?;
        Some(Self { released_since, completeness, service, observation_request, answered_requests, ..self })
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

/// The default time for which others may come to want a dropped object.
pub(crate) const PRUNE_DELAY: Duration = Duration::from_secs(30);
