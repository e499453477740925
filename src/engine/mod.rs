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

mod action;
mod allow;
mod allowed;
mod anew;
mod asked;
mod authors;
mod budget;
mod carried;
mod carry_out;
mod catalog;
mod claim;
mod config_hash;
mod confirmations;
mod counts;
mod cycles;
mod decide;
mod desired;
mod effective;
mod entry;
mod evict;
mod foresee;
mod free;
mod gate;
mod handover;
mod ignore;
mod ledger;
mod live;
mod loads;
mod lookups;
mod node_steps;
mod nodes;
mod object_counts;
mod opt_outs;
mod order;
mod orders;
mod others;
mod outcome;
mod overlay;
mod pausing;
mod peers;
mod plan;
mod pods;
mod policy;
mod prune;
mod reason;
mod refused;
mod rejection;
mod resolve;
mod restart;
mod retried;
mod returning;
mod rivals;
mod rolls;
mod room;
mod seal;
mod selector;
mod shares;
mod shown;
mod sources;
mod started;
mod starts;
mod state;
mod step_words;
mod stepping;
mod steps;
mod strategy;
mod surplus;
mod switch;
mod tally;
mod tokens;
mod turns;
mod undo;
mod unit;
mod unlisted;
mod unwatched;
mod usage;
mod variables;
mod vocabulary;
mod waiting;
mod watchers;
mod words;

pub use crate::object::PART_OF;
pub use action::{Action, ApplyPurpose, ApplyRequest, Decision, DeletionReason, Precondition, RestartRisk};
pub use allow::{AllowList, AllowViolation, ClusterScoped, KindPattern, ParseKindPatternError};
pub use anew::SETTLES;
pub use asked::{Acknowledgement, HoldIntent, ObjectIntents, PauseIntent};
pub use authors::{AuthoredRevision, Authorship};
pub use budget::{
    Budget, BudgetBound, BudgetScope, BudgetShortage, Narrowing, OnFailure, ParsePodAmountError, PodAmount,
    ReleasePriority, ReleaseRequest, TokenState, WorkloadLoad, release,
};
pub use catalog::{Catalog, FileCompleteness, FileFacts, UnusableObject, WantedObject};
pub use claim::{ReleaseClaim, ReleaseKey, ReleaseSeal};
pub use config_hash::{ConfigData, HashKey, config_hash, restarts_on_change, with_config_hash};
pub use cycles::waiting_for_themselves;
pub use decide::{DecisionInput, ECHO, FIGHT, FIGHT_PAUSE, FIGHT_WINDOW, Observation, ReplicaOwner, decide};
pub use desired::{
    BodyLocation, ConfigRole, DesiredObject, ObjectLifetime, ObjectTraits, RecreatePolicy, SharedDesired,
    is_workload, recreates, sets_count,
};
pub use effective::{ApplyVariant, ReplicaMode, effective, stamped};
pub use entry::{
    AcceptedContent, ApiRefusal, FieldCoverage, LiveLookup, ObjectEntry, RefusalRule, RepairImpact, SourceId,
    VerifiedCoverage, WaitTopic,
};
pub use evict::{EvictionOutcome, PodToEvict, REFUSED};
pub use foresee::DryRunImpact;
pub use free::StuckPod;
pub use handover::{InventoryHolder, WithheldDeletion};
pub use ignore::{
    IgnoredFields, ReconcilePolicy, ResolvedIgnores, VersionBinding, left_to_others, tool_requests,
    without_ignored,
};
pub use ledger::{
    ConfigRestart, LastGood, ParseLedgerError, RolloutClaim, RolloutLedger, Unit, UnitMember,
    UnreadableClaim, object_word, parse_object_word,
};
pub use live::{
    FieldManager, LiveObject, ObjectOwner, Release, ResourceVersion, RolloutNumbers, RolloutPhase, Uid,
};
pub use node_steps::{
    NodeCounts, NodePod, NodeState, NodeStep, OrdinalPod, PodAvailability, StatefulSetState, TemplateVersion,
    evictions, node_counts, stuck,
};
pub use nodes::{NodeChange, NodeFacts};
pub use object_counts::ObjectCounts;
pub use order::{
    IS_SERVED, MOST_CONFIRMED, Order, OrderList, OrderVerb, confirmation_text, order_text, parse_orders,
};
pub use orders::{MOST_STATES, pause_reason};
pub use others::SPENT;
pub use outcome::{ActionResult, WriteFailure, WriteResult, replaceable};
pub use overlay::{HELD, Overlay, ParseOverlayError, overlaid};
pub use peers::{
    ContentClaims, NAMED, PRUNE_DELAY, PeerSource, RepositoryIdentity, SourceProgress, SourceStatement, mark,
};
pub use plan::{Plan, PlannedAction, PlannedObject, PlannedUnit, units};
pub use pods::{
    ContainerTrouble, FailedPod, PASSING, PodCreationFailure, PodFacts, RESTARTS, Readiness, ReplicaSetFacts,
    RolloutFailure, UNSCHEDULABLE, UnschedulablePod, WorkloadPods, failing, grace_period, ripens,
};
pub use policy::{
    AdoptPolicy, BlastRadius, OptOutPolicy, ParseBlastRadiusError, PrunePolicy, SourceLifecycle,
};
pub use prune::{KeepPolicy, PruneCandidate, PruneDecision, PruneGuard, judge, precious};
pub use reason::Reason;
pub use rejection::{
    Rejection, RejectionAction, RollbackContent, RollbackTarget, parse_rejections, rejections_sealing,
    rejections_text, unreadable_rejections,
};
pub use restart::{KEY_SECRET, ReadState, changed_words};
pub use rivals::PriorSource;
pub use room::FULL;
pub use seal::{HashSeals, SealStatus};
pub use selector::LabelSelector;
pub use shares::{BEAT, LASTS, LeaseMark, LeaseMoves, LeaseShares, TERM};
pub use sources::{Inventory, SourceReading, SourceState, SourceWrites};
pub use started::{ConfigStamp, ParseConfigStampError, PinnedConfig};
pub use starts::RolloutStart;
pub use state::{Engine, KindAvailability, KindState};
pub use steps::{
    OverlayState, PromotionMode, PromotionRequest, StepDecision, StepProgress, StepRequirement, StepSize,
    StepWait, Steps, SurplusPods, misused_steps, next,
};
pub use strategy::UpdateStrategy;
pub use surplus::{ScaleBalance, ScalePurpose, ScaleRequest, ScaleResult, StepShare, balance};
pub use tally::BudgetTally;
pub use turns::{RolloutEvent, RolloutProgress};
pub use undo::{PastRevision, UndoRequest};
pub use unlisted::GROUP_DOWN;
pub use usage::BudgetUsage;
pub use vocabulary::{MetadataMap, ToolRequests, WORDS as PEER_WORDS, WordEffect};
pub use waiting::{EVERY, QueuePublication, QueuedObject, TOLD};
pub use watchers::{OWN, WatchScope, WatcherId};
pub use words::misused;

#[cfg(test)]
mod tests;
