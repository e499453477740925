//! The contract between a source and what renders folders of its revisions.
//!
//! A source knows that some folders are rendered, and keeps the result beside the revision. It
//! gives that result for the snapshot of the revision. How a folder is rendered is the renderer's
//! business.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use git2::Oid;

use crate::object::{Diagnostic, PossibleNames, Revision, ShortList, UnrenderedRoot, root_folder, truncate};

use super::cluster_facts::{ClusterFacts, FactUse};
use super::error::SourceError;
use super::revision_tree::RevisionTree;
use super::snapshot::{BlobId, RENDERED_SEPARATOR, RenderId, Snapshot, SnapshotFile};

/// The code of the warning about a hook of a chart that is not run.
pub(crate) const HOOK_NOT_RUN: &str = "hook-not-run";

/// The code of the warning about a key that a chart prints twice.
pub(crate) const DUPLICATE_KEY: &str = "duplicate-key";

/// A renderer of the folders of one source's revisions.
pub(crate) trait SnapshotRenderer: fmt::Debug + Send + Sync {
    /// Returns whether a revision with these files and refusals has something to render.
    fn has_roots(&self, raw: &Snapshot) -> bool;

    /// Returns what is left of a snapshot when its roots are taken out, which are not rendered
    /// here.
    fn plain_part(&self, raw: Snapshot) -> Snapshot;

    /// Renders all roots of a revision. Blocks, and runs programs.
    ///
    /// # Errors
    /// Fails where the revision cannot be read. Fails with [`SourceError::FactsWanted`], before any
    /// program runs, where facts of the cluster are missing. A root that does not render is an
    /// outcome.
    fn render(&self, request: RenderRequest<'_>) -> Result<RenderedSnapshot, SourceError>;
}

/// A revision to be rendered.
#[derive(Debug)]
pub(crate) struct RenderRequest<'a> {
    /// Its files and refusals, as they are.
    pub raw: Snapshot,
    /// The folder that is the source's root; empty for the revision's own.
    pub start: &'a str,
    /// Every file of it.
    pub tree: RevisionTree,
    /// The earlier results of this revision.
    pub same: Arc<[RenderedRoot]>,
    /// The results of the revision that is in force.
    pub before: Arc<[RenderedRoot]>,
    /// The facts of the cluster.
    pub facts: ClusterFacts,
    /// The roots that this pass renders.
    pub extent: RenderExtent,
}

/// The roots that one pass renders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RenderExtent {
    /// All of them.
    Whole,
    /// All, but once a program has run out of time, only those that soon follow.
    Bounded,
}

/// The work that a pass leaves for a later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RemainingRenderWork {
    /// Nothing.
    #[default]
    None,
    /// Roots that were interrupted: another try may do better.
    Interrupted,
    /// Also roots whose programs did not run: the next pass is due at once.
    Postponed,
}

/// The key of a render: equal keys, equal outcomes.
pub(crate) type RootKey = [u8; 32];

/// A revision with its roots rendered.
#[derive(Clone, Debug)]
pub(crate) struct RenderedSnapshot {
    /// The files that are taken as they are.
    pub plain: Snapshot,
    /// The roots, ordered by path.
    pub roots: Vec<RenderedRoot>,
    /// The contents that are new.
    pub contents: Vec<RenderedContent>,
    /// The work for a later pass.
    pub rest: RemainingRenderWork,
    /// The facts of the cluster that it depends on.
    pub used: FactUse,
}

/// The bytes of a rendered object. Their `Debug` form leaves them out.
#[derive(Clone)]
pub(crate) struct RenderedContent {
    /// Their id.
    pub blob: BlobId,
    /// The bytes.
    pub bytes: Arc<[u8]>,
}

impl fmt::Debug for RenderedContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RenderedContent({})", self.blob)
    }
}

/// One root and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RenderedRoot {
    /// The path inside the source of the file that makes its folder a root.
    pub path: Arc<str>,
    /// Its key.
    pub key: RootKey,
    /// The outcome.
    pub outcome: RootOutcome,
    /// The names that its objects may have, where it does not render.
    pub names: PossibleNames,
    /// The warnings about what was rendered.
    pub warnings: Box<[Diagnostic]>,
    /// The folder of it in the store; none where it is not written yet.
    pub stored: Option<StoredRoot>,
}

/// The id of a root's folder in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredRoot(pub(super) Oid);

/// The outcome of a render.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RootOutcome {
    /// Its objects, ordered by path, each with its origin.
    Rendered(ShortList<SnapshotFile>),
    /// It does not render, and will not as long as its key is the same.
    Refused(Vec<Diagnostic>),
    /// It did not render, and another try may do better.
    Interrupted(Vec<Diagnostic>),
}

