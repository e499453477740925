//! The rows of reasons about deletions.

use super::*;
use crate::engine::LossyKind;

fn peer(interest: PeerInterest) -> Reason {
    Reason::Confirm(PruneCause::Withheld(WithheldCause::Peer("ops".into(), interest)))
}

pub(super) fn deferred() -> Vec<ReasonRow> {
    let defer = |cause: PruneCause, details: Value, sentence: &'static str| {
        (Reason::Prune(cause), "PruneDeferred", details, sentence)
    };
    let unfinished = |milestone: ChangeMilestone| PruneCause::Unfinished(config(), milestone);
    let changing = || json!({"cause": "UnitUnfinished", "object": config_json()});
    vec![
        defer(
            PruneCause::WithheldForNow(WithheldCause::Moved(PossibleMove::Named("ops/env.yaml".into()))),
            json!({"cause": "MovedInRepository", "file": "ops/env.yaml"}),
            "not pruned now: ops/env.yaml of the same repository has it now: apply that first, and it moves",
        ),
        defer(
            PruneCause::WithheldForNow(WithheldCause::Moved(PossibleMove::Unreadable(x()))),
            json!({"cause": "MovedInRepository", "message": "x"}),
            "not pruned now: another folder of the same repository may have it: it cannot be read: x",
        ),
        defer(unfinished(ChangeMilestone::Changed), changing(), "pruned when ConfigMap shop/env is changed"),
        defer(
            unfinished(ChangeMilestone::Restarted),
            changing(),
            "pruned when ConfigMap shop/env is restarted",
        ),
        defer(
            unfinished(ChangeMilestone::RolledOut),
            changing(),
            "pruned when ConfigMap shop/env is rolled out",
        ),
        defer(
            unfinished(ChangeMilestone::Healthy(Health::new(HealthStatus::Failed, "x"))),
            json!({"cause": "UnitUnfinished", "object": config_json(), "message": "Failed: x"}),
            "pruned when ConfigMap shop/env is healthy (Failed: x)",
        ),
        defer(
            PruneCause::UsedBy(config()),
            json!({"cause": "UsedByPruned", "object": config_json()}),
            "pruned after ConfigMap shop/env, which uses it",
        ),
    ]
}

/// Returns the rows of causes that hold for all objects of a source.
pub(super) fn deferred_for_all() -> Vec<ReasonRow> {
    let defer = |cause: PruneCause, details: Value, sentence: &'static str| {
        (Reason::Prune(cause), "PruneDeferred", details, sentence)
    };
    vec![
        defer(
            PruneCause::UncheckedSeals(x()),
            json!({"cause": "SealsUnchecked", "message": "x"}),
            "nothing is pruned, as seals cannot be checked without the Secret config-key.rhumb.dev in rhumb's \
             namespace: x",
        ),
        defer(
            PruneCause::UnreadKey,
            json!({"cause": "SealKeyUnread"}),
            "nothing is pruned until the key of the seals is read",
        ),
        defer(
            PruneCause::UnobservedSource("ops".into()),
            json!({"cause": "SourceNotObserved", "source": "ops"}),
            "pruned when source ops, which may want it, was observed again",
        ),
        defer(
            PruneCause::UnscopedFile("a.yaml".into(), kind()),
            json!({"cause": "ScopeUnknown", "file": "a.yaml", "kind": "Deployment.apps"}),
            "nothing is pruned until a.yaml is readable: it is not known whether Deployment.apps is namespaced",
        ),
        defer(
            PruneCause::UnreadInventory,
            json!({"cause": "InventoryUnread"}),
            "nothing is pruned until the inventory is read",
        ),
        defer(
            PruneCause::UnsearchedFolders,
            json!({"cause": "FoldersUnsearched"}),
            "nothing is pruned until the other folders of the repository are read",
        ),
        defer(
            PruneCause::UnrecordedRevision("1a2b".into()),
            json!({"cause": "RevisionUnrecorded", "revision": "1a2b"}),
            "nothing is pruned until the inventory records revision 1a2b as accepted",
        ),
        defer(
            PruneCause::UnlistedKind(kind()),
            json!({"cause": "KindNotListed", "kind": "Deployment.apps"}),
            "nothing is pruned while Deployment.apps cannot be listed",
        ),
        defer(
            PruneCause::UnrenderedKind(kind()),
            json!({"cause": "KindNotListed", "kind": "Deployment.apps"}),
            "nothing is pruned until charts are rendered with Deployment.apps, which the server did not list",
        ),
        defer(
            PruneCause::UnreadContent(config()),
            json!({"cause": "ContentUnread", "object": config_json()}),
            "pruned when the content of ConfigMap shop/env was read again",
        ),
        defer(
            PruneCause::TakeoverPeriod(30),
            json!({"cause": "TakeoverPeriod", "periodSeconds": 30}),
            "pruned when other sources have had 30 s to take it over",
        ),
        defer(
            PruneCause::Undecided,
            json!({"cause": "NotDecided"}),
            "it is not decided yet whether it may be pruned",
        ),
    ]
}

