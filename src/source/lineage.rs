//! The commits that a revision brings and another one does not have.
//!
//! **Invariant:** the cut of a shallow history is never taken for its beginning. So parents are
//! read out of the commits themselves: the library shows none of a commit at which a shallow
//! repository ends.

use std::collections::{HashSet, VecDeque};

use git2::{ErrorCode, ObjectType, Oid};

use super::object_stores::ObjectDatabase;

/// The commits between two revisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CommitRange {
    /// These, the newest first.
    Exactly(Vec<Oid>),
    /// These, of which some may be in the history of the older revision: not all of that is here.
    AtMost(Vec<Oid>),
    /// The newer one does not come after the older one.
    Diverged,
    /// Not enough of the history is here to know.
    Unknown,
}

/// Indicates whether one commit is in the history of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ancestry {
    /// The newer commit comes after the older one, or is that very commit.
    Descends,
    /// The newer commit does not come after the older one.
    Diverged,
    /// Not enough of the history is here to know.
    Unknown,
}

/// All that leads from a commit to the beginnings of its history.
#[derive(Debug, Default)]
struct LineageWalk {
    /// The commits, in the order in which they were found.
    found: Vec<Oid>,
    known: HashSet<Oid>,
    /// Named as a parent, and not here.
    missing: HashSet<Oid>,
    /// Indicates whether one of them has no parent.
    begins: bool,
    /// Indicates whether the commit was met at which the walk turns.
    met: bool,
}

