//! The decision about one object: a pure function of the facts.
//!
//! The order of the questions is the order of this file. Can it be seen, whose is it, is it what
//! the newest revision asks for, may that be released? And, where it may not, is the accepted
//! content still there?

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::action::{
    Action, ApplyPurpose, ApplyRequest, Decision, DeletionReason, Precondition, RestartRisk,
};
use super::claim::UNPROVEN;
use super::entry::{AcceptedContent, FieldCoverage, ObjectEntry, RefusalRule, RepairImpact, SourceId};
use super::prune::PruneDecision;
use super::stepping::only_tightens;
use super::{
    AdoptPolicy, ApplyVariant, ConfigStamp, DesiredObject, InventoryHolder, LiveObject, ObjectOwner,
    OptOutPolicy, Overlay, OverlayState, Reason, ReconcilePolicy, RecreatePolicy, ReplicaMode, RolloutPhase,
    SharedDesired, WantedObject, is_workload,
};
use crate::object::{ContentHash, ObjectId, Revision};

/// The number of repairs of one object within a minute that make a fight (Config Sync's alarm rate,
/// KNV2005).
pub const FIGHT: usize = 5;

/// The time over which repairs are counted.
pub const FIGHT_WINDOW: Duration = Duration::from_mins(1);

/// The longest wait of a repair that restarts no pods in a fight. Otherwise the content of somebody
/// who writes without end would stand for most of each minute.
pub const FIGHT_PAUSE: Duration = Duration::from_secs(10);

/// The time within which the watch should show our own write; after it the API server is asked.
pub const ECHO: Duration = Duration::from_secs(10);

/// Our entry owns the annotation, and the object has none.
const STRIPPED: &str = "the server does not keep the annotation rhumb.dev/release; a webhook or an admission policy takes it away";

/// Our entry owns the label, and the object has none, or another: no watch shows it, and nothing
/// would ever prune it.
const UNLABELLED: &str = "the server does not keep the label applyset.kubernetes.io/part-of; a webhook or an admission policy changes it, so what becomes of the object is not seen, and it is never pruned; let the label pass, then change the object in git or start rhumb again";

/// The observation of an object.
#[derive(Clone, Debug)]
pub enum Observation<'a> {
    /// Nothing: absence would mean nothing either.
    Blind(Reason),
    /// The informer does not show it, and nobody has looked.
    NotSeen,
    /// It does not exist.
    Absent,
    /// This.
    Seen(&'a LiveObject),
}

/// Indicates whether an autoscaler targets the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaOwner {
    /// The manifest sets the count.
    Manifest,
    /// A `HorizontalPodAutoscaler` sets the count.
    Autoscaler,
}

/// All that a decision depends on.
#[derive(Clone, Debug)]
pub struct DecisionInput<'a> {
    /// The object.
    pub id: &'a ObjectId,
    /// The facts.
    pub entry: &'a ObjectEntry,
    /// The observation in the cluster.
    pub observation: Observation<'a>,
    /// Inventory ids of all sources, by number.
    pub inventories: &'a [Arc<str>],
    /// The revision that brings the wanted content.
    pub brings: Revision,
    /// The reason to show for an object that matches its rollback target.
    pub rejected: Option<Reason>,
    /// Indicates whether the wanting source may take objects over.
    pub adopt: AdoptPolicy,
    /// Says if the wanting source heeds what others put on its live objects.
    pub opt_out: OptOutPolicy,
    /// The holder of an object in an inventory that this process does not keep.
    pub holder: InventoryHolder,
    /// Indicates whether an autoscaler targets it.
    pub scaling: ReplicaOwner,
    /// The reason that bars any write: its kind, its namespace, the inventory.
    pub barred: Option<Reason>,
    /// The reason that gates new content: its references, its wave.
    pub gated: Option<Reason>,
    /// The guard's word, for an object that no source wants.
    pub prune_decision: Option<PruneDecision>,
    /// The reason for which it cannot be told whether the source that brought it still wants it.
    pub doubt: Option<Arc<str>>,
    /// The overlay for the wanted content now.
    pub overlay: Option<Overlay>,
    /// The data that the pods of the wanted content are to be started with.
    pub started: Option<ConfigStamp>,
    /// The content with which it ended, for a Job that is gone by itself.
    pub finished: Option<ContentHash>,
}

