//! The checked configuration, from flags and file, and the difference between two.
//!
//! Owns [`Config`], the documents of the configuration file (`apiVersion: rhumb.dev/v1alpha1`,
//! kinds `Configuration` and `Source`) and the conversion between them. [`read`] finds every fault
//! of a file at once, each with its line. [`SourceSpec`] is the one form of a source everywhere.
//!
//! **Invariant:** plain values only. Reads no file and no environment variable (both are arguments)
//! and holds nothing that runs.

mod allow;
mod commit_status;
mod credential;
mod custom;
mod duration;
mod environment;
mod fault;
mod fetch;
mod file;
mod leases;
mod location;
mod name;
mod notify;
mod prefix;
mod reader;
mod reload;
mod render;
#[cfg(test)]
mod schema;
mod serve;
mod spec;
mod substitute;
mod tree;
mod verify;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;

pub(crate) use allow::AllowSpec;
pub(crate) use credential::{BoundCredentials, CredentialUse};
pub(crate) use custom::{
    CustomSource, CustomSourcePolicy, DeletionPolicy, FinalizerState, SOURCE_FINALIZER, custom_path,
};
pub(crate) use duration::{DurationOrZero, PositiveDuration};
pub use environment::Environment;
pub use fetch::FetchConfig;
pub(crate) use fetch::{ChartAddress, FetchSetting, FetchSpec, HostCredential};
pub use file::read;
pub(crate) use leases::LeaseMode;
pub(crate) use location::{GitUrl, SourceLocation, TreePath};
pub(crate) use name::{DnsLabel, ObjectName, ServiceAccountName};
pub(crate) use notify::is_sound;
pub(crate) use prefix::UrlPrefix;
pub(crate) use reload::{ConfigChange, differences};
pub use render::SandboxMode;
pub(crate) use render::{GeneratedValues, HelmSpec, ProgramSpec, RenderMode, RendererConfig};
pub(crate) use serve::SOCKET_FILE;
pub(crate) use spec::{ApiSpec, BudgetSpec, CONFIG_API_VERSION, GitSpec, NarrowingSpec, SourceSpec};
pub(crate) use substitute::{
    SubstituteFromSpec, SubstitutionConfig, VariableHolder, VariableHolderKind, VariableHolderNeed,
    VariableName, VariableSecrecy,
};
pub(crate) use verify::{VerifyMode, VerifySpec};

use serde::Deserialize;

use crate::engine::{AdoptPolicy, AllowList, BlastRadius, OptOutPolicy, PrunePolicy, SourceLifecycle};

/// Everything that a person can set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The connection to the cluster.
    pub connection: ConnectionSpec,
    /// The directory of caches; see [`Environment::state_directory`] for the default.
    pub state_directory: Option<PathBuf>,
    /// The namespace of the sources' inventories.
    pub namespace: String,
    /// The resync interval.
    pub resync: PositiveDuration,
    /// The rollout budget.
    pub budget: BudgetSpec,
    /// Indicates whether replicas share the sources.
    pub leases: LeaseMode,
    /// The policy for sources in the cluster.
    pub custom_sources: CustomSourcePolicy,
    /// The HTTP endpoints.
    pub serve: ServeConfig,
    /// The programs that render, and their sandbox.
    pub renderers: RendererConfig,
    /// The recipients of notifications.
    pub notify: Vec<NotifyConfig>,
    /// The sources; names are unique.
    pub sources: Vec<SourceConfig>,
}

/// The connection to the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionSpec {
    /// A kubeconfig; none for `$KUBECONFIG`, `~/.kube/config` or the service account, in this
    /// order.
    pub kubeconfig: Option<PathBuf>,
    /// A context of it; none for its current one.
    pub context: Option<String>,
    /// The limits of requests to the API server.
    pub api: ApiSpec,
}

/// The HTTP endpoints. Secrets are files here, and never read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServeConfig {
    /// The Unix socket; none without a runtime directory.
    pub socket: Option<PathBuf>,
    /// The TCP address of the API.
    pub listen: Option<SocketAddr>,
    /// The address of `/livez` and `/readyz` alone, open to everybody.
    pub probes: Option<SocketAddr>,
    /// Names under which it may be reached over TCP, beside addresses and `localhost`; in lower
    /// case.
    pub hosts: Vec<String>,
    /// The certificate of TLS; none for plain TCP.
    pub tls: Option<TlsFiles>,
    /// The file with the token that is asked for over TCP.
    pub token: Option<PathBuf>,
    /// The file with the secret of webhooks; with `.` and the name of a source behind it that of
    /// this source.
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

