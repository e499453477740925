//! The refusals of a source by name or by form, and their remedies.

use std::sync::Arc;

use git2::Oid;

use super::snapshot::BlobId;
use crate::object::{Diagnostic, DiagnosticCode};

/// A reason to take a file or folder out of a snapshot and to call the source incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RefusalReason {
    Kustomization,
    Chart,
    Symlink,
    Submodule,
    Lfs,
    TooLarge,
    TooDeep,
    Name,
    NotAFile,
    Unreadable,
    BadIgnore,
}

const ALL: [RefusalReason; 11] = [
    RefusalReason::Kustomization,
    RefusalReason::Chart,
    RefusalReason::Symlink,
    RefusalReason::Submodule,
    RefusalReason::Lfs,
    RefusalReason::TooLarge,
    RefusalReason::TooDeep,
    RefusalReason::Name,
    RefusalReason::NotAFile,
    RefusalReason::Unreadable,
    RefusalReason::BadIgnore,
];

impl RefusalReason {
    pub(super) const fn code(self) -> DiagnosticCode {
        match self {
            Self::Kustomization => "kustomization",
            Self::Chart => "helm-chart",
            Self::Symlink => "symlink",
            Self::Submodule => "submodule",
            Self::Lfs => "lfs-pointer",
            Self::TooLarge => "too-large",
            Self::TooDeep => "too-deep",
            Self::Name => "file-name",
            Self::NotAFile => "not-a-file",
            Self::Unreadable => "unreadable",
            Self::BadIgnore => "ignore-file",
        }
    }

    /// Returns whether it is one of a folder that is rendered.
    pub(super) const fn is_root(self) -> bool {
        matches!(self, Self::Kustomization | Self::Chart)
    }

    fn parse(code: &str) -> Option<Self> {
        ALL.into_iter().find(|reason| reason.code() == code)
    }

    /// Returns the id that stands for it in the tree of a folder's snapshot. No object has it.
    pub(super) fn id(self) -> Oid {
        BlobId::of(format!("not read: {}", self.code()).as_bytes()).oid()
    }

    /// Returns the reason for which an id stands.
    pub(super) fn of_id(id: Oid) -> Option<Self> {
        ALL.into_iter().find(|reason| reason.id() == id)
    }

    /// Returns the finding about a file that is refused for this reason. The detail is the system's
    /// message, and empty where the reason says all.
    pub(super) fn diagnostic(self, path: Arc<str>, detail: &str) -> Diagnostic {
        let message = match detail {
            "" => self.message().to_owned(),
            detail => format!("{}: {detail}", self.message()),
        };
        Diagnostic::file_error(path, self.code(), message).hint(self.hint())
    }

    const fn message(self) -> &'static str {
        match self {
            Self::Kustomization => {
                "this folder is for kustomize, and nothing is rendered here; nothing in it is read"
            }
            Self::Chart => "this folder is a Helm chart, and nothing is rendered here; nothing in it is read",
            Self::Symlink => "symbolic links are not followed",
            Self::Submodule => "a submodule or nested repository is not read",
            Self::Lfs => "this is a Git LFS pointer, not the content it stands for",
            Self::TooLarge => "the file is too large to be read",
            Self::TooDeep => "the folder is nested too deep to be read",
            Self::Name => {
                "the name cannot be a manifest's: it is not UTF-8, longer than 255 bytes, or has a control character, a backslash or a meaning to git"
            }
            Self::NotAFile => "neither a regular file nor a folder",
            Self::Unreadable => "the file cannot be read",
            Self::BadIgnore => "the ignore file cannot be understood",
        }
    }

    const fn hint(self) -> &'static str {
        match self {
            Self::Kustomization => {
                "leave `render: none` out to have it rendered, or list the folder in .rhumbignore; list only this file \
                 there to have the files beside it read as they are"
            }
            Self::Chart => "leave `render: none` out to have it rendered, or list the folder in .rhumbignore",
            Self::Symlink => "replace the link with the file, or list it in .rhumbignore",
            Self::Submodule => "make it a source of its own, or list it in .rhumbignore",
            Self::Lfs => "commit the manifest itself: take *.yaml out of .gitattributes' LFS filter",
            Self::TooLarge => "split it, or list it in .rhumbignore if it is no manifest",
            Self::TooDeep | Self::Name | Self::NotAFile => "rename or move it, or list it in .rhumbignore",
            Self::Unreadable => {
                "give the user that runs rhumb the right to read it, or list it in .rhumbignore"
            }
            Self::BadIgnore => "write it in gitignore syntax, at most 1 MiB, as a regular file",
        }
    }
}

/// One refused file or folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RefusedFile {
    pub(super) path: String,
    pub(super) reason: RefusalReason,
    /// The system's message; empty where the reason says all.
    pub(super) detail: String,
}

impl RefusedFile {
    pub(super) fn new(path: impl Into<String>, reason: RefusalReason) -> Self {
        Self { path: path.into(), reason, detail: String::new() }
    }

    pub(super) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    pub(super) fn diagnostic(&self) -> Diagnostic {
        self.reason.diagnostic(self.path.as_str().into(), &self.detail)
    }

    /// Returns one line of a snapshot's commit message.
    pub(super) fn line(&self) -> String {
        serde_json::json!([self.reason.code(), self.path, self.detail]).to_string()
    }

    /// Reads what [`RefusedFile::line`] wrote.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (code, path, detail): (String, String, String) = serde_json::from_str(line).ok()?;
        Some(Self { path, reason: RefusalReason::parse(&code)?, detail })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_is_read_as_it_is_written_and_has_an_id_of_its_own() {
        for reason in ALL {
            let refused = RefusedFile::new("web/a \"b\"\n.yaml", reason).with_detail("why");
            assert_eq!(refused.line().lines().count(), 1, "{reason:?}");
            assert_eq!(RefusedFile::parse(&refused.line()), Some(refused));
            assert_eq!(RefusalReason::of_id(reason.id()), Some(reason));
            assert_eq!(reason.is_root(), ["kustomization", "helm-chart"].contains(&reason.code()));
        }
        for line in ["", "[]", r#"["other","a.yaml",""]"#, r#"["symlink","a.yaml"]"#] {
            assert_eq!(RefusedFile::parse(line), None, "{line}");
        }
        assert_eq!(RefusalReason::of_id(BlobId::of(b"a: 1").oid()), None);
    }

    #[test]
    fn the_detail_of_a_refusal_is_reported_where_there_is_one() {
        let refused = RefusedFile::new("a.yaml", RefusalReason::Unreadable);
        assert_eq!(refused.diagnostic().message, "the file cannot be read");
        let why = refused.with_detail("permission denied").diagnostic().message;
        assert_eq!(why, "the file cannot be read: permission denied");
    }
}
