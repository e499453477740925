//! Everything that can happen, and what is told of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cluster::{InformerEvent, Kinds, Parent, Scaler};
use crate::engine::{Action, Live, Looked, Outcome, Reading, Reason, Release, Shared, SourceId, Verified};
use crate::object::{GroupKind, ObjectId};

/// One thing that happened. The set is closed: what wakes the loop stands here and nowhere else.
#[derive(Debug)]
pub(super) enum Event {
    /// An informer tells.
    Informer(InformerEvent<Live>),
    /// The autoscalers' informer tells.
    Scalers(InformerEvent<Scaler>),
    /// A source was read.
    Read(SourceId, Reading, BTreeSet<GroupKind>),
    /// A source could not be read.
    Unreadable(SourceId, Arc<str>),
    /// Older contents were looked up.
    Resolved(Vec<(ObjectId, Release, Option<Shared>)>),
    /// Discovery answered.
    Kinds(Result<Kinds, Arc<str>>),
    /// A parent object was read or written.
    Parent(SourceId, Result<Option<Parent>, Arc<str>>),
    /// A look answered.
    Looked(BTreeMap<ObjectId, Result<Looked, Trouble>>),
    /// Contents were compared.
    Compared(Vec<(ObjectId, Result<Verified, Trouble>)>),
    /// An action was carried out, or not.
    Done(ObjectId, Action, Outcome, Option<Told>),
    /// Somebody wants the sources to be looked at.
    Hint,
}

/// Why a question about an object has no answer.
#[derive(Clone, Debug)]
pub(super) struct Trouble(pub Arc<str>);

/// What a pass tells of one object.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// It was made.
    Created,
    /// It was changed.
    Configured,
    /// It is as wanted.
    Unchanged,
    /// It was deleted, as no source wants it.
    Pruned,
    /// It was deleted, to be made again.
    Recreating,
    /// It waits.
    Waiting(Reason),
    /// It is refused.
    Refused(Reason),
}
