//! Where things stand as the cluster alone tells it: for when no daemon answers.

mod last_status;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::members::{by_namespace, is_too_wide};
use super::target::{Desk, Target};
use super::view::View;
use super::{CommandError, facts};
use crate::cluster::{Lookup, Parent, Selector, applyset_id};
use crate::daemon::{self, PendingPrune};
use crate::engine::{Book, Live, Owner, PAUSED, Paused, Queued, Reason, Rejection, RollPhase, Way};
use crate::object::ObjectId;
use crate::report::{
    self, Named, ObjectStatus, Phase, QueueStatus, RollStatus, RolloutStatus, Share, SourceStatus,
};

/// One source, and what its parent says.
struct Told {
    name: String,
    applyset: Arc<str>,
    rejections: Vec<Rejection>,
    pending: Vec<PendingPrune>,
    parent: Parent,
    /// Why not all of its objects can be told.
    unread: Option<String>,
}

/// A view of all objects, those among them that are as they should be too.
pub(super) async fn survey(desk: &Desk) -> Result<View, CommandError> {
    let parents = desk.cluster.parents(&desk.system).await?;
    let mut told: Vec<Told> =
        parents.into_iter().map(|(name, parent)| Told::of(desk, name, parent)).collect();
    told.sort_by(|one, other| one.name.cmp(&other.name));
    let (book, unreadable) = facts::book(desk).await?;
    let members = members(desk, &mut told).await;
    let objects = told.iter().flat_map(|source| {
        let ours = members.iter().filter(|(_, live)| live.owner == Owner::Ours(source.applyset.clone()));
        ours.map(|(id, live)| object(source, &book, id, live))
    });
    let mut objects: Vec<ObjectStatus> = objects.collect();
    for source in &told {
        last_status::merge(&source.name, &source.parent, &mut objects);
    }
    let sources = told.iter().map(|source| source_status(source, &book, &objects)).collect();
    let rollout = RolloutStatus { unreadable, ..rollout(&told, &book, &members) };
    Ok(View { at: Timestamp::now(), process: None, sources, rollout, objects })
}

/// Where one object stands.
#[derive(Default)]
pub(super) struct Standing {
    /// Its phase, in the words in which all are told; none where it may be one of those that were refused and have no
    /// name in the record.
    pub(super) phase: Option<Phase>,
    /// Why it is no further, as the daemon told it last; none where something newer tells it.
    pub(super) told: Option<String>,
}

/// Returns where one object stands.
pub(super) fn standing(desk: &Desk, target: &Target, book: &Book) -> Standing {
    let Some(live) = desk.cluster.view(&target.kind, &target.object) else { return Standing::default() };
    let source = Told::of(desk, target.source.clone(), target.parent.clone());
    let shown = object(&source, book, &target.id, &live);
    let mut objects = vec![shown.clone()];
    last_status::merge(&source.name, &source.parent, &mut objects);
    let ObjectStatus { phase, reason, .. } = objects.swap_remove(0);
    let is_known = !phase.is_well() || unnamed_refusals(&source.parent) == 0;
    Standing { phase: is_known.then_some(phase), told: reason.filter(|_| phase != shown.phase) }
}

/// Returns how many objects of a source were refused that the daemon told without a name.
pub(super) fn unnamed_refusals(parent: &Parent) -> usize {
    last_status::unnamed_refusals(&parent.data)
}

impl Told {
    fn of(desk: &Desk, name: String, parent: Parent) -> Self {
        Self {
            applyset: applyset_id(&desk.system, &name).into(),
            rejections: daemon::rejections(&parent),
            pending: daemon::pending_prunes(&parent),
            unread: None,
            name,
            parent,
        }
    }
}

