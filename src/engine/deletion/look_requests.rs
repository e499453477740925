//! Looks of sources at their repositories, before an object that one of them dropped is deleted.
//!
//! A source deletes nothing that another one may have come to want. Sources of one repository are
//! ordered by its revisions. Each other one is asked for a look when its time to be requested is
//! over, and answers after that look. No clocks are compared: a request names its process, and has
//! a number.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::Reason;
use crate::engine::decide::action::Decision;
use crate::engine::deletion::peer_sources::{DeletionConsent, SourceProgress, SourceService, mark};
use crate::engine::facts::entry::SourceId;
use crate::engine::rollout::start_rate::MAX_CLOCK_SKEW;
use crate::engine::state::{DecisionMode, Engine};
use crate::object::{ContentHash, ObjectId};

/// Requests for objects whose time to be requested ends within this are made together.
const REQUEST_WINDOW: Duration = Duration::from_secs(1);

/// A request for a look at the repositories of the other sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LookRequest {
    /// The mark of the process that made it.
    process: ContentHash,
    /// The number in that process: a later request has a greater one.
    number: u64,
}

impl LookRequest {
    /// Returns a request of the process with this name in its claims on the rollout budget.
    pub(crate) fn new(process: &str, number: u64) -> Self {
        Self { process: ContentHash::hash_bytes(process.as_bytes()), number }
    }

    /// Reads one from text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (process, number) = text.split_once('-')?;
        Some(Self { process: ContentHash::parse(process)?, number: number.parse().ok()? })
    }

    /// Returns whether a look for this request is one for another request too.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.process == other.process && self.number >= other.number
    }
}

impl fmt::Display for LookRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.process, self.number)
    }
}

/// The wait of a dropped object for the other sources.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct TakeoverWait {
    /// The time since which others could have requested it, by their own word.
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

/// The requests for looks, those of this process and those of others.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct LookRequests {
    /// Indicates whether this process answers.
    pub service: SourceService,
    /// Indicates whether another source may have asked since the others were read.
    pub is_expected: bool,
    /// The number of the newest request for each source.
    pub newest: BTreeMap<SourceId, u64>,
    /// Looks that are to be had of the sources of this process, each after a number.
    due: Vec<(SourceId, u64)>,
    /// The requests of others that the look after a number answers.
    answering: BTreeMap<SourceId, (u64, BTreeMap<Arc<str>, LookRequest>)>,
    /// The requests of others that were answered, by the ids of their inventories.
    pub taken: BTreeMap<SourceId, BTreeMap<Arc<str>, LookRequest>>,
}

impl Engine {
    /// Has the sources of this process answer requests of others.
    pub(crate) fn answer_look_requests(&mut self) {
        self.handover.looks.service = SourceService::Daemon;
    }

    /// Returns the looks that are to be had of the sources of this process, each after a number.
    pub(crate) fn take_due_looks(&mut self) -> Vec<(SourceId, u64)> {
        std::mem::take(&mut self.handover.looks.due)
    }

    /// Has the other sources read again, as one of them may ask for a look.
    pub(crate) fn expect_look_request(&mut self) {
        let looks = &mut self.handover.looks;
        looks.is_expected = looks.service == SourceService::Daemon;
    }

    /// Has looks taken for the requests of the other sources, as they were read a moment ago.
    pub(in crate::engine) fn take_look_requests(&mut self) {
        if self.handover.looks.service == SourceService::Passes {
            return;
        }
        for source in self.source_ids() {
            let asked = self.unanswered_requests(source);
            if asked.is_empty() {
                continue;
            }
            let number = self.next_look_number();
            let looks = &mut self.handover.looks;
            let (last, answering) = looks.answering.entry(source).or_default();
            *last = number;
            answering.extend(asked);
            looks.due.push((source, number));
        }
    }

    /// Returns the requests that a source has neither answered nor is about to.
    fn unanswered_requests(&self, source: SourceId) -> BTreeMap<Arc<str>, LookRequest> {
        let own = self.progress(source).unwrap_or_default();
        let looks = &self.handover.looks;
        let (taken, answering) = (looks.taken.get(&source), looks.answering.get(&source));
        let is_known = |set: &Arc<str>, request: &LookRequest| {
            let taken = taken.and_then(|taken| taken.get(set));
            let answering = answering.and_then(|(_, answering)| answering.get(set));
            [taken, answering].into_iter().flatten().any(|look| look.covers(request))
        };
        let peers = self.handover.peers.iter().flatten();
        let asked = peers.filter_map(|(set, peer)| {
            let says = peer.says.as_ref().ok()?;
            let request = says.look_request.as_ref()?;
            let is_due = !is_same_repository(&says.progress, &own) && !is_known(set, request);
            is_due.then(|| (set.clone(), request.clone()))
        });
        asked.collect()
    }

