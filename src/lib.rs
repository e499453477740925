//! rhumb makes a Kubernetes cluster follow a git repository, or a plain directory, of manifests.
//!
//! # Layout
//!
//! A module may use only those above it; `tests/tidy.rs` holds this.
//!
//! | module | owns |
//! |---|---|
//! | [`object`] | identities, JSON trees, provenance, hashes, diagnostics |
//! | [`manifest`] | bytes → objects and diagnostics, as Kubernetes reads YAML |
//! | [`fields`] | field paths and ownership (FieldsV1), masking |
//! | [`health`] | kstatus: is this object what its spec asks for? |
//! | [`change`] | field differences, and their impact on running pods |
//! | [`graph`] | references, dependency order, units |
//! | [`engine`] | entries and every decision: apply, wait, repair, prune, release |
//! | [`render`] | plans and differences as text and JSON, reasons as sentences |
//! | [`config`] | flags and file → one checked configuration |
//! | [`heartbeat`] | heartbeats of every part that must make progress |
//! | [`call_metrics`] | metrics of calls to the API server |
//! | [`secret`] | secrets read from files |
//! | [`source`] | git and directories → revisions and bytes |
//! | [`input`] | what is rendered before it is read: roots, their files, keys, origins, the
//! sandbox, variables, encrypted files |
//! | [`cluster`] | the API server: discovery, informers, apply, delete, the inventory ConfigMap |
//! | [`queue`] | the workqueue |
//! | [`report`] | outgoing reports: log lines, status, metrics, events, the service manager |
//! | [`announce`] | notifications: webhooks and commit statuses |
//! | [`daemon`] | the loop, and the tasks that feed it |
//! | [`serve`] | the HTTP API: status, events, metrics |
//! | [`cli`] | subcommands and exit codes |
//!
//! The first eight are the pure core: no I/O, no clock, no randomness.

pub(crate) mod announce;
pub(crate) mod call_metrics;
pub(crate) mod change;
pub mod cli;
pub(crate) mod cluster;
pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod engine;
pub(crate) mod fields;
#[cfg(test)]
pub(crate) mod fuzz_tests;
pub(crate) mod graph;
pub(crate) mod health;
pub(crate) mod heartbeat;
pub(crate) mod input;
pub(crate) mod manifest;
pub(crate) mod object;
pub(crate) mod queue;
pub(crate) mod render;
pub(crate) mod report;
pub(crate) mod secret;
pub(crate) mod serve;
pub(crate) mod source;

/// Re-exports what integration tests and benchmarks use of the library, and nothing else.
///
/// All else is visible in the crate alone, so the compiler sees what is dead.
pub mod testing {
    /// Field differences and their impact on pods.
    pub mod change {
        pub use crate::change::{Impact, ImpactKind, change_impact, diff_fields, immutable_fields};
    }
    /// The API server.
    pub mod cluster {
        pub use crate::cluster::{
            AccessDenial, ApplyForce, Cluster, ClusterFault, ConfigKey, Connection, DataChange, DataEvent,
            DeleteResult, EvictionResponse, Informer, InformerChange, InformerEvent, InventoryObject,
            KindLookup, KindTable, ListSelector, LiveLookup, PodWatchHandle, PodsChange, PodsEvent,
            ReclaimResult, RetryAdvice, ServedKind, inventory_id_of, pod_selector,
        };
    }
    /// The configuration.
    pub mod config {
        pub use crate::config::{Environment, FetchConfig, SandboxMode, SourceMode, read};
    }
    /// Decisions.
    pub mod engine {
        pub use crate::engine::{
            ConfigData, IMAGE_PULL_GRACE, IgnoredFields, NodePod, NodeState, NodeStep, ObjectOwner,
            OrdinalPod, PART_OF, PodAvailability, PodFacts, Precondition, PromotionRequest, ResourceVersion,
            RolloutFailure, RolloutOverlay, RolloutOverlayState, StatefulSetState, StepDecision,
            StepProgress, Steps, TemplateVersion, UNSCHEDULABLE_GRACE, Uid, WorkloadPhase, WorkloadPods,
            apply_overlay, count_nodes, find_failure, find_stuck_pod, next, next_failure_check,
            remove_ignored, select_evictions,
        };
    }
    /// Field paths and ownership.
    pub mod fields {
        pub use crate::fields::{
            OwnershipCheck, ValueSchema, check_ownership, differing_values, lost_field_writers,
            uncovered_paths, value_digest,
        };
    }
    /// Health.
    pub mod health {
        pub use crate::health::{HEALTH_SPEC_KEYS, is_waiting_for_consumer, of};
    }
    /// Rendered inputs.
    pub mod input {
        pub use crate::input::{FileTree, RenderHost, strip_origin};
        /// Charts of servers.
        pub mod charts {
            pub use crate::input::charts::*;
        }
        /// Charts.
        pub mod helm {
            pub use crate::input::helm::*;
        }
        /// Closures of kustomize roots.
        pub mod kustomize {
            pub use crate::input::kustomize::*;
        }
        /// The sandbox of programs.
        pub mod sandbox {
            pub use crate::input::sandbox::*;
        }
        /// Encrypted files.
        pub mod sops {
            pub use crate::input::sops::{AgeIdentities, PlaintextLayout, SopsFormat, is_encrypted, open};
        }
        /// Variables in manifests.
        pub mod variables {
            pub use crate::input::variables::{TemplateFault, VariableTable, expand};
        }
    }
    /// Manifests.
    pub mod manifest {
        pub use crate::manifest::{MAX_MANIFEST_BYTES, ManifestFile, ManifestItem, read};
    }
    /// Objects.
    pub mod object {
        pub use crate::object::{
            Diagnostic, ErrorClass, GroupKind, Gvk, ObjectId, annotations, canonical_json, text_at, value_at,
        };
    }
    /// Sources.
    pub mod source {
        pub use crate::source::{DiskTree, SourceError};
    }
}
