//! Rollouts of real pods: a kubelet, containers, probes, hooks, a registry and a network.
//!
//! All tests share one cluster with two nodes, of which one is there to be stopped. Only root can
//! run it; without it every test says SKIPPED and why.
//!
//! No `HorizontalPodAutoscaler` scales by a real metric, as nothing here measures pods.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, also in its own functions")]
#![allow(clippy::print_stderr, reason = "what a failing test shows")]

mod client;
mod evictions;
mod failures;
mod image;
mod in_cluster;
mod nodes;
mod restarts;
mod rolls;
mod second_node;
mod serving;
mod site;
#[path = "../cluster/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the other tests of the program use the rest")]
mod support;
mod workload;
