//! Sources in the cluster: their list, and the status of each.
//!
//! They are listed at an interval. A list that fails changes nothing: the known sources go on being
//! followed. A process that takes a source over lists anew first. By its older list it might create
//! what another replica has deleted for good.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio_util::task::AbortOnDropHandle;

use super::reconciler::LoopQueries;
use crate::cluster::{Cluster, ClusterFault, CustomSourceVersion};
use crate::config::{
    CONFIG_API_VERSION, CustomSource, CustomSourcePolicy, FinalizerState, SOURCE_FINALIZER, custom_path,
};
use crate::object::{ErrorClass, count_text};
use crate::report::{DaemonStatus, Phase, RemainingObjects, SourceCondition, is_ready, updated_status};

/// The interval of listing and of status updates.
const LIST_INTERVAL: Duration = Duration::from_secs(2);

/// A loop that is younger has not seen everything yet: what was well before is not reported to be
/// otherwise by it.
const WARM_UP_PERIOD: SignedDuration = SignedDuration::from_secs(10);

/// The time limit of a list that somebody waits for.
const LIST_TIMEOUT: Duration = Duration::from_secs(2);

/// The reason word of a source that could not be opened.
const FAILED_REASON: &str = "Failed";

/// The pause before a finalizer that may not be written is tried again.
const FINALIZER_RETRY_DELAY: Duration = Duration::from_secs(15);

/// The kind of source that a status is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusTargetKind {
    /// The source in the cluster itself.
    ClusterSource,
    /// A source of the file with the same name: none of its objects is deleted for the one in the
    /// cluster.
    FileSource,
}

/// The status target: the status that this process reports for a source in the cluster.
#[derive(Clone, Debug)]
pub(crate) struct StatusTarget {
    /// The incarnation that it is about: another one of the same name is begun with a loop of its
    /// own.
    pub uid: String,
    /// The generation of the spec that is followed.
    pub generation: i64,
    /// The reason for which it is not followed, in a word and in a sentence.
    pub unusable: Option<(&'static str, String)>,
    /// The kind of source.
    pub kind: StatusTargetKind,
    /// The cluster, written only as long as the source is this process's.
    pub cluster: Cluster,
}

impl StatusTarget {
    fn finalizer_state(&self, custom: &CustomSource) -> FinalizerState {
        match self.kind {
            StatusTargetKind::ClusterSource => custom.finalizer_state(),
            StatusTargetKind::FileSource if custom.is_waiting_for_deletion() => FinalizerState::Unneeded,
            StatusTargetKind::FileSource => FinalizerState::Correct,
        }
    }
}

/// The status targets, by source.
pub(crate) type StatusTargets = BTreeMap<Arc<str>, StatusTarget>;

/// The sources in the cluster. Once dropped, they are not listed any more.
#[derive(Debug)]
pub(crate) struct CustomSourceWatch {
    known: watch::Receiver<Vec<CustomSource>>,
    status_targets: watch::Sender<StatusTargets>,
    /// The time of the last list that was answered.
    listed: watch::Receiver<Option<Instant>>,
    nudge: Arc<Notify>,
    _follower: AbortOnDropHandle<()>,
}

impl CustomSourceWatch {
    /// Begins to follow those of a namespace.
    pub(crate) fn follow(
        cluster: Cluster,
        namespace: &str,
        allowed: CustomSourcePolicy,
        running: watch::Receiver<Option<LoopQueries>>,
    ) -> Self {
        let (published, known) = watch::channel(Vec::new());
        let (status_targets, status_target) = watch::channel(StatusTargets::new());
        let (seen, listed) = watch::channel(None);
        let nudge = Arc::new(Notify::new());
        let follower = CustomSourceWatcher {
            cluster,
            namespace: namespace.to_owned(),
            path: custom_path(namespace),
            allowed,
            published,
            seen,
            nudge: nudge.clone(),
            status_targets: status_target,
            running,
            last_error: None,
            refused: BTreeMap::new(),
        };
        let follower = AbortOnDropHandle::new(tokio::spawn(follower.follow()));
        Self { known, status_targets, listed, nudge, _follower: follower }
    }

    /// Returns the sources known now.
    pub(crate) fn known_sources(&self) -> Vec<CustomSource> {
        self.known.borrow().clone()
    }

    /// Lists them now; returns whether there was an answer in time. The result is known then.
    pub(crate) async fn try_list_now(&self) -> bool {
        let now = Instant::now();
        self.nudge.notify_one();
        let mut listed = self.listed.clone();
        let since = listed.wait_for(|listed_at| listed_at.is_some_and(|listed_at| listed_at >= now));
        tokio::time::timeout(LIST_TIMEOUT, since).await.is_ok_and(|listed| listed.is_ok())
    }

    /// Waits until something else is known; false where they are not listed any more.
    pub(crate) async fn wait_for_change(&self, known: &[CustomSource]) -> bool {
        self.known.clone().wait_for(|newer| !is_same(newer, known)).await.is_ok()
    }

    /// Says what is to be reported by this process.
    pub(crate) fn set_status_targets(&self, status_targets: StatusTargets) {
        self.status_targets.send_replace(status_targets);
    }

