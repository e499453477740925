//! Requests to observe a source once more, before an object that another one dropped is deleted.
//!
//! A source deletes nothing that another one may have come to want. Sources of one repository are
//! ordered by its revisions. Each other one is asked to read its repository again when the object's
//! time to be requested is over, and answers after that. No clocks are compared: a request names
//! its process, and has a number. Of an object that came with the label of a source which does not
//! want it, those of the same repository are asked too.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::engine::decide::decision::Decision;
use crate::engine::deletion::handover::PeerReadSchedule;
use crate::engine::deletion::peer_sources::{DeletionConsent, SourceService, object_hash};
use crate::engine::facts::entry::SourceId;
use crate::engine::facts::records::clock_skew::MAX_CLOCK_SKEW;
use crate::engine::state::{DecisionMode, Engine};
use crate::engine::{PruneCause, Reason};
use crate::object::{ContentHash, ObjectId};

/// The time within which requests are made together: those for objects whose time to be requested
/// ends within it.
const REQUEST_WINDOW: Duration = Duration::from_secs(1);

/// A request to the other sources to read their repositories again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ObservationRequest {
    /// The mark of the process that made it.
    process: ContentHash,
    /// The number in that process: a later request has a greater one.
    number: u64,
}

impl ObservationRequest {
    /// Returns a request of the process with this name in its claims on the rollout budget.
    pub(crate) fn new(process: &str, number: u64) -> Self {
        Self { process: ContentHash::hash_bytes(process.as_bytes()), number }
    }

    /// Reads one from text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (process, number) = text.split_once('-')?;
        Some(Self { process: ContentHash::parse(process)?, number: number.parse().ok()? })
    }

    /// Returns whether an observation for this request answers another request too.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.process == other.process && self.number >= other.number
    }
}

impl fmt::Display for ObservationRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.process, self.number)
    }
}

/// The wait of a dropped object for the other sources.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct TakeoverWait {
    /// The time since which others could have requested it, by their own statement.
    pub since: Instant,
    /// The same as far as it is proven, whatever the clocks of the hosts say.
    pub proven_since: Instant,
    /// The number of the request whose answers let it go, and the time of that request.
    pub request: Option<(u64, Instant)>,
}

impl TakeoverWait {
    /// Returns a wait that is said to begin at a time, as it is found now.
    pub(in crate::engine) fn begin(since: Instant, now: Instant) -> Self {
        Self { since, proven_since: now.min(since + MAX_CLOCK_SKEW), request: None }
    }
}

/// The requests for observations, those of this process and those of others.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct ObservationRequests {
    /// Indicates whether this process answers.
    pub service: SourceService,
    /// Indicates whether another source may have asked since the others were read.
    pub is_expected: bool,
    /// The number of the newest request for each source.
    pub newest: BTreeMap<SourceId, u64>,
    /// The sources of this process that are to be observed, each after a number.
    due: Vec<(SourceId, u64)>,
    /// The requests of others that the observation after a number answers.
    answering: BTreeMap<SourceId, (u64, BTreeMap<Arc<str>, ObservationRequest>)>,
    /// The requests of others that were answered, by the ids of their inventories.
    pub taken: BTreeMap<SourceId, BTreeMap<Arc<str>, ObservationRequest>>,
}

impl Engine {
    /// Enables the answers of this process to observation requests of others.
    pub(in crate::engine) fn answer_observation_requests(&mut self) {
        self.handover.observations.service = SourceService::Daemon;
    }

    /// Does the same as [`Engine::take_due_observations`], as a part of that call.
    pub(in crate::engine) fn drain_due_observations(&mut self) -> Vec<(SourceId, u64)> {
        std::mem::take(&mut self.handover.observations.due)
    }

    /// Notes that another source may ask for an observation, so that the others' statements are
    /// read again.
    pub(in crate::engine) fn expect_observation_request(&mut self) {
        let observations = &mut self.handover.observations;
        observations.is_expected = observations.service == SourceService::Daemon;
    }

    /// Schedules observations for the requests of the other sources, as they were just read.
    pub(in crate::engine) fn accept_observation_requests(&mut self) {
        if self.handover.observations.service == SourceService::OneShot {
            return;
        }
        for source in self.source_ids() {
            let requests = self.unanswered_requests(source);
            if requests.is_empty() {
                continue;
            }
            let number = self.next_observation_number();
            let observations = &mut self.handover.observations;
            let (last, answering) = observations.answering.entry(source).or_default();
            *last = number;
            answering.extend(requests);
            observations.due.push((source, number));
        }
    }

    /// Returns the requests that a source has neither answered nor is about to.
    fn unanswered_requests(&self, source: SourceId) -> BTreeMap<Arc<str>, ObservationRequest> {
        let observations = &self.handover.observations;
        let (taken, answering) = (observations.taken.get(&source), observations.answering.get(&source));
        let is_known = |set: &Arc<str>, request: &ObservationRequest| {
            let taken = taken.and_then(|taken| taken.get(set));
            let answering = answering.and_then(|(_, answering)| answering.get(set));
            [taken, answering].into_iter().flatten().any(|seen| seen.covers(request))
        };
        let peers = self.handover.peers.iter().flatten();
        let unanswered = peers.filter_map(|(set, peer)| {
            let statement = peer.statement.as_ref().ok()?;
            let request = statement.observation_request.as_ref()?;
            (!is_known(set, request)).then(|| (set.clone(), request.clone()))
        });
        unanswered.collect()
    }

