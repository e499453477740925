//! The status as the cluster alone shows it, for when no daemon answers.

mod last_status;
mod unlabelled_objects;

use crate::object::annotations;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use self::last_status::LastStatus;
use self::unlabelled_objects::UnlabelledObjects;
pub(super) use self::unlabelled_objects::source_by_seal;
use super::facts::ShownReason;
use super::object_argument::ObjectArgument;
use super::source_objects::{by_namespace, is_too_wide};
use super::status_view::StatusView;
use super::target::{ClusterSession, ManagedObject};
use super::{CommandError, facts};
use crate::cluster::{InventoryObject, KindLookup, ListSelector, inventory_id_of};
use crate::daemon::{self, UnreadableRecords};
use crate::engine::{
    HashCiphers, LiveObject, ObjectOwner, PauseIntent, PauseSubject, PendingPrune, QueuedObject, Reason,
    ReasonCode, Rejection, RejectionAction, RolloutLedger, RolloutOverlayState, WatchFault, WorkloadPhase,
};
use crate::object::ObjectId;
use crate::report::{
    self, Blocker, BoundUsage, ObjectRef, ObjectStatus, Phase, PhaseFacts, QueuedWorkloadStatus,
    RolloutStatus, SourceStatus, StatusAuthor, WorkloadRolloutStatus,
};

/// A source, and what its inventory says.
struct SourceRecord {
    name: String,
    inventory_id: Arc<str>,
    rejections: Vec<Rejection>,
    pending: Vec<PendingPrune>,
    inventory: InventoryObject,
    last: LastStatus,
    /// The reason for which not all of its objects are known.
    unread: Option<String>,
}

/// Returns a view of all objects, those among them that are as they should be too.
pub(super) async fn read_cluster_status(session: &ClusterSession) -> Result<StatusView, CommandError> {
    let inventories = session.cluster.list_inventories(&session.inventory_namespace).await?;
    let mut records: Vec<SourceRecord> =
        inventories.into_iter().map(|(name, inventory)| SourceRecord::of(session, name, inventory)).collect();
    records.sort_by(|one, other| one.name.cmp(&other.name));
    let (ledger, unreadable) = facts::read_ledger(session).await?;
    let members = members(session, &mut records).await;
    let is_at_rest = |live: &LiveObject| {
        live.replica_status.is_some_and(|numbers| numbers.phase == WorkloadPhase::Settled)
    };
    let at_rest = members.iter().filter(|(_, live)| is_at_rest(live)).map(|(id, _)| id.clone()).collect();
    let ledger = facts::without_ended_claims(ledger, &at_rest);
    let UnlabelledObjects { proven, mut notes } = unlabelled_objects::find(session, &records).await;
    if records.is_empty() {
        let namespace = &session.inventory_namespace;
        notes.push(format!(
            "nothing is recorded in namespace {namespace}: --system-namespace names the one of another rhumb"
        ));
    }
    notes.extend(records.iter().filter_map(author_note));
    notes.extend(members.iter().filter_map(|(id, live)| step_note(id, live)));
    notes.extend(records.iter().flat_map(|source| {
        UnreadableRecords::find(&source.inventory, &session.inventory_namespace, &source.name).into_texts()
    }));
    let objects = records.iter().enumerate().flat_map(|(number, source)| {
        let ours =
            members.iter().filter(|(_, live)| live.owner == ObjectOwner::Ours(source.inventory_id.clone()));
        let ours = ours.map(|(id, live)| (id, live));
        let bare = proven.iter().filter(|(of, ..)| *of == number).map(|(_, id, live)| (id, live));
        let ours: Vec<ObjectStatus> =
            ours.chain(bare).map(|(id, live)| object(source, &ledger, id, live)).collect();
        let there: BTreeSet<ObjectId> = ours.iter().map(|status| status.object.id()).collect();
        let others = source.last.ids().filter(|id| !there.contains(id));
        let others: Vec<ObjectStatus> =
            others.filter_map(|id| source.last.absent_object(&source.name, id)).collect();
        ours.into_iter().chain(others)
    });
    let objects: Vec<ObjectStatus> = objects.collect();
    let sources = records.iter().map(|source| source_status(source, &ledger, &objects)).collect();
    let rollout = RolloutStatus { unreadable, ..rollout_status(&records, &ledger, &members) };
    Ok(StatusView { at: Timestamp::now(), process: None, sources, rollout, objects, notes })
}

