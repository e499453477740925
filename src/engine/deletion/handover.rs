//! Objects that move between sources, of one process or of several. Nobody deletes an object that
//! another source is about to bring, and that source takes it over from the one that no longer
//! wants it.
//!
//! The statements of others are read right before they count. They are never kept for later: an old
//! statement deletes nothing.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::decide::decision::{Action, Decision, DeletionReason, InventoryHolder};
use crate::engine::deletion::observation_requests::{ObservationRequests, TakeoverWait};
use crate::engine::deletion::peer_sources::{
    DeletionConsent, PeerSource, SourceCompleteness, SourceProgress, SourceService, SourceStatement,
    object_hash,
};
use crate::engine::deletion::unowned_objects::UnownedObjects;
use crate::engine::facts::entry::SourceId;
use crate::engine::facts::records::kept_objects::KeptObjects;
use crate::engine::facts::source_declaration::RepositoryIdentity;
use crate::engine::state::Engine;
use crate::engine::{
    ObjectOwner, PeerInterest, PruneCause, Reason, RepositoryExtent, SourceDeclaration, SourceLifecycle, Uid,
    WithheldCause,
};
use crate::object::{ContentHash, ObjectId};

/// A deletion relies on what was read within this time.
const DELETION_PEERS_MAX_AGE: Duration = Duration::from_secs(3);

/// A takeover does so within this: it deletes nothing, and is bound to the version that was seen.
const TAKEOVER_PEERS_MAX_AGE: Duration = Duration::from_secs(30);

/// While something waits for others they are asked again after this time, doubled while nothing
/// changes.
const MIN_PEERS_INTERVAL: Duration = Duration::from_secs(1);
const MAX_PEERS_INTERVAL: Duration = Duration::from_secs(15);

/// The time after which a deletion that waits for another source can be confirmed by a person.
const PEER_CONFIRMATION_DELAY: Duration = Duration::from_mins(1);

/// The time for which others may still act on an old statement that an object is released. It is
/// longer than a read statement counts for a takeover, and than that takes.
pub(in crate::engine) const OLD_STATEMENT_VALIDITY: Duration = Duration::from_mins(2);

/// The times at which the inventories of other processes are read for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum PeerReadSchedule {
    /// Once, and again when something else asks for it.
    Once,
    /// Again and again, as something waits for them.
    Periodic,
}

/// The reason for a deletion that is withheld for another source's sake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WithheldDeletion {
    /// The cause.
    pub cause: WithheldCause,
    /// It has been so for long, and may never pass by itself.
    pub is_long: bool,
}

/// The statements of other sources, and our own.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct Handover {
    /// Indicates whether other sources are asked at all: a plan for one source knows of none.
    pub(super) consults_peers: bool,
    /// Names of sources by the ids of their inventories, for a plan that asks no others.
    pub(super) names: BTreeMap<Arc<str>, Arc<str>>,
    pub(super) peers: Option<BTreeMap<Arc<str>, PeerSource>>,
    /// The time at which they were last read.
    read: Option<Instant>,
    /// The rest before they are read again.
    peers_interval: Duration,
    /// The objects that need a fresh statement of others.
    asking: BTreeSet<ObjectId>,
    /// The incarnations of objects that came with the label of a source which did not want them,
    /// each with the time.
    arrived: BTreeMap<Uid, Instant>,
    /// The waits of unwanted objects for the others, by incarnation.
    pub(super) since: HashMap<Uid, TakeoverWait>,
    /// Objects that are wanted, and not in the inventory of whoever wants them.
    pub(super) unowned: UnownedObjects,
    /// Objects that this process has reported to be unwanted, by source.
    pub(super) given_up: BTreeMap<SourceId, BTreeSet<ObjectId>>,
    /// The statement of a source before this process served it, as far as its objects may be wanted
    /// here: released, or requested.
    pub(super) prior_statement: BTreeMap<SourceId, BTreeSet<ContentHash>>,
    /// The objects that a source released before this process served it, and the time since which
    /// it did.
    pub(super) prior_release: BTreeMap<SourceId, (BTreeSet<ContentHash>, Instant)>,
    /// The released objects that are wanted again, each with the time. Somebody may take one over
    /// by the old statement, and drop it before its owner has seen that.
    pub(super) requested_back: BTreeMap<ObjectId, Instant>,
    /// The objects that another source keeps, as only a lookup shows, each with the time since which
    /// that view counts.
    pub(super) kept_views: BTreeMap<ObjectId, Instant>,
    /// The requests to observe sources once more.
    pub(super) observations: ObservationRequests,
    /// The sources of this process that may be behind another one of their repository, until they
    /// were taken.
    pub(in crate::engine) sources_behind: Vec<SourceId>,
}

