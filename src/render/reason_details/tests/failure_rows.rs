//! The rows of the causes for which rollouts fail.

use super::*;
use crate::engine::{RolloutFailure, RolloutFailureCause, StalledRollout, StalledState, UnreadyPod};

/// A cause, its code, its other values and its sentence.
type FailureRow = (RolloutFailureCause, CauseCode, Value, &'static str);

fn failure(container: Option<&str>) -> RolloutFailure {
    RolloutFailure {
        pod: Some("web-1".into()),
        container: container.map(Arc::from),
        reason: "CrashLoopBackOff".into(),
        message: x(),
        restarts: None,
    }
}

fn stalled(state: StalledState, unready: Option<UnreadyPod>) -> RolloutFailureCause {
    let timeout = Duration::from_mins(10);
    RolloutFailureCause::Stalled(Box::new(StalledRollout { timeout, state, unready }))
}

fn unready(message: Option<&str>) -> UnreadyPod {
    UnreadyPod { name: "web-1".into(), message: message.map(Arc::from) }
}

fn pods() -> Vec<FailureRow> {
    let restarting = RolloutFailure {
        reason: "Restarting".into(),
        message: "".into(),
        restarts: Some(3),
        ..failure(Some("c"))
    };
    let refused = RolloutFailure { pod: None, reason: "FailedCreate".into(), ..failure(None) };
    vec![
        (
            RolloutFailureCause::Pods(failure(Some("c"))),
            CauseCode::PodFailing,
            json!({"pod": "web-1", "container": "c", "podReason": "CrashLoopBackOff", "message": "x"}),
            "pod web-1, container c: CrashLoopBackOff: x",
        ),
        (
            RolloutFailureCause::Pods(RolloutFailure { message: "".into(), ..failure(None) }),
            CauseCode::PodFailing,
            json!({"pod": "web-1", "podReason": "CrashLoopBackOff"}),
            "pod web-1: CrashLoopBackOff",
        ),
        (
            RolloutFailureCause::Pods(restarting),
            CauseCode::PodFailing,
            json!({"pod": "web-1", "container": "c", "podReason": "Restarting", "restarts": 3}),
            "pod web-1, container c: Restarting: it has restarted 3 times",
        ),
        (
            RolloutFailureCause::Pods(refused),
            CauseCode::PodRefused,
            json!({"podReason": "FailedCreate", "message": "x"}),
            "no new pod can be created: FailedCreate: x",
        ),
    ]
}

fn workloads() -> Vec<FailureRow> {
    let health = |message: &str| StalledState::Health(Health::new(HealthStatus::InProgress, message));
    vec![
        (RolloutFailureCause::Status(x()), CauseCode::StatusFailed, json!({"message": "x"}), "x"),
        (
            stalled(health(""), None),
            CauseCode::ProgressStalled,
            json!({"periodSeconds": 600, "message": "InProgress"}),
            "no progress for 10m: InProgress",
        ),
        (
            stalled(health("x"), Some(unready(None))),
            CauseCode::ProgressStalled,
            json!({"periodSeconds": 600, "pod": "web-1", "message": "InProgress: x"}),
            "no progress for 10m: InProgress: x; pod web-1: it is not ready",
        ),
        (
            stalled(StalledState::Step(HeldStep::Pods(wait(), None)), Some(unready(Some("its probe fails")))),
            CauseCode::ProgressStalled,
            json!({
                "periodSeconds": 600, "step": 1, "steps": 2, "ready": 3, "target": 4, "pod": "web-1",
                "message": "its probe fails",
            }),
            "no progress for 10m: step 1 of 2: 3 of 4 new pods are ready; pod web-1: its probe fails",
        ),
        (
            RolloutFailureCause::RecreationRefused(RefusalCause::Message(x())),
            CauseCode::RecreationRefused,
            json!({"message": "x"}),
            "x",
        ),
        (
            RolloutFailureCause::WorkloadMissing(Duration::from_mins(10)),
            CauseCode::WorkloadMissing,
            json!({"periodSeconds": 600}),
            "it was deleted to be created again, and has been missing for 10m",
        ),
    ]
}

fn rows() -> Vec<FailureRow> {
    [pods(), workloads()].concat()
}

/// Returns the codes of all causes.
pub(super) fn codes() -> impl Iterator<Item = CauseCode> {
    rows().into_iter().map(|(cause, ..)| cause.code())
}

#[test]
fn each_failure_of_a_rollout_has_its_code_its_values_and_its_sentence() {
    for (cause, code, mut details, sentence) in rows() {
        details["cause"] = code.word().into();
        let form = serde_json::to_value(CodedReason::of_failure(&cause)).unwrap();
        let expected = json!({"code": "RolloutFailed", "details": details});
        assert_eq!((form, &*cause.to_string()), (expected, sentence), "{cause:?}");
        assert_eq!(json!(cause), json!(sentence), "a trace has the sentence");
    }
}
