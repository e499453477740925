use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::super::informer::InformerChange;
use super::super::decoder::{PodRecord, RevisionRecord, WorkloadRecord};
use super::super::store::{PodController, WorkloadStore};
use super::super::warnings::WarningEvent;
use crate::engine::{Readiness, ResourceVersion, Uid, WorkloadPods};
use crate::object::{ContentHash, GroupKind, ObjectId};

const SECOND: Duration = Duration::from_secs(1);

fn id(name: &str) -> ObjectId {
    ObjectId::new(&GroupKind::new("", "Any"), Some("shop"), name)
}

fn uid(text: &str) -> Uid {
    Uid(text.into())
}

fn pod(owner: &str, revision: &str) -> PodRecord {
    PodRecord {
        uid: uid("pod"),
        rv: ResourceVersion(1),
        owner: Some(uid(owner)),
        revision: Some(revision.into()),
        created: 100,
        node: None,
        ready: Readiness::NotReady,
        ready_at: "".into(),
        restarts: 0,
        restarted: None,
        container_failure: None,
        failed: None,
        has_ended: false,
        terminating: false,
        unschedulable: None,
        unready: None,
    }
}

fn ready(at: &str, restarts: u32) -> PodRecord {
    PodRecord { ready: Readiness::Ready, ready_at: at.into(), restarts, ..pod("own", "new") }
}

fn evicted() -> PodRecord {
    PodRecord { failed: Some(["Evicted".into(), "no room".into()]), has_ended: true, ..pod("own", "new") }
}

fn workload(generation: i64, observed: bool) -> WorkloadRecord {
    WorkloadRecord {
        uid: uid("own"),
        rv: ResourceVersion(10),
        generation,
        observed,
        desired: 1,
        updated: 0,
        available: 1,
        template: None,
        update_revision: Some("new".into()),
        current_revision: Some("old".into()),
    }
}

/// Returns a store of which everything is known, with these pods from the first list.
fn store(controller: PodController, pods: &[(&str, PodRecord)], now: Instant) -> WorkloadStore {
    let mut store = WorkloadStore::new(controller, uid("own"));
    store.apply_workload(InformerChange::Apply(id("web"), workload(1, true)));
    store.apply_workload(InformerChange::InitDone);
    store.apply_replica_set(InformerChange::InitDone);
    store.apply_pod(InformerChange::Init, now);
    for (name, pod) in pods {
        store.apply_pod(InformerChange::Apply(id(name), pod.clone()), now);
    }
    store.apply_pod(InformerChange::InitDone, now);
    store
}

fn set(store: &mut WorkloadStore, pods: &[(&str, PodRecord)], now: Instant) -> WorkloadPods {
    for (name, pod) in pods {
        store.apply_pod(InformerChange::Apply(id(name), pod.clone()), now);
    }
    store.view(now).unwrap()
}

#[test]
fn nothing_is_reported_before_everything_is_known() {
    let now = Instant::now();
    let mut store = WorkloadStore::new(PodController::Deployment, uid("own"));
    store.apply_workload(InformerChange::Apply(id("web"), workload(1, true)));
    assert_eq!(store.view(now), None);
    store.apply_workload(InformerChange::InitDone);
    store.apply_pod(InformerChange::InitDone, now);
    assert_eq!(store.view(now), None);
    store.apply_replica_set(InformerChange::InitDone);
    assert!(store.view(now).is_some());
    store.apply_workload(InformerChange::Delete(id("web"), ResourceVersion(11)));
    assert_eq!(store.view(now), None);
}

#[test]
fn steady_is_what_was_ready_without_a_restart_between() {
    let t = Instant::now();
    let check = |next: PodRecord, expected: Option<Instant>| {
        let mut store = store(PodController::StatefulSet, &[("web-0", ready("noon", 1))], t);
        assert_eq!(store.view(t).unwrap().pods[0].steady_since, Some(t));
        assert_eq!(set(&mut store, &[("web-0", next)], t + SECOND).pods[0].steady_since, expected);
    };
    check(ready("noon", 1), Some(t));
    check(ready("noon", 2), Some(t + SECOND));
    // It was not Ready for a moment that nobody saw.
    check(ready("one", 1), Some(t + SECOND));
    check(pod("own", "new"), None);
    check(PodRecord { uid: uid("another"), ..ready("noon", 1) }, Some(t + SECOND));
}

