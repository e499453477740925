//! The parts of a cluster to build.

use crate::cluster::Cluster;
use crate::error::Error;
use crate::part::Part;

/// The detail of the API server's audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audit {
    Off,
    /// The user, the verb, the object and the end.
    Requests,
    /// Also the objects that were sent.
    Bodies,
}

/// The shape of a cluster that is to be started.
#[derive(Debug, Clone)]
pub struct Builder {
    pub(crate) nodes: usize,
    pub(crate) real_nodes: usize,
    pub(crate) parts: &'static [Part],
    pub(crate) audit: Audit,
}

impl Default for Builder {
    fn default() -> Self {
        Self { nodes: 3, real_nodes: 0, parts: &Part::PLAYED, audit: Audit::Off }
    }
}

impl Builder {
    /// Sets the number of nodes that KWOK plays, 3 unless said otherwise.
    #[must_use]
    pub const fn nodes(mut self, count: usize) -> Self {
        self.nodes = count;
        self
    }

    /// Adds nodes with kubelets and containers, beside those that KWOK plays.
    ///
    /// Only root has them, and not on every machine: see
    /// [`find_real_node_obstacle`](crate::find_real_node_obstacle). Pods choose them by their label
    /// `controlplane/node: real`.
    #[must_use]
    pub const fn real_nodes(mut self, count: usize) -> Self {
        self.real_nodes = count;
        self.parts = if count > 0 { &Part::ALL } else { &Part::PLAYED };
        self
    }

    /// Leaves out everything but etcd and the API server: no controllers, no nodes, no pods.
    #[must_use]
    pub const fn bare(mut self) -> Self {
        self.parts = &[Part::Etcd, Part::Apiserver];
        self.real_nodes = 0;
        self
    }

    /// Turns on the audit log: who did what to which object, and how it ended.
    #[must_use]
    pub const fn audit(mut self) -> Self {
        self.audit = Audit::Requests;
        self
    }

    /// Turns on the audit log with the bodies of writing requests.
    #[must_use]
    pub const fn audit_bodies(mut self) -> Self {
        self.audit = Audit::Bodies;
        self
    }

    /// Starts the cluster and waits until it is ready for use.
    pub fn start(self) -> Result<Cluster, Error> {
        Cluster::start_with(&self)
    }
}
