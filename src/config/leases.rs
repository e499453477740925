//! Whether replicas share the sources by Leases.

use serde::{Deserialize, Serialize};

/// When a source is served only by whoever holds its Lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UseLeases {
    /// In a pod, where there may be several replicas.
    #[default]
    Auto,
    /// Wherever it runs, as on two hosts with one configuration.
    Always,
    /// Nowhere: this process serves all.
    Never,
}
