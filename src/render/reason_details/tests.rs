//! The code, the values and the sentence of each reason, and of each cause inside one.

mod failure_rows;
mod kind_rows;
mod order_rows;
mod prune_rows;
mod refusal_rows;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::engine::{
    ActiveHold, BlockingRoot, BudgetHolding, CauseCode, ClaimHolder, DisallowedObject, HolderProcess,
    ReconcilePolicy, RefusalRule, RejectedContent, RejectionOutcome, RootRelation, SourceId, StepObstacle,
    StepWait, SurplusPods, WithheldWrite, WriteFailure,
};
use crate::health::{Health, HealthStatus};
use crate::object::GroupKind;

/// A reason, its code, its values and its sentence.
type ReasonRow = (Reason, &'static str, Value, &'static str);

fn x() -> Arc<str> {
    "x".into()
}

fn config() -> ObjectId {
    ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), "env")
}

fn config_json() -> Value {
    json!({"kind": "ConfigMap", "namespace": "shop", "name": "env"})
}

fn kind() -> GroupKind {
    GroupKind::new("apps", "Deployment")
}

fn gvk() -> Gvk {
    Gvk::new("apps", "v1", "Deployment")
}

fn hold(withheld: WithheldWrite) -> Reason {
    let (until, reason) = (Some(jiff::Timestamp::UNIX_EPOCH), x());
    Reason::OnHold(ActiveHold { until, reason, withheld })
}

fn holder(source: Option<&str>) -> ClaimHolder {
    let process = Some(HolderProcess { number: "12".into(), host: "host".into() });
    ClaimHolder { source: source.map(Arc::from), process, has_ended: false }
}

fn wait() -> StepWait {
    let lacks = StepRequirement::Pods { ready: 3, target: 4 };
    StepWait { step: 1, of: 2, lacks, surplus: SurplusPods::None }
}

fn rejected(outcome: RejectionOutcome) -> Reason {
    Reason::Rejected(RejectedContent { cause: x(), outcome })
}

fn sources() -> Vec<ReasonRow> {
    let incomplete = |cause: IncompleteCause, details: Value, sentence: &'static str| {
        (Reason::Incomplete(IncompleteSource::Incomplete(cause)), "SourceIncomplete", details, sentence)
    };
    vec![
        incomplete(
            IncompleteCause::Message(x()),
            json!({"message": "x"}),
            "the source was not read completely: x",
        ),
        incomplete(
            IncompleteCause::Unread,
            json!({"cause": "NeverRead"}),
            "the source was not read completely: it has not been read yet",
        ),
        incomplete(
            IncompleteCause::UnreadableFile("a.yaml".into()),
            json!({"cause": "FileUnreadable", "file": "a.yaml"}),
            "the source was not read completely: a.yaml is not understood",
        ),
        (
            Reason::Incomplete(IncompleteSource::Unrendered(BlockingRoot {
                folder: "shop".into(),
                relation: RootRelation::Origin,
            })),
            "SourceIncomplete",
            json!({"cause": "RootNotRendered", "file": "shop"}),
            "the source was not read completely: not pruned: root shop does not render, and the object came from it",
        ),
        (
            Reason::ReadingPeers,
            "ReadingOtherSources",
            Value::Null,
            "reading what other sources of the cluster want",
        ),
        (
            Reason::Observed,
            "SourceObserved",
            Value::Null,
            "the source has `observe: true`, so nothing is written",
        ),
    ]
}

