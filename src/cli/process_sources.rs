//! The share of one process: the configured sources and those in the cluster, or as many of both as
//! it holds Leases of.

use std::cell::{Cell, OnceCell};
use std::time::Duration;

use tokio::sync::watch;

use super::CommandError;
use crate::cluster::{Cluster, LeaseTerms};
use crate::config::{Config, CustomSource, LeaseMode};
use crate::daemon::{
    CustomSourceWatch, Leases, LoopQueries, SourceNames, StatusTarget, StatusTargetKind, StatusTargets,
};
use crate::object::ErrorClass;

/// The time limit for releasing the Leases at the end. One that is not released runs out by itself.
const LEASE_RELEASE_TIMEOUT: Duration = Duration::from_millis(1500);

/// This process's share of the sources.
pub(super) struct SourceShare {
    /// None before anything is shared.
    leases: OnceCell<Leases>,
    terms: watch::Sender<Option<LeaseTerms>>,
    running: watch::Receiver<Option<LoopQueries>>,
    custom_sources: Option<CustomSourceWatch>,
    /// The sources of the last loop.
    before: Cell<SourceNames>,
    /// The sources that any loop of this process has served, and that nobody serves any more.
    retired: Cell<SourceNames>,
}

/// The sources of one loop.
pub(super) struct ServedSources {
    /// The configuration with the sources of the share alone.
    pub(super) config: Config,
    /// The cluster, written only as long as the share lasts.
    pub(super) cluster: Cluster,
    /// The sources whose Leases are held.
    names: SourceNames,
    /// The sources found in the cluster.
    customs: Vec<CustomSource>,
    /// The sources in the cluster whose status this process writes.
    reported: SourceNames,
    /// The sources that this process has served, and that nobody is to serve any more.
    pub(super) retired: SourceNames,
    /// Sources that were in the cluster when it was last read, which may be too long ago.
    doubtful: SourceNames,
}

/// Returns whether replicas share the sources, where this may be a pod.
pub(super) fn is_shared(config: &Config, is_of_a_pod: impl FnOnce() -> bool) -> bool {
    match config.leases {
        LeaseMode::Always => true,
        LeaseMode::Never => false,
        LeaseMode::Auto => is_of_a_pod(),
    }
}

/// Returns all sources that any replica should serve, and those that cannot be followed.
fn source_names(config: &Config, customs: &[CustomSource]) -> SourceNames {
    let of_file = config.sources.iter().map(|source| source.name.as_str());
    of_file.chain(customs.iter().map(|custom| custom.name.as_str())).map(Into::into).collect()
}

impl ServedSources {
    /// Returns whether a source is in the cluster, and not in the file.
    pub(super) fn is_custom(&self, source: &str) -> bool {
        self.reported.contains(source)
    }
}

impl SourceShare {
    /// Begins to hold Leases and to list the sources in the cluster, where the configuration asks
    /// for that.
    pub(super) fn of(
        config: &Config,
        cluster: &Cluster,
        running: &watch::Receiver<Option<LoopQueries>>,
    ) -> Self {
        let allowed = &config.custom_sources;
        let follow = || {
            CustomSourceWatch::follow(cluster.clone(), &config.namespace, allowed.clone(), running.clone())
        };
        let share = Self {
            leases: OnceCell::new(),
            terms: watch::Sender::new(None),
            running: running.clone(),
            custom_sources: allowed.is_open().then(follow),
            before: Cell::default(),
            retired: Cell::default(),
        };
        share.keep_leases(config, cluster);
        share
    }

    /// Starts holding Leases as soon as there is anything to share. A process that only observes
    /// writes nothing, so it takes no Lease; a newer configuration may do more.
    fn keep_leases(&self, config: &Config, cluster: &Cluster) -> Option<&Leases> {
        if self.leases.get().is_none()
            && (config.is_observe_only() || !is_shared(config, || cluster.is_in_cluster()))
        {
            return None;
        }
        Some(self.leases.get_or_init(|| {
            let leases = Leases::keep(cluster.clone(), &config.namespace, self.running.clone());
            self.terms.send_replace(Some(leases.lease_terms()));
            leases
        }))
    }

    /// Returns the terms in which each source may be written; none as long as nobody shares them.
    pub(super) fn lease_terms(&self) -> watch::Receiver<Option<LeaseTerms>> {
        self.terms.subscribe()
    }

