//! The sources that this replica serves: one Lease for each source, one for the replica itself.
//!
//! Renews, takes and lets go of Leases as [`LeaseShares`] says. A Lease that is let go is released
//! only when the loop has ended that served it.
//!
//! The Lease of a source that this replica is not to serve any more is removed instead. Removing is
//! a release: the holder alone does it, in the version that it wrote last, when none of its writes
//! can be in flight. A replica with another configuration that still wants the source creates the
//! Lease anew, which only one can. Leases that others hold, or held when they died, are never
//! removed: it is not known whether they are wanted.
//!
//! **Invariant:** a loop serves a source only under one unbroken tenure. A loop's facts may be long
//! out of date once the Lease was anybody else's, or nobody's. The Lease is taken again only when
//! that loop has ended.
//!
//! **Invariant:** the term of a source never exceeds that of its last answered renewal, counted
//! from before that was sent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::reconciler::LoopQueries;
use crate::cluster::{
    Cluster, ClusterError, ClusterFault, LeaseRecord, LeaseTerms, LeaseWrite, TermStart, WriteFence,
};
use crate::engine::{LEASE_DURATION, LEASE_LIST_INTERVAL, LeaseShares, LeaseSnapshot, WRITE_TERM};
use crate::heartbeat::Heartbeat;
use crate::object::count_text;

const LOST_REASON: &str = "lost the Lease of the source: another replica holds it, or has held it";

/// Names of sources.
pub(crate) type SourceNames = BTreeSet<Arc<str>>;

/// The prefix of the Leases of sources.
pub(crate) const SOURCE_LEASE_PREFIX: &str = "rhumb-";
/// The prefix of the Leases of replicas. It is no DNS label, so no Lease of a source has such a
/// name.
const REPLICA_LEASE_PREFIX: &str = "rhumb-replica.";
/// The maximum number of concurrent writes of Leases.
const CONCURRENT_WRITES: usize = 16;
/// The time limit for the loop's answer about rollouts.
const LOOP_ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// The time for which a released Lease waits for the answers to writes in flight.
const RELEASE_DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// The time limit for one round of renewals, which the watchdog expects.
const MAX_BEAT_DURATION: Duration = Duration::from_mins(1);

/// The Leases that this replica holds. Once this is dropped, they expire.
#[derive(Debug)]
pub(crate) struct Leases {
    terms: LeaseTerms,
    wish: watch::Sender<SourceNames>,
    runs: watch::Sender<SourceNames>,
    share: watch::Receiver<SourceNames>,
    stop: CancellationToken,
    keeper: JoinHandle<()>,
}

impl Leases {
    /// Starts to keep Leases in a namespace, at first of no source. `running` gives the loop that
    /// is asked about rollouts: the Lease of a source that rolls out is not given to another
    /// replica.
    pub(crate) fn keep(
        cluster: Cluster,
        namespace: &str,
        running: watch::Receiver<Option<LoopQueries>>,
    ) -> Self {
        let (wish, wished) = watch::channel(SourceNames::new());
        let (runs, run) = watch::channel(SourceNames::new());
        let (published, share) = watch::channel(SourceNames::new());
        let (terms, stop) = (LeaseTerms::default(), CancellationToken::new());
        let own: Arc<str> = process_identity().into();
        let heartbeat = cluster.heartbeats().expect_part("the Leases", MAX_BEAT_DURATION);
        let keeper = LeaseKeeper {
            cluster,
            namespace: namespace.to_owned(),
            shares: LeaseShares::new(&own),
            own,
            terms: terms.clone(),
            wished,
            run,
            published,
            running,
            records: BTreeMap::new(),
            leaving: SourceNames::new(),
            lapsed: SourceNames::new(),
            own_renewed: None,
            failure_log: LeaseFailureLog::default(),
            heartbeat,
        };
        let keeper = tokio::spawn(keeper.keep(stop.clone()));
        Self { terms, wish, runs, share, stop, keeper }
    }

    /// Sets the sources that any replica should serve.
    pub(crate) fn set_wanted_sources(&self, sources: SourceNames) {
        self.wish.send_if_modified(|known| {
            let changed = *known != sources;
            *known = sources;
            changed
        });
    }

    /// Returns the wanted sources that this replica may serve now.
    pub(crate) fn share(&self) -> SourceNames {
        self.share.borrow().intersection(&self.wish.borrow()).cloned().collect()
    }

    /// Waits until this replica may serve other sources than these. Returns false once the Leases
    /// are no longer kept.
    pub(crate) async fn wait_for_change(&self, serving: &SourceNames) -> bool {
        let mut share = self.share.clone();
        let differs = |share: &SourceNames| share.intersection(&self.wish.borrow()).ne(serving.iter());
        share.wait_for(differs).await.is_ok()
    }