    /// Records that a source was observed after a number, and that all of it was read.
    pub(in crate::engine) fn complete_observation(&mut self, source: SourceId, number: u64) {
        let observations = &mut self.handover.observations;
        if observations.answering.get(&source).is_some_and(|(request, _)| *request <= number)
            && let Some((_, answered)) = observations.answering.remove(&source)
        {
            observations.taken.entry(source).or_default().extend(answered);
        }
    }

    /// Lets an object of a source go once each source that could have come to want it was observed.
    pub(in crate::engine) fn await_observations(
        &mut self,
        source: SourceId,
        id: &ObjectId,
        decision: Decision,
        now: Instant,
    ) -> Decision {
        let Some(uid) = self.informer_object(id).map(|live| live.uid.clone()) else { return decision };
        if self.blockers.mode == DecisionMode::Plan || self.confirmations(source).contains(&uid) {
            return decision;
        }
        let request = self.handover.since.get(&uid).and_then(|wait| wait.request);
        let Some(name) = self.unobserved_source(source, id, request.map(|(number, _)| number)) else {
            return decision;
        };
        if request.is_none() {
            self.request_observations(source, now);
        }
        let decision = Decision::wait(Reason::Prune(PruneCause::UnobservedSource(name)));
        self.schedule_peer_read(id, decision, PeerReadSchedule::Periodic, now)
    }

    /// Asks for observations for all objects of a source whose time to be requested is over.
    fn request_observations(&mut self, source: SourceId, now: Instant) {
        let number = self.next_observation_number();
        let over = now + REQUEST_WINDOW;
        let delay = self.sources[source].declared.prune_delay;
        let uid = |id: &ObjectId| Some(self.informer_object(id)?.uid.clone());
        let uids: Vec<_> = self.unwanted_of(source).filter_map(uid).collect();
        for uid in uids {
            let wait = self.handover.since.get_mut(&uid);
            if let Some(wait) =
                wait.filter(|wait| wait.request.is_none() && wait.proven_since + delay <= over)
            {
                wait.request = Some((number, now));
            }
        }
        let others: Vec<SourceId> = self.source_ids().filter(|other| *other != source).collect();
        self.handover.observations.newest.insert(source, number);
        self.handover.observations.due.extend(others.into_iter().map(|other| (other, number)));
    }

    /// Returns a source that may have come to want an object, and was not observed for a request.
    fn unobserved_source(&self, source: SourceId, id: &ObjectId, request: Option<u64>) -> Option<Arc<str>> {
        let own = self.progress(source).unwrap_or_default();
        let mark = object_hash(id);
        let needed = request.map(|number| ObservationRequest::new(self.rollouts.ledger.holder(), number));
        let was_observed = |set: &Arc<str>, taken: &BTreeMap<Arc<str>, ObservationRequest>| {
            let Some((number, needed)) = request.zip(needed.as_ref()) else { return false };
            match self.source_of_inventory_id(set) {
                Some(here) => self.sources[here].checked_after >= number,
                None => {
                    taken.get(&self.sources.inventory_ids()[source]).is_some_and(|seen| seen.covers(needed))
                }
            }
        };
        // Its owner in another process may be down, and has nothing to request of what it had.
        let has_arrived = self.handover.has_arrived(&self.informer_object(id)?.uid);
        let mut others = self.other_sources(source, id);
        let found = others.find(|peer| {
            let Ok(statement) = &peer.statement else { return false };
            let may_want = match peer.deletion_consent(mark, &own) {
                DeletionConsent::AfterDelay => true,
                DeletionConsent::Given => {
                    has_arrived && self.source_of_inventory_id(&peer.inventory_id).is_none()
                }
                DeletionConsent::Withheld(_) => false,
            };
            may_want
                && statement.service == SourceService::Daemon
                && !was_observed(&peer.inventory_id, &statement.answered_requests)
        })?;
        Some(found.name.clone())
    }

    /// Returns a source that has not answered the request for an object, and the time of that
    /// request.
    pub(in crate::engine) fn unanswered_observation(
        &self,
        source: SourceId,
        id: &ObjectId,
    ) -> Option<(Arc<str>, Instant)> {
        let wait = self.handover.since.get(&self.informer_object(id)?.uid)?;
        let (number, since) = wait.request?;
        Some((self.unobserved_source(source, id, Some(number))?, since))
    }

    /// Returns the request that a source waits for; none where nothing of it does any more.
    pub(in crate::engine) fn observation_request(&self, source: SourceId) -> Option<ObservationRequest> {
        let number = *self.handover.observations.newest.get(&source)?;
        let waits = |id: &ObjectId| {
            let live = self.informer_object(id);
            live.and_then(|live| self.handover.since.get(&live.uid))
                .is_some_and(|wait| wait.request.is_some())
        };
        let is_needed = self.unwanted_of(source).any(waits);
        is_needed.then(|| ObservationRequest::new(self.rollouts.ledger.holder(), number))
    }

    /// Returns a number that no reading and no request had before.
    pub(in crate::engine) fn next_observation_number(&mut self) -> u64 {
        self.sources.next_observation_number()
    }
}
