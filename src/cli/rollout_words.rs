//! The progress of a rollout, in kubectl's words.

use serde_json::Value;

use crate::object::{text_at, value_at};

/// The state of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RolloutState {
    Done,
    InProgress,
    Failed,
}

/// Returns how far a Deployment, StatefulSet or DaemonSet is, in one line.
pub(super) fn rollout_state(object: &Value) -> (String, RolloutState) {
    let (words, done) = match text_at(object, &["kind"]) {
        "StatefulSet" => stateful_set(object),
        "DaemonSet" => daemon_set(object),
        _ => match deployment(object) {
            Ok(known) => known,
            Err(failed) => return (failed, RolloutState::Failed),
        },
    };
    (words, if done { RolloutState::Done } else { RolloutState::InProgress })
}

fn number(object: &Value, path: &[&str]) -> i64 {
    value_at(object, path).and_then(Value::as_i64).unwrap_or(0)
}

fn status(object: &Value, key: &str) -> i64 {
    number(object, &["status", key])
}

fn replicas(object: &Value) -> i64 {
    value_at(object, &["spec", "replicas"]).and_then(Value::as_i64).unwrap_or(1)
}

fn is_observed(object: &Value) -> bool {
    number(object, &["metadata", "generation"]) == status(object, "observedGeneration")
}

fn deployment(object: &Value) -> Result<(String, bool), String> {
    let name = text_at(object, &["metadata", "name"]);
    if !is_observed(object) {
        return Ok(("Waiting for deployment spec update to be observed...".to_owned(), false));
    }
    let conditions = value_at(object, &["status", "conditions"]).and_then(Value::as_array);
    let late = |condition: &Value| text_at(condition, &["reason"]) == "ProgressDeadlineExceeded";
    if conditions.is_some_and(|all| all.iter().any(late)) {
        return Err(format!("deployment {name:?} exceeded its progress deadline"));
    }
    let waiting = format!("Waiting for deployment {name:?} rollout to finish:");
    let (wanted, all) = (replicas(object), status(object, "replicas"));
    let (updated, available) = (status(object, "updatedReplicas"), status(object, "availableReplicas"));
    Ok(if updated < wanted {
        (format!("{waiting} {updated} out of {wanted} new replicas have been updated..."), false)
    } else if all > updated {
        (format!("{waiting} {} old replicas are pending termination...", all - updated), false)
    } else if available < updated {
        (format!("{waiting} {available} of {updated} updated replicas are available..."), false)
    } else {
        (format!("deployment {name:?} successfully rolled out"), true)
    })
}

fn daemon_set(object: &Value) -> (String, bool) {
    let name = text_at(object, &["metadata", "name"]);
    if !is_observed(object) {
        return ("Waiting for daemon set spec update to be observed...".to_owned(), false);
    }
    let waiting = format!("Waiting for daemon set {name:?} rollout to finish:");
    let wanted = status(object, "desiredNumberScheduled");
    let (updated, available) = (status(object, "updatedNumberScheduled"), status(object, "numberAvailable"));
    if updated < wanted {
        (format!("{waiting} {updated} out of {wanted} new pods have been updated..."), false)
    } else if available < wanted {
        (format!("{waiting} {available} of {wanted} updated pods are available..."), false)
    } else {
        (format!("daemon set {name:?} successfully rolled out"), true)
    }
}

fn stateful_set(object: &Value) -> (String, bool) {
    if status(object, "observedGeneration") == 0 || !is_observed(object) {
        return ("Waiting for statefulset spec update to be observed...".to_owned(), false);
    }
    let (wanted, ready) = (replicas(object), status(object, "readyReplicas"));
    let updated = status(object, "updatedReplicas");
    if ready < wanted {
        return (format!("Waiting for {} pods to be ready...", wanted - ready), false);
    }
    let partition = number(object, &["spec", "updateStrategy", "rollingUpdate", "partition"]);
    if partition > 0 {
        let due = (wanted - partition).max(0);
        return if updated < due {
            let words = format!(
                "Waiting for partitioned roll out to finish: {updated} out of {due} new pods have been updated..."
            );
            (words, false)
        } else {
            (format!("partitioned roll out complete: {updated} new pods have been updated..."), true)
        };
    }
    let revision = text_at(object, &["status", "updateRevision"]);
    if revision == text_at(object, &["status", "currentRevision"]) {
        let current = status(object, "currentReplicas");
        (format!("statefulset rolling update complete {current} pods at revision {revision}..."), true)
    } else {
        let words = format!(
            "waiting for statefulset rolling update to complete {updated} pods at revision {revision}..."
        );
        (words, false)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_state_has_the_words_of_kubectl() {
        fn check(kind: &str, spec: &Value, status: &Value, expected: &str, state: RolloutState) {
            let mut status = status.clone();
            status["observedGeneration"] = json!(2);
            let metadata = json!({"name": "web", "generation": 2});
            let object = json!({"kind": kind, "metadata": metadata, "spec": spec, "status": status});
            assert_eq!(super::rollout_state(&object), (expected.to_owned(), state));
        }
        let three = json!({"replicas": 3});
        let deployment =
            |status: &Value, expected: &str, state| check("Deployment", &three, status, expected, state);
        let waiting = "Waiting for deployment \"web\" rollout to finish:";
        deployment(
            &json!({"replicas": 4, "updatedReplicas": 2}),
            &format!("{waiting} 2 out of 3 new replicas have been updated..."),
            RolloutState::InProgress,
        );
        deployment(
            &json!({"replicas": 4, "updatedReplicas": 3}),
            &format!("{waiting} 1 old replicas are pending termination..."),
            RolloutState::InProgress,
        );
        deployment(
            &json!({"replicas": 3, "updatedReplicas": 3, "availableReplicas": 2}),
            &format!("{waiting} 2 of 3 updated replicas are available..."),
            RolloutState::InProgress,
        );
        let rolled_out = json!({"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3});
        deployment(&rolled_out, "deployment \"web\" successfully rolled out", RolloutState::Done);
        deployment(
            &json!({"conditions": [{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]}),
            "deployment \"web\" exceeded its progress deadline",
            RolloutState::Failed,
        );
        check(
            "DaemonSet",
            &json!({}),
            &json!({"desiredNumberScheduled": 3, "updatedNumberScheduled": 1}),
            "Waiting for daemon set \"web\" rollout to finish: 1 out of 3 new pods have been updated...",
            RolloutState::InProgress,
        );
        let set =
            json!({"readyReplicas": 3, "updatedReplicas": 1, "currentRevision": "a", "updateRevision": "b"});
        check(
            "StatefulSet",
            &three,
            &set,
            "waiting for statefulset rolling update to complete 1 pods at revision b...",
            RolloutState::InProgress,
        );
        let partition = json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 1}}});
        check(
            "StatefulSet",
            &partition,
            &set,
            "Waiting for partitioned roll out to finish: 1 out of 2 new pods have been updated...",
            RolloutState::InProgress,
        );
        for seen in [json!({}), json!({"observedGeneration": 2})] {
            let metadata = json!({"name": "web", "generation": 1});
            let unseen = json!({"kind": "Deployment", "metadata": metadata, "status": seen});
            assert_eq!(
                rollout_state(&unseen),
                ("Waiting for deployment spec update to be observed...".to_owned(), RolloutState::InProgress)
            );
        }
    }
}
