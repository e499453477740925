//! Findings in a source, as values: a bad manifest is never an `Err`.

use std::fmt;
use std::sync::Arc;

use super::ManifestOrigin;
use super::truncate::shorten;

/// The severity of a [`Diagnostic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Accepted, but probably a mistake.
    Warning,
    /// Not read, or read and refused.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// A stable, lower-case, dash-separated name of a finding, for machines.
pub(crate) type DiagnosticCode = &'static str;

/// One finding, with its place, its reason and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagnostic {
    /// The place; line 0 means the whole file.
    pub origin: ManifestOrigin,
    /// The severity.
    pub severity: Severity,
    /// Stable name of the finding.
    pub code: DiagnosticCode,
    /// The fault and its reason; never the value of a Secret.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
    /// The text of the line at fault, where it may be shown.
    pub excerpt: Option<String>,
}

/// The most bytes of a message and of a hint: a file may have names of megabytes, and messages
/// quote names.
const MAX_TEXT_BYTES: usize = 1000;

/// Returns a text within the bound of messages.
pub(crate) fn truncate_message(text: String) -> String {
    if text.len() <= MAX_TEXT_BYTES { text } else { shorten(&text, MAX_TEXT_BYTES).into_owned() }
}

impl Diagnostic {
    /// Returns an error at a place of a file.
    pub fn error(origin: ManifestOrigin, code: DiagnosticCode, message: impl Into<String>) -> Self {
        let message = truncate_message(message.into());
        Self { origin, severity: Severity::Error, code, message, hint: None, excerpt: None }
    }

    /// Returns a warning at a place of a file.
    pub fn warning(origin: ManifestOrigin, code: DiagnosticCode, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(origin, code, message) }
    }

    /// Returns an error about a whole file or folder.
    pub fn file_error(file: impl Into<Arc<str>>, code: DiagnosticCode, message: impl Into<String>) -> Self {
        Self::error(ManifestOrigin::new(file.into(), 0, 0), code, message)
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(truncate_message(hint.into()));
        self
    }

    /// Returns whether this finding is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
