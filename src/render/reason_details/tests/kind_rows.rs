//! The rows of kinds and records that are not there yet, or fail.

use super::*;
use crate::engine::WatchFault;
use crate::object::ErrorClass;

pub(super) fn kinds_and_records() -> Vec<ReasonRow> {
    vec![
        (
            Reason::Syncing(kind()),
            "WaitingForFirstList",
            json!({"kind": "Deployment.apps"}),
            "waiting for the first list of Deployment.apps",
        ),
        (
            Reason::Inventory("shop".into()),
            "WaitingForInventory",
            json!({"configMap": "shop"}),
            "the inventory ConfigMap shop is being written",
        ),
        (
            Reason::Unserved(gvk(), ["v2".to_owned()].into()),
            "KindNotServed",
            json!({"kind": "Deployment.apps", "version": "v1", "servedVersions": ["v2"]}),
            "the server has no kind apps/v1 Deployment (it has v2)",
        ),
        (
            Reason::UnknownKind(gvk()),
            "KindUnknown",
            json!({"kind": "Deployment.apps", "version": "v1"}),
            "the API server cannot say now whether it serves apps/v1 Deployment",
        ),
        (Reason::RecordUnreadable(x()), "RecordUnreadable", json!({"message": "x"}), "x"),
        (
            Reason::ReadingRevision("1a2b".into()),
            "ReadingRevision",
            json!({"revision": "1a2b"}),
            "reading its content from revision 1a2b",
        ),
        (
            Reason::KeyUnavailable(x()),
            "KeyUnavailable",
            json!({"message": "x"}),
            "the recorded hashes of Secrets are sealed, and the key is not available: x",
        ),
        (
            Reason::Reading(config()),
            "ReadingObject",
            json!({"object": config_json()}),
            "reading ConfigMap shop/env, whose data its pods use",
        ),
    ]
}

/// Returns the rows of kinds that cannot be watched.
pub(super) fn watches() -> Vec<ReasonRow> {
    let failed = |fault: WatchFault, class: ErrorClass, values: &str, sentence: &'static str| {
        let (key, value) = values.split_once(' ').unwrap();
        let details = json!({"kind": "Deployment.apps", "errorClass": class.label(), key: value});
        (Reason::Unobservable(kind(), fault, class), "WatchFailed", details, sentence)
    };
    vec![
        failed(
            WatchFault::Message(x()),
            ErrorClass::Forbidden,
            "message x",
            "Deployment.apps cannot be watched: x",
        ),
        failed(
            WatchFault::Unlisted,
            ErrorClass::Source,
            "cause KindUndiscovered",
            "Deployment.apps cannot be watched: the server does not list this kind now",
        ),
        failed(
            WatchFault::GroupUnavailable,
            ErrorClass::Source,
            "cause GroupUnavailable",
            "Deployment.apps cannot be watched: the server of its API group does not answer",
        ),
        failed(
            WatchFault::OutsideNamespaces,
            ErrorClass::Forbidden,
            "cause NamespaceNotWatched",
            "Deployment.apps cannot be watched: its source does not watch its namespace: `allow.namespaces` does not \
             name it",
        ),
    ]
}
