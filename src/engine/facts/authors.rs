//! The authors of revisions, as sources are read.
//!
//! **Invariant:** authors change nothing but words.

use serde::{Deserialize, Serialize};

use crate::object::Revision;

/// The number of revisions remembered, of all sources together: some 10 KB, and more than a
/// Deployment keeps of its own.
pub(in crate::engine) const MAX_REMEMBERED_AUTHORS: usize = 50;

/// The number of characters kept of a name and of a subject: no author of commits can fill the
/// ledger.
pub(in crate::engine) const MAX_AUTHOR_CHARS: usize = 100;

/// The author of a revision, and its subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Authorship {
    /// The author's name.
    pub author: String,
    /// The first line of the message.
    pub subject: String,
}

impl Authorship {
    /// Returns the kept part of a name and of a message's first line.
    pub(crate) fn of(author: &str, subject: &str) -> Self {
        let shortened = |text: &str| text.chars().take(MAX_AUTHOR_CHARS).collect();
        Self { author: shortened(author), subject: shortened(subject) }
    }
}

/// Adds a revision to those that were not reported yet.
pub(in crate::engine) fn note(
    known: &mut Vec<(Revision, Authorship)>,
    revision: &Revision,
    authored: Authorship,
) {
    known.push((revision.clone(), authored));
    let surplus = known.len().saturating_sub(MAX_REMEMBERED_AUTHORS);
    known.drain(..surplus);
}
