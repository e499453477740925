//! The invariants that each run is held against.

/// One of the invariants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Invariant {
    /// The cluster shows what git says, soon after the fault has ended.
    I1,
    /// Nothing is deleted or changed that it does not own, or was told to leave alone, or has no
    /// Lease for.
    I2,
    /// Nothing is deleted that is still wanted, or while what is wanted is not known.
    I3,
    /// The budget is kept.
    I4,
    /// There is no storm of writes or calls, and rest afterwards.
    I5,
    /// Fields of others stay.
    I6,
    /// Nothing is created or deleted twice.
    I7,
    /// No older revision is applied after a newer one.
    I8,
    /// Nothing that failed is tried again.
    I9,
    /// One failing part holds up no other.
    I10,
    /// The status never says that a revision is applied and healthy which is not live.
    I11,
    /// No secret value is in logs, Events, records and answers.
    I12,
    /// Memory, files and disk are bounded.
    I13,
    /// The process stays alive, and serves the next commit.
    I14,
}

/// One observation that breaks an invariant.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    /// The broken invariant.
    pub(crate) invariant: Invariant,
    /// The observation.
    pub(crate) observation: String,
}

impl Violation {
    /// Returns an observation that breaks an invariant.
    pub(crate) fn new(invariant: Invariant, observation: impl Into<String>) -> Self {
        Self { invariant, observation: observation.into() }
    }
}
