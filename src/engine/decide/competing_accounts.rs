//! Sources that act as different accounts: a manifest that its author may not apply delays nobody
//! else, and takes no name from anybody.
//!
//! Otherwise an author of one repository could stop the rollouts of another one, by naming the
//! objects that those need. Sources of one account may write each other's objects anyway.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::decide::decision::{Action, CompetingAccounts, Decision};
use crate::engine::decide::ownership::{OwnerChange, left_alone_reason};
use crate::engine::facts::entry::{ObjectEntry, RefusalRule};
use crate::engine::state::{DecisionMode, Engine};
use crate::engine::{
    AdoptPolicy, DesiredState, LiveObject, ManifestFault, ObjectOwner, RefusedManifest, SourceId,
    SourceWrites,
};
use crate::object::{GroupKind, ObjectId};

/// The time after which another source is chosen. A blocker that goes away wakes no objects of
/// other competing sources, and no event reports that a server stopped failing.
pub(in crate::engine) const COMPETITOR_RETRY_DELAY: Duration = Duration::from_secs(10);

/// The objects that one right of an account covers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::engine) struct RoleScope {
    /// The service account; none for rhumb's own.
    pub account: Option<Arc<str>>,
    /// The kind.
    pub kind: GroupKind,
    /// The namespace; none for objects outside of all.
    pub namespace: Option<Arc<str>>,
}

/// A source whose content of an object the API server refuses, or fails on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct WriteDenial {
    /// The source.
    pub(super) source: SourceId,
    /// The time of its next try; none for never.
    pub(super) retry: Option<Instant>,
}

impl Engine {
    /// Returns whether two sources act as the same account, so that each may write what the other
    /// may.
    fn has_common_account(&self, one: SourceId, other: SourceId) -> bool {
        self.sources[one].declared.account == self.sources[other].declared.account
    }

    /// Returns whether a source of the same account wants an object.
    pub(super) fn is_of_own_account(&self, source: SourceId, id: &ObjectId) -> bool {
        let mut competing_sources = self.objects.entries.get(id).into_iter().flat_map(|entry| &entry.targets);
        competing_sources.any(|(other, _)| self.has_common_account(source, *other))
    }

    /// Returns whether the desired content of an object may delay the objects of a source. It may
    /// where the source's own account wants it, or where one wants it that has it and may write it.
    pub(super) fn is_counted_for(&self, source: SourceId, id: &ObjectId) -> bool {
        if self.is_of_own_account(source, id) {
            return true;
        }
        let Some(entry) = self.objects.entries.get(id) else { return false };
        let is_denied = entry.api_refusal.as_ref().is_some_and(|refusal| refusal.rule == RefusalRule::Rights);
        let has_it = |live: &LiveObject| {
            let owner = self.source_of(live).filter(|_| !live.is_unproven());
            owner.is_some_and(|owner| entry.targets.iter().any(|(other, _)| *other == owner))
        };
        !is_denied && self.live_object(id).is_some_and(has_it)
    }

    /// Returns whether all sources that want an object act as one account.
    pub(super) fn competing_accounts(&self, entry: &ObjectEntry) -> CompetingAccounts {
        match &entry.targets[..] {
            [(first, _), others @ ..]
                if others.iter().any(|(one, _)| !self.has_common_account(*first, *one)) =>
            {
                CompetingAccounts::Different
            }
            _ => CompetingAccounts::Same,
        }
    }

    /// Lets the first source that may have an object go on with it, where none of several accounts
    /// has it.
    ///
    /// Of one account nobody can say whose it is to be, and none makes it. Of several, waiting
    /// would let each of them keep the others from any name.
    pub(super) fn choose_competitor(&mut self, id: &ObjectId, now: Instant) {
        let Some(entry) = self.objects.entries.get(id).filter(|entry| entry.targets.len() > 1) else {
            return;
        };
        let is_same = self.competing_accounts(entry) == CompetingAccounts::Same;
        if is_same || self.blockers.mode == DecisionMode::Plan || self.known_owner(id).is_some() {
            return;
        }
        let mut competing_sources = entry.targets.clone();
        competing_sources.sort_by_key(|(source, _)| *source);
        let chosen = competing_sources.iter().find(|(source, state)| self.can_begin(*source, state, id, now));
        let chosen = chosen.map(|(source, _)| *source);
        if self.prefer_source(id, chosen) == OwnerChange::Changed {
            self.change_owner(id);
        }
    }

