//! The API server: connection, discovery, informers, reads, writes and the parent object.
//!
//! Owns the field manager `rhumb`, the rate limit, the deadline of each call, and the classes of
//! the server's refusals. Live objects leave this module as compact
//! [`LiveObject`](crate::engine::LiveObject) records; whole trees only where somebody asked for
//! one.
//!
//! **Invariant:** decides nothing. Whether to write, what, and what follows from an answer is the
//! engine's.

mod absent_kinds;
mod access;
mod backoff;
mod budget;
mod call;
mod classify;
mod config_data;
mod config_key;
mod connect;
mod controller_progress;
mod credentials;
mod error;
mod event;
mod fence;
mod filled_strategy;
mod impersonation;
mod informer;
mod intents;
mod interner;
mod inventory;
mod kinds;
mod kubectl_fields;
mod leases;
mod measures;
mod nodes;
mod orders;
mod owner;
mod path;
mod plugin;
mod pods;
mod proxy;
mod rate_limit;
mod read;
mod rotation;
mod source_objects;
mod watch;
mod wire;
mod write;

pub use access::{AccessDecision, AccessRequest};
pub use budget::{BudgetObject, explain_unread_claims, explain_unreadable_budget};
pub use call::Cluster;
pub use config_data::{DataChange, DataEvent, DataFollower};
pub use config_key::ConfigKey;
pub use connect::Connection;
pub use controller_progress::of as rolling;
pub use error::{CallSubject, ClusterError, ClusterFault, Denial, FieldConflict, InvalidField, RetryAdvice};
pub use event::{EventType, KubernetesEvent, MAX_EVENT_MESSAGE_BYTES};
pub use fence::{LeaseTerms, TermStart, WriteFence};
pub use impersonation::ServiceAccount;
pub use informer::{Informer, InformerChange, InformerEvent, WATCH_OVER};
pub use intents::AnnotationTarget;
pub use inventory::{InventoryObject, applyset_id};
pub use kinds::{KindLookup, KindTable, ServedKind, ServedScope};
pub use kubectl_fields::{FieldOwners, ReclaimResult};
pub use leases::{LeaseRecord, LeaseWrite};
pub use measures::CallMetrics;
pub use orders::{OrdersObject, orders_name, source_of_orders};
pub use path::{ListSelector, NamespaceSelector};
pub use pods::{EvictionResult, ObjectWarning, PodFollower, PodsChange, PodsEvent, pod_selector};
pub use read::{LiveLookup, PartialList};
pub use source_objects::CustomSourceVersion;
pub use wire::{ScaleTarget, Scaler};
pub use write::{ApplyForce, ApplyResult, DeleteResult, PropagationPolicy};

/// The field manager of every write.
pub const FIELD_MANAGER: &str = "rhumb";

/// Log targets that must stay below `ERROR`: they write whole answers of the server, Secrets
/// included, or one line for every watch that ends.
pub const NOISY_TARGETS: [&str; 3] = ["kube_client::client", "hyper_util", "tower::buffer"];

#[cfg(test)]
mod tests;
