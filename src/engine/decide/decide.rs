//! The decision about one object. Its core is a pure function of the facts.
//!
//! `Engine::decide` completes what the last change left to do (`complete_changes`), and gathers the
//! facts. It calls the pure `decide_from_facts`, and passes its decision through filters.
//!
//! Each filter may turn a write into a wait, a lookup or a dry run, and none makes a write. Some
//! also note requests in the engine, for example for a slot of the budget:
//!
//! | filter | file | holds back, adds or notes |
//! |---|---|---|
//! | `wait_for_holder` | `deletion/handover.rs` | when to ask again whose an object is |
//! | `enforce_allow_list` | `write_filters.rs` | writes that its source is not allowed |
//! | `check_peer_consent` | `deletion/handover.rs` | deletions that other sources may object to |
//! | `apply_pauses` | `orders/pauses.rs` | writes that a person has paused or put on hold |
//! | `suppress_observed_writes` | `blockers.rs` | writes of a source with `observe: true` |
//! | `require_recent_absence` | `write_filters.rs` | creations of what was absent long ago |
//! | `require_dry_run` | `rollout/dry_run_impact.rs` | writes of unknown impact on pods |
//! | `claim_budget` | `rollout/budget_claims.rs` | writes that restart pods, until claimed |
//! | `require_unit_transfer` | `rollout/unit_transfer.rs` | takeovers, until their unit is recorded |
//! | `advance_daemon_set` | `rollout/daemon_set_steps/slot.rs` | the step of a DaemonSet |
//! | `explain_surplus_correction` | `rollout/scale_balance.rs` | the surplus pods of a scaled step |
//! | `seal_decision` | `release_sealing.rs` | the seal of the release annotation |
//! | `revisit_competitors` | `competing_accounts.rs` | when to ask again which source goes on |
//!
//! The order of the questions is the order of this file. Can it be seen, whose is it, is it what
//! the newest revision asks for, may that be released? Where it may not, is the accepted content
//! still there (`repair.rs`)?

use std::time::{Duration, Instant};

use crate::engine::decide::decision::{
    Action, ApplyPurpose, ApplyRequest, CompetingAccounts, Decision, DecisionInput, DeletionReason,
    Observation, Precondition, RestartRisk, labelled_inventory_id,
};
use crate::engine::decide::ownership::{decide_ownership, left_alone_reason, owner, target_places};
use crate::engine::decide::repair::{decide_drift, enforce, repair_pause};
use crate::engine::facts::effective_content::ReplicaOwner;
use crate::engine::facts::entry::{
    AcceptedContent, ApiRefusal, DirectView, ObjectEntry, RefusalRule, RepairImpact, SourceId,
};
use crate::engine::facts::overlay::is_tightening;
use crate::engine::facts::prune_decisions::PruneDecision;
use crate::engine::state::{DecisionMode, Engine};
use crate::engine::{
    AdoptPolicy, ApplyVariant, DesiredState, InventoryHolder, LiveObject, ManifestFault, ObjectOwner,
    PruneCause, Reason, RecreatePolicy, RecreationBlocker, RefusalCause, ReplacementContent, ReplicaMode,
    RolloutOverlayState, SharedDesiredObject, WorkloadPhase, is_workload,
};
use crate::object::{ObjectId, Revision};

/// The time within which the watch should show our own write; after it the API server is asked.
pub(crate) const WRITE_ECHO_TIMEOUT: Duration = Duration::from_secs(10);

