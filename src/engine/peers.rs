//! What the other sources of the cluster say: how far they have read, what they want that is not
//! theirs yet, and what they have and no longer want.
//!
//! Each source says so on its parent object, in rhumb's own namespace. What is long becomes
//! "anything", and what cannot be read is a doubt: both only ever keep others from deleting.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::object::{Hash, ObjectId, Revision};

/// So many objects are named in a list: with 33 bytes each it stays far below what a `ConfigMap`
/// holds.
pub const NAMED: usize = 500;

/// A longer text is not read: no statement of ours is nearly as long.
const LONGEST: usize = 256 << 10;

/// Stands for more objects than are named.
const ANYTHING: &str = "*";

/// Stands for a repository that a source does not follow, and for a revision that it has not read.
const NONE: &str = "-";

/// The repository that a source follows, as others may follow it too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Repository {
    /// Nobody has looked yet.
    #[default]
    Unknown,
    /// It follows none: its revisions are its own.
    Nowhere,
    /// Its place without credentials, and the reference in it.
    At(Arc<str>),
}

/// What a source follows, and how far it has read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A folder, or nothing any more: no revision tells how far it is.
    Unordered,
    /// A repository.
    Follows {
        /// The place of the repository, without credentials, and the reference in it.
        repository: Arc<str>,
        /// The newest revision that was read whole.
        read: Option<Revision>,
    },
}

/// What a source wants that is not its own yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claims {
    /// These objects, by the hash of their names.
    These(BTreeSet<Hash>),
    /// More than can be named.
    Anything,
}

/// What one source says to the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// How far it has read.
    pub progress: Progress,
    /// What it wants, and does not have yet.
    pub claims: Claims,
    /// What it has, and no longer wants.
    pub released: BTreeSet<Hash>,
}

/// Another source of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub name: Arc<str>,
    /// The id of its inventory.
    pub applyset: Arc<str>,
    /// What it says, or why that cannot be read.
    pub says: Result<Statement, Arc<str>>,
}

/// What another source means for a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    /// It does not want the object.
    Given,
    /// It does not want the object now, and may have more to read.
    AfterDelay,
    /// It wants the object, or may want it, in words.
    Withheld(Arc<str>),
}

/// What stands for the name of an object.
pub fn mark(id: &ObjectId) -> Hash {
    let namespace = id.namespace().unwrap_or_default();
    Hash::of_bytes(format!("{}/{}/{namespace}/{}", id.group(), id.kind(), id.name()).as_bytes())
}

impl Claims {
    /// Whether an object is among them, as far as anybody can tell.
    pub fn may_hold(&self, mark: Hash) -> bool {
        match self {
            Self::These(marks) => marks.contains(&mark),
            Self::Anything => true,
        }
    }

    /// Whether all that another one names is among them.
    pub fn cover(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Anything, _) => true,
            (Self::These(_), Self::Anything) => false,
            (Self::These(all), Self::These(some)) => some.is_subset(all),
        }
    }
}

impl Statement {
    /// Writes it as text: three lines.
    pub fn text(&self) -> String {
        let words = |mark: &Hash| [" ".to_owned(), mark.to_string()];
        let marks = |marks: &BTreeSet<Hash>| marks.iter().flat_map(words).collect::<String>();
        let progress = match &self.progress {
            Progress::Unordered => NONE.to_owned(),
            Progress::Follows { repository, read } => {
                let read = read.as_ref().map_or_else(|| NONE.to_owned(), ToString::to_string);
                format!("{read} {repository}")
            }
        };
        let claims = match &self.claims {
            Claims::Anything => format!(" {ANYTHING}"),
            Claims::These(these) => marks(these),
        };
        format!("read {progress}\nclaims{claims}\nreleased{}\n", marks(&self.released))
    }

    /// Reads it from text.
    ///
    /// Fails, in words, where any of it is not understood: half a statement could hide a claim.
    pub fn parse(text: &str) -> Result<Self, Arc<str>> {
        if text.len() > LONGEST {
            return Err(format!("it is {} bytes long, and at most {LONGEST} are read", text.len()).into());
        }
        let garbled = || Arc::<str>::from("it is garbled");
        let mut lines = text.lines();
        let mut line = |word: &str| {
            let rest = lines.next().and_then(|line| line.strip_prefix(word)).ok_or_else(garbled)?;
            if rest.is_empty() { Ok(rest) } else { rest.strip_prefix(' ').ok_or_else(garbled) }
        };
        let marks = |text: &str| {
            let each = text.split(' ').filter(|word| !word.is_empty());
            let all = each.map(|word| Hash::parse(word).ok_or_else(garbled));
            all.collect::<Result<BTreeSet<Hash>, Arc<str>>>()
        };
        let progress = match line("read")? {
            NONE => Progress::Unordered,
            text => {
                let (read, repository) = text.split_once(' ').ok_or_else(garbled)?;
                let read = (read != NONE).then(|| Revision::new(read));
                Progress::Follows { repository: repository.into(), read }
            }
        };
        let claims = match line("claims")? {
            ANYTHING => Claims::Anything,
            text => Claims::These(marks(text)?),
        };
        let released = marks(line("released")?)?;
        if lines.next().is_some() {
            return Err(garbled());
        }
        Ok(Self { progress, claims, released })
    }
}

impl Peer {
    /// Whether it claims an object by name.
    pub(super) fn claims(&self, mark: Hash) -> bool {
        matches!(&self.says, Ok(Statement { claims: Claims::These(these), .. }) if these.contains(&mark))
    }

    /// Tells what it means for the deletion of an object by a source that has read so far.
    ///
    /// Sources of one repository are ordered by its revisions: once all have read the same one, all
    /// that they want of it is theirs or is claimed. Sources of different ones get time to claim.
    pub(super) fn leaves(&self, mark: Hash, own: &Progress) -> Leave {
        let name = &self.name;
        let says = match &self.says {
            Ok(says) => says,
            Err(why) => {
                return Leave::Withheld(
                    format!("source {name} may want it: what its ConfigMap tells cannot be read: {why}")
                        .into(),
                );
            }
        };
        match &says.claims {
            Claims::Anything => {
                return Leave::Withheld(
                    format!("source {name} may want it, as it brings many objects").into(),
                );
            }
            Claims::These(these) if these.contains(&mark) => {
                return Leave::Withheld(format!("source {name} wants it").into());
            }
            Claims::These(_) => {}
        }
        let (Progress::Follows { repository, read }, Progress::Follows { repository: ours, read: newest }) =
            (&says.progress, own)
        else {
            return Leave::AfterDelay;
        };
        match read {
            _ if repository != ours => Leave::AfterDelay,
            Some(read) if Some(read) == newest.as_ref() => Leave::Given,
            Some(read) => {
                let has = read.short();
                Leave::Withheld(
                    format!("source {name} of the same repository may want it: it has read revision {has}")
                        .into(),
                )
            }
            None => Leave::Withheld(
                format!("source {name} of the same repository may want it: it has not been read whole")
                    .into(),
            ),
        }
    }
}

/// For so long others may come to want what a source drops, where the configuration does not say.
pub const PRUNE_DELAY: Duration = Duration::from_secs(30);
