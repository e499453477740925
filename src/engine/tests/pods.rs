use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::{
    ContainerFailure, FailedPod, IMAGE_PULL_GRACE, PodCreationFailure, PodFacts, Readiness, ResourceVersion,
    RolloutFailure, TRANSIENT_REASON_GRACE, UNSCHEDULABLE_GRACE, Uid, UnschedulablePod, WorkloadPods,
    find_failure, grace_period, next_failure_check,
};

const NEW: &str = "new";
const OLD: &str = "old";
const QUOTA: &str = "pods \"web-1\" is forbidden: exceeded quota: few";

pub(super) fn pod(name: &str, revision: &str) -> PodFacts {
    PodFacts {
        name: name.into(),
        uid: Uid(name.into()),
        rv: ResourceVersion(1),
        revision: Some(revision.into()),
        node: Some("node-1".into()),
        ready: Readiness::NotReady,
        steady_since: None,
        restarts: 0,
        new_restarts: 0,
        restarted: None,
        container_failure: None,
        failure: None,
        has_ended: false,
        terminating: false,
        unschedulable: None,
        unready: None,
    }
}

pub(super) fn ready(name: &str, revision: &str, since: Instant) -> PodFacts {
    PodFacts { ready: Readiness::Ready, steady_since: Some(since), ..pod(name, revision) }
}

pub(super) fn waiting(pod: PodFacts, reason: &str, since: Instant) -> PodFacts {
    let container_failure =
        ContainerFailure { container: "c".into(), reason: reason.into(), message: "says why".into(), since };
    PodFacts { container_failure: Some(container_failure), ..pod }
}

fn saying(pod: PodFacts, message: &str) -> PodFacts {
    let container_failure = pod
        .container_failure
        .map(|container_failure| ContainerFailure { message: message.into(), ..container_failure });
    PodFacts { container_failure, ..pod }
}

fn restarted(pod: PodFacts, restarts: u32, new_restarts: u32) -> PodFacts {
    PodFacts { restarts, new_restarts, restarted: Some("c".into()), ..pod }
}

fn ended(pod: PodFacts, reason: &str, seen: Option<Instant>) -> PodFacts {
    let ended = FailedPod { reason: reason.into(), message: "says why".into(), seen };
    PodFacts { failure: Some(ended), has_ended: true, ..pod }
}

fn unscheduled(pod: PodFacts, since: Instant) -> PodFacts {
    PodFacts { node: None, unschedulable: Some(UnschedulablePod { message: "no node".into(), since }), ..pod }
}

fn of(pods: &[PodFacts]) -> WorkloadPods {
    WorkloadPods {
        rv: ResourceVersion(1),
        newest: Some(NEW.into()),
        current: None,
        pods: pods.into(),
        sets: Box::default(),
        last_failed: None,
        creation_failure: None,
    }
}

/// Returns the failure of a pod for this reason.
fn pod_fails(name: &str, reason: &str, message: &str) -> RolloutFailure {
    let (pod, reason, message) = (Some(name.into()), reason.into(), message.into());
    RolloutFailure { pod, container: None, reason, message, restarts: None }
}

/// Returns the failure of the container of a pod for this reason.
fn container_fails(name: &str, reason: &str) -> RolloutFailure {
    RolloutFailure { container: Some("c".into()), ..pod_fails(name, reason, "says why") }
}

/// Returns the failure of a pod that has restarted so often.
fn restarts(name: &str, restarts: u32) -> RolloutFailure {
    let restarts = Some(restarts);
    RolloutFailure { container: Some("c".into()), restarts, ..pod_fails(name, "Restarting", "") }
}

/// Returns the failure of a workload whose pods the quota refuses.
fn quota_refuses() -> RolloutFailure {
    RolloutFailure { pod: None, ..pod_fails("", "FailedCreate", QUOTA) }
}