#[test]
fn restarts_from_before_are_distinguished() {
    let t = Instant::now();
    let mut store = store(PodController::StatefulSet, &[("web-0", ready("noon", 7))], t);
    let restarts = |pods: WorkloadPods| -> Vec<(u32, u32)> {
        pods.pods.iter().map(|pod| (pod.restarts, pod.new_restarts)).collect()
    };
    assert_eq!(restarts(store.view(t).unwrap()), [(7, 0)]);
    let later = [("web-0", ready("noon", 9)), ("web-1", PodRecord { uid: uid("other"), ..ready("noon", 2) })];
    assert_eq!(restarts(set(&mut store, &later, t)), [(9, 2), (2, 2)]);
    // A pod that a later list shows first is not older than the watch.
    store.apply_pod(InformerChange::Init, t);
    let listed = [("web-2", PodRecord { uid: uid("third"), ..ready("noon", 3) })];
    assert_eq!(restarts(set(&mut store, &listed, t)), [(9, 2), (2, 2), (3, 3)]);
    // The list has ended without the others.
    store.apply_pod(InformerChange::InitDone, t);
    assert_eq!(restarts(store.view(t).unwrap()), [(3, 3)]);
}

#[test]
fn a_trouble_has_lasted_since_its_reason_was_seen() {
    let t = Instant::now();
    let troubled = |reason: &str, message: &str| PodRecord {
        container_failure: Some(["c", reason, message].map(Arc::from)),
        ..pod("own", "new")
    };
    let mut store = store(PodController::StatefulSet, &[("web-0", troubled("RunContainerError", "1"))], t);
    let mut since = |next: PodRecord, at: Instant| {
        let pods = set(&mut store, &[("web-0", next)], at);
        pods.pods[0].container_failure.as_ref().map(|container_failure| container_failure.since)
    };
    assert_eq!(since(troubled("RunContainerError", "2"), t + SECOND), Some(t));
    assert_eq!(since(troubled("CrashLoopBackOff", "2"), t + SECOND), Some(t + SECOND));
    assert_eq!(since(pod("own", "new"), t + SECOND), None);
    assert_eq!(since(troubled("CrashLoopBackOff", "2"), t + SECOND * 2), Some(t + SECOND * 2));
    // The kubelet reports by turns that a pull has failed and that it waits for the next.
    let first = Some(t + SECOND * 3);
    assert_eq!(since(troubled("ErrImagePull", "1"), t + SECOND * 3), first);
    assert_eq!(since(troubled("ImagePullBackOff", "2"), t + SECOND * 4), first);
    assert_eq!(since(troubled("ErrImagePull", "3"), t + SECOND * 5), first);
    assert_eq!(since(troubled("RunContainerError", "4"), t + SECOND * 6), Some(t + SECOND * 6));
}

