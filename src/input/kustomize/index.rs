//! From the files that changed to the roots that must be rendered again.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use crate::input::paths;

use super::closure::Closure;
use super::file::FILE_NAMES;

/// The number of a root in an index.
type RootNumber = u32;

/// The hash of a path.
type PathHash = u32;

/// The roots of a revision by the paths that concern them.
///
/// A path is kept as a hash. Two that share one only have a root looked at in vain.
#[derive(Clone, Debug, Default)]
pub struct ClosureIndex {
    roots: Vec<Arc<str>>,
    /// Ordered by hash, then by root.
    watched: Vec<(PathHash, RootNumber)>,
}

/// The paths that concern one root, as an index keeps them.
#[derive(Clone, Debug)]
pub struct WatchedPaths {
    root: Arc<str>,
    hashes: Vec<PathHash>,
}

impl WatchedPaths {
    /// Returns those of a closure.
    pub fn of(closure: &Closure) -> Self {
        let hashes = closure.watched.iter().map(|path| hash(path)).collect();
        Self { root: closure.root.clone(), hashes }
    }

    /// Takes them out of a closure, of which nobody else needs them.
    pub fn take_from(closure: &mut Closure) -> Self {
        let watched = Self::of(closure);
        closure.watched.clear();
        watched
    }
}

/// The consequence of a change of files for the roots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeImpact {
    /// The folders of the roots whose closure may have changed.
    pub roots: BTreeSet<Arc<str>>,
    /// Indicates whether folders may have become roots, or may be roots no more.
    pub moves_roots: bool,
}

impl ClosureIndex {
    /// Makes the index of these closures.
    pub fn of<'a>(closures: impl IntoIterator<Item = &'a Closure>) -> Self {
        let mut index = Self::default();
        index.replace(closures);
        index
    }

    /// Puts closures in the place of those that their roots had before.
    pub fn replace<'a>(&mut self, closures: impl IntoIterator<Item = &'a Closure>) {
        self.replace_paths(closures.into_iter().map(WatchedPaths::of));
    }

    /// Does the same as [`ClosureIndex::replace`], with the paths of closures alone.
    pub fn replace_paths(&mut self, watched: impl IntoIterator<Item = WatchedPaths>) {
        let names = self.roots.iter().cloned().zip(0..);
        let mut numbers: HashMap<Arc<str>, RootNumber> = names.collect();
        let (known, mut replaced, mut added) = (numbers.len(), BTreeSet::new(), Vec::new());
        for WatchedPaths { root, hashes } in watched {
            let number = *numbers.entry(root.clone()).or_insert_with(|| {
                self.roots.push(root);
                (self.roots.len() - 1) as RootNumber
            });
            if (number as usize) < known {
                replaced.insert(number);
            }
            added.extend(hashes.into_iter().map(|hash| (hash, number)));
        }
        // One pass for all: a first commit brings every root at once.
        self.watched.retain(|(_, root)| !replaced.contains(root));
        self.watched.append(&mut added);
        self.watched.sort_unstable();
        self.watched.dedup();
        self.watched.shrink_to_fit();
        self.roots.shrink_to_fit();
    }

    /// Forgets every root but these.
    pub fn retain(&mut self, is_root: impl Fn(&str) -> bool) {
        let mut numbers = Vec::with_capacity(self.roots.len());
        let mut next = 0;
        self.roots.retain(|root| {
            let is_kept = is_root(root);
            numbers.push(is_kept.then_some(next));
            next += RootNumber::from(is_kept);
            is_kept
        });
        if self.roots.len() == numbers.len() {
            return;
        }
        // The numbers keep their order, and with it the entries theirs.
        self.watched = std::mem::take(&mut self.watched)
            .into_iter()
            .filter_map(|(hash, root)| Some((hash, numbers.get(root as usize).copied().flatten()?)))
            .collect();
        self.roots.shrink_to_fit();
    }

    fn number(&self, root: &str) -> Option<RootNumber> {
        self.roots.iter().position(|known| **known == *root).map(|number| number as RootNumber)
    }

    /// Returns the bytes that the index occupies, without those of its own fields.
    pub fn size(&self) -> usize {
        let names: usize = self.roots.iter().map(|root| root.len() + size_of::<Arc<str>>()).sum();
        names + self.watched.len() * size_of::<(PathHash, RootNumber)>()
    }

    /// Returns which roots the changed paths of a revision concern.
    ///
    /// A path concerns a root also where the root looked for one of the folders above it. A file
    /// was sought there in vain, a link was there, or the root takes all that is in it.
    pub fn impact<'p>(&self, changed: impl IntoIterator<Item = &'p str>) -> ChangeImpact {
        let mut impact = ChangeImpact::default();
        for path in changed {
            self.add_impact(path, &mut impact);
        }
        impact
    }

    fn add_impact(&self, path: &str, impact: &mut ChangeImpact) {
        let (folder, name) = (paths::folder_of(path), path.rsplit('/').next().unwrap_or_default());
        let above = path.match_indices('/').filter_map(|(end, _)| path.get(..end));
        for part in [""].into_iter().chain(above).chain([path]) {
            impact.roots.extend(self.watchers(part).cloned());
        }
        let may_mark = FILE_NAMES.contains(&name) || matches!(name, "Chart.yaml" | ".rhumbignore");
        // The kustomization of a known root says only what the root is.
        impact.moves_roots |= may_mark && !(FILE_NAMES.contains(&name) && self.number(folder).is_some());
    }

    fn watchers(&self, path: &str) -> impl Iterator<Item = &Arc<str>> {
        let wanted = hash(path);
        let first = self.watched.partition_point(|(hash, _)| *hash < wanted);
        let found = self.watched.iter().skip(first).take_while(move |(hash, _)| *hash == wanted);
        found.filter_map(|(_, root)| self.roots.get(*root as usize))
    }
}

fn hash(path: &str) -> PathHash {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish() as PathHash
}
