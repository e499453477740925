//! Charts of real servers: a registry, and a repository over HTTPS, fetched by the real helm behind
//! its sandbox.
//!
//! With `RHUMB_HELM=4` helm is Helm 4.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, also in its own functions")]

mod archives;
mod commands;
mod credentials;
mod fixture;
mod refusals;
mod registry;
mod repository;
mod sandbox;
mod server;
mod slots;