pub(super) fn wanted_by_others() -> Vec<ReasonRow> {
    let wanted = |interest: PeerInterest, sentence: &'static str| {
        let mut details = json!({"cause": "WantedByOther", "source": "ops"});
        match &interest {
            PeerInterest::Unreadable(why) => details["message"] = why.to_string().into(),
            PeerInterest::Elsewhere(revision) => details["revision"] = revision.to_string().into(),
            _ => {}
        }
        (peer(interest), "PruneNeedsConfirmation", details, sentence)
    };
    vec![
        wanted(PeerInterest::Requested, "source ops wants it; see `rhumb prune list`"),
        wanted(
            PeerInterest::Unlisted,
            "source ops may want it, as it brings many objects; see `rhumb prune list`",
        ),
        wanted(
            PeerInterest::Unreadable(x()),
            "source ops may want it: what its ConfigMap tells cannot be read: x; see `rhumb prune list`",
        ),
        wanted(
            PeerInterest::Incomplete,
            "source ops may want it: it has not been read completely; see `rhumb prune list`",
        ),
        wanted(
            PeerInterest::IncompleteOfSame,
            "source ops of the same repository may want it: it has not been read completely; see `rhumb prune \
             list`",
        ),
        wanted(
            PeerInterest::Elsewhere("1a2b".into()),
            "source ops of the same repository may want it: it has read revision 1a2b; see `rhumb prune list`",
        ),
        wanted(
            PeerInterest::Unobserved,
            "source ops may want it: it was not observed since; see `rhumb prune list`",
        ),
        wanted(
            PeerInterest::Unanswered,
            "source ops may want it: it was asked for an observation, and has not answered; see `rhumb prune list`",
        ),
    ]
}

pub(super) fn pending() -> Vec<ReasonRow> {
    let confirm = |cause: PruneCause, details: Value, sentence: &'static str| {
        (Reason::Confirm(cause), "PruneNeedsConfirmation", details, sentence)
    };
    vec![
        confirm(
            PruneCause::OtherLocation("/old".into()),
            json!({"cause": "OtherLocation", "location": "/old"}),
            "this inventory was made from /old; nothing of it is pruned until it is confirmed; see `rhumb prune \
             list`",
        ),
        confirm(
            PruneCause::DataLoss(LossyKind::Namespace),
            json!({"cause": "LosesData"}),
            "a Namespace is deleted only after a confirmation; see `rhumb prune list`",
        ),
        confirm(
            PruneCause::ConfirmationRequested,
            json!({"cause": "ConfirmationRequested"}),
            "its annotation asks for a confirmation; see `rhumb prune list`",
        ),
        confirm(
            PruneCause::UnknownKept,
            json!({"cause": "KeptListIncomplete"}),
            "not all objects that are to be kept are known: `kept` in the ConfigMap of the source has no room \
             for more, or lines that cannot be read; see `rhumb prune list`",
        ),
        confirm(
            PruneCause::BlastRadius { count: 20, total: 30 },
            json!({"cause": "BlastRadius", "count": 20, "total": 30}),
            "20 of 30 objects would be pruned at once, beyond the blast radius; see `rhumb prune list`",
        ),
        confirm(
            PruneCause::AllOfKind(kind(), 3),
            json!({"cause": "AllOfKind", "kind": "Deployment.apps", "count": 3, "total": 3}),
            "all 3 objects of kind Deployment.apps would be pruned; see `rhumb prune list`",
        ),
    ]
}

pub(super) fn kept() -> Vec<ReasonRow> {
    let keep = |cause: PruneCause, details: Value, sentence: &'static str| {
        (Reason::Kept(cause), "Kept", details, sentence)
    };
    let unrendered = |relation: RootRelation, sentence: &'static str| {
        let cause = PruneCause::Unrendered(BlockingRoot { folder: "shop".into(), relation });
        keep(cause, json!({"cause": "RootNotRendered", "file": "shop"}), sentence)
    };
    vec![
        keep(
            PruneCause::UsedByKept(config()),
            json!({"cause": "UsedByKept", "object": config_json()}),
            "ConfigMap shop/env, which is kept, uses it",
        ),
        keep(
            PruneCause::NotAllowed(DisallowedObject {
                violation: AllowViolation::Namespace("ops".into()),
                step: Some(2),
            }),
            json!({
                "cause": "NotAllowed", "step": 2, "namespace": "ops",
                "message": "the namespace ops is not among `allow.namespaces` of the source",
            }),
            "no longer allowed, so it is neither repaired nor deleted: the namespace ops is not among \
             `allow.namespaces` of the source; it stays in step 2 of its rollout",
        ),
        keep(
            PruneCause::NotAllowed(DisallowedObject {
                violation: AllowViolation::Outer(Box::new(AllowViolation::Kind(kind()))),
                step: None,
            }),
            json!({
                "cause": "NotAllowed", "kind": "Deployment.apps",
                "message": "the kind apps/Deployment is not among `customSources.objects.kinds` of the configuration",
            }),
            "no longer allowed, so it is neither repaired nor deleted: the kind apps/Deployment is not among \
             `customSources.objects.kinds` of the configuration",
        ),
        keep(
            PruneCause::Annotated,
            json!({"cause": "KeptByAnnotation"}),
            "no longer wanted, and kept, as an annotation of it asks",
        ),
        keep(
            PruneCause::Unproven,
            json!({"cause": "Unproven"}),
            "no longer wanted; kept, as its annotation rhumb.dev/release has no valid seal, so rhumb cannot tell \
             that it made it: delete it by kubectl if nobody needs it",
        ),
        unrendered(
            RootRelation::UnknownOrigin,
            "not pruned: root shop does not render, and where the object came from is not known",
        ),
        unrendered(
            RootRelation::Origin,
            "not pruned: root shop does not render, and the object came from it",
        ),
        unrendered(
            RootRelation::PossibleName,
            "not pruned: root shop does not render, and may want the object",
        ),
        keep(PruneCause::PolicyOff, json!({"cause": "PruneOff"}), "no longer wanted; `prune` is off"),
        keep(PruneCause::NotInFiles, json!({"cause": "NotInFiles"}), "not in the given files"),
        keep(
            PruneCause::Incomplete(IncompleteCause::Message(x())),
            json!({"cause": "SourceNotRead", "message": "x"}),
            "nothing is pruned, as the source was not read completely: x",
        ),
    ]
}