impl Engine {
    /// Does the same as [`Engine::decide`], as a part of that call.
    pub(in crate::engine) fn decide_now(&mut self, id: &ObjectId, now: Instant) -> Decision {
        self.complete_changes();
        self.expire_intent_view(id, now);
        self.expire_holder_view(id, now);
        self.choose_competitor(id, now);
        self.note_config(id);
        let release_blocker = self.release_blocker(id, now);
        let holder = self.holder_of(id, now);
        let Some(entry) = self.objects.entries.get(id) else {
            return Decision { action: Action::Forget, reason: None, requeue_after: None };
        };
        let wanting = entry.target_content();
        let input = DecisionInput {
            id,
            entry,
            observation: self.current_observation(id, entry, now),
            inventories: self.sources.inventory_ids(),
            target_revision: self.annotation_revision(entry),
            rejection_reason: entry.rejection.as_ref().and_then(|one| one.reason(self.live_object(id))),
            adopt: wanting.map_or(AdoptPolicy::default(), |(source, _)| self.sources[source].declared.adopt),
            opt_out: self.opt_out_of(id),
            holder: holder.clone(),
            scaling: self.replica_owner(id, entry),
            write_blocker: self.write_blocker(id, entry),
            release_blocker,
            overlay: wanting.and_then(|(_, desired)| self.overlay(id, desired, now)),
            config_stamp: wanting.and_then(|(source, desired)| {
                self.pod_config_stamp(source, desired, self.live_object_of(id, entry))
            }),
            prune_decision: None,
            incomplete_source: self.incomplete_source(id, entry),
            finished: self.finished_job_content(id, entry),
            recreation_blocker: self.refused_recreation(id, entry),
            generated_siblings: self.generated_siblings(id, entry),
            accounts: self.competing_accounts(entry),
        };
        let input = DecisionInput { prune_decision: self.prune_decision(id, &input), ..input };
        let decision = self.wait_for_holder(&holder, decide_from_facts(&input, now));
        let decision = self.enforce_allow_list(id, decision);
        let decision = self.check_peer_consent(id, decision, now);
        let decision = self.apply_pauses(id, decision, now);
        let decision = self.suppress_observed_writes(id, decision);
        let decision = self.require_recent_absence(id, decision, now);
        let decision = self.require_dry_run(id, decision);
        let decision = self.claim_budget(id, decision);
        let decision = self.require_unit_transfer(id, decision);
        let decision = self.advance_daemon_set(id, decision);
        let decision = self.explain_surplus_correction(id, decision);
        let decision = self.seal_decision(id, decision);
        let decision = self.revisit_competitors(id, decision);
        self.register_wait(id, &decision);
        decision
    }

    /// Returns the revision that the annotation of the target content is to name.
    pub(in crate::engine) fn annotation_revision(&self, entry: &ObjectEntry) -> Revision {
        let back = entry.rejection.as_ref().and_then(|rejection| match &rejection.replacement {
            ReplacementContent::Read(_, release) => Some(release.revision.clone()),
            _ => None,
        });
        let newest = || entry.targets.first().map(|(source, _)| self.sources.head(*source).clone());
        back.or_else(newest).unwrap_or_else(|| Revision::new(""))
    }

    /// Returns the blocker of a new content. None where no new content waits, or the object
    /// cannot be seen.
    ///
    /// First of all its rejection blocks it. Then come a pause, what it needs and its wave
    /// (`blockers.rs`), and the workload of its unit (`rollout/units.rs`).
    pub(in crate::engine) fn release_blocker(&mut self, id: &ObjectId, now: Instant) -> Option<Reason> {
        let entry = self.objects.entries.get(id)?;
        let (source, desired) = entry.target_content()?;
        if entry.unreleased_content().is_none() && self.restart_stamp(id).is_none() {
            return None;
        }
        if matches!(self.current_observation(id, entry, now), Observation::Pending(_) | Observation::NotSeen)
        {
            return None;
        }
        let desired = desired.clone();
        let live = self.live_object(id);
        let stays = entry.rejection.as_ref().and_then(|rejection| rejection.release_blocker(live));
        if self.blockers.mode == DecisionMode::Live {
            self.find_units(source);
        }
        stays
            .or_else(|| self.release_pause(id))
            .or_else(|| self.dependency_blocker(source, &desired))
            .or_else(|| match self.blockers.mode {
                DecisionMode::Live => self.unit_release_blocker(source, &desired),
                DecisionMode::Plan => None,
            })
    }

    /// Returns whose an object is, where it is in an inventory that this process does not keep.
    pub(in crate::engine) fn holder_of(&mut self, id: &ObjectId, now: Instant) -> InventoryHolder {
        let Some(entry) = self.objects.entries.get(id).filter(|entry| entry.target_content().is_some())
        else {
            return InventoryHolder::Nobody;
        };
        let set = labelled_inventory_id(&self.current_observation(id, entry, now));
        set.map_or(InventoryHolder::Nobody, |set| self.inventory_holder(id, &set, now))
    }

