//! The time at which an object is pruned that no source wants any more.

use serde::{Deserialize, Serialize};

/// The time at which an object is pruned that is no longer wanted, by its annotations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PruneTiming {
    /// It may be pruned, when the other changes of its unit are healthy.
    #[default]
    AfterUnit,
    /// It is pruned before them, as its annotation asks: it holds what its successor needs, as a
    /// host name or a port.
    BeforeUnit,
    /// It is pruned when a person confirms it, as Argo CD's `Prune=confirm` asks.
    OnConfirmation,
    /// It is not pruned, by `prune: never` or `reconcile: disabled`, in our words or those of other
    /// tools.
    Never,
}

impl PruneTiming {
    /// Returns whether an object is deleted only by a person, or by nobody.
    pub(crate) fn is_kept(self) -> bool {
        matches!(self, Self::OnConfirmation | Self::Never)
    }

    /// Returns the one of two under which less is deleted.
    #[must_use]
    pub fn strictest(self, other: Self) -> Self {
        let rank = |keep: Self| match keep {
            Self::AfterUnit => 0,
            Self::BeforeUnit => 1,
            Self::OnConfirmation => 2,
            Self::Never => 3,
        };
        if rank(other) > rank(self) { other } else { self }
    }
}
