//! A source that a person has deleted, with all that it has: it wants nothing, and nothing is asked of where it was.
//!
//! What its objects were made from is read as far as this host still has it, as that tells in which order they go.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::mpsc;

use super::super::event::Event;
use super::missing::{Lookup, Wanted};
use super::{Feed, Order, SLACK};
use crate::engine::{Reading, Release};
use crate::object::Revision;

/// What stands for the revision of a source that wants nothing any more.
const DELETED: &str = "deleted";

/// How often it shows that it lives.
const REST: Duration = Duration::from_secs(30);

impl Feed {
    /// As [`Feed::run`], where nothing is wanted any more.
    pub(in crate::daemon) async fn end(self, mut orders: mpsc::Receiver<Order>) {
        let number = self.dialect.source;
        let reading = Reading { revision: Some(Revision::new(DELETED)), ..Reading::default() };
        let mut told = Some(Event::Read(number, reading, BTreeSet::new()));
        loop {
            self.pulse.beat(REST + SLACK);
            if let Some(event) = told.take()
                && self.events.send(event).await.is_err()
            {
                return;
            }
            let order = tokio::select! {
                order = orders.recv() => order,
                () = tokio::time::sleep(REST) => continue,
            };
            let Some(order) = order else { return };
            told = match order {
                Order::Look(reading) => Some(Event::Checked(number, reading)),
                Order::LookBack(undo) => Some(self.shelf().look_back(undo, self.head()).await),
                Order::Resolve(revision, contents) => {
                    let found = self.shelf().resolve(revision, contents).await;
                    Some(match found {
                        Lookup::Done(event) => *event,
                        Lookup::Missing(Wanted { revision, contents }) => {
                            let release = |hash| Release { hash, revision: revision.clone() };
                            let none = contents.into_iter().map(|(id, hash)| (id, release(hash), None));
                            Event::Resolved(none.collect())
                        }
                    })
                }
                Order::Scopes(_) | Order::Anchor(_) | Order::Hint | Order::Pin(_) => None,
            };
        }
    }
}
