//! Rollouts that go wrong, on a real control plane.
//!
//! Each test has a place of its own and an observer that never asks rhumb. It replays the API
//! server's watches of pods and workloads, and holds every single state against the budget.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, also in its own functions")]
#![allow(clippy::print_stderr, reason = "what a failing test shows")]

mod accounts;
mod adopted;
mod changed_moves;
mod failures;
mod ledger;
mod lost;
mod manifests;
mod middle;
mod moves;
mod namespaces;
mod node_steps;
mod nodes;
mod observer;
mod outages;
mod processes;
mod refused;
mod replay;
mod replicas;
mod restarts;
mod rollbacks;
mod scales;
mod seals;
mod sets;
mod shared;
mod strategies;
#[path = "../cluster/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the other tests of the program use the rest")]
mod support;
