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
//! | [`render`] | plans and differences as text and JSON |
//! | [`config`] | flags and file → one checked configuration |
//! | [`heartbeat`] | heartbeats of every part that must make progress |
//! | [`secret`] | secrets read from files |
//! | [`source`] | git and directories → revisions and bytes |
//! | [`cluster`] | the API server: discovery, informers, apply, delete, the inventory ConfigMap |
//! | [`queue`] | the workqueue |
//! | [`report`] | outgoing reports: log lines, status, metrics, events, the service manager |
//! | [`announce`] | notifications: webhooks and commit statuses |
//! | [`daemon`] | the loop, and the tasks that feed it |
//! | [`serve`] | the HTTP API: status, events, metrics |
//! | [`cli`] | subcommands and exit codes |
//!
//! The first eight are the pure core: no I/O, no clock, no randomness.

pub mod announce;
pub mod change;
pub mod cli;
pub mod cluster;
pub mod config;
pub mod daemon;
pub mod engine;
pub mod fields;
pub mod graph;
pub mod health;
pub mod heartbeat;
pub mod manifest;
pub mod object;
pub mod queue;
pub mod render;
pub mod report;
pub mod secret;
pub mod serve;
pub mod source;
