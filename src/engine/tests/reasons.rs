//! The words of each reason, and whether it is shown as refused, as at rest or as waiting.

use std::sync::Arc;
use std::time::Duration;

use super::world::{FIRST, World, WorldObject, config, desired, workload};
use crate::engine::decide::ownership::left_alone_reason;
use crate::engine::*;
use crate::object::{ErrorClass, GroupKind, Gvk, ObjectId};

const SECOND: Duration = Duration::from_secs(1);

/// The way in which a reason is shown.
#[derive(Debug, PartialEq, Eq)]
enum ReasonDisplay {
    Refused,
    AtRest,
    Waiting,
}

fn words() -> Arc<str> {
    "x".into()
}

fn hold(withheld: WithheldWrite) -> ActiveHold {
    ActiveHold { until: Some(jiff::Timestamp::UNIX_EPOCH), reason: words(), withheld }
}

/// Returns the reason of a content that failed for the reason `x`.
pub(super) fn quarantined() -> Reason {
    Reason::Rejected(RejectedContent { cause: words(), outcome: RejectionOutcome::Quarantined })
}

fn shown(reason: &Reason) -> ReasonDisplay {
    match (reason.is_refusal(), reason.is_requested()) {
        (true, false) => ReasonDisplay::Refused,
        (false, true) => ReasonDisplay::AtRest,
        (false, false) => ReasonDisplay::Waiting,
        (true, true) => panic!("{reason}"),
    }
}

/// Checks the words of reasons that are all shown in one way.
fn check(expected: &ReasonDisplay, reasons: &[(Reason, &str)]) {
    for (reason, words) in reasons {
        assert_eq!((&shown(reason), &*reason.to_string()), (expected, *words), "{reason:?}");
    }
}

#[test]
fn what_passes_by_itself_or_by_a_persons_word_waits() {
    let (kind, gvk) = (GroupKind::new("apps", "Deployment"), Gvk::new("apps", "v1", "Deployment"));
    let others = |versions: &[&str]| versions.iter().map(|version| (*version).to_owned()).collect();
    let reasons = [
        (Reason::Syncing(kind.clone()), "waiting for the first list of Deployment.apps"),
        (
            Reason::Unobservable(kind, "denied".into(), ErrorClass::Forbidden),
            "Deployment.apps cannot be watched: denied",
        ),
        (Reason::Inventory("shop".into()), "the inventory ConfigMap shop is being written"),
        (Reason::Unserved(gvk.clone(), others(&[])), "the server has no kind apps/v1 Deployment"),
        (
            Reason::Unserved(gvk.clone(), others(&["v2", "v3"])),
            "the server has no kind apps/v1 Deployment (it has v2, v3)",
        ),
        (Reason::UnknownKind(gvk), "the API server cannot say now whether it serves apps/v1 Deployment"),
        (
            Reason::Needs(config("a"), DependencyState::Missing),
            "needs ConfigMap shop/a, which is not there yet",
        ),
        (Reason::Wave(-1, config("a")), "wave -1 is not finished: ConfigMap shop/a"),
        (Reason::Budget(BudgetShortage::Behind(workload("web"))), "Deployment shop/web goes first"),
        (Reason::Claiming, "its claim on the rollout budget is being written"),
        (
            Reason::UnitWorkload(workload("web")),
            "it is released together with Deployment shop/web, which has not started to roll out",
        ),
        (Reason::RecordUnreadable(words()), "x"),
        (
            Reason::Step(HeldStep::LostNode("node-1".into())),
            "all nodes that are Ready have the new pod; node node-1 is not Ready",
        ),
        (Reason::Paused(PauseSubject::Object, "".into()), "it is paused"),
        (Reason::Paused(PauseSubject::Source("shop".into()), words()), "source shop is paused: x"),
        (Reason::OnHold(hold(WithheldWrite::Nothing)), "on hold until 1970-01-01T00:00:00Z: x"),
        (
            Reason::OnHold(ActiveHold { reason: "".into(), ..hold(WithheldWrite::Content) }),
            "on hold until 1970-01-01T00:00:00Z; a newer content waits",
        ),
        (Reason::Prune(PruneCause::UnreadInventory), "nothing is pruned until the inventory is read"),
        (
            Reason::Confirm(PruneCause::DataLoss(LossyKind::Namespace)),
            "a Namespace is deleted only after a confirmation; see `rhumb prune list`",
        ),
    ];
    check(&ReasonDisplay::Waiting, &reasons);
}

