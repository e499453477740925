//! Git repositories and folders as frozen revisions: lists of manifest files, their bytes, what
//! changed.
//!
//! Owns where desired state comes from ([`ResolvedLocation`]), its observations
//! ([`Source::observe`]), the reading ([`RevisionReader`]), and what is refused by name before any
//! content is understood. A [`Snapshot`] is complete only when everything that could be a manifest
//! is in it.
//!
//! **Invariants:** knows nothing of what manifests mean. Never writes to a repository or folder
//! that is not its own. No failure, silence or empty answer is ever taken for a deletion: each
//! leaves the last revision in force.

mod ancestor_name;
mod bounded;
mod change_hints;
mod changes;
mod child;
mod cluster_facts;
mod commit_verifier;
mod complete_revisions;
mod configured;
mod credentials;
mod directory;
mod disk_snapshot;
mod disk_tree;
mod error;
mod file_contents;
mod file_names;
mod folder;
mod folder_entries;
mod followed_repository;
mod frozen_entries;
mod git_messages;
mod history;
mod host_objects;
mod identity;
mod incoming;
mod keys;
mod lineage;
mod local;
mod location;
mod login;
mod loose_objects;
mod object_stores;
mod older_store;
mod origin;
mod outside_files;
mod program;
mod raw_listing;
mod read_sandbox;
mod reader;
mod refusal;
mod remote;
mod rendered_revision;
mod rendered_roots;
mod rendered_store;
mod rendering;
mod repository_references;
mod revision_tree;
mod settings;
mod settling;
mod shared_texts;
mod short_name;
mod signature_report;
mod snapshot;
#[expect(clippy::module_inception, reason = "the type that the module is named after")]
mod source;
mod state_lock;
mod store;
mod store_usage;
mod tree;
mod tree_builder;
mod tree_listing;
mod watch_pool;

#[cfg(test)]
pub(crate) use change_hints::ChangeHints;
pub(crate) use cluster_facts::{ClusterFacts, FactUse, KnownClusterFacts, ObjectFact, ServedVersions};
pub(crate) use commit_verifier::{LastReadRevision, VerificationRecord, unusable_keys};
#[cfg(test)]
pub(crate) use commit_verifier::{SignatureVerification, VerifiedCommits};
#[cfg(test)]
pub(crate) use credentials::Credentials;
pub(crate) use disk_snapshot::{
    DiskSnapshot, InputArgument, read_disk, read_named, repository_around, tree_around,
};
pub use disk_tree::DiskTree;
pub use error::SourceError;
pub(crate) use lineage::Ancestry;
pub(crate) use local::find_revision;
#[cfg(test)]
pub(crate) use location::GitLocation;
pub(crate) use location::{LocationKind, ResolvedLocation, classify, is_missing_or_empty, is_url};
pub(crate) use outside_files::OutsideFiles;
pub(crate) use program::GitVersion;
pub(crate) use reader::{MAX_SOURCE_FILE_BYTES, RevisionReader};
pub(crate) use rendered_revision::RenderStep;
pub(crate) use rendered_roots::RenderedChanges;
pub(crate) use rendering::{
    DUPLICATE_KEY, HOOK_NOT_RUN, RemainingRenderWork, RenderExtent, RenderRequest, RenderedContent,
    RenderedRoot, RenderedSnapshot, RootKey, RootOutcome, SnapshotRenderer,
};
pub(crate) use revision_tree::{FileDefect, RevisionTree, TreeBounds, TreeEntry, TreeFile, TreeLink};
pub(crate) use settings::SourceSettings;
#[cfg(test)]
pub(crate) use settings::TransportPolicy;
pub(crate) use shared_texts::SharedTexts;
#[cfg(test)]
pub(crate) use snapshot::RenderId;
pub(crate) use snapshot::{BlobId, ChangedFile, CommitInfo, RENDERED_SEPARATOR, Snapshot, SnapshotFile};
pub(crate) use source::{Source, SourceObservation};

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod tests;
