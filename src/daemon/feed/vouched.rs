//! What a source with signed commits is told of what was accepted, and what it tells.

use super::super::event::Event;
use super::{Desk, Feed};
use crate::engine::Undo;
use crate::source::Anchor;

/// Which look-ups are answered beside whatever is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beside {
    /// All of them.
    All,
    /// Those that need no signature to be verified.
    Accepted,
}

impl Desk {
    /// Says whether a look back has to wait for its turn.
    pub(super) fn waits_for_signatures(&self) -> bool {
        self.beside == Beside::Accepted
    }
}

impl Feed {
    /// Takes what is recorded of what was accepted. The first look waits for that, and one is worth its while when a
    /// person has confirmed something.
    pub(super) async fn anchor(&mut self, anchor: Anchor) -> Vec<Event> {
        if self.source.anchor(anchor) { self.look().await } else { Vec::new() }
    }

    /// What was accepted since that was told last, to be recorded.
    pub(super) fn newly_accepted(&mut self) -> Option<Event> {
        let accepted =
            self.source.accepted().filter(|accepted| self.accepted.as_ref() != Some(accepted))?.clone();
        self.accepted = Some(accepted.clone());
        Some(Event::Accepted(self.dialect.source, accepted))
    }

    /// Looks up where a way back leads to. What was never in force here was never accepted, and must be signed itself.
    pub(super) async fn look_back(&mut self, undo: Undo) -> Event {
        let (token, in_force) = (undo.token.clone(), undo.in_force.clone());
        let event = self.shelf().look_back(undo, self.head()).await;
        let Event::LookedBack(_, Ok(past)) = &event else { return event };
        if in_force.contains(&past.revision) {
            return event;
        }
        match self.source.vouch(&past.revision).await {
            Ok(()) => event,
            Err(error) => Event::LookedBack(token, Err(error.to_string())),
        }
    }
}