#[test]
fn a_pod_that_ended_is_remembered_when_it_is_gone() {
    let t = Instant::now();
    let ended = |pods: &WorkloadPods| {
        let of_pod = |pod: &crate::engine::PodFacts| pod.failure.as_ref().and_then(|ended| ended.seen);
        (pods.pods.first().and_then(of_pod), pods.last_failed.as_deref().and_then(of_pod))
    };
    let gone = InformerChange::Delete(id("web-0"), ResourceVersion(9));
    let mut left = store(PodController::StatefulSet, &[("web-0", evicted())], t);
    assert_eq!(ended(&left.view(t).unwrap()), (None, None), "an earlier rollout left it");
    assert_eq!(ended(&set(&mut left, &[("web-0", evicted())], t + SECOND)), (None, None));
    left.apply_pod(InformerChange::Delete(id("web-0"), ResourceVersion(9)), t);
    assert_eq!(ended(&left.view(t).unwrap()), (None, None));

    let mut store = store(PodController::StatefulSet, &[("web-0", ready("noon", 0))], t);
    assert_eq!(ended(&set(&mut store, &[("web-0", evicted())], t + SECOND)), (Some(t + SECOND), None));
    // Its controller deletes it for that.
    let leaving = PodRecord { terminating: true, failed: None, ..evicted() };
    assert_eq!(ended(&set(&mut store, &[("web-0", leaving)], t)), (Some(t + SECOND), None));
    store.apply_pod(gone, t);
    assert_eq!(ended(&store.view(t).unwrap()), (None, Some(t + SECOND)));
    let next = PodRecord { uid: uid("next"), ..pod("own", "new") };
    assert_eq!(ended(&set(&mut store, &[("web-0", next)], t)), (None, Some(t + SECOND)));
    // It was not of the next revision, nor is it when that one is taken back.
    for revision in ["newer", "new"] {
        let workload = WorkloadRecord { update_revision: Some(revision.into()), ..workload(2, true) };
        store.apply_workload(InformerChange::Apply(id("web"), workload));
        assert_eq!(ended(&store.view(t).unwrap()), (None, None));
    }
}

#[test]
fn the_newest_revision_is_unknown_until_its_controller_has_seen_it() {
    let t = Instant::now();
    let mut store = store(PodController::StatefulSet, &[], t);
    let mut check = |record: WorkloadRecord, newest: Option<&str>, current: Option<&str>| {
        store.apply_workload(InformerChange::Apply(id("web"), record));
        let view = store.view(t).unwrap();
        assert_eq!((view.newest.as_deref(), view.current.as_deref()), (newest, current));
    };
    check(workload(1, true), Some("new"), Some("old"));
    check(workload(2, false), None, None);
    check(WorkloadRecord { uid: uid("reborn"), ..workload(1, true) }, None, None);
}

fn revision(name: &str, owner: &str, number: u64, replicas: u32) -> RevisionRecord {
    RevisionRecord {
        uid: uid(name),
        owner: Some(uid(owner)),
        number,
        hash: Some(name.into()),
        rv: ResourceVersion(number),
        wanted: replicas,
        replicas,
        available: replicas,
        refused: None,
        template: None,
    }
}

#[test]
fn a_daemon_set_rolls_to_what_a_list_after_its_generation_shows() {
    let t = Instant::now();
    let mut store = store(PodController::DaemonSet, &[], t);
    assert_eq!((store.wanted_lookup(), store.view(t).unwrap().newest), (Some(1), None));
    let all = || vec![revision("a", "own", 3, 0), revision("b", "own", 2, 0), revision("c", "other", 9, 0)];
    store.set_revisions(1, all());
    assert_eq!((store.wanted_lookup(), store.view(t).unwrap().newest.as_deref()), (None, Some("a")));
    store.apply_workload(InformerChange::Apply(id("web"), workload(2, false)));
    assert_eq!((store.wanted_lookup(), store.view(t).unwrap().newest), (None, None));
    store.apply_workload(InformerChange::Apply(id("web"), workload(2, true)));
    assert_eq!((store.wanted_lookup(), store.view(t).unwrap().newest), (Some(2), None));
    // An answer that comes too late is about an older generation.
    store.set_revisions(1, all());
    assert_eq!((store.wanted_lookup(), store.view(t).unwrap().newest), (Some(2), None));
}

