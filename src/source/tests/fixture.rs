//! Repositories and folders to test with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use git2::{ObjectType, Oid, Repository};
use tempfile::TempDir;

use crate::object::{Diagnostic, Revision};
use crate::source::{ChangedFile, GitLocation, ResolvedLocation, Snapshot};

/// A work tree with its repository.
pub(super) struct TestRepository {
    pub(super) dir: TempDir,
}

impl TestRepository {
    pub(super) fn new() -> Self {
        let repo = Self { dir: tempfile::tempdir().unwrap() };
        repo.git(&["init", "--quiet", "--initial-branch=main", "."]);
        repo
    }

    /// Returns a repository with one commit of these files.
    pub(super) fn with(files: &[(&str, &str)]) -> (Self, Revision) {
        let repo = Self::new();
        let revision = repo.commit(files);
        (repo, revision)
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn git(&self, args: &[&str]) -> String {
        git(self.path(), args)
    }

    /// Commits these files besides those that are there; an empty text removes one.
    pub(super) fn commit(&self, files: &[(&str, &str)]) -> Revision {
        put(self.path(), files);
        self.git(&["add", "--all", "--force"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message=a commit"]);
        self.head()
    }

    pub(super) fn head(&self) -> Revision {
        Revision::new(&self.git(&["rev-parse", "HEAD"]))
    }

    pub(super) fn location(&self) -> ResolvedLocation {
        ResolvedLocation::Git(self.git_location())
    }

    pub(super) fn git_location(&self) -> GitLocation {
        GitLocation::new(self.path().to_str().unwrap())
    }
}

/// Runs git in a folder and gives what it prints.
pub(super) fn git(folder: &Path, args: &[&str]) -> String {
    let output = git_command(folder).args(args).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "git {args:?} in {}", folder.display());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Returns a git command that reads no configuration of the machine's.
pub(super) fn git_command(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(["-c", "user.name=A Person", "-c", "user.email=person@example.com"])
        .args(["-c", "protocol.file.allow=always", "-c", "gc.auto=0"]);
    command
}

/// Writes files; an empty text removes one.
pub(super) fn put(folder: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = folder.join(path);
        if text.is_empty() {
            fs::remove_file(path).unwrap();
        } else {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
}

/// Returns a text that does not compress well.
pub(super) fn noise() -> String {
    let numbers: Vec<String> = (0..200_000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_string()).collect();
    numbers.join("\n")
}

/// Returns a folder with files.
pub(super) fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), files);
    dir
}

pub(super) fn state(dir: &TempDir) -> PathBuf {
    dir.path().join("state")
}

pub(super) fn paths(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.files.iter().map(|file| &*file.path).collect()
}

/// Returns `code path` of each finding, in the order of paths.
pub(super) fn refused(diagnostics: &[Diagnostic]) -> Vec<String> {
    diagnostics.iter().map(|found| format!("{} {}", found.code, found.origin.file)).collect()
}

/// Returns `+path`, `-path` or `~path` of each change.
pub(super) fn marks(changed: &[ChangedFile]) -> Vec<String> {
    let mark = |changed: &ChangedFile| match (changed.old, changed.new) {
        (None, _) => '+',
        (_, None) => '-',
        _ => '~',
    };
    changed.iter().map(|changed| format!("{}{}", mark(changed), changed.path)).collect()
}

/// Writes one tree, whatever its entries are called.
pub(super) fn write_tree(repository: &Repository, entries: &[(&str, &[u8], Oid)]) -> Oid {
    let mut bytes = Vec::new();
    for (mode, name, id) in entries {
        bytes.extend_from_slice(mode.as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(name);
        bytes.push(0);
        bytes.extend_from_slice(id.as_bytes());
    }
    repository.odb().unwrap().write(ObjectType::Tree, &bytes).unwrap()
}

/// Writes a commit of a tree, without parents.
pub(super) fn write_commit(repository: &Repository, tree: Oid, message: &str) -> Revision {
    let text = format!("tree {tree}\nauthor x <x> 0 +0000\ncommitter x <x> 0 +0000\n\n{message}\n");
    Revision::new(&repository.odb().unwrap().write(ObjectType::Commit, text.as_bytes()).unwrap().to_string())
}
