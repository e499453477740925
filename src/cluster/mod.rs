//! The API server: connection, discovery, informers, reads, writes and the inventory.
//!
//! Owns the field manager `rhumb`, the rate limit, the deadline of each call, and the classes of
//! the server's refusals. Live objects leave this module as compact
//! [`LiveObject`](crate::engine::LiveObject) records; whole trees only where somebody asked for
//! one.
//!
//! **Invariant:** decides nothing. The engine decides whether to write, and what follows from an
//! answer.

mod absent_kinds;
mod access;
mod backoff;
mod call;
mod classify;
mod config_data;
mod config_key;
mod connect;
mod controller_progress;
mod credentials;
mod error;
mod event;
mod event_sink;
mod fence;
mod impersonation;
mod informer;
mod intents;
mod interner;
mod inventory;
mod inventory_records;
mod kinds;
mod kubectl_fields;
mod leases;
mod nodes;
mod obstacles;
mod omitted_strategy;
mod orders;
mod owner;
mod path;
mod plugin;
mod pods;
mod proxy;
mod rate_limit;
mod read;
mod request;
mod rollout_ledger;
mod rotation;
mod source_objects;
mod union_members;
mod watch;
mod wire;
mod write;

pub(crate) use access::{AccessDecision, AccessRequest};
pub use call::Cluster;
pub(crate) use config_data::DataWatchHandle;
pub use config_data::{DataChange, DataEvent};
pub use config_key::ConfigKey;
pub(crate) use config_key::missing_key_remedy;
pub use connect::Connection;
pub(crate) use error::ClusterError;
pub use error::{AccessDenial, ClusterFault, RetryAdvice};
#[cfg(test)]
pub(crate) use error::{CallSubject, FieldConflict, InvalidField};
pub(crate) use event::{CLUSTER_EVENTS_NAMESPACE, EventType, KubernetesEvent, MAX_EVENT_MESSAGE_BYTES};
pub(crate) use event_sink::EventSink;
pub(crate) use fence::{LeaseTerms, TermStart, WriteFence};
pub(crate) use impersonation::ServiceAccount;
pub use informer::{Informer, InformerChange, InformerEvent};
pub(crate) use intents::{AnnotationTarget, later_writers};
pub(crate) use inventory::is_inventory_name;
pub use inventory::{InventoryObject, inventory_id_of};
pub(crate) use inventory_records::{
    ACKNOWLEDGED_KEY, KEPT_KEY, LOCATION_SEPARATOR, PENDING_PRUNES_KEY, PRUNE_CLOSED_KEY, REJECTED_KEY,
    UNLISTED_PENDING_KEY,
};
pub(crate) use kinds::ServedScope;
pub use kinds::{KindLookup, KindTable, ServedKind};
pub(crate) use kubectl_fields::FieldOwners;
pub use kubectl_fields::ReclaimResult;
pub(crate) use leases::{LeaseRecord, LeaseWrite};
#[cfg(test)]
pub(crate) use obstacles::WriteObstacles;
pub(crate) use orders::{OrdersObject, orders_name, source_of_orders};
pub use path::ListSelector;
pub(crate) use path::NamespaceSelector;
pub use pods::{EvictionResponse, PodWatchHandle, PodsChange, PodsEvent, pod_selector};
pub use read::LiveLookup;
pub(crate) use rollout_ledger::{
    LEDGER_NAME, LedgerObject, explain_unread_claims, explain_unreadable_ledger,
};
pub(crate) use source_objects::CustomSourceVersion;
pub(crate) use union_members::{DryRunAnswer, is_replaceable};
pub(crate) use wire::Autoscaler;
#[cfg(test)]
pub(crate) use wire::ScaleTarget;
pub use write::{ApplyForce, DeleteResult};

/// The field manager of the daemon's and of applied writes; orders are written as `rhumb-cli`.
pub(crate) const FIELD_MANAGER: &str = "rhumb";

/// Log targets that must stay below `ERROR`: they write whole answers of the server, Secrets
/// included, or one line for every watch that ends.
pub(crate) const NOISY_TARGETS: [&str; 3] = ["kube_client::client", "hyper_util", "tower::buffer"];

#[cfg(test)]
pub(crate) mod tests;
