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

mod budget;
mod catalog;
mod counts;
mod cycles;
mod decide;
mod desired;
mod effective;
mod entry;
mod gate;
mod live;
mod outcome;
mod plan;
mod pods;
mod policy;
mod prune;
mod reason;
mod resolve;
mod sources;
mod state;
mod unlisted;
mod words;

pub use crate::object::{PART_OF, RELEASE};
pub use budget::{Ask, Priority, release};
pub use catalog::{Catalog, FileFacts, Held, Understood, Want};
pub use cycles::waiting_for_themselves;
pub use decide::{
    Action, Apply, Decision, ECHO, FIGHT, FIGHT_WINDOW, Guard, Purpose, Removal, Restarts, Scaling, Sight,
    View, decide,
};
pub use desired::{Desired, Ends, Place, Recreate, Shared, Traits, is_workload};
pub use effective::{Replicas, effective, stamped};
pub use entry::{Accepted, Cover, Entry, Looked, Lost, Refusal, Rule, SourceId, Topic, Verified};
pub use live::{Live, Manager, Owner, Release, RollPhase, Rolling, Rv, Uid};
pub use outcome::{Failure, Outcome, Written, replaceable};
pub use plan::{Plan, Planned, Verdict};
pub use pods::{
    Ended, Failing, PASSING, PodFacts, RESTARTS, Readiness, Refused, Trouble, UNSCHEDULABLE, Unschedulable,
    WorkloadPods, failing, patience, ripens,
};
pub use policy::{Adopt, BlastRadius, NotABlastRadius, Prune};
pub use prune::{Guard as PruneGuard, Judgement, Keep, Pending, judge, precious};
pub use reason::Reason;
pub use sources::{Inventory, Reading, Source, Writes};
pub use state::{Engine, KindState, Served};
pub use unlisted::GROUP_DOWN;
pub use words::misused;

#[cfg(test)]
mod tests;