    /// Returns the sources to serve now.
    pub(super) async fn take(&self, config: &Config, cluster: &Cluster) -> ServedSources {
        let before = self.before.take();
        let known = || self.custom_sources.as_ref().map(CustomSourceWatch::known_sources).unwrap_or_default();
        let mut customs = known();
        let all = source_names(config, &customs);
        let (mut names, mut fenced, mut doubtful) = (all, cluster.clone(), SourceNames::new());
        if let Some(leases) = self.keep_leases(config, cluster) {
            leases.set_wanted_sources(names);
            names = leases.share();
            leases.set_served_sources(names.clone());
            let new =
                |custom: &CustomSource| names.contains(&*custom.name) && !before.contains(&*custom.name);
            if let Some(followed) = self.custom_sources.as_ref().filter(|_| customs.iter().any(new)) {
                if followed.try_list_now().await {
                    customs = known();
                    // Nothing else says what has come and gone meanwhile: the next list shows the
                    // same.
                    let all = source_names(config, &customs);
                    names.retain(|name| all.contains(name));
                    leases.set_wanted_sources(all);
                    leases.set_served_sources(names.clone());
                } else {
                    let new = customs.iter().filter(|custom| new(custom) && !config.has_source(&custom.name));
                    doubtful = new.map(|custom| custom.name.as_str().into()).collect();
                }
            }
            fenced = cluster.with_fence(leases.fence(&names));
        }
        let mut retired = self.retired.take();
        retired.extend(before);
        let wanted = source_names(config, &customs);
        retired.retain(|name| !wanted.contains(name));
        self.retired.set(retired.clone());
        self.before.set(names.difference(&doubtful).cloned().collect());
        let mut joined = config.with_custom_sources(&customs);
        joined.sources.retain(|source| names.contains(&*source.name) && !doubtful.contains(&*source.name));
        let status_targets = self.source_duties(config, &customs, &names, cluster);
        let reported = status_targets
            .iter()
            .filter(|(_, status_target)| status_target.kind == StatusTargetKind::ClusterSource)
            .map(|(name, _)| name.clone());
        let reported = reported.collect();
        if let Some(customs) = &self.custom_sources {
            customs.set_status_targets(status_targets);
        }
        ServedSources { config: joined, cluster: fenced, names, customs, reported, retired, doubtful }
    }

    fn source_duties(
        &self,
        config: &Config,
        customs: &[CustomSource],
        names: &SourceNames,
        cluster: &Cluster,
    ) -> StatusTargets {
        let own = customs.iter().filter_map(|custom| Some((names.get(&*custom.name)?, custom)));
        own.map(|(name, custom)| {
            let unusable = match &custom.config {
                _ if config.has_source(name) => {
                    let why = "the configuration file has a source of this name, which counts";
                    Some(("NameTaken", why.to_owned()))
                }
                Err(why) => Some(("Invalid", why.clone())),
                Ok(_) => None,
            };
            let cluster = match self.leases.get() {
                Some(leases) => cluster.with_fence(leases.fence(&SourceNames::from([name.clone()]))),
                None => cluster.clone(),
            };
            let meaning = if config.has_source(name) {
                StatusTargetKind::FileSource
            } else {
                StatusTargetKind::ClusterSource
            };
            let (uid, generation) = (custom.uid.clone(), custom.generation);
            (name.clone(), StatusTarget { uid, generation, unusable, kind: meaning, cluster })
        })
        .collect()
    }

    /// Records that a source in the cluster cannot be followed; the others can.
    pub(super) fn set_unusable(&self, source: &str, error: &CommandError) {
        tracing::warn!(%source, "it cannot be followed: {error}");
        if let Some(customs) = &self.custom_sources {
            customs.set_unusable(source, error.to_string());
        }
    }

    /// Stops serving all sources, until one is taken again.
    pub(super) fn stop_serving(&self) {
        if let Some(customs) = &self.custom_sources {
            customs.set_status_targets(StatusTargets::new());
        }
        if let Some(leases) = self.leases.get() {
            leases.set_served_sources(SourceNames::new());
        }
    }

    /// Waits until something else is to be served.
    pub(super) async fn wait_for_change(&self, served: &ServedSources) -> Result<(), CommandError> {
        let leases = async {
            match self.leases.get() {
                Some(leases) => leases.wait_for_change(&served.names).await,
                None => std::future::pending().await,
            }
        };
        let customs = async {
            match &self.custom_sources {
                Some(customs) if served.doubtful.is_empty() => customs.wait_for_change(&served.customs).await,
                Some(customs) => {
                    let listed = async { while !customs.try_list_now().await {} };
                    tokio::select! {
                        biased;
                        lives = customs.wait_for_change(&served.customs) => lives,
                        () = listed => true,
                    }
                }
                None => std::future::pending().await,
            }
        };
        let (lives, subject) = tokio::select! {
            lives = leases => (lives, "Leases"),
            lives = customs => (lives, "sources in the cluster"),
        };
        if lives {
            return Ok(());
        }
        let words =
            format!("the task of the {subject} ended, which is a bug in rhumb; a restart loses nothing");
        Err(CommandError::new(ErrorClass::Internal, words))
    }

    /// Releases all Leases at once, so that another replica need not wait for their end. Takes no
    /// longer than this.
    pub(super) async fn end(self, most: Duration) {
        if let Some(leases) = self.leases.into_inner()
            && tokio::time::timeout(LEASE_RELEASE_TIMEOUT.min(most), leases.end()).await.is_err()
        {
            tracing::warn!("the Leases were not released in time: they expire by themselves");
        }
    }
}
