//! The pure decision about one object: what is done for each change of a fact.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::reasons::quarantined;
use super::world::{FIRST, SECOND, SET, World, WorldObject, config, desired, gvk, workload};
use crate::engine::decide::decide::decide_from_facts;
use crate::engine::decide::decision::{CompetingAccounts, DecisionInput, Observation};
use crate::engine::facts::effective_content::ReplicaOwner;
use crate::engine::facts::entry::{ApiRefusal, TemporaryFailure};
use crate::engine::*;
use crate::object::{ContentHash, ObjectId, Revision};

pub(super) const SECOND_SET: &str = "applyset-second-v1";
const ONE_SECOND: Duration = Duration::from_secs(1);

/// Returns a content whose file is called as its number.
pub(super) fn content(id: &ObjectId, number: u32) -> SharedDesiredObject {
    desired(id, number, &number.to_string())
}

pub(super) fn paused() -> Reason {
    Reason::Paused(PauseSubject::Object, "".into())
}

/// One object, and all that is known of it.
pub(super) struct Scene {
    id: ObjectId,
    pub(super) entry: ObjectEntry,
    live: Option<LiveObject>,
    now: Instant,
}

/// Returns an object that shows its first content, as it was accepted, and of which another one is
/// wanted.
pub(super) fn scene(wanted: &SharedDesiredObject) -> Scene {
    let id = wanted.id.clone();
    let accepted = content(&id, 1);
    let live = World::live(&id, &WorldObject::settled(accepted.hash, "r1", 1));
    let entry = ObjectEntry {
        targets: vec![(FIRST, DesiredState::Object(wanted.clone()))],
        accepted: AcceptedContent::Known(accepted),
        incarnation: Some(live.uid.clone()),
        revision: Some(Revision::new("r1")),
        ..ObjectEntry::default()
    };
    Scene { id, entry, live: Some(live), now: Instant::now() + Duration::from_hours(1) }
}

/// Returns an object of which a newer content is wanted.
pub(super) fn changed() -> Scene {
    scene(&content(&config("a"), 2))
}

/// Returns an object that is wanted as it is.
fn at_rest() -> Scene {
    scene(&content(&config("a"), 1))
}

impl Scene {
    pub(super) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(super) fn with_live(self, change: impl FnOnce(&mut LiveObject)) -> Self {
        self.with(|scene| change(scene.live.as_mut().unwrap()))
    }

    fn gone(self) -> Self {
        self.with(|scene| scene.live = None)
    }

    /// Records the verdict about the fields of the content that is shown.
    pub(super) fn verified(self, cover: FieldOwnership) -> Self {
        self.with(|scene| {
            let live = scene.live.as_ref().unwrap();
            scene.entry.verified = Some(VerifiedOwnership {
                content: content(&scene.id, 1).hash,
                overlay: None,
                config_stamp: None,
                managed_fields: live.our_fields.clone(),
                value_digest: live.value_digest,
                cover,
            });
        })
    }

    /// Records that the API server has refused a content for this reason.
    fn refused(self, number: u32, rule: RefusalRule, retry_after: Option<Duration>) -> Self {
        self.with(|scene| {
            let refusal = ApiRefusal {
                source: FIRST,
                content: content(&scene.id, number).hash,
                cause: RefusalCause::Message("no".into()),
                retry: retry_after.map(|after| scene.now + after),
                rule,
                times: 1,
            };
            scene.entry.api_refusal = Some(Box::new(refusal));
        })
    }

    /// Records that something has failed, and is tried again after a time.
    fn failed(self, retry_after: Duration) -> Self {
        self.with(|scene| {
            let cause = RetryCause::Message("it hangs".into());
            let failure = TemporaryFailure { retry_at: scene.now + retry_after, cause };
            scene.entry.rare.change(|rare| rare.last_failure = Some(failure));
        })
    }