    /// Sets the sources that the loop serves. A Lease is released only when its source is no longer
    /// among them.
    pub(crate) fn set_served_sources(&self, sources: SourceNames) {
        self.runs.send_replace(sources);
    }

    /// Returns the terms of all sources, as they are at any moment.
    pub(crate) fn lease_terms(&self) -> LeaseTerms {
        self.terms.clone()
    }

    /// Returns the fence around all writes of a loop that serves these sources.
    pub(crate) fn fence(&self, sources: &SourceNames) -> WriteFence {
        self.terms.new_fence(sources.iter().cloned())
    }

    /// Releases all, once no loop runs any more.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        let _ = self.keeper.await;
    }
}

struct LeaseKeeper {
    cluster: Cluster,
    namespace: String,
    own: Arc<str>,
    shares: LeaseShares,
    terms: LeaseTerms,
    wished: watch::Receiver<SourceNames>,
    run: watch::Receiver<SourceNames>,
    published: watch::Sender<SourceNames>,
    running: watch::Receiver<Option<LoopQueries>>,
    /// The Leases as they were last read or written, by name.
    records: BTreeMap<String, LeaseRecord>,
    /// The sources to release as soon as no loop serves them.
    leaving: SourceNames,
    /// The sources whose Lease was not renewed in time and is nobody else's as far as is known. The
    /// loop goes on, and writes nothing.
    lapsed: SourceNames,
    own_renewed: Option<Instant>,
    failure_log: LeaseFailureLog,
    heartbeat: Heartbeat,
}

/// The log's knowledge of Leases that cannot be read or written: it says so once.
#[derive(Debug, Default)]
struct LeaseFailureLog {
    /// Indicates whether the log says it.
    is_logged: bool,
    /// Indicates whether this round has met it.
    is_met: bool,
}

/// An answer about the Lease of a source.
struct LeaseAnswer {
    source: Arc<str>,
    /// Before it was sent.
    sent: Instant,
    tick: TermStart,
    answer: Result<LeaseRecord, ClusterError>,
}

impl LeaseKeeper {
    async fn keep(mut self, stop: CancellationToken) {
        let registered = stop.run_until_cancelled(self.announce_replica()).await;
        if let Some(registered) = registered {
            self.record_own_lease(registered);
            // Others that begin now are seen before anything is taken.
            stop.run_until_cancelled(tokio::time::sleep(LEASE_LIST_INTERVAL)).await;
        }
        while !stop.is_cancelled() {
            self.heartbeat.record(MAX_BEAT_DURATION);
            self.renew_and_list().await;
            let wake = self.shares.next_wake(Instant::now());
            tokio::select! {
                () = tokio::time::sleep_until(wake.into()) => {}
                Ok(()) = self.wished.changed() => {}
                Ok(()) = self.run.changed() => {}
                () = stop.cancelled() => {}
            }
        }
        self.release_all().await;
    }

    /// Renews the held Leases before anything else is asked.
    async fn renew_and_list(&mut self) {
        self.failure_log.is_met = false;
        self.take_and_release().await;
        self.failure_log.is_logged &= self.failure_log.is_met;
    }

    async fn take_and_release(&mut self) {
        let due = self.shares.due_renewals(Instant::now());
        let (own, saved) = futures::join!(self.announce_replica(), self.save(due));
        self.record_own_lease(own);
        self.record_saved(saved);
        self.list().await;
        let wanted = self.wished.borrow_and_update().clone();
        let moves = self.shares.next_moves(&wanted, Instant::now());
        for source in &moves.lost {
            self.terms.end(source);
            tracing::warn!(%source, "{LOST_REASON}");
        }
        for source in &moves.lapsed {
            self.terms.end(source);
            tracing::warn!(%source, "the Lease of the source was not renewed in time: nothing is written for the source until it is");
        }
        let leaving = &self.leaving;
        self.lapsed.extend(moves.lapsed.into_iter().filter(|source| !leaving.contains(source)));
        let is_own = |source: &Arc<str>| self.is_last_holder(source);
        for source in self.lapsed.iter().filter(|source| wanted.contains(*source) && !is_own(source)) {
            tracing::warn!(%source, "{LOST_REASON}");
        }
        let lapsed = self.lapsed.iter().filter(|source| wanted.contains(*source) && is_own(source));
        self.lapsed = lapsed.cloned().collect();
        self.leaving.extend(moves.leave);
        self.leaving.retain(|source| self.shares.has_lease(source));
        self.publish();
        let taken = self.save(self.unserved_sources(moves.take)).await;
        self.record_saved(taken);
        if moves.surplus > 0 {
            self.choose_surplus(moves.surplus).await;
        }
        self.publish();
        self.release().await;
        for id in moves.stale_replicas {
            if let Some(record) = self.records.get(&format!("{REPLICA_LEASE_PREFIX}{id}")) {
                let removed = self.cluster.delete_lease(&self.namespace, record).await;
                tracing::debug!(replica = %id, "is long gone: {removed:?}");
            }
        }
    }