    /// Records that a source cannot be followed after all.
    pub(crate) fn set_unusable(&self, source: &str, why: String) {
        self.status_targets.send_modify(|status_targets| {
            if let Some(status_target) = status_targets.get_mut(source) {
                status_target.unusable = Some((FAILED_REASON, why));
            }
        });
    }
}

/// Returns whether both ask for the same, whatever their status.
fn is_same(one: &[CustomSource], other: &[CustomSource]) -> bool {
    let asks = |custom: &CustomSource| {
        let CustomSource { name, uid, generation, config, deleted, .. } = custom;
        (name.clone(), uid.clone(), *generation, config.clone(), *deleted, custom.is_waiting_for_deletion())
    };
    one.iter().map(asks).eq(other.iter().map(asks))
}

struct CustomSourceWatcher {
    cluster: Cluster,
    namespace: String,
    path: String,
    allowed: CustomSourcePolicy,
    published: watch::Sender<Vec<CustomSource>>,
    seen: watch::Sender<Option<Instant>>,
    nudge: Arc<Notify>,
    status_targets: watch::Receiver<StatusTargets>,
    running: watch::Receiver<Option<LoopQueries>>,
    /// The reason for which they cannot be listed, as the log has it.
    last_error: Option<String>,
    /// Sources whose finalizers may not be written: since when, and why.
    refused: BTreeMap<String, (Instant, String)>,
}

/// The loop's facts about all of them.
struct CustomSourceState {
    status: DaemonStatus,
    endings: BTreeMap<Arc<str>, RemainingObjects>,
}

impl CustomSourceWatcher {
    async fn follow(mut self) {
        loop {
            if let Some(customs) = self.list().await {
                self.write_statuses(&customs).await;
            }
            tokio::select! {
                () = tokio::time::sleep(LIST_INTERVAL) => {}
                () = self.nudge.notified() => {}
            }
        }
    }

    async fn list(&mut self) -> Option<Vec<CustomSource>> {
        let listed_at = Instant::now();
        let listed = self.cluster.list_custom_sources(&self.path).await;
        let objects = match listed {
            Ok(objects) => objects,
            Err(error) => {
                let why = error.to_string();
                if self.last_error.as_ref() != Some(&why) {
                    tracing::warn!("the sources in the cluster: {why}; their last known specs stay in force");
                }
                self.last_error = Some(why);
                return None;
            }
        };
        self.last_error = None;
        let read = objects.into_iter().filter_map(|object| CustomSource::read(object, &self.allowed));
        let mut customs: Vec<CustomSource> = read.collect();
        customs.sort_by(|one, other| one.name.cmp(&other.name));
        self.published.send_if_modified(|known| {
            if is_same(known, &customs) {
                return false;
            }
            tracing::info!("{} in the cluster", count_text(customs.len(), "source"));
            for (custom, why) in
                customs.iter().filter_map(|custom| Some((custom, custom.config.as_ref().err()?)))
            {
                tracing::warn!(source = %custom.name, "it cannot be followed: {why}");
            }
            known.clone_from(&customs);
            true
        });
        self.seen.send_replace(Some(listed_at));
        Some(customs)
    }

    async fn write_statuses(&mut self, customs: &[CustomSource]) {
        let status_targets = self.status_targets.borrow().clone();
        let queries = self.running.borrow().clone();
        if status_targets.is_empty() {
            return;
        }
        let Some(queries) = queries else { return };
        let (Some(endings), Some(status)) = (queries.ending_sources().await, queries.status().await) else {
            return;
        };
        let known = CustomSourceState { status, endings };
        self.refused.retain(|name, _| status_targets.contains_key(&**name));
        for custom in customs {
            if let Some(status_target) =
                status_targets.get(&*custom.name).filter(|status_target| status_target.uid == custom.uid)
            {
                let tie = status_target.finalizer_state(custom);
                if self.set_finalizer(custom, status_target, tie, &known).await {
                    self.write_status(custom, status_target, tie, &known).await;
                }
            }
        }
    }

    /// Puts the finalizer of one right; false where it may be gone by that.
    async fn set_finalizer(
        &mut self,
        custom: &CustomSource,
        status_target: &StatusTarget,
        tie: FinalizerState,
        known: &CustomSourceState,
    ) -> bool {
        if tie == FinalizerState::KeptUntilEmpty
            && !is_empty(&custom.status, known.endings.get(&*custom.name))
        {
            return true;
        }
        let Some(finalizers) = custom.finalizers(tie) else { return true };
        let rests = |(since, _): &(Instant, String)| since.elapsed() < FINALIZER_RETRY_DELAY;
        if self.refused.get(&custom.name).is_some_and(rests) {
            return true;
        }
        let read = CustomSourceVersion { name: &custom.name, uid: &custom.uid, version: &custom.version };
        match status_target.cluster.patch_finalizers(&self.path, read, &finalizers).await {
            Ok(()) => {
                self.refused.remove(&custom.name);
                let does = if tie == FinalizerState::Missing { "has" } else { "no longer has" };
                tracing::info!(source = %custom.name, "it {does} the finalizer {SOURCE_FINALIZER}");
                tie == FinalizerState::Missing
            }
            // The next list shows what it is now.
            Err(error) if *error.fault() == ClusterFault::VersionConflict => true,
            Err(error) if matches!(error.class(), ErrorClass::Forbidden | ErrorClass::Invalid) => {
                let why = format!("its finalizer {SOURCE_FINALIZER} cannot be written: {error}");
                let earlier = self.refused.insert(custom.name.clone(), (Instant::now(), why.clone()));
                if earlier.is_none_or(|(_, earlier)| earlier != why) {
                    tracing::warn!(source = %custom.name, "{why}");
                }
                true
            }
            Err(error) => {
                tracing::debug!(source = %custom.name, "its finalizer was not written: {error}");
                true
            }
        }
    }

