//! The parts that the tests share: control planes, repositories, runs of the program, and ways to
//! look at their results.

mod api;
mod ask;
mod audit;
mod browser;
mod daemon;
mod host;
mod identity;
mod nodes;
mod own;
mod remote;
mod repo;
mod schema;
pub(crate) mod shares;
mod site;
mod wait;
pub(crate) mod yaml;

use std::sync::OnceLock;

use controlplane::Cluster;

pub(crate) use api::{Api, at};
pub(crate) use ask::{ask, try_to_ask};
pub(crate) use audit::{AuditWindow, WritesByHolder};
pub(crate) use browser::Browser;
pub(crate) use daemon::Daemon;
pub(crate) use host::Host;
pub(crate) use identity::AgeIdentity;
pub(crate) use nodes::Nodes;
pub(crate) use own::DedicatedCluster;
pub(crate) use remote::{Remote, ServerBehavior};
pub(crate) use repo::{Folder, Repo};
pub(crate) use schema::Schema;
pub(crate) use shares::{MOVED, SHARED, await_shares, shared_name};
pub(crate) use site::{ProgramOutput, TestNamespace, run, source};
pub(crate) use wait::{DEFAULT_TIMEOUT, eventually, in_time, receive, until};

/// Returns the control plane that all tests share that stop none of its parts.
pub(crate) fn shared() -> &'static Cluster {
    static SHARED: OnceLock<Cluster> = OnceLock::new();
    SHARED.get_or_init(|| Cluster::builder().audit().start().unwrap_or_else(|error| panic!("{error}")))
}