impl LineageWalk {
    /// Walks from one commit to its ancestors, and not past another one.
    fn new(odbs: &[ObjectDatabase<'_>], from: Oid, until: Option<Oid>) -> Result<Self, git2::Error> {
        let mut walk = Self::default();
        let mut open = vec![from];
        walk.known.insert(from);
        while let Some(id) = open.pop() {
            if until == Some(id) {
                walk.met = true;
                continue;
            }
            let Some(parents) = parents(odbs, id)? else {
                walk.missing.insert(id);
                continue;
            };
            walk.found.push(id);
            walk.begins |= parents.is_empty();
            open.extend(parents.into_iter().filter(|parent| walk.known.insert(*parent)));
        }
        Ok(walk)
    }
}

/// Returns the parents of a commit, as it names them; none where it is not here.
fn parents(odbs: &[ObjectDatabase<'_>], id: Oid) -> Result<Option<Vec<Oid>>, git2::Error> {
    for odb in odbs {
        match odb.read_structure(id) {
            Ok(object) if object.kind() == ObjectType::Commit => return parents_in(object.data()).map(Some),
            Ok(_) => return Err(git2::Error::from_str("a parent is no commit")),
            Err(error) if error.code() == ErrorCode::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Returns the first parent of a commit, be it here or not; none where it has none.
pub(super) fn first_parent(odbs: &[ObjectDatabase<'_>], id: Oid) -> Result<Option<Oid>, git2::Error> {
    Ok(parents(odbs, id)?.and_then(|parents| parents.first().copied()))
}

/// Returns the parents that the bytes of a commit name.
fn parents_in(commit: &[u8]) -> Result<Vec<Oid>, git2::Error> {
    // The head of a commit: its tree, then its parents. A signature or a message comes after these.
    let lines = commit.split(|byte| *byte == b'\n').skip(1);
    let ids = lines.map_while(|line| line.strip_prefix(b"parent "));
    let read = ids.map(|id| std::str::from_utf8(id).map_err(|_| git2::Error::from_str("a parent has no id")));
    read.map(|id| Oid::from_str(id?)).collect()
}

/// Returns how a commit relates to another one: the same, after it, or apart. Blocks.
///
/// A commit that is named as a parent counts, be it here or not: its child's id vouches for it.
pub(super) fn ancestry(odbs: &[ObjectDatabase<'_>], older: Oid, newer: Oid) -> Result<Ancestry, git2::Error> {
    let mut known = HashSet::from([newer]);
    let mut open = VecDeque::from([newer]);
    let mut missing = HashSet::new();
    while let Some(id) = open.pop_front() {
        if id == older {
            return Ok(Ancestry::Descends);
        }
        match parents(odbs, id)? {
            Some(parents) => open.extend(parents.into_iter().filter(|parent| known.insert(*parent))),
            None => drop(missing.insert(id)),
        }
    }
    // Missing commits are older than the older one, which therefore cannot be found behind them.
    let apart = missing.is_empty() || missing.is_subset(&LineageWalk::new(odbs, older, None)?.known);
    Ok(if apart { Ancestry::Diverged } else { Ancestry::Unknown })
}

/// Returns what lies between two revisions; blocks. Both count by their ids: the older one need not
/// be here.
pub(super) fn commits_between(
    odbs: &[ObjectDatabase<'_>],
    older: Oid,
    newer: Oid,
) -> Result<CommitRange, git2::Error> {
    let walk = LineageWalk::new(odbs, newer, Some(older))?;
    if walk.met && walk.missing.is_empty() && !walk.begins {
        // Each of them leads to the older one and to nothing else.
        return Ok(CommitRange::Exactly(walk.found));
    }
    let before = LineageWalk::new(odbs, older, None)?;
    if !walk.missing.is_subset(&before.known) {
        return Ok(CommitRange::Unknown);
    }
    // Missing commits are older than the older one, which therefore is no ancestor of them.
    if !walk.met {
        return Ok(CommitRange::Diverged);
    }
    let commits = walk.found.into_iter().filter(|id| !before.known.contains(id)).collect();
    Ok(if before.missing.is_empty() { CommitRange::Exactly(commits) } else { CommitRange::AtMost(commits) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use git2::{Repository, Signature};
    use tempfile::TempDir;

    use super::*;

    /// Returns a history by words: `c:a,b` is a commit `c` with the parents `a` and `b`, and `-a`
    /// takes one away again.
    fn history(words: &str) -> (TempDir, Repository, BTreeMap<String, Oid>) {
        let dir = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(dir.path()).unwrap();
        let who = Signature::new("a", "a", &git2::Time::new(0, 0)).unwrap();
        let tree = repository.treebuilder(None).unwrap().write().unwrap();
        let mut ids = BTreeMap::new();
        for word in words.split(' ') {
            if let Some(gone) = word.strip_prefix('-') {
                let id: &Oid = &ids[gone];
                let name = id.to_string();
                let (folder, file) = name.split_at(2);
                std::fs::remove_file(dir.path().join("objects").join(folder).join(file)).unwrap();
                continue;
            }
            let (name, parents) = word.split_once(':').unwrap();
            let parents: Vec<_> = parents
                .split(',')
                .filter(|parent| !parent.is_empty())
                .map(|parent| repository.find_commit(ids[parent]).unwrap())
                .collect();
            let parents: Vec<_> = parents.iter().collect();
            let tree = repository.find_tree(tree).unwrap();
            let id = repository.commit(None, &who, &who, name, &tree, &parents).unwrap();
            ids.insert(name.to_owned(), id);
        }
        (dir, repository, ids)
    }

    #[test]
    fn all_that_is_new_lies_between_also_behind_merges() {
        #[track_caller]
        fn check(words: &str, older: &str, newer: &str, expected: &str) {
            let (dir, _, ids) = history(words);
            // Opened anew, as the first one remembers what it wrote.
            let repository = Repository::open(dir.path()).unwrap();
            let found =
                commits_between(&[ObjectDatabase::of(&repository).unwrap()], ids[older], ids[newer]).unwrap();
            let names = |commits: &[Oid]| {
                let name = |id: &Oid| ids.iter().find(|(_, known)| *known == id).unwrap().0.clone();
                assert_eq!(commits.first(), Some(&ids[newer]), "the newest comes first");
                let mut names: Vec<String> = commits.iter().map(name).collect();
                names.sort();
                names.join("")
            };
            let found_word = match &found {
                CommitRange::Exactly(commits) => names(commits),
                CommitRange::AtMost(commits) => format!("at most {}", names(commits)),
                CommitRange::Diverged => "apart".to_owned(),
                CommitRange::Unknown => "unknown".to_owned(),
            };
            assert_eq!(found_word, expected, "{older}..{newer} of {words}");
        }
        let line = "a: b:a c:b d:c";
        check(line, "b", "d", "cd");
        check(line, "d", "b", "apart");
        check("a: b:a c:a", "b", "c", "apart");
        check("a: b:", "a", "b", "apart");
        // A branch from before the older one, and one with a beginning of its own.
        let merge = "a: b:a c:b x:a y:x m:c,y";
        check(merge, "c", "m", "mxy");
        check(merge, "b", "m", "cmxy");
        check("a: b:a x: m:b,x", "b", "m", "mx");
        // The first parent counts no more than the others.
        check("a: b:a x:a m:x,b", "b", "m", "mx");
        // The cut part may be new, or the older one may come from it.
        check("a: b:a c:b d:c -a", "b", "d", "cd");
        check("a: b:a c:b d:c -b", "b", "d", "cd");
        check("a: b:a c:b d:c -c", "b", "d", "unknown");
        check("a: b:a c:b d:c -a", "d", "b", "apart");
        check("a: b:a x:a m:b,x -x", "b", "m", "unknown");
        check("a: b:a c:b x:b m:c,x -a", "c", "m", "at most mx");
        check("a: b:a c:b d:c x:a m:d,x -b", "d", "m", "at most amx");
        check("a: b:a x:a -a", "b", "x", "apart");
        // A root that is an ancestor of the older one is not new, as far as is known.
        check("a: b:a c:b m:c,a", "c", "m", "m");
        check("a: b:a c:b m:c,a -b", "c", "m", "at most am");
    }

    #[test]
    fn what_a_history_does_not_show_is_neither_in_it_nor_outside_of_it() {
        #[track_caller]
        fn check(words: &str, older: &str, newer: &str, expected: Ancestry) {
            let (dir, _, ids) = history(words);
            let repository = Repository::open(dir.path()).unwrap();
            let odbs = [ObjectDatabase::of(&repository).unwrap()];
            assert_eq!(
                ancestry(&odbs, ids[older], ids[newer]).unwrap(),
                expected,
                "{older}..{newer} of {words}"
            );
        }
        use Ancestry::{Descends, Diverged, Unknown};
        let line = "a: b:a c:b d:c";
        check(line, "d", "d", Descends);
        check(line, "a", "d", Descends);
        check(line, "d", "a", Diverged);
        let merge = "a: b:a x:a y:x m:b,y u:y";
        check(merge, "x", "m", Descends);
        check(merge, "u", "m", Diverged);
        // A commit's id proves its parent, be that here or not.
        check("a: b:a c:b d:c -a", "a", "d", Descends);
        check("a: b:a c:b d:c -b", "a", "d", Unknown);
        check("a: b:a c:b d:c x: -b", "x", "d", Unknown);
        // Missing commits are older than the one that is asked about.
        check("a: b:a c:b u:b -a", "u", "c", Diverged);
        check("a: b:a c:b d:c -a", "d", "b", Diverged);
    }

    #[test]
    fn neither_a_cut_nor_a_graft_of_a_repository_changes_where_its_commits_come_from() {
        let (dir, _, ids) = history("a: b:a c:b u:a");
        let graft = format!("{} {}\n", ids["c"], ids["u"]);
        std::fs::create_dir_all(dir.path().join("info")).unwrap();
        for (file, text) in [("shallow", format!("{}\n", ids["c"])), ("info/grafts", graft)] {
            std::fs::write(dir.path().join(file), text).unwrap();
            let repository = Repository::open(dir.path()).unwrap();
            let seen = repository.find_commit(ids["c"]).unwrap().parent_ids().next();
            assert_ne!(seen, Some(ids["b"]), "the library believes {file}");
            let odbs = [ObjectDatabase::of(&repository).unwrap()];
            assert_eq!(ancestry(&odbs, ids["a"], ids["c"]).unwrap(), Ancestry::Descends, "{file}");
            assert_eq!(ancestry(&odbs, ids["u"], ids["c"]).unwrap(), Ancestry::Diverged, "{file}");
            std::fs::remove_file(dir.path().join(file)).unwrap();
        }
    }
}
