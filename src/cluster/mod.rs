//! The API server: connection, discovery, informers, reads, writes and the parent object.
//!
//! Owns the field manager `rhumb`, the rate limit, the deadline of each call, and the classes of the
//! server's refusals. Live objects leave this module as compact [`Live`](crate::engine::Live) records;
//! whole trees only where somebody asked for one.
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
mod kinds;
mod leases;
mod measures;
mod nodes;
mod orders;
mod owner;
mod parent;
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

pub use access::{Access, Verdict};
pub use account::ServiceAccount;
pub use budget::{BudgetObject, explain_unread_claims, explain_unreadable_budget};
pub use call::Cluster;
pub use config_key::ConfigKey;
pub use connect::Connection;
pub use data::{DataEvent, DataFollower, DataNews};
pub use error::{Claim, Denial, Error, Fault, On, Retry, Wrong};
pub use event::{LONGEST_MESSAGE, Occurrence, Severity};
pub use fence::{Fence, Terms, Tick};
pub use informer::{Informer, InformerEvent, News, WATCH_OVER};
pub use intents::Spot;
pub use kinds::{Kind, Kinds, Lookup, Scope};
pub use leases::{LeaseRecord, Tenure};
pub use measures::Measures;
pub use orders::{OrdersObject, orders_name, source_of_orders};
pub use parent::{Parent, applyset_id};
pub use path::{Selector, Within};
pub use pods::{Evicted, PodFollower, PodsEvent, PodsNews, Warned, pod_selector};
pub use read::Looked;
pub use reclaim::{FieldOwners, Reclaimed};
pub use rolling::of as rolling;
pub use wire::{ScaleTarget, Scaler};
pub use write::{Applied, Deleted, Force, Propagation};

/// The field manager of every write.
pub const FIELD_MANAGER: &str = "rhumb";

/// Log targets that must stay below `ERROR`: they write whole answers of the server, Secrets included,
/// or one line for every watch that ends.
pub const NOISY_TARGETS: [&str; 3] = ["kube_client::client", "hyper_util", "tower::buffer"];

#[cfg(test)]
mod tests;
