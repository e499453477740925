//! The program against a real control plane: what it does with good input, bad input and faults.
//!
//! Each test has a namespace, a source, a state directory and a user of the API server of its own, so that all of
//! them can share one control plane; a test that stops or spoils parts starts its own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, also in its own functions")]

mod support;
mod thread;
mod waits;
