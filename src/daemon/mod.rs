//! The loop that makes a cluster follow its sources.
//!
//! Everything that happens arrives as one closed `Event`; events only wake the loop, and every decision
//! is made by the engine from whole state. What the engine decides is carried out by small tasks whose
//! outcomes are events again.
//!
//! | part | does |
//! |---|---|
//! | [`Reconciler`] | the loop, for the daemon and for one pass |
//! | `feed` | one task per source: observe, read, parse |
//! | `pins` | which revisions a source keeps readable |
//! | `contents` | bodies of objects, read again when they are needed |
//! | `act` | carries an action out and says what came of it |
//! | `drift` | whether an object is as its content asks, and who changed it |
//! | `kinds` | discovery, informers, autoscalers |
//! | `watchers` | as whom, and where, the informers of each source look |
//! | `customs` | sources that stand in the cluster |
//! | `leases` | which sources this replica holds |
//! | `inventory` | the parent object of each source |
//! | `events` | what happens as Kubernetes Events |
//! | `tasks` | what runs beside the loop, so that no end goes unseen |
//! | [`preview()`] | one dry run of the same engine |
//!
//! **Invariant:** decides nothing about objects, and knows no HTTP and no terminal.

mod acceptance;
mod act;
mod contents;
mod customs;
mod drift;
mod event;
mod events;
mod feed;
mod handover;
mod inventory;
mod kinds;
mod leases;
mod objects;
mod pass;
mod pins;
mod preview;
mod proofs;
mod reading;
mod reconciler;
mod setup;
mod tasks;
mod watchers;

pub use customs::{Customs, Duties, Duty, Meaning};
pub use events::write_events;
pub use inventory::{
    PendingPrune, acknowledged, confirmed, is_made_from, pending_prunes, place, rejections, unlisted,
    untold_prunes,
};
pub use leases::{Leases, Names as SourceNames};
pub use objects::{Gathered, Held, gathered};
pub use pass::{Ending, Pass};
pub use preview::{PreviewError, preview, preview_all, preview_of};
pub use reconciler::{Fetch, Inquiries, Reconciler, Until};
pub use setup::{Files, Setup, SourceSetup};
pub use tasks::Fatal;

/// A random number from 0 to 1, to spread what would otherwise happen everywhere at once.
fn random() -> f64 {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    // Each RandomState has keys of its own.
    (RandomState::new().build_hasher().finish() >> 11) as f64 / (1_u64 << 53) as f64
}
