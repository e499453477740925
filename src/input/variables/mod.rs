//! Variables that are put in place of `${NAME}` in the scalars of a manifest, as Flux does it.
//!
//! Owns the grammar of Flux's `envsubst` ([`expand`]), the table of variables with what comes from
//! where ([`VariableTable`], [`plan_lookups`]), and what becomes of a document ([`substitute`]).
//!
//! **Invariant:** pure. An expression is read in the value of one scalar, never in the text of a
//! file. So no value of a variable adds a line, a key or an object. The value of a secret
//! variable is in no finding and no `Debug`, and enters a key as a keyed digest alone.
//!
//! # What differs from Flux
//!
//! - Flux prints each object anew before it replaces text, which loses quotes: `"${PORT}"` becomes
//!   a number there. Here a scalar with quotes, a tag or a block stays text, in files that are read
//!   as they are. The output of kustomize has lost its quotes, so there it is as in Flux.
//! - A plain scalar becomes null, a boolean, a number or text, and nothing else. Where Flux would
//!   get a list or a mapping, the text stays, with a warning. Labels, annotations and the data of
//!   ConfigMaps and Secrets stay text, where Flux fails for a number.
//! - A key with an expression is refused. Flux replaces in keys too.
//! - A variable that is not set and has no default is always an error; in Flux only in strict mode.
//!   A default that is not needed is not evaluated, so what is not set in it is no error.
//! - `${A:?b}` and `${A:+b}` are refused: Flux takes both for `${A:-b}`. So are `${A,^}` and
//!   `${A^,}`, which Flux ignores.
//! - A substring that would cut a character in two is refused, and patterns see whole characters.
//!   Letters whose other case is more than one letter keep their case.
//! - A secret variable can only be used in `data` and `stringData` of a Secret. One of a Secret
//!   whose entry says `sensitive: false` is no secret one.
//! - Values, nesting, results and work are bounded. A length that overflows is the whole rest.

mod document;
mod evaluate;
mod expression;
mod expression_limits;
mod finding;
mod lookup;
mod operators;
mod parse;
mod pattern;
mod table;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use document::SubstitutedFile;
pub(crate) use document::{DocumentUsability, SubstitutedDocument, substitute, substitute_documents};
pub use evaluate::{TemplateFault, expand};
pub(crate) use finding::{UNKNOWN_VARIABLE, VariableFinding};
pub(crate) use lookup::{HolderBody, LookupPlan, ObjectVariables, is_holder, plan_lookups};
pub(crate) use table::HolderAnswer;
pub use table::VariableTable;

/// Levels of expressions within expressions.
const MAX_NESTING: usize = 16;

/// Bytes of the value of one variable: more than a whole ConfigMap has.
const MAX_VALUE_BYTES: usize = 1 << 20;

/// Bytes of all values of a table.
const MAX_VALUES_BYTES: usize = 8 << 20;

/// Bytes of one scalar with its variables, which a manifest has at most.
const MAX_EXPANDED_SCALAR_BYTES: usize = 4 << 20;

/// Bytes of all such scalars of one document. An API server takes 3 MiB.
const MAX_EXPANDED_DOCUMENT_BYTES: usize = 8 << 20;

/// Bytes of all such scalars of one file.
const MAX_EXPANDED_FILE_BYTES: usize = 32 << 20;

/// Bytes and steps of patterns that the expressions of one file look at: half a second's work.
const MAX_EXPANSION_STEPS: u64 = 1 << 26;

/// Characters of a foreign name that are shown.
const MAX_SHOWN_EXPRESSION_CHARS: usize = 80;
