//! The revision that a source's renderer rendered last: what came of its roots, and which of them a
//! next pass keeps.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::holder_files::HolderMemory;
use super::kustomize::{ChangeImpact, ClosureIndex};
use super::release_render::HelmReleases;
use super::render_pass::{RENDER_POSTPONED, RootHistory, has_code};
use super::root_job::RENDER_STOPPED;
use super::roots::RenderRoot;
use crate::source::{RenderedRoot, RevisionTree, RootKey, RootOutcome};

/// The revision that was rendered last.
#[derive(Debug)]
pub(super) struct LastRevision {
    pub(super) tree: RevisionTree,
    pub(super) index: ClosureIndex,
    pub(super) roots: BTreeMap<Arc<str>, RememberedRoot>,
    /// The digest of its variables.
    pub(super) variables: Option<[u8; 32]>,
    /// The files that hold variables, or name none.
    pub(super) holders: HolderMemory,
    /// The settings that its charts were given.
    pub(super) releases: HelmReleases,
    /// The folders of the roots with charts.
    pub(super) charts: BTreeSet<Arc<str>>,
}

/// A root of that revision. The objects of those that rendered are in the store, and with who
/// reads it.
#[derive(Debug)]
pub(super) enum RememberedRoot {
    Rendered(KeyPrefix),
    Failed(Box<FailedRoot>),
}

/// A root that did not render.
#[derive(Debug)]
pub(super) struct FailedRoot {
    pub(super) root: RenderedRoot,
    /// The folders whose files say which names its objects may have.
    pub(super) naming_folders: Vec<String>,
}

/// The bytes of a key that are remembered. With them a remembered root takes two words.
const KEY_PREFIX_BYTES: usize = 15;

/// The first bytes of a key. They stand for it: nobody can find another key that begins with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct KeyPrefix([u8; KEY_PREFIX_BYTES]);

impl KeyPrefix {
    /// Returns that of a key.
    pub(super) fn of(key: &RootKey) -> Self {
        let mut prefix = [0; KEY_PREFIX_BYTES];
        prefix.copy_from_slice(&key[..KEY_PREFIX_BYTES]);
        Self(prefix)
    }

    /// Returns roots by those of their keys.
    pub(super) fn index<'a>(
        roots: impl IntoIterator<Item = &'a RenderedRoot>,
    ) -> HashMap<Self, &'a RenderedRoot> {
        roots.into_iter().map(|root| (Self::of(&root.key), root)).collect()
    }
}

/// A root that a pass keeps as it was.
#[derive(Debug)]
pub(super) struct KeptRoot {
    /// Its folder.
    pub(super) folder: Arc<str>,
    /// The outcome of its render.
    pub(super) root: RenderedRoot,
    /// The folders whose files say which names its objects may have, where it did not render.
    pub(super) naming_folders: Vec<String>,
}

/// The changes of files since the revision before.
#[derive(Clone, Copy, Debug)]
pub(super) struct RootChanges<'a> {
    /// The paths, in order.
    pub(super) paths: &'a [String],
    /// The folders of the roots whose closure may have changed; none where that cannot be told.
    pub(super) touched: Option<&'a BTreeSet<Arc<str>>>,
}

impl<'a> RootChanges<'a> {
    /// Returns these changes: none where they cannot be told, and the roots that they touch.
    pub(super) fn of(paths: Option<&'a [String]>, touched: Option<&'a BTreeSet<Arc<str>>>) -> Self {
        Self { paths: paths.unwrap_or_default(), touched }
    }

    /// Returns whether a folder is one of the changed paths or holds one.
    fn has_change_in(&self, folder: &str) -> bool {
        let first_from = |start: &str| {
            let place = self.paths.partition_point(|path| path.as_str() < start);
            self.paths.get(place)
        };
        // Names like `a-b` come between `a` and what is in it.
        let inside = format!("{folder}/");
        (folder.is_empty() && !self.paths.is_empty())
            || first_from(folder).is_some_and(|path| path == folder)
            || first_from(&inside).is_some_and(|path| path.starts_with(&inside))
    }
}

/// The reason for which a revision is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RenderAttempt {
    /// Something has changed.
    Commit,
    /// Nothing has changed, and the last pass left roots over.
    Rest,
    /// Nothing has changed, and a root was interrupted.
    Retry,
}

impl RenderAttempt {
    /// Returns the reason for a pass after this one.
    pub(super) fn after(last: Option<&LastRevision>, changed: Option<&[String]>) -> Self {
        match changed {
            Some([]) if last.is_some_and(LastRevision::has_postponed_roots) => Self::Rest,
            Some([]) => Self::Retry,
            _ => Self::Commit,
        }
    }

    /// Returns whether a root that did not render, and that nothing has touched, is left as it is.
    ///
    /// One that was interrupted is tried again. One that ran out of time delays all others: so it is
    /// not tried again with each commit, but when its own retry is due.
    pub(super) fn can_keep(self, outcome: &RootOutcome) -> bool {
        match outcome {
            RootOutcome::Interrupted(_) if has_code(outcome, RENDER_POSTPONED) => false,
            RootOutcome::Interrupted(_) => {
                self == Self::Rest || self == Self::Commit && has_code(outcome, RENDER_STOPPED)
            }
            _ => true,
        }
    }
}

