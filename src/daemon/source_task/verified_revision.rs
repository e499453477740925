//! The reports between a source with signed commits and the record of its accepted revision.

use super::super::loop_event::LoopEvent;
use super::cluster_fact_reader::RevisionAccess;
use super::{OperationQueue, SourceTask, older_revision};
use crate::engine::{OlderRevision, UndoRequest};
use crate::source::{RevisionReader, VerificationRecord};

/// The lookups that run beside the other operations of the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConcurrentLookups {
    /// All of them.
    All,
    /// Lookups that need no signature to be verified.
    UnsignedOnly,
}

impl OperationQueue {
    /// Returns whether the read of an undo target has to wait for its turn.
    pub(super) fn is_waiting_for_signatures(&self) -> bool {
        self.concurrent == ConcurrentLookups::UnsignedOnly
    }
}

impl SourceTask {
    /// Takes over the recorded revisions. The first observation of signed commits waits for that,
    /// and another one follows when a person has confirmed something. So does what an earlier
    /// process left, where the first observation has failed.
    pub(super) async fn record_verification(
        &mut self,
        verification_record: VerificationRecord,
    ) -> Vec<LoopEvent> {
        let is_first = self.first_record.is_none();
        self.first_record.get_or_insert_with(|| verification_record.clone());
        if self.source.record_verification(verification_record) {
            self.check_source().await
        } else if is_first {
            self.read_remembered_late().await
        } else {
            Vec::new()
        }
    }

    /// Returns the newly accepted revision, to be recorded.
    pub(super) fn take_accepted(&mut self) -> Option<LoopEvent> {
        let accepted = self
            .source
            .accepted_revision()
            .filter(|accepted| self.accepted_revision.as_ref() != Some(accepted))?
            .clone();
        self.accepted_revision = Some(accepted.clone());
        Some(LoopEvent::RevisionAccepted(self.settings.source, accepted))
    }

    /// Looks up the target of an undo, with whatever has to be copied or rendered for that. A
    /// revision that was never in force here was never accepted, and must be signed itself.
    pub(super) async fn read_undo_target(&mut self, undo: UndoRequest) -> LoopEvent {
        let history = self.source.fetch_history().await;
        let past = self.past_revision(undo.clone()).await.map_err(|why| match history {
            Ok(()) => why,
            Err(error) => format!("{why}; the history cannot be read: {error}"),
        });
        LoopEvent::UndoTargetRead(Box::new(undo), past)
    }

    async fn past_revision(&mut self, undo: UndoRequest) -> Result<OlderRevision, String> {
        let (in_force, wanted) = (undo.in_force.clone(), undo.clone());
        let find = move |reader: &RevisionReader| Ok(older_revision::undo_target_revision(reader, &wanted));
        if let Ok(Ok(target)) = self.source.read_bounded(find).await {
            let access =
                if self.source.is_on_host() { RevisionAccess::Fetched } else { RevisionAccess::Stored };
            let prepared = self.cluster_facts.prepare_revision(&mut self.source, &target, access).await;
            prepared.map_err(|error| error.to_string())?;
        }
        let past = self.content_reader().past_revision(undo, self.head_revision()).await?;
        if !in_force.contains(&past.revision) {
            self.source.verify_signature(&past.revision).await.map_err(|error| error.to_string())?;
        }
        Ok(past)
    }
}
