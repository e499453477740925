//! What to do about one object now: a pure function of the facts.
//!
//! The order of the questions is the order of this file: can it be seen, whose is it, is it what the newest
//! revision asks for, may that be released, and, where it may not, is what was accepted before still there?

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::action::{Action, Apply, Decision, Guard, Purpose, Removal, Restarts};
use super::claim::UNPROVEN;
use super::entry::{Accepted, Cover, Entry, Lost, Rule, SourceId};
use super::prune::Judgement;
use super::stepping::only_tightens;
use super::{
    Adopt, Desired, Form, Holder, Live, OptOut, Overlay, Owner, Reason, Reconcile, Recreate, Replicas,
    RollPhase, Shared, Shown, Started, Want, is_workload,
};
use crate::object::{Hash, ObjectId, Revision};

/// So many repairs of one object within a minute are a fight (Config Sync's alarm rate, KNV2005).
pub const FIGHT: usize = 5;

/// The time over which repairs are counted.
pub const FIGHT_WINDOW: Duration = Duration::from_mins(1);

/// A repair that restarts no pods waits no longer than this in a fight. Whoever writes without end would otherwise have
/// its own content stand for most of each minute.
pub const FIGHT_PAUSE: Duration = Duration::from_secs(10);

/// When our own write has not come back by the watch in this time, the API server is asked.
pub const ECHO: Duration = Duration::from_secs(10);

/// Our entry owns the annotation, and the object has none.
const STRIPPED: &str = "the server does not keep the annotation rhumb.dev/release; a webhook or an admission policy takes it away";

/// Our entry owns the label, and the object has none, or another: no watch shows it, and nothing would ever prune it.
const UNLABELLED: &str = "the server does not keep the label applyset.kubernetes.io/part-of; a webhook or an admission policy changes it, so what becomes of the object is not seen, and it is never pruned; let the label pass, then change the object in git or start rhumb again";

/// What can be said about an object's presence.
#[derive(Clone, Debug)]
pub enum Sight<'a> {
    /// Nothing: absence would mean nothing either.
    Blind(Reason),
    /// The informer does not show it, and nobody has looked.
    NotSeen,
    /// It does not exist.
    Absent,
    /// This.
    Seen(&'a Live),
}

/// Whether an autoscaler targets the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// By its manifest.
    ByManifest,
    /// By a `HorizontalPodAutoscaler`.
    ByAutoscaler,
}

/// All that a decision depends on.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// Who.
    pub id: &'a ObjectId,
    /// The facts.
    pub entry: &'a Entry,
    /// What the cluster shows.
    pub sight: Sight<'a>,
    /// Inventory ids of all sources, by number.
    pub inventories: &'a [Arc<str>],
    /// The revision that brings the wanted content.
    pub brings: Revision,
    /// What is to be told of an object that is as wanted because something else than the newest revision's content
    /// is.
    pub rejected: Option<Reason>,
    /// Whether the wanting source may take objects over.
    pub adopt: Adopt,
    /// Says if the wanting source heeds what others put on its live objects.
    pub opt_out: OptOut,
    /// Whose it is, where it is in an inventory that this process does not keep.
    pub holder: Holder,
    /// Whether an autoscaler targets it.
    pub scaling: Scaling,
    /// What stands in the way of any write: its kind, its namespace, the inventory.
    pub barred: Option<Reason>,
    /// What stands in the way of a new content: what it needs, its wave.
    pub gated: Option<Reason>,
    /// The guard's word, for an object that no source wants.
    pub judgement: Option<Judgement>,
    /// Why it cannot be told whether the source that brought it still wants it.
    pub doubt: Option<Arc<str>>,
    /// What is to be laid over the wanted content now.
    pub overlay: Option<Overlay>,
    /// Which data the pods of the wanted content are to be started with.
    pub started: Option<Started>,
    /// The content with which it ended, for a Job that is gone by itself.
    pub finished: Option<Hash>,
}

/// Decides about one object.
pub fn decide(view: &View<'_>, now: Instant) -> Decision {
    if let Sight::Blind(reason) = &view.sight {
        return Decision::wait(reason.clone());
    }
    match &view.entry.wants[..] {
        [] => unwanted(view, now),
        [(source, Want::Object(desired))] => told(view, wanted(view, *source, desired, now)),
        [(source, Want::Object(desired)), ..] if view.entry.owner == Some(*source) => {
            beside_others(view, told(view, wanted(view, *source, desired, now)))
        }
        [(_, Want::Held(held))] => defend(view, Reason::Held(held.reason.clone()), now),
        several => defend(view, Reason::Held(two_sources(several)), now),
    }
}