fn dependencies() -> Vec<ReasonRow> {
    use DependencyState::{
        Contested, Deleting, Missing, Paused, Refused, RollingBack, RollingOut, Soaking, Unchanged,
        Unhealthy, Unnamed, Unusable,
    };

    let needs = |state: DependencyState, cause: &str, sentence: &'static str| {
        let details = json!({"cause": cause, "object": config_json()});
        (Reason::Needs(config(), state), "WaitingForDependency", details, sentence)
    };
    let says = |state: DependencyState, cause: &str, message: &str, sentence: &'static str| {
        let details = json!({"cause": cause, "object": config_json(), "message": message});
        (Reason::Needs(config(), state), "WaitingForDependency", details, sentence)
    };
    let fails = Health::new(HealthStatus::Failed, "x");
    vec![
        needs(Missing, "NotFound", "needs ConfigMap shop/env, which is not there yet"),
        needs(Unnamed, "NotNamed", "needs ConfigMap shop/env, which no source names"),
        needs(Deleting, "BeingDeleted", "needs ConfigMap shop/env, which is being deleted"),
        says(Unhealthy(fails), "Unhealthy", "Failed: x", "needs ConfigMap shop/env, which is Failed: x"),
        needs(Unchanged, "NotChanged", "needs ConfigMap shop/env, which is not changed yet"),
        needs(RollingOut, "RollingOut", "needs ConfigMap shop/env, which is rolling out"),
        needs(Soaking, "Soaking", "needs ConfigMap shop/env, which is rolled out"),
        needs(RollingBack, "RollingBack", "needs ConfigMap shop/env, which is rolled back first"),
        says(
            Refused(RefusalCause::Message(x())),
            "DependencyRefused",
            "x",
            "needs ConfigMap shop/env, which is refused: x",
        ),
        says(
            Unusable(ManifestFault::Finding(x())),
            "DependencyUnusable",
            "x",
            "needs ConfigMap shop/env, which cannot be used: x",
        ),
        needs(
            Contested,
            "DependencyContested",
            "needs ConfigMap shop/env, which is wanted by several sources",
        ),
        needs(Paused, "DependencyPaused", "needs ConfigMap shop/env, which is paused"),
        (
            Reason::Wave(-1, config()),
            "WaitingForWave",
            json!({"wave": -1, "object": config_json()}),
            "wave -1 is not finished: ConfigMap shop/env",
        ),
        (
            Reason::UnitWorkload(config()),
            "WaitingForUnit",
            json!({"object": config_json()}),
            "it is released together with ConfigMap shop/env, which has not started to roll out",
        ),
    ]
}

fn budgets() -> Vec<ReasonRow> {
    let short = |shortage: BudgetShortage, details: Value, sentence: &'static str| {
        (Reason::Budget(shortage), "WaitingForBudget", details, sentence)
    };
    let source = || BudgetScope::Source(SourceId::new(0), "ops".into());
    let behind = || Box::new(BudgetShortage::Starts(BudgetScope::Cluster, 1));
    vec![
        (Reason::Claiming, "WritingClaim", Value::Null, "its claim on the rollout budget is being written"),
        short(
            BudgetShortage::Workloads(source(), 1, [config()].into()),
            json!({
                "cause": "MaxWorkloads", "source": "ops", "used": 1, "limit": 1, "objects": [config_json()],
            }),
            "1 of 1 workloads of source ops are rolling out: ConfigMap shop/env",
        ),
        short(
            BudgetShortage::SlowStart(1, [config()].into()),
            json!({"cause": "SlowStart", "used": 1, "limit": 1, "objects": [config_json()]}),
            "slow start: at most 1 at a time until rollouts succeed: ConfigMap shop/env",
        ),
        short(
            BudgetShortage::Pods(BudgetScope::Namespace("shop".into()), 2, 3, 4),
            json!({"cause": "MaxUnavailable", "namespace": "shop", "used": 3, "limit": 4, "takesDown": 2}),
            "3 of at most 4 pods in namespace shop are unavailable, and this one takes down 2 more",
        ),
        short(
            BudgetShortage::TooMany(BudgetScope::Cluster, 3, 2),
            json!({"cause": "TakesDownTooMany", "limit": 2, "takesDown": 3}),
            "it takes down 3 pods at once, and at most 2 may be unavailable (maxUnavailable)",
        ),
        short(
            BudgetShortage::Starts(BudgetScope::Cluster, 2),
            json!({"cause": "MaxStarts", "used": 2, "limit": 2}),
            "2 rollouts have started in the last minute",
        ),
        short(
            BudgetShortage::Behind(config()),
            json!({"cause": "BehindAnother", "object": config_json()}),
            "ConfigMap shop/env goes first",
        ),
        short(
            BudgetShortage::Hidden(behind(), config(), x()),
            json!({"cause": "MaxStarts", "used": 1, "limit": 1, "object": config_json(), "message": "x"}),
            "1 rollout has started in the last minute; it is not known whether ConfigMap shop/env is still \
             rolling out: x",
        ),
        short(
            BudgetShortage::Recovering(30),
            json!({"cause": "LedgerRecreated", "periodSeconds": 30}),
            "the rollout ledger was recreated; other daemons have 30 s to write their claims again",
        ),
    ]
}