    /// Records repairs of so many seconds ago.
    pub(super) fn repaired(self, ages: &[u64]) -> Self {
        self.with(|scene| {
            let at = |age: &u64| scene.now.checked_sub(Duration::from_secs(*age)).unwrap();
            let repairs: Vec<_> = ages.iter().map(at).collect();
            scene.entry.rare.change(|rare| rare.repairs = repairs);
        })
    }

    /// Decides, and returns that in words.
    pub(super) fn decided(&self, change: impl FnOnce(&mut DecisionInput<'_>)) -> String {
        let inventories: [Arc<str>; 2] = [SET, SECOND_SET].map(Arc::from);
        let mut input = DecisionInput {
            id: &self.id,
            entry: &self.entry,
            observation: self.live.as_ref().map_or(Observation::Absent, Observation::Seen),
            inventories: &inventories,
            target_revision: Revision::new("r2"),
            rejection_reason: None,
            adopt: AdoptPolicy::IfUnowned,
            opt_out: OptOutPolicy::Allowed,
            holder: InventoryHolder::Nobody,
            scaling: ReplicaOwner::Manifest,
            write_blocker: None,
            release_blocker: None,
            prune_decision: None,
            incomplete_source: None,
            recreation_blocker: None,
            overlay: None,
            config_stamp: None,
            finished: None,
            generated_siblings: Vec::new(),
            accounts: CompetingAccounts::Same,
        };
        change(&mut input);
        words(&decide_from_facts(&input, self.now))
    }

    #[track_caller]
    pub(super) fn check(&self, expected: &str) {
        assert_eq!(self.decided(|_| {}), expected);
    }

    #[track_caller]
    pub(super) fn check_with(&self, change: impl FnOnce(&mut DecisionInput<'_>), expected: &str) {
        assert_eq!(self.decided(change), expected);
    }
}

fn words(decision: &Decision) -> String {
    let action = match &decision.action {
        Action::Apply(apply) => {
            let bound = match &apply.precondition {
                Precondition::Absent => "absent",
                Precondition::Uid(_) => "uid",
                Precondition::Exact(..) => "exact",
            };
            let restarts = if apply.restarts == RestartRisk::Possible { ", restarts" } else { "" };
            let replicas = match apply.variant.replicas {
                ReplicaMode::FromManifest => String::new(),
                other => format!(", {other:?}"),
            };
            let number = &apply.desired.origin.file;
            format!("{:?} {number} of {}, {bound}{replicas}{restarts}", apply.purpose, apply.revision)
        }
        Action::Delete(_, _, reason) => format!("Delete, {reason:?}"),
        Action::CompareCached(..) => "Compare".to_owned(),
        Action::CompareLive(..) => "CompareLive".to_owned(),
        other => format!("{other:?}"),
    };
    decision.reason.iter().fold(action, |action, reason| format!("{action}: {reason}"))
}

#[test]
fn a_missing_object_is_made_as_the_newest_revision_asks_or_again_as_it_was() {
    let missing = || changed().gone();
    missing().check("Create 2 of r2, absent");
    at_rest().gone().check("Repair 1 of r1, absent");
    let nothing = || missing().with(|scene| scene.entry.accepted = AcceptedContent::Nothing);
    nothing().check("Create 2 of r2, absent");
    // A content that may not be released yet does not keep the one before it from being made again.
    missing()
        .check_with(|input| input.release_blocker = Some(paused()), "Repair 1 of r1, absent: it is paused");
    nothing().check_with(|input| input.release_blocker = Some(paused()), "Nothing: it is paused");
    at_rest().gone().check_with(|input| input.release_blocker = Some(paused()), "Repair 1 of r1, absent");
    for blocked in [missing(), nothing(), at_rest().gone()] {
        blocked.check_with(|input| input.write_blocker = Some(paused()), "Nothing: it is paused");
    }
}

#[test]
fn a_missing_object_whose_content_is_refused_is_made_again_as_it_was() {
    let refused = |after: Option<Duration>| changed().gone().refused(2, RefusalRule::Other, after);
    refused(None).check("Repair 1 of r1, absent: no");
    refused(Some(ONE_SECOND)).check("Repair 1 of r1, absent: no");
    refused(Some(Duration::ZERO)).check("Create 2 of r2, absent");
    at_rest().gone().refused(1, RefusalRule::Other, None).check("Nothing: no");
    at_rest().gone().refused(2, RefusalRule::Other, None).check("Repair 1 of r1, absent");
}

#[test]
fn a_failure_keeps_back_each_write_until_its_time() {
    for one in [changed(), changed().gone(), at_rest().gone()] {
        let one = one.failed(ONE_SECOND);
        let expected = if one.live.is_some() { "Compare" } else { "Nothing" };
        one.check(&format!("{expected}: it hangs; retry in 1 s"));
    }
    changed().failed(Duration::ZERO).check("Change 2 of r2, uid");
    changed().gone().failed(Duration::ZERO).check("Create 2 of r2, absent");
}

#[test]
fn a_job_that_ended_with_its_content_is_not_made_again() {
    let of = |number: u32| Some(content(&config("a"), number).hash);
    at_rest().gone().check_with(|input| input.finished = of(1), "Nothing");
    changed().gone().check_with(|input| input.finished = of(1), "Create 2 of r2, absent");
    at_rest().check_with(|input| input.finished = of(1), "Compare");
}

#[test]
fn what_is_not_seen_is_looked_up_whatever_its_manifest_asks_for() {
    let mut disabled = (*content(&config("a"), 2)).clone();
    disabled.traits.reconcile = ReconcilePolicy::Disabled;
    let disabled = || scene(&Arc::new(disabled.clone()));
    for one in [changed(), disabled()] {
        one.check_with(|input| input.observation = Observation::NotSeen, "Lookup");
        let pending = Observation::Pending(Reason::OwnWrite);
        let expected = "Nothing: waiting for the watch to show rhumb's last write";
        one.check_with(|input| input.observation = pending, expected);
    }
    disabled().check("Nothing: its annotation asks not to reconcile it");
    disabled().gone().check("Nothing: its annotation asks not to reconcile it");
}

#[test]
fn a_newer_content_is_written_where_nothing_keeps_it_back() {
    changed().check("Change 2 of r2, uid");
    at_rest().check("Compare");
    changed().check_with(|input| input.release_blocker = Some(paused()), "Compare: it is paused");
    changed().check_with(|input| input.write_blocker = Some(paused()), "Compare: it is paused");
    let complete = || changed().verified(FieldOwnership::Complete);
    complete().check_with(|input| input.release_blocker = Some(paused()), "Nothing: it is paused");
    for one in [changed(), at_rest()] {
        one.with_live(|live| live.deleting = true).check("Nothing: it is being deleted");
    }
    changed().refused(2, RefusalRule::Other, None).check("Compare: no");
    changed().refused(2, RefusalRule::Other, Some(Duration::ZERO)).check("Change 2 of r2, uid");
    // Another source was refused.
    let other = changed().refused(2, RefusalRule::Other, None);
    other
        .with(|scene| scene.entry.api_refusal.as_mut().unwrap().source = SECOND)
        .check("Change 2 of r2, uid");
}

#[test]
fn each_verdict_about_our_fields_has_its_consequence() {
    let of = |cover: FieldOwnership| at_rest().verified(cover);
    of(FieldOwnership::Complete).check("Nothing");
    of(FieldOwnership::OnlyEmptyMissing).check("CompareLive");
    of(FieldOwnership::Unequal).check("CompareLive");
    for lost in [RepairImpact::InPlace, RepairImpact::Template] {
        let lost = || of(FieldOwnership::Lost(lost));
        lost().check("Repair 1 of r1, uid");
        lost().check_with(|input| input.write_blocker = Some(paused()), "Nothing: it is paused");
        lost().check_with(|input| input.release_blocker = Some(paused()), "Repair 1 of r1, uid");
    }
    // A verdict about another view, content or overlay is none.
    let unknown = |change: &dyn Fn(&mut VerifiedOwnership)| {
        let complete = of(FieldOwnership::Complete);
        complete.with(|scene| change(scene.entry.verified.as_mut().unwrap())).check("Compare");
    };
    unknown(&|verified| verified.managed_fields = None);
    unknown(&|verified| verified.content = ContentHash::hash_bytes(b"other"));
    unknown(&|verified| verified.overlay = Some(RolloutOverlay::Narrow(1)));
}

#[test]
fn an_annotation_or_a_label_that_somebody_takes_away_is_reported_and_another_one_repaired() {
    let complete = || at_rest().verified(FieldOwnership::Complete);
    let stripped = complete().with_live(|live| live.release = None).decided(|_| {});
    assert!(stripped.starts_with("Nothing: the server does not keep the annotation"), "{stripped}");
    let relabelled = complete().with_live(|live| live.owner = ObjectOwner::Nobody).decided(|_| {});
    assert!(relabelled.starts_with("Nothing: the server does not keep the label"), "{relabelled}");
    let unproven = |number: u32| {
        complete().with_live(|live| {
            let hash = content(&config("a"), number).hash;
            let release = ContentRef { hash, revision: Revision::new("r1") };
            live.release = None;
            live.unproven_release = Some(Box::new(ReleaseAnnotation { release, seal: None }));
        })
    };
    unproven(1).check("Nothing");
    unproven(9).check("Repair 1 of r1, uid");
}

#[test]
fn a_repair_restarts_pods_only_where_it_touches_the_template_of_a_workload_that_serves() {
    let lost = |lost: RepairImpact| scene(&content(&workload("web"), 1)).verified(FieldOwnership::Lost(lost));
    lost(RepairImpact::Template).check("Repair 1 of r1, uid, restarts");
    lost(RepairImpact::InPlace).check("Repair 1 of r1, uid");
    let starting = lost(RepairImpact::Template).with_live(|live| {
        live.replica_status.as_mut().unwrap().phase = WorkloadPhase::FirstStart;
    });
    starting.check("Repair 1 of r1, uid");
}

#[test]
fn five_repairs_within_a_minute_are_a_fight() {
    let lost =
        |lost: RepairImpact, ages: &[u64]| at_rest().verified(FieldOwnership::Lost(lost)).repaired(ages);
    let fight = |seconds: u64| {
        let cause = "somebody keeps changing the same fields: stop it, or leave these fields to it";
        format!("Nothing: {cause}; next repair in {seconds} s")
    };
    for impact in [RepairImpact::InPlace, RepairImpact::Template] {
        lost(impact, &[50, 40, 30, 20]).check("Repair 1 of r1, uid");
        lost(impact, &[60, 40, 30, 20, 10]).check("Repair 1 of r1, uid");
    }
    // One that costs no pod waits for a moment after the last one, and any other for the window.
    lost(RepairImpact::InPlace, &[50, 40, 30, 20, 4]).check(&fight(6));
    lost(RepairImpact::InPlace, &[58, 40, 30, 20, 4]).check(&fight(2));
    lost(RepairImpact::InPlace, &[50, 40, 30, 20, 10]).check("Repair 1 of r1, uid");
    lost(RepairImpact::Template, &[50, 40, 30, 20, 10]).check(&fight(10));
    lost(RepairImpact::Template, &[55, 50, 40, 30, 20, 10]).check(&fight(10));
    let deleted = "Nothing: somebody deletes it each time it is made: stop that, or take it out of the source; next \
                   repair in 6 s";
    at_rest().gone().repaired(&[50, 40, 30, 20, 4]).check(deleted);
    // A content that was not there before is no repair.
    changed().gone().repaired(&[5, 4, 3, 2, 1]).check("Create 2 of r2, absent");
}

#[test]
fn a_fight_names_those_who_write_the_object_and_not_its_status() {
    let check = |managers: &[(&str, &str)], expected: &str| {
        let manager = |(name, subresource): &(&str, &str)| FieldManager {
            name: (*name).into(),
            operation: "Update".into(),
            subresource: (*subresource).into(),
        };
        let lost = at_rest().verified(FieldOwnership::Lost(RepairImpact::InPlace)).repaired(&[5, 4, 3, 2, 0]);
        let lost = lost.with_live(|live| live.other_managers = managers.iter().map(manager).collect());
        let cause = format!("Nothing: {expected} keeps changing the same fields: stop it, ");
        let found = lost.decided(|_| {});
        assert!(found.starts_with(&cause), "{managers:?}: {found}");
    };
    check(&[], "somebody");
    check(&[("kube-controller-manager", "status")], "somebody");
    check(&[("kubectl", ""), ("kube-controller-manager", "status")], "kubectl");
    check(&[("kubectl", ""), ("helm", "")], "kubectl, helm");
}

#[test]
fn an_object_that_nobody_wants_goes_as_the_prune_guard_decides() {
    let unwanted = || at_rest().with(|scene| scene.entry.targets.clear());
    let check = |decision: Option<PruneDecision>, expected: &str| {
        unwanted().check_with(|input| input.prune_decision = decision, expected);
    };
    check(Some(PruneDecision::Delete), "Delete, Prune");
    let cause = || PruneCause::NotInFiles;
    check(Some(PruneDecision::Defer(cause())), "Compare: not in the given files");
    let confirm = "Compare: not in the given files; see `rhumb prune list`";
    check(Some(PruneDecision::Confirm(cause())), confirm);
    check(Some(PruneDecision::Keep(cause())), "Compare: not in the given files");
    check(Some(PruneDecision::Ignore(cause())), "Nothing: not in the given files");
    check(None, "Compare: it is not decided yet whether it may be pruned");
    let go = |input: &mut DecisionInput<'_>| input.prune_decision = Some(PruneDecision::Delete);
    unwanted().failed(ONE_SECOND).check_with(go, "Nothing: it hangs; retry in 1 s");
    unwanted().failed(Duration::ZERO).check_with(go, "Delete, Prune");
    unwanted().with_live(|live| live.deleting = true).check_with(go, "Nothing: it is being deleted");
    let of = |owner: ObjectOwner| unwanted().with_live(|live| live.owner = owner);
    of(ObjectOwner::Ours(SECOND_SET.into())).check_with(go, "Delete, Prune");
    of(ObjectOwner::Ours("applyset-unknown-v1".into())).check_with(go, "Forget");
    of(ObjectOwner::Labelled(SET.into())).check_with(go, "Forget");
    of(ObjectOwner::Nobody).check_with(go, "Forget");
    let unproven = unwanted().with_live(|live| live.release = None).decided(go);
    assert!(unproven.starts_with("Nothing: no longer wanted; kept, as its annotation"), "{unproven}");
}

#[test]
fn what_is_gone_and_may_still_be_wanted_is_made_again() {
    let unwanted = || at_rest().gone().with(|scene| scene.entry.targets.clear());
    let make_incomplete = |input: &mut DecisionInput<'_>| {
        input.incomplete_source =
            Some(IncompleteSource::Incomplete(IncompleteCause::Message("it is away".into())));
    };
    let expected = "Repair 1 of r1, absent: the source was not read completely: it is away";
    unwanted().check("Forget");
    unwanted().check_with(make_incomplete, expected);
    let lost = unwanted().with(|scene| scene.entry.accepted = AcceptedContent::Nothing);
    lost.check_with(make_incomplete, "Forget");
    let unseen = |input: &mut DecisionInput<'_>| {
        make_incomplete(input);
        input.observation = Observation::NotSeen;
    };
    unwanted().check_with(unseen, "Lookup: the source was not read completely: it is away");
}