    async fn write_status(
        &self,
        custom: &CustomSource,
        status_target: &StatusTarget,
        tie: FinalizerState,
        known: &CustomSourceState,
    ) {
        let CustomSourceState { status, endings } = known;
        let followed = status.sources.iter().find(|source| source.name == custom.name);
        let refused = self.refused.get(&custom.name);
        let left = endings.get(&*custom.name);
        let standing = match (&status_target.unusable, tie, followed) {
            (_, FinalizerState::Missing | FinalizerState::KeptUntilEmpty | FinalizerState::Unneeded, _)
                if let Some((_, why)) = refused =>
            {
                SourceCondition::Unusable("FinalizerRefused", why)
            }
            // Its reason does not matter any more; that no process serves it does.
            (Some((reason @ FAILED_REASON, why)), FinalizerState::KeptUntilEmpty, None) => {
                SourceCondition::Unusable(reason, why)
            }
            (_, FinalizerState::KeptUntilEmpty, followed) => {
                SourceCondition::Deleting(followed.filter(|_| left.is_some()), left)
            }
            (Some((reason, why)), ..) => SourceCondition::Unusable(reason, why),
            (None, FinalizerState::Missing, _) | (None, _, None) => SourceCondition::Starting,
            (None, _, Some(followed)) => SourceCondition::Active(followed),
        };
        let Some(next) = updated_status(&custom.status, status_target.generation, standing, Timestamp::now())
        else {
            return;
        };
        let young = status.at.duration_since(status.process.since) < WARM_UP_PERIOD;
        if young
            && is_ready(&custom.status, status_target.generation)
            && !is_ready(&next, status_target.generation)
        {
            return;
        }
        let head = json!({
            "apiVersion": CONFIG_API_VERSION,
            "kind": "Source",
            "metadata": { "name": custom.name, "namespace": self.namespace },
        });
        if let Err(error) = status_target.cluster.apply_custom_source_status(&self.path, head, &next).await {
            tracing::debug!(source = %custom.name, "its status cannot be written: {error}");
        }
    }
}

/// Returns whether nothing is left to delete. Where nobody knows that any more, one that never had
/// anything has nothing.
fn is_empty(status: &Value, left: Option<&RemainingObjects>) -> bool {
    let had_none = || status["objects"].as_u64().unwrap_or_default() == 0;
    match left {
        Some(RemainingObjects::Nothing) => true,
        Some(RemainingObjects::Unknown) => had_none(),
        Some(RemainingObjects::NoInventory(_)) => had_none() || has_released_nothing(status),
        Some(RemainingObjects::Objects(_) | RemainingObjects::Unread(_)) | None => false,
    }
}

/// Returns whether none of a source's objects has ever left the phases before its first write.
fn has_released_nothing(status: &Value) -> bool {
    let before = [Phase::Waiting, Phase::Refused].map(|phase| phase.to_string());
    status["phases"].as_object().is_some_and(|phases| phases.keys().all(|phase| before.contains(phase)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_goes_once_nothing_of_it_is_left_or_it_never_had_anything() {
        let unread = || RemainingObjects::Unread("no rights".to_owned());
        let foreign = || RemainingObjects::NoInventory("it is somebody's".to_owned());
        let check = |left: Option<RemainingObjects>, status: Value, expected: bool| {
            assert_eq!(is_empty(&status, left.as_ref()), expected, "{left:?} {status}");
        };
        let none = || json!({ "objects": 0 });
        let some = || json!({ "objects": 2, "phases": { "Settled": 1, "Waiting": 1 } });
        let waiting = || json!({ "objects": 2, "phases": { "Refused": 1, "Waiting": 1 } });
        check(None, none(), false);
        check(Some(unread()), none(), false);
        check(Some(RemainingObjects::Objects(None)), none(), false);
        check(Some(RemainingObjects::Nothing), some(), true);
        check(Some(RemainingObjects::Unknown), json!({}), true);
        check(Some(RemainingObjects::Unknown), waiting(), false);
        // The object of its name was never its inventory.
        check(Some(foreign()), none(), true);
        check(Some(foreign()), waiting(), true);
        check(Some(foreign()), some(), false);
        check(Some(foreign()), json!({ "objects": 2 }), false);
    }
}
