//! Field paths and ownership: which fields of a content are still ours, who took the others, and which
//! values must never be shown.
//!
//! Owns [`Path`], the reading of FieldsV1 (the ownership trees of `metadata.managedFields`), the rule that
//! tells drift ([`uncovered`]), the masking of Secrets ([`masked`]) and of what looks like a secret in texts that others
//! wrote ([`blurred`]).
//!
//! The API server takes a path out of our entry as soon as another field manager changes its value. Whoever writes under
//! our own name leaves it there, so the values behind our entry are compared too, by a digest ([`value_digest`]). No
//! schema is read: what only differs in its normal form is a doubt, which the server settles.
//!
//! **Invariant:** knows no kinds (but the name of Secret) and no schemas.

mod blur;
mod cover;
mod culprit;
mod empty;
mod entry;
mod kids;
mod mask;
mod owned;
mod path;
mod quantity;
mod sole;
mod values;

pub use blur::{blurred, without_credentials};
pub use cover::{Coverage, coverage, owns, surplus, uncovered};
pub use culprit::{Culprit, culprits, drift_words};
pub use empty::is_as_empty;
pub use mask::{CHANGED, LAST_APPLIED, MASK, masked, masked_pair};
pub use path::{Element, Path};
pub use quantity::quantity;
pub use sole::owned_alone;
pub use values::{Schema, ValueDigest, differing_values, value_digest, value_digest_of_text};

#[cfg(test)]
mod large_tests;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod values_tests;