impl RenderedRoot {
    /// Returns a root that is not written yet.
    pub(crate) fn new(path: Arc<str>, key: RootKey, outcome: RootOutcome) -> Self {
        Self { path, key, outcome, names: PossibleNames::Any, warnings: Box::default(), stored: None }
    }

    /// Returns the path of one of its objects in a snapshot.
    pub(crate) fn object_path(root: &str, object: &str) -> Arc<str> {
        format!("{root}{RENDERED_SEPARATOR}{object}").into()
    }
}

impl RootOutcome {
    /// Returns its objects; none where it did not render.
    pub(super) fn objects(&self) -> &[SnapshotFile] {
        match self {
            Self::Rendered(files) => files,
            Self::Refused(_) | Self::Interrupted(_) => &[],
        }
    }

    /// Returns the findings for which a root did not render; none where it did.
    pub(crate) fn failure(&self) -> Option<&[Diagnostic]> {
        match self {
            Self::Rendered(_) => None,
            Self::Refused(found) | Self::Interrupted(found) => Some(found),
        }
    }
}

impl RenderedSnapshot {
    /// Returns a revision whose roots, ordered by path, were rendered before.
    pub(crate) fn of_known_roots(plain: Snapshot, roots: Vec<RenderedRoot>) -> Self {
        Self { plain, roots, contents: Vec::new(), rest: RemainingRenderWork::None, used: FactUse::default() }
    }

    /// Returns the snapshot to be read in the place of the raw one.
    pub(crate) fn into_snapshot(self) -> Snapshot {
        let mut snapshot = self.plain;
        snapshot.refuses_plain_files = !snapshot.refused.is_empty();
        // The list is kept: it has no room for more than there is.
        snapshot.files.reserve_exact(self.roots.iter().map(|root| root.outcome.objects().len()).sum());
        let mut shared = SharedFailures::default();
        for root in self.roots {
            if let Some(found) = root.outcome.failure() {
                let is_passing = matches!(root.outcome, RootOutcome::Interrupted(_));
                let (of_root, others): (Vec<_>, Vec<_>) =
                    found.iter().cloned().partition(|found| is_passing && found.origin.file == root.path);
                for found in of_root {
                    shared.add(&root.path, found);
                }
                snapshot.refused.extend(others);
                snapshot.failed_roots.push(UnrenderedRoot { path: root.path, names: root.names });
            } else if let RootOutcome::Rendered(files) = root.outcome {
                snapshot.warnings.extend(root.warnings);
                snapshot.files.extend(files.iter().cloned());
            }
        }
        snapshot.refused.extend(shared.into_findings());
        // The plain files and those of each root are in order: runs are merged, not sorted anew.
        snapshot.files.sort();
        snapshot.refused.sort_unstable();
        snapshot.refused.dedup();
        snapshot
    }
}

/// The roots that are named where several lack the same, and the bytes of each name.
const MAX_NAMED_ROOTS: usize = 5;
const MAX_ROOT_NAME_CHARS: usize = 100;

/// The findings that keep whole roots from being rendered now: each is reported once.
#[derive(Debug, Default)]
struct SharedFailures(BTreeMap<(String, Option<String>), SharedFailure>);

/// The first of findings that say the same, and the roots of all.
#[derive(Debug)]
struct SharedFailure {
    found: Diagnostic,
    roots: Vec<Arc<str>>,
}

impl SharedFailures {
    fn add(&mut self, root: &Arc<str>, found: Diagnostic) {
        let same = (found.message.clone(), found.hint.clone());
        let failure = self.0.entry(same).or_insert_with(|| SharedFailure { found, roots: Vec::new() });
        failure.roots.push(root.clone());
    }

    fn into_findings(self) -> impl Iterator<Item = Diagnostic> {
        self.0.into_values().map(|SharedFailure { found, roots }| {
            if roots.len() < 2 {
                return found;
            }
            let folder = |root: &Arc<str>| truncate(root_folder(root), MAX_ROOT_NAME_CHARS).to_owned();
            let mut named: Vec<String> = roots.iter().take(MAX_NAMED_ROOTS).map(folder).collect();
            let more = roots.len().saturating_sub(MAX_NAMED_ROOTS);
            if more > 0 {
                named.push(format!("{more} more"));
            }
            let message = format!("{} ({} roots: {})", found.message, roots.len(), named.join(", "));
            Diagnostic { message, ..found }
        })
    }
}

/// The revision that was rendered last by this process.
#[derive(Clone, Debug)]
pub(super) struct LastRender {
    /// The revision.
    pub(super) revision: Revision,
    /// The id of what was rendered of it; none where it has no roots.
    pub(super) id: Option<RenderId>,
    /// Says when it is tried again, where some root may do better then.
    pub(super) retry: Option<RenderRetry>,
    /// The facts of the cluster that it was rendered by, and which of them it depends on.
    pub(super) facts: ClusterFacts,
    pub(super) used: FactUse,
}