/// What went back is as wanted, and not as the newest revision asks.
fn told(view: &View<'_>, decision: Decision) -> Decision {
    match (&view.rejected, &decision) {
        (Some(reason), Decision { action: Action::Nothing, reason: None, .. }) => {
            decision.because(reason.clone())
        }
        _ => decision,
    }
}

/// Whoever has an object goes on with it, and the others are told that they do not get it.
fn beside_others(view: &View<'_>, decision: Decision) -> Decision {
    if decision.action != Action::Nothing || decision.reason.is_some() {
        return decision;
    }
    decision.because(Reason::Held(as_the_first_asks(&view.entry.wants)))
}

/// Why the others do not get what the first of several sources has.
pub(super) fn as_the_first_asks(wants: &[(SourceId, Want)]) -> Arc<str> {
    format!("{}; it is as the first of them asks, which has it", two_sources(wants)).into()
}

fn two_sources(wants: &[(SourceId, Want)]) -> Arc<str> {
    let places: Vec<String> = wants.iter().map(|(_, want)| want.origin().to_string()).collect();
    format!("{} sources want it: {}", wants.len(), places.join(" and ")).into()
}

/// Why nothing at all is done about an object, absent or there, that asks for that.
///
/// As Flux reads it: the manifest's word counts, and that of somebody else on the object, where the source allows it.
pub(super) fn left_alone(want: &Desired, live: Option<&Live>, opt_out: OptOut) -> Option<Reason> {
    match (want.traits.reconcile, live) {
        (Reconcile::OnlyCreate, Some(_)) => Some(Reason::LeftAlone(Reconcile::OnlyCreate)),
        (Reconcile::Disabled, _) => Some(Reason::LeftAlone(Reconcile::Disabled)),
        (_, Some(live)) if opt_out == OptOut::Allowed => live.opt_out.map(Reason::OptedOut),
        _ => None,
    }
}

fn wanted(view: &View<'_>, source: SourceId, desired: &Shared, now: Instant) -> Decision {
    let live = match view.sight {
        Sight::Seen(live) => Some(live),
        _ => None,
    };
    if let Some(reason) =
        left_alone(desired, live, view.opt_out).filter(|_| !matches!(view.sight, Sight::NotSeen))
    {
        return Decision::wait(reason);
    }
    match view.sight {
        Sight::Seen(live) => present(view, source, desired, live, now),
        Sight::Absent => absent(view, source, desired, now),
        Sight::NotSeen | Sight::Blind(_) => Decision::act(Action::Look),
    }
}

fn absent(view: &View<'_>, source: SourceId, desired: &Shared, now: Instant) -> Decision {
    if view.finished.is_some_and(|hash| desired.is_release(hash)) {
        return Decision::act(Action::Nothing);
    }
    let lost = view.entry.accepted.known();
    let repair = lost.is_some_and(|accepted| accepted.hash == desired.hash);
    let blocked = hindrance(view, desired, now).or_else(|| view.gated.clone().filter(|_| !repair));
    match (blocked, lost) {
        (None, _) => {
            create(view, source, desired, if repair { Purpose::Repair } else { Purpose::Create }, now)
        }
        (Some(reason), Some(accepted)) if !repair && hindrance(view, accepted, now).is_none() => {
            create(view, source, accepted, Purpose::Repair, now).because(reason)
        }
        (Some(reason), _) => Decision::wait(reason),
    }
}

fn create(view: &View<'_>, source: SourceId, want: &Shared, purpose: Purpose, now: Instant) -> Decision {
    if let (Purpose::Repair, Some(fight)) = (purpose, fight(view, Lost::InPlace, now)) {
        return Decision::wait(fight);
    }
    Decision::act(Action::Apply(Apply {
        want: want.clone(),
        source,
        revision: revision(view, purpose),
        seal: None,
        guard: Guard::Absent,
        seen: None,
        form: Form { started: view.started, ..Form::PLAIN },
        purpose,
        restarts: Restarts::No,
    }))
}