/// Decides about one object.
pub fn decide(view: &DecisionInput<'_>, now: Instant) -> Decision {
    if let Observation::Blind(reason) = &view.observation {
        return Decision::wait(reason.clone());
    }
    match &view.entry.wants[..] {
        [] => unwanted(view, now),
        [(source, WantedObject::Object(desired))] => {
            with_rollback_reason(view, decide_wanted(view, *source, desired, now))
        }
        [(source, WantedObject::Object(desired)), ..] if view.entry.owner == Some(*source) => {
            among_sources(view, with_rollback_reason(view, decide_wanted(view, *source, desired, now)))
        }
        [(_, WantedObject::Unusable(held))] => defend(view, Reason::Held(held.reason.clone()), now),
        several => defend(view, Reason::Held(two_sources(several)), now),
    }
}

/// Adds the reason of an object that went back: it is as accepted, and not as the newest revision
/// asks.
fn with_rollback_reason(view: &DecisionInput<'_>, decision: Decision) -> Decision {
    match (&view.rejected, &decision) {
        (Some(reason), Decision { action: Action::Nothing, reason: None, .. }) => {
            decision.because(reason.clone())
        }
        _ => decision,
    }
}

/// Decides for several sources: the one that has the object goes on with it, and the others are
/// told that they do not get it.
fn among_sources(view: &DecisionInput<'_>, decision: Decision) -> Decision {
    if decision.action != Action::Nothing || decision.reason.is_some() {
        return decision;
    }
    decision.because(Reason::Held(as_the_first_asks(&view.entry.wants)))
}

/// Returns why the others do not get what the first of several sources has.
pub(super) fn as_the_first_asks(wants: &[(SourceId, WantedObject)]) -> Arc<str> {
    format!("{}; it is as the first of them asks, which has it", two_sources(wants)).into()
}

fn two_sources(wants: &[(SourceId, WantedObject)]) -> Arc<str> {
    let places: Vec<String> = wants.iter().map(|(_, want)| want.origin().to_string()).collect();
    format!("{} sources want it: {}", wants.len(), places.join(" and ")).into()
}

/// Returns why nothing at all is done about an object, absent or there, that asks for that.
///
/// As Flux reads it: the manifest's word counts, and that of somebody else on the object, where the
/// source allows it.
pub(super) fn left_alone(
    want: &DesiredObject,
    live: Option<&LiveObject>,
    opt_out: OptOutPolicy,
) -> Option<Reason> {
    match (want.traits.reconcile, live) {
        (ReconcilePolicy::OnlyCreate, Some(_)) => Some(Reason::LeftAlone(ReconcilePolicy::OnlyCreate)),
        (ReconcilePolicy::Disabled, _) => Some(Reason::LeftAlone(ReconcilePolicy::Disabled)),
        (_, Some(live)) if opt_out == OptOutPolicy::Allowed => live.opt_out.map(Reason::OptedOut),
        _ => None,
    }
}

fn decide_wanted(
    view: &DecisionInput<'_>,
    source: SourceId,
    desired: &SharedDesired,
    now: Instant,
) -> Decision {
    let live = match view.observation {
        Observation::Seen(live) => Some(live),
        _ => None,
    };
    if let Some(reason) =
        left_alone(desired, live, view.opt_out).filter(|_| !matches!(view.observation, Observation::NotSeen))
    {
        return Decision::wait(reason);
    }
    match view.observation {
        Observation::Seen(live) => present(view, source, desired, live, now),
        Observation::Absent => absent(view, source, desired, now),
        Observation::NotSeen | Observation::Blind(_) => Decision::act(Action::Look),
    }
}

