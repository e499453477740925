//! The observed pods of one workload, and their state as a whole.
//!
//! **Invariant:** knows no server and no clock; changes and times are arguments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use super::super::informer::InformerChange;
use super::decoder::{PodRecord, RevisionRecord, WorkloadRecord};
use super::warnings::WarningEvent;
use crate::engine::{
    ContainerFailure, FailedPod, PodCreationFailure, PodFacts, Readiness, ReplicaSetFacts, Uid,
    UnschedulablePod, WorkloadPods, is_pull_failure,
};

/// The kind of controller that keeps the pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodController {
    /// Keeps `ReplicaSets`, which keep the pods.
    Deployment,
    /// Keeps its pods, and names the newest revision in its status.
    StatefulSet,
    /// Keeps its pods, and numbers its revisions.
    DaemonSet,
}

/// The objects that one informer has reported.
struct InformerCache<R> {
    objects: BTreeMap<Arc<str>, R>,
    /// During a list: what it has not shown yet.
    unseen: Option<BTreeSet<Arc<str>>>,
    /// Indicates whether a list has ended.
    synced: bool,
}

impl<R> Default for InformerCache<R> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), unseen: None, synced: false }
    }
}

impl<R> InformerCache<R> {
    /// Takes over one change. Returns the records that it removed or replaced.
    fn take(&mut self, change: InformerChange<R>) -> Vec<(Arc<str>, R)> {
        match change {
            InformerChange::Init => self.unseen = Some(self.objects.keys().cloned().collect()),
            InformerChange::Apply(id, record) => {
                if let Some(unseen) = &mut self.unseen {
                    unseen.remove(id.name());
                }
                let name: Arc<str> = id.name().into();
                let before = self.objects.insert(name.clone(), record);
                return before.map(|before| (name, before)).into_iter().collect();
            }
            InformerChange::Delete(id, _) => {
                return self.objects.remove_entry(id.name()).into_iter().collect();
            }
            InformerChange::InitDone => {
                self.synced = true;
                let unseen = self.unseen.take().unwrap_or_default();
                return unseen.iter().filter_map(|name| self.objects.remove_entry(name)).collect();
            }
            InformerChange::Failed(..) | InformerChange::Resumed => {}
        }
        Vec::new()
    }
}

/// The history of a pod, which only watching shows.
#[derive(Clone, Debug)]
struct PodHistory {
    /// The time at which it was first seen.
    first: Instant,
    /// Restarts from before it was watched.
    old_restarts: u32,
    /// The time since which it is Ready, without a break or a restart.
    steady: Option<Instant>,
    /// The time since which a container has the trouble that it has now.
    container_failure: Option<Instant>,
    /// The time since which no node takes it.
    unschedulable: Option<Instant>,
    /// The time at which it ended in failure; none where that was before it was watched.
    failed: Option<Instant>,
}

/// One pod, with the facts that only watching shows.
#[derive(Clone, Debug)]
struct ObservedPod {
    record: PodRecord,
    history: PodHistory,
}

/// Indicates whether an object comes with the first list, and so is older than the watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ObjectArrival {
    WithFirstList,
    AfterFirstList,
}

impl ObservedPod {
    fn new(record: PodRecord, coming: ObjectArrival, now: Instant) -> Self {
        let is_old = coming == ObjectArrival::WithFirstList;
        let mark = PodHistory {
            first: now,
            old_restarts: if is_old { record.restarts } else { 0 },
            steady: (record.ready == Readiness::Ready).then_some(now),
            container_failure: record.container_failure.is_some().then_some(now),
            unschedulable: record.unschedulable.is_some().then_some(now),
            failed: record.failed.as_ref().filter(|_| !is_old).map(|_| now),
        };
        Self { record, history: mark }
    }

    /// Returns the same pod, seen again.
    fn update(self, record: PodRecord, now: Instant) -> Self {
        let (before, old) = (self.record, self.history);
        let is_ready = record.ready == Readiness::Ready;
        // Another time of readiness proves a moment in which it was not Ready, even if that was not
        // seen.
        let went_on = before.restarts >= record.restarts && before.ready_at == record.ready_at;
        let same_trouble = match (&before.container_failure, &record.container_failure) {
            (Some([container, reason, _]), Some([now, new_reason, _])) => {
                let both_pull = is_pull_failure(reason) && is_pull_failure(new_reason);
                container == now && (reason == new_reason || both_pull)
            }
            _ => false,
        };
        let mark = PodHistory {
            first: old.first,
            old_restarts: old.old_restarts.min(record.restarts),
            steady: is_ready.then(|| old.steady.filter(|_| went_on).unwrap_or(now)),
            container_failure: record
                .container_failure
                .as_ref()
                .map(|_| old.container_failure.filter(|_| same_trouble).unwrap_or(now)),
            unschedulable: record.unschedulable.as_ref().map(|_| old.unschedulable.unwrap_or(now)),
            failed: if before.failed.is_some() { old.failed } else { record.failed.as_ref().map(|_| now) },
        };
        // The reason of a failure stays known while the pod is deleted for it.
        let failed = record.failed.clone().or(before.failed);
        Self { record: PodRecord { failed, ..record }, history: mark }
    }