#[test]
fn each_signal_of_a_new_pod_counts_and_none_of_an_old_one() {
    let t = Instant::now();
    let check = |change: &dyn Fn(PodFacts) -> PodFacts, expected: RolloutFailure| {
        assert_eq!(find_failure(&of(&[change(pod("web-1", NEW))]), t), Some(expected));
        assert_eq!(find_failure(&of(&[change(pod("web-1", OLD))]), t), None);
        let unknown = WorkloadPods { newest: None, ..of(&[change(pod("web-1", NEW))]) };
        assert_eq!(find_failure(&unknown, t), None);
        let nameless = of(&[PodFacts { revision: None, ..change(pod("web-1", NEW)) }]);
        assert_eq!(find_failure(&nameless, t), None);
        assert_eq!(find_failure(&WorkloadPods { newest: None, ..nameless }, t), None);
        let leaving = of(&[PodFacts { terminating: true, ..change(pod("web-1", NEW)) }]);
        assert_eq!(find_failure(&leaving, t), None);
    };
    for reason in [
        "CrashLoopBackOff",
        "SignatureValidationFailed",
        "InvalidImageName",
        "ErrImageNeverPull",
        "CreateContainerConfigError",
    ] {
        check(&|pod| waiting(pod, reason, t), container_fails("web-1", reason));
    }
    let missing =
        r#"Back-off pulling image "a:b": ErrImagePull: rpc error: code = NotFound desc = a:b: not found"#;
    let expected = RolloutFailure { message: missing.into(), ..container_fails("web-1", "ImagePullBackOff") };
    check(&|pod| saying(waiting(pod, "ImagePullBackOff", t), missing), expected);
    check(&|pod| restarted(pod, 3, 3), restarts("web-1", 3));
    check(&|pod| ended(pod, "Evicted", Some(t)), pod_fails("web-1", "Evicted", "says why"));
    check(&|pod| ended(pod, "Failed", Some(t)), pod_fails("web-1", "Failed", "says why"));
    let long_ago = t.checked_sub(UNSCHEDULABLE_GRACE).unwrap();
    check(&|pod| unscheduled(pod, long_ago), pod_fails("web-1", "Unschedulable", "no node"));
}

#[test]
fn what_is_no_failure_does_not_count() {
    let t = Instant::now();
    let check = |pod: PodFacts| assert_eq!(find_failure(&of(&[pod]), t), None);
    check(pod("a", NEW));
    check(waiting(pod("a", NEW), "ContainerCreating", t));
    check(waiting(pod("a", NEW), "PodInitializing", t));
    check(restarted(pod("a", NEW), 2, 2));
    // A pod that a rollback keeps restarted long ago, and one that an earlier rollout left had
    // failed before.
    check(restarted(pod("a", NEW), 9, 2));
    check(ended(pod("a", NEW), "Evicted", None));
    check(unscheduled(pod("a", NEW), t));
    // It ended well.
    check(PodFacts { has_ended: true, ..waiting(pod("a", NEW), "CrashLoopBackOff", t) });
}

#[test]
fn what_may_pass_counts_after_its_time_and_tells_when() {
    let t = Instant::now();
    let check = |pods: WorkloadPods, after: Duration, expected: RolloutFailure| {
        let just_before = t + after.checked_sub(Duration::from_millis(1)).unwrap();
        for early in [t, just_before] {
            assert_eq!(find_failure(&pods, early), None);
            assert_eq!(next_failure_check(&pods, early), Some(t + after));
        }
        for late in [t + after, t + after * 2] {
            assert_eq!(find_failure(&pods, late).as_ref(), Some(&expected));
            assert_eq!(next_failure_check(&pods, late), None);
        }
    };
    for reason in ["CreateContainerError", "RunContainerError"] {
        let expected = container_fails("a", reason);
        check(of(&[waiting(pod("a", NEW), reason, t)]), TRANSIENT_REASON_GRACE, expected);
    }
    for reason in ["ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"] {
        let expected = container_fails("a", reason);
        check(of(&[waiting(pod("a", NEW), reason, t)]), IMAGE_PULL_GRACE, expected);
    }
    let nowhere = pod_fails("a", "Unschedulable", "no node");
    check(of(&[unscheduled(pod("a", NEW), t)]), UNSCHEDULABLE_GRACE, nowhere);
    let creation_failure = Some(PodCreationFailure { message: QUOTA.into(), since: t });
    let quota = WorkloadPods { creation_failure: creation_failure.clone(), ..of(&[]) };
    check(quota, TRANSIENT_REASON_GRACE, quota_refuses());
    // Nobody knows whose pods were refused.
    let unknown = WorkloadPods { creation_failure, newest: None, ..of(&[]) };
    assert_eq!(
        (find_failure(&unknown, t + TRANSIENT_REASON_GRACE), next_failure_check(&unknown, t)),
        (None, None)
    );
    let old = of(&[unscheduled(pod("a", OLD), t)]);
    assert_eq!(next_failure_check(&old, t), None);
    let two = of(&[unscheduled(pod("a", NEW), t), waiting(pod("b", NEW), "RunContainerError", t)]);
    assert_eq!(next_failure_check(&two, t), Some(t + TRANSIENT_REASON_GRACE));
    assert_eq!(next_failure_check(&two, t + TRANSIENT_REASON_GRACE), Some(t + UNSCHEDULABLE_GRACE));
}

