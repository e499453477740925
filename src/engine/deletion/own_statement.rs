//! The statement of each source of this process to the others: what it has read, what it requests,
//! and what it releases.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::deletion::handover::OLD_STATEMENT_VALIDITY;
use crate::engine::deletion::observation_requests::ObservationRequest;
use crate::engine::deletion::peer_sources::{
    MAX_REQUESTED_OBJECTS, SourceProgress, SourceService, SourceStatement, TakeoverRequests, object_hash,
};
use crate::engine::facts::entry::{ObjectEntry, SourceId};
use crate::engine::state::{DecisionMode, Engine};
use crate::engine::{PruneDecision, PrunePolicy};
use crate::object::{ContentHash, ObjectId};

impl Engine {
    /// Takes over the statement of a source from before this process served it.
    ///
    /// An object that was given up then, or requested again, may still be taken over by that old
    /// statement. So it is requested for a time where it is wanted.
    pub(in crate::engine) fn restore_statement(&mut self, source: SourceId, recorded: &SourceStatement) {
        self.recall_observations(source, recorded);
        let mut statement = recorded.released.clone();
        if let TakeoverRequests::Listed(requests) = &recorded.takeover_requests {
            statement.extend(requests);
        }
        if statement.is_empty() {
            return;
        }
        self.handover.prior_statement.insert(source, statement);
        let wanted = self
            .objects
            .entries
            .iter()
            .filter(|(_, entry)| entry.targets.iter().any(|(one, _)| *one == source));
        let wanted: Vec<ObjectId> = wanted.map(|(id, _)| id.clone()).collect();
        for id in wanted {
            self.track_handover(&id);
        }
    }

    /// Returns the statement of a source for the others, where it can be made. `recorded` is its
    /// present one, and stays where it holds. Only a tidy statement takes back requests that are
    /// met.
    pub(in crate::engine) fn statement(
        &self,
        source: SourceId,
        recorded: Option<&SourceStatement>,
    ) -> Option<SourceStatement> {
        let requests = match recorded.map(|recorded| &recorded.takeover_requests) {
            Some(TakeoverRequests::Unlisted) => TakeoverRequests::Unlisted,
            recorded => {
                let requests = self.takeover_requests(source);
                recorded.filter(|recorded| recorded.covers(&requests)).cloned().unwrap_or(requests)
            }
        };
        let needed = self.statement_with(source, requests, recorded)?;
        let request = recorded.and_then(|recorded| recorded.observation_request.clone());
        Some(SourceStatement {
            observation_request: needed.observation_request.clone().or(request),
            ..needed
        })
    }

    fn statement_with(
        &self,
        source: SourceId,
        requests: TakeoverRequests,
        recorded: Option<&SourceStatement>,
    ) -> Option<SourceStatement> {
        let released = self.given_up_objects(source);
        let before = recorded.filter(|recorded| released.is_subset(&recorded.released));
        let began = || self.rollouts.starts.clock().map(|(_, wall)| wall.as_second());
        let released_since = before.and_then(|recorded| recorded.released_since).or_else(began);
        let read = self.completeness(source);
        // A pass of some of the files knows no more of the others than was known before.
        let completeness = match self.sources[source].declared.prune {
            PrunePolicy::Partial => recorded.map(|recorded| recorded.completeness).unwrap_or_default(),
            _ => read,
        };
        let service = match self.handover.observations.service {
            SourceService::Daemon => SourceService::Daemon,
            SourceService::OneShot => recorded.map(|recorded| recorded.service).unwrap_or_default(),
        };
        Some(SourceStatement {
            progress: merge_progress(self.progress_by(source, || read)?, recorded),
            takeover_requests: requests,
            released_since: released_since.filter(|_| !released.is_empty()),
            released,
            completeness,
            service,
            observation_request: self.observation_request(source),
            answered_requests: self.handover.observations.taken.get(&source).cloned().unwrap_or_default(),
        })
    }

    /// Does the same as [`Engine::tidy_statement`], as a part of that call.
    pub(in crate::engine) fn tidied_statement(
        &mut self,
        source: SourceId,
        recorded: Option<&SourceStatement>,
    ) -> Option<SourceStatement> {
        // All that is wanted has been read by now, and was compared with it.
        self.handover.prior_statement.remove(&source);
        let unwanted = self.objects.unwanted_objects();
        if let Some(released) = self.handover.given_up.get_mut(&source) {
            released.retain(|id| unwanted.contains(id));
        }
        if let Some(now) = self.rollouts.starts.current_time() {
            self.handover
                .requested_back
                .retain(|_, since| now.saturating_duration_since(*since) < OLD_STATEMENT_VALIDITY);
        }
        self.forget_old_requests(source);
        self.statement_with(source, self.takeover_requests(source), recorded)
    }

