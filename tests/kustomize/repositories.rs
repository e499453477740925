//! Repositories with roots, and what becomes of each.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rhumb::testing::input::kustomize::{
    Closure, ClosureLimits, ExpectedObjects, FILE_NAMES, OriginFinder, OriginTracking, ParsedFiles,
    RenderTree, find_closure,
};
use rhumb::testing::input::strip_origin;
use rhumb::testing::source::DiskTree;
use tempfile::TempDir;

use super::build::{build, documents, written};

/// A repository on disk.
pub(crate) struct Repository {
    pub(crate) folder: PathBuf,
    pub(crate) tree: DiskTree,
}

/// How the origins of a root's objects are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OriginSource {
    /// From its files, which name each object that it prints.
    Files,
    /// From kustomize, which takes longer with them.
    Program,
}

/// The outcome of a root.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Its closure gives the same output, with origins and without.
    Equal(OriginSource),
    /// The same, but that nothing says where its objects come from.
    EqualWithoutOrigins,
    /// It was refused, and does not build.
    Refused(String),
    /// It does not build, with its closure as with the whole repository.
    FailsAlike(String),
    /// Anything else.
    Wrong(String),
}

impl Repository {
    pub(crate) fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), tree: DiskTree::open(folder).unwrap() }
    }

    /// Returns the folders with a kustomization that is no component, in order.
    pub(crate) fn roots(&self) -> Vec<String> {
        let mut roots = Vec::new();
        for entry in walkdir::WalkDir::new(&self.folder).sort_by_file_name() {
            let entry = entry.unwrap();
            if FILE_NAMES.iter().any(|name| entry.file_name() == *name) {
                let folder = entry.path().parent().unwrap().strip_prefix(&self.folder).unwrap();
                roots.push(folder.to_str().unwrap().to_owned());
            }
        }
        roots.dedup();
        roots.retain(|root| !self.closure(root).is_component());
        roots
    }

    pub(crate) fn closure(&self, root: &str) -> Closure {
        find_closure(&self.tree, root, ClosureLimits::default(), &mut ParsedFiles::default()).unwrap()
    }

    /// Builds a root in the repository, from its closure, and with origins asked for.
    pub(crate) fn judge(&self, root: &str) -> Outcome {
        let closure = self.closure(root);
        let bare = build(&self.folder.join(root));
        if let Some(why) = closure.diagnostics.first() {
            let why = format!("{}: {}", why.origin, why.message);
            return if bare.is_ok() {
                Outcome::Wrong(format!("{why}, but builds"))
            } else {
                Outcome::Refused(why)
            };
        }
        let alone = build(&written(&RenderTree::plain(&closure), &self.tree).path().join(root));
        let planned = RenderTree::of(&closure, &self.tree).unwrap();
        let traced = build(&written(&planned, &self.tree).path().join(root));
        match (bare, alone, traced) {
            (Ok(bare), Ok(alone), Ok(traced)) => {
                let (bare, alone, mut traced) = (documents(&bare), documents(&alone), documents(&traced));
                let mut origins = Vec::new();
                if planned.origins == OriginTracking::Added {
                    origins.extend(traced.iter_mut().map(strip_origin));
                }
                let said = origins.iter().all(Option::is_some);
                // The expected origins are those of kustomize, or there are none.
                let expected = ExpectedObjects::of(&mut OriginFinder::new(&closure, &self.tree)).unwrap();
                let expected = expected.and_then(|expected| expected.origins(&alone));
                let source = if expected.is_some() { OriginSource::Files } else { OriginSource::Program };
                if let Some(expected) = expected.filter(|_| planned.origins == OriginTracking::Added) {
                    for (expected, origin) in expected.iter().zip(origins.iter().flatten()) {
                        let place = (&origin.path, &origin.configured_in);
                        let is_same = (&expected.path, &expected.configured_in) == place
                            || (origin.path.is_some() && expected.path == origin.path);
                        if !is_same {
                            return Outcome::Wrong(format!("expected {expected:?}, and it is {origin:?}"));
                        }
                    }
                }
                match planned.origins {
                    _ if !said || bare != alone || bare != traced => {
                        let equal = (bare == alone, bare == traced);
                        Outcome::Wrong(format!("origins: {said}, equal alone and with origins: {equal:?}"))
                    }
                    OriginTracking::Absent => Outcome::EqualWithoutOrigins,
                    OriginTracking::Added | OriginTracking::Requested => Outcome::Equal(source),
                }
            }
            (Err(error), Err(_), Err(_)) => Outcome::FailsAlike(error),
            other => Outcome::Wrong(format!("{other:?}")),
        }
    }
}

/// Returns the repositories that are kept beside this file.
pub(crate) fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kustomize/repositories").join(name)
}

/// Returns a copy of one of them with links: to a file, to a folder, to a folder's parent, to a
/// kustomization.
pub(crate) fn linked() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in walkdir::WalkDir::new(own("shop")) {
        let entry = entry.unwrap();
        let path = folder.path().join(entry.path().strip_prefix(own("shop")).unwrap());
        if entry.file_type().is_dir() {
            fs::create_dir_all(path).unwrap();
        } else {
            fs::copy(entry.path(), path).unwrap();
        }
    }
    let links = [
        ("linked/file/web.yaml", "../../base/web.yaml", "resources: [web.yaml]\n"),
        ("linked/to-base", "../base", ""),
        (
            "linked/folder/x.txt",
            "../to-base/../base/worker.yaml",
            "resources: [../to-base]\nconfigMapGenerator: [{name: x, files: [x.txt]}]\n",
        ),
        ("linked/overlays", "../overlays", ""),
        ("linked/base", "../base", ""),
        ("linked/through/x.txt", "../file/web.yaml", "resources: [../overlays/dev]\n"),
    ];
    for (link, target, kustomization) in links {
        let link = folder.path().join(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(target, &link).unwrap();
        if !kustomization.is_empty() {
            fs::write(link.with_file_name("kustomization.yaml"), kustomization).unwrap();
        }
    }
    folder
}

/// Returns the repositories in the folder that `RHUMB_INPUTS` names.
pub(crate) fn real() -> Option<Vec<Repository>> {
    let Some(named) = std::env::var_os("RHUMB_INPUTS").map(PathBuf::from) else {
        // Past the harness, which shows nothing of a test that passes.
        let _ = writeln!(io::stderr(), "SKIPPED: no inputs: RHUMB_INPUTS names no folder with repositories");
        return None;
    };
    let mut folders: Vec<_> =
        fs::read_dir(named.join("repositories")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    assert!(!folders.is_empty(), "{} holds no repository", named.display());
    Some(folders.iter().map(|folder| Repository::at(folder)).collect())
}