#[test]
fn several_sources_that_want_an_object_are_named() {
    let both = |owner: Option<SourceId>| {
        at_rest().verified(FieldOwnership::Complete).with(|scene| {
            scene.entry.targets.push((SECOND, DesiredState::Object(content(&scene.id, 2))));
            scene.entry.owner = owner;
        })
    };
    let two = "2 sources want it: 1:1 and 2:1";
    both(Some(FIRST)).check(&format!("Nothing: {two}; the first of them applies it"));
    both(Some(FIRST)).check_with(|input| input.accounts = CompetingAccounts::Different, "Nothing");
    both(Some(FIRST)).verified(FieldOwnership::Unequal).check("CompareLive");
    both(Some(FIRST)).check_with(|input| input.rejection_reason = Some(quarantined()), "Nothing: x");
    for owner in [None, Some(SECOND)] {
        both(owner).check(&format!("Nothing: {two}"));
        both(owner).refused(1, RefusalRule::Rights, None).check(&format!("Nothing: {two}; no"));
        both(owner).refused(1, RefusalRule::Other, None).check(&format!("Nothing: {two}"));
    }
}

#[test]
fn a_rejection_is_reported_where_nothing_else_is_to_be_done() {
    let reject = |input: &mut DecisionInput<'_>| input.rejection_reason = Some(quarantined());
    let of = |cover: FieldOwnership| at_rest().verified(cover);
    of(FieldOwnership::Complete).check_with(reject, "Nothing: x");
    of(FieldOwnership::Lost(RepairImpact::InPlace)).check_with(reject, "Repair 1 of r1, uid");
    at_rest().with_live(|live| live.deleting = true).check_with(reject, "Nothing: it is being deleted");
}

