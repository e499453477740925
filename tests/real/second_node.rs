//! A node whose kubelet a test may stop: no pod of another test is on it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use controlplane::Cluster;
use serde_json::{Value, json};

use crate::site::cluster;
use crate::support::{Api, at};

pub(crate) const NAME: &str = "real-2";

/// Keeps pods away from it that do not ask for it.
pub(crate) fn reserve(api: &Api) {
    let taint = json!({"key": "reserved", "value": "true", "effect": "NoSchedule"});
    api.merge(&at("Node", "", NAME), "setup", &json!({"spec": {"taints": [taint]}}));
}

/// The node, which one test has at a time.
pub(crate) struct SecondNode {
    cluster: &'static Cluster,
    api: Api,
    _only: MutexGuard<'static, ()>,
}

impl SecondNode {
    /// Waits until no other test has it. None where no real node can be.
    pub(crate) fn take() -> Option<Self> {
        static ONLY: Mutex<()> = Mutex::new(());
        let cluster = cluster()?;
        let api = Api::new(cluster.kubeconfig());
        Some(Self { cluster, api, _only: ONLY.lock().unwrap_or_else(PoisonError::into_inner) })
    }

    /// Sends its kubelet a signal. One that is killed is started again.
    pub(crate) fn signal(&self, signal: &str) {
        self.cluster.signal_inside("kubelet-1", signal).unwrap();
    }

    /// Returns whether the cluster counts it as Ready.
    pub(crate) fn is_ready(&self) -> bool {
        let conditions = self.api.value(&at("Node", "", NAME), "/status/conditions");
        let holds = |one: &Value| (&one["type"], &one["status"]) == (&json!("Ready"), &json!("True"));
        conditions.as_array().is_some_and(|all| all.iter().any(holds))
    }

    /// Returns the time of the last sign of its kubelet.
    pub(crate) fn heartbeat(&self) -> Value {
        self.api.value(&at("Lease", "kube-node-lease", NAME), "/spec/renewTime")
    }
}

impl Drop for SecondNode {
    fn drop(&mut self) {
        // Also where the test has failed in between.
        self.signal("CONT");
    }
}