    /// Returns the observation of an object: by its informer, by our own write or by a lookup.
    pub(in crate::engine) fn current_observation<'a>(
        &'a self,
        id: &ObjectId,
        entry: &'a ObjectEntry,
        now: Instant,
    ) -> Observation<'a> {
        if let Some(unobserved) = self.unobserved_reason(id, entry) {
            return Observation::Pending(unobserved);
        }
        let seen = self.objects.informer_objects.get(id);
        if let Some((written, at)) = entry.min_resource_version
            && seen.is_none_or(|live| live.rv < written)
        {
            let overdue = now.duration_since(at) >= crate::engine::WRITE_ECHO_TIMEOUT;
            return match &entry.direct_view {
                Some(DirectView::Found(live)) if live.rv >= written => Observation::Seen(live),
                _ if overdue => Observation::NotSeen,
                _ => Observation::Pending(Reason::OwnWrite),
            };
        }
        match (seen, &entry.direct_view) {
            (Some(live), Some(DirectView::Found(newer))) if newer.rv > live.rv => Observation::Seen(newer),
            (Some(live), _) | (None, Some(DirectView::Found(live))) => Observation::Seen(live),
            (None, Some(DirectView::Absent)) => Observation::Absent,
            (None, None) => Observation::NotSeen,
        }
    }
}

/// Decides about one object by the facts alone.
pub(crate) fn decide_from_facts(input: &DecisionInput<'_>, now: Instant) -> Decision {
    if let Observation::Pending(reason) = &input.observation {
        return Decision::wait(reason.clone());
    }
    match &input.entry.targets[..] {
        [] => decide_unwanted(input, now),
        [(source, DesiredState::Object(desired))] => {
            with_rollback_reason(input, decide_desired(input, *source, desired, now))
        }
        [(source, DesiredState::Object(desired)), ..] if input.entry.owner == Some(*source) => {
            decide_among_sources(
                input,
                with_rollback_reason(input, decide_desired(input, *source, desired, now)),
            )
        }
        [(_, DesiredState::Unusable(unusable))] => {
            enforce(input, Reason::Unusable(unusable.reason.clone()), now)
        }
        several => decide_contested(input, several, now),
    }
}

/// Decides for several sources none of which has the object, and of which none may begin.
fn decide_contested(
    input: &DecisionInput<'_>,
    competing_sources: &[(SourceId, DesiredState)],
    now: Instant,
) -> Decision {
    let refused = input.entry.api_refusal.as_ref().filter(|refusal| refusal.rule == RefusalRule::Rights);
    let refused = refused.map(|refusal| refusal.cause.clone());
    let fault = ManifestFault::Contested(target_places(competing_sources), refused);
    enforce(input, Reason::Unusable(fault), now)
}

/// Adds the reason of an object whose content was rejected: it was rolled back, or is quarantined.
pub(super) fn with_rollback_reason(input: &DecisionInput<'_>, decision: Decision) -> Decision {
    match (&input.rejection_reason, &decision) {
        (Some(reason), Decision { action: Action::Nothing, reason: None, .. }) => {
            decision.with_reason(reason.clone())
        }
        _ => decision,
    }
}

/// Decides for several sources: the one that has the object continues with it, and the others get
/// the reason why they do not.
///
/// A competitor of another account adds nothing to the object's reason. Its status alone names the
/// object.
pub(super) fn decide_among_sources(input: &DecisionInput<'_>, decision: Decision) -> Decision {
    let is_reported_elsewhere = input.accounts == CompetingAccounts::Different;
    if decision.action != Action::Nothing || decision.reason.is_some() || is_reported_elsewhere {
        return decision;
    }
    decision.with_reason(Reason::Unusable(ManifestFault::Outranked(target_places(&input.entry.targets))))
}

pub(super) fn decide_desired(
    input: &DecisionInput<'_>,
    source: SourceId,
    desired: &SharedDesiredObject,
    now: Instant,
) -> Decision {
    let live = match input.observation {
        Observation::Seen(live) => Some(live),
        _ => None,
    };
    if let Some(reason) = left_alone_reason(desired, live, input.opt_out)
        .filter(|_| !matches!(input.observation, Observation::NotSeen))
    {
        return Decision::wait(reason);
    }
    match input.observation {
        Observation::Seen(live) => decide_present(input, source, desired, live, now),
        Observation::Absent => decide_absent(input, source, desired, now),
        Observation::NotSeen | Observation::Pending(_) => Decision::act(Action::Lookup),
    }
}

