//! The parts that commands with a cluster share: a runtime, the connection, the sources.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::exit::{ExitStatus, os_message};
use super::rendering::{SourceRendering, UnrenderedFiles, source_settings};
use super::{CommandError, identities, settings};
use crate::call_metrics::CallMetrics;
use crate::cluster::{self, Cluster, ClusterFault, Connection, ServiceAccount};
use crate::config::{Config, SourceConfig, SourceLocation, SourceMode};
use crate::daemon::{self, FatalError, Setup, SourceFiles, SourceSetup};
use crate::engine::SourceWrites;
use crate::heartbeat::Heartbeats;
use crate::input::{ThreadRuntime, VariableMode};
use crate::object::ErrorClass;
use crate::source::{self, Source};

/// The maximum number of retries where the server asks to slow down, and the pause where it names
/// none.
const MAX_THROTTLE_RETRIES: usize = 5;
const THROTTLE_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Starts the runtime. One thread drives everything; reading and parsing happen beside it.
pub(super) fn start_runtime() -> Result<ThreadRuntime, CommandError> {
    ThreadRuntime::start().map_err(|error| {
        CommandError::new(ErrorClass::Internal, format!("the runtime does not start: {}", os_message(&error)))
    })
}

/// Connects to the cluster of the configuration.
pub(super) async fn connect(config: &Config) -> Result<Cluster, CommandError> {
    Ok(Cluster::connect(&cluster_connection(config)).await?)
}

/// Does the same as [`connect`], with metrics and heartbeats that exist before the connection.
pub(super) async fn connect_watched(
    config: &Config,
    measures: &CallMetrics,
    heartbeats: &Heartbeats,
) -> Result<Cluster, CommandError> {
    Ok(Cluster::connect_watched(&cluster_connection(config), measures.clone(), heartbeats.clone()).await?)
}

/// Returns the cluster with the rights of a source's account.
pub(super) fn acting_cluster(cluster: &Cluster, system: &str, source: &SourceConfig) -> Cluster {
    let account = source.service_account.as_ref().map(|name| ServiceAccount::new(system, name.as_str()));
    cluster.with_account(account)
}

/// Returns how the cluster of the configuration is reached.
pub(super) fn cluster_connection(config: &Config) -> Connection {
    Connection {
        kubeconfig: config.connection.kubeconfig.clone(),
        context: config.connection.context.clone(),
        ..Connection::of(&config.connection.api)
    }
}

impl From<cluster::ClusterError> for CommandError {
    fn from(error: cluster::ClusterError) -> Self {
        let exit = match error.class() {
            ErrorClass::Config => ExitStatus::Unreadable,
            _ => ExitStatus::Unreachable,
        };
        let hint = match error.class() {
            _ if *error.fault() == ClusterFault::Unauthorized => {
                "renew the token or the certificate of the kubeconfig"
            }
            _ if matches!(error.fault(), ClusterFault::Plugin { .. }) => {
                "run the command of the kubeconfig's `exec` by hand, as the same user"
            }
            _ if matches!(error.fault(), ClusterFault::OtherTool { .. } | ClusterFault::NoInventory) => {
                "give the source another name with --source"
            }
            ErrorClass::Config => "choose another with --kubeconfig, $KUBECONFIG or --context",
            ErrorClass::Forbidden => "check the user's roles: `kubectl auth can-i --list`",
            _ => "check with `kubectl version` that the API server answers",
        };
        Self::new(error.class(), error.to_string()).with_exit(exit).hint(hint)
    }
}

impl From<FatalError> for CommandError {
    fn from(fatal: FatalError) -> Self {
        match fatal {
            // Started again, it would write to whatever cluster the kubeconfig names now.
            FatalError::WrongCluster(error) => {
                Self::new(error.class(), error.to_string()).with_exit(ExitStatus::BadConfiguration).hint(
                    "let the kubeconfig name that cluster again, or start rhumb again if this one is meant",
                )
            }
            FatalError::Contested(why) => Self::new(ErrorClass::Conflict, why).hint(
                "commit the change to what that follows, or have it rest with `rhumb rollout pause SOURCE`",
            ),
            FatalError::Cluster(error) if error.class() != ErrorClass::Internal => error.into(),
            other => Self::new(other.class(), other.to_string())
                .hint("start rhumb again, and report the lines above"),
        }
    }
}

/// Returns the state directory of one cluster; made when something is to be kept in it.
pub(super) async fn state(config: &Config, cluster: &Cluster) -> Result<PathBuf, CommandError> {
    let environment = settings::process_environment(PathBuf::new());
    let directory = environment.state_directory(config.state_directory.as_deref()).map_err(|error| {
        CommandError::new(ErrorClass::Config, error.to_string()).hint("name one with --state-directory")
    })?;
    let uid = cluster.uid().await?;
    Ok(directory.join(&*uid.0))
}

/// Asks again where the server only asks to slow down: it says nothing about what was asked.
pub(super) async fn retry_when_throttled<T, A>(ask: impl Fn() -> A) -> Result<T, cluster::ClusterError>
where
    A: Future<Output = Result<T, cluster::ClusterError>>,
{
    for _ in 1..MAX_THROTTLE_RETRIES {
        match ask().await {
            Err(error) if matches!(error.fault(), ClusterFault::TooMany { .. }) => {
                tokio::time::sleep(error.retry_after().unwrap_or(THROTTLE_RETRY_DELAY)).await;
            }
            answer => return answer,
        }
    }
    ask().await
}