    /// Returns whether nothing but the write itself is between a source and an object that
    /// nobody has.
    fn can_begin(&self, source: SourceId, state: &DesiredState, id: &ObjectId, now: Instant) -> bool {
        let DesiredState::Object(desired) = state else { return false };
        let state = &self.sources[source];
        let may_write = state.declared.writes == SourceWrites::Allowed
            && state.inventory.as_ref().is_none_or(|inventory| inventory.paused.is_none());
        let live = self.live_object(id);
        let may_take = live.is_none_or(|live| {
            live.owner == ObjectOwner::Nobody && state.declared.adopt != AdoptPolicy::Never
        });
        // A content that is never written would keep the name for nobody.
        let is_written = self.unserved_reason(&desired.gvk).is_none()
            && left_alone_reason(desired, live, state.declared.opt_out).is_none();
        // The object is seen by the account that is to write it.
        may_write
            && may_take
            && is_written
            && self.is_synced(source, &id.group_kind())
            && !self.is_write_denied(source, id, now)
            && self.dependency_blocker(source, desired).is_none()
    }

    /// Schedules another decision about a contested object, where its chosen source waits for
    /// something.
    pub(super) fn revisit_competitors(&self, id: &ObjectId, decision: Decision) -> Decision {
        let waits = decision.action == Action::Nothing && decision.requeue_after.is_none();
        let is_open = waits && self.objects.target_index.is_contested(id) && self.known_owner(id).is_none();
        let entry = self.objects.entries.get(id).filter(|_| is_open);
        match entry.map(|entry| self.competing_accounts(entry)) {
            Some(CompetingAccounts::Different) => {
                Decision { requeue_after: Some(COMPETITOR_RETRY_DELAY), ..decision }
            }
            _ => decision,
        }
    }

    fn is_write_denied(&self, source: SourceId, id: &ObjectId, now: Instant) -> bool {
        let denials = self.blockers.denials_of(id).iter();
        denials
            .filter(|denial| denial.source == source)
            .any(|denial| denial.retry.is_none_or(|retry| retry > now))
    }

    /// Gives an object that several sources want to the next one, where this one's is refused or the
    /// server fails on it.
    pub(super) fn deny_write(&mut self, source: SourceId, id: &ObjectId, retry: Option<Instant>) {
        if !self.objects.target_index.is_contested(id) {
            return;
        }
        self.blockers.deny(id, WriteDenial { source, retry });
        if self.sort_targets_by_owner(id) == OwnerChange::Changed {
            self.change_owner(id);
        }
    }

    /// Returns the manifests of a source whose objects another account has, each with its object.
    pub(in crate::engine) fn contested_manifests(
        &self,
        source: SourceId,
    ) -> impl Iterator<Item = (&ObjectId, RefusedManifest)> {
        let refused = move |id: &ObjectId| {
            let entry = self.objects.entries.get(id)?;
            let (_, state) = entry.targets.iter().skip(1).find(|(one, _)| *one == source)?;
            let (owner, _) = entry.targets.first().filter(|(first, _)| entry.owner == Some(*first))?;
            if self.competing_accounts(entry) == CompetingAccounts::Same {
                return None;
            }
            let owner = self.sources[*owner].declared.name.clone();
            let reason = ManifestFault::HadByOther { object: id.clone(), owner };
            Some(RefusedManifest { origin: state.origin().clone(), reason })
        };
        let contested = self.objects.target_index.contested_objects().iter();
        contested.filter_map(move |id| Some((id, refused(id)?)))
    }
}
