//! The API server: connection, discovery, informers, reads, writes and the parent object.
//!
//! Owns the field manager `rhumb`, the rate limit, the deadline of each call, and the classes of
//! the server's refusals. Live objects leave this module as compact
//! [`LiveObject`](crate::engine::LiveObject) records; whole trees only where somebody asked for
//! one.
//!
//! **Invariant:** decides nothing. Whether to write, what, and what follows from an answer is the
//! engine's.

mod absent;
mod access;
mod account;
mod backoff;
mod budget;
mod call;
mod classify;
mod config_key;
mod connect;
mod credentials;
mod custom;
mod data;
mod error;
mod event;
mod fence;
mod gate;
mod informer;
mod intents;
mod interner;
mod inventory;
mod kinds;
mod leases;
mod measures;
mod nodes;
mod orders;
mod owner;
mod path;
mod plugin;
mod pods;
mod proxy;
mod read;
mod reclaim;
mod rolling;
mod rotation;
mod strategy;
mod watch;
mod wire;
mod write;

pub use access::{AccessDecision, AccessRequest};
pub use account::ServiceAccount;
pub use budget::{BudgetObject, explain_unread_claims, explain_unreadable_budget};
pub use call::Cluster;
pub use config_key::ConfigKey;
pub use connect::Connection;
pub use data::{DataChange, DataEvent, DataFollower};
pub use error::{CallSubject, ClusterError, ClusterFault, Denial, FieldConflict, InvalidField, RetryAdvice};
pub use event::{EventType, KubernetesEvent, LONGEST_MESSAGE};
pub use fence::{LeaseTerms, TermStart, WriteFence};
pub use informer::{Informer, InformerChange, InformerEvent, WATCH_OVER};
pub use intents::AnnotationTarget;
pub use inventory::{InventoryObject, applyset_id};
pub use kinds::{KindLookup, KindTable, ServedKind, ServedScope};
pub use leases::{LeaseRecord, LeaseWrite};
pub use measures::CallMetrics;
pub use orders::{OrdersObject, orders_name, source_of_orders};
pub use path::{ListSelector, NamespaceSelector};
pub use pods::{EvictionResult, ObjectWarning, PodFollower, PodsChange, PodsEvent, pod_selector};
pub use read::{LiveLookup, PartialList};
pub use reclaim::{FieldOwners, ReclaimResult};
pub use rolling::of as rolling;
pub use wire::{ScaleTarget, Scaler};
pub use write::{ApplyForce, ApplyResult, DeleteResult, PropagationPolicy};

/// The field manager of every write.
pub const FIELD_MANAGER: &str = "rhumb";

/// Log targets that must stay below `ERROR`: they write whole answers of the server, Secrets
/// included, or one line for every watch that ends.
pub const NOISY_TARGETS: [&str; 3] = ["kube_client::client", "hyper_util", "tower::buffer"];

#[cfg(test)]
mod tests;