/// Does the same as [`state`], but waits for an API server that does not answer yet.
pub(super) async fn wait_for_state(config: &Config, cluster: &Cluster) -> Result<PathBuf, CommandError> {
    let mut wait = Duration::from_millis(500);
    loop {
        match state(config, cluster).await {
            Err(error) if error.exit == ExitStatus::Unreachable => {
                tracing::warn!("{error}; retry in {} ms", wait.as_millis());
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(Duration::from_secs(15));
            }
            known => return known,
        }
    }
}

/// Returns a source that is followed, or read at a named revision.
pub(super) fn followed_setup(config: &SourceConfig, state: &Path) -> Result<SourceSetup, CommandError> {
    followed_setup_in(&source::ResolvedLocation::from(&config.location), config, state)
}

/// Does the same as [`followed_setup`], where the command line may name what is not there yet.
pub(super) fn awaited_setup(config: &SourceConfig, state: &Path) -> Result<SourceSetup, CommandError> {
    followed_setup_in(&source::ResolvedLocation::from(&config.location).into_awaited(), config, state)
}

/// Returns a source that ends, wherever it was: of one that cannot be opened no older contents are
/// known.
pub(super) fn ending_setup(config: &SourceConfig, state: &Path) -> Result<SourceSetup, CommandError> {
    let nowhere = source::ResolvedLocation::from(&SourceLocation::unset()).into_awaited();
    awaited_setup(config, state).or_else(|_| followed_setup_in(&nowhere, config, state))
}

fn followed_setup_in(
    location: &source::ResolvedLocation,
    config: &SourceConfig,
    state: &Path,
) -> Result<SourceSetup, CommandError> {
    let settings = source_settings(config);
    let source = Source::open_with(&config.name, location, &state.join(&config.name), settings)?;
    let location = source.identity().to_owned();
    Ok(setup(config, location, SourceFiles::Source(source)))
}

/// Returns a source as it is on disk now, where it is a directory; else at its revision.
pub(super) async fn one_shot_source(
    config: &SourceConfig,
    state: &Path,
    cluster: &Cluster,
) -> Result<SourceSetup, CommandError> {
    match &config.location {
        SourceLocation::Directory(path) => {
            let path = path.clone();
            // Beside this thread, which asks the server for its kinds meanwhile.
            let files = daemon::run_blocking(move || UnrenderedFiles::read(&path)).await?;
            disk_setup(config, location(config), &files, cluster).await
        }
        SourceLocation::Git { .. } => followed_setup(config, state),
    }
}

/// Returns the identity of a source's location.
pub(super) fn location(config: &SourceConfig) -> String {
    source::ResolvedLocation::from(&config.location).location_id()
}

/// Returns a source whose files were read already, and renders them for a cluster.
pub(super) async fn disk_setup(
    config: &SourceConfig,
    location: String,
    files: &UnrenderedFiles,
    cluster: &Cluster,
) -> Result<SourceSetup, CommandError> {
    let disk = SourceRendering::of(config).render_for(files, cluster).await?;
    Ok(setup(config, location, SourceFiles::Snapshot(disk)))
}

fn setup(config: &SourceConfig, location: String, files: SourceFiles) -> SourceSetup {
    SourceSetup {
        name: config.name.clone(),
        location,
        namespace: config.namespace.clone(),
        allow: config.allow.clone().into(),
        account: config.service_account.as_ref().map(|name| name.as_str().into()),
        variables: VariableMode::of(config.substitution.as_ref()),
        decrypter: identities::of_source(config),
        namespaces: config.allow.namespaces.clone(),
        adopt: config.adopt,
        opt_out: config.opt_out,
        prune: config.prune,
        radius: config.blast_radius,
        // A one-shot apply by a person does not wait.
        prune_delay: if matches!(files, SourceFiles::Snapshot(_)) {
            Duration::ZERO
        } else {
            config.prune_delay.get()
        },
        extent: config.location.extent(),
        writes: if config.mode == SourceMode::Observe {
            SourceWrites::Observed
        } else {
            SourceWrites::Allowed
        },
        life: config.life,
        confirmed: BTreeSet::new(),
        folder_search: None,
        budget: (&config.budget).into(),
        files,
    }
}

/// Returns all that the loop needs.
pub(super) fn daemon_setup(config: &Config, cluster: Cluster, sources: Vec<SourceSetup>) -> Setup {
    Setup {
        cluster,
        namespace: config.namespace.clone(),
        resync: config.resync.get(),
        budget: (&config.budget).into(),
        concurrency: config.connection.api.concurrency as usize,
        sources,
        trace: None,
    }
}

/// Returns the only source of a command that takes one.
pub(super) fn only_source(config: &Config) -> Result<SourceConfig, CommandError> {
    let missing = || CommandError::usage_error("no source is named");
    config.sources.first().cloned().ok_or_else(missing)
}