pub(super) fn decide_absent(
    input: &DecisionInput<'_>,
    source: SourceId,
    desired: &SharedDesiredObject,
    now: Instant,
) -> Decision {
    if input.finished.is_some_and(|hash| desired.has_hash(hash)) {
        return Decision::act(Action::Nothing);
    }
    // A Job that has ended is not run again while its newer content waits.
    let lost = input.entry.accepted.content().filter(|accepted| !input.entry.has_ended_with(accepted));
    let repair = lost.is_some_and(|accepted| accepted.hash == desired.hash);
    let blocked =
        content_blocker(input, desired, now).or_else(|| input.release_blocker.clone().filter(|_| !repair));
    match (blocked, lost) {
        (None, _) => create(
            input,
            source,
            desired,
            if repair { ApplyPurpose::Repair } else { ApplyPurpose::Create },
            now,
        ),
        (Some(reason), Some(accepted)) if !repair && content_blocker(input, accepted, now).is_none() => {
            create(input, source, accepted, ApplyPurpose::Repair, now).with_reason(reason)
        }
        (Some(reason), _) => Decision::wait(reason),
    }
}

pub(super) fn create(
    input: &DecisionInput<'_>,
    source: SourceId,
    desired: &SharedDesiredObject,
    purpose: ApplyPurpose,
    now: Instant,
) -> Decision {
    if let (ApplyPurpose::Repair, Some(fight)) = (purpose, repair_pause(input, RepairImpact::InPlace, now)) {
        return Decision::wait(fight);
    }
    Decision::act(Action::Apply(ApplyRequest {
        desired: desired.clone(),
        source,
        revision: revision(input, purpose),
        seal: None,
        precondition: Precondition::Absent,
        decided_on: None,
        variant: ApplyVariant { config_stamp: input.config_stamp, ..ApplyVariant::PLAIN },
        purpose,
        restarts: RestartRisk::Absent,
    }))
}

pub(super) fn decide_present(
    input: &DecisionInput<'_>,
    source: SourceId,
    desired: &SharedDesiredObject,
    live: &LiveObject,
    now: Instant,
) -> Decision {
    if live.deleting {
        return Decision::wait(Reason::Terminating);
    }
    let takeover = match decide_ownership(input, source, live) {
        Ok(takeover) => takeover,
        // The source of this process that has it goes on enforcing it.
        Err(reason) if owner(input, live).is_some() => return enforce(input, reason, now),
        Err(reason) => return Decision::wait(reason),
    };
    let replicas = replicas(input, desired, live);
    // The release annotation names this content.
    let there = live.shown_release().is_some_and(|release| match input.scaling {
        ReplicaOwner::Manifest => release.hash == desired.hash,
        ReplicaOwner::Autoscaler => desired.has_hash(release.hash),
    });
    // An annotation that is gone or altered is drift like any other, where the content is known to
    // be there.
    let unstamped =
        (!live.has_release_annotation() || live.is_unproven()) && input.entry.accepted.is(desired.hash);
    if (there || unstamped) && takeover.is_none() {
        if live.has_lost_config(input.config_stamp) {
            return Decision::wait(Reason::Reading(input.id.clone()));
        }
        let is_unreadable = live.overlay == RolloutOverlayState::Unreadable;
        if (there || is_unreadable)
            && (live.overlay != RolloutOverlayState::from(input.overlay)
                || live.config_stamp.as_deref() != input.config_stamp.as_ref())
        {
            return decide_step(input, source, desired, live, now);
        }
        return decide_drift(input, source, desired, live, now);
    }
    let restarts = restart_risk(input, desired, live);
    if let (RestartRisk::Possible, AcceptedContent::Unread(release)) = (restarts, &input.entry.accepted) {
        return Decision::act(Action::AwaitContent)
            .with_reason(Reason::ReadingRevision(release.revision.short_name().into()));
    }
    if let Some(refusal) = immutability_refusal(input, desired) {
        return match desired.traits.recreate {
            RecreatePolicy::Allowed if live.is_unproven() || input.recreation_blocker.is_some() => {
                enforce(input, kept_refusal_reason(input, refusal), now)
            }
            RecreatePolicy::Allowed if takeover.is_none() && input.write_blocker.is_none() => {
                recreate(input, desired, live, now)
            }
            _ => enforce(input, Reason::Refused(refusal.cause.clone(), None), now),
        };
    }
    if let Some(reason) = content_blocker(input, desired, now).or_else(|| input.release_blocker.clone()) {
        return enforce(input, reason, now);
    }
    let purpose = takeover.unwrap_or(ApplyPurpose::Change);
    let exact = takeover.is_some()
        || restarts == RestartRisk::Possible
        || matches!(replicas, ReplicaMode::FromLive(_));
    Decision::act(Action::Apply(ApplyRequest {
        desired: desired.clone(),
        source,
        revision: revision(input, purpose),
        seal: None,
        precondition: if exact { exact_precondition(live) } else { uid_precondition(live) },
        decided_on: Some(live.rv),
        variant: ApplyVariant { replicas, overlay: input.overlay, config_stamp: input.config_stamp },
        purpose,
        restarts,
    }))
}

