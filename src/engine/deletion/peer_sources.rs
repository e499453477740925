//! The statements of the cluster's other sources: the revision that each has read, its claims, and
//! the objects that it releases.
//!
//! Each source makes its statement on its inventory, in rhumb's own namespace. A long list becomes
//! "anything", and an unreadable one is a doubt: both only ever keep others from deleting.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::object::{ContentHash, ObjectId, Revision};

/// The maximum number of objects in a list: with 33 bytes each it stays far below the limit of a
/// `ConfigMap`.
pub(crate) const MAX_CLAIMED_OBJECTS: usize = 500;

/// A longer text is not read: no statement of ours is nearly as long.
const MAX_STATEMENT_BYTES: usize = 256 << 10;

/// Stands for more objects than are named.
const ANY_OBJECT_WORD: &str = "*";

/// Stands for a repository that a source does not follow, and for a revision that it has not read.
const NO_VALUE_WORD: &str = "-";

/// The repository that a source follows, as others may follow it too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum RepositoryIdentity {
    /// Nobody has looked yet.
    #[default]
    Unknown,
    /// It follows none: its revisions are its own.
    Nowhere,
    /// Its place without credentials, and the reference in it.
    At(Arc<str>),
}

/// The repository of a source, and the revision that it has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SourceProgress {
    /// A folder, or nothing any more: no revision tells how far it is.
    Unordered,
    /// A repository.
    Follows {
        /// The place of the repository, without credentials, and the reference in it.
        repository: Arc<str>,
        /// The newest revision that was read completely.
        read: Option<Revision>,
    },
}

/// The objects that a source wants and does not have yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ContentClaims {
    /// These objects, by the hash of their names.
    These(BTreeSet<ContentHash>),
    /// More than can be named.
    Anything,
}

/// The statement of one source to the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceStatement {
    /// The revision that it has read.
    pub progress: SourceProgress,
    /// The objects that it wants, and does not have yet.
    pub claims: ContentClaims,
    /// The objects that it has, and no longer wants.
    pub released: BTreeSet<ContentHash>,
}

/// Another source of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerSource {
    /// Its name.
    pub name: Arc<str>,
    /// The id of its inventory.
    pub applyset: Arc<str>,
    /// The statement, or the reason for which it cannot be read.
    pub says: Result<SourceStatement, Arc<str>>,
}

/// The consent of another source to a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) enum DeletionConsent {
    /// It does not want the object.
    Given,
    /// It does not want the object now, and may have more to read.
    AfterDelay,
    /// It wants the object, or may want it, in words.
    Withheld(Arc<str>),
}

/// Returns the mark of an object's name.
pub(crate) fn mark(id: &ObjectId) -> ContentHash {
    let namespace = id.namespace().unwrap_or_default();
    ContentHash::hash_bytes(format!("{}/{}/{namespace}/{}", id.group(), id.kind(), id.name()).as_bytes())
}

impl ContentClaims {
    /// Returns whether all that another one names is among them.
    pub(crate) fn cover(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Anything, _) => true,
            (Self::These(_), Self::Anything) => false,
            (Self::These(all), Self::These(some)) => some.is_subset(all),
        }
    }
}

impl SourceStatement {
    /// Writes it as text: three lines.
    pub(crate) fn text(&self) -> String {
        let words = |mark: &ContentHash| [" ".to_owned(), mark.to_string()];
        let marks = |marks: &BTreeSet<ContentHash>| marks.iter().flat_map(words).collect::<String>();
        let progress = match &self.progress {
            SourceProgress::Unordered => NO_VALUE_WORD.to_owned(),
            SourceProgress::Follows { repository, read } => {
                let read = read.as_ref().map_or_else(|| NO_VALUE_WORD.to_owned(), ToString::to_string);
                format!("{read} {repository}")
            }
        };
        let claims = match &self.claims {
            ContentClaims::Anything => format!(" {ANY_OBJECT_WORD}"),
            ContentClaims::These(these) => marks(these),
        };
        format!("read {progress}\nclaims{claims}\nreleased{}\n", marks(&self.released))
    }

    /// Reads it from text.
    ///
    /// Fails, in words, where any of it is not understood: half a statement could hide a claim.
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
            NO_VALUE_WORD => SourceProgress::Unordered,
            text => {
                let (read, repository) = text.split_once(' ').ok_or_else(garbled)?;
                let read = (read != NO_VALUE_WORD).then(|| Revision::new(read));
                SourceProgress::Follows { repository: repository.into(), read }
            }
        };
        let claims = match line("claims")? {
            ANY_OBJECT_WORD => ContentClaims::Anything,
            text => ContentClaims::These(marks(text)?),
        };
        let released = marks(line("released")?)?;
        if lines.next().is_some() {
            return Err(garbled());
        }
        Ok(Self { progress, claims, released })
    }
}

impl PeerSource {
    /// Returns whether it claims an object by name.
    pub(in crate::engine) fn has_claim(&self, mark: ContentHash) -> bool {
        matches!(&self.says, Ok(SourceStatement { claims: ContentClaims::These(these), .. }) if these.contains(&mark))
    }

    /// Returns its consent to the deletion of an object by a source with this progress.
    ///
    /// Sources of one repository are ordered by its revisions: once all have read the same one,
    /// each object that they want is theirs or is claimed. Sources of different ones get time to
    /// claim.
    pub(in crate::engine) fn deletion_consent(
        &self,
        mark: ContentHash,
        own: &SourceProgress,
    ) -> DeletionConsent {
        let name = &self.name;
        let says = match &self.says {
            Ok(says) => says,
            Err(why) => {
                return DeletionConsent::Withheld(
                    format!("source {name} may want it: what its ConfigMap tells cannot be read: {why}")
                        .into(),
                );
            }
        };
        match &says.claims {
            ContentClaims::Anything => {
                return DeletionConsent::Withheld(
                    format!("source {name} may want it, as it brings many objects").into(),
                );
            }
            ContentClaims::These(these) if these.contains(&mark) => {
                return DeletionConsent::Withheld(format!("source {name} wants it").into());
            }
            ContentClaims::These(_) => {}
        }
        let (
            SourceProgress::Follows { repository, read },
            SourceProgress::Follows { repository: ours, read: newest },
        ) = (&says.progress, own)
        else {
            return DeletionConsent::AfterDelay;
        };
        match read {
            _ if repository != ours => DeletionConsent::AfterDelay,
            Some(read) if Some(read) == newest.as_ref() => DeletionConsent::Given,
            Some(read) => {
                let has = read.short_name();
                DeletionConsent::Withheld(
                    format!("source {name} of the same repository may want it: it has read revision {has}")
                        .into(),
                )
            }
            None => DeletionConsent::Withheld(
                format!("source {name} of the same repository may want it: it has not been read completely")
                    .into(),
            ),
        }
    }
}

/// The default time for which others may come to want a dropped object.
pub(crate) const PRUNE_DELAY: Duration = Duration::from_secs(30);