/// The next try of roots that were interrupted.
#[derive(Clone, Copy, Debug)]
pub(super) struct RenderRetry {
    /// Its time.
    pub(super) due: std::time::Instant,
    /// The pause before it.
    pub(super) pause: std::time::Duration,
    /// Indicates whether the last pass had no time for some root.
    pub(super) has_postponed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{ManifestOrigin, RenderOrigin};

    #[test]
    fn what_is_held_for_each_root_and_each_of_its_objects_has_a_bound() {
        let sizes = [
            // The object of a root that has one is in it, and the place of an object of one place is in
            // its origin.
            ("RenderedRoot", size_of::<RenderedRoot>(), 160),
            ("SnapshotFile", size_of::<SnapshotFile>(), 56),
            ("RenderOrigin", size_of::<RenderOrigin>(), 64),
            ("ManifestOrigin", size_of::<ManifestOrigin>(), 32),
        ];
        for (name, size, most) in sizes {
            assert!(size <= most, "{name} takes {size} bytes, and {most} at most");
        }
    }

    #[test]
    fn the_objects_of_a_root_are_those_that_it_rendered() {
        let file = SnapshotFile::in_test("a/kustomization.yaml#ConfigMap//a");
        assert_eq!(RootOutcome::Rendered([file.clone()].into()).objects(), [file]);
        assert_eq!(RootOutcome::Refused(Vec::new()).objects(), []);
        assert_eq!(RootOutcome::Interrupted(Vec::new()).objects(), []);
    }

    #[test]
    fn what_several_roots_lack_is_reported_once_with_their_names() {
        let check = |roots: &[(&str, &str)], expected: &[&str]| {
            let root = |(path, message): &(&str, &str)| {
                let found = vec![Diagnostic::file_error(*path, "no-program", *message)];
                RenderedRoot::new((*path).into(), RootKey::default(), RootOutcome::Interrupted(found))
            };
            let plain = Snapshot::of_files(Revision::new("0"), Vec::new(), Vec::new());
            let all = RenderedSnapshot::of_known_roots(plain, roots.iter().map(root).collect());
            let snapshot = all.into_snapshot();
            assert!(!snapshot.is_complete() && !snapshot.refuses_plain_files);
            assert_eq!(snapshot.failed_roots.len(), roots.len());
            let messages =
                snapshot.refused.iter().map(|found| format!("{}: {}", found.origin.file, found.message));
            assert_eq!(messages.collect::<Vec<_>>(), expected);
        };
        check(&[("a/kustomization.yaml", "no kustomize")], &["a/kustomization.yaml: no kustomize"]);
        check(
            &[
                ("a/Chart.yaml", "no helm"),
                ("b/kustomization.yaml", "no kustomize"),
                ("kustomization.yaml", "no kustomize"),
            ],
            &["a/Chart.yaml: no helm", "b/kustomization.yaml: no kustomize (2 roots: b, .)"],
        );
        let many = ["a", "b", "c", "d", "e", "f", "g"].map(|name| format!("{name}/kustomization.yaml"));
        let many: Vec<(&str, &str)> = many.iter().map(|path| (path.as_str(), "no kustomize")).collect();
        check(&many, &["a/kustomization.yaml: no kustomize (7 roots: a, b, c, d, e, 2 more)"]);
    }

    #[test]
    fn what_interrupts_roots_in_another_file_is_reported_as_it_is() {
        let interrupted = |path: &str| {
            let found = vec![Diagnostic::file_error("shared.yaml", "x", "broken")];
            RenderedRoot::new(path.into(), RootKey::default(), RootOutcome::Interrupted(found))
        };
        let plain = Snapshot::of_files(Revision::new("0"), Vec::new(), Vec::new());
        let all = RenderedSnapshot::of_known_roots(plain, ["a/x", "b/x"].map(interrupted).into());
        let expected = [Diagnostic::file_error("shared.yaml", "x", "broken")];
        assert_eq!(all.into_snapshot().refused, expected);
    }

    #[test]
    fn what_one_root_refuses_is_reported_as_it_is() {
        let refused = |path: &str| {
            let found = vec![Diagnostic::file_error(path, "x", "broken")];
            RenderedRoot::new(path.into(), RootKey::default(), RootOutcome::Refused(found))
        };
        let plain = Snapshot::of_files(Revision::new("0"), Vec::new(), Vec::new());
        let all = RenderedSnapshot::of_known_roots(plain, ["a/x", "b/x"].map(refused).into());
        assert_eq!(all.into_snapshot().refused.len(), 2);
    }
}