#[test]
fn what_cannot_be_used_is_reported_and_what_was_there_stays_defended() {
    let unusable = || {
        at_rest().with(|scene| {
            let origin = crate::object::ManifestOrigin::of_file("a.yaml");
            let unusable = UnusableObject {
                id: scene.id.clone(),
                gvk: gvk(&scene.id),
                origin,
                reason: "it is odd".into(),
            };
            scene.entry.targets = vec![(FIRST, DesiredState::Unusable(unusable.into()))];
        })
    };
    unusable().check("Compare: it is odd");
    unusable().verified(FieldOwnership::Lost(RepairImpact::InPlace)).check("Repair 1 of r1, uid: it is odd");
    unusable().gone().check("Repair 1 of r1, absent: it is odd");
    unusable().gone().check_with(|input| input.write_blocker = Some(paused()), "Nothing: it is odd");
    unusable().with_live(|live| live.deleting = true).check("Nothing: it is being deleted");
    unusable().with_live(|live| live.opt_out = Some("example.com/word")).check("Nothing: it is odd");
    let accepted = |accepted: AcceptedContent| unusable().with(|scene| scene.entry.accepted = accepted);
    let release = || ContentRef { hash: content(&config("a"), 1).hash, revision: Revision::new("r1") };
    accepted(AcceptedContent::Nothing).check("Nothing: it is odd");
    accepted(AcceptedContent::Unreadable(release())).check("Nothing: it is odd");
    accepted(AcceptedContent::Unread(release())).check("AwaitContent: it is odd");
    // Another owner has it, as it seems.
    let foreign = |live: &mut LiveObject| live.owner = ObjectOwner::Foreign("Helm release shop".into());
    unusable().with_live(foreign).check("Nothing: it belongs to Helm release shop");
}