#[test]
fn only_what_the_server_says_of_the_pod_refuses_it() {
    let t = Instant::now();
    let check = |message: &str, expected: Option<Duration>| {
        let creation_failure = Some(PodCreationFailure { message: message.into(), since: t });
        let pods = WorkloadPods { creation_failure, ..of(&[]) };
        assert_eq!(next_failure_check(&pods, t), expected.map(|after| t + after), "{message}");
        assert_eq!(find_failure(&pods, t + UNSCHEDULABLE_GRACE).is_some(), expected.is_some(), "{message}");
    };
    let refusals = [
        QUOTA,
        r#"pods "a" is forbidden: violates PodSecurity "restricted:latest": privileged"#,
        r#"pods "a" is forbidden: error looking up service account shop/web: serviceaccount "web" not found"#,
        r#"Pod "a" is invalid: spec.containers[0].image: Required value"#,
        r#"admission webhook "policy.example.com" denied the request: no"#,
    ];
    for message in refusals {
        check(message, Some(TRANSIENT_REASON_GRACE));
    }
    let passing = [
        r#"Post "https://127.0.0.1:6443/api/v1/namespaces/shop/pods": unexpected EOF"#,
        r#"Post "https://127.0.0.1:6443/api/v1/namespaces/shop/pods": dial tcp 127.0.0.1:6443: connect: connection refused"#,
        r#"pods "a" is forbidden: not yet ready to handle request"#,
        r#"pods is forbidden: User "system:kube-controller-manager" cannot create resource "pods" in API group """#,
        r#"Internal error occurred: failed calling webhook "policy.example.com": context deadline exceeded"#,
        "Internal error occurred: resource quota evaluation timed out",
        "etcdserver: request timed out",
    ];
    for message in passing {
        check(message, None);
    }
}

#[test]
fn a_pod_that_is_gone_at_once_is_not_missed() {
    let t = Instant::now();
    let check = |revision: &str, newest: Option<&str>, expected: Option<RolloutFailure>| {
        let last_failed = Some(Box::new(ended(pod("web-1", revision), "Evicted", Some(t))));
        let pods = WorkloadPods { last_failed, newest: newest.map(Arc::from), ..of(&[pod("web-1", NEW)]) };
        assert_eq!(find_failure(&pods, t), expected);
    };
    check(NEW, Some(NEW), Some(pod_fails("web-1", "Evicted", "says why")));
    check(OLD, Some(NEW), None);
    check(NEW, None, None);
}

