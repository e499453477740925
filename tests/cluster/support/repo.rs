//! Desired state: real git repositories, and plain folders.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A folder of manifests without git.
pub(crate) struct Folder {
    dir: TempDir,
}

impl Folder {
    /// Makes a folder with these files.
    pub(crate) fn new<N: AsRef<str>, T: AsRef<str>>(files: &[(N, T)]) -> Self {
        let folder = Self { dir: TempDir::new().unwrap() };
        for (name, text) in files {
            folder.write(name.as_ref(), text.as_ref());
        }
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        write(self.path(), name, text);
    }

    pub(crate) fn remove(&self, name: &str) {
        std::fs::remove_file(self.path().join(name)).unwrap();
    }
}

/// A git repository with a work tree, on branch `main`.
pub(crate) struct Repo {
    dir: TempDir,
}

impl Repo {
    /// Makes a repository with these files in its only commit.
    pub(crate) fn new<N: AsRef<str>, T: AsRef<str>>(files: &[(N, T)]) -> Self {
        let repo = Self { dir: TempDir::new().unwrap() };
        repo.git(&["init", "--quiet", "--initial-branch=main"]);
        for (name, text) in files {
            repo.write(name.as_ref(), text.as_ref());
        }
        repo.commit("Begin");
        repo
    }

    /// Returns a repository with a copy of a folder in its only commit.
    #[allow(dead_code, reason = "only the tests of real repositories have some")]
    pub(crate) fn copy_of(folder: &Path) -> Self {
        let repo = Self::new::<&str, &str>(&[]);
        for entry in walkdir::WalkDir::new(folder).min_depth(1) {
            let entry = entry.unwrap();
            let target = repo.path().join(entry.path().strip_prefix(folder).unwrap());
            if entry.file_type().is_dir() {
                std::fs::create_dir_all(target).unwrap();
            } else if entry.file_type().is_symlink() {
                std::os::unix::fs::symlink(std::fs::read_link(entry.path()).unwrap(), target).unwrap();
            } else {
                std::fs::copy(entry.path(), target).unwrap();
            }
        }
        repo.commit("Copy");
        repo
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        write(self.path(), name, text);
    }

    pub(crate) fn remove(&self, name: &str) {
        std::fs::remove_file(self.path().join(name)).unwrap();
    }

    /// Commits the work tree as it is and returns the commit's id.
    pub(crate) fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
        self.head()
    }

    /// Writes one file and commits it.
    pub(crate) fn change(&self, name: &str, text: &str) -> String {
        self.write(name, text);
        self.commit(&format!("Change {name}"))
    }

    /// Returns the id of the newest commit.
    pub(crate) fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// Runs git in the work tree and returns what it prints.
    #[track_caller]
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git(self.path(), arguments)
    }

    /// Makes a bare copy that this repository pushes to as `origin`.
    pub(crate) fn bare(&self) -> (TempDir, PathBuf) {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("repo.git");
        self.git(&["clone", "--quiet", "--bare", ".", path.to_str().unwrap()]);
        self.git(&["remote", "add", "origin", path.to_str().unwrap()]);
        (dir, path)
    }
}

/// Runs git in a folder, without any configuration of the machine.
#[track_caller]
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs([("GIT_AUTHOR_NAME", "Ann"), ("GIT_AUTHOR_EMAIL", "ann@example.org")])
        .envs([("GIT_COMMITTER_NAME", "Ann"), ("GIT_COMMITTER_EMAIL", "ann@example.org")])
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
