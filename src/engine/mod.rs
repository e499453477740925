//! Entries and every decision.
//!
//! A git commit is not a transaction over the cluster: each object advances by itself and is always
//! defended. Of each object the engine keeps an [`ObjectEntry`] of facts: the wanted content, the
//! accepted content that must be shown *now*, the live view, the server's refusal. *Releasing* is
//! accepted := wanted; everything else follows from when that is allowed.
//!
//! Owns all transitions ([`Engine`]), the decision about one object ([`decide()`]), the rollout
//! budget ([`release`]), the prune guard ([`judge`]) and the effective content ([`effective()`]).
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
pub use decide::cycles::waiting_for_themselves;
pub use decide::decide::{ECHO, decide};
pub use decide::input::{DecisionInput, Observation, ReplicaOwner};
pub use decide::outcome::{ActionResult, WriteFailure, WriteResult, replaceable};
pub use decide::reason::Reason;
pub use decide::repair::{FIGHT, FIGHT_PAUSE, FIGHT_WINDOW};
pub use deletion::handover::{InventoryHolder, WithheldDeletion};
pub use deletion::peer_sources::{
    ContentClaims, NAMED, PRUNE_DELAY, PeerSource, RepositoryIdentity, SourceProgress, SourceStatement, mark,
};
pub use deletion::prune_guard::{KeepPolicy, PruneCandidate, PruneDecision, PruneGuard, judge, precious};
pub use deletion::unlisted_kinds::GROUP_DOWN;
pub use facts::allow_list::{AllowList, AllowViolation, ClusterScoped, KindPattern, ParseKindPatternError};
pub use facts::annotation_words::misused;
pub use facts::authors::{AuthoredRevision, Authorship};
pub use facts::catalog::{Catalog, FileCompleteness, FileFacts, UnusableObject, WantedObject};
pub use facts::desired::{
    BodyLocation, ConfigRole, DesiredObject, ObjectLifetime, ObjectTraits, RecreatePolicy, SharedDesired,
    is_workload, recreates, sets_count,
};
pub use facts::effective_content::{ApplyVariant, ReplicaMode, effective, stamped};
pub use facts::entry::{
    AcceptedContent, ApiRefusal, FieldCoverage, LiveLookup, ObjectEntry, RefusalRule, RepairImpact, SourceId,
    VerifiedCoverage, WaitTopic,
};
pub use facts::hash_seal::{HashSeals, SealStatus};
pub use facts::ignore_fields::{
    IgnoredFields, ReconcilePolicy, ResolvedIgnores, VersionBinding, left_to_others, tool_requests,
    without_ignored,
};
pub use facts::label_selector::LabelSelector;
pub use facts::live_object::{
    FieldManager, LiveObject, ObjectOwner, Release, ResourceVersion, RolloutNumbers, RolloutPhase, Uid,
};
pub use facts::nodes::{NodeChange, NodeFacts};
pub use facts::object_counts::ObjectCounts;
pub use facts::record_size::FULL;
pub use facts::release_seal::{ReleaseClaim, ReleaseKey, ReleaseSeal};
pub use facts::source_policy::{
    AdoptPolicy, BlastRadius, OptOutPolicy, ParseBlastRadiusError, PrunePolicy, SourceLifecycle,
};
pub use facts::sources::{Inventory, SourceReading, SourceState, SourceWrites};
pub use facts::tool_vocabulary::{MetadataMap, ToolRequests, WORDS as PEER_WORDS, WordEffect};
pub use facts::update_strategy::UpdateStrategy;
pub use facts::watchers::{OWN, WatchScope, WatcherId};
pub use lease_shares::{BEAT, LASTS, LeaseMark, LeaseMoves, LeaseShares, TERM};
pub use orders::intents::{Acknowledgement, HoldIntent, ObjectIntents, PauseIntent};
pub use orders::order::{
    IS_SERVED, MOST_CONFIRMED, Order, OrderList, OrderVerb, confirmation_text, order_text, parse_orders,
};
pub use orders::pauses::{MOST_STATES, pause_reason};
pub use orders::undo::{PastRevision, UndoRequest};
pub use plan::{Plan, PlannedAction, PlannedObject, PlannedUnit, units};
pub use restart::config_hash::{ConfigData, HashKey, config_hash, restarts_on_change, with_config_hash};
pub use restart::config_restart::{KEY_SECRET, ReadState, changed_words};
pub use restart::config_stamp::{ConfigStamp, ParseConfigStampError, PinnedConfig};
pub use rollout::budget::{
    Budget, BudgetBound, BudgetScope, BudgetShortage, Narrowing, OnFailure, ParsePodAmountError, PodAmount,
    ReleasePriority, ReleaseRequest, TokenState, WorkloadLoad, release,
};
pub use rollout::budget_tally::BudgetTally;
pub use rollout::budget_usage::BudgetUsage;
pub use rollout::daemon_set_steps::{EvictionOutcome, PodToEvict, REFUSED};
pub use rollout::dry_run_impact::DryRunImpact;
pub use rollout::foreign_claims::SPENT;
pub use rollout::ledger::{
    ConfigRestart, LastGood, ParseLedgerError, RolloutClaim, RolloutLedger, Unit, UnitMember,
    UnreadableClaim, object_word, parse_object_word,
};
pub use rollout::ledger_recovery::SETTLES;
pub use rollout::overlay::{HELD, Overlay, ParseOverlayError, overlaid};
pub use rollout::pod_eviction::{
    NodeCounts, NodePod, NodeState, NodeStep, OrdinalPod, PodAvailability, StatefulSetState, TemplateVersion,
    evictions, node_counts, stuck,
};
pub use rollout::pods::{
    ContainerTrouble, FailedPod, PASSING, PodCreationFailure, PodFacts, RESTARTS, Readiness, ReplicaSetFacts,
    RolloutFailure, UNSCHEDULABLE, UnschedulablePod, WorkloadPods, failing, grace_period, ripens,
};
pub use rollout::queue::{EVERY, QueuePublication, QueuedObject, TOLD};
pub use rollout::rollback::rejection::{
    Rejection, RejectionAction, RollbackContent, RollbackTarget, parse_rejections, rejections_sealing,
    rejections_text, unreadable_rejections,
};
pub use rollout::rollout_events::{RolloutEvent, RolloutProgress};
pub use rollout::scale_balance::{ScaleBalance, ScalePurpose, ScaleRequest, ScaleResult, StepShare, balance};
pub use rollout::start_rate::RolloutStart;
pub use rollout::steps::{
    OverlayState, PromotionMode, PromotionRequest, StepDecision, StepProgress, StepRequirement, StepSize,
    StepWait, Steps, SurplusPods, misused_steps, next,
};
pub use rollout::stuck_stateful_set::StuckPod;
pub use state::{Engine, KindAvailability, KindState};

#[cfg(test)]
mod tests;