    fn pod_facts(&self, name: &Arc<str>, revision: Option<Arc<str>>) -> PodFacts {
        let (pod, mark) = (&self.record, &self.history);
        let container_failure = pod.container_failure.clone().zip(mark.container_failure);
        let unschedulable = pod.unschedulable.clone().zip(mark.unschedulable);
        PodFacts {
            name: name.clone(),
            uid: pod.uid.clone(),
            rv: pod.rv,
            revision,
            node: pod.node.clone(),
            ready: pod.ready,
            steady_since: mark.steady,
            restarts: pod.restarts,
            new_restarts: pod.restarts.saturating_sub(mark.old_restarts),
            restarted: pod.restarted.clone(),
            container_failure: container_failure.map(|([container, reason, message], since)| {
                ContainerFailure { container, reason, message, since }
            }),
            failure: pod.failed.clone().map(|[reason, message]| FailedPod {
                reason,
                message,
                seen: mark.failed,
            }),
            has_ended: pod.has_ended,
            terminating: pod.terminating,
            unschedulable: unschedulable.map(|(message, since)| UnschedulablePod { message, since }),
            unready: pod.unready.clone(),
        }
    }
}

/// The workload store: everything that informers have shown of one workload.
pub(super) struct WorkloadStore {
    controller: PodController,
    uid: Uid,
    workload: InformerCache<WorkloadRecord>,
    sets: InformerCache<RevisionRecord>,
    pods: InformerCache<ObservedPod>,
    warnings: InformerCache<(WarningEvent, Instant)>,
    /// The newest revision at a generation, by a list that was asked for after that generation was
    /// observed.
    listed: Option<(i64, Option<RevisionRecord>)>,
    /// The generation and revision that the Deployment's own count has confirmed.
    confirmed: Option<(i64, u64)>,
    /// The newest revision that was last reported.
    newest: Option<Arc<str>>,
    /// The last pod that ended in failure and is gone.
    lost: Option<PodFacts>,
    refused_since: Option<Instant>,
}

impl WorkloadStore {
    pub(super) fn new(controller: PodController, uid: Uid) -> Self {
        Self {
            controller,
            uid,
            workload: InformerCache::default(),
            sets: InformerCache::default(),
            pods: InformerCache::default(),
            warnings: InformerCache::default(),
            listed: None,
            confirmed: None,
            newest: None,
            lost: None,
            refused_since: None,
        }
    }

    pub(super) fn apply_workload(&mut self, change: InformerChange<WorkloadRecord>) {
        self.workload.take(change);
    }

    pub(super) fn apply_replica_set(&mut self, change: InformerChange<RevisionRecord>) {
        self.sets.take(change);
    }

    /// Takes an Event about the workload. `wall` is the time of day, in seconds since 1970. The
    /// times of Events are those that their writers chose, and one in the future would be the last
    /// for ever.
    pub(super) fn apply_warning(&mut self, change: InformerChange<WarningEvent>, now: Instant, wall: i64) {
        let bounded = |warning: WarningEvent| WarningEvent { at: warning.at.min(wall), ..warning };
        self.warnings.take(map_change(change, |_, warning| (bounded(warning), now)));
    }

    pub(super) fn apply_pod(&mut self, change: InformerChange<PodRecord>, now: Instant) {
        let coming =
            if self.pods.synced { ObjectArrival::AfterFirstList } else { ObjectArrival::WithFirstList };
        let known = &self.pods.objects;
        let change = map_change(change, |name, record| match known.get(name) {
            Some(seen) if seen.record.uid == record.uid => seen.clone().update(record, now),
            _ => ObservedPod::new(record, coming, now),
        });
        let there =
            if let InformerChange::Apply(_, seen) = &change { Some(seen.record.uid.clone()) } else { None };
        for (name, seen) in self.pods.take(change) {
            let is_gone = there.as_ref() != Some(&seen.record.uid);
            let revision = self.revision(&seen.record);
            if is_gone && seen.history.failed.is_some() && revision.is_some() {
                self.lost = Some(seen.pod_facts(&name, revision));
            }
        }
    }

    /// Returns the generation for which the newest revision must be looked up, if that is to be
    /// done.
    pub(super) fn wanted_lookup(&self) -> Option<i64> {
        let workload = self.current_workload().filter(|workload| workload.observed)?;
        let known = self.listed.as_ref().map(|(generation, _)| *generation);
        let needed = self.controller != PodController::StatefulSet && known != Some(workload.generation);
        needed.then_some(workload.generation)
    }