    /// Takes over that a source was looked at after a number, and that all it found was read.
    pub(in crate::engine) fn complete_looks(&mut self, source: SourceId, number: u64) {
        let looks = &mut self.handover.looks;
        if looks.answering.get(&source).is_some_and(|(asked, _)| *asked <= number)
            && let Some((_, answered)) = looks.answering.remove(&source)
        {
            looks.taken.entry(source).or_default().extend(answered);
        }
    }

    /// Lets an object of a source go once each source that could have come to want it was looked
    /// at.
    pub(in crate::engine) fn await_looks(
        &mut self,
        source: SourceId,
        id: &ObjectId,
        decision: Decision,
        now: Instant,
    ) -> Decision {
        let Some(uid) = self.informer_object(id).map(|live| live.uid.clone()) else { return decision };
        if self.mode == DecisionMode::Plan || self.confirmations(source).contains(&uid) {
            return decision;
        }
        let request = self.handover.since.get(&uid).and_then(|wait| wait.request);
        let Some(name) = self.source_without_look(source, id, request.map(|(number, _)| number)) else {
            return decision;
        };
        if request.is_none() {
            self.request_looks(source, now);
        }
        let why = format!("pruned when source {name}, which may want it, was looked at again");
        self.ask_again(id, Decision::wait(Reason::Prune(why.into())), true, now)
    }

    /// Asks for looks for all objects of a source whose time to be requested is over.
    fn request_looks(&mut self, source: SourceId, now: Instant) {
        let number = self.next_look_number();
        let over = now + REQUEST_WINDOW;
        let delay = self.sources[source].prune_delay;
        let of_source =
            |id: &&ObjectId| self.informer_object(id).and_then(|live| self.source_of(live)) == Some(source);
        let uids: Vec<_> = self.unwanted.iter().filter(of_source).collect();
        let uids: Vec<_> =
            uids.into_iter().filter_map(|id| Some(self.informer_object(id)?.uid.clone())).collect();
        for uid in uids {
            let wait = self.handover.since.get_mut(&uid);
            if let Some(wait) =
                wait.filter(|wait| wait.request.is_none() && wait.proven_since + delay <= over)
            {
                wait.request = Some((number, now));
            }
        }
        let others: Vec<SourceId> = self.source_ids().filter(|other| *other != source).collect();
        self.handover.looks.newest.insert(source, number);
        self.handover.looks.due.extend(others.into_iter().map(|other| (other, number)));
    }

    /// Returns a source that may have come to want an object, and was not looked at for a request.
    fn source_without_look(&self, source: SourceId, id: &ObjectId, request: Option<u64>) -> Option<Arc<str>> {
        let own = self.progress(source).unwrap_or_default();
        let mark = mark(id);
        let needed = request.map(|number| LookRequest::new(&self.rollouts.holder, number));
        let was_looked_at = |set: &Arc<str>, taken: &BTreeMap<Arc<str>, LookRequest>| {
            let Some((number, needed)) = request.zip(needed.as_ref()) else { return false };
            match self.source_of_inventory_id(set) {
                Some(here) => self.sources[here].checked_after >= number,
                None => taken.get(&self.inventory_ids[source]).is_some_and(|look| look.covers(needed)),
            }
        };
        let mut others = self.other_sources(source, id);
        let found = others.find(|peer| {
            let Ok(says) = &peer.says else { return false };
            peer.deletion_consent(mark, &own) == DeletionConsent::AfterDelay
                && says.service == SourceService::Daemon
                && !was_looked_at(&peer.inventory_id, &says.looks_taken)
        })?;
        Some(found.name.clone())
    }

    /// Returns a source that has not answered the request for an object, and the time of that
    /// request.
    pub(in crate::engine) fn unanswered_look(
        &self,
        source: SourceId,
        id: &ObjectId,
    ) -> Option<(Arc<str>, Instant)> {
        let wait = self.handover.since.get(&self.informer_object(id)?.uid)?;
        let (number, since) = wait.request?;
        Some((self.source_without_look(source, id, Some(number))?, since))
    }

    /// Returns the request that a source waits for; none where nothing of it does any more.
    pub(in crate::engine) fn look_request(&self, source: SourceId) -> Option<LookRequest> {
        let number = *self.handover.looks.newest.get(&source)?;
        let waits = |id: &ObjectId| {
            let live = self.informer_object(id).filter(|live| self.source_of(live) == Some(source));
            live.and_then(|live| self.handover.since.get(&live.uid))
                .is_some_and(|wait| wait.request.is_some())
        };
        let is_needed = self.unwanted.iter().any(waits);
        is_needed.then(|| LookRequest::new(&self.rollouts.holder, number))
    }

    /// Returns a number that no reading and no request had before.
    pub(in crate::engine) fn next_look_number(&mut self) -> u64 {
        self.drop_counter += 1;
        self.drop_counter
    }
}

/// Returns whether two sources are ordered by the revisions of one repository.
fn is_same_repository(one: &SourceProgress, other: &SourceProgress) -> bool {
    match (one, other) {
        (SourceProgress::Follows { repository, .. }, SourceProgress::Follows { repository: other, .. }) => {
            repository == other
        }
        _ => false,
    }
}