/// Returns a workload of which a newer content with the same pod template is wanted.
pub(super) fn same_template() -> Scene {
    let web = workload("web");
    let template = content(&web, 1).template;
    scene(&Arc::new(DesiredObject { template, ..(*content(&web, 2)).clone() }))
}

fn unread(scene: Scene) -> Scene {
    scene.with(|scene| {
        let release = ContentRef { hash: content(&scene.id, 1).hash, revision: Revision::new("r1") };
        scene.entry.accepted = AcceptedContent::Unread(release);
    })
}

#[test]
fn a_newer_template_restarts_the_pods_of_a_workload_that_serves() {
    let web = || scene(&content(&workload("web"), 2));
    web().check("Change 2 of r2, exact, restarts");
    same_template().check("Change 2 of r2, uid");
    let starting = web().with_live(|live| {
        live.replica_status.as_mut().unwrap().phase = WorkloadPhase::FirstStart;
    });
    starting.check("Change 2 of r2, uid");
    let empty = web().with_live(|live| live.replica_status.as_mut().unwrap().replicas = 0);
    empty.check("Change 2 of r2, uid");
    // The template that is there is not known before its content has been read.
    for one in [web(), same_template()] {
        unread(one).check("AwaitContent: reading its content from revision r1");
    }
    unread(changed()).check("Change 2 of r2, uid");
}

