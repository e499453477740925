//! A real Kubernetes control plane on loopback, for tests, benches and demos.
//!
//! [`Cluster::start`] runs etcd, the API server, the controllers, the scheduler and KWOK (which
//! plays the nodes) as plain processes; no container, no root. Only real nodes need root
//! ([`Builder::real_nodes`]): kubelets with containers, in private namespaces.
//!
//! The programs are built from pinned Go modules on first use. So are those that render manifests
//! ([`Renderers`]), encrypt files ([`Encrypters`]), put in variables ([`Expanders`]) or keep charts
//! ([`Registry`]). Nothing outlives the [`Cluster`], not even when its process is killed.

mod audit;
mod build;
mod builder;
mod cluster;
mod encrypters;
mod error;
mod expanders;
mod flags;
mod http;
mod kubeconfig;
mod kubectl;
mod logs;
mod nodes;
mod packages;
mod part;
mod pki;
mod ports;
mod programs;
mod proxy;
mod random;
mod ready;
mod registry;
mod renderers;
mod supervisor;

pub use crate::audit::{AuditEvent, Stage};
pub use crate::builder::Builder;
pub use crate::cluster::Cluster;
pub use crate::encrypters::Encrypters;
pub use crate::error::Error;
pub use crate::expanders::Expanders;
pub use crate::nodes::find_obstacle as find_real_node_obstacle;
pub use crate::part::Part;
pub use crate::proxy::{Answer, Fault, FaultProxy, Requests, ResponseCut, Rule, RuleId, RuleUsage};
pub use crate::random::Random;
pub use crate::registry::{Registry, RegistryOptions};
pub use crate::renderers::Renderers;

/// Builds the programs unless they are there, and returns the directory that has them.
pub fn programs() -> Result<std::path::PathBuf, Error> {
    let needed = part::Program::ALL;
    Ok(programs::Programs::find(&needed)?.directory().to_owned())
}
