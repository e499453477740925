//! The facts that are kept of one object. Phases for people are derived from them and never stored.

use std::sync::Arc;
use std::time::Instant;

use super::{Desired, Foreseen, Form, Instead, Live, Overlay, Release, Rv, Shared, Started, Uid, Want};
use crate::fields::ValueDigest;
use crate::object::{Hash, ObjectId, Revision};

/// Number of a source in its engine.
pub type SourceId = usize;

/// The content that the cluster must show now.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Accepted {
    /// Nothing of ours is there.
    #[default]
    Nothing,
    /// This content.
    Known(Shared),
    /// The content of this release, which has not been read yet.
    Named(Release),
    /// The content of this release, which cannot be read any more.
    Lost(Release),
}

impl Accepted {
    /// The content, where it is known.
    pub fn known(&self) -> Option<&Shared> {
        match self {
            Self::Known(desired) => Some(desired),
            _ => None,
        }
    }

    /// Whether it is known to have the same pod template as a content, so that this restarts nothing.
    pub(super) fn has_template_of(&self, content: &Desired) -> bool {
        self.known().is_some_and(|known| known.template == content.template)
    }

    /// Whether it is the content of this hash.
    pub(super) fn is(&self, hash: Hash) -> bool {
        self.known().is_some_and(|desired| desired.hash == hash)
    }
}

/// What a look at the API server found, beside what the informer shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Looked {
    /// There is no such object.
    Absent,
    /// There is one, and the informer does not show it: it lacks our label, or is newer.
    Found(Box<Live>),
}

/// How far our managedFields entry covers the content that should be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    /// Every leaf is ours: as wanted.
    Whole,
    /// Only empty lists lack a path, which the server does not track: a look at the values decides.
    Empty,
    /// Every leaf is ours, and the values are not spelled as the content spells them: somebody may have written in our
    /// name, or the server has a form of its own for them. A look at the values decides.
    Unequal,
    /// Somebody took a value away.
    Lost(Lost),
}

/// What repairing a lost value would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// No pod is restarted.
    InPlace,
    /// The pod template is touched, or what keeps pods from following it.
    Template,
}

/// A coverage verdict with what it was made of: pure in both, so it holds as long as they do.
#[derive(Clone, Debug)]
pub struct Verified {
    /// Hash of the content.
    pub content: Hash,
    /// What was laid over it.
    pub overlay: Option<Overlay>,
    /// Which data its pods were started with.
    pub started: Option<Started>,
    /// Our entry's text at that time.
    pub shape: Option<Arc<str>>,
    /// The values behind it at that time.
    pub values: Option<ValueDigest>,
    /// The verdict.
    pub cover: Cover,
}

impl Verified {
    /// Whether the verdict speaks of this content and of what the object shows: our entry, and the values behind it.
    pub fn speaks_of(&self, content: Hash, form: Form, live: &Live) -> bool {
        let same = match (&self.shape, &live.ours) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new) || old == new,
            (old, new) => old.is_none() && new.is_none(),
        };
        let same = same && self.values == live.values;
        same && self.content == content && self.overlay == form.overlay && self.started == form.started
    }
}

/// The API server's last refusal of a content.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The refused content.
    pub content: Hash,
    /// The server's words.
    pub text: Arc<str>,
    /// When to try again; never, until the content changes.
    pub retry: Option<Instant>,
    /// Whether the API's rule is that the field never changes.
    pub rule: Rule,
    /// So many times in a row.
    pub times: u32,
}

/// What kind of rule a refusal comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A field that never changes: deleting and creating would help.
    Immutable,
    /// What the user may do: nothing about the content.
    Rights,
    /// That of a webhook which does not answer: nobody knows whether it would refuse the content.
    Webhook,
    /// Any other.
    Other,
}

/// The facts about one object.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// What the sources want now, each with the source that says so; the one that has it comes first.
    pub wants: Vec<(SourceId, Want)>,
    /// Where several want it, the one of them that has it.
    pub owner: Option<SourceId>,
    /// What the cluster must show now.
    pub accepted: Accepted,
    /// The incarnation in which this process has put it there, or has found it.
    pub incarnation: Option<Uid>,
    /// What was in force before it, as far as this process has seen it; what was made is its own.
    pub before: Option<Shared>,
    /// The revision that brought what was accepted: it stays in the annotation as long as the content.
    pub brought: Option<Revision>,
    /// What a look found, until the informer knows more.
    pub looked: Option<Looked>,
    /// Our own last write: an older view never causes an action.
    pub written: Option<(Rv, Instant)>,
    /// Whether what is there is covered by our entry.
    pub verified: Option<Verified>,
    /// What the server says that a content would do to pods.
    pub foreseen: Option<Box<Foreseen>>,
    /// The last refusal.
    pub refused: Option<Box<Refusal>>,
    /// When we repaired it, of the last minute: five are a fight.
    pub repairs: Vec<Instant>,
    /// The content with which it was seen ended, for a Job: it may go away by itself in the next moment.
    pub ended: Option<Box<Hash>>,
    /// What stands in for the content that the newest revision asks for, where that failed here.
    pub instead: Option<Box<Instead>>,
    /// When its last try failed for a passing reason, and why.
    pub failed: Option<(Instant, Arc<str>)>,
}

impl Entry {
    /// The content that one source wants, when only one wants the object, or has it, and its manifest is usable.
    pub fn want(&self) -> Option<(SourceId, &Shared)> {
        match &self.wants[..] {
            [(source, Want::Object(desired)), others @ ..]
                if others.is_empty() || self.owner == Some(*source) =>
            {
                Some((*source, desired))
            }
            _ => None,
        }
    }

    /// Whether this process knows that what is shown is the very object in which its content is to be.
    pub(super) fn remembers(&self, live: &Live) -> bool {
        self.accepted.known().is_some() && self.incarnation.as_ref() == Some(&live.uid)
    }

    /// The source that brought the content in force, where that has been read.
    pub(super) fn brought_by(&self) -> Option<SourceId> {
        self.accepted.known().map(|accepted| accepted.place.source)
    }

    /// Whether a wanted content is not what the cluster must show yet.
    pub fn candidate(&self) -> Option<&Shared> {
        let (_, desired) = self.want()?;
        match &self.accepted {
            Accepted::Known(accepted) if accepted.hash == desired.hash => None,
            _ => Some(desired),
        }
    }
}

/// Which objects an entry speaks of when it holds others up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// Something about this object changed.
    Object(ObjectId),
    /// The kinds that the server has changed, or an informer got through.
    Kinds,
    /// An object of an early wave was finished.
    Waves(SourceId),
    /// The inventory was written.
    Inventory(SourceId),
}