// The pods of all other revisions are evicted in steps.
#[test]
fn a_revision_that_somebody_adds_with_a_huge_number_is_not_what_a_daemon_set_rolls_to() {
    let t = Instant::now();
    let [wanted, forged] = [b"wanted", b"forged"].map(|text| Some(ContentHash::hash_bytes(text)));
    let check = |template: Option<ContentHash>, expected: &str| {
        let mut store = store(PodController::DaemonSet, &[], t);
        let shown = WorkloadRecord { template, ..workload(1, true) };
        store.apply_workload(InformerChange::Apply(id("web"), shown));
        let of = |name: &str, number: u64, template| RevisionRecord {
            template,
            ..revision(name, "own", number, 0)
        };
        store.set_revisions(1, vec![of("forged", u64::MAX, forged), of("b", 3, wanted), of("a", 2, None)]);
        assert_eq!(store.view(t).unwrap().newest.as_deref(), Some(expected), "{template:?}");
    };
    check(wanted, "b");
    // Where none has the template, the number decides.
    check(None, "forged");
    check(Some(ContentHash::hash_bytes(b"other")), "forged");
}

#[test]
fn a_deployment_rolls_to_its_highest_set_once_its_own_count_agrees() {
    let t = Instant::now();
    let of_bad = PodRecord { revision: None, ..pod("bad", "") };
    let of_other = PodRecord { revision: None, uid: uid("x"), ..pod("foreign", "") };
    let mut store = store(PodController::Deployment, &[("web-1", of_bad), ("other-1", of_other)], t);
    let see = |store: &mut WorkloadStore, sets: &[RevisionRecord]| {
        for set in sets {
            store.apply_replica_set(InformerChange::Apply(id(&set.uid.0), set.clone()));
        }
        store.view(t).unwrap().newest.map(|newest| newest.to_string())
    };
    let updated = |generation: i64, updated: u32| WorkloadRecord { updated, ..workload(generation, true) };
    let before =
        [revision("good", "own", 1, 2), revision("bad", "own", 2, 1), revision("foreign", "x", 7, 1)];
    assert_eq!(see(&mut store, &before), None);
    store.apply_workload(InformerChange::Apply(id("web"), updated(1, 1)));
    store.set_revisions(1, before.to_vec());
    assert_eq!(see(&mut store, &[]).as_deref(), Some("bad"));
    // Only its own pods, whatever their labels say.
    let pods = store.view(t).unwrap();
    assert_eq!((pods.pods.len(), &*pods.pods[0].name, pods.count_updated()), (1, "web-1", 1));
    // Once it is known, the two counts may differ for a moment.
    assert_eq!(see(&mut store, &[revision("bad", "own", 2, 2)]).as_deref(), Some("bad"));
    // The rollback renumbers the good one: the list shows it, the watch is late.
    store.apply_workload(InformerChange::Apply(id("web"), updated(2, 2)));
    store.set_revisions(2, vec![revision("good", "own", 3, 2), revision("bad", "own", 2, 2)]);
    assert_eq!(see(&mut store, &[]), None);
    assert_eq!(see(&mut store, &[revision("good", "own", 3, 2)]).as_deref(), Some("good"));
    // A change that also scales: the generation is observed, and its set is not made yet.
    store.apply_workload(InformerChange::Apply(id("web"), updated(3, 0)));
    store.set_revisions(3, vec![revision("good", "own", 3, 2)]);
    assert_eq!(see(&mut store, &[]), None);
    assert_eq!(see(&mut store, &[revision("next", "own", 4, 0)]).as_deref(), Some("next"));
}

#[test]
fn what_a_set_is_refused_is_reported_of_the_newest_only() {
    let t = Instant::now();
    let mut store = store(PodController::Deployment, &[], t);
    store.set_revisions(1, vec![revision("good", "own", 1, 0)]);
    let refused = |name: &str, number: u64| RevisionRecord {
        refused: Some("exceeded quota".into()),
        ..revision(name, "own", number, 0)
    };
    let failure_time = |store: &mut WorkloadStore, set: RevisionRecord, at: Instant| {
        store.apply_replica_set(InformerChange::Apply(id(&set.uid.0), set.clone()));
        store.view(at).unwrap().creation_failure.map(|refused| refused.since)
    };
    assert_eq!(failure_time(&mut store, refused("good", 1), t), Some(t));
    assert_eq!(failure_time(&mut store, refused("good", 1), t + SECOND), Some(t));
    assert_eq!(failure_time(&mut store, revision("good", "own", 1, 0), t + SECOND), None);
    assert_eq!(failure_time(&mut store, refused("good", 1), t + SECOND * 2), Some(t + SECOND * 2));
    assert_eq!(failure_time(&mut store, revision("newer", "own", 2, 0), t), None);
}