    /// Takes over what a list of all revisions has shown, asked for after the generation was
    /// observed.
    pub(super) fn set_revisions(&mut self, generation: i64, revisions: Vec<RevisionRecord>) {
        let template = self.current_workload().and_then(|workload| workload.template);
        let own = revisions.into_iter().filter(|revision| revision.owner.as_ref() == Some(&self.uid));
        // A `ControllerRevision` has any number that its writer gives it. The controller goes by the
        // one of the template that the workload has now.
        let rank = |revision: &RevisionRecord| {
            (template.is_some() && revision.template == template, revision.number)
        };
        let newest = own.max_by_key(rank);
        self.listed = Some((generation, newest));
    }

    /// Returns whether pods are missing, so that the words of the controller matter.
    pub(super) fn is_short(&self) -> bool {
        let known = self.current_workload().filter(|_| self.pods.synced);
        known.is_some_and(|workload| {
            let there = self.pods.objects.values().filter(|seen| self.is_own(&seen.record));
            (there.filter(|seen| !seen.record.has_ended).count() as u32) < workload.desired
        })
    }

    /// Returns whether pods are missing that the controller would create at once: only a refusal
    /// keeps it from that.
    ///
    /// A StatefulSet may have its pods made one after another, each once all before it are
    /// available.
    fn is_creation_overdue(&self) -> bool {
        let there = || {
            let own = self.pods.objects.values().filter(|seen| self.is_own(&seen.record));
            own.filter(|seen| !seen.record.has_ended)
        };
        let is_serving = || {
            let available = self.current_workload().map_or(0, |workload| workload.available);
            available >= there().count() as u32 && there().all(|seen| seen.record.ready == Readiness::Ready)
        };
        self.is_short() && (self.controller != PodController::StatefulSet || is_serving())
    }

    /// Returns whether the controller has created a pod after this time: it goes on.
    fn has_created_since(&self, since: Instant) -> bool {
        self.controller != PodController::Deployment
            && self.pods.objects.values().any(|seen| self.is_own(&seen.record) && seen.history.first > since)
    }

    /// Returns all pods, as soon as everything was listed once and the workload is there.
    pub(super) fn view(&mut self, now: Instant) -> Option<WorkloadPods> {
        let sets = self.controller != PodController::Deployment || self.sets.synced;
        if !(sets && self.pods.synced && self.workload.synced) {
            return None;
        }
        let newest = self.find_newest();
        if newest.is_some() && newest != self.newest {
            // A loss or refusal of another revision counts no more.
            if self.newest.is_some() {
                self.lost = None;
                self.warnings.objects.clear();
            }
            self.newest.clone_from(&newest);
        }
        let message = self.creation_refusal();
        let refused_since = self.refused_since.filter(|since| !self.has_created_since(*since));
        self.refused_since = message.as_ref().map(|_| refused_since.unwrap_or(now));
        let creation_failure =
            message.zip(self.refused_since).map(|(message, since)| PodCreationFailure { message, since });
        let rv = self.workload.objects.values().next()?.rv;
        let mut pods: Vec<(i64, PodFacts)> = Vec::new();
        for (name, seen) in &self.pods.objects {
            if self.is_own(&seen.record) {
                pods.push((seen.record.created, seen.pod_facts(name, self.revision(&seen.record))));
            }
        }
        pods.sort_by_key(|(created, _)| *created);
        let last_failed =
            self.lost.clone().filter(|pod| newest.is_some() && pod.revision == newest).map(Box::new);
        let known = self.current_workload().filter(|workload| workload.observed);
        let current = known.and_then(|workload| workload.current_revision.clone());
        let pods = pods.into_iter().map(|(_, pod)| pod).collect();
        Some(WorkloadPods {
            rv,
            newest,
            current,
            pods,
            sets: self.active_sets(),
            last_failed,
            creation_failure,
        })
    }

    /// Returns the `ReplicaSets` of this Deployment that ask for pods.
    fn active_sets(&self) -> Box<[ReplicaSetFacts]> {
        let is_asking = |set: &RevisionRecord| set.owner.as_ref() == Some(&self.uid) && set.wanted > 0;
        let sets = self.sets.objects.iter().filter(|(_, set)| is_asking(set));
        let facts = sets.map(|(name, set)| ReplicaSetFacts {
            name: name.clone(),
            uid: set.uid.clone(),
            rv: set.rv,
            revision: set.hash.clone(),
            wanted: set.wanted,
            available: set.available,
        });
        facts.collect()
    }

    /// Returns the workload, in the incarnation that is followed.
    fn current_workload(&self) -> Option<&WorkloadRecord> {
        self.workload.objects.values().find(|workload| workload.uid == self.uid)
    }

