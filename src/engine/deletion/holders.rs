//! The sources of other processes that have objects which a source here wants.
//!
//! Informers show only what is in an inventory of this process. The object of another source may go
//! on to a third one, which no event reports. A wait for the source that had it would never end. So
//! as long as a source keeps an object, that object is looked up again from time to time.

use std::time::{Duration, Instant};

use crate::engine::decide::decision::{ApplyPurpose, ApplyRequest};
use crate::engine::facts::entry::DirectView;
use crate::engine::state::Engine;
use crate::engine::{CurrentOwner, ObjectOwner};
use crate::object::ObjectId;

/// The time for which a lookup shows which source keeps an object.
const HOLDER_VIEW_LIFETIME: Duration = Duration::from_secs(30);

impl Engine {
    /// Drops the view by a lookup of an object that another source keeps, once it is old. That of an
    /// object which is given up stays: its write is bound to the version that was seen.
    pub(in crate::engine) fn expire_holder_view(&mut self, id: &ObjectId, now: Instant) {
        if !self.is_kept_by_lookup(id) {
            self.handover.kept_views.remove(id);
            return;
        }
        let since = *self.handover.kept_views.entry(id.clone()).or_insert(now);
        if now.saturating_duration_since(since) < HOLDER_VIEW_LIFETIME {
            return;
        }
        self.handover.kept_views.remove(id);
        self.clear_memo();
        if let Some(entry) = self.objects.entries.get_mut(id) {
            entry.direct_view = None;
        }
    }

    /// Returns whether only a lookup shows a wanted object, in the inventory of another source that
    /// does not give it up.
    fn is_kept_by_lookup(&self, id: &ObjectId) -> bool {
        let Some(entry) = self.objects.entries.get(id).filter(|entry| entry.target_content().is_some())
        else {
            return false;
        };
        let Some(DirectView::Found(live)) = &entry.direct_view else { return false };
        let ObjectOwner::Ours(set) = &live.owner else { return false };
        let holder = self.handover.peers.as_ref().and_then(|peers| peers.get(set));
        !self.objects.informer_objects.contains_key(id) && holder.is_some_and(|peer| !peer.is_releasing(id))
    }

    /// Returns from whom a write takes its object over; none where that is nobody's, or its own
    /// source's.
    pub(in crate::engine) fn previous_owner(&self, apply: &ApplyRequest) -> Option<CurrentOwner> {
        if !matches!(apply.purpose, ApplyPurpose::Adopt | ApplyPurpose::Transfer) {
            return None;
        }
        Some(match &self.live_object(&apply.desired.id)?.owner {
            ObjectOwner::Nobody => return None,
            ObjectOwner::Foreign(owner) | ObjectOwner::Controlled(owner) => CurrentOwner::Tool(owner.clone()),
            ObjectOwner::Ours(set) | ObjectOwner::Labelled(set) => {
                let own = self.source_of_inventory_id(set);
                let own = own.map(|source| &self.sources[source].declared.name);
                let peer = || Some(&self.handover.peers.as_ref()?.get(set)?.name);
                let name = own.or_else(peer).or_else(|| self.handover.names.get(set)).cloned();
                name.map_or_else(|| CurrentOwner::ApplySet(set.clone()), CurrentOwner::Source)
            }
        })
    }
}
