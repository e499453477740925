//! Foreign programs in the sandbox: what a hostile program or a hostile repository tries, and what
//! stops it.
//!
//! Programs run that try everything by themselves (`probe.c`), and the real renderers on hostile
//! input, with their most dangerous flags on. Input that rhumb refuses by name before it starts a
//! program is let through there on purpose. `refusals.rs` gives the same to rhumb itself.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, also in its own functions"
)]

#[path = "../charts/archives.rs"]
#[expect(dead_code, reason = "the tests of servers make more of them")]
mod archives;
mod calls;
mod ends;
mod files;
mod fixture;
mod helm;
#[path = "../cluster/support/host.rs"]
#[expect(dead_code, reason = "the tests of the service ask it for more")]
mod host;
mod kustomize;
mod landlock;
mod limits;
mod network;
mod probe;
mod programs;
mod refusals;
mod roots;
mod unit;
#[path = "../cluster/support/wait.rs"]
#[expect(dead_code, reason = "the tests of the cluster wait for more")]
mod wait;