fn shared_budgets() -> Vec<ReasonRow> {
    let shared = |holdings: Vec<BudgetHolding>, holder: &str, sentence: &'static str| {
        let details = json!({"cause": "MaxStarts", "used": 1, "limit": 1, "holder": holder});
        let short = Box::new(BudgetShortage::Starts(BudgetScope::Cluster, 1));
        let shortage = BudgetShortage::Shared(short, holdings.into());
        (Reason::Budget(shortage), "WaitingForBudget", details, sentence)
    };
    vec![
        shared(
            vec![BudgetHolding::UnreadableClaims("others have it".into())],
            "others have it",
            "1 rollout has started in the last minute; others have it",
        ),
        shared(
            vec![
                BudgetHolding::Claim(config(), holder(Some("ops"))),
                BudgetHolding::UnavailablePods { workload: config(), pods: 2, source: None },
            ],
            "ConfigMap shop/env is claimed by source ops, process 12 on host, 2 pods of ConfigMap shop/env of another \
             source are unavailable",
            "1 rollout has started in the last minute; ConfigMap shop/env is claimed by source ops, process 12 on \
             host, 2 pods of ConfigMap shop/env of another source are unavailable",
        ),
    ]
}

fn people() -> Vec<ReasonRow> {
    vec![
        (Reason::Paused(PauseSubject::Object, x()), "Paused", json!({"message": "x"}), "it is paused: x"),
        (
            Reason::Paused(PauseSubject::Source("shop".into()), "".into()),
            "Paused",
            json!({"source": "shop"}),
            "source shop is paused",
        ),
        (
            hold(WithheldWrite::Nothing),
            "OnHold",
            json!({"until": "1970-01-01T00:00:00Z", "message": "x"}),
            "on hold until 1970-01-01T00:00:00Z: x",
        ),
        (
            hold(WithheldWrite::Repair),
            "OnHold",
            json!({"cause": "RepairWithheld", "until": "1970-01-01T00:00:00Z", "message": "x"}),
            "on hold until 1970-01-01T00:00:00Z: x; it was changed, and is not repaired",
        ),
        (
            hold(WithheldWrite::Content),
            "OnHold",
            json!({"cause": "ContentWithheld", "until": "1970-01-01T00:00:00Z", "message": "x"}),
            "on hold until 1970-01-01T00:00:00Z: x; a newer content waits",
        ),
        (
            hold(WithheldWrite::Deletion),
            "OnHold",
            json!({"cause": "DeletionWithheld", "until": "1970-01-01T00:00:00Z", "message": "x"}),
            "on hold until 1970-01-01T00:00:00Z: x; its deletion is pending",
        ),
    ]
}

fn rejections_and_opt_outs() -> Vec<ReasonRow> {
    let revision = || "1a2b".into();
    vec![
        (
            rejected(RejectionOutcome::Quarantined),
            "ContentRejected",
            json!({"cause": "ContentQuarantined", "message": "x"}),
            "x",
        ),
        (
            rejected(RejectionOutcome::Unaffected(revision())),
            "ContentRejected",
            json!({"cause": "ContentUnaffected", "revision": "1a2b", "message": "x"}),
            "x; its content stays that of revision 1a2b",
        ),
        (
            rejected(RejectionOutcome::RolledBack(revision())),
            "ContentRejected",
            json!({"cause": "ContentRolledBack", "revision": "1a2b", "message": "x"}),
            "x; it is back at revision 1a2b",
        ),
        (
            rejected(RejectionOutcome::Unreadable(revision())),
            "ContentRejected",
            json!({"cause": "RollbackUnreadable", "revision": "1a2b", "message": "x"}),
            "x; it is back at revision 1a2b, which cannot be read any more",
        ),
        (
            Reason::LeftAlone(ReconcilePolicy::OnlyCreate),
            "LeftAlone",
            json!({"cause": "OnlyCreated"}),
            "its annotation asks to create it only if it is missing, and it exists",
        ),
        (
            Reason::LeftAlone(ReconcilePolicy::Disabled),
            "LeftAlone",
            json!({"cause": "ReconcileDisabled"}),
            "its annotation asks not to reconcile it",
        ),
        (
            Reason::OptedOut("example.com/word"),
            "OptedOut",
            json!({"annotation": "example.com/word"}),
            "example.com/word is set on the live object: it is neither changed nor repaired until that is \
             removed",
        ),
    ]
}

