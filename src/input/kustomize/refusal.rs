//! The refusals that keep a root from being rendered, each with its place and the remedy, before
//! any program starts.

use std::sync::Arc;

use crate::input::tree::PathFailure;
use crate::manifest::TextPosition;
use crate::object::{Diagnostic, DiagnosticCode, ManifestOrigin};
use crate::source::{FileDefect, TreeBounds};

use super::file::{FileReference, KustomizationKind, ReferenceRole, UnsupportedFeature};

/// Characters of a foreign text that are shown.
const MAX_SHOWN_CHARS: usize = 200;

/// Returns a foreign text as a message shows it.
pub(in crate::input) fn sanitize_text(text: &str) -> String {
    let plain = |letter: char| if letter.is_control() { '\u{fffd}' } else { letter };
    let cut: String = text.chars().take(MAX_SHOWN_CHARS).map(plain).collect();
    if text.chars().nth(MAX_SHOWN_CHARS).is_some() { cut + "…" } else { cut }
}

/// Returns an error at a place of a file, with its remedy.
pub(in crate::input) fn error_at(
    file: &Arc<str>,
    position: TextPosition,
    code: DiagnosticCode,
    message: impl Into<String>,
    hint: impl Into<String>,
) -> Diagnostic {
    let origin = ManifestOrigin::new(file.clone(), position.line, position.column);
    Diagnostic::error(origin, code, message).hint(hint)
}

/// Returns the refusal of what is fetched from elsewhere.
pub(super) fn remote(file: &Arc<str>, reference: &FileReference) -> Diagnostic {
    let target = sanitize_text(&reference.target);
    let subject = match reference.role {
        ReferenceRole::Resource | ReferenceRole::Component => "a remote base",
        ReferenceRole::Plugin | ReferenceRole::Patch | ReferenceRole::Variables | ReferenceRole::File => {
            "a remote file"
        }
    };
    let message = format!("{}: {subject}, which is not fetched: {target}", reference.field);
    let hint = "copy it into the repository at the version that is meant, and name that path instead";
    error_at(file, reference.position, "remote-base", message, hint)
}

/// Returns the refusal of what is never rendered.
pub(super) fn unsupported(
    file: &Arc<str>,
    feature: &UnsupportedFeature,
    position: TextPosition,
) -> Diagnostic {
    match feature {
        UnsupportedFeature::HelmChart => {
            let message = "this plugin renders a Helm chart, which rhumb does not let kustomize do";
            let hint = "name the chart under `helmCharts` of the kustomization";
            error_at(file, position, "helm-chart", message, hint)
        }
        UnsupportedFeature::Plugin(name) => {
            let message =
                format!("this plugin is a program of its own, which is not run: {}", sanitize_text(name));
            // Its output is in the open, and must not be committed.
            let hint = if name.to_ascii_lowercase().contains("sops") {
                "rhumb opens what SOPS encrypted for age: name encrypted Secrets under `resources`, and other encrypted files under a `secretGenerator`"
            } else {
                "commit what it generates, or use one of kustomize's own (`apiVersion: builtin`)"
            };
            error_at(file, position, "kustomize-plugin", message, hint)
        }
    }
}

/// Returns the refusal of what kustomize would not take of a chart.
pub(in crate::input) fn chart_field(file: &Arc<str>, message: &str, position: TextPosition) -> Diagnostic {
    let hint = "the reference of kustomize lists the fields of `helmCharts`";
    error_at(file, position, "helm-chart", format!("helmCharts: {message}"), hint)
}

/// Returns the refusal of a reference that leads to nothing that can be read.
pub(in crate::input) fn lost(
    file: &Arc<str>,
    reference: &FileReference,
    failure: &PathFailure,
) -> Diagnostic {
    let (field, target) = (reference.field, sanitize_text(&reference.target));
    let refuse = |code, message: String, hint: &str| {
        error_at(file, reference.position, code, format!("{field}: {message}"), hint)
    };
    match failure {
        PathFailure::Missing(path) => {
            let subject = match reference.role {
                ReferenceRole::Resource | ReferenceRole::Plugin => "file or folder",
                ReferenceRole::Component => "folder",
                ReferenceRole::Patch | ReferenceRole::Variables | ReferenceRole::File => "file",
            };
            let message =
                format!("no such {subject} in this revision: {target} ({} is missing)", sanitize_text(path));
            refuse("missing-file", message, "add it to the repository, or correct the path")
        }
        PathFailure::OutOfTree(bounds) => {
            let (message, hint) = out_of_tree_words(*bounds, &target);
            refuse("out-of-tree", message, hint)
        }
        PathFailure::LinkOut { link, target } => {
            let message = format!(
                "the link {} leads out of the repository, to {}",
                sanitize_text(link),
                sanitize_text(target)
            );
            refuse("out-of-tree", message, "replace the link with the file")
        }
        PathFailure::Dangling { link, target } => {
            let message =
                format!("the link {} leads to nothing: {}", sanitize_text(link), sanitize_text(target));
            refuse("missing-file", message, "correct the link, or replace it with the file")
        }
        PathFailure::LinkLoop(link) => refuse(
            "missing-file",
            format!("the link {} leads to itself", sanitize_text(link)),
            "correct the link",
        ),
        PathFailure::Defect(path, defect) => {
            let (code, why) = defect_text(*defect);
            refuse(code, format!("{} {why}", sanitize_text(path)), "replace it with a plain file of its own")
        }
    }
}

