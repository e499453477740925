//! Entries and every decision.
//!
//! A git commit is not a transaction over the cluster: each object advances by itself and is always
//! defended. Of each object the engine keeps an [`Entry`] of facts: what the newest revision wants, what
//! was accepted and must be shown *now*, what the cluster shows, what the server refused. *Releasing* is
//! accepted := wanted; everything else follows from when that is allowed.
//!
//! Owns all transitions ([`Engine`]), the decision about one object ([`decide()`]), the rollout budget
//! ([`release`]), the prune guard ([`judge`]) and the effective content ([`effective()`]).
//!
//! **Invariant:** pure and synchronous. Time is an argument; nothing here can reach a cluster, a file or a
//! clock. What is written to the cluster is decided here and nowhere else.

mod action;
mod allow;
mod allowed;
mod anew;
mod asked;
mod authors;
mod book;
mod budget;
mod carried;
mod carry_out;
mod catalog;
mod census;
mod claim;
mod config_hash;
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
mod live;
mod loads;
mod lookups;
mod node_steps;
mod nodes;
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

pub use crate::object::{PART_OF, RELEASE};
pub use action::{Action, Apply, Decision, Guard, Purpose, Removal, Restarts};
pub use allow::{AllowList, ClusterScoped, KindPattern, NotAKind, NotAllowed};
pub use anew::SETTLES;
pub use asked::{Acknowledged, Asked, HOLD, Hold, ORDER, PAUSED, Paused};
pub use authors::{Authored, Commit};
pub use book::{
    Book, Claim, Good, Member, NotABook, Restarted, Unit, UnreadClaim, object_word, parse_object_word,
};
pub use budget::{
    Amount, Ask, Bound, Budget, Load, Narrowing, NotAnAmount, OnFailure, Priority, Scope, Shortage, Token,
    release,
};
pub use catalog::{Catalog, FileFacts, Held, Understood, Want};
pub use census::Census;
pub use claim::{ReleaseClaim, ReleaseKey, ReleaseSeal};
pub use config_hash::{
    CONFIG_HASH, Data, Key, RESTART_ON_CHANGE, config_hash, restarts_on_change, with_config_hash,
};
pub use cycles::waiting_for_themselves;
pub use decide::{ECHO, FIGHT, FIGHT_PAUSE, FIGHT_WINDOW, Scaling, Sight, View, decide};
pub use desired::{
    Configuration, Desired, Ends, Place, Recreate, Shared, Traits, is_workload, recreates, sets_count,
};
pub use effective::{Form, Replicas, effective, stamped};
pub use entry::{Accepted, Cover, Entry, Looked, Lost, Refusal, Rule, SourceId, Topic, Verified};
pub use evict::{DuePod, Eviction, REFUSED};
pub use foresee::Foreseen;
pub use free::StuckPod;
pub use handover::{Holder, Withheld};
pub use ignore::{
    Binds, IGNORE_FIELDS, Ignored, RECONCILE, Reconcile, Settled, asks, left_to_others, without_ignored,
};
pub use live::{Live, Manager, Owner, Release, RollPhase, Rolling, Rv, Uid};
pub use node_steps::{
    Host, NodeCounts, NodePod, NodeStep, OrdinalPod, Ordinals, PodState, Template, evictions, node_counts,
    stuck,
};
pub use nodes::{NodeFacts, NodeNews};
pub use order::{GivenOrder, IS_SERVED, OrderList, Verb, order_text, parse_orders};
pub use orders::{MOST_STATES, pause_reason};
pub use others::SPENT;
pub use outcome::{Failure, Outcome, Written, replaceable};
pub use overlay::{HELD, NotAnOverlay, OVERLAY, Overlay, overlaid};
pub use peers::{Claims, NAMED, PRUNE_DELAY, Peer, Progress, Repository, Statement, mark};
pub use plan::{Plan, Planned, PlannedUnit, Verdict, units};
pub use pods::{
    Ended, Failing, PASSING, PodFacts, RESTARTS, Readiness, Refused, SetFacts, Trouble, UNSCHEDULABLE,
    Unschedulable, WorkloadPods, failing, patience, ripens,
};
pub use policy::{Adopt, BlastRadius, Life, NotABlastRadius, OptOut, Prune};
pub use prune::{Guard as PruneGuard, Judgement, Keep, Pending, judge, precious};
pub use reason::Reason;
pub use rejection::{
    Instead, Rejection, Substitute, Way, parse_rejections, rejections_sealing, rejections_text,
    unreadable_rejections,
};
pub use restart::{KEY_SECRET, Known, changed_words};
pub use rivals::Prior;
pub use room::FULL;
pub use seal::{Sealing, Seals};
pub use selector::LabelSelector;
pub use shares::{BEAT, LASTS, Mark, Moves, Shares, TERM};
pub use sources::{Inventory, Reading, Source, Writes};
pub use started::{NotStarted, Pinned, STARTED, Started};
pub use starts::Start;
pub use state::{Engine, KindState, Served};
pub use steps::{
    Lack, Move, Promote, Promotion, Shown, Size, Standing, StepWait, Steps, Surplus, misused_steps, next,
};
pub use strategy::Strategy;
pub use surplus::{Aim, Balance, DueScale, Rescaled, Share, balance};
pub use tally::Tally;
pub use turns::{Course, Turn};
pub use undo::{Past, Undo};
pub use unlisted::GROUP_DOWN;
pub use usage::Usage;
pub use vocabulary::{Asks, Carrier, Meaning, PRUNE, WORDS as PEER_WORDS};
pub use waiting::{EVERY, Queued, TOLD, Telling};
pub use watchers::{Listing, OWN, WatcherId};
pub use words::misused;

#[cfg(test)]
mod tests;
