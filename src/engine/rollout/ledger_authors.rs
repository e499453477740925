//! The authors of revisions, kept in the rollout ledger, as a cluster remembers no commits.
//!
//! **Invariant:** authors change nothing but words. They cause no write of their own: they go along
//! with the next claim.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine::facts::authors::{Authorship, MAX_REMEMBERED_AUTHORS};
use crate::engine::rollout::ledger::RolloutLedger;
use crate::engine::rollout::ledger_text::read_name;
use crate::engine::state::Engine;
use crate::engine::{SourceId, SourceState};
use crate::object::Revision;

/// A revision of which is known who made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AuthoredRevision {
    /// The inventory of its source.
    pub inventory_id: Arc<str>,
    /// The revision.
    pub revision: Revision,
    /// The author.
    pub authored: Authorship,
}

/// The form of a [`AuthoredRevision`] in JSON.
#[derive(Serialize, Deserialize)]
pub(in crate::engine) struct AuthoredRevisionText {
    source: String,
    revision: String,
    #[serde(flatten)]
    authored: Authorship,
}

impl AuthoredRevisionText {
    pub(in crate::engine) fn of(commit: &AuthoredRevision) -> Self {
        Self {
            source: commit.inventory_id.to_string(),
            revision: commit.revision.to_string(),
            authored: commit.authored.clone(),
        }
    }

    pub(in crate::engine) fn read(self) -> AuthoredRevision {
        let (inventory_id, revision) = (read_name(&self.source), Revision::new(&self.revision));
        let Authorship { author, subject } = &self.authored;
        AuthoredRevision { inventory_id, revision, authored: Authorship::of(author, subject) }
    }
}

impl Engine {
    /// Writes into a ledger who made the revisions that were read.
    pub(in crate::engine) fn record_authors(&self, ledger: &mut RolloutLedger) {
        for (source, inventory_id) in self.sources.states().iter().zip(self.sources.inventory_ids()) {
            for (revision, authored) in &source.authors {
                let commit = AuthoredRevision {
                    inventory_id: inventory_id.clone(),
                    revision: revision.clone(),
                    authored: authored.clone(),
                };
                ledger.remember_commit(commit);
            }
        }
    }

    /// Returns the revisions of a source of which is remembered who made them, the newest first.
    pub(in crate::engine) fn commits_of(&self, number: SourceId) -> Vec<(Revision, Authorship)> {
        let (Some(source), Some(inventory_id)) = (
            self.sources.states().get(number.position()),
            self.sources.inventory_ids().get(number.position()),
        ) else {
            return Vec::new();
        };
        let commits = self.rollouts.ledger.latest().into_iter().flat_map(|ledger| &ledger.commits);
        let commits = commits.filter(|commit| commit.inventory_id == *inventory_id);
        let mut all: Vec<_> =
            commits.map(|commit| (commit.revision.clone(), commit.authored.clone())).collect();
        for (revision, authored) in &source.authors {
            if !all.iter().any(|(known, _)| known == revision) {
                all.push((revision.clone(), authored.clone()));
            }
        }
        all.reverse();
        all
    }

    /// Forgets the authors that the ledger has by now.
    pub(in crate::engine) fn forget_authors(&mut self) {
        let Some(ledger) = self.rollouts.ledger.latest() else { return };
        for SourceState { authors, declared, .. } in self.sources.states_mut() {
            authors.retain(|(revision, _)| ledger.author(&declared.inventory_id, revision).is_none());
        }
    }
}

impl RolloutLedger {
    /// Returns who made a revision of an inventory, if that is remembered.
    pub(crate) fn author(&self, inventory_id: &str, revision: &Revision) -> Option<&Authorship> {
        let is_it = |commit: &&AuthoredRevision| {
            *commit.inventory_id == *inventory_id && commit.revision == *revision
        };
        self.commits.iter().find(is_it).map(|commit| &commit.authored)
    }

    /// Does the same for a revision that another source may have brought: one commit has the same
    /// author in each.
    pub(crate) fn any_author(&self, inventory_id: &str, revision: &Revision) -> Option<&Authorship> {
        let of_others = || self.commits.iter().find(|commit| commit.revision == *revision);
        self.author(inventory_id, revision).or_else(|| of_others().map(|commit| &commit.authored))
    }

    fn remember_commit(&mut self, commit: AuthoredRevision) {
        if self.author(&commit.inventory_id, &commit.revision).is_none() {
            self.commits.push(commit);
            let surplus = self.commits.len().saturating_sub(MAX_REMEMBERED_AUTHORS);
            self.commits.drain(..surplus);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::facts::authors::MAX_AUTHOR_CHARS;

    // People may write the rollout ledger.
    #[test]
    fn what_is_read_is_no_longer_than_what_is_written() {
        let text = serde_json::json!({
            "source": "a-v1", "revision": "1", "author": "x".repeat(5000), "subject": "y".repeat(5000),
        });
        let commit = serde_json::from_value::<AuthoredRevisionText>(text).unwrap().read();
        assert_eq!(
            (commit.authored.author.len(), commit.authored.subject.len()),
            (MAX_AUTHOR_CHARS, MAX_AUTHOR_CHARS)
        );
    }

    #[test]
    fn the_newest_revisions_are_remembered() {
        let commit = |number: usize| AuthoredRevision {
            inventory_id: "a-v1".into(),
            revision: Revision::new(&number.to_string()),
            authored: Authorship::of("Ann", &"x".repeat(number)),
        };
        let mut ledger = RolloutLedger::default();
        for number in [0, 1, 1].into_iter().chain(2..=MAX_REMEMBERED_AUTHORS) {
            ledger.remember_commit(commit(number));
        }
        assert_eq!(ledger.commits, (1..=MAX_REMEMBERED_AUTHORS).map(commit).collect::<Vec<_>>());
        let author =
            |inventory_id, number: usize| ledger.author(inventory_id, &Revision::new(&number.to_string()));
        assert_eq!(author("a-v1", 1), Some(&Authorship::of("Ann", "x")));
        assert_eq!((author("a-v1", 0), author("b-v1", 1)), (None, None));
        assert_eq!(Authorship::of("Ann", &"x".repeat(2 * MAX_AUTHOR_CHARS)).subject.len(), MAX_AUTHOR_CHARS);
    }
}