#[test]
fn what_is_being_read_or_tried_again_waits() {
    let fight = |cause: FightCause| Reason::Fight(cause, SECOND / 2);
    let failed = || RetryCause::Message(words());
    let reasons = [
        (Reason::Terminating, "it is being deleted"),
        (Reason::OwnWrite, "waiting for the watch to show rhumb's last write"),
        (Reason::Retrying(failed(), Duration::from_millis(999)), "x; retry in 999 ms"),
        (Reason::Retrying(failed(), SECOND), "x; retry in 1 s"),
        (Reason::Retrying(failed(), SECOND * 90), "x; retry in 90 s"),
        (
            fight(FightCause::Changes(["kubectl".into()].into())),
            "kubectl keeps changing the same fields: stop it, or leave these fields to it; next repair in 500 ms",
        ),
        (
            fight(FightCause::Deletions),
            "somebody deletes it each time it is made: stop that, or take it out of the source; next repair in 500 ms",
        ),
        (Reason::ReadingRevision("r1".into()), "reading its content from revision r1"),
        (
            Reason::KeyUnavailable("denied".into()),
            "the recorded hashes of Secrets are sealed, and the key is not available: denied",
        ),
        (Reason::Reading(config("a")), "reading ConfigMap shop/a, whose data its pods use"),
        (
            Reason::Incomplete(IncompleteSource::Incomplete(IncompleteCause::Message(words()))),
            "the source was not read completely: x",
        ),
        (Reason::ReadingPeers, "reading what other sources of the cluster want"),
        (Reason::Observed, "the source has `observe: true`, so nothing is written"),
    ];
    check(&ReasonDisplay::Waiting, &reasons);
}

#[test]
fn what_a_person_has_to_change_is_refused() {
    let reasons = [
        (Reason::Refused(RefusalCause::Message(words()), None), "x"),
        (Reason::Refused(RefusalCause::Message(words()), Some(SECOND)), "x"),
        (Reason::Owned(CurrentOwner::Source("shop".into())), "it belongs to source shop"),
        (
            Reason::NotAdopted,
            "it exists already, this source did not create it, and adopt is `never`; `adopt: if-unowned` takes it over",
        ),
        (Reason::Unusable(ManifestFault::Finding(words())), "x"),
        (
            Reason::Oversized(OversizedUnit { workload: config("a"), objects: 2, used: 601, limit: 600 }),
            "2 objects are released together with ConfigMap shop/a, and the record of what was good before (601 kB) is \
             larger than one may be (600 kB); change fewer of them in one commit",
        ),
        (quarantined(), "x"),
        (
            Reason::Generated(config("a")),
            "its generated values would not fit those of ConfigMap shop/a, which another render made: restore it, or \
             delete all objects of the release with generated values",
        ),
    ];
    check(&ReasonDisplay::Refused, &reasons);
}

#[test]
fn what_somebody_asked_for_is_at_rest() {
    let reasons = [
        (
            Reason::Kept(PruneCause::NotAllowed(DisallowedObject {
                violation: AllowViolation::Namespace("ops".into()),
                step: None,
            })),
            "no longer allowed, so it is neither repaired nor deleted: the namespace ops is not among \
             `allow.namespaces` of the source",
        ),
        (
            Reason::LeftAlone(ReconcilePolicy::OnlyCreate),
            "its annotation asks to create it only if it is missing, and it exists",
        ),
        (Reason::LeftAlone(ReconcilePolicy::Disabled), "its annotation asks not to reconcile it"),
        (
            Reason::OptedOut("example.com/word"),
            "example.com/word is set on the live object: it is neither changed nor repaired until that is removed",
        ),
    ];
    check(&ReasonDisplay::AtRest, &reasons);
}

#[test]
fn one_object_stands_for_all_of_a_record_that_is_too_large() {
    let a = config("a");
    let unit = OversizedUnit { workload: a.clone(), objects: 2, used: 601, limit: 600 };
    assert_eq!(Reason::Oversized(unit).representative(), Some(&a));
    for reason in [Reason::Generated(a.clone()), Reason::Wave(1, a.clone()), Reason::NotAdopted] {
        assert_eq!(reason.representative(), None, "{reason}");
    }
}

#[test]
fn each_failed_write_has_its_class() {
    let refused = |rule: RefusalRule| WriteFailure::Refused("no".into(), rule, None);
    for (failure, expected) in [
        (WriteFailure::Conflict(SECOND), ErrorClass::Conflict),
        (refused(RefusalRule::Rights), ErrorClass::Forbidden),
        (refused(RefusalRule::Webhook), ErrorClass::Transient),
        (refused(RefusalRule::Immutable), ErrorClass::Invalid),
        (refused(RefusalRule::Other), ErrorClass::Invalid),
        (WriteFailure::Unknown("it hangs".into(), SECOND), ErrorClass::Transient),
    ] {
        assert_eq!(failure.class(), expected, "{failure:?}");
    }
}

#[test]
fn a_decision_with_a_reason_is_asked_again_at_the_earlier_of_both_times() {
    let check = |before: Option<u64>, reason: Reason, expected: Option<u64>| {
        let requeue_after = before.map(Duration::from_secs);
        let decision = Decision { requeue_after, ..Decision::act(Action::Lookup) };
        let decision = decision.with_reason(reason.clone());
        let expected = expected.map(Duration::from_secs);
        let expected = Decision { action: Action::Lookup, reason: Some(reason), requeue_after: expected };
        assert_eq!(decision, expected);
    };
    let retrying = |seconds: u32| Reason::Retrying(RetryCause::Message(words()), SECOND * seconds);
    check(None, Reason::Terminating, None);
    check(Some(5), Reason::Terminating, Some(5));
    check(None, retrying(3), Some(3));
    check(Some(5), retrying(3), Some(3));
    check(Some(5), retrying(9), Some(5));
}

