//! Kustomize roots: which files each one reads, which revisions concern it, and what it must not
//! ask for.
//!
//! **Invariant:** follows kustomize's own reading of a kustomization. Where a text may mean more
//! than one file, all of them are in the closure. A file that is missing in it makes kustomize fail
//! aloud, so a mistake here is never a stale render.

mod chart_field;
mod closure;
mod closure_files;
mod cycles;
mod expected_objects;
mod file;
mod index;
mod inflated;
mod object_names;
mod object_origins;
mod parsed;
mod patch;
mod plugin;
mod refusal;
mod remote;
mod render_tree;
mod secret_words;
mod trace;

pub use chart_field::{ChartField, ChartFields, PlacedText, ValuesMerge};
pub use closure::{Closure, ClosureFile, ClosureFolder, ClosureLimits};
pub use closure_files::{ClosureFileIter, ClosureFiles};
pub use expected_objects::ExpectedObjects;
pub(in crate::input) use file::fold_case;
pub use file::{
    FILE_NAMES, FileReference, Kustomization, KustomizationKind, NameAffixes, PatchUse, ReferenceRole,
    UnsupportedFeature,
};
pub use index::{ChangeImpact, ClosureIndex, WatchedPaths};
pub(in crate::input) use inflated::strip_mark;
pub use inflated::{InflatedChart, InflatedObject};
pub use object_names::ObjectNames;
pub use object_origins::OriginFinder;
pub use parsed::ParsedFiles;
pub use patch::PatchSelector;
pub(in crate::input) use refusal::{
    chart_field as chart_fault, error_at, lost as lost_reference, sanitize_text,
};
pub use render_tree::{OriginTracking, PlannedContent, PlannedFile, RenderTree};
pub(in crate::input) use secret_words::can_quote_secret;
pub use trace::find_closure;

#[cfg(test)]
mod tests;