impl RememberedRoot {
    /// Returns what is remembered of a root, whose objects may have names of these folders.
    pub(super) fn new(root: &RenderedRoot, naming_folders: Vec<String>) -> Self {
        if is_failure(root) {
            Self::Failed(FailedRoot { root: root.clone(), naming_folders }.into())
        } else {
            Self::Rendered(KeyPrefix::of(&root.key))
        }
    }

    /// Returns whether it ran out of time.
    pub(super) fn has_stopped(&self) -> bool {
        matches!(self, Self::Failed(failed) if has_code(&failed.root.outcome, RENDER_STOPPED))
    }
}

impl LastRevision {
    /// Returns whether a folder that would have to be rendered was a root, and nothing has changed
    /// that could make it none.
    pub(super) fn is_still_root(&self, folder: &str, impact: &ChangeImpact) -> bool {
        !impact.moves_roots && !impact.roots.contains(folder) && self.roots.contains_key(folder)
    }

    /// Returns what came of a root, where nothing that it reads has changed and another try would
    /// give the same. One that rendered must be among the known ones, which are stored: the store
    /// may have been made anew since. One that failed must have no changed file in the folders that
    /// its possible names are read from, whether it reads that file or not.
    pub(super) fn kept_root(
        &self,
        root: &RenderRoot,
        changes: RootChanges<'_>,
        known: &HashMap<KeyPrefix, &RenderedRoot>,
        attempt: RenderAttempt,
    ) -> Option<KeptRoot> {
        if changes.touched?.contains(&root.folder) {
            return None;
        }
        let (folder, remembered) = self.roots.get_key_value(&root.folder)?;
        // The same copy of the folder as before, which others share.
        let folder = folder.clone();
        match remembered {
            RememberedRoot::Rendered(key) => {
                let root = known.get(key).copied().filter(|known| !is_failure(known)).cloned()?;
                Some(KeptRoot { folder, root, naming_folders: Vec::new() })
            }
            RememberedRoot::Failed(failed) => {
                let FailedRoot { root, naming_folders } = &**failed;
                let is_kept = attempt.can_keep(&root.outcome)
                    && !naming_folders.iter().any(|folder| changes.has_change_in(folder));
                is_kept.then(|| KeptRoot {
                    folder,
                    root: root.clone(),
                    naming_folders: naming_folders.clone(),
                })
            }
        }
    }

    /// Returns what is known of the roots from the last pass, by their folders. A commit that makes
    /// a root that ran out of time be rendered makes it a new one.
    pub(super) fn histories(
        &self,
        attempt: RenderAttempt,
        stops: &HashMap<Arc<str>, u32>,
    ) -> HashMap<Arc<str>, RootHistory> {
        let history = |(folder, root): (&Arc<str>, &RememberedRoot)| {
            let history = match root {
                RememberedRoot::Rendered(_) => RootHistory::Rendered,
                RememberedRoot::Failed(failed) if root.has_stopped() && attempt != RenderAttempt::Commit => {
                    RootHistory::Stopped {
                        last: failed.root.clone().into(),
                        stops: stops.get(folder).copied().unwrap_or(0),
                    }
                }
                RememberedRoot::Failed(_) => return None,
            };
            Some((folder.clone(), history))
        };
        self.roots.iter().filter_map(history).collect()
    }

    fn has_postponed_roots(&self) -> bool {
        self.roots.values().any(|root| match root {
            RememberedRoot::Rendered(_) => false,
            RememberedRoot::Failed(failed) => has_code(&failed.root.outcome, RENDER_POSTPONED),
        })
    }
}

/// Returns whether a root did not render.
pub(super) fn is_failure(root: &RenderedRoot) -> bool {
    root.outcome.failure().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remembered_root_takes_two_words_and_all_of_its_prefix_counts() {
        assert!(size_of::<RememberedRoot>() <= 2 * size_of::<usize>());
        let prefix = |place: usize| {
            let mut key = RootKey::default();
            key[place] = 1;
            KeyPrefix::of(&key)
        };
        let all: BTreeSet<[u8; KEY_PREFIX_BYTES]> =
            (0..KEY_PREFIX_BYTES).map(|place| prefix(place).0).collect();
        assert_eq!(all.len(), KEY_PREFIX_BYTES);
        assert!(!all.contains(&[0; KEY_PREFIX_BYTES]));
    }

    #[test]
    fn changes_are_in_a_folder_that_is_or_holds_one_of_them() {
        let check = |paths: &[&str], folder: &str, expected: bool| {
            let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            let changes = RootChanges { paths: &paths, touched: None };
            assert_eq!(changes.has_change_in(folder), expected, "{folder}");
        };
        let paths = ["a-b/c", "a.yaml", "a/b", "ab", "c"];
        for folder in ["", "a", "a-b", "a-b/c", "a/b", "ab", "c"] {
            check(&paths, folder, true);
        }
        for folder in ["a-", "a-b/c/d", "a/", "a/a", "a/b/c", "abc", "b", "d"] {
            check(&paths, folder, false);
        }
        check(&[], "", false);
        check(&[], "a", false);
    }
}