/// A recipient of notifications. Secrets are files here, and never read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifyConfig {
    /// The recipient.
    pub to: Recipient,
    /// The sources.
    pub sources: NotifiedSources,
    /// The notification events.
    pub on: BTreeSet<NotificationEvent>,
}

/// The sources that a recipient is notified of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotifiedSources {
    /// All of them.
    All,
    /// The sources of these names.
    Named(Vec<String>),
}

impl NotifiedSources {
    /// Returns whether a source of this name is one of them.
    pub fn contains(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.iter().any(|known| known == name),
        }
    }
}

/// An event that people are notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotificationEvent {
    /// All that a revision asks for is applied and healthy.
    Succeeded,
    /// The rollout of a workload failed.
    Failed,
    /// A failed rollout is back at its last good content.
    RolledBack,
    /// Deletions wait for a person.
    PruneWaiting,
}

impl NotificationEvent {
    /// All.
    pub const ALL: [Self; 4] = [Self::Succeeded, Self::Failed, Self::RolledBack, Self::PruneWaiting];
}

/// The recipient of a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// Any HTTP server: the notification as JSON.
    Webhook {
        /// The URL.
        url: UrlSource,
        /// The file with the bearer token that goes along.
        token: Option<PathBuf>,
    },
    /// A channel of Slack, or of what understands its form.
    Slack {
        /// The file with its URL.
        url: PathBuf,
    },
    /// The commit itself, as its status.
    Forge {
        /// The forge, which decides on the form of the request.
        forge: Forge,
        /// The base URL of its API.
        url: String,
        /// Owner and name.
        repository: String,
        /// The file with the token.
        token: PathBuf,
        /// The context that keeps its statuses apart from others, with `{source}` in place of the
        /// source.
        context: String,
    },
}

/// A URL, or the file that holds it. A webhook's path is often its password: `Debug` shows none.
#[derive(Clone, PartialEq, Eq)]
pub enum UrlSource {
    /// The URL itself.
    Url(String),
    /// The file that holds the URL.
    File(PathBuf),
}

impl std::fmt::Debug for UrlSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Url(_) => f.write_str("Url(..)"),
            Self::File(file) => f.debug_tuple("File").field(file).finish(),
        }
    }
}

/// A hosting service of repositories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forge {
    /// GitHub, and its Enterprise Server.
    GitHub,
    /// Gitea and Forgejo.
    Gitea,
    /// GitLab.
    GitLab,
}

/// One source, checked, its paths absolute or relative to the working directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceConfig {
    /// Its name, which is also the name of its inventory.
    pub name: String,
    /// The location of its manifests.
    pub location: SourceLocation,
    /// The part of it that is rendered.
    pub render: RenderMode,
    /// The settings of its charts.
    pub helm: HelmSpec,
    /// The programs that render it, and their sandbox.
    pub renderers: RendererConfig,
    /// The charts of servers that it may use.
    pub fetch: FetchConfig,
    /// The namespace of objects that name none.
    pub namespace: String,
    /// The allow-list.
    pub allow: AllowList,
    /// The service account, in rhumb's own namespace, as which its objects are read and written;
    /// none for rhumb's own.
    pub service_account: Option<ServiceAccountName>,
    /// The credentials of the host that it shows to its git server.
    pub credentials: CredentialUse,
    /// The variables that are put into its manifests; none to leave `${…}` as it is.
    pub substitution: Option<SubstitutionConfig>,
    /// Indicates whether what it no longer names is deleted.
    pub prune: PrunePolicy,
    /// Indicates whether objects that exist already are taken over.
    pub adopt: AdoptPolicy,
    /// Indicates whether what somebody puts on a live object may keep it from being changed and
    /// repaired.
    pub opt_out: OptOutPolicy,
    /// The number of objects that may be pruned without a confirmation.
    pub blast_radius: BlastRadius,
    /// The time for which other sources may take over an object that this one no longer names, before
    /// it is deleted.
    pub prune_delay: DurationOrZero,
    /// Bounds on its rollouts beside those of the whole cluster.
    pub budget: NarrowingSpec,
    /// Indicates whether it writes.
    pub mode: SourceMode,
    /// Indicates whether it goes on.
    pub life: SourceLifecycle,
}

/// Indicates whether a source writes to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SourceMode {
    /// It writes.
    #[default]
    Enforce,
    /// It decides everything, and writes nothing.
    Observe,
}

#[cfg(test)]
mod tests;
