//! What one pass would do, or did, as a value: the one form that text, diff and JSON are made of.

use std::sync::Arc;

use serde_json::Value;

use crate::change::{FieldChange, Impact};
use crate::object::{Diagnostic, Gvk, ObjectId, Origin};

/// What is decided for one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It does not exist and is created.
    Create,
    /// It exists and is changed.
    Configure,
    /// It is as wanted.
    Unchanged,
    /// It is not wanted any more and is deleted.
    Delete,
    /// It cannot be changed in place and is deleted and created.
    Recreate,
    /// It is held back by something that can pass.
    Wait,
    /// It is refused, by us or by the server.
    Refuse,
}

impl Verdict {
    /// All, in the order of summaries.
    pub const ALL: [Self; 7] = [
        Self::Create,
        Self::Configure,
        Self::Unchanged,
        Self::Delete,
        Self::Recreate,
        Self::Wait,
        Self::Refuse,
    ];

    /// The word of the JSON form.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Configure => "configure",
            Self::Unchanged => "unchanged",
            Self::Delete => "delete",
            Self::Recreate => "recreate",
            Self::Wait => "wait",
            Self::Refuse => "refuse",
        }
    }
}

/// One object of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// Who.
    pub id: ObjectId,
    /// Its kind with the version used.
    pub gvk: Gvk,
    /// Where the manifest is; none for an object that is only in the cluster.
    pub origin: Option<Origin>,
    /// What is decided.
    pub verdict: Verdict,
    /// What that does to pods.
    pub impact: Impact,
    /// What differs, masked.
    pub fields: Vec<FieldChange>,
    /// Why it waits, is refused, is deleted or is taken over; none where there is nothing to say.
    pub reason: Option<String>,
    /// The whole object before, masked and without what only the server sets; none when it did not exist.
    pub before: Option<Arc<Value>>,
    /// The whole object after, likewise; none when it goes away.
    pub after: Option<Arc<Value>>,
}

/// What one pass would do, or did.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Plan {
    /// Name of the source.
    pub source: String,
    /// The revision that was read; empty where there is none.
    pub revision: String,
    /// Whether every byte was read and every document understood.
    pub complete: bool,
    /// Whether deletions wait until a person confirms them.
    pub guarded: bool,
    /// In order of release.
    pub objects: Vec<Planned>,
    /// What reading found.
    pub diagnostics: Vec<Diagnostic>,
    /// What holds for the source as a whole, in words.
    pub notes: Vec<String>,
}
