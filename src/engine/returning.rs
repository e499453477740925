//! Ways back begin only when all that goes back together has been read.
//!
//! What failed may have been any of a unit's contents, and what was good was good together. So where one of them
//! cannot be had any more, the others do not go back without it: all stay as they are, until a person decides.

use super::budget::Token;
use super::entry::SourceId;
use super::rejection::{Rejection, Substitute, Way};
use super::state::Engine;
use super::{Release, Shared};
use crate::object::ObjectId;

/// What is known about the contents of one way back.
enum Known {
    /// Not enough.
    Little,
    /// All that is needed.
    All,
    /// That this one cannot be had.
    Lost(ObjectId, Release),
}

impl Engine {
    /// The content that an object goes back to was read, or cannot be.
    pub(super) fn resolved_instead(&mut self, id: &ObjectId, release: &Release, content: Option<&Shared>) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        let Some(instead) =
            entry.instead.as_mut().filter(|i| i.content == Substitute::Named(release.clone()))
        else {
            return;
        };
        let read = match content.filter(|desired| desired.is_release(release.hash)) {
            Some(desired) => Substitute::Known(desired.clone(), release.clone()),
            None => Substitute::Lost(release.clone()),
        };
        instead.content = Substitute::Later(Box::new(read));
        if let Some(source) = self.returns_in(id) {
            self.instead_changed(source, id);
        }
    }

    /// The source whose parent says that something else stands in for what it wants of an object.
    pub fn returns_in(&self, id: &ObjectId) -> Option<SourceId> {
        self.sources.iter().position(|source| source.instead.contains(id))
    }

    /// Begins the ways back of which all is known, and gives up those that lack something.
    pub(super) fn begin_returns(&mut self) {
        if self.returning.is_empty() {
            return;
        }
        for source in 0..self.sources.len() {
            let inventory = self.sources[source].inventory.iter();
            let returning = |one: &&Rejection| {
                one.way == Way::Back && one.unit.members.keys().any(|id| self.returning.contains(id))
            };
            let found: Vec<Rejection> =
                inventory.flat_map(|inventory| &inventory.rejections).filter(returning).cloned().collect();
            for rejection in found {
                match self.known_of(&rejection) {
                    Known::Little => {}
                    Known::All => self.begin_return(source, &rejection),
                    Known::Lost(id, release) => self.give_up(source, rejection, &id, &release),
                }
            }
        }
    }

    fn known_of(&self, rejection: &Rejection) -> Known {
        let substitute = |id: &ObjectId| Some(&self.entry(id)?.instead.as_ref()?.content);
        let members = rejection.unit.members.keys();
        let mut lost = None;
        for (id, substitute) in members.filter_map(|id| Some((id, substitute(id)?))) {
            match substitute {
                Substitute::Named(_) => return Known::Little,
                Substitute::Later(later) => {
                    let Substitute::Lost(release) = &**later else { continue };
                    if !self.is_synced(&id.group_kind()) {
                        return Known::Little;
                    }
                    let shown = self.shown(id).and_then(|live| live.release.as_ref());
                    // What never left it, or is back already, need not be read.
                    if shown.is_none_or(|shown| shown.hash != release.hash) {
                        lost.get_or_insert_with(|| (id.clone(), release.clone()));
                    }
                }
                _ => {}
            }
        }
        lost.map_or(Known::All, |(id, release)| Known::Lost(id, release))
    }

    fn begin_return(&mut self, source: SourceId, rejection: &Rejection) {
        for id in rejection.unit.members.keys() {
            let Some(instead) = self.entries.get_mut(id).and_then(|entry| entry.instead.as_mut()) else {
                continue;
            };
            if let Substitute::Later(later) = &instead.content {
                instead.content = (**later).clone();
                self.instead_changed(source, id);
            }
        }
    }

    /// All of the unit stays as it is once the parent says so, and keeps nobody else from going on.
    fn give_up(&mut self, source: SourceId, rejection: Rejection, lost: &ObjectId, release: &Release) {
        let revision = release.revision.short();
        let cause = format!(
            "{}; it cannot go back, as revision {revision} of {lost} cannot be read any more",
            rejection.cause
        );
        let held = Rejection { way: Way::Held, cause: cause.into(), ..rejection };
        for id in held.unit.members.keys() {
            if let Some(roll) = self.rollouts.rolls.get_mut(id).filter(|roll| roll.failed.is_some())
                && roll.token == Token::Held
            {
                (roll.token, roll.reserved) = (Token::None, 0);
                self.rollouts.stale = true;
            }
        }
        let rejecting = &mut self.sources[source].rejecting;
        if rejecting.contains(&held) {
            return;
        }
        rejecting.retain(|other| other.unit.members.keys().all(|id| !held.unit.members.contains_key(id)));
        rejecting.push(held);
    }
}