fn steps() -> Vec<ReasonRow> {
    let paused = Reason::Paused(PauseSubject::Object, x());
    vec![
        (
            Reason::Step(HeldStep::Pods(wait(), None)),
            "StepInProgress",
            json!({"cause": "StepPodsPending", "step": 1, "steps": 2, "ready": 3, "target": 4}),
            "step 1 of 2: 3 of 4 new pods are ready",
        ),
        (
            Reason::Step(HeldStep::Pods(wait(), Some(StepObstacle::Reason(paused.into())))),
            "StepInProgress",
            json!({
                "cause": "StepPodsPending", "step": 1, "steps": 2, "ready": 3, "target": 4,
                "message": "it is paused: x",
            }),
            "step 1 of 2: 3 of 4 new pods are ready; it is paused: x",
        ),
        (
            Reason::Step(HeldStep::LostNode("node-1".into())),
            "StepInProgress",
            json!({"cause": "NodeNotReady", "node": "node-1"}),
            "all nodes that are Ready have the new pod; node node-1 is not Ready",
        ),
        (
            Reason::Step(HeldStep::Surplus(SurplusOutcome::Removed)),
            "StepInProgress",
            json!({"cause": "SurplusPods"}),
            "scaling gave the new template more pods than its step allows: they are removed as old pods become \
             available",
        ),
        (
            Reason::Step(HeldStep::Surplus(SurplusOutcome::Kept(x()))),
            "StepInProgress",
            json!({"cause": "SurplusPods", "message": "x"}),
            "scaling gave the new template more pods than its step allows: they cannot be removed: x",
        ),
    ]
}

fn step_obstacles() -> Vec<ReasonRow> {
    let held = |obstacle: StepObstacle, more: Value, sentence: &'static str| {
        let mut details = json!({"cause": "StepPodsPending", "step": 1, "steps": 2, "ready": 3, "target": 4});
        details.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        (Reason::Step(HeldStep::Pods(wait(), Some(obstacle))), "StepInProgress", details, sentence)
    };
    let (pod, node) = ("web-1".into(), "node-1".into());
    vec![
        held(
            StepObstacle::EvictionRefused { pod, node, message: x() },
            json!({"pod": "web-1", "node": "node-1", "message": "x"}),
            "step 1 of 2: 3 of 4 new pods are ready; pod web-1 on node node-1 cannot be evicted: x",
        ),
        held(
            StepObstacle::EvictionDenied(x()),
            json!({"message": "x"}),
            "step 1 of 2: 3 of 4 new pods are ready; no pod of it can be evicted: x",
        ),
        held(
            StepObstacle::UnreadableNodes(x()),
            json!({"message": "x"}),
            "step 1 of 2: 3 of 4 new pods are ready; the nodes cannot be read: x",
        ),
        held(
            StepObstacle::UnlistedNodes,
            json!({}),
            "step 1 of 2: 3 of 4 new pods are ready; the nodes are being listed",
        ),
    ]
}

fn writes() -> Vec<ReasonRow> {
    vec![
        (Reason::Terminating, "Terminating", Value::Null, "it is being deleted"),
        (
            Reason::OwnWrite,
            "WaitingForWatch",
            Value::Null,
            "waiting for the watch to show rhumb's last write",
        ),
        (
            Reason::Retrying(RetryCause::Message(x()), Duration::from_millis(1500)),
            "Retrying",
            json!({"message": "x", "retryAfterSeconds": 2}),
            "x; retry in 1 s",
        ),
        (
            Reason::Retrying(RetryCause::Conflict, Duration::from_secs(5)),
            "Retrying",
            json!({"cause": "WriteConflict", "retryAfterSeconds": 5}),
            "another client wrote first; retry in 5 s",
        ),
        (
            Reason::Retrying(
                RetryCause::LedgerFull { workload: config(), used: 800, limit: 900 },
                Duration::from_secs(5),
            ),
            "Retrying",
            json!({
                "cause": "LedgerFull", "object": config_json(), "used": 800, "limit": 900, "retryAfterSeconds": 5,
            }),
            "the rollout ledger has no room for what is released together with ConfigMap shop/env: rollouts that \
             are not over take 800 of 900 kB; retry in 5 s",
        ),
        (
            Reason::Fight(FightCause::Changes(["kubectl".into()].into()), Duration::from_secs(5)),
            "CompetingWriter",
            json!({"cause": "FieldsChanged", "holder": "kubectl", "retryAfterSeconds": 5}),
            "kubectl keeps changing the same fields: stop it, or leave these fields to it; next repair in 5 s",
        ),
        (
            Reason::Fight(FightCause::Deletions, Duration::from_secs(5)),
            "CompetingWriter",
            json!({"cause": "ObjectDeleted", "retryAfterSeconds": 5}),
            "somebody deletes it each time it is made: stop that, or take it out of the source; next repair in \
             5 s",
        ),
    ]
}