fn present(view: &View<'_>, source: SourceId, desired: &Shared, live: &Live, now: Instant) -> Decision {
    if live.deleting {
        return Decision::wait(Reason::Terminating);
    }
    let takeover = match ownership(view, source, live) {
        Ok(takeover) => takeover,
        // Whoever of this process has it goes on defending it.
        Err(reason) if owner(view, live).is_some() => return defend(view, reason, now),
        Err(reason) => return Decision::wait(reason),
    };
    let replicas = replicas(view, desired, live);
    let there = live.shown_release().is_some_and(|release| match view.scaling {
        Scaling::ByManifest => release.hash == desired.hash,
        Scaling::ByAutoscaler => desired.is_release(release.hash),
    });
    // An annotation that is gone or altered is drift like any other, where the content is known to be there.
    let unstamped = (!live.is_stamped() || live.is_unproven()) && view.entry.accepted.is(desired.hash);
    if (there || unstamped) && takeover.is_none() {
        if live.lost_config(view.started) {
            return Decision::wait(Reason::Reading(view.id.clone()));
        }
        if there && (live.shown != Shown::from(view.overlay) || live.started != view.started) {
            return step(view, source, desired, live, now);
        }
        return verify(view, source, desired, live, now);
    }
    let restarts = restarts(view, desired, live);
    if let (Restarts::Maybe, Accepted::Named(release)) = (restarts, &view.entry.accepted) {
        return Decision::act(Action::Resolve).because(Reason::Resolving(release.revision.short().into()));
    }
    if let Some(refusal) = immutable(view, desired) {
        return match desired.traits.recreate {
            Recreate::Allowed if live.is_unproven() => defend(view, unproven_refusal(view), now),
            Recreate::Allowed if takeover.is_none() && view.barred.is_none() => {
                Decision::act(Action::Delete(live.uid.clone(), live.rv, Removal::Recreate))
            }
            _ => defend(view, refusal, now),
        };
    }
    if let Some(reason) = hindrance(view, desired, now).or_else(|| view.gated.clone()) {
        return defend(view, reason, now);
    }
    let purpose = takeover.unwrap_or(Purpose::Change);
    let exact = takeover.is_some() || restarts == Restarts::Maybe || matches!(replicas, Replicas::Shown(_));
    Decision::act(Action::Apply(Apply {
        want: desired.clone(),
        source,
        revision: revision(view, purpose),
        seal: None,
        guard: guard(live, exact),
        seen: Some(live.rv),
        form: Form { replicas, overlay: view.overlay, started: view.started },
        purpose,
        restarts,
    }))
}

/// The content is there, and its rollout goes one step on, or is let go, or its pods use other data.
fn step(view: &View<'_>, source: SourceId, want: &Shared, live: &Live, now: Instant) -> Decision {
    let restarted = live.started.is_some() && live.is_restarted_by(view.started);
    let purpose = match live.shown == Shown::from(view.overlay) {
        _ if restarted => Purpose::Restart,
        true => Purpose::Repair,
        false => Purpose::Step,
    };
    let fight = || fight(view, Lost::Template, now).filter(|_| purpose == Purpose::Repair);
    if let Some(reason) = hindrance(view, want, now).or_else(fight) {
        return Decision::wait(reason);
    }
    if let Some(reason) = view.gated.clone().filter(|_| restarted) {
        return verify(view, source, want, live, now).because(reason);
    }
    let moves =
        matches!(live.shown, Shown::Under(overlay) if overlay.step().is_some()) || view.overlay.is_some();
    let moves = (moves && !only_tightens(live.shown, view.overlay)) || live.is_restarted_by(view.started);
    Decision::act(Action::Apply(Apply {
        want: want.clone(),
        source,
        revision: revision(view, purpose),
        seal: None,
        guard: guard(live, true),
        seen: Some(live.rv),
        form: Form { replicas: replicas(view, want, live), overlay: view.overlay, started: view.started },
        purpose,
        restarts: if moves && serving(view.id, live) { Restarts::Maybe } else { Restarts::No },
    }))
}

/// A repair brings nothing new, so the annotation goes on naming the revision that did.
fn revision(view: &View<'_>, purpose: Purpose) -> Revision {
    match (&view.entry.brought, purpose) {
        (Some(brought), Purpose::Repair | Purpose::Step | Purpose::Restart) => brought.clone(),
        _ => view.brings.clone(),
    }
}

fn guard(live: &Live, exact: bool) -> Guard {
    if exact { Guard::Exact(live.uid.clone(), live.rv) } else { Guard::Uid(live.uid.clone()) }
}