    /// Takes over when a source began to release, and the requests of others that it has answered.
    fn recall_observations(&mut self, source: SourceId, recorded: &SourceStatement) {
        self.handover.observations.taken.insert(source, recorded.answered_requests.clone());
        let age =
            recorded.released_since.zip(self.rollouts.starts.clock()).and_then(|(since, (now, wall))| {
                now.checked_sub(Duration::from_secs(u64::try_from(wall.as_second() - since).ok()?))
            });
        if let Some(since) = age {
            self.handover.prior_release.insert(source, (recorded.released.clone(), since));
        }
    }

    /// Drops the answers to requests that nobody makes any more, and its own request where nothing
    /// waits for it.
    fn forget_old_requests(&mut self, source: SourceId) {
        if self.observation_request(source).is_none() {
            self.handover.observations.newest.remove(&source);
        }
        let Some(peers) = &self.handover.peers else { return };
        let asks = |set: &Arc<str>, answered: &ObservationRequest| {
            let statement = peers.get(set).and_then(|peer| peer.statement.as_ref().ok());
            statement.is_none_or(|statement| statement.observation_request.as_ref() == Some(answered))
                && peers.contains_key(set)
        };
        if let Some(taken) = self.handover.observations.taken.get_mut(&source) {
            taken.retain(|set, answered| asks(set, answered));
        }
    }

    /// Returns whether a statement requests anything that it needs no more: a tidy one takes
    /// that back.
    pub(in crate::engine) fn has_excess_requests(
        &self,
        source: SourceId,
        recorded: &SourceStatement,
    ) -> bool {
        if recorded.observation_request.is_some() && self.observation_request(source).is_none() {
            return true;
        }
        if matches!(&recorded.takeover_requests, TakeoverRequests::Listed(recorded) if recorded.is_empty()) {
            return false;
        }
        match (&recorded.takeover_requests, self.takeover_requests(source)) {
            (TakeoverRequests::Listed(recorded), TakeoverRequests::Listed(needed)) => {
                !recorded.is_subset(&needed)
            }
            (TakeoverRequests::Unlisted, TakeoverRequests::Listed(_)) => true,
            (_, TakeoverRequests::Unlisted) => false,
        }
    }

    fn takeover_requests(&self, source: SourceId) -> TakeoverRequests {
        let has =
            |id: &&ObjectId| self.informer_object(id).and_then(|live| self.source_of(live)) == Some(source);
        let wants = |id: &&ObjectId| {
            let wants = |entry: &ObjectEntry| entry.targets.iter().any(|(one, _)| *one == source);
            self.entry(id).is_some_and(wants)
        };
        let unowned = self.handover.unowned.of(source).filter(|id| !has(id));
        let now = self.rollouts.starts.current_time();
        let counts = |since: Instant| {
            now.is_none_or(|now| now.saturating_duration_since(since) < OLD_STATEMENT_VALIDITY)
        };
        let retaken =
            self.handover.requested_back.iter().filter(|(_, since)| counts(**since)).map(|(id, _)| id);
        let requested = unowned.chain(retaken.filter(has)).filter(wants);
        let requested: Vec<&ObjectId> = requested.take(MAX_REQUESTED_OBJECTS + 1).collect();
        if requested.len() > MAX_REQUESTED_OBJECTS {
            TakeoverRequests::Unlisted
        } else {
            TakeoverRequests::Listed(requested.into_iter().map(object_hash).collect())
        }
    }

    /// Returns the given-up objects to report, where there is somebody who may come to want them.
    /// Of many, those that somebody requests, and the first of the others: as they go, more follow.
    fn given_up_objects(&self, source: SourceId) -> BTreeSet<ContentHash> {
        let all = self.handover.given_up.get(&source);
        let is_reported = |id: &&ObjectId| self.handover.has_peers() || self.is_kept_longer(source, id);
        let mut all: Vec<(bool, &ObjectId)> = all
            .into_iter()
            .flatten()
            .filter(is_reported)
            .map(|id| (!self.objects.unwanted_objects().contains(id), id))
            .collect();
        if all.len() > MAX_REQUESTED_OBJECTS {
            let peers = || self.peers();
            let is_requested = |id: &ObjectId| peers().any(|peer| peer.has_takeover_request(object_hash(id)));
            all.sort_by_cached_key(|(is_gone, id)| (!is_requested(id), *is_gone));
        }
        all.into_iter().take(MAX_REQUESTED_OBJECTS).map(|(_, id)| object_hash(id)).collect()
    }

    /// Returns whether an object that its source no longer wants stays for longer, so that whoever
    /// comes later may want it.
    fn is_kept_longer(&self, source: SourceId, id: &ObjectId) -> bool {
        let decision = self.prune_decision_of(source, id);
        matches!(decision, Some(PruneDecision::Keep(_) | PruneDecision::Confirm(_)))
    }

