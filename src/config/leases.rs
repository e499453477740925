//! The choice of sharing sources by Leases.

use serde::{Deserialize, Serialize};

/// The condition for taking Leases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeaseMode {
    /// In a pod, where there may be several replicas.
    #[default]
    Auto,
    /// On every host, as with two hosts of one configuration.
    Always,
    /// Nowhere: this process serves all.
    Never,
}