impl Handover {
    fn age(&self, now: Instant) -> Option<Duration> {
        self.read.map(|read| now.saturating_duration_since(read))
    }

    /// Records that an object has come with the label of a source which does not want it. The
    /// one that had it before may put its own label back: it gets the time for that.
    pub(in crate::engine) fn note_arrival(&mut self, uid: Uid, now: Instant) {
        self.arrived.insert(uid, now);
    }

    /// Returns whether an incarnation has come with the label of a source which does not want it.
    pub(in crate::engine) fn has_arrived(&self, uid: &Uid) -> bool {
        self.arrived.contains_key(uid)
    }

    /// Forgets how long an object has been unwanted, as it is out of sight.
    pub(in crate::engine) fn forget_wait(&mut self, uid: &Uid) {
        self.since.remove(uid);
        self.arrived.remove(uid);
    }

    pub(in crate::engine) fn has_peers(&self) -> bool {
        self.peers.as_ref().is_some_and(|peers| !peers.is_empty())
    }
}

impl Engine {
    /// Requires the answers of the other sources of the cluster before anything is deleted or taken
    /// over.
    pub(in crate::engine) fn require_peer_consent(&mut self) {
        self.handover.consults_peers = true;
    }

    /// Ends the questions to other sources, as their answers cannot be read. A plan reports that,
    /// and writes nothing.
    pub(in crate::engine) fn ignore_peers(&mut self) {
        self.handover = Handover { names: std::mem::take(&mut self.handover.names), ..Handover::default() };
        self.mark_prunes_stale();
    }

    /// Returns a source of another process that may still come to want an object, though it does
    /// not request it now.
    pub(in crate::engine) fn possible_competitor(
        &self,
        source: SourceId,
        id: &ObjectId,
    ) -> Option<&Arc<str>> {
        let own = self.progress(source).unwrap_or_default();
        let found = self
            .peers()
            .find(|peer| peer.deletion_consent(object_hash(id), &own) == DeletionConsent::AfterDelay)?;
        Some(&found.name)
    }

    /// Takes over what the sources of the cluster are called, by the ids of their inventories.
    pub(in crate::engine) fn set_source_names(&mut self, names: BTreeMap<Arc<str>, Arc<str>>) {
        self.handover.names = names;
    }

    /// Takes over which repository a source follows.
    pub(in crate::engine) fn set_repository(&mut self, source: SourceId, repository: RepositoryIdentity) {
        self.sources[source].declared.repository = repository;
        self.sources[source].prunes.mark_stale();
    }

    /// Returns the sources of other processes, as they were read last.
    pub(in crate::engine) fn peers(&self) -> impl Iterator<Item = &PeerSource> {
        self.handover.peers.iter().flat_map(BTreeMap::values)
    }

    /// Returns whether what the other sources say is to be read now.
    pub(in crate::engine) fn is_peer_read_needed(&self) -> bool {
        !self.handover.asking.is_empty() || self.handover.observations.is_expected
    }