/// Decides for an object that is to be deleted and created again. As long as its new content waits,
/// is rejected or would not fit, it would be missing, so it stays as it is.
fn recreate(
    input: &DecisionInput<'_>,
    desired: &SharedDesiredObject,
    live: &LiveObject,
    now: Instant,
) -> Decision {
    let blocked = input.release_blocker.clone().or_else(|| input.render_mismatch(desired));
    match blocked.or_else(|| recent_failure(input, now)) {
        Some(reason) => enforce(input, reason, now),
        None => Decision::act(Action::Delete(live.uid.clone(), live.rv, DeletionReason::Recreate)),
    }
}

/// Decides for an object that has the content. Its rollout goes on to the next step, its overlay is
/// taken off, or its pods use other data.
pub(super) fn decide_step(
    input: &DecisionInput<'_>,
    source: SourceId,
    desired: &SharedDesiredObject,
    live: &LiveObject,
    now: Instant,
) -> Decision {
    let restarted = live.config_stamp.is_some() && live.is_restarted_by(input.config_stamp);
    let purpose = match live.overlay == RolloutOverlayState::from(input.overlay) {
        _ if restarted => ApplyPurpose::Restart,
        true => ApplyPurpose::Repair,
        false => ApplyPurpose::Step,
    };
    let fight =
        || repair_pause(input, RepairImpact::Template, now).filter(|_| purpose == ApplyPurpose::Repair);
    if let Some(reason) = content_blocker(input, desired, now).or_else(fight) {
        return Decision::wait(reason);
    }
    if let Some(reason) = input.release_blocker.clone().filter(|_| restarted) {
        return decide_drift(input, source, desired, live, now).with_reason(reason);
    }
    let moves = matches!(live.overlay, RolloutOverlayState::Overlaid(overlay) if overlay.step().is_some())
        || input.overlay.is_some();
    let moves =
        (moves && !is_tightening(live.overlay, input.overlay)) || live.is_restarted_by(input.config_stamp);
    Decision::act(Action::Apply(ApplyRequest {
        desired: desired.clone(),
        source,
        revision: revision(input, purpose),
        seal: None,
        precondition: exact_precondition(live),
        decided_on: Some(live.rv),
        variant: ApplyVariant {
            replicas: replicas(input, desired, live),
            overlay: input.overlay,
            config_stamp: input.config_stamp,
        },
        purpose,
        restarts: if moves && is_serving(input.id, live) {
            RestartRisk::Possible
        } else {
            RestartRisk::Absent
        },
    }))
}

/// Returns the revision for the annotation. A repair goes on naming the one that brought the
/// content.
pub(super) fn revision(input: &DecisionInput<'_>, purpose: ApplyPurpose) -> Revision {
    match (&input.entry.revision, purpose) {
        (Some(brought), ApplyPurpose::Repair | ApplyPurpose::Step | ApplyPurpose::Restart) => brought.clone(),
        _ => input.target_revision.clone(),
    }
}

pub(super) fn exact_precondition(live: &LiveObject) -> Precondition {
    Precondition::Exact(live.uid.clone(), live.rv)
}

pub(super) fn uid_precondition(live: &LiveObject) -> Precondition {
    Precondition::Uid(live.uid.clone())
}

pub(super) fn replicas(
    input: &DecisionInput<'_>,
    desired: &SharedDesiredObject,
    live: &LiveObject,
) -> ReplicaMode {
    if input.scaling == ReplicaOwner::Manifest || desired.hash_without_replicas.is_none() {
        ReplicaMode::FromManifest
    } else if live.replicas_ceded {
        ReplicaMode::Omitted
    } else {
        let shown =
            |replica_status: crate::engine::ReplicaStatus| ReplicaMode::FromLive(replica_status.replicas);
        live.replica_status.map_or(ReplicaMode::FromManifest, shown)
    }
}

/// Returns the risk that this content restarts pods that are available now.
pub(super) fn restart_risk(
    input: &DecisionInput<'_>,
    desired: &SharedDesiredObject,
    live: &LiveObject,
) -> RestartRisk {
    let steps = matches!(live.overlay, RolloutOverlayState::Overlaid(overlay) if overlay.step().is_some());
    // Leaving a step restarts the pods that it held back, whatever the template.
    let lets_go = steps
        && live.overlay != RolloutOverlayState::from(input.overlay)
        && !is_tightening(live.overlay, input.overlay);
    let same = input.entry.accepted.has_template_of(desired)
        && !lets_go
        && !live.is_restarted_by(input.config_stamp);
    if same || !is_serving(input.id, live) { RestartRisk::Absent } else { RestartRisk::Possible }
}

