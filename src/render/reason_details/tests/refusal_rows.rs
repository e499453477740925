//! The rows of what a person has to change.

use super::*;
use crate::engine::{CurrentOwner, OversizedUnit, RecreationBlocker, RefusalCause};

/// Returns the rows of what the API server refuses.
pub(super) fn refused_contents() -> Vec<Row> {
    let refused = |cause: RefusalCause, details: Value, sentence: &'static str| {
        (Reason::Refused(cause, None), "RefusedByServer", details, sentence)
    };
    let message = || RefusalCause::Message(x());
    vec![
        refused(message(), json!({"message": "x"}), "x"),
        (
            Reason::Refused(message(), Some(Duration::from_mins(1))),
            "RefusedByServer",
            json!({"message": "x", "retryAfterSeconds": 60}),
            "x",
        ),
        refused(
            RefusalCause::Recreatable(x()),
            json!({"cause": "FieldImmutable", "message": "x"}),
            "x; with the annotation rhumb.dev/recreate: \"true\" it is deleted and created again",
        ),
        refused(
            RefusalCause::Kept(Box::new(message()), RecreationBlocker::Annotated),
            json!({"cause": "RecreationForbidden", "message": "x"}),
            "x; it is not deleted and created again, as an annotation keeps it from being deleted: delete it by \
             kubectl, and it is created again",
        ),
        refused(
            RefusalCause::AnnotationStripped,
            json!({"cause": "AnnotationStripped"}),
            "the server does not keep the annotation rhumb.dev/release; a webhook or an admission policy takes it away",
        ),
        refused(
            RefusalCause::LabelStripped,
            json!({"cause": "LabelStripped"}),
            "the server does not keep the label applyset.kubernetes.io/part-of; a webhook or an admission policy \
             changes it, so what becomes of the object is not seen, and it is never pruned; let the label pass, then \
             change the object in git or start rhumb again",
        ),
    ]
}

pub(super) fn refusals() -> Vec<Row> {
    let owned = |owner: CurrentOwner, cause: &str, holder: &str, sentence: &'static str| {
        (Reason::Owned(owner), "OwnedByOther", json!({"cause": cause, "holder": holder}), sentence)
    };
    vec![
        owned(CurrentOwner::Source("ops".into()), "OwnedBySource", "ops", "it belongs to source ops"),
        owned(
            CurrentOwner::FormerSource("ops".into()),
            "OwnedByFormerSource",
            "ops",
            "it belongs to source ops, which no longer wants it and keeps it, as adopt is `never` here",
        ),
        owned(
            CurrentOwner::ApplySet("a-v1".into()),
            "OwnedByApplySet",
            "a-v1",
            "it belongs to the ApplySet a-v1: `kubectl get configmaps,secrets -A -l \
             applyset.kubernetes.io/id=a-v1` finds its parent",
        ),
        owned(
            CurrentOwner::Tool("ReplicaSet web-5d9".into()),
            "OwnedByTool",
            "ReplicaSet web-5d9",
            "it belongs to ReplicaSet web-5d9",
        ),
        (
            Reason::NotAdopted,
            "NotAdopted",
            Value::Null,
            "it exists already, this source did not create it, and adopt is `never`; `adopt: if-unowned` takes \
             it over",
        ),
        (Reason::Unusable(x()), "ManifestUnusable", json!({"message": "x"}), "x"),
        (
            Reason::Oversized(OversizedUnit { workload: config(), objects: 3001, used: 601, limit: 600 }),
            "UnitTooLarge",
            json!({"object": config_json(), "count": 3001, "used": 601, "limit": 600}),
            "3001 objects are released together with ConfigMap shop/env, and the record of what was good before \
             (601 kB) is larger than one may be (600 kB); change fewer of them in one commit",
        ),
        (
            Reason::Generated(config()),
            "GeneratedValuesMismatch",
            json!({"object": config_json()}),
            "its generated values would not fit those of ConfigMap shop/env, which another render made: restore \
             it, or delete all objects of the release with generated values",
        ),
    ]
}