    /// Takes over what the other sources say, just read. Returns the sources of this process that
    /// may be behind one of them.
    pub(in crate::engine) fn set_peers(&mut self, peers: Vec<PeerSource>, now: Instant) -> Vec<SourceId> {
        let others =
            peers.into_iter().filter(|peer| !self.sources.inventory_ids().contains(&peer.inventory_id));
        let peers: BTreeMap<Arc<str>, PeerSource> =
            others.map(|peer| (peer.inventory_id.clone(), peer)).collect();
        let handover = &mut self.handover;
        let is_news = handover.peers.as_ref() != Some(&peers);
        handover.peers_interval = if is_news {
            MIN_PEERS_INTERVAL
        } else {
            (handover.peers_interval * 2).clamp(MIN_PEERS_INTERVAL, MAX_PEERS_INTERVAL)
        };
        (handover.peers, handover.read) = (Some(peers), Some(now));
        handover.observations.is_expected = false;
        let asking = std::mem::take(&mut self.handover.asking);
        self.rollouts.transfers.note_peers(asking.iter());
        self.objects.wakes.mark_each(asking);
        self.objects.mark_unwanted();
        let since = |id: &ObjectId| Some((self.informer_object(id)?.uid.clone(), self.release_time(id, now)));
        let unwanted: BTreeMap<Uid, Instant> =
            self.objects.unwanted_objects().iter().filter_map(since).collect();
        self.handover.since.retain(|uid, _| unwanted.contains_key(uid));
        self.handover.arrived.retain(|uid, _| unwanted.contains_key(uid));
        for (uid, since) in unwanted {
            self.handover.since.entry(uid).or_insert(TakeoverWait::begin(since, now));
        }
        self.accept_observation_requests();
        self.mark_prunes_stale();
        if is_news { self.sources_behind() } else { Vec::new() }
    }

    /// Returns the sources of which another one follows the same repository, and has read another
    /// revision.
    fn sources_behind(&self) -> Vec<SourceId> {
        let differs = |own: &SourceProgress| {
            self.peers().any(|peer| match (&peer.statement, own) {
                (
                    Ok(SourceStatement { progress: SourceProgress::Revision { repository, read }, .. }),
                    SourceProgress::Revision { repository: ours, read: newest },
                ) => repository == ours && read != newest,
                _ => false,
            })
        };
        let all = self.source_ids();
        all.filter(|source| self.progress(*source).is_some_and(|own| differs(&own))).collect()
    }

    /// Returns how far a source has read; none while it is not known what it follows.
    pub(in crate::engine) fn progress(&self, source: SourceId) -> Option<SourceProgress> {
        self.progress_by(source, || self.completeness(source))
    }

    /// Does the same as [`Engine::progress`], where it is known whether it was read completely.
    pub(in crate::engine) fn progress_by(
        &self,
        source: SourceId,
        completeness: impl FnOnce() -> SourceCompleteness,
    ) -> Option<SourceProgress> {
        let state = &self.sources[source];
        match &state.declared.repository {
            _ if state.declared.lifecycle == SourceLifecycle::Deleting => Some(SourceProgress::Unversioned),
            RepositoryIdentity::Unknown => None,
            RepositoryIdentity::None => Some(SourceProgress::Unversioned),
            RepositoryIdentity::Repository(repository) => {
                let is_complete = completeness() == SourceCompleteness::Complete;
                let read = state.head.clone().filter(|_| is_complete);
                Some(SourceProgress::Revision { repository: repository.clone(), read })
            }
        }
    }

    /// Returns whether all is known that a source wants.
    pub(in crate::engine) fn completeness(&self, source: SourceId) -> SourceCompleteness {
        let state = &self.sources[source];
        // As long as the scope of a kind is unknown, it is not known which object a manifest means.
        let is_complete = state.declared.lifecycle == SourceLifecycle::Deleting
            || (state.incomplete_reason.is_none() && self.unscoped_file(source).is_none());
        if is_complete { SourceCompleteness::Complete } else { SourceCompleteness::Partial }
    }

