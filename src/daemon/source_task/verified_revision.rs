//! The reports between a source with signed commits and the record of its accepted revision.

use super::super::loop_event::LoopEvent;
use super::fact_reader::RevisionAccess;
use super::{ContentReader, SourceFeed, TaskQueue, past_contents};
use crate::engine::UndoRequest;
use crate::source::{RevisionReader, VerificationAnchor};

/// The look-ups that run beside the feed's other tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConcurrentLookups {
    /// All of them.
    All,
    /// Lookups that need no signature to be verified.
    Accepted,
}

impl TaskQueue {
    /// Says whether the read of an undo target has to wait for its turn.
    pub(super) fn is_waiting_for_signatures(&self) -> bool {
        self.beside == ConcurrentLookups::Accepted
    }
}

impl SourceFeed {
    /// Takes what is recorded of what was accepted. The first look waits for that, and one is worth
    /// its while when a person has confirmed something.
    pub(super) async fn set_anchor(&mut self, anchor: VerificationAnchor) -> Vec<LoopEvent> {
        if self.source.set_anchor(anchor) { self.check_source().await } else { Vec::new() }
    }

    /// Returns the newly accepted revision, to be recorded.
    pub(super) fn take_accepted(&mut self) -> Option<LoopEvent> {
        let accepted = self
            .source
            .accepted_revision()
            .filter(|accepted| self.accepted.as_ref() != Some(accepted))?
            .clone();
        self.accepted = Some(accepted.clone());
        Some(LoopEvent::Accepted(self.settings.source, accepted))
    }

    /// Looks up the target of a rollback. A revision that was never in force here was never
    /// accepted, and must be signed itself.
    pub(super) async fn read_undo_target(&mut self, undo: UndoRequest) -> LoopEvent {
        let (token, in_force) = (undo.token.clone(), undo.in_force.clone());
        let wanted = undo.clone();
        let find = move |reader: &RevisionReader| Ok(past_contents::undo_target_revision(reader, &wanted));
        let target = self.source.read_bounded(find).await;
        if let Ok(Ok(target)) = target
            && let Err(error) =
                self.facts.prepare_revision(&mut self.source, &target, RevisionAccess::Stored).await
        {
            return LoopEvent::UndoTargetRead(token, Err(error.to_string()));
        }
        let (ContentReader { settings, scopes, .. }, head) = (self.content_reader(), self.head_revision());
        let read = move |reader: &RevisionReader| {
            Ok(past_contents::read_undo_target(reader, &settings, scopes, &undo, head.as_ref()))
        };
        let past = match self.source.read_bounded(read).await {
            Ok(past) => past,
            Err(error) => Err(error.to_string()),
        };
        let event = LoopEvent::UndoTargetRead(token.clone(), past);
        let LoopEvent::UndoTargetRead(_, Ok(past)) = &event else { return event };
        if in_force.contains(&past.revision) {
            return event;
        }
        match self.source.verify(&past.revision).await {
            Ok(()) => event,
            Err(error) => LoopEvent::UndoTargetRead(token, Err(error.to_string())),
        }
    }
}
