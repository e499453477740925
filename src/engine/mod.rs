//! Entries and every decision.
//!
//! A git commit is not a transaction over the cluster: each object advances by itself and is always
//! defended. Of each object the engine keeps an [`ObjectEntry`] of facts: its target, the accepted
//! content that must be shown *now*, the server's refusal. The target is the desired content, or in
//! a rollback an older one. The informers' views are beside the entries. *Releasing* is to write
//! the target, which is accepted once that is done. Everything else follows from when it is
//! allowed.
//!
//! Facts come in by [`Engine::handle`], effects go out by [`Engine::poll`] and [`Engine::decide`],
//! and [`Engine::view`] answers questions. [`process_object`] drives each decision to its
//! [`DecisionExecutor`].
//!
//! Owns all transitions ([`Engine`]), the decision about one object
//! ([`decide_from_facts`](decide::decide::decide_from_facts)), the rollout budget
//! ([`grant_slots`](rollout::budget::grant_slots)), the prune guard
//! ([`decide_prunes`](deletion::prune_guard::decide_prunes)) and the effective content
//! ([`effective_content()`]).
//!
//! **Invariant:** pure and synchronous. Time is an argument; nothing here can reach a cluster, a
//! file or a clock. Every apply, delete and eviction is decided here and nowhere else.

mod calls;
mod decide;
mod deletion;
mod driver;
mod effect;
mod facts;
mod input;
mod lease_shares;
mod orders;
mod plan;
mod replay;
mod restart;
mod rollout;
mod state;
mod trace;
mod view;