    /// Returns whether all is known that a statement depends on: what the cluster shows of each
    /// kind that it has.
    pub(in crate::engine) fn can_state(&self, source: SourceId) -> bool {
        let state = &self.sources[source];
        let mut kinds = state.manifests.object_counts().kinds().chain(self.listed_kinds(source));
        let waits = |kind| self.is_syncing(source, kind) && !self.is_unserved(kind);
        self.handover.consults_peers && self.blockers.mode == DecisionMode::Live && !kinds.any(waits)
    }
}

/// Keeps what was read completely before: a newer revision that is not takes nothing back.
fn merge_progress(progress: SourceProgress, recorded: Option<&SourceStatement>) -> SourceProgress {
    match (progress, recorded.map(|recorded| &recorded.progress)) {
        (
            SourceProgress::Revision { repository, read: None },
            Some(SourceProgress::Revision { repository: known, read }),
        ) if repository == *known => SourceProgress::Revision { repository, read: read.clone() },
        (progress, _) => progress,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::world::{
        FIRST, SET, World, WorldObject, config, desired, following, reading, start_time,
    };
    use crate::engine::{AdoptPolicy, KeptObjects, PeerSource, RepositoryIdentity, SharedDesiredObject};
    use crate::object::Revision;

    #[test]
    fn a_revision_that_was_read_completely_stays_until_a_newer_one_is() {
        let of = |repository: &str, read: Option<&str>| SourceProgress::Revision {
            repository: repository.into(),
            read: read.map(Revision::new),
        };
        let check = |now: SourceProgress, before: Option<SourceProgress>, expected: SourceProgress| {
            let recorded = before.map(|progress| SourceStatement { progress, ..SourceStatement::default() });
            assert_eq!(merge_progress(now, recorded.as_ref()), expected, "{recorded:?}");
        };
        let unread = || of("shop", None);
        check(unread(), None, unread());
        check(unread(), Some(of("shop", Some("r1"))), of("shop", Some("r1")));
        check(unread(), Some(unread()), unread());
        check(unread(), Some(of("other", Some("r1"))), unread());
        check(unread(), Some(SourceProgress::Unversioned), unread());
        check(of("shop", Some("r2")), Some(of("shop", Some("r1"))), of("shop", Some("r2")));
        check(SourceProgress::Unversioned, Some(of("shop", Some("r1"))), SourceProgress::Unversioned);
    }

    /// Returns an engine that asks other sources, with one source of its own.
    fn engine() -> Engine {
        let mut engine = following(&[("own", SET, RepositoryIdentity::None)], AdoptPolicy::IfUnowned);
        engine.require_peer_consent();
        engine
    }

    #[test]
    fn as_many_objects_as_can_be_named_are_requested_by_name() {
        let listed = |count: usize| {
            let names: Vec<String> = (0..count).map(|number| number.to_string()).collect();
            let file = |name: &String| desired(&config(name), 1, name);
            let files: Vec<(&str, Option<SharedDesiredObject>)> =
                names.iter().map(|name| (name.as_str(), Some(file(name)))).collect();
            let mut engine = engine();
            engine.set_reading(FIRST, reading("c1", &files));
            match engine.takeover_requests(FIRST) {
                TakeoverRequests::Listed(these) => Some(these.len()),
                TakeoverRequests::Unlisted => None,
            }
        };
        assert_eq!(listed(MAX_REQUESTED_OBJECTS), Some(MAX_REQUESTED_OBJECTS));
        assert_eq!(listed(MAX_REQUESTED_OBJECTS + 1), None);
    }

    #[test]
    fn of_more_than_can_be_named_that_is_given_up_last_which_is_gone() {
        let (mut engine, last) = (engine(), config("z"));
        engine.set_reading(FIRST, reading("c1", &[]));
        let thing = WorldObject::settled(desired(&last, 1, "z").hash, "c1", 1);
        engine.observe_object(&last, World::live(&last, &thing));
        let gone = (0..MAX_REQUESTED_OBJECTS).map(|number| config(&number.to_string()));
        engine.handover.given_up.entry(FIRST).or_default().extend(gone);
        let other = PeerSource {
            name: "other".into(),
            inventory_id: "applyset-other-v1".into(),
            statement: Ok(SourceStatement::default()),
            kept: KeptObjects::default(),
            rejections: Vec::new(),
        };
        engine.set_peers(vec![other], start_time());
        let given_up = engine.given_up_objects(FIRST);
        assert_eq!((given_up.len(), given_up.contains(&object_hash(&last))), (MAX_REQUESTED_OBJECTS, true));
    }
}