#[test]
fn the_signal_that_says_most_is_reported_of_the_oldest_pod() {
    let t = Instant::now();
    let creation_failure = Some(PodCreationFailure { message: QUOTA.into(), since: t });
    let all = WorkloadPods {
        creation_failure,
        ..of(&[
            unscheduled(pod("a", NEW), t),
            restarted(pod("b", NEW), 5, 5),
            waiting(pod("c", NEW), "InvalidImageName", t),
            waiting(pod("d", NEW), "CrashLoopBackOff", t),
        ])
    };
    let check = |pods: &WorkloadPods, expected: RolloutFailure| {
        assert_eq!(find_failure(pods, t + UNSCHEDULABLE_GRACE), Some(expected));
    };
    check(&all, container_fails("c", "InvalidImageName"));
    let silent = ContainerFailure { message: "".into(), ..all.pods[2].container_failure.clone().unwrap() };
    let silent = PodFacts { container_failure: Some(silent), ..all.pods[2].clone() };
    let nameless = RolloutFailure { message: "".into(), ..container_fails("c", "InvalidImageName") };
    check(&of(&[silent]), nameless);
    let fewer = |count: usize| WorkloadPods { pods: all.pods[..count].into(), ..all.clone() };
    check(&fewer(2), restarts("b", 5));
    check(&fewer(1), quota_refuses());
    let nowhere = pod_fails("a", "Unschedulable", "no node");
    check(&WorkloadPods { creation_failure: None, ..fewer(1) }, nowhere);
}

#[test]
fn only_the_pods_of_the_newest_revision_are_counted() {
    let t = Instant::now();
    let later = t + Duration::from_secs(5);
    let gone = PodFacts { terminating: true, ..ready("f", NEW, later) };
    let over = PodFacts { has_ended: true, ..ready("g", NEW, later) };
    let pods =
        of(&[ready("a", OLD, later), ready("b", NEW, t), ready("c", NEW, t), pod("d", NEW), gone, over]);
    assert_eq!((pods.count_updated(), pods.count_ready_newest()), (3, 2));
    assert_eq!(pods.steady_time(), Some(t));
    let one_restarted = of(&[ready("b", NEW, t), ready("c", NEW, later)]);
    assert_eq!(one_restarted.steady_time(), Some(later));
    let none = of(&[pod("d", NEW), ready("a", OLD, t)]);
    assert_eq!((none.count_updated(), none.count_ready_newest(), none.steady_time()), (1, 0, None));
    let unknown = WorkloadPods { newest: None, ..pods };
    assert_eq!((unknown.count_updated(), unknown.count_ready_newest()), (0, 0));
    assert_eq!(unknown.steady_time(), None);
}