/// Returns when and by whom the record of a source was written that is not settled: its reasons may
/// hold no more.
fn author_note(source: &SourceRecord) -> Option<String> {
    if source.last.is_settled() {
        return None;
    }
    let author = StatusAuthor::from_data(&source.inventory.data)?;
    Some(author.note(&source.name, author.state(&daemon::process_mark(), facts::is_process_there)))
}

/// Returns the note about a workload that stays at its step as long as nobody serves its source.
fn step_note(id: &ObjectId, live: &LiveObject) -> Option<String> {
    let RolloutOverlayState::Overlaid(overlay) = live.overlay else { return None };
    let step = overlay.step()?;
    Some(format!(
        "{} is at step {step} of its rollout, and goes on only while a daemon serves its source",
        ObjectArgument::of(id)
    ))
}

/// The state of one object.
#[derive(Default)]
pub(super) struct ManagedObjectState {
    /// The phase; none where the object may be one of those that the record counts without names.
    pub(super) phase: Option<Phase>,
    /// The reason for the phase, where no other record has it.
    pub(super) reason: Option<ShownReason>,
    /// The number of objects of its source that are not settled and have no name in the record.
    pub(super) unnamed: usize,
}

/// Returns the status of one object.
pub(super) fn read_object_standing(
    session: &ClusterSession,
    target: &ManagedObject,
    ledger: &RolloutLedger,
) -> ManagedObjectState {
    let source = SourceRecord::of(session, target.source.clone(), target.inventory.clone());
    let Some(live) = session.cluster.decode_view(&target.kind, &target.object) else {
        return ManagedObjectState::default();
    };
    let unnamed = source.last.unnamed_counts(&queued_objects(&source, ledger)).into_values().sum();
    let found = find_blocker(&source, ledger, &target.id, &live);
    let reason = found.as_ref().filter(|found| found.is_only_here).map(|found| found.shown.clone());
    let phase = phase_facts(&source, ledger, &target.id, &live, found.as_ref()).phase();
    let is_known = phase != Phase::Settled || unnamed == 0;
    ManagedObjectState { phase: is_known.then_some(phase), reason, unnamed }
}

/// Returns the status of an object, as it was last reported, that the cluster does not show as one
/// of a source.
pub(super) async fn recorded_status(
    session: &ClusterSession,
    id: &ObjectId,
) -> Result<Option<ObjectStatus>, CommandError> {
    let inventories = session.candidate_sources().await?;
    let mut sources =
        inventories.into_iter().map(|(name, inventory)| SourceRecord::of(session, name, inventory));
    Ok(sources.find_map(|source| source.last.absent_object(&source.name, id)))
}

/// Returns the place that an object comes from, as it was last reported.
pub(super) fn recorded_origin(inventory: &InventoryObject, id: &ObjectId) -> Option<String> {
    LastStatus::read(&inventory.data).origin(id)
}

/// Returns whether what others put on the objects of a source has an effect, as it was last
/// reported.
pub(super) fn is_heeding_opt_outs(inventory: &InventoryObject) -> bool {
    LastStatus::read(&inventory.data).heeds_opt_outs
}

impl SourceRecord {
    fn of(session: &ClusterSession, name: String, inventory: InventoryObject) -> Self {
        Self {
            inventory_id: inventory_id_of(&session.inventory_namespace, &name).into(),
            rejections: inventory.rejections(&HashCiphers::default()),
            pending: inventory.pending_prunes(),
            last: LastStatus::read(&inventory.data),
            unread: None,
            name,
            inventory,
        }
    }
}

