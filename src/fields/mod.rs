//! Field paths and ownership: which fields of a content are still ours, who took the others, and which
//! values must never be shown.
//!
//! Owns [`Path`], the reading of FieldsV1 (the ownership trees of `metadata.managedFields`), the rule that
//! tells drift ([`uncovered`]), the masking of Secrets ([`masked`]) and of what looks like a secret in texts that others
//! wrote ([`blurred`]).
//!
//! The API server takes a path out of our entry as soon as anybody changes its value. So a content is in
//! force if and only if our entry covers each of its leaves: no value is compared, no schema is read.
//!
//! **Invariant:** knows no kinds (but the name of Secret) and no schemas.

mod blur;
mod cover;
mod culprit;
mod empty;
mod entry;
mod mask;
mod path;
mod sole;

pub use blur::{blurred, without_credentials};
pub use cover::{Coverage, coverage, owns, surplus, uncovered};
pub use culprit::{Culprit, culprits};
pub use empty::is_as_empty;
pub use mask::{CHANGED, LAST_APPLIED, MASK, masked, masked_pair};
pub use path::{Element, Path};
pub use sole::owned_alone;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
