//! What the core says about fields, held against the real API server: ownership, drift and immutable fields.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot reach its server has failed")]

mod covered;
mod foreign;
mod immutable;
mod server;