/// An ApplySet in words, where nobody knows its source. Its id says nothing to people, but its parent can be found by it.
fn apply_set(set: &str) -> Arc<str> {
    let find = format!("kubectl get configmaps,secrets -A -l applyset.kubernetes.io/id={set}");
    format!("the ApplySet {set}: `{find}` finds its parent").into()
}

/// A source that would let go of an object, were it taken over.
fn released(name: &str) -> Arc<str> {
    format!("source {name}, which no longer wants it and keeps it, as adopt is `never` here").into()
}

/// Whether we may write to it: as its owner (none), or by taking it over.
fn ownership(view: &View<'_>, source: SourceId, live: &Live) -> Result<Option<Purpose>, Reason> {
    let mine = &view.inventories[source];
    let adopted = |owner: Arc<str>| match view.adopt {
        Adopt::Always => Ok(Some(Purpose::Adopt)),
        Adopt::Never | Adopt::IfUnowned => Err(Reason::Owned(owner)),
    };
    match &live.owner {
        Owner::Ours(set) if set == mine => Ok(None),
        _ if is_ours_all_the_same(view, live) => Ok(None),
        Owner::Controlled(owner) => Err(Reason::Owned(owner.clone())),
        Owner::Ours(_) if view.holder == Holder::Unread => Err(Reason::Others),
        Owner::Ours(set) => match (&view.holder, view.adopt) {
            (Holder::Releases(name), Adopt::Never) => Err(Reason::Owned(released(name))),
            (Holder::Releases(_), _) => Ok(Some(Purpose::Transfer)),
            (Holder::Keeps(name), Adopt::Never | Adopt::IfUnowned) => {
                Err(Reason::Owned(format!("source {name}").into()))
            }
            _ => adopted(apply_set(set)),
        },
        Owner::Labelled(set) => adopted(apply_set(set)),
        Owner::Foreign(owner) => adopted(owner.clone()),
        Owner::Nobody => match view.adopt {
            Adopt::Never => Err(Reason::NotAdopted),
            Adopt::IfUnowned | Adopt::Always => Ok(Some(Purpose::Adopt)),
        },
    }
}

fn replicas(view: &View<'_>, want: &Shared, live: &Live) -> Replicas {
    if view.scaling == Scaling::ByManifest || want.ceded.is_none() {
        Replicas::AsWritten
    } else if live.replicas_ceded {
        Replicas::Left
    } else {
        let shown = |rolling: super::Rolling| Replicas::Shown(rolling.replicas);
        live.rolling.map_or(Replicas::AsWritten, shown)
    }
}

/// Whether putting this content there may restart pods that are available now.
fn restarts(view: &View<'_>, desired: &Shared, live: &Live) -> Restarts {
    let steps = matches!(live.shown, Shown::Under(overlay) if overlay.step().is_some());
    // What lets go of a step restarts the pods that the step held back, whatever the template.
    let lets_go =
        steps && live.shown != Shown::from(view.overlay) && !only_tightens(live.shown, view.overlay);
    let same =
        view.entry.accepted.has_template_of(desired) && !lets_go && !live.is_restarted_by(view.started);
    if same || !serving(view.id, live) { Restarts::No } else { Restarts::Maybe }
}

/// Whether it has pods that a rolling update could take down. Pods that were never available do not count.
pub(super) fn serving(id: &ObjectId, live: &Live) -> bool {
    is_workload(id)
        && live.rolling.is_none_or(|rolling| rolling.phase != RollPhase::FirstStart && rolling.replicas > 0)
}

/// Our newest content is there: is all of it still ours?
fn verify(view: &View<'_>, source: SourceId, want: &Shared, live: &Live, now: Instant) -> Decision {
    // What is sent once an autoscaler owns the count differs from what is verified while it does not.
    let as_released = live.shown_release().is_some_and(|release| release.hash == want.hash);
    let replicas = match replicas(view, want, live) {
        Replicas::Shown(_) if as_released => Replicas::AsWritten,
        other => other,
    };
    let overlay = match live.shown {
        Shown::Under(overlay) => Some(overlay),
        _ => None,
    };
    let form = Form { replicas, overlay, started: live.started };
    let content = form.hash(want);
    let verified = view.entry.verified.as_ref().filter(|v| v.speaks_of(content, form, live));
    match verified.map(|verified| verified.cover) {
        None => Decision::act(Action::Compare(want.clone(), form)),
        // Sent again and again, the annotation would be taken away again and again.
        Some(Cover::Whole) => match live.shown_release() {
            None => Decision::wait(Reason::Refused(STRIPPED.into(), None)),
            Some(_) if !matches!(&live.owner, Owner::Ours(set) if *set == view.inventories[source]) => {
                Decision::wait(Reason::Refused(UNLABELLED.into(), None))
            }
            // Somebody wrote another annotation in our name, and nothing proves it.
            Some(shown) if live.is_unproven() && !want.is_release(shown.hash) => {
                repair(view, source, want, (form, Lost::InPlace), live, now)
            }
            Some(_) => Decision::act(Action::Nothing),
        },
        Some(Cover::Empty | Cover::Unequal) => Decision::act(Action::Inspect(want.clone(), form)),
        Some(Cover::Lost(lost)) => repair(view, source, want, (form, lost), live, now),
    }
}

