//! Control planes that a test has for itself, because it stops or spoils their parts.

use std::ops::Deref;
use std::sync::{Condvar, Mutex, PoisonError};

use controlplane::{Builder, Cluster};

/// The number of control planes beside the shared one at a time: each takes half a GiB and a core
/// while it starts.
const MAX_CONTROL_PLANES: usize = 2;

static RUNNING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

/// A control plane of one test.
pub(crate) struct DedicatedCluster {
    cluster: Cluster,
    // After the cluster: fields are dropped in their order.
    _place: ClusterSlot,
}

struct ClusterSlot;

impl DedicatedCluster {
    /// Starts only etcd and the API server, with an audit log: no controllers, no nodes.
    pub(crate) fn bare() -> Self {
        Self::of(Cluster::builder().bare())
    }

    /// Starts all, with controllers and nodes.
    #[allow(dead_code, reason = "only the tests of rollouts need pods on it")]
    pub(crate) fn complete() -> Self {
        Self::of(Cluster::builder())
    }

    fn of(builder: Builder) -> Self {
        let place = ClusterSlot::take();
        let cluster = builder.audit().start().unwrap_or_else(|error| panic!("{error}"));
        Self { cluster, _place: place }
    }
}

impl Deref for DedicatedCluster {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

impl ClusterSlot {
    fn take() -> Self {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        while *running >= MAX_CONTROL_PLANES {
            running = ENDED.wait(running).unwrap_or_else(PoisonError::into_inner);
        }
        *running += 1;
        Self
    }
}

impl Drop for ClusterSlot {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_one();
    }
}
