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
//! | [`change`] | what differs, and what it means for running pods |
//! | [`graph`] | references, dependency order, units |
//! | [`engine`] | entries and every decision: apply, wait, repair, prune, release |
//! | [`render`] | plans and differences as text and JSON |
//! | [`config`] | flags and file → one checked configuration |
//! | [`pulse`] | signs of life of all that must make progress |
//! | [`secret`] | texts that nobody may see, out of files |
//! | [`source`] | git and directories → revisions and bytes |
//! | [`cluster`] | the API server: discovery, informers, apply, delete, the parent object |
//! | [`queue`] | the workqueue |
//! | [`report`] | what is told to the outside: log lines of each outcome, where everything stands, the service manager |
//! | [`announce`] | what happens, to webhooks and as commit statuses |
//! | [`daemon`] | the loop over one closed set of events |
//! | [`serve`] | answers over HTTP: where things stand |
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
pub mod manifest;
pub mod object;
pub mod pulse;
pub mod queue;
pub mod render;
pub mod report;
pub mod secret;
pub mod serve;
pub mod source;
