//! The refusals that keep a chart from being rendered, with their place and the remedy, before any
//! program starts.

use std::sync::Arc;

use crate::input::kustomize::{self, FileReference, ReferenceRole, error_at, sanitize_text};
use crate::input::tree::PathFailure;
use crate::manifest::TextPosition;
use crate::object::{Diagnostic, ManifestOrigin};
use crate::source::FileDefect;

use super::chart::ChartDependency;
use super::ignore::{IGNORE_FILE, IgnoreFault};

/// The place of a finding about a whole file.
pub(super) const WHOLE_FILE: TextPosition = TextPosition { line: 0, column: 0 };

/// Returns a place in a file.
pub(super) fn origin_at(file: &Arc<str>, position: TextPosition) -> ManifestOrigin {
    ManifestOrigin::new(file.clone(), position.line, position.column)
}

/// Returns the refusal of what helm would not take of a `Chart.yaml`.
pub(super) fn chart_fault(file: &Arc<str>, position: TextPosition, message: impl Into<String>) -> Diagnostic {
    error_at(file, position, "chart", message, "`helm lint` on this folder says all that helm does not take")
}

/// Returns the refusal of a folder without a chart.
pub(super) fn no_chart(folder: &str) -> Diagnostic {
    let shown_folder = if folder.is_empty() { "." } else { folder };
    Diagnostic::file_error(shown_folder, "no-chart", "this folder has no Chart.yaml")
        .hint("name the folder of a chart")
}

/// Returns the refusal of a library, which makes no objects.
pub(super) fn library(file: &Arc<str>) -> Diagnostic {
    let message = "this chart is a library, which only other charts use";
    error_at(file, WHOLE_FILE, "library-chart", message, "list its folder in .rhumbignore")
}

/// Returns the refusal of a dependency that is not in the chart's own folder.
pub(super) fn missing_dependency(file: &Arc<str>, dependency: &ChartDependency) -> Diagnostic {
    let from = match &*dependency.repository {
        "" => String::new(),
        repository => format!(", to be had from {}", sanitize_text(repository)),
    };
    let message = format!(
        "the chart {} {}{from}, is not in charts/",
        sanitize_text(&dependency.name),
        sanitize_text(&dependency.version),
    );
    let hint = "put it there with `helm dependency build`, and commit what it writes to charts/";
    error_at(file, dependency.position, "missing-dependency", message, hint)
}

/// Returns the refusal of more dependencies than any sensible chart has.
pub(super) fn too_many_dependencies(file: &Arc<str>, position: TextPosition, most: usize) -> Diagnostic {
    let message = format!("this chart is made of more than {most} others");
    error_at(file, position, "too-large", message, "make several charts of it")
}

/// Returns the refusal of values that are to be fetched.
pub(super) fn remote_values(folder: &str, text: &str) -> Diagnostic {
    let shown_folder = if folder.is_empty() { "." } else { folder };
    let message = format!("values: this is an address, which is not fetched: {}", sanitize_text(text));
    Diagnostic::file_error(shown_folder, "remote-values", message)
        .hint("copy the file into the repository, and name its path")
}

/// Returns the refusal of a file of values in a chart that was fetched.
pub(super) fn fetched_values(file: &Arc<str>) -> Diagnostic {
    let message = "values: this file is in a chart that was fetched, of which helm gets the archive";
    error_at(
        file,
        WHOLE_FILE,
        "missing-file",
        message,
        "copy the file into the repository, and name its path",
    )
}

/// Returns the refusal of a file of values that is encrypted.
pub(crate) fn encrypted_values(file: &Arc<str>) -> Diagnostic {
    let message = "values: the file is encrypted by SOPS, and a chart would get it as it is";
    let hint = "keep secrets in an encrypted Secret beside the chart, and name it in the values";
    error_at(file, WHOLE_FILE, "encrypted-values", message, hint)
}

/// Returns the refusal of a file of values that leads to nothing.
pub(super) fn lost_values(folder: &str, text: &str, failure: &PathFailure) -> Diagnostic {
    let shown_folder = if folder.is_empty() { "." } else { folder };
    lost_file_reference(&Arc::from(shown_folder), "values", text, failure)
}

/// Returns the refusal of a file or link of the chart that cannot be read.
pub(super) fn lost_file(path: &str, failure: &PathFailure) -> Diagnostic {
    lost_file_reference(&Arc::from(path), "chart", path, failure)
        .hint(format!("replace it with a plain file, or list it in the chart's {IGNORE_FILE}"))
}

/// Returns the refusal of something that is no file that is read.
pub(super) fn defect(path: &str, defect: FileDefect) -> Diagnostic {
    lost_file(path, &PathFailure::Defect(path.to_owned(), defect))
}

fn lost_file_reference(
    file: &Arc<str>,
    field: &'static str,
    target: &str,
    failure: &PathFailure,
) -> Diagnostic {
    let (role, target) = (ReferenceRole::File, target.to_owned());
    kustomize::lost_reference(file, &FileReference { role, field, target, position: WHOLE_FILE }, failure)
}

/// Returns the refusal of a folder where a file of values is needed.
pub(super) fn values_folder(folder: &str, text: &str) -> Diagnostic {
    let shown_folder = if folder.is_empty() { "." } else { folder };
    let message = format!("values: a file is needed, and {} is a folder", sanitize_text(text));
    Diagnostic::file_error(shown_folder, "missing-file", message).hint("name a file in it")
}

/// Returns the refusal of a link to a folder that holds the link itself.
pub(super) fn link_circle(path: &str) -> Diagnostic {
    let message = "the link leads to a folder that holds it";
    error_at(&Arc::from(path), WHOLE_FILE, "symlink", message, "take the link away")
}

/// Returns the refusal of a line that is no rule.
pub(super) fn ignore_fault(file: &Arc<str>, fault: &IgnoreFault) -> Diagnostic {
    let position = TextPosition { line: fault.line, column: 1 };
    error_at(
        file,
        position,
        "helmignore",
        fault.reason,
        "write patterns as `*.tmp`, `folder/` or `/folder/*.tmp`",
    )
}

/// Returns the refusal of a schema that another place must be asked for.
pub(super) fn remote_schema(file: &Arc<str>, reference: &str) -> Diagnostic {
    let message =
        format!("the schema refers to another one, which is not fetched: {}", sanitize_text(reference));
    let hint = "put what it refers to under `$defs` of the schema itself; for a chart of somebody else set \
                `skipSchemaValidation: true` in `spec.helm`";
    error_at(file, WHOLE_FILE, "remote-schema", message, hint)
}

/// Returns the refusal of a chart of more files, or of larger ones, than any sensible one.
pub(super) fn too_much(path: &str, subject: &str) -> Diagnostic {
    let shown_path = if path.is_empty() { "." } else { path };
    Diagnostic::file_error(shown_path, "too-large", format!("this chart has {subject}"))
        .hint(format!("list what is no part of it in its {IGNORE_FILE}"))
}
