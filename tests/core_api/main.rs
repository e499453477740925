//! The pure core, held against a real control plane: ownership, drift, immutable fields, health.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot reach its server has failed")]

mod covered;
mod foreign;
mod health;
mod ignored;
mod immutable;
mod impact;
mod server;
