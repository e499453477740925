//! Kustomize roots: which files each one reads, which revisions concern it, and what it must not
//! ask for.
//!
//! **Invariant:** follows kustomize's own reading of a kustomization. Where a text may mean more
//! than one file, all of them are in the closure. A file that is missing in it makes kustomize fail
//! aloud, so a mistake here is never a stale render.

mod closure;
mod cycles;
mod file;
mod index;
mod object_origins;
mod patch;
mod plugin;
mod refusal;
mod remote;
mod render_tree;
mod trace;

pub use closure::{Closure, ClosureFile, ClosureFolder, ClosureLimits};
pub use file::{
    FILE_NAMES, FileReference, Kustomization, KustomizationKind, ParsedFiles, PatchUse, ReferenceRole,
    UnsupportedFeature,
};
pub use index::{ChangeImpact, ClosureIndex};
pub use object_origins::OriginFinder;
pub use patch::PatchSelector;
pub(in crate::input) use refusal::{error_at, lost as lost_reference, printable};
pub use render_tree::{OriginTracking, PlannedContent, PlannedFile, RenderTree};
pub use trace::trace;

#[cfg(test)]
mod tests;