fn rows() -> Vec<ReasonRow> {
    [
        kind_rows::kinds_and_records(),
        kind_rows::watches(),
        sources(),
        dependencies(),
        budgets(),
        shared_budgets(),
        people(),
        rejections_and_opt_outs(),
        steps(),
        step_obstacles(),
        refusal_rows::refused_contents(),
        refusal_rows::refusals(),
        refusal_rows::unusable_manifests(),
        writes(),
        prune_rows::deferred(),
        prune_rows::deferred_for_all(),
        prune_rows::wanted_by_others(),
        prune_rows::pending(),
        prune_rows::kept(),
    ]
    .concat()
}

#[test]
fn each_reason_has_its_code_its_values_and_its_sentence() {
    for (reason, code, details, sentence) in rows() {
        let form = serde_json::to_value(CodedReason::of(&reason)).unwrap();
        let expected = match details {
            Value::Null => json!({"code": code}),
            details => json!({"code": code, "details": details}),
        };
        assert_eq!((form, &*reason.to_string()), (expected, sentence), "{reason:?}");
    }
}

#[test]
fn each_failed_write_says_why() {
    let check = |failure: WriteFailure, expected: &str| assert_eq!(failure.to_string(), expected);
    check(WriteFailure::Conflict(Duration::ZERO), "another client wrote first");
    check(WriteFailure::Refused(x(), RefusalRule::Other, None), "x");
    check(WriteFailure::Unknown(x(), Duration::ZERO), "x");
}

#[test]
fn a_health_says_its_status_and_why_where_that_is_known() {
    let check = |health: Health, expected: &str| assert_eq!(health.to_string(), expected);
    check(Health::current(), "healthy");
    check(Health::new(HealthStatus::InProgress, ""), "InProgress");
    check(Health::new(HealthStatus::Failed, "it crashes"), "Failed: it crashes");
}

#[test]
fn each_code_and_each_cause_has_a_reason_and_no_word_is_both() {
    let rows = rows();
    let codes = rows.iter().map(|(reason, ..)| reason.code());
    let codes: BTreeSet<ReasonCode> =
        codes.chain([ReasonCode::RolloutFailed, ReasonCode::OrderAnswered]).collect();
    assert!(codes.iter().eq(ReasonCode::ALL), "{codes:?}");
    let causes = rows.iter().filter_map(|(reason, ..)| reason.cause_code());
    let causes: BTreeSet<CauseCode> =
        causes.chain(failure_rows::codes()).chain(order_rows::codes()).collect();
    assert!(causes.iter().eq(CauseCode::ALL), "{causes:?}");
    let words = ReasonCode::ALL.iter().map(|code| code.word());
    let words: BTreeSet<&str> = words.chain(CauseCode::ALL.iter().map(|code| code.word())).collect();
    assert_eq!(words.len(), ReasonCode::ALL.len() + CauseCode::ALL.len());
}

#[test]
fn whoever_reads_the_form_gets_all_of_it_back() {
    for (reason, ..) in rows() {
        let coded = CodedReason::of(&reason);
        let text = serde_json::to_string(&coded).unwrap();
        assert_eq!(serde_json::from_str::<CodedReason>(&text).unwrap(), coded, "{text}");
    }
    assert_eq!(serde_json::from_str::<CodedReason>("{}").unwrap(), CodedReason::default());
}

#[test]
fn the_words_of_others_and_lists_of_objects_are_bounded() {
    let details = |reason: &Reason| *CodedReason::of(reason).details.unwrap();
    let long = details(&Reason::Unusable("é".repeat(MAX_MESSAGE_BYTES).as_str().into()));
    assert_eq!(long.message.map(|text| text.len()), Some(MAX_MESSAGE_BYTES));
    let many = vec![config(); MAX_NAMED_OBJECTS + 1].into();
    let short = details(&Reason::Budget(BudgetShortage::SlowStart(1, many)));
    assert_eq!((short.objects.len(), short.used), (MAX_NAMED_OBJECTS, Some(MAX_NAMED_OBJECTS as u32 + 1)));
}

#[test]
fn the_holder_of_a_claim_is_named_as_far_as_it_is_known() {
    let check = |holder: ClaimHolder, expected: &str| assert_eq!(holder.to_string(), expected);
    check(holder(Some("ops")), "source ops, process 12 on host");
    check(holder(None), "another source, process 12 on host");
    check(ClaimHolder { process: None, ..holder(Some("ops")) }, "source ops");
    check(
        ClaimHolder { has_ended: true, ..holder(Some("ops")) },
        "source ops, process 12 on host, which has ended",
    );
}