fn absent(view: &DecisionInput<'_>, source: SourceId, desired: &SharedDesired, now: Instant) -> Decision {
    if view.finished.is_some_and(|hash| desired.is_release(hash)) {
        return Decision::act(Action::Nothing);
    }
    let lost = view.entry.accepted.content();
    let repair = lost.is_some_and(|accepted| accepted.hash == desired.hash);
    let blocked = hindrance(view, desired, now).or_else(|| view.gated.clone().filter(|_| !repair));
    match (blocked, lost) {
        (None, _) => create(
            view,
            source,
            desired,
            if repair { ApplyPurpose::Repair } else { ApplyPurpose::Create },
            now,
        ),
        (Some(reason), Some(accepted)) if !repair && hindrance(view, accepted, now).is_none() => {
            create(view, source, accepted, ApplyPurpose::Repair, now).because(reason)
        }
        (Some(reason), _) => Decision::wait(reason),
    }
}

fn create(
    view: &DecisionInput<'_>,
    source: SourceId,
    want: &SharedDesired,
    purpose: ApplyPurpose,
    now: Instant,
) -> Decision {
    if let (ApplyPurpose::Repair, Some(fight)) = (purpose, fight(view, RepairImpact::InPlace, now)) {
        return Decision::wait(fight);
    }
    Decision::act(Action::Apply(ApplyRequest {
        want: want.clone(),
        source,
        revision: revision(view, purpose),
        seal: None,
        guard: Precondition::Absent,
        seen: None,
        form: ApplyVariant { started: view.started, ..ApplyVariant::PLAIN },
        purpose,
        restarts: RestartRisk::No,
    }))
}

fn present(
    view: &DecisionInput<'_>,
    source: SourceId,
    desired: &SharedDesired,
    live: &LiveObject,
    now: Instant,
) -> Decision {
    if live.deleting {
        return Decision::wait(Reason::Terminating);
    }
    let takeover = match ownership(view, source, live) {
        Ok(takeover) => takeover,
        // The source of this process that has it goes on defending it.
        Err(reason) if owner(view, live).is_some() => return defend(view, reason, now),
        Err(reason) => return Decision::wait(reason),
    };
    let replicas = replicas(view, desired, live);
    let there = live.shown_release().is_some_and(|release| match view.scaling {
        ReplicaOwner::Manifest => release.hash == desired.hash,
        ReplicaOwner::Autoscaler => desired.is_release(release.hash),
    });
    // An annotation that is gone or altered is drift like any other, where the content is known to
    // be there.
    let unstamped = (!live.is_stamped() || live.is_unproven()) && view.entry.accepted.is(desired.hash);
    if (there || unstamped) && takeover.is_none() {
        if live.lost_config(view.started) {
            return Decision::wait(Reason::Reading(view.id.clone()));
        }
        if there && (live.shown != OverlayState::from(view.overlay) || live.started != view.started) {
            return step(view, source, desired, live, now);
        }
        return verify(view, source, desired, live, now);
    }
    let restarts = restarts(view, desired, live);
    if let (RestartRisk::Maybe, AcceptedContent::Named(release)) = (restarts, &view.entry.accepted) {
        return Decision::act(Action::Resolve).because(Reason::Resolving(release.revision.short().into()));
    }
    if let Some(refusal) = immutable(view, desired) {
        return match desired.traits.recreate {
            RecreatePolicy::Allowed if live.is_unproven() => defend(view, unproven_refusal(view), now),
            RecreatePolicy::Allowed if takeover.is_none() && view.barred.is_none() => {
                Decision::act(Action::Delete(live.uid.clone(), live.rv, DeletionReason::Recreate))
            }
            _ => defend(view, refusal, now),
        };
    }
    if let Some(reason) = hindrance(view, desired, now).or_else(|| view.gated.clone()) {
        return defend(view, reason, now);
    }
    let purpose = takeover.unwrap_or(ApplyPurpose::Change);
    let exact =
        takeover.is_some() || restarts == RestartRisk::Maybe || matches!(replicas, ReplicaMode::AsLive(_));
    Decision::act(Action::Apply(ApplyRequest {
        want: desired.clone(),
        source,
        revision: revision(view, purpose),
        seal: None,
        guard: guard(live, exact),
        seen: Some(live.rv),
        form: ApplyVariant { replicas, overlay: view.overlay, started: view.started },
        purpose,
        restarts,
    }))
}

