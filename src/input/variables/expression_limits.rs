//! The bounds of what expressions make, and of the work that it takes.

use super::{
    MAX_EXPANDED_DOCUMENT_BYTES, MAX_EXPANDED_FILE_BYTES, MAX_EXPANDED_SCALAR_BYTES, MAX_EXPANSION_STEPS,
};

/// The work of the expressions of one file so far.
#[derive(Debug, Default)]
pub(crate) struct ExpansionBudget {
    document: usize,
    file: usize,
    work: u64,
}

/// A bound that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpansionLimit {
    /// Of one scalar.
    #[error("with its variables the text has more than {MAX_EXPANDED_SCALAR_BYTES} bytes")]
    Scalar,
    /// Of one document.
    #[error(
        "with their variables the texts of this document have more than {MAX_EXPANDED_DOCUMENT_BYTES} bytes"
    )]
    Document,
    /// Of one file.
    #[error("with their variables the texts of this file have more than {MAX_EXPANDED_FILE_BYTES} bytes")]
    File,
    /// Of the steps for one file.
    #[error("the expressions of this file take too much work")]
    Work,
}

impl ExpansionBudget {
    /// Counts anew what one document may have.
    pub(super) fn begin_document(&mut self) {
        self.document = 0;
    }

    /// Counts the finished text of a scalar.
    pub(super) fn spend_scalar(&mut self, bytes: usize) -> Result<(), ExpansionLimit> {
        self.document += bytes;
        self.file += bytes;
        match () {
            () if bytes > MAX_EXPANDED_SCALAR_BYTES => Err(ExpansionLimit::Scalar),
            () if self.document > MAX_EXPANDED_DOCUMENT_BYTES => Err(ExpansionLimit::Document),
            () if self.file > MAX_EXPANDED_FILE_BYTES => Err(ExpansionLimit::File),
            () => Ok(()),
        }
    }

    /// Counts steps.
    pub(super) fn spend_work(&mut self, steps: u64) -> Result<(), ExpansionLimit> {
        self.work = self.work.saturating_add(steps);
        if self.work > MAX_EXPANSION_STEPS { Err(ExpansionLimit::Work) } else { Ok(()) }
    }

    /// Counts a text on the way before it is made.
    pub(super) fn spend_text(&mut self, bytes: usize) -> Result<(), ExpansionLimit> {
        if bytes > MAX_EXPANDED_SCALAR_BYTES {
            return Err(ExpansionLimit::Scalar);
        }
        self.spend_work(bytes as u64)
    }
}
