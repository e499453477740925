//! The HTTP API: status, events and metrics, and nothing else.
//!
//! Owns the endpoints (the socket, TCP), the checks of requests, the routes and the responses. It
//! asks the running loop, so each response is true at its moment, and nothing is computed while
//! nobody asks.
//!
//! **Invariant:** only reads. No request changes anything, in the cluster or in the process; a
//! webhook only makes the next check of a source come sooner. A secret leaves its file only for a
//! comparison.

mod answer;
mod client_addresses;
mod connections;
mod error;
mod events;
mod guard;
mod listener;
mod page;
mod process;
mod reloaded_file;
mod routes;
mod session;
mod slow_clients;
mod socket;
mod tls;
mod webhook;

/// The description of the HTTP API, as an `OpenAPI` document.
pub(crate) const OPENAPI_DOCUMENT: &str = include_str!("openapi.json");

pub(crate) use error::ServeError;
pub(crate) use guard::RequestGuard;
pub(crate) use listener::{ListenEndpoint, serve_endpoint};
pub(crate) use process::ProcessHandle;
pub(crate) use routes::{RouteSet, router};
pub(crate) use socket::bind;
pub(crate) use webhook::{UnservedSources, WebhookReceiver};

#[cfg(test)]
mod openapi_tests;
#[cfg(test)]
mod tests;