/// The content is there, and its rollout goes one step on, or is let go, or its pods use other
/// data.
fn step(
    view: &DecisionInput<'_>,
    source: SourceId,
    want: &SharedDesired,
    live: &LiveObject,
    now: Instant,
) -> Decision {
    let restarted = live.started.is_some() && live.is_restarted_by(view.started);
    let purpose = match live.shown == OverlayState::from(view.overlay) {
        _ if restarted => ApplyPurpose::Restart,
        true => ApplyPurpose::Repair,
        false => ApplyPurpose::Step,
    };
    let fight = || fight(view, RepairImpact::Template, now).filter(|_| purpose == ApplyPurpose::Repair);
    if let Some(reason) = hindrance(view, want, now).or_else(fight) {
        return Decision::wait(reason);
    }
    if let Some(reason) = view.gated.clone().filter(|_| restarted) {
        return verify(view, source, want, live, now).because(reason);
    }
    let moves = matches!(live.shown, OverlayState::Under(overlay) if overlay.step().is_some())
        || view.overlay.is_some();
    let moves = (moves && !only_tightens(live.shown, view.overlay)) || live.is_restarted_by(view.started);
    Decision::act(Action::Apply(ApplyRequest {
        want: want.clone(),
        source,
        revision: revision(view, purpose),
        seal: None,
        guard: guard(live, true),
        seen: Some(live.rv),
        form: ApplyVariant {
            replicas: replicas(view, want, live),
            overlay: view.overlay,
            started: view.started,
        },
        purpose,
        restarts: if moves && serving(view.id, live) { RestartRisk::Maybe } else { RestartRisk::No },
    }))
}

/// Returns a repair brings nothing new, so the annotation goes on naming the revision that did.
fn revision(view: &DecisionInput<'_>, purpose: ApplyPurpose) -> Revision {
    match (&view.entry.brought, purpose) {
        (Some(brought), ApplyPurpose::Repair | ApplyPurpose::Step | ApplyPurpose::Restart) => brought.clone(),
        _ => view.brings.clone(),
    }
}

fn guard(live: &LiveObject, exact: bool) -> Precondition {
    if exact { Precondition::Exact(live.uid.clone(), live.rv) } else { Precondition::Uid(live.uid.clone()) }
}

/// Returns an ApplySet in words, where nobody knows its source. Its id says nothing to people, but
/// its parent can be found by it.
pub(super) fn apply_set(set: &str) -> Arc<str> {
    let find = format!("kubectl get configmaps,secrets -A -l applyset.kubernetes.io/id={set}");
    format!("the ApplySet {set}: `{find}` finds its parent").into()
}

/// Returns a source that would let go of an object, were it taken over.
fn released(name: &str) -> Arc<str> {
    format!("source {name}, which no longer wants it and keeps it, as adopt is `never` here").into()
}

/// Returns whether we may write to it: as its owner (none), or by taking it over.
fn ownership(
    view: &DecisionInput<'_>,
    source: SourceId,
    live: &LiveObject,
) -> Result<Option<ApplyPurpose>, Reason> {
    let mine = &view.inventories[source];
    let adopted = |owner: Arc<str>| match view.adopt {
        AdoptPolicy::Always => Ok(Some(ApplyPurpose::Adopt)),
        AdoptPolicy::Never | AdoptPolicy::IfUnowned => Err(Reason::Owned(owner)),
    };
    match &live.owner {
        ObjectOwner::Ours(set) if set == mine => Ok(None),
        _ if is_ours_all_the_same(view, live) => Ok(None),
        ObjectOwner::Controlled(owner) => Err(Reason::Owned(owner.clone())),
        ObjectOwner::Ours(_) if view.holder == InventoryHolder::Unread => Err(Reason::Others),
        ObjectOwner::Ours(set) => match (&view.holder, view.adopt) {
            (InventoryHolder::Releases(name), AdoptPolicy::Never) => Err(Reason::Owned(released(name))),
            (InventoryHolder::Releases(_), _) => Ok(Some(ApplyPurpose::Transfer)),
            (InventoryHolder::Keeps(name), AdoptPolicy::Never | AdoptPolicy::IfUnowned) => {
                Err(Reason::Owned(format!("source {name}").into()))
            }
            _ => adopted(apply_set(set)),
        },
        ObjectOwner::Labelled(set) => adopted(apply_set(set)),
        ObjectOwner::Foreign(owner) => adopted(owner.clone()),
        ObjectOwner::Nobody => match view.adopt {
            AdoptPolicy::Never => Err(Reason::NotAdopted),
            AdoptPolicy::IfUnowned | AdoptPolicy::Always => Ok(Some(ApplyPurpose::Adopt)),
        },
    }
}