/// Returns whether a workload has pods that a rolling update could take down. Pods that were never
/// available do not count.
pub(in crate::engine) fn is_serving(id: &ObjectId, live: &LiveObject) -> bool {
    is_workload(id)
        && live.replica_status.is_none_or(|replica_status| {
            replica_status.phase != WorkloadPhase::FirstStart && replica_status.replicas > 0
        })
}

pub(super) fn decide_unwanted(input: &DecisionInput<'_>, now: Instant) -> Decision {
    let Observation::Seen(live) = input.observation else {
        return match (&input.incomplete_source, &input.entry.accepted) {
            (Some(incomplete), AcceptedContent::Known(_)) => {
                enforce(input, Reason::Incomplete(incomplete.clone()), now)
            }
            _ => Decision::act(Action::Forget),
        };
    };
    if !matches!(&live.owner, ObjectOwner::Ours(set) if input.inventories.contains(set)) {
        return Decision::act(Action::Forget);
    }
    if live.deleting {
        return Decision::wait(Reason::Terminating);
    }
    match &input.prune_decision {
        // The prune decision was made on another view of it.
        Some(PruneDecision::Delete) if live.is_unproven() => {
            Decision::wait(Reason::Kept(PruneCause::Unproven))
        }
        Some(PruneDecision::Delete) => match recent_failure(input, now) {
            Some(reason) => Decision::wait(reason),
            None => Decision::act(Action::Delete(live.uid.clone(), live.rv, DeletionReason::Prune)),
        },
        Some(PruneDecision::Defer(cause)) => enforce(input, Reason::Prune(cause.clone()), now),
        Some(PruneDecision::Confirm(cause)) => enforce(input, Reason::Confirm(cause.clone()), now),
        Some(PruneDecision::Keep(cause)) => enforce(input, Reason::Kept(cause.clone()), now),
        Some(PruneDecision::Ignore(cause)) => Decision::wait(Reason::Kept(cause.clone())),
        None => enforce(input, Reason::Prune(PruneCause::Undecided), now),
    }
}

/// Returns the blocker of a write of this content, whatever the purpose.
pub(super) fn content_blocker(
    input: &DecisionInput<'_>,
    desired: &SharedDesiredObject,
    now: Instant,
) -> Option<Reason> {
    let refused = input.entry.refusal_of(desired).and_then(|refusal| match refusal.retry {
        Some(retry) if retry <= now => None,
        Some(retry) => Some(Reason::Refused(refusal.cause.clone(), Some(retry - now))),
        None => Some(Reason::Refused(refusal.cause.clone(), None)),
    });
    let blocked = input.write_blocker.clone().or_else(|| generated_mismatch(input, desired));
    blocked.or(refused).or_else(|| recent_failure(input, now))
}

/// Returns why a missing object is not created: other objects of its release have generated values
/// of another render.
fn generated_mismatch(input: &DecisionInput<'_>, desired: &SharedDesiredObject) -> Option<Reason> {
    input.render_mismatch(desired).filter(|_| matches!(input.observation, Observation::Absent))
}

pub(super) fn recent_failure(input: &DecisionInput<'_>, now: Instant) -> Option<Reason> {
    let failure = input.entry.rare.last_failure.as_ref().filter(|failure| failure.retry_at > now)?;
    Some(Reason::Retrying(failure.cause.clone(), failure.retry_at - now))
}

/// Returns the refusal of a content that changes an immutable field.
fn immutability_refusal<'a>(
    input: &DecisionInput<'a>,
    desired: &SharedDesiredObject,
) -> Option<&'a ApiRefusal> {
    let refusal = input.entry.api_refusal.as_deref()?;
    (refusal.is_of(desired) && refusal.rule == RefusalRule::Immutable).then_some(refusal)
}

/// Returns why an object is not deleted to be created again, though its manifest allows it.
fn kept_refusal_reason(input: &DecisionInput<'_>, refusal: &ApiRefusal) -> Reason {
    let blocker = input.recreation_blocker.unwrap_or(RecreationBlocker::Unproven);
    Reason::Refused(RefusalCause::Kept(Box::new(refusal.cause.clone()), blocker), None)
}
