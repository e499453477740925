//! Entries and every decision.
//!
//! A git commit is not a transaction over the cluster: each object advances by itself and is always
//! defended. Of each object the engine keeps an [`ObjectEntry`] of facts: the wanted content, the
//! accepted content that must be shown *now*, the live view, the server's refusal. *Releasing* is
//! accepted := wanted; everything else follows from when that is allowed.
//!
//! Owns all transitions ([`Engine`]), the decision about one object ([`decide()`]), the rollout
//! budget ([`release`]), the prune guard ([`judge`]) and the effective content
//! ([`effective_content()`]).
//!
//! **Invariant:** pure and synchronous. Time is an argument; nothing here can reach a cluster, a
//! file or a clock. Every write to the cluster is decided here and nowhere else.

mod decide;
mod deletion;
mod facts;
mod lease_shares;
mod orders;
mod plan;
mod restart;
mod rollout;
mod state;

pub use crate::object::PART_OF;
pub use decide::action::{
    Action, ApplyPurpose, ApplyRequest, Decision, DeletionReason, Precondition, RestartRisk,
};
pub use decide::competing_sources::PriorSource;
pub use decide::cycles::find_self_waits;
pub use decide::decide::{WRITE_ECHO_TIMEOUT, decide};
pub use decide::input::{DecisionInput, Observation, ReplicaOwner};
pub use decide::outcome::{ActionResult, WriteFailure, WriteResult, with_replace_hint};
pub use decide::reason::Reason;
pub use decide::repair::{FIGHT_PAUSE, FIGHT_WINDOW, REPAIRS_PER_FIGHT};
pub use deletion::handover::{InventoryHolder, WithheldDeletion};
pub use deletion::peer_sources::{
    ContentClaims, MAX_CLAIMED_OBJECTS, PRUNE_DELAY, PeerSource, RepositoryIdentity, SourceProgress,
    SourceStatement, mark,
};
pub use deletion::prune_guard::{
    KeepPolicy, PruneCandidate, PruneDecision, PruneGuard, data_loss_reason, judge,
};
pub use deletion::unlisted_kinds::GROUP_DOWN;
pub use facts::allow_list::{AllowList, AllowViolation, ClusterScoped, KindPattern, ParseKindPatternError};
pub use facts::annotation_words::check_annotations;
pub use facts::authors::{AuthoredRevision, Authorship};
pub use facts::catalog::{Catalog, FileCompleteness, FileFacts, UnusableObject, WantedObject};
pub use facts::desired::{
    BodyLocation, ConfigRole, DesiredObject, ObjectLifetime, ObjectTraits, RecreatePolicy, SharedDesired,
    has_replica_count, is_workload, recreate_policy,
};
pub use facts::effective_content::{ApplyVariant, ReplicaMode, effective_content, stamp_release};
pub use facts::entry::{
    AcceptedContent, ApiRefusal, FieldCoverage, LiveLookup, ObjectEntry, RefusalRule, RepairImpact, SourceId,
    VerifiedCoverage, WaitTopic,
};
pub use facts::hash_seal::{HashSeals, SealStatus};
pub use facts::ignore_fields::{
    IgnoredFields, ReconcilePolicy, ResolvedIgnores, VersionBinding, remove_ignored, resolve_ignores,
    tool_requests,
};
pub use facts::label_selector::LabelSelector;
pub use facts::live_object::{
    FieldManager, LiveObject, ObjectOwner, Release, ResourceVersion, RolloutNumbers, RolloutPhase, Uid,
};
pub use facts::nodes::{NodeChange, NodeFacts};
pub use facts::object_counts::ObjectCounts;
pub use facts::record_size::MAX_RECORD_BYTES;
pub use facts::release_seal::{ReleaseClaim, ReleaseKey, ReleaseSeal};
pub use facts::source_policy::{
    AdoptPolicy, BlastRadius, OptOutPolicy, ParseBlastRadiusError, PrunePolicy, SourceLifecycle,
};
pub use facts::sources::{Inventory, SourceReading, SourceState, SourceWrites};
pub use facts::tool_vocabulary::{MetadataMap, TOOL_WORDS as PEER_WORDS, ToolRequests, WordEffect};
pub use facts::update_strategy::UpdateStrategy;
pub use facts::watchers::{OWN_WATCHER, WatchScope, WatcherId};
pub use lease_shares::{LEASE_DURATION, LEASE_LIST_INTERVAL, LeaseMark, LeaseMoves, LeaseShares, WRITE_TERM};
pub use orders::intents::{Acknowledgement, HoldIntent, ObjectIntents, PauseIntent};
pub use orders::order::{
    IS_SERVED, MAX_CONFIRMED_PER_ORDER, Order, OrderList, OrderVerb, confirmation_text, order_text,
    parse_orders,
};
pub use orders::pauses::{MAX_STATES, pause_reason};
pub use orders::undo::{PastRevision, UndoRequest};
pub use plan::{Plan, PlannedAction, PlannedObject, PlannedUnit, units};
pub use restart::config_hash::{ConfigData, HashKey, config_hash, has_restart_on_change, with_config_hash};
pub use restart::config_restart::{KEY_SECRET, ReadState, changed_words};
pub use restart::config_stamp::{ConfigStamp, ParseConfigStampError, PinnedConfig};
pub use rollout::budget::{
    Budget, BudgetBound, BudgetScope, BudgetShortage, Narrowing, OnFailure, ParsePodAmountError, PodAmount,
    ReleasePriority, ReleaseRequest, TokenState, WorkloadLoad, release,
};
pub use rollout::budget_tally::BudgetTally;
pub use rollout::budget_usage::BudgetUsage;
pub use rollout::daemon_set_steps::{EvictionOutcome, PodToEvict, TOKEN_RETURN_DELAY};
pub use rollout::dry_run_impact::DryRunImpact;
pub use rollout::foreign_claims::ABANDONED_CLAIM_AGE;
pub use rollout::ledger::{
    ConfigRestart, LastGood, ParseLedgerError, RolloutClaim, RolloutLedger, Unit, UnitMember,
    UnreadableClaim, object_word, parse_object_word,
};
pub use rollout::ledger_recovery::NEW_LEDGER_DELAY;
pub use rollout::overlay::{HELD_MIN_READY_SECONDS, Overlay, ParseOverlayError, apply_overlay};
pub use rollout::pod_eviction::{
    NodeCounts, NodePod, NodeState, NodeStep, OrdinalPod, PodAvailability, StatefulSetState, TemplateVersion,
    count_nodes, find_stuck_pod, select_evictions,
};
pub use rollout::pods::{
    ContainerTrouble, FailedPod, MAX_CONTAINER_RESTARTS, PodCreationFailure, PodFacts, Readiness,
    ReplicaSetFacts, RolloutFailure, TRANSIENT_REASON_GRACE, UNSCHEDULABLE_GRACE, UnschedulablePod,
    WorkloadPods, find_failure, grace_period, next_failure_check,
};
pub use rollout::queue::{MAX_PUBLISHED_OBJECTS, PUBLICATION_INTERVAL, QueuePublication, QueuedObject};
pub use rollout::rollback::rejection::{
    Rejection, RejectionAction, RollbackContent, RollbackTarget, parse_rejections, rejections_seal_status,
    rejections_text, unreadable_rejections,
};
pub use rollout::rollout_events::{RolloutEvent, RolloutProgress};
pub use rollout::scale_balance::{ScaleBalance, ScalePurpose, ScaleRequest, ScaleResult, StepShare, balance};
pub use rollout::start_rate::RolloutStart;
pub use rollout::steps::{
    OverlayState, PromotionMode, PromotionRequest, StepDecision, StepProgress, StepRequirement, StepSize,
    StepWait, Steps, SurplusPods, check_steps, next,
};
pub use rollout::stuck_stateful_set::StuckPod;
pub use state::{Engine, KindAvailability, KindState};

#[cfg(test)]
mod tests;
