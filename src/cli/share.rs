//! Which of the configured sources this process serves: all, or those whose Leases it holds.

use std::time::Duration;

use tokio::sync::watch;

use super::CommandError;
use crate::cluster::Cluster;
use crate::config::{Config, Mode, UseLeases};
use crate::daemon::{Inquiries, Leases, SourceNames};
use crate::object::Class;

/// How long the end waits for the Leases to be released. One that is not runs out by itself.
const RELEASE: Duration = Duration::from_millis(1500);

/// This process's share of the sources.
pub(super) struct Share {
    leases: Option<Leases>,
}

/// What one loop serves.
pub(super) struct Served {
    /// The configuration with the sources of the share alone.
    pub(super) config: Config,
    /// The cluster, written only as long as the share lasts.
    pub(super) cluster: Cluster,
    names: SourceNames,
}

impl Share {
    /// Begins to hold Leases, where the configuration asks for that.
    pub(super) fn of(
        config: &Config,
        cluster: &Cluster,
        running: watch::Receiver<Option<Inquiries>>,
    ) -> Self {
        let shared = match config.leases {
            UseLeases::Always => true,
            UseLeases::Never => false,
            UseLeases::Auto => cluster.is_of_a_pod(),
        };
        // Whoever only observes writes nothing, and no Lease either.
        let observes = config.sources.iter().all(|source| source.mode == Mode::Observe);
        let keep = || Leases::keep(cluster.clone(), &config.namespace, running);
        Self { leases: (shared && !observes).then(keep) }
    }

    /// What is to be served now.
    pub(super) fn take(&self, config: &Config, cluster: &Cluster) -> Served {
        let Some(leases) = &self.leases else {
            let (config, cluster) = (config.clone(), cluster.clone());
            return Served { config, cluster, names: SourceNames::new() };
        };
        leases.wish(config.sources.iter().map(|source| source.name.as_str().into()).collect());
        let names = leases.share();
        leases.serving(names.clone());
        let held = config.sources.iter().filter(|source| names.contains(&*source.name)).cloned();
        let config = Config { sources: held.collect(), ..config.clone() };
        Served { config, cluster: cluster.fenced(leases.fence(&names)), names }
    }

    /// Nothing is served any more, until something is taken anew.
    pub(super) fn rest(&self) {
        if let Some(leases) = &self.leases {
            leases.serving(SourceNames::new());
        }
    }

    /// Waits until something else is to be served.
    pub(super) async fn changed(&self, served: &Served) -> Result<(), CommandError> {
        match &self.leases {
            None => std::future::pending().await,
            Some(leases) if leases.changed(&served.names).await => Ok(()),
            Some(_) => Err(CommandError::new(
                Class::Internal,
                "what looks after the Leases ended, which is a bug of rhumb; nothing is lost by starting again",
            )),
        }
    }

    /// Releases all Leases at once, so that another replica need not wait for their end.
    pub(super) async fn end(self) {
        if let Some(leases) = self.leases
            && tokio::time::timeout(RELEASE, leases.end()).await.is_err()
        {
            tracing::warn!("the Leases are not released in time: they run out by themselves");
        }
    }
}