/// Returns all objects of all sources. A kind that cannot be listed is reported for the sources
/// that have some of it.
async fn members(session: &ClusterSession, records: &mut [SourceRecord]) -> Vec<(ObjectId, LiveObject)> {
    let kinds: BTreeSet<_> =
        records.iter().flat_map(|source| source.inventory.kinds.iter().cloned()).collect();
    let sets: BTreeSet<Arc<str>> = records.iter().map(|source| source.inventory_id.clone()).collect();
    let selector = ListSelector::ApplySets(sets);
    let mut members = Vec::new();
    for kind in kinds {
        let why = match session.kinds.preferred_kind(&kind) {
            KindLookup::Served(served) => match session.cluster.list(&served, &selector).await {
                Ok(found) => {
                    members.extend(found);
                    continue;
                }
                Err(refused) if is_too_wide(&refused, &served) => {
                    for source in records.iter_mut().filter(|source| source.inventory.kinds.contains(&kind)) {
                        let (set, inventory) = (&source.inventory_id, &source.inventory);
                        match by_namespace(&session.cluster, &served, set, inventory, refused.clone()).await {
                            Ok(found) => members.extend(found),
                            Err(error) => source.unread = Some(format!("{kind} cannot be listed: {error}")),
                        }
                    }
                    continue;
                }
                Err(error) => error.to_string(),
            },
            // Nothing of it is there.
            KindLookup::Unserved { .. } => continue,
            KindLookup::Unknown => WatchFault::GroupUnavailable.to_string(),
        };
        for source in records.iter_mut().filter(|source| source.inventory.kinds.contains(&kind)) {
            source.unread = Some(format!("{kind} cannot be listed: {why}"));
        }
    }
    members
}

fn source_status(source: &SourceRecord, ledger: &RolloutLedger, objects: &[ObjectStatus]) -> SourceStatus {
    let ours = || objects.iter().filter(|object| object.source == source.name);
    let mut counts: BTreeMap<Phase, usize> = BTreeMap::new();
    for object in ours() {
        *counts.entry(object.phase).or_default() += 1;
    }
    for (phase, count) in source.last.unnamed_counts(&queued_objects(source, ledger)) {
        count_unnamed(&mut counts, phase, count);
    }
    let brought: BTreeSet<&str> = ours().filter_map(|object| object.revision.as_deref()).collect();
    let only = || brought.first().filter(|_| brought.len() == 1).map(|text| (*text).to_owned());
    let paused =
        source.inventory.annotations.get(annotations::PAUSED).and_then(|text| PauseIntent::parse(text));
    let incomplete = source.unread.clone().or_else(|| source.last.incomplete_reason());
    SourceStatus {
        name: source.name.clone(),
        location: source.inventory.location().unwrap_or_default().to_owned(),
        revision: recorded_revision(source, ledger, &brought).or_else(only),
        // Nobody knows.
        complete: false,
        healthy: incomplete.is_none() && counts.keys().all(|phase| phase.is_well()),
        incomplete,
        paused: paused.map(|paused| paused.reason.to_string()),
        objects: counts,
        prune_waiting: source.pending.len() + source.inventory.unlisted_prune_count(),
        unlisted: source.inventory.unlisted_reason().map(str::to_owned),
        ..SourceStatus::default()
    }
}

/// Counts objects in a phase that nothing in the cluster shows them to be in, in place of well
/// ones.
fn count_unnamed(counts: &mut BTreeMap<Phase, usize>, phase: Phase, unnamed: usize) {
    let well = counts.get_mut(&Phase::Settled);
    let moved = well.map_or(0, |well| {
        let moved = unnamed.min(*well);
        *well -= moved;
        moved
    });
    counts.retain(|_, count| *count > 0);
    if moved > 0 {
        *counts.entry(phase).or_default() += moved;
    }
}

