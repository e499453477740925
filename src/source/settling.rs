//! The time at which a file that is gone from a folder counts as gone.
//!
//! This is the settle time of a source, and no word about the health of objects.
//!
//! A folder that is just being replaced, synchronised or mounted looks as if files had been
//! deleted. So an absence must last; until then the revision keeps the file's last content.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, Instant};

use git2::Oid;

use super::file_names::EntryKind;
use super::refusal::RefusedFile;

/// The entry at a path of a folder; a folder that is entered is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FolderEntry {
    pub(super) path: String,
    /// A file, a link, or something else that is not read.
    pub(super) kind: EntryKind,
    /// Its content, or the text of the link; else what stands for the reason.
    pub(super) id: Oid,
    /// The size in bytes.
    pub(super) size: u64,
}

impl FolderEntry {
    /// Returns the entry of what is not read.
    pub(super) fn refused(refusal: &RefusedFile) -> Self {
        Self { path: refusal.path.clone(), kind: EntryKind::Other, id: refusal.reason.id(), size: 0 }
    }

    /// Returns the content of a regular file. A link says something else under another path.
    fn content(&self) -> Option<Oid> {
        (self.kind == EntryKind::File).then_some(self.id)
    }
}

/// The way in which the folder came to its present content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FolderReplacement {
    /// File by file.
    Gradual,
    /// All at once: the link to it was swapped. Absences count at once.
    Swapped,
}

/// The time since which files are gone.
#[derive(Debug, Default)]
pub(super) struct AbsentFiles {
    since: BTreeMap<String, Instant>,
}

impl AbsentFiles {
    /// Returns the files of the next revision: the present ones, and those that are not gone long
    /// enough. Both lists are ordered by path.
    pub(super) fn merge(
        &mut self,
        there: &[FolderEntry],
        before: &[FolderEntry],
        manner: FolderReplacement,
        now: Instant,
        settle: Duration,
    ) -> Vec<FolderEntry> {
        let paths: HashSet<&str> = there.iter().map(|entry| entry.path.as_str()).collect();
        let known: HashSet<&str> = before.iter().map(|entry| entry.path.as_str()).collect();
        let new = there.iter().filter(|entry| !known.contains(entry.path.as_str()));
        let new: HashSet<Oid> = new.filter_map(FolderEntry::content).collect();
        let folders: BTreeSet<&str> = there.iter().flat_map(|entry| parents(&entry.path)).collect();
        let mut since = BTreeMap::new();
        let mut all = there.to_vec();
        for entry in before.iter().filter(|entry| !paths.contains(entry.path.as_str())) {
            let path = entry.path.as_str();
            // Moved: the same content came under a new path, nothing is lost.
            let moved = entry.content().is_some_and(|content| new.contains(&content));
            // A file cannot stay where a folder is now, nor below what is a file now.
            let ousted = folders.contains(path) || parents(path).any(|folder| paths.contains(folder));
            if manner == FolderReplacement::Swapped || moved || ousted {
                continue;
            }
            let first = self.since.get(path).copied().unwrap_or(now);
            // Also when it counts now: until that is published, the next observation must come to
            // the same.
            since.insert(path.to_owned(), first);
            if now.saturating_duration_since(first) < settle {
                all.push(entry.clone());
            }
        }
        self.since = since;
        all.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        all
    }

    /// Forgets what is not shown any more.
    pub(super) fn forget_published(&mut self, shown: &[FolderEntry]) {
        self.since.retain(|path, _| shown.binary_search_by(|entry| entry.path.cmp(path)).is_ok());
    }

    /// Returns the files that are gone and still shown.
    pub(super) fn pending_files(&self) -> impl Iterator<Item = &str> {
        self.since.keys().map(String::as_str)
    }

    /// Returns how long until the first of them counts as gone.
    pub(super) fn time_left(&self, now: Instant, settle: Duration) -> Option<Duration> {
        let first = self.since.values().min()?;
        Some((*first + settle).saturating_duration_since(now))
    }
}