/// The time of day of the tests with Events, in seconds since 1970.
const NOW: i64 = 1_000;

// A ReplicaSet has any number that its writer gives it.
#[test]
fn a_set_that_somebody_adds_with_a_huge_number_hides_the_newest_one_from_nobody() {
    let t = Instant::now();
    let mut store = store(PodController::Deployment, &[], t);
    let (overflow, greatest) = (i64::MIN.cast_unsigned(), i64::MAX.cast_unsigned());
    let sets = [
        revision("first", "own", 1, 0),
        revision("forged", "own", greatest, 0),
        revision("second", "own", overflow, 0),
        revision("third", "own", overflow, 2),
        revision("fourth", "own", overflow, 1),
    ];
    for set in &sets {
        store.apply_replica_set(InformerChange::Apply(id(&set.uid.0), set.clone()));
    }
    for (generation, updated, newest) in [(1, 2, "third"), (2, 1, "fourth"), (3, 0, "second")] {
        let workload = WorkloadRecord { updated, ..workload(generation, true) };
        store.apply_workload(InformerChange::Apply(id("web"), workload));
        store.set_revisions(generation, sets.to_vec());
        assert_eq!(store.view(t).unwrap().newest.as_deref(), Some(newest), "{updated}");
    }
}

#[test]
fn an_event_of_the_future_is_over_once_a_pod_comes() {
    let t = Instant::now();
    let mut store = store(PodController::StatefulSet, &[], t);
    let missing = WorkloadRecord { desired: 3, ..workload(1, true) };
    store.apply_workload(InformerChange::Apply(id("web"), missing));
    let forged = WarningEvent {
        about: uid("own"),
        whose: "StatefulSet web".into(),
        reason: "FailedCreate".into(),
        message: "is forbidden".into(),
        at: i64::MAX,
        count: 1,
        own: false,
    };
    store.apply_warning(InformerChange::Apply(id("w"), forged), t, NOW);
    assert!(store.view(t).unwrap().creation_failure.is_some());
    let later = PodRecord { created: NOW + 1, ..ready("noon", 0) };
    assert_eq!(set(&mut store, &[("web-0", later)], t + SECOND).creation_failure, None);
}

fn failed_creation(about: &str, reason: &str, at: i64) -> WarningEvent {
    WarningEvent {
        about: uid(about),
        whose: "StatefulSet web".into(),
        reason: reason.into(),
        message: format!("{reason} at {at}").into(),
        at,
        count: 1,
        own: false,
    }
}

// Everybody who may write Events of a namespace may say this of any workload in it.
#[test]
fn an_event_is_no_refusal_while_the_controller_has_a_reason_of_its_own_to_wait() {
    let t = Instant::now();
    let check = |controller: PodController, first: PodRecord, available: u32, expected: bool| {
        let mut store = store(controller, &[("web-0", first.clone())], t);
        let missing = WorkloadRecord { desired: 3, available, ..workload(1, true) };
        store.apply_workload(InformerChange::Apply(id("web"), missing));
        let event = failed_creation("own", "FailedCreate", NOW);
        store.apply_warning(InformerChange::Apply(id("w"), event), t, NOW);
        let refused = store.view(t).unwrap().creation_failure.is_some();
        assert_eq!(refused, expected, "{first:?}, {available} available");
    };
    check(PodController::StatefulSet, ready("noon", 0), 1, true);
    // The next pod is made once this one is Ready, and has been for `minReadySeconds`.
    check(PodController::StatefulSet, pod("own", "new"), 0, false);
    check(PodController::StatefulSet, pod("own", "new"), 1, false);
    check(PodController::StatefulSet, ready("noon", 0), 0, false);
    // Pods of a DaemonSet wait for no others.
    check(PodController::DaemonSet, pod("own", "new"), 0, true);
}