/// Returns the revision that was last reported, in full where any object or commit that is known
/// has it.
fn recorded_revision(
    source: &SourceRecord,
    ledger: &RolloutLedger,
    brought: &BTreeSet<&str>,
) -> Option<String> {
    let line = source.inventory.data.get(report::STATUS_KEY)?;
    let short = line.split([' ', ':']).next().filter(|word| word.chars().all(|c| c.is_ascii_hexdigit()))?;
    let commits = ledger.commits.iter().map(|commit| commit.revision.to_string());
    let mut known = brought.iter().map(|text| (*text).to_owned()).chain(commits);
    Some(known.find(|text| text.starts_with(short)).unwrap_or_else(|| short.to_owned()))
}

fn object(source: &SourceRecord, ledger: &RolloutLedger, id: &ObjectId, live: &LiveObject) -> ObjectStatus {
    let found = find_blocker(source, ledger, id, live);
    let facts = phase_facts(source, ledger, id, live, found.as_ref());
    let phase = facts.phase();
    let paused = pause_intent(source, live).filter(|_| phase == Phase::Paused);
    let paused = paused.map(|paused| Reason::Paused(PauseSubject::Object, paused.reason.clone()));
    let shown = found.map(|found| found.shown).or_else(|| paused.as_ref().map(ShownReason::of));
    let (reason, coded) = shown.map(|shown| (shown.reason, shown.coded)).unzip();
    ObjectStatus {
        object: ObjectRef::of(id),
        source: source.name.clone(),
        phase,
        reason: reason.or_else(|| unhealthy_reason(live)),
        coded: coded.unwrap_or_default(),
        revision: live.shown_release().map(|release| release.revision.to_string()),
        origin: source.last.origin(id),
        wave: 0,
    }
}

fn is_rolling(ledger: &RolloutLedger, id: &ObjectId, live: &LiveObject) -> bool {
    let is_in = |phase| live.replica_status.is_some_and(|rolling| rolling.phase == phase);
    // A claim that a process has left behind lasts until its workload is at rest.
    let claimed =
        ledger.claims.get(id).is_some_and(|claim| !(claim.holder_exited && is_in(WorkloadPhase::Settled)));
    claimed || is_in(WorkloadPhase::Replacing)
}

/// Returns the objects of a source in the rollout queue.
fn queued_objects<'a>(source: &SourceRecord, ledger: &'a RolloutLedger) -> Vec<&'a QueuedObject> {
    ledger.queue.iter().filter(|queued| queued.inventory_id == source.inventory_id).collect()
}

/// The blocker of one object, as far as the cluster shows it.
struct FoundBlocker {
    blocker: Blocker,
    shown: ShownReason,
    /// Indicates whether no other record of the cluster has the reason.
    is_only_here: bool,
}

impl FoundBlocker {
    fn recorded_elsewhere(blocker: Blocker, shown: ShownReason) -> Self {
        Self { blocker, shown, is_only_here: false }
    }

    fn recorded_only_here(blocker: Blocker, shown: ShownReason) -> Self {
        Self { blocker, shown, is_only_here: true }
    }

    fn rejected(blocker: Blocker, rejection: &Rejection) -> Self {
        let shown = ShownReason::with_code(rejection.cause.to_string(), ReasonCode::ContentRejected);
        Self::recorded_elsewhere(blocker, shown)
    }
}

fn phase_facts(
    source: &SourceRecord,
    ledger: &RolloutLedger,
    id: &ObjectId,
    live: &LiveObject,
    found: Option<&FoundBlocker>,
) -> PhaseFacts {
    PhaseFacts {
        blocker: found.map(|found| found.blocker),
        is_in_progress: is_rolling(ledger, id, live),
        is_paused: pause_intent(source, live).is_some(),
        status: Some(live.health.status),
    }
}