    /// Returns all sources beside one that may have an object: those of other processes, as they
    /// were read last, and those of this one.
    ///
    /// The latter's objects are wanted here, so they request nothing. Their progress counts as that
    /// of others does: what moves is as safe whichever processes serve its two sources.
    pub(in crate::engine) fn other_sources<'a>(
        &'a self,
        source: SourceId,
        id: &'a ObjectId,
    ) -> impl Iterator<Item = Cow<'a, PeerSource>> {
        let others = self.peers().map(Cow::Borrowed);
        let may_have = move |other: &SourceId| {
            self.handover.consults_peers && *other != source && self.disallowed_reason(*other, id).is_none()
        };
        let here = self.source_ids().filter(may_have);
        others.chain(here.map(|other| Cow::Owned(self.peer_view_of(other))))
    }

    fn peer_view_of(&self, source: SourceId) -> PeerSource {
        let completeness = self.completeness(source);
        let statement = SourceStatement {
            progress: self.progress_by(source, || completeness).unwrap_or_default(),
            completeness,
            service: SourceService::Daemon,
            ..SourceStatement::default()
        };
        let SourceDeclaration { name, inventory_id, .. } = &self.sources[source].declared;
        PeerSource {
            name: name.clone(),
            inventory_id: inventory_id.clone(),
            statement: Ok(statement),
            kept: KeptObjects::default(),
            rejections: Vec::new(),
        }
    }

    /// Returns why an object of a source is not deleted for the sake of the others, as they were
    /// read last.
    pub(in crate::engine) fn withheld_deletion(
        &self,
        source: SourceId,
        id: &ObjectId,
    ) -> Option<WithheldDeletion> {
        let own = self.progress(source).unwrap_or_default();
        let mark = object_hash(id);
        let withheld =
            self.other_sources(source, id).find_map(|peer| match peer.deletion_consent(mark, &own) {
                DeletionConsent::Withheld(interest) => Some(WithheldCause::Peer(peer.name.clone(), interest)),
                DeletionConsent::Given | DeletionConsent::AfterDelay => None,
            });
        let is_long = |since: Instant| {
            let waited = self.handover.read.map(|read| read.saturating_duration_since(since));
            waited.is_some_and(|waited| waited >= PEER_CONFIRMATION_DELAY)
        };
        if let Some(cause) = withheld {
            let wait = self.informer_object(id).and_then(|live| self.handover.since.get(&live.uid));
            return Some(WithheldDeletion { cause, is_long: wait.is_some_and(|wait| is_long(wait.since)) });
        }
        if let Some(possible_move) = self.sources[source].declared.moved.possible_move(id) {
            return Some(WithheldDeletion { cause: WithheldCause::Moved(possible_move), is_long: true });
        }
        if let Some(name) = self.unchecked_source(source) {
            let cause = WithheldCause::Peer(name.clone(), PeerInterest::Unobserved);
            return Some(WithheldDeletion { cause, is_long: self.has_removed_long_ago(source) });
        }
        // Until then the deletion is on its way, and waits for the answer.
        let (name, _) = self.unanswered_observation(source, id).filter(|(_, since)| is_long(*since))?;
        Some(WithheldDeletion { cause: WithheldCause::Peer(name, PeerInterest::Unanswered), is_long: true })
    }

    /// Returns another source of this process that was not observed since one has removed an object
    /// from its desired state.
    pub(in crate::engine) fn unchecked_source(&self, source: SourceId) -> Option<&Arc<str>> {
        let removal = self.sources[source].last_removal;
        let mut others = self.source_ids().filter(|other| *other != source);
        let found = others.find(|other| self.sources[*other].checked_after < removal)?;
        Some(&self.sources[found].declared.name)
    }

    /// Returns whether a source has removed an object last so long ago that a person may decide.
    pub(in crate::engine) fn has_removed_long_ago(&self, source: SourceId) -> bool {
        let waited = self.sources[source].removed_at.zip(self.handover.read);
        waited.is_some_and(|(since, read)| read.saturating_duration_since(since) >= PEER_CONFIRMATION_DELAY)
    }

    /// Returns the time since which others could have requested an object that is unwanted now.
    fn release_time(&self, id: &ObjectId, now: Instant) -> Instant {
        let source = self.informer_object(id).and_then(|live| self.source_of(live));
        let prior = source.and_then(|source| self.handover.prior_release.get(&source));
        prior.filter(|(released, _)| released.contains(&object_hash(id))).map_or(now, |(_, since)| *since)
    }

    /// Returns how much longer others may request an object that is to be deleted.
    fn delay_left(&self, source: SourceId, id: &ObjectId, now: Instant) -> Option<Duration> {
        let own = self.progress(source).unwrap_or_default();
        let mark = object_hash(id);
        let uid = self.informer_object(id).map(|live| &live.uid);
        let arrived =
            uid.and_then(|uid| self.handover.arrived.get(uid)).filter(|_| self.handover.has_peers());
        let declared = &self.sources[source].declared;
        // A source that nobody has configured yet may follow the folder to which it moved.
        let waits = arrived.is_some()
            || (declared.extent == RepositoryExtent::Folder && declared.lifecycle == SourceLifecycle::Active)
            || self
                .other_sources(source, id)
                .any(|peer| peer.deletion_consent(mark, &own) == DeletionConsent::AfterDelay);
        let unwanted = uid.and_then(|uid| self.handover.since.get(uid)).map(|wait| wait.proven_since);
        let since = arrived.copied().or(unwanted).unwrap_or(now);
        let until = since + declared.prune_delay;
        Some(until.saturating_duration_since(now)).filter(|left| waits && !left.is_zero())
    }

    /// Lets a deletion pass only where all others were asked a moment ago, and has them asked where
    /// it waits for them.
    pub(in crate::engine) fn check_peer_consent(
        &mut self,
        id: &ObjectId,
        decision: Decision,
        now: Instant,
    ) -> Decision {
        if !self.handover.consults_peers || !self.objects.unwanted_objects().contains(id) {
            return decision;
        }
        let Some(source) = self.informer_object(id).and_then(|live| self.source_of(live)) else {
            return decision;
        };
        let age = self.handover.age(now);
        if matches!(decision.action, Action::Delete(_, _, DeletionReason::Prune)) {
            if age.is_none_or(|age| age > DELETION_PEERS_MAX_AGE) {
                self.handover.asking.insert(id.clone());
                return Decision::wait(Reason::ReadingPeers);
            }
            // Somebody may have read the others for another object, before this one was given up.
            if let Some(uid) = self.informer_object(id).map(|live| live.uid.clone()) {
                let since = self.release_time(id, now);
                self.handover.since.entry(uid).or_insert(TakeoverWait::begin(since, now));
            }
            return match self.delay_left(source, id, now) {
                None => self.await_observations(source, id, decision, now),
                Some(left) => {
                    let delay = self.sources[source].declared.prune_delay.as_secs();
                    let cause = PruneCause::TakeoverPeriod(delay);
                    Decision { requeue_after: Some(left), ..Decision::wait(Reason::Prune(cause)) }
                }
            };
        }
        let schedule = match self.withheld_deletion(source, id) {
            Some(_) => PeerReadSchedule::Periodic,
            None => PeerReadSchedule::Once,
        };
        self.schedule_peer_read(id, decision, schedule, now)
    }

    /// Has the inventories of the other processes read for an object. Returns whether this process
    /// reads them at all.
    pub(in crate::engine) fn try_request_peers(&mut self, id: &ObjectId) -> bool {
        if self.handover.consults_peers {
            self.handover.asking.insert(id.clone());
        }
        self.handover.consults_peers
    }

    /// Schedules the next question to the other sources: at once where none was asked yet, and in
    /// time where something waits for them.
    pub(in crate::engine) fn schedule_peer_read(
        &mut self,
        id: &ObjectId,
        decision: Decision,
        schedule: PeerReadSchedule,
        now: Instant,
    ) -> Decision {
        let rest = self.handover.peers_interval;
        if self.handover.age(now).is_none_or(|age| age >= rest.max(MIN_PEERS_INTERVAL)) {
            self.handover.asking.insert(id.clone());
        }
        let again = (schedule == PeerReadSchedule::Periodic).then_some(rest.max(MIN_PEERS_INTERVAL));
        Decision { requeue_after: [decision.requeue_after, again].into_iter().flatten().min(), ..decision }
    }

    /// Returns the holder of an object that a source here wants. A source of this process releases
    /// its object at once: where it wants the object itself, nobody else is asked.
    pub(in crate::engine) fn inventory_holder(
        &mut self,
        id: &ObjectId,
        set: &Arc<str>,
        now: Instant,
    ) -> InventoryHolder {
        if let Some(source) = self.source_of_inventory_id(set) {
            return InventoryHolder::GivesUp(self.sources[source].declared.name.clone());
        }
        if !self.handover.consults_peers {
            return self
                .handover
                .names
                .get(set)
                .cloned()
                .map_or(InventoryHolder::Nobody, InventoryHolder::Keeps);
        }
        let age = self.handover.age(now);
        let found = self.handover.peers.as_ref().map(|peers| peers.get(set));
        let holder = match found {
            None => InventoryHolder::Unread,
            Some(None) => InventoryHolder::Nobody,
            Some(Some(peer)) if peer.is_releasing(id) => InventoryHolder::GivesUp(peer.name.clone()),
            Some(Some(peer)) => InventoryHolder::Keeps(peer.name.clone()),
        };
        let old = match holder {
            InventoryHolder::GivesUp(_) => TAKEOVER_PEERS_MAX_AGE,
            _ => self.handover.peers_interval.max(MIN_PEERS_INTERVAL),
        };
        if age.is_none_or(|age| age >= old) {
            self.handover.asking.insert(id.clone());
            if matches!(holder, InventoryHolder::GivesUp(_)) {
                return InventoryHolder::Unread;
            }
        }
        holder
    }

    /// Schedules another decision about an object that waits for its holder.
    pub(in crate::engine) fn wait_for_holder(
        &self,
        holder: &InventoryHolder,
        decision: Decision,
    ) -> Decision {
        if !matches!(holder, InventoryHolder::Keeps(_)) || decision.reason.is_none() {
            return decision;
        }
        let rest = self.handover.peers_interval.max(MIN_PEERS_INTERVAL);
        Decision {
            requeue_after: Some(decision.requeue_after.map_or(rest, |again| again.min(rest))),
            ..decision
        }
    }

    /// Keeps which desired objects are not in the inventory of whoever wants them, and which are
    /// given up.
    pub(in crate::engine) fn track_handover(&mut self, id: &ObjectId) {
        if !self.handover.consults_peers {
            return;
        }
        let set = self.objects.informer_objects.get(id).and_then(|live| match &live.owner {
            ObjectOwner::Ours(set) => Some(set.clone()),
            _ => None,
        });
        let wants = self.objects.entries.get(id).map(|entry| &entry.targets[..]).unwrap_or_default();
        if let Some(live) = self.objects.informer_objects.get(id).filter(|_| !wants.is_empty()) {
            // Others may request an object that is dropped once more for as long as before.
            self.handover.since.remove(&live.uid);
        }
        let has = |source: SourceId| set.as_ref() == Some(&self.sources.inventory_ids()[source]);
        let without = wants.iter().map(|(source, _)| *source).filter(|source| !has(*source)).collect();
        self.handover.unowned.record(id, without);
        for (source, _) in wants {
            let released = self.handover.given_up.get_mut(source);
            let released = released.is_some_and(|released| released.remove(id));
            let recalled =
                self.handover.prior_statement.get_mut(source).filter(|statement| !statement.is_empty());
            let recalled = recalled.is_some_and(|statement| statement.remove(&object_hash(id)));
            if (released || recalled)
                && let Some(now) = self.rollouts.starts.current_time()
            {
                self.handover.requested_back.insert(id.clone(), now);
            }
        }
        if let Some(source) = set.and_then(|set| self.source_of_inventory_id(&set))
            && self.objects.unwanted_objects().contains(id)
            && self.has_read_wants_of(source)
        {
            self.handover.given_up.entry(source).or_default().insert(id.clone());
        }
    }

    /// Returns whether it is known what a source wants: before that nothing is given up, as it may
    /// be wanted.
    fn has_read_wants_of(&self, source: SourceId) -> bool {
        let state = &self.sources[source];
        state.head.is_some() || state.declared.lifecycle == SourceLifecycle::Deleting
    }

    /// Gives up what a source turned out not to want, once that is known.
    pub(in crate::engine) fn give_up_unwanted(&mut self) {
        for id in self.objects.unwanted_objects().iter().cloned().collect::<Vec<_>>() {
            self.track_handover(&id);
        }
    }
}
