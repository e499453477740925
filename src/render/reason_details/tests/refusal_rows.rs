//! The rows of what a person has to change.

use super::*;
use crate::engine::{
    CurrentOwner, ManifestFault, ManifestOrigins, OversizedUnit, RecreationBlocker, RefusalCause,
};
use crate::object::ManifestOrigin;

/// Returns the rows of what the API server refuses.
pub(super) fn refused_contents() -> Vec<ReasonRow> {
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

pub(super) fn refusals() -> Vec<ReasonRow> {
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

/// Returns the rows of manifests that are not used.
pub(super) fn unusable_manifests() -> Vec<ReasonRow> {
    let unusable = |fault: ManifestFault, details: Value, sentence: &'static str| {
        (Reason::Unusable(fault), "ManifestUnusable", details, sentence)
    };
    let places = || ManifestOrigins {
        first: vec![ManifestOrigin::new("a.yaml".into(), 1, 1), ManifestOrigin::new("b.yaml".into(), 7, 1)],
        count: 2,
    };
    let cycle = |others: u32| ManifestFault::Cycle { first: [config()].into(), others };
    vec![
        unusable(ManifestFault::Finding(x()), json!({"message": "x"}), "x"),
        unusable(
            ManifestFault::UnreadableFile("a.yaml".into()),
            json!({"cause": "FileUnreadable", "file": "a.yaml"}),
            "a.yaml is not understood",
        ),
        unusable(
            ManifestFault::UnrenderedFolder,
            json!({"cause": "FolderNotRendered"}),
            "the folder that it comes from is not rendered",
        ),
        unusable(
            ManifestFault::Repeated(ManifestOrigins { count: 5, ..places() }),
            json!({"cause": "DefinedTwice", "file": "a.yaml"}),
            "it is defined 5 times: a.yaml:1 and b.yaml:7 and 3 more",
        ),
        unusable(
            ManifestFault::Contested(places(), None),
            json!({"cause": "WantedBySeveral", "file": "a.yaml"}),
            "2 sources want it: a.yaml:1 and b.yaml:7",
        ),
        unusable(
            ManifestFault::Contested(places(), Some(RefusalCause::Message(x()))),
            json!({"cause": "WantedBySeveral", "file": "a.yaml", "message": "x"}),
            "2 sources want it: a.yaml:1 and b.yaml:7; x",
        ),
        unusable(
            ManifestFault::Outranked(places()),
            json!({"cause": "HadByFirst", "file": "a.yaml"}),
            "2 sources want it: a.yaml:1 and b.yaml:7; the first of them applies it",
        ),
        unusable(
            ManifestFault::HadByOther { object: config(), owner: "ops".into() },
            json!({"cause": "OwnedBySource", "object": config_json(), "holder": "ops"}),
            "ConfigMap shop/env is not applied: source ops has it",
        ),
        unusable(
            cycle(0),
            json!({"cause": "DependencyCycle", "objects": [config_json()]}),
            "dependency cycle: ConfigMap shop/env → ConfigMap shop/env",
        ),
        unusable(
            cycle(2),
            json!({"cause": "DependencyCycle", "objects": [config_json()]}),
            "dependency cycle: ConfigMap shop/env → 2 more → ConfigMap shop/env",
        ),
        unusable(
            ManifestFault::LaterWave { after: config(), theirs: 2, ours: 1 },
            json!({"cause": "DependencyInLaterWave", "object": config_json(), "wave": 2}),
            "it depends on ConfigMap shop/env, which is in the later wave 2 (its own is 1)",
        ),
    ]
}