/// Returns the folders above a path.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| path.get(..at).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTLE_DELAY: Duration = Duration::from_mins(1);

    /// Reads `path=content`, `path>target` and `path!reason`.
    fn list(text: &str) -> Vec<FolderEntry> {
        let entry = |word: &str| {
            let at = word.find(['=', '>', '!']).unwrap();
            let kind = match &word[at..=at] {
                "=" => EntryKind::File,
                ">" => EntryKind::Symlink,
                _ => EntryKind::Other,
            };
            let (path, content) = (word[..at].to_owned(), &word[at + 1..]);
            let id = Oid::hash_object(git2::ObjectType::Blob, content.as_bytes()).unwrap();
            FolderEntry { path, kind, id, size: content.len() as u64 }
        };
        text.split_whitespace().map(entry).collect()
    }

    /// Merges steps of the form `seconds: what is there`, and compares the published list after the
    /// last one.
    fn check(steps: &[(u64, &str)], manner: FolderReplacement, expected: &str) {
        let start = Instant::now();
        let mut absences = AbsentFiles::default();
        let mut shown = Vec::new();
        for (second, there) in steps {
            let now = start + Duration::from_secs(*second);
            shown = absences.merge(&list(there), &shown, manner, now, SETTLE_DELAY);
        }
        assert_eq!(shown, list(expected), "{steps:?}");
    }

    #[test]
    fn an_absence_counts_when_it_lasts() {
        use FolderReplacement::{Gradual, Swapped};
        let all = "a=1 b=2";
        check(&[(0, all), (1, "a=1")], Gradual, all);
        check(&[(0, all), (1, "a=1"), (60, "a=1")], Gradual, all);
        check(&[(0, all), (1, "a=1"), (61, "a=1")], Gradual, "a=1");
        check(&[(0, all), (1, "a=1"), (30, all), (61, "a=1")], Gradual, all);
        check(&[(0, all), (1, "a=1"), (30, "a=1 b=3"), (61, "a=1 b=3")], Gradual, "a=1 b=3");
        check(&[(0, all), (1, "a=9")], Gradual, "a=9 b=2");
        check(&[(0, all), (1, "a=1")], Swapped, "a=1");
        // Moved as it is, at once; moved and edited, after the wait.
        check(&[(0, all), (1, "a=1 c=2")], Gradual, "a=1 c=2");
        check(&[(0, all), (1, "a=1 c=3")], Gradual, "a=1 b=2 c=3");
        // Of two equal files one is gone: not a move.
        check(&[(0, "a=1 b=1"), (1, "a=1")], Gradual, "a=1 b=1");
        // Paths that cannot both be.
        check(&[(0, "a/b=1"), (1, "a=2")], Gradual, "a=2");
        check(&[(0, "a=1"), (1, "a/b=2")], Gradual, "a/b=2");
    }

    #[test]
    fn what_cannot_be_read_any_more_is_not_absent_and_never_moved() {
        let check = |before, after, expected| {
            check(&[(0, before), (1, after)], FolderReplacement::Gradual, expected);
        };
        check("a=1 b=2", "a=1 b!unreadable", "a=1 b!unreadable");
        check("a!unreadable", "a=1", "a=1");
        check("a/b=1 a/c=2 d=3", "a!unreadable d=3", "a!unreadable d=3");
        check("a!unreadable b=1", "b=1", "a!unreadable b=1");
        check("a!unreadable b=1", "b=1 c!unreadable", "a!unreadable b=1 c!unreadable");
        check("a>x b=1", "b=1 c>x", "a>x b=1 c>x");
        check("a=x b=1", "b=1 c>x", "a=x b=1 c>x");
    }

    #[test]
    fn what_is_not_shown_any_more_is_not_waited_for() {
        let start = Instant::now();
        let mut absences = AbsentFiles::default();
        let all = list("a=1 b=2 c=3");
        let shown = absences.merge(&list("b=2"), &all, FolderReplacement::Gradual, start, SETTLE_DELAY);
        absences.forget_published(&shown);
        assert_eq!(absences.pending_files().collect::<Vec<_>>(), ["a", "c"]);
        absences.forget_published(&list("b=2 c=3"));
        assert_eq!(absences.pending_files().collect::<Vec<_>>(), ["c"]);
    }

    #[test]
    fn it_says_when_to_look_again() {
        let start = Instant::now();
        let mut absences = AbsentFiles::default();
        let shown = absences.merge(&list("a=1 b=2"), &[], FolderReplacement::Gradual, start, SETTLE_DELAY);
        assert_eq!(absences.time_left(start, SETTLE_DELAY), None);
        absences.merge(&list("a=1"), &shown, FolderReplacement::Gradual, start, SETTLE_DELAY);
        assert_eq!(
            absences.time_left(start + Duration::from_secs(45), SETTLE_DELAY),
            Some(Duration::from_secs(15))
        );
        assert_eq!(absences.pending_files().collect::<Vec<_>>(), ["b"]);
    }
}
