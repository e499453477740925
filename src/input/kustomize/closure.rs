//! The closure of a root: every file that its program reads to build it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::object::Diagnostic;
use crate::source::TreeFile;

use super::closure_files::ClosureFiles;
use super::file::{Kustomization, KustomizationKind};

/// The most that one root may read. Real roots read 8 files on average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosureLimits {
    /// Files.
    pub files: usize,
    /// Bytes of all files together.
    pub bytes: u64,
    /// References that are followed.
    pub references: usize,
    /// Builds of folders: kustomize builds a base again for each way that leads to it.
    pub builds: u64,
}

impl Default for ClosureLimits {
    fn default() -> Self {
        Self { files: 20_000, bytes: 128 << 20, references: 100_000, builds: 20_000 }
    }
}

/// One file of a closure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosureFile {
    /// Its path in the revision: another one than in the closure where a link leads to it.
    pub source: Arc<str>,
    /// Its content and size.
    pub file: TreeFile,
}

/// One folder with a kustomization, as kustomize sees it.
#[derive(Clone, Debug)]
pub struct ClosureFolder {
    /// Its path in the closure.
    pub path: Arc<str>,
    /// The path of its kustomization in the closure.
    pub file: Arc<str>,
    /// The content of its kustomization.
    pub kustomization: Arc<Kustomization>,
}

/// All that one root reads, and all whose change could change that.
#[derive(Clone, Debug, Default)]
pub struct Closure {
    /// The folder of the root.
    pub root: Arc<str>,
    /// The files, by their path in a tree without links.
    pub files: ClosureFiles,
    /// The paths among them of files of variables that are nothing else.
    pub variables: BTreeSet<Arc<str>>,
    /// The folders with kustomizations; the root is the first. A chart has none.
    pub folders: Vec<ClosureFolder>,
    /// The paths in the revision that were looked at, found or not: files, links, and names at which
    /// nothing was. A folder stands for all that is in it.
    pub watched: BTreeSet<Arc<str>>,
    /// The findings that keep the root from being rendered.
    pub diagnostics: Vec<Diagnostic>,
}

impl Closure {
    /// Returns whether the root can be rendered.
    pub fn is_renderable(&self) -> bool {
        !self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// Returns whether the root is a component, which is none.
    pub fn is_component(&self) -> bool {
        let root = self.folders.first();
        root.is_some_and(|root| root.kustomization.kind == KustomizationKind::Component)
    }
}