fn repair(
    view: &View<'_>,
    source: SourceId,
    want: &Shared,
    (form, lost): (Form, Lost),
    live: &Live,
    now: Instant,
) -> Decision {
    if let Some(reason) = hindrance(view, want, now).or_else(|| fight(view, lost, now)) {
        return Decision::wait(reason);
    }
    let restarts =
        if lost == Lost::Template && serving(view.id, live) { Restarts::Maybe } else { Restarts::No };
    Decision::act(Action::Apply(Apply {
        want: want.clone(),
        source,
        revision: revision(view, Purpose::Repair),
        seal: None,
        // Bound to the version, it would only ever meet conflicts where somebody writes faster, and nothing would
        // show that this is a fight. What it puts back was accepted before.
        guard: guard(live, matches!(form.replicas, Replicas::Shown(_))),
        seen: Some(live.rv),
        form,
        purpose: Purpose::Repair,
        restarts,
    }))
}

/// The newest revision's wish cannot be carried out: what was accepted before stays defended.
fn defend(view: &View<'_>, reason: Reason, now: Instant) -> Decision {
    let accepted = match &view.entry.accepted {
        Accepted::Known(accepted) => accepted,
        Accepted::Nothing | Accepted::Lost(_) => return Decision::wait(reason),
        Accepted::Named(_) => return Decision::act(Action::Resolve).because(reason),
    };
    match view.sight {
        Sight::NotSeen | Sight::Blind(_) => Decision::act(Action::Look).because(reason),
        Sight::Absent => match hindrance(view, accepted, now) {
            None => {
                let source = view.entry.wants.first().map_or(accepted.place.source, |(source, _)| *source);
                create(view, source, accepted, Purpose::Repair, now).because(reason)
            }
            Some(_) => Decision::wait(reason),
        },
        Sight::Seen(live) if live.deleting => Decision::wait(Reason::Terminating),
        Sight::Seen(live) if left_alone(accepted, Some(live), view.opt_out).is_some() => {
            Decision::wait(reason)
        }
        Sight::Seen(live) => match (owner(view, live), &live.owner) {
            (Some(source), _) => verify(view, source, accepted, live, now).because(reason),
            (None, Owner::Controlled(owner) | Owner::Foreign(owner)) => {
                Decision::wait(Reason::Owned(owner.clone()))
            }
            _ => Decision::wait(reason),
        },
    }
}

/// The source in whose inventory it is, or was before its label was touched.
fn owner(view: &View<'_>, live: &Live) -> Option<SourceId> {
    let wanting = view.entry.wants.first().map(|(source, _)| *source);
    match &live.owner {
        _ if is_ours_all_the_same(view, live) => wanting,
        Owner::Ours(set) => view.inventories.iter().position(|one| one == set),
        _ => None,
    }
}

/// Whether marks that say otherwise are only claims, and so drift: the seal tells that we wrote it, or this process
/// remembers it.
///
/// Another owner's mark says the same as an annotation that takes an object out of our hands, and has no effect where
/// that has none. The label of another inventory that is sealed for it stands there by right.
fn is_ours_all_the_same(view: &View<'_>, live: &Live) -> bool {
    let is_known = view.entry.accepted.known().is_some() && live.ours.is_some();
    let was_ours = !live.is_unproven() || is_known || view.entry.remembers(live);
    match &live.owner {
        Owner::Nobody | Owner::Labelled(_) => was_ours,
        Owner::Controlled(_) | Owner::Foreign(_) => was_ours && view.opt_out == OptOut::Denied,
        Owner::Ours(set) => {
            live.is_unproven() && view.entry.remembers(live) && !view.inventories.contains(set)
        }
    }
}