    /// Returns whether the Lease of a source, as it was last read or written, names this replica.
    fn is_last_holder(&self, source: &str) -> bool {
        let record = self.records.get(&format!("{SOURCE_LEASE_PREFIX}{source}"));
        record.is_some_and(|record| record.holder.as_ref() == Some(&self.own))
    }

    /// Returns the sources that no loop of this process writes for: one whose Lease lapsed is not
    /// written for, although its loop runs.
    fn unserved_sources(&self, sources: Vec<Arc<str>>) -> Vec<Arc<str>> {
        let run = self.run.borrow();
        let is_free = |source: &Arc<str>| self.lapsed.contains(source) || !run.contains(source);
        sources.into_iter().filter(is_free).collect()
    }

    /// Publishes the sources that the loop may serve.
    fn publish(&self) {
        let held = self.shares.held_sources().filter(|source| !self.leaving.contains(*source));
        let share: SourceNames = held.chain(&self.lapsed).cloned().collect();
        self.published.send_if_modified(|known| {
            if *known == share {
                return false;
            }
            let names = |all: &SourceNames, others: &SourceNames| {
                let names: Vec<&str> = all.difference(others).map(|name| &**name).collect();
                names.join(", ")
            };
            let (taken, left) = (names(&share, known), names(known, &share));
            tracing::info!(%taken, %left, "serves {} by Lease", count_text(share.len(), "source"));
            *known = share;
            true
        });
    }

    /// Lists all Leases.
    async fn list(&mut self) {
        match self.cluster.list_leases(&self.namespace).await {
            Ok(found) => self.record_leases(found),
            Err(error) if *error.fault() == ClusterFault::NoObject => {}
            Err(error) => self.log_lease_error(&error),
        }
    }

    fn record_leases(&mut self, found: Vec<LeaseRecord>) {
        let (mut sources, mut replicas) = (BTreeMap::new(), BTreeMap::new());
        for record in &found {
            let (holder, renewed) = (record.holder.clone(), record.renewed.clone());
            let mark = LeaseSnapshot { holder, renewed, duration: record.duration };
            if let Some(id) = record.name.strip_prefix(REPLICA_LEASE_PREFIX) {
                replicas.insert(id.into(), mark);
            } else if let Some(source) = record.name.strip_prefix(SOURCE_LEASE_PREFIX) {
                sources.insert(source.into(), mark);
            }
        }
        self.shares.update(sources, replicas, Instant::now());
        self.records = found.into_iter().map(|record| (record.name.clone(), record)).collect();
    }

    fn log_lease_error(&mut self, error: &ClusterError) {
        self.failure_log.is_met = true;
        if std::mem::replace(&mut self.failure_log.is_logged, true) {
            tracing::debug!("the Leases cannot be read or written: {error}");
        } else {
            tracing::warn!("the Leases cannot be read or written: {error}");
        }
    }

    /// Takes or renews Leases.
    async fn save(&self, sources: Vec<Arc<str>>) -> Vec<LeaseAnswer> {
        let (cluster, namespace, records, own) = (&self.cluster, &self.namespace, &self.records, &self.own);
        let answers = futures::stream::iter(sources).map(|source| async move {
            let name = format!("{SOURCE_LEASE_PREFIX}{source}");
            let (sent, tick) = (Instant::now(), LeaseTerms::tick());
            let tenure = LeaseWrite::Renew(own, LEASE_DURATION);
            let answer = cluster.save_lease(namespace, &name, records.get(&name), tenure).await;
            LeaseAnswer { source, sent, tick, answer }
        });
        answers.buffer_unordered(CONCURRENT_WRITES).collect().await
    }

    fn record_saved(&mut self, all: Vec<LeaseAnswer>) {
        for LeaseAnswer { source, sent, tick, answer } in all {
            self.record_renewal(&source, sent, tick, answer);
        }
    }

    fn record_renewal(
        &mut self,
        source: &Arc<str>,
        sent: Instant,
        tick: TermStart,
        answer: Result<LeaseRecord, ClusterError>,
    ) {
        match answer {
            Ok(record) => {
                self.records.insert(record.name.clone(), record);
                // An answer that came too late gives nothing: another may have it.
                if sent.elapsed() < WRITE_TERM {
                    self.shares.note_renewal(source, sent);
                    self.lapsed.remove(source);
                    self.terms.extend(source, tick, WRITE_TERM);
                }
            }
            // The next list shows its new holder.
            Err(error) if *error.fault() == ClusterFault::VersionConflict => {}
            Err(error) => self.log_lease_error(&error),
        }
    }

