//! The controllers' real behaviour under each overlay. A watch of the pods sees every moment, not
//! only the ends.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, also in its own functions")]

mod deployments;
mod harness;
mod sets;
