//! The program against a real control plane: good input, bad input and faults.
//!
//! Each test has its own namespace, source, state directory and user of the API server, so that all
//! of them can share one control plane. A test that stops or spoils parts starts its own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, also in its own functions")]
#![allow(clippy::print_stderr, reason = "what a failing test shows")]

mod accounts;
mod admission;
mod adoption;
mod allowed;
mod another;
mod budget;
mod canary;
#[path = "../charts/archives.rs"]
#[expect(dead_code, reason = "the tests of charts make bad ones too")]
mod chart_archives;
#[path = "../charts/server.rs"]
#[expect(dead_code, reason = "the tests of charts ask it for more")]
mod chart_server;
mod commands;
mod configured;
mod confirmations;
mod custom_replicas;
mod customs;
mod deletion_policy;
mod discovery;
mod drift;
mod ends;
mod events;
mod failures;
mod fights;
mod files;
mod folder_moves;
mod foreign;
mod helm;
mod ignored;
mod in_cluster;
mod incomplete;
mod jobs;
mod journal;
mod kills;
mod kinds;
mod kustomize;
mod large_inventories;
mod large_units;
mod lifecycle;
mod listening;
mod lost_rights;
mod members;
mod namespaced;
mod network;
mod node_steps;
mod orders;
mod others;
mod outages;
mod owners;
mod ownership;
mod page;
mod parts;
mod phases;
mod prune;
mod quiet;
mod records;
mod refusals;
mod reloads;
mod remotes;
mod reports;
mod restarts;
mod rights;
mod rights_actions;
mod rights_claims;
mod rights_least;
mod rotated;
mod samples;
mod seals;
mod secrets;
mod server_charts;
mod service;
mod serving;
mod signed;
mod sops;
mod state;
mod status;
mod steps;
mod support;
mod systemd;
mod thread;
mod twice;
mod undos;
mod uninstall;
mod variables;
mod waits;