/// Returns what keeps an object from being settled. The order of the questions is that in which the
/// engine decides. A blocker that only its record has comes where the engine would have found it.
fn find_blocker(
    source: &SourceRecord,
    ledger: &RolloutLedger,
    id: &ObjectId,
    live: &LiveObject,
) -> Option<FoundBlocker> {
    let (recorded, why) = source.last.of(id).unzip();
    let recorded_as = |phase: Phase, blocker: Blocker| {
        let why = why.clone().filter(|_| recorded == Some(phase))?;
        Some(FoundBlocker::recorded_only_here(blocker, ShownReason::without_code(why)))
    };
    let pending = source.pending.iter().find(|pending| pending.id == *id);
    if let Some(pending) = pending {
        let shown = ShownReason::of_pending_deletion(&pending.reason);
        return Some(FoundBlocker::recorded_elsewhere(Blocker::Prune, shown));
    }
    let is_unlabelled = !matches!(live.owner, ObjectOwner::Ours(_) | ObjectOwner::Labelled(_));
    let unlabelled = || {
        let shown = is_unlabelled.then(|| ShownReason::without_code(unlabelled_objects::reason()))?;
        Some(FoundBlocker::recorded_only_here(Blocker::Wait, shown))
    };
    let set = recorded_as(Phase::Refused, Blocker::Refusal)
        .or_else(|| recorded_as(Phase::LeftAlone, Blocker::LeftAlone))
        .or_else(|| {
            let word = live.opt_out.filter(|_| source.last.heeds_opt_outs)?;
            let shown = ShownReason::of(&Reason::OptedOut(word));
            Some(FoundBlocker::recorded_only_here(Blocker::OptOut, shown))
        });
    let rejection = source.rejections.iter().find(|one| one.unit.members.contains_key(id));
    let rejected = || {
        let rejection = rejection?;
        let blocker = match rejection.action {
            RejectionAction::Quarantine => Blocker::Quarantine,
            RejectionAction::RollBack if is_rolled_back(rejection, id, live) => Blocker::Rollback,
            RejectionAction::RollBack => return None,
        };
        Some(FoundBlocker::rejected(blocker, rejection))
    };
    let is_paused = || {
        source.inventory.annotations.contains_key(annotations::PAUSED) || pause_intent(source, live).is_some()
    };
    let queued = || queued_objects(source, ledger).into_iter().find(|queued| queued.id == *id);
    set.or_else(unlabelled)
        .or_else(rejected)
        .or_else(|| hold_blocker(source, live))
        .or_else(|| recorded_as(Phase::Paused, Blocker::Pause).filter(|_| is_paused()))
        .or_else(|| Some(FoundBlocker::rejected(Blocker::Wait, rejection?)))
        .or_else(|| Some(FoundBlocker::recorded_elsewhere(Blocker::Wait, ShownReason::of_queued(queued()?))))
        .or_else(|| recorded_as(Phase::Waiting, Blocker::Wait))
}

fn hold_blocker(source: &SourceRecord, live: &LiveObject) -> Option<FoundBlocker> {
    let hold = live.intents.as_ref()?.hold.as_ref().filter(|_| source.last.heeds_opt_outs)?;
    let shown = ShownReason::of(&facts::hold_reason(hold)?);
    Some(FoundBlocker::recorded_elsewhere(Blocker::Hold, shown))
}

/// Returns the pause on the object itself.
fn pause_intent<'a>(source: &SourceRecord, live: &'a LiveObject) -> Option<&'a PauseIntent> {
    live.intents.as_ref().filter(|_| source.last.heeds_opt_outs)?.paused.as_ref()
}

fn unhealthy_reason(live: &LiveObject) -> Option<String> {
    match &*live.health.message {
        "" if live.health.is_current() => None,
        "" => Some(live.health.status.to_string()),
        message => Some(message.to_owned()),
    }
}

