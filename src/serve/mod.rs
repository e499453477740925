//! What is answered over HTTP: where things stand, and nothing else.
//!
//! Owns the doors (the socket, TCP), who may come in, the routes and what an answer looks like. It asks the running
//! loop, so that each answer is true in the moment in which it is given, and nothing is computed while nobody asks.
//!
//! **Invariant:** only reads. No request changes anything, in the cluster or in the process; a webhook has a source
//! looked at sooner than it would be. No secret leaves its file but to be compared with.

mod answer;
mod connections;
mod error;
mod events;
mod guard;
mod hook;
mod kept;
mod listener;
mod page;
mod patient;
mod peers;
mod process;
mod routes;
mod session;
mod socket;
mod tls;

pub use error::Error;
pub use guard::Guard;
pub use hook::{Hooks, Others};
pub use listener::{Place, listen};
pub use process::Process;
pub use routes::{Door, router};
pub use socket::bind;

#[cfg(test)]
mod openapi_tests;
#[cfg(test)]
mod tests;