fn replicas(view: &DecisionInput<'_>, want: &SharedDesired, live: &LiveObject) -> ReplicaMode {
    if view.scaling == ReplicaOwner::Manifest || want.ceded.is_none() {
        ReplicaMode::AsWritten
    } else if live.replicas_ceded {
        ReplicaMode::Omitted
    } else {
        let shown = |rolling: super::RolloutNumbers| ReplicaMode::AsLive(rolling.replicas);
        live.rolling.map_or(ReplicaMode::AsWritten, shown)
    }
}

/// Returns whether putting this content there may restart pods that are available now.
fn restarts(view: &DecisionInput<'_>, desired: &SharedDesired, live: &LiveObject) -> RestartRisk {
    let steps = matches!(live.shown, OverlayState::Under(overlay) if overlay.step().is_some());
    // Leaving a step restarts the pods that it held back, whatever the template.
    let lets_go =
        steps && live.shown != OverlayState::from(view.overlay) && !only_tightens(live.shown, view.overlay);
    let same =
        view.entry.accepted.has_template_of(desired) && !lets_go && !live.is_restarted_by(view.started);
    if same || !serving(view.id, live) { RestartRisk::No } else { RestartRisk::Maybe }
}

/// Returns whether it has pods that a rolling update could take down. Pods that were never
/// available do not count.
pub(super) fn serving(id: &ObjectId, live: &LiveObject) -> bool {
    is_workload(id)
        && live
            .rolling
            .is_none_or(|rolling| rolling.phase != RolloutPhase::FirstStart && rolling.replicas > 0)
}

/// Our newest content is there: is all of it still ours?
fn verify(
    view: &DecisionInput<'_>,
    source: SourceId,
    want: &SharedDesired,
    live: &LiveObject,
    now: Instant,
) -> Decision {
    // The content under an autoscaler differs from the content that was verified without it.
    let as_released = live.shown_release().is_some_and(|release| release.hash == want.hash);
    let replicas = match replicas(view, want, live) {
        ReplicaMode::AsLive(_) if as_released => ReplicaMode::AsWritten,
        other => other,
    };
    let overlay = match live.shown {
        OverlayState::Under(overlay) => Some(overlay),
        _ => None,
    };
    let form = ApplyVariant { replicas, overlay, started: live.started };
    let content = form.hash(want);
    let verified = view.entry.verified.as_ref().filter(|v| v.speaks_of(content, form, live));
    match verified.map(|verified| verified.cover) {
        None => Decision::act(Action::Compare(want.clone(), form)),
        // Sent again and again, the annotation would be taken away again and again.
        Some(FieldCoverage::Whole) => match live.shown_release() {
            None => Decision::wait(Reason::Refused(STRIPPED.into(), None)),
            Some(_) if !matches!(&live.owner, ObjectOwner::Ours(set) if *set == view.inventories[source]) => {
                Decision::wait(Reason::Refused(UNLABELLED.into(), None))
            }
            // Somebody wrote another annotation in our name, and nothing proves it.
            Some(shown) if live.is_unproven() && !want.is_release(shown.hash) => {
                repair(view, source, want, (form, RepairImpact::InPlace), live, now)
            }
            Some(_) => Decision::act(Action::Nothing),
        },
        Some(FieldCoverage::Empty | FieldCoverage::Unequal) => {
            Decision::act(Action::Inspect(want.clone(), form))
        }
        Some(FieldCoverage::Lost(lost)) => repair(view, source, want, (form, lost), live, now),
    }
}

