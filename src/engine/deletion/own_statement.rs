//! The statement of each source of this process to the others: what it has read, what it requests,
//! and what it releases.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::deletion::handover::OLD_STATEMENT_VALIDITY;
use crate::engine::deletion::look_requests::LookRequest;
use crate::engine::deletion::peer_sources::{
    MAX_REQUESTED_OBJECTS, SourceProgress, SourceService, SourceStatement, TakeoverRequests, mark,
};
use crate::engine::facts::entry::{ObjectEntry, SourceId};
use crate::engine::state::{DecisionMode, Engine};
use crate::engine::{PruneDecision, PrunePolicy};
use crate::object::{ContentHash, ObjectId};

impl Engine {
    /// Takes over what a source said before this process served it.
    ///
    /// An object that was given up then, or requested again, may still be taken over by that old
    /// statement. So it is requested for a time where it is wanted.
    pub(crate) fn recall(&mut self, source: SourceId, told: &SourceStatement) {
        self.recall_looks(source, told);
        let mut said = told.released.clone();
        if let TakeoverRequests::These(requests) = &told.takeover_requests {
            said.extend(requests);
        }
        if said.is_empty() {
            return;
        }
        self.handover.prior_statement.insert(source, said);
        let wanted =
            self.entries.iter().filter(|(_, entry)| entry.targets.iter().any(|(one, _)| *one == source));
        let wanted: Vec<ObjectId> = wanted.map(|(id, _)| id.clone()).collect();
        for id in wanted {
            self.track_handover(&id);
        }
    }

    /// Returns the statement of a source for the others, where it can be made. `told` is its
    /// present one, and stays where it holds. Only a tidy statement takes back requests that are
    /// met.
    pub(crate) fn statement(
        &self,
        source: SourceId,
        told: Option<&SourceStatement>,
    ) -> Option<SourceStatement> {
        let requests = match told.map(|told| &told.takeover_requests) {
            Some(TakeoverRequests::Anything) => TakeoverRequests::Anything,
            told => {
                let requests = self.takeover_requests(source);
                told.filter(|told| told.cover(&requests)).cloned().unwrap_or(requests)
            }
        };
        let needed = self.statement_with(source, requests, told)?;
        let request = told.and_then(|told| told.look_request.clone());
        Some(SourceStatement { look_request: needed.look_request.clone().or(request), ..needed })
    }

    fn statement_with(
        &self,
        source: SourceId,
        requests: TakeoverRequests,
        told: Option<&SourceStatement>,
    ) -> Option<SourceStatement> {
        let released = self.given_up_objects(source);
        let before = told.filter(|told| released.is_subset(&told.released));
        let began = || self.rollouts.starts.clock().map(|(_, wall)| wall.as_second());
        let released_since = before.and_then(|told| told.released_since).or_else(began);
        let read = self.completeness(source);
        // A pass of some of the files knows no more of the others than was known before.
        let completeness = match self.sources[source].prune {
            PrunePolicy::Partial => told.map(|told| told.completeness).unwrap_or_default(),
            _ => read,
        };
        let service = match self.handover.looks.service {
            SourceService::Daemon => SourceService::Daemon,
            SourceService::Passes => told.map(|told| told.service).unwrap_or_default(),
        };
        Some(SourceStatement {
            progress: merge_progress(self.progress_by(source, || read)?, told),
            takeover_requests: requests,
            released_since: released_since.filter(|_| !released.is_empty()),
            released,
            completeness,
            service,
            look_request: self.look_request(source),
            looks_taken: self.handover.looks.taken.get(&source).cloned().unwrap_or_default(),
        })
    }

    /// Does the same as [`Engine::statement`], with nothing left in it that no longer holds.
    pub(crate) fn tidy_statement(
        &mut self,
        source: SourceId,
        told: Option<&SourceStatement>,
    ) -> Option<SourceStatement> {
        // All that is wanted has been read by now, and was compared with it.
        self.handover.prior_statement.remove(&source);
        let unwanted = &self.unwanted;
        if let Some(released) = self.handover.given_up.get_mut(&source) {
            released.retain(|id| unwanted.contains(id));
        }
        if let Some(now) = self.rollouts.starts.now() {
            self.handover
                .requested_back
                .retain(|_, since| now.saturating_duration_since(*since) < OLD_STATEMENT_VALIDITY);
        }
        self.forget_old_looks(source);
        self.statement_with(source, self.takeover_requests(source), told)
    }

    /// Takes over when a source began to release, and the looks that it has taken for others.
    fn recall_looks(&mut self, source: SourceId, told: &SourceStatement) {
        self.handover.looks.taken.insert(source, told.looks_taken.clone());
        let age = told.released_since.zip(self.rollouts.starts.clock()).and_then(|(since, (now, wall))| {
            now.checked_sub(Duration::from_secs(u64::try_from(wall.as_second() - since).ok()?))
        });
        if let Some(since) = age {
            self.handover.prior_release.insert(source, (told.released.clone(), since));
        }
    }