/// Returns what a path leaves, and the remedy.
fn out_of_tree_words(bounds: TreeBounds, target: &str) -> (String, &'static str) {
    let leaves_folder = || format!("the path leaves the folder that is read: {target}");
    match bounds {
        TreeBounds::Repository => (
            format!("the path leaves the repository: {target}"),
            "keep all that a root reads in one repository, and name it by a relative path",
        ),
        TreeBounds::Directory => (
            leaves_folder(),
            "a source with `directory` reads nothing beside it: name a folder that holds all",
        ),
        TreeBounds::LoneFolder => (
            leaves_folder(),
            "this folder is in no git work tree, so nothing beside it is read: name a folder that holds all",
        ),
    }
}

/// Returns the refusal of a kustomization that is itself a link to nowhere, or no file.
pub(super) fn lost_kustomization(path: &str, failure: &PathFailure) -> Diagnostic {
    let position = TextPosition { line: 0, column: 0 };
    let (role, target) = (ReferenceRole::File, path.to_owned());
    let reference = FileReference { role, field: "kustomization", target, position };
    lost(&Arc::from(path), &reference, failure)
}

const fn defect_text(defect: FileDefect) -> (DiagnosticCode, &'static str) {
    match defect {
        FileDefect::TooLarge => ("too-large", "is too large to be read"),
        FileDefect::LfsPointer => ("lfs-pointer", "is a Git LFS pointer, not the content it stands for"),
        FileDefect::Submodule => ("submodule", "is a submodule or nested repository, which is not read"),
        FileDefect::NotAFile => ("not-a-file", "is neither a regular file nor a folder"),
        FileDefect::BadLink => ("symlink", "is a link whose text is no path"),
        FileDefect::Unreadable => ("unreadable", "cannot be read"),
        FileDefect::TooDeep => ("too-deep", "is nested too deep to be read"),
    }
}

/// Returns the refusal of a file where a folder is needed, or the other way round.
pub(super) fn wrong_form(file: &Arc<str>, reference: &FileReference) -> Diagnostic {
    let (needed, found) = match reference.role {
        ReferenceRole::Component => ("a folder with a component", "a file"),
        ReferenceRole::Resource
        | ReferenceRole::Plugin
        | ReferenceRole::Patch
        | ReferenceRole::Variables
        | ReferenceRole::File => ("a file", "a folder"),
    };
    let message = format!(
        "{}: {needed} is needed, and {} is {found}",
        reference.field,
        sanitize_text(&reference.target)
    );
    error_at(file, reference.position, "missing-file", message, "correct the path")
}

/// Returns the refusal of a folder without a kustomization, or with more than one.
pub(super) fn kustomization_count(
    at: Option<(&Arc<str>, &FileReference)>,
    folder: &str,
    found: &[String],
) -> Diagnostic {
    let name = if folder.is_empty() { "the repository's root" } else { folder };
    let (code, message, hint) = match found {
        [] => (
            "no-kustomization",
            format!("{} has no kustomization.yaml", sanitize_text(name)),
            "add one, or name the files in it one by one",
        ),
        several => (
            "several-kustomizations",
            format!("{} has more than one kustomization: {}", sanitize_text(name), several.join(", ")),
            "keep one of them",
        ),
    };
    if let Some((file, reference)) = at {
        return error_at(file, reference.position, code, format!("{}: {message}", reference.field), hint);
    }
    let shown_folder = found.first().map_or(folder, String::as_str);
    Diagnostic::file_error(shown_folder, code, message).hint(hint)
}

/// Returns the refusal of a component where a base is needed, or the other way round.
pub(super) fn wrong_kind(
    at: Option<(&Arc<str>, &FileReference)>,
    file: &Arc<str>,
    kind: KustomizationKind,
) -> Diagnostic {
    let (message, hint) = match kind {
        KustomizationKind::Component => (
            "this is a component, which only others include",
            "name it under `components` of a kustomization",
        ),
        KustomizationKind::Kustomization => {
            ("this is no component", "name it under `resources`, or give it `kind: Component`")
        }
    };
    match at {
        Some((by, reference)) => {
            let message = format!("{}: {}: {message}", reference.field, sanitize_text(&reference.target));
            error_at(by, reference.position, "component", message, hint)
        }
        None => Diagnostic::file_error(file.clone(), "component", message).hint(hint),
    }
}

/// Returns the refusal of a folder that includes itself, or one that holds it.
pub(super) fn cycle(file: &Arc<str>, reference: &FileReference) -> Diagnostic {
    let message = format!("{}: this includes itself: {}", reference.field, sanitize_text(&reference.target));
    error_at(
        file,
        reference.position,
        "kustomize-cycle",
        message,
        "move what both need into a folder of its own",
    )
}

/// Returns the refusal of a root that reads more than any sensible one.
pub(super) fn too_much(folder: &str, subject: &str) -> Diagnostic {
    let shown_folder = if folder.is_empty() { "." } else { folder };
    Diagnostic::file_error(shown_folder, "too-large", format!("this root reads more than {subject}"))
        .hint("split it into several roots")
}

/// Returns the refusal of a link that cannot be replaced by what it leads to.
pub(super) fn link_conflict(file: &Arc<str>, reference: &FileReference, path: Option<&str>) -> Diagnostic {
    let subject = path.map_or("a path above the repository".to_owned(), sanitize_text);
    let message = format!(
        "{}: {} is reached over a link to a folder, and {subject} would have two contents without the link",
        reference.field,
        sanitize_text(&reference.target),
    );
    error_at(file, reference.position, "symlink", message, "name the folder that the link leads to")
}

/// Returns the refusal of a folder whose kustomization would be in the place of another file, to
/// which a link leads.
pub(super) fn place_taken(file: &Arc<str>, reference: &FileReference, path: &str) -> Diagnostic {
    let message = format!(
        "{}: without a link to a folder, {} would have two contents",
        reference.field,
        sanitize_text(path),
    );
    error_at(file, reference.position, "symlink", message, "name the folder that the link leads to")
}
