//! Pruning: the guard in front of each delete, and every input of it.
//!
//! **Invariant:** absence means deletion only when the whole desired set was read, every informer
//! has synced and no other source wants the object.

pub(super) mod cached_prune_decisions;
pub(super) mod handover;
pub(super) mod holders;
pub(super) mod inventory_note;
pub(super) mod kept_objects;
pub(super) mod kept_text;
pub(super) mod moved_objects;
pub(super) mod observation_requests;
pub(super) mod own_statement;
pub(super) mod peer_sources;
pub(super) mod pending_prune;
pub(super) mod prune_counts;
pub(super) mod prune_guard;
pub(super) mod prune_inputs;
pub(super) mod recreation_guard;
pub(super) mod statement_text;
pub(super) mod unlisted_kinds;
pub(super) mod unowned_objects;
pub(super) mod unrendered_roots;
pub(super) mod unwatched_objects;
