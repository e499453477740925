//! Who made which revision: kept in the budget object, as a cluster remembers no commits.
//!
//! **Invariant:** what is known here changes nothing but words. It causes no write of its own: it goes along with the
//! next claim.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::SourceId;
use super::book::Book;
use super::state::Engine;
use crate::object::Revision;

/// So many revisions are remembered, of all sources together: some 10 KB, and more than a Deployment keeps of its own.
const REMEMBERED: usize = 50;

/// So many characters of a name and of a subject are kept: whoever writes commits is not to fill the budget object.
const TOLD: usize = 100;

/// Who made a revision, and what for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authored {
    /// The author's name.
    pub author: String,
    /// The first line of the message.
    pub subject: String,
}

impl Authored {
    /// What is kept of a name and of the first line of a message.
    pub fn of(author: &str, subject: &str) -> Self {
        let shortened = |text: &str| text.chars().take(TOLD).collect();
        Self { author: shortened(author), subject: shortened(subject) }
    }
}

/// A revision of which is known who made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The inventory of its source.
    pub applyset: Arc<str>,
    /// The revision.
    pub revision: Revision,
    /// Who made it.
    pub authored: Authored,
}

/// The form of a [`Commit`] in JSON.
#[derive(Serialize, Deserialize)]
pub(super) struct CommitText {
    source: String,
    revision: String,
    #[serde(flatten)]
    authored: Authored,
}

impl CommitText {
    pub(super) fn of(commit: &Commit) -> Self {
        Self {
            source: commit.applyset.to_string(),
            revision: commit.revision.to_string(),
            authored: commit.authored.clone(),
        }
    }

    pub(super) fn read(self) -> Commit {
        let (applyset, revision) = (self.source.as_str().into(), Revision::new(&self.revision));
        let Authored { author, subject } = &self.authored;
        Commit { applyset, revision, authored: Authored::of(author, subject) }
    }
}

impl Engine {
    /// Writes into a book who made the revisions that were read.
    pub(super) fn tell_authors(&self, book: &mut Book) {
        for (source, applyset) in self.sources.iter().zip(&self.applysets) {
            for (revision, authored) in &source.authors {
                let commit = Commit {
                    applyset: applyset.clone(),
                    revision: revision.clone(),
                    authored: authored.clone(),
                };
                book.remember_commit(commit);
            }
        }
    }

    /// The revisions of a source of which is remembered who made them, the newest first.
    pub fn commits_of(&self, number: SourceId) -> Vec<(Revision, Authored)> {
        let (Some(source), Some(applyset)) = (self.sources.get(number), self.applysets.get(number)) else {
            return Vec::new();
        };
        let told = self.rollouts.book.iter().flat_map(|book| &book.commits);
        let told = told.filter(|commit| commit.applyset == *applyset);
        let mut all: Vec<_> = told.map(|commit| (commit.revision.clone(), commit.authored.clone())).collect();
        for (revision, authored) in &source.authors {
            if !all.iter().any(|(known, _)| known == revision) {
                all.push((revision.clone(), authored.clone()));
            }
        }
        all.reverse();
        all
    }

    /// What is told already need not be known any longer.
    pub(super) fn forget_authors(&mut self) {
        let Some(book) = &self.rollouts.book else { return };
        for (source, applyset) in self.sources.iter_mut().zip(&self.applysets) {
            source.authors.retain(|(revision, _)| book.author(applyset, revision).is_none());
        }
    }
}

impl Book {
    /// Who made a revision of an inventory, if that is remembered.
    pub fn author(&self, applyset: &str, revision: &Revision) -> Option<&Authored> {
        let is_it = |commit: &&Commit| *commit.applyset == *applyset && commit.revision == *revision;
        self.commits.iter().find(is_it).map(|commit| &commit.authored)
    }

    fn remember_commit(&mut self, commit: Commit) {
        if self.author(&commit.applyset, &commit.revision).is_none() {
            self.commits.push(commit);
            let surplus = self.commits.len().saturating_sub(REMEMBERED);
            self.commits.drain(..surplus);
        }
    }
}

/// Adds a revision to those of which nobody was told yet.
pub(super) fn note(known: &mut Vec<(Revision, Authored)>, revision: &Revision, authored: Authored) {
    known.push((revision.clone(), authored));
    let surplus = known.len().saturating_sub(REMEMBERED);
    known.drain(..surplus);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// People may write the budget object.
    #[test]
    fn what_is_read_is_no_longer_than_what_is_written() {
        let text = serde_json::json!({
            "source": "a-v1", "revision": "1", "author": "x".repeat(5000), "subject": "y".repeat(5000),
        });
        let commit = serde_json::from_value::<CommitText>(text).unwrap().read();
        assert_eq!((commit.authored.author.len(), commit.authored.subject.len()), (TOLD, TOLD));
    }

    #[test]
    fn the_newest_revisions_are_remembered() {
        let commit = |number: usize| Commit {
            applyset: "a-v1".into(),
            revision: Revision::new(&number.to_string()),
            authored: Authored::of("Ann", &"x".repeat(number)),
        };
        let mut book = Book::default();
        for number in [0, 1, 1].into_iter().chain(2..=REMEMBERED) {
            book.remember_commit(commit(number));
        }
        assert_eq!(book.commits, (1..=REMEMBERED).map(commit).collect::<Vec<_>>());
        let author = |applyset, number: usize| book.author(applyset, &Revision::new(&number.to_string()));
        assert_eq!(author("a-v1", 1), Some(&Authored::of("Ann", "x")));
        assert_eq!((author("a-v1", 0), author("b-v1", 1)), (None, None));
        assert_eq!(Authored::of("Ann", &"x".repeat(2 * TOLD)).subject.len(), TOLD);
    }
}