#[test]
fn an_autoscaler_keeps_the_count_that_the_cluster_shows() {
    let without = |number: u32| ContentHash::hash_bytes(format!("without {number}").as_bytes());
    let counted = || {
        let mut scene = same_template();
        let wanted = scene.entry.target_content().unwrap().1.clone();
        let wanted = DesiredObject { hash_without_replicas: Some(without(2)), ..(*wanted).clone() };
        scene.entry.targets = vec![(FIRST, DesiredState::Object(Arc::new(wanted)))];
        scene
    };
    let scaled = |input: &mut DecisionInput<'_>| input.scaling = ReplicaOwner::Autoscaler;
    counted().check("Change 2 of r2, uid");
    counted().check_with(scaled, "Change 2 of r2, exact, FromLive(3)");
    let ceded = counted().with_live(|live| live.replicas_ceded = true);
    ceded.check_with(scaled, "Change 2 of r2, uid, Omitted");
    let unknown = counted().with_live(|live| live.replica_status = None);
    unknown.check_with(scaled, "Change 2 of r2, uid");
    // A manifest without a count leaves it out anyway.
    same_template().check_with(scaled, "Change 2 of r2, uid");
    let there = counted().with_live(|live| live.release.as_mut().unwrap().hash = without(2));
    there.check_with(scaled, "Compare");
    there.check("Change 2 of r2, uid");
}