/// All objects of all sources. A kind that cannot be listed is told by those that have some of it.
async fn members(desk: &Desk, told: &mut [Told]) -> Vec<(ObjectId, Live)> {
    let kinds: BTreeSet<_> = told.iter().flat_map(|source| source.parent.kinds.iter().cloned()).collect();
    let sets: BTreeSet<Arc<str>> = told.iter().map(|source| source.applyset.clone()).collect();
    let selector = Selector::PartOf(sets);
    let mut members = Vec::new();
    for kind in kinds {
        let why = match desk.kinds.preferred(&kind) {
            Lookup::Served(served) => match desk.cluster.list(&served, &selector).await {
                Ok(found) => {
                    members.extend(found);
                    continue;
                }
                Err(refused) if is_too_wide(&refused, &served) => {
                    for source in told.iter_mut().filter(|source| source.parent.kinds.contains(&kind)) {
                        let of = (&source.applyset, &source.parent);
                        match by_namespace(&desk.cluster, &served, of, refused.clone()).await {
                            Ok(found) => members.extend(found),
                            Err(error) => source.unread = Some(format!("{kind} cannot be listed: {error}")),
                        }
                    }
                    continue;
                }
                Err(error) => error.to_string(),
            },
            // Nothing of it is there.
            Lookup::Unserved { .. } => continue,
            Lookup::Unknown => "the server of its API group does not answer".to_owned(),
        };
        for source in told.iter_mut().filter(|source| source.parent.kinds.contains(&kind)) {
            source.unread = Some(format!("{kind} cannot be listed: {why}"));
        }
    }
    members
}

fn source_status(source: &Told, book: &Book, objects: &[ObjectStatus]) -> SourceStatus {
    let ours = || objects.iter().filter(|object| object.source == source.name);
    let mut counts: BTreeMap<Phase, usize> = BTreeMap::new();
    for object in ours() {
        *counts.entry(object.phase).or_default() += 1;
    }
    refuse_unnamed(&mut counts, unnamed_refusals(&source.parent));
    let brought: BTreeSet<&str> = ours().filter_map(|object| object.revision.as_deref()).collect();
    let only = || brought.first().filter(|_| brought.len() == 1).map(|text| (*text).to_owned());
    let paused = source.parent.annotations.get(PAUSED).and_then(|text| Paused::parse(text));
    let incomplete = source.unread.clone().or_else(|| last_status::incomplete(&source.parent.data));
    SourceStatus {
        name: source.name.clone(),
        place: daemon::place(&source.parent).unwrap_or_default().to_owned(),
        revision: told_revision(source, book, &brought).or_else(only),
        // Nobody knows.
        complete: false,
        healthy: incomplete.is_none() && counts.keys().all(|phase| phase.is_well()),
        incomplete,
        paused: paused.map(|paused| paused.reason.to_string()),
        objects: counts,
        prune_waiting: source.pending.len() + daemon::untold_prunes(&source.parent),
        unlisted: daemon::unlisted(&source.parent),
        ..SourceStatus::default()
    }
}

/// Counts objects as refused that nothing in the cluster shows to be so, in place of well ones.
fn refuse_unnamed(counts: &mut BTreeMap<Phase, usize>, unnamed: usize) {
    let well = counts.get_mut(&Phase::Settled);
    let refused = well.map_or(0, |well| {
        let refused = unnamed.min(*well);
        *well -= refused;
        refused
    });
    counts.retain(|_, count| *count > 0);
    if refused > 0 {
        *counts.entry(Phase::Refused).or_default() += refused;
    }
}

/// The revision that the daemon last told of, whole where any object or commit that is known has it.
fn told_revision(source: &Told, book: &Book, brought: &BTreeSet<&str>) -> Option<String> {
    let line = source.parent.data.get(report::STATUS)?;
    let short = line.split([' ', ':']).next().filter(|word| word.chars().all(|c| c.is_ascii_hexdigit()))?;
    let commits = book.commits.iter().map(|commit| commit.revision.to_string());
    let mut known = brought.iter().map(|text| (*text).to_owned()).chain(commits);
    Some(known.find(|text| text.starts_with(short)).unwrap_or_else(|| short.to_owned()))
}

fn object(source: &Told, book: &Book, id: &ObjectId, live: &Live) -> ObjectStatus {
    let (phase, reason) = stand(source, book, id, live);
    ObjectStatus {
        object: Named::of(id),
        source: source.name.clone(),
        phase,
        reason,
        revision: live.shown_release().map(|release| release.revision.to_string()),
        origin: None,
        wave: 0,
    }
}

fn is_rolling(book: &Book, id: &ObjectId, live: &Live) -> bool {
    let is_in = |phase| live.rolling.is_some_and(|rolling| rolling.phase == phase);
    // What a process has left behind is not over before its workload is at rest, and is over then.
    let claimed = book.claims.get(id).is_some_and(|claim| !(claim.left && is_in(RollPhase::Settled)));
    claimed || is_in(RollPhase::Replacing)
}

