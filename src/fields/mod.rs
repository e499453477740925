//! Field paths and ownership: the fields of a content that are still ours, and the writers of the
//! others. Also the values that must never be shown.
//!
//! Owns [`FieldPath`], the reading of FieldsV1 (the ownership trees of `metadata.managedFields`),
//! and the rule that finds drift ([`uncovered_paths`]). Also owns the masking of Secrets
//! ([`mask_value`]), and of text by others that looks like a secret ([`mask_likely_secrets()`]).
//!
//! The API server takes a path out of our entry as soon as another field manager changes its value.
//! A writer under our own name leaves it there, so the values behind our entry are compared too, by
//! a digest ([`value_digest`]). No schema is read: a value that only differs in its normal form is
//! a doubt, which the server settles. So is an entry that is not shaped as the content is.
//!
//! **Invariant:** knows no kinds (but the name of Secret) and no schemas.

mod children;
mod cover;
mod empty;
mod entry;
mod field_writers;
mod mask;
mod mask_likely_secrets;
mod members;
mod normal_form;
mod owned;
mod path;
mod quantity;
mod sole;
mod values;

pub(crate) use cover::owns;
pub use cover::{OwnershipCheck, check_ownership, uncovered_paths};
pub(crate) use empty::{EmptyCounterpart, find_counterpart};
pub use field_writers::lost_field_writers;
pub(crate) use field_writers::{DriftedPaths, drift_words, has_known_writer, later_writers};
#[cfg(test)]
pub(crate) use mask::{CHANGED_MASK, LAST_APPLIED, MASK};
pub(crate) use mask::{mask_pair, mask_value};
pub(crate) use mask_likely_secrets::{mask_likely_secrets, strip_credentials};
pub(crate) use members::{FieldsV1Texts, ReplacedMember, replaced_members};
pub use normal_form::ValueSchema;
pub(crate) use path::{FieldPath, PathElement};
pub(crate) use quantity::parse_quantity;
pub(crate) use sole::solely_owned_part;
pub(crate) use values::{ValueDigest, unequal_leaves, value_digest_of_text};
pub use values::{differing_values, value_digest};

#[cfg(test)]
mod large_tests;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod values_tests;