#[test]
fn an_immutable_field_has_an_object_made_anew_where_its_manifest_and_the_guard_allow_it() {
    let of = |recreate: RecreatePolicy| {
        let mut wanted = (*content(&config("a"), 2)).clone();
        wanted.traits.recreate = recreate;
        scene(&Arc::new(wanted)).refused(2, RefusalRule::Immutable, None)
    };
    let kept = |why: &str| {
        format!(
            "Compare: no; it is not deleted and created again, as {why}: delete it by kubectl, and it is created again"
        )
    };
    of(RecreatePolicy::Never).check("Compare: no");
    let allowed = || of(RecreatePolicy::Allowed);
    allowed().check("Delete, Recreate");
    allowed().check_with(|input| input.write_blocker = Some(paused()), "Compare: no");
    allowed().check_with(|input| input.release_blocker = Some(paused()), "Compare: it is paused");
    let lost = |input: &mut DecisionInput<'_>| {
        input.recreation_blocker = Some(RecreationBlocker::DataLoss(LossyKind::Volume));
    };
    allowed().check_with(lost, &kept("data are lost with a PersistentVolume"));
    let unproven = allowed().with_live(|live| {
        let release = live.release.take().unwrap();
        live.unproven_release = Some(Box::new(ReleaseAnnotation { release, seal: None }));
    });
    unproven.check(&kept("its annotation rhumb.dev/release has no valid seal"));
    // It was refused for another reason, or another content was.
    allowed().refused(2, RefusalRule::Other, None).check("Compare: no");
    allowed().refused(3, RefusalRule::Immutable, None).check("Change 2 of r2, uid");
}