    /// Returns the ReplicaSet that keeps a pod, if it is one of this Deployment's.
    fn replica_set_of(&self, pod: &PodRecord) -> Option<&RevisionRecord> {
        self.owned_sets().find(|set| pod.owner.as_ref() == Some(&set.uid))
    }

    fn owned_sets(&self) -> impl Iterator<Item = &RevisionRecord> {
        self.sets.objects.values().filter(|set| set.owner.as_ref() == Some(&self.uid))
    }

    /// Returns whether a pod is the workload's own: labels may match the pods of others, ownership
    /// does not.
    fn is_own(&self, pod: &PodRecord) -> bool {
        match self.controller {
            PodController::Deployment => self.replica_set_of(pod).is_some(),
            PodController::StatefulSet | PodController::DaemonSet => pod.owner.as_ref() == Some(&self.uid),
        }
    }

    fn revision(&self, pod: &PodRecord) -> Option<Arc<str>> {
        match self.controller {
            PodController::Deployment => self.replica_set_of(pod)?.hash.clone(),
            PodController::StatefulSet | PodController::DaemonSet if self.is_own(pod) => pod.revision.clone(),
            PodController::StatefulSet | PodController::DaemonSet => None,
        }
    }

    fn find_newest(&mut self) -> Option<Arc<str>> {
        let workload = self.current_workload().filter(|workload| workload.observed)?.clone();
        match self.controller {
            PodController::StatefulSet => workload.update_revision,
            PodController::DaemonSet => self.newest_revision(workload.generation)?.hash.clone(),
            PodController::Deployment => self.newest_replica_set(&workload)?.hash.clone(),
        }
    }

    fn newest_revision(&self, generation: i64) -> Option<&RevisionRecord> {
        let (at, revision) = self.listed.as_ref()?;
        revision.as_ref().filter(|_| *at == generation)
    }

    /// Returns the ReplicaSet that a Deployment rolls out.
    ///
    /// A list from after the generation was observed shows every ReplicaSet that was renumbered for
    /// it. But a change that also scales is observed before its ReplicaSet is made. Only then does
    /// the count of updated pods belong to the newest one that there is. Of equal numbers the count
    /// decides: after an overflow the controller gives one number again and again.
    fn newest_replica_set(&mut self, workload: &WorkloadRecord) -> Option<RevisionRecord> {
        let listed = self.newest_revision(workload.generation)?.number;
        let best = self.owned_sets().max_by_key(|set| (set.number, set.replicas == workload.updated));
        let best = best.filter(|set| set.number >= listed)?.clone();
        let key = (workload.generation, best.number);
        if self.confirmed != Some(key) {
            if best.replicas != workload.updated {
                return None;
            }
            self.confirmed = Some(key);
        }
        Some(best)
    }

    /// Returns why pods cannot be created, in the controller's words.
    ///
    /// The status of its ReplicaSet has those of a Deployment. Other controllers say it in Events
    /// alone, and many clients may write Events. So these only say why pods are missing that
    /// should be there by now, as the pods and the workload show.
    fn creation_refusal(&mut self) -> Option<Arc<str>> {
        if self.controller == PodController::Deployment {
            let workload = self.current_workload().filter(|workload| workload.observed)?.clone();
            return self.newest_replica_set(&workload)?.refused;
        }
        if !self.is_creation_overdue() {
            return None;
        }
        let own = || self.pods.objects.values().filter(|seen| self.is_own(&seen.record));
        // A pod that was created later shows that it went on.
        let went_on = |warning: &WarningEvent, heard: Instant| {
            own().any(|seen| {
                let created = seen.record.created;
                created > warning.at || (created == warning.at && seen.history.first > heard)
            })
        };
        let current = self.warnings.objects.values().filter(|(warning, heard)| {
            warning.about == self.uid && &*warning.reason == "FailedCreate" && !went_on(warning, *heard)
        });
        current
            .max_by_key(|(warning, heard)| (warning.at, *heard))
            .map(|(warning, _)| warning.message.clone())
    }
}

/// Returns the same change with another record.
fn map_change<A, B>(change: InformerChange<A>, make: impl FnOnce(&str, A) -> B) -> InformerChange<B> {
    match change {
        InformerChange::Apply(id, record) => {
            let record = make(id.name(), record);
            InformerChange::Apply(id, record)
        }
        InformerChange::Init => InformerChange::Init,
        InformerChange::Delete(id, rv) => InformerChange::Delete(id, rv),
        InformerChange::InitDone => InformerChange::InitDone,
        InformerChange::Failed(error, wait) => InformerChange::Failed(error, wait),
        InformerChange::Resumed => InformerChange::Resumed,
    }
}