fn repair(
    view: &DecisionInput<'_>,
    source: SourceId,
    want: &SharedDesired,
    (form, lost): (ApplyVariant, RepairImpact),
    live: &LiveObject,
    now: Instant,
) -> Decision {
    if let Some(reason) = hindrance(view, want, now).or_else(|| fight(view, lost, now)) {
        return Decision::wait(reason);
    }
    let restarts = if lost == RepairImpact::Template && serving(view.id, live) {
        RestartRisk::Maybe
    } else {
        RestartRisk::No
    };
    Decision::act(Action::Apply(ApplyRequest {
        want: want.clone(),
        source,
        revision: revision(view, ApplyPurpose::Repair),
        seal: None,
        // Bound to the version, it would only ever meet conflicts where somebody writes faster, and
        // nothing would show that this is a fight. The repair restores accepted content.
        guard: guard(live, matches!(form.replicas, ReplicaMode::AsLive(_))),
        seen: Some(live.rv),
        form,
        purpose: ApplyPurpose::Repair,
        restarts,
    }))
}

/// The newest revision's wish cannot be carried out: what was accepted before stays defended.
fn defend(view: &DecisionInput<'_>, reason: Reason, now: Instant) -> Decision {
    let accepted = match &view.entry.accepted {
        AcceptedContent::Known(accepted) => accepted,
        AcceptedContent::Nothing | AcceptedContent::Lost(_) => return Decision::wait(reason),
        AcceptedContent::Named(_) => return Decision::act(Action::Resolve).because(reason),
    };
    match view.observation {
        Observation::NotSeen | Observation::Blind(_) => Decision::act(Action::Look).because(reason),
        Observation::Absent => match hindrance(view, accepted, now) {
            None => {
                let source = view.entry.wants.first().map_or(accepted.place.source, |(source, _)| *source);
                create(view, source, accepted, ApplyPurpose::Repair, now).because(reason)
            }
            Some(_) => Decision::wait(reason),
        },
        Observation::Seen(live) if live.deleting => Decision::wait(Reason::Terminating),
        Observation::Seen(live) if left_alone(accepted, Some(live), view.opt_out).is_some() => {
            Decision::wait(reason)
        }
        Observation::Seen(live) => match (owner(view, live), &live.owner) {
            (Some(source), _) => verify(view, source, accepted, live, now).because(reason),
            (None, ObjectOwner::Controlled(owner) | ObjectOwner::Foreign(owner)) => {
                Decision::wait(Reason::Owned(owner.clone()))
            }
            _ => Decision::wait(reason),
        },
    }
}

/// Returns the source in whose inventory it is, or was before its label was touched.
fn owner(view: &DecisionInput<'_>, live: &LiveObject) -> Option<SourceId> {
    let wanting = view.entry.wants.first().map(|(source, _)| *source);
    match &live.owner {
        _ if is_ours_all_the_same(view, live) => wanting,
        ObjectOwner::Ours(set) => view.inventories.iter().position(|one| one == set),
        _ => None,
    }
}

/// Returns whether marks that say otherwise are only claims, and so drift: the seal tells that we
/// wrote it, or this process remembers it.
///
/// Another owner's mark says the same as an annotation that takes an object out of our hands, and
/// has no effect where that has none. The label of another inventory that is sealed for it stands
/// there by right.
fn is_ours_all_the_same(view: &DecisionInput<'_>, live: &LiveObject) -> bool {
    let is_known = view.entry.accepted.content().is_some() && live.ours.is_some();
    let was_ours = !live.is_unproven() || is_known || view.entry.remembers(live);
    match &live.owner {
        ObjectOwner::Nobody | ObjectOwner::Labelled(_) => was_ours,
        ObjectOwner::Controlled(_) | ObjectOwner::Foreign(_) => {
            was_ours && view.opt_out == OptOutPolicy::Denied
        }
        ObjectOwner::Ours(set) => {
            live.is_unproven() && view.entry.remembers(live) && !view.inventories.contains(set)
        }
    }
}

