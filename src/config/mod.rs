//! Flags and file to one checked configuration, and the difference between two of them.
//!
//! Owns [`Config`], the documents of the configuration file (`apiVersion: rhumb.dev/v1alpha1`, kinds
//! `Configuration` and `Source`) and the way from one to the other: [`read`] finds every fault of a file
//! at once, each with its line. [`SourceSpec`] is the one form of a source everywhere.
//!
//! **Invariant:** plain values only. Reads no file and no environment variable (both are arguments) and
//! holds nothing that runs.

mod allow;
mod credential;
mod custom;
mod duration;
mod environment;
mod fault;
mod file;
mod leases;
mod location;
mod name;
mod notify;
mod prefix;
mod reader;
mod reload;
mod schema;
mod serve;
mod spec;
mod tree;
mod verify;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;

pub use allow::{AllowSpec, ClusterScopedSpec};
pub use credential::{BoundCredentials, CredentialUse};
pub use custom::{
    CustomSource, CustomSourcePolicy, CustomSources, DeletionPolicy, FINALIZER, Tie, custom_path,
};
pub use duration::{Duration, NotADuration, Pause};
pub use environment::{Environment, NoStateDirectory};
pub use file::read;
pub use leases::UseLeases;
pub use location::{GitUrl, Location, NotInside, TreePath, is_url};
pub use name::{AccountName, Name, NotAName, NotAnAccount};
pub use notify::{Uncommitted, is_sound};
pub use prefix::{NotAPrefix, UrlPrefix};
pub use reload::{Change, changed};
pub use schema::definition;
pub use serve::SOCKET;
pub use spec::{API_VERSION, ApiSpec, Budget, GitSpec, Narrowing, SourceSpec, SpecError};
pub use verify::{VerifyMode, VerifySpec};

use serde::Deserialize;

use crate::engine::{Adopt, AllowList, BlastRadius, Life, OptOut, Prune};

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
    pub custom_sources: CustomSourcePolicy,
    /// What is answered over HTTP, and to whom.
    pub serve: ServeConfig,
    /// Who is told of what happens.
    pub notify: Vec<NotifyConfig>,
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

/// Who is told of what happens. Secrets are files here, and never read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifyConfig {
    /// Who.
    pub to: Recipient,
    /// Of what happens to these sources; to all, where it is empty.
    pub sources: Vec<String>,
    /// Of what.
    pub on: BTreeSet<Occasion>,
}

/// What people are told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Occasion {
    /// All that a revision asks for is as wanted and healthy.
    Succeeded,
    /// The rollout of a workload failed.
    Failed,
    /// What failed is back at what was good before.
    RolledBack,
    /// Deletions wait for a person.
    PruneWaiting,
}

impl Occasion {
    /// All.
    pub const ALL: [Self; 4] = [Self::Succeeded, Self::Failed, Self::RolledBack, Self::PruneWaiting];
}

/// Where it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// Any HTTP server: the notice as JSON.
    Webhook {
        /// Where.
        url: UrlAt,
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
        /// In which words.
        forge: Forge,
        /// Where its API begins.
        url: String,
        /// Owner and name.
        repository: String,
        /// The file with the token.
        token: PathBuf,
        /// What tells its statuses from those of others, with `{source}` in place of the source.
        context: String,
    },
}

/// A URL, or the file that holds it. Whoever knows the path of a webhook may often write there: `Debug` shows none.
#[derive(Clone, PartialEq, Eq)]
pub enum UrlAt {
    /// It itself.
    Url(String),
    /// A file.
    File(PathBuf),
}

impl std::fmt::Debug for UrlAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Url(_) => f.write_str("Url(..)"),
            Self::File(file) => f.debug_tuple("File").field(file).finish(),
        }
    }
}

/// Where repositories live.
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
    /// Its name, which is also the name of its parent object.
    pub name: String,
    /// Where its manifests are.
    pub location: Location,
    /// The namespace of objects that name none.
    pub namespace: String,
    /// What it may have at all.
    pub allow: AllowList,
    /// The service account, in rhumb's own namespace, as which its objects are read and written; none for rhumb's own.
    pub service_account: Option<AccountName>,
    /// Which credentials of the host it shows to its git server.
    pub credentials: CredentialUse,
    /// Whether what it no longer names is deleted.
    pub prune: Prune,
    /// Whether objects that exist already are taken over.
    pub adopt: Adopt,
    /// Says if what somebody puts on a live object may keep it from being changed and repaired.
    pub opt_out: OptOut,
    /// How much may be pruned without a person's confirmation.
    pub blast_radius: BlastRadius,
    /// For so long other sources may claim what it drops, before that is deleted.
    pub prune_delay: Pause,
    /// Bounds on its rollouts beside those of the whole cluster.
    pub budget: Narrowing,
    /// Whether it writes.
    pub mode: Mode,
    /// Whether it goes on.
    pub life: Life,
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