#[test]
fn a_refusal_begins_anew_with_each_pod_that_is_created_all_the_same() {
    let t = Instant::now();
    let first = ("web-0", pod("own", "new"));
    let mut store = store(PodController::DaemonSet, std::slice::from_ref(&first), t);
    let missing = WorkloadRecord { desired: 9, ..workload(1, true) };
    store.apply_workload(InformerChange::Apply(id("web"), missing));
    let mut refused_since = |pods: &[(&str, PodRecord)], now: Instant| {
        // Somebody writes the same Event again and again.
        let event = failed_creation("own", "FailedCreate", NOW);
        store.apply_warning(InformerChange::Apply(id("w"), event), now, NOW);
        set(&mut store, pods, now).creation_failure.map(|refused| refused.since)
    };
    assert_eq!(refused_since(&[], t), Some(t));
    assert_eq!(refused_since(&[], t + SECOND), Some(t));
    let second = ("web-1", PodRecord { uid: uid("p1"), ..pod("own", "new") });
    let later = t + SECOND * 2;
    assert_eq!(refused_since(&[second], later), Some(later));
    assert_eq!(refused_since(&[], later + SECOND), Some(later));
}

#[test]
fn events_tell_a_refusal_while_pods_are_missing_and_none_was_created_later() {
    let (t, warning) = (Instant::now(), failed_creation);
    let check = |pods: &[(&str, PodRecord)], warnings: &[WarningEvent], expected: Option<&str>| {
        let mut store = store(PodController::StatefulSet, pods, t);
        let missing = WorkloadRecord { desired: 2, ..workload(1, true) };
        store.apply_workload(InformerChange::Apply(id("web"), missing));
        for (number, warning) in warnings.iter().enumerate() {
            store.apply_warning(
                InformerChange::Apply(id(&number.to_string()), warning.clone()),
                t + SECOND,
                NOW,
            );
        }
        let message = store.view(t).unwrap().creation_failure.map(|refused| refused.message.to_string());
        assert_eq!(message.as_deref(), expected);
    };
    let one = [("web-0", ready("noon", 0))];
    let two = [one[0].clone(), ("web-1", PodRecord { uid: uid("p1"), ..pod("own", "new") })];
    check(&one, &[], None);
    check(&one, &[warning("own", "FailedCreate", 100)], Some("FailedCreate at 100"));
    let several = [100, 120, 110].map(|at| warning("own", "FailedCreate", at));
    check(&one, &several, Some("FailedCreate at 120"));
    check(&one, &[warning("own", "FailedCreate", 99)], None);
    check(&one, &[warning("own", "Other", 100)], None);
    check(&one, &[warning("other", "FailedCreate", 100)], None);
    check(&two, &[warning("own", "FailedCreate", 100)], None);
    // One that is over leaves its place, and a foreign one never had it.
    let over =
        [one[0].clone(), ("web-1", PodRecord { uid: uid("p1"), has_ended: true, ..pod("own", "new") })];
    check(&over, &[warning("own", "FailedCreate", 100)], Some("FailedCreate at 100"));
    let foreign = [one[0].clone(), ("x", PodRecord { uid: uid("p1"), ..pod("other", "new") })];
    check(&foreign, &[warning("own", "FailedCreate", 100)], Some("FailedCreate at 100"));
    // In the second in which it was said, but after it.
    let mut store = store(PodController::StatefulSet, &[], t);
    store
        .apply_workload(InformerChange::Apply(id("web"), WorkloadRecord { desired: 2, ..workload(1, true) }));
    store.apply_warning(InformerChange::Apply(id("w"), warning("own", "FailedCreate", 100)), t, NOW);
    assert!(store.view(t).unwrap().creation_failure.is_some());
    assert_eq!(set(&mut store, &one, t + SECOND).creation_failure, None);
}
