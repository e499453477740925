//! A bare repository whose commits are made without a work tree.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use git2::build::TreeUpdateBuilder;
use git2::{FileMode, IndexEntry, IndexTime, Oid, RepositoryInitOptions, Signature};
use tempfile::TempDir;

use crate::Outcome;
use crate::corpus::Manifest;

const BRANCH: &str = "refs/heads/main";

/// A bare repository with one branch.
pub(crate) struct Repository {
    git: git2::Repository,
    head: Oid,
    path: PathBuf,
    _directory: TempDir,
}

impl Repository {
    /// Returns a repository with all manifests in its first commit, packed as git packs it.
    pub(crate) fn new(manifests: impl Iterator<Item = Manifest>) -> Outcome<Self> {
        let directory = TempDir::new()?;
        let path = directory.path().join("source.git");
        let git =
            git2::Repository::init_opts(&path, RepositoryInitOptions::new().bare(true).initial_head("main"))?;
        let mut index = git2::Index::new()?;
        for manifest in manifests {
            let id = git.blob(manifest.text.as_bytes())?;
            index.add(&entry(&manifest, id))?;
        }
        let tree = index.write_tree_to(&git)?;
        let head = commit(&git, tree, None)?;
        git.reference(BRANCH, head, true, "begin")?;
        let packed = Command::new("git").args(["gc", "--quiet"]).current_dir(&path).status()?;
        if !packed.success() {
            return Err("git gc failed".into());
        }
        Ok(Self { git, head, path, _directory: directory })
    }

    /// Returns the path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the id of the newest commit.
    pub(crate) fn head(&self) -> Oid {
        self.head
    }

    /// Commits one file, and returns the moment before the branch moved.
    pub(crate) fn push(&mut self, manifest: &Manifest) -> Outcome<Instant> {
        self.push_all(std::slice::from_ref(manifest))
    }

    /// Does the same as [`Repository::push`], with several files in one commit.
    pub(crate) fn push_all(&mut self, manifests: &[Manifest]) -> Outcome<Instant> {
        let tree = {
            let base = self.git.find_commit(self.head)?.tree()?;
            let mut update = TreeUpdateBuilder::new();
            for manifest in manifests {
                let blob = self.git.blob(manifest.text.as_bytes())?;
                update.upsert(manifest.file.as_str(), blob, FileMode::Blob);
            }
            update.create_updated(&self.git, &base)?
        };
        self.head = commit(&self.git, tree, Some(self.head))?;
        let moved = Instant::now();
        self.git.reference(BRANCH, self.head, true, "push")?;
        Ok(moved)
    }
}

fn commit(git: &git2::Repository, tree: Oid, parent: Option<Oid>) -> Outcome<Oid> {
    let who = Signature::now("Ann", "ann@example.org")?;
    let tree = git.find_tree(tree)?;
    let parent = parent.map(|id| git.find_commit(id)).transpose()?;
    let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
    Ok(git.commit(None, &who, &who, "Change", &tree, &parents)?)
}

fn entry(manifest: &Manifest, id: Oid) -> IndexEntry {
    let never = IndexTime::new(0, 0);
    IndexEntry {
        ctime: never,
        mtime: never,
        dev: 0,
        ino: 0,
        mode: 0o100_644,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: manifest.file.clone().into_bytes(),
    }
}
