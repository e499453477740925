//! Older revisions that are not here: brought from where the source is, once that can be read.
//!
//! What cannot be read now is not lost: a new state directory holds nothing but the newest revision of a remote, and
//! a repository may be away for a time. Only what the source itself no longer has is told to be gone.

use super::super::act::blocking;
use super::super::event::Event;
use super::{Feed, Shelf, past};
use crate::engine::Release;
use crate::object::{Class, Hash, ObjectId, Revision};
use crate::source::Error;

/// Contents of one revision.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) revision: Revision,
    pub(super) contents: Vec<(ObjectId, Hash)>,
}

/// What is wanted of revisions that are not here.
pub(super) type Missing = Vec<Wanted>;

/// What came of a look-up.
pub(super) enum Lookup {
    /// An answer.
    Done(Box<Event>),
    /// The revision cannot be read here and now.
    Missing(Wanted),
}

impl Shelf {
    pub(super) async fn resolve(self, revision: Revision, contents: Vec<(ObjectId, Hash)>) -> Lookup {
        let wanted = Wanted { revision, contents };
        let (wanted, found) = self.look_up(wanted).await;
        found.map_or(Lookup::Missing(wanted), |found| Lookup::Done(Box::new(Event::Resolved(found))))
    }

    async fn look_up(self, wanted: Wanted) -> (Wanted, Result<past::Resolved, Error>) {
        let Self { reader, dialect, scopes } = self;
        blocking(move || {
            let found = past::resolve(&reader, &dialect, scopes, &wanted.revision, &wanted.contents);
            (wanted, found)
        })
        .await
    }
}

impl Feed {
    /// Looks up again what was missing, with whatever has to be fetched for that; nothing while the source itself
    /// cannot be read.
    pub(super) async fn bring_missing(&mut self) -> Vec<Event> {
        if self.told.is_none() || self.trouble.is_some() {
            return Vec::new();
        }
        let mut told = Vec::new();
        for wanted in std::mem::take(&mut self.missing) {
            self.pulse.beat(super::DEED);
            if let Err(error) = self.source.bring(&wanted.revision).await
                && error.class() == Class::Transient
            {
                tracing::debug!(source = self.source.name(), %error, "an older revision cannot be had now");
                self.missing.push(wanted);
                continue;
            }
            let (wanted, found) = self.shelf().look_up(wanted).await;
            let revision = wanted.revision;
            told.push(Event::Resolved(found.unwrap_or_else(|error| {
                tracing::warn!(%revision, "an older revision cannot be read: {error}");
                let none = |(id, hash)| (id, Release { hash, revision: revision.clone() }, None);
                wanted.contents.into_iter().map(none).collect()
            })));
        }
        told
    }
}
