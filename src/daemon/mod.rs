//! The loop that makes a cluster follow its sources.
//!
//! The loop receives results of tasks, changes that informers and watches saw, and questions: each
//! is a `LoopEvent`, and all come through one channel. They only wake it: every decision is made by
//! the engine from the complete state. Small tasks carry out the engine's actions.
//!
//! | part | does |
//! |---|---|
//! | [`Reconciler`] | the loop, for the daemon and for one pass |
//! | `source_task` | one task per source: observe, read, parse |
//! | `pins` | the revisions that a source keeps readable |
//! | `cluster_facts` | what renders know of the cluster |
//! | `parse_ahead` | many files, read on two threads |
//! | `contents` | bodies of objects, read again when they are needed |
//! | `action_executor` | carries an action out and returns its result |
//! | `drift` | compares an object with its content, and finds who changed it |
//! | `kinds` | discovery, informers, autoscalers |
//! | `missing_kinds` | kinds that discovery does not list, and the question whether they are gone |
//! | `informer_groups` | the accounts and namespaces of the informers |
//! | `moved_objects` | objects that went to another folder of a repository |
//! | `source_objects` | sources in the cluster |
//! | `leases` | the sources that this replica holds |
//! | `inventory` | the inventory ConfigMap of each source |
//! | `kube_events` | Kubernetes Events |
//! | `tasks` | tasks beside the loop, whose end is always seen |
//! | `trace_writer` | the file of a trace of the engine |
//! | [`preview()`] | one pass of the same engine without writes |
//!
//! **Invariant:** decides nothing about objects, and knows no HTTP and no terminal.

mod accepted_revision;
mod action_executor;
mod cluster_facts;
mod contents;
mod drift;
mod gathered_manifests;
mod handover;
mod host_marks;
mod informer_groups;
mod inventory;
mod kinds;
mod kube_events;
mod leases;
mod loop_event;
mod manifest_facts;
mod missing_kinds;
mod moved_objects;
mod parse_ahead;
mod parsed_manifests;
mod pass_result;
mod pins;
mod plan_lookups;
mod preview;
mod reconciler;
mod setup;
mod source_objects;
mod source_task;
mod tasks;
mod trace_writer;
mod unreadable_records;

pub(crate) use action_executor::run_blocking;
pub(crate) use cluster_facts::read_cluster_facts;
pub(crate) use gathered_manifests::{GatheredManifests, SourceObjects, gather_manifests};
pub(crate) use handover::OtherRequests;
pub(crate) use host_marks::process_mark;
pub(crate) use kube_events::write_events;
pub(crate) use leases::{Leases, SOURCE_LEASE_PREFIX, SourceNames};
pub(crate) use moved_objects::MovedObjectSearch;
pub(crate) use pass_result::{PassEnding, PassResult};
pub(crate) use preview::{PreviewError, PreviewProgress, preview, preview_all, preview_of};
pub(crate) use reconciler::{FetchResult, LoopQueries, Reconciler, RunMode};
pub(crate) use setup::{Setup, SourceFiles, SourceSetup};
pub(crate) use source_objects::{CustomSourceWatch, StatusTarget, StatusTargetKind, StatusTargets};
pub(crate) use tasks::FatalError;
pub(crate) use trace_writer::TraceWriter;
pub(crate) use unreadable_records::UnreadableRecords;

/// Returns a random number from 0 to 1, to spread what would otherwise happen everywhere at once.
fn random_fraction() -> f64 {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    // Each RandomState has keys of its own.
    (RandomState::new().build_hasher().finish() >> 11) as f64 / (1_u64 << 53) as f64
}
