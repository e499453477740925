//! Flags and file to one checked configuration, and the difference between two of them.
//!
//! Owns [`Config`], the documents of the configuration file (`apiVersion: rhumb.dev/v1alpha1`, kinds
//! `Configuration` and `Source`) and the way from one to the other: [`read`] finds every fault of a file
//! at once, each with its line. [`SourceSpec`] is the one form of a source everywhere.
//!
//! **Invariant:** plain values only. Reads no file and no environment variable (both are arguments) and
//! holds nothing that runs.

mod custom;
mod duration;
mod environment;
mod fault;
mod file;
mod leases;
mod location;
mod name;
mod reader;
mod reload;
mod schema;
mod serve;
mod spec;
mod tree;

use std::net::SocketAddr;
use std::path::PathBuf;

pub use custom::{CustomSource, CustomSources, custom_path};
pub use duration::{Duration, NotADuration, Pause};
pub use environment::{Environment, NoStateDirectory};
pub use file::read;
pub use leases::UseLeases;
pub use location::{GitUrl, Location, NotInside, TreePath, is_url};
pub use name::{Name, NotAName};
pub use reload::{Change, changed};
pub use schema::definition;
pub use serve::SOCKET;
pub use spec::{API_VERSION, ApiSpec, Budget, GitSpec, Narrowing, SourceSpec, SpecError};

use crate::engine::{Adopt, BlastRadius, Prune};

/// Everything that a person can set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How the cluster is reached.
    pub connection: ConnectionSpec,
    /// Where caches live; see [`Environment::state_directory`] for what holds without it.
    pub state_directory: Option<PathBuf>,
    /// The namespace of the sources' parent objects.
    pub namespace: String,
    /// How often everything is looked at again although nothing seems to have happened.
    pub resync: Duration,
    /// How much may roll at once.
    pub budget: Budget,
    /// Whether replicas share the sources.
    pub leases: UseLeases,
    /// Which sources that stand in the cluster are followed too.
    pub custom_sources: CustomSources,
    /// What is answered over HTTP, and to whom.
    pub serve: ServeConfig,
    /// What is followed; names are unique.
    pub sources: Vec<SourceConfig>,
}

/// How the cluster is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionSpec {
    /// A kubeconfig; none for `$KUBECONFIG`, `~/.kube/config` or the service account, in this order.
    pub kubeconfig: Option<PathBuf>,
    /// A context of it; none for its current one.
    pub context: Option<String>,
    /// How the API server is asked.
    pub api: ApiSpec,
}

/// What is answered over HTTP, and to whom. Secrets are files here, and never read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServeConfig {
    /// The Unix socket; none without a runtime directory.
    pub socket: Option<PathBuf>,
    /// Where all questions are answered over TCP.
    pub listen: Option<SocketAddr>,
    /// Where nothing but `/livez` and `/readyz` is answered, to everybody.
    pub probes: Option<SocketAddr>,
    /// Names under which it may be reached over TCP, beside addresses and `localhost`; in lower case.
    pub hosts: Vec<String>,
    /// What TCP is encrypted with.
    pub tls: Option<TlsFiles>,
    /// The file with the token that is asked for over TCP.
    pub token: Option<PathBuf>,
    /// The file with the secret of webhooks; with `.` and the name of a source behind it that of this source.
    pub hook_secret: Option<PathBuf>,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, with those that lead to its authority behind it; PEM.
    pub cert: PathBuf,
    /// Its private key; PEM.
    pub key: PathBuf,
}

/// One source, checked, its paths absolute or relative to the working directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceConfig {
    /// Its name, which is also the name of its parent object.
    pub name: String,
    /// Where its manifests are.
    pub location: Location,
    /// The namespace of objects that name none.
    pub namespace: String,
    /// Whether what it no longer names is deleted.
    pub prune: Prune,
    /// Whether objects that exist already are taken over.
    pub adopt: Adopt,
    /// How much may be pruned without a person's confirmation.
    pub blast_radius: BlastRadius,
    /// Bounds on its rollouts beside those of the whole cluster.
    pub budget: Narrowing,
    /// Whether it writes.
    pub mode: Mode,
}

/// Whether a source writes to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// It does.
    #[default]
    Enforce,
    /// It does everything but that.
    Observe,
}

#[cfg(test)]
mod tests;