fn queued<'a>(source: &Told, book: &'a Book, id: &ObjectId) -> Option<&'a Queued> {
    book.queue.iter().find(|queued| queued.id == *id && queued.applyset == source.applyset)
}

/// Where an object stands, and why not further.
fn stand(source: &Told, book: &Book, id: &ObjectId, live: &Live) -> (Phase, Option<String>) {
    let rolls = is_rolling(book, id, live);
    let hold = live.asked.as_ref().and_then(|asked| asked.hold.as_ref());
    let holds = hold.filter(|hold| hold.until.is_some_and(|until| until > Timestamp::now()));
    let paused = live.asked.as_ref().and_then(|asked| asked.paused.as_ref());
    let rejection = source.rejections.iter().find(|one| one.unit.members.contains_key(id));
    let pending = source.pending.iter().find(|pending| pending.id == *id);
    let unhealthy = || match &*live.health.message {
        "" if live.health.is_current() => None,
        "" => Some(live.health.status.to_string()),
        message => Some(message.to_owned()),
    };
    match rejection {
        _ if holds.is_some() => {
            let reason = holds.map(|hold| {
                let until = hold.until.map(|until| until.to_string()).unwrap_or_default();
                format!("on hold until {until}{}", because(&hold.reason))
            });
            (Phase::Held, reason)
        }
        Some(rejection) if rejection.way == Way::Held => {
            (Phase::Quarantined, Some(rejection.cause.to_string()))
        }
        Some(rejection) if !rolls && !shows_rejected(rejection, id, live) => {
            (Phase::RolledBack, Some(rejection.cause.to_string()))
        }
        _ if rolls => (Phase::RollingOut, unhealthy()),
        _ if pending.is_some() => {
            (Phase::PruneWaiting, pending.map(|pending| format!("its deletion waits: {}", pending.reason)))
        }
        Some(rejection) => (Phase::Waiting, Some(rejection.cause.to_string())),
        None => match (queued(source, book, id), paused) {
            (_, Some(paused)) => (Phase::Paused, Some(format!("it is paused{}", because(&paused.reason)))),
            (Some(queued), None) => (Phase::Waiting, Some(queued.to_string())),
            (None, None) => match live.opt_out {
                Some(word) => (Phase::OptedOut, Some(Reason::OptedOut(word).to_string())),
                None => (Phase::of_health(live), unhealthy()),
            },
        },
    }
}

/// What stands behind a state for which somebody may have given a reason.
fn because(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

/// Whether the content that failed is still there.
fn shows_rejected(rejection: &Rejection, id: &ObjectId, live: &Live) -> bool {
    let Some(member) = rejection.unit.members.get(id) else { return false };
    let data = live.started.map(|started| started.data);
    let same = member.restarted.is_none_or(|restarted| data == Some(restarted.data));
    same && facts::shows(live.shown_release(), rejection, member)
}

fn rollout(told: &[Told], book: &Book, members: &[(ObjectId, Live)]) -> RolloutStatus {
    let name = |applyset: &str| {
        told.iter().find(|source| *source.applyset == *applyset).map(|source| source.name.clone())
    };
    let rolling = members.iter().filter(|(id, live)| is_rolling(book, id, live)).map(|(id, live)| {
        let numbers = live.rolling.unwrap_or_default();
        RollStatus {
            object: Named::of(id),
            source: match &live.owner {
                Owner::Ours(applyset) => name(applyset),
                _ => None,
            },
            holder: book.claims.get(id).map(|claim| book.holder_words(claim)),
            replicas: numbers.replicas,
            updated: numbers.updated,
            available: numbers.available,
            unavailable: book.claims.get(id).map_or(0, |claim| claim.pods),
            step: None,
        }
    });
    let queue = book.queue.iter().map(|queued| QueueStatus {
        object: Named::of(&queued.id),
        place: queued.place.map(|(place, _)| place),
        reason: queued.reason.to_string(),
    });
    let share = |used| Share { used, of: 0 };
    RolloutStatus {
        known: true,
        unreadable: None,
        workloads: share((book.claims.len() + book.unread.len()) as u32),
        unavailable: share(book.pods_away()),
        starts: share(0),
        window: 0,
        on_failure: String::new(),
        rolling: rolling.collect(),
        queue: queue.collect(),
    }
}