    /// Renews the replica's own Lease where that is due.
    async fn announce_replica(&self) -> Option<Result<LeaseRecord, ClusterError>> {
        let renewed = self.own_renewed.map(|renewed| renewed.elapsed());
        if renewed.is_some_and(|since| since < LEASE_LIST_INTERVAL * 2) {
            return None;
        }
        let name = format!("{REPLICA_LEASE_PREFIX}{}", self.own);
        let tenure = LeaseWrite::Renew(&self.own, LEASE_DURATION);
        Some(self.cluster.save_lease(&self.namespace, &name, self.records.get(&name), tenure).await)
    }

    fn record_own_lease(&mut self, answer: Option<Result<LeaseRecord, ClusterError>>) {
        match answer {
            Some(Ok(record)) => {
                self.records.insert(record.name.clone(), record);
                self.own_renewed = Some(Instant::now());
            }
            Some(Err(error)) if *error.fault() != ClusterFault::VersionConflict => {
                self.log_lease_error(&error);
            }
            Some(Err(_)) | None => {}
        }
    }

    /// Chooses the sources that other replicas take over.
    async fn choose_surplus(&mut self, surplus: usize) {
        let queries = self.running.borrow().clone();
        let Some(queries) = queries else { return };
        let status = tokio::time::timeout(LOOP_ANSWER_TIMEOUT, queries.status()).await;
        let Ok(Some(status)) = status else { return };
        let rolling = status.rollout.rolling.iter().filter_map(|roll| roll.source.as_deref());
        let busy = rolling.map(Into::into).collect();
        for source in self.shares.surplus_leases(surplus, &busy) {
            self.shares.offer_lease(&source);
            self.leaving.insert(source);
        }
    }

    /// Releases the Leases of sources that no loop serves any more.
    async fn release(&mut self) {
        let run = self.run.borrow_and_update().clone();
        let free: Vec<Arc<str>> = self.leaving.difference(&run).cloned().collect();
        let wished = self.wished.borrow().clone();
        self.open(free, &wished).await;
    }

    /// Releases Leases; those of sources that no configuration wants are deleted.
    async fn open(&mut self, sources: Vec<Arc<str>>, wished: &SourceNames) {
        for source in &sources {
            self.terms.end(source);
            self.shares.note_loss(source);
            self.leaving.remove(source);
        }
        // An Event may be on its way: the loop has ended, and whoever writes Events has not.
        self.terms.wait_until_idle(&sources, RELEASE_DRAIN_TIMEOUT).await;
        // An unanswered write may still be carried out; then the Lease runs out, which takes
        // longer.
        let sure = |source: &Arc<str>| !self.terms.is_write_unanswered(source, LEASE_DURATION);
        let sources: Vec<_> = sources.into_iter().filter(sure).collect();
        let (cluster, namespace, records) = (&self.cluster, &self.namespace, &self.records);
        let answers = futures::stream::iter(sources).map(|source| async move {
            let name = format!("{SOURCE_LEASE_PREFIX}{source}");
            let record = records.get(&name)?;
            if wished.contains(&source) {
                let opened = cluster.save_lease(namespace, &name, Some(record), LeaseWrite::Release).await;
                return Some((name, opened.map(Some)));
            }
            let removed = cluster.delete_lease(namespace, record).await;
            Some((name, removed.map(|()| None)))
        });
        let answers: Vec<_> = answers.buffer_unordered(CONCURRENT_WRITES).collect().await;
        for (name, answer) in answers.into_iter().flatten() {
            match answer {
                Ok(Some(record)) => drop(self.records.insert(name, record)),
                Ok(None) => drop(self.records.remove(&name)),
                Err(error) => tracing::debug!("a Lease was not released, and expires by itself: {error}"),
            }
        }
    }

    async fn release_all(&mut self) {
        let held: Vec<Arc<str>> = self.shares.held_sources().cloned().collect();
        // The configuration is the same as before: somebody serves them soon.
        let all = held.iter().cloned().collect();
        self.open(held, &all).await;
        if let Some(record) = self.records.get(&format!("{REPLICA_LEASE_PREFIX}{}", self.own)) {
            let removed = self.cluster.delete_lease(&self.namespace, record).await;
            tracing::debug!("the replica's own Lease: {removed:?}");
        }
    }
}

/// Returns the identity of this process: the host's name, which in a pod is the pod's, and a random
/// number.
fn process_identity() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().to_lowercase();
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let host: String = host.chars().map(plain).take(63).collect();
    let host = host.trim_matches('-');
    let host = if host.is_empty() { "replica" } else { host };
    format!("{host}.{:012x}", super::random_fraction().to_bits() & 0xffff_ffff_ffff)
}

#[cfg(test)]
mod tests;