#[test]
fn only_known_words_of_the_kubelet_are_failures() {
    let check = |reason: &str, message: &str, expected: Option<Duration>| {
        assert_eq!(grace_period(reason, message), expected, "{reason}: {message}");
    };
    let says = |cause: &str| format!(r#"Back-off pulling image "web:1": ErrImagePull: {cause}"#);
    check("InvalidImageName", "", Some(Duration::ZERO));
    check("SignatureValidationFailed", "", Some(Duration::ZERO));
    check("CreateContainerError", "", Some(TRANSIENT_REASON_GRACE));
    // A registry that has no such image decides, and one that does not answer does not.
    for missing in [
        r#"rpc error: code = NotFound desc = failed to pull and unpack image "web:1": web:1: not found"#,
        "reading manifest 1 in example.org/web: manifest unknown",
    ] {
        check("ErrImagePull", missing, Some(Duration::ZERO));
        check("ImagePullBackOff", &says(missing), Some(Duration::ZERO));
    }
    for passing in [
        "",
        "rpc error: code = Unknown desc = dial tcp: lookup example.org: no such host",
        "rpc error: code = Unknown desc = unexpected status from HEAD request: 503 Service Unavailable",
        "rpc error: code = Unknown desc = pull access denied, repository does not exist or may require authorization",
    ] {
        check("ErrImagePull", passing, Some(IMAGE_PULL_GRACE));
        check("ImagePullBackOff", &says(passing), Some(IMAGE_PULL_GRACE));
        check("RegistryUnavailable", passing, Some(IMAGE_PULL_GRACE));
    }
    check("ContainerCreating", "", None);
    check("", "", None);
}

#[test]
fn a_new_pod_is_in_trouble_where_it_is_not_ready_and_says_why() {
    let t = Instant::now();
    let check = |pod: PodFacts, expected: u32| {
        assert_eq!(of(std::slice::from_ref(&pod)).count_failing_newest(), expected, "{pod:?}");
    };
    check(waiting(pod("web-1", NEW), "CrashLoopBackOff", t), 1);
    check(unscheduled(pod("web-1", NEW), t), 1);
    check(pod("web-1", NEW), 0);
    check(waiting(ready("web-1", NEW, t), "CrashLoopBackOff", t), 0);
    check(waiting(pod("web-1", OLD), "CrashLoopBackOff", t), 0);
    check(PodFacts { terminating: true, ..waiting(pod("web-1", NEW), "CrashLoopBackOff", t) }, 0);
}

#[test]
fn each_word_of_the_kubelet_has_its_time() {
    for reason in [
        "CrashLoopBackOff",
        "CreateContainerConfigError",
        "ErrImageNeverPull",
        "ImageInspectError",
        "InvalidImageName",
        "SignatureValidationFailed",
    ] {
        assert_eq!(grace_period(reason, ""), Some(Duration::ZERO), "{reason}");
    }
    for reason in [
        "CreateContainerError",
        "PostStartHookError",
        "PreCreateHookError",
        "PreStartHookError",
        "RunContainerError",
    ] {
        assert_eq!(grace_period(reason, ""), Some(TRANSIENT_REASON_GRACE), "{reason}");
    }
}

#[test]
fn of_two_signals_the_one_that_explains_more_is_reported() {
    let t = Instant::now();
    let check = |less: &PodFacts, more: &PodFacts, expected: RolloutFailure| {
        let found =
            |pods: [&PodFacts; 2]| find_failure(&of(&pods.map(Clone::clone)), t + UNSCHEDULABLE_GRACE);
        assert_eq!(found([less, more]).as_ref(), Some(&expected));
        assert_eq!(found([more, less]), Some(expected));
    };
    let at_once = waiting(pod("a", NEW), "CrashLoopBackOff", t);
    let transient = waiting(pod("b", NEW), "RunContainerError", t);
    let restarting = restarted(pod("c", NEW), 3, 3);
    let over = ended(pod("d", NEW), "Evicted", Some(t));
    let nowhere = unscheduled(pod("e", NEW), t);
    check(&transient, &at_once, container_fails("a", "CrashLoopBackOff"));
    check(&restarting, &transient, container_fails("b", "RunContainerError"));
    check(&over, &restarting, restarts("c", 3));
    check(&nowhere, &over, pod_fails("d", "Evicted", "says why"));
}

// It was judged when it ended.
#[test]
fn neither_restarts_nor_a_missing_node_count_of_a_pod_that_has_ended() {
    let t = Instant::now();
    for living in [restarted(pod("a", NEW), 3, 3), unscheduled(pod("a", NEW), t)] {
        let over = PodFacts { has_ended: true, ..living.clone() };
        assert_ne!(find_failure(&of(&[living]), t + UNSCHEDULABLE_GRACE), None);
        assert_eq!(find_failure(&of(&[over]), t + UNSCHEDULABLE_GRACE), None);
    }
}

#[test]
fn the_oldest_new_pod_that_is_not_ready_is_one_that_its_controller_has() {
    let t = Instant::now();
    let leaving = PodFacts { terminating: true, ..pod("b", NEW) };
    let over = PodFacts { has_ended: true, ..pod("c", NEW) };
    let mut all = vec![ready("a", NEW, t), leaving, over, pod("d", OLD)];
    assert_eq!(of(&all).oldest_unready_newest(), None);
    all.extend([pod("e", NEW), pod("f", NEW)]);
    assert_eq!(of(&all).oldest_unready_newest(), Some(&all[4]));
}

#[test]
fn a_pod_that_has_ended_is_not_in_trouble() {
    let t = Instant::now();
    let pods = of(&[PodFacts { has_ended: true, ..waiting(pod("web-1", NEW), "CrashLoopBackOff", t) }]);
    assert_eq!(pods.count_failing_newest(), 0);
}