pub use crate::object::PART_OF;
pub(crate) use decide::absent_dependencies::{KnownSources, find_absent_dependencies};
pub(crate) use decide::budget_holding::{BudgetHolding, ClaimHolder, HolderProcess};
pub(crate) use decide::budget_shortage::{BudgetScope, BudgetShortage};
pub(crate) use decide::cycles::find_dependency_cycles;
pub(crate) use decide::decide::WRITE_ECHO_TIMEOUT;
pub use decide::decision::Precondition;
#[cfg(test)]
pub(crate) use decide::decision::RestartRisk;
pub(crate) use decide::decision::{
    Action, ApplyPurpose, ApplyRequest, Decision, DeletionReason, InventoryHolder,
};
pub(crate) use decide::outcome::{ActionResult, WriteFailure, WriteResult, immutability_cause};
pub(crate) use decide::ownership::PriorSource;
pub(crate) use decide::reason::{FightCause, HeldStep, Reason, StepObstacle};
pub(crate) use decide::reason_payload::{
    ActiveHold, CurrentOwner, DependencyState, IncompleteSource, OversizedUnit, PauseSubject,
    RejectedContent, RejectionOutcome, WithheldWrite,
};
#[cfg(test)]
pub(crate) use decide::repair::{FIGHT_PAUSE, MAX_REPAIRS_PER_FIGHT};
pub(crate) use decide::step_wait::{StepRequirement, StepWait, SurplusOutcome, SurplusPods};
pub(crate) use deletion::handover::WithheldDeletion;
pub(crate) use deletion::inventory_note::{
    ForgottenKind, InventoryNote, UnlistedCause, UnlistedReason, UnlistedRemedy, UnwatchedNamespaces,
};
pub(crate) use deletion::kept_text::{kept_text, parse_kept_objects};
pub(crate) use deletion::moved_objects::DroppedObject;
#[cfg(test)]
pub(crate) use deletion::observation_requests::ObservationRequest;
#[cfg(test)]
pub(crate) use deletion::peer_sources::{MAX_REQUESTED_OBJECTS, object_hash};
pub(crate) use deletion::peer_sources::{
    PeerSource, SourceProgress, SourceService, SourceStatement, UnknownStatement,
};
#[cfg(test)]
pub(crate) use deletion::peer_sources::{SourceCompleteness, TakeoverRequests};
pub(crate) use deletion::pending_prune::PendingPrune;
#[cfg(test)]
pub(crate) use deletion::prune_guard::{PruneCandidate, PruneGuard, decide_prunes};
pub(crate) use deletion::unlisted_kinds::unserved_kind_reason;
pub(crate) use driver::{
    Admission, DecisionExecutor, ObjectQuestion, ObjectWrite, WriteMode, process_object,
};
pub(crate) use effect::{ActingEffect, FailedRollout, OrderReach, QueueMode, RolloutReport, WatchState};
pub(crate) use facts::allow_list::{AllowList, AllowViolation, ClusterScopeRule, KindPattern};
pub(crate) use facts::annotation_words::{check_annotations, check_variables};
pub(crate) use facts::authors::Authorship;
pub(crate) use facts::budget::{Budget, BudgetNarrowing, OnFailure, PodAmount};
pub(crate) use facts::causes::lossy_kind::{LossyKind, lossy_kind};
pub(crate) use facts::causes::prune_cause::{
    BlockingRoot, ChangeMilestone, DisallowedObject, PeerInterest, PossibleMove, PruneCause, RootRelation,
    WithheldCause,
};
pub(crate) use facts::causes::reason_code::{CauseCode, ReasonCode};
pub(crate) use facts::causes::refusal_cause::{RecreationBlocker, RefusalCause};
pub(crate) use facts::causes::retry_cause::RetryCause;
pub(crate) use facts::changed_data::ChangedData;
pub use facts::config_hash::ConfigData;
#[cfg(test)]
pub(crate) use facts::config_hash::config_hash;
pub(crate) use facts::config_hash::{
    CONFIG_KEY_SECRET_NAME, HashKey, has_restart_on_change, with_config_hash,
};
pub(crate) use facts::config_stamp::ConfigStamp;
pub(crate) use facts::desired::{
    BodyLocation, DesiredObject, ObjectLifetime, RecreatePolicy, SharedDesiredObject, has_replica_count,
    is_workload, recreate_policy, wave,
};
#[cfg(test)]
pub(crate) use facts::desired::{ConfigRole, ObjectPolicies};
pub(crate) use facts::dry_run_impact::DryRunImpact;
pub(crate) use facts::effective_content::{
    ApplyVariant, ReplicaMode, ReplicaOwner, effective_content, stamp_release,
};
pub(crate) use facts::entry::{
    AcceptedContent, DirectView, FieldOwnership, ObjectEntry, RefusalRule, RepairImpact, SourceId,
    VerifiedOwnership, WaitTopic,
};
#[cfg(test)]
pub(crate) use facts::finished_jobs_text::MAX_FINISHED_BYTES;
pub(crate) use facts::finished_jobs_text::{finished_jobs_text, parse_finished_job, parse_finished_jobs};
pub(crate) use facts::generated_mark::GeneratedMark;
pub(crate) use facts::hash_seal::{HashCipherStatus, HashCiphers};
#[cfg(test)]
pub(crate) use facts::ignore_fields::tool_requests;
pub use facts::ignore_fields::{IgnoredFields, remove_ignored};
pub(crate) use facts::ignore_fields::{ReconcilePolicy, VersionBinding, keep_ignored, resolve_ignores};
pub(crate) use facts::informer_groups::{InformerGroupId, OWN_INFORMER_GROUP, WatchScope};
pub(crate) use facts::kinds::{KindAvailability, KindState};
pub(crate) use facts::label_selector::LabelSelector;
pub(crate) use facts::live_object::{ContentRef, FieldManager, LiveObject, ReplicaStatus};
pub use facts::live_object::{ObjectOwner, ResourceVersion, Uid, WorkloadPhase};
pub(crate) use facts::manifest_fault::{ManifestFault, ManifestOrigins};
pub(crate) use facts::manifest_index::{
    DesiredState, FileCompleteness, FileFacts, MAX_SOURCE_FINDINGS, ManifestIndex, UnusableObject,
};
pub(crate) use facts::moved_objects::MovedObjects;
pub(crate) use facts::object_counts::ObjectCounts;
pub(crate) use facts::overlay::HELD_MIN_READY_SECONDS;
pub use facts::overlay::{RolloutOverlay, RolloutOverlayState, apply_overlay};
pub(crate) use facts::prune_decisions::PruneDecision;
pub(crate) use facts::prune_timing::PruneTiming;
pub(crate) use facts::read_state::ReadState;
pub(crate) use facts::records::intents::{Acknowledgement, HoldIntent, ObjectIntents, PauseIntent};
pub(crate) use facts::records::kept_objects::KeptObjects;
#[cfg(test)]
pub(crate) use facts::records::kept_objects::KeptTiming;
pub(crate) use facts::records::object_word::{object_word, parse_object_word};
pub(crate) use facts::records::rejection::{ObjectRejection, Rejection, RejectionAction, ReplacementContent};
#[cfg(test)]
pub(crate) use facts::records::release_unit::ConfigRestart;
pub(crate) use facts::records::release_unit::{ReleaseUnit, RollbackTarget, UnitMember};
pub(crate) use facts::refused_manifests::RefusedManifest;
pub(crate) use facts::release_annotation::{JobCreator, ReleaseAnnotation, ReleaseKey, ReleaseSeal};
pub(crate) use facts::source_declaration::{
    AcceptanceRecord, PRUNE_DELAY, RepositoryIdentity, SourceDeclaration, SourceWrites,
};
pub(crate) use facts::source_policy::{
    AdoptPolicy, BlastRadius, OptOutPolicy, PrunePolicy, RepositoryExtent, SourceLifecycle,
};
pub(crate) use facts::sources::{FinishedJob, IncompleteCause, Inventory, SourceReading, SourceState};
pub use facts::steps::Steps;
#[cfg(test)]
pub(crate) use facts::steps::check_steps;
pub(crate) use facts::steps::{PromotionMode, StepSize};
pub(crate) use facts::tool_vocabulary::{
    ARGO_HOOK, ARGO_HOOK_DELETE_POLICY, ARGO_HOOK_SKIP, AnnotationEffect, MetadataMap, TOOL_WORDS,
    ToolRequests,
};
pub(crate) use facts::update_strategy::UpdateStrategy;
pub(crate) use facts::volume_claim_retention::VolumeClaimRetention;
pub(crate) use facts::watch_fault::WatchFault;
pub(crate) use input::{Input, PeerRules, ProcessIdentity};
#[cfg(test)]
pub(crate) use lease_shares::LeaseMoves;
pub(crate) use lease_shares::{LEASE_DURATION, LEASE_LIST_INTERVAL, LeaseShares, LeaseSnapshot, WRITE_TERM};
pub(crate) use orders::intent_outcome::IntentOutcome;
pub(crate) use orders::order::{
    MAX_CONFIRMED_PER_ORDER, Order, OrderVerb, SERVING_PROBE_NAME, confirmation_text, order_text,
    parse_orders,
};
pub(crate) use orders::order_outcome::{
    AnsweredOrder, OrderObstacle, OrderOutcome, RejectedUnit, UndoTarget, UndoneUnit,
};
pub(crate) use orders::pauses::MAX_STATES;
pub(crate) use orders::undo::{OlderRevision, UndoRequest};
pub(crate) use plan::{Plan, PlanBasis, PlannedAction, PlannedObject, PlannedUnit, units};
pub(crate) use replay::{Replay, ReplayedCall};
#[cfg(test)]
pub(crate) use rollout::budget::{BudgetBound, SlotPriority, SlotRequest, grant_slots};
pub(crate) use rollout::budget::{BudgetSlot, WorkloadLoad};
#[cfg(test)]
pub(crate) use rollout::budget_tally::BudgetTally;
pub(crate) use rollout::daemon_set_steps::{EvictionOutcome, PodToEvict};
pub(crate) use rollout::events::{RolloutEvent, RolloutEventKind};
pub(crate) use rollout::failure_cause::{RolloutFailureCause, StalledRollout, StalledState, UnreadyPod};
#[cfg(test)]
pub(crate) use rollout::foreign_claims::ABANDONED_CLAIM_AGE;
pub(crate) use rollout::ledger::{RolloutClaim, RolloutLedger};
pub(crate) use rollout::ledger_recovery::NEW_LEDGER_DELAY;
pub(crate) use rollout::ledger_text::ParseLedgerError;
pub(crate) use rollout::nodes::{NodeChange, NodeFacts};
pub use rollout::pod_eviction::{
    NodePod, NodeState, NodeStep, OrdinalPod, PodAvailability, StatefulSetState, TemplateVersion,
    count_nodes, find_stuck_pod, select_evictions,
};
pub(crate) use rollout::pods::{
    ContainerFailure, FailedPod, PodCreationFailure, Readiness, ReplicaSetFacts, UnschedulablePod,
    grace_period, is_pull_failure,
};
pub use rollout::pods::{
    IMAGE_PULL_GRACE, PodFacts, RolloutFailure, UNSCHEDULABLE_GRACE, WorkloadPods, find_failure,
    next_failure_check,
};
#[cfg(test)]
pub(crate) use rollout::pods::{MAX_CONTAINER_RESTARTS, TRANSIENT_REASON_GRACE};
pub(crate) use rollout::queue::{MAX_PUBLISHED_OBJECTS, QueuedObject};
#[cfg(test)]
pub(crate) use rollout::queue::{PUBLICATION_INTERVAL, QueuePublication};
pub(crate) use rollout::record_size::MAX_RECORD_BYTES;
pub(crate) use rollout::rollback::rejection_cause::{
    FailedChange, FailedRelease, RejectionCause, RollbackObstacle,
};
pub(crate) use rollout::rollback::rejection_text::{
    is_readable_rejection, parse_rejections, rejections_seal_status, rejections_text,
};
#[cfg(test)]
pub(crate) use rollout::scale_balance::{ScaleBalance, StepShare, balance};
pub(crate) use rollout::scale_balance::{ScalePurpose, ScaleRequest, ScaleResult};
#[cfg(test)]
pub(crate) use rollout::start_rate::RolloutStart;
pub(crate) use rollout::step_overlay::SteppedWorkload;
pub(crate) use rollout::steps::CurrentStep;
pub use rollout::steps::{PromotionRequest, StepDecision, StepProgress, next};
pub(crate) use rollout::stuck_stateful_set::StuckPod;
pub(crate) use state::Engine;
pub(crate) use trace::{MAX_TRACE_LINE_BYTES, TraceChunk, TraceRecorder};
pub(crate) use view::View;

#[cfg(test)]
pub(crate) mod tests;
