//! The faults of the variables of a document, in words without any value.

use std::fmt;
use std::sync::Arc;

use super::MAX_SHOWN_EXPRESSION_CHARS;
use super::evaluate::TemplateFault;
use crate::manifest::TextPosition;
use crate::object::{Diagnostic, DiagnosticCode, ManifestOrigin, Severity};

/// The code of a variable that an object may have which gives none now.
pub(crate) const UNKNOWN_VARIABLE: DiagnosticCode = "unknown-variable";

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VariableFinding {
    /// The place of the scalar or key in what was read.
    pub(crate) position: TextPosition,
    /// The path of the field, for example `spec.rules[0].host`.
    pub(crate) path: String,
    /// The fault.
    pub(crate) problem: VariableProblem,
}

/// The fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VariableProblem {
    /// A variable is not set and has no default.
    Unset(String),
    /// An object that may have the variable cannot be read.
    Unknown(String),
    /// The text cannot be read, or makes too much.
    Template(TemplateFault),
    /// A key has an expression.
    Key(String),
    /// A secret variable is used where everybody sees it.
    Secret(String),
    /// The text is infinity or NaN now.
    NotFinite,
    /// An expression is where values have no places.
    TooDeep,
    /// The text would be a list or mapping to Flux.
    Collection,
}

impl VariableProblem {
    fn code(&self) -> DiagnosticCode {
        match self {
            Self::Unset(_) => "unset-variable",
            Self::Unknown(_) => UNKNOWN_VARIABLE,
            Self::Template(TemplateFault::Limit(_)) => "variable-limit",
            Self::Template(_) => "variable-expression",
            Self::Key(_) => "variable-in-key",
            Self::Secret(_) => "secret-variable",
            Self::NotFinite => "not-finite",
            Self::TooDeep => "too-deep",
            Self::Collection => "variable-not-scalar",
        }
    }

    pub(crate) fn severity(&self) -> Severity {
        if matches!(self, Self::Collection) { Severity::Warning } else { Severity::Error }
    }

    fn hint(&self) -> &'static str {
        match self {
            Self::Unset(_) => {
                "name its value under `substitute`, or an object that has it under `substituteFrom`, or give it a \
                 default as `${NAME:=default}`; for `${NAME}` that is meant literally write `$${NAME}`"
            }
            Self::Unknown(_) => "an object under `substituteFrom` that may have it gives no variables now",
            Self::Template(TemplateFault::Expression(fault)) => fault.hint(),
            Self::Template(TemplateFault::Limit(_)) => "an API server takes objects of at most 3 MiB",
            Self::Template(TemplateFault::CutCharacter(_)) => "offsets and lengths are in bytes",
            Self::Key(_) => "write the key out: variables are put into values alone",
            Self::Secret(_) => {
                "use it in the data or stringData of a Secret, or take the value from a ConfigMap; if all values of \
                 that Secret may be shown, set `sensitive: false` in its entry under `substituteFrom`"
            }
            Self::NotFinite => "quote it if text is meant",
            Self::TooDeep => "variables are put in down to 64 levels",
            Self::Collection => "write the list or mapping out, with a variable in each of its scalars",
        }
    }
}

impl fmt::Display for VariableProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset(name) => write!(f, "the variable {} is not set, and has no default", shorten(name)),
            Self::Unknown(name) => write!(f, "the variable {} is not known", shorten(name)),
            Self::Template(TemplateFault::CutCharacter(name)) => {
                write!(f, "{}", TemplateFault::CutCharacter(shorten(name)))
            }
            Self::Template(fault) => write!(f, "{fault}"),
            Self::Key(key) => write!(f, "the key {} has an expression", shorten(key)),
            Self::Secret(name) => {
                write!(
                    f,
                    "the variable {} comes from a Secret, and this field is not data of a Secret",
                    shorten(name)
                )
            }
            Self::NotFinite => {
                f.write_str("with its variables this is infinity or NaN, which JSON does not have")
            }
            Self::TooDeep => f.write_str("an expression is nested too deep"),
            Self::Collection => {
                f.write_str("with its variables this looks like a list or mapping, and stays text")
            }
        }
    }
}

impl VariableFinding {
    /// Returns it for a file in which the document is as it was read.
    pub(crate) fn diagnostic(&self, file: &Arc<str>) -> Diagnostic {
        let TextPosition { line, column } = self.position;
        self.diagnostic_at(ManifestOrigin::new(file.clone(), line, column))
    }

    /// Returns it for the place that a rendered document comes from.
    pub(crate) fn diagnostic_at(&self, origin: ManifestOrigin) -> Diagnostic {
        let message = match &*self.path {
            "" => self.problem.to_string(),
            path => format!("{path}: {}", self.problem),
        };
        let found = Diagnostic::error(origin, self.problem.code(), message).hint(self.problem.hint());
        Diagnostic { severity: self.problem.severity(), ..found }
    }
}

/// Returns a foreign name as far as it is shown.
pub(super) fn shorten(name: &str) -> String {
    if name.chars().nth(MAX_SHOWN_EXPRESSION_CHARS).is_none() {
        return name.to_owned();
    }
    name.chars().take(MAX_SHOWN_EXPRESSION_CHARS).chain(['…']).collect()
}