#[test]
fn the_word_of_a_manifest_counts_before_that_of_somebody_else() {
    use OptOutPolicy::{Allowed, Denied};
    use ReconcilePolicy::{Disabled, Enabled, OnlyCreate};

    const WORD: &str = "example.com/word";
    let a = config("a");
    let there = World::live(&a, &WorldObject::settled(desired(&a, 1, "a").hash, "r1", 1));
    let marked = LiveObject { opt_out: Some(WORD), ..there.clone() };
    let check = |reconcile, live: Option<&LiveObject>, policy, expected: Option<Reason>| {
        let mut wanted = (*desired(&a, 1, "a")).clone();
        wanted.traits.reconcile = reconcile;
        let word = live.and_then(|live| live.opt_out);
        let found = left_alone_reason(&wanted, live, policy);
        assert_eq!(found, expected, "{reconcile:?} {word:?} {policy:?}");
    };
    for policy in [Allowed, Denied] {
        check(Enabled, None, policy, None);
        check(Enabled, Some(&there), policy, None);
        check(OnlyCreate, None, policy, None);
        for live in [&there, &marked] {
            check(OnlyCreate, Some(live), policy, Some(Reason::LeftAlone(OnlyCreate)));
            check(Disabled, Some(live), policy, Some(Reason::LeftAlone(Disabled)));
        }
        check(Disabled, None, policy, Some(Reason::LeftAlone(Disabled)));
    }
    check(Enabled, Some(&marked), Allowed, Some(Reason::OptedOut(WORD)));
    check(Enabled, Some(&marked), Denied, None);
}

#[test]
fn a_kind_that_nobody_serves_is_taken_out_of_the_inventory_by_a_command_that_names_all_others() {
    let kinds = ["ConfigMap", "Deployment.apps", "Widget.example.com"].map(GroupKind::parse);
    let reason = unserved_kind_reason("rhumb-system", "shop", &kinds.clone().into(), &kinds[2]);
    let expected = "nothing is pruned while Widget.example.com cannot be listed: the \
                    server has no such kind; `kubectl get crds,apiservices` shows what defines kinds: bring its \
                    definition back, or, if none of its objects is left, take it out of the inventory: `kubectl -n \
                    rhumb-system annotate --overwrite configmap shop \
                    applyset.kubernetes.io/contains-group-kinds=ConfigMap,Deployment.apps`";
    assert_eq!(reason.to_string(), expected);
}

#[test]
fn an_object_moves_to_the_folder_that_names_it_now() {
    let [a, b] = ["a", "b"].map(config);
    let check = |moved: &MovedObjects, id: &ObjectId, expected: Option<&str>| {
        let doubt = moved.possible_move(id).map(|doubt| doubt.to_string());
        assert_eq!(doubt.as_deref(), expected, "{moved:?} {id}");
    };
    let known = MovedObjects::Known([(a.clone(), "other/a.yaml".into())].into());
    let moves = "other/a.yaml of the same repository has it now: apply that first, and it moves";
    check(&known, &a, Some(moves));
    check(&known, &b, None);
    check(&MovedObjects::Unsearched, &a, None);
    let unreadable = "another folder of the same repository may have it: it cannot be read: it is broken";
    check(&MovedObjects::Unreadable("it is broken".into()), &b, Some(unreadable));
}

#[test]
fn a_write_names_the_version_that_it_was_decided_on() {
    let rv = ResourceVersion(7);
    let apply = |decided_on: Option<ResourceVersion>| ApplyRequest {
        desired: desired(&config("a"), 1, "a"),
        source: FIRST,
        revision: crate::object::Revision::new("r1"),
        seal: None,
        precondition: Precondition::Absent,
        decided_on,
        variant: ApplyVariant::PLAIN,
        purpose: ApplyPurpose::Create,
        restarts: RestartRisk::Absent,
    };
    for (action, expected) in [
        (Action::Apply(apply(Some(rv))), Some(rv)),
        (Action::Apply(apply(None)), None),
        (Action::Delete(Uid("1".into()), rv, DeletionReason::Recreate), Some(rv)),
        (Action::DryRun(apply(Some(rv))), None),
        (Action::Lookup, None),
    ] {
        assert_eq!(action.decided_on(), expected, "{action:?}");
    }
}

#[test]
fn an_object_is_healthy_where_its_spec_is_reached() {
    use crate::engine::decide::blockers::is_healthy;
    use crate::health::{Health, HealthStatus};

    let a = config("a");
    let there = World::live(&a, &WorldObject::settled(desired(&a, 1, "a").hash, "r1", 1));
    let check = |health: Health, expected: bool| {
        let live = LiveObject { health, ..there.clone() };
        assert_eq!(is_healthy(&live), expected, "{:?}", live.health);
    };
    check(Health::current(), true);
    check(Health::new(HealthStatus::InProgress, ""), false);
    check(Health::new(HealthStatus::Failed, "it crashes"), false);
}