fn unwanted(view: &View<'_>, now: Instant) -> Decision {
    let Sight::Seen(live) = view.sight else {
        return match (&view.doubt, &view.entry.accepted) {
            (Some(why), Accepted::Known(_)) => defend(view, Reason::Incomplete(why.clone()), now),
            _ => Decision::act(Action::Forget),
        };
    };
    if !matches!(&live.owner, Owner::Ours(set) if view.inventories.contains(set)) {
        return Decision::act(Action::Forget);
    }
    if live.deleting {
        return Decision::wait(Reason::Terminating);
    }
    match &view.judgement {
        // What was judged was another view of it.
        Some(Judgement::Delete) if live.is_unproven() => Decision::wait(Reason::Kept(UNPROVEN.into())),
        Some(Judgement::Delete) => match recent_failure(view, now) {
            Some(reason) => Decision::wait(reason),
            None => Decision::act(Action::Delete(live.uid.clone(), live.rv, Removal::Prune)),
        },
        Some(Judgement::Later(why)) => defend(view, Reason::Prune(why.clone()), now),
        Some(Judgement::Confirm(why)) => defend(view, Reason::Confirm(why.clone()), now),
        Some(Judgement::Keep(why)) => defend(view, Reason::Kept(why.clone()), now),
        Some(Judgement::Leave(why)) => Decision::wait(Reason::Kept(why.clone())),
        None => defend(view, Reason::Prune("whether it may be pruned is not decided yet".into()), now),
    }
}

/// What stands in the way of writing this content, whatever the purpose.
fn hindrance(view: &View<'_>, want: &Shared, now: Instant) -> Option<Reason> {
    let refused = view.entry.refused.as_ref().filter(|refusal| refusal.content == want.hash);
    let refused = refused.and_then(|refusal| match refusal.retry {
        Some(retry) if retry <= now => None,
        Some(retry) => Some(Reason::Refused(refusal.text.clone(), Some(retry - now))),
        None => Some(Reason::Refused(refusal.text.clone(), None)),
    });
    view.barred.clone().or(refused).or_else(|| recent_failure(view, now))
}

fn recent_failure(view: &View<'_>, now: Instant) -> Option<Reason> {
    let (until, why) = view.entry.failed.as_ref().filter(|(until, _)| *until > now)?;
    Some(Reason::Retrying(why.clone(), *until - now))
}

fn immutable(view: &View<'_>, want: &Shared) -> Option<Reason> {
    let refusal = view.entry.refused.as_ref()?;
    (refusal.content == want.hash && refusal.rule == Rule::Immutable)
        .then(|| Reason::Refused(refusal.text.clone(), None))
}

/// What is not provably ours is not deleted to be made anew either.
fn unproven_refusal(view: &View<'_>) -> Reason {
    let text = view.entry.refused.as_ref().map_or_else(Arc::default, |refusal| refusal.text.clone());
    let why = "it is not deleted and created again, as its annotation rhumb.dev/release has no valid seal: \
               delete it by kubectl, and it is created again";
    Reason::Refused(format!("{text}; {why}").into(), None)
}

/// The pause after so many repairs: short where a repair costs no pod, the whole window where each restarts some.
fn fight(view: &View<'_>, lost: Lost, now: Instant) -> Option<Reason> {
    let recent: Vec<Instant> =
        view.entry.repairs.iter().copied().filter(|at| now.duration_since(*at) < FIGHT_WINDOW).collect();
    let oldest = recent.len().checked_sub(FIGHT).and_then(|first| recent.get(first))?;
    let calm = FIGHT_WINDOW.saturating_sub(now.duration_since(*oldest));
    let left = match (lost, recent.last()) {
        (Lost::InPlace, Some(newest)) => calm.min(FIGHT_PAUSE.saturating_sub(now.duration_since(*newest))),
        _ => calm,
    };
    (!left.is_zero()).then(|| Reason::Fight(other_writers(view), left))
}

fn other_writers(view: &View<'_>) -> Arc<str> {
    let Sight::Seen(live) = view.sight else { return "somebody".into() };
    let names: Vec<&str> =
        live.others.iter().filter(|m| m.subresource.is_empty()).map(|manager| &*manager.name).collect();
    if names.is_empty() { "somebody".into() } else { names.join(", ").into() }
}