/// Returns whether an object shows its rollback target, and no part of what was rejected. The
/// content of both may be the same, and its pods be started with rejected data.
fn is_rolled_back(rejection: &Rejection, id: &ObjectId, live: &LiveObject) -> bool {
    let Some(member) = rejection.unit.members.get(id) else { return false };
    let same = member.restarted.is_none_or(|restarted| restarted.is_shown_by(live.shown_config_stamp()));
    let shown = live.shown_release();
    let is_rejected_shown = same && facts::is_showing(shown, rejection, member);
    !is_rejected_shown && facts::is_showing_rollback_target(shown, member)
}

fn rollout_status(
    records: &[SourceRecord],
    ledger: &RolloutLedger,
    members: &[(ObjectId, LiveObject)],
) -> RolloutStatus {
    let name = |inventory_id: &str| {
        records.iter().find(|source| *source.inventory_id == *inventory_id).map(|source| source.name.clone())
    };
    // A failed one that is held rolls out no more, though its pods are of two templates.
    let is_held = |id: &ObjectId, live: &LiveObject| {
        let source =
            records.iter().find(|source| live.owner == ObjectOwner::Ours(source.inventory_id.clone()));
        let found = source.and_then(|source| find_blocker(source, ledger, id, live));
        !ledger.claims.contains_key(id) && found.is_some_and(|found| found.blocker == Blocker::Quarantine)
    };
    let rolling = members.iter().filter(|(id, live)| is_rolling(ledger, id, live) && !is_held(id, live));
    let rolling = rolling.map(|(id, live)| {
        let numbers = live.replica_status.unwrap_or_default();
        WorkloadRolloutStatus {
            object: ObjectRef::of(id),
            source: match &live.owner {
                ObjectOwner::Ours(inventory_id) => name(inventory_id),
                _ => None,
            },
            holder: ledger.claims.get(id).map(|claim| facts::holder_words(ledger, claim)),
            replicas: numbers.replicas,
            updated: numbers.updated,
            available: numbers.available,
            unavailable: ledger.claims.get(id).map_or(0, |claim| claim.reserved),
            step: None,
        }
    });
    let queue = ledger.queue.iter().map(|queued| QueuedWorkloadStatus {
        object: ObjectRef::of(&queued.id),
        position: queued.position.map(|(position, _)| position),
        reason: queued.reason.to_string(),
        coded: ShownReason::of_queued(queued).coded,
    });
    let share = |used| BoundUsage { used, of: 0 };
    RolloutStatus {
        known: true,
        unreadable: None,
        workloads: share((ledger.claims.len() + ledger.unreadable_claims.len()) as u32),
        unavailable: share(ledger.total_unavailable_pods()),
        starts: share(0),
        window: 0,
        on_failure: String::new(),
        rolling: rolling.collect(),
        queue: queue.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::world::{World, WorldObject, workload};
    use crate::engine::{ContentRef, ReleaseUnit, RollbackTarget, UnitMember};
    use crate::object::{ContentHash, Revision};

    #[test]
    fn an_object_is_rolled_back_only_where_it_shows_its_rollback_target() {
        let web = workload("web");
        let hash = |name: &str| ContentHash::hash_bytes(name.as_bytes());
        let good = ContentRef { hash: hash("good"), revision: Revision::new("r1") };
        let rollback_target = RollbackTarget::Content(good);
        let member = UnitMember { content: Some(hash("bad")), rollback_target, restarted: None };
        let members = [(web.clone(), member)].into();
        let unit = ReleaseUnit { inventory_id: "ours".into(), revision: Revision::new("r2"), members };
        let rejection = Rejection { unit, action: RejectionAction::RollBack, cause: "it failed".into() };
        for (shown, revision, expected) in
            [("good", "r1", true), ("bad", "r2", false), ("other", "r0", false)]
        {
            let live = World::live(&web, &WorldObject::settled(hash(shown), revision, 1));
            assert_eq!(is_rolled_back(&rejection, &web, &live), expected, "{shown}");
        }
    }
}