    /// Drops the answers to requests that nobody makes any more, and its own request where nothing
    /// waits for it.
    fn forget_old_looks(&mut self, source: SourceId) {
        if self.look_request(source).is_none() {
            self.handover.looks.newest.remove(&source);
        }
        let Some(peers) = &self.handover.peers else { return };
        let asks = |set: &Arc<str>, look: &LookRequest| {
            let says = peers.get(set).and_then(|peer| peer.says.as_ref().ok());
            says.is_none_or(|says| says.look_request.as_ref() == Some(look)) && peers.contains_key(set)
        };
        if let Some(taken) = self.handover.looks.taken.get_mut(&source) {
            taken.retain(|set, look| asks(set, look));
        }
    }

    /// Returns whether a statement requests anything that it needs no more: a tidy one takes
    /// that back.
    pub(crate) fn has_excess_requests(&self, source: SourceId, told: &SourceStatement) -> bool {
        if told.look_request.is_some() && self.look_request(source).is_none() {
            return true;
        }
        if matches!(&told.takeover_requests, TakeoverRequests::These(told) if told.is_empty()) {
            return false;
        }
        match (&told.takeover_requests, self.takeover_requests(source)) {
            (TakeoverRequests::These(told), TakeoverRequests::These(needed)) => !told.is_subset(&needed),
            (TakeoverRequests::Anything, TakeoverRequests::These(_)) => true,
            (_, TakeoverRequests::Anything) => false,
        }
    }

    fn takeover_requests(&self, source: SourceId) -> TakeoverRequests {
        let has =
            |id: &&ObjectId| self.informer_object(id).and_then(|live| self.source_of(live)) == Some(source);
        let wants = |id: &&ObjectId| {
            let wants = |entry: &ObjectEntry| entry.targets.iter().any(|(one, _)| *one == source);
            self.entry(id).is_some_and(wants)
        };
        let unowned = self.handover.unowned.iter().filter(|id| !has(id));
        let now = self.rollouts.starts.now();
        let counts = |since: Instant| {
            now.is_none_or(|now| now.saturating_duration_since(since) < OLD_STATEMENT_VALIDITY)
        };
        let retaken =
            self.handover.requested_back.iter().filter(|(_, since)| counts(**since)).map(|(id, _)| id);
        let requested = unowned.chain(retaken.filter(has)).filter(wants);
        let requested: Vec<&ObjectId> = requested.take(MAX_REQUESTED_OBJECTS + 1).collect();
        if requested.len() > MAX_REQUESTED_OBJECTS {
            TakeoverRequests::Anything
        } else {
            TakeoverRequests::These(requested.into_iter().map(mark).collect())
        }
    }

    /// Told where there is somebody who may want it, or may come to. Of many those that somebody
    /// requests, and the first of the others: as they go, more follow.
    fn given_up_objects(&self, source: SourceId) -> BTreeSet<ContentHash> {
        let all = self.handover.given_up.get(&source);
        let is_told = |id: &&ObjectId| self.handover.has_peers() || self.is_kept_longer(source, id);
        let mut all: Vec<(bool, &ObjectId)> =
            all.into_iter().flatten().filter(is_told).map(|id| (!self.unwanted.contains(id), id)).collect();
        if all.len() > MAX_REQUESTED_OBJECTS {
            let peers = || self.handover.peers.iter().flat_map(BTreeMap::values);
            let is_requested = |id: &ObjectId| peers().any(|peer| peer.requests_takeover(mark(id)));
            all.sort_by_cached_key(|(is_gone, id)| (!is_requested(id), *is_gone));
        } else {
            all.sort();
        }
        all.into_iter().take(MAX_REQUESTED_OBJECTS).map(|(_, id)| mark(id)).collect()
    }

    /// Returns whether an object that its source no longer wants stays for longer, so that whoever
    /// comes later may want it.
    fn is_kept_longer(&self, source: SourceId, id: &ObjectId) -> bool {
        let judged = self.sources[source].prune_decisions.get(id);
        matches!(judged, Some(PruneDecision::Keep(_) | PruneDecision::Confirm(_)))
    }

    /// Returns whether all is known that a statement depends on: what the cluster shows of each
    /// kind that it has.
    pub(crate) fn can_state(&self, source: SourceId) -> bool {
        let state = &self.sources[source];
        let mut kinds = state.catalog.object_counts().kinds().chain(self.listed_kinds(source));
        let waits = |kind| self.is_syncing(source, kind) && !self.is_unserved(kind);
        self.handover.consults_peers && self.mode == DecisionMode::Live && !kinds.any(waits)
    }
}

/// Keeps what was read completely before: a newer revision that is not takes nothing back.
fn merge_progress(progress: SourceProgress, told: Option<&SourceStatement>) -> SourceProgress {
    match (progress, told.map(|told| &told.progress)) {
        (
            SourceProgress::Follows { repository, read: None },
            Some(SourceProgress::Follows { repository: known, read }),
        ) if repository == *known => SourceProgress::Follows { repository, read: read.clone() },
        (progress, _) => progress,
    }
}