fn unwanted(view: &DecisionInput<'_>, now: Instant) -> Decision {
    let Observation::Seen(live) = view.observation else {
        return match (&view.doubt, &view.entry.accepted) {
            (Some(why), AcceptedContent::Known(_)) => defend(view, Reason::Incomplete(why.clone()), now),
            _ => Decision::act(Action::Forget),
        };
    };
    if !matches!(&live.owner, ObjectOwner::Ours(set) if view.inventories.contains(set)) {
        return Decision::act(Action::Forget);
    }
    if live.deleting {
        return Decision::wait(Reason::Terminating);
    }
    match &view.prune_decision {
        // The judgement was about another view of it.
        Some(PruneDecision::Delete) if live.is_unproven() => Decision::wait(Reason::Kept(UNPROVEN.into())),
        Some(PruneDecision::Delete) => match recent_failure(view, now) {
            Some(reason) => Decision::wait(reason),
            None => Decision::act(Action::Delete(live.uid.clone(), live.rv, DeletionReason::Prune)),
        },
        Some(PruneDecision::Later(why)) => defend(view, Reason::Prune(why.clone()), now),
        Some(PruneDecision::Confirm(why)) => defend(view, Reason::Confirm(why.clone()), now),
        Some(PruneDecision::Keep(why)) => defend(view, Reason::Kept(why.clone()), now),
        Some(PruneDecision::Leave(why)) => Decision::wait(Reason::Kept(why.clone())),
        None => defend(view, Reason::Prune("whether it may be pruned is not decided yet".into()), now),
    }
}

/// Returns the hindrance to writing this content, whatever the purpose.
fn hindrance(view: &DecisionInput<'_>, want: &SharedDesired, now: Instant) -> Option<Reason> {
    let refused = view.entry.refused.as_ref().filter(|refusal| refusal.content == want.hash);
    let refused = refused.and_then(|refusal| match refusal.retry {
        Some(retry) if retry <= now => None,
        Some(retry) => Some(Reason::Refused(refusal.text.clone(), Some(retry - now))),
        None => Some(Reason::Refused(refusal.text.clone(), None)),
    });
    view.barred.clone().or(refused).or_else(|| recent_failure(view, now))
}

fn recent_failure(view: &DecisionInput<'_>, now: Instant) -> Option<Reason> {
    let (until, why) = view.entry.failed.as_ref().filter(|(until, _)| *until > now)?;
    Some(Reason::Retrying(why.clone(), *until - now))
}

fn immutable(view: &DecisionInput<'_>, want: &SharedDesired) -> Option<Reason> {
    let refusal = view.entry.refused.as_ref()?;
    (refusal.content == want.hash && refusal.rule == RefusalRule::Immutable)
        .then(|| Reason::Refused(refusal.text.clone(), None))
}

/// An object that is not provably ours is not deleted to be created again either.
fn unproven_refusal(view: &DecisionInput<'_>) -> Reason {
    let text = view.entry.refused.as_ref().map_or_else(Arc::default, |refusal| refusal.text.clone());
    let why = "it is not deleted and created again, as its annotation rhumb.dev/release has no valid seal: \
               delete it by kubectl, and it is created again";
    Reason::Refused(format!("{text}; {why}").into(), None)
}

/// Returns the pause after so many repairs: short where a repair costs no pod, the whole window
/// where each restarts some.
fn fight(view: &DecisionInput<'_>, lost: RepairImpact, now: Instant) -> Option<Reason> {
    let recent: Vec<Instant> =
        view.entry.repairs.iter().copied().filter(|at| now.duration_since(*at) < FIGHT_WINDOW).collect();
    let oldest = recent.len().checked_sub(FIGHT).and_then(|first| recent.get(first))?;
    let calm = FIGHT_WINDOW.saturating_sub(now.duration_since(*oldest));
    let left = match (lost, recent.last()) {
        (RepairImpact::InPlace, Some(newest)) => {
            calm.min(FIGHT_PAUSE.saturating_sub(now.duration_since(*newest)))
        }
        _ => calm,
    };
    (!left.is_zero()).then(|| Reason::Fight(other_writers(view), left))
}

fn other_writers(view: &DecisionInput<'_>) -> Arc<str> {
    let Observation::Seen(live) = view.observation else { return "somebody".into() };
    let names: Vec<&str> =
        live.others.iter().filter(|m| m.subresource.is_empty()).map(|manager| &*manager.name).collect();
    if names.is_empty() { "somebody".into() } else { names.join(", ").into() }
}
